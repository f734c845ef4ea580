/* SPDX-License-Identifier: ISC */
#ifndef RINGS_TAIL_H
#define RINGS_TAIL_H
/*
 * Tail: the last value reserved and the cursor after it, swapped as one word.
 *
 *   tail     v, its low 48 bits        | node
 *            63                      16 15   0
 *
 *   node[]   cursors; the tail's is the last value's. The others are spares,
 *            one in a cell, or in the hand of a thread that is about to swap:
 *
 *     cell ----take----> hand ----swap the tail----> tail
 *      ^                   |                          |
 *      +---- put back -----+                          |
 *      +---- the swap displaces it, its swapper -----+
 *            puts it into the cell it took from
 *
 * One compare-and-swap decides the value, its ranges and what released the one
 * before: two swaps cannot both succeed from one tail, so its success alone
 * validates every load that it rests on. What a load of a node saw before may
 * be garbage, if the node was displaced and rewritten meanwhile; then the swap
 * fails, and an answer that rests on loads alone looks at the tail again.
 *
 * 48 bits of v tell 2^48 values apart: a thread would have to sleep through
 * that many between its load and its swap.
 *
 * Ordering. A node's words are stored before the swap that shows it (release),
 * which pairs with the acquire load of the tail. A spare is put by a release
 * store and taken by an exchange, so that its next writer comes after its last
 * reader who could still swap.
 *
 * Threads: any. Nobody waits for another one's swap. A hand is held from the
 * take to the swap, for a few dozen instructions: with more threads in there
 * than TAIL_SPARES, the next one spins for a cell.
 */
#include <stdint.h>

#include "rings/cursor.h"
#include "rings/shared.h"

#ifndef TAIL_SPARES
#define TAIL_SPARES 256 /* a model has fewer */
#endif
enum { TAIL_LINE = 128 };

/* A cursor's words. */
struct tail_node {
  shared_64 w[CURSOR_WORDS];
} __attribute__((aligned(64)));

struct tail_cell {
  shared_32 node; /* an index, or none */
} __attribute__((aligned(64)));

struct tail {
  shared_64 word __attribute__((aligned(TAIL_LINE)));
  struct tail_node node[TAIL_SPARES + 1] __attribute__((aligned(TAIL_LINE)));
  struct tail_cell cell[TAIL_SPARES];
};

/* The last value is start's. Before any other thread. */
void tail_init(struct tail *, const struct cursor *start);

/* The tail as it was read, and its cursor, which may be garbage: see above. */
static inline uint64_t tail_read(const struct tail *, struct cursor *);
/* Whether the tail is still what was read, so that the cursor is not garbage
 * and what was loaded since the read belongs to it. */
static inline bool tail_same(const struct tail *, uint64_t read);
/* Swaps the tail that was read for the cursor `to`. False: another did. */
bool tail_swap(struct tail *, uint64_t read, const struct cursor *to);
/* The cursor after the last value. */
void tail_last(const struct tail *, struct cursor *);

enum { TAIL_NODE_BITS = 16 };

static inline uint64_t tail_read(const struct tail *t, struct cursor *c) {
  uint64_t w[CURSOR_WORDS];
  uint64_t read = shared_load_acquire_64(&t->word); /* partner: tail_swap */
  const struct tail_node *from = &t->node[read & ((1u << TAIL_NODE_BITS) - 1)];
  for (int i = 0; i < CURSOR_WORDS; i++)
    w[i] = shared_load_64(&from->w[i]);
  __builtin_memcpy(c, w, sizeof w);
  return read;
}

static inline bool tail_same(const struct tail *t, uint64_t read) {
  shared_fence_acquire(); /* partner: tail_swap's release of a node's words */
  return shared_load_64(&t->word) == read;
}
#endif
