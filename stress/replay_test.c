/* SPDX-License-Identifier: ISC */
/*
 * The generator and the replay, with no device: a submission's parts run here
 * in a random order that the interface allows, on another memory, by their
 * own addresses. Whatever the order, that memory must equal the mirrors.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stress/host_ring.h"
#include "stress/random.h"
#include "stress/replay.h"

enum { REGIONS = 4, BYTES = 6144, HOST = 1 << 20 };

static const uint64_t bases[REGIONS] = {UINT64_C(1) << 41,
                                        UINT64_C(0x7000000000),
                                        UINT64_C(0x10000), UINT64_C(0x200000)};

struct world {
  struct replay *replay;
  unsigned char *memory[REGIONS], *host;
  uint64_t bytes[REGIONS];
  struct random random;
};

static void world_make(struct world *w, const struct replay_options *o) {
  struct replay_region regions[REGIONS];
  const void *contents[REGIONS];
  w->random.state = 99;
  w->host = calloc(1, HOST);
  for (unsigned i = 0; i < REGIONS; i++) {
    static const char *const names[] = {"high", "device", "pinned", "host"};
    w->bytes[i] = i == REGIONS - 1 ? HOST : BYTES;
    w->memory[i] = calloc(1, w->bytes[i]);
    random_bytes(&w->random, w->memory[i], i == REGIONS - 1 ? 0 : BYTES);
    contents[i] = w->memory[i];
    regions[i] = (struct replay_region){
        names[i], bases[i], i == REGIONS - 1 ? w->host : NULL, w->bytes[i]};
  }
  const char *failure;
  assert_int_equal(
      replay_make(o, regions, REGIONS, contents, &w->replay, &failure), 0);
}

static void world_drop(struct world *w) {
  replay_drop(w->replay);
  for (unsigned i = 0; i < REGIONS; i++)
    free(w->memory[i]);
  free(w->host);
}

/* The n bytes at a GPU address. */
static unsigned char *at(struct world *w, uint64_t address, uint64_t n) {
  for (unsigned i = 0; i < REGIONS; i++)
    if (address >= bases[i] && address - bases[i] + n <= w->bytes[i])
      return w->memory[i] + (address - bases[i]);
  fail_msg("address %#lx is outside", (unsigned long)address);
  return NULL;
}

static void run_copy(struct world *w, const struct rig_copy *c) {
  if (c->rows > 1) {
    assert_true(c->dst_pitch >= c->bytes);
    assert_true(c->src_pitch >= c->bytes);
  }
  for (uint64_t row = 0; row < (c->rows ? c->rows : 1) && c->bytes; row++)
    memcpy(at(w, c->dst + c->dst_offset + row * c->dst_pitch, c->bytes),
           at(w, c->src + c->src_offset + row * c->src_pitch, c->bytes),
           c->bytes);
}

static uint64_t load(struct world *w, struct place p) {
  uint64_t x;
  memcpy(&x, at(w, bases[p.region] + p.at, 8), 8);
  return x;
}

static void run_effect(struct world *w, const struct effect *e) {
  switch (e->kind) {
  case EFFECT_COPY:
    for (uint64_t row = 0; row < e->rows; row++)
      for (uint64_t i = 0; i < e->bytes; i++)
        w->memory[e->dst.region][e->dst.at + row * e->dst_pitch + i] =
            w->memory[e->src.region][e->src.at + row * e->src_pitch + i];
    break;
  case EFFECT_FILL:
    for (uint64_t i = 0; i < e->bytes; i += e->unit)
      memcpy(w->memory[e->dst.region] + e->dst.at + i, &e->value, e->unit);
    break;
  case EFFECT_STORE:
    memcpy(w->memory[e->dst.region] + e->dst.at, &e->value, 8);
    break;
  case EFFECT_READ:
    assert_true(rig_reached(load(w, e->src), e->value));
    break;
  }
}

/* Nothing orders the effects of a part up to one that is ordered: they run in
 * one order or the other. Returns what comes after them. */
static size_t run_group(struct world *w, const struct effect *e, size_t first,
                        size_t n) {
  size_t end = first;
  while (end < n && e[end].part == e[first].part && !e[end].ordered)
    end++;
  bool turned = random_one_in(&w->random, 2);
  for (size_t j = first; j < end; j++)
    run_effect(w, &e[turned ? first + end - 1 - j : j]);
  if (end == first)
    run_effect(w, &e[end++]);
  return end;
}

static void run_part(struct world *w, const struct rig_submission *s,
                     unsigned i) {
  const struct effect *e;
  size_t n = replay_effects(w->replay, &e);
  if (s->parts[i].kind == RIG_FILL) {
    const struct rig_fill *f = &s->parts[i].fill;
    assert_true(s->parts[i].queue == RIG_COPY0 || !f->bytes);
    memset(at(w, f->dst + f->dst_offset, f->bytes), f->byte, f->bytes);
    return;
  }
  if (s->parts[i].kind == RIG_COPY) {
    assert_true(s->parts[i].queue == RIG_COPY0 || !s->parts[i].copy.bytes);
    run_copy(w, &s->parts[i].copy);
    return;
  }
  assert_int_equal(s->parts[i].kind, RIG_WORDS);
  assert_int_equal(s->parts[i].words.n % 2, 0);
  for (size_t j = 0; j < n; j++)
    if (e[j].part == i)
      j = run_group(w, e, j, n) - 1;
}

static bool may_start(const struct rig_submission *s, const bool *done,
                      unsigned i) {
  for (unsigned j = 0; j < i; j++)
    if (s->parts[j].queue == s->parts[i].queue && !done[j])
      return false;
  for (size_t j = 0; j < s->parts[i].nafter; j++) {
    assert_in_range(s->parts[i].after[j], 0, i - 1);
    if (!done[s->parts[i].after[j]])
      return false;
  }
  return true;
}

static void run_any_order(struct world *w, const struct rig_submission *s) {
  bool done[64] = {false};
  for (size_t left = s->nparts; left;) {
    unsigned i = (unsigned)random_below(&w->random, s->nparts);
    if (done[i] || !may_start(s, done, i))
      continue;
    run_part(w, s, i);
    done[i] = true;
    left--;
  }
}

static void host_words_come(struct world *w) {
  memcpy(w->memory[REGIONS - 1], w->host, HOST);
}

/* Waits that are not satisfied yet are the host's to release. */
static void check_waits(struct world *w, const struct rig_submission *s) {
  for (size_t i = 0; i < s->nwaits; i++) {
    uint64_t now;
    memcpy(&now, at(w, s->waits[i].at, 8), 8);
    if (rig_reached(now, s->waits[i].value))
      continue;
    assert_true(s->waits[i].at < bases[REGIONS - 1] + 128 &&
                s->waits[i].at >= bases[REGIONS - 1]);
    replay_release(w->replay);
    host_words_come(w);
    memcpy(&now, at(w, s->waits[i].at, 8), 8);
    assert_true(rig_reached(now, s->waits[i].value));
  }
}

static void step(struct world *w, uint64_t v, uint64_t lag) {
  const struct rig_submission *s;
  uint64_t until;
  enum replay_answer is = replay_next(w->replay, v - lag, &s, &until);
  if (is == REPLAY_BUSY) {
    assert_true(rig_reached(v - 1, until));
    is = replay_next(w->replay, until, &s, &until);
  }
  assert_int_equal(is, REPLAY_MADE);
  host_words_come(w);
  check_waits(w, s);
  run_any_order(w, s);
  replay_commit(w->replay, v);
}

struct row {
  const char *name;
  uint64_t seed, start;
  unsigned parts, ops, rows, waits;
  uint64_t bytes;
  unsigned submissions;
};

static const struct row rows[] = {
    {"one part", 1, 0, 1, 1, 1, 1, 64, 500},
    {"usual", 2, 100, 12, 6, 8, 3, 4096, 1500},
    {"small copies, many joins", 3, UINT32_MAX - 5, 16, 4, 1, 3, 16, 1500},
    {"across the end", 4, UINT64_MAX - 7, 12, 6, 2, 3, 512, 1000},
    {"everything at its most", 5, 0, 64, 8, 8, 64, 5120, 200},
    {"no waits", 6, 0, 8, 8, 3, 0, 256, 1000},
};

static void test_any_order(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct row *row = &rows[i];
    struct replay_options o = {.seed = row->seed,
                               .start = row->start,
                               .most_parts = row->parts,
                               .most_ops = row->ops,
                               .most_rows = row->rows,
                               .fills = row->rows > 1,
                               .most_waits = row->waits,
                               .most_bytes = row->bytes};
    struct world w;
    world_make(&w, &o);
    for (unsigned n = 1; n <= row->submissions; n++)
      step(&w, row->start + n, n < 100 ? n : 100);
    replay_release(w.replay);
    host_words_come(&w);
    struct replay_difference d;
    for (unsigned j = 0; j < REGIONS; j++)
      if (!replay_equal(w.replay, j, w.memory[j], &d))
        fail_msg("%s: %s[%lu]: expected %02x, found %02x, written by %lu",
                 row->name, d.region, (unsigned long)d.offset, d.expected,
                 d.found, (unsigned long)d.value);
    const struct replay_counts *c = replay_counts(w.replay);
    assert_int_equal(c->submissions, row->submissions);
    assert_true(row->parts == 1 || c->joins > row->submissions / 4);
    /* Most copies have bytes, and at times as many as they may. */
    assert_in_range(c->bytes, c->copies * row->bytes / 32, UINT64_MAX);
    world_drop(&w);
  }
}

static uint64_t digest(uint64_t seed, uint64_t lag, bool skip) {
  struct replay_options o;
  replay_options_init(&o);
  o.seed = seed;
  struct world w;
  world_make(&w, &o);
  for (uint64_t v = 1; v <= 300; v++) {
    const struct rig_submission *s;
    uint64_t until;
    if (replay_next(w.replay, v - 1 - (v > lag ? lag : v - 1), &s, &until))
      assert_int_equal(replay_next(w.replay, until, &s, &until), REPLAY_MADE);
    if (skip && v % 2)
      replay_skip(w.replay);
    else
      replay_commit(w.replay, v);
  }
  uint64_t x = replay_digest(w.replay);
  world_drop(&w);
  return x;
}

static void test_seed(void **state) {
  (void)state;
  assert_true(digest(1, 0, false) == digest(1, 0, false));
  assert_true(digest(1, 0, false) == digest(1, 250, false));
  assert_true(digest(1, 0, false) != digest(2, 0, false));
  assert_true(digest(1, 0, false) != digest(1, 0, true));
}

static void test_difference(void **state) {
  (void)state;
  struct replay_options o;
  replay_options_init(&o);
  o.start = 1000;
  struct world w;
  world_make(&w, &o);
  struct replay_difference d;
  for (unsigned n = 1; n <= 50; n++)
    step(&w, 1000 + n, 0);
  w.memory[2][BYTES - 1] ^= 0x40;
  assert_false(replay_equal(w.replay, 2, w.memory[2], &d));
  assert_string_equal(d.region, "pinned");
  assert_int_equal(d.offset, BYTES - 1);
  assert_int_equal(d.expected ^ d.found, 0x40);
  assert_in_range(d.value, 1000, 1050);
  world_drop(&w);
}

static void test_effects(void **state) {
  (void)state;
  static const struct {
    const char *name;
    struct effect a, b;
    bool conflict;
  } cases[] = {
      {"write over write",
       {.kind = EFFECT_STORE, .dst = {0, 8}},
       {.kind = EFFECT_FILL, .dst = {0, 15}, .bytes = 1, .unit = 1},
       true},
      {"write beside write",
       {.kind = EFFECT_STORE, .dst = {0, 8}},
       {.kind = EFFECT_FILL, .dst = {0, 16}, .bytes = 1, .unit = 1},
       false},
      {"another region",
       {.kind = EFFECT_STORE, .dst = {0, 8}},
       {.kind = EFFECT_STORE, .dst = {1, 8}},
       false},
      {"read beside read",
       {.kind = EFFECT_READ, .src = {0, 8}},
       {.kind = EFFECT_READ, .src = {0, 8}},
       false},
      {"write over read",
       {.kind = EFFECT_READ, .src = {0, 8}},
       {.kind = EFFECT_STORE, .dst = {0, 0}},
       false},
      {"write into read",
       {.kind = EFFECT_READ, .src = {0, 8}},
       {.kind = EFFECT_STORE, .dst = {0, 8}},
       true},
      {"the last row",
       {.kind = EFFECT_COPY,
        .dst = {0, 0},
        .src = {1, 0},
        .bytes = 4,
        .rows = 3,
        .dst_pitch = 10},
       {.kind = EFFECT_FILL, .dst = {0, 23}, .bytes = 9, .unit = 1},
       true},
      {"past the last row",
       {.kind = EFFECT_COPY,
        .dst = {0, 0},
        .src = {1, 0},
        .bytes = 4,
        .rows = 3,
        .dst_pitch = 10},
       {.kind = EFFECT_FILL, .dst = {0, 24}, .bytes = 9, .unit = 1},
       false},
      {"zero bytes",
       {.kind = EFFECT_COPY, .dst = {0, 4}, .src = {0, 4}, .rows = 1},
       {.kind = EFFECT_FILL, .dst = {0, 0}, .bytes = 9, .unit = 1},
       false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    if (effects_conflict(&cases[i].a, &cases[i].b) != cases[i].conflict ||
        effects_conflict(&cases[i].b, &cases[i].a) != cases[i].conflict)
      fail_msg("%s", cases[i].name);
}

static void test_host_ring(void **state) {
  (void)state;
  static struct host_ring h;
  uint64_t until;
  host_ring_init(&h, 64);
  assert_true(host_ring_ready(&h, 0, 40, 16, &until));
  assert_int_equal(host_ring_take(&h, 16), 0);
  assert_int_equal(host_ring_take(&h, 16), 16);
  host_ring_undo(&h);
  assert_int_equal(host_ring_take(&h, 16), 0);
  host_ring_commit(&h, 1);
  assert_true(host_ring_ready(&h, 0, 32, 16, &until));
  assert_int_equal(host_ring_take(&h, 12), 16);
  assert_int_equal(host_ring_take(&h, 16), 28);
  host_ring_commit(&h, 2);
  assert_false(host_ring_ready(&h, 0, 16, 16, &until));
  assert_int_equal(until, 2);
  assert_true(host_ring_ready(&h, 1, 16, 16, &until));
  assert_int_equal(host_ring_take(&h, 16), 44);
  host_ring_commit(&h, 3);
  assert_true(host_ring_ready(&h, 2, 16, 16, &until));
  /* Four bytes at the end are too few: they belong to the value too. */
  assert_int_equal(host_ring_take(&h, 8), 0);
  host_ring_commit(&h, 4);
  assert_int_equal(h.used, 16 + 4 + 8);
  assert_true(host_ring_ready(&h, 4, 48, 16, &until));
  assert_int_equal(h.used, 0);
}

int main(void) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_effects),    cmocka_unit_test(test_host_ring),
      cmocka_unit_test(test_any_order),  cmocka_unit_test(test_seed),
      cmocka_unit_test(test_difference),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
