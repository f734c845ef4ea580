/* SPDX-License-Identifier: ISC */
/*
 * A straight submission is the walk's to the bit: the same need, the same
 * answer and place, and the same words and entries in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rings/bed.h"
#include "rings/rcu.h"
#include "rings/straight.h"

#define MOST UINT64_C(0x80000000)

struct row {
  const char *name;
  struct rig_part parts[3];
  size_t nparts, nwaits;
  bool straight;
};

static const struct row rows[] = {
    {"no parts", {{0}}, 0, 0, true},
    {"a copy", {COPY_PART(0xa000, 0xb000, 16, FIRST)}, 1, 0, true},
    {"the longest copy", {COPY_PART(0xa000, 0xb000, MOST, FIRST)}, 1, 0, true},
    {"a longer one", {COPY_PART(0xa000, 0xb000, MOST + 1, FIRST)}, 1, 0, false},
    {"no bytes", {ZERO_PART(COPY, FIRST)}, 1, 0, false},
    {"a part of COMPUTE's", {ZERO_PART(COMPUTE, FIRST)}, 1, 0, false},
    {"one row",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0xa000, 3, 0xb000, 5, 7, 1, 64, 64, 0}}},
     1,
     0,
     true},
    {"two rows",
     {{.queue = COPY,
       .kind = RIG_COPY,
       .copy = {0xa000, 3, 0xb000, 5, 7, 2, 64, 64, 0}}},
     1,
     0,
     false},
    {"a fill", {FILL_PART(0xa000, 16, 0x5a)}, 1, 0, true},
    {"the longest fill", {FILL_PART(0xa000, MOST, 0xff)}, 1, 0, true},
    {"a longer fill", {FILL_PART(0xa000, MOST + 4, 1)}, 1, 0, false},
    {"a fill with a head", {FILL_PART(0xa001, 16, 1)}, 1, 0, false},
    {"a fill with a tail", {FILL_PART(0xa000, 17, 1)}, 1, 0, false},
    {"several",
     {COPY_PART(0xa000, 0xb000, 16, FIRST), FILL_PART(0xc000, 64, 0x77),
      COPY_PART(0xff00000000, 0xb001, 5, FIRST)},
     3,
     0,
     true},
    {"a part after another",
     {COPY_PART(0xa000, 0xb000, 16, FIRST),
      COPY_PART(0xa000, 0xb000, 16, AFTER(0))},
     2,
     0,
     false},
    {"foreign entries", {WORDS_PART(COPY, 4, FIRST)}, 1, 0, false},
    {"a wait", {COPY_PART(0xa000, 0xb000, 16, FIRST)}, 1, 1, false},
};

/* Records of setup, of which the value before knew number 2. */
static const struct setup none_new = {2, 1, 2, 0x500000, 0x8000},
                          local_new = {3, 3, 2, 0x600000, 64},
                          code_new = {3, 1, 3, 0x500000, 0x8000},
                          both_new = {4, 3, 4, 0x600000, 64},
                          no_local = {3, 0, 3, 0, 0};

/* What is before it: who released the value before, what is owed, and what the
 * newest record is. */
static const struct {
  uint8_t released_by, owes;
  const struct setup *setup;
} befores[] = {
    {COMPUTE, 0, NULL},      {COPY, 0, NULL},         {NOBODY, 0, NULL},
    {COMPUTE, 3, NULL},      {NOBODY, 3, NULL},       {COPY, 1, NULL},
    {COMPUTE, 0, &none_new}, {COMPUTE, 1, &none_new}, {COMPUTE, 0, &local_new},
    {COPY, 0, &local_new},   {COMPUTE, 0, &code_new}, {COMPUTE, 0, &both_new},
    {NOBODY, 3, &both_new},  {COMPUTE, 3, &no_local}};

static bool same_need(const struct ring_need *a, const struct ring_need *b) {
  bool same = a->used == b->used && a->lead == b->lead &&
              a->enter == b->enter && a->waits == b->waits &&
              a->joins == b->joins && a->launch == b->launch &&
              a->launch_releases == b->launch_releases && a->last == b->last;
  for (int q = 0; q < QUEUES; q++)
    same = same && a->entries[q] == b->entries[q] && a->words[q] == b->words[q];
  return same;
}

struct image {
  unsigned char *segments[QUEUES];
  uint32_t *entries[QUEUES];
};

/* The rings' memory after it was encoded over a pattern. */
static void encode(struct bed *b, const struct rig_submission *s,
                   const struct ring_need *need, const struct ring_plan *p,
                   struct image *to) {
  for (int q = 0; q < QUEUES; q++) {
    const struct ring_channel *c = &b->generation.channel[q];
    const size_t segments = (size_t)c->units * RING_UNIT;
    const size_t entries = (size_t)c->n * 8;
    memset(b->segments[q], 0xee, segments);
    memset(b->entries[q], 0xee, entries);
  }
  ring_encode(&b->rings, s, need, p);
  for (int q = 0; q < QUEUES; q++) {
    const struct ring_channel *c = &b->generation.channel[q];
    to->segments[q] = malloc((size_t)c->units * RING_UNIT);
    to->entries[q] = malloc((size_t)c->n * 8);
    assert_non_null(to->segments[q]);
    assert_non_null(to->entries[q]);
    memcpy(to->segments[q], b->segments[q], (size_t)c->units * RING_UNIT);
    memcpy(to->entries[q], b->entries[q], (size_t)c->n * 8);
  }
}

static bool same_image(const struct bed *b, struct image *x, struct image *y) {
  bool same = true;
  for (int q = 0; q < QUEUES; q++) {
    const struct ring_channel *c = &b->generation.channel[q];
    same = same &&
           memcmp(x->segments[q], y->segments[q],
                  (size_t)c->units * RING_UNIT) == 0 &&
           memcmp(x->entries[q], y->entries[q], (size_t)c->n * 8) == 0;
    free(x->segments[q]);
    free(y->segments[q]);
    free(x->entries[q]);
    free(y->entries[q]);
  }
  return same;
}

/* In one place, by both. */
static bool both(const struct rig_submission *s, size_t before,
                 const struct ring_need *straight,
                 const struct ring_need *walk) {
  struct sizes z = usual;
  const struct ring_ask ask = {.for_what = RING_POST};
  struct ring_plan p, other;
  struct image x, y;
  struct bed *b = bed_make(&z);
  struct cursor from;
  tail_last(&b->rings.tail, &from);
  from.released_by = befores[before].released_by & 3;
  from.owes = befores[before].owes & 3;
  if (befores[before].setup) {
    from.setup = 2;
    ring_rcu_assign(&b->rings.setup, befores[before].setup);
  }
  from.v++;
  from.behind++;
  struct cursor last;
  struct tail_at tail = tail_read(&b->rings.tail, &last);
  assert_true(tail_swap(&b->rings.tail, &tail, NULL, &from));
  /* The place as room gives it is reserve's; as a post takes it, straight's. */
  const struct ring_ask room = {.for_what = RING_ROOM};
  uint64_t words = 0;
  assert_int_equal(ring_reserve(&b->rings, walk, s->nparts, &room, &other),
                   RIG_FITS);
  assert_true(straight_words(s, &words));
  assert_true(
      straight_take(&b->rings, straight->last, words, s->nparts, &ask, &p));
  bool same = memcmp(&p.from, &other.from, sizeof p.from) == 0 &&
              memcmp(&p.to, &other.to, sizeof p.to) == 0 &&
              p.start[p.release] == other.start[p.release] &&
              p.used == other.used && p.release == other.release &&
              p.generation == other.generation && p.setup == other.setup &&
              p.launch_releases == other.launch_releases;
  encode(b, s, straight, &p, &x);
  encode(b, s, walk, &p, &y);
  same = same_image(b, &x, &y) && same;
  bed_free(b);
  return same;
}

static void straight(void **state) {
  (void)state;
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct row *r = &rows[i];
    const struct rig_wait wait = {.kind = RIG_WAIT_WORD, .at = 8};
    const struct rig_submission s = {.parts = r->parts,
                                     .nparts = r->nparts,
                                     .waits = &wait,
                                     .nwaits = r->nwaits};
    struct ring_need short_way, walk;
    const bool is = straight_need(&s, &short_way);
    bool ok = is == r->straight;
    ring_need(&s, &walk);
    if (ok && is)
      ok = ring_lawful(&s) && same_need(&short_way, &walk);
    for (size_t k = 0; ok && is && k < sizeof befores / sizeof *befores; k++)
      ok = both(&s, k, &short_way, &walk);
    if (!ok) {
      print_error("%s: not as expected\n", r->name);
      failed++;
    }
  }
  assert_int_equal(failed, 0);
}

enum { EXACT = 100, ONE_LESS }; /* of units: room for it alone, and not even */

/* Where the rings stand, of 64 entries, 64 units and 8 marks. */
static const struct state {
  const char *name;
  uint64_t v;
  uint16_t behind;
  uint32_t entries, at, units; /* in use; the units' position */
  int expect;
  bool takes; /* straight_take does */
} states[] = {
    {"empty", 1, 0, 0, 0, 0, RIG_FITS, true},
    {"an entry left", 9, 1, 62, 0, 1, RIG_FITS, true},
    {"no entry left", 9, 1, 63, 0, 1, RIG_LATER, false},
    {"just the units", 9, 1, 1, 0, EXACT, RIG_FITS, true},
    {"a unit too few", 9, 1, 1, 0, ONE_LESS, RIG_LATER, false},
    {"a skip in an empty ring", 9, 1, 1, 63, 0, RIG_FITS, false},
    {"a skip", 9, 1, 1, 63, 2, RIG_FITS, false},
    {"a skip with just the units", 9, 1, 1, 63, EXACT, RIG_LATER, false},
    {"after a free skip", 9, 1, 1, 8, 70, RIG_LATER, false},
    {"a mark left", 9, 7, 1, 0, 1, RIG_FITS, true},
    {"no mark left", 9, 8, 1, 0, 1, RIG_LATER, false},
    {"both halves of the value change", UINT32_MAX, 1, 1, 0, 1, RIG_FITS,
     false},
    {"the next one", UINT64_C(1) << 32, 1, 1, 0, 1, RIG_FITS, true},
};

/* The same answer, and the same place, from either way to reserve. */
static bool same_place(const struct state *t, const struct rig_submission *s,
                       enum ring_asks for_what) {
  struct bed *b = bed_make(&usual);
  const struct ring_ask ask = {.for_what = for_what, .v = t->v + 1};
  struct ring_need short_way, walk;
  struct ring_plan p = {0}, other = {0};
  struct cursor from, last;
  assert_true(straight_need(s, &short_way));
  ring_need(s, &walk);
  tail_last(&b->rings.tail, &from);
  from.v = t->v;
  from.behind = t->behind;
  from.released_by = COPY;
  for (int q = 0; q < QUEUES; q++) {
    const uint32_t take = (uint32_t)(walk.words[q] + 15) / 16;
    const uint32_t used = t->units == EXACT      ? 64 - take
                          : t->units == ONE_LESS ? 64 - take + 1
                                                 : t->units;
    from.entries[q] = t->entries - 1; /* some wrap */
    from.freed_entries[q] = UINT32_MAX;
    from.units[q] = t->at;
    from.freed_units[q] = t->at - used;
  }
  b->word = t->v - t->behind;
  const struct tail_at tail = tail_read(&b->rings.tail, &last);
  assert_true(tail_swap(&b->rings.tail, &tail, NULL, &from));
  const struct ring_ask room = {.for_what = RING_ROOM};
  int want = ring_reserve(&b->rings, &walk, s->nparts, &room, &other);
  uint64_t words = 0;
  assert_true(straight_words(s, &words));
  const bool takes =
      straight_take(&b->rings, short_way.last, words, s->nparts, &ask, &p);
  int answer = RIG_FITS;
  if (!takes)
    answer = ring_reserve(&b->rings, &short_way, s->nparts, &ask, &p);
  bool same = want == t->expect && answer == want && takes == t->takes;
  if (same && want == RIG_FITS)
    same = memcmp(&p.to, &other.to, sizeof p.to) == 0 && p.used == other.used &&
           p.release == other.release &&
           p.start[p.release] == other.start[p.release];
  bed_free(b);
  return same;
}

static void places(void **state) {
  (void)state;
  const struct rig_part copy = COPY_PART(0xa000, 0xb000, 16, FIRST);
  unsigned failed = 0;
  for (size_t i = 0; i < sizeof states / sizeof *states; i++)
    for (size_t nparts = 0; nparts <= 1; nparts++)
      for (int ask = RING_ROOM; ask <= RING_POST; ask++) {
        const struct rig_submission s = {.parts = &copy, .nparts = nparts};
        if (!same_place(&states[i], &s, (enum ring_asks)ask)) {
          print_error("%s, %zu parts: not as expected\n", states[i].name,
                      nparts);
          failed++;
        }
      }
  assert_int_equal(failed, 0);
}

/* More parts than it takes are the walk's. */
static void many(void **state) {
  (void)state;
  struct rig_part *parts = calloc(STRAIGHT_PARTS + 1, sizeof *parts);
  struct ring_need a, b;
  assert_non_null(parts);
  for (int i = 0; i <= STRAIGHT_PARTS; i++)
    parts[i] = (struct rig_part)FILL_PART(0xa000, 16, 1);
  struct rig_submission s = {.parts = parts, .nparts = STRAIGHT_PARTS};
  assert_true(straight_need(&s, &a));
  ring_need(&s, &b);
  assert_true(same_need(&a, &b));
  s.nparts++;
  assert_false(straight_need(&s, &a));
  free(parts);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(straight),
      cmocka_unit_test(places),
      cmocka_unit_test(many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
