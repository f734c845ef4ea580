/* SPDX-License-Identifier: ISC */
#ifndef GROWTH_PLACE_H
#define GROWTH_PLACE_H
/*
 * Where a device's rings lie: in Pinned memory, which the GPU reads over PCIe,
 * some 0.65 us a read, or in the GPU's own behind the memory BAR, which the
 * host stores to and never reads. enum rig_nv_place says which; AUTO is
 *
 *   USERD       behind the BAR, where the path says that its stores keep their
 *               order: else GP_PUT is seen before what it shows
 *   entries     with USERD
 *   segments    with USERD
 *   launches    behind the BAR, if there is Mapped memory at all: a descriptor
 *               and its bank 0 are several reads
 *
 * and Pinned where that lacks memory. What was measured of each is in
 * stress/bench/results/h200.md.
 *
 * A ring behind the BAR without USERD there costs a read of the flush word,
 * 1 us, before each GP_PUT that shows something of it (ring_flush).
 *
 * Threads: any, each with memory of its own.
 */
#include "paths/path.h"
#include "rings/rings.h"

struct places {
  int userd, entries, segments, launches; /* enum rig_nv_place */
};

/* HOST instead of each AUTO that comes to it on the path, whatever lacks. */
struct places places_of(const struct rig_nv_path *, const struct places *);

/* n bytes at the place, of places_of; *mapped: they are behind the BAR. The
 * errors of paths/call.h. */
int place_alloc(const struct rig_nv_path *, int place, uint64_t n,
                struct rig_nv_memory *, bool *mapped);

/* A segment ring of `bytes`, a power of two, at least RING_UNIT and at most
 * RING_MOST_UNITS units: its segments, segments_gpu, units and
 * segments_mapped. Apart from the channel, whose RM objects do not name it, so
 * that each grows by itself. path_free gives it back. */
int place_segments(const struct rig_nv_path *, int place, uint64_t bytes,
                   struct rig_nv_memory *, struct ring_channel *);
/* A launch ring of `bytes`, a power of two and at least LAUNCH_UNIT, or none
 * of 0. */
int place_launches(const struct rig_nv_path *, int place, uint64_t bytes,
                   struct rig_nv_memory *, struct ring_launches *);
#endif
