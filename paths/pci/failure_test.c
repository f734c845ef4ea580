/* SPDX-License-Identifier: ISC */
/* What a failure leaves: every host allocation failed in turn, tables run out
 * at every count of them, and entries that reach less than the GPU has. */
#include "paths/pci/bed.h"

/* Calls that need host memory and tables, on a bed that has neither spare. */
static int do_map(struct bed *b) {
  static const struct page_range ranges[] = {{0, 2 * MIB}, {4096, 3 * MIB}};
  struct page_mapping m;
  const int r = page_table_map(b->t, GIB - 2 * MIB, bed_gpu, ranges, 2, 0, &m);
  if (r == 0)
    page_mapping_fini(b->t, &m);
  return r;
}

static int do_alloc(struct bed *b) {
  struct space_hold hold;
  struct page_mapping m;
  const int r =
      page_table_alloc(b->t, &b->holder, page_alloc(MIB + 20 * KIB), &hold, &m);
  if (r == 0)
    page_mapping_fini(b->t, &m);
  return r;
}

static int do_contiguous(struct bed *b) {
  struct space_hold hold;
  struct page_mapping m;
  struct page_alloc a = page_alloc(MIB + 20 * KIB);
  a.contiguous = true;
  const int r = page_table_alloc(b->t, &b->holder, a, &hold, &m);
  if (r == 0)
    page_mapping_fini(b->t, &m);
  return r;
}

static int do_palloc(struct bed *b) {
  uint64_t pa;
  return page_table_palloc(b->t, page_request(8192), &pa);
}

static const struct {
  const char *name;
  int (*call)(struct bed *);
} failing[] = {{"map", do_map},
               {"alloc", do_alloc},
               {"contiguous", do_contiguous},
               {"palloc", do_palloc}};

/* Every n-th host allocation fails, until none is left to. */
static void test_host_memory(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof failing / sizeof *failing; k++) {
    int failures = 0;
    for (int64_t nth = 0;; nth++) {
      struct bed b;
      bed_make(&b);
      page_table_booted(b.t);
      const struct bed_state before = bed_state(&b);
      b.failing.until = nth;
      const int r = failing[k].call(&b);
      b.failing.until = -1;
      if (r == 0 && b.failing.failed == 0) {
        bed_end(&b);
        break;
      }
      if (r != 0) {
        assert_int_equal(r, -RIG_NV_HOST_MEMORY);
        bed_same(&b, &before, failing[k].name);
        failures++;
        assert_int_equal(failing[k].call(&b), 0); /* there is enough now */
      }
      bed_end(&b);
    }
    assert_true(failures > 0);
  }
}

/* Tables run out after each count of them. */
static void test_no_tables(void **state) {
  (void)state;
  for (size_t k = 0; k < 3; k++) {
    int failures = 0;
    for (unsigned left = 0;; left++) {
      struct bed b;
      uint64_t tables[PAGE_LEVELS], va = UINT64_C(1) << 50;
      int n;
      bed_make(&b);
      page_table_booted(b.t);
      while (page_table_room(b.t).tables > left * 4096) {
        const int r = page_table_tables(b.t, va, 4096, tables, &n);
        va += page_table_room(b.t).tables < (left + 6) * 4096 ? 2 * MIB
                                                              : 512 * MIB;
        if (r != 0)
          break;
      }
      assert_int_equal(page_table_room(b.t).tables, left * 4096);
      const struct bed_state before = bed_state(&b);
      const unsigned flushes = b.flushes;
      const int r = failing[k].call(&b);
      if (r == 0) {
        bed_end(&b);
        break;
      }
      assert_int_equal(r, -RIG_NV_NO_MEMORY);
      assert_int_equal(b.flushes, flushes + 1);
      bed_same(&b, &before, failing[k].name);
      failures++;
      bed_end(&b);
    }
    assert_true(failures > 2);
  }
}

/* tables keeps what it made where it fails. */
static void test_tables_kept(void **state) {
  (void)state;
  struct bed b;
  uint64_t tables[PAGE_LEVELS];
  int n = 77;
  bed_make(&b);
  page_table_booted(b.t);
  const uint64_t before = page_table_room(b.t).ntables;
  b.failing.until = 2 * 3; /* a record and its entries each, and blocks' */
  const int r = page_table_tables(b.t, 0, 4096, tables, &n);
  b.failing.until = -1;
  assert_int_equal(r, -RIG_NV_HOST_MEMORY);
  assert_int_equal(n, 77);
  assert_int_equal(b.flushes, 1);
  const uint64_t made = page_table_room(b.t).ntables;
  assert_true(made > before);
  bool confirmed;
  assert_int_equal(page_table_discard(b.t, 0, 2 * MIB, &confirmed), 0);
  assert_int_equal(page_table_room(b.t).ntables, made);
  assert_int_equal(page_table_tables(b.t, 0, 4096, tables, &n), 0);
  assert_int_equal(n, 6);
  bed_end(&b);
}

/* create gives back what it took. */
static void test_create_fails(void **state) {
  (void)state;
  int failures = 0;
  for (int64_t nth = 0;; nth++) {
    struct bed b;
    bed_begin(&b);
    const struct page_table_options o = bed_options(&b);
    b.failing.until = nth;
    const int r = page_table_create(&o, &b.t);
    b.failing.until = -1;
    if (r != 0) {
      assert_int_equal(r, -RIG_NV_HOST_MEMORY);
      assert_null(b.t);
      assert_int_equal(b.failing.live, 0);
      failures++;
    }
    bed_end(&b);
    if (r == 0)
      break;
  }
  assert_true(failures >= 4);
}

/* An MMU that reaches less than the GPU has: tables and allocs stay below. */
static void test_reach(void **state) {
  (void)state;
  struct bed b;
  struct page_mapping m;
  struct space_hold hold;
  bed_begin(&b);
  b.format.pa_bits = 40;
  b.format.gpu_bits = 22; /* 4 MiB */
  const struct page_table_options o = bed_options(&b);
  assert_int_equal(page_table_create(&o, &b.t), 0);
  page_table_booted(b.t);
  assert_int_equal(page_table_pa_bits(b.t), 40);
  int n = 0;
  while (page_table_alloc(b.t, &b.holder, page_alloc(256 * KIB), &hold, &m) ==
         0) {
    for (size_t i = 0; i < m.nranges; i++)
      assert_true(m.ranges[i].at + m.ranges[i].bytes <= 4 * MIB);
    page_mapping_fini(b.t, &m);
    n++;
  }
  assert_int_equal(n, 8); /* [2, 4) MiB of the main pool */
  const struct page_range gpu = {4 * MIB, 4096}, sys = {GIB, 4096};
  assert_int_equal(page_table_map(b.t, 0, bed_gpu, &gpu, 1, 0, NULL),
                   -RIG_NV_INVALID);
  assert_int_equal(page_table_map(b.t, 0, (struct page_target){PAGE_SYSTEM, 0},
                                  &sys, 1, 0, NULL),
                   0);
  bed_end(&b);
}

/* The same for tables: with all of the reach taken there is no room for one,
 * however much lies beyond. */
static void test_tables_reach(void **state) {
  (void)state;
  struct bed b;
  static const struct page_range range = {0, 4096};
  static uint64_t pa[BED_BYTES / 4096];
  struct page_request q = page_request(4096);
  size_t n = 0;
  bed_begin(&b);
  b.format.pa_bits = 40;
  b.format.gpu_bits = 22; /* 4 MiB */
  struct page_table_options o = bed_options(&b);
  o.tables = PAGE_TABLES_MAIN;
  assert_int_equal(page_table_create(&o, &b.t), 0);
  page_table_booted(b.t);
  q.zero = false;
  while (page_table_palloc(b.t, q, &pa[n]) == 0)
    n++;
  for (size_t i = 0; i < n; i++)
    if (pa[i] >= 4 * MIB)
      assert_int_equal(page_table_pfree(b.t, pa[i]), 0);
  assert_int_equal(page_table_room(b.t).main, 4 * MIB);
  assert_int_equal(page_table_map(b.t, 0, bed_gpu, &range, 1, 0, NULL),
                   -RIG_NV_NO_MEMORY);
  for (size_t i = 0; i < n; i++)
    if (pa[i] < 4 * MIB)
      assert_int_equal(page_table_pfree(b.t, pa[i]), 0);
  uint64_t tables[PAGE_LEVELS];
  int count;
  assert_int_equal(page_table_map(b.t, 0, bed_gpu, &range, 1, 0, NULL), 0);
  assert_int_equal(page_table_tables(b.t, 0, 4096, tables, &count), 0);
  for (int d = 0; d < count; d++)
    assert_true(tables[d] + 4096 <= 4 * MIB);
  bed_end(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_host_memory), cmocka_unit_test(test_no_tables),
      cmocka_unit_test(test_tables_kept), cmocka_unit_test(test_create_fails),
      cmocka_unit_test(test_reach),       cmocka_unit_test(test_tables_reach),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
