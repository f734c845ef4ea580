/* SPDX-License-Identifier: ISC */
#include "rings/tail.h"

#include <string.h>

#include "rings/point.h"

#define EMPTY UINT16_MAX /* no node has this index */

_Static_assert(TAIL_SPARES < EMPTY, "a node's index fits");

static void set(struct tail_node *n, const struct cursor *c) {
  uint64_t w[CURSOR_WORDS];
  memcpy(w, c, sizeof w);
  for (int i = 0; i < CURSOR_WORDS; i++)
    shared_store_64(&n->w[i], w[i]);
}

void tail_init(struct tail *t, const struct cursor *start) {
  for (uint32_t i = 0; i <= TAIL_SPARES; i++)
    set(&t->node[i], start);
  shared_init_pair(&t->word, tail_word(start->v, TAIL_SPARES),
                   tail_flags(start));
  for (uint32_t i = 0; i < TAIL_SPARES; i++)
    shared_store_release_32(&t->cell[i].node, i);
}

/* Where this thread looks for a cell first: threads spread over them. */
static uint32_t first_cell(void) {
#ifdef RIG_RELACY
  return shared_thread() % TAIL_SPARES;
#else
  static uint32_t threads;
  static __thread uint32_t mine;
  if (mine == 0)
    mine = ck_pr_faa_32(&threads, 1) + 1;
  return mine % TAIL_SPARES;
#endif
}

/* The spare of a cell, which stays empty until this thread puts one back. */
static struct tail_cell *take(struct tail *t, uint32_t *node) {
  for (uint32_t i = first_cell();; i = (i + 1) % TAIL_SPARES) {
    struct tail_cell *c = &t->cell[i];
    if (shared_load_32(&c->node) == EMPTY) {
      shared_spin();
      continue;
    }
    *node = shared_exchange_32(&c->node, EMPTY); /* partner: put */
    if (*node != EMPTY)
      return c;
    shared_spin();
  }
}

static void put(struct tail_cell *c, uint32_t node) {
  shared_store_release_32(&c->node, node); /* partner: take */
}

bool tail_swap_node(struct tail *t, const struct tail_at *read,
                    const struct cursor *to) {
  uint32_t node;
  struct tail_cell *c = take(t, &node);
  shared_fence_release(); /* partner: tail_same's acquire */
  set(&t->node[node], to);
  RING_POINT(SWAP);
  /* Partner: tail_read's acquire load. */
  bool swapped = shared_cas_pair(&t->word, read->word, read->steps,
                                 tail_word(to->v, node), tail_flags(to));
  if (swapped)
    RING_POINT(SWAPPED);
  put(c, swapped ? (uint32_t)tail_node_of(read->word) : node);
  return swapped;
}

void tail_last(const struct tail *t, struct cursor *c) {
  struct tail_at at;
  do
    at = tail_read(t, c);
  while (!tail_same(t, &at)); /* another thread swapped: the tail moved on */
}
