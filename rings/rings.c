/* SPDX-License-Identifier: ISC */
#include "rings/rings.h"

#include "rings/io.h"

void ring_publish(const struct rings *r, const struct ring_plan *p) {
  /* Ring contents, before GP_PUT: io.h. */
  io_write_fence();
  if (r->flush && shared_load_32(&r->mapped) != 0)
    io_flush(r->flush);
  flush_read(&r->viewed);
  for (int q = 0; q < QUEUES; q++) {
    const struct ring_channel *c = &r->newest->channel[q];
    if (p->used & 1u << q)
      io_store_32(c->gp_put, p->to.entries[q] & (c->n - 1));
  }
  io_write_fence();
  for (int q = 0; q < QUEUES; q++)
    if (p->used & 1u << q)
      io_store_32(r->doorbell, r->newest->channel[q].token);
}

enum rig_room rings_room(const struct rings *r,
                         const struct rig_submission *s) {
  struct ring_need need;
  struct ring_plan plan;
  if (!ring_lawful(s))
    return RIG_NEVER;
  ring_need(s, &need);
  return ring_reserve(r, &need, s->nparts, &plan);
}

/* Why the waits of v are refused, or NULL. */
static const char *waits_refused(const struct rings *r, uint64_t v,
                                 const struct rig_submission *s) {
  if (s->nwaits > RING_MOST_WAITS)
    return "submit: more than 256 waits";
  for (size_t i = 0; i < s->nwaits; i++) {
    const struct rig_wait *w = &s->waits[i];
    if (w->kind != RIG_WAIT_WORD)
      return "submit: a wait that is not for a word";
    if (w->at % 8 != 0)
      return "submit: a wait whose word is not 8-byte aligned";
    if (w->at >> 40 != 0)
      return "submit: a wait whose word lies at 2^40 or above";
    if (w->at == r->word_gpu && !rig_reached(v - 1, w->value))
      return "submit: a wait for this device's own word to reach the value "
             "submitted, or a later one";
  }
  return NULL;
}

enum rig_done rings_submit(struct rings *r, uint64_t v,
                           const struct rig_submission *s,
                           const char **failure) {
  struct ring_need need;
  struct ring_plan plan;
  *failure = NULL;
  if (v != r->last.v + 1)
    *failure = "submit: not the value after the last one";
  else if (!ring_lawful(s))
    *failure = "submit: a part that the device does not run";
  else
    *failure = waits_refused(r, v, s);
  if (*failure)
    return RIG_FAILED;
  ring_need(s, &need);
  if (ring_reserve(r, &need, s->nparts, &plan) != RIG_FITS) {
    *failure = "submit: the parts do not fit now, as room would have said";
    return RIG_FAILED;
  }
  ring_encode(r, s, &plan);
  mark_write(&r->marks, &plan.to);
  ring_publish(r, &plan);
  r->last = plan.to;
  return RIG_COMMITTED;
}
