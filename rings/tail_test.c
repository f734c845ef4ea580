/* SPDX-License-Identifier: ISC */
/*
 * The cursor that was swapped in is the one that is read, whatever of it went
 * into sums and however often; a node is written where the sums do not tell.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rings/tail.h"

/* Of every value of a row. */
struct by {
  uint32_t entries[QUEUES], units[QUEUES], launch;
  uint64_t joins;
  uint32_t setup;
  uint8_t owes, generation;
  bool turns, waits, fresh; /* released by the other, and as the caller says
                             * that the cursor it read has news */
};

static const struct row {
  const char *name;
  struct by by;
  unsigned values, nodes; /* and how many of them wrote a node */
} rows[] = {
    {"a copy", {.entries = {0, 1}, .units = {0, 4}, .joins = 2}, 255, 0},
    {"one more", {.entries = {0, 1}, .units = {0, 4}, .joins = 2}, 256, 1},
    {"and on", {.entries = {0, 1}, .units = {0, 4}, .joins = 2}, 1024, 4},
    {"no parts", {.entries = {1}, .units = {4}, .joins = 1}, 255, 0},
    {"one more of no parts",
     {.entries = {1}, .units = {4}, .joins = 1},
     256,
     1},
    {"64 parts", {.entries = {0, 1}, .units = {0, 40}, .joins = 65}, 26, 1},
    {"entries of 0", {.entries = {255}}, 1, 0},
    {"an entry more of 0", {.entries = {256}}, 1, 1},
    {"entries of 1", {.entries = {0, 255}}, 1, 0},
    {"an entry more of 1", {.entries = {0, 256}}, 1, 1},
    {"entries of both", {.entries = {255, 255}}, 2, 1},
    {"units of 0", {.units = {1023}}, 1, 0},
    {"a unit more of 0", {.units = {1024}}, 1, 1},
    {"units of 1", {.units = {0, 1023}}, 1, 0},
    {"a unit more of 1", {.units = {0, 1024}}, 1, 1},
    {"units of both", {.units = {1023, 1023}}, 2, 1},
    {"all of a ring's units", {.units = {UINT32_C(1) << 31}}, 3, 3},
    {"joins", {.joins = 2047}, 1, 0},
    {"a join more", {.joins = 2048}, 1, 1},
    {"joins of 64 bits", {.joins = UINT64_C(1) << 63}, 3, 3},
    {"launches", {.launch = 255}, 1, 0},
    {"a launch unit more", {.launch = 256}, 1, 1},
    {"launches twice", {.launch = 255}, 2, 1},
    {"a record of setup", {.setup = 1}, 2, 2},
    {"a generation", {.generation = 1}, 2, 2},
    {"a channel's setup", {.owes = 1}, 1, 1},
    {"the channels in turn", {.entries = {1, 1}, .turns = true}, 9, 0},
    {"waits in turn", {.entries = {1}, .waits = true}, 9, 0},
    {"news", {.entries = {1}, .fresh = true}, 3, 3},
};

/* Where the values begin; all counts wrap soon. */
static const uint64_t starts[] = {0, UINT32_MAX - 1, (UINT64_C(1) << 48) - 2,
                                  UINT64_MAX - 1};

static bool same(const struct cursor *a, const struct cursor *b) {
  return memcmp(a, b, sizeof *a) == 0;
}

static struct cursor after(const struct cursor *from, const struct by *by) {
  struct cursor to = *from;
  to.v++;
  to.behind++;
  for (int q = 0; q < QUEUES; q++) {
    to.entries[q] += by->entries[q];
    to.units[q] += by->units[q];
  }
  to.launch += by->launch;
  to.joins += by->joins;
  to.setup += by->setup;
  to.owes = to.owes & ~by->owes & 3;
  to.generation = (uint8_t)(to.generation + by->generation);
  to.released_by = (by->turns ? 1 - from->released_by : from->released_by) & 3;
  to.waits = from->waits ^ by->waits;
  if (by->fresh) {
    to.behind = 1;
    to.freed_units[1]++;
  }
  return to;
}

static bool row_holds(const struct row *r, uint64_t v) {
  static struct tail t;
  struct cursor c = {.v = v,
                     .joins = UINT64_MAX,
                     .entries = {UINT32_MAX, UINT32_MAX - 1},
                     .units = {UINT32_MAX - 1, UINT32_MAX},
                     .launch = UINT32_MAX,
                     .setup = 7,
                     .freed_entries = {UINT32_MAX, UINT32_MAX - 1},
                     .freed_units = {UINT32_MAX - 1, UINT32_MAX},
                     .freed_launch = UINT32_MAX,
                     .behind = 3,
                     .generation = 2,
                     .released_by = 1,
                     .owes = 3},
                got, to;
  unsigned nodes = 0;
  tail_init(&t, &c);
  const struct tail_at first = tail_read(&t, &got);
  if (!same(&got, &c))
    return false;
  for (unsigned i = 0; i < r->values; i++, c = to) {
    const struct tail_at at = tail_read(&t, &got);
    to = after(&c, &r->by);
    if (!same(&got, &c) || !tail_same(&t, &at) ||
        !tail_swap(&t, &at, r->by.fresh ? NULL : &c, &to))
      return false;
    nodes += tail_node_of(at.word) != tail_node_of(t.word.w[0]);
    /* What was read before it is swapped no more, by either way. */
    if (tail_same(&t, &at) || tail_swap(&t, &at, &c, &to) ||
        tail_swap(&t, &first, NULL, &to))
      return false;
  }
  tail_last(&t, &got);
  return same(&got, &c) && nodes == r->nodes;
}

static void test_rows(void **state) {
  (void)state;
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t k = 0; k < sizeof starts / sizeof *starts; k++)
      if (!row_holds(&rows[i], starts[k])) {
        print_error("%s, from %#lx: not as expected\n", rows[i].name,
                    (unsigned long)starts[k]);
        failed++;
      }
  assert_int_equal(failed, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
