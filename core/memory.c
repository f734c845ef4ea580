/* SPDX-License-Identifier: ISC */
#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "core/device.h"
#include "core/lock_order/lock_order.h"
#include "paths/call.h"

enum { WORD = 4, PAGE = 4096 };

void *device_host_alloc(const struct rig_nv_allocator *a, size_t align,
                        size_t n) {
  size_t rounded = (n + align - 1) / align * align; /* aligned_alloc's rule */
  VALIDATE_ALLOCATE("the host allocator");
  void *p = a->alloc(a->ctx, align, rounded);
  if (p == NULL) {
    why(RIG_NV_HOST_MEMORY, "the host allocator has no %zu bytes", rounded);
    return NULL;
  }
  return memset(p, 0, n);
}

int device_live(const struct rig_nv *d) {
  int e = rig_nv_lock_idle();
  if (e == 0 && shared_load_32(&d->stopped))
    e = why(RIG_NV_REFUSED, "the device is stopped");
  return e;
}

int device_enter(const struct rig_nv *d) {
  int e = device_live(d);
  return e != 0 ? e : device_lost(d);
}

struct rig_nv_region *region_new(struct rig_nv *d, enum rig_memory kind) {
  struct rig_nv_region *r =
      device_host_alloc(&d->host, _Alignof(struct rig_nv_region), sizeof *r);
  if (r != NULL)
    *r = (struct rig_nv_region){.device = d, .kind = kind};
  return r;
}

void region_discard(struct rig_nv_region *r) {
  const struct rig_nv_allocator *host = &r->device->host;
  host->release(host->ctx, r, sizeof *r);
}

/* Mapped ones make submissions flush the BAR; views of Mapped memory do so
 * from before the path maps it (core/peer.c). */
void region_live(struct rig_nv_region *r) {
  ck_pr_inc_64(&r->device->regions);
  if (r->viewed)
    ck_pr_inc_64(&r->viewed->views);
  else if (r->kind == RIG_MAPPED)
    ck_pr_inc_32(&r->device->rings.mapped);
}

/* Undoes region_live. The viewed region may go as soon as it is uncounted. */
static void count_out(struct rig_nv_region *r) {
  struct rig_nv *d = r->device;
  bool mapped = r->kind == RIG_MAPPED;
  if (mapped && r->viewed)
    flush_drop(&d->rings.viewed, &r->viewed->device->flush);
  else if (mapped)
    ck_pr_dec_32(&d->rings.mapped);
  if (r->viewed)
    ck_pr_dec_64(&r->viewed->views);
  ck_pr_dec_64(&d->regions);
}

int region_make(struct rig_nv *d, enum rig_memory kind, uint64_t n,
                struct rig_nv_region **region) {
  struct rig_nv_region *r = region_new(d, kind);
  if (r == NULL)
    return -RIG_NV_HOST_MEMORY;
  int e = path_alloc(d->path, kind, n, 0, &r->memory);
  if (e != 0) {
    region_discard(r);
    return e;
  }
  region_live(r);
  *region = r;
  return 0;
}

int region_end(struct rig_nv_region *r) {
  struct rig_nv *d = r->device;
  if (r->own_word) {
    d->last = rig_nv_signaled(d); /* which reads on */
    d->facts.word = &d->last;
    d->facts.own_word = NULL;
    d->own_word = NULL;
  }
  /* A PCI function may reach what is on the bus until the process exits. */
  int e = ck_pr_load_32(&r->on_bus) ? 0 : path_free(d->path, &r->memory);
  count_out(r);
  region_discard(r);
  return e;
}

int rig_nv_alloc(struct rig_nv *d, enum rig_memory kind, uint64_t n,
                 struct rig_nv_region **region) {
  int e = device_enter(d);
  if (e != 0)
    return e;
  if (kind != RIG_DEVICE && kind != RIG_PINNED && kind != RIG_MAPPED)
    return why(RIG_NV_INVALID, "alloc: %d is no kind of memory", (int)kind);
  if (n == 0)
    return why(RIG_NV_INVALID, "alloc: fewer than one byte");
  if (n % WORD != 0)
    return why(RIG_NV_INVALID, "alloc: %llu bytes are not a multiple of 4",
               (unsigned long long)n);
  if (kind == RIG_MAPPED && d->path->flush == NULL)
    return why(RIG_NV_NO_MEMORY, "alloc: the path has no Mapped memory");
  e = later_free(d, false);
  int f = local_free_retired(d);
  e = f != 0 ? f : e;
  f = growth_give_back(&d->growth);
  e = f != 0 ? f : e;
  if (e == 0)
    e = region_make(d, kind, n, region);
  if (e == 0)
    (*region)->allocated = true;
  return device_lose(d, e);
}

int rig_nv_map_host(struct rig_nv *d, void *p, uint64_t n,
                    enum rig_mapping *mapping, struct rig_nv_region **region) {
  int e = device_enter(d);
  if (e != 0)
    return e;
  if (n == 0)
    return why(RIG_NV_INVALID, "map_host: fewer than one byte");
  if ((uintptr_t)p % PAGE != 0)
    return why(RIG_NV_INVALID, "map_host: %p does not start a page", p);
  if (n > UINTPTR_MAX - (uintptr_t)p)
    return why(RIG_NV_INVALID, "map_host: past the end of the address space");
  struct rig_nv_region *r = region_new(d, RIG_PINNED);
  if (r == NULL)
    return -RIG_NV_HOST_MEMORY;
  e = path_map_host(d->path, p, n, mapping, &r->memory);
  if (e != 0) {
    region_discard(r);
    return device_lose(d, e);
  }
  region_live(r);
  *region = r;
  return 0;
}

int region_may_end(const struct rig_nv *d, const struct rig_nv_region *r) {
  int e = rig_nv_lock_idle();
  if (e != 0)
    return e;
  if (r == NULL || r->device != d)
    return why(RIG_NV_INVALID, "free: not a region of this device");
  uint64_t views = shared_load_64(&r->views);
  if (views != 0)
    return why(RIG_NV_INVALID, "free: %llu views of the region are not freed",
               (unsigned long long)views);
  if (r->own_word && !(shared_load_32(&d->stopped) &&
                       rig_reached(rig_nv_signaled(d), rings_last(&d->rings))))
    return why(RIG_NV_INVALID, "free: the device's word, before it stopped and "
                               "the word reached the last value");
  return 0;
}

int rig_nv_free(struct rig_nv *d, struct rig_nv_region *r) {
  int e = region_may_end(d, r);
  return e != 0 ? e : device_lose(d, region_end(r));
}

struct rig_location rig_nv_locate(const struct rig_nv_region *r) {
  return (struct rig_location){.address = r->memory.address,
                               .handle = r->memory.address,
                               .host = r->memory.host};
}
