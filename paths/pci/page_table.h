/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_PAGE_TABLE_H
#define PATHS_PCI_PAGE_TABLE_H
/*
 * page_table: a GPU's physical memory and the page tables that map it.
 *
 * A driver that drives a GPU itself allocates the GPU's physical memory, takes
 * virtual addresses from a space, and writes the multi-level tables that map
 * one to the other. The tables live in the GPU's memory, in a vendor's format
 * (paths/pci/format.h). What each entry holds is kept in host memory too, and
 * no entry is ever read back.
 *
 *   physical   [ boot pool | tables' pool, if asked for | main pool        ]
 *              0         boot                                          memory
 *
 *   virtual    root -> ... -> [ entry: nothing, a page, or a table ]
 *
 * Each page maps at the highest level whose page size fits in the range and
 * divides both its physical and its virtual address; under tables that
 * page_table_tables made, at the level of those. Each entry states its
 * fragment: the largest block that holds the entry, lies in a range contiguous
 * in both address spaces, and is naturally aligned in both. Ranges of one map
 * that follow each other in physical memory are one range.
 *
 * Booting: tables, and memory by default, come from the boot pool, which holds
 * what the GPU needs to start. From page_table_booted on they come from the
 * other pools.
 *
 * Flushes: map, tables, unmap, discard, alloc and free flush once, as the last
 * thing they do with the entries, also where they undo what they did. They do
 * not flush where they are refused (INVALID) or before they wrote anything.
 *
 * Errors: 0, or a negative error with the reason in rig_nv_why. INVALID
 * changed nothing. NO_MEMORY: the GPU's memory or the space lacks room;
 * HOST_MEMORY: the host's allocator failed; both changed nothing, but where a
 * function says otherwise, and a map that undid itself has flushed.
 *
 * Threads: one call at a time on one page_table, with a path's lock held or
 * none; the space may be in use by other threads meanwhile. Host memory is
 * allocated by create, and by the calls that need more records than the tables
 * ever had; none of it is released before page_table_destroy, mappings'
 * excepted. No unmap, discard or free allocates.
 */
#include "paths/pci/format.h"
#include "paths/pci/space.h"

struct page_table;

/* Where tables come from, once booted. */
enum page_tables {
  PAGE_TABLES_POOL, /* a pool of memory / 512 bytes after the boot pool, rounded
                     * up to 1 MiB */
  PAGE_TABLES_MAIN  /* the main pool */
};

struct page_range {
  uint64_t at, bytes;
};

/* A size of physical blocks that alloc tries, and its alignment. */
struct page_block {
  uint64_t bytes, align;
};

struct page_table_options {
  uint64_t base;                    /* the first address the tables translate */
  const struct page_format *format; /* copied */
  struct space *space;              /* outlives the tables */
  uint64_t memory, boot;            /* bytes; the boot pool is the first */
  enum page_tables tables;
  const struct page_block *pages; /* largest first; copied */
  size_t npages;
  const struct rig_nv_allocator *allocator; /* NULL: aligned_alloc */
};

/* Makes the tables, booting, with the root in the boot pool. No flush.
 * INVALID: levels that do not rise from 12 to below bits, or widths of more
 * than 12 bits; pa_bits below 12 or past 61; base no multiple of the largest
 * page that a level maps, or base + 2^bits past 2^64; pools that do not fit in
 * the memory, or a boot pool that cannot hold the root; blocks that are not
 * whole 4 KiB pages, or whose alignment is no power of two. HOST_MEMORY. */
int page_table_create(const struct page_table_options *, struct page_table **);

/* Releases the host's records. The GPU's memory is left as it is. */
void page_table_destroy(struct page_table *);

/* Ends booting. */
void page_table_booted(struct page_table *);

struct space *page_table_space(const struct page_table *);
uint64_t page_table_base(const struct page_table *);
uint64_t page_table_span(const struct page_table *);   /* 2^bits */
uint64_t page_table_root(const struct page_table *);   /* physical address */
uint64_t page_table_memory(const struct page_table *); /* bytes, of create */
int page_table_pa_bits(const struct page_table *);
uint64_t page_table_main_pool(const struct page_table *); /* bytes */

/* Bytes that the pools have left, and the tables that there are. */
struct page_table_room {
  uint64_t boot, tables, main, ntables;
};
struct page_table_room page_table_room(const struct page_table *);

/* ---- physical memory ---- */

enum page_pool {
  PAGE_POOL_DEFAULT, /* boot while booting, else main */
  PAGE_POOL_BOOT,
  PAGE_POOL_MAIN
};

struct page_request {
  uint64_t bytes, align; /* align: a power of two */
  bool zero;
  enum page_pool pool;
};

/* n bytes with the defaults: aligned to 4 KiB, zeroed, of the default pool. */
static inline struct page_request page_request(uint64_t n) {
  return (struct page_request){n, UINT64_C(1) << PAGE_LOG2, true,
                               PAGE_POOL_DEFAULT};
}

/* n' new bytes, the request's rounded up to 4 KiB, at *pa. 0 while the pool
 * has a free block of 2 * (n' + align) bytes; it may be NO_MEMORY with a
 * smaller one that would fit. No flush. INVALID: 0 bytes, align no power of
 * two. */
int page_table_palloc(struct page_table *, struct page_request, uint64_t *pa);

/* Frees the block at pa that palloc gave or that a mapping of alloc holds.
 * INVALID: no such block starts there, or a table is there. */
int page_table_pfree(struct page_table *, uint64_t pa);

/* ---- mappings ---- */

struct page_mapping {
  uint64_t va, bytes;
  struct page_range *ranges; /* physical, in virtual order */
  size_t nranges;
  struct page_target target;
  unsigned flags; /* PAGE_UNCACHED, PAGE_SNOOPED */
};

/* Releases what a mapping's record holds of the host's memory. */
void page_mapping_fini(struct page_table *, struct page_mapping *);

/* Maps the physical ranges of the target, in order, from va on, makes the
 * tables it needs, and flushes, whatever the flush returns. m NULL: no record
 * is wanted. NO_MEMORY: no room for a table; HOST_MEMORY: no record of one;
 * what was mapped is unmapped and the tables it made are freed.
 * INVALID: va or an address or length of a range is no multiple of 4 KiB; a
 * range ends past the addresses that the format's entries hold; the addresses
 * are not within span bytes from base; one of them is mapped already; a flag
 * or a GPU that the format does not know. */
int page_table_map(struct page_table *, uint64_t va, struct page_target,
                   const struct page_range *, size_t n, unsigned flags,
                   struct page_mapping *m);

/* The physical addresses of the *n tables from the root down to the one whose
 * entries would map the n bytes from va: the highest whose pages are not
 * larger than that, the leaf for 0 bytes. Makes those that are missing, and
 * flushes. These tables are never freed, so the driver may write the entries
 * that map those bytes itself. Nothing here sees what it writes: map maps over
 * it. NO_MEMORY, HOST_MEMORY: as map, keeping the tables it made.
 * INVALID: a range that map refuses; a page larger than n bytes maps va. */
int page_table_tables(struct page_table *, uint64_t va, uint64_t bytes,
                      uint64_t tables[PAGE_LEVELS], int *n);

/* Unmaps the n bytes from va, frees the tables that become empty, and flushes.
 * The tables are back in their pool before the flush, whatever it returns.
 * *confirmed: the flush was confirmed, and the GPU no longer reaches the
 * memory; on false it may still.
 * INVALID: a range that map refuses; an address of it is not mapped; a page
 * maps addresses on both sides of its bounds. */
int page_table_unmap(struct page_table *, uint64_t va, uint64_t n,
                     bool *confirmed);

/* unmap of whatever the n bytes from va map, none or part of them included. A
 * page that maps addresses on both sides of the bounds is unmapped whole.
 * INVALID: a range that map refuses. */
int page_table_discard(struct page_table *, uint64_t va, uint64_t n,
                       bool *confirmed);

struct page_alloc {
  uint64_t bytes;
  unsigned flags;  /* PAGE_UNCACHED, PAGE_SNOOPED */
  bool contiguous; /* one zeroed block, aligned as the largest block of pages
                    * that it could hold, where the pool has one; else the
                    * largest blocks of pages that the pool has, not zeroed */
  uint64_t below;  /* the memory ends at or below it */
};

/* n bytes with the defaults: not contiguous, anywhere. */
static inline struct page_alloc page_alloc(uint64_t n) {
  return (struct page_alloc){.bytes = n, .below = UINT64_MAX};
}

/* The bytes, rounded up to 4 KiB, of new physical memory of the default pool,
 * mapped at new addresses of the space: *hold is the holder's, *m the mapping,
 * one range a block. The addresses are aligned to the largest power of two
 * that is not above the bytes. The memory is chosen before anything is
 * written, and lies where the format's entries reach.
 * NO_MEMORY: the space or the pool cannot supply it, as space_alloc and palloc
 * bound each request, or a table has no room; HOST_MEMORY; what was taken was
 * given back. INVALID: 0 bytes, a flag that there is not, addresses of the
 * space that the tables do not translate, a lock held after the space's. */
int page_table_alloc(struct page_table *, struct space_holder *,
                     struct page_alloc, struct space_hold *hold,
                     struct page_mapping *m);

/* Unmaps m, which alloc gave with the hold, and flushes. *confirmed: the flush
 * was confirmed, and then the hold is freed, m's record with it, and the
 * physical memory where m is in the GPU's own. On false all three stay: the
 * GPU may still reach the memory.
 * INVALID: what unmap refuses; no hold of the space, or not of m's addresses;
 * a block of m that is not there, or is there twice. */
int page_table_free(struct page_table *, const struct space_hold *,
                    struct page_mapping *m, bool *confirmed);
#endif
