/* SPDX-License-Identifier: ISC */
#include "core/lock_order/graph.h"

#include <string.h>

#include "core/lock_order/names.h"

_Static_assert(GRAPH_CHAIN <= UINT8_MAX, "a chain's length is a byte");

_Atomic uint64_t graph_known[GRAPH_CLASSES][GRAPH_WORDS];
struct graph_class graph_classes[GRAPH_CLASSES];
struct graph_edge graph_edges[GRAPH_EDGES];
unsigned graph_nedges;
struct rig_nv_lock_counts graph_counts;
uint64_t rig_nv_lock_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t after[GRAPH_CLASSES][GRAPH_WORDS];
/* The edge's place in graph_edges, and 1. */
static uint16_t kept[GRAPH_CLASSES][GRAPH_CLASSES];
static uint64_t epoch = 1; /* no node is of epoch 0 */
static uint64_t born;

void graph_enter(void) {
  if (!lock_held.forking)
    pthread_mutex_lock(&lock);
}

void graph_leave(void) {
  if (!lock_held.forking)
    pthread_mutex_unlock(&lock);
}

/* Fork: the child has the graph whole, and its lock free. */

static void before_fork(void) {
  graph_enter();
  lock_held.forking = true;
}

static void after_fork(void) {
  lock_held.forking = false;
  graph_leave();
}

static void begin(void) {
  /* Where it fails, for lack of memory, a child of a fork in the middle of a
   * learning may find the graph's lock taken. */
  (void)pthread_atfork(before_fork, after_fork, after_fork);
  for (unsigned i = 0; i < GRAPH_CLASSES; i++) {
    atomic_fetch_or_explicit(&graph_known[i][GRAPH_UNWATCHED / 64],
                             UINT64_C(1) << GRAPH_UNWATCHED % 64,
                             memory_order_relaxed);
    if (i < GRAPH_WORDS)
      atomic_store_explicit(&graph_known[GRAPH_UNWATCHED][i], UINT64_MAX,
                            memory_order_relaxed);
  }
}

/* The epoch is read with the mode, so that one load says both. */
static void set_state(unsigned mode) {
  /* Relaxed: nothing else is read by it; nodes have an order of their own. */
  __atomic_store_n(&rig_nv_lock_state, mode ? epoch << 8 | mode : 0,
                   __ATOMIC_RELAXED);
}

static unsigned mode_now(void) {
  return __atomic_load_n(&rig_nv_lock_state, __ATOMIC_RELAXED) & 0xff;
}

enum rig_nv_watch graph_mode(enum rig_nv_watch mode) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, begin);
  graph_enter();
  enum rig_nv_watch former = (enum rig_nv_watch)mode_now();
  set_state(mode);
  graph_leave();
  return former;
}

/* Removes what is known of the class in slot i. */
static void clear(unsigned i) {
  static const uint64_t none[GRAPH_WORDS];
  uint64_t bit = UINT64_C(1) << i % 64;
  for (unsigned j = 0; j < GRAPH_UNWATCHED; j++) {
    atomic_fetch_and_explicit(&graph_known[j][i / 64], ~bit,
                              memory_order_relaxed);
    after[j][i / 64] &= ~bit;
    kept[i][j] = kept[j][i] = 0;
  }
  for (unsigned w = 0; w < GRAPH_WORDS; w++)
    atomic_store_explicit(
        &graph_known[i][w],
        w == GRAPH_UNWATCHED / 64 ? UINT64_C(1) << GRAPH_UNWATCHED % 64 : 0,
        memory_order_relaxed);
  memcpy(after[i], none, sizeof none);
}

static void drop_edges(unsigned i) {
  unsigned n = 0;
  for (unsigned e = 0; e < graph_nedges; e++) {
    const struct graph_edge *edge = &graph_edges[e];
    if (edge->from == i || edge->to == i)
      continue;
    if (n != e)
      graph_edges[n] = *edge;
    n++;
    kept[edge->from][edge->to] = (uint16_t)n;
  }
  graph_nedges = n;
}

static void drop(unsigned i) {
  drop_edges(i);
  clear(i);
  graph_classes[i].cls = NULL;
  epoch++;
  set_state(mode_now());
}

static unsigned find(const struct rig_nv_lock_class *cls) {
  unsigned i = 0;
  while (i < GRAPH_UNWATCHED && graph_classes[i].cls != cls)
    i++;
  return i;
}

/* Whether the class at this address is the one that was seen there: one that
 * went without a word may have left it to another. */
static bool same(const struct graph_class *c) {
  return c->rank == c->cls->rank && c->flags == c->cls->flags &&
         c->name == names_id(c->cls->name);
}

static unsigned add(const struct rig_nv_lock_class *cls) {
  unsigned i = find(NULL);
  if (i == GRAPH_UNWATCHED)
    graph_counts.unwatched++;
  else
    graph_classes[i] = (struct graph_class){cls, names_id(cls->name), cls->rank,
                                            cls->flags, ++born};
  return i;
}

unsigned graph_index(struct rig_nv_lock_record *r) {
  uint64_t node = __atomic_load_n(&r->node, __ATOMIC_RELAXED); /* or stale */
  if (node >> 8 == epoch)
    return node % GRAPH_CLASSES;
  unsigned i = find(r->cls);
  if (i != GRAPH_UNWATCHED && !same(&graph_classes[i])) {
    drop(i);
    i = GRAPH_UNWATCHED;
  }
  if (i == GRAPH_UNWATCHED)
    i = add(r->cls);
  /* release: pairs with graph_node_of */
  __atomic_store_n(&r->node, epoch << 8 | i, __ATOMIC_RELEASE);
  return i;
}

bool graph_learn(unsigned from, unsigned to) {
  uint64_t bit = UINT64_C(1) << from % 64;
  /* Relaxed: see Ordering in graph.h. */
  return !(atomic_fetch_or_explicit(&graph_known[to][from / 64], bit,
                                    memory_order_relaxed) &
           bit);
}

void graph_order(unsigned from, unsigned to) {
  after[from][to / 64] |= UINT64_C(1) << to % 64;
}

void graph_keep(const struct graph_edge *edge) {
  if (graph_nedges == GRAPH_EDGES) {
    graph_counts.unwatched++;
    return;
  }
  graph_edges[graph_nedges++] = *edge;
  kept[edge->from][edge->to] = (uint16_t)graph_nedges;
}

const struct graph_edge *graph_edge_of(unsigned from, unsigned to) {
  unsigned at = kept[from][to];
  return at ? &graph_edges[at - 1] : NULL;
}

unsigned graph_path(unsigned from, unsigned to, uint8_t path[GRAPH_CLASSES]) {
  uint8_t queue[GRAPH_CLASSES], before[GRAPH_CLASSES];
  uint64_t seen[GRAPH_WORDS] = {0};
  unsigned head = 0, tail = 0, n = 0;
  queue[tail++] = (uint8_t)from;
  seen[from / 64] |= UINT64_C(1) << from % 64;
  for (; head < tail && queue[head] != to; head++)
    for (unsigned w = 0; w < GRAPH_WORDS; w++) {
      uint64_t next = after[queue[head]][w] & ~seen[w];
      seen[w] |= next;
      for (; next; next &= next - 1) {
        unsigned i = w * 64 + (unsigned)__builtin_ctzll(next);
        before[i] = queue[head];
        queue[tail++] = (uint8_t)i;
      }
    }
  if (head == tail)
    return 0;
  for (unsigned i = to; i != from; i = before[i])
    path[n++] = (uint8_t)i;
  path[n++] = (uint8_t)from;
  for (unsigned i = 0; i < n / 2; i++) {
    uint8_t swapped = path[i];
    path[i] = path[n - 1 - i];
    path[n - 1 - i] = swapped;
  }
  return n;
}

void rig_nv_lock_class_end(const struct rig_nv_lock_class *cls) {
  for (unsigned i = 0; i < lock_held.n; i++)
    if (held_lock(&lock_held, i)->record->cls == cls)
      lock_stop_process("end of class \"%s\", of which the thread holds a lock,"
                        " taken at %s",
                        cls->name, held_lock(&lock_held, i)->site);
  if (!cls)
    return;
  graph_enter();
  unsigned i = find(cls);
  if (i != GRAPH_UNWATCHED)
    drop(i);
  graph_leave();
}

void rig_nv_lock_forget(void) {
  graph_enter();
  for (unsigned i = 0; i < GRAPH_UNWATCHED; i++)
    if (graph_classes[i].cls)
      drop(i);
  graph_counts = (struct rig_nv_lock_counts){0};
  graph_leave();
}

void rig_nv_lock_count(struct rig_nv_lock_counts *counts) {
  graph_enter();
  *counts = graph_counts;
  for (unsigned i = 0; i < GRAPH_UNWATCHED; i++) {
    counts->classes += graph_classes[i].cls != NULL;
    for (unsigned w = 0; w < GRAPH_WORDS; w++)
      counts->edges += (uint64_t)__builtin_popcountll(after[i][w]);
  }
  graph_leave();
}

/* Listing. */

static void name_ends(struct rig_nv_lock_edge *out, unsigned from,
                      unsigned to) {
  const struct graph_class *f = &graph_classes[from], *t = &graph_classes[to];
  out->from = names_text(f->name);
  out->from_rank = f->rank;
  out->from_flags = f->flags;
  out->to = names_text(t->name);
  out->to_rank = t->rank;
  out->to_flags = t->flags;
}

/* The edge at i, copied so that fn runs without the lock. */
static bool edge_at(unsigned i, struct rig_nv_lock_edge *out) {
  graph_enter();
  bool is = i < graph_nedges;
  if (is) {
    const struct graph_edge *e = &graph_edges[i];
    name_ends(out, e->from, e->to);
    out->from_site = names_text(e->chain[e->holder].site);
    out->to_site = names_text(e->site);
    out->thread = e->thread;
    out->reported = e->reported;
  }
  graph_leave();
  return is;
}

void rig_nv_lock_each_edge(void (*fn)(void *, const struct rig_nv_lock_edge *),
                           void *arg) {
  struct rig_nv_lock_edge edge;
  for (unsigned i = 0; edge_at(i, &edge); i++)
    fn(arg, &edge);
}

/* The class that came next after *at. */
static bool class_after(uint64_t *at, struct rig_nv_lock_edge *out) {
  unsigned next = GRAPH_UNWATCHED;
  graph_enter();
  for (unsigned i = 0; i < GRAPH_UNWATCHED; i++)
    if (graph_classes[i].cls && graph_classes[i].born > *at &&
        (next == GRAPH_UNWATCHED ||
         graph_classes[i].born < graph_classes[next].born))
      next = i;
  if (next != GRAPH_UNWATCHED) {
    name_ends(out, next, next);
    *at = graph_classes[next].born;
  }
  graph_leave();
  return next != GRAPH_UNWATCHED;
}

void rig_nv_lock_each_class(void (*fn)(void *, const struct rig_nv_lock_edge *),
                            void *arg) {
  struct rig_nv_lock_edge edge = {0};
  for (uint64_t at = 0; class_after(&at, &edge);)
    fn(arg, &edge);
}
