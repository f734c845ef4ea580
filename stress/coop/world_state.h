/* SPDX-License-Identifier: ISC */
#ifndef STRESS_COOP_WORLD_STATE_H
#define STRESS_COOP_WORLD_STATE_H
/*
 * The one world of a run, for world.c (posters and reader), gpu.c and judge.c.
 * The rings and what they name are the core's to touch; the shadows beside
 * them say what has really happened, and are changed between two points.
 */
#include <stdbool.h>
#include <stdint.h>

#include "rings/rings.h"
#include "stress/coop/world.h"
#include "stress/random.h"

enum {
  FIRST = 1, /* generation; a ring is the one of the generation it began with */
  GENERATIONS = 1 + WORLD_MOST_GROWTHS,
  MOST_ENTRIES = 16 << WORLD_MOST_GROWTHS,
  MOST_UNITS = 64 << WORLD_MOST_GROWTHS,
  MOST_MARKS = 16,
  MOST_POSTERS = COOP_MOST_THREADS - 3,
  POISON = 0xdd
};

/* GPU addresses. */
enum {
  WORD = 0x1000,
  JOIN = 0x2000,
  OTHERS = 0x3000,
  SEGMENTS = 0x100000,     /* of queue q, << q */
  SEGMENTS_APART = 0x10000 /* of one generation and the next */
};

/* Two ring entries of a caller's, outside of the segments. */
extern const uint32_t world_foreign[4];

struct channel {
  uint32_t n; /* entries; 0: not made */
  uint32_t entries[2 * MOST_ENTRIES];
  uint32_t gp_put;
  bool gone; /* replaced, and done with */
  /* Shadows: whose an entry is, as places in the order of values from 1; and
   * free-running counts. */
  uint32_t entry_of[MOST_ENTRIES];
  uint32_t shown, fetched;
  uint32_t shown_of; /* the last value that GP_PUT shows an entry of */
  /* The GPU's: the segment that it runs. */
  const uint32_t *at;
  uint64_t left;
  uint32_t of;
};

/* A segment ring, with whose a unit is. */
struct segments {
  uint32_t n; /* units; 0: not made */
  _Alignas(64) unsigned char at[MOST_UNITS * RING_UNIT];
  bool gone;
  uint32_t unit_of[MOST_UNITS];
};

/* What has happened to a value. */
struct life {
  bool reserved, encoded;
  int by;
  struct cursor from, to;
};

struct world {
  const struct world_shape *shape;
  const struct coop_schedule *how;
  struct random random[COOP_MOST_THREADS];
  struct rings rings;
  struct ring_generation generation[GENERATIONS];
  struct mark marks[MOST_MARKS];
  shared_64 word;
  uint32_t doorbell;
  shared_64 join[QUEUES];
  struct channel channel[GENERATIONS][QUEUES];
  struct segments segments[GENERATIONS][QUEUES];
  struct life life[WORLD_MOST_VALUES + 1]; /* of 0: the start */
  uint32_t reached;                        /* place of the word's value */
  int done;                                /* posters */
  bool rung;
};

extern struct world world;

/* Says what is broken and what replays it. */
void world_broken(const char *what) __attribute__((noreturn));
#define CHECK(what, x) ((x) ? (void)0 : world_broken(what))

/* The place of v in the order of values. */
static inline uint64_t world_nth(uint64_t v) { return v - world.shape->v; }
struct life *world_life(uint64_t v);

/* The rings of a generation. */
static inline struct channel *world_channel(const struct ring_generation *g,
                                            int q) {
  return &world.channel[g->channels_born - FIRST][q];
}
static inline struct segments *world_segments(const struct ring_generation *g,
                                              int q) {
  return &world.segments[g->channel[q].segments_born - FIRST][q];
}

/* The GPU, until all is done. */
void world_gpu(void *);
/* What holds once all threads are done. */
void world_judge(void);
#endif
