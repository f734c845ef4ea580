/* SPDX-License-Identifier: ISC */
/* Blocks of a range against one owner a unit, kept in an array: no unit given
 * twice or lost, the fit bound, the lowest fit below an address, failing host
 * memory, and the allocator's own invariants after every step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "paths/pci/failing.h"
#include "paths/pci/tlsf.h"
#include "stress/random.h"

enum { UNITS = 4096, STEPS = 20000 };

static uint64_t owner[UNITS]; /* 0: free */
static struct tlsf_block *blocks[UNITS];
static size_t nblocks;
static uint64_t serial;

struct bed {
  struct tlsf t;
  uint64_t base; /* in units */
  unsigned shift;
  size_t units;
  struct failing failing;
  struct random random;
};

static uint64_t longest_free(const struct bed *b) {
  uint64_t longest = 0, run = 0;
  for (size_t i = 0; i < b->units; i++) {
    run = owner[i] == 0 ? run + 1 : 0;
    longest = run > longest ? run : longest;
  }
  return longest;
}

/* The lowest place of n free units at a multiple of align, or UINT64_MAX. */
static uint64_t lowest(const struct bed *b, uint64_t n, uint64_t align) {
  for (uint64_t at = (b->base + align - 1) / align * align;
       at + n <= b->base + b->units; at += align) {
    uint64_t k = 0;
    while (k < n && owner[at - b->base + k] == 0)
      k++;
    if (k == n)
      return at;
  }
  return UINT64_MAX;
}

static void took(struct bed *b, struct tlsf_block *block, uint64_t units,
                 uint64_t align) {
  const uint64_t at = tlsf_address(&b->t, block) >> b->shift;
  assert_int_equal(tlsf_bytes(&b->t, block), units << b->shift);
  assert_true(at % align == 0 && at >= b->base &&
              at + units <= b->base + b->units);
  serial++;
  for (uint64_t k = 0; k < units; k++) {
    assert_int_equal(owner[at - b->base + k], 0);
    owner[at - b->base + k] = serial;
  }
  blocks[nblocks++] = block;
}

static void take(struct bed *b) {
  const uint64_t units = 1 + random_small(&b->random, b->units);
  const uint64_t align = UINT64_C(1) << random_below(&b->random, 9);
  const uint64_t unit = UINT64_C(1) << b->shift;
  const uint64_t bytes = units * unit - random_below(&b->random, unit);
  const bool below = random_one_in(&b->random, 4);
  const uint64_t end = b->base + random_below(&b->random, b->units + 10);
  struct tlsf_block *block = NULL, *from = NULL;
  b->failing.until =
      random_one_in(&b->random, 4) ? (int64_t)random_below(&b->random, 2) : -1;
  const uint64_t failed = b->failing.failed;
  const int r = below ? tlsf_take_below(&b->t, bytes, align << b->shift,
                                        end << b->shift, &from, &block)
                      : tlsf_take(&b->t, bytes, align << b->shift, &block);
  const uint64_t fit = lowest(b, units, align);
  if (r == -RIG_NV_HOST_MEMORY) {
    assert_true(b->failing.failed > failed);
  } else if (below) {
    assert_int_equal(
        r, fit == UINT64_MAX || fit + units > end ? -RIG_NV_NO_MEMORY : 0);
    if (r == 0)
      assert_int_equal(tlsf_address(&b->t, block) >> b->shift, fit);
  } else if (r != 0) {
    assert_int_equal(r, -RIG_NV_NO_MEMORY);
    assert_true(longest_free(b) < 2 * (units + align));
  }
  if (r == 0)
    took(b, block, units, align);
}

static void give(struct bed *b) {
  if (nblocks == 0)
    return;
  const size_t k = random_below(&b->random, nblocks);
  const uint64_t address = tlsf_address(&b->t, blocks[k]);
  const uint64_t at = (address >> b->shift) - b->base;
  assert_ptr_equal(tlsf_find(&b->t, address), blocks[k]);
  if (b->shift > 0)
    assert_null(tlsf_find(&b->t, address + 1));
  for (uint64_t n = blocks[k]->units, i = 0; i < n; i++)
    owner[at + i] = 0;
  tlsf_free(&b->t, blocks[k]);
  assert_null(tlsf_find(&b->t, address));
  blocks[k] = blocks[--nblocks];
}

static const struct {
  uint64_t base, units, bytes_off;
  unsigned shift;
} ranges[] = {
    {0, UNITS, 0, 12},
    {3, 1000, 0, 12},
    {1, 17, 0, 4},
    {UINT64_C(1) << 40, UNITS, 5, 4},
    {(UINT64_C(1) << 57) - 8, UNITS, 0, 4},
    {100, 64, 0, 0},
};

static void test_random(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
    struct bed b = {.base = ranges[k].base,
                    .shift = ranges[k].shift,
                    .units = ranges[k].units,
                    .random = {k}};
    nblocks = 0;
    for (size_t i = 0; i < UNITS; i++)
      owner[i] = 0;
    /* A range that is not whole units loses what is over. */
    const uint64_t off = ranges[k].bytes_off;
    tlsf_init(&b.t, (b.base << b.shift) - off,
              ((uint64_t)b.units << b.shift) + 2 * off, b.shift,
              failing_init(&b.failing));
    assert_int_equal(b.failing.calls, 0); /* lazy */
    for (int i = 0; i < STEPS; i++) {
      random_below(&b.random, 100) < 52 ? take(&b) : give(&b);
      if (i % 16 == 0)
        assert_int_equal(tlsf_check(&b.t), 0);
    }
    while (nblocks != 0)
      give(&b);
    assert_int_equal(tlsf_check(&b.t), 0);
    assert_int_equal(tlsf_free_bytes(&b.t), (uint64_t)b.units << b.shift);
    struct tlsf_block *all;
    b.failing.until = -1;
    assert_int_equal(tlsf_take(&b.t, (uint64_t)b.units << b.shift, 1, &all), 0);
    tlsf_fini(&b.t);
    assert_int_equal(b.failing.live, 0);
  }
}

/* ---- a walk that goes on ---- */

static void test_below_goes_on(void **state) {
  (void)state;
  struct tlsf t;
  struct tlsf_block *from = NULL, *b;
  tlsf_init(&t, 0, 1000 * 4096, 12, NULL);
  for (uint64_t i = 0; i < 500; i++) {
    assert_int_equal(tlsf_take_below(&t, 4096, 8192, 999 * 4096, &from, &b), 0);
    assert_int_equal(tlsf_address(&t, b), i * 8192);
  }
  assert_int_equal(tlsf_take_below(&t, 4096, 8192, 999 * 4096, &from, &b),
                   -RIG_NV_NO_MEMORY);
  assert_int_equal(tlsf_check(&t), 0);
  tlsf_fini(&t);
}

static const struct {
  const char *name;
  uint64_t bytes, align;
} hopeless[] = {
    {"more than there is", 101 * 4096, 4096},
    {"2^64 - 1", UINT64_MAX, 4096},
    {"aligned to 2^63", 4096, UINT64_C(1) << 63},
    {"both", UINT64_MAX, UINT64_C(1) << 63},
};

static void test_hopeless(void **state) {
  (void)state;
  struct tlsf t;
  struct tlsf_block *b = NULL, *from = NULL;
  tlsf_init(&t, 4096, 100 * 4096, 12, NULL);
  for (size_t k = 0; k < sizeof hopeless / sizeof *hopeless; k++) {
    assert_int_equal(tlsf_take(&t, hopeless[k].bytes, hopeless[k].align, &b),
                     -RIG_NV_NO_MEMORY);
    assert_int_equal(tlsf_take_below(&t, hopeless[k].bytes, hopeless[k].align,
                                     UINT64_MAX, &from, &b),
                     -RIG_NV_NO_MEMORY);
  }
  tlsf_fini(&t);
  tlsf_init(&t, 4097, 4095 + 4095, 12, NULL); /* one page less one byte */
  assert_int_equal(tlsf_take(&t, 1, 1, &b), -RIG_NV_NO_MEMORY);
  assert_int_equal(tlsf_take_below(&t, 1, 1, 1 << 20, &from, &b),
                   -RIG_NV_NO_MEMORY);
  tlsf_fini(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_below_goes_on),
      cmocka_unit_test(test_hopeless),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
