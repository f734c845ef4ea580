/* SPDX-License-Identifier: ISC */
#include "rings/straight.h"

/* Of one launch: the walk counts as many. */
_Static_assert(STRAIGHT_PARTS *(int)ABI_FILL_WORDS + 2048 < (int)SEGMENT_WORDS,
               "no segment closes midway");

bool straight_need(const struct rig_submission *s, struct ring_need *need) {
  uint64_t words;
  if (!straight_words(s, &words))
    return false;
  const bool copies = s->nparts != 0;
  *need = (struct ring_need){
      .entries = {1, 1},
      .words = {STRAIGHT_LEAST, words},
      .used = copies ? 1u << RIG_COPY0 : 0,
      .enter = ENTER_WORDS,
      .straight = true,
      .last = copies ? RIG_COPY0 : RIG_COMPUTE0,
  };
  return true;
}

uint32_t *straight_enter(uint32_t *at, const struct rings *r,
                         const struct ring_plan *p, int q) {
  at += entering_words(r, &p->from, q, at);
  if (q == RIG_COMPUTE0)
    at += change_words(p, at);
  return at;
}

#ifdef RIG_COOP
bool straight_take(struct rings *r, int q, uint64_t words, size_t nparts,
                   const struct ring_ask *ask, struct ring_plan *p) {
  return straight_take_here(r, q, words, nparts, ask, p);
}

void straight_put(const struct rings *r, const struct rig_submission *s, int q,
                  size_t nparts, const struct ring_plan *p) {
  straight_put_here(r, s, q, nparts, p);
}
#endif

void straight_encode(const struct rings *r, const struct rig_submission *s,
                     const struct ring_plan *p) {
  straight_put(r, s, p->release, s->nparts, p);
}
