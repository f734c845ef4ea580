/* SPDX-License-Identifier: ISC */
#include "rings/tail.h"

#include <string.h>

#define EMPTY UINT16_MAX /* no node has this index */

_Static_assert(TAIL_SPARES < EMPTY, "a node's index fits");

static uint64_t word_of(uint64_t v, uint32_t node) {
  return v << TAIL_NODE_BITS | node;
}

void tail_init(struct tail *t, const struct cursor *start) {
  memset(t, 0, sizeof *t);
  t->node[TAIL_SPARES] = *start;
  t->word = word_of(start->v, TAIL_SPARES);
  for (uint32_t i = 0; i < TAIL_SPARES; i++)
    t->cell[i].node = i;
}

/* Where this thread looks for a cell first: threads spread over them. */
static uint32_t first_cell(void) {
  static uint32_t threads;
  static __thread uint32_t mine;
  if (mine == 0)
    mine = ck_pr_faa_32(&threads, 1) + 1;
  return mine % TAIL_SPARES;
}

/* The spare of a cell, which stays empty until this thread puts one back. */
static struct tail_cell *take(struct tail *t, uint32_t *node) {
  for (uint32_t i = first_cell();; i = (i + 1) % TAIL_SPARES) {
    struct tail_cell *c = &t->cell[i];
    if (shared_load_32(&c->node) == EMPTY)
      continue;
    *node = shared_exchange_32(&c->node, EMPTY); /* partner: put */
    if (*node != EMPTY)
      return c;
  }
}

static void put(struct tail_cell *c, uint32_t node) {
  shared_store_release_32(&c->node, node); /* partner: take */
}

bool tail_swap(struct tail *t, uint64_t read, const struct cursor *to) {
  uint64_t w[CURSOR_WORDS];
  uint32_t node;
  struct tail_cell *c = take(t, &node);
  uint64_t *words = (uint64_t *)&t->node[node];
  memcpy(w, to, sizeof w);
  shared_fence_release(); /* partner: tail_same's acquire */
  for (int i = 0; i < CURSOR_WORDS; i++)
    shared_store_64(&words[i], w[i]);
  /* Partner: tail_read's acquire load. */
  bool swapped = shared_cas_64(&t->word, read, word_of(to->v, node));
  put(c, swapped ? (uint32_t)(read & ((1u << TAIL_NODE_BITS) - 1)) : node);
  return swapped;
}

void tail_last(const struct tail *t, struct cursor *c) {
  while (!tail_same(t, tail_read(t, c)))
    ; /* another thread swapped: the tail moved on */
}
