/* SPDX-License-Identifier: ISC */
#ifndef CORE_RULES_BED_H
#define CORE_RULES_BED_H
/*
 * For tests of rules: a table of sentences, each with a function that shows it
 * on one path to the model. All of them run on each. A bed is ended by
 * finish, or by sweep where the rule left something behind.
 */
#include "core/image_bed.h"

enum { PAGE = 4096, KERNEL = MODEL_PATH_KERNEL, MS = 1000000 };
#define FREE_FAILED "free: path_free failed on purpose"

struct rule {
  const char *sentence;
  void (*shows)(int is); /* an enum model_path */
};

static inline void run_rules(const struct rule *rules, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (int is = KERNEL; is < MODEL_PATHS; is++) {
      printf("%s: %s\n", model_path_name((enum model_path)is),
             rules[i].sentence);
      rules[i].shows(is);
    }
}

static inline void open_bed(struct bed *b, int is) {
  bed_options(b, is, 0x900);
  bed_make(b);
}

/* Ends a bed whose device is released, with what stays of it. How many things
 * that was. */
static inline size_t sweep(struct bed *b) {
  size_t n = failing_path_sweep(&b->f);
  assert_int_equal(b->live, 0);
  DONE(rig_nv_path_close(b->model));
  pthread_mutex_destroy(&b->mutex);
  pthread_mutex_destroy(&b->g.mutex);
  pthread_cond_destroy(&b->g.moved);
  return n;
}

/* The n-th call of the path from now on fails. */
static inline void fail_in(struct bed *b, unsigned n, enum rig_nv_answer is) {
  b->f.answer = is;
  b->f.failed = NULL;
  b->f.fail_at = b->f.calls + n;
}

static inline uint64_t submit(struct rig_nv *d,
                              const struct rig_submission *s) {
  const char *failure = NULL;
  uint64_t v = rings_last(&d->rings) + 1;
  assert_int_equal(rig_nv_room(d, s), RIG_FITS);
  if (rig_nv_submit(d, v, s, &failure) != RIG_COMMITTED)
    fail_msg("submit: %s", failure);
  return v;
}

static inline uint64_t submit_nothing(struct rig_nv *d) {
  return submit(d, &(struct rig_submission){0});
}

/* Until the word reads v, with no call that a lost device refuses. */
static inline void read_until(const struct rig_nv *d, uint64_t v) {
  uint64_t start = device_now();
  while (rig_nv_signaled(d) != v) {
    if (device_now() - start > 10000 * (uint64_t)MS)
      fail_msg("the word is %llu, not %llu",
               (unsigned long long)rig_nv_signaled(d), (unsigned long long)v);
    device_nap(100000);
  }
}

static inline size_t memories(const struct bed *b) {
  struct model_counts c;
  model_counts(b->model, &c);
  return c.memories;
}

/* What the RM writes to a notifier; the status last. */
static inline void notify(struct rig_nv *d, int q, uint32_t error) {
  unsigned char *n = d->growth.newest->channels.notifier[q].host;
  ck_pr_store_32((uint32_t *)(void *)(n + d->layout->notification.info_32.at),
                 error);
  ck_pr_fence_release(); /* partner: channels_error's acquire fence */
  ck_pr_store_32((uint32_t *)(void *)(n + d->layout->notification.info_16.at),
                 error ? UINT32_C(0xffff) << 16 : 0);
}
#endif
