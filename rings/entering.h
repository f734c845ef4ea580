/* SPDX-License-Identifier: ISC */
#ifndef RINGS_ENTERING_H
#define RINGS_ENTERING_H
/*
 * Entering a channel: the words that come before the parts of a value, which
 * both ways to encode write (walk.c, straight.c), and their bound, which both
 * count: need knows the parts alone, and not the cursor that will owe them.
 */
#include "core/abi/method.h"
#include "rings/rings.h"

enum {
  SETUP_WORDS =
      ABI_SET_OBJECT_WORDS + ABI_LOCAL_WINDOW_WORDS + ABI_SHARED_WINDOW_WORDS,
  CHANGE_WORDS = ABI_LOCAL_MEMORY_WORDS + ABI_INVALIDATE_CACHES_WORDS,
  ENTER_WORDS = SETUP_WORDS + ABI_ACQUIRE_WORDS + ABI_RELEASE_WORDS +
                CHANGE_WORDS, /* with no waits */
  END_WORDS =
      ABI_COPY_RELEASE_WORDS + ABI_ACQUIRE_WORDS + ABI_COPY_RELEASE_WORDS,
  /* 4 MiB, less what the end of a value adds without a further close. */
  SEGMENT_WORDS = (1 << 20) - END_WORDS
};

/* The bound, with so many waits. */
static inline uint64_t entering_bound(size_t waits) {
  if (waits > RING_MOST_WAITS)
    waits = RING_MOST_WAITS;
  return ENTER_WORDS + ABI_ACQUIRE_WORDS * (uint64_t)waits;
}

/* Owed setup, and the acquire of the value before, unless this channel
 * released it: what the cursor asks of channel q. */
static inline unsigned entering_words(const struct rings *r,
                                      const struct cursor *from, int q,
                                      uint32_t *w) {
  unsigned n = 0;
  if (from->owes & 1u << q) {
    if (q == RIG_COMPUTE0) {
      n += abi_set_object(w + n, RIG_NV_COMPUTE, r->gpu.compute_class);
      n += abi_local_window(w + n, r->gpu.local_window);
      n += abi_shared_window(w + n, r->gpu.shared_window);
    } else {
      n += abi_set_object(w + n, RIG_NV_COPY, r->gpu.copy_class);
    }
  }
  if (from->released_by != q)
    n += abi_acquire(w + n, r->word_gpu, from->v);
  return n;
}

/* What changed for COMPUTE since the last value: after the waits. */
static inline unsigned change_words(const struct ring_plan *p, uint32_t *w) {
  const struct setup *now = p->setup;
  const struct cursor *from = &p->from;
  unsigned n = 0;
  if (now == NULL)
    return 0;
  if (now->local != 0 && (setup_after(now->local_seq, from->setup) ||
                          from->owes & 1u << RIG_COMPUTE0))
    n += abi_local_memory(w + n, now->local, now->local_per_tpc);
  if (setup_after(now->code_seq, from->setup))
    n += abi_invalidate_caches(w + n);
  return n;
}
#endif
