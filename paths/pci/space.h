/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_SPACE_H
#define PATHS_PCI_SPACE_H
/*
 * space: a range of a GPU's virtual addresses, and who holds which part of it.
 *
 *   space   [base ........................................ base + bytes)
 *               |-- hold --|      |- hold -|  |---- hold ----|
 *                    \               /               |
 *                     holder of one owner      another holder
 *
 * An owner (a device, an open file, a test) takes addresses in the name of a
 * holder. Each take is a hold, which space_free gives back. Whatever an owner
 * still holds when it ends, also where it was interrupted between two steps,
 * comes back by one space_release of its holder, which may then take again.
 *
 * A take of n bytes aligned to a succeeds while the space has a free range of
 * 2 * (max(n, 16) + a) bytes, and may fail with a smaller one that would fit.
 * Addresses are handed out in units of 16 bytes; no two holds overlap.
 *
 * A hold is a value. It names its take for ever: once freed, or released, it
 * is refused, also where its addresses were taken again.
 *
 * Cost: a constant number of steps (paths/pci/tlsf.h); a release one for each
 * hold. Nothing is allocated before the first take, and a free or a release
 * allocates nothing.
 *
 * Errors: 0, or a negative error with the reason in rig_nv_why, and nothing
 * changed.
 *
 * Threads: any thread may call any function at the same time as others, on one
 * space and on one holder, but space_init, space_fini and space_holder_init
 * run alone on what they are given. A space has a lock that is taken with a
 * path's lock held or with none (RIG_NV_RANK_SPACE, after RIG_NV_RANK_PATH);
 * inside it only the allocator is called. Ordering: what a thread wrote before
 * it gave a hold back is visible to the thread whose take gets its addresses.
 */
#include <stddef.h>
#include <stdint.h>

#include "core/lock_order/lock_order.h"
#include "paths/pci/tlsf.h"

enum { SPACE_UNIT_LOG2 = 4 };

struct space {
  struct rig_nv_lock lock;
  uint64_t base, bytes;
  struct tlsf tlsf; /* the lock's */
};

/* Lives until what it holds was given back. */
struct space_holder {
  struct space *space;
  struct tlsf_block *first; /* the lock's */
  size_t holds;             /* the lock's */
};

struct space_hold {
  uint64_t at;    /* the first address */
  uint64_t bytes; /* held: as asked for, rounded up to 16 */
  uint64_t serial;
};

/* The addresses [base, base + bytes). INVALID where they are none or end past
 * 2^64 - 1. allocator NULL: aligned_alloc. */
int space_init(struct space *, uint64_t base, uint64_t bytes,
               const struct rig_nv_allocator *);
/* Ends the space; holds and holders of it end with it. */
void space_fini(struct space *);

uint64_t space_base(const struct space *);
uint64_t space_bytes(const struct space *);

/* A holder of nothing. */
void space_holder_init(struct space_holder *, struct space *);

/* Takes n bytes at a multiple of align. INVALID: n 0, align no power of two,
 * or a lock held that comes after this one; NO_MEMORY; HOST_MEMORY. */
int space_alloc(struct space_holder *, uint64_t n, uint64_t align,
                struct space_hold *);

/* Whether the hold is one of the space's: 0 or INVALID. */
int space_held(struct space *, const struct space_hold *);

/* Gives one hold back. INVALID: it is no hold of the space. */
int space_free(struct space *, const struct space_hold *);

/* Gives back every hold of the holder. INVALID: a lock held that comes after
 * this one. */
int space_release(struct space_holder *);

/* Bytes that nobody holds. */
int space_unheld(struct space *, uint64_t *bytes);
#endif
