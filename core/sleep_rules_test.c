/* SPDX-License-Identifier: ISC */
/*
 * Rules on sleep: when it returns, what it asks and answers. One row a rule.
 */
#include "core/rules_bed.h"

/* At once, asking nothing, also of a device that is lost or stopped. */
static void sleep_at_once(int personality) {
  struct bed b;
  open_bed(&b, personality);
  DONE(rig_nv_wait(b.d, submit_nothing(b.d), UINT64_MAX));
  unsigned calls = b.f.calls;
  DONE(rig_nv_sleep(b.d, 0, 60000));
  assert_int_equal(b.f.calls, calls);
  fail_in(&b, 1, RIG_NV_FAULTED);
  EXPECT(rig_nv_sleep(b.d, 1, 0), RIG_NV_FAULT, "path_check failed on purpose");
  DONE(rig_nv_sleep(b.d, 0, 60000));
  DONE(rig_nv_stop(b.d, NULL));
  DONE(rig_nv_sleep(b.d, 0, 60000));
  bed_release_all(&b);
}

static bool slow_check(void *ctx, struct rig_nv_reply *reply) {
  (void)ctx;
  device_nap(40 * (uint64_t)MS);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static uint64_t slept(struct bed *b, int64_t still_ms) {
  uint64_t start = device_now();
  DONE(rig_nv_sleep(b->d, 0, still_ms));
  return (device_now() - start) / MS;
}

/* At the latest after still_ms, and later by what the path's check takes. */
static void sleep_in_time(int personality) {
  struct bed b;
  open_bed(&b, personality);
  assert_in_range(slept(&b, 0), 0, 500);
  assert_in_range(slept(&b, 20), 19, 520);
  assert_in_range(slept(&b, -1), 999, 1500);
  b.g.path.check = slow_check;
  assert_in_range(slept(&b, 0), 40, 540);
  assert_in_range(slept(&b, 20), 59, 560);
  b.g.path.check = b.f.path.check;
  finish(&b);
}

/* The event is kept before the call returns: the path reports it but once. */
static void sleep_keeps_events(int personality) {
  struct bed b;
  open_bed(&b, personality);
  fail_in(&b, 1, RIG_NV_FAULTED);
  for (int i = 0; i < 3; i++)
    EXPECT(rig_nv_sleep(b.d, 0, 60000), RIG_NV_FAULT,
           "path_check failed on purpose");
  finish(&b);
}

static int sleep_in(void *arg) { return rig_nv_sleep(arg, 0, 0); }

/* What is refused for another reason loses no event. */
static void sleep_loses_nothing(int personality) {
  struct bed b;
  struct rig_nv_lock l;
  open_bed(&b, personality);
  DONE(rig_nv_lock_init(&l, &rig_nv_lock_path));
  notify(b.d, RIG_COMPUTE0, 31);
  fail_in(&b, 1, RIG_NV_FAULTED);
  assert_int_equal(rig_nv_lock_protect(&l, sleep_in, b.d), -RIG_NV_INVALID);
  EXPECT(rig_nv_sleep(b.d, 0, 0), RIG_NV_FAULT, "path_check failed on purpose");
  rig_nv_lock_fini(&l);
  finish(&b);
}

/* While no notifier is set, one question to the path a sleep and a wait. */
static void sleep_asks_once(int personality) {
  struct bed b;
  open_bed(&b, personality);
  unsigned calls = b.f.calls;
  DONE(rig_nv_sleep(b.d, 0, 30));
  assert_int_equal(b.f.calls, calls + 1);
  assert_int_equal(rig_nv_wait(b.d, 1, device_now() + 30 * (uint64_t)MS),
                   -RIG_NV_TIMEOUT);
  assert_int_equal(b.f.calls, calls + 2);
  finish(&b);
}

/* Once one is set: the path, then the RM; its refusal is a line. */
static void sleep_asks_path_then_rm(int personality) {
  static const char *const e31 =
      "channel error 31 (FIFO_ERROR_MMU_ERR_FLT), status 0xffff";
  for (int which = 0; which < 2; which++) {
    struct bed b;
    char want[256];
    open_bed(&b, personality);
    notify(b.d, RIG_COMPUTE0, 31);
    notify(b.d, RIG_COPY0, 31);
    fail_in(&b, 1 + (unsigned)which, RIG_NV_FAULTED);
    assert_int_equal(rig_nv_sleep(b.d, 0, 60000), -RIG_NV_FAULT);
    snprintf(want, sizeof want, "%s%s", which ? e31 : "",
             which ? "\nmultiprocessor errors: rm_sm_errors failed on purpose"
                   : "path_check failed on purpose");
    assert_string_equal(rig_nv_why(), want);
    EXPECT(rig_nv_sleep(b.d, 0, 60000), RIG_NV_FAULT, want);
    finish(&b);
  }
}

static const struct rule rules[] = {
    {"sleep must return immediately if the word already differs.",
     sleep_at_once},
    {"sleep must return at the latest after still_ms; it lasts past it by as "
     "long as check takes.",
     sleep_in_time},
    {"The driver must record each event it consumes before it consumes it.",
     sleep_keeps_events},
    {"An exception other than Fault that escapes sleep loses nothing.",
     sleep_loses_nothing},
    {"While no notifier holds an error, a sleep asks only the path.",
     sleep_asks_once},
    {"Once a notifier holds an error it asks the path and the RM.",
     sleep_asks_path_then_rm},
};

static void test_rules(void **state) {
  (void)state;
  run_rules(rules, COUNT(rules));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
