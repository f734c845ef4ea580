/* SPDX-License-Identifier: ISC */
#ifndef STRESS_POST_RUN_H
#define STRESS_POST_RUN_H
/*
 * post_run: threads that submit to one device at the same time.
 *
 *   post mode   each posts its own, and asks again or waits where it is LATER
 *   turn mode   one turn goes from thread to thread by a lock; who does not
 *               have it asks room all the while
 *
 * With a bulk, some submissions are large, who is answered GROW grows, and some
 * threads allocate, free and grow local memory.
 *
 * Each thread has a slice of the arena, a replay, so that its own order is all
 * the order that its bytes need, and a link in the chain, which all share.
 *
 * Threads: rounds are one thread's; each starts its own threads and joins
 * them.
 */
#include <pthread.h>

#include "stress/arena.h"
#include "stress/bulk.h"
#include "stress/chain.h"

enum { POST_MOST_AGE = 6 };

struct post_tally {
  uint64_t fits, later, never, grow, busy, rooms;
  uint64_t grown, shorts;       /* with a bulk: growths, and those that lack */
  uint64_t ages[POST_MOST_AGE]; /* generations that came after a value's, by
                                 * the time that its thread had it; the last:
                                 * or more */
};

struct post_run {
  struct rig_nv *device;
  struct arena *arena; /* a slice a thread */
  struct chain *chain;
  bool turn_mode;
  struct bulk *bulk; /* or NULL: GROW is as good as NEVER */
  uint64_t seed;
  unsigned patience_s; /* of each wait */

  struct post_tally tally;
  pthread_barrier_t gate; /* of a round's start */
  pthread_mutex_t turn;
  uint64_t last; /* in turn mode, the turn's */
  uint32_t stop; /* 1 after a failure (atomic) */
  pthread_mutex_t tell;
  char what[512]; /* the first failure, under tell */
};

void post_run_init(struct post_run *);
/* One round: each thread submits `each` times. False with what. */
bool post_run_round(struct post_run *, uint64_t each);
/* With no thread left that submits: whether all values, `first` and those
 * after it, are reached, the chain holds, every spare of the tail is back and
 * the seat is free. A round ends with it. False with what. */
bool post_run_quiet(struct post_run *, uint64_t first);
/* Every byte. False with what. */
bool post_run_verify(struct post_run *);
#endif
