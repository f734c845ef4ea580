/* SPDX-License-Identifier: ISC */
#include "growth/segments.h"

#include "paths/call.h"

int segments_make(const struct rig_nv_path *path, uint64_t bytes,
                  struct rig_nv_memory *memory, struct ring_channel *ring) {
  /* The flag also tells a path whose memory it is. */
  int e = path_alloc(path, RIG_PINNED, bytes, RIG_NV_COMBINE, memory);
  if (e != 0)
    return e;
  ring->segments = memory->host;
  ring->segments_gpu = memory->address;
  ring->units = (uint32_t)(bytes / RING_UNIT);
  return 0;
}
