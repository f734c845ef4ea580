/* SPDX-License-Identifier: ISC */
#define _POSIX_C_SOURCE 200809L /* barriers */
/*
 * Sixteen threads over 64 classes: takes in one order, which only the program
 * knows, and among them inversions, each of two classes and done once. No take
 * in the order is reported, and every inversion is, by the take that shows it
 * first.
 *
 * watch_stress [--long] [--seed N]: 10^5 takes, or 10^7.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lock_order/lock_order.h"

enum {
  THREADS = 16,
  CLASSES = 64,
  SHARED = 2,  /* locks of each class that all threads take */
  PLANTS = 16, /* of each thread */
  CHAIN = 5,   /* the most locks taken at a time */
  TRIES = 4    /* one of so many takes is a try */
};

/* TSan's own detector finds the order of locks, and is not judged here. */
const char *__tsan_default_options(void);
RIG_PUBLIC const char *__tsan_default_options(void) {
  return "detect_deadlocks=0";
}

static char names[CLASSES][8];
static struct rig_nv_lock_class classes[CLASSES];
static struct rig_nv_lock shared[CLASSES][SHARED];
static unsigned place[CLASSES]; /* of the order: which class comes there */
static unsigned sums[CLASSES][SHARED]; /* each under its lock */
static pthread_barrier_t start;

/* Reports of the calling thread. */
static _Thread_local unsigned reports;

static void on_report(const char *text) {
  (void)text;
  reports++;
}

struct worker {
  pthread_t thread;
  uint64_t random, takes, busy;
  unsigned (*plants)[2]; /* places; the first comes before the second */
  const char *failed;
};

static uint64_t next_random(uint64_t *x) {
  *x ^= *x << 13;
  *x ^= *x >> 7;
  *x ^= *x << 17;
  return *x;
}

/* Places that rise, CHAIN at the most. */
static unsigned rising(struct worker *w, unsigned at[CHAIN]) {
  unsigned n = 0, p = (unsigned)(next_random(&w->random) % CLASSES);
  unsigned most = 1 + (unsigned)(next_random(&w->random) % CHAIN);
  while (n < most && p < CLASSES) {
    at[n++] = p;
    p += 1 + (unsigned)(next_random(&w->random) % 12);
  }
  return n;
}

static void chain(struct worker *w) {
  unsigned at[CHAIN], n = rising(w, at), had = 0;
  struct rig_nv_lock *held[CHAIN];
  for (unsigned i = 0; i < n; i++) {
    unsigned c = place[at[i]];
    unsigned s = (unsigned)(next_random(&w->random) % SHARED);
    struct rig_nv_lock *l = &shared[c][s];
    bool tries = next_random(&w->random) % TRIES == 0;
    int got = tries ? rig_nv_lock_try(l) : rig_nv_lock_take(l);
    if (got < 0 || (got > 0 && !tries))
      w->failed = "a take was refused";
    w->busy += got > 0;
    if (got != 0)
      continue;
    sums[c][s]++;
    w->takes++;
    held[had++] = l;
  }
  /* Given in some order. */
  while (had > 0) {
    unsigned i = (unsigned)(next_random(&w->random) % had);
    rig_nv_lock_give(held[i]);
    held[i] = held[--had];
  }
  if (reports != 0)
    w->failed = "a take in the order was reported";
}

/* Takes two classes' locks of the thread's own. */
static void both(struct worker *w, unsigned first, unsigned second) {
  struct rig_nv_lock a = RIG_NV_LOCK(&classes[place[first]]);
  struct rig_nv_lock b = RIG_NV_LOCK(&classes[place[second]]);
  if (rig_nv_lock_take(&a) != 0 || rig_nv_lock_take(&b) != 0) {
    w->failed = "a take was refused";
    return;
  }
  rig_nv_lock_give(&b);
  rig_nv_lock_give(&a);
}

static void plant(struct worker *w, const unsigned at[2]) {
  both(w, at[0], at[1]);
  if (reports != 0)
    w->failed = "the order itself was reported";
  both(w, at[1], at[0]);
  if (reports != 1)
    w->failed = "an inversion was not reported as it first appeared";
  both(w, at[1], at[0]);
  both(w, at[0], at[1]);
  if (reports != 1)
    w->failed = "an inversion was reported twice";
  reports = 0;
}

static uint64_t quota;

static void *work(void *arg) {
  struct worker *w = arg;
  pthread_barrier_wait(&start);
  for (unsigned p = 0; p <= PLANTS && !w->failed; p++) {
    while (w->takes < quota / (PLANTS + 1) * (p + 1) && !w->failed)
      chain(w);
    if (p < PLANTS && !w->failed)
      plant(w, w->plants[p]);
  }
  return NULL;
}

/* Pairs of places, each once. */
static void choose(uint64_t *random, unsigned plants[][2], unsigned n) {
  static bool chosen[CLASSES][CLASSES];
  for (unsigned i = 0; i < n;) {
    unsigned a = (unsigned)(next_random(random) % CLASSES);
    unsigned b = (unsigned)(next_random(random) % CLASSES);
    if (a >= b || chosen[a][b])
      continue;
    chosen[a][b] = true;
    plants[i][0] = a;
    plants[i++][1] = b;
  }
}

static void make(uint64_t *random) {
  for (unsigned i = 0; i < CLASSES; i++) {
    snprintf(names[i], sizeof names[i], "class%u", i);
    classes[i] = (struct rig_nv_lock_class){names[i], 0, RIG_NV_LOCK_UNRANKED};
    for (unsigned s = 0; s < SHARED; s++)
      if (rig_nv_lock_init(&shared[i][s], &classes[i]) != 0)
        abort();
    unsigned j = (unsigned)(next_random(random) % (i + 1));
    place[i] = place[j];
    place[j] = i;
  }
}

static int judge(const struct worker *w, uint64_t seed) {
  struct rig_nv_lock_counts c;
  uint64_t takes = 0, busy = 0, sum = 0;
  const char *failed = NULL;
  for (unsigned i = 0; i < THREADS; i++) {
    takes += w[i].takes;
    busy += w[i].busy;
    failed = w[i].failed ? w[i].failed : failed;
  }
  for (unsigned i = 0; i < CLASSES; i++)
    for (unsigned s = 0; s < SHARED; s++)
      sum += sums[i][s];
  rig_nv_lock_count(&c);
  if (!failed && (c.cycles != THREADS * PLANTS || c.nested || c.refusals ||
                  c.misplaced || c.unwatched || c.classes != CLASSES))
    failed = "the counters say otherwise";
  if (!failed && sum != takes)
    failed = "a lock was held by two";
  printf("[  %s  ] 1 test(s). seed %llu: %llu takes, %llu tries of a held "
         "lock, %llu edges, %llu of %d inversions%s%s\n",
         failed ? "FAILED" : "PASSED", (unsigned long long)seed,
         (unsigned long long)takes, (unsigned long long)busy,
         (unsigned long long)c.edges, (unsigned long long)c.cycles,
         THREADS * PLANTS, failed ? ": " : "", failed ? failed : "");
  return failed ? 1 : 0;
}

int main(int argc, char **argv) {
  static struct worker workers[THREADS];
  static unsigned plants[THREADS * PLANTS][2];
  uint64_t seed = 1, takes = 100000;
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], "--long") == 0)
      takes = 10000000;
    else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
      seed = strtoull(argv[++i], NULL, 0);
    else
      return fprintf(stderr, "usage: %s [--long] [--seed N]\n", argv[0]), 2;
  uint64_t random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
  quota = takes / THREADS;
  make(&random);
  choose(&random, plants, THREADS * PLANTS);
  (void)rig_nv_lock_watch(RIG_NV_WATCH_REPORT);
  (void)rig_nv_lock_on_report(on_report);
  pthread_barrier_init(&start, NULL, THREADS);
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (struct worker){.random = next_random(&random) | 1,
                                 .plants = &plants[i * PLANTS]};
    if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
      abort();
  }
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join(workers[i].thread, NULL);
  return judge(workers, seed);
}
