/* SPDX-License-Identifier: ISC */
#ifndef STRESS_ARENA_H
#define STRESS_ARENA_H
/*
 * arena: a device's memory under replays. It allocates one region of each
 * kind and one more that the host writes, fills them, gives each of `slices`
 * replays its slice of every region, and at the end asks the device for every
 * byte and the replays for what it must be.
 *
 *     Device   | slice 0 | slice 1 | ...      content, then pseudo-random
 *     Pinned   | slice 0 | slice 1 | ...      pseudo-random
 *     Mapped   | slice 0 | slice 1 | ...      pseudo-random
 *     Host     | slice 0 | slice 1 | ...      Pinned; segments, host words
 *
 * Threads: the device's turn is the caller's during each call. Between them
 * each thread may use one replay.
 */
#include "stress/replay.h"

enum { ARENA_DATA = 3, ARENA_REGIONS = 4, ARENA_MOST_SLICES = 64 };

struct arena_options {
  uint64_t bytes[ARENA_REGIONS]; /* by enum rig_memory, then the host's */
  const void *content;           /* the first bytes of Device, or NULL */
  uint64_t content_bytes;
  unsigned slices;
  struct replay_options replay; /* slice i's seed is seed + i; start and
                                 * word_gpu come from the device */
};

struct arena {
  struct rig_nv *device;
  struct rig_nv_region *regions[ARENA_REGIONS];
  unsigned char *found; /* what a region holds now */
  struct replay *replays[ARENA_MOST_SLICES];
  uint64_t bytes[ARENA_REGIONS];
  unsigned slices;
};

/* The least that arena_options.bytes may say, for the slices and the replay
 * options. */
void arena_least(const struct arena_options *, uint64_t bytes[ARENA_REGIONS]);

/* 0, or the negative of an enum rig_nv_error and *failure, which lives until
 * the thread's next failure. A failed make leaves nothing. The device's last
 * value is rig_nv_signaled afterwards. */
int arena_make(struct rig_nv *, const struct arena_options *, struct arena *,
               const char **failure);

/* Releases the host's words, downloads every region and compares. Every value
 * is reached, as after arena_make, unless it fails. 0: all bytes are equal; 1:
 * *difference is the first one; negative: *failure. */
int arena_verify(struct arena *, struct replay_difference *,
                 const char **failure);

/* Frees the regions and the replays; also after the device's stop. 0, or the
 * negative of an error, with *failure, and the rest is freed all the same. */
int arena_end(struct arena *, const char **failure);

/* The replays' counts, added up. */
struct replay_counts arena_counts(const struct arena *);
#endif
