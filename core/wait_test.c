/* SPDX-License-Identifier: ISC */
/*
 * Many threads that wait: each is told, in time, of its own value, whoever of
 * them watches; and a still word is a hang only where nobody else is waited
 * for.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/device.h"
#include "paths/model/model.h"

enum { WAITERS = 16, VALUES = 200, SECOND = 1000000000 };

struct waiter {
  struct rig_nv *d;
  pthread_t thread;
  uint64_t first, step; /* waits for first, first + step, .. VALUES */
  uint64_t deadline;
  int e;
};

static const struct rig_nv_path *open_model(int64_t hang_ms) {
  struct rig_nv_model_options o;
  const struct rig_nv_path *path;
  rig_nv_model_options_init(&o);
  o.hang_ms = hang_ms;
  assert_int_equal(rig_nv_path_model(&o, &path), 0);
  return path;
}

static void end(struct rig_nv *d, const struct rig_nv_path *path) {
  assert_int_equal(rig_nv_stop(d, NULL), 0);
  assert_int_equal(rig_nv_release(d), 0);
  assert_int_equal(rig_nv_path_close(path), 0);
}

static void *waiter(void *arg) {
  struct waiter *w = arg;
  for (uint64_t v = w->first; w->e == 0 && v <= VALUES; v += w->step) {
    w->e = rig_nv_wait(w->d, v, w->deadline);
    if (w->e == 0 && !rig_reached(rig_nv_signaled(w->d), v))
      w->e = 1;
  }
  return NULL;
}

static void start(struct waiter *w, struct rig_nv *d, uint64_t first,
                  uint64_t step, uint64_t deadline) {
  *w = (struct waiter){
      .d = d, .first = first, .step = step, .deadline = deadline};
  assert_int_equal(pthread_create(&w->thread, NULL, waiter, w), 0);
}

static int join(struct waiter *w) {
  assert_int_equal(pthread_join(w->thread, NULL), 0);
  return w->e;
}

static void post(struct rig_nv *d, const struct rig_submission *s) {
  uint64_t v;
  if (rig_nv_post_wait(d, s, device_now() + 20 * (uint64_t)SECOND, &v) != 0)
    fail_msg("post: %s", rig_nv_why());
}

/* Each waits for every k-th value, and the last ones for the last alone. */
static void test_many(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(-1);
  struct rig_nv *d;
  struct waiter w[WAITERS];
  struct rig_submission s = {0};
  assert_int_equal(rig_nv_make(path, NULL, &d), 0);
  uint64_t deadline = device_now() + 60 * (uint64_t)SECOND;
  for (uint64_t i = 0; i < WAITERS; i++)
    start(&w[i], d, i < 12 ? i + 1 : VALUES, i < 12 ? i + 1 : VALUES, deadline);
  for (int v = 0; v < VALUES; v++) {
    post(d, &s);
    if (v % 8 == 0)
      device_nap(300000);
  }
  for (int i = 0; i < WAITERS; i++)
    assert_int_equal(join(&w[i]), 0);
  assert_int_equal(d->watch.held, 0);
  assert_int_equal(d->watch.sleepers, 0);
  end(d, path);
}

/* The watcher leaves first, by its deadline: another one watches on. */
static void test_watcher_leaves(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(-1);
  struct rig_nv *d;
  struct waiter first, others[4];
  struct rig_submission s = {0};
  assert_int_equal(rig_nv_make(path, NULL, &d), 0);
  model_stall(path, true);
  post(d, &s);
  start(&first, d, 1, VALUES, device_now() + SECOND / 20);
  while (shared_load_32(&d->watch.held) == 0)
    device_nap(100000);
  for (int i = 0; i < 4; i++)
    start(&others[i], d, 1, VALUES, device_now() + 60 * (uint64_t)SECOND);
  assert_int_equal(join(&first), -RIG_NV_TIMEOUT);
  model_stall(path, false);
  for (int i = 0; i < 4; i++)
    assert_int_equal(join(&others[i]), 0);
  end(d, path);
}

/* A fault reaches every waiter; one that comes after it was told finds the
 * device lost. */
static void test_fault(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(-1);
  struct rig_nv *d;
  struct waiter w[4];
  struct rig_part p = rig_part_copy(0x12345000, 0x1000, 16);
  struct rig_submission s = {.parts = &p, .nparts = 1};
  assert_int_equal(rig_nv_make(path, NULL, &d), 0);
  for (int i = 0; i < 4; i++)
    start(&w[i], d, 1, VALUES, device_now() + 60 * (uint64_t)SECOND);
  post(d, &s);
  for (int i = 0; i < 4; i++) {
    int e = join(&w[i]);
    assert_true(e == -RIG_NV_FAULT || e == -RIG_NV_LOST);
  }
  end(d, path);
}

/* A still word is no hang while the next value waits for another's word. */
static const struct {
  const char *name;
  bool waits; /* the first value, for a word of the host's */
  int expect;
} stalls[] = {
    {"work that stands still", false, -RIG_NV_STALLED},
    {"a wait that is not over", true, -RIG_NV_TIMEOUT},
};

static void test_stalls(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof stalls / sizeof stalls[0]; i++) {
    const struct rig_nv_path *path = open_model(30);
    struct rig_nv *d;
    struct rig_nv_region *r;
    assert_int_equal(rig_nv_make(path, NULL, &d), 0);
    assert_int_equal(rig_nv_alloc(d, RIG_PINNED, 4096, &r), 0);
    uint64_t *word = rig_nv_locate(r).host;
    *word = 0;
    struct rig_wait wait = {rig_nv_locate(r).address, 1, RIG_WAIT_WORD};
    struct rig_submission s = {.waits = &wait, .nwaits = stalls[i].waits};
    model_stall(path, !stalls[i].waits);
    post(d, &s);
    int e = rig_nv_wait(d, 1, device_now() + SECOND / 5);
    if (e != stalls[i].expect)
      fail_msg("%s: got %d, %s", stalls[i].name, e, rig_nv_why());
    shared_store_release_64(word, 1);
    model_stall(path, false);
    while (rig_nv_signaled(d) != 1) /* it goes on, lost or not */
      device_nap(100000);
    assert_int_equal(rig_nv_wait(d, 1, UINT64_MAX), 0);
    assert_int_equal(rig_nv_free(d, r), 0);
    end(d, path);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_many),
      cmocka_unit_test(test_watcher_leaves),
      cmocka_unit_test(test_fault),
      cmocka_unit_test(test_stalls),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
