/* SPDX-License-Identifier: ISC */
/*
 * How another PCI function reaches memory: the path's answer. Nothing tells a
 * function to stop, so memory that it was given a bus address of is never given
 * back: its region may be freed, and its path stays in use.
 */
#include "core/api/why.h"
#include "core/device.h"
#include "paths/call.h"

static int ask(struct rig_nv *d, struct rig_nv_region *r, const char *fn,
               struct rig_dma *dma) {
  struct rig_nv_reply reply = {0};
  struct rig_dma got = {.fd = -1};
  if (!d->path->dma(d->path->ctx, &r->memory, fn, &got, &reply))
    return path_error("dma", &reply);
  if (got.kind != RIG_DMA_BUS && got.kind != RIG_DMA_BUF)
    return why(RIG_NV_REFUSED, "dma: the path answered kind %d", got.kind);
  if (got.kind == RIG_DMA_BUS)
    ck_pr_store_32(&r->on_bus, 1); /* read by region_end, which comes later */
  *dma = got;
  return 0;
}

int rig_nv_dma(struct rig_nv *d, struct rig_nv_region *r, const char *fn,
               struct rig_dma *dma) {
  int e = device_enter(d);
  if (e != 0)
    return e;
  if (r == NULL || r->device != d)
    return why(RIG_NV_INVALID, "dma: not a region of this device");
  if (!r->allocated)
    return why(RIG_NV_INVALID, "dma: not a region that rig_nv_alloc made");
  if (fn == NULL)
    return why(RIG_NV_INVALID, "dma: no bus address of a function");
  return device_lose(d, ask(d, r, fn, dma));
}
