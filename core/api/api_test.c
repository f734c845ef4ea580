/* SPDX-License-Identifier: ISC */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/api/why.h"

#define MOST 1023 /* characters of a reason: 1 KiB with its end */

static void raises(void **state) {
  (void)state;
  const uint64_t half = UINT64_C(1) << 63;
  const struct {
    const char *name;
    uint64_t word, last, then;
  } t[] = {
      {"the next value", 0, 1, 1},
      {"a later value", 5, 900, 900},
      {"the same value", 7, 7, 7},
      {"never lowered", 7, 6, 7},
      {"never lowered by far", 1000, 0, 1000},
      {"across 0", UINT64_MAX, 0, 0},
      {"across 0, further", UINT64_MAX - 3, 4, 4},
      {"never lowered across 0", 0, UINT64_MAX, 0},
      {"never lowered across 0, further", 4, UINT64_MAX - 3, 4},
      {"the furthest later value", 10, 10 + half - 1, 10 + half - 1},
      {"half the circle away counts as later", 10, 10 + half, 10 + half},
      {"past half the circle is before", 10, 10 + half + 1, 10},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    volatile uint64_t words[3] = {0xaaaa, t[i].word, 0xbbbb};
    rig_word_raise(&words[1], t[i].last);
    if (words[1] != t[i].then)
      fail_msg("%s: %llx", t[i].name, (unsigned long long)words[1]);
    assert_true(words[0] == 0xaaaa && words[2] == 0xbbbb);
  }
}

enum { RAISERS = 4, RAISES = 2000 };

struct raiser {
  volatile uint64_t *word;
  uint64_t *payload; /* one for each value, written before its raise */
  uint64_t first;
};

static void *raise_all(void *arg) {
  const struct raiser *r = arg;
  for (uint64_t v = r->first; v <= RAISES; v += RAISERS) {
    r->payload[v] = v;
    rig_word_raise(r->word, v);
  }
  return NULL;
}

/* The word ends at the last value whatever the order of the threads, and a
 * thread that sees its own or a later value sees no lower one after. */
static void raises_from_threads(void **state) {
  (void)state;
  static uint64_t payload[RAISES + 1];
  volatile uint64_t word = 0;
  struct raiser r[RAISERS];
  pthread_t t[RAISERS];
  for (int i = 0; i < RAISERS; i++) {
    r[i] = (struct raiser){&word, payload, 1 + (uint64_t)i};
    assert_int_equal(pthread_create(&t[i], NULL, raise_all, &r[i]), 0);
  }
  uint64_t seen = 0;
  while (seen != RAISES) {
    /* Acquire: pairs with the release CAS of rig_word_raise. */
    uint64_t now = __atomic_load_n(&word, __ATOMIC_ACQUIRE);
    if (now < seen)
      fail_msg("lowered from %d to %d", (int)seen, (int)now);
    if (now && payload[now] != now)
      fail_msg("what was written before %d is not visible", (int)now);
    seen = now;
  }
  for (int i = 0; i < RAISERS; i++)
    assert_int_equal(pthread_join(t[i], NULL), 0);
  assert_true(word == RAISES);
}

static void numbers(void **state) {
  (void)state;
  static const struct {
    enum rig_nv_error error;
    int number;
  } t[] = {
      {RIG_NV_FAULT, -1},        {RIG_NV_INVALID, -2}, {RIG_NV_NO_MEMORY, -3},
      {RIG_NV_SHORT, -4},        {RIG_NV_REFUSED, -5}, {RIG_NV_LOST, -6},
      {RIG_NV_TIMEOUT, -7},      {RIG_NV_STALLED, -8}, {RIG_NV_NEVER, -9},
      {RIG_NV_HOST_MEMORY, -10}, {RIG_NV_ABSENT, -11},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++)
    assert_int_equal(why(t[i].error, "n"), t[i].number);
}

/* A reason of n characters as why is told it, and as it is kept. */
static void lengths(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int told, kept;
    bool cut;
  } t[] = {
      {"empty", 0, 0, false},
      {"one", 1, 1, false},
      {"the longest", MOST, MOST, false},
      {"one too long", MOST + 1, MOST, true},
      {"far too long", 5 * MOST, MOST, true},
      {"short after long", 3, 3, false},
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    char text[5 * MOST + 1];
    memset(text, 'x', sizeof text);
    text[t[i].told] = '\0';
    why(RIG_NV_INVALID, "%s", text);
    const char *kept = rig_nv_why();
    int n = (int)strlen(kept);
    bool cut = n > 3 && !strcmp(kept + n - 3, "...");
    if (n != t[i].kept || cut != t[i].cut ||
        (int)strspn(kept, "x") != n - 3 * cut)
      fail_msg("%s: %d characters, cut %d", t[i].name, n, cut);
  }
}

static void formats_its_own_reason(void **state) {
  (void)state;
  why(RIG_NV_REFUSED, "inner %d", 3);
  why(RIG_NV_INVALID, "outer: %s", rig_nv_why());
  assert_string_equal(rig_nv_why(), "outer: inner 3");
}

static void *first_reason(void *arg) {
  *(bool *)arg = !strcmp(rig_nv_why(), "");
  why(RIG_NV_LOST, "of another thread");
  return NULL;
}

static void is_the_threads_own(void **state) {
  (void)state;
  bool empty = false;
  pthread_t t;
  why(RIG_NV_INVALID, "mine");
  assert_int_equal(pthread_create(&t, NULL, first_reason, &empty), 0);
  assert_int_equal(pthread_join(t, NULL), 0);
  assert_true(empty);
  assert_string_equal(rig_nv_why(), "mine");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(raises),
      cmocka_unit_test(raises_from_threads),
      cmocka_unit_test(numbers),
      cmocka_unit_test(lengths),
      cmocka_unit_test(formats_its_own_reason),
      cmocka_unit_test(is_the_threads_own),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
