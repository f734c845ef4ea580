/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_FLAT_H
#define PATHS_PCI_FLAT_H
/*
 * flat: the judge of page tables. It keeps one record for each 4 KiB page of
 * some windows of virtual addresses and one owner for each page of physical
 * memory, does random operations of every kind on both, and stops the process
 * where they differ:
 *
 *   answers    each is the one that the flat records predict, or within the
 *              bounds that the contract leaves
 *   mappings   walked in memory by an MMU that shares no code with the formats
 *   page size, fragment    by trying every size, not by walking runs
 *   memory     no page given twice; none lost: the pools' free bytes are those
 *              that neither a block nor a table holds
 *   flushes    one a call, nothing stored after it; none for a refusal
 *   refusals   nothing stored, no room changed
 *
 * Host allocations fail, flushes go unconfirmed and pools run out on the way.
 * Numbers come from `draw`, so that a seed or a fuzzer's bytes replay a run.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paths/pci/failing.h"
#include "paths/pci/gmmu.h"
#include "paths/pci/mmu.h"
#include "paths/pci/page_table.h"

enum flat_format { FLAT_V2, FLAT_V3, FLAT_TOY, FLAT_FORMATS };

enum {
  FLAT_ENTRIES = 512,
  FLAT_WINDOWS = 5,
  FLAT_BLOCKS = 96,
  FLAT_ALLOCS = 24
};

struct flat_page {
  uint64_t pa;
  bool mapped;
  uint8_t kind, peer, flags, log2, fragment;
};

struct flat_window {
  uint64_t va, pages;
  bool space; /* the space's: only alloc maps here */
  struct flat_page *page;
};

/* A page of physical memory. */
struct flat_frame {
  uint32_t block; /* of palloc or alloc; 0 none */
  int8_t depth;   /* of the table in it; -1 none */
  bool kept;
  uint64_t va;                  /* the table's first */
  uint16_t child[FLAT_ENTRIES]; /* frames of tables, + 1 */
};

struct flat_block {
  uint64_t pa, bytes;
  uint32_t id;
  int alloc; /* of which alloc, or -1 */
};

struct flat_alloc {
  bool live, unmapped; /* unmapped: a free whose flush went unconfirmed */
  struct space_hold hold;
  struct page_mapping m;
};

struct flat_options {
  enum flat_format format;
  enum page_tables tables;
  uint64_t memory_pages, boot_pages;
  bool base_high; /* TOY: a base that is not 0 */
  bool no_huge;   /* windows too small for pages of 512 MiB */
};

struct flat {
  struct flat_options options;
  uint64_t (*draw)(void *ctx, uint64_t n); /* a number below n */
  void *draw_ctx;

  unsigned char *memory;
  struct gmmu gmmu;
  struct mmu mmu;
  struct page_format inner, format;
  struct space space;
  struct space_holder holder;
  struct failing failing;
  struct page_table *t;
  uint64_t bytes, boot_end, main_start;
  bool booting;

  struct flat_window window[FLAT_WINDOWS];
  size_t nwindows;
  struct flat_frame *frame;
  bool *used; /* a frame's: a block or a table is there */
  uint64_t ntables;
  struct flat_block block[FLAT_BLOCKS];
  size_t nblocks;
  struct flat_alloc alloc[FLAT_ALLOCS];
  uint32_t last_id;

  /* Of the call now made. */
  bool confirms;
  uint64_t flushes, stores, unflushed, zeroed_at, zeroed_bytes, zeroes;
  uint64_t failed;
  struct page_table_room room;

  uint64_t ops, done[16], refused, lacked, host_failed, unconfirmed;
  uint64_t entries[PAGE_LEVELS]; /* written, from the leaf's up */
};

#define FLAT_CHECK(condition)                                                  \
  do {                                                                         \
    if (!(condition))                                                          \
      flat_die(f, __FILE__, __LINE__, #condition);                             \
  } while (0)

_Noreturn void flat_die(const struct flat *, const char *file, int line,
                        const char *what);

void flat_init(struct flat *, struct flat_options,
               uint64_t (*draw)(void *ctx, uint64_t n), void *draw_ctx);
/* One random operation, judged. */
void flat_op(struct flat *);
/* Judges every page, table and pool. */
void flat_check(struct flat *);
/* Gives everything back, judged, and ends. */
void flat_fini(struct flat *);

/* ---- between flat.c and flat_ops.c ---- */

/* The pages [first, end) of a window that lie in the n bytes from va. */
struct flat_span {
  uint64_t first, end;
};
struct flat_span flat_span(const struct flat_window *, uint64_t va, uint64_t n);
bool flat_zeros(const struct flat *, uint64_t pa, uint64_t n);
/* The record of a page, or NULL outside the windows. */
struct flat_page *flat_at(const struct flat *, uint64_t va);
/* The frame of the table of the depth that translates va, or -1. */
int64_t flat_table(const struct flat *, int depth, uint64_t va);
int flat_levels(const struct flat *);
unsigned flat_bit(const struct flat *, int depth);
bool flat_large(const struct flat *, int depth);
uint64_t flat_longest(const struct flat *, uint64_t first, uint64_t end);
uint64_t flat_free(const struct flat *, uint64_t first, uint64_t end);
/* The walked pages of [va, va + n) are those of the records. */
void flat_check_range(struct flat *, uint64_t va, uint64_t n);
#endif
