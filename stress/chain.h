/* SPDX-License-Identifier: ISC */
#ifndef STRESS_CHAIN_H
#define STRESS_CHAIN_H
/*
 * chain: the order of values, as the device itself writes it down. Each
 * submission of each thread has one part more, its link, in memory that all
 * threads share:
 *
 *   by COPY:0      before[tag] = last; last = tag; count[thread] = i
 *   by COMPUTE:0   last = tag; count[thread] = i
 *
 * The tag names submission i, from 1, of one thread. Once all is reached,
 * before[] says which value came before each one that COPY:0 linked: a value
 * that was lost, run twice, or run out of order breaks the chain, and so do
 * values that were returned twice or never.
 *
 * The threads' counts are words that other threads' submissions wait for.
 *
 * Threads: each thread has one index, and calls link, took and wait with it at
 * any time between begin and check. The others are one thread's, with no value
 * in flight.
 */
#include <stdbool.h>
#include <stddef.h>

#include "core/api/rig_nv.h"

#define CHAIN_MOST_THREADS 64

struct chain_thread {
  uint64_t made, begun; /* links in all, and before the round */
  uint64_t posted;      /* made, for other threads (release, acquire) */
  uint64_t *values;     /* by link of the round */
  bool *copied;         /* whether COPY:0 linked it */
  uint32_t entry[2];    /* of the link that is made now */
} __attribute__((aligned(128)));

struct chain {
  struct rig_nv *device;
  struct rig_nv_region *region;
  unsigned char *host; /* of the region, and its GPU address */
  uint64_t at;
  unsigned threads, each; /* most links of a thread in a round */
  uint64_t last;          /* the tag before the round */
  uint64_t *tags;         /* by value of the round */
  struct chain_thread thread[CHAIN_MOST_THREADS];
};

/* 0, or the negative of an enum rig_nv_error with rig_nv_why. */
int chain_make(struct rig_nv *, unsigned threads, unsigned each,
               struct chain *);
int chain_end(struct chain *);

void chain_begin(struct chain *);
/* The next link of the thread, on the queue: the part lives until the thread's
 * next call. `each` of them were not taken in this round. */
void chain_link(struct chain *, unsigned thread, int queue, struct rig_part *);
/* The link made last is part of value v. */
void chain_took(struct chain *, unsigned thread, uint64_t v);
/* A wait for the last link that thread `of` is known to have taken. Its value
 * is given already, so whoever waits comes after it. */
void chain_wait(const struct chain *, unsigned of, struct rig_wait *);
/* Whether the values taken in this round are `first` and those after it, each
 * once, and ran in this order. Else what is wrong is in `what`. */
bool chain_check(struct chain *, uint64_t first, uint64_t last, char *what,
                 size_t size);
#endif
