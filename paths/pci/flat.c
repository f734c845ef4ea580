/* SPDX-License-Identifier: ISC */
#include "paths/pci/flat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE UINT64_C(4096)

void flat_die(const struct flat *f, const char *file, int line,
              const char *what) {
  fprintf(stderr, "%s:%d: op %llu: %s (why: %s)\n", file, line,
          (unsigned long long)f->ops, what, rig_nv_why());
  abort();
}

/* ---- a small format with fragments ----
 *
 *   bit 0 something   1 table   2-3 kind   4-5 peer   6-7 flags
 *   12-51 address     52-57 fragment
 */

static void toy_put(struct flat *f, uint64_t table, unsigned i, uint64_t x) {
  memcpy(f->memory + table + 8ull * i, &x, sizeof x);
}

static void toy_table(void *ctx, int level, uint64_t table, unsigned i,
                      uint64_t child) {
  (void)level;
  toy_put(ctx, table, i, child | 3);
}

static void toy_page(void *ctx, int level, uint64_t table, unsigned i,
                     uint64_t pa, struct page_target to, unsigned flags,
                     unsigned fragment) {
  (void)level;
  toy_put(ctx, table, i,
          pa | (uint64_t)fragment << 52 | flags << 6 | to.peer << 4 |
              (unsigned)to.kind << 2 | 1);
}

static void toy_clear(void *ctx, int level, uint64_t table, unsigned i) {
  (void)level;
  toy_put(ctx, table, i, 0);
}

enum { TOY_FIRST = 7, TOY_LEVELS = 4 };

static bool toy_large(void *ctx, int level) {
  (void)ctx;
  return level == TOY_FIRST + 1 || level == TOY_FIRST + 2;
}

static const struct page_format toy = {.levels = {12, 14, 16, 19},
                                       .nlevels = TOY_LEVELS,
                                       .bits = 22,
                                       .pa_bits = 40,
                                       .gpu_bits = 36,
                                       .peers = 3,
                                       .first = TOY_FIRST,
                                       .set_table = toy_table,
                                       .set_page = toy_page,
                                       .clear = toy_clear,
                                       .large = toy_large};

static bool toy_walk(const struct flat *f, uint64_t va, struct flat_page *p) {
  static const struct {
    unsigned bit, mask;
  } levels[] = {{19, 7}, {16, 7}, {14, 3}, {12, 3}};
  uint64_t table = page_table_root(f->t), x = 0;
  va -= page_table_base(f->t);
  for (int d = 0; d < TOY_LEVELS; d++) {
    memcpy(&x, f->memory + table + 8 * (va >> levels[d].bit & levels[d].mask),
           sizeof x);
    if ((x & 3) != 3) {
      p->log2 = (uint8_t)levels[d].bit;
      break;
    }
    table = x & ~UINT64_C(4095);
  }
  *p = (struct flat_page){
      .pa = (x & ((UINT64_C(1) << 52) - 1) & ~UINT64_C(4095)) +
            (va & ((UINT64_C(1) << p->log2) - 1)),
      .mapped = (x & 1) != 0,
      .kind = x >> 2 & 3,
      .peer = x >> 4 & 3,
      .flags = x >> 6 & 3,
      .log2 = p->log2,
      .fragment = (uint8_t)(x >> 52)};
  return p->mapped;
}

/* ---- what the tables' code asks of the format ---- */

static int depth_of(const struct flat *f, int level) {
  return level - f->format.first;
}

static void stored(struct flat *f) {
  f->stores++;
  f->unflushed++;
}

static void spy_set_table(void *ctx, int level, uint64_t table, unsigned i,
                          uint64_t child) {
  struct flat *f = ctx;
  const int d = depth_of(f, level);
  struct flat_frame *up = &f->frame[table / PAGE],
                    *down = &f->frame[child / PAGE];
  FLAT_CHECK(child % PAGE == 0 && child < f->bytes && up->depth == d);
  FLAT_CHECK(d + 1 < flat_levels(f) && up->child[i] == 0);
  FLAT_CHECK(down->depth == -1 && down->block == 0);
  const bool boot = child < f->boot_end;
  const bool pool = child >= f->boot_end && child < f->main_start;
  FLAT_CHECK(f->booting ? boot
                        : (f->options.tables == PAGE_TABLES_POOL
                               ? pool
                               : child >= f->main_start));
  memset(down->child, 0, sizeof down->child);
  down->depth = (int8_t)(d + 1);
  down->kept = false;
  down->va = up->va + ((uint64_t)i << flat_bit(f, d));
  up->child[i] = (uint16_t)(child / PAGE + 1);
  f->used[child / PAGE] = true;
  f->ntables++;
  /* It was zeroed before it is linked. */
  FLAT_CHECK(flat_zeros(f, child, PAGE));
  stored(f);
  f->inner.set_table(f->inner.ctx, level, table, i, child);
}

static void spy_set_page(void *ctx, int level, uint64_t table, unsigned i,
                         uint64_t pa, struct page_target to, unsigned flags,
                         unsigned fragment) {
  struct flat *f = ctx;
  const int d = depth_of(f, level);
  const unsigned bit = flat_bit(f, d);
  const int bits = to.kind != PAGE_SYSTEM && f->format.gpu_bits
                       ? f->format.gpu_bits
                       : f->format.pa_bits;
  FLAT_CHECK(f->frame[table / PAGE].depth == d);
  FLAT_CHECK(f->frame[table / PAGE].child[i] == 0);
  FLAT_CHECK(d == flat_levels(f) - 1 || flat_large(f, d));
  FLAT_CHECK(pa >> bits == 0 && pa % (UINT64_C(1) << bit) == 0);
  stored(f);
  f->inner.set_page(f->inner.ctx, level, table, i, pa, to, flags, fragment);
}

static void spy_clear(void *ctx, int level, uint64_t table, unsigned i) {
  struct flat *f = ctx;
  struct flat_frame *up = &f->frame[table / PAGE];
  FLAT_CHECK(up->depth == depth_of(f, level));
  if (up->child[i] != 0) {
    struct flat_frame *down = &f->frame[up->child[i] - 1];
    FLAT_CHECK(!down->kept);
    for (int k = 0; k < FLAT_ENTRIES; k++)
      FLAT_CHECK(down->child[k] == 0);
    down->depth = -1;
    f->used[up->child[i] - 1] = false;
    up->child[i] = 0;
    f->ntables--;
  }
  stored(f);
  f->inner.clear(f->inner.ctx, level, table, i);
}

static bool spy_large(void *ctx, int level) {
  struct flat *f = ctx;
  return f->inner.large(f->inner.ctx, level);
}

static void spy_zero(void *ctx, uint64_t pa, uint64_t n) {
  struct flat *f = ctx;
  FLAT_CHECK(pa % PAGE == 0 && n % PAGE == 0 && pa + n <= f->bytes);
  f->zeroes++;
  f->zeroed_at = pa;
  f->zeroed_bytes = n;
  memset(f->memory + pa, 0, n);
}

static bool spy_flush(void *ctx) {
  struct flat *f = ctx;
  f->flushes++;
  f->unflushed = 0;
  return f->confirms;
}

/* ---- geometry ---- */

int flat_levels(const struct flat *f) { return f->format.nlevels; }

unsigned flat_bit(const struct flat *f, int depth) {
  return (unsigned)f->format.levels[f->format.nlevels - 1 - depth];
}

bool flat_large(const struct flat *f, int depth) {
  return f->inner.large(f->inner.ctx, f->format.first + depth);
}

struct flat_page *flat_at(const struct flat *f, uint64_t va) {
  for (size_t k = 0; k < f->nwindows; k++) {
    const struct flat_window *w = &f->window[k];
    if (va - w->va < w->pages * PAGE)
      return &w->page[(va - w->va) / PAGE];
  }
  return NULL;
}

int64_t flat_table(const struct flat *f, int depth, uint64_t va) {
  uint64_t at = page_table_root(f->t) / PAGE;
  for (int d = 0; d < depth; d++) {
    const int above = d == 0 ? f->format.bits : (int)flat_bit(f, d - 1);
    const uint64_t inside =
        (va - page_table_base(f->t)) & ((UINT64_C(1) << above) - 1);
    const uint16_t child = f->frame[at].child[inside >> flat_bit(f, d)];
    if (child == 0)
      return -1;
    at = child - 1u;
  }
  return (int64_t)at;
}

bool flat_zeros(const struct flat *f, uint64_t pa, uint64_t n) {
  const unsigned char *p = f->memory + pa;
  return n == 0 || (*p == 0 && memcmp(p, p + 1, n - 1) == 0);
}

struct flat_span flat_span(const struct flat_window *w, uint64_t va,
                           uint64_t n) {
  const uint64_t end = va + n, w_end = w->va + w->pages * PAGE;
  const uint64_t low = va > w->va ? va : w->va,
                 high = end < w_end ? end : w_end;
  if (low >= high)
    return (struct flat_span){0, 0};
  return (struct flat_span){(low - w->va) / PAGE,
                            (high - w->va + PAGE - 1) / PAGE};
}

uint64_t flat_longest(const struct flat *f, uint64_t first, uint64_t end) {
  uint64_t longest = 0, run = 0;
  for (uint64_t i = first; i < end; i++) {
    run = !f->used[i] ? run + 1 : 0;
    longest = run > longest ? run : longest;
  }
  return longest * PAGE;
}

uint64_t flat_free(const struct flat *f, uint64_t first, uint64_t end) {
  uint64_t n = 0;
  for (uint64_t i = first; i < end; i++)
    n += !f->used[i];
  return n * PAGE;
}

/* ---- judging ---- */

/* As the formats of NVIDIA's MMUs record it. */
static bool gmmu_walk(struct flat *f, uint64_t va, struct flat_page *p) {
  static const uint8_t kinds[] = {PAGE_GPU, PAGE_PEER, PAGE_SYSTEM,
                                  PAGE_SYSTEM};
  struct mmu_page m;
  const enum mmu_result r = mmu_walk(&f->mmu, page_table_root(f->t), va, &m);
  if (r == MMU_MALFORMED)
    flat_die(f, __FILE__, __LINE__, m.wrong);
  if (m.read_only)
    flat_die(f, __FILE__, __LINE__, "a page that is read-only");
  *p = (struct flat_page){.pa = m.pa,
                          .mapped = r == MMU_MAPPED,
                          .kind = kinds[m.aperture],
                          .peer = (uint8_t)m.peer,
                          .log2 = (uint8_t)m.log2};
  p->flags = (m.uncached ? PAGE_UNCACHED : 0) |
             (m.aperture == MMU_COHERENT ? PAGE_SNOOPED : 0);
  return p->mapped;
}

static void check_page(struct flat *f, uint64_t va, const struct flat_page *p) {
  struct flat_page seen = {0};
  const bool is_toy = f->options.format == FLAT_TOY;
  const bool mapped = is_toy ? toy_walk(f, va, &seen) : gmmu_walk(f, va, &seen);
  const unsigned flags =
      is_toy || p->kind == PAGE_SYSTEM ? p->flags : p->flags & PAGE_UNCACHED;
  FLAT_CHECK(mapped == p->mapped);
  if (!mapped)
    return;
  FLAT_CHECK(seen.pa == p->pa);
  FLAT_CHECK(seen.kind == p->kind && seen.peer == p->peer);
  FLAT_CHECK(seen.flags == flags);
  FLAT_CHECK(seen.log2 == p->log2);
  if (is_toy)
    FLAT_CHECK(seen.fragment == p->fragment);
}

void flat_check_range(struct flat *f, uint64_t va, uint64_t n) {
  const uint64_t pages = n / PAGE;
  /* Of long ranges, the ends and some between. */
  const uint64_t step = pages > 2048 ? pages / 512 | 1 : 1;
  for (uint64_t i = 0; i < pages; i += step) {
    const struct flat_page *p = flat_at(f, va + i * PAGE);
    if (p != NULL)
      check_page(f, va + i * PAGE, p);
  }
  if (pages != 0 && flat_at(f, va + (pages - 1) * PAGE) != NULL)
    check_page(f, va + (pages - 1) * PAGE, flat_at(f, va + (pages - 1) * PAGE));
}

/* Whether the table of the frame holds a page of its own level. */
static bool has_page(const struct flat *f, const struct flat_frame *t) {
  const int above =
      t->depth == 0 ? f->format.bits : (int)flat_bit(f, t->depth - 1);
  const uint64_t size = UINT64_C(1) << above;
  for (size_t k = 0; k < f->nwindows; k++) {
    const struct flat_window *w = &f->window[k];
    const struct flat_span x = flat_span(w, t->va, size);
    for (uint64_t i = x.first; i < x.end; i++)
      if (w->page[i].mapped && w->page[i].log2 == flat_bit(f, t->depth))
        return true;
  }
  return false;
}

static void check_table(void *arg, uint64_t pa, int depth, uint64_t va) {
  struct flat *f = arg;
  const struct flat_frame *t = &f->frame[pa / PAGE];
  FLAT_CHECK(t->depth == depth && t->va == va && t->block == 0);
}

static void check_tables(struct flat *f) {
  uint64_t n = 0;
  for (uint64_t i = 0; i < f->bytes / PAGE; i++) {
    const struct flat_frame *t = &f->frame[i];
    bool holds = t->depth == 0 || t->kept;
    if (t->depth == -1)
      continue;
    n++;
    for (int k = 0; !holds && k < FLAT_ENTRIES; k++)
      holds = t->child[k] != 0;
    FLAT_CHECK(holds || has_page(f, t)); /* else it was to be freed */
  }
  FLAT_CHECK(n == f->ntables);
  FLAT_CHECK(page_table_room(f->t).ntables == n);
  if (f->options.format != FLAT_TOY)
    FLAT_CHECK(mmu_tables(&f->mmu, page_table_root(f->t), check_table, f) ==
               (int64_t)n);
}

static void check_room(struct flat *f) {
  const struct page_table_room room = page_table_room(f->t);
  FLAT_CHECK(room.boot == flat_free(f, 0, f->boot_end / PAGE));
  FLAT_CHECK(room.tables ==
             flat_free(f, f->boot_end / PAGE, f->main_start / PAGE));
  FLAT_CHECK(room.main == flat_free(f, f->main_start / PAGE, f->bytes / PAGE));
}

void flat_check(struct flat *f) {
  for (size_t k = 0; k < f->nwindows; k++)
    flat_check_range(f, f->window[k].va, f->window[k].pages * PAGE);
  check_tables(f);
  check_room(f);
}

/* ---- making ---- */

static void add_window(struct flat *f, uint64_t va, uint64_t pages,
                       bool space) {
  struct flat_window *w = &f->window[f->nwindows++];
  *w = (struct flat_window){va, pages, space, calloc(pages, sizeof *w->page)};
  FLAT_CHECK(w->page != NULL);
}

static void make_format(struct flat *f) {
  const enum flat_format which = f->options.format;
  const int version = which == FLAT_V2 ? 2 : 3;
  f->gmmu = (struct gmmu){.version = (enum gmmu_version)version,
                          .flags = which == FLAT_V2 ? GMMU_PAGE_512M : 0,
                          .window = f->memory,
                          .window_bytes = f->bytes,
                          .ctx = f,
                          .zero = spy_zero,
                          .flush = spy_flush};
  if (which == FLAT_TOY) {
    f->inner = toy;
    f->inner.ctx = f;
  } else {
    FLAT_CHECK(gmmu_format(&f->gmmu, &f->inner) == 0);
    static struct mmu known[FLAT_FORMATS]; /* reading the rows takes long */
    if (known[which].version == 0)
      mmu_init(&known[which], version, version == 2, NULL, 0);
    f->mmu = known[which];
    f->mmu.memory = f->memory;
    f->mmu.bytes = f->bytes;
  }
  f->format = f->inner;
  f->format.ctx = f;
  f->format.set_table = spy_set_table;
  f->format.set_page = spy_set_page;
  f->format.clear = spy_clear;
  f->format.large = spy_large;
  f->format.zero = spy_zero;
  f->format.flush = spy_flush;
}

static uint64_t make_windows(struct flat *f) {
  const uint64_t span = UINT64_C(1) << f->format.bits, mib = 1 << 20;
  if (f->options.format == FLAT_TOY) {
    const uint64_t base = f->options.base_high ? 0x7f0000 : 0;
    add_window(f, base, 640, false);
    add_window(f, base + 640 * PAGE, 384, true);
    return base;
  }
  add_window(f, 0, 4 * mib / PAGE, false);
  add_window(f, 1024 * mib, (f->options.no_huge ? 9 : 1025) * mib / PAGE,
             false);
  add_window(f, (UINT64_C(1) << 38) - 3 * mib, 6 * mib / PAGE, false);
  add_window(f, span - 2 * mib, 2 * mib / PAGE, false);
  add_window(f, (UINT64_C(1) << 40), (f->options.no_huge ? 8 : 32) * mib / PAGE,
             true);
  return 0;
}

void flat_init(struct flat *f, struct flat_options o,
               uint64_t (*draw)(void *ctx, uint64_t n), void *draw_ctx) {
  static const struct page_block pages[] = {{1 << 21, 1 << 21},
                                            {1 << 16, 1 << 16}};
  *f = (struct flat){.options = o,
                     .draw = draw,
                     .draw_ctx = draw_ctx,
                     .booting = true,
                     .confirms = true};
  f->bytes = o.memory_pages * PAGE;
  f->boot_end = o.boot_pages * PAGE;
  f->main_start = f->boot_end + (o.tables == PAGE_TABLES_POOL ? 1 << 20 : 0);
  f->memory = calloc(1, f->bytes);
  f->frame = calloc(o.memory_pages, sizeof *f->frame);
  f->used = calloc(o.memory_pages, sizeof *f->used);
  FLAT_CHECK(f->memory != NULL && f->frame != NULL && f->used != NULL);
  memset(f->memory, 0xa5, f->bytes);
  for (uint64_t i = 0; i < o.memory_pages; i++)
    f->frame[i].depth = -1;
  make_format(f);
  const uint64_t base = make_windows(f);
  const struct flat_window *w = &f->window[f->nwindows - 1];
  FLAT_CHECK(space_init(&f->space, w->va, w->pages * PAGE,
                        failing_init(&f->failing)) == 0);
  space_holder_init(&f->holder, &f->space);
  const struct page_table_options options = {.base = base,
                                             .format = &f->format,
                                             .space = &f->space,
                                             .memory = f->bytes,
                                             .boot = f->boot_end,
                                             .tables = o.tables,
                                             .pages = pages,
                                             .npages = 2,
                                             .allocator = &f->failing.hooks};
  FLAT_CHECK(page_table_create(&options, &f->t) == 0);
  FLAT_CHECK(page_table_root(f->t) < f->boot_end && f->zeroes == 1);
  FLAT_CHECK(page_table_main_pool(f->t) == f->bytes - f->main_start);
  f->frame[page_table_root(f->t) / PAGE].depth = 0;
  f->frame[page_table_root(f->t) / PAGE].va = base;
  f->used[page_table_root(f->t) / PAGE] = true;
  f->ntables = 1;
  flat_check(f);
}
