/* SPDX-License-Identifier: ISC */
#include "paths/pci/page_table.h"

#include "core/api/why.h"
#include "paths/pci/tree.h"

enum {
  PAGE = 1 << PAGE_LOG2,
  LEAST_PA_BITS = 12,
  MOST_PA_BITS = 61,
  MOST_BITS = 63,
  POOL_SHARE_LOG2 = 9, /* of the memory, for tables */
  POOL_UNIT = 1 << 20
};

/* ---- what create refuses ---- */

static int check_levels(const struct page_format *f) {
  if (f->nlevels < 1 || f->nlevels > PAGE_LEVELS || f->levels[0] != PAGE_LOG2 ||
      f->bits > MOST_BITS)
    return why(RIG_NV_INVALID,
               "%d levels from bit %d, %d bits: not 1 to %d levels from bit %d",
               f->nlevels, f->levels[0], f->bits, (int)PAGE_LEVELS,
               (int)PAGE_LOG2);
  for (int i = 0; i < f->nlevels; i++) {
    const int above = i + 1 < f->nlevels ? f->levels[i + 1] : f->bits;
    if (above <= f->levels[i] || above - f->levels[i] > PAGE_LEVEL_BITS)
      return why(RIG_NV_INVALID,
                 "the level of bit %d ends at bit %d: levels rise by 1 to %d "
                 "bits",
                 f->levels[i], above, (int)PAGE_LEVEL_BITS);
  }
  if (f->pa_bits < LEAST_PA_BITS || f->pa_bits > MOST_PA_BITS)
    return why(RIG_NV_INVALID, "pa_bits %d is not within [%d, %d]", f->pa_bits,
               (int)LEAST_PA_BITS, (int)MOST_PA_BITS);
  if (f->gpu_bits != 0 &&
      (f->gpu_bits < LEAST_PA_BITS || f->gpu_bits > f->pa_bits))
    return why(RIG_NV_INVALID, "gpu_bits %d is not within [%d, pa_bits]",
               f->gpu_bits, (int)LEAST_PA_BITS);
  return 0;
}

static int check_base(const struct page_format *f, uint64_t base) {
  uint64_t largest = PAGE;
  for (int i = 1; i < f->nlevels; i++)
    if (f->large(f->ctx, f->first + f->nlevels - 1 - i))
      largest = UINT64_C(1) << f->levels[i];
  if (base % largest != 0)
    return why(RIG_NV_INVALID,
               "base 0x%llx is no multiple of the largest page, 0x%llx",
               (unsigned long long)base, (unsigned long long)largest);
  if (base > UINT64_MAX - (UINT64_C(1) << f->bits))
    return why(RIG_NV_INVALID, "base 0x%llx and %d bits end past 2^64",
               (unsigned long long)base, f->bits);
  return 0;
}

static uint64_t tables_bytes(const struct page_table_options *o) {
  const uint64_t share = o->memory >> POOL_SHARE_LOG2;
  return o->tables == PAGE_TABLES_POOL
             ? (share + POOL_UNIT - 1) / POOL_UNIT * POOL_UNIT
             : 0;
}

static int check_memory(const struct page_table_options *o) {
  if (o->tables != PAGE_TABLES_POOL && o->tables != PAGE_TABLES_MAIN)
    return why(RIG_NV_INVALID, "tables %d are of no pool", (int)o->tables);
  if (o->memory == UINT64_MAX || o->boot > o->memory ||
      tables_bytes(o) > o->memory - o->boot)
    return why(RIG_NV_INVALID,
               "pools of %llu and %llu bytes do not fit in %llu bytes",
               (unsigned long long)o->boot, (unsigned long long)tables_bytes(o),
               (unsigned long long)o->memory);
  if (o->boot < PAGE)
    return why(RIG_NV_INVALID,
               "a boot pool of %llu bytes cannot hold the root table",
               (unsigned long long)o->boot);
  return 0;
}

static int check_pages(const struct page_table_options *o) {
  for (size_t i = 0; i < o->npages; i++) {
    const struct page_block *b = &o->pages[i];
    if (b->bytes == 0 || b->bytes % PAGE != 0 || b->align == 0 ||
        (b->align & (b->align - 1)) != 0)
      return why(RIG_NV_INVALID,
                 "blocks of %llu bytes aligned to %llu: not whole 4 KiB pages "
                 "at a power of two",
                 (unsigned long long)b->bytes, (unsigned long long)b->align);
  }
  return 0;
}

static int check_options(const struct page_table_options *o) {
  if (o->format == NULL || o->space == NULL)
    return why(RIG_NV_INVALID, "no format or no space");
  int r = check_levels(o->format);
  if (r == 0)
    r = check_base(o->format, o->base);
  if (r == 0)
    r = check_memory(o);
  return r == 0 ? check_pages(o) : r;
}

/* ---- create ---- */

static void set_levels(struct page_table *t) {
  const struct page_format *f = &t->format;
  t->nlevels = f->nlevels;
  for (int d = 0; d < f->nlevels; d++) {
    const int up = f->nlevels - 1 - d; /* its place from the leaf */
    const int above = d == 0 ? f->bits : f->levels[up + 1];
    t->level[d] =
        (struct level){.bit = (unsigned)f->levels[up],
                       .entries = 1u << (above - f->levels[up]),
                       .number = f->first + d,
                       .maps = up == 0 || f->large(f->ctx, f->first + d)};
  }
}

static void set_pools(struct page_table *t,
                      const struct page_table_options *o) {
  t->memory = o->memory;
  t->boot = o->boot;
  t->tables = o->tables;
  t->tables_bytes = tables_bytes(o);
  t->booting = true;
  t->gpu_end = UINT64_C(1) << (t->format.gpu_bits ? t->format.gpu_bits
                                                  : t->format.pa_bits);
  tlsf_init(&t->boot_pool, 0, t->boot, PAGE_LOG2, o->allocator);
  tlsf_init(&t->tables_pool, t->boot, t->tables_bytes, PAGE_LOG2, o->allocator);
  tlsf_init(&t->main_pool, t->boot + t->tables_bytes, page_table_main_pool(t),
            PAGE_LOG2, o->allocator);
}

int page_table_create(const struct page_table_options *o,
                      struct page_table **out) {
  int r = check_options(o);
  if (r != 0)
    return r;
  struct page_table *t = host_alloc(o->allocator, sizeof *t);
  if (t == NULL)
    return why(RIG_NV_HOST_MEMORY, "no host memory for page tables");
  t->format = *o->format;
  t->allocator = o->allocator;
  t->space = o->space;
  t->base = o->base;
  set_levels(t);
  set_pools(t, o);
  t->npages = o->npages;
  t->pages = host_alloc(o->allocator, (o->npages + 1) * sizeof *t->pages);
  r = t->pages != NULL ? tree_root(t)
                       : why(RIG_NV_HOST_MEMORY, "no host memory for sizes");
  if (r != 0) {
    page_table_destroy(t);
    return r;
  }
  for (size_t i = 0; i < o->npages; i++)
    t->pages[i] = o->pages[i];
  *out = t;
  return 0;
}

void page_table_destroy(struct page_table *t) {
  tree_fini(t);
  tlsf_fini(&t->boot_pool);
  tlsf_fini(&t->tables_pool);
  tlsf_fini(&t->main_pool);
  host_release(t->allocator, t->pages, (t->npages + 1) * sizeof *t->pages);
  host_release(t->allocator, t, sizeof *t);
}

void page_table_booted(struct page_table *t) { t->booting = false; }

struct space *page_table_space(const struct page_table *t) { return t->space; }

uint64_t page_table_base(const struct page_table *t) { return t->base; }

uint64_t page_table_span(const struct page_table *t) {
  return UINT64_C(1) << t->format.bits;
}

uint64_t page_table_root(const struct page_table *t) { return t->root->pa; }

uint64_t page_table_memory(const struct page_table *t) { return t->memory; }

int page_table_pa_bits(const struct page_table *t) { return t->format.pa_bits; }

uint64_t page_table_main_pool(const struct page_table *t) {
  return t->memory - t->boot - t->tables_bytes;
}

struct page_table_room page_table_room(const struct page_table *t) {
  return (struct page_table_room){tlsf_free_bytes(&t->boot_pool),
                                  tlsf_free_bytes(&t->tables_pool),
                                  tlsf_free_bytes(&t->main_pool), t->ntables};
}

/* ---- physical memory ---- */

int page_table_palloc(struct page_table *t, struct page_request q,
                      uint64_t *pa) {
  struct tlsf *pool =
      q.pool == PAGE_POOL_DEFAULT && t->booting ? &t->boot_pool : &t->main_pool;
  struct tlsf_block *b;
  if (q.bytes == 0)
    return why(RIG_NV_INVALID, "0 bytes asked for");
  if (q.align == 0 || (q.align & (q.align - 1)) != 0)
    return why(RIG_NV_INVALID, "alignment %llu is no power of two",
               (unsigned long long)q.align);
  if (q.pool == PAGE_POOL_BOOT)
    pool = &t->boot_pool;
  const int r = tlsf_take(pool, q.bytes, q.align, &b);
  if (r != 0)
    return r;
  *pa = tlsf_address(pool, b);
  if (q.zero)
    t->format.zero(t->format.ctx, *pa, tlsf_bytes(pool, b));
  return 0;
}

/* The block of memory, not of a table, that starts at pa; else NULL. */
struct tlsf_block *tree_block(struct page_table *t, uint64_t pa,
                              struct tlsf **pool) {
  struct tlsf *const pools[] = {&t->boot_pool, &t->tables_pool, &t->main_pool};
  struct tlsf_block *b = NULL;
  for (int i = 0; i < 3 && b == NULL; i++) {
    *pool = pools[i];
    b = tlsf_find(pools[i], pa);
  }
  if (b != NULL && b->user == NULL)
    return b;
  (void)why(RIG_NV_INVALID,
            b != NULL ? "a page table is at 0x%llx"
                      : "no block of memory starts at 0x%llx",
            (unsigned long long)pa);
  return NULL;
}

int page_table_pfree(struct page_table *t, uint64_t pa) {
  struct tlsf *pool;
  struct tlsf_block *b = tree_block(t, pa, &pool);
  if (b == NULL)
    return -RIG_NV_INVALID;
  tlsf_free(pool, b);
  return 0;
}
