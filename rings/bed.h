/* SPDX-License-Identifier: ISC */
#ifndef RINGS_BED_H
#define RINGS_BED_H
/*
 * For tests: rings without a device. Their memory is the host's, no GPU runs,
 * and what a submission became is read back as text by literal header words,
 * which shares nothing with the encoders.
 */
#include "rings/rings.h"

enum {
  WORD = 0x1000,
  JOIN = 0x2000,      /* COMPUTE's; COPY's is 0x2040 */
  LAUNCHES = 0x30000, /* the launch ring */
  COMPUTE = RIG_COMPUTE0,
  COPY = RIG_COPY0,
  TRACE = 8192,
  BED_GENERATIONS = 8 /* beside the first */
};

struct bed {
  struct rings rings;
  struct ring_generation generation;
  struct ring_generation grown[BED_GENERATIONS]; /* bed_grow's, in order */
  unsigned ngrown;
  void *memory[3 * BED_GENERATIONS * QUEUES]; /* of theirs */
  unsigned nmemory;
  const uint32_t *seen_of[QUEUES]; /* the entry ring that `seen` counts */
  uint64_t word;
  uint32_t *entries[QUEUES];
  unsigned char *segments[QUEUES];
  unsigned char *launches;
  uint32_t gp_put[QUEUES], doorbell, seen[QUEUES];
  char trace[TRACE];
};

struct sizes {
  uint32_t entries, units, marks, start_entries, start_units;
  uint64_t v, joins;
  uint32_t launches, start_launch; /* units of the launch ring; 0: none */
};

/* Two words of memory, low first. */
static inline uint64_t pair(const uint32_t *low) {
  return (uint64_t)low[1] << 32 | low[0];
}

extern const struct sizes usual;

struct bed *bed_make(const struct sizes *);
void bed_free(struct bed *);

/* Publishes a generation whose rings are the newest's but for these, where not
 * 0. Entries of a channel are new channels. */
struct bed_growth {
  uint32_t entries[QUEUES]; /* of both channels, or of none */
  uint32_t units[QUEUES];
  uint32_t launches;
};
void bed_grow(struct bed *, const struct bed_growth *);

/* Submits the next value; the trace is what both channels got, such as
 *   COMPUTE release(1000,2) |; COPY
 * where "|" ends a segment and "entry(...)" is a foreign one. */
enum rig_done submit(struct bed *, const struct rig_submission *,
                     const char **failure);
/* The same after room answered FITS; fails the test where it cannot. */
void submit_ok(struct bed *, const struct rig_submission *);

#define SETUP0 " compute(cbc0) local(fe00000000) shared(ff00000000)"
#define SETUP1 " copy-engine(c8b5)"

#define F0 " entry(400000004000)"
#define F1 " entry(400000005000)"
extern const uint32_t foreign[4]; /* two entries: F0, F1 */

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

#define FILL_PART(d, n, b)                                                     \
  {                                                                            \
    .queue = COPY, .kind = RIG_FILL, .fill = {                                 \
      .dst = d,                                                                \
      .bytes = n,                                                              \
      .byte = b                                                                \
    }                                                                          \
  }

#endif
