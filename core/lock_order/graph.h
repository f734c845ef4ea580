/* SPDX-License-Identifier: ISC */
#ifndef CORE_LOCK_ORDER_GRAPH_H
#define CORE_LOCK_ORDER_GRAPH_H
/*
 * graph: which class of lock was wanted with which one held.
 *
 *   known[to]   bit from: the edge from -> to was seen       atomic, no lock
 *   after[from] bit to:   and is part of the order           under the lock
 *   edges       where it was seen first, by whom             under the lock
 *
 * after has no cycle: an edge that would close one is known and reported, and
 * left out. So a search ends, and each cycle of what was seen has an edge that
 * was reported.
 *
 * A node is a class's index with the epoch it is valid in. The epoch moves on
 * when a class goes, as its index may then be another's: every lock asks for
 * its class's index once more. Class GRAPH_UNWATCHED is what finds no room,
 * and every edge of it is known.
 *
 * Ordering: an index's bits in known are cleared before it is given to another
 * class, and the node that says so is stored with release order; its partner
 * is the acquire load of graph_node_of. The bits themselves are relaxed: who
 * reads one as clear looks again under the lock, and who reads it as set reads
 * nothing that was written before it.
 *
 * Threads: graph_knows and graph_node_of in any, the rest with the lock.
 */
#include <stdatomic.h>

#include "core/lock_order/held.h"

enum {
  GRAPH_CLASSES = 256, /* a node's low byte */
  GRAPH_UNWATCHED = GRAPH_CLASSES - 1,
  GRAPH_WORDS = GRAPH_CLASSES / 64,
  GRAPH_EDGES = 4096,
  GRAPH_CHAIN = RIG_NV_MOST_LOCKS + RIG_NV_MOST_CONTEXTS
};

/* One lock of what a thread held, as numbers of names.h. */
struct graph_link {
  uint16_t name, site;
};

struct graph_edge {
  uint8_t from, to;
  bool reported;
  uint8_t n, holder; /* of the chain; the link that is `from` */
  uint16_t site;     /* where `to` was wanted */
  int thread;
  struct graph_link chain[GRAPH_CHAIN];
};

struct graph_class {
  const struct rig_nv_lock_class *cls; /* NULL: no class; never read through */
  uint16_t name;
  int rank;
  unsigned flags;
  uint64_t born; /* the order in which classes came */
};

extern _Atomic uint64_t graph_known[GRAPH_CLASSES][GRAPH_WORDS];
extern struct graph_class graph_classes[GRAPH_CLASSES];
extern struct graph_edge graph_edges[GRAPH_EDGES];
extern unsigned graph_nedges;
extern struct rig_nv_lock_counts graph_counts;

static inline uint64_t graph_node_of(const struct rig_nv_lock_record *r) {
  return __atomic_load_n(&r->node, __ATOMIC_ACQUIRE); /* see Ordering */
}

/* Whether the edge is known, of two nodes of the state's epoch. */
static inline bool graph_knows(uint64_t state, uint64_t from, uint64_t to) {
  if (((state ^ from) | (state ^ to)) >> 8)
    return false;
  unsigned f = from % GRAPH_CLASSES;
  uint64_t word = atomic_load_explicit(&graph_known[to % GRAPH_CLASSES][f / 64],
                                       memory_order_relaxed);
  return word >> f % 64 & 1;
}

/* The graph's lock. Not taken between fork's handlers, which hold it. */
void graph_enter(void);
void graph_leave(void);

/* The index of the record's class, which gets one if it has none. */
unsigned graph_index(struct rig_nv_lock_record *);

/* Makes the edge known; false where it was. */
bool graph_learn(unsigned from, unsigned to);
/* Adds it to the order. */
void graph_order(unsigned from, unsigned to);
/* Keeps where it was seen; thread 0 and nothing else where there is no room. */
void graph_keep(const struct graph_edge *);
const struct graph_edge *graph_edge_of(unsigned from, unsigned to);
/* The shortest way in the order: its length with both ends; 0, there is
 * none. */
unsigned graph_path(unsigned from, unsigned to, uint8_t path[GRAPH_CLASSES]);

/* Puts the mode into rig_nv_lock_state and returns the former one. */
enum rig_nv_watch graph_mode(enum rig_nv_watch);
#endif
