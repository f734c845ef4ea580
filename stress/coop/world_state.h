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
  MOST_ENTRIES = 16,
  MOST_UNITS = 64,
  MOST_MARKS = 16,
  MOST_POSTERS = COOP_MOST_THREADS - 2,
  POISON = 0xdd
};

/* GPU addresses. */
enum { WORD = 0x1000, JOIN = 0x2000, OTHERS = 0x3000, SEGMENTS = 0x100000 };

/* Two ring entries of a caller's, outside of the segments. */
extern const uint32_t world_foreign[4];

struct channel {
  uint32_t entries[2 * MOST_ENTRIES];
  _Alignas(64) unsigned char segments[MOST_UNITS * RING_UNIT];
  uint32_t gp_put;
  shared_64 join;
  /* Shadows: whose an entry and a unit are, as places in the order of values
   * from 1; and free-running counts. */
  uint32_t entry_of[MOST_ENTRIES], unit_of[MOST_UNITS];
  uint32_t shown, fetched;
  uint32_t shown_of; /* the last value that GP_PUT shows an entry of */
  /* The GPU's: the segment that it runs. */
  const uint32_t *at;
  uint64_t left;
  uint32_t of;
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
  struct ring_generation generation;
  struct mark marks[MOST_MARKS];
  shared_64 word;
  uint32_t doorbell;
  struct channel channel[QUEUES];
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

/* The GPU, until all is done. */
void world_gpu(void *);
/* What holds once all threads are done. */
void world_judge(void);
#endif
