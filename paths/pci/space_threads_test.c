/* SPDX-License-Identifier: ISC */
/* Threads on one space, each with a holder of its own and all with a shared
 * one: no address is given to two at once, and TSan sees each user of an
 * address after the one before, as they store to plain memory behind it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "paths/pci/space.h"
#include "stress/random.h"

enum { THREADS = 2, UNIT = 16, UNITS = 512, STEPS = 20000, HOLDS = 24 };

#define BASE UINT64_C(0x100000)

static struct space space;
static struct space_holder shared;
static int owner[UNITS]; /* plain: the space's lock orders its users */

struct job {
  int id;
  uint64_t wrong;
  struct space_holder own;
  struct space_hold held[HOLDS];
  size_t n;
};

static void mark(struct job *j, const struct space_hold *x, int from, int to) {
  const uint64_t at = (x->at - BASE) / UNIT;
  for (uint64_t i = 0; i < x->bytes / UNIT; i++) {
    j->wrong += owner[at + i] != from;
    owner[at + i] = to;
  }
}

static void step(struct job *j, struct random *r) {
  if (j->n < HOLDS && random_below(r, 100) < 55) {
    struct space_holder *h = random_one_in(r, 3) ? &shared : &j->own;
    struct space_hold *x = &j->held[j->n];
    if (space_alloc(h, 1 + random_below(r, 700), 1u << random_below(r, 8), x) ==
        0) {
      mark(j, x, 0, j->id);
      j->n++;
    }
  } else if (j->n != 0) {
    const size_t k = random_below(r, j->n);
    mark(j, &j->held[k], j->id, 0);
    j->wrong += space_free(&space, &j->held[k]) != 0;
    j->held[k] = j->held[--j->n];
  }
}

static void *work(void *arg) {
  struct job *j = arg;
  struct random r = {(uint64_t)j->id};
  for (int i = 0; i < STEPS; i++)
    step(j, &r);
  for (size_t k = 0; k < j->n; k++)
    mark(j, &j->held[k], j->id, 0);
  j->wrong += space_release(&j->own) != 0;
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  static struct job jobs[THREADS];
  pthread_t threads[THREADS];
  uint64_t unheld;
  assert_int_equal(space_init(&space, BASE, UNITS * UNIT, NULL), 0);
  space_holder_init(&shared, &space);
  for (int i = 0; i < THREADS; i++) {
    jobs[i].id = i + 1;
    space_holder_init(&jobs[i].own, &space);
    assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(jobs[i].wrong, 0);
  }
  assert_int_equal(space_release(&shared), 0);
  assert_int_equal(space_unheld(&space, &unheld), 0);
  assert_int_equal(unheld, UNITS * UNIT);
  space_fini(&space);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
