/* SPDX-License-Identifier: ISC */
/*
 * ops: parts of words. An op writes its words with the public encoders and
 * says its effect. Within a part nothing orders two copies, fills or releases
 * of the copy engine; a host release waits for them all. So before an op that
 * touches what one since the last host release wrote, or writes what one
 * read, comes a host release.
 */
#include <string.h>

#include "stress/replay_state.h"

struct segment {
  uint32_t words[MOST_SEGMENT_WORDS];
  size_t n;
  size_t fence; /* effects from here on are not ordered yet */
};

static void took(struct replay *r, struct segment *s, int words) {
  if (words <= 0)
    r->broken = true;
  else
    s->n += (size_t)words;
}

static void release(struct replay *r, struct segment *s, unsigned part) {
  struct effect e = {.kind = EFFECT_STORE, .part = part, .ordered = true};
  e.dst = replay_place(r, 8, 8, true);
  e.value = random_next(&r->random);
  took(r, s,
       rig_nv_release_word(s->words + s->n, replay_address(r, e.dst), e.value));
  replay_effect(r, &e);
  s->fence = r->neffects;
}

static void order(struct replay *r, struct segment *s, const struct effect *e) {
  for (size_t i = s->fence; i < r->neffects; i++)
    if (effects_conflict(&r->effects[i], e)) {
      release(r, s, e->part);
      return;
    }
}

/* How far below what it holds a word is asked for: circular order makes half
 * of all values reached. */
static uint64_t below(struct replay *r) {
  uint64_t most = random_one_in(&r->random, 2) ? 2 : INT64_MAX;
  return random_small(&r->random, most);
}

static void acquire(struct replay *r, struct segment *s, unsigned part) {
  struct effect e = {.kind = EFFECT_READ, .part = part};
  e.src = replay_place(r, 8, 8, true);
  order(r, s, &e);
  e.value = replay_word(r, e.src) - below(r);
  took(r, s,
       rig_nv_acquire(s->words + s->n, replay_address(r, e.src), e.value));
  replay_effect(r, &e);
}

static void copy_release(struct replay *r, struct segment *s, unsigned part) {
  struct effect e = {.kind = EFFECT_STORE, .part = part};
  e.dst = replay_place(r, 8, 8, true);
  e.value = random_next(&r->random);
  order(r, s, &e);
  took(r, s,
       rig_nv_copy_release(s->words + s->n, replay_address(r, e.dst), e.value));
  replay_effect(r, &e);
}

static void fill(struct replay *r, struct segment *s, unsigned part) {
  static const enum rig_nv_component units[] = {RIG_NV_1B, RIG_NV_2B,
                                                RIG_NV_4B};
  struct effect e = {.kind = EFFECT_FILL, .part = part};
  enum rig_nv_component unit = units[random_below(&r->random, 3)];
  e.unit = (unsigned)unit;
  uint64_t n = 1 + random_small(&r->random, r->options.most_bytes / 4 - 1);
  e.bytes = n * e.unit;
  e.dst = replay_place(r, e.bytes, e.unit, true);
  e.value = (uint32_t)random_next(&r->random);
  order(r, s, &e);
  took(r, s,
       rig_nv_fill(s->words + s->n, unit, replay_address(r, e.dst),
                   (uint32_t)e.value, n));
  replay_effect(r, &e);
}

static void copy(struct replay *r, struct segment *s, unsigned part) {
  struct effect e = {.kind = EFFECT_COPY, .part = part};
  if (!replay_copy(r, &e, MOST_ROWS, true) || !e.bytes) {
    copy_release(r, s, part);
    return;
  }
  order(r, s, &e);
  uint32_t *w = s->words + s->n;
  uint64_t dst = replay_address(r, e.dst), src = replay_address(r, e.src);
  took(r, s,
       e.rows > 1
           ? rig_nv_box(w, dst, src, e.dst_pitch, e.src_pitch, e.rows, e.bytes)
           : rig_nv_copy(w, dst, src, e.bytes));
  replay_effect(r, &e);
}

static void interrupt(struct replay *r, struct segment *s, unsigned part) {
  (void)part;
  took(r, s, rig_nv_interrupt(s->words + s->n));
}

static void idle(struct replay *r, struct segment *s, unsigned part) {
  (void)part;
  took(r, s, rig_nv_wait_for_idle(s->words + s->n));
}

static void invalidate(struct replay *r, struct segment *s, unsigned part) {
  (void)part;
  took(r, s, rig_nv_invalidate_caches(s->words + s->n));
}

/* By queue: as often as they stand here. */
static void (*const ops[2][16])(struct replay *, struct segment *,
                                unsigned part) = {
    [RIG_COMPUTE0] = {release, release, release, release, release, release,
                      release, acquire, acquire, acquire, acquire, acquire,
                      acquire, interrupt, idle, invalidate},
    [RIG_COPY0] = {copy, copy, copy, copy, copy, copy, fill, fill, fill,
                   copy_release, copy_release, release, release, acquire,
                   acquire, interrupt},
};

/* Puts the segment into the host's region, and its entry into the part. */
static void close_segment(struct replay *r, struct segment *s,
                          struct rig_part *p, uint32_t *entries) {
  if (!s->n || r->broken)
    return;
  uint64_t pad = random_one_in(&r->random, 4) ? 4 : 0;
  struct place at = {r->host, host_ring_take(&r->ring, 4 * s->n + pad)};
  at.at += 8 * HOST_WORDS + pad;
  replay_host_write(r, at.at, s->words, 4 * s->n);
  uint64_t entry;
  if (rig_nv_gpfifo_entry(replay_address(r, at), s->n, &entry))
    r->broken = true;
  entries[p->words.n++] = (uint32_t)entry;
  entries[p->words.n++] = (uint32_t)(entry >> 32);
  s->n = 0;
}

void replay_words(struct replay *r, struct rig_part *p) {
  unsigned part = r->nparts;
  uint32_t *entries = r->entries[part];
  struct segment s = {.fence = r->neffects};
  *p = rig_part_words(p->queue, entries, 0);
  uint64_t n = random_below(&r->random, r->options.most_ops + UINT64_C(1));
  for (uint64_t i = 0; i < n; i++) {
    ops[p->queue][random_below(&r->random, 16)](r, &s, part);
    r->counts.ops++;
    if (random_one_in(&r->random, 4) && p->words.n < 2 * (MOST_SEGMENTS - 1))
      close_segment(r, &s, p, entries);
  }
  close_segment(r, &s, p, entries);
  r->counts.words++;
}
