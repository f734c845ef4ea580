/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_FLAT_OP_H
#define PATHS_PCI_FLAT_OP_H
/*
 * flat_op: what the kinds of operations of flat share. For its files alone.
 */
#include <string.h>

#include "paths/pci/flat.h"

#define PAGE UINT64_C(4096)

/* A kind of operation, drawn `weight` times of all weights. */
struct flat_kind {
  void (*run)(struct flat *);
  unsigned weight;
};

enum { FLAT_MEMORY_KINDS = 2, FLAT_MAP_KINDS = 4, FLAT_TAKE_KINDS = 3 };

extern const struct flat_kind flat_memory_kinds[FLAT_MEMORY_KINDS];
extern const struct flat_kind flat_map_kinds[FLAT_MAP_KINDS];
extern const struct flat_kind flat_take_kinds[FLAT_TAKE_KINDS];

struct flat_pool {
  uint64_t first, end; /* frames */
};

struct flat_range {
  uint64_t va, n;
};

uint64_t flat_draw(struct flat *, uint64_t n);
bool flat_one_in(struct flat *, uint64_t n);
/* A number of [0, most], the small ones far more often. */
uint64_t flat_small(struct flat *, uint64_t most);

/* Around a call: what it may fail at is drawn; what it did is counted. */
void flat_begin(struct flat *);
void flat_end(struct flat *);
void flat_same_room(struct flat *);
/* INVALID, and nothing done. */
void flat_refused(struct flat *, int r);
/* A failure for want of memory, which `lacking` says there may be. */
void flat_lacked(struct flat *, int r, bool lacking);

/* The frames that palloc takes of a pool, and that new tables come from. */
struct flat_pool flat_pool(const struct flat *, enum page_pool);
struct flat_pool flat_tables_pool(const struct flat *);
/* The bytes, all free and of the pool, become a block; alloc below 0: one that
 * pfree draws. */
void flat_own(struct flat *, struct flat_pool, uint64_t pa, uint64_t bytes,
              int alloc);
void flat_disown(struct flat *, uint64_t pa, uint64_t bytes);

bool flat_unmapped(const struct flat *, uint64_t va, uint64_t pages);
/* Whether pages within the range map all of it. */
bool flat_whole(const struct flat *, struct flat_range);
/* Forgets every page that maps any of the range, whole. */
void flat_forget(struct flat *, struct flat_range);

/* What a map of the ranges is to do. */
void flat_plan(struct flat *, uint64_t va, const struct page_range *, size_t n);
/* The tables that the plan needs; writes it into the records if asked to. */
uint64_t flat_plan_walk(struct flat *, struct page_target, unsigned flags,
                        bool write);

/* Gives back by hand what an alloc took, if it lives. */
void flat_clean(struct flat *, struct flat_alloc *);
#endif
