/* SPDX-License-Identifier: ISC */
/* Every argument that the page tables refuse: INVALID, its cause named, and
 * nothing changed: memory compared byte by byte, room, space, records. */
#include <stdio.h>

#include "paths/pci/bed.h"

/* ---- create ---- */

static bool large_top(void *ctx, int level) {
  (void)ctx;
  return level <= 1;
}

struct create_row {
  const char *name, *why;
  void (*spoil)(struct page_table_options *, struct page_format *);
};

#define SPOIL(name, code)                                                      \
  static void name(struct page_table_options *o, struct page_format *f) {      \
    (void)o, (void)f;                                                          \
    code;                                                                      \
  }

SPOIL(no_levels, f->nlevels = 0)
SPOIL(many_levels, f->nlevels = PAGE_LEVELS + 1)
SPOIL(leaf_13, f->levels[0] = 13)
SPOIL(level_twice, f->levels[2] = 21)
SPOIL(level_falls, f->levels[2] = 20)
SPOIL(level_at_bits, f->bits = 56)
SPOIL(level_past_bits, f->bits = 50)
SPOIL(wide_level, f->levels[5] = 60; f->bits = 61; f->levels[4] = 47)
SPOIL(bits_64, f->levels[5] = 55; f->bits = 64)
SPOIL(pa_11, f->pa_bits = 11)
SPOIL(pa_62, f->pa_bits = 62)
SPOIL(pa_negative, f->pa_bits = -1)
SPOIL(gpu_11, f->gpu_bits = 11)
SPOIL(gpu_past_pa, f->gpu_bits = 53)
SPOIL(base_page, o->base = 4096)
SPOIL(base_half, o->base = 256 * MIB)
SPOIL(base_large_top, f->large = large_top; o->base = 512 * MIB)
SPOIL(base_past, o->base = UINT64_MAX - 512 * MIB + 1)
SPOIL(boot_past, o->boot = BED_BYTES + 1)
SPOIL(no_pool_room, o->boot = BED_BYTES - MIB + 1)
SPOIL(pool_rounded, o->boot = 4096; o->memory = MIB + 4095)
SPOIL(no_boot, o->boot = 0)
SPOIL(small_boot, o->boot = 4095)
SPOIL(no_memory, o->memory = 0)
SPOIL(all_memory, o->memory = UINT64_MAX)
SPOIL(which_tables, o->tables = (enum page_tables)7)
SPOIL(no_format, o->format = NULL)
SPOIL(no_space, o->space = NULL)

static struct page_block bad_blocks[3][1] = {
    {{0, 4096}}, {{4097, 4096}}, {{4096, 3 * 4096}}};
SPOIL(block_0, o->pages = bad_blocks[0]; o->npages = 1)
SPOIL(block_odd, o->pages = bad_blocks[1]; o->npages = 1)
SPOIL(block_align, o->pages = bad_blocks[2]; o->npages = 1)

static const struct create_row creates[] = {
    {"no levels", "levels from bit", no_levels},
    {"too many levels", "levels from bit", many_levels},
    {"leaf at 13", "levels from bit 13", leaf_13},
    {"a level twice", "bit 21 ends at bit 21", level_twice},
    {"a level that falls", "bit 21 ends at bit 20", level_falls},
    {"the last level at bits", "bit 56 ends at bit 56", level_at_bits},
    {"the last level past bits", "bit 56 ends at bit 50", level_past_bits},
    {"a level of 13 bits", "bit 47 ends at bit 60", wide_level},
    {"64 bits", "64 bits", bits_64},
    {"pa_bits 11", "pa_bits 11", pa_11},
    {"pa_bits 62", "pa_bits 62", pa_62},
    {"pa_bits -1", "pa_bits -1", pa_negative},
    {"gpu_bits 11", "gpu_bits 11", gpu_11},
    {"gpu_bits past pa_bits", "gpu_bits 53", gpu_past_pa},
    {"base of a page", "largest page, 0x20000000", base_page},
    {"base of half a large page", "largest page, 0x20000000", base_half},
    {"base below another's largest", "largest page, 0x100000000000000",
     base_large_top},
    {"base that ends past 2^64", "past 2^64", base_past},
    {"boot past memory", "do not fit", boot_past},
    {"no room for the pool", "do not fit", no_pool_room},
    {"no room for the pool rounded", "do not fit", pool_rounded},
    {"no boot", "cannot hold the root", no_boot},
    {"boot of 4095", "cannot hold the root", small_boot},
    {"no memory", "do not fit", no_memory},
    {"2^64 - 1 of memory", "do not fit", all_memory},
    {"tables of no pool", "of no pool", which_tables},
    {"no format", "no format", no_format},
    {"no space", "no space", no_space},
    {"blocks of 0", "blocks of 0", block_0},
    {"blocks of 4097", "blocks of 4097", block_odd},
    {"blocks at 12288", "aligned to 12288", block_align},
};

static void test_create(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof creates / sizeof *creates; k++) {
    struct bed b;
    bed_begin(&b);
    struct page_table *none = (struct page_table *)&b, *t = none;
    struct page_table_options o = bed_options(&b);
    creates[k].spoil(&o, &b.format);
    memcpy(bed_before, bed_memory, sizeof bed_before);
    if (page_table_create(&o, &t) != -RIG_NV_INVALID)
      fail_msg("%s: not refused", creates[k].name);
    if (strstr(rig_nv_why(), creates[k].why) == NULL)
      fail_msg("%s: why: %s", creates[k].name, rig_nv_why());
    assert_ptr_equal(t, none);
    assert_memory_equal(bed_before, bed_memory, sizeof bed_before);
    assert_int_equal(b.flushes, 0);
    assert_int_equal(b.failing.calls, 0);
    bed_end(&b);
  }
}

/* ---- calls ----
 *
 * Before each: [4 MiB, +8 KiB) is mapped by 4 KiB pages, [6 MiB, 8 MiB) by one
 * page, [512 MiB, 1 GiB) by one, and an alloc of 64 KiB lives. */

struct made {
  struct bed b;
  struct space_hold hold;
  struct page_mapping m;
  uint64_t pa; /* a block of palloc */
};

static void make(struct made *x) {
  static const struct page_range small = {64 * MIB, 8 * KIB},
                                 large = {128 * MIB, 2 * MIB},
                                 huge = {0, 512 * MIB};
  struct page_alloc a = page_alloc(64 * KIB);
  bed_make(&x->b);
  page_table_booted(x->b.t);
  struct page_table *t = x->b.t;
  assert_int_equal(page_table_map(t, 4 * MIB, bed_gpu, &small, 1, 0, NULL), 0);
  assert_int_equal(page_table_map(t, 6 * MIB, bed_gpu, &large, 1, 0, NULL), 0);
  assert_int_equal(page_table_map(t, 512 * MIB, bed_gpu, &huge, 1, 0, NULL), 0);
  assert_int_equal(page_table_alloc(t, &x->b.holder, a, &x->hold, &x->m), 0);
  assert_int_equal(page_table_palloc(t, page_request(8 * KIB), &x->pa), 0);
}

#define END (UINT64_C(1) << 57)

static int map_of(struct made *x, uint64_t va, struct page_target to,
                  uint64_t at, uint64_t bytes, unsigned flags) {
  const struct page_range ranges[] = {{0, 4096}, {at, bytes}};
  struct page_mapping m = {.va = 7}, before = m;
  const int r = page_table_map(x->b.t, va, to, ranges, 2, flags, &m);
  assert_memory_equal(&m, &before, sizeof m);
  return r;
}

#define MAP(name, va, to, at, bytes, flags)                                    \
  static int name(struct made *x) {                                            \
    return map_of(x, va, to, at, bytes, flags);                                \
  }
static const struct page_target sys = {PAGE_SYSTEM, 0}, peer = {PAGE_PEER, 7},
                                no_peer = {PAGE_PEER, 8},
                                no_kind = {(enum page_target_kind)3, 0};

MAP(map_va, 4097, bed_gpu, 0, 4096, 0)
MAP(map_at, 0, bed_gpu, 1, 4096, 0)
MAP(map_bytes, 0, bed_gpu, 0, 4095, 0)
MAP(map_past, 0, bed_gpu, (UINT64_C(1) << 52) - 4096, 8192, 0)
MAP(map_past_sys, 0, sys, UINT64_C(1) << 52, 4096, 0)
MAP(map_past_peer, 0, peer, UINT64_C(1) << 60, 4096, 0)
MAP(map_sum, 0, bed_gpu, 0, UINT64_MAX - 4095, 0)
MAP(map_span, END - 4096, bed_gpu, 0, 4096, 0)
MAP(map_outside, END + 4096, bed_gpu, 0, 4096, 0)
MAP(map_wraps, UINT64_MAX - 4095, bed_gpu, 0, 4096, 0)
MAP(map_first, 4 * MIB, bed_gpu, 0, 4096, 0)
MAP(map_second, 4 * MIB - 4096, bed_gpu, 0, 4096, 0)
MAP(map_in_large, 7 * MIB, bed_gpu, 0, 4096, 0)
MAP(map_in_huge, GIB - 4096, bed_gpu, 0, 4096, 0)
MAP(map_over, 0, bed_gpu, 0, 8 * MIB, 0)
MAP(map_peer, 0, no_peer, 0, 4096, 0)
MAP(map_kind, 0, no_kind, 0, 4096, 0)
MAP(map_flags, 0, bed_gpu, 0, 4096, 4)

static int off_call(struct made *x, uint64_t va, uint64_t n,
                    int (*call)(struct page_table *, uint64_t, uint64_t,
                                bool *)) {
  bool confirmed = true;
  const int r = call(x->b.t, va, n, &confirmed);
  assert_true(confirmed);
  return r;
}

#define OFF(name, call, va, n)                                                 \
  static int name(struct made *x) {                                            \
    return off_call(x, va, n, page_table_##call);                              \
  }
OFF(unmap_va, unmap, 4 * MIB + 1, 4096)
OFF(unmap_n, unmap, 4 * MIB, 4095)
OFF(unmap_span, unmap, 4 * MIB, END)
OFF(unmap_outside, unmap, END + 4096, 4096)
OFF(unmap_nothing, unmap, 0, 4096)
OFF(unmap_before, unmap, 4 * MIB - 4096, 8192)
OFF(unmap_after, unmap, 4 * MIB, 12 * KIB)
OFF(unmap_between, unmap, 4 * MIB, 4 * MIB)
OFF(unmap_low_half, unmap, 6 * MIB, MIB)
OFF(unmap_high_half, unmap, 7 * MIB, MIB)
OFF(unmap_huge_part, unmap, 512 * MIB, 2 * MIB)
OFF(unmap_all, unmap, 0, END)
OFF(discard_va, discard, 1, 4096)
OFF(discard_n, discard, 0, 1)
OFF(discard_span, discard, 4096, END)
OFF(discard_outside, discard, END + 4096, 0)

static int tables_of(struct made *x, uint64_t va, uint64_t n) {
  uint64_t tables[PAGE_LEVELS] = {1, 2, 3}, before[PAGE_LEVELS] = {1, 2, 3};
  int count = 77;
  const int r = page_table_tables(x->b.t, va, n, tables, &count);
  assert_int_equal(count, 77);
  assert_memory_equal(tables, before, sizeof tables);
  return r;
}

#define TABLES(name, va, n)                                                    \
  static int name(struct made *x) { return tables_of(x, va, n); }
TABLES(tables_va, 4097, 4096)
TABLES(tables_n, 4096, 1)
TABLES(tables_span, END - 4096, 8192)
TABLES(tables_end, END, 0)
TABLES(tables_large, 7 * MIB, MIB)
TABLES(tables_huge, GIB - 4096, 2 * MIB)
TABLES(tables_none, 4 * MIB, 0)

static int palloc_of(struct made *x, uint64_t n, uint64_t align) {
  struct page_request q = page_request(n);
  uint64_t pa = 5;
  q.align = align;
  const int r = page_table_palloc(x->b.t, q, &pa);
  assert_int_equal(pa, 5);
  return r;
}

#define PALLOC(name, n, align)                                                 \
  static int name(struct made *x) { return palloc_of(x, n, align); }
PALLOC(palloc_0, 0, 4096)
PALLOC(palloc_align_0, 1, 0)
PALLOC(palloc_align_3, 1, 12288)

#define PFREE(name, pa)                                                        \
  static int name(struct made *x) { return page_table_pfree(x->b.t, pa); }
PFREE(pfree_none, BED_BYTES - 4096)
PFREE(pfree_middle, x->pa + 4096)
PFREE(pfree_odd, x->pa + 1)
PFREE(pfree_root, page_table_root(x->b.t))
PFREE(pfree_table, BED_BOOT)
PFREE(pfree_outside, BED_BYTES)
PFREE(pfree_far, UINT64_MAX)

static int alloc_of(struct made *x, struct space_holder *h, uint64_t n,
                    unsigned flags) {
  struct page_alloc a = page_alloc(n);
  struct space_hold hold = {1, 2, 3};
  struct page_mapping m = {.va = 7}, before = m;
  a.flags = flags;
  const int r = page_table_alloc(x->b.t, h, a, &hold, &m);
  assert_memory_equal(&m, &before, sizeof m);
  assert_true(hold.at == 1 && hold.bytes == 2 && hold.serial == 3);
  return r;
}

static int alloc_0(struct made *x) { return alloc_of(x, &x->b.holder, 0, 0); }
static int alloc_flags(struct made *x) {
  return alloc_of(x, &x->b.holder, 4096, 8);
}
static int alloc_holder(struct made *x) {
  struct space other;
  struct space_holder h;
  assert_int_equal(space_init(&other, 0, MIB, NULL), 0);
  space_holder_init(&h, &other);
  const int r = alloc_of(x, &h, 4096, 0);
  space_fini(&other);
  return r;
}

/* free, with the hold or the mapping changed. */
static int free_of(struct made *x, struct space_hold hold,
                   struct page_mapping m) {
  bool confirmed = true;
  const struct page_mapping before = m;
  const int r = page_table_free(x->b.t, &hold, &m, &confirmed);
  assert_memory_equal(&m, &before, sizeof m);
  assert_true(confirmed);
  assert_int_equal(space_held(&x->b.space, &x->hold), 0);
  return r;
}

static int free_stale(struct made *x) {
  struct space_hold hold = x->hold;
  hold.serial++;
  return free_of(x, hold, x->m);
}
static int free_elsewhere(struct made *x) {
  struct page_mapping m = x->m;
  m.va += 4096;
  return free_of(x, x->hold, m);
}
static int free_less(struct made *x) {
  struct page_mapping m = x->m;
  m.bytes -= 4096;
  return free_of(x, x->hold, m);
}
static int free_no_block(struct made *x) {
  struct page_range range = {x->m.ranges[0].at + 4096, 60 * KIB};
  struct page_mapping m = x->m;
  m.ranges = &range;
  return free_of(x, x->hold, m);
}
static int free_part(struct made *x) {
  struct page_range range = {x->m.ranges[0].at, 60 * KIB};
  struct page_mapping m = x->m;
  m.ranges = &range;
  return free_of(x, x->hold, m);
}
static int free_twice(struct made *x) {
  struct page_range ranges[] = {x->m.ranges[0], x->m.ranges[0]};
  struct page_mapping m = x->m;
  m.ranges = ranges;
  m.nranges = 2;
  return free_of(x, x->hold, m);
}
static int free_table(struct made *x) {
  struct page_range range = {BED_BOOT, 4096};
  struct page_mapping m = x->m;
  m.ranges = &range;
  return free_of(x, x->hold, m);
}

static const struct {
  const char *name, *why;
  int (*call)(struct made *);
} calls[] = {
    {"map: va", "not whole 4 KiB pages", map_va},
    {"map: an address", "not whole 4 KiB pages", map_at},
    {"map: a length", "not whole 4 KiB pages", map_bytes},
    {"map: ends past pa_bits", "that entries hold", map_past},
    {"map: begins past pa_bits", "that entries hold", map_past_sys},
    {"map: a peer's past pa_bits", "that entries hold", map_past_peer},
    {"map: 2^64 bytes", "that entries hold", map_sum},
    {"map: past the span", "not within", map_span},
    {"map: outside the span", "not within", map_outside},
    {"map: wraps", "not within", map_wraps},
    {"map: the first is mapped", "0x400000 is mapped already", map_first},
    {"map: the second is", "0x400000 is mapped already", map_second},
    {"map: within a large page", "0x700000 is mapped already", map_in_large},
    {"map: within a huge one", "is mapped already", map_in_huge},
    {"map: around others", "is mapped already", map_over},
    {"map: GPU 8", "GPU 8", map_peer},
    {"map: no memory", "target 3", map_kind},
    {"map: flags", "flags 0x4", map_flags},
    {"unmap: va", "not whole 4 KiB pages", unmap_va},
    {"unmap: n", "not whole 4 KiB pages", unmap_n},
    {"unmap: past the span", "not within", unmap_span},
    {"unmap: outside the span", "not within", unmap_outside},
    {"unmap: nothing there", "not mapped", unmap_nothing},
    {"unmap: not the first", "0x3ff000 is not mapped", unmap_before},
    {"unmap: not the last", "0x402000 is not mapped", unmap_after},
    {"unmap: not those between", "0x402000 is not mapped", unmap_between},
    {"unmap: a page's low half", "only partly", unmap_low_half},
    {"unmap: a page's high half", "only partly", unmap_high_half},
    {"unmap: part of a huge page", "only partly", unmap_huge_part},
    {"unmap: everything", "0x0 is not mapped", unmap_all},
    {"discard: va", "not whole 4 KiB pages", discard_va},
    {"discard: n", "not whole 4 KiB pages", discard_n},
    {"discard: past the span", "not within", discard_span},
    {"discard: outside the span", "not within", discard_outside},
    {"tables: va", "not whole 4 KiB pages", tables_va},
    {"tables: n", "not whole 4 KiB pages", tables_n},
    {"tables: past the span", "not within", tables_span},
    {"tables: at its end", "no table translates", tables_end},
    {"tables: a larger page", "a page of 0x200000 bytes", tables_large},
    {"tables: a huge page", "a page of 0x20000000 bytes", tables_huge},
    {"tables: any page", "a page of 0x1000 bytes", tables_none},
    {"palloc: 0 bytes", "0 bytes", palloc_0},
    {"palloc: align 0", "alignment 0", palloc_align_0},
    {"palloc: align 12288", "alignment 12288", palloc_align_3},
    {"pfree: nothing there", "no block", pfree_none},
    {"pfree: in a block", "no block", pfree_middle},
    {"pfree: no page", "no block", pfree_odd},
    {"pfree: the root", "a page table", pfree_root},
    {"pfree: a table", "a page table", pfree_table},
    {"pfree: past memory", "no block", pfree_outside},
    {"pfree: 2^64 - 1", "no block", pfree_far},
    {"alloc: 0 bytes", "0 bytes", alloc_0},
    {"alloc: flags", "flags 0x8", alloc_flags},
    {"alloc: another space's holder", "another space", alloc_holder},
    {"free: a stale hold", "no hold", free_stale},
    {"free: elsewhere", "not of the mapping", free_elsewhere},
    {"free: less", "not of the mapping", free_less},
    {"free: no block", "no block of memory", free_no_block},
    {"free: part of a block", "are no block", free_part},
    {"free: a block twice", "are no block", free_twice},
    {"free: a table", "a page table", free_table},
};

static void test_calls(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
    struct made x;
    make(&x);
    const struct bed_state before = bed_state(&x.b);
    if (calls[k].call(&x) != -RIG_NV_INVALID)
      fail_msg("%s: not refused", calls[k].name);
    if (strstr(rig_nv_why(), calls[k].why) == NULL)
      fail_msg("%s: why: %s", calls[k].name, rig_nv_why());
    bed_untouched(&x.b, &before, calls[k].name);
    /* The mapping is still one that free takes, its marks off. */
    bool confirmed;
    assert_int_equal(page_table_free(x.b.t, &x.hold, &x.m, &confirmed), 0);
    bed_end(&x.b);
  }
}

/* A space that hands out what the tables do not translate. */
static void test_space_outside(void **state) {
  (void)state;
  struct bed b;
  struct space_hold hold = {1, 2, 3};
  struct page_mapping m;
  bed_begin(&b);
  space_fini(&b.space);
  assert_int_equal(space_init(&b.space, END - 64 * KIB, MIB, &b.failing.hooks),
                   0);
  const struct page_table_options o = bed_options(&b);
  assert_int_equal(page_table_create(&o, &b.t), 0);
  page_table_booted(b.t);
  const struct bed_state before = bed_state(&b);
  struct page_alloc a = page_alloc(128 * KIB);
  a.contiguous = true; /* which zeroes once all is chosen */
  assert_int_equal(page_table_alloc(b.t, &b.holder, a, &hold, &m),
                   -RIG_NV_INVALID);
  bed_untouched(&b, &before, "a space outside");
  assert_int_equal(
      page_table_alloc(b.t, &b.holder, page_alloc(64 * KIB), &hold, &m), 0);
  page_mapping_fini(b.t, &m);
  bed_end(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_create),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_space_outside),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
