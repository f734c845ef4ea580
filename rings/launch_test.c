/* SPDX-License-Identifier: ISC */
/*
 * Launches: what they become on the channels, in the launch ring and in bank
 * 0. Descriptors are read by literal bits of V04_00 (clcbc0qmd.h).
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
#include "rings/launch.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum {
  PARAMS_AT = 0x210, /* of sm_90's kernels */
  QMD = 384,
  /* Descriptor and bank 0 of the function `small`: 384 + 0x210 + 24 bytes. */
  SMALL = 1024
};

/* Functions of an sm_90 device. */
static struct launch small, large;

static void ready(struct launch *f, uint32_t params, uint32_t bank) {
  const struct limits *l = limits_of(0x900);
  struct qmd_function q = {
      .limits = l, .registers = 16, .barriers = 1, .code = 0x700000};
  assert_non_null(l);
  assert_int_equal(limits_shared_own(l, 0, &q.shared), 0);
  q.bank0_bytes = bank ? bank : PARAMS_AT + params;
  assert_int_equal(qmd_check_function(QMD_V4, &q), 0);
  qmd_template(QMD_V4, &q, &f->descriptor);
  f->limits = l;
  f->threads = 256;
  f->dynamic_most = 1024;
  f->params_offset = PARAMS_AT;
  f->params_bytes = params;
  f->bank_bytes = bank;
}

static int make_functions(void **state) {
  (void)state;
  ready(&small, 24, 0);
  ready(&large, 6000, 9000);
  return 0;
}

/* Blocks of a run's args: `small`'s, 64 bytes each; grid x is its number. */
static _Alignas(16) unsigned char args[16384];

static struct rig_block *block_at(uint32_t at) {
  return (struct rig_block *)(void *)(args + at);
}

static void blocks(void) {
  memset(args, 0, sizeof args);
  for (uint32_t i = 0; i < 8; i++)
    *block_at(64 * i) = (struct rig_block){{i + 1, 2, 3}, {32, 4, 2}, 0, 0};
}

#define LAUNCH(i) LAUNCH_WITH(i, FIRST)
#define LAUNCH_WITH(i, ...)                                                    \
  {.queue = COMPUTE,                                                           \
   .kind = RIG_LAUNCH,                                                         \
   .launch = {0, &small, 64 * (i), 24, NULL, 0},                               \
   __VA_ARGS__}

static uint32_t bits(const uint32_t *w, unsigned low, unsigned n) {
  uint64_t x = pair(w + low / 32);
  return (uint32_t)(x >> low % 32 & ((UINT64_C(1) << n) - 1));
}

/* The descriptor at an offset of the launch ring, as text: its grid's x, what
 * it starts, what it writes, and whether it ends in a system membar. */
static void say_descriptor(const struct bed *b, uint32_t at, char *to,
                           size_t n) {
  const uint32_t *w = (const uint32_t *)(b->launches + at);
  size_t k = strlen(to);
  k += (size_t)snprintf(to + k, n - k, " %x:%u", at, bits(w, 1024, 32));
  if (bits(w, 368, 1))
    k += (size_t)snprintf(to + k, n - k, "->%x",
                          (bits(w, 448, 32) << 8) - LAUNCHES);
  if (bits(w, 320, 1))
    k += (size_t)snprintf(to + k, n - k, "=%" PRIx64 "@%" PRIx64,
                          pair(w + 704 / 32), pair(w + 640 / 32));
  if (bits(w, 1136, 2) == 1)
    snprintf(to + k, n - k, "m");
}

struct launching {
  const char *name;
  struct rig_part parts[5];
  size_t nparts;
  bool timed;
  const char *expect, *descriptors;
};

#define OWN " copy-release(1000,2) |"
#define COPYING "; COPY" SETUP1 " acquire(1000,1)"

/* The second value, after an empty one that COMPUTE released. */
static const struct launching launchings[] = {
    {"one launch releases its value",
     {LAUNCH(0)},
     1,
     false,
     "COMPUTE launch(0) |; COPY",
     " 0:1=2@1000m"},
    {"a timed value is released by its channel",
     {LAUNCH(0)},
     1,
     true,
     "COMPUTE launch(0) release(1000,2) |; COPY",
     " 0:1m"},
    {"launches are chained",
     {LAUNCH(0), LAUNCH(1), LAUNCH(2)},
     3,
     false,
     "COMPUTE launch(0) |; COPY",
     " 0:1->400 400:2->800 800:3=2@1000m"},
    {"over a part of nothing",
     {LAUNCH(0), ZERO_PART(COMPUTE, FIRST), WORDS_PART(COMPUTE, 0, FIRST),
      LAUNCH(1)},
     4,
     false,
     "COMPUTE launch(0) |; COPY",
     " 0:1->400 400:2=2@1000m"},
    {"nothing last",
     {LAUNCH(0), ZERO_PART(COMPUTE, FIRST)},
     2,
     false,
     "COMPUTE launch(0) release(1000,2) |; COPY",
     " 0:1m"},
    {"entries wait for a launch",
     {LAUNCH(0), WORDS_PART(COMPUTE, 2, FIRST)},
     2,
     false,
     "COMPUTE launch(0) release(2000,3) |" F0 " release(1000,2) |; COPY",
     " 0:1m"},
    {"a launch waits for entries",
     {WORDS_PART(COMPUTE, 2, FIRST), LAUNCH(0)},
     2,
     false,
     "COMPUTE" F0 " release(2000,3) launch(0) |; COPY",
     " 0:1=2@1000m"},
    {"a copy after a launch ends its chain",
     {LAUNCH(0), COPY_PART(0xa000, 0xb000, 16, AFTER(0)), LAUNCH(1)},
     3,
     false,
     "COMPUTE launch(0) release(2000,3) launch(400) acquire(2040,4)"
     " release(1000,2) |" COPYING " acquire(2000,3) copy(a000,b000,10)"
     " copy-release(2040,4) |",
     " 0:1m 400:2m"},
    {"a launch after a copy waits until idle",
     {LAUNCH(0), COPY_PART(0xa000, 0xb000, 16, FIRST),
      LAUNCH_WITH(1, AFTER(1))},
     3,
     false,
     "COMPUTE launch(0) acquire(2040,4) idle launch(400) release(1000,2) "
     "|" COPYING " copy(a000,b000,10) copy-release(2040,4) |",
     " 0:1m 400:2m"},
    {"COPY releases after launches",
     {LAUNCH(0), LAUNCH(1), COPY_PART(0xa000, 0xb000, 16, FIRST)},
     3,
     false,
     "COMPUTE launch(0) release(2000,4) |" COPYING
     " copy(a000,b000,10) acquire(2000,4)" OWN,
     " 0:1->400 400:2m"},
};

static void test_launchings(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(launchings); i++) {
    const struct launching *t = &launchings[i];
    struct bed *b = bed_make(&usual);
    struct rig_submission nothing = {0};
    struct rig_times times;
    char text[512] = "";
    blocks();
    submit_ok(b, &nothing);
    struct rig_submission s = {.parts = t->parts,
                               .nparts = t->nparts,
                               .args = args,
                               .args_bytes = sizeof args,
                               .times = t->timed ? &times : NULL};
    submit_ok(b, &s);
    if (strcmp(b->trace, t->expect) != 0)
      fail_msg("%s:\n got %s\nwant %s", t->name, b->trace, t->expect);
    for (uint32_t k = 0, n = 0; k < t->nparts; k++)
      if (t->parts[k].kind == RIG_LAUNCH)
        say_descriptor(b, SMALL * n++, text, sizeof text);
    if (strcmp(text, t->descriptors) != 0)
      fail_msg("%s:\n got %s\nwant %s", t->name, text, t->descriptors);
    bed_free(b);
  }
}

/* A launch's release leaves COMPUTE behind, and where the low half is 0 the
 * channel releases. */
static void test_releases(void **state) {
  (void)state;
  static const struct {
    uint64_t v;
    const char *expect[2];
  } rows[] = {
      {6,
       {"COMPUTE launch(0) |; COPY", "COMPUTE acquire(1000,7) launch(400) |"
                                     "; COPY"}},
      {0xfffffffe,
       {"COMPUTE launch(0) |; COPY",
        "COMPUTE acquire(1000,4294967295) launch(400) release(1000,4294967296)"
        " |; COPY"}},
  };
  struct rig_part p = LAUNCH(0);
  struct rig_submission s = {
      .parts = &p, .nparts = 1, .args = args, .args_bytes = sizeof args};
  blocks();
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct sizes z = usual;
    z.v = rows[i].v - 1;
    struct bed *b = bed_make(&z);
    struct rig_submission nothing = {0};
    submit_ok(b, &nothing);
    for (size_t k = 0; k < 2; k++) {
      submit_ok(b, &s);
      if (strcmp(b->trace, rows[i].expect[k]) != 0)
        fail_msg("%" PRIu64 ":\n got %s\nwant %s", rows[i].v + k, b->trace,
                 rows[i].expect[k]);
    }
    bed_free(b);
  }
}

/* One value carries each change of setup: the next one on COMPUTE, after its
 * waits. */
static void test_setup(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  const struct setup code = {1, 0, 1, 0, 0};
  const struct setup both = {3, 3, 2, 0x900000, 0x8000};
  const struct setup local = {4, 4, 2, 0xa00000, 0x10000};
  static const struct {
    int setup; /* index of `all`, put before the value */
    bool on_copy;
    size_t nwaits;
    const char *expect;
  } rows[] = {
      {0, false, 0,
       "COMPUTE" SETUP0 " acquire(1000,0) release(1000,1) |; COPY"},
      {1, true, 0,
       "COMPUTE; COPY" SETUP1 " acquire(1000,1) copy-release(1000,2) |"},
      {1, false, 0,
       "COMPUTE acquire(1000,2) invalidate release(1000,3) |; COPY"},
      {1, false, 0, "COMPUTE release(1000,4) |; COPY"},
      {2, false, 1,
       "COMPUTE acquire(9000,5) local-memory(900000,8000) invalidate"
       " release(1000,5) |; COPY"},
      {2, false, 0, "COMPUTE release(1000,6) |; COPY"},
      {3, false, 0,
       "COMPUTE local-memory(a00000,10000) release(1000,7) |; COPY"},
      {3, false, 0, "COMPUTE release(1000,8) |; COPY"},
  };
  const struct setup *all[] = {NULL, &code, &both, &local};
  struct rig_wait wait = {0x9000, 5, RIG_WAIT_WORD};
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct rig_part p = ZERO_PART(COPY, FIRST);
    struct rig_submission s = {.parts = &p,
                               .nparts = rows[i].on_copy,
                               .waits = &wait,
                               .nwaits = rows[i].nwaits};
    b->rings.setup = all[rows[i].setup];
    b->word = i; /* all are reached */
    submit_ok(b, &s);
    if (strcmp(b->trace, rows[i].expect) != 0)
      fail_msg("row %zu:\n got %s\nwant %s", i, b->trace, rows[i].expect);
  }
  bed_free(b);
}

/* Foreign entries that lead COMPUTE's ring take no entry before them, but for
 * what setup owes: ring_encode asserts the count. */
static void test_setup_leads(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  const struct setup code = {1, 0, 1, 0, 0};
  struct rig_part p = WORDS_PART(COMPUTE, 2, FIRST);
  struct rig_submission nothing = {0}, s = {.parts = &p, .nparts = 1};
  submit_ok(b, &nothing);
  b->rings.setup = &code;
  submit_ok(b, &s);
  assert_string_equal(b->trace,
                      "COMPUTE invalidate |" F0 " release(1000,2) |; COPY");
  submit_ok(b, &s);
  assert_string_equal(b->trace, "COMPUTE" F0 " release(1000,3) |; COPY");
  bed_free(b);
}

/* ---- bank 0 ---- */

static const unsigned char *bank(const struct bed *b, uint32_t at) {
  return b->launches + at + QMD;
}

static void test_bank(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  const uint64_t slots[] = {0x1000000000, 0x77};
  const struct rig_ref refs[] = {{8, 0}, {16, 1}};
  struct rig_part p = LAUNCH(2);
  struct rig_submission s = {.parts = &p,
                             .nparts = 1,
                             .args = args,
                             .args_bytes = sizeof args,
                             .slots = slots,
                             .nslots = 2};
  const uint64_t params[] = {0x1122334455667788, 0x40, 5, 0xdead};
  uint64_t got[3];
  uint32_t words[11];
  blocks();
  memcpy(block_at(128) + 1, params, sizeof params);
  p.launch.params = 32; /* the kernel reads 24 */
  p.launch.refs = refs;
  p.launch.nrefs = 2;
  submit_ok(b, &s);
  memcpy(words, bank(b, 0), sizeof words);
  const uint32_t head[11] = {32, 4, 2, 3, 2, 3, 0, 0xff, 0, 0xfe, 0xfffdc0};
  assert_memory_equal(words, head, sizeof head);
  memcpy(got, bank(b, 0) + PARAMS_AT, sizeof got);
  assert_int_equal(got[0], params[0]);
  assert_int_equal(got[1], 0x1000000040);
  assert_int_equal(got[2], 0x7c);
  /* What follows in the line is not the block's next bytes. */
  for (uint32_t at = PARAMS_AT + 24; at < SMALL - QMD - 64; at++)
    assert_true(bank(b, 0)[at] == 0 || bank(b, 0)[at] == 0xee);
  assert_int_equal(bank(b, 0)[PARAMS_AT + 24], 0);
  bed_free(b);
}

/* A bank that is composed in several windows, with fewer parameters than the
 * kernel reads: zeros behind them. */
static void test_large_bank(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  static const uint32_t given[] = {0, 8, 1520, 1528, 2000, 5992, 6000, 7000};
  const uint64_t slots[] = {0x100000000000000};
  for (size_t i = 0; i < COUNT(given); i++) {
    struct rig_ref refs[3] = {{0, 0}, {1512, 0}, {given[i] - 8, 0}};
    size_t n = given[i] < 8 ? 0 : given[i] < 1520 ? 1 : 3;
    struct rig_part p = {.queue = COMPUTE,
                         .kind = RIG_LAUNCH,
                         .launch = {0, &large, 0, given[i], refs, n}};
    struct rig_submission s = {.parts = &p,
                               .nparts = 1,
                               .args = args,
                               .args_bytes = 32 + given[i],
                               .slots = slots,
                               .nslots = 1};
    unsigned char want[9000];
    blocks();
    memset(want, 0, sizeof want);
    for (uint32_t k = 0; k < given[i]; k++) {
      args[32 + k] = (unsigned char)(k * 7 + 1);
      if (k < 6000)
        want[PARAMS_AT + k] = args[32 + k];
    }
    for (size_t k = 0; k < n; k++)
      if (refs[k].at < 6000)
        want[PARAMS_AT + refs[k].at + 7] += 1;
    memset(b->launches, 0xee, 64 * 256);
    b->word = rings_last(&b->rings);
    submit_ok(b, &s);
    struct cursor c;
    tail_last(&b->rings.tail, &c);
    uint32_t units = (QMD + 9000 + 255) / 256;
    uint32_t at = (c.launch - units) % 64 * 256;
    if (memcmp(bank(b, at) + PARAMS_AT, want + PARAMS_AT, 9000 - PARAMS_AT))
      fail_msg("%u bytes of parameters", given[i]);
    bed_free(b);
    b = bed_make(&usual);
  }
  bed_free(b);
}

/* ---- limits ---- */

struct limit {
  const char *name;
  struct rig_block block;
  uint32_t at, params;
  struct rig_ref ref;
  bool runs;
};

#define NO_REF {0, 0}

static const struct limit limits[] = {
    {"the least", {{1, 1, 1}, {1, 1, 1}, 0, 0}, 0, 24, NO_REF, true},
    {"no parameters", {{1, 1, 1}, {1, 1, 1}, 0, 0}, 0, 0, NO_REF, false},
    {"grid x 0", {{0, 1, 1}, {1, 1, 1}, 0, 0}, 0, 24, NO_REF, false},
    {"grid y 0", {{1, 0, 1}, {1, 1, 1}, 0, 0}, 0, 24, NO_REF, false},
    {"grid z 0", {{1, 1, 0}, {1, 1, 1}, 0, 0}, 0, 24, NO_REF, false},
    {"grid x most", {{0x7fffffff, 1, 1}, {1, 1, 1}, 0, 0}, 0, 24, NO_REF, true},
    {"grid x over",
     {{0x80000000, 1, 1}, {1, 1, 1}, 0, 0},
     0,
     24,
     NO_REF,
     false},
    {"grid y, z most",
     {{1, 65535, 65535}, {1, 1, 1}, 0, 0},
     0,
     24,
     NO_REF,
     true},
    {"grid y over", {{1, 65536, 1}, {1, 1, 1}, 0, 0}, 0, 24, NO_REF, false},
    {"grid z over", {{1, 1, 65536}, {1, 1, 1}, 0, 0}, 0, 24, NO_REF, false},
    {"block x 0", {{1, 1, 1}, {0, 1, 1}, 0, 0}, 0, 24, NO_REF, false},
    {"block z over", {{1, 1, 1}, {1, 1, 65}, 0, 0}, 0, 24, NO_REF, false},
    {"threads most", {{1, 1, 1}, {8, 8, 4}, 0, 0}, 0, 24, NO_REF, true},
    {"threads over", {{1, 1, 1}, {257, 1, 1}, 0, 0}, 0, 24, NO_REF, false},
    {"dynamic most", {{1, 1, 1}, {1, 1, 1}, 1024, 0}, 0, 24, NO_REF, true},
    {"dynamic rounded", {{1, 1, 1}, {1, 1, 1}, 897, 0}, 0, 24, NO_REF, true},
    {"dynamic over", {{1, 1, 1}, {1, 1, 1}, 1025, 0}, 0, 24, NO_REF, false},
    {"dynamic 2^32 - 1",
     {{1, 1, 1}, {1, 1, 1}, 0xffffffff, 0},
     0,
     24,
     NO_REF,
     false},
    {"a block aside", {{1, 1, 1}, {1, 1, 1}, 0, 0}, 8, 24, NO_REF, false},
    {"a block at the end",
     {{1, 1, 1}, {1, 1, 1}, 0, 0},
     256 - 64,
     32,
     NO_REF,
     true},
    {"past the end", {{1, 1, 1}, {1, 1, 1}, 0, 0}, 256 - 64, 33, NO_REF, false},
    {"2^32 past it",
     {{1, 1, 1}, {1, 1, 1}, 0, 0},
     0,
     0xffffffe8,
     NO_REF,
     false},
    {"a ref aside", {{1, 1, 1}, {1, 1, 1}, 0, 0}, 0, 24, {4, 0}, false},
    {"a ref at the end", {{1, 1, 1}, {1, 1, 1}, 0, 0}, 0, 24, {16, 0}, true},
    {"past the end", {{1, 1, 1}, {1, 1, 1}, 0, 0}, 0, 24, {24, 0}, false},
    {"a slot too far", {{1, 1, 1}, {1, 1, 1}, 0, 0}, 0, 24, {0, 1}, false},
};

static void test_limits(void **state) {
  (void)state;
  struct bed *b = bed_make(&usual);
  const uint64_t slot = 5;
  for (size_t i = 0; i < COUNT(limits); i++) {
    const struct limit *t = &limits[i];
    struct rig_part p = {.queue = COMPUTE,
                         .kind = RIG_LAUNCH,
                         .launch = {0, &small, t->at, t->params, &t->ref, 1}};
    struct rig_submission s = {.parts = &p,
                               .nparts = 1,
                               .args = args,
                               .args_bytes = 256,
                               .slots = &slot,
                               .nslots = 1};
    memset(args, 0, sizeof args);
    memcpy(args + t->at, &t->block, sizeof t->block);
    if (rings_room(&b->rings, &s) != (t->runs ? RIG_FITS : RIG_NEVER))
      fail_msg("%s", t->name);
    p.queue = COPY;
    assert_int_equal(rings_room(&b->rings, &s), RIG_NEVER);
    p.queue = COMPUTE;
    p.launch.launch = NULL;
    assert_int_equal(rings_room(&b->rings, &s), RIG_NEVER);
  }
  bed_free(b);
}

/* ---- the launch ring ---- */

/* n launches of `small`, 4 units each, in a ring of 64. */
static int post_launches(struct bed *b, size_t n) {
  static struct rig_part parts[32];
  const char *why;
  uint64_t v;
  for (size_t i = 0; i < n; i++)
    parts[i] = (struct rig_part)LAUNCH(0);
  struct rig_submission s = {
      .parts = parts, .nparts = n, .args = args, .args_bytes = sizeof args};
  return rings_post(&b->rings, &s, &v, &why);
}

/* Pieces do not wrap, are not taken before they are free, and what an empty
 * ring holds fits it from every position. */
static void test_ring(void **state) {
  (void)state;
  blocks();
  for (uint32_t start = UINT32_MAX - 63; start != 4; start += 4) {
    struct sizes z = usual;
    z.start_launch = start;
    struct bed *b = bed_make(&z);
    assert_int_equal(post_launches(b, 17), RIG_GROW);
    assert_int_equal(post_launches(b, 16), RIG_FITS);
    assert_int_equal(post_launches(b, 1), RIG_LATER);
    b->word = 1;
    assert_int_equal(post_launches(b, 10), RIG_FITS);
    assert_int_equal(post_launches(b, 3), RIG_FITS);
    assert_int_equal(post_launches(b, 10), RIG_LATER);
    b->word = 2;
    assert_int_equal(post_launches(b, 10), RIG_FITS);
    b->word = 4;
    assert_int_equal(post_launches(b, 16), RIG_FITS);
    struct cursor c;
    tail_last(&b->rings.tail, &c);
    assert_int_equal(c.launch % 64, 0);
    bed_free(b);
  }
}

/* No launch ring: launches ask for one. */
static void test_no_ring(void **state) {
  (void)state;
  struct sizes z = usual;
  z.launches = 0;
  struct bed *b = bed_make(&z);
  assert_int_equal(post_launches(b, 1), RIG_GROW);
  bed_free(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_launchings), cmocka_unit_test(test_releases),
      cmocka_unit_test(test_setup),      cmocka_unit_test(test_setup_leads),
      cmocka_unit_test(test_bank),       cmocka_unit_test(test_large_bank),
      cmocka_unit_test(test_limits),     cmocka_unit_test(test_ring),
      cmocka_unit_test(test_no_ring),
  };
  return cmocka_run_group_tests(tests, make_functions, NULL);
}
