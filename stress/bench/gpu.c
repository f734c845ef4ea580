/* SPDX-License-Identifier: ISC */
#include "stress/bench/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "rings/io.h"
#include "stress/bench/ticks.h"

static struct gpu *the_gpu;

void ring_io_hook(volatile uint32_t *to, uint32_t x) {
  struct gpu *g = the_gpu;
  (void)x;
  if (to != &g->doorbell)
    return; /* GP_PUT */
  ticks_multiply(g->multiplies);
  /* The release that the entries ask for: partner, ring_reserve's load. */
  shared_store_release_64(&g->word, g->rings.seat.published);
}

void *gpu_memory(size_t n) {
  void *p = aligned_alloc(128, (n + 127) / 128 * 128);
  if (p)
    memset(p, 0, n);
  return p;
}

/* GPU addresses that nothing is at. */
enum { WORD = 0x1000, JOIN = 0x2000, SEGMENTS = 0x10000000 };

static bool channel_make(struct gpu *g, int q) {
  uint32_t *entries = gpu_memory((size_t)GPU_ENTRIES * 8);
  unsigned char *segments = gpu_memory(GPU_SEGMENT_BYTES);
  g->generation.channel[q] =
      (struct ring_channel){.entries = entries,
                            .n = GPU_ENTRIES,
                            .segments = segments,
                            .segments_gpu = (uint64_t)SEGMENTS << q,
                            .units = GPU_SEGMENT_BYTES / RING_UNIT,
                            .gp_put = &g->gp_put[q],
                            .token = (uint32_t)q};
  g->rings.join_gpu[q] = JOIN + 0x40 * (uint64_t)q;
  return entries && segments;
}

struct gpu *gpu_make(void) {
  struct gpu *g = the_gpu = gpu_memory(sizeof *g);
  struct mark *marks = gpu_memory(GPU_IN_FLIGHT * sizeof *marks);
  if (!g || !marks || !channel_make(g, RIG_COMPUTE0) ||
      !channel_make(g, RIG_COPY0))
    return NULL;
  const struct cursor start = {.released_by = NOBODY};
  rings_init(&g->rings, marks, GPU_IN_FLIGHT, &start);
  g->rings.newest = &g->generation;
  g->rings.word = &g->word;
  g->rings.word_gpu = WORD;
  g->rings.doorbell = &g->doorbell;
  return g;
}
