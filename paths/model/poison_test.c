/* SPDX-License-Identifier: ISC */
/*
 * What the engine fetched is overwritten in the driver's block, and nowhere
 * else; what nobody wrote since is refused by name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paths/model/testing.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define LO(x) (uint32_t)(uint64_t)(x)
#define HI(x) (uint32_t)((uint64_t)(x) >> 32)
#define RELEASE(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x01100001

enum { WORDS = 6, BYTES = 4 * WORDS, SEGMENTS = 4 * 4096 };

static bool all(const void *p, size_t n, uint8_t byte) {
  const uint8_t *at = p;
  for (size_t i = 0; i < n; i++)
    if (at[i] != byte)
      return false;
  return true;
}

static uint64_t entry_of(uint64_t at, uint64_t words) {
  return at | UINT64_C(1) << 41 | words << 42;
}

/* A segment in the block or the caller's memory, run twice where it lasts. The
 * release's value is seen only once its words are overwritten. */
static void overwrites(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool poisons, mine; /* the segment is the caller's */
    bool entry, words;  /* overwritten */
  } t[] = {{"the block", true, false, true, true},
           {"a caller's", true, true, true, false},
           {"off", false, false, false, false},
           {"off, a caller's", false, true, false, false}};
  for (size_t i = 0; i < COUNT(t); i++)
    for (uint64_t seed = 1; seed <= 8; seed++) {
      struct rig_nv_model_options o;
      struct bench b;
      rig_nv_model_options_init(&o);
      o.seed = seed;
      o.poisons = t[i].poisons;
      bench_open(&b, &o);
      const uint32_t words[] = {RELEASE(bench_word_at(&b, 0), 7)};
      char *block = b.block.host;
      void *at = t[i].mine ? (void *)bench_data(&b, 0) : block + SEGMENTS;
      memcpy(at, words, BYTES);
      bench_entry(&b, 0,
                  entry_of(t[i].mine ? bench_data_at(&b, 0)
                                     : b.block.address + SEGMENTS,
                           WORDS));
      bench_ring(&b, 0);
      assert_true(bench_wait(bench_word(&b, 0), 7));
      if (all(block, 8, 0xd3) != t[i].entry ||
          all(at, BYTES, 0xd3) != t[i].words)
        fail_msg("%s: entry or words", t[i].name);
      assert_true(all(block + 8, 4096 - 8, 0));
      assert_true(all(block + SEGMENTS + BYTES, 64, 0));
      if (!t[i].words)
        assert_memory_equal(at, words, BYTES);
      bench_close(&b);
    }
}

/* A driver that relies on what it wrote before. */
static void again(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool poisons, segment; /* the same segment again, or the same entry */
    const char *text;      /* "" where it runs */
  } t[] = {
      {"entry", true, false,
       "ring entry 0, 0xd3d3d3d3d3d3d3d3, was fetched before"},
      {"segment", true, true, "header 0xd3d3d3d3 was run before"},
      {"entry, off", false, false, ""},
      {"segment, off", false, true, ""},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct rig_nv_model_options o;
    struct rig_nv_reply r;
    struct bench b;
    rig_nv_model_options_init(&o);
    o.poisons = t[i].poisons;
    bench_open(&b, &o);
    const uint32_t words[] = {RELEASE(bench_word_at(&b, 0), 1)};
    for (uint64_t k = 0; k < BENCH_ENTRIES; k++) {
      bench_run(&b, 0, words, WORDS);
      assert_true(bench_wait(bench_word(&b, 0), 1));
      bench_store(bench_word(&b, 0), 0);
    }
    if (t[i].segment)
      bench_entry(&b, 0, entry_of(b.block.address + SEGMENTS, WORDS));
    else
      b.channel[0].put++;
    bench_ring(&b, 0);
    if (!*t[i].text) {
      assert_true(bench_wait(bench_word(&b, 0), 1));
    } else {
      assert_int_equal(bench_wait_error(&b, 0), 32);
      assert_false(b.path->check(b.path->ctx, &r));
      if (!strstr(r.text, t[i].text))
        fail_msg("%s: %s", t[i].name, r.text);
    }
    bench_close(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(overwrites),
      cmocka_unit_test(again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
