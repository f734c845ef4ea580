/* SPDX-License-Identifier: ISC */
#ifndef CORE_LOCK_ORDER_WATCH_H
#define CORE_LOCK_ORDER_WATCH_H
/*
 * watch: what a take means to the graph, and what is reported.
 *
 * Threads: any.
 */
#include "core/lock_order/graph.h"

/* Learns the edges from all that the thread holds and is inside of to what it
 * wants, and reports what contradicts the order. */
void lock_watch_learn(struct held *, struct rig_nv_lock_record *wanted,
                      const char *site);

/* The thread's end, inside contexts. */
void lock_watch_end_inside(struct held *);

/* Leaves contexts that were entered before the graph was last turned on. */
void lock_watch_current(struct held *);

/* Whether a wait for the record teaches nothing: a load and a compare of each
 * thing held. */
static inline bool lock_watch_known(const struct held *h,
                                    const struct rig_nv_lock_record *wanted,
                                    uint64_t state) {
  uint64_t to = graph_node_of(wanted);
  for (unsigned i = 0; i < h->n; i++)
    if (!graph_knows(state, graph_node_of(held_lock(h, i)->record), to))
      return false;
  for (unsigned i = 0; i < h->contexts; i++)
    if (!graph_knows(state, graph_node_of(h->context[i].record), to))
      return false;
  return (to ^ state) >> 8 == 0;
}
#endif
