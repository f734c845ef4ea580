/* SPDX-License-Identifier: ISC */
#include "stress/bench/gpu.h"

#include <stdlib.h>
#include <string.h>

#include "rings/io.h"
#include "stress/bench/ticks.h"

static struct gpu *the_gpu;

static void stamp(struct gpu *g) {
  const uint64_t released = ticks(), last = g->rings.seat.published;
  for (uint64_t v = g->stamped + 1; v != last + 1; v++) {
    struct gpu_stamp *s = &g->stamp[v % GPU_STAMPS];
    shared_store_release_64(&s->v, v - 1); /* partner: gpu_stamp's last look */
    shared_fence_release();                /* partner: gpu_stamp's fence */
    shared_store_64(&s->shown, g->shown);
    shared_store_64(&s->released, released);
    shared_store_release_64(&s->v, v); /* partner: gpu_stamp's first load */
  }
  g->stamped = last;
}

enum gpu_stamped gpu_stamp(const struct gpu *g, uint64_t v, uint64_t *shown,
                           uint64_t *released) {
  const struct gpu_stamp *s = &g->stamp[v % GPU_STAMPS];
  const uint64_t of = shared_load_acquire_64(&s->v); /* partner: stamp */
  if (of != v) /* v - 1 is v being written: no other value's slot reads so */
    return rig_reached(of + 1, v + 1) ? GPU_OVERWRITTEN : GPU_NOT_YET;
  *shown = shared_load_64(&s->shown);
  *released = shared_load_64(&s->released);
  shared_fence_acquire(); /* partner: stamp's fence */
  return shared_load_64(&s->v) == v ? GPU_STAMPED : GPU_OVERWRITTEN;
}

void ring_io_hook(volatile uint32_t *to, uint32_t x) {
  struct gpu *g = the_gpu;
  (void)x;
  if (to != &g->doorbell) { /* GP_PUT */
    if (g->stamps)
      g->shown = ticks();
    return;
  }
  ticks_multiply(g->multiplies);
  /* The release that the entries ask for: partner, ring_reserve's load. */
  shared_store_release_64(&g->word, g->rings.seat.published);
  if (g->stamps)
    stamp(g);
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
  if (!g || !marks || !(g->stamp = gpu_memory(GPU_STAMPS * sizeof *g->stamp)) ||
      !channel_make(g, RIG_COMPUTE0) || !channel_make(g, RIG_COPY0))
    return NULL;
  const struct cursor start = {.released_by = NOBODY};
  rings_init(&g->rings, marks, GPU_IN_FLIGHT, &start);
  g->rings.newest = &g->generation;
  g->rings.word = &g->word;
  g->rings.word_gpu = WORD;
  g->rings.doorbell = &g->doorbell;
  return g;
}
