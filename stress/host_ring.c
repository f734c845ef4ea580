/* SPDX-License-Identifier: ISC */
#include "stress/host_ring.h"

#include <assert.h>
#include <string.h>

#include "core/api/rig_edge.h"

void host_ring_init(struct host_ring *h, uint64_t size) {
  memset(h, 0, sizeof *h);
  h->size = size;
}

bool host_ring_ready(struct host_ring *h, uint64_t word, uint64_t bytes,
                     uint64_t piece, uint64_t *until) {
  while (h->count && rig_reached(word, h->uses[h->first].value)) {
    h->used -= h->uses[h->first].bytes;
    h->first = (h->first + 1) % HOST_RING_USES;
    h->count--;
  }
  h->head_before = h->head;
  h->used_before = h->used;
  /* One piece more: the end of the ring may waste less than one. */
  if (h->count < HOST_RING_USES && h->size - h->used >= bytes + piece)
    return true;
  *until = h->uses[(h->first + h->count / 2) % HOST_RING_USES].value;
  return false;
}

uint64_t host_ring_take(struct host_ring *h, uint64_t n) {
  if (h->head + n > h->size) {
    h->used += h->size - h->head;
    h->head = 0;
  }
  uint64_t at = h->head;
  h->head += n;
  h->used += n;
  assert(n % 4 == 0 && h->used <= h->size);
  return at;
}

void host_ring_commit(struct host_ring *h, uint64_t v) {
  uint64_t bytes = h->used - h->used_before;
  if (!bytes)
    return;
  assert(h->count < HOST_RING_USES);
  unsigned i = (h->first + h->count++) % HOST_RING_USES;
  h->uses[i].value = v;
  h->uses[i].bytes = bytes;
  h->used_before = h->used;
  h->head_before = h->head;
}

void host_ring_undo(struct host_ring *h) {
  h->head = h->head_before;
  h->used = h->used_before;
}
