/* SPDX-License-Identifier: ISC */
#include "stress/bench/peer.h"

#include <stddef.h>

#if defined(BENCH_RTE_RING) && defined(__x86_64__)
#include <rte_ring_elem.h>
#include <string.h>

#include "rings/shared.h"
#include "stress/bench/gpu.h"
#include "stress/bench/ticks.h"

struct peer {
  uint32_t bytes[PEER_RINGS];
  struct rte_ring *ring[PEER_RINGS];
  uint32_t *message; /* what is enqueued */
};

bool peer_built(void) { return true; }

/* As rte_ring_init does: that is in a library which brings all of DPDK's
 * environment, and the rest of a ring is in its headers. */
static struct rte_ring *ring_make(uint32_t bytes) {
  uint32_t slots = 1;
  while (slots * bytes < GPU_SEGMENT_BYTES)
    slots *= 2;
  struct rte_ring *r = gpu_memory(sizeof *r + (size_t)slots * bytes);
  if (!r)
    return NULL;
  r->size = slots;
  r->mask = slots - 1;
  r->capacity = slots - 1;
  r->prod.sync_type = RTE_RING_SYNC_MT;
  r->cons.sync_type = RTE_RING_SYNC_MT;
  return r;
}

struct peer *peer_make(const uint32_t bytes[PEER_RINGS]) {
  struct peer *p = gpu_memory(sizeof *p);
  uint32_t most = 0;
  if (!p)
    return NULL;
  memcpy(p->bytes, bytes, sizeof p->bytes);
  for (unsigned i = 0; i < PEER_RINGS; i++) {
    most = bytes[i] > most ? bytes[i] : most;
    if (!(p->ring[i] = ring_make(bytes[i])))
      return NULL;
  }
  p->message = gpu_memory(most);
  return p->message ? p : NULL;
}

/* A consumer of everything, less its copies: rte_ring's own two steps. */
static void drain(struct rte_ring *r) {
  shared_32 *head = (shared_32 *)(uintptr_t)&r->cons.head;
  shared_32 *tail = (shared_32 *)(uintptr_t)&r->cons.tail;
  shared_32 *filled = (shared_32 *)(uintptr_t)&r->prod.tail;
  const uint32_t from = shared_load_acquire_32(head); /* partner: the swap */
  const uint32_t to = shared_load_acquire_32(filled); /* partner: enqueue */
  if (from == to || !shared_cas_32(head, from, to))
    return;
  while (shared_load_32(tail) != from)
    ck_pr_stall();
  shared_store_release_32(tail, to); /* partner: the enqueue's load */
}

void peer_submit(struct peer *p, unsigned i, uint64_t multiplies) {
  struct rte_ring *r = p->ring[i];
  while (rte_ring_mp_enqueue_elem(r, p->message, p->bytes[i]) != 0)
    drain(r);
  ticks_multiply(multiplies);
}

uint32_t peer_count(const struct peer *p) {
  uint32_t n = 0;
  for (unsigned i = 0; i < PEER_RINGS; i++)
    n += p->ring[i]->prod.tail;
  return n;
}

#else
bool peer_built(void) { return false; }

struct peer *peer_make(const uint32_t bytes[PEER_RINGS]) {
  (void)bytes;
  return NULL;
}

void peer_submit(struct peer *p, unsigned i, uint64_t multiplies) {
  (void)p, (void)i, (void)multiplies;
}

uint32_t peer_count(const struct peer *p) {
  (void)p;
  return 0;
}
#endif
