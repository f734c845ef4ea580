/* SPDX-License-Identifier: ISC */
/* Class numbers, architectures and channel errors against testdata/. */
#include "core/abi/classes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/abi/errors.h"
#include "core/abi/tsv.h"

static struct tsv constants, methods, errors;

#define CLASS(name) {#name, name}

static const struct {
  const char *name;
  uint32_t cls;
} classes[] = {
    CLASS(NV01_ROOT),
    CLASS(NV01_ROOT_CLIENT),
    CLASS(NV01_DEVICE_0),
    CLASS(NV20_SUBDEVICE_0),
    CLASS(NV01_MEMORY_SYSTEM),
    CLASS(NV01_MEMORY_LOCAL_USER),
    CLASS(NV01_MEMORY_VIRTUAL),
    CLASS(NV01_MEMORY_SYSTEM_OS_DESCRIPTOR),
    CLASS(FERMI_VASPACE_A),
    CLASS(FERMI_CONTEXT_SHARE_A),
    CLASS(KEPLER_CHANNEL_GROUP_A),
    CLASS(GT200_DEBUGGER),
    CLASS(VOLTA_USERMODE_A),
    CLASS(TURING_USERMODE_A),
    CLASS(AMPERE_USERMODE_A),
    CLASS(HOPPER_USERMODE_A),
    CLASS(BLACKWELL_USERMODE_A),
    CLASS(AMPERE_CHANNEL_GPFIFO_A),
    CLASS(HOPPER_CHANNEL_GPFIFO_A),
    CLASS(BLACKWELL_CHANNEL_GPFIFO_A),
    CLASS(BLACKWELL_CHANNEL_GPFIFO_B),
    CLASS(AMPERE_COMPUTE_A),
    CLASS(AMPERE_COMPUTE_B),
    CLASS(ADA_COMPUTE_A),
    CLASS(HOPPER_COMPUTE_A),
    CLASS(BLACKWELL_COMPUTE_A),
    CLASS(BLACKWELL_COMPUTE_B),
    CLASS(AMPERE_DMA_COPY_A),
    CLASS(AMPERE_DMA_COPY_B),
    CLASS(HOPPER_DMA_COPY_A),
    CLASS(BLACKWELL_DMA_COPY_A),
    CLASS(BLACKWELL_DMA_COPY_B),
};
enum { CLASSES = sizeof classes / sizeof classes[0] };

static void test_numbers(void **state) {
  (void)state;
  static const char *const releases[] = {"570", "580", "610"};
  for (size_t i = 0; i < 3 * CLASSES; i++) {
    const char *key[] = {releases[i / CLASSES], classes[i % CLASSES].name};
    const char *const *row = tsv_find(&constants, key, 2);
    if (row == NULL || classes[i % CLASSES].cls != tsv_number(row[2])) {
      fail_msg("%s %s is not 0x%x", key[0], key[1], classes[i % CLASSES].cls);
    }
  }
  /* The one that no release's RM has. */
  const char *key[] = {"c76f", "class", "AMPERE_CHANNEL_GPFIFO_B"};
  const char *const *row = tsv_find(&methods, key, 3);
  assert_non_null(row);
  assert_int_equal(AMPERE_CHANNEL_GPFIFO_B, tsv_number(row[5]));
}

static void test_known(void **state) {
  (void)state;
  static const char *const suffix[] = {
      [ABI_CHANNEL_CLASS] = "6f",
      [ABI_COMPUTE_CLASS] = "c0",
      [ABI_COPY_CLASS] = "b5",
  };
  for (uint32_t cls = 0; cls <= 0x1ffff; cls++) {
    char name[16];
    snprintf(name, sizeof name, "%04x", cls);
    const char *key[] = {name, "class"};
    const bool listed = tsv_find(&methods, key, 2) != NULL;
    for (int kind = ABI_CHANNEL_CLASS; kind <= ABI_COPY_CLASS; kind++) {
      const bool is = listed && strcmp(name + 2, suffix[kind]) == 0;
      if (abi_class_known((enum abi_class_kind)kind, cls) != is) {
        fail_msg("kind %d, class 0x%s: known is not %d", kind, name, is);
      }
    }
  }
  assert_false(abi_class_known((enum abi_class_kind)3, HOPPER_COMPUTE_A));
}

static void test_arch(void **state) {
  (void)state;
  static const struct {
    uint32_t version;
    const char *arch;
  } cases[] = {
      {0x800, "sm_80"},  {0x806, "sm_86"},         {0x807, "sm_87"},
      {0x809, "sm_89"},  {0x900, "sm_90"},         {0xa00, "sm_100"},
      {0xa03, "sm_103"}, {0xa04, "sm_120"},        {0x860, "sm_86"},
      {0x890, "sm_89"},  {0x80f, "sm_815"},        {0x810, "sm_81"},
      {0, "sm_00"},      {0xffffffff, "sm_25515"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char out[16];
    memset(out, 'x', sizeof out);
    abi_arch(cases[i].version, out);
    assert_string_equal(out, cases[i].arch);
  }
}

/* Names that are not an error's. */
static bool is_error(const char *name) {
  return strncmp(name, "ERROR_RECOVERY_LEVEL_", 21) != 0 &&
         strncmp(name, "UNUSED_ERROR_", 13) != 0 &&
         strcmp(name, "LAST_ERROR") != 0;
}

static void test_errors(void **state) {
  (void)state;
  static const char prefix[] = "ROBUST_CHANNEL_";
  bool named[256] = {false};
  for (size_t i = 0; i < errors.n; i++) {
    const char *name = errors.row[i][1] + sizeof prefix - 1;
    const uint64_t code = tsv_number(errors.row[i][2]);
    assert_in_range(code, 0, 255);
    if (!is_error(name))
      continue;
    named[code] = true;
    const char *is = abi_channel_error((uint32_t)code);
    if (is == NULL || strcmp(is, name) != 0) {
      fail_msg("%u is not %s", (unsigned)code, name);
    }
  }
  for (unsigned code = 0; code < 256; code++) {
    if (!named[code])
      assert_null(abi_channel_error(code));
  }
  assert_string_equal(abi_channel_error(31), "FIFO_ERROR_MMU_ERR_FLT");
  assert_null(abi_channel_error(UINT32_MAX));
}

static int read_tables(void **state) {
  (void)state;
  tsv_read(&constants, "rm_consts.tsv");
  tsv_read(&methods, "methods.tsv");
  tsv_read(&errors, "errors.tsv");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_known),
      cmocka_unit_test(test_arch),
      cmocka_unit_test(test_errors),
  };
  return cmocka_run_group_tests(tests, read_tables, NULL);
}
