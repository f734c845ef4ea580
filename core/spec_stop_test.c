/* SPDX-License-Identifier: ISC */
/*
 * Sentences of the specification on sleeping, faults and stopping that no other
 * test shows; core/SPEC.tsv says which test shows which.
 */
#include "core/spec_bed.h"

#include <pthread.h>
#include <unistd.h>

#include "paths/call.h"

/* ---- sleeping, faults ---- */

/* What the RM writes to a notifier; the status last. */
static void notify(struct rig_nv *d, int q, uint32_t error) {
  unsigned char *n = d->growth.first.channels.notifier[q].host;
  ck_pr_store_32((uint32_t *)(void *)(n + d->layout->notification.info_32.at),
                 error);
  ck_pr_fence_release(); /* partner: channels_error's acquire fence */
  ck_pr_store_32((uint32_t *)(void *)(n + d->layout->notification.info_16.at),
                 error ? UINT32_C(0xffff) << 16 : 0);
}

static void pause_ms(unsigned ms) { usleep(1000 * ms); }

static void *wake(void *arg) {
  struct bed *b = arg;
  pause_ms(30);
  model_stall(b->model, false);
  return NULL;
}

static void *wake_by_error(void *arg) {
  struct bed *b = arg;
  pause_ms(30);
  notify(b->d, RIG_COPY0, 31);
  return NULL;
}

/* A sleep ends as the word moves or a notifier has an error, and a wait with
 * no bound as its work ends; both long before any other bound. */
static const struct {
  const char *name;
  void *(*wake)(void *);
  bool waits;
  int error;
} wakes[] = {
    {"sleep, the word", wake, false, 0},
    {"sleep, a notifier", wake_by_error, false, RIG_NV_FAULT},
    {"wait, the word", wake, true, 0},
    {"wait, a notifier", wake_by_error, true, RIG_NV_FAULT},
};

static void test_wakes(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(wakes); i++) {
    struct bed b;
    pthread_t t;
    begin(&b, KERNEL);
    model_stall(b.model, true);
    uint64_t v = submit_nothing(b.d), start = device_now();
    assert_int_equal(pthread_create(&t, NULL, wakes[i].wake, &b), 0);
    int e = wakes[i].waits ? rig_nv_wait(b.d, v, UINT64_MAX)
                           : rig_nv_sleep(b.d, v - 1, 60000);
    if (e != -wakes[i].error || device_now() - start > 10000 * MS)
      fail_msg("%s: %d after %d ms", wakes[i].name, e,
               (int)((device_now() - start) / MS));
    assert_int_equal(pthread_join(t, NULL), 0);
    model_stall(b.model, false);
    end(&b);
  }
}

/* While no notifier has an error, a sleep asks the path alone, once. */
static void test_quiet_sleep(void **state) {
  (void)state;
  struct bed b;
  begin(&b, KERNEL);
  unsigned calls = b.f.calls;
  b.f.fail_at = calls + 2; /* what else it would ask */
  assert_int_equal(rig_nv_sleep(b.d, 0, 10), 0);
  assert_int_equal(b.f.calls, calls + 1);
  b.f.fail_at = calls + 2;
  b.f.answer = RIG_NV_FAULTED;
  assert_int_equal(rig_nv_sleep(b.d, 0, 10), -RIG_NV_FAULT);
  assert_string_equal(b.f.failed, "path_check");
  end(&b);
}

/* What the RM answers about its multiprocessors. */
static struct {
  const struct abi_rm_layout *layout;
  bool refuses, mmu;
  uint64_t sm; /* which has an error, 0 none */
} rm;

static bool sm_errors(void *ctx, uint32_t debugger, void *p, size_t n,
                      struct rig_nv_reply *reply) {
  const struct abi_rm_layout *l = rm.layout;
  uint64_t first;
  (void)ctx, (void)debugger;
  if (rm.refuses)
    return rig_nv_reply_set(reply, RIG_NV_DENIED, "refused");
  rig_nv_params_set(p, n, l->sm_errors.mmu_fault_valid.at,
                    l->sm_errors.mmu_fault_valid.n, rm.mmu);
  rig_nv_params_get(p, n, l->sm_errors.starting_sm.at,
                    l->sm_errors.starting_sm.n, &first);
  if (rm.sm && rm.sm >= first && rm.sm < first + l->sm_errors.most) {
    size_t at = (rm.sm - first) * l->sm_errors.stride;
    rig_nv_params_set(p, n, l->sm_errors.global_esr.at + at, 4, 5);
    rig_nv_params_set(p, n, l->sm_errors.warp_esr.at + at, 4, 6);
    rig_nv_params_set(p, n, l->sm_errors.warp_pc_64.at + at, 8, 7);
  }
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static bool mmu_faults(void *ctx, uint32_t debugger, void *p, size_t n,
                       struct rig_nv_reply *reply) {
  (void)ctx, (void)debugger, (void)p, (void)n;
  return rig_nv_reply_set(reply, RIG_NV_DENIED, "refused");
}

#define E31 "channel error 31 (FIFO_ERROR_MMU_ERR_FLT), status 0xffff"

static const struct {
  const char *name;
  uint32_t errors[QUEUES];
  bool path, refuses, mmu;
  uint64_t sm;
  const char *report;
} reports[] = {
    {"one channel's", {0, 31}, 0, 0, 0, 0, E31},
    {"of both, the same", {31, 31}, 0, 0, 0, 0, E31},
    {"of both, different",
     {31, 60000},
     0,
     0,
     0,
     0,
     E31 "\nchannel error 60000 (unknown), status 0xffff"},
    {"the path's", {31, 0}, 1, 0, 0, 1, "path_check failed on purpose"},
    {"an SM's",
     {31, 31},
     0,
     0,
     0,
     143,
     E31 "\nSM 143 fault: esr=0x5 warp_esr=0x6 warp_pc=0x7"},
    {"SMs refused",
     {31, 31},
     0,
     1,
     0,
     0,
     E31 "\nmultiprocessor errors: refused"},
    {"the MMU's refused", {31, 31}, 0, 0, 1, 0, E31 "\nMMU faults: refused"},
};

static void test_reports(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(reports); i++) {
    struct bed b;
    options(&b, KERNEL);
    open_path(&b);
    b.f.path.rm.sm_errors = sm_errors;
    b.f.path.rm.mmu_faults = mmu_faults;
    make(&b);
    rm.layout = b.d->layout;
    rm.refuses = reports[i].refuses;
    rm.mmu = reports[i].mmu;
    rm.sm = reports[i].sm;
    for (int q = 0; q < QUEUES; q++)
      notify(b.d, q, reports[i].errors[q]);
    b.f.answer = RIG_NV_FAULTED;
    for (int again = 0; again < 2; again++) {
      /* The path reports it once. */
      b.f.fail_at = reports[i].path && !again ? b.f.calls + 1 : 0;
      assert_int_equal(rig_nv_sleep(b.d, 0, 5000), -RIG_NV_FAULT);
      if (strcmp(rig_nv_why(), reports[i].report) != 0)
        fail_msg("%s:\n got %s\nwant %s", reports[i].name, rig_nv_why(),
                 reports[i].report);
    }
    end(&b);
  }
}

/* A fault that no notifier has is not asked for, and work that completes after
 * it raises nothing. */
static void test_unnotified(void **state) {
  (void)state;
  struct bed b;
  options(&b, KERNEL);
  open_path(&b);
  b.f.path.rm.sm_errors = sm_errors;
  b.f.path.rm.mmu_faults = mmu_faults;
  make(&b);
  rm.layout = b.d->layout;
  rm.refuses = rm.mmu = false;
  rm.sm = 1;
  model_stall(b.model, true);
  uint64_t v = submit_nothing(b.d);
  assert_int_equal(rig_nv_sleep(b.d, v - 1, 10), 0);
  model_stall(b.model, false);
  while (rig_nv_signaled(b.d) != v)
    assert_int_equal(rig_nv_sleep(b.d, v - 1, 5000), 0);
  assert_int_equal(rig_nv_sleep(b.d, v, 10), 0);
  end(&b);
}

/* ---- stop ---- */

static size_t channels_at_stop;

static enum rig_nv_stopped note_stop(void *ctx) {
  struct failing_path *f = ctx;
  struct model_counts c;
  model_counts(f->inner, &c);
  channels_at_stop = c.channels;
  return f->inner->stop(f->inner->ctx);
}

/* Stop waits for no work, nothing writes the word later, and what is freed
 * later concerns no later device. */
static void test_stop_at_once(void **state) {
  (void)state;
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++) {
    struct bed b, next;
    options(&b, personality);
    open_path(&b);
    b.f.path.stop = note_stop;
    make(&b);
    struct rig_nv_region *r = alloc(b.d, RIG_DEVICE), *none = NULL;
    model_stall(b.model, true);
    for (int i = 0; i < 3; i++)
      submit_nothing(b.d);
    assert_int_equal(rig_nv_stop(b.d, NULL), 0);
    assert_int_equal(channels_at_stop, personality == KERNEL ? 0 : 2);
    assert_int_equal(rig_nv_signaled(b.d), 3);
    shared_store_release_64((uint64_t *)(uintptr_t)b.d->facts.word, 77);
    model_stall(b.model, false);
    pause_ms(10);
    assert_int_equal(rig_nv_signaled(b.d), 77);
    unsigned calls = b.f.calls;
    enum rig_mapping mapping;
    assert_int_equal(rig_nv_alloc(b.d, RIG_DEVICE, 4, &none), -RIG_NV_REFUSED);
    assert_int_equal(rig_nv_map_host(b.d, &b, 4, &mapping, &none),
                     -RIG_NV_REFUSED);
    assert_int_equal(rig_nv_sleep(b.d, 77, 1), -RIG_NV_REFUSED);
    assert_int_equal(rig_nv_wait(b.d, 78, 0), -RIG_NV_REFUSED);
    assert_int_equal(b.f.calls, calls);
    next = b;
    if (personality == KERNEL)
      make(&next);
    assert_int_equal(rig_nv_free(b.d, r), 0);
    assert_int_equal(rig_nv_release(b.d), 0);
    if (personality == KERNEL) {
      reached(next.d, submit_nothing(next.d));
      assert_int_equal(rig_nv_stop(next.d, NULL), 0);
      assert_int_equal(rig_nv_release(next.d), 0);
    }
    close_path(&b);
  }
}

/* Frees what a stop kept, past the device. */
static void clean(struct bed *b) {
  struct rig_nv_reply reply = {0};
  struct rig_nv *d = b->d;
  struct growth_record *first = &d->growth.first;
  if (!channels_end(b->model, &first->channels, &reply))
    fail_msg("clean: %s", reply.text);
  assert_int_equal(channels_free_memory(b->model, &first->channels), 0);
  assert_int_equal(path_free(b->model, &d->joins), 0);
  assert_int_equal(path_free(b->model, &first->launches), 0);
  for (int q = 0; q < QUEUES; q++)
    assert_int_equal(path_free(b->model, &first->segments[q]), 0);
}

/* The n-th call of a stop fails. Memory stays while a channel that names it
 * does; the word is raised only where no channel is left; only the free of
 * memory is reported. */
static bool failing_stop(int personality, unsigned n) {
  struct bed b;
  struct model_counts c;
  begin(&b, personality);
  struct rig_nv_region *r = alloc(b.d, RIG_DEVICE);
  struct growth_record *first = &b.d->growth.first;
  struct rig_nv_memory all[] = {first->segments[0],
                                first->segments[1],
                                first->channels.block,
                                first->channels.notifier[0],
                                first->channels.notifier[1],
                                b.d->joins,
                                first->launches};
  model_stall(b.model, true);
  uint64_t v = submit_nothing(b.d);
  b.f.fail_at = b.f.calls + n;
  b.f.answer = RIG_NV_FAULTED;
  int e = rig_nv_stop(b.d, NULL);
  b.f.fail_at = 0;
  const char *failed = b.f.failed ? b.f.failed : "nothing";
  bool memory = strcmp(failed, "path_free") == 0;
  model_counts(b.model, &c);
  bool stay = c.channels != 0 || c.registrations != 0;
  size_t kept = c.memories - 2; /* the region and the device's own word */
  if (e != (memory ? -RIG_NV_FAULT : 0) ||
      kept != (stay     ? COUNT(all)
               : memory ? 1
                        : 0) ||
      rig_nv_signaled(b.d) != (c.channels != 0 ? v - 1 : v))
    fail_msg("%s, call %u, %s: %d, %zu memories stay, the word is %d",
             model_path_name((enum model_path)personality), n, failed, e, kept,
             (int)rig_nv_signaled(b.d));
  assert_int_equal(rig_nv_free(b.d, r), 0);
  if (stay)
    clean(&b);
  rig_word_raise(b.d->facts.word, v);
  struct rig_nv_reply reply;
  for (size_t i = 0; memory && i < COUNT(all); i++)
    (void)!b.model->free(b.model->ctx, &all[i], &reply);
  if (first->channels.debugger && personality == KERNEL)
    assert_true(b.model->rm.free(b.model->ctx, b.model->device,
                                 first->channels.debugger, &reply));
  assert_int_equal(rig_nv_release(b.d), 0);
  close_path(&b);
  return b.f.failed != NULL;
}

static void test_failing_stops(void **state) {
  (void)state;
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++) {
    unsigned n = 1;
    while (failing_stop(personality, n))
      n++;
    assert_true(n > 6);
  }
}

static bool refuse_unregister(void *ctx, uint32_t channel,
                              struct rig_nv_reply *reply) {
  (void)ctx, (void)channel;
  return rig_nv_reply_set(reply, RIG_NV_FAULTED, "unregister failed");
}

static bool refuse_free(void *ctx, uint32_t parent, uint32_t object,
                        struct rig_nv_reply *reply) {
  (void)ctx, (void)parent, (void)object;
  return rig_nv_reply_set(reply, RIG_NV_FAULTED, "free failed");
}

/* Where neither the RM nor the path ends the channels, they bring the word to
 * its last value, and stop does only once both notifiers have an error. */
static const struct {
  const char *name;
  uint32_t errors[QUEUES];
  bool raised;
} lasting[] = {
    {"no error", {0, 0}, false},
    {"COMPUTE's error", {13, 0}, false},
    {"COPY's error", {0, 13}, false},
    {"both", {13, 13}, true},
};

static void test_lasting_channels(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(lasting); i++) {
    struct bed b;
    begin(&b, KERNEL);
    b.f.path.unregister_channel = refuse_unregister;
    b.f.path.rm.free = refuse_free;
    model_stall(b.model, true);
    submit_nothing(b.d);
    uint64_t v = submit_nothing(b.d);
    for (int q = 0; q < QUEUES; q++)
      notify(b.d, q, lasting[i].errors[q]);
    assert_int_equal(rig_nv_stop(b.d, NULL), 0);
    if ((rig_nv_signaled(b.d) == v) != lasting[i].raised)
      fail_msg("%s: the word is %d", lasting[i].name,
               (int)rig_nv_signaled(b.d));
    model_stall(b.model, false);
    if (!lasting[i].raised)
      for (int ms = 0; rig_nv_signaled(b.d) != v && ms < 5000; ms++)
        pause_ms(1);
    assert_int_equal(rig_nv_signaled(b.d), v);
    clean(&b);
    rig_word_raise(b.d->facts.word, v);
    assert_int_equal(rig_nv_release(b.d), 0);
    close_path(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wakes),
      cmocka_unit_test(test_quiet_sleep),
      cmocka_unit_test(test_reports),
      cmocka_unit_test(test_unnotified),
      cmocka_unit_test(test_stop_at_once),
      cmocka_unit_test(test_failing_stops),
      cmocka_unit_test(test_lasting_channels),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
