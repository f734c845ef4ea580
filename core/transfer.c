/* SPDX-License-Identifier: ISC */
/*
 * Uploads and downloads: through a staging region of the device's own where
 * the GPU has to copy, by the host where it addresses the region itself.
 */
#include <string.h>

#include "core/api/why.h"
#include "core/device.h"

enum {
  STAGING = 1 << 20,
  STILL_MS = 60000, /* where the path bounds nothing: work may run that long */
  MS = 1000000
};

/* Waits until every value is reached, for as long as the word moves. */
static int drain(struct rig_nv *d) {
  uint64_t bound =
      d->facts.hang_ms >= 0 ? (uint64_t)d->facts.hang_ms : STILL_MS;
  for (;;) {
    uint64_t seen = rig_nv_signaled(d);
    int e = rig_nv_wait(d, d->rings.last.v, device_now() + bound * MS);
    if (e != -RIG_NV_TIMEOUT)
      return e;
    if (rig_nv_signaled(d) == seen)
      return why(RIG_NV_STALLED, "no progress for %llu ms",
                 (unsigned long long)bound);
  }
}

/* One copy as the next value, and its end. */
static int copy_now(struct rig_nv *d, uint64_t dst, uint64_t src, uint64_t n) {
  struct rig_part part = rig_part_copy(dst, src, n);
  struct rig_submission s = {.parts = &part, .nparts = 1};
  const char *failure = NULL;
  enum rig_room room = rig_nv_room(d, &s);
  /* Everything is reached, so it fits unless it never does. */
  if (room != RIG_FITS)
    return why(RIG_NV_NEVER, "transfer: a copy does not fit this device's "
                             "rings");
  if (rig_nv_submit(d, d->rings.last.v + 1, &s, &failure) != RIG_COMMITTED)
    return why(RIG_NV_INVALID, "transfer: %s", failure);
  return drain(d);
}

/* 0 once nothing runs and the staging region exists; INVALID for a range that
 * is not the region's. */
static int begin(struct rig_nv *d, const struct rig_nv_region *r, uint64_t at,
                 uint64_t n, const char *call) {
  int e = device_enter(d);
  if (e != 0)
    return e;
  if (r == NULL || r->device != d)
    return why(RIG_NV_INVALID, "%s: not a region of this device", call);
  uint64_t bytes = r->memory.bytes;
  if (at > bytes || n > bytes - at)
    return why(RIG_NV_INVALID, "%s: %llu bytes at %llu of a region of %llu",
               call, (unsigned long long)n, (unsigned long long)at,
               (unsigned long long)bytes);
  e = drain(d);
  if (e == 0 && r->memory.host == NULL && d->staging == NULL)
    e = region_make(d, RIG_PINNED, STAGING, &d->staging);
  return e;
}

int rig_nv_upload(struct rig_nv *d, struct rig_nv_region *r, uint64_t at,
                  const void *from, uint64_t n) {
  int e = begin(d, r, at, n, "upload");
  if (e != 0 || n == 0)
    return e;
  if (r->memory.host) {
    memcpy((unsigned char *)r->memory.host + at, from, n);
    return 0;
  }
  for (uint64_t done = 0; done < n && e == 0; done += STAGING) {
    uint64_t piece = n - done < STAGING ? n - done : STAGING;
    memcpy(d->staging->memory.host, (const unsigned char *)from + done, piece);
    e = copy_now(d, r->memory.address + at + done, d->staging->memory.address,
                 piece);
  }
  return e;
}

int rig_nv_download(struct rig_nv *d, const struct rig_nv_region *r,
                    uint64_t at, void *to, uint64_t n) {
  int e = begin(d, r, at, n, "download");
  if (e != 0 || n == 0)
    return e;
  if (r->memory.host) {
    memcpy(to, (const unsigned char *)r->memory.host + at, n);
    return 0;
  }
  for (uint64_t done = 0; done < n; done += STAGING) {
    uint64_t piece = n - done < STAGING ? n - done : STAGING;
    e = copy_now(d, d->staging->memory.address, r->memory.address + at + done,
                 piece);
    if (e != 0)
      return e;
    memcpy((unsigned char *)to + done, d->staging->memory.host, piece);
  }
  return 0;
}
