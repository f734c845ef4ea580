/* SPDX-License-Identifier: ISC */
/* What page tables do where it can be written down: pools, page sizes and
 * fragments entry by entry, tables of the driver, and what unmapping leaves.
 * Random operations are flat.h's. */
#include <stdio.h>

#include "paths/pci/bed.h"

/* ---- pools ---- */

static const struct {
  const char *name;
  uint64_t memory, boot;
  enum page_tables tables;
  uint64_t main_at, main_pool;
} pools[] = {
    {"a pool of 1 MiB", 64 * MIB, MIB, PAGE_TABLES_POOL, 2 * MIB, 62 * MIB},
    {"512 MiB: still 1 MiB", 512 * MIB, MIB, PAGE_TABLES_POOL, 2 * MIB,
     510 * MIB},
    {"a byte more: 512 divides it down", 512 * MIB + 1, MIB, PAGE_TABLES_POOL,
     2 * MIB, 510 * MIB + 1},
    {"512 more: 2 MiB", 512 * MIB + 512, MIB, PAGE_TABLES_POOL, 3 * MIB,
     509 * MIB + 512},
    {"80 GiB", 80 * GIB, 64 * MIB, PAGE_TABLES_POOL, 224 * MIB,
     80 * GIB - 224 * MIB},
    {"the main pool", 64 * MIB, MIB, PAGE_TABLES_MAIN, MIB, 63 * MIB},
    {"odd pools", 64 * MIB + 100, MIB + 50, PAGE_TABLES_MAIN, MIB + 4096,
     63 * MIB + 50},
    {"boot all but the pool", 64 * MIB, 63 * MIB, PAGE_TABLES_POOL, 64 * MIB,
     0},
    {"boot everything", MIB, MIB, PAGE_TABLES_MAIN, MIB, 0},
    {"a root and nothing else", 4096, 4096, PAGE_TABLES_MAIN, 4096, 0},
};

static void test_pools(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof pools / sizeof *pools; k++) {
    struct bed b;
    bed_begin(&b);
    struct page_table_options o = bed_options(&b);
    o.memory = pools[k].memory;
    o.boot = pools[k].boot;
    o.tables = pools[k].tables;
    o.base = 512 * MIB;
    assert_int_equal(page_table_create(&o, &b.t), 0);
    assert_ptr_equal(page_table_space(b.t), &b.space);
    assert_int_equal(page_table_base(b.t), 512 * MIB);
    assert_int_equal(page_table_span(b.t), UINT64_C(1) << 57);
    assert_int_equal(page_table_memory(b.t), pools[k].memory);
    assert_int_equal(page_table_pa_bits(b.t), 52);
    assert_true(page_table_root(b.t) + 4096 <= pools[k].boot);
    assert_int_equal(page_table_root(b.t) % 4096, 0);
    if (page_table_main_pool(b.t) != pools[k].main_pool)
      fail_msg("%s: main pool %llu", pools[k].name,
               (unsigned long long)page_table_main_pool(b.t));
    uint64_t pa = 0;
    struct page_request q = page_request(4096);
    q.zero = false;
    q.pool = PAGE_POOL_MAIN;
    const int r = page_table_palloc(b.t, q, &pa);
    assert_int_equal(r, pools[k].main_pool >= 4096 ? 0 : -RIG_NV_NO_MEMORY);
    if (r == 0)
      assert_true(pa >= pools[k].main_at && pa < pools[k].memory);
    assert_int_equal(b.flushes, 0);
    bed_end(&b);
  }
}

/* Where memory and tables come from, before booted and after. */
static void test_booted(void **state) {
  (void)state;
  static const struct page_range range = {0, 4096};
  static const enum page_tables tables[] = {PAGE_TABLES_POOL, PAGE_TABLES_MAIN};
  for (int k = 0; k < 4; k++) {
    struct bed b;
    struct page_table_room r[4];
    struct space_hold hold;
    struct page_mapping m;
    uint64_t pa;
    const bool booted = k >= 2;
    bed_begin(&b);
    struct page_table_options o = bed_options(&b);
    o.tables = tables[k % 2];
    assert_int_equal(page_table_create(&o, &b.t), 0);
    if (booted)
      page_table_booted(b.t);
    r[0] = page_table_room(b.t);
    assert_int_equal(page_table_map(b.t, 0, bed_gpu, &range, 1, 0, NULL), 0);
    r[1] = page_table_room(b.t);
    const uint64_t made = 5 * 4096;
    const bool main_tables = booted && tables[k % 2] == PAGE_TABLES_MAIN;
    const bool pool = booted && !main_tables;
    assert_int_equal(r[0].boot - r[1].boot, booted ? 0 : made);
    assert_int_equal(r[0].tables - r[1].tables, pool ? made : 0);
    assert_int_equal(r[0].main - r[1].main, main_tables ? made : 0);
    assert_int_equal(page_table_palloc(b.t, page_request(4096), &pa), 0);
    assert_int_equal(pa < BED_BOOT, !booted);
    assert_int_equal(
        page_table_alloc(b.t, &b.holder, page_alloc(4096), &hold, &m), 0);
    assert_int_equal(m.ranges[0].at < BED_BOOT, !booted);
    page_mapping_fini(b.t, &m);
    struct page_request q = page_request(4096);
    q.pool = PAGE_POOL_BOOT;
    assert_int_equal(page_table_palloc(b.t, q, &pa), 0);
    assert_true(pa < BED_BOOT);
    q.pool = PAGE_POOL_MAIN;
    assert_int_equal(page_table_palloc(b.t, q, &pa), 0);
    assert_true(pa >= (k % 2 == 0 ? BED_MAIN : BED_BOOT));
    bed_end(&b);
  }
}

/* ---- entries ---- */

/* A format that writes down what it is asked for: "level.entry=pa/fragment"
 * of pages in order, one text. */
static char log_text[4096];
static uint64_t log_next; /* the pages that a run of text stands for */
static unsigned log_level, log_fragment, log_run;

static void log_end(void) {
  if (log_run != 0) {
    char one[64];
    snprintf(one, sizeof one, "%s%u:%ux/%u", log_text[0] ? " " : "", log_level,
             log_run, log_fragment);
    strncat(log_text, one, sizeof log_text - strlen(log_text) - 1);
  }
  log_run = 0;
}

static void log_page(void *ctx, int level, uint64_t table, unsigned i,
                     uint64_t pa, struct page_target to, unsigned flags,
                     unsigned fragment) {
  (void)ctx, (void)table, (void)i, (void)to, (void)flags;
  if (log_run != 0 && ((unsigned)level != log_level ||
                       fragment != log_fragment || pa != log_next))
    log_end();
  log_level = (unsigned)level;
  log_fragment = fragment;
  log_run++;
  log_next = pa + (UINT64_C(1) << (level == 5 ? 12 : level == 4 ? 21 : 29));
}

/* Pages of one level and fragment that follow each other: "level:count
 * x/fragment". Level 5 is 4 KiB, 4 is 2 MiB, 3 is 512 MiB. */
static const struct {
  const char *name;
  uint64_t va;
  size_t n;
  struct page_range ranges[4];
  const char *pages;
} maps[] = {
    {"nothing", 0, 0, {{0, 0}}, ""},
    {"empty ranges", 0, 2, {{4096, 0}, {8192, 0}}, ""},
    {"a page", 0, 1, {{0, 4 * KIB}}, "5:1x/0"},
    {"two, apart by one", 0, 1, {{4 * KIB, 8 * KIB}}, "5:2x/0"},
    {"two together", 0, 1, {{8 * KIB, 8 * KIB}}, "5:2x/1"},
    {"odd both", 4 * KIB, 1, {{4 * KIB, 16 * KIB}}, "5:1x/0 5:2x/1 5:1x/0"},
    {"seven", 0, 1, {{0, 28 * KIB}}, "5:4x/2 5:2x/1 5:1x/0"},
    {"64 KiB", 64 * KIB, 1, {{64 * KIB, 64 * KIB}}, "5:16x/4"},
    {"2 MiB less a page",
     0,
     1,
     {{0, 2 * MIB - 4 * KIB}},
     "5:256x/8 5:128x/7 5:64x/6 5:32x/5 5:16x/4 5:8x/3 5:4x/2 5:2x/1 5:1x/0"},
    {"2 MiB", 2 * MIB, 1, {{6 * MIB, 2 * MIB}}, "4:1x/9"},
    {"2 MiB, va off", 4 * KIB, 1, {{2 * MIB, 2 * MIB}}, "5:512x/0"},
    {"2 MiB, pa off by 64 KiB", 2 * MIB, 1, {{64 * KIB, 2 * MIB}}, "5:512x/4"},
    {"2 MiB from 64 KiB on",
     64 * KIB,
     1,
     {{64 * KIB, 4 * MIB - 64 * KIB}},
     "5:16x/4 5:32x/5 5:64x/6 5:128x/7 5:256x/8 4:1x/9"},
    {"4 MiB", 0, 1, {{0, 4 * MIB}}, "4:2x/10"},
    {"6 MiB", 0, 1, {{0, 6 * MIB}}, "4:2x/10 4:1x/9"},
    {"in parts that follow", 0, 3, {{0, MIB}, {MIB, 0}, {MIB, MIB}}, "4:1x/9"},
    {"in parts that do not",
     0,
     2,
     {{0, MIB}, {3 * MIB, MIB}},
     "5:256x/8 5:256x/8"},
    {"parts swapped", 0, 2, {{MIB, MIB}, {0, MIB}}, "5:256x/8 5:256x/8"},
    {"512 MiB", 512 * MIB, 1, {{0, 512 * MIB}}, "3:1x/17"},
    {"1 GiB", 0, 1, {{4 * GIB, GIB}}, "3:2x/18"},
    {"1 GiB, pa off by 2 MiB", 0, 1, {{2 * MIB, GIB}}, "4:512x/9"},
    {"512 MiB and both sides",
     510 * MIB,
     1,
     {{510 * MIB, 516 * MIB}},
     "4:1x/9 3:1x/17 4:1x/9"},
};

static void test_pages(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof maps / sizeof *maps; k++) {
    struct bed b;
    bed_begin(&b);
    b.format.set_page = log_page;
    log_text[0] = '\0';
    const struct page_table_options o = bed_options(&b);
    assert_int_equal(page_table_create(&o, &b.t), 0);
    assert_int_equal(page_table_map(b.t, maps[k].va, bed_gpu, maps[k].ranges,
                                    maps[k].n, 0, NULL),
                     0);
    log_end();
    if (strcmp(log_text, maps[k].pages) != 0)
      fail_msg("%s: %s", maps[k].name, log_text);
    assert_int_equal(b.flushes, 1);
    bed_end(&b);
  }
}

/* An MMU whose addresses begin elsewhere: entries are counted from base,
 * pages and fragments are aligned in the addresses themselves. */
static void test_base(void **state) {
  (void)state;
  struct bed b;
  static const struct page_range range = {0, 4 * MIB};
  uint64_t pa;
  bed_begin(&b);
  b.format.set_page = log_page;
  log_text[0] = '\0';
  struct page_table_options o = bed_options(&b);
  o.base = 512 * MIB;
  assert_int_equal(page_table_create(&o, &b.t), 0);
  assert_int_equal(
      page_table_map(b.t, 512 * MIB - 4096, bed_gpu, &range, 1, 0, NULL),
      -RIG_NV_INVALID);
  assert_int_equal(page_table_map(b.t, 512 * MIB, bed_gpu, &range, 1, 0, NULL),
                   0);
  log_end();
  assert_string_equal(log_text, "4:2x/10");
  bed_end(&b);

  bed_begin(&b);
  o = bed_options(&b);
  o.base = 512 * MIB;
  assert_int_equal(page_table_create(&o, &b.t), 0);
  assert_int_equal(page_table_map(b.t, 514 * MIB, bed_gpu, &range, 1, 0, NULL),
                   0);
  assert_int_equal(bed_walk(&b, 2 * MIB, &pa), 21);
  assert_int_equal(bed_walk(&b, 514 * MIB, &pa), 0);
  bed_end(&b);
}

/* ---- tables of the driver ---- */

static const struct {
  uint64_t n;
  int tables;
} sizes[] = {{0, 6},       {4096, 6},      {MIB, 6},       {2 * MIB, 5},
             {3 * MIB, 5}, {511 * MIB, 5}, {512 * MIB, 4}, {64 * GIB, 4}};

static void test_tables(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    struct bed b;
    uint64_t tables[PAGE_LEVELS], again[PAGE_LEVELS];
    int n = 0;
    bed_make(&b);
    assert_int_equal(page_table_tables(b.t, 6 * GIB, sizes[k].n, tables, &n),
                     0);
    assert_int_equal(n, sizes[k].tables);
    assert_int_equal(tables[0], page_table_root(b.t));
    assert_int_equal(page_table_room(b.t).ntables, n);
    assert_int_equal(b.flushes, 1);
    assert_int_equal(page_table_tables(b.t, 6 * GIB, sizes[k].n, again, &n), 0);
    assert_memory_equal(tables, again, (size_t)n * sizeof *tables);
    assert_int_equal(b.flushes, 2);
    /* Never freed. */
    bool confirmed;
    assert_int_equal(
        page_table_discard(b.t, 0, page_table_span(b.t), &confirmed), 0);
    assert_int_equal(page_table_room(b.t).ntables, n);
    bed_end(&b);
  }
}

/* The driver writes an entry of its own into a leaf that tables gave; map maps
 * over it, in that table, and unmap leaves the table there. */
static void test_driver_entries(void **state) {
  (void)state;
  struct bed b;
  static const struct page_range range = {4 * MIB, 2 * MIB};
  uint64_t tables[PAGE_LEVELS], pa;
  int n;
  bool confirmed;
  bed_make(&b);
  assert_int_equal(page_table_tables(b.t, 2 * MIB, 4096, tables, &n), 0);
  b.format.set_page(b.format.ctx, 5, tables[5], 7, 64 * KIB, bed_gpu, 0, 0);
  assert_int_equal(bed_walk(&b, 2 * MIB + 7 * 4096, &pa), 12);
  assert_int_equal(pa, 64 * KIB);
  assert_int_equal(page_table_map(b.t, 2 * MIB, bed_gpu, &range, 1, 0, NULL),
                   0);
  assert_int_equal(page_table_room(b.t).ntables, 6);
  for (uint64_t at = 0; at < 2 * MIB; at += 4096) {
    assert_int_equal(bed_walk(&b, 2 * MIB + at, &pa), 12);
    assert_int_equal(pa, 4 * MIB + at);
  }
  assert_int_equal(page_table_unmap(b.t, 2 * MIB, 2 * MIB, &confirmed), 0);
  assert_int_equal(page_table_room(b.t).ntables, 6);
  assert_int_equal(bed_walk(&b, 2 * MIB + 7 * 4096, &pa), 0);
  bed_end(&b);
}

/* ---- giving back ---- */

/* Tables are in their pool before the flush, whatever it returns. */
static void test_before_flush(void **state) {
  (void)state;
  static const struct page_range range = {0, 4096};
  for (int confirms = 0; confirms < 2; confirms++) {
    struct bed b;
    bool confirmed = !confirms;
    bed_make(&b);
    const struct page_table_room before = page_table_room(b.t);
    assert_int_equal(page_table_map(b.t, 0, bed_gpu, &range, 1, 0, NULL), 0);
    assert_int_equal(b.at_flush.ntables, 6);
    b.confirms = confirms != 0;
    assert_int_equal(page_table_unmap(b.t, 0, 4096, &confirmed), 0);
    assert_int_equal(confirmed, confirms);
    assert_int_equal(b.at_flush.ntables, 1);
    assert_int_equal(b.at_flush.boot, before.boot);
    bed_end(&b);
  }
}

/* A map whose flush is not confirmed is a map. */
static void test_map_unconfirmed(void **state) {
  (void)state;
  struct bed b;
  static const struct page_range range = {0, 4096};
  uint64_t pa;
  bed_make(&b);
  b.confirms = false;
  assert_int_equal(page_table_map(b.t, 0, bed_gpu, &range, 1, 0, NULL), 0);
  assert_int_equal(bed_walk(&b, 0, &pa), 12);
  bed_end(&b);
}

static void test_discard(void **state) {
  (void)state;
  static const struct page_range small = {0, 12 * KIB}, large = {0, 4 * MIB};
  static const struct {
    const char *name;
    uint64_t va, n;
    int small, large; /* 4 KiB pages of the first, 2 MiB ones of the second */
  } rows[] = {
      {"nothing", 0, 0, 3, 2},
      {"what is not there", 64 * KIB, 64 * KIB, 3, 2},
      {"the middle", 4 * KIB, 4 * KIB, 2, 2},
      {"a part of a large one", 5 * MIB, 4 * KIB, 3, 1},
      {"parts of both", 5 * MIB, 2 * MIB, 3, 0},
      {"everything", 0, 64 * MIB, 0, 0},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    struct bed b;
    bool confirmed = false;
    uint64_t pa;
    int found[2] = {0, 0};
    bed_make(&b);
    assert_int_equal(page_table_map(b.t, 0, bed_gpu, &small, 1, 0, NULL), 0);
    assert_int_equal(page_table_map(b.t, 4 * MIB, bed_gpu, &large, 1, 0, NULL),
                     0);
    assert_int_equal(page_table_discard(b.t, rows[k].va, rows[k].n, &confirmed),
                     0);
    assert_true(confirmed);
    assert_int_equal(b.flushes, 3);
    for (uint64_t va = 0; va < 12 * KIB; va += 4 * KIB)
      found[0] += bed_walk(&b, va, &pa) == 12;
    for (uint64_t va = 4 * MIB; va < 8 * MIB; va += 2 * MIB)
      found[1] += bed_walk(&b, va, &pa) == 21;
    if (found[0] != rows[k].small || found[1] != rows[k].large)
      fail_msg("%s: %d and %d", rows[k].name, found[0], found[1]);
    bed_end(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pools),
      cmocka_unit_test(test_booted),
      cmocka_unit_test(test_pages),
      cmocka_unit_test(test_base),
      cmocka_unit_test(test_tables),
      cmocka_unit_test(test_driver_entries),
      cmocka_unit_test(test_before_flush),
      cmocka_unit_test(test_map_unconfirmed),
      cmocka_unit_test(test_discard),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
