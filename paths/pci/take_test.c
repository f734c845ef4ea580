/* SPDX-License-Identifier: ISC */
/* alloc and free: which memory and addresses they choose, what is zeroed, and
 * what an unconfirmed flush keeps. */
#include "paths/pci/bed.h"

static const struct {
  const char *name;
  uint64_t bytes;
  bool contiguous;
  uint64_t below;
  size_t nranges;
  uint64_t align; /* of the first range */
  uint64_t va_align;
  unsigned log2; /* of the page at the first address */
} allocs[] = {
    {"a byte", 1, false, UINT64_MAX, 1, 4 * KIB, 4 * KIB, 12},
    {"5 pages", 20 * KIB, false, UINT64_MAX, 5, 4 * KIB, 16 * KIB, 12},
    {"64 KiB", 64 * KIB, false, UINT64_MAX, 1, 64 * KIB, 64 * KIB, 12},
    {"2 MiB + 64 KiB + 1", 2 * MIB + 64 * KIB + 1, false, UINT64_MAX, 3,
     2 * MIB, 2 * MIB, 21},
    {"contiguous byte", 1, true, UINT64_MAX, 1, 4 * KIB, 4 * KIB, 12},
    {"contiguous 68 KiB", 68 * KIB, true, UINT64_MAX, 1, 64 * KIB, 64 * KIB,
     12},
    {"contiguous 2 MiB + 1", 2 * MIB + 1, true, UINT64_MAX, 1, 2 * MIB, 2 * MIB,
     21},
    {"contiguous below 4 MiB", 2 * MIB, true, 4 * MIB, 1, 2 * MIB, 2 * MIB, 21},
    {"below 4 MiB", 2 * MIB, false, 4 * MIB, 1, 2 * MIB, 2 * MIB, 21},
    {"contiguous below 4 MiB - 1: no large page", 64 * KIB, true, 4 * MIB - 1,
     1, 64 * KIB, 64 * KIB, 12},
    {"no aligned block below", 2 * MIB - 4 * KIB, true,
     BED_MAIN + 2 * MIB - 4 * KIB, 1, 4 * KIB, MIB, 12},
};

static void test_alloc(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof allocs / sizeof *allocs; k++) {
    struct bed b;
    struct space_hold hold;
    struct page_mapping m;
    struct page_alloc a = page_alloc(allocs[k].bytes);
    uint64_t pa, sum = 0;
    bool confirmed = false;
    a.contiguous = allocs[k].contiguous;
    a.below = allocs[k].below;
    a.flags = PAGE_UNCACHED;
    bed_make(&b);
    page_table_booted(b.t);
    const struct bed_state before = bed_state(&b);
    if (page_table_alloc(b.t, &b.holder, a, &hold, &m) != 0)
      fail_msg("%s: %s", allocs[k].name, rig_nv_why());
    const uint64_t n = (allocs[k].bytes + 4095) / 4096 * 4096;
    assert_true(hold.at == m.va && hold.bytes == n && m.bytes == n);
    assert_true(m.flags == PAGE_UNCACHED && m.target.kind == PAGE_GPU);
    assert_int_equal(m.va % allocs[k].va_align, 0);
    if (m.nranges != allocs[k].nranges)
      fail_msg("%s: %zu ranges", allocs[k].name, m.nranges);
    assert_int_equal(m.ranges[0].at % allocs[k].align, 0);
    for (size_t i = 0; i < m.nranges; i++) {
      sum += m.ranges[i].bytes;
      assert_true(m.ranges[i].at + m.ranges[i].bytes <= a.below);
      for (uint64_t at = 0; at < m.ranges[i].bytes; at++)
        assert_int_equal(bed_memory[m.ranges[i].at + at],
                         a.contiguous ? 0 : 0xa5);
    }
    assert_int_equal(sum, n);
    assert_int_equal(bed_walk(&b, m.va, &pa), allocs[k].log2);
    assert_int_equal(pa, m.ranges[0].at);
    assert_int_equal(b.flushes, 1);
    assert_int_equal(page_table_free(b.t, &hold, &m, &confirmed), 0);
    assert_true(confirmed);
    assert_int_equal(b.flushes, 2);
    bed_same(&b, &before, allocs[k].name);
    bed_end(&b);
  }
}

/* The pool has no aligned block, and gives what it has. */
static void test_alloc_fragmented(void **state) {
  (void)state;
  struct bed b;
  struct space_hold hold;
  struct page_mapping m;
  struct page_alloc a = page_alloc(64 * KIB);
  uint64_t pa[1536];
  size_t n = 0;
  bed_make(&b);
  page_table_booted(b.t);
  while (page_table_palloc(b.t, page_request(4096), &pa[n]) == 0)
    n++;
  assert_int_equal(n, page_table_main_pool(b.t) / 4096);
  /* Every second page is free: 4 KiB blocks are all there is. */
  for (size_t i = 0; i < n; i++)
    if (pa[i] / 4096 % 2 == 0)
      assert_int_equal(page_table_pfree(b.t, pa[i]), 0);
  assert_int_equal(page_table_alloc(b.t, &b.holder, a, &hold, &m), 0);
  assert_int_equal(m.nranges, 16);
  page_mapping_fini(b.t, &m);
  a.contiguous = true;
  assert_int_equal(page_table_alloc(b.t, &b.holder, a, &hold, &m),
                   -RIG_NV_NO_MEMORY);
  bed_end(&b);
}

/* An unconfirmed flush keeps memory and hold; what is left goes by hand. */
static void test_free_unconfirmed(void **state) {
  (void)state;
  struct bed b;
  struct space_hold hold;
  struct page_mapping m;
  bool confirmed = true;
  uint64_t pa;
  bed_make(&b);
  page_table_booted(b.t);
  const struct bed_state before = bed_state(&b);
  assert_int_equal(page_table_alloc(b.t, &b.holder, page_alloc(MIB), &hold, &m),
                   0);
  b.confirms = false;
  assert_int_equal(page_table_free(b.t, &hold, &m, &confirmed), 0);
  assert_false(confirmed);
  assert_int_equal(bed_walk(&b, m.va, &pa), 0);
  assert_int_equal(space_held(&b.space, &hold), 0);
  assert_int_equal(page_table_room(b.t).main, before.room.main - MIB);
  assert_int_equal(page_table_room(b.t).ntables, 1);
  for (size_t i = 0; i < m.nranges; i++)
    assert_int_equal(page_table_pfree(b.t, m.ranges[i].at), 0);
  assert_int_equal(space_release(&b.holder), 0);
  page_mapping_fini(b.t, &m);
  bed_same(&b, &before, "unconfirmed");
  bed_end(&b);
}

/* The host's memory, mapped at addresses that a holder took: free gives the
 * addresses back and no physical memory. */
static void test_free_system(void **state) {
  (void)state;
  struct bed b;
  struct space_hold hold;
  struct page_mapping m;
  static const struct page_target sys = {PAGE_SYSTEM, 0};
  bool confirmed = false;
  bed_make(&b);
  page_table_booted(b.t);
  const struct bed_state before = bed_state(&b);
  assert_int_equal(space_alloc(&b.holder, 8192, 4096, &hold), 0);
  const struct page_range range = {BED_MAIN, 8192}; /* of the host's */
  assert_int_equal(
      page_table_map(b.t, hold.at, sys, &range, 1, PAGE_SNOOPED, &m), 0);
  assert_int_equal(page_table_free(b.t, &hold, &m, &confirmed), 0);
  assert_true(confirmed);
  assert_int_equal(space_held(&b.space, &hold), -RIG_NV_INVALID);
  bed_same(&b, &before, "system");
  bed_end(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_alloc),
      cmocka_unit_test(test_alloc_fragmented),
      cmocka_unit_test(test_free_unconfirmed),
      cmocka_unit_test(test_free_system),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
