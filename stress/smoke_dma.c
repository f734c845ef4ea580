/* SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/api/rig_nv.h"
#include "stress/smoke.h"

/* A file of a DMA buffer ends where the buffer does (lseek of Linux's). */
static bool check(int fd, uint64_t bytes, const char *when) {
  off_t end = lseek(fd, 0, SEEK_END);
  return end >= 0 && (uint64_t)end >= bytes
             ? true
             : smoke_failed("the buffer's file is of %jd bytes %s",
                            (intmax_t)end, when);
}

static bool told(const struct rig_dma *dma, const char *kind, uint64_t n) {
  if (dma->kind == RIG_DMA_BUS) {
    printf("dma of %s: bus address 0x%" PRIx64 "\n", kind, dma->bus);
    return true;
  }
  printf("dma of %s: buffer, file %d, %" PRIu64 " bytes from %" PRIu64 "\n",
         kind, dma->fd, dma->bytes, dma->offset);
  return (dma->bytes == n || smoke_failed("of %" PRIu64 " bytes", n)) &&
         check(dma->fd, dma->offset + n, "as it is made");
}

/* The answer is the machine's: a refusal is told, and no failure. */
static bool ask(struct smoke *s, int kind, const char *name, uint64_t n,
                const char *fn) {
  struct rig_nv_region *r;
  struct rig_dma dma = {.fd = -1};
  bool ok = true;
  if (rig_nv_alloc(s->device, (enum rig_memory)kind, n, &r) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  int e = rig_nv_dma(s->device, r, fn, &dma);
  if (e == 0)
    ok = told(&dma, name, n);
  else if (e == -RIG_NV_REFUSED || e == -RIG_NV_NO_MEMORY)
    printf("dma of %s: refused: %s\n", name, rig_nv_why());
  else
    return smoke_failed("dma: %d, %s", e, rig_nv_why());
  if (rig_nv_free(s->device, r) != 0)
    return smoke_failed("free: %s", rig_nv_why());
  if (e != 0 || dma.kind != RIG_DMA_BUF)
    return ok;
  ok = ok && check(dma.fd, n, "once the memory is freed");
  return (close(dma.fd) == 0 || smoke_failed("close of the buffer")) && ok;
}

/* The function is the GPU's own, as the machine may show no other. */
bool smoke_dma(struct smoke *s) {
  const char *fn = rig_nv_facts(s->device)->bus;
  if (fn == NULL)
    fn = "0000:00:00.0";
  return ask(s, RIG_DEVICE, "4 KiB of Device", 4 << 10, fn) &&
         ask(s, RIG_DEVICE, "16 MiB of Device", 16 << 20, fn) &&
         ask(s, RIG_PINNED, "4 KiB of Pinned", 4 << 10, fn) &&
         (s->path->flush == NULL ||
          ask(s, RIG_MAPPED, "1 MiB of Mapped", 1 << 20, fn)) &&
         ask(s, RIG_DEVICE, "4 KiB of Device for nobody", 4 << 10,
             "ffff:1f:1e.7");
}
