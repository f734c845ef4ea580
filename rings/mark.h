/* SPDX-License-Identifier: ISC */
#ifndef RINGS_MARK_H
#define RINGS_MARK_H
/*
 * Marks: the cursor of each value in flight, by value, in a ring.
 *
 *        mark[0]      mark[1]            mark[v % n]       mark[n - 1]
 *      +-----------+-----------+-- ... -+-----------+ ... -+-----------+
 *      | v | 7 w.  | v | 7 w.  |        | v | 7 w.  |      | v | 7 w.  |
 *      +-----------+-----------+-- ... -+-----------+ ... -+-----------+
 *       one cache line each
 *
 * What the timeline word has reached is free: the mark of the word's value
 * against the cursor says how much of each ring is in use, so there is no
 * reclaim step and nothing to forget.
 *
 * The first word of a mark is its state, for a reader that asks for value v:
 *
 *   v              complete, and v's ring contents are written (encoded)
 *   v - 1          being written: no value of this slot reads so
 *   anything else  another value's
 *
 * Ordering. The writer stores v - 1 with release order, so that a reader who
 * sees any of the new words behind its acquire fence also sees v - 1 or later
 * in the first word; then a release fence, the other words, and v with release
 * order, which pairs with the reader's acquire load of v: it sees the words,
 * and the ring contents that were written before them. The reader looks at the
 * first word again behind an acquire fence, which pairs with the writer's.
 *
 * n marks serve n values in flight: mark[v] is rewritten by v + n alone, which
 * is reserved only once v is reached and n values later are not in flight.
 *
 * Threads: one writer a slot at a time, the submitter of its value. Any number
 * of readers.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "rings/cursor.h"
#include "rings/plant.h"
#include "rings/shared.h"

struct mark {
  shared_64 w[CURSOR_WORDS];
} __attribute__((aligned(64)));

struct marks {
  struct mark *at;
  uint32_t n; /* a power of two, at least 2 */
};

/* Every slot as before the first value after `start`, whose mark is complete.
 * Before any reader. */
void marks_init(struct marks *, struct mark *at, uint32_t n,
                const struct cursor *start);
/* Whether v is encoded. Acquire: partner mark_write's last store. */
static inline bool mark_encoded(const struct marks *m, uint64_t v) {
  return shared_load_acquire_64(&m->at[v & (m->n - 1)].w[0]) == v;
}
/* Says that c's value is encoded. */
static inline void mark_write(const struct marks *m, const struct cursor *c) {
  uint64_t w[CURSOR_WORDS];
  struct mark *s = &m->at[c->v & (m->n - 1)];
  memcpy(w, c, sizeof w);
  if (PLANTED(RING_PLANT_RELAXED_SENTINEL))
    shared_store_64(&s->w[0], c->v - 1);
  else if (!PLANTED(RING_PLANT_NO_SENTINEL))
    /* Partner: mark_read's look behind its fence. */
    shared_store_release_64(&s->w[0], c->v - 1);
  shared_fence_release(); /* partner: mark_read's acquire fence */
  for (int i = 1; i < CURSOR_WORDS; i++)
    shared_store_64(&s->w[i], w[i]);
  if (PLANTED(RING_PLANT_ENCODED_PLAIN))
    shared_store_64(&s->w[0], c->v);
  else /* partner: mark_read's first load */
    shared_store_release_64(&s->w[0], c->v);
}
/* The cursor of v, if its mark is complete. */
bool mark_read(const struct marks *, uint64_t v, struct cursor *);

/* Of a cursor, what the seat shows of its value. */
struct mark_shown {
  uint64_t v;
  uint32_t entries[QUEUES];
  uint32_t launch;
  uint8_t generation;
};

#define MARK_WORD(field) (offsetof(struct cursor, field) / sizeof(uint64_t))
#define MARK_BYTE(field) (offsetof(struct cursor, field) % sizeof(uint64_t))
_Static_assert(MARK_BYTE(entries) == 0 && QUEUES * 4 == sizeof(uint64_t),
               "the counts of entries are one word");

/* mark_read of that alone, of fewer words: in the same order. */
static inline bool mark_read_shown(const struct marks *m, uint64_t v,
                                   struct mark_shown *x) {
  const struct mark *s = &m->at[v & (m->n - 1)];
  if (shared_load_acquire_64(&s->w[0]) != v) /* partner: mark_write's last */
    return false;
  const uint64_t entries = shared_load_64(&s->w[MARK_WORD(entries)]);
  const uint64_t launch = shared_load_64(&s->w[MARK_WORD(launch)]);
  const uint64_t generation = shared_load_64(&s->w[MARK_WORD(generation)]);
  shared_fence_acquire(); /* partner: mark_write's release fence */
  if (shared_load_64(&s->w[0]) != v)
    return false;
  x->v = v;
  memcpy(x->entries, &entries, sizeof x->entries);
  memcpy(&x->launch, (const unsigned char *)&launch + MARK_BYTE(launch),
         sizeof x->launch);
  memcpy(&x->generation,
         (const unsigned char *)&generation + MARK_BYTE(generation),
         sizeof x->generation);
  return true;
}
#endif
