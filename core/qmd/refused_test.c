/* SPDX-License-Identifier: ISC */
/* Which GPU runs which version, and each function and launch that a version
 * cannot hold, with its reason; and those just inside, which pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/api/rig_nv.h"
#include "core/qmd/qmd.h"

static void test_versions(void **state) {
  (void)state;
  static const struct {
    uint32_t sm_version;
    int is; /* 0: refused */
    const char *reason;
  } cases[] = {
      {0x806, QMD_V3, NULL},
      {0x807, QMD_V3, NULL},
      {0x809, QMD_V3, NULL},
      {0x900, QMD_V4, NULL},
      {0xa00, QMD_V5, NULL},
      {0xa04, QMD_V5, NULL},
      {0x800, 0, "no launch descriptor is known to run on sm_80"},
      {0x705, 0, "no launch limits are known for sm_75 (SM version 0x705)"},
      {0xa03, 0, "no launch limits are known for sm_103 (SM version 0xa03)"},
      {0, 0, "no launch limits are known for sm_00 (SM version 0)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    enum qmd_version v = (enum qmd_version)0;
    const int e = qmd_version_of(cases[i].sm_version, &v);
    assert_int_equal(e, cases[i].is == 0 ? -RIG_NV_INVALID : 0);
    assert_int_equal((int)v, cases[i].is);
    if (e != 0)
      assert_string_equal(rig_nv_why(), cases[i].reason);
  }
  assert_int_equal(qmd_bytes(QMD_V3), 256);
  assert_int_equal(qmd_bytes(QMD_V4), 384);
  assert_int_equal(qmd_bytes(QMD_V5), 384);
}

#define MIB (1u << 20)

static const struct {
  uint32_t sm_version;
  struct qmd_function fn;
  const char *reason; /* NULL: the most that is let in */
} functions[] = {
    {0x809, {.shared = 1024, .registers = 255}, NULL},
    {0x809, {.shared = 1024, .registers = 256}, "256 registers exceed 255"},
    {0x900, {.shared = 1024, .barriers = 17}, "17 barriers exceed 16"},
    {0x809, {.shared = 100 * 1024}, NULL},
    {0x809,
     {.shared = 100 * 1024 + 128},
     "102528 bytes of shared memory exceed 102400"},
    {0x900, {.shared = 228 * 1024}, NULL},
    {0x900,
     {.shared = 228 * 1024 + 128},
     "233600 bytes of shared memory exceed 233472"},
    {0x900,
     {.shared = 896},
     "896 bytes of shared memory lack the reserved 1024 or are no multiple of "
     "128"},
    {0x900,
     {.shared = 1025},
     "1025 bytes of shared memory lack the reserved 1024 or are no multiple of "
     "128"},
    {0x900, {.shared = 1024, .local = 16 * MIB - 16}, NULL},
    {0x900,
     {.shared = 1024, .local = 16 * MIB},
     "16777216 bytes of local memory exceed 16777215"},
    {0x809, {.shared = 1024, .local = 16 * MIB - 16}, NULL},
    {0x809,
     {.shared = 1024, .local = 16 * MIB},
     "16777216 bytes of local memory exceed 16777215"},
    {0xa04, {.shared = 1024, .local = MIB - 16}, NULL},
    {0xa04,
     {.shared = 1024, .local = MIB},
     "1048576 bytes of local memory exceed 1048560"},
    {0x809,
     {.shared = 1024, .local = 8},
     "8 bytes of local memory are no multiple of 16"},
    {0x900, {.shared = 1024, .code = (UINT64_C(1) << 57) - 128}, NULL},
    {0x900,
     {.shared = 1024, .code = UINT64_C(1) << 57},
     "the code at 0x200000000000000 is not below 2^57"},
    {0xa04,
     {.shared = 1024, .code = UINT64_C(1) << 57},
     "the code at 0x200000000000000 is not below 2^57"},
    {0x809,
     {.shared = 1024, .code = UINT64_C(1) << 49},
     "the code at 0x2000000000000 is not below 2^49"},
    {0x809,
     {.shared = 1024, .code = 64},
     "the code at 0x40 is not 128-byte aligned"},
    {0x809,
     {.shared = 1024, .bank0_bytes = 65537},
     "65537 bytes of constant bank 0 exceed 65536"},
    {0x809,
     {.shared = 1024, .bank[7] = {0, 65537}},
     "65537 bytes of a constant bank exceed 65536"},
    {0xa00,
     {.shared = 1024, .bank[1] = {32, 1}},
     "the constant bank at 0x20 is not 64-byte aligned"},
    {0x809,
     {.shared = 1024, .bank[2] = {UINT64_C(1) << 49, 1}},
     "the constant bank at 0x2000000000000 is not below 2^49"},
    {0x809, {.shared = 1024, .bank[2] = {UINT64_C(1) << 49, 0}}, NULL},
};

static void test_functions(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
    struct qmd_function fn = functions[i].fn;
    enum qmd_version v;
    assert_int_equal(qmd_version_of(functions[i].sm_version, &v), 0);
    fn.limits = limits_of(functions[i].sm_version);
    const int e = qmd_check_function(v, &fn);
    if (functions[i].reason == NULL) {
      assert_int_equal(e, 0);
      continue;
    }
    assert_int_equal(e, -RIG_NV_INVALID);
    assert_string_equal(rig_nv_why(), functions[i].reason);
  }
}

#define TOP (UINT64_C(1) << 40)
#define SIZE .grid = {1, 1, 1}, .block = {1, 1, 1}

/* Launches of a function with 128 registers and 2 KiB of its own on sm_89. */
static const struct {
  struct qmd_args args;
  const char *reason;
} args[] = {
    {{.grid = {1, 1, 1}, .block = {512, 1, 1}}, NULL},
    {{.grid = {1, 1, 1}, .block = {513, 1, 1}},
     "a block of 513 threads exceeds the 512 of its kernel"},
    {{.grid = {1, 0, 1}, .block = {1, 1, 1}},
     "a grid of 0 in y is not from 1 to 65535"},
    {{SIZE, .dynamic_shared = 98 * 1024}, NULL},
    {{SIZE, .dynamic_shared = 98 * 1024 + 1},
     "100353 bytes of dynamic shared memory exceed 100352"},
    {{SIZE, .bank0 = 32}, "the constant bank 0 at 0x20 is not 64-byte aligned"},
    {{SIZE, .bank0 = TOP},
     "the constant bank 0 at 0x10000000000 is not below 2^40"},
    {{SIZE, .next = 128},
     "the next descriptor at 0x80 is not 256-byte "
     "aligned"},
    {{SIZE, .next = TOP},
     "the next descriptor at 0x10000000000 is not below 2^40"},
    {{SIZE, .release = {QMD_TWO_WORDS, 8, 0}}, NULL},
    {{SIZE, .release = {QMD_TWO_WORDS, 4, 0}},
     "the release at 0x4 is not 8-byte aligned"},
    {{SIZE, .release = {QMD_FOUR_WORDS, 8, 0}},
     "the release at 0x8 is not 16-byte aligned"},
    {{SIZE, .release = {QMD_FOUR_WORDS, TOP, 0}},
     "the release at 0x10000000000 is not below 2^40"},
    {{SIZE, .release = {QMD_NO_RELEASE, 1, 0}}, NULL},
};

static void test_args(void **state) {
  (void)state;
  const struct qmd_function fn = {
      .limits = limits_of(0x809), .registers = 128, .shared = 2048};
  for (size_t i = 0; i < sizeof args / sizeof args[0]; i++) {
    const int e = qmd_check_args(&fn, &args[i].args);
    if (args[i].reason == NULL) {
      assert_int_equal(e, 0);
      continue;
    }
    assert_int_equal(e, -RIG_NV_INVALID);
    assert_string_equal(rig_nv_why(), args[i].reason);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_versions),
      cmocka_unit_test(test_functions),
      cmocka_unit_test(test_args),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
