/* SPDX-License-Identifier: ISC */
/*
 * The scheduler by itself: who runs when, as text. A thread writes its letter
 * at each point.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stress/coop/coop.h"

enum { POINTS = 3, THREADS = 3, SEEDS = 400 };

static char trace[64];
static int total;

static void letters(void *arg) {
  const char *letter = arg;
  for (int i = 0; i < POINTS; i++) {
    strncat(trace, letter, 1);
    coop_point();
  }
}

static void spins(void *arg) {
  strncat(trace, arg, 1);
  coop_spin();
  strncat(trace, arg, 1);
}

static void forever(void *arg) {
  (void)arg;
  for (;;)
    coop_spin();
}

/* Loses an update where another thread runs between. */
static void add(void *arg) {
  (void)arg;
  int seen = total;
  coop_point();
  total = seen + 1;
}

static const struct coop_thread abc[] = {
    {letters, "a"}, {letters, "b"}, {letters, "c"}};

static int64_t run(const struct coop_schedule *how) {
  trace[0] = 0;
  return coop_run(how, abc, THREADS);
}

struct row {
  const char *name;
  struct coop_turn turns[5];
  size_t n;
  const char *expect; /* what the trace starts with */
};

static const struct row rows[] = {
    {"to the end", {{1, COOP_ON}, {0, COOP_ON}}, 2, "bbbaaaccc"},
    {"by points", {{0, 1}, {2, 2}, {1, COOP_ON}, {0, 2}}, 4, "accbbbaa"},
    {"one after the other", {{2, 1}, {1, 1}, {0, 1}, {2, 1}}, 4, "cbac"},
    {"of a thread that is done", {{2, COOP_ON}, {2, 5}, {0, 1}}, 3, "ccca"},
};

static void test_turns(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct coop_schedule how = {.seed = 1,
                                      .strategy = COOP_TURNS,
                                      .most = 100,
                                      .turns = rows[i].turns,
                                      .nturns = rows[i].n};
    assert_int_equal(run(&how), POINTS * THREADS);
    assert_int_equal(strlen(trace), POINTS * THREADS);
    if (strncmp(trace, rows[i].expect, strlen(rows[i].expect)) != 0)
      fail_msg("%s: %s", rows[i].name, trace);
  }
}

static void test_spin(void **state) {
  (void)state;
  const struct coop_thread t[] = {{spins, "a"}, {spins, "b"}};
  const struct coop_turn turns[] = {{0, COOP_ON}, {1, COOP_ON}, {0, COOP_ON}};
  const struct coop_schedule by_turn = {.seed = 1,
                                        .strategy = COOP_TURNS,
                                        .most = 100,
                                        .turns = turns,
                                        .nturns = 3};
  trace[0] = 0;
  assert_int_equal(coop_run(&by_turn, t, 2), 2);
  assert_string_equal(trace, "abab");
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    const struct coop_schedule pct = {
        .seed = seed, .strategy = COOP_PCT, .depth = 1, .most = 100};
    trace[0] = 0;
    assert_int_equal(coop_run(&pct, t, 2), 2);
    assert_true(strcmp(trace, "abab") == 0 || strcmp(trace, "baba") == 0);
  }
}

static int switches(void) {
  int n = 0;
  for (size_t i = 1; trace[i]; i++)
    n += trace[i] != trace[i - 1];
  return n;
}

/* Depth d: d - 1 drops, beside one change at each thread's end. */
static void test_depth(void **state) {
  (void)state;
  for (int depth = 1; depth <= 4; depth++) {
    int most = 0;
    unsigned first = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      const struct coop_schedule how = {.seed = seed,
                                        .strategy = COOP_PCT,
                                        .depth = depth,
                                        .length = POINTS * THREADS,
                                        .most = 100};
      assert_int_equal(run(&how), POINTS * THREADS);
      most = switches() > most ? switches() : most;
      first |= 1u << (trace[0] - 'a');
    }
    assert_int_equal(most, THREADS - 1 + depth - 1);
    assert_int_equal(first, 7); /* each was the highest once */
  }
}

static void test_replay(void **state) {
  (void)state;
  for (int strategy = COOP_WALK; strategy <= COOP_PCT; strategy++) {
    int same = 0;
    char before[sizeof trace] = "";
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
      const struct coop_schedule how = {.seed = seed,
                                        .strategy = strategy,
                                        .depth = 3,
                                        .length = POINTS * THREADS,
                                        .most = 100};
      char once[sizeof trace];
      (void)run(&how);
      strcpy(once, trace);
      (void)run(&how);
      assert_string_equal(once, trace);
      same += strcmp(before, trace) == 0;
      strcpy(before, trace);
    }
    assert_true(same < SEEDS / 4); /* seeds differ */
  }
}

/* The promise: at least one in n k^(d - 1) runs, here one in 4. */
static void test_finds(void **state) {
  (void)state;
  const struct coop_thread t[] = {{add, NULL}, {add, NULL}};
  int lost = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    const struct coop_schedule how = {.seed = seed,
                                      .strategy = COOP_PCT,
                                      .depth = 2,
                                      .length = 2,
                                      .most = 100};
    total = 0;
    assert_int_equal(coop_run(&how, t, 2), 2);
    lost += total == 1;
  }
  assert_true(lost > SEEDS / 5);
}

static void test_hang(void **state) {
  (void)state;
  const struct coop_thread t[] = {{letters, "a"}, {forever, NULL}};
  for (int strategy = COOP_WALK; strategy <= COOP_TURNS; strategy++) {
    const struct coop_schedule how = {
        .seed = 1, .strategy = strategy, .depth = 1, .most = 1000};
    trace[0] = 0;
    assert_int_equal(coop_run(&how, t, 2), -1);
    assert_string_equal(trace, "aaa");
  }
  assert_int_equal(coop_self(), -1);
  const struct coop_schedule enough = {
      .seed = 1, .strategy = COOP_WALK, .most = POINTS * THREADS};
  assert_int_equal(run(&enough), POINTS * THREADS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_turns), cmocka_unit_test(test_spin),
      cmocka_unit_test(test_depth), cmocka_unit_test(test_replay),
      cmocka_unit_test(test_finds), cmocka_unit_test(test_hang),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
