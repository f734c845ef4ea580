/* SPDX-License-Identifier: ISC */
#ifndef RINGS_TAIL_H
#define RINGS_TAIL_H
/*
 * Tail: the last value reserved and the cursor after it, swapped as one pair
 * of words.
 *
 *   tail     v, its low 48 bits        | node        steps
 *            63                      16 15   0       63     0
 *
 *   node[]   cursors; the tail's is the last value's, or that of a value not
 *            long before it. The others are spares, one in a cell, or in the
 *            hand of a thread that is about to swap:
 *
 *     cell ----take----> hand ----swap the tail----> tail
 *      ^                   |                          |
 *      +---- put back -----+                          |
 *      +---- the swap displaces it, its swapper -----+
 *            puts it into the cell it took from
 *
 *   steps    what the values after the node's have taken, added up: sums of a
 *            few bits, below
 *
 * Most values change what can be added up alone. Their swap leaves the node as
 * it is, so a thread that reads the tail has the node's line already: from one
 * winner to the next a single line moves. A value that changes anything else,
 * or whose sums no longer fit, brings a node of its own, with no steps.
 *
 * One compare-and-swap decides the value, its ranges and what released the one
 * before: two swaps cannot both succeed from one tail, so its success alone
 * validates every load that it rests on. What a load of a node saw before may
 * be garbage, if the node was displaced and rewritten meanwhile; so may be the
 * steps, which are loaded behind the first word. Then the swap fails, and an
 * answer that rests on loads alone looks at the tail again: at its first word,
 * for every swap changes that.
 *
 * 48 bits of v tell 2^48 values apart: a thread would have to sleep through
 * that many between its load and its swap.
 *
 * Ordering. A node's words are stored before the swap that shows it (release),
 * which pairs with the acquire load of the tail; every later swap was made by
 * a thread that had acquired the one before. A spare is put by a release
 * store and taken by an exchange, so that its next writer comes after its last
 * reader who could still swap.
 *
 * Threads: any. Nobody waits for another one's swap. A hand is held from the
 * take to the swap, for a few dozen instructions: with more threads in there
 * than TAIL_SPARES, the next one spins for a cell.
 */
#include <stdint.h>

#include "rings/cursor.h"
#include "rings/point.h"
#include "rings/shared.h"

#ifndef TAIL_SPARES
#define TAIL_SPARES 256 /* a model has fewer */
#endif
#ifndef TAIL_STEP_BITS
#define TAIL_STEP_BITS 8 /* of entries; 0: each value has a node of its own */
#endif
enum { TAIL_LINE = 128 };

/* Each sum has a bit above it, which is never set in the tail: a sum that does
 * not fit sets it. The topmost bits are those of the last value's cursor. */
enum {
  STEP_ENTRIES = 0, /* queue 0's; 1's behind it */
  STEP_ENTRIES_BITS = TAIL_STEP_BITS,
  STEP_ENTRIES_NEXT = STEP_ENTRIES_BITS + 1,
  STEP_UNITS = 18,
  STEP_UNITS_BITS = 10,
  STEP_UNITS_NEXT = STEP_UNITS_BITS + 1,
  STEP_JOINS = 40,
  STEP_JOINS_BITS = 11,
  STEP_LAUNCH = 52,
  STEP_LAUNCH_BITS = 8,
  STEP_RELEASED_BY = 61,
  STEP_WAITS = 63
};
_Static_assert(TAIL_STEP_BITS <= 8 && QUEUES == 2, "the sums do not overlap");

#define STEP_MOST(bits) ((UINT64_C(1) << (bits)) - 1)
#define STEP_GUARD(at, bits) (UINT64_C(1) << ((at) + (bits)))
#define STEP_GUARDS                                                            \
  (STEP_GUARD(STEP_ENTRIES, STEP_ENTRIES_BITS) |                               \
   STEP_GUARD(STEP_ENTRIES + STEP_ENTRIES_NEXT, STEP_ENTRIES_BITS) |           \
   STEP_GUARD(STEP_UNITS, STEP_UNITS_BITS) |                                   \
   STEP_GUARD(STEP_UNITS + STEP_UNITS_NEXT, STEP_UNITS_BITS) |                 \
   STEP_GUARD(STEP_JOINS, STEP_JOINS_BITS) |                                   \
   STEP_GUARD(STEP_LAUNCH, STEP_LAUNCH_BITS))

/* A cursor's words. */
struct tail_node {
  shared_64 w[CURSOR_WORDS];
} __attribute__((aligned(64)));

struct tail_cell {
  shared_32 node; /* an index, or none */
} __attribute__((aligned(64)));

struct tail {
  shared_pair word __attribute__((aligned(TAIL_LINE)));
  struct tail_node node[TAIL_SPARES + 1] __attribute__((aligned(TAIL_LINE)));
  struct tail_cell cell[TAIL_SPARES];
};

/* The tail as it was read. */
struct tail_at {
  uint64_t word, steps;
};

/* The last value is start's. Before any other thread. */
void tail_init(struct tail *, const struct cursor *start);

/* The tail, and its cursor, which may be garbage: see above. */
static inline struct tail_at tail_read(const struct tail *, struct cursor *);
/* Whether the tail is still what was read, so that the cursor is not garbage
 * and what was loaded since the read belongs to it. */
static inline bool tail_same(const struct tail *, const struct tail_at *read);
/* Swaps the tail that was read, whose cursor is `from`, for the cursor `to` of
 * the next value. NULL: by a node of its own, whatever `from` was. False:
 * another did. */
static inline bool tail_swap(struct tail *, const struct tail_at *read,
                             const struct cursor *from,
                             const struct cursor *to);
/* The cursor after the last value. */
void tail_last(const struct tail *, struct cursor *);

/* The swap by a node of its own. */
bool tail_swap_node(struct tail *, const struct tail_at *read,
                    const struct cursor *to);

enum { TAIL_NODE_BITS = 16 };

static inline uint64_t tail_word(uint64_t v, uint64_t node) {
  return v << TAIL_NODE_BITS | node;
}

static inline uint64_t tail_node_of(uint64_t word) {
  return word & STEP_MOST(TAIL_NODE_BITS);
}

static inline uint64_t tail_sum(uint64_t steps, int at, int bits) {
  return steps >> at & STEP_MOST(bits);
}

/* The node's cursor moves on by the steps. */
static inline void tail_walk(struct cursor *c, const struct tail_at *at) {
  const uint64_t s = at->steps;
  /* Of 48 bits; c->v has the others. */
  const uint64_t n =
      ((at->word >> TAIL_NODE_BITS) - c->v) << TAIL_NODE_BITS >> TAIL_NODE_BITS;
  c->v += n;
  c->behind = (uint16_t)(c->behind + n);
  c->joins += tail_sum(s, STEP_JOINS, STEP_JOINS_BITS);
  for (int q = 0; q < QUEUES; q++) {
    c->entries[q] += (uint32_t)tail_sum(s, STEP_ENTRIES + q * STEP_ENTRIES_NEXT,
                                        STEP_ENTRIES_BITS);
    c->units[q] += (uint32_t)tail_sum(s, STEP_UNITS + q * STEP_UNITS_NEXT,
                                      STEP_UNITS_BITS);
  }
  c->launch += (uint32_t)tail_sum(s, STEP_LAUNCH, STEP_LAUNCH_BITS);
  c->released_by = s >> STEP_RELEASED_BY & 3;
  c->waits = s >> STEP_WAITS & 1;
}

static inline struct tail_at tail_read(const struct tail *t, struct cursor *c) {
  struct tail_at at;
  uint64_t w[CURSOR_WORDS];
  at.word = shared_load_acquire_first(&t->word); /* partner: tail_swap */
  at.steps = shared_load_second(&t->word);
  const struct tail_node *from = &t->node[tail_node_of(at.word)];
  for (int i = 0; i < CURSOR_WORDS; i++)
    w[i] = shared_load_64(&from->w[i]);
  __builtin_memcpy(c, w, sizeof w);
  tail_walk(c, &at);
  return at;
}

static inline bool tail_same(const struct tail *t, const struct tail_at *read) {
  shared_fence_acquire(); /* partner: tail_swap's release of a node's words */
  return shared_load_first(&t->word) == read->word;
}

/* The bits of a cursor that are not added up. */
static inline uint64_t tail_flags(const struct cursor *c) {
  return (uint64_t)c->released_by << STEP_RELEASED_BY | (uint64_t)c->waits
                                                            << STEP_WAITS;
}

/* The steps on to `to`, where it differs from `from` in sums that fit. In line:
 * a caller knows most of the differences. */
static inline __attribute__((always_inline)) bool
tail_step(uint64_t *steps, const struct cursor *from, const struct cursor *to) {
  const uint32_t e0 = to->entries[0] - from->entries[0];
  const uint32_t e1 = to->entries[1] - from->entries[1];
  const uint32_t u0 = to->units[0] - from->units[0];
  const uint32_t u1 = to->units[1] - from->units[1];
  const uint32_t launch = to->launch - from->launch;
  const uint64_t joins = to->joins - from->joins;
  if ((e0 | e1) > STEP_MOST(STEP_ENTRIES_BITS) ||
      (u0 | u1) > STEP_MOST(STEP_UNITS_BITS) ||
      launch > STEP_MOST(STEP_LAUNCH_BITS) ||
      joins > STEP_MOST(STEP_JOINS_BITS) || to->setup != from->setup ||
      to->owes != from->owes || to->generation != from->generation)
    return false;
  *steps += (uint64_t)e0 << STEP_ENTRIES |
            (uint64_t)e1 << (STEP_ENTRIES + STEP_ENTRIES_NEXT) |
            (uint64_t)u0 << STEP_UNITS |
            (uint64_t)u1 << (STEP_UNITS + STEP_UNITS_NEXT) |
            joins << STEP_JOINS | (uint64_t)launch << STEP_LAUNCH;
  if ((*steps & STEP_GUARDS) != 0)
    return false;
  *steps = *steps << 3 >> 3 | tail_flags(to);
  return true;
}

static inline __attribute__((always_inline)) bool
tail_swap(struct tail *t, const struct tail_at *read, const struct cursor *from,
          const struct cursor *to) {
  uint64_t steps = read->steps;
  if (!from || !tail_step(&steps, from, to)) {
    /* Copies, so that the caller's stay in registers. */
    const struct tail_at at = *read;
    const struct cursor own = *to;
    return tail_swap_node(t, &at, &own);
  }
  RING_POINT(SWAP);
  /* Partner: tail_read's acquire load. */
  const bool swapped =
      shared_cas_pair(&t->word, read->word, read->steps,
                      tail_word(to->v, tail_node_of(read->word)), steps);
  if (swapped)
    RING_POINT(SWAPPED);
  return swapped;
}
#endif
