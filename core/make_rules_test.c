/* SPDX-License-Identifier: ISC */
/*
 * Rules on a make that fails: whatever calls of it do, alone or with one more
 * of what undoes it. One row a rule.
 */
#include "core/rules_bed.h"

/* The device of a make, and what it came to. */
struct making {
  const struct rig_nv_path *model;
  struct failing_path f;
  struct bed b; /* its allocator */
};

static int try_make(struct making *m, struct rig_nv **d) {
  const struct rig_nv_allocator host = {bed_alloc, bed_release, &m->b};
  struct rig_nv_options o;
  struct device_sizes z;
  device_sizes_init(&z);
  z.entries = 64;
  z.segment_bytes = 8192;
  z.launch_bytes = 16384;
  z.in_flight = 16;
  rig_nv_options_init(&o);
  o.allocator = &host;
  return device_make_sized(&m->f.path, &o, &z, d);
}

static void open_making(struct making *m, int personality) {
  memset(m, 0, sizeof *m);
  pthread_mutex_init(&m->b.mutex, NULL);
  bed_options(&m->b, personality, 0x900);
  m->b.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  DONE(model_path_open(m->b.is, &m->b.o, &m->model));
  failing_path_init(&m->f, m->model);
}

/* Memories that a group's objects name: its block and its notifiers. */
enum { NAMED = 3 };

/* The reason is make's own, and says exactly what stays. */
static void check_reason(const struct making *m, unsigned n, unsigned also,
                         int personality) {
  const char *reason = rig_nv_why(), *failed = m->f.failed;
  const char *second = m->f.failed_also ? m->f.failed_also : "";
  struct model_counts c;
  char first[64];
  model_counts(m->model, &c);
  bool objects = c.objects != 0 || c.registrations != 0;
  size_t named = strstr(reason, "the memory") ? NAMED : 0;
  size_t unfreed = strcmp(second, "path_free") == 0;
  bool stays = objects || c.memories != 0;
  snprintf(first, sizeof first, ": %s failed on purpose", failed);
  const char *at = strstr(reason, first);
  bool right = at != NULL && c.memories == named + unfreed &&
               (objects || named == 0) &&
               strchr(reason, ';') == (stays ? strchr(at, ';') : NULL) &&
               strstr(reason, second) != NULL;
  if (personality == KERNEL && second[0] == 0)
    right = right && !stays;
  if (!right)
    fail_msg("calls %u, %s, and %u, %s: %zu objects, %zu memories, %zu "
             "registrations stay: %s",
             n, failed, also, second, c.objects, c.memories, c.registrations,
             reason);
}

/* The n-th call of a make fails, and the also-th; false where the make was
 * over before the n-th. *more: there was an also-th. */
static bool make_fails_at(int personality, unsigned n, unsigned also,
                          bool *more) {
  struct making m;
  struct rig_nv *d = NULL;
  open_making(&m, personality);
  m.f.answer = RIG_NV_FAULTED;
  m.f.fail_at = n;
  m.f.also_at = also;
  int e = try_make(&m, &d);
  bool failed = m.f.failed != NULL;
  *more = m.f.failed_also != NULL;
  m.f.fail_at = m.f.also_at = 0;
  if (failed) {
    assert_int_equal(e, -RIG_NV_REFUSED);
    assert_null(d);
    assert_int_equal(m.b.live, 0);
    check_reason(&m, n, also, personality);
  } else {
    DONE(e);
    DONE(rig_nv_stop(d, NULL));
    DONE(rig_nv_release(d));
  }
  if (failed || personality == KERNEL) { /* p is as good as before */
    DONE(try_make(&m, &d));
    read_until(d, submit_nothing(d));
    DONE(rig_nv_stop(d, NULL));
    DONE(rig_nv_release(d));
  }
  (void)failing_path_sweep(&m.f);
  DONE(rig_nv_path_close(m.model));
  return failed;
}

static void make_that_fails(int personality) {
  unsigned pairs = 0, n = 1;
  for (bool more = true; make_fails_at(personality, n, 0, &more); n++) {
    pairs++;
    for (unsigned also = n + 1;
         make_fails_at(personality, n, also, &more) && more; also++)
      pairs++;
  }
  printf("  %u failing makes\n", pairs);
  assert_true(pairs > 80);
}

static const struct rule rules[] = {
    {"A failed make frees what it allocated, or its message says what stays.",
     make_that_fails},
};

static void test_rules(void **state) {
  (void)state;
  run_rules(rules, COUNT(rules));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
