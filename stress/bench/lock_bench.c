/* SPDX-License-Identifier: ISC */
/*
 * What the order of locks costs: a take and a give, beside those of a bare
 * pthread mutex, in one run. The ways take turns, round by round, so that what
 * else the machine does is all ways' alike; a figure is the median of the
 * rounds. Locks are free, and each thread has its own: the time of the order,
 * not of a wait.
 *
 * lock_bench [--rounds N] [--takes N] [--threads N]
 *
 * Built with TSan, the bare mutex is watched by TSan's own detector of
 * deadlocks, but under TSAN_OPTIONS=detect_deadlocks=0.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lock_order/lock_order.h"
#include "stress/bench/ticks.h"

#if defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif
#ifndef TSAN
#define TSAN 0
#endif

enum { MOST_THREADS = 64, MOST_ROUNDS = 999, MOST_DEPTH = 4 };

enum way {
  BARE,     /* pthread_mutex_lock and unlock */
  RANKS,    /* the graph off */
  GRAPH,    /* on, its edges known */
  UNRANKED, /* the same, of classes with no rank */
  WAYS
};

static const char *const way_names[WAYS] = {
    "bare mutex", "ranks", "ranks and graph", "graph, no ranks"};

static const unsigned depths[] = {1, 2, 4};
enum { DEPTHS = sizeof depths / sizeof *depths };

/* What stands in hot paths: a call that may not be there. */
enum mark { ENTER_OFF, ENTER_ON, ALLOCATE_OFF, ALLOCATE_ON, MARKS };

static const char *const mark_names[MARKS] = {
    "enter and leave a context, graph off",
    "enter and leave a context, graph on", "may_allocate, graph off",
    "may_allocate, graph on"};

static const struct rig_nv_lock_class ranked[MOST_DEPTH] = {
    {"r0", 1000, 0}, {"r1", 1001, 0}, {"r2", 1002, 0}, {"r3", 1003, 0}};
static const struct rig_nv_lock_class unranked[MOST_DEPTH] = {
    {"u0", 0, RIG_NV_LOCK_UNRANKED},
    {"u1", 0, RIG_NV_LOCK_UNRANKED},
    {"u2", 0, RIG_NV_LOCK_UNRANKED},
    {"u3", 0, RIG_NV_LOCK_UNRANKED}};

struct thread {
  pthread_t id;
  struct rig_nv_lock ranked[MOST_DEPTH], unranked[MOST_DEPTH];
  pthread_mutex_t bare[MOST_DEPTH];
  uint64_t ticks[WAYS][DEPTHS], marks[MARKS]; /* of the last round */
} __attribute__((aligned(128)));

static struct thread threads[MOST_THREADS];
static uint64_t rounds = 51, takes = 20000, nthreads = 1;
static pthread_barrier_t turn;
static double ns[WAYS][DEPTHS][MOST_ROUNDS], mark_ns[MARKS][MOST_ROUNDS];

static void must(int result) {
  if (result != 0)
    abort();
}

static void take_bare(pthread_mutex_t *l, unsigned depth) {
  for (uint64_t i = 0; i < takes; i += depth) {
    for (unsigned d = 0; d < depth; d++)
      must(pthread_mutex_lock(&l[d]));
    for (unsigned d = depth; d-- > 0;)
      must(pthread_mutex_unlock(&l[d]));
  }
}

static void take_ordered(struct rig_nv_lock *l, unsigned depth) {
  for (uint64_t i = 0; i < takes; i += depth) {
    for (unsigned d = 0; d < depth; d++)
      must(rig_nv_lock_take(&l[d]));
    for (unsigned d = depth; d-- > 0;)
      rig_nv_lock_give(&l[d]);
  }
}

static void run_way(struct thread *t, enum way way, unsigned depth) {
  if (way == BARE)
    take_bare(t->bare, depth);
  else
    take_ordered(way == UNRANKED ? t->unranked : t->ranked, depth);
}

static void run_mark(enum mark mark) {
  if (mark == ENTER_OFF || mark == ENTER_ON)
    for (uint64_t i = 0; i < takes; i++) {
      rig_nv_lock_enter(&rig_nv_lock_in_rcu);
      rig_nv_lock_leave(&rig_nv_lock_in_rcu);
    }
  else
    for (uint64_t i = 0; i < takes; i++)
      rig_nv_lock_may_allocate("malloc");
}

/* All threads at once; the first one says whether the graph is on. */
static void set_graph(const struct thread *t, bool on) {
  pthread_barrier_wait(&turn);
  if (t == threads)
    (void)rig_nv_lock_watch(on ? RIG_NV_WATCH_REPORT : RIG_NV_WATCH_OFF);
  pthread_barrier_wait(&turn);
}

static void one_round(struct thread *t) {
  for (unsigned d = 0; d < DEPTHS; d++)
    for (enum way w = 0; w < WAYS; w++) {
      set_graph(t, w >= GRAPH);
      run_way(t, w, depths[d]); /* warm */
      uint64_t begin = ticks();
      run_way(t, w, depths[d]);
      t->ticks[w][d] = ticks() - begin;
    }
  for (enum mark m = 0; m < MARKS; m++) {
    set_graph(t, m == ENTER_ON || m == ALLOCATE_ON);
    uint64_t begin = ticks();
    run_mark(m);
    t->marks[m] = ticks() - begin;
  }
}

/* The mean of the threads. */
static void note(uint64_t round, double ns_a_tick) {
  for (uint64_t i = 0; i < nthreads; i++) {
    double each = ns_a_tick / (double)(takes * nthreads);
    for (enum way w = 0; w < WAYS; w++)
      for (unsigned d = 0; d < DEPTHS; d++)
        ns[w][d][round] += (double)threads[i].ticks[w][d] * each;
    for (enum mark m = 0; m < MARKS; m++)
      mark_ns[m][round] += (double)threads[i].marks[m] * each;
  }
}

static void *run(void *arg) {
  struct thread *t = arg;
  double ns_a_tick = t == threads ? ticks_calibrate() : 0;
  for (uint64_t r = 0; r < rounds; r++) {
    one_round(t);
    pthread_barrier_wait(&turn);
    if (t == threads)
      note(r, ns_a_tick);
    pthread_barrier_wait(&turn);
  }
  return NULL;
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *of) {
  qsort(of, rounds, sizeof *of, by_size);
  return of[rounds / 2];
}

static void report(void) {
  static double over[MOST_ROUNDS];
  printf("%llu threads, %llu rounds of %llu takes, median ns of a take and a "
         "give; over: than the bare mutex of the same round; least: of all "
         "rounds\n",
         (unsigned long long)nthreads, (unsigned long long)rounds,
         (unsigned long long)takes);
  if (TSAN) {
    const char *options = getenv("TSAN_OPTIONS");
    printf("TSan; TSAN_OPTIONS=%s: the bare mutex %s its detector of "
           "deadlocks\n",
           options ? options : "",
           options && strstr(options, "detect_deadlocks=0") ? "without"
                                                            : "with");
  }
  printf("held at once  way                  ns    over   least\n");
  for (unsigned d = 0; d < DEPTHS; d++)
    for (enum way w = WAYS; w-- > 0;) { /* before the bare one is sorted */
      for (uint64_t r = 0; r < rounds; r++)
        over[r] = ns[w][d][r] - ns[BARE][d][r];
      double more = median(over);
      double half = median(ns[w][d]); /* which sorts them */
      printf("%12u  %-16s %6.1f  %6.1f  %6.1f\n", depths[d], way_names[w], half,
             more, ns[w][d][0]);
    }
  for (enum mark m = 0; m < MARKS; m++)
    printf("%s: %.1f ns\n", mark_names[m], median(mark_ns[m]));
}

static uint64_t number(const char *text, uint64_t most) {
  char *end;
  uint64_t n = strtoull(text, &end, 10);
  if (*end || end == text || n < 1 || n > most) {
    fprintf(stderr, "lock_bench: '%s' is no number from 1 to %llu\n", text,
            (unsigned long long)most);
    exit(2);
  }
  return n;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && strcmp(argv[i], "--rounds") == 0)
      rounds = number(argv[i + 1], MOST_ROUNDS);
    else if (i + 1 < argc && strcmp(argv[i], "--takes") == 0)
      takes = number(argv[i + 1], 1u << 30);
    else if (i + 1 < argc && strcmp(argv[i], "--threads") == 0)
      nthreads = number(argv[i + 1], MOST_THREADS);
    else
      return fprintf(stderr, "usage: lock_bench [--rounds N] [--takes N] "
                             "[--threads N]\n"),
             2;
  }
  must(pthread_barrier_init(&turn, NULL, (unsigned)nthreads));
  for (uint64_t i = 0; i < nthreads; i++) {
    for (unsigned d = 0; d < MOST_DEPTH; d++) {
      must(pthread_mutex_init(&threads[i].bare[d], NULL));
      must(rig_nv_lock_init(&threads[i].ranked[d], &ranked[d]));
      must(rig_nv_lock_init(&threads[i].unranked[d], &unranked[d]));
    }
    must(pthread_create(&threads[i].id, NULL, run, &threads[i]));
  }
  for (uint64_t i = 0; i < nthreads; i++)
    must(pthread_join(threads[i].id, NULL));
  report();
  return fflush(stdout) ? 2 : 0;
}
