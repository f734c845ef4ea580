/* SPDX-License-Identifier: ISC */
/*
 * What a submission becomes: the entries and words of both channels, against
 * tables.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rings/bed.h"

struct encoding {
  const char *name;
  struct rig_part parts[8];
  size_t nparts;
  struct rig_wait waits[2];
  size_t nwaits;
  const char *expect;
};

/* A value whose only parts are on COPY. */
#define IN_COPY "COMPUTE; COPY" SETUP1 " acquire(1000,1)"
#define OUT_COPY " copy-release(1000,2) |"

/* Each is the second value, after an empty first one that COMPUTE released,
 * so COPY owes its setup and COMPUTE owes nothing. */
static const struct encoding encodings[] = {
    {"no parts", {{0}}, 0, {{0}}, 0, "COMPUTE release(1000,2) |; COPY"},
    {"a copy",
     {COPY_PART(0xa000, 0xb000, 16, FIRST)},
     1,
     {{0}},
     0,
     "COMPUTE; COPY" SETUP1
     " acquire(1000,1) copy(a000,b000,10) copy-release(1000,2) |"},
    {"a copy of no bytes keeps its place",
     {ZERO_PART(COPY, FIRST)},
     1,
     {{0}},
     0,
     "COMPUTE; COPY" SETUP1 " acquire(1000,1) copy-release(1000,2) |"},
    {"no bytes on COMPUTE",
     {ZERO_PART(COMPUTE, FIRST)},
     1,
     {{0}},
     0,
     "COMPUTE release(1000,2) |; COPY"},
    {"offsets are added",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0xa000, 3, 0xb000, 5, 7, 1, 0, 0, 0}}},
     1,
     {{0}},
     0,
     "COMPUTE; COPY" SETUP1
     " acquire(1000,1) copy(a003,b005,7) copy-release(1000,2) |"},
    {"more than 2 GiB is several launches",
     {COPY_PART(0xa000, 0xb000, (UINT64_C(2) << 31) + 5, FIRST)},
     1,
     {{0}},
     0,
     "COMPUTE; COPY" SETUP1 " acquire(1000,1) copy(a000,b000,80000000)"
     " copy(8000a000,8000b000,80000000) copy(10000a000,10000b000,5)"
     " copy-release(1000,2) |"},
    {"rows are one box",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0xa000, 1, 0xb000, 2, 24, 10, 64, 128, 0}}},
     1,
     {{0}},
     0,
     IN_COPY " box(a001+40,b002+80,ax18)" OUT_COPY},
    {"no rows is one",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0xa000, 0, 0xb000, 0, 24, 0, 64, 128, 0}}},
     1,
     {{0}},
     0,
     IN_COPY " copy(a000,b000,18)" OUT_COPY},
    {"2^32 - 1 rows a box",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0xa000, 0, 0xb000, 0, 1, UINT64_C(0x100000001), 1, 0, 0}}},
     1,
     {{0}},
     0,
     IN_COPY
     " box(a000+1,b000+0,ffffffffx1) box(100009fff+1,b000+0,2x1)" OUT_COPY},
    {"rows of 2 GiB are a box",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0, 0, 0, 0, UINT64_C(1) << 31, 2, UINT32_MAX, UINT32_MAX, 0}}},
     1,
     {{0}},
     0,
     IN_COPY " box(0+ffffffff,0+ffffffff,2x80000000)" OUT_COPY},
    {"longer rows go line by line",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0, 0, 0, 0, (UINT64_C(1) << 31) + 1, 2, 0xc0000000, 0x90000000,
                0}}},
     1,
     {{0}},
     0,
     IN_COPY
     " copy(0,0,80000000) copy(80000000,80000000,1)"
     " copy(c0000000,90000000,80000000) copy(140000000,110000000,1)" OUT_COPY},
    {"a pitch of 2^32 goes line by line",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0, 0, 0, 0, 16, 2, 64, UINT64_C(1) << 32, 0}}},
     1,
     {{0}},
     0,
     IN_COPY " copy(0,0,10) copy(40,100000000,10)" OUT_COPY},
    {"so does one of the destination",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0, 0, 0, 0, 16, 2, UINT64_C(1) << 32, 64, 0}}},
     1,
     {{0}},
     0,
     IN_COPY " copy(0,0,10) copy(100000000,40,10)" OUT_COPY},
    {"an aligned fill",
     {FILL_PART(0xa000, 16, 0x5a)},
     1,
     {{0}},
     0,
     IN_COPY " fill4(a000,5a5a5a5a,4)" OUT_COPY},
    {"a fill with bytes at both ends",
     {FILL_PART(0xa001, 10, 0x5a)},
     1,
     {{0}},
     0,
     IN_COPY
     " fill1(a001,5a,3) fill4(a004,5a5a5a5a,1) fill1(a008,5a,3)" OUT_COPY},
    {"a fill that reaches no multiple of 4",
     {FILL_PART(0xa001, 2, 0xff)},
     1,
     {{0}},
     0,
     IN_COPY " fill1(a001,ff,2)" OUT_COPY},
    {"a fill up to a multiple of 4",
     {FILL_PART(0xa003, 5, 0)},
     1,
     {{0}},
     0,
     IN_COPY " fill1(a003,0,1) fill4(a004,0,1)" OUT_COPY},
    {"2 GiB a launch of a fill",
     {FILL_PART(0xa000, (UINT64_C(1) << 32) + 4, 1)},
     1,
     {{0}},
     0,
     IN_COPY " fill4(a000,1010101,20000000) fill4(8000a000,1010101,20000000)"
             " fill4(10000a000,1010101,1)" OUT_COPY},
    {"rows of a fill, each by itself",
     {{.queue = COPY, .kind = RIG_FILL, .fill = {0xa000, 2, 4, 3, 5, 7}}},
     1,
     {{0}},
     0,
     IN_COPY " fill1(a002,7,2) fill1(a004,7,2) fill1(a007,7,1) fill1(a008,7,3)"
             " fill4(a00c,7070707,1)" OUT_COPY},
    {"a fill of no bytes keeps its place, on COMPUTE too",
     {{.queue = COMPUTE, .kind = RIG_FILL},
      {.queue = COPY, .kind = RIG_FILL, AFTER(0)}},
     2,
     {{0}},
     0,
     "COMPUTE release(2000,1) |; COPY" SETUP1
     " acquire(1000,1) acquire(2000,1) copy-release(1000,2) |"},
    {"words after a fill settle",
     {FILL_PART(0xa000, 4, 0), WORDS_PART(COPY, 2, FIRST)},
     2,
     {{0}},
     0,
     IN_COPY " fill4(a000,0,1) release(2040,1) |" F0 " release(1000,2) |"},
    {"words first of all: no segment before them",
     {WORDS_PART(COMPUTE, 2, FIRST)},
     1,
     {{0}},
     0,
     "COMPUTE" F0 " release(1000,2) |; COPY"},
    {"words of two entries on COPY, after what entering takes",
     {WORDS_PART(COPY, 4, FIRST)},
     1,
     {{0}},
     0,
     "COMPUTE; COPY" SETUP1 " acquire(1000,1) |" F0 F1 " release(1000,2) |"},
    {"words of no entries",
     {WORDS_PART(COMPUTE, 0, FIRST)},
     1,
     {{0}},
     0,
     "COMPUTE release(1000,2) |; COPY"},
    {"words after words settle",
     {WORDS_PART(COMPUTE, 2, FIRST), WORDS_PART(COMPUTE, 2, FIRST)},
     2,
     {{0}},
     0,
     "COMPUTE" F0 " release(2000,1) |" F0 " release(1000,2) |; COPY"},
    {"words after a copy settle, and a copy after words",
     {COPY_PART(0xa000, 0xb000, 16, FIRST), WORDS_PART(COPY, 2, FIRST),
      COPY_PART(0xc000, 0xd000, 16, FIRST)},
     3,
     {{0}},
     0,
     "COMPUTE; COPY" SETUP1 " acquire(1000,1) copy(a000,b000,10)"
     " release(2040,1) |" F0
     " release(2040,2) copy(c000,d000,10) copy-release(1000,2) |"},
    {"both channels: the other's last part is joined",
     {WORDS_PART(COMPUTE, 2, FIRST), COPY_PART(0xa000, 0xb000, 16, FIRST)},
     2,
     {{0}},
     0,
     "COMPUTE" F0 " release(2000,1) |; COPY" SETUP1
     " acquire(1000,1) copy(a000,b000,10) acquire(2000,1)"
     " copy-release(1000,2) |"},
    {"a copy after words, and back",
     {WORDS_PART(COMPUTE, 2, FIRST), COPY_PART(0xa000, 0xb000, 16, AFTER(0)),
      WORDS_PART(COMPUTE, 2, AFTER(1))},
     3,
     {{0}},
     0,
     "COMPUTE" F0 " release(2000,1) acquire(2040,2) |" F0
     " release(1000,2) |; COPY" SETUP1
     " acquire(1000,1) acquire(2000,1) copy(a000,b000,10)"
     " copy-release(2040,2) |"},
    {"after its own queue needs nothing",
     {COPY_PART(0xa000, 0xb000, 16, FIRST),
      COPY_PART(0xb000, 0xc000, 16, AFTER(0))},
     2,
     {{0}},
     0,
     "COMPUTE; COPY" SETUP1 " acquire(1000,1) copy(a000,b000,10)"
     " copy(b000,c000,10) copy-release(1000,2) |"},
    {"after several: the latest alone",
     {COPY_PART(0xa000, 0xb000, 1, FIRST), COPY_PART(0xa000, 0xb000, 2, FIRST),
      COPY_PART(0xa000, 0xb000, 3, FIRST),
      WORDS_PART(COMPUTE, 2, AFTER(1, 0, 1))},
     4,
     {{0}},
     0,
     "COMPUTE acquire(2040,2) |" F0
     " acquire(2040,3) release(1000,2) |; COPY" SETUP1
     " acquire(1000,1) copy(a000,b000,1) copy(a000,b000,2)"
     " copy-release(2040,2) copy(a000,b000,3) copy-release(2040,3) |"},
    {"after what was already waited for",
     {COPY_PART(0xa000, 0xb000, 1, FIRST), WORDS_PART(COMPUTE, 2, AFTER(0)),
      WORDS_PART(COMPUTE, 2, AFTER(0))},
     3,
     {{0}},
     0,
     "COMPUTE acquire(2040,1) |" F0 " release(2000,2) |" F0
     " release(1000,2) |; COPY" SETUP1
     " acquire(1000,1) copy(a000,b000,1) copy-release(2040,1) |"},
    {"a part of no bytes joins and is joined",
     {ZERO_PART(COMPUTE, FIRST), ZERO_PART(COPY, AFTER(0)),
      ZERO_PART(COMPUTE, AFTER(1))},
     3,
     {{0}},
     0,
     "COMPUTE release(2000,1) acquire(2040,2) release(1000,2) |; COPY" SETUP1
     " acquire(1000,1) acquire(2000,1) copy-release(2040,2) |"},
    {"waits on the channel entered first, which tells the other",
     {WORDS_PART(COMPUTE, 2, FIRST), COPY_PART(0xa000, 0xb000, 16, FIRST)},
     2,
     {{0x9000, 5, RIG_WAIT_WORD}, {0x9008, 6, RIG_WAIT_WORD}},
     2,
     "COMPUTE acquire(9000,5) acquire(9008,6) release(2000,0) |" F0
     " release(2000,1) |; COPY" SETUP1 " acquire(1000,1) acquire(2000,0)"
     " copy(a000,b000,10) acquire(2000,1) copy-release(1000,2) |"},
    {"waits on one channel alone",
     {COPY_PART(0xa000, 0xb000, 16, FIRST)},
     1,
     {{0x9000, 5, RIG_WAIT_WORD}},
     1,
     IN_COPY " acquire(9000,5) copy(a000,b000,10)" OUT_COPY},
    {"waits on COPY first",
     {ZERO_PART(COPY, FIRST), ZERO_PART(COMPUTE, FIRST)},
     2,
     {{0x9000, 5, RIG_WAIT_WORD}},
     1,
     "COMPUTE acquire(2040,0) acquire(2040,1) release(1000,2) |; COPY" SETUP1
     " acquire(1000,1) acquire(9000,5) release(2040,0) copy-release(2040,1) |"},
    {"a signal behind words is the host's",
     {WORDS_PART(COPY, 2, FIRST), ZERO_PART(COMPUTE, AFTER(0))},
     2,
     {{0}},
     0,
     "COMPUTE acquire(2040,1) release(1000,2) |; COPY" SETUP1
     " acquire(1000,1) |" F0 " release(2040,1) |"},
};

static void test_encodings(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof encodings / sizeof encodings[0]; i++) {
    const struct encoding *t = &encodings[i];
    struct sizes z = usual;
    z.joins = UINT64_MAX - 1; /* so that part 0's tag is 1 */
    struct bed *b = bed_make(&z);
    struct rig_submission first = {0}, s = {.parts = t->parts,
                                            .nparts = t->nparts,
                                            .waits = t->waits,
                                            .nwaits = t->nwaits};
    submit_ok(b, &first);
    assert_string_equal(b->trace, "COMPUTE" SETUP0
                                  " acquire(1000,0) release(1000,1) |; COPY");
    submit_ok(b, &s);
    if (strcmp(b->trace, t->expect) != 0)
      fail_msg("%s:\n got %s\nwant %s", t->name, b->trace, t->expect);
    bed_free(b);
  }
}

/* Who releases, and what the next value then acquires. */
static void test_releases(void **state) {
  (void)state;
  enum { FOREIGN = 8 };
  static const struct {
    const char *name;
    uint64_t start;
    int queues[3]; /* of a part of no bytes, or FOREIGN entries; -1: none */
    const char *expect[3];
  } rows[] = {
      {"the same channel again does not acquire",
       0,
       {COPY, COPY, COMPUTE},
       {"COMPUTE; COPY" SETUP1 " acquire(1000,0) copy-release(1000,1) |",
        "COMPUTE; COPY copy-release(1000,2) |",
        "COMPUTE" SETUP0 " acquire(1000,2) release(1000,3) |; COPY"}},
      {"words on COPY acquire the value that COPY released",
       0,
       {COPY, COPY | FOREIGN, COPY | FOREIGN},
       {"COMPUTE; COPY" SETUP1 " acquire(1000,0) copy-release(1000,1) |",
        "COMPUTE; COPY acquire(1000,1) |" F0 " release(1000,2) |",
        "COMPUTE; COPY acquire(1000,2) |" F0 " release(1000,3) |"}},
      {"words on COMPUTE need not",
       0,
       {COMPUTE, COMPUTE | FOREIGN, COMPUTE | FOREIGN},
       {"COMPUTE" SETUP0 " acquire(1000,0) release(1000,1) |; COPY",
        "COMPUTE" F0 " release(1000,2) |; COPY",
        "COMPUTE" F0 " release(1000,3) |; COPY"}},
      {"COMPUTE releases a value whose low half is 0",
       UINT64_C(0xfffffffe),
       {COPY, COPY, COPY},
       {"COMPUTE; COPY" SETUP1
        " acquire(1000,4294967294) copy-release(1000,4294967295) |",
        "COMPUTE" SETUP0 " acquire(1000,4294967295) acquire(2040,4)"
        " release(1000,4294967296) |; COPY copy-release(2040,4) |",
        "COMPUTE; COPY acquire(1000,4294967296)"
        " copy-release(1000,4294967297) |"}},
      {"across 2^64",
       UINT64_MAX - 1,
       {COMPUTE, -1, COPY},
       {"COMPUTE" SETUP0 " acquire(1000,18446744073709551614)"
        " release(1000,18446744073709551615) |; COPY",
        "COMPUTE release(1000,0) |; COPY",
        "COMPUTE; COPY" SETUP1 " acquire(1000,0) copy-release(1000,1) |"}},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    struct sizes z = usual;
    z.v = rows[i].start;
    struct bed *b = bed_make(&z);
    for (int k = 0; k < 3; k++) {
      struct rig_part p = ZERO_PART(rows[i].queues[k], FIRST);
      struct rig_submission s = {.parts = &p, .nparts = p.queue >= 0};
      if (p.queue > 0 && p.queue & FOREIGN)
        p = (struct rig_part)WORDS_PART(p.queue & ~FOREIGN, 2, FIRST);
      submit_ok(b, &s);
      if (strcmp(b->trace, rows[i].expect[k]) != 0)
        fail_msg("%s, value %d:\n got %s\nwant %s", rows[i].name, k + 1,
                 b->trace, rows[i].expect[k]);
    }
    bed_free(b);
  }
}

/* 256 waits fit, and their own values below v are waits like any other. */
static void test_most_waits(void **state) {
  (void)state;
  struct sizes z = usual;
  z.units = 256;
  struct bed *b = bed_make(&z);
  struct rig_wait waits[256];
  for (size_t k = 0; k < 256; k++)
    waits[k] = (struct rig_wait){WORD, 0, RIG_WAIT_WORD};
  struct rig_part p = ZERO_PART(COPY, FIRST);
  struct rig_submission s = {
      .parts = &p, .nparts = 1, .waits = waits, .nwaits = 256};
  submit_ok(b, &s);
  size_t n = 0;
  for (const char *t = b->trace; (t = strstr(t, "acquire(1000,0)")); t++)
    n++;
  assert_int_equal(n, 257);
  bed_free(b);
}

/* COMPUTE is entered second, by the first value: all that entering ever
 * takes. */
static void test_most_entering(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  struct rig_wait wait = {0x9000, 5, RIG_WAIT_WORD};
  struct rig_part p[] = {ZERO_PART(COPY, FIRST), ZERO_PART(COMPUTE, FIRST)};
  struct rig_submission s = {
      .parts = p, .nparts = 2, .waits = &wait, .nwaits = 1};
  submit_ok(b, &s);
  assert_string_equal(b->trace,
                      "COMPUTE" SETUP0 " acquire(1000,0) acquire(2040,1)"
                      " acquire(2040,2) release(1000,1) |; COPY" SETUP1
                      " acquire(1000,0) acquire(9000,5) release(2040,1)"
                      " copy-release(2040,2) |");
  bed_free(b);
}

/* A segment closes every 4 MiB, and what was counted ahead, in closed form, is
 * what is written: ring_encode asserts it. */
static const struct {
  const char *name;
  struct rig_part parts[3];
  size_t nparts;
  uint64_t words; /* of the parts */
} longs[] = {
    {"lines of one copy",
     {COPY_PART(0, 0, UINT64_C(250000) << 31, FIRST)},
     1,
     250000 * 9},
    {"lines of rows",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {.bytes = (UINT64_C(1) << 31) + 1, .rows = 120000}}},
     1,
     240000 * 9},
    {"boxes between lines",
     {COPY_PART(0, 0, UINT64_C(116000) << 31, FIRST),
      {.queue = COPY,
       .kind = RIG_COPY,
       .copy = {.bytes = 1, .rows = UINT64_C(999) * UINT32_MAX}},
      COPY_PART(0, 0, UINT64_C(116507) << 31, FIRST)},
     3,
     116000 * 9 + 999 * 11 + 116507 * 9},
    {"fills of rows",
     {{.queue = COPY,
       .kind = RIG_FILL,
       .fill = {.dst = 1, .bytes = 9, .rows = 70003, .dst_pitch = 5}}},
     1,
     /* at 1, 2, 3, 0 to a multiple of 4: 3, 3, 2, 2 launches */
     (17501 * (3 + 3 + 2 + 2) - 2) * 11},
};

static void test_long_segments(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof longs / sizeof longs[0]; i++) {
    struct sizes z = {64, 1 << 18, 8, 0, 0, 0, 0, 0, 0};
    struct bed *b = bed_make(&z);
    struct rig_submission s = {.parts = longs[i].parts,
                               .nparts = longs[i].nparts};
    const char *failure = NULL;
    assert_int_equal(rings_room(&b->rings, &s), RIG_FITS);
    assert_int_equal(rings_submit(&b->rings, 1, &s, &failure), RIG_COMMITTED);
    uint64_t words = 0, at = 0;
    for (uint32_t e = 0; e < b->gp_put[COPY]; e++) {
      uint64_t entry = pair(&b->entries[COPY][2 * e]);
      uint64_t n = entry >> 42 & 0x1fffff;
      assert_true(n <= 1 << 20);
      if (e > 0)
        assert_int_equal(entry & UINT64_C(0xfffffffffc), at);
      at = (entry & UINT64_C(0xfffffffffc)) + 4 * n;
      words += n;
    }
    uint64_t want = 2 + 6 + longs[i].words + 7;
    if (words != want)
      fail_msg("%s: %" PRIu64 " words, not %" PRIu64, longs[i].name, words,
               want);
    assert_int_equal(b->gp_put[COPY], (words >> 20) + 1);
    bed_free(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_encodings),
      cmocka_unit_test(test_releases),
      cmocka_unit_test(test_most_waits),
      cmocka_unit_test(test_most_entering),
      cmocka_unit_test(test_long_segments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
