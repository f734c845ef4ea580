/* SPDX-License-Identifier: ISC */
#ifndef GROWTH_LAUNCHES_H
#define GROWTH_LAUNCHES_H
/*
 * The memory of a launch ring (rings/launch.h). The GPU reads a descriptor and
 * its bank 0 for each launch, so they lie in its own memory, behind the memory
 * BAR, where that has room and is not ruled out, and in Pinned memory else.
 *
 * Threads: any, each with memory of its own.
 */
#include "paths/path.h"
#include "rings/rings.h"

/* A ring of `bytes`, a power of two and at least LAUNCH_UNIT, or none of 0;
 * path_free gives it back. The errors of paths/call.h. */
int launches_make(const struct rig_nv_path *, uint64_t bytes, int place,
                  struct rig_nv_memory *, struct ring_launches *);
#endif
