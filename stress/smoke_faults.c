/* SPDX-License-Identifier: ISC */
/*
 * What a program with a wrong address does to its own device: one fault a
 * process, and what the device says of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "stress/kernels.h"
#include "stress/smoke.h"

enum { N = 4096 };

/* The wait must fail with the device's report, the stop must not, and the
 * word then shows the last value. */
static bool faults(struct smoke *s, const char *what,
                   const struct rig_submission *sub) {
  uint64_t v, deadline = device_now() + UINT64_C(10000000000);
  if (rig_nv_post_wait(s->device, sub, deadline, &v) != 0)
    return smoke_failed("post: %s", rig_nv_why());
  int r = rig_nv_wait(s->device, v, deadline);
  printf("%s: wait answers %d: %s\n", what, r, r ? rig_nv_why() : "reached");
  if (r != -RIG_NV_FAULT)
    return smoke_failed("%s: no fault", what);
  r = rig_nv_post(s->device, sub, &v);
  if (r != -RIG_NV_LOST)
    return smoke_failed("a post after the fault: %d, %s", r, rig_nv_why());
  v = rings_last(&s->device->rings);
  r = rig_nv_stop(s->device, rig_nv_why());
  if (r != 0)
    return smoke_failed("stop after a fault: %s", rig_nv_why());
  if (rig_nv_signaled(s->device) != v)
    return smoke_failed("the word is not raised by a stop");
  return true;
}

static bool copy(struct smoke *s, const char *what, uint64_t source,
                 struct rig_nv_region *to) {
  struct rig_part p = rig_part_copy(rig_nv_locate(to).address, source, N);
  struct rig_submission sub = {.parts = &p, .nparts = 1};
  return faults(s, what, &sub);
}

/* A kernel that stores past the region. */
static bool kernel(struct smoke *s, struct rig_nv_region *r) {
  struct kernels k;
  uint64_t at = rig_nv_locate(r).address;
  struct {
    _Alignas(16) struct rig_block block;
    uint64_t params[4];
  } args = {{{1, 1, 1}, {32, 1, 1}, 0, 0},
            {at + (UINT64_C(64) << 30), at, 64, 1}};
  bool real = strcmp(s->path_name, "nvidia") == 0;
  if (kernels_make(s->device, real ? NULL : s->path, &k) != 0)
    return smoke_failed("kernels: %s", rig_nv_why());
  struct rig_part p =
      rig_part_launch(k.mix.code, k.mix.launch, 0, sizeof args.params);
  struct rig_submission sub = {
      .parts = &p, .nparts = 1, .args = &args, .args_bytes = sizeof args};
  bool ok = faults(s, "kernel that stores where nothing is", &sub);
  if (kernels_end(&k) != 0)
    ok = smoke_failed("kernels after a fault: %s", rig_nv_why());
  return ok;
}

/* A ring entry of words that nothing holds. */
static bool segment(struct smoke *s, struct rig_nv_region *r) {
  uint64_t e;
  uint64_t at = rig_nv_locate(r).address + (UINT64_C(64) << 30);
  if (rig_nv_gpfifo_entry(at, 64, &e) != 0)
    return smoke_failed("entry: %s", rig_nv_why());
  const uint32_t w[2] = {(uint32_t)e, (uint32_t)(e >> 32)};
  struct rig_part p = rig_part_words(RIG_COMPUTE0, w, 2);
  struct rig_submission sub = {.parts = &p, .nparts = 1};
  return faults(s, "segment where nothing is", &sub);
}

bool smoke_fault(struct smoke *s, enum smoke_fault_of of) {
  struct rig_nv_region *r;
  unsigned char *heap = malloc(2 * (size_t)N);
  if (heap == NULL || rig_nv_alloc(s->device, RIG_DEVICE, N, &r) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  memset(heap, 0x77, 2 * (size_t)N);
  bool ok = of == SMOKE_KERNEL    ? kernel(s, r)
            : of == SMOKE_SEGMENT ? segment(s, r)
            : of == SMOKE_HOST    ? copy(s, "copy of memory that is not mapped",
                                         (uintptr_t)heap, r)
                                  : copy(s, "copy past a region's end",
                                         rig_nv_locate(r).address + N / 2, r);
  if (rig_nv_free(s->device, r) != 0)
    ok = smoke_failed("free after a fault: %s", rig_nv_why());
  free(heap);
  return ok;
}
