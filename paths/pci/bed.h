/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_BED_H
#define PATHS_PCI_BED_H
/*
 * bed: page tables of version 3 in 8 MiB of memory, for tests. One at a time.
 *
 *   0     boot, 1 MiB   tables' pool, 1 MiB   main, 6 MiB
 *   space [1 TiB, 1 TiB + 256 MiB)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paths/pci/failing.h"
#include "paths/pci/gmmu.h"
#include "paths/pci/mmu.h"
#include "paths/pci/page_table.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define PAGE (4 * KIB)
#define BED_SPACE (1024 * GIB)

enum { BED_BYTES = 8 << 20, BED_BOOT = 1 << 20, BED_MAIN = 2 << 20 };

struct bed {
  struct gmmu gmmu;
  struct page_format format;
  struct mmu mmu;
  struct space space;
  struct space_holder holder;
  struct failing failing;
  struct page_table *t;
  bool confirms;
  unsigned flushes;
  struct page_table_room at_flush;
};

static _Alignas(4096) unsigned char bed_memory[BED_BYTES];
static _Alignas(4096) unsigned char bed_before[BED_BYTES];
static const struct page_target bed_gpu = {PAGE_GPU, 0};
static const struct page_block bed_pages[] = {{2 * MIB, 2 * MIB},
                                              {64 * KIB, 64 * KIB}};

static inline void bed_zero(void *ctx, uint64_t pa, uint64_t n) {
  (void)ctx;
  memset(bed_memory + pa, 0, n);
}

static inline bool bed_flush(void *ctx) {
  struct bed *b = ctx;
  b->flushes++;
  if (b->t != NULL)
    b->at_flush = page_table_room(b->t);
  return b->confirms;
}

static inline struct page_table_options bed_options(struct bed *b) {
  return (struct page_table_options){.format = &b->format,
                                     .space = &b->space,
                                     .memory = BED_BYTES,
                                     .boot = BED_BOOT,
                                     .tables = PAGE_TABLES_POOL,
                                     .pages = bed_pages,
                                     .npages = 2,
                                     .allocator = &b->failing.hooks};
}

/* All but the tables. */
static inline void bed_begin(struct bed *b) {
  memset(bed_memory, 0xa5, sizeof bed_memory);
  *b = (struct bed){.confirms = true};
  b->gmmu = (struct gmmu){.version = GMMU_V3,
                          .window = bed_memory,
                          .window_bytes = BED_BYTES,
                          .ctx = b,
                          .zero = bed_zero,
                          .flush = bed_flush};
  assert_int_equal(gmmu_format(&b->gmmu, &b->format), 0);
  mmu_init(&b->mmu, 3, false, bed_memory, BED_BYTES);
  assert_int_equal(
      space_init(&b->space, BED_SPACE, 256 * MIB, failing_init(&b->failing)),
      0);
  space_holder_init(&b->holder, &b->space);
}

static inline void bed_end(struct bed *b) {
  if (b->t != NULL)
    page_table_destroy(b->t);
  space_fini(&b->space);
  assert_int_equal(b->failing.live, 0);
}

static inline void bed_make(struct bed *b) {
  bed_begin(b);
  const struct page_table_options o = bed_options(b);
  assert_int_equal(page_table_create(&o, &b->t), 0);
}

/* log2 of the page that maps va, its physical address in *pa; 0 none. */
static inline unsigned bed_walk(const struct bed *b, uint64_t va,
                                uint64_t *pa) {
  struct mmu_page p;
  const enum mmu_result r = mmu_walk(&b->mmu, page_table_root(b->t), va, &p);
  if (r == MMU_MALFORMED)
    fail_msg("0x%llx: %s", (unsigned long long)va, p.wrong);
  *pa = p.pa;
  return r == MMU_MAPPED ? p.log2 : 0;
}

/* What a refusal leaves alone. */
struct bed_state {
  struct page_table_room room;
  uint64_t unheld;
  unsigned flushes;
};

static inline struct bed_state bed_state(struct bed *b) {
  struct bed_state s = {page_table_room(b->t), 0, b->flushes};
  assert_int_equal(space_unheld(&b->space, &s.unheld), 0);
  memcpy(bed_before, bed_memory, sizeof bed_before);
  return s;
}

/* Whether nothing changed: room, space and, of the tables, every entry. */
static inline void bed_same(struct bed *b, const struct bed_state *s,
                            const char *name) {
  const struct bed_state now = {page_table_room(b->t), 0, b->flushes};
  uint64_t unheld;
  assert_int_equal(space_unheld(&b->space, &unheld), 0);
  if (now.room.boot != s->room.boot || now.room.tables != s->room.tables ||
      now.room.main != s->room.main || now.room.ntables != s->room.ntables ||
      unheld != s->unheld)
    fail_msg("%s: room changed", name);
}

static inline void bed_untouched(struct bed *b, const struct bed_state *s,
                                 const char *name) {
  bed_same(b, s, name);
  if (b->flushes != s->flushes)
    fail_msg("%s: flushed", name);
  if (memcmp(bed_before, bed_memory, sizeof bed_before) != 0)
    fail_msg("%s: memory changed", name);
}
#endif
