/* SPDX-License-Identifier: ISC */
#include "growth/launches.h"

#include "paths/call.h"
#include "rings/launch.h"

int launches_make(const struct rig_nv_path *path, uint64_t bytes, int place,
                  struct rig_nv_memory *memory, struct ring_launches *ring) {
  if (bytes == 0)
    return 0;
  int e = -RIG_NV_NO_MEMORY;
  bool mapped = place == RIG_NV_AUTO && path->flush != NULL;
  if (mapped)
    e = path_alloc(path, RIG_MAPPED, bytes, RIG_NV_COMBINE, memory);
  if (e == -RIG_NV_NO_MEMORY) {
    mapped = false;
    e = path_alloc(path, RIG_PINNED, bytes, 0, memory);
  }
  if (e != 0)
    return e;
  *ring = (struct ring_launches){.at = memory->host,
                                 .gpu = memory->address,
                                 .units = (uint32_t)(bytes / LAUNCH_UNIT),
                                 .mapped = mapped};
  return 0;
}
