/* SPDX-License-Identifier: ISC */
#ifndef RINGS_STRAIGHT_PUT_H
#define RINGS_STRAIGHT_PUT_H
/* straight.h's words: how many, and what. */
#include "core/abi/gpfifo.h"
#include "core/abi/method.h"
#include "rings/entering.h"
#include "rings/io.h"
#include "rings/pieces.h"
#include "rings/rings.h"

/* The words of a lawful part that is one launch; 0 of another. */
static inline unsigned launch_words(const struct rig_part *p) {
  if (p->queue != RIG_COPY0 || p->nafter != 0)
    return 0;
  if (p->kind == RIG_COPY) {
    const struct rig_copy *c = &p->copy;
    const bool one = c->rows <= 1 && c->bytes - 1 < RIG_NV_MAX_COPY;
    return one ? ABI_COPY_WORDS : 0;
  }
  if (p->kind != RIG_FILL)
    return 0;
  const struct rig_fill *f = &p->fill;
  const bool one = f->rows <= 1 && f->bytes - 1 < RIG_NV_MAX_COPY &&
                   (f->dst + f->dst_offset) % 4 == 0 && f->bytes % 4 == 0;
  return one ? ABI_FILL_WORDS : 0;
}

/* Of one with no parts, and on a channel that it does not use. */
enum { STRAIGHT_LEAST = ENTER_WORDS + END_WORDS };

/* Whether a submission is straight, and then the bound of its words. */
static inline bool straight_words(const struct rig_submission *s,
                                  uint64_t *words) {
  uint64_t sum = STRAIGHT_LEAST;
  if (s->nwaits != 0 || s->nparts > STRAIGHT_PARTS)
    return false;
  for (size_t i = 0; i < s->nparts; i++) {
    const unsigned n = launch_words(&s->parts[i]);
    if (n == 0)
      return false;
    sum += n;
  }
  *words = sum;
  return true;
}

/* The encoders write ring memory in place here, which is what io_copy of
 * their words comes to, in the order of addresses. Each returns what comes
 * after. */
static inline uint32_t *put_launch(uint32_t *at, const struct rig_part *p) {
  if (p->kind == RIG_COPY) {
    const struct rig_copy *c = &p->copy;
    return at + abi_copy(at, c->dst + c->dst_offset, c->src + c->src_offset,
                         (uint32_t)c->bytes);
  }
  const struct rig_fill *f = &p->fill;
  return at + abi_fill(at, RIG_NV_4B, f->dst + f->dst_offset,
                       f->byte * UINT32_C(0x01010101),
                       (uint32_t)(f->bytes / 4));
}

/* Once in a while: after a value that another channel released, or a change
 * for COMPUTE. */
uint32_t *straight_enter(uint32_t *at, const struct rings *r,
                         const struct ring_plan *p, int q);

static inline uint32_t *put_release(uint32_t *at, const struct rings *r, int q,
                                    uint64_t v) {
  if (q == RIG_COMPUTE0)
    return at + abi_release(at, r->word_gpu, v);
  return at + abi_copy_release(at, r->word_gpu, v);
}

/* Writes it into its place on queue q, the only one that it uses. */
static inline __attribute__((always_inline)) void
straight_put(const struct rings *r, const struct rig_submission *s, const int q,
             size_t nparts, const struct ring_plan *p) {
  const struct ring_channel *c = &p->generation->channel[q];
  const uint64_t offset = (uint64_t)p->start[q] * RING_UNIT;
  const uint32_t units = p->to.units[q] - p->from.units[q];
  uint32_t *const open = (uint32_t *)(c->segments + offset);
  uint32_t *at = open;
  if (p->from.owes & 1u << q || p->from.released_by != q ||
      p->to.setup != p->from.setup) {
    const struct ring_plan copy = *p; /* p stays in registers */
    at = straight_enter(at, r, &copy, q);
  }
  for (size_t i = 0; i < nparts; i++)
    at = put_launch(at, &s->parts[i]);
  at = put_release(at, r, q, p->to.v);
  const uint64_t words = (uint64_t)(at - open);
  const uint64_t e = abi_gpfifo_entry(c->segments_gpu + offset, words);
  const uint32_t entry[2] = {(uint32_t)e, (uint32_t)(e >> 32)};
  const uint32_t index = p->from.entries[q] & (c->n - 1);
  io_copy(&c->entries[2 * (size_t)index], entry, 2);
  RING_ASSERT(p->to.entries[q] == p->from.entries[q] + 1);
  RING_ASSERT(words * sizeof *at <= (uint64_t)units * RING_UNIT);
}
#endif
