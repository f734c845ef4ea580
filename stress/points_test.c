/* SPDX-License-Identifier: ISC */
/*
 * A thread that stops anywhere between its reservation and the bell: three
 * others post on, until as many values are in flight as the rings hold where
 * the stopped one is in their way, and to the end where it is not. Once it
 * goes on, every value is reached, once and in order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs those above. */
#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "core/device.h"
#include "rings/point.h"
#include "stress/chain.h"

enum {
  THREADS = 4, /* the first one stops */
  EACH = 1000,
  MOST = 20000, /* of a thread: it takes some until one stands by */
  IN_FLIGHT = 64,
  US = 1000,
  MS = 1000 * US
};

/* Of each wait. A build that is to fail has less. */
#ifndef PATIENCE_S
#define PATIENCE_S 30
#endif

static struct bed {
  enum ring_point at;
  bool contended; /* the step is reached where several threads post */
  struct rig_nv *device;
  struct chain chain;
  pthread_mutex_t lock;
  pthread_cond_t moved;
  bool stopped, go;        /* under the lock */
  const char *wrong;       /* under the lock */
  unsigned later[THREADS]; /* answers in a row (atomic) */
} bed;

static __thread bool stops, hands_over;

static void nap(long ns) {
  struct timespec t = {.tv_nsec = ns};
  nanosleep(&t, NULL); /* an early end does no harm */
}

static bool wrong(const char *what) {
  pthread_mutex_lock(&bed.lock);
  if (!bed.wrong)
    bed.wrong = what;
  pthread_mutex_unlock(&bed.lock);
  return false;
}

/* With the lock, until *is; for a bounded time. */
static bool wait_for(const bool *is) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += PATIENCE_S;
  int e = 0;
  while (!*is && e == 0)
    e = pthread_cond_timedwait(&bed.moved, &bed.lock, &end);
  return *is;
}

static bool get(const bool *is) {
  pthread_mutex_lock(&bed.lock);
  bool now = *is;
  pthread_mutex_unlock(&bed.lock);
  return now;
}

static void stop(void) {
  stops = false;
  pthread_mutex_lock(&bed.lock);
  bed.stopped = true;
  pthread_cond_broadcast(&bed.moved);
  if (!wait_for(&bed.go))
    bed.wrong = "the stopped thread was left alone";
  pthread_mutex_unlock(&bed.lock);
}

static void wait_until_stopped(void) {
  pthread_mutex_lock(&bed.lock);
  bool is = wait_for(&bed.stopped);
  pthread_mutex_unlock(&bed.lock);
  assert_true(is);
}

static void hand_over(enum ring_point at);

void ring_point(enum ring_point at) {
  /* A slow holder is asked for, and then asks for relief. */
  if (bed.contended && at == RING_AT_SHOW)
    nap(50 * US);
  if (hands_over)
    hand_over(at);
  if (at == bed.at && stops)
    stop();
}

static bool post(unsigned thread, uint64_t i) {
  struct rig_part part;
  struct rig_submission s = {.parts = &part, .nparts = 1};
  uint64_t v, end = device_now() + PATIENCE_S * UINT64_C(1000) * MS;
  chain_link(&bed.chain, thread, i % 2 ? RIG_COPY0 : RIG_COMPUTE0, &part);
  for (;;) {
    int answer = rig_nv_post(bed.device, &s, &v);
    if (answer == 0)
      break;
    if (answer != RIG_LATER)
      return wrong("post answers neither 0 nor LATER");
    __atomic_fetch_add(&bed.later[thread], 1, __ATOMIC_RELAXED);
    if (device_now() > end)
      return wrong("LATER for too long");
    nap(200 * US);
  }
  __atomic_store_n(&bed.later[thread], 0, __ATOMIC_RELAXED);
  chain_took(&bed.chain, thread, v);
  return true;
}

static void *first(void *arg) {
  (void)arg;
  stops = true;
  for (uint64_t i = 0; stops && i < MOST; i++)
    if (!post(0, i))
      break;
  return NULL;
}

static void *other(void *arg) {
  unsigned thread = *(unsigned *)arg;
  uint64_t i = 0;
  while (bed.contended && !get(&bed.stopped) && i < MOST - EACH)
    if (!post(thread, i++))
      return NULL;
  for (uint64_t end = i + EACH; i < end; i++)
    if (!post(thread, i))
      return NULL;
  return NULL;
}

static bool all_later(void) {
  for (unsigned i = 1; i < THREADS; i++)
    if (__atomic_load_n(&bed.later[i], __ATOMIC_RELAXED) < 2)
      return false;
  return true;
}

/* All others are at LATER, and nothing moves. */
static void full(void) {
  for (unsigned i = 0; !all_later() && i < PATIENCE_S * 1000; i++)
    nap(MS);
  assert_true(all_later());
  nap(5 * MS); /* what was shown before is reached */
  uint64_t last = rings_last(&bed.device->rings);
  uint64_t word = rig_nv_signaled(bed.device);
  assert_int_equal(last - word, IN_FLIGHT);
  nap(10 * MS);
  assert_int_equal(rings_last(&bed.device->rings), last);
  assert_int_equal(rig_nv_signaled(bed.device), word);
}

static void reach_last(void) {
  uint64_t end = device_now() + PATIENCE_S * UINT64_C(1000) * MS;
  int e = rig_nv_wait(bed.device, rings_last(&bed.device->rings), end);
  if (e != 0)
    fail_msg("%s", rig_nv_why());
}

static void join(pthread_t *threads, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++)
    assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void go_on(void) {
  pthread_mutex_lock(&bed.lock);
  bed.go = true;
  pthread_cond_broadcast(&bed.moved);
  pthread_mutex_unlock(&bed.lock);
}

static void stop_and_go(bool delays) {
  pthread_t threads[THREADS];
  unsigned index[THREADS];
  assert_int_equal(pthread_create(&threads[0], NULL, first, NULL), 0);
  for (unsigned i = 1; i < THREADS; i++) {
    if (i == 1 && !bed.contended) {
      wait_until_stopped();
    }
    index[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, other, &index[i]), 0);
  }
  wait_until_stopped();
  if (delays) {
    full();
  } else {
    join(threads, 1, THREADS);
    reach_last();
  }
  go_on();
  join(threads, 0, delays ? THREADS : 1);
}

/* A device with no value in flight; *first is the next one. */
static const struct rig_nv_path *begin(enum ring_point at, uint64_t *first) {
  const struct rig_nv_path *path;
  const struct device_sizes sizes = {
      .entries = 4096, .segment_bytes = 1 << 20, .in_flight = IN_FLIGHT};
  struct rig_nv_options o;
  rig_nv_options_init(&o);
  o.mode = RIG_NV_POST;
  bed = (struct bed){.at = at};
  pthread_mutex_init(&bed.lock, NULL);
  pthread_cond_init(&bed.moved, NULL);
  assert_int_equal(rig_nv_path_model(NULL, &path), 0);
  assert_int_equal(device_make_sized(path, &o, &sizes, &bed.device), 0);
  assert_int_equal(chain_make(bed.device, THREADS, MOST, &bed.chain), 0);
  *first = rings_last(&bed.device->rings) + 1;
  chain_begin(&bed.chain);
  return path;
}

static void end(const struct rig_nv_path *path, uint64_t first) {
  char what[256];
  if (bed.wrong)
    fail_msg("%s", bed.wrong);
  reach_last();
  if (!chain_check(&bed.chain, first, rings_last(&bed.device->rings), what,
                   sizeof what))
    fail_msg("%s", what);
  assert_int_equal(rig_nv_stop(bed.device, NULL), 0);
  assert_int_equal(chain_end(&bed.chain), 0);
  assert_int_equal(rig_nv_release(bed.device), 0);
  assert_int_equal(rig_nv_path_close(path), 0);
}

static const struct row {
  const char *name;
  enum ring_point at;
  bool delays; /* whether it holds the others up */
} rows[] = {
    {"before the swap", RING_AT_SWAP, false},
    {"after the swap", RING_AT_SWAPPED, true},
    {"before its words", RING_AT_ENCODE, true},
    {"before encoded", RING_AT_ENCODED, true},
    {"encoded, before the seat", RING_AT_ARRIVE, false},
    {"in the seat, before GP_PUT", RING_AT_SHOW, true},
    {"in the seat, before the bell", RING_AT_BELL, true},
    {"in the seat, about to free it", RING_AT_FREE, true},
    {"before the second look", RING_AT_LOOK, false},
    {"standing by", RING_AT_STAND_BY, true},
};
_Static_assert(sizeof rows / sizeof *rows == RING_AT_STAND_BY,
               "each step but RELIEVE, which test_handover has");

static void test_points(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    uint64_t value;
    print_message("%s\n", rows[i].name);
    const struct rig_nv_path *path = begin(rows[i].at, &value);
    bed.contended = rows[i].at == RING_AT_STAND_BY;
    stop_and_go(rows[i].delays);
    end(path, value);
  }
}

static pthread_t stander;

static void *stand_by(void *arg) {
  (void)arg;
  stops = true;
  (void)post(1, 0); /* bed.wrong has why not */
  return NULL;
}

/* In the seat: each round has one value more, until the holder asks to be
 * relieved. Then another thread stands by before the holder leaves. */
static void hand_over(enum ring_point at) {
  static __thread unsigned shown;
  if (at == RING_AT_SHOW && shown++ < SEAT_ROUNDS)
    (void)post(0, shown);
  if (at != RING_AT_RELIEVE)
    return;
  hands_over = false;
  if (pthread_create(&stander, NULL, stand_by, NULL) != 0)
    abort();
  wait_until_stopped();
}

/* The seat goes to a thread that stood by just before its holder left. */
static void test_handover(void **state) {
  (void)state;
  uint64_t value;
  const struct rig_nv_path *path = begin(RING_AT_STAND_BY, &value);
  hands_over = true;
  assert_true(post(2, 0));
  assert_false(hands_over);
  go_on();
  assert_int_equal(pthread_join(stander, NULL), 0);
  end(path, value);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_points),
                                     cmocka_unit_test(test_handover)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
