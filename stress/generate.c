/* SPDX-License-Identifier: ISC */
/*
 * generate: the next submission. Parts are made in their order, each part's
 * effects first, then the joins that they need: for each queue, seen is the
 * last of its parts that the other queue's next part starts after. A part's
 * joins raise it, and joins carry on, so one number a queue is enough.
 */
#include <string.h>

#include "stress/replay_state.h"

enum { HOT = 512 }; /* bytes of each region where most words lie */

static void mix(struct replay *r, uint64_t x) {
  struct random m = {r->digest ^ x};
  r->digest = random_next(&m);
}

struct effect *replay_effect(struct replay *r, const struct effect *e) {
  struct effect *to = &r->effects[r->neffects++];
  *to = *e;
  mix(r, (uint64_t)e->kind << 32 | e->part);
  mix(r, (uint64_t)e->dst.region << 48 ^ e->dst.at);
  mix(r, (uint64_t)e->src.region << 48 ^ e->src.at);
  mix(r, e->bytes ^ e->rows << 32);
  mix(r, e->value ^ e->mask);
  return to;
}

static unsigned data_region(struct replay *r, uint64_t n, bool low) {
  for (;;) {
    unsigned i = (unsigned)random_below(&r->random, r->host);
    if ((!low || r->mirrors[i].low) && n <= r->regions[i].bytes)
      return i;
  }
}

/* Near what an earlier effect of the submission touched. */
static bool near(struct replay *r, uint64_t n, bool low, struct place *p) {
  if (!r->neffects)
    return false;
  const struct effect *e = &r->effects[random_below(&r->random, r->neffects)];
  bool writes = effect_writes(e) && random_one_in(&r->random, 2);
  uint64_t span = writes ? effect_writes(e) : effect_reads(e);
  *p = writes ? e->dst : e->src;
  if (!span || p->region == r->host || (low && !r->mirrors[p->region].low))
    return false;
  uint64_t back = random_below(&r->random, n);
  p->at = p->at > back ? p->at - back : 0;
  p->at += random_below(&r->random, span);
  return p->at + n <= r->regions[p->region].bytes;
}

struct place replay_place(struct replay *r, uint64_t n, uint64_t align,
                          bool low) {
  struct place p;
  uint64_t how = random_below(&r->random, 4);
  if (how == 0 && near(r, n, low, &p)) {
    p.at -= p.at % align;
    return p;
  }
  p.region = data_region(r, n, low);
  uint64_t room = r->regions[p.region].bytes - n;
  if (how == 1 && room > HOT)
    room = HOT;
  p.at = random_below(&r->random, room + 1);
  p.at -= p.at % align;
  return p;
}

struct place replay_staged(struct replay *r, uint64_t n) {
  unsigned char bytes[MOST_STAGED];
  random_bytes(&r->random, bytes, n);
  uint64_t pad = -n % 4;
  struct place p = {r->host, host_ring_take(&r->ring, n + pad)};
  p.at += 8 * HOST_WORDS + (pad ? random_below(&r->random, pad + 1) : 0);
  replay_host_write(r, p.at, bytes, n);
  return p;
}

uint64_t replay_word(const struct replay *r, struct place p) {
  uint64_t word = 0;
  for (unsigned i = 0; i < 8; i++) {
    struct place at = {p.region, p.at + i};
    unsigned char byte = 0, mask = 0;
    size_t e = r->neffects;
    enum effect_byte is = EFFECT_BYTE_NO;
    while (e > 0 && is != EFFECT_BYTE_IS) {
      struct place from;
      is = effect_byte(&r->effects[--e], at, &byte, &from);
      if (is == EFFECT_BYTE_FROM) {
        at = from;
        mask ^= byte;
      }
    }
    if (is != EFFECT_BYTE_IS)
      byte = r->mirrors[at.region].bytes[at.at];
    word |= (uint64_t)(byte ^ mask) << (8 * i);
  }
  return word;
}

/* Up to most: mostly few, but all of it often enough. */
static uint64_t some(struct replay *r, uint64_t most) {
  return random_one_in(&r->random, 4) ? random_in(&r->random, 0, most)
                                      : random_small(&r->random, most);
}

bool replay_copy(struct replay *r, struct effect *e, uint64_t rows, bool low) {
  bool box = rows > 1 && random_one_in(&r->random, 4);
  e->rows = box ? random_in(&r->random, 2, rows) : 1;
  e->bytes = some(r, r->options.most_bytes / e->rows);
  if (box) {
    e->dst_pitch = e->bytes + random_small(&r->random, 64);
    e->src_pitch = e->bytes + random_small(&r->random, 64);
  }
  e->dst = replay_place(r, effect_writes(e), 1, low);
  uint64_t n = effect_reads(e);
  if (n && n <= MOST_STAGED && random_one_in(&r->random, 3)) {
    e->src = replay_staged(r, n);
    return true;
  }
  for (unsigned tries = 0; tries < 8; tries++) {
    e->src = replay_place(r, n, 1, low);
    if (!places_meet(e->dst, effect_writes(e), e->src, n))
      return true;
  }
  return false;
}

static void copy_part(struct replay *r, struct rig_part *p) {
  struct effect e = {.kind = EFFECT_COPY, .part = r->nparts};
  if (!replay_copy(r, &e, r->options.most_rows, false) ||
      p->queue != RIG_COPY0 || random_one_in(&r->random, 10))
    e.bytes = 0;
  int queue = p->queue;
  uint64_t rows = e.rows == 1 && random_one_in(&r->random, 4) ? 0 : e.rows;
  *p = rig_part_rows(replay_address(r, e.dst), e.dst_pitch,
                     replay_address(r, e.src), e.src_pitch, rows, e.bytes);
  p->queue = queue;
  p->copy.dst_offset = random_below(&r->random, p->copy.dst);
  p->copy.dst -= p->copy.dst_offset;
  p->copy.src_offset = random_small(&r->random, 4096);
  p->copy.src -= p->copy.src_offset;
  replay_effect(r, &e);
  r->counts.copies++;
}

/* A row of one byte's value. */
static void fill_part(struct replay *r, struct rig_part *p) {
  struct effect e = {.kind = EFFECT_FILL, .part = r->nparts, .unit = 1};
  if (p->queue == RIG_COPY0)
    e.bytes = some(r, r->options.most_bytes);
  e.dst = replay_place(r, e.bytes, 1, false);
  uint8_t byte = (uint8_t)random_next(&r->random);
  e.value = byte * UINT64_C(0x0101010101010101);
  int queue = p->queue;
  *p = rig_part_fill(replay_address(r, e.dst), e.bytes, byte);
  p->queue = queue;
  p->fill.dst_offset = random_below(&r->random, p->fill.dst);
  p->fill.dst -= p->fill.dst_offset;
  replay_effect(r, &e);
  r->counts.fills++;
}

/* An address as a parameter: itself, or the sum of a slot and what is there. */
static uint64_t parameter(struct replay *r, struct rig_launch *l, unsigned at,
                          struct place p) {
  uint64_t address = replay_address(r, p);
  if (random_one_in(&r->random, 3))
    return address;
  unsigned slot = 2 * r->nparts + at / 8;
  r->slots[slot] = r->regions[p.region].address;
  r->refs[r->nparts][l->nrefs++] = (struct rig_ref){at, slot};
  return address - r->slots[slot];
}

static void launch_part(struct replay *r, struct rig_part *p) {
  const struct replay_kernel *k = &r->options.kernel;
  struct effect e = {.kind = EFFECT_COPY, .part = r->nparts};
  if (!replay_copy(r, &e, 1, false))
    e.bytes = 0;
  e.mask = (unsigned char)random_next(&r->random);
  uint32_t block = r->nparts * BLOCK;
  *p = rig_part_launch(k->code, k->launch, block, 28);
  p->launch.refs = r->refs[r->nparts];
  struct rig_block b = {
      .groups = {(uint32_t)random_in(&r->random, 1, 5), 1, 1},
      .threads = {(uint32_t)random_in(&r->random, 1, 128), 1, 1}};
  if (k->dynamic && random_one_in(&r->random, 4))
    b.shared = (uint32_t)random_in(&r->random, 1, k->dynamic);
  uint64_t dst = parameter(r, &p->launch, 0, e.dst);
  uint64_t src = parameter(r, &p->launch, 8, e.src);
  uint32_t mask = e.mask;
  unsigned char *to = r->args + block;
  memcpy(to, &b, sizeof b);
  memcpy(to + sizeof b, &dst, sizeof dst);
  memcpy(to + sizeof b + 8, &src, sizeof src);
  memcpy(to + sizeof b + 16, &e.bytes, sizeof e.bytes);
  memcpy(to + sizeof b + 24, &mask, sizeof mask);
  replay_effect(r, &e);
  r->counts.launches++;
}

/* Joins the part to the other queue's part at f, or after it. */
static void join(struct replay *r, struct rig_part *p, int f) {
  r->after[r->nparts][p->nafter++] = f;
  int other = r->parts[f].queue;
  if (other != p->queue && f > r->seen[other])
    r->seen[other] = f;
  mix(r, (uint64_t)f);
  r->counts.joins++;
}

/* The last part of the other queue that the part's effects conflict with. */
static int needed(const struct replay *r, const struct rig_part *p,
                  size_t first) {
  int need = -1;
  for (size_t i = 0; i < first; i++) {
    const struct effect *e = &r->effects[i];
    if (r->parts[e->part].queue == p->queue || (int)e->part <= need)
      continue;
    for (size_t j = first; j < r->neffects; j++)
      if (effects_conflict(e, &r->effects[j]))
        need = (int)e->part;
  }
  return need;
}

static void joins(struct replay *r, struct rig_part *p, size_t first) {
  int other = p->queue == RIG_COPY0 ? RIG_COMPUTE0 : RIG_COPY0;
  int i = (int)r->nparts;
  p->after = r->after[i];
  while (i && random_one_in(&r->random, 4) && p->nafter < MOST_AFTER - 1)
    join(r, p, (int)random_below(&r->random, (uint64_t)i));
  int need = needed(r, p, first);
  if (need <= r->seen[other])
    return;
  /* A later part of that queue starts after it, so it does as well. */
  int f = need;
  for (int later = need + 1; later < i; later++)
    if (r->parts[later].queue == other && random_one_in(&r->random, 4))
      f = later;
  join(r, p, f);
}

static void make_part(struct replay *r) {
  struct rig_part *p = &r->parts[r->nparts];
  size_t first = r->neffects;
  memset(p, 0, sizeof *p);
  p->queue = random_one_in(&r->random, 2) ? RIG_COPY0 : RIG_COMPUTE0;
  if (p->queue == RIG_COMPUTE0 && r->options.kernel.launch &&
      !random_one_in(&r->random, 3))
    launch_part(r, p);
  else if (random_one_in(&r->random, p->queue == RIG_COPY0 ? 2 : 4))
    (r->options.fills && random_one_in(&r->random, 4) ? fill_part
                                                      : copy_part)(r, p);
  else
    replay_words(r, p);
  joins(r, p, first);
  r->nparts++;
  r->counts.parts++;
}

/* The host raises the word within the next submissions. */
static uint64_t ask_host(struct replay *r, unsigned word) {
  if (r->npending == MOST_PENDING || random_one_in(&r->random, 2)) {
    uint64_t now;
    memcpy(&now, r->mirrors[r->host].bytes + 8 * word, sizeof now);
    return now - random_small(&r->random, 2);
  }
  struct pending *p = &r->pending[r->npending++];
  p->word = word;
  p->value = ++r->asked[word];
  p->step = r->step + random_below(&r->random, 6);
  return p->value;
}

/* A word that the submission leaves alone: each channel looks at it for
 * itself, and one may look after the other's work has begun. */
static bool wait_for_data(struct replay *r, struct rig_wait *w) {
  struct effect read = {.kind = EFFECT_READ};
  read.src = replay_place(r, 8, 8, true);
  for (size_t i = 0; i < r->neffects; i++)
    if (effects_conflict(&r->effects[i], &read))
      return false;
  w->at = replay_address(r, read.src);
  w->value = replay_word(r, read.src) - random_small(&r->random, INT64_MAX);
  return true;
}

static void make_wait(struct replay *r, struct rig_wait *w) {
  w->kind = RIG_WAIT_WORD;
  uint64_t how = random_below(&r->random, r->options.word_gpu ? 4 : 3);
  if (how == 2 && wait_for_data(r, w))
    return;
  if (how == 3) {
    w->at = r->options.word_gpu;
    w->value = r->last - random_small(&r->random, 1000);
    return;
  }
  unsigned word = (unsigned)random_below(&r->random, HOST_WORDS);
  w->at = r->regions[r->host].address + 8 * word;
  w->value = ask_host(r, word);
}

static void begin(struct replay *r) {
  r->neffects = 0;
  r->nparts = 0;
  r->seen[RIG_COMPUTE0] = r->seen[RIG_COPY0] = -1;
  r->submission = (struct rig_submission){
      .parts = r->parts,
      .waits = r->waits,
      .args = r->args,
      .args_bytes = sizeof r->args,
      .slots = r->slots,
      .nslots = sizeof r->slots / sizeof *r->slots,
  };
}

enum replay_answer replay_next(struct replay *r, uint64_t word,
                               const struct rig_submission **s,
                               uint64_t *until) {
  if (!host_ring_ready(&r->ring, word, replay_most_taken(&r->options),
                       4 * MOST_SEGMENT_WORDS, until))
    return REPLAY_BUSY;
  replay_release_due(r, r->step++);
  begin(r);
  uint64_t parts = some(r, r->options.most_parts);
  while (r->nparts < parts)
    make_part(r);
  r->submission.nparts = r->nparts;
  if (random_one_in(&r->random, 3) && r->options.most_waits)
    r->submission.nwaits = random_in(&r->random, 1, r->options.most_waits);
  for (size_t i = 0; i < r->submission.nwaits; i++)
    make_wait(r, &r->waits[i]);
  mix(r, r->nparts);
  r->counts.waits += r->submission.nwaits;
  *s = &r->submission;
  return r->broken ? REPLAY_BROKEN : REPLAY_MADE;
}
