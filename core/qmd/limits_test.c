/* SPDX-License-Identifier: ISC */
/* Launch limits by table, with literal expectations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/api/rig_nv.h"
#include "core/qmd/limits.h"

#define G1 (UINT64_C(1) << 30)
#define TOP (UINT64_C(1) << 40)

static void test_architectures(void **state) {
  (void)state;
  static const struct {
    uint32_t sm_version;
    const char *arch;
    uint8_t sass;
    uint32_t most, config_most, params;
  } cases[] = {
      {0x800, "sm_80", 0x80, 164 * 1024, 42, 0x160},
      {0x806, "sm_86", 0x86, 100 * 1024, 26, 0x160},
      {0x807, "sm_87", 0x87, 164 * 1024, 42, 0x160},
      {0x809, "sm_89", 0x89, 100 * 1024, 26, 0x160},
      {0x890, "sm_89", 0x89, 100 * 1024, 26, 0x160},
      {0x900, "sm_90", 0x90, 228 * 1024, 0x3a, 0x210},
      {0xa00, "sm_100", 0xa0, 228 * 1024, 0x3a, 0x380},
      {0xa04, "sm_120", 0xa4, 100 * 1024, 26, 0x380},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct limits *l = limits_of(cases[i].sm_version);
    assert_non_null(l);
    assert_string_equal(l->arch, cases[i].arch);
    assert_int_equal(l->sass, cases[i].sass);
    assert_int_equal(limits_shared_most(l), cases[i].most);
    assert_int_equal(limits_config_most(l), cases[i].config_most);
    assert_int_equal(l->bank.params, cases[i].params);
  }
  assert_null(limits_of(0x705));
  assert_string_equal(rig_nv_why(), "no launch limits are known for sm_75 (SM "
                                    "version 0x705)");
}

/* Each step holds what exceeds the one below, to its last byte. */
static void test_configs(void **state) {
  (void)state;
  static const struct {
    uint32_t sm_version;
    struct {
      uint32_t kib, code;
    } step[7];
  } cases[] = {
      {0x800, {{32, 9}, {64, 17}, {100, 26}, {132, 34}, {164, 42}}},
      {0x806, {{32, 9}, {64, 17}, {100, 26}}},
      {0x807, {{32, 9}, {64, 17}, {100, 26}, {132, 34}, {164, 42}}},
      {0x809, {{32, 9}, {64, 17}, {100, 26}}},
      {0x900, {{32, 9}, {64, 17}, {100, 26}, {132, 34}, {164, 42}, {228, 58}}},
      {0xa00, {{32, 9}, {64, 17}, {100, 26}, {132, 34}, {164, 42}, {228, 58}}},
      {0xa04, {{32, 9}, {64, 17}, {100, 26}}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct limits *l = limits_of(cases[i].sm_version);
    uint32_t below = 0;
    for (size_t k = 0; cases[i].step[k].kib != 0; k++) {
      const uint32_t bytes = cases[i].step[k].kib * 1024;
      assert_int_equal(limits_config(l, below + 1), cases[i].step[k].code);
      assert_int_equal(limits_config(l, bytes), cases[i].step[k].code);
      below = bytes;
    }
  }
}

static void test_shared(void **state) {
  (void)state;
  static const struct {
    uint32_t sm_version;
    uint64_t declared;
    uint32_t own;
    const char *reason;
  } cases[] = {
      {0x809, 0, 1024, NULL},
      {0x809, 1, 1152, NULL},
      {0x809, 128, 1152, NULL},
      {0x809, 129, 1280, NULL},
      {0x809, 99 * 1024, 100 * 1024, NULL},
      {0x809, 99 * 1024 + 1, 0,
       "101377 bytes of shared memory exceed the 101376 of a block on sm_89"},
      {0x900, 227 * 1024, 228 * 1024, NULL},
      {0x900, 227 * 1024 + 1, 0,
       "232449 bytes of shared memory exceed the 232448 of a block on sm_90"},
      {0xa04, UINT64_MAX, 0,
       "18446744073709551615 bytes of shared memory exceed the 101376 of a "
       "block on sm_120"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint32_t own = 0;
    const int e = limits_shared_own(limits_of(cases[i].sm_version),
                                    cases[i].declared, &own);
    assert_int_equal(e, cases[i].reason == NULL ? 0 : -RIG_NV_INVALID);
    assert_int_equal(own, cases[i].own);
    if (e != 0)
      assert_string_equal(rig_nv_why(), cases[i].reason);
  }
}

static void test_threads(void **state) {
  (void)state;
  static const struct {
    uint32_t registers, threads;
  } cases[] = {
      {0, 1024}, {1, 1024},  {64, 1024}, {65, 896},  {72, 896},  {73, 768},
      {80, 768}, {128, 512}, {129, 384}, {168, 384}, {169, 256}, {255, 256},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(limits_threads(cases[i].registers), cases[i].threads);
  }
}

static void test_sizes(void **state) {
  (void)state;
  static const struct {
    uint32_t grid[3], block[3], threads;
    const char *reason;
  } cases[] = {
      {{1, 1, 1}, {1, 1, 1}, 1024, NULL},
      {{0x7fffffff, 65535, 65535}, {1024, 1, 1}, 1024, NULL},
      {{1, 1, 1}, {1, 1024, 1}, 1024, NULL},
      {{1, 1, 1}, {4, 4, 64}, 1024, NULL},
      {{0x80000000, 1, 1},
       {1, 1, 1},
       1024,
       "a grid of 2147483648 in x is not from 1 to 2147483647"},
      {{1, 65536, 1},
       {1, 1, 1},
       1024,
       "a grid of 65536 in y is not from 1 to 65535"},
      {{1, 1, 65536},
       {1, 1, 1},
       1024,
       "a grid of 65536 in z is not from 1 to 65535"},
      {{0, 1, 1},
       {1, 1, 1},
       1024,
       "a grid of 0 in x is not from 1 to 2147483647"},
      {{1, 1, 1},
       {1025, 1, 1},
       1024,
       "a block of 1025 in x is not from 1 to 1024"},
      {{1, 1, 1}, {1, 0, 1}, 1024, "a block of 0 in y is not from 1 to 1024"},
      {{1, 1, 1}, {1, 1, 65}, 1024, "a block of 65 in z is not from 1 to 64"},
      {{1, 1, 1},
       {32, 33, 1},
       1024,
       "a block of 1056 threads exceeds the 1024 of its kernel"},
      {{1, 1, 1},
       {257, 1, 1},
       256,
       "a block of 257 threads exceeds the 256 of its kernel"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const int e = limits_size(cases[i].grid, cases[i].block, cases[i].threads);
    assert_int_equal(e, cases[i].reason == NULL ? 0 : -RIG_NV_INVALID);
    if (e != 0)
      assert_string_equal(rig_nv_why(), cases[i].reason);
  }
}

static void test_local(void **state) {
  (void)state;
  const uint64_t kib = 1024;
  const struct {
    uint32_t gpcs, tpcs, sms, warps;
    uint64_t need, per_thread, per_tpc, bytes; /* bytes 0: refused */
  } cases[] = {
      /* An RTX 5000 Ada, and an H200. */
      {11, 6, 2, 48, 596, 608, 57 * 32 * kib, 941 * 128 * kib},
      {8, 9, 2, 64, 0x240, 576, 72 * 32 * kib, 1296 * 128 * kib},
      {1, 1, 1, 1, 1, 32, 32 * kib, 128 * kib},
      {1, 1, 1, 1, 0, 0, 0, 0},
      {1, 1, 1, 32, G1 / 2, G1 / 2, TOP / 2, TOP / 2},
      {1, 1, 1, 32, G1, 0, 0, 0},
      {2, 1, 1, 32, G1 / 2, 0, 0, 0},
      {2, 1, 1, 32, G1 / 2 - 32, 0, 0, 0}, /* but for rounding up */
      {2, 1, 1, 32, G1 / 2 - 128, G1 / 2 - 128, TOP / 2 - 128 * kib,
       TOP - 256 * kib},
      {1, 1, 1, 1, TOP - 1, 0, 0, 0},
      {1, 1, 1, 1, UINT64_MAX, 0, 0, 0},
      {UINT32_MAX, UINT32_MAX, 1, 1, 1024, 0, 0, 0},
      {1, 1, UINT32_MAX, UINT32_MAX, 1024, 0, 0, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct rig_nv_gpu g = {.gpcs = cases[i].gpcs,
                                 .tpcs_per_gpc = cases[i].tpcs,
                                 .sms_per_tpc = cases[i].sms,
                                 .warps_per_sm = cases[i].warps};
    struct limits_local n = {0};
    const int e = limits_local(&g, cases[i].need, &n);
    const bool refused = cases[i].bytes == 0 && cases[i].need != 0;
    assert_int_equal(e, refused ? -RIG_NV_INVALID : 0);
    assert_int_equal(n.per_thread, cases[i].per_thread);
    assert_int_equal(n.per_tpc, cases[i].per_tpc);
    assert_int_equal(n.bytes, cases[i].bytes);
    if (refused)
      assert_non_null(strstr(rig_nv_why(), "of local memory a thread take"));
  }
}

static const uint32_t params[] = {0xa0a1a2a3, 0xb0b1b2b3, 0xc0c1c2c3};

/* Words of bank 0 that are not 0. */
struct word {
  uint32_t at, is;
};

static void test_bank(void **state) {
  (void)state;
  static const struct {
    uint32_t sm_version, offset, params, cubin, bytes;
    struct word words[16];
  } cases[] = {
      {0x809,
       0x160,
       12,
       0,
       0x16c,
       {{0x00, 4},
        {0x04, 5},
        {0x08, 6},
        {0x0c, 1},
        {0x10, 2},
        {0x14, 3},
        {0x18, 0x11},
        {0x1c, 0x22},
        {0x20, 0x33},
        {0x24, 0x44},
        {0x28, 0xfffdc0},
        {0x160, 0xa0a1a2a3},
        {0x164, 0xb0b1b2b3},
        {0x168, 0xc0c1c2c3}}},
      {0x809,
       0x160,
       0,
       0,
       0x160,
       {{0x00, 4},
        {0x04, 5},
        {0x08, 6},
        {0x0c, 1},
        {0x10, 2},
        {0x14, 3},
        {0x18, 0x11},
        {0x1c, 0x22},
        {0x20, 0x33},
        {0x24, 0x44},
        {0x28, 0xfffdc0}}},
      {0x900,
       0x210,
       8,
       0x230,
       0x230,
       {{0x00, 4},
        {0x04, 5},
        {0x08, 6},
        {0x0c, 1},
        {0x10, 2},
        {0x14, 3},
        {0x18, 0x11},
        {0x1c, 0x22},
        {0x20, 0x33},
        {0x24, 0x44},
        {0x28, 0xfffdc0},
        {0x210, 0xa0a1a2a3},
        {0x214, 0xb0b1b2b3}}},
      {0x900,
       0x30,
       4,
       0x34,
       0x34,
       {{0x00, 4},
        {0x04, 5},
        {0x08, 6},
        {0x0c, 1},
        {0x10, 2},
        {0x14, 3},
        {0x18, 0x11},
        {0x1c, 0x22},
        {0x20, 0x33},
        {0x24, 0x44},
        {0x28, 0xfffdc0},
        {0x30, 0xa0a1a2a3}}},
      {0xa04,
       0x380,
       4,
       0,
       0x384,
       {{0x360, 4},
        {0x364, 5},
        {0x368, 6},
        {0x370, 1},
        {0x374, 2},
        {0x378, 3},
        {0x2f0, 0x11},
        {0x2f4, 0x22},
        {0x2f8, 0x33},
        {0x2fc, 0x44},
        {0x37c, 0xfffdc0},
        {0x380, 0xa0a1a2a3}}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct limits *l = limits_of(cases[i].sm_version);
    const struct bank b = {.grid = {1, 2, 3},
                           .block = {4, 5, 6},
                           .shared_window = 0x2200000011,
                           .local_window = 0x4400000033,
                           .params = cases[i].params == 0 ? NULL : params,
                           .params_offset = cases[i].offset,
                           .params_bytes = cases[i].params,
                           .bytes = cases[i].cubin};
    uint32_t out[0x400 / 4], want[0x400 / 4], n = 0;
    memset(out, 0x5a, sizeof out);
    memset(want, 0x5a, sizeof want);
    memset(want, 0, cases[i].bytes);
    for (const struct word *w = cases[i].words; w->is != 0; w++)
      want[w->at / 4] = w->is;
    assert_int_equal(bank_bytes(l, &b, &n), 0);
    assert_int_equal(n, cases[i].bytes);
    assert_int_equal(bank_write(l, &b, out), cases[i].bytes);
    assert_memory_equal(out, want, sizeof out);
  }
}

static void test_bank_refused(void **state) {
  (void)state;
  static const struct {
    uint32_t sm_version, offset, params, cubin;
    const char *reason; /* NULL: the most that is let in */
  } cases[] = {
      {0x900, 0x210, 65536 - 0x210, 0, NULL},
      {0x900, 0x210, 65536 - 0x20f, 0,
       "a constant bank 0 of 65537 bytes exceeds 65536"},
      {0x900, 0x210, UINT32_MAX, 0,
       "a constant bank 0 of 4294967823 bytes exceeds 65536"},
      {0x900, 0x210, 0, 65537,
       "a constant bank 0 of 65537 bytes exceeds 65536"},
      {0x900, 0x2f, 4, 0,
       "parameters at 47 of constant bank 0 are not from 48 to 1024"},
      {0xa04, 0x210, 4, 0,
       "parameters at 528 of constant bank 0 are not from 896 to 1024"},
      {0x809, 1024, 4, 0, NULL},
      {0x809, 1025, 4, 0,
       "parameters at 1025 of constant bank 0 are not from 48 to 1024"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct bank b = {.params_offset = cases[i].offset,
                           .params_bytes = cases[i].params,
                           .bytes = cases[i].cubin};
    uint32_t n = 7;
    const int e = bank_bytes(limits_of(cases[i].sm_version), &b, &n);
    if (cases[i].reason == NULL) {
      assert_int_equal(e, 0);
      continue;
    }
    assert_int_equal(e, -RIG_NV_INVALID);
    assert_int_equal(n, 7);
    assert_string_equal(rig_nv_why(), cases[i].reason);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_architectures), cmocka_unit_test(test_configs),
      cmocka_unit_test(test_shared),        cmocka_unit_test(test_threads),
      cmocka_unit_test(test_sizes),         cmocka_unit_test(test_local),
      cmocka_unit_test(test_bank),          cmocka_unit_test(test_bank_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
