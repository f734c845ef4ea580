/* SPDX-License-Identifier: ISC */
#include "stress/bench/floor.h"

#include "core/abi/gpfifo.h"
#include "core/abi/method.h"
#include "rings/io.h"
#include "rings/shared.h"
#include "stress/bench/gpu.h"
#include "stress/bench/ticks.h"

enum { WORDS = RING_UNIT / sizeof(uint64_t), TOKEN = 1 };

/* GPU addresses that nothing is at: the word's, and the segments'. */
enum { WORD = 0x1000, GPU = 0x10000000 };

struct floor *floor_make(void) {
  struct floor *f = gpu_memory(sizeof *f);
  if (!f)
    return NULL;
  f->segments = gpu_memory(GPU_SEGMENT_BYTES);
  f->entries = gpu_memory((size_t)GPU_ENTRIES * sizeof *f->entries);
  return f->segments && f->entries ? f : NULL;
}

/* From ring contents to a value that is complete. */
static void show(struct floor *f) {
  io_write_fence();
  ck_pr_store_32(&f->gp_put, (uint32_t)f->count % GPU_ENTRIES);
  io_write_fence();
  ck_pr_store_32(&f->doorbell, TOKEN);
  ticks_multiply(f->multiplies);
  shared_store_release_64(&f->word, f->count); /* as gpu.c's */
}

void floor_submit(struct floor *f) {
  uint64_t n = f->count++;
  uint64_t at = n % (GPU_SEGMENT_BYTES / RING_UNIT);
  uint64_t *segment = f->segments + at * WORDS;
  for (uint64_t i = 0; i < WORDS; i++)
    segment[i] = n + i;
  f->entries[n % GPU_ENTRIES] =
      abi_gpfifo_entry(GPU + at * RING_UNIT, RING_UNIT / sizeof(uint32_t));
  show(f);
}

void floor_encode(struct floor *f, const struct rig_submission *s) {
  const uint32_t units = GPU_SEGMENT_BYTES / RING_UNIT;
  const uint64_t n = f->count++;
  const size_t most = s->nparts * ABI_COPY_WORDS + ABI_COPY_RELEASE_WORDS;
  const uint32_t need = (uint32_t)((most * 4 + RING_UNIT - 1) / RING_UNIT);
  if (need > units - f->at)
    f->at = 0;
  uint32_t *const segment = (uint32_t *)f->segments + f->at * RING_UNIT / 4;
  uint32_t *w = segment;
  for (size_t i = 0; i < s->nparts; i++) {
    const struct rig_copy *c = &s->parts[i].copy;
    w += abi_copy(w, c->dst + c->dst_offset, c->src + c->src_offset,
                  (uint32_t)c->bytes);
  }
  if (s->nparts > 0)
    w += abi_copy_release(w, WORD, n);
  else
    w += abi_release(w, WORD, n);
  f->entries[n % GPU_ENTRIES] = abi_gpfifo_entry(
      GPU + (uint64_t)f->at * RING_UNIT, (uint64_t)(w - segment));
  f->at += need;
  show(f);
}
