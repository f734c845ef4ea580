/* SPDX-License-Identifier: ISC */
#ifndef STRESS_HOST_RING_H
#define STRESS_HOST_RING_H
/*
 * host_ring: which bytes of a region that the host writes are free. Bytes are
 * taken in order, round and round, belong to one submission, and are free
 * once its value is reached:
 *
 *      0         tail               head                size
 *      |  free   | v | v+1 | v+3 | ... | now |   free    |
 *                  oldest use            of the submission being made
 *
 * One thread at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#define HOST_RING_USES 4096

struct host_ring {
  uint64_t size, head, used;
  uint64_t head_before, used_before; /* the submission being made took since */
  struct {
    uint64_t value, bytes;
  } uses[HOST_RING_USES];
  unsigned first, count;
};

void host_ring_init(struct host_ring *, uint64_t size);
/* Frees what the values up to `word` used. True: `bytes` can be taken in any
 * pieces, each of at most `piece`. False: *until must be reached first. */
bool host_ring_ready(struct host_ring *, uint64_t word, uint64_t bytes,
                     uint64_t piece, uint64_t *until);
/* The offset of n bytes, contiguous; n is a multiple of 4. */
uint64_t host_ring_take(struct host_ring *, uint64_t n);
/* What was taken since the last of either belongs to v; is free. */
void host_ring_commit(struct host_ring *, uint64_t v);
void host_ring_undo(struct host_ring *);
#endif
