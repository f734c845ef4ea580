/* SPDX-License-Identifier: ISC */
#ifndef STRESS_REPLAY_STATE_H
#define STRESS_REPLAY_STATE_H
/*
 * replay_state: what the halves of a replay share. generate.c makes
 * submissions and the effects they must have, ops.c writes their words,
 * replay.c runs the effects on the mirrors.
 */
#include "stress/host_ring.h"
#include "stress/random.h"
#include "stress/replay.h"

enum {
  MOST_PARTS = 64,
  MOST_OPS = 8,
  MOST_ROWS = 8,
  MOST_WAITS = 64,
  MOST_AFTER = 4,
  MOST_SEGMENTS = 3,
  MOST_STAGED = 128, /* bytes that the host writes for one copy */
  BLOCK = 64,        /* bytes of one launch's block and parameters */
  HOST_WORDS = 16,   /* at the start of the host's region */
  MOST_PENDING = 256
};

/* An op may bring a release before it, which orders it. */
#define MOST_SEGMENT_WORDS (2 * MOST_OPS * RIG_NV_MOST_WORDS)

struct mirror {
  unsigned char *bytes;
  uint32_t *wrote; /* by byte: how many values after the start wrote it */
  bool low;        /* below 2^40: semaphores may lie there */
};

/* The host raises a word once it has made `step` submissions. */
struct pending {
  uint64_t step, value;
  unsigned word;
};

struct replay {
  struct replay_options options;
  struct replay_region regions[REPLAY_MOST_REGIONS];
  struct mirror mirrors[REPLAY_MOST_REGIONS];
  unsigned nregions, host; /* host: the index of the host's region */
  struct random random;
  struct replay_counts counts;
  uint64_t step, last, digest;

  struct host_ring ring; /* offset by the host's words */
  uint64_t asked[HOST_WORDS];
  struct pending pending[MOST_PENDING];
  unsigned npending;

  /* The submission made last. */
  struct rig_submission submission;
  struct rig_part parts[MOST_PARTS];
  int after[MOST_PARTS][MOST_AFTER];
  uint32_t entries[MOST_PARTS][2 * MOST_SEGMENTS];
  _Alignas(16) unsigned char args[MOST_PARTS * BLOCK];
  struct rig_ref refs[MOST_PARTS][2];
  uint64_t slots[2 * MOST_PARTS];
  struct rig_wait waits[MOST_WAITS];
  struct effect effects[MOST_PARTS * 2 * MOST_OPS];
  size_t neffects;
  unsigned nparts;
  int seen[2]; /* by queue: its parts up to this one precede the next part of
                * the other */
  bool broken; /* an encoder refused */
};

/* What the GPU calls the place. */
static inline uint64_t replay_address(const struct replay *r, struct place p) {
  return r->regions[p.region].address + p.at;
}

/* Writes n bytes at `at` of the host's region, and into its mirror. */
void replay_host_write(struct replay *, uint64_t at, const void *, uint64_t n);
/* Raises a word of the host. */
void replay_host_raise(struct replay *, unsigned word, uint64_t value);
void replay_release_due(struct replay *, uint64_t step);

/* The most bytes of the host's region that one submission takes. */
uint64_t replay_most_taken(const struct replay_options *);

/* A random place for n bytes, aligned; low: for semaphores. */
struct place replay_place(struct replay *, uint64_t n, uint64_t align,
                          bool low);
/* n bytes that the host just wrote. n is at most MOST_STAGED. */
struct place replay_staged(struct replay *, uint64_t n);
/* The 8 bytes at p once the effects made so far have run. */
uint64_t replay_word(const struct replay *, struct place);
/* Adds an effect of the part being made. */
struct effect *replay_effect(struct replay *, const struct effect *);

/* Makes a copy of up to most_bytes in up to `rows` rows; low: between memory
 * below 2^40. false: no place was found for its source. */
bool replay_copy(struct replay *, struct effect *, uint64_t rows, bool low);

/* Fills in a part of words with up to most_ops operations on its queue. */
void replay_words(struct replay *, struct rig_part *);
#endif
