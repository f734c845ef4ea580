/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_TLSF_H
#define PATHS_PCI_TLSF_H
/*
 * tlsf: hands out blocks of a range of addresses by two-level segregated fit
 * (Masmano, Ripoll, Crespo, Real: "TLSF: a new dynamic memory allocator for
 * real-time systems", ECRTS 2004). Its records are host memory, so the range
 * may be memory that the host cannot reach, or no memory at all.
 *
 *   sizes in units   first level: the highest bit   second: the 4 bits below
 *      1 .. 15       0                              the size itself
 *     16 .. 31       1                              16 17 18 ...     31
 *     32 .. 63       2                              32 34 36 ...     62
 *
 *   blocks, by address   [used][free][used][used][free]   never two free ones
 *
 * A free block is in the list of its class. A take looks at the first blocks
 * of the classes from its own size on, at most TLSF_PROBES of them, and then
 * at the first class whose every block holds the size at any alignment. So it
 * succeeds while a free block of 2 * (size + align) exists.
 *
 * Cost: a constant number of steps, but for tlsf_take_below, which walks the
 * blocks, and for the table of used blocks by address, which doubles. A free
 * allocates nothing and cannot fail. Nothing is allocated before the first
 * take, and records are kept for later takes until tlsf_fini.
 *
 * One thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/api/rig_nv.h"

enum {
  TLSF_SECOND_LOG2 = 4,
  TLSF_SECOND = 1 << TLSF_SECOND_LOG2,
  TLSF_FIRST = 64 - TLSF_SECOND_LOG2 + 1,
  TLSF_PROBES = 16,
  TLSF_BUCKETS_LOG2 = 4
};

struct tlsf_block {
  uint64_t at, units;
  struct tlsf_block *before, *after; /* by address */
  struct tlsf_block *prev, *next;    /* free: of its class; used: the user's */
  struct tlsf_block *chain;          /* used: of its bucket */
  void *user;                        /* used: the user's */
  uint64_t serial;                   /* of the take; 0 free */
  bool mark;                         /* the user's */
};

struct tlsf_chunk;

struct tlsf {
  const struct rig_nv_allocator *allocator;
  unsigned shift; /* log2 of the bytes of a unit */
  bool begun;     /* the first block is there */
  uint64_t at, units, free_units, serial;
  uint64_t first_map;
  uint16_t second_map[TLSF_FIRST];
  struct tlsf_block *heads[TLSF_FIRST][TLSF_SECOND];
  struct tlsf_block *lowest; /* the block at `at` */
  struct tlsf_block *spare;  /* records in no use, through `next` */
  struct tlsf_chunk *chunks;
  struct tlsf_block **buckets;
  unsigned buckets_log2;
  size_t used;
  struct tlsf_block *own_buckets[1 << TLSF_BUCKETS_LOG2];
};

/* Blocks of the whole units within [base, base + bytes), in units of
 * 2^shift bytes. base + bytes is at most 2^64 - 1. The range may be empty. */
void tlsf_init(struct tlsf *, uint64_t base, uint64_t bytes, unsigned shift,
               const struct rig_nv_allocator *);
/* Releases every record. Blocks are gone with them. */
void tlsf_fini(struct tlsf *);

/* A block of `bytes` bytes, rounded up to units, at a multiple of `align`, a
 * power of two. 0, NO_MEMORY, HOST_MEMORY; nothing changed but for 0. */
int tlsf_take(struct tlsf *, uint64_t bytes, uint64_t align,
              struct tlsf_block **);
/* The same, with the lowest address that fits, ending at or below `below`.
 * *from, NULL at first, goes back into the next take of the same arguments
 * with no free between them: it goes on where this one found its block. */
int tlsf_take_below(struct tlsf *, uint64_t bytes, uint64_t align,
                    uint64_t below, struct tlsf_block **from,
                    struct tlsf_block **);
/* Frees a block that a take gave. */
void tlsf_free(struct tlsf *, struct tlsf_block *);

/* The used block that starts at the address, or NULL. */
struct tlsf_block *tlsf_find(const struct tlsf *, uint64_t address);

static inline uint64_t tlsf_address(const struct tlsf *t,
                                    const struct tlsf_block *b) {
  return b->at << t->shift;
}
static inline uint64_t tlsf_bytes(const struct tlsf *t,
                                  const struct tlsf_block *b) {
  return b->units << t->shift;
}
static inline uint64_t tlsf_free_bytes(const struct tlsf *t) {
  return t->free_units << t->shift;
}

/* For tests: 0, or INVALID with the invariant that does not hold. */
int tlsf_check(const struct tlsf *);
#endif
