/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_FORMAT_H
#define PATHS_PCI_FORMAT_H
/*
 * format: a vendor's page-table format and the access to the GPU's memory that
 * holds the tables.
 *
 *   address   | bits .. levels[n-1] | ... | .. levels[1] | .. 12 | 11 .. 0 |
 *   table       root, number `first`  ...                   leaf
 *
 * The table whose entries start at bit l has 2^(above - l) of them, where
 * above is the next level's bit, or `bits` for the root. Tables are numbered
 * from `first` at the root, one more a step down to the leaf.
 *
 * Who edits the tables (paths/pci/page_table.h) keeps what each entry holds
 * and reads none back, so a format may write through a write-combined window.
 * An entry in memory that zero zeroed maps nothing. set_page is called at the
 * leaf level or where `large` holds, with an address below 2^pa_bits, and for
 * Gpu and Peer below 2^gpu_bits; set_table with tables in the GPU's memory.
 *
 * The functions fail in no way, but for flush, and call nothing of the tables
 * they serve. They may leave their stores in flight until flush.
 */
#include <stdbool.h>
#include <stdint.h>

enum { PAGE_LOG2 = 12, PAGE_LEVELS = 8, PAGE_LEVEL_BITS = 12 };

/* The memory that an entry points into. */
enum page_target_kind {
  PAGE_GPU,    /* the GPU's own */
  PAGE_SYSTEM, /* the host's, over the bus */
  PAGE_PEER    /* of GPU `peer` of the fabric, at an address of its memory */
};

struct page_target {
  enum page_target_kind kind;
  unsigned peer;
};

enum {
  PAGE_UNCACHED = 1, /* the GPU bypasses its caches */
  PAGE_SNOOPED = 2   /* its accesses snoop the processors' caches */
};

struct page_format {
  void *ctx;
  int levels[PAGE_LEVELS]; /* from the leaf's 12 up */
  int nlevels;
  int bits;       /* of a virtual address */
  int pa_bits;    /* of a physical address that an entry holds */
  int gpu_bits;   /* the same for Gpu and Peer where it is less, else 0 */
  unsigned peers; /* GPUs that an entry can name */
  int first;      /* the number of the root */

  /* Points entry i of the table to the table at child. */
  void (*set_table)(void *ctx, int level, uint64_t table, unsigned i,
                    uint64_t child);
  /* Makes entry i map the page at pa, part of a run of 2^fragment 4 KiB pages
   * that is naturally aligned in both spaces. The format may record a smaller
   * fragment or none. */
  void (*set_page)(void *ctx, int level, uint64_t table, unsigned i,
                   uint64_t pa, struct page_target, unsigned flags,
                   unsigned fragment);
  /* Makes entry i map nothing. */
  void (*clear)(void *ctx, int level, uint64_t table, unsigned i);
  /* Whether pages may map at the level. Asked by page_table_create alone. */
  bool (*large)(void *ctx, int level);
  void (*zero)(void *ctx, uint64_t pa, uint64_t n);
  /* Makes the GPU walk what was written and zeroed since the last flush and
   * forget what it cached of the cleared; true iff the GPU confirmed it. On
   * false it may still reach what the cleared entries mapped, and the vendor
   * records a failure of the GPU. */
  bool (*flush)(void *ctx);
};
#endif
