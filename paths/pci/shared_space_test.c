/* SPDX-License-Identifier: ISC */
/* One thread allocates and frees on page tables while another takes and gives
 * addresses of the same space: no address is in both hands. */
#include <pthread.h>

#include "paths/pci/bed.h"
#include "stress/random.h"

enum { STEPS = 4000, HOLDS = 32, PAGES = (256 << 20) / 4096 };

static struct bed bed;
static int owner[PAGES]; /* plain: the space's lock orders its users */

static uint64_t mark(const struct space_hold *x, int from, int to) {
  uint64_t wrong = 0;
  for (uint64_t at = 0; at < x->bytes; at += PAGE) {
    int *o = &owner[(x->at - BED_SPACE + at) / PAGE];
    wrong += *o != from;
    *o = to;
  }
  return wrong;
}

static void *take_addresses(void *arg) {
  uint64_t *wrong = arg;
  struct random r = {5};
  struct space_holder h;
  struct space_hold held[HOLDS];
  size_t n = 0;
  space_holder_init(&h, &bed.space);
  for (int i = 0; i < STEPS; i++) {
    if (n < HOLDS && random_one_in(&r, 2)) {
      const uint64_t bytes = PAGE * random_in(&r, 1, 64);
      if (space_alloc(&h, bytes, PAGE, &held[n]) == 0)
        *wrong += mark(&held[n++], 0, 1);
    } else if (n != 0) {
      const size_t k = random_below(&r, n);
      *wrong += mark(&held[k], 1, 0);
      *wrong += space_free(&bed.space, &held[k]) != 0;
      held[k] = held[--n];
    }
  }
  for (size_t k = 0; k < n; k++)
    *wrong += mark(&held[k], 1, 0);
  *wrong += space_release(&h) != 0;
  return NULL;
}

static void test_shared(void **state) {
  (void)state;
  struct space_hold held[HOLDS];
  struct page_mapping m[HOLDS];
  struct random r = {6};
  size_t n = 0;
  uint64_t wrong = 0, other = 0;
  bool confirmed;
  pthread_t thread;
  bed_begin(&bed);
  space_fini(&bed.space); /* the failing allocator is for one thread */
  assert_int_equal(space_init(&bed.space, BED_SPACE, 256 * MIB, NULL), 0);
  const struct page_table_options o = bed_options(&bed);
  assert_int_equal(page_table_create(&o, &bed.t), 0);
  page_table_booted(bed.t);
  const struct bed_state before = {page_table_room(bed.t), 256 * MIB, 0};
  assert_int_equal(pthread_create(&thread, NULL, take_addresses, &other), 0);
  for (int i = 0; i < STEPS; i++) {
    if (n < HOLDS && random_one_in(&r, 2)) {
      const struct page_alloc a = page_alloc(PAGE * random_in(&r, 1, 40));
      if (page_table_alloc(bed.t, &bed.holder, a, &held[n], &m[n]) == 0)
        wrong += mark(&held[n++], 0, 2);
    } else if (n != 0) {
      const size_t k = random_below(&r, n);
      wrong += mark(&held[k], 2, 0);
      wrong += page_table_free(bed.t, &held[k], &m[k], &confirmed) != 0;
      held[k] = held[--n];
      m[k] = m[n];
    }
  }
  for (size_t k = 0; k < n; k++) {
    wrong += mark(&held[k], 2, 0);
    wrong += page_table_free(bed.t, &held[k], &m[k], &confirmed) != 0;
  }
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(wrong, 0);
  assert_int_equal(other, 0);
  bed_same(&bed, &before, "after all");
  bed_end(&bed);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_shared)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
