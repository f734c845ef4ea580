/* SPDX-License-Identifier: ISC */
#include "stress/replay.h"

#include <stdlib.h>
#include <string.h>

#include "stress/replay_state.h"

void random_bytes(struct random *r, void *to, uint64_t n) {
  unsigned char *at = to;
  for (uint64_t x = 0; n; x >>= 8, n--) {
    if (x == 0)
      x = random_next(r);
    *at++ = (unsigned char)x;
  }
}

static void run_copy(struct replay *r, const struct effect *e, uint32_t tag) {
  struct mirror *dst = &r->mirrors[e->dst.region];
  const struct mirror *src = &r->mirrors[e->src.region];
  for (uint64_t row = 0; row < e->rows; row++) {
    uint64_t to = e->dst.at + row * e->dst_pitch;
    memmove(dst->bytes + to, src->bytes + e->src.at + row * e->src_pitch,
            e->bytes);
    for (uint64_t i = 0; i < e->bytes; i++) {
      dst->bytes[to + i] ^= e->mask;
      dst->wrote[to + i] = tag;
    }
  }
}

static void run_pattern(struct replay *r, const struct effect *e, uint64_t n,
                        unsigned unit, uint32_t tag) {
  struct mirror *dst = &r->mirrors[e->dst.region];
  for (uint64_t i = 0; i < n; i++) {
    dst->bytes[e->dst.at + i] = (unsigned char)(e->value >> (8 * (i % unit)));
    dst->wrote[e->dst.at + i] = tag;
  }
}

static void run(struct replay *r, const struct effect *e, uint32_t tag) {
  switch (e->kind) {
  case EFFECT_COPY:
    run_copy(r, e, tag);
    r->counts.bytes += e->bytes * e->rows;
    break;
  case EFFECT_FILL:
    run_pattern(r, e, e->bytes, e->unit, tag);
    r->counts.bytes += e->bytes;
    break;
  case EFFECT_STORE:
    run_pattern(r, e, sizeof e->value, sizeof e->value, tag);
    break;
  case EFFECT_READ:
    break;
  }
}

void replay_commit(struct replay *r, uint64_t v) {
  uint32_t tag = (uint32_t)(v - r->options.start);
  for (size_t i = 0; i < r->neffects; i++)
    run(r, &r->effects[i], tag);
  host_ring_commit(&r->ring, v);
  r->last = v;
  r->counts.submissions++;
}

void replay_skip(struct replay *r) {
  host_ring_undo(&r->ring);
  r->counts.skipped++;
}

bool replay_equal(const struct replay *r, unsigned i, const void *found,
                  struct replay_difference *d) {
  const struct mirror *m = &r->mirrors[i];
  if (memcmp(m->bytes, found, r->regions[i].bytes) == 0)
    return true;
  const unsigned char *f = found;
  uint64_t at = 0;
  while (m->bytes[at] == f[at])
    at++;
  d->region = r->regions[i].name;
  d->offset = at;
  d->expected = m->bytes[at];
  d->found = f[at];
  d->value = r->options.start + m->wrote[at];
  return false;
}

void replay_host_write(struct replay *r, uint64_t at, const void *from,
                       uint64_t n) {
  memcpy((char *)r->regions[r->host].host + at, from, n);
  memcpy(r->mirrors[r->host].bytes + at, from, n);
}

void replay_host_raise(struct replay *r, unsigned word, uint64_t value) {
  unsigned char *mirror = r->mirrors[r->host].bytes + 8 * word;
  uint64_t now;
  memcpy(&now, mirror, sizeof now);
  if (rig_reached(now, value))
    return;
  memcpy(mirror, &value, sizeof value);
  /* Release: pairs with the channel's acquire of the word. */
  uint64_t *at = (uint64_t *)r->regions[r->host].host + word;
  __atomic_store_n(at, value, __ATOMIC_RELEASE);
}

void replay_release_due(struct replay *r, uint64_t step) {
  unsigned kept = 0;
  for (unsigned i = 0; i < r->npending; i++)
    if (r->pending[i].step <= step)
      replay_host_raise(r, r->pending[i].word, r->pending[i].value);
    else
      r->pending[kept++] = r->pending[i];
  r->npending = kept;
}

void replay_release(struct replay *r) { replay_release_due(r, UINT64_MAX); }

const struct replay_counts *replay_counts(const struct replay *r) {
  return &r->counts;
}

uint64_t replay_digest(const struct replay *r) { return r->digest; }

size_t replay_effects(const struct replay *r, const struct effect **effects) {
  *effects = r->effects;
  return r->neffects;
}

void replay_options_init(struct replay_options *o) {
  *o = (struct replay_options){.seed = 1,
                               .most_bytes = 4096,
                               .most_parts = 12,
                               .most_ops = 6,
                               .most_rows = 8,
                               .fills = true,
                               .most_waits = 3};
}

/* The bytes of the host's region that one submission may take. */
uint64_t replay_most_taken(const struct replay_options *o) {
  uint64_t words = 2 * (uint64_t)o->most_ops * RIG_NV_MOST_WORDS * 4;
  uint64_t pads = MOST_SEGMENTS * 4;
  return o->most_parts *
         (words + pads + (uint64_t)o->most_ops * MOST_STAGED + MOST_STAGED);
}

uint64_t replay_least_bytes(const struct replay_options *o) {
  return o->most_bytes + 1024; /* the pitches of a box of few bytes */
}

uint64_t replay_host_bytes(const struct replay_options *o) {
  return 8 * HOST_WORDS + 2 * replay_most_taken(o) + 4 * MOST_SEGMENT_WORDS;
}

static const char *wrong(const struct replay_options *o,
                         const struct replay_region *regions, unsigned n) {
  if (n < 2 || n > REPLAY_MOST_REGIONS)
    return "the number of regions";
  if (o->most_parts < 1 || o->most_parts > MOST_PARTS)
    return "most_parts";
  if (o->most_ops < 1 || o->most_ops > MOST_OPS)
    return "most_ops";
  if (o->most_rows < 1 || o->most_rows > MOST_ROWS)
    return "most_rows";
  if (o->most_waits > MOST_WAITS)
    return "most_waits";
  if (o->most_bytes < 8)
    return "most_bytes";
  bool low = false;
  for (unsigned i = 0; i + 1 < n; i++) {
    if (regions[i].bytes < replay_least_bytes(o) || regions[i].address % 8)
      return "a region is too small or misaligned";
    low |= regions[i].address + regions[i].bytes <= UINT64_C(1) << 40;
  }
  const struct replay_region *host = &regions[n - 1];
  if (!low || host->address + host->bytes > UINT64_C(1) << 40)
    return "no region below 2^40";
  if (!host->host || host->address % 8 || host->bytes % 8 ||
      host->bytes < replay_host_bytes(o))
    return "the host's region";
  return NULL;
}

static bool mirror_make(struct mirror *m, const struct replay_region *region,
                        const void *content) {
  m->bytes = calloc(1, region->bytes);
  m->wrote = calloc(region->bytes, sizeof *m->wrote);
  m->low = region->address + region->bytes <= UINT64_C(1) << 40;
  if (!m->bytes || !m->wrote)
    return false;
  if (content)
    memcpy(m->bytes, content, region->bytes);
  return true;
}

int replay_make(const struct replay_options *o,
                const struct replay_region *regions, unsigned n,
                const void *const *contents, struct replay **made,
                const char **failure) {
  if ((*failure = wrong(o, regions, n)))
    return -RIG_NV_INVALID;
  struct replay *r = calloc(1, sizeof *r);
  *failure = "no host memory for the mirrors";
  if (!r)
    return -RIG_NV_HOST_MEMORY;
  r->options = *o;
  r->random.state = o->seed;
  r->nregions = n;
  r->host = n - 1;
  r->last = o->start;
  for (unsigned i = 0; i < n; i++) {
    r->regions[i] = regions[i];
    if (!mirror_make(&r->mirrors[i], &regions[i],
                     i == r->host ? NULL : contents[i])) {
      replay_drop(r);
      return -RIG_NV_HOST_MEMORY;
    }
  }
  memset(regions[r->host].host, 0, regions[r->host].bytes);
  host_ring_init(&r->ring, regions[r->host].bytes - 8 * HOST_WORDS);
  /* Each word starts anywhere: its values compare in circular order. */
  for (unsigned i = 0; i < HOST_WORDS; i++) {
    r->asked[i] = random_next(&r->random);
    replay_host_write(r, 8 * i, &r->asked[i], sizeof r->asked[i]);
  }
  *made = r;
  *failure = NULL;
  return 0;
}

void replay_drop(struct replay *r) {
  if (!r)
    return;
  for (unsigned i = 0; i < r->nregions; i++) {
    free(r->mirrors[i].bytes);
    free(r->mirrors[i].wrote);
  }
  free(r);
}
