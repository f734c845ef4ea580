/* SPDX-License-Identifier: ISC */
#include "stress/arena.h"

#include <stdlib.h>
#include <string.h>

#include "stress/random.h"

enum { HOST = ARENA_DATA };

static const char *const names[ARENA_REGIONS] = {"Device", "Pinned", "Mapped",
                                                 "Host"};
static const enum rig_memory kinds[ARENA_REGIONS] = {RIG_DEVICE, RIG_PINNED,
                                                     RIG_MAPPED, RIG_PINNED};

void arena_least(const struct arena_options *o, uint64_t bytes[ARENA_REGIONS]) {
  for (unsigned i = 0; i < ARENA_REGIONS; i++) {
    uint64_t n = i == HOST ? replay_host_bytes(&o->replay)
                           : replay_least_bytes(&o->replay);
    bytes[i] = (n + 7) / 8 * 8 * o->slices;
  }
}

/* Slice i starts here; slice `slices` is the end. */
static uint64_t slice_at(const struct arena *a, unsigned region, unsigned i) {
  if (i == a->slices)
    return a->bytes[region];
  return a->bytes[region] / a->slices / 8 * 8 * i;
}

static int failed(int e, const char **failure) {
  if (e < 0)
    *failure = rig_nv_why();
  return e;
}

static void content(const struct arena_options *o, unsigned region,
                    unsigned char *to, uint64_t n) {
  struct random random = {o->replay.seed ^ region << 8};
  random_bytes(&random, to, n);
  if (region == RIG_DEVICE && o->content)
    memcpy(to, o->content, o->content_bytes < n ? o->content_bytes : n);
}

static int make_regions(struct arena *a, unsigned char *const *contents,
                        const char **failure) {
  int e = 0;
  for (unsigned i = 0; i < ARENA_REGIONS && e == 0; i++) {
    e = rig_nv_alloc(a->device, kinds[i], a->bytes[i], &a->regions[i]);
    if (e == 0 && i != HOST)
      e = rig_nv_upload(a->device, a->regions[i], 0, contents[i], a->bytes[i]);
  }
  return failed(e, failure);
}

static int make_replay(struct arena *a, const struct arena_options *o,
                       unsigned slice, unsigned char *const *contents,
                       const char **failure) {
  struct replay_region regions[ARENA_REGIONS];
  const void *parts[ARENA_REGIONS];
  for (unsigned i = 0; i < ARENA_REGIONS; i++) {
    uint64_t at = slice_at(a, i, slice);
    struct rig_location l = rig_nv_locate(a->regions[i]);
    parts[i] = i == HOST ? NULL : contents[i] + at;
    regions[i] = (struct replay_region){
        .name = names[i],
        .address = l.address + at,
        .host = l.host ? (char *)l.host + at : NULL,
        .bytes = slice_at(a, i, slice + 1) - at,
    };
  }
  struct replay_options options = o->replay;
  options.seed += slice;
  options.start = rig_nv_signaled(a->device);
  options.word_gpu = rig_nv_facts(a->device)->word_gpu;
  return replay_make(&options, regions, ARENA_REGIONS, parts,
                     &a->replays[slice], failure);
}

static int make(struct arena *a, const struct arena_options *o,
                unsigned char **contents, const char **failure) {
  uint64_t most = 0;
  *failure = "no host memory for the arena";
  for (unsigned i = 0; i < ARENA_REGIONS; i++) {
    a->bytes[i] = (o->bytes[i] + 7) / 8 * 8;
    most = a->bytes[i] > most ? a->bytes[i] : most;
    if (i == HOST)
      continue;
    contents[i] = malloc(a->bytes[i]);
    if (!contents[i])
      return -RIG_NV_HOST_MEMORY;
    content(o, i, contents[i], a->bytes[i]);
  }
  a->found = malloc(most);
  if (!a->found)
    return -RIG_NV_HOST_MEMORY;
  int e = make_regions(a, contents, failure);
  for (unsigned i = 0; i < a->slices && e == 0; i++)
    e = make_replay(a, o, i, contents, failure);
  return e;
}

int arena_make(struct rig_nv *device, const struct arena_options *o,
               struct arena *a, const char **failure) {
  unsigned char *contents[ARENA_DATA] = {NULL};
  *a = (struct arena){.device = device, .slices = o->slices};
  int e = make(a, o, contents, failure);
  for (unsigned i = 0; i < ARENA_DATA; i++)
    free(contents[i]);
  const char *second;
  if (e < 0)
    (void)arena_end(a, &second); /* the first failure is the one to tell */
  return e;
}

static int compare(struct arena *a, unsigned region,
                   struct replay_difference *difference) {
  for (unsigned i = 0; i < a->slices; i++) {
    uint64_t at = slice_at(a, region, i);
    if (!replay_equal(a->replays[i], region, a->found + at, difference)) {
      difference->offset += at;
      return 1;
    }
  }
  return 0;
}

int arena_verify(struct arena *a, struct replay_difference *difference,
                 const char **failure) {
  for (unsigned i = 0; i < a->slices; i++)
    replay_release(a->replays[i]);
  for (unsigned i = 0; i < ARENA_REGIONS; i++) {
    int e = rig_nv_download(a->device, a->regions[i], 0, a->found, a->bytes[i]);
    if (e < 0)
      return failed(e, failure);
    if (compare(a, i, difference))
      return 1;
  }
  return 0;
}

int arena_end(struct arena *a, const char **failure) {
  int first = 0;
  for (unsigned i = 0; i < a->slices; i++)
    replay_drop(a->replays[i]);
  free(a->found);
  for (unsigned i = 0; i < ARENA_REGIONS; i++) {
    int e = a->regions[i] ? rig_nv_free(a->device, a->regions[i]) : 0;
    if (e < 0 && first == 0)
      first = failed(e, failure);
  }
  *a = (struct arena){0};
  return first;
}

struct replay_counts arena_counts(const struct arena *a) {
  struct replay_counts sum = {0};
  for (unsigned i = 0; i < a->slices; i++) {
    const struct replay_counts *c = replay_counts(a->replays[i]);
    sum.submissions += c->submissions;
    sum.parts += c->parts;
    sum.copies += c->copies;
    sum.fills += c->fills;
    sum.launches += c->launches;
    sum.words += c->words;
    sum.ops += c->ops;
    sum.joins += c->joins;
    sum.waits += c->waits;
    sum.bytes += c->bytes;
    sum.skipped += c->skipped;
  }
  return sum;
}
