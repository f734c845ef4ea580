/* SPDX-License-Identifier: ISC */
/*
 * Generations: what a cursor becomes on the next one, who waits for new
 * channels, and what the seat shows where values of two generations meet.
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
#include "rings/io.h"

#define START UINT32_C(0xffffffc0) /* of every count: about to wrap */

static struct bed *make(void) {
  const struct sizes z = {.entries = 64,
                          .units = 64,
                          .marks = 8,
                          .start_entries = START,
                          .start_units = START,
                          .launches = 64,
                          .start_launch = START,
                          .v = 9};
  return bed_make(&z);
}

#define ENTRIES {.entries = {128, 128}}
#define SEGMENTS0 {.units = {128, 0}}
#define SEGMENTS1 {.units = {0, 128}}
#define LAUNCH {.launches = 128}
#define ALL {.entries = {128, 128}, .units = {128, 128}, .launches = 128}

/* What a value on both channels takes, by hand: no walk has launches alone. */
static const struct ring_need need = {.entries = {2, 3},
                                      .words = {2 * 16, 3 * 16},
                                      .launch = 4,
                                      .used = 3,
                                      .last = COPY};

static int ask(struct bed *b, enum ring_asks what, struct ring_plan *p) {
  const struct ring_ask a = {.for_what = what, .v = rings_last(&b->rings) + 1};
  return ring_reserve(&b->rings, &need, 1, &a, p);
}

static void say(struct bed *b, const struct ring_plan *p) {
  io_write_fence();
  mark_write(&b->rings.marks, &p->to);
}

/* ---- what a cursor becomes ---- */

struct counts {
  uint32_t entries[QUEUES], units[QUEUES], launch;
};

static const struct {
  const char *name;
  struct bed_growth growth[3];
  unsigned n;
  bool reached;        /* what is before it */
  struct counts after; /* in units of what the need takes, from START or 0 */
  unsigned anew;       /* counts that start at 0: 1 entries, 2 and 4 units, 8 */
} installs[] = {
    {"none", {{{0}, {0}, 0}}, 0, false, {{2, 2}, {2, 2}, 2}, 0},
    {"segments of COMPUTE", {SEGMENTS0}, 1, false, {{2, 2}, {1, 2}, 2}, 2},
    {"segments of COPY", {SEGMENTS1}, 1, false, {{2, 2}, {2, 1}, 2}, 4},
    {"launches", {LAUNCH}, 1, false, {{2, 2}, {2, 2}, 1}, 8},
    {"channels", {ENTRIES}, 1, true, {{1, 1}, {2, 2}, 2}, 1},
    {"everything", {ALL}, 1, true, {{1, 1}, {1, 1}, 1}, 15},
    {"several at once",
     {SEGMENTS0, LAUNCH, SEGMENTS1},
     3,
     false,
     {{2, 2}, {1, 1}, 1},
     14},
    {"a ring twice",
     {LAUNCH, SEGMENTS0, LAUNCH},
     3,
     false,
     {{2, 2}, {1, 2}, 1},
     10},
    {"channels below segments",
     {ENTRIES, SEGMENTS0, SEGMENTS1},
     3,
     true,
     {{1, 1}, {1, 1}, 2},
     7},
};

static uint32_t count_of(uint32_t by, uint32_t n, bool anew) {
  return (anew ? 0 : START) + by * n;
}

static void check(const char *name, const struct cursor *c,
                  const struct counts *by, unsigned anew) {
  for (int q = 0; q < QUEUES; q++) {
    uint32_t each = (uint32_t)need.entries[q];
    if (c->entries[q] != count_of(by->entries[q], each, anew & 1) ||
        c->units[q] != count_of(by->units[q], each, anew & 2u << q))
      fail_msg("%s: queue %d: entries %x, units %x", name, q, c->entries[q],
               c->units[q]);
  }
  if (c->launch != count_of(by->launch, (uint32_t)need.launch, anew & 8))
    fail_msg("%s: launch %x", name, c->launch);
}

static void test_installs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof installs / sizeof installs[0]; i++) {
    struct bed *b = make();
    struct ring_plan p;
    assert_int_equal(ask(b, RING_POST, &p), RIG_FITS);
    const struct cursor first = p.to;
    say(b, &p);
    for (unsigned k = 0; k < installs[i].n; k++)
      bed_grow(b, &installs[i].growth[k]);
    if (installs[i].reached) {
      assert_int_equal(ask(b, RING_ROOM, &p), RIG_LATER);
      assert_int_equal(ask(b, RING_POST, &p), RIG_LATER);
      b->word = first.v;
    }
    assert_int_equal(ask(b, RING_POST, &p), RIG_FITS);
    check(installs[i].name, &p.to, &installs[i].after, installs[i].anew);
    assert_ptr_equal(p.generation, b->rings.newest);
    assert_int_equal(p.to.generation, installs[i].n);
    assert_int_equal(p.to.v, first.v + 1);
    assert_int_equal(p.to.joins, first.joins + 2); /* goes on */
    assert_int_equal(p.from.owes, installs[i].anew & 1 ? 3 : 0);
    assert_int_equal(p.from.released_by, installs[i].anew & 1 ? NOBODY : COPY);
    /* Freed: nothing of rings that are older, all of new ones. */
    const struct counts none = {{0}, {0}, 0};
    struct cursor freed = p.to;
    if (!installs[i].reached) {
      memcpy(freed.entries, p.to.freed_entries, sizeof freed.entries);
      memcpy(freed.units, p.to.freed_units, sizeof freed.units);
      freed.launch = p.to.freed_launch;
      check(installs[i].name, &freed, &none, installs[i].anew);
    }
    say(b, &p);
    /* Once installed, the next goes on from there. */
    struct ring_plan q;
    assert_int_equal(ask(b, RING_POST, &q), RIG_FITS);
    assert_memory_equal(q.from.entries, p.to.entries, sizeof p.to.entries);
    assert_memory_equal(q.from.units, p.to.units, sizeof p.to.units);
    assert_int_equal(q.from.launch, p.to.launch);
    assert_int_equal(q.from.owes, 0);
    bed_free(b);
  }
}

/* A mark of an older generation says what is free of the rings it knew, and
 * nothing of those born later. */
static void test_mark_of_older(void **state) {
  (void)state;
  struct bed *b = make();
  const struct bed_growth grow = SEGMENTS0;
  struct ring_need big = need;
  const struct ring_ask post = {.for_what = RING_POST};
  struct ring_plan p;
  big.words[COMPUTE] = 60 * 16;
  big.words[COPY] = 16;
  for (int i = 0; i < 2; i++) { /* values 10 and 11, of generation 0 */
    assert_int_equal(ask(b, RING_POST, &p), RIG_FITS);
    say(b, &p);
  }
  bed_grow(b, &grow);
  for (int i = 0; i < 2; i++) { /* 12 and 13: 120 of 128 units */
    assert_int_equal(ring_reserve(&b->rings, &big, 1, &post, &p), RIG_FITS);
    assert_int_equal(p.start[COMPUTE], 60 * i);
    say(b, &p);
  }
  for (b->word = 10; b->word < 12; b->word++) {
    assert_int_equal(ring_reserve(&b->rings, &big, 1, &post, &p), RIG_LATER);
    assert_int_equal(p.from.freed_units[COMPUTE], 0);
    assert_int_equal(p.from.freed_units[COPY], START + 3 * (b->word - 9));
    assert_int_equal(p.from.freed_entries[COPY], START + 3 * (b->word - 9));
  }
  b->word = 12; /* the 8 at the end are skipped */
  assert_int_equal(ring_reserve(&b->rings, &big, 1, &post, &p), RIG_FITS);
  assert_int_equal(p.from.freed_units[COMPUTE], 60);
  assert_int_equal(p.start[COMPUTE], 0);
  bed_free(b);
}

/* ---- who waits for new channels ---- */

static const struct {
  const char *name;
  struct bed_growth growth[2];
  unsigned n;
  int room;            /* room's and post's answer with a value in flight */
  unsigned generation; /* that a submit after room's FITS is on */
} turns[] = {
    {"none", {{{0}, {0}, 0}}, 0, RIG_FITS, 0},
    {"segments", {SEGMENTS0}, 1, RIG_FITS, 1},
    {"launches, segments", {LAUNCH, SEGMENTS1}, 2, RIG_FITS, 2},
    {"channels", {ENTRIES}, 1, RIG_LATER, 0},
    {"channels twice", {ENTRIES, {.entries = {256, 256}}}, 2, RIG_LATER, 0},
    {"segments, channels", {SEGMENTS0, ENTRIES}, 2, RIG_LATER, 1},
    {"channels, segments", {ENTRIES, SEGMENTS0}, 2, RIG_LATER, 0},
    {"everything", {ALL}, 1, RIG_LATER, 0},
};

/* Another thread's growth takes nobody's FITS away; and nobody but the turn's
 * holder goes on with the old channels. */
static void test_turn_keeps_fits(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
    struct bed *b = make();
    struct rig_part part = ZERO_PART(COMPUTE, FIRST);
    const struct rig_submission s = {.parts = &part, .nparts = 1};
    const char *failure, *refused;
    uint64_t v;
    submit_ok(b, &s);
    assert_int_equal(rings_room(&b->rings, &s), RIG_FITS);
    for (unsigned k = 0; k < turns[i].n; k++)
      bed_grow(b, &turns[i].growth[k]);
    if (turns[i].room == RIG_LATER)
      assert_int_equal(rings_post(&b->rings, &s, &v, &refused), RIG_LATER);
    assert_int_equal(rings_room(&b->rings, &s), turns[i].room);
    if (submit(b, &s, &failure) != RIG_COMMITTED)
      fail_msg("%s: %s", turns[i].name, failure);
    assert_string_equal(b->trace, "COMPUTE release(1000,11) |; COPY");
    assert_int_equal(b->rings.seat.generation, turns[i].generation);
    assert_int_equal(rings_room(&b->rings, &s), turns[i].room);
    b->word = 10;
    assert_int_equal(rings_room(&b->rings, &s), turns[i].room);
    b->word = 11;
    submit_ok(b, &s);
    assert_string_equal(b->trace, turns[i].room == RIG_FITS
                                      ? "COMPUTE release(1000,12) |; COPY"
                                      : "COMPUTE" SETUP0 " acquire(1000,11) "
                                        "release(1000,12) |; COPY");
    assert_int_equal(b->rings.seat.generation, turns[i].n);
    bed_free(b);
  }
}

/* ---- what a ring holds is the newest's ---- */

static const struct {
  const char *name;
  size_t words, copies;
  struct bed_growth growth;
  int before, after;
} capacities[] = {
    {"as many entries as were", 2 * 61, 0, ENTRIES, RIG_FITS, RIG_FITS},
    {"one more", 2 * 62, 0, ENTRIES, RIG_GROW, RIG_FITS},
    {"all of the new ones", 2 * 125, 0, ENTRIES, RIG_GROW, RIG_FITS},
    {"one more than those", 2 * 126, 0, ENTRIES, RIG_GROW, RIG_GROW},
    {"segments that grew help no entries", 2 * 62, 0, SEGMENTS1, RIG_GROW,
     RIG_GROW},
    {"words beyond the segment ring", 0, 150, SEGMENTS1, RIG_GROW, RIG_FITS},
    {"of the other channel", 0, 150, SEGMENTS0, RIG_GROW, RIG_GROW},
};

static void test_capacities(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof capacities / sizeof capacities[0]; i++) {
    struct bed *b = make();
    struct rig_part parts[] = {
        WORDS_PART(COPY, capacities[i].words, FIRST),
        COPY_PART(0, 0, (uint64_t)capacities[i].copies << 31, FIRST)};
    const struct rig_submission s = {
        .parts = capacities[i].copies ? parts + 1 : parts, .nparts = 1};
    int before = rings_room(&b->rings, &s);
    bed_grow(b, &capacities[i].growth);
    int after = rings_room(&b->rings, &s);
    if (before != capacities[i].before || after != capacities[i].after)
      fail_msg("%s: %d, then %d", capacities[i].name, before, after);
    bed_free(b);
  }
}

/* ---- what the seat shows ---- */

/* A value that is encoded, and whose thread does not get to the seat. */
static void encode(struct bed *b, const struct rig_submission *s) {
  const struct ring_ask post = {.for_what = RING_POST};
  struct ring_need n;
  struct ring_plan p;
  ring_need(s, &n);
  assert_int_equal(ring_reserve(&b->rings, &n, s->nparts, &post, &p), RIG_FITS);
  ring_encode(&b->rings, s, &n, &p);
  say(b, &p);
}

/* Values of three generations, published in one sitting: each by itself, and
 * each where its generation has it. */
static void test_boundaries(void **state) {
  (void)state;
  struct bed *b = make();
  const struct bed_growth first = {.units = {128, 128}}, second = LAUNCH;
  struct rig_part part = ZERO_PART(COPY, FIRST);
  const struct rig_submission s = {.parts = &part, .nparts = 1};
  encode(b, &s);
  encode(b, &s);
  bed_grow(b, &first);
  encode(b, &s);
  bed_grow(b, &second);
  encode(b, &s);
  assert_int_equal(b->rings.seat.published, 9);
  submit_ok(b, &s);
  assert_int_equal(b->rings.seat.published, 14);
  assert_int_equal(b->rings.seat.generation, 2);
  assert_int_equal(b->rings.seat.bells, 3);
  assert_int_equal(b->rings.seat.launch, 0);
  assert_string_equal(
      b->trace, "COMPUTE; COPY" SETUP1 " acquire(1000,9) copy-release(1000,10)"
                " | copy-release(1000,11) | copy-release(1000,12) |"
                " copy-release(1000,13) | copy-release(1000,14) |");
  bed_free(b);
}

/* Channels twice, one after the other, and GP_PUT of each from 0. */
static void test_channels(void **state) {
  (void)state;
  struct bed *b = make();
  const struct rig_submission s = {0};
  const uint8_t tokens[] = {0x70, 0x72, 0x74};
  char expect[128];
  for (uint32_t i = 0; i < 3; i++) {
    const struct bed_growth grow = {.entries = {64u << i, 64u << i}};
    if (i != 0)
      bed_grow(b, &grow);
    for (uint32_t k = 0; k < 2; k++) {
      submit_ok(b, &s);
      if (k == 0) {
        snprintf(expect, sizeof expect,
                 "COMPUTE" SETUP0 " acquire(1000,%u) release(1000,%u) |; COPY",
                 9 + 2 * i, 10 + 2 * i);
        assert_string_equal(b->trace, expect);
      }
      assert_int_equal(b->doorbell, tokens[i]);
      assert_int_equal(*b->rings.newest->channel[COMPUTE].gp_put, k + 1);
    }
    b->word = rings_last(&b->rings);
  }
  assert_int_equal(b->gp_put[COMPUTE], 2);
  bed_free(b);
}

/* ---- random growths ---- */

static uint64_t next(uint64_t *x) {
  *x ^= *x << 13;
  *x ^= *x >> 7;
  return *x ^= *x << 17;
}

enum { MOST = 4096 }; /* of a ring */

/* The value that has each entry and unit of the newest rings; 0: none yet. */
struct owners {
  uint64_t entry[QUEUES][MOST], unit[QUEUES][MOST], launch[MOST];
};

static void own(uint64_t *owner, uint32_t at, uint32_t n, uint64_t word,
                uint64_t v) {
  for (uint32_t i = at; i < at + n; i++) {
    assert_true(owner[i] == 0 || rig_reached(word, owner[i]));
    owner[i] = v;
  }
}

static void grow(struct bed *b, struct owners *o, uint64_t *seed) {
  struct bed_growth g = {{0}, {0}, 0};
  const struct ring_generation *n = b->rings.newest;
  switch (next(seed) % 4) {
  case 0:
    for (int q = 0; q < QUEUES; q++)
      g.entries[q] = 2 * n->channel[q].n;
    memset(o->entry, 0, sizeof o->entry);
    break;
  case 1:
  case 2: {
    size_t q = next(seed) % 2;
    g.units[q] = 2 * n->channel[q].units;
    memset(o->unit[q], 0, sizeof o->unit[q]);
    break;
  }
  default:
    g.launches = 2 * n->launches.units;
    memset(o->launch, 0, sizeof o->launch);
  }
  bed_grow(b, &g);
}

/* No piece or entry lands where a value in flight has one, and LATER is
 * answered only while something is in flight. */
static void test_random(void **state) {
  (void)state;
  static struct owners o;
  uint64_t seed = 1, later = 0, grown = 0;
  for (int run = 0; run < 300; run++) {
    struct bed *b = make();
    memset(&o, 0, sizeof o);
    for (int round = 0; round < 400; round++) {
      struct ring_need n = {.used = 1 + (unsigned)(next(&seed) % 3)};
      n.last = n.used >> 1;
      for (int q = 0; q < QUEUES; q++)
        if (n.used & 1u << q) {
          n.entries[q] = 1 + next(&seed) % 20;
          n.words[q] = 1 + next(&seed) % 300;
        }
      n.launch = next(&seed) % 3 == 0 ? next(&seed) % 30 : 0;
      const struct ring_ask post = {.for_what = RING_POST};
      struct ring_plan p;
      if (b->ngrown < BED_GENERATIONS && next(&seed) % 40 == 0) {
        grow(b, &o, &seed);
        grown++;
      }
      if (ring_reserve(&b->rings, &n, 1, &post, &p) != RIG_FITS) {
        later++;
        assert_true(b->word != rings_last(&b->rings));
        b->word += 1 + next(&seed) % (rings_last(&b->rings) - b->word);
        continue;
      }
      for (int q = 0; q < QUEUES; q++) {
        const struct ring_channel *c = &p.generation->channel[q];
        uint32_t units = (uint32_t)((n.words[q] + 15) / 16);
        if (!(p.used & 1u << q))
          continue;
        for (uint32_t e = p.from.entries[q]; e != p.to.entries[q]; e++)
          own(o.entry[q], e & (c->n - 1), 1, b->word, p.to.v);
        assert_true(p.start[q] + units <= c->units);
        own(o.unit[q], p.start[q], units, b->word, p.to.v);
      }
      assert_true(n.launch == 0 ||
                  p.launch + n.launch <= p.generation->launches.units);
      own(o.launch, n.launch ? p.launch : 0, (uint32_t)n.launch, b->word,
          p.to.v);
      say(b, &p);
    }
    bed_free(b);
  }
  assert_true(later > 1000 && grown > 1000);
}

/* ---- what no rings have ---- */

/* A cursor of a generation that was never published stops the process. */
static void test_broken(void **state) {
  (void)state;
  for (int broken = 0; broken < 2; broken++) {
    struct bed *b = make();
    const struct rig_submission s = {0};
    int status;
    submit_ok(b, &s);
    pid_t child = fork();
    if (child == 0) {
      struct cursor *last = (struct cursor *)&b->rings.tail
                                .node[tail_node_of(b->rings.tail.word.w[0])];
      (void)!freopen("/dev/null", "w", stderr);
      last->generation += (uint8_t)broken;
      (void)rings_room(&b->rings, &s);
      _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                     broken ? SIGABRT : 0);
    bed_free(b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_installs),
      cmocka_unit_test(test_mark_of_older),
      cmocka_unit_test(test_turn_keeps_fits),
      cmocka_unit_test(test_capacities),
      cmocka_unit_test(test_boundaries),
      cmocka_unit_test(test_channels),
      cmocka_unit_test(test_random),
      cmocka_unit_test(test_broken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
