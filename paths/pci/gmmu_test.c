/* SPDX-License-Identifier: ISC */
/* Entries of both formats: literal words, every field decoded by the rows of
 * testdata/mmu.tsv through the MMU in software, which refuses any other bit,
 * and the levels as the rows have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/api/rig_nv.h"
#include "paths/pci/gmmu.h"
#include "paths/pci/mmu.h"

enum { BYTES = 64 * 4096, DUAL = 4, LEAF = 5, V2_ROOT = 1, V3_ROOT = 0 };

static _Alignas(4096) unsigned char memory[BYTES];

static void zero(void *ctx, uint64_t pa, uint64_t n) {
  (void)ctx;
  memset(memory + pa, 0, n);
}

static bool flush(void *ctx) { return *(bool *)ctx; }

static bool confirms = true;

static struct gmmu gmmu_of(int version, unsigned flags) {
  memset(memory, 0, sizeof memory);
  return (struct gmmu){.version = (enum gmmu_version)version,
                       .flags = flags,
                       .window = memory,
                       .window_bytes = BYTES,
                       .ctx = &confirms,
                       .zero = zero,
                       .flush = flush};
}

static uint64_t word(uint64_t at) {
  uint64_t x;
  memcpy(&x, memory + at, sizeof x);
  return x;
}

/* ---- literal words ---- */

struct entry_row {
  const char *name;
  int version, level;
  unsigned i;
  bool table;
  uint64_t pa; /* of the page or the table */
  struct page_target target;
  unsigned flags;
  uint64_t low, high; /* high: of a dual entry */
};

static const struct entry_row entries[] = {
    {"v2 root", 2, 1, 3, true, 0x5000, {0}, 0, 0x0000000000000522, 0},
    {"v2 bit 38", 2, 2, 511, true, 0x1ffffff000, {0}, 0, 0x00000001ffffff22, 0},
    {"v2 bit 29", 2, 3, 0, true, 0x123456000, {0}, 0, 0x0000000012345622, 0},
    {"v2 dual", 2, 4, 255, true, 0x7000, {0}, 0, 0x20, 0x0000000000000702},
    {"v2 4K", 2, 5, 0, false, 0x1000, {PAGE_GPU, 0}, 0, 0x0600000000000101, 0},
    {"v2 4K uncached",
     2,
     5,
     9,
     false,
     0x1ffffff000,
     {PAGE_GPU, 0},
     1,
     0x06000001ffffff09,
     0},
    {"v2 4K snooped",
     2,
     5,
     9,
     false,
     0x3fffffffffff000,
     {PAGE_SYSTEM, 0},
     2,
     0x063fffffffffff05,
     0},
    {"v2 4K not snooped",
     2,
     5,
     9,
     false,
     0,
     {PAGE_SYSTEM, 0},
     1,
     0x060000000000000f,
     0},
    {"v2 4K peer",
     2,
     5,
     511,
     false,
     0x1234567000,
     {PAGE_PEER, 7},
     0,
     0x0600000f23456703,
     0},
    {"v2 2M",
     2,
     4,
     1,
     false,
     0x1fffe00000,
     {PAGE_GPU, 0},
     0,
     0x06000001fffe0001,
     0},
    {"v2 512M",
     2,
     3,
     1,
     false,
     0x20000000,
     {PAGE_SYSTEM, 0},
     2,
     0x0600000002000005,
     0},
    {"v3 root", 3, 0, 1, true, 0x5000, {0}, 0, 0x0000000000005012, 0},
    {"v3 bit 47",
     3,
     1,
     511,
     true,
     0xffffffffff000,
     {0},
     0,
     0x000ffffffffff012,
     0},
    {"v3 bit 38", 3, 2, 511, true, 0x123456000, {0}, 0, 0x0000000123456012, 0},
    {"v3 bit 29", 3, 3, 0, true, 0x123456000, {0}, 0, 0x0000000123456012, 0},
    {"v3 dual", 3, 4, 255, true, 0x7000, {0}, 0, 0x10, 0x0000000000007012},
    {"v3 4K", 3, 5, 0, false, 0x1000, {PAGE_GPU, 0}, 0, 0x0000000000001601, 0},
    {"v3 4K uncached",
     3,
     5,
     9,
     false,
     0xffffffffff000,
     {PAGE_GPU, 0},
     1,
     0x000ffffffffff609,
     0},
    {"v3 4K snooped",
     3,
     5,
     9,
     false,
     0xffffffffff000,
     {PAGE_SYSTEM, 0},
     2,
     0x000ffffffffff605,
     0},
    {"v3 4K not snooped",
     3,
     5,
     9,
     false,
     0,
     {PAGE_SYSTEM, 0},
     1,
     0x000000000000060f,
     0},
    {"v3 4K peer",
     3,
     5,
     511,
     false,
     0x1234567000,
     {PAGE_PEER, 5},
     0,
     0xa000001234567603,
     0},
    {"v3 2M",
     3,
     4,
     1,
     false,
     0x1fffe00000,
     {PAGE_GPU, 0},
     0,
     0x0000001fffe00601,
     0},
    {"v3 512M",
     3,
     3,
     1,
     false,
     0x20000000,
     {PAGE_PEER, 0},
     1,
     0x000000002000060b,
     0},
    {"v3 256G",
     3,
     2,
     1,
     false,
     0x4000000000,
     {PAGE_GPU, 0},
     0,
     0x0000004000000601,
     0},
};

static void test_words(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof entries / sizeof *entries; k++) {
    const struct entry_row *e = &entries[k];
    struct gmmu g = gmmu_of(e->version, 0);
    struct page_format f;
    const uint64_t table = 0x3000,
                   at = table + (e->level == DUAL ? 16 : 8) * e->i;
    assert_int_equal(gmmu_format(&g, &f), 0);
    memset(memory, 0xa5, sizeof memory); /* what a driver may have written */
    if (e->table)
      f.set_table(f.ctx, e->level, table, e->i, e->pa);
    else
      f.set_page(f.ctx, e->level, table, e->i, e->pa, e->target, e->flags, 9);
    if (word(at) != e->low ||
        word(at + 8) != (e->level == DUAL ? e->high : 0xa5a5a5a5a5a5a5a5))
      fail_msg("%s: %#lx %#lx", e->name, word(at), word(at + 8));
    assert_int_equal(word(at - 8), 0xa5a5a5a5a5a5a5a5);
    f.clear(f.ctx, e->level, table, e->i);
    if (word(at) != 0 || (e->level == DUAL && word(at + 8) != 0))
      fail_msg("%s: not cleared", e->name);
  }
}

/* ---- levels ---- */

static const struct {
  int version;
  unsigned flags;
  unsigned large; /* bit `level` */
} formats[] = {
    {2, 0, 1 << 4},
    {2, GMMU_PAGE_512M, 1 << 4 | 1 << 3},
    {3, 0, 1 << 4 | 1 << 3},
    {3, GMMU_PAGE_256G, 1 << 4 | 1 << 3 | 1 << 2},
};

static void test_levels(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
    struct gmmu g = gmmu_of(formats[k].version, formats[k].flags);
    struct page_format f;
    struct mmu m;
    assert_int_equal(gmmu_format(&g, &f), 0);
    mmu_init(&m, formats[k].version, formats[k].flags != 0, memory, BYTES);
    assert_int_equal(f.nlevels, m.nlevels);
    assert_int_equal(f.first + f.nlevels - 1, LEAF);
    assert_int_equal(f.bits, m.level[0].msb + 1);
    assert_int_equal(f.pa_bits, m.pte_sys.msb - m.pte_sys.lsb + 1 + m.shift);
    assert_int_equal(f.gpu_bits ? f.gpu_bits : f.pa_bits,
                     m.pte_vid.msb - m.pte_vid.lsb + 1 + m.shift);
    assert_int_equal(f.peers, 1 << (m.pte_peer.msb - m.pte_peer.lsb + 1));
    for (int d = 0; d < m.nlevels; d++) {
      const int up = m.nlevels - 1 - d;
      const bool large = (formats[k].large >> (f.first + d) & 1) != 0;
      assert_int_equal(f.levels[up], m.level[d].lsb);
      assert_int_equal(f.large(f.ctx, f.first + d), large);
      if (up != 0)
        assert_int_equal(m.level[d].holds_pages, large);
      assert_int_equal(m.level[d].dual, f.first + d == DUAL);
    }
  }
}

/* ---- every field, by the rows ---- */

struct walk_row {
  struct page_target target;
  unsigned flags;
  enum mmu_aperture aperture;
};

static const struct walk_row walks[] = {
    {{PAGE_GPU, 0}, 0, MMU_VIDEO},
    {{PAGE_GPU, 0}, PAGE_UNCACHED, MMU_VIDEO},
    {{PAGE_GPU, 0}, PAGE_SNOOPED, MMU_VIDEO},
    {{PAGE_PEER, 0}, 0, MMU_PEER},
    {{PAGE_PEER, 3}, PAGE_UNCACHED, MMU_PEER},
    {{PAGE_PEER, 7}, PAGE_SNOOPED, MMU_PEER},
    {{PAGE_SYSTEM, 0}, 0, MMU_NON_COHERENT},
    {{PAGE_SYSTEM, 0}, PAGE_SNOOPED, MMU_COHERENT},
    {{PAGE_SYSTEM, 0}, PAGE_SNOOPED | PAGE_UNCACHED, MMU_COHERENT},
    {{PAGE_SYSTEM, 0}, PAGE_UNCACHED, MMU_NON_COHERENT},
};

/* Tables from the root to `depth`, each at its depth + 1 pages, and a page
 * there; then the walk. */
static void walk_one(const struct page_format *f, const struct mmu *m,
                     int depth, const struct walk_row *w, bool highest) {
  const uint64_t va =
      UINT64_C(0x00a5b6c7d8e9f000) & ((UINT64_C(1) << f->bits) - 1);
  const int up = f->nlevels - 1 - depth;
  const uint64_t size = UINT64_C(1) << f->levels[up];
  const int bits =
      w->target.kind != PAGE_SYSTEM && f->gpu_bits ? f->gpu_bits : f->pa_bits;
  const uint64_t pa = highest ? (UINT64_C(1) << bits) - size : 0;
  struct mmu_page page;
  memset(memory, 0, sizeof memory);
  for (int d = 0; d <= depth; d++) {
    const struct mmu_level *l = &m->level[d];
    const unsigned i =
        (unsigned)(va >> l->lsb) & ((1u << (l->msb - l->lsb + 1)) - 1);
    const uint64_t table = 4096ull * (unsigned)(d + 1);
    if (d < depth)
      f->set_table(f->ctx, f->first + d, table, i, table + 4096);
    else
      f->set_page(f->ctx, f->first + d, table, i, pa, w->target, w->flags, 0);
  }
  const enum mmu_result r = mmu_walk(m, 4096, va, &page);
  if (r != MMU_MAPPED)
    fail_msg("depth %d: %s", depth, page.wrong != NULL ? page.wrong : "none");
  assert_int_equal(page.pa, pa + (va & (size - 1)));
  assert_int_equal(page.log2, f->levels[up]);
  assert_int_equal(page.aperture, w->aperture);
  assert_int_equal(page.peer, w->target.peer);
  assert_int_equal(page.uncached, (w->flags & PAGE_UNCACHED) != 0);
  assert_false(page.read_only);
  assert_int_equal(page.kind, 6); /* NV_MMU_PTE_KIND_GENERIC_MEMORY */
  assert_int_equal(mmu_walk(m, 4096, va ^ size, &page), MMU_NOTHING);
}

static void test_fields(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
    struct gmmu g = gmmu_of(formats[k].version, formats[k].flags);
    struct page_format f;
    struct mmu m;
    assert_int_equal(gmmu_format(&g, &f), 0);
    mmu_init(&m, formats[k].version, formats[k].flags != 0, memory, BYTES);
    for (int d = 0; d < f.nlevels; d++)
      for (size_t w = 0; w < sizeof walks / sizeof *walks; w++)
        if (d == f.nlevels - 1 || f.large(f.ctx, f.first + d)) {
          walk_one(&f, &m, d, &walks[w], false);
          walk_one(&f, &m, d, &walks[w], true);
        }
  }
}

static void test_passed_on(void **state) {
  (void)state;
  struct gmmu g = gmmu_of(3, 0);
  struct page_format f;
  assert_int_equal(gmmu_format(&g, &f), 0);
  memset(memory, 1, sizeof memory);
  f.zero(f.ctx, 8192, 4096);
  assert_int_equal(word(8192 - 8), 0x0101010101010101);
  assert_int_equal(word(8192), 0);
  assert_int_equal(word(8192 + 4088), 0);
  assert_int_equal(word(8192 + 4096), 0x0101010101010101);
  confirms = false;
  assert_false(f.flush(f.ctx));
  confirms = true;
  assert_true(f.flush(f.ctx));
}

static void test_refused(void **state) {
  (void)state;
  static const struct {
    int version;
    unsigned flags;
  } bad[] = {{1, 0}, {4, 0}, {2, GMMU_PAGE_256G}, {3, GMMU_PAGE_512M}, {3, 4}};
  for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
    struct gmmu g = gmmu_of(bad[k].version, bad[k].flags);
    struct page_format f, before;
    memset(&f, 0x77, sizeof f);
    memset(&before, 0x77, sizeof before);
    assert_int_equal(gmmu_format(&g, &f), -RIG_NV_INVALID);
    assert_memory_equal(&f, &before, sizeof f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_words),   cmocka_unit_test(test_levels),
      cmocka_unit_test(test_fields),  cmocka_unit_test(test_passed_on),
      cmocka_unit_test(test_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
