/* SPDX-License-Identifier: ISC */
#ifndef GROWTH_SEGMENTS_H
#define GROWTH_SEGMENTS_H
/*
 * The memory of a channel's segment ring (rings/rings.h): Pinned, and apart
 * from the channel, whose RM objects do not name it, so that each grows by
 * itself.
 *
 * Threads: any, each with memory of its own.
 */
#include "paths/path.h"
#include "rings/rings.h"

/* A ring of `bytes`, a power of two, at least RING_UNIT and at most
 * RING_MOST_UNITS units: its segments, segments_gpu and units. path_free gives
 * it back. The errors of paths/call.h. */
int segments_make(const struct rig_nv_path *, uint64_t bytes,
                  struct rig_nv_memory *, struct ring_channel *);
#endif
