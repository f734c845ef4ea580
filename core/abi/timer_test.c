/* SPDX-License-Identifier: ISC */
/* The timer's registers, by every row of testdata/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/abi/timer.h"
#include "core/abi/tsv.h"

/* A region's own bytes of an address in BAR 0; NV_PTIMER's are that. */
#define REGION 0xffffu
#define BAR UINT32_MAX

static const struct {
  const char *name, *kind;
  uint64_t of, is; /* the bits of the row's number that it is */
} numbers[] = {
    {"NV_USERMODE__SIZE", "size", BAR, NV_USERMODE_BYTES},
    {"TIME_0", "offset", BAR, NV_USERMODE_TIME_0},
    {"TIME_1", "offset", BAR, NV_USERMODE_TIME_1},
    {"NOTIFY_CHANNEL_PENDING", "offset", BAR, NV_USERMODE_DOORBELL},
    {"NV_USERMODE_TIME_0", "value", REGION, NV_USERMODE_TIME_0},
    {"NV_USERMODE_TIME_1", "value", REGION, NV_USERMODE_TIME_1},
    {"NV_USERMODE_NOTIFY_CHANNEL_PENDING", "value", REGION,
     NV_USERMODE_DOORBELL},
    {"NV_VIRTUAL_FUNCTION_TIME_0", "value", REGION, NV_USERMODE_TIME_0},
    {"NV_VIRTUAL_FUNCTION_TIME_1", "value", REGION, NV_USERMODE_TIME_1},
    {"NV_VIRTUAL_FUNCTION_DOORBELL", "value", REGION, NV_USERMODE_DOORBELL},
    {"NV_PTIMER_TIME_0", "value", BAR, NV_PTIMER_TIME_0},
    {"NV_PTIMER_TIME_1", "value", BAR, NV_PTIMER_TIME_1},
};

static const struct {
  const char *name;
  uint64_t is; /* the mask of its bits */
} fields[] = {
    {"NV_USERMODE_TIME_0_NSEC", NV_TIME_0_NSEC},
    {"NV_USERMODE_TIME_1_NSEC", NV_TIME_1_NSEC},
    {"NV_VIRTUAL_FUNCTION_TIME_0_NSEC", NV_TIME_0_NSEC},
    {"NV_VIRTUAL_FUNCTION_TIME_1_NSEC", NV_TIME_1_NSEC},
    {"NV_PTIMER_TIME_0_NSEC", NV_TIME_0_NSEC},
    {"NV_PTIMER_TIME_1_NSEC", NV_TIME_1_NSEC},
};

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* How many of the tables' entries the row has: one. */
static unsigned row(const char *const *r) {
  unsigned n = 0;
  for (size_t i = 0; i < COUNT(numbers); i++)
    if (strcmp(r[1], numbers[i].name) == 0) {
      assert_string_equal(r[2], numbers[i].kind);
      assert_int_equal(tsv_number(r[3]) & numbers[i].of, numbers[i].is);
      n++;
    }
  for (size_t i = 0; i < COUNT(fields); i++)
    if (strcmp(r[1], fields[i].name) == 0) {
      const struct tsv_bits b = tsv_bits(r[3]);
      assert_string_equal(r[2], "bits");
      assert_int_equal(tsv_mask(b) << b.lsb, fields[i].is);
      n++;
    }
  return n;
}

static void test_registers(void **state) {
  static struct tsv rows;
  (void)state;
  tsv_read(&rows, "timer.tsv");
  assert_true(rows.n >= COUNT(numbers) + COUNT(fields));
  for (size_t i = 0; i < rows.n; i++)
    if (row(rows.row[i]) != 1)
      fail_msg("%s: no number of ours", rows.row[i][1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_registers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
