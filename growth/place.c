/* SPDX-License-Identifier: ISC */
#include "growth/place.h"

#include "paths/call.h"
#include "rings/launch.h"

static int or_host(int place, bool host) {
  return place == RIG_NV_AUTO && host ? RIG_NV_HOST : place;
}

struct places places_of(const struct rig_nv_path *path,
                        const struct places *p) {
  const bool none = path->flush == NULL;
  struct places at;
  at.userd = or_host(p->userd, none || !path->put_mapped);
  at.entries = or_host(p->entries, at.userd == RIG_NV_HOST);
  at.segments = or_host(p->segments, at.userd == RIG_NV_HOST);
  at.launches = or_host(p->launches, none);
  return at;
}

int place_alloc(const struct rig_nv_path *path, int place, uint64_t n,
                struct rig_nv_memory *memory, bool *mapped) {
  /* The flag also tells a path whose memory it is. */
  const unsigned ours = RIG_NV_COMBINE;
  *mapped = place != RIG_NV_HOST;
  if (*mapped) {
    int e = path_alloc(path, RIG_MAPPED, n, ours, memory);
    if (place == RIG_NV_BAR || e != -RIG_NV_NO_MEMORY)
      return e;
  }
  *mapped = false;
  return path_alloc(path, RIG_PINNED, n, ours, memory);
}

int place_segments(const struct rig_nv_path *path, int place, uint64_t bytes,
                   struct rig_nv_memory *memory, struct ring_channel *ring) {
  bool mapped;
  int e = place_alloc(path, place, bytes, memory, &mapped);
  if (e != 0)
    return e;
  ring->segments = memory->host;
  ring->segments_gpu = memory->address;
  ring->units = (uint32_t)(bytes / RING_UNIT);
  ring->segments_mapped = mapped;
  return 0;
}

int place_launches(const struct rig_nv_path *path, int place, uint64_t bytes,
                   struct rig_nv_memory *memory, struct ring_launches *ring) {
  bool mapped;
  if (bytes == 0)
    return 0;
  int e = place_alloc(path, place, bytes, memory, &mapped);
  if (e != 0)
    return e;
  *ring = (struct ring_launches){.at = memory->host,
                                 .gpu = memory->address,
                                 .units = (uint32_t)(bytes / LAUNCH_UNIT),
                                 .mapped = mapped};
  return 0;
}
