/* SPDX-License-Identifier: ISC */
#include "stress/bench/swap.h"

#include <stddef.h>

#include "rings/cursor.h"
#include "rings/shared.h"
#include "rings/tail.h"
#include "stress/bench/gpu.h"

struct swap {
  shared_pair word __attribute__((aligned(TAIL_LINE)));
  shared_32 epoch __attribute__((aligned(TAIL_LINE))); /* of swap_begin */
  shared_32 threads;
  struct tail_node node[SWAP_NODES] __attribute__((aligned(TAIL_LINE)));
};

/* The calling thread's, of the epoch. */
static __thread struct {
  uint32_t epoch, node;
} mine;

struct swap *swap_make(void) { return gpu_memory(sizeof(struct swap)); }

void swap_begin(struct swap *s) {
  const uint64_t v = swap_count(s);
  shared_init_pair(&s->word, tail_word(v, 0), 0);
  s->epoch++;
  s->threads = 0;
}

uint64_t swap_count(const struct swap *s) {
  return shared_load_first(&s->word) >> TAIL_NODE_BITS;
}

/* A thread's node of its own, from 1 on. */
static uint32_t own(struct swap *s) {
  const uint32_t epoch = shared_load_32(&s->epoch);
  if (mine.epoch != epoch) {
    mine.epoch = epoch;
    mine.node = 1 + ck_pr_faa_32(&s->threads, 1) % (SWAP_NODES - 1);
  }
  return mine.node;
}

/* The next tail by way of nodes: reads one, writes another. */
static uint64_t by_node(struct swap *s, uint64_t tail, uint32_t to) {
  uint64_t w[CURSOR_WORDS];
  const struct tail_node *from = &s->node[tail_node_of(tail)];
  for (int i = 0; i < CURSOR_WORDS; i++)
    w[i] = shared_load_64(&from->w[i]);
  w[0]++;
  for (int i = 0; i < CURSOR_WORDS; i++)
    shared_store_64(&s->node[to].w[i], w[i]);
  return tail_word((tail >> TAIL_NODE_BITS) + 1, to);
}

void swap_submit(struct swap *s, bool nodes) {
  for (;;) {
    const uint64_t tail = shared_load_acquire_first(&s->word);
    const uint64_t steps = shared_load_second(&s->word);
    const uint64_t next =
        nodes ? by_node(s, tail, own(s)) : tail + tail_word(1, 0);
    if (!shared_cas_pair(&s->word, tail, steps, next, steps + 1))
      continue;
    if (nodes)
      mine.node = (uint32_t)tail_node_of(tail);
    return;
  }
}
