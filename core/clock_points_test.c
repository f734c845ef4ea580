/* SPDX-License-Identifier: ISC */
/*
 * The clock's line, read and published with others at every step between: what
 * the steps are, rings/shared.h says (RIG_COOP).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock.h"

#define EPOCH UINT64_C(1767225600000000000)

/* Its timer is its host clock and EPOCH, in every measure. */
static struct clock the_clock;
static uint64_t time_now;
static unsigned points, at; /* the step at which `other` runs, from 1 */
static void (*other)(void), (*was)(void);

void coop_point(void) {
  if (other == NULL || ++points != at)
    return;
  was = other;
  other = NULL; /* its own steps are nobody's */
  was();
}

void coop_spin(void) {}

static uint64_t now(void *ctx) {
  (void)ctx;
  return time_now;
}

static bool read(void *ctx, struct rig_nv_reading *r,
                 struct rig_nv_reply *reply) {
  (void)ctx;
  *r = (struct rig_nv_reading){time_now, time_now + EPOCH, time_now};
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static const struct rig_nv_clock of = {
    .kind = RIG_NV_CLOCK_SOURCE, .read = read, .host = now};

static void measure(void) {
  time_now += CLOCK_EVERY_NS;
  assert_int_equal(clock_again(&the_clock), 0);
}

static void measures(void) {
  for (int i = 0; i < 3; i++)
    measure();
}

static void check(void) {
  struct clock_line l = clock_line_now(&the_clock);
  assert_int_equal(l.first.host, 5);
  assert_int_equal(l.first.timer, 5 + EPOCH);
  assert_int_equal(l.latest.timer - l.latest.host, EPOCH);
  assert_int_equal((l.latest.host - 5) % CLOCK_EVERY_NS, 0);
}

/* `does`, with `between` at each of its steps; how many it has. */
static unsigned each(void (*does)(void), void (*between)(void)) {
  for (at = 1;; at++) {
    time_now = 5;
    points = 0;
    other = NULL;
    assert_int_equal(clock_open(&the_clock, &of, now, NULL), 0);
    measures(); /* both places are written */
    other = between;
    does();
    if (other != NULL) /* it was done before that step */
      return at - 1;
    check();
  }
}

static void test_steps(void **state) {
  (void)state;
  /* A number, six words, a fence and the number. */
  assert_in_range(each(check, measure), 9, 9);
  assert_in_range(each(check, measures), 9, 9);
  /* A reader waits for no writer; nor does another one that measures. */
  assert_in_range(each(measure, check), 12, 40);
  assert_in_range(each(measure, measures), 12, 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
