/* SPDX-License-Identifier: ISC */
/*
 * How another PCI function reaches memory: by a DMA buffer that the kernel
 * driver exports, for that function's driver to import (dma_buf_attach of
 * Linux). The driver tells a process no bus address.
 *
 * Of open-gpu-kernel-modules (nv-dmabuf.c, osapi.c of 595.45.04): the escape
 * goes to the GPU's file; it takes GPU memory of that GPU alone, whole pages,
 * and dups the memory's object, so that the buffer keeps the memory once that
 * object is freed. Where the BAR has no room, the importer's map fails.
 */
#include <inttypes.h>
#include <stdio.h>

#include "paths/nvidia/call.h"

/* Whether fn is the address of a function that the machine has. */
static bool there(const struct nvidia_os *os, const char *fn,
                  struct rig_nv_reply *reply) {
  unsigned domain, bus, device, function;
  char path[96], text[32], rest;
  if (fn == NULL || sscanf(fn, "%8x:%2x:%2x.%1x%c", &domain, &bus, &device,
                           &function, &rest) != 4)
    return rig_nv_reply_set(reply, RIG_NV_DENIED,
                            "dma: %s is no address of a PCI function",
                            fn ? fn : "(null)");
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%.32s/vendor", fn);
  if (os->read(os->ctx, path, text, sizeof text) != 0)
    return rig_nv_reply_set(reply, RIG_NV_DENIED,
                            "dma: the machine has no function %s", fn);
  return true;
}

bool nvk_dma(void *ctx, const struct rig_nv_memory *memory, const char *fn,
             struct rig_dma *out, struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  const struct client *c = g->client;
  const struct memory *m = memory->data;
  if (!there(c->os, fn, reply))
    return false;
  if (m->span->kind == RIG_PINNED)
    return rig_nv_reply_set(reply, RIG_NV_DENIED,
                            "dma: function %s: Pinned memory is the process's, "
                            "of which the kernel driver gives no address",
                            fn);
  /* Its span is the memory's own, and constant while that lives. */
  uint64_t whole = m->span->range.bytes;
  struct nv_export p = {.fd = -1,
                        .client = c->root,
                        .total = 1,
                        .n = 1,
                        .bytes = whole,
                        .mapping = NV_DMABUF_EXPORT_MAPPING_TYPE_DEFAULT,
                        .memory = {m->span->handle},
                        .size = {whole}};
  if (!nvk_call_escape(c, g->file, NV_ESC_EXPORT_TO_DMABUF_FD, &p, sizeof p,
                       &p.status, "export as a DMA buffer", reply))
    return false;
  if (p.fd < 0)
    return rig_nv_reply_set(reply, RIG_NV_DENIED,
                            "export as a DMA buffer: file %" PRId32, p.fd);
  *out =
      (struct rig_dma){.kind = RIG_DMA_BUF, .fd = p.fd, .bytes = memory->bytes};
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}
