/* SPDX-License-Identifier: ISC */
/*
 * What fits, when, and what is refused; that no range in flight is given out
 * again; and that broken counts stop the process.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rings/bed.h"

static const struct {
  const char *name;
  struct rig_part parts[2];
  size_t nparts;
  enum rig_room expect;
} rooms[] = {
    {"nothing", {{0}}, 0, RIG_FITS},
    {"no part", {{0}}, 1, RIG_NEVER},
    {"a kind beyond", {{.kind = RIG_LAUNCH + 1}}, 1, RIG_NEVER},
    {"a kind below", {{.kind = -1}}, 1, RIG_NEVER},
    {"a queue beyond", {ZERO_PART(2, FIRST)}, 1, RIG_NEVER},
    {"a queue below", {ZERO_PART(-1, FIRST)}, 1, RIG_NEVER},
    {"an odd number of words", {WORDS_PART(COPY, 3, FIRST)}, 1, RIG_NEVER},
    {"bytes on COMPUTE",
     {{.queue = COMPUTE, .kind = RIG_COPY, .copy = {.bytes = 1}}},
     1,
     RIG_NEVER},
    {"after itself", {ZERO_PART(COPY, AFTER(0))}, 1, RIG_NEVER},
    {"after a later one",
     {ZERO_PART(COPY, AFTER(1)), ZERO_PART(COPY, FIRST)},
     2,
     RIG_NEVER},
    {"after none",
     {ZERO_PART(COPY, FIRST), ZERO_PART(COPY, AFTER(-1))},
     2,
     RIG_NEVER},
    {"fill bytes on COMPUTE",
     {{.queue = COMPUTE, .kind = RIG_FILL, .fill = {.bytes = 1}}},
     1,
     RIG_NEVER},
    {"a launch, which this version does not run",
     {{.queue = COMPUTE, .kind = RIG_LAUNCH}},
     1,
     RIG_NEVER},
    {"more lines than a loop ends over",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {.bytes = UINT64_MAX,
                .rows = UINT64_MAX,
                .dst_pitch = UINT64_MAX}}},
     1,
     RIG_NEVER},
    {"more fills than a loop ends over",
     {{.queue = COPY,
       .kind = RIG_FILL,
       .fill = {.dst = 1,
                .bytes = UINT64_MAX,
                .rows = UINT64_MAX,
                .dst_pitch = 3}}},
     1,
     RIG_NEVER},
    {"the most rows of one launch each",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {.bytes = 1, .rows = UINT64_MAX, .dst_pitch = UINT32_MAX}}},
     1,
     RIG_GROW},
    {"more entries than a ring can have",
     {WORDS_PART(COPY, SIZE_MAX - 1, FIRST)},
     1,
     RIG_NEVER},
    {"2^31 - 1 entries at most",
     {WORDS_PART(COPY, UINT32_MAX - 3, FIRST)},
     1,
     RIG_NEVER},
    {"one fewer grows", {WORDS_PART(COPY, UINT32_MAX - 7, FIRST)}, 1, RIG_GROW},
    {"as many as the ring holds",
     {WORDS_PART(COMPUTE, 2 * 61, FIRST)},
     1,
     RIG_FITS},
    {"one more than it holds",
     {WORDS_PART(COMPUTE, 2 * 62, FIRST)},
     1,
     RIG_GROW},
    {"a copy beside them takes none",
     {WORDS_PART(COPY, 2 * 61, FIRST), COPY_PART(0xa000, 0xb000, 16, FIRST)},
     2,
     RIG_FITS},
    {"nor do words of none",
     {WORDS_PART(COMPUTE, 2 * 61, FIRST), WORDS_PART(COMPUTE, 0, FIRST)},
     2,
     RIG_FITS},
    {"words after words take one more",
     {WORDS_PART(COMPUTE, 2 * 30, FIRST), WORDS_PART(COMPUTE, 2 * 30, FIRST)},
     2,
     RIG_FITS},
    {"and no less",
     {WORDS_PART(COMPUTE, 2 * 31, FIRST), WORDS_PART(COMPUTE, 2 * 30, FIRST)},
     2,
     RIG_GROW},
    {"more words than the segment ring holds",
     {COPY_PART(0, 0, UINT64_C(120) << 31, FIRST)},
     1,
     RIG_GROW},
};

static void test_rooms(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
    struct bed *b = bed_make(&usual);
    struct rig_submission s = {.parts = rooms[i].parts,
                               .nparts = rooms[i].nparts};
    enum rig_room got = rings_room(&b->rings, &s);
    if (got != rooms[i].expect)
      fail_msg("%s: got %d, want %d", rooms[i].name, got, rooms[i].expect);
    bed_free(b);
  }
}

/* RIG_LATER while as many values as there are marks are not reached, from any
 * first value, and RIG_FITS once one is. */
static void test_in_flight(void **state) {
  (void)state;
  static const uint64_t starts[] = {0, 7, UINT32_MAX - 2, UINT64_MAX - 2};
  for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
    struct sizes z = usual;
    z.v = starts[i];
    struct bed *b = bed_make(&z);
    struct rig_submission s = {0};
    for (uint32_t k = 0; k < z.marks; k++)
      submit_ok(b, &s);
    assert_int_equal(rings_room(&b->rings, &s), RIG_LATER);
    b->word++;
    submit_ok(b, &s);
    assert_int_equal(rings_room(&b->rings, &s), RIG_LATER);
    b->word = rings_last(&b->rings);
    submit_ok(b, &s);
    bed_free(b);
  }
}

/* What fits an empty ring once fits it from every position. */
static void test_every_position(void **state) {
  (void)state;
  struct sizes z = {8, 16, 4, 0, 0, 0, 0, 0, 0};
  for (uint32_t at = 0; at < 2 * z.units; at++) {
    for (uint32_t copies = 0; copies < 30; copies++) {
      struct rig_part parts[30];
      for (uint32_t k = 0; k < copies; k++)
        parts[k] = (struct rig_part)COPY_PART(0xa000, 0xb000, 1, FIRST);
      struct rig_submission s = {.parts = parts, .nparts = copies};
      z.start_units = 0;
      struct bed *b = bed_make(&z);
      enum rig_room first = rings_room(&b->rings, &s);
      bed_free(b);
      z.start_units = UINT32_MAX - z.units + at;
      b = bed_make(&z);
      assert_int_equal(rings_room(&b->rings, &s), first);
      if (first == RIG_FITS) {
        submit_ok(b, &s);
        assert_null(strchr(b->trace, '?'));
        b->word = rings_last(&b->rings);
        assert_int_equal(rings_room(&b->rings, &s), RIG_FITS);
      }
      bed_free(b);
    }
  }
}

/* Random submissions in small rings: no piece or entry lands where a value in
 * flight has one. */
static uint64_t next(uint64_t *x) {
  *x ^= *x << 13;
  *x ^= *x >> 7;
  return *x ^= *x << 17;
}

static void test_no_overrun(void **state) {
  (void)state;
  enum { ENTRIES = 8, UNITS = 32, MARKS = 4, ROUNDS = 20000 };
  struct sizes z = {ENTRIES,
                    UNITS,
                    MARKS,
                    (uint32_t)-(5 * ENTRIES),
                    UINT32_MAX - 100,
                    UINT64_MAX - 500,
                    UINT64_MAX - 50,
                    0,
                    0};
  struct bed *b = bed_make(&z);
  uint64_t unit_owner[QUEUES][UNITS], entry_owner[QUEUES][ENTRIES], seed = 1;
  uint64_t fits = 0, later = 0;
  memset(unit_owner, 0, sizeof unit_owner);
  memset(entry_owner, 0, sizeof entry_owner);
  for (int q = 0; q < QUEUES; q++) {
    for (int i = 0; i < UNITS; i++)
      unit_owner[q][i] = z.v;
    for (int i = 0; i < ENTRIES; i++)
      entry_owner[q][i] = z.v;
  }
  for (int round = 0; round < ROUNDS; round++) {
    struct rig_part parts[4];
    size_t n = next(&seed) % 4;
    for (size_t i = 0; i < n; i++)
      switch (next(&seed) % 3) {
      case 0:
        parts[i] =
            (struct rig_part)WORDS_PART((int)(next(&seed) % 2), 2, FIRST);
        break;
      case 1:
        parts[i] = (struct rig_part)COPY_PART(0xa000, 0xb000, 1, FIRST);
        break;
      default:
        parts[i] = (struct rig_part)COPY_PART(0xa000, 0xb000, UINT64_C(9) << 31,
                                              FIRST);
      }
    struct rig_submission s = {.parts = parts, .nparts = n};
    const struct ring_ask ask = {.for_what = RING_ROOM};
    struct ring_need need;
    struct ring_plan p;
    ring_need(&s, &need);
    if (ring_reserve(&b->rings, &need, n, &ask, &p) != RIG_FITS) {
      later++;
      assert_true(b->word != rings_last(&b->rings));
      b->word += 1 + next(&seed) % (rings_last(&b->rings) - b->word);
      continue;
    }
    fits++;
    for (int q = 0; q < QUEUES; q++) {
      if (!(p.used & 1u << q))
        continue;
      for (uint32_t e = p.from.entries[q]; e != p.to.entries[q]; e++) {
        assert_true(rig_reached(b->word, entry_owner[q][e % ENTRIES]));
        entry_owner[q][e % ENTRIES] = p.to.v;
      }
      uint32_t units = (uint32_t)((need.words[q] + 15) / 16);
      assert_true(p.start[q] + units <= UNITS);
      for (uint32_t u = p.start[q]; u < p.start[q] + units; u++) {
        assert_true(rig_reached(b->word, unit_owner[q][u]));
        unit_owner[q][u] = p.to.v;
      }
    }
    submit_ok(b, &s);
    assert_null(strchr(b->trace, '?'));
  }
  assert_true(fits > ROUNDS / 10 && later > ROUNDS / 10);
  bed_free(b);
}

static const struct {
  const char *name;
  uint64_t v;
  struct rig_wait wait;
  size_t nwaits;
  const char *expect;
} refusals[] = {
    {"the last value again",
     0,
     {0},
     0,
     "not the value after the last "
     "one"},
    {"a value beyond", 2, {0}, 0, "not the value after the last one"},
    {"257 waits", 1, {0x9000, 1, RIG_WAIT_WORD}, 257, "more than 256 waits"},
    {"an object",
     1,
     {0x9000, 1, RIG_WAIT_OBJECT},
     1,
     "a wait that is not for a word"},
    {"misaligned",
     1,
     {0x9004, 1, RIG_WAIT_WORD},
     1,
     "a wait whose word is not 8-byte aligned"},
    {"at 2^40",
     1,
     {UINT64_C(1) << 40, 1, RIG_WAIT_WORD},
     1,
     "a wait whose word lies at 2^40 or above"},
    {"its own value",
     1,
     {WORD, 1, RIG_WAIT_WORD},
     1,
     "a wait for this device's own word to reach the value submitted, "
     "or a later one"},
    {"a later value",
     1,
     {WORD, 99, RIG_WAIT_WORD},
     1,
     "a wait for this device's own word to reach the value submitted, "
     "or a later one"},
};

static void test_refusals(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    struct bed *b = bed_make(&usual);
    struct rig_wait waits[257];
    for (size_t k = 0; k < 257; k++)
      waits[k] = refusals[i].wait;
    struct rig_submission s = {.waits = waits, .nwaits = refusals[i].nwaits};
    struct cursor before, after;
    tail_last(&b->rings.tail, &before);
    const char *failure = NULL;
    assert_int_equal(rings_submit(&b->rings, refusals[i].v, &s, &failure),
                     RIG_FAILED);
    assert_string_equal(failure, refusals[i].expect);
    tail_last(&b->rings.tail, &after);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(b->gp_put[0] | b->gp_put[1] | b->doorbell, 0);
    s.nwaits = 0;
    submit_ok(b, &s);
    bed_free(b);
  }
}

static void test_submit_without_room(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  struct rig_part p = {0};
  struct rig_submission s = {0}, bad = {.parts = &p, .nparts = 1};
  const char *failure = NULL;
  for (uint32_t k = 0; k < usual.marks; k++)
    submit_ok(b, &s);
  assert_int_equal(submit(b, &s, &failure), RIG_FAILED);
  assert_string_equal(failure, "the parts do not fit now, as room would have "
                               "said");
  assert_string_equal(b->trace, "COMPUTE; COPY");
  assert_int_equal(submit(b, &bad, &failure), RIG_FAILED);
  assert_string_equal(failure, "a part that the device does not run");
  bed_free(b);
}

/* Tokens reach the doorbell, and the flush word is read where it must be. */
static void test_publish(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  struct rig_submission s = {0};
  submit_ok(b, &s);
  assert_int_equal(b->doorbell, 0x70);
  assert_int_equal(b->gp_put[COMPUTE], 1);
  struct rig_part p = ZERO_PART(COPY, FIRST);
  s = (struct rig_submission){.parts = &p, .nparts = 1};
  submit_ok(b, &s);
  assert_int_equal(b->doorbell, 0x71);
  assert_int_equal(b->gp_put[COPY], 1);
  bed_free(b);
}

/* ---- without a turn ---- */

static void test_post(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  struct rig_part odd = WORDS_PART(COPY, 3, FIRST),
                  long_one = WORDS_PART(COMPUTE, 4096, FIRST);
  struct rig_submission s = {0}, never = {.parts = &odd, .nparts = 1},
                        grow = {.parts = &long_one, .nparts = 1};
  const char *refused = NULL;
  uint64_t v = 99;
  assert_int_equal(rings_post(&b->rings, &never, &v, &refused), RIG_NEVER);
  assert_int_equal(rings_post(&b->rings, &grow, &v, &refused), RIG_GROW);
  assert_int_equal(v, 99);
  for (uint32_t k = 1; k <= usual.marks; k++) {
    assert_int_equal(rings_post(&b->rings, &s, &v, &refused), 0);
    assert_int_equal(v, k);
    assert_int_equal(b->gp_put[COMPUTE], k);
    assert_int_equal(b->rings.seat.published, k);
    assert_int_equal(b->rings.seat.bells, k);
  }
  assert_int_equal(rings_post(&b->rings, &s, &v, &refused), RIG_LATER);
  assert_int_equal(v, usual.marks);
  b->word = v;
  for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
    struct rig_wait waits[257];
    if (refusals[i].nwaits == 0)
      continue;
    for (size_t k = 0; k < 257; k++) {
      waits[k] = refusals[i].wait;
      if (waits[k].at == WORD)
        waits[k].value += v;
    }
    struct rig_submission w = {.waits = waits, .nwaits = refusals[i].nwaits};
    assert_int_equal(rings_post(&b->rings, &w, &v, &refused), -RIG_NV_INVALID);
    assert_string_equal(refused, refusals[i].expect);
  }
  assert_int_equal(rings_last(&b->rings), usual.marks);
  bed_free(b);
}

/* ---- what no rings have ---- */

/* As many values in flight as there are marks: the next looks at the word. */
static void full(struct bed *b) {
  const struct rig_submission s = {0};
  const char *failure;
  uint64_t v = rings_last(&b->rings);
  while (rings_submit(&b->rings, ++v, &s, &failure) == RIG_COMMITTED)
    ;
}

static void word_beyond(struct bed *b) {
  full(b);
  b->word = rings_last(&b->rings) + 1;
}

static void word_before(struct bed *b) {
  full(b);
  b->word = UINT64_MAX;
}

/* The cursor after the last value, to be changed. */
static struct cursor *last(struct bed *b) {
  return (struct cursor *)&b->rings.tail
      .node[tail_node_of(b->rings.tail.word.w[0])];
}

static void entries_jump(struct bed *b) { last(b)->entries[COMPUTE] += 64; }

static void units_jump(struct bed *b) { last(b)->units[COMPUTE] += 128; }

static void gp_put_back(struct bed *b) { b->rings.seat.entries[COMPUTE] += 3; }

/* Counts that would have the GPU fetch what nobody wrote stop the process, in
 * release builds too. */
static const struct {
  const char *name;
  void (*corrupt)(struct bed *);
  int signal; /* that ends the process, or 0 */
} broken[] = {
    {"nothing", NULL, 0},
    {"a word that was never submitted", word_before, SIGABRT},
    {"a word beyond the last value", word_beyond, SIGABRT},
    {"as many values as there are marks", full, 0},
    {"used entries above the ring's", entries_jump, SIGABRT},
    {"used units above the ring's", units_jump, SIGABRT},
    {"GP_PUT that goes back", gp_put_back, SIGABRT},
};

static void test_broken(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
    struct bed *b = bed_make(&usual);
    struct rig_submission s = {0};
    const char *failure;
    int status;
    submit_ok(b, &s);
    pid_t child = fork();
    if (child == 0) {
      (void)!freopen("/dev/null", "w", stderr);
      if (broken[i].corrupt)
        broken[i].corrupt(b);
      (void)rings_submit(&b->rings, rings_last(&b->rings) + 1, &s, &failure);
      _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    int got = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (got != broken[i].signal)
      fail_msg("%s: signal %d, not %d", broken[i].name, got, broken[i].signal);
    bed_free(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rooms),
      cmocka_unit_test(test_in_flight),
      cmocka_unit_test(test_every_position),
      cmocka_unit_test(test_no_overrun),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_submit_without_room),
      cmocka_unit_test(test_publish),
      cmocka_unit_test(test_post),
      cmocka_unit_test(test_broken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
