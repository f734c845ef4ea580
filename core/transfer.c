/* SPDX-License-Identifier: ISC */
/*
 * Uploads and downloads: through a staging region of the device's own where
 * the GPU has to copy, by the host where it addresses the region itself.
 */
#include <string.h>

#include "core/api/why.h"
#include "core/device.h"
#include "rings/io.h"

enum {
  STAGING = 1 << 20,
  STILL_MS = 60000, /* where the path bounds nothing: work may run that long */
  MS = 1000000
};

/* Waits until v is reached, for as long as the word moves. */
static int reach(struct rig_nv *d, uint64_t v) {
  uint64_t bound =
      d->facts.hang_ms >= 0 ? (uint64_t)d->facts.hang_ms : STILL_MS;
  for (;;) {
    uint64_t seen = rig_nv_signaled(d);
    int e = rig_nv_wait(d, v, device_now() + bound * MS);
    if (e != -RIG_NV_TIMEOUT)
      return e;
    if (rig_nv_signaled(d) == seen)
      return why(RIG_NV_STALLED, "no progress for %llu ms",
                 (unsigned long long)bound);
  }
}

/* One copy as a value of its own, and its end. */
static int copy_now(struct rig_nv *d, uint64_t dst, uint64_t src, uint64_t n) {
  struct rig_part part = rig_part_copy(dst, src, n);
  struct rig_submission s = {.parts = &part, .nparts = 1};
  for (;;) {
    const char *refused;
    uint64_t word = rig_nv_signaled(d), v;
    int answer = rings_post(&d->rings, &s, &v, &refused);
    if (answer == RIG_FITS)
      return reach(d, v);
    if (answer < 0)
      return why(RIG_NV_INVALID, "transfer: %s", refused);
    if (answer != RIG_LATER)
      return why(RIG_NV_NEVER,
                 "transfer: a copy does not fit this device's rings");
    int e = reach(d, word + 1);
    if (e != 0)
      return e;
  }
}

/* What a transfer came to. That work ran for a minute loses no device. */
static int done(struct rig_nv *d, int e) {
  return e == -RIG_NV_FAULT ? device_lose(d, e) : e;
}

/* A staging region that is this call's alone: the free one, or a new one. */
static int take(struct rig_nv *d, struct rig_nv_region **staging) {
  *staging = ck_pr_fas_ptr(&d->staging, NULL);
  ck_pr_fence_acquire(); /* partner: give's swap */
  return *staging ? 0 : region_make(d, RIG_PINNED, STAGING, staging);
}

/* Work that did not end may still use it: then it is stuck until stop. */
static int give(struct rig_nv *d, struct rig_nv_region *staging, int e) {
  ck_pr_fence_release(); /* partner: take's exchange; stop runs alone */
  if (e == 0 && ck_pr_cas_ptr(&d->staging, NULL, staging))
    return 0;
  if (e == 0)
    return region_end(staging);
  do
    staging->next = ck_pr_load_ptr(&d->stuck);
  while (!ck_pr_cas_ptr(&d->stuck, staging->next, staging));
  return e;
}

/* 0 once the values so far are reached; INVALID for a range that is not the
 * region's. */
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
  return reach(d, rings_last(&d->rings));
}

int rig_nv_upload(struct rig_nv *d, struct rig_nv_region *r, uint64_t at,
                  const void *from, uint64_t n) {
  int e = begin(d, r, at, n, "upload");
  if (e != 0 || n == 0)
    return e;
  if (r->memory.host) {
    memcpy((unsigned char *)r->memory.host + at, from, n);
    /* Mapped memory may be write-combined: only this core can push what it
     * stored, and another thread may submit the work that reads it. */
    io_write_fence();
    return 0;
  }
  struct rig_nv_region *staging;
  e = take(d, &staging);
  if (e != 0)
    return done(d, e);
  for (uint64_t moved = 0; moved < n && e == 0; moved += STAGING) {
    uint64_t piece = n - moved < STAGING ? n - moved : STAGING;
    memcpy(staging->memory.host, (const unsigned char *)from + moved, piece);
    e = copy_now(d, r->memory.address + at + moved, staging->memory.address,
                 piece);
  }
  return done(d, give(d, staging, e));
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
  struct rig_nv_region *staging;
  e = take(d, &staging);
  if (e != 0)
    return done(d, e);
  for (uint64_t moved = 0; moved < n && e == 0; moved += STAGING) {
    uint64_t piece = n - moved < STAGING ? n - moved : STAGING;
    e = copy_now(d, staging->memory.address, r->memory.address + at + moved,
                 piece);
    if (e == 0)
      memcpy((unsigned char *)to + moved, staging->memory.host, piece);
  }
  return done(d, give(d, staging, e));
}
