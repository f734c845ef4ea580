/* SPDX-License-Identifier: ISC */
#include "rings/straight.h"

#include "core/abi/gpfifo.h"
#include "core/abi/method.h"
#include "rings/entering.h"
#include "rings/io.h"
#include "rings/pieces.h"

/* Of one launch: the walk counts as many. */
_Static_assert(STRAIGHT_PARTS *(int)ABI_FILL_WORDS + 2048 < (int)SEGMENT_WORDS,
               "no segment closes midway");

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

bool straight_need(const struct rig_submission *s, struct ring_need *need) {
  uint64_t words = 0;
  if (s->nwaits != 0 || s->nparts > STRAIGHT_PARTS)
    return false;
  for (size_t i = 0; i < s->nparts; i++) {
    const unsigned n = launch_words(&s->parts[i]);
    if (n == 0)
      return false;
    words += n;
  }
  const bool copies = s->nparts != 0;
  const uint64_t enter = entering_bound(0);
  *need = (struct ring_need){
      .entries = {1, 1},
      .words = {enter + END_WORDS, enter + words + END_WORDS},
      .used = copies ? 1u << RIG_COPY0 : 0,
      .enter = enter,
      .straight = true,
      .last = copies ? RIG_COPY0 : RIG_COMPUTE0,
  };
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
static __attribute__((noinline)) uint32_t *
put_entering(uint32_t *at, const struct rings *r, const struct ring_plan *p,
             int q) {
  at += entering_words(r, &p->from, q, at);
  if (q == RIG_COMPUTE0)
    at += change_words(p, at);
  return at;
}

static inline uint32_t *put_release(uint32_t *at, const struct rings *r, int q,
                                    uint64_t v) {
  if (q == RIG_COMPUTE0)
    return at + abi_release(at, r->word_gpu, v);
  return at + abi_copy_release(at, r->word_gpu, v);
}

void straight_encode(const struct rings *r, const struct rig_submission *s,
                     const struct ring_plan *p) {
  const int q = p->release;
  const struct ring_channel *c = &p->generation->channel[q];
  const uint64_t offset = (uint64_t)p->start[q] * RING_UNIT;
  const uint32_t units = p->to.units[q] - p->from.units[q];
  uint32_t *const open = (uint32_t *)(c->segments + offset);
  uint32_t *at = open;
  if (p->from.owes & 1u << q || p->from.released_by != q ||
      p->to.setup != p->from.setup)
    at = put_entering(at, r, p, q);
  for (size_t i = 0; i < s->nparts; i++)
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
