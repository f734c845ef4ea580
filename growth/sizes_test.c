/* SPDX-License-Identifier: ISC */
/*
 * What a growth makes for a need, from sizes alone.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "growth/growth.h"

#define NONE UINT64_MAX
#define K UINT64_C(1024)
#define G (K * K * K)

static const struct {
  const char *name;
  uint64_t entries[2], words[2], launch; /* of the need */
  uint64_t want_entries[2], want_segments[2], want_launch;
} rows[] = {
    {"nothing", {0, 0}, {0, 0}, 0, {0, 0}, {0, 0}, 0},
    {"all that there is", {1023, 2047}, {1024, 2048}, 16, {0, 0}, {0, 0}, 0},

    {"an entry more", {1024, 0}, {0, 0}, 0, {2048, 2048}, {0, 0}, 0},
    {"of COPY", {0, 2048}, {0, 0}, 0, {1024, 4096}, {0, 0}, 0},
    {"a power of two less one", {2047, 0}, {0, 0}, 0, {4096, 2048}, {0, 0}, 0},
    {"a power of two", {2048, 0}, {0, 0}, 0, {4096, 2048}, {0, 0}, 0},
    {"and one", {2049, 0}, {0, 0}, 0, {8192, 2048}, {0, 0}, 0},
    {"the other holds twice too",
     {1024, 1025},
     {0, 0},
     0,
     {2048, 4096},
     {0, 0},
     0},
    {"2^30 entries",
     {1 << 30, 0},
     {0, 0},
     0,
     {UINT64_C(1) << 31, 2048},
     {0, 0},
     0},
    {"2^30 and one",
     {(1 << 30) + 1, 0},
     {0, 0},
     0,
     {UINT64_C(1) << 31, 2048},
     {0, 0},
     0},
    {"2^31 - 1, the most",
     {INT32_MAX, INT32_MAX},
     {0, 0},
     0,
     {UINT64_C(1) << 31, UINT64_C(1) << 31},
     {0, 0},
     0},

    {"a word more", {0, 0}, {1025, 0}, 0, {0, 0}, {16 * K, 0}, 0},
    {"a page at least", {0, 0}, {0, 2049}, 0, {0, 0}, {0, 32 * K}, 0},
    {"both", {0, 0}, {2048, 2049}, 0, {0, 0}, {16 * K, 32 * K}, 0},
    {"64 GiB of words", {0, 0}, {16 * G, 0}, 0, {0, 0}, {128 * G, 0}, 0},
    {"twice is no ring's", {0, 0}, {17 * G, 0}, 0, {0, 0}, {128 * G, 0}, 0},
    {"128 GiB", {0, 0}, {32 * G, 0}, 0, {0, 0}, {128 * G, 0}, 0},
    {"and a word", {0, 0}, {32 * G + 1, 0}, 0, {0, 0}, {NONE, 0}, 0},
    {"endless", {0, 0}, {UINT64_C(1) << 62, 0}, 0, {0, 0}, {NONE, 0}, 0},

    {"a launch more", {0, 0}, {0, 0}, 17, {0, 0}, {0, 0}, 16 * K},
    {"2^31 units", {0, 0}, {0, 0}, 2 * G, {0, 0}, {0, 0}, 512 * G},
    {"and one", {0, 0}, {0, 0}, 2 * G + 1, {0, 0}, {0, 0}, NONE},
    {"endless launches",
     {0, 0},
     {0, 0},
     UINT64_C(1) << 62,
     {0, 0},
     {0, 0},
     NONE},

    {"all at once",
     {1024, 0},
     {1025, 2049},
     17,
     {2048, 2048},
     {16 * K, 32 * K},
     16 * K},
};

static void test_sizes(void **state) {
  (void)state;
  const struct ring_generation now = {
      .channel = {{.n = 1024, .units = 64}, {.n = 2048, .units = 128}},
      .launches = {.units = 16}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct ring_need need = {.launch = rows[i].launch};
    struct growth_sizes z;
    for (int q = 0; q < QUEUES; q++) {
      need.entries[q] = rows[i].entries[q];
      need.words[q] = rows[i].words[q];
    }
    growth_sizes_for(&now, &need, &z);
    for (int q = 0; q < QUEUES; q++)
      if (z.entries[q] != rows[i].want_entries[q] ||
          z.segment_bytes[q] != rows[i].want_segments[q])
        fail_msg("%s: queue %d: %" PRIu32 " entries, %" PRIu64 " bytes",
                 rows[i].name, q, z.entries[q], z.segment_bytes[q]);
    if (z.launch_bytes != rows[i].want_launch)
      fail_msg("%s: %" PRIu64 " bytes of launches", rows[i].name,
               z.launch_bytes);
  }
}

/* From rings of less than a page. */
static void test_page(void **state) {
  (void)state;
  const struct ring_generation now = {
      .channel = {{.n = 2, .units = 1}, {.n = 2, .units = 1}}};
  const struct ring_need need = {
      .entries = {2, 1}, .words = {17, 0}, .launch = 1};
  struct growth_sizes z;
  growth_sizes_for(&now, &need, &z);
  assert_int_equal(z.entries[0], 4);
  assert_int_equal(z.entries[1], 2);
  assert_int_equal(z.segment_bytes[0], 4096);
  assert_int_equal(z.segment_bytes[1], 0);
  assert_int_equal(z.launch_bytes, 4096);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_page),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
