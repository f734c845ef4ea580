/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_FLOOR_H
#define STRESS_BENCH_FLOOR_H
/*
 * Floor: what no way to submit goes below. One thread writes one 64-byte
 * segment, one entry, GP_PUT and the doorbell, with the two write fences that
 * the hardware asks for (rings/io.h), into rings of gpu.h's sizes. It asks
 * for no room, keeps no mark and lets nobody else submit. The GPU is gpu.h's.
 *
 * Bare: the same with the words of a submission's copies and its release, by
 * the encoders that rings/walk.c uses. What a post costs above it is what the
 * rings cost.
 */
#include <stdint.h>

#include "core/api/rig_nv.h"

struct floor {
  uint64_t *segments;
  uint64_t *entries;
  uint64_t count;
  uint32_t at;         /* bare: the next free unit of the segments */
  uint64_t multiplies; /* that a doorbell costs */
  uint32_t gp_put __attribute__((aligned(128)));
  uint32_t doorbell __attribute__((aligned(128)));
  uint64_t word __attribute__((aligned(128)));
};

/* NULL: no memory. */
struct floor *floor_make(void);
void floor_submit(struct floor *);
/* Copies of one row and at most 2 GiB, on COPY; or no parts. */
void floor_encode(struct floor *, const struct rig_submission *);
#endif
