/* SPDX-License-Identifier: ISC */
#ifndef STRESS_COOP_COOP_H
#define STRESS_COOP_COOP_H
/*
 * coop: threads of a test that take turns, in an order which a seed decides.
 *
 * A thread runs until it reaches a point (each function of rings/shared.h in a
 * build with -DRIG_COOP); there the schedule says who runs on. Between points
 * nothing interleaves, so every run is sequentially consistent: orders weaker
 * than that are relacy's to judge. One seed gives one run, step by step.
 *
 *   walk   any thread that is not done, each as likely
 *   pct    the one of the highest priority. Priorities are random; at
 *          depth - 1 random steps the running thread drops below all others.
 *          A bug that needs d orderings among n threads in k steps is met with
 *          a probability of at least 1 / (n k^(d - 1)). (Burckhardt, Kothari,
 *          Musuvathi, Nagarakatte: "A randomized scheduler with probabilistic
 *          guarantees of finding bugs", ASPLOS 2010.)
 *   turns  as a table says, then a walk
 *
 * A thread that spins for another says so: its priority drops below all, and a
 * turn of it ends. A run that takes more steps than `most` hangs, and is given
 * up where it is: its threads never return.
 *
 * The threads are contexts (makecontext) on one thread of the system: a switch
 * is a hundred times cheaper than a baton between real ones, and nothing but
 * the seed is in it. Thread-local variables are therefore shared by all.
 *
 * Threads: one run at a time.
 */
#include <stddef.h>
#include <stdint.h>

enum { COOP_MOST_THREADS = 8, COOP_MOST_DEPTH = 16 };

enum coop_strategy { COOP_WALK, COOP_PCT, COOP_TURNS };

/* Until the thread has passed `points`, spins, or is done. */
struct coop_turn {
  int thread;
  uint32_t points;
};
#define COOP_ON UINT32_MAX

struct coop_schedule {
  uint64_t seed;
  enum coop_strategy strategy;
  int depth;       /* PCT: 1 ... COOP_MOST_DEPTH */
  uint64_t length; /* PCT: the steps among which priorities change */
  uint64_t most;   /* steps; a run that takes more hangs */
  const struct coop_turn *turns;
  size_t nturns;
};

struct coop_thread {
  void (*run)(void *);
  void *arg;
};

/* Runs n threads until all are done: the steps it took, or -1 where that would
 * be more than the schedule's most. */
int64_t coop_run(const struct coop_schedule *, const struct coop_thread *,
                 int n);
/* Another thread may run. Outside of a run, nothing. */
void coop_point(void);
/* The same, of a thread that waits for another one. */
void coop_spin(void);
/* The index of the running thread, or -1. */
int coop_self(void);
#endif
