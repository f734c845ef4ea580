/* SPDX-License-Identifier: ISC */
/*
 * What a program with a wrong address does to its own device: one fault a
 * process, and what the device says of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "stress/smoke.h"

enum { N = 4096 };

/* The wait must fail with the device's report, the stop must not, and the
 * word then shows the last value. */
static bool faults(struct smoke *s, const char *what, uint64_t source,
                   struct rig_nv_region *to) {
  struct rig_part part = rig_part_copy(rig_nv_locate(to).address, source, N);
  uint64_t v, deadline = device_now() + UINT64_C(10000000000);
  if (!smoke_post(s, &part, 1, &v))
    return false;
  int r = rig_nv_wait(s->device, v, deadline);
  printf("%s: wait answers %d: %s\n", what, r, r ? rig_nv_why() : "reached");
  if (r != -RIG_NV_FAULT)
    return smoke_failed("%s: no fault", what);
  r = rig_nv_stop(s->device, rig_nv_why());
  if (r != 0)
    return smoke_failed("stop after a fault: %s", rig_nv_why());
  if (rig_nv_signaled(s->device) != v)
    return smoke_failed("the word is not raised by a stop");
  return true;
}

bool smoke_fault(struct smoke *s, bool of_host) {
  struct rig_nv_region *r;
  unsigned char *heap = malloc(2 * (size_t)N);
  if (heap == NULL || rig_nv_alloc(s->device, RIG_DEVICE, N, &r) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  memset(heap, 0x77, 2 * (size_t)N);
  bool ok = of_host ? faults(s, "copy of memory that is not mapped",
                             (uintptr_t)heap, r)
                    : faults(s, "copy past a region's end",
                             rig_nv_locate(r).address + N / 2, r);
  if (rig_nv_free(s->device, r) != 0)
    ok = smoke_failed("free after a fault: %s", rig_nv_why());
  free(heap);
  return ok;
}
