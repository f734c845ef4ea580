/* SPDX-License-Identifier: ISC */
/*
 * What a submission becomes: the entries and words of both channels, read back
 * from the rings' memory by literal header words, against tables.
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

#include "rings/rings.h"

enum {
  WORD = 0x1000,
  JOIN = 0x2000, /* COMPUTE's; COPY's is 0x2040 */
  COMPUTE = RIG_COMPUTE0,
  COPY = RIG_COPY0,
  TRACE = 8192
};

struct bed {
  struct rings rings;
  struct ring_generation generation;
  uint64_t word;
  uint32_t *entries[QUEUES];
  unsigned char *segments[QUEUES];
  uint32_t gp_put[QUEUES], doorbell, seen[QUEUES];
  char trace[TRACE];
};

struct sizes {
  uint32_t entries, units, marks, start_entries, start_units;
  uint64_t v, joins;
};

static const struct sizes usual = {64, 64, 8, 0, 0, 0, 0};

static struct bed *bed_make(const struct sizes *z) {
  struct bed *b = aligned_alloc(_Alignof(struct bed), sizeof *b);
  assert_non_null(b);
  memset(b, 0, sizeof *b);
  b->word = z->v;
  for (int q = 0; q < QUEUES; q++) {
    b->entries[q] = calloc(z->entries, 8);
    b->segments[q] = aligned_alloc(64, (size_t)z->units * 64);
    assert_non_null(b->entries[q]);
    assert_non_null(b->segments[q]);
    memset(b->segments[q], 0xee, (size_t)z->units * 64);
    b->seen[q] = z->start_entries;
    b->generation.channel[q] =
        (struct ring_channel){.entries = b->entries[q],
                              .n = z->entries,
                              .segments = b->segments[q],
                              .segments_gpu = 0x100000u << q,
                              .units = z->units,
                              .gp_put = &b->gp_put[q],
                              .token = 0x70u + (uint32_t)q};
  }
  struct cursor c = {.v = z->v,
                     .joins = z->joins,
                     .entries = {z->start_entries, z->start_entries},
                     .units = {z->start_units, z->start_units},
                     .released_by = NOBODY,
                     .owes = 3};
  struct mark *marks = aligned_alloc(64, z->marks * sizeof *marks);
  assert_non_null(marks);
  rings_init(&b->rings, marks, z->marks, &c);
  b->rings.newest = &b->generation;
  b->rings.word = &b->word;
  b->rings.word_gpu = WORD;
  b->rings.join_gpu[0] = JOIN;
  b->rings.join_gpu[1] = JOIN + 0x40;
  b->rings.doorbell = &b->doorbell;
  b->rings.gpu = (struct rig_nv_gpu){.compute_class = 0xcbc0,
                                     .copy_class = 0xc8b5,
                                     .shared_window = 0xff00000000,
                                     .local_window = 0xfe00000000};
  return b;
}

static void bed_free(struct bed *b) {
  for (int q = 0; q < QUEUES; q++) {
    free(b->entries[q]);
    free(b->segments[q]);
  }
  free(b->rings.marks.at);
  free(b);
}

static void say(struct bed *b, const char *fmt, ...) {
  size_t n = strlen(b->trace);
  va_list args;
  va_start(args, fmt);
  vsnprintf(b->trace + n, sizeof b->trace - n, fmt, args);
  va_end(args);
}

static uint64_t pair(const uint32_t *low) {
  return (uint64_t)low[1] << 32 | low[0];
}

static uint64_t riap(const uint32_t *high) {
  return (uint64_t)high[0] << 32 | high[1];
}

/* One operation at w as text; the words it takes, or 0. */
static size_t say_operation(struct bed *b, const uint32_t *w) {
  switch (w[0]) {
  case 0x20012000: /* SET_OBJECT on subchannel 1 */
    say(b, " compute(%x)", w[1]);
    return 2;
  case 0x20018000: /* on subchannel 4 */
    say(b, " copy-engine(%x)", w[1]);
    return 2;
  case 0x200221ec:
    say(b, " local(%" PRIx64 ")", riap(w + 1));
    return 3;
  case 0x200220a8:
    say(b, " shared(%" PRIx64 ")", riap(w + 1));
    return 3;
  case 0x20050017: /* SEM_ADDR_LO .. SEM_EXECUTE */
    say(b, " %s(%" PRIx64 ",%" PRIu64 ")",
        w[5] == 0x01001003   ? "acquire"
        : w[5] == 0x01100001 ? "release"
                             : "?",
        pair(w + 1), pair(w + 3));
    return 6;
  case 0x20048100: /* OFFSET_IN .. */
    if (w[5] != 0x20018106 || w[7] != 0x200180c0 || w[8] != 0x182)
      return 0;
    say(b, " copy(%" PRIx64 ",%" PRIx64 ",%x)", riap(w + 3), riap(w + 1), w[6]);
    return 9;
  case 0x20088100: /* OFFSET_IN .. LINE_COUNT: a box */
    if (w[9] != 0x200180c0 || w[10] != 0x382)
      return 0;
    say(b, " box(%" PRIx64 "+%x,%" PRIx64 "+%x,%xx%x)", riap(w + 3), w[6],
        riap(w + 1), w[5], w[8], w[7]);
    return 11;
  case 0x20028102: /* OFFSET_OUT: a fill */
    if (w[3] != 0x20018106 || w[5] != 0x200181c0 || w[7] != 0x200181c2 ||
        w[9] != 0x200180c0 || w[10] != 0x582)
      return 0;
    say(b, " fill%d(%" PRIx64 ",%x,%x)", (w[8] >> 16 & 3) + 1, riap(w + 1),
        w[6], w[4]);
    return 11;
  case 0x20048090: /* SET_SEMAPHORE .. */
    if (w[5] != 0x200180c0 || w[6] != 0x0800000c)
      return 0;
    say(b, " copy-release(%" PRIx64 ",%" PRIu64 ")", riap(w + 1), pair(w + 3));
    return 7;
  default:
    return 0;
  }
}

static void say_segment(struct bed *b, int q, uint64_t offset, uint64_t n) {
  const uint32_t *w = (const uint32_t *)(b->segments[q] + offset);
  for (uint64_t i = 0; i < n;) {
    size_t took = say_operation(b, w + i);
    if (took == 0) {
      say(b, " ?%08x", w[i]);
      return;
    }
    i += took;
  }
}

/* The entries that GP_PUT newly shows on channel q; "|" ends a segment. */
static void say_channel(struct bed *b, int q) {
  const struct ring_channel *c = &b->generation.channel[q];
  for (; (b->seen[q] & (c->n - 1)) != b->gp_put[q]; b->seen[q]++) {
    uint64_t e = pair(&b->entries[q][2 * (b->seen[q] & (c->n - 1))]);
    uint64_t at = e & UINT64_C(0xfffffffffc), n = e >> 42 & 0x1fffff;
    if (at < c->segments_gpu || at >= c->segments_gpu + c->units * 64u) {
      say(b, " entry(%" PRIx64 ")", e);
      continue;
    }
    if ((e & UINT64_C(1) << 41) == 0 || e >> 63 != 0)
      say(b, " ?level");
    say_segment(b, q, at - c->segments_gpu, n);
    say(b, " |");
  }
}

/* Submits the next value; the trace is what both channels got. */
static enum rig_done submit(struct bed *b, const struct rig_submission *s,
                            const char **failure) {
  b->trace[0] = 0;
  b->doorbell = 0;
  enum rig_done done = rings_submit(&b->rings, rings_last(&b->rings) + 1, s, failure);
  for (int q = 0; q < QUEUES; q++) {
    say(b, q == COMPUTE ? "COMPUTE" : "; COPY");
    say_channel(b, q);
  }
  return done;
}

static void submit_ok(struct bed *b, const struct rig_submission *s) {
  const char *failure = NULL;
  assert_int_equal(rings_room(&b->rings, s), RIG_FITS);
  enum rig_done done = submit(b, s, &failure);
  if (done != RIG_COMMITTED)
    fail_msg("submit: %s", failure);
}

#define SETUP0 " compute(cbc0) local(fe00000000) shared(ff00000000)"
#define SETUP1 " copy-engine(c8b5)"

static const uint32_t foreign[] = {0x4000, 0x10 << 10, 0x5000, 0x10 << 10};

#define COPY_PART(d, s, n, ...)                                                \
  {.queue = COPY,                                                              \
   .kind = RIG_COPY,                                                           \
   .copy = {.dst = d, .src = s, .bytes = n},                                   \
   __VA_ARGS__}
#define ZERO_PART(q, ...) {.queue = q, .kind = RIG_COPY, __VA_ARGS__}
#define WORDS_PART(q, count, ...)                                              \
  {.queue = q, .kind = RIG_WORDS, .words = {foreign, count}, __VA_ARGS__}
#define FIRST .nafter = 0
#define AFTER(...)                                                             \
  .after = (const int[]){__VA_ARGS__},                                         \
  .nafter = sizeof((const int[]){__VA_ARGS__}) / sizeof(int)

struct encoding {
  const char *name;
  struct rig_part parts[8];
  size_t nparts;
  struct rig_wait waits[2];
  size_t nwaits;
  const char *expect;
};

#define FILL_PART(d, n, b)                                                     \
  {                                                                            \
    .queue = COPY, .kind = RIG_FILL, .fill = {                                 \
      .dst = d,                                                                \
      .bytes = n,                                                              \
      .byte = b                                                                \
    }                                                                          \
  }

/* A value whose only parts are on COPY. */
#define IN_COPY "COMPUTE; COPY" SETUP1 " acquire(1000,1)"
#define OUT_COPY " copy-release(1000,2) |"

#define F0 " entry(400000004000)"
#define F1 " entry(400000005000)"

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
  struct sizes z = {8, 16, 4, 0, 0, 0, 0};
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
                    UINT64_MAX - 50};
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
    {"257 waits",
     1,
     {0x9000, 1, RIG_WAIT_WORD},
     257,
     "more than 256 waits"},
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
  assert_string_equal(failure,
                      "the parts do not fit now, as room would have "
                      "said");
  assert_string_equal(b->trace, "COMPUTE; COPY");
  assert_int_equal(submit(b, &bad, &failure), RIG_FAILED);
  assert_string_equal(failure, "a part that the device does not run");
  bed_free(b);
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
    struct sizes z = {64, 1 << 18, 8, 0, 0, 0, 0};
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_encodings),
      cmocka_unit_test(test_releases),
      cmocka_unit_test(test_rooms),
      cmocka_unit_test(test_in_flight),
      cmocka_unit_test(test_every_position),
      cmocka_unit_test(test_no_overrun),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_submit_without_room),
      cmocka_unit_test(test_most_waits),
      cmocka_unit_test(test_most_entering),
      cmocka_unit_test(test_long_segments),
      cmocka_unit_test(test_publish),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
