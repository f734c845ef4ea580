/* SPDX-License-Identifier: ISC */
#ifndef STRESS_SUMS_H
#define STRESS_SUMS_H
/*
 * sums: rows of numbers, in memory that all threads share, which launches add
 * to each other, and the host after them:
 *
 *   row[to][i] += row[from][i]    for the first n words; to is not from
 *
 * A run of such launches, drawn from a seed, comes with one submission. Run in
 * the order of values, then of parts, all of them leave certain numbers. A
 * launch that was lost, run twice, overtaken or given another's parameters
 * leaves others, and nothing makes up for it: each sum can be undone, so what
 * differs before it differs after it.
 *
 * Threads: each thread has one index, and calls add and took with it at any
 * time between begin and check. The others are one thread's, with no value in
 * flight.
 */
#include "core/api/rig_nv.h"

#define SUMS_MOST_THREADS 64

enum { SUMS_ROWS = 8, SUMS_WORDS = 16 /* of a row, 32 bits each */ };

struct sums_run {
  uint64_t v, seed;
  size_t n;
};

struct sums_thread {
  struct sums_run *runs; /* of the round */
  unsigned taken;
  struct sums_run last; /* made; n 0: there is none */
  unsigned char *args;
} __attribute__((aligned(128)));

struct sums {
  struct rig_nv *device;
  struct rig_nv_function add;
  struct rig_nv_region *region;
  unsigned threads, each; /* runs of a thread in a round */
  size_t most;            /* launches of a run */
  uint32_t row[SUMS_ROWS][SUMS_WORDS];
  const struct sums_run **order; /* by value of the round */
  uint64_t launches;             /* that were checked */
  struct sums_thread thread[SUMS_MOST_THREADS];
};

/* `add` has c[i] = a[i] + b[i], of its parameters c, a, b and the 64-bit number
 * of words. 0, or the negative of an enum rig_nv_error with rig_nv_why. */
int sums_make(struct rig_nv *, const struct rig_nv_function *add,
              unsigned threads, unsigned each, size_t most, struct sums *);
/* Also after the device's stop. */
int sums_end(struct sums *);

void sums_begin(struct sums *);
/* Gives the submission n launches more, 1..most: behind its parts, where there
 * is room for them, which `parts` is. What they say lives, with the
 * submission's arguments, until the thread's next call. */
void sums_add(struct sums *, unsigned thread, uint64_t seed, size_t n,
              struct rig_part *parts, struct rig_submission *);
/* The run added last is part of value v. `each` of them are, in a round. */
void sums_took(struct sums *, unsigned thread, uint64_t v);
/* Whether the rows are what the runs of this round, of the values from `first`
 * to `last`, leave. Else what is wrong is in `what`. */
bool sums_check(struct sums *, uint64_t first, uint64_t last, char *what,
                size_t size);
#endif
