/* SPDX-License-Identifier: ISC */
/* Ring entries: literal values at the edges of each field, and the fields of
 * every host class by the rows of testdata/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/abi/gpfifo.h"
#include "core/abi/rm.h"
#include "core/abi/tsv.h"
#include "core/api/rig_nv.h"

static const struct {
  uint64_t addr, words, entry;
} entries[] = {
    {0, 1, 0x0000060000000000},
    {4, 1, 0x0000060000000004},
    {0x12345678, 6, 0x00001a0012345678},
    {0x100000000, 1, 0x0000060100000000},
    {0xfffffffffc, 1, 0x000006fffffffffc},
    {0xfffffff000, 0x400, 0x001002fffffff000},
    {0, 0x100000, 0x4000020000000000},
    {0, 0x1fffff, 0x7ffffe0000000000},
    {0xffff800004, 0x1fffff, 0x7ffffeffff800004},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static void test_entries(void **state) {
  (void)state;
  for (size_t i = 0; i < ENTRIES; i++) {
    uint64_t checked = 0;
    assert_int_equal(abi_gpfifo_entry(entries[i].addr, entries[i].words),
                     entries[i].entry);
    assert_int_equal(
        rig_nv_gpfifo_entry(entries[i].addr, entries[i].words, &checked), 0);
    assert_int_equal(checked, entries[i].entry);
  }
}

static struct tsv formats;

static const char *value(const char *source, const char *name) {
  const char *key[] = {source, name};
  const char *const *row = tsv_find(&formats, key, 2);
  if (row == NULL)
    fail_msg("%s has no %s", source, name);
  return row[3];
}

/* GP_ENTRY0 is the low word, GP_ENTRY1 the high one. */
static uint64_t field(uint64_t entry, const char *cls, const char *name) {
  const struct tsv_bits at = tsv_bits(value(cls, name));
  const uint64_t word = name[8] == '0' ? entry & UINT32_MAX : entry >> 32;
  return word >> at.lsb & tsv_mask(at);
}

static void test_fields(void **state) {
  (void)state;
  static const char *const classes[] = {"c56f", "c76f", "c86f", "c96f", "ca6f"};
  for (size_t i = 0; i < 5 * ENTRIES; i++) {
    const char *cls = classes[i / ENTRIES];
    const uint64_t addr = entries[i % ENTRIES].addr;
    const uint64_t e = abi_gpfifo_entry(addr, entries[i % ENTRIES].words);
    assert_int_equal(field(e, cls, "GP_ENTRY0_FETCH"),
                     tsv_number(value(cls, "GP_ENTRY0_FETCH_UNCONDITIONAL")));
    assert_int_equal(field(e, cls, "GP_ENTRY0_GET"), (addr & UINT32_MAX) / 4);
    assert_int_equal(field(e, cls, "GP_ENTRY1_GET_HI"), addr >> 32);
    assert_int_equal(field(e, cls, "GP_ENTRY1_LEVEL"),
                     tsv_number(value(cls, "GP_ENTRY1_LEVEL_SUBROUTINE")));
    assert_int_equal(field(e, cls, "GP_ENTRY1_LENGTH"),
                     entries[i % ENTRIES].words);
    assert_int_equal(field(e, cls, "GP_ENTRY1_SYNC"),
                     tsv_number(value(cls, "GP_ENTRY1_SYNC_PROCEED")));
    assert_int_equal(NVC56F_GP_ENTRY_SIZE,
                     tsv_number(value(cls, "GP_ENTRY__SIZE")));
  }
}

static void test_userd(void **state) {
  (void)state;
  static const struct {
    const char *source, *name;
    uint64_t is;
  } cases[] = {
      {"manual ga100 dev_ram", "NV_RAMUSERD_CHAN_SIZE", ABI_USERD_BYTES},
      {"manual ga100 dev_ram", "NV_RAMUSERD_GP_GET", ABI_USERD_GP_GET},
      {"manual ga100 dev_ram", "NV_RAMUSERD_GP_PUT", ABI_USERD_GP_PUT},
      {"class struct AmpereAControlGPFifo", "GPGet", ABI_USERD_GP_GET},
      {"class struct AmpereAControlGPFifo", "GPPut", ABI_USERD_GP_PUT},
      {"class struct AmpereAControlGPFifo", "(sizeof)", ABI_USERD_BYTES},
      {"class struct HopperAControlGPFifo", "GPGet", ABI_USERD_GP_GET},
      {"class struct HopperAControlGPFifo", "GPPut", ABI_USERD_GP_PUT},
      {"class struct HopperAControlGPFifo", "(sizeof)", ABI_USERD_BYTES},
      {"class struct BlackwellAControlGPFifo", "GPPut", ABI_USERD_GP_PUT},
      {"class struct BlackwellAControlGPFifo", "(sizeof)", ABI_USERD_BYTES},
      {"class struct BlackwellBControlGPFifo", "GPPut", ABI_USERD_GP_PUT},
      {"class struct BlackwellBControlGPFifo", "(sizeof)", ABI_USERD_BYTES},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_int_equal(cases[i].is,
                     tsv_number(value(cases[i].source, cases[i].name)));
  }
}

static int read_tables(void **state) {
  (void)state;
  tsv_read(&formats, "gpfifo.tsv");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_entries),
      cmocka_unit_test(test_fields),
      cmocka_unit_test(test_userd),
  };
  return cmocka_run_group_tests(tests, read_tables, NULL);
}
