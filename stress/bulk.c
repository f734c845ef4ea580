/* SPDX-License-Identifier: ISC */
#include "stress/bulk.h"

#include <stdlib.h>
#include <string.h>

enum {
  ENTRIES = 4096, /* powers of two, the launches' too */
  ROWS = 1024,    /* of a fill, each with words of its own */
  LOCAL = 2048,   /* bytes of a kernel's thread */
  STEPS = 8,      /* to the most, each twice the one before */
  /* The region: */
  WORD = 0,
  FILLED = 8,
  SEGMENT = 64,
  BYTES = 4096
};

static int make_entries(struct bulk *b) {
  int e = rig_nv_alloc(b->device, RIG_PINNED, BYTES, &b->region);
  if (e != 0)
    return e;
  struct rig_location l = rig_nv_locate(b->region);
  uint32_t *segment = (uint32_t *)(void *)((char *)l.host + SEGMENT);
  uint64_t entry;
  int n = rig_nv_release_word(segment, l.address + WORD, 7);
  e = n < 0 ? n : rig_nv_gpfifo_entry(l.address + SEGMENT, (uint64_t)n, &entry);
  for (int i = 0; e == 0 && i < ENTRIES; i++)
    memcpy(&b->entries[2 * i], &entry, sizeof entry);
  return e;
}

int bulk_make(struct rig_nv *device, const struct rig_nv_function *add,
              unsigned threads, unsigned each, struct bulk *b) {
  *b = (struct bulk){.device = device,
                     .entries = malloc(ENTRIES * sizeof(uint64_t))};
  int e = b->entries ? make_entries(b) : -RIG_NV_HOST_MEMORY;
  if (e == 0)
    e = sums_make(device, add, threads, each, BULK_MOST_PARTS, &b->sums);
  if (e != 0)
    (void)bulk_end(b); /* e is the one to tell */
  return e;
}

int bulk_end(struct bulk *b) {
  int e = b->region ? rig_nv_free(b->device, b->region) : 0;
  int f = sums_end(&b->sums);
  free(b->entries);
  *b = (struct bulk){0};
  return e != 0 ? e : f;
}

/* A power of two, up to the step's most, less a bit. */
static uint64_t size(struct random *r, unsigned step, uint64_t most) {
  most >>= step < STEPS ? STEPS - step : 0;
  uint64_t n = UINT64_C(1) << random_below(r, 64);
  while (n > most)
    n = UINT64_C(1) << random_below(r, 64);
  return n - random_below(r, n);
}

void bulk_add(struct bulk *b, unsigned thread, struct random *r,
              struct rig_part *parts, struct rig_submission *s) {
  struct rig_part *part = &parts[s->nparts];
  unsigned step = b->added[thread]++;
  uint64_t kind = random_below(r, 3);
  if (kind == 0) {
    uint64_t seed = random_next(r);
    sums_add(&b->sums, thread, seed, size(r, step, BULK_MOST_PARTS), parts, s);
    return;
  }
  if (kind == 1) {
    *part = rig_part_words((int)random_below(r, 2), b->entries,
                           2 * size(r, step, ENTRIES));
  } else {
    *part = rig_part_fill(rig_nv_locate(b->region).address + FILLED, 4, 0x5a);
    part->fill.rows = size(r, step, ROWS);
    part->fill.dst_pitch = 0;
  }
  s->nparts++;
}

void bulk_took(struct bulk *b, unsigned thread, uint64_t v) {
  if (b->sums.thread[thread].last.n != 0)
    sums_took(&b->sums, thread, v);
}

int bulk_disturb(struct bulk *b, struct random *r) {
  struct rig_nv_region *region = NULL;
  uint64_t need;
  if (random_one_in(r, 8)) {
    int e = rig_nv_local(b->device, random_in(r, 1, LOCAL), &need);
    return e == -RIG_NV_SHORT ? 0 : e;
  }
  /* Which also gives back what was replaced. */
  int e = rig_nv_alloc(b->device, RIG_PINNED, 4, &region);
  if (e == 0)
    e = rig_nv_free(b->device, region);
  return e == -RIG_NV_NO_MEMORY ? 0 : e;
}
