/* SPDX-License-Identifier: ISC */
#include "stress/coop/coop.h"

#include <stdbool.h>
#include <ucontext.h>

#include "stress/random.h"

enum { STACK = 256 << 10 };

struct fiber {
  ucontext_t at;
  struct coop_thread thread;
  bool done;
  int64_t priority;
};

static struct {
  const struct coop_schedule *how;
  struct random random;
  struct fiber fiber[COOP_MOST_THREADS];
  int n, left;
  int self; /* the index of the running one; -1 is none */
  bool hung;
  uint64_t steps;
  uint64_t change[COOP_MOST_DEPTH]; /* PCT: steps at which a priority drops */
  int64_t lowest;
  size_t turn;
  uint32_t passed; /* points of this turn */
  ucontext_t out;
} run = {.self = -1};

static _Alignas(64) unsigned char stacks[COOP_MOST_THREADS][STACK];

/* A random order of priorities above those of the changes. */
static void set_priorities(void) {
  const struct coop_schedule *how = run.how;
  for (int i = 0; i < run.n; i++)
    run.fiber[i].priority = how->depth + i;
  for (int i = run.n - 1; i > 0; i--) {
    int j = (int)random_below(&run.random, (uint64_t)i + 1);
    int64_t p = run.fiber[i].priority;
    run.fiber[i].priority = run.fiber[j].priority;
    run.fiber[j].priority = p;
  }
  for (int i = 1; i < how->depth; i++)
    run.change[i] = random_in(&run.random, 1, how->length);
  run.lowest = 0;
}

static int highest(void) {
  int best = -1;
  for (int i = 0; i < run.n; i++)
    if (!run.fiber[i].done &&
        (best < 0 || run.fiber[i].priority > run.fiber[best].priority))
      best = i;
  return best;
}

static int any(void) {
  int k = (int)random_below(&run.random, (uint64_t)run.left);
  for (int i = 0;; i++)
    if (!run.fiber[i].done && k-- == 0)
      return i;
}

/* Who is to run by the table, or -1 behind its end. */
static int by_turn(bool spins) {
  const struct coop_schedule *how = run.how;
  for (; run.turn < how->nturns; run.turn++, run.passed = 0) {
    const struct coop_turn *t = &how->turns[run.turn];
    bool over = spins && t->thread == run.self && run.passed > 0;
    spins = spins && !over;
    if (!over && !run.fiber[t->thread].done && run.passed < t->points) {
      run.passed++;
      return t->thread;
    }
  }
  return -1;
}

static int next(bool spins) {
  int i;
  switch (run.how->strategy) {
  case COOP_PCT:
    if (run.self >= 0 && spins)
      run.fiber[run.self].priority = --run.lowest;
    for (i = 1; i < run.how->depth; i++)
      if (run.self >= 0 && run.change[i] == run.steps)
        run.fiber[run.self].priority = i;
    return highest();
  case COOP_TURNS:
    i = by_turn(spins);
    return i < 0 ? any() : i;
  default:
    return any();
  }
}

static void leave(ucontext_t *from) {
  run.self = -1;
  (void)swapcontext(from, &run.out); /* fails for want of memory alone */
}

static void step(bool spins) {
  if (run.self < 0)
    return;
  struct fiber *from = &run.fiber[run.self];
  if (run.steps++ == run.how->most) {
    run.hung = true;
    leave(&from->at);
  }
  int to = next(spins);
  if (to == run.self)
    return;
  run.self = to;
  (void)swapcontext(&from->at, &run.fiber[to].at);
}

void coop_point(void) { step(false); }

void coop_spin(void) { step(true); }

int coop_self(void) { return run.self; }

static void start(void) {
  struct fiber *f = &run.fiber[run.self];
  f->thread.run(f->thread.arg);
  f->done = true;
  run.left--;
  leave(&f->at);
}

int64_t coop_run(const struct coop_schedule *how, const struct coop_thread *t,
                 int n) {
  run.how = how;
  run.random.state = how->seed;
  run.n = run.left = n;
  run.hung = false;
  run.steps = run.turn = 0;
  run.passed = 0;
  for (int i = 0; i < n; i++) {
    struct fiber *f = &run.fiber[i];
    f->thread = t[i];
    f->done = false;
    if (getcontext(&f->at) != 0)
      return -1;
    f->at.uc_stack.ss_sp = stacks[i];
    f->at.uc_stack.ss_size = STACK;
    f->at.uc_link = NULL;
    makecontext(&f->at, start, 0);
  }
  if (how->strategy == COOP_PCT)
    set_priorities();
  while (run.left > 0 && !run.hung) {
    run.self = next(false);
    if (swapcontext(&run.out, &run.fiber[run.self].at) != 0)
      return -1;
  }
  run.self = -1;
  return run.hung ? -1 : (int64_t)run.steps;
}
