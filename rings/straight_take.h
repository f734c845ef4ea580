/* SPDX-License-Identifier: ISC */
#ifndef RINGS_STRAIGHT_TAKE_H
#define RINGS_STRAIGHT_TAKE_H
/* straight.h's way to a place. */
#include "rings/plant.h"
#include "rings/rcu.h"
#include "rings/rings.h"
#include "rings/straight_put.h"

/* The place after p->from, which may be garbage. False: it is ring_reserve's
 * to say. */
static inline bool straight_place(const struct rings *r,
                                  const struct ring_generation *g, const int q,
                                  uint32_t units, size_t nparts,
                                  const struct ring_ask *ask,
                                  struct ring_plan *p) {
  const struct ring_channel *c = &g->channel[q];
  const struct cursor *from = &p->from;
  const uint32_t n = c->n, most = c->units;
  const uint32_t entries = from->entries[q] - from->freed_entries[q];
  const uint64_t used = from->units[q] - from->freed_units[q];
  const uint32_t at = from->units[q] & (most - 1);
  const uint64_t v = from->v + 1;
  if (from->generation != g->id || from->behind >= r->marks.n ||
      (uint32_t)v == 0 || (ask->for_what == RING_SUBMIT && v != ask->v) ||
      entries >= n - 1 || used + units > most || (uint64_t)at + units > most ||
      g->channel[QUEUES - 1 - q].units < ring_units(STRAIGHT_LEAST))
    return false;
  p->generation = g;
  p->to = *from;
  p->to.v = v;
  p->to.joins += nparts + 1;
  p->to.entries[q]++;
  p->to.units[q] += units;
  p->to.behind++;
  p->to.released_by = q & 3;
  p->to.owes &= ~(1u << q) & 3;
  p->to.waits = false;
  p->start[q] = at;
  p->used = 1u << q;
  p->release = q;
  p->launch_releases = false;
  p->setup = NULL;
  if (q == RIG_COMPUTE0) {
    p->setup = ring_rcu_dereference(&r->setup); /* as take_setup of reserve.c */
    if (p->setup)
      p->to.setup = p->setup->seq;
  }
  return true;
}

/* The place of the next value for a straight submission of so many words on
 * queue q. But for RING_ROOM it is taken. False: it is ring_reserve's to say,
 * and nothing is taken. */
static inline __attribute__((always_inline)) bool
straight_take(struct rings *r, const int q, uint64_t words, size_t nparts,
              const struct ring_ask *ask, struct ring_plan *p) {
  for (;;) {
    const struct ring_generation *g = NULL;
    if (PLANTED(RING_PLANT_GENERATION_BEFORE_TAIL))
      g = ring_rcu_dereference(&r->newest);
    const struct tail_at tail = tail_read(&r->tail, &p->from);
    if (!PLANTED(RING_PLANT_GENERATION_BEFORE_TAIL))
      g = ring_rcu_dereference(&r->newest); /* partner: growth's assign */
    if (!straight_place(r, g, q, ring_units(words), nparts, ask, p))
      return false;
    if (ask->for_what == RING_ROOM
            ? tail_same(&r->tail, &tail)
            : tail_swap(&r->tail, &tail, &p->from, &p->to))
      return true;
  }
}
#endif
