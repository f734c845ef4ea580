/* SPDX-License-Identifier: ISC */
#include "growth/growth.h"
#include "rings/launch.h"

enum { PAGE = 4096 };

/* The least power of two that is at least `least` and holds 2 n, but no more
 * than `most`, a power of two; UINT64_MAX where that does not hold n. */
static uint64_t twice(uint64_t n, uint64_t least, uint64_t most) {
  uint64_t size = least;
  if (n > most)
    return UINT64_MAX;
  while (size < most && size < 2 * n)
    size *= 2;
  return size;
}

/* n parts of `unit` bytes, as no ring holds 2^62. */
static uint64_t bytes(uint64_t n, uint64_t unit) {
  return n < UINT64_MAX / 4 / unit ? n * unit : UINT64_MAX;
}

void growth_sizes_for(const struct ring_generation *now,
                      const struct ring_need *need, struct growth_sizes *z) {
  bool channels = false;
  *z = (struct growth_sizes){.launch_bytes = 0};
  for (int q = 0; q < QUEUES; q++) {
    const struct ring_channel *c = &now->channel[q];
    channels |= need->entries[q] > c->n - 1;
    if (need->words[q] > (uint64_t)c->units * (RING_UNIT / sizeof(uint32_t)))
      z->segment_bytes[q] = twice(bytes(need->words[q], sizeof(uint32_t)), PAGE,
                                  RING_MOST_UNITS * (uint64_t)RING_UNIT);
  }
  if (need->launch > now->launches.units)
    z->launch_bytes = twice(bytes(need->launch, LAUNCH_UNIT), PAGE,
                            RING_MOST_UNITS * (uint64_t)LAUNCH_UNIT);
  for (int q = 0; q < QUEUES && channels; q++)
    z->entries[q] =
        (uint32_t)twice(need->entries[q], now->channel[q].n, RING_MOST_ENTRIES);
}
