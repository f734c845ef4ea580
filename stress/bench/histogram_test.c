/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stress/bench/histogram.h"

/* n numbers from `first` on, `step` apart, and what is at a quantile. */
struct row {
  const char *name;
  uint64_t first, step, n;
  uint64_t of_million;
  double expect, within;
};

static const struct row rows[] = {
    {"empty", 0, 0, 0, 500000, 0, 0},
    {"one number", 42, 0, 1, 999000, 42, 0},
    {"median of 1 to 9", 1, 1, 9, 500000, 5, 0},
    {"the least", 1, 1, 9, 1, 1, 0},
    {"the greatest", 1, 1, 9, 1000000, 9, 0},
    {"p99 of 1 to 100", 1, 1, 100, 990000, 99, 0},
    {"p99.9 of 1 to 100", 1, 1, 100, 999000, 100, 0},
    {"first bucket of two", 128, 0, 1, 500000, 128.5, 0},
    {"same bucket", 129, 0, 1, 500000, 128.5, 0},
    {"next bucket", 130, 0, 1, 500000, 130.5, 0},
    {"p50 of a million", 0, 1, 1000000, 500000, 499999, 499999 / 64.},
    {"p99.9 of a million", 0, 1, 1000000, 999000, 998999, 998999 / 64.},
    {"2^63", UINT64_C(1) << 63, 0, 1, 500000, 9223372036854775808., 1e17},
    {"2^64 - 1", UINT64_MAX, 0, 1, 500000, 18446744073709551615., 2e17},
};

static void quantiles(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct row *r = &rows[i];
    static struct histogram part, h;
    memset(&part, 0, sizeof part);
    memset(&h, 0, sizeof h);
    for (uint64_t k = 0; k < r->n; k++)
      histogram_add(k % 2 ? &part : &h, r->first + k * r->step);
    histogram_merge(&h, &part);
    double got = histogram_at(&h, r->of_million);
    if (got < r->expect - r->within || got > r->expect + r->within)
      fail_msg("%s: %f, not %f", r->name, got, r->expect);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(quantiles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
