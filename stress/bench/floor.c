/* SPDX-License-Identifier: ISC */
#include "stress/bench/floor.h"

#include "core/abi/gpfifo.h"
#include "rings/io.h"
#include "rings/shared.h"
#include "stress/bench/gpu.h"
#include "stress/bench/ticks.h"

enum { WORDS = RING_UNIT / sizeof(uint64_t), TOKEN = 1 };

struct floor *floor_make(void) {
  struct floor *f = gpu_memory(sizeof *f);
  if (!f)
    return NULL;
  f->segments = gpu_memory(GPU_SEGMENT_BYTES);
  f->entries = gpu_memory((size_t)GPU_ENTRIES * sizeof *f->entries);
  return f->segments && f->entries ? f : NULL;
}

void floor_submit(struct floor *f) {
  const uint64_t gpu = 0x10000000;
  uint64_t n = f->count++;
  uint64_t at = n % (GPU_SEGMENT_BYTES / RING_UNIT);
  uint64_t *segment = f->segments + at * WORDS;
  for (uint64_t i = 0; i < WORDS; i++)
    segment[i] = n + i;
  f->entries[n % GPU_ENTRIES] =
      abi_gpfifo_entry(gpu + at * RING_UNIT, RING_UNIT / sizeof(uint32_t));
  io_write_fence();
  ck_pr_store_32(&f->gp_put, (uint32_t)f->count % GPU_ENTRIES);
  io_write_fence();
  ck_pr_store_32(&f->doorbell, TOKEN);
  ticks_multiply(f->multiplies);
  shared_store_release_64(&f->word, f->count); /* as gpu.c's */
}
