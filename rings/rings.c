/* SPDX-License-Identifier: ISC */
#include "rings/rings.h"

#include "rings/io.h"
#include "rings/point.h"
#include "rings/rcu.h"
#include "rings/straight.h"
#include "rings/validate.h"

void ring_flush(const struct rings *r, const struct ring_generation *g,
                bool launches) {
  if (r->flush && !g->put_pushes &&
      (launches || g->mapped || shared_load_32(&r->mapped) != 0))
    io_flush(r->flush);
  flush_read(&r->viewed);
}

void rings_init(struct rings *r, struct mark *marks, uint32_t n,
                const struct cursor *start) {
  marks_init(&r->marks, marks, n, start);
  tail_init(&r->tail, start);
  seat_init(&r->seat, start);
}

uint64_t rings_last(const struct rings *r) {
  struct cursor c;
  tail_last(&r->tail, &c);
  return c.v;
}

/* What this thread's last RIG_GROW was for. */
static __thread struct {
  uint64_t serial;
  struct ring_need need;
} asked;

static int keep_need(const struct rings *r, const struct ring_need *need,
                     int answer) {
  if (answer == RIG_GROW) {
    asked.serial = r->serial;
    asked.need = *need;
  }
  return answer;
}

bool rings_grow_need(const struct rings *r, struct ring_need *need) {
  if (r->serial == 0 || asked.serial != r->serial)
    return false;
  *need = asked.need;
  return true;
}

/* Whether it is lawful, and then its need. */
static bool need_of(const struct rig_submission *s, struct ring_need *need) {
  if (straight_need(s, need))
    return true;
  if (!ring_lawful(s))
    return false;
  ring_need(s, need);
  return true;
}

/* Why the waits are refused whatever the value, or NULL; and the latest value
 * of the device's own word that they ask for. */
static const char *waits_refused(const struct rings *r,
                                 const struct rig_submission *s,
                                 struct ring_ask *ask) {
  if (s->nwaits > RING_MOST_WAITS)
    return "more than 256 waits";
  for (size_t i = 0; i < s->nwaits; i++) {
    const struct rig_wait *w = &s->waits[i];
    if (w->kind != RIG_WAIT_WORD)
      return "a wait that is not for a word";
    if (w->at % 8 != 0)
      return "a wait whose word is not 8-byte aligned";
    if (w->at >> 40 != 0)
      return "a wait whose word lies at 2^40 or above";
    if (w->at != r->word_gpu)
      continue;
    if (!ask->own || !rig_reached(ask->own_wait, w->value))
      ask->own_wait = w->value;
    ask->own = true;
  }
  return NULL;
}

/* From written ring contents to a value that some thread publishes. */
static inline void encoded(struct rings *r, const struct cursor *to) {
  RING_POINT(ENCODED);
  io_write_fence(); /* this core's ring contents, before "encoded" */
  mark_write(&r->marks, to);
  VALIDATE_LEAVE(&rig_nv_lock_in_reserve);
  RING_POINT(ARRIVE);
  seat_arrive(r);
}

/* From a place to a value that some thread publishes. */
static void go(struct rings *r, const struct rig_submission *s,
               const struct ring_need *need, const struct ring_plan *p) {
  VALIDATE_ENTER(&rig_nv_lock_in_reserve);
  RING_POINT(ENCODE);
  ring_encode(r, s, need, p);
  encoded(r, &p->to);
}

/* The short way of a straight submission, if it is open: queue and number of
 * parts are constants where they can be. */
static inline __attribute__((always_inline)) bool
short_way_on(struct rings *r, const struct rig_submission *s, const int q,
             size_t nparts, uint64_t words, const struct ring_ask *ask,
             uint64_t *v) {
  struct ring_plan p;
  ring_rcu_lock(); /* for what the plan points to */
  const bool open = straight_take(r, q, words, nparts, ask, &p);
  if (open && ask->for_what != RING_ROOM) {
    VALIDATE_ENTER(&rig_nv_lock_in_reserve);
    RING_POINT(ENCODE);
    straight_put(r, s, q, nparts, &p);
    encoded(r, &p.to);
    *v = p.to.v;
  }
  ring_rcu_unlock();
  return open;
}

static inline __attribute__((always_inline)) bool
short_way(struct rings *r, const struct rig_submission *s,
          const struct ring_ask *ask, uint64_t *v) {
  uint64_t words;
  if (!straight_words(s, &words))
    return false;
  if (s->nparts != 0)
    return short_way_on(r, s, RIG_COPY0, s->nparts, words, ask, v);
  return short_way_on(r, s, RIG_COMPUTE0, 0, words, ask, v);
}

/* What ring_reserve answers; with FITS, the value is on its way. */
static int reserve_and_go(struct rings *r, const struct rig_submission *s,
                          const struct ring_need *need,
                          const struct ring_ask *ask, struct ring_plan *p) {
  ring_rcu_lock(); /* for what the plan points to */
  int answer = ring_reserve(r, need, s->nparts, ask, p);
  if (answer == RIG_FITS)
    go(r, s, need, p);
  ring_rcu_unlock();
  return answer;
}

enum rig_room rings_room(struct rings *r, const struct rig_submission *s) {
  const struct ring_ask ask = {.for_what = RING_ROOM};
  struct ring_need need;
  struct ring_plan plan;
  uint64_t v;
  if (short_way(r, s, &ask, &v))
    return RIG_FITS;
  if (!need_of(s, &need))
    return RIG_NEVER;
  ring_rcu_lock();
  int answer = ring_reserve(r, &need, s->nparts, &ask, &plan);
  ring_rcu_unlock();
  return (enum rig_room)keep_need(r, &need, answer);
}

static const char own_wait[] =
    "a wait for this device's own word to reach the value submitted, or a "
    "later one";

enum rig_done rings_submit(struct rings *r, uint64_t v,
                           const struct rig_submission *s,
                           const char **failure) {
  struct ring_ask ask = {.for_what = RING_SUBMIT, .v = v};
  struct ring_need need;
  struct ring_plan plan;
  *failure = NULL;
  if (short_way(r, s, &ask, &v))
    return RIG_COMMITTED;
  if (!need_of(s, &need))
    *failure = "a part that the device does not run";
  else
    *failure = waits_refused(r, s, &ask);
  if (*failure)
    return RIG_FAILED;
  switch (reserve_and_go(r, s, &need, &ask, &plan)) {
  case RIG_FITS:
    return RIG_COMMITTED;
  case RING_NOT_NEXT:
    *failure = "not the value after the last one";
    return RIG_FAILED;
  case RING_OWN_WAIT:
    *failure = own_wait;
    return RIG_FAILED;
  default:
    *failure = "the parts do not fit now, as room would have said";
    return RIG_FAILED;
  }
}

static __attribute__((noinline)) int
post_long_way(struct rings *r, const struct rig_submission *s, uint64_t *v,
              const char **why) {
  struct ring_ask ask = {.for_what = RING_POST};
  struct ring_need need;
  struct ring_plan plan;
  if (!need_of(s, &need))
    return RIG_NEVER;
  *why = waits_refused(r, s, &ask);
  if (*why)
    return -RIG_NV_INVALID;
  int answer = reserve_and_go(r, s, &need, &ask, &plan);
  (void)keep_need(r, &need, answer);
  if (answer == RING_OWN_WAIT) {
    *why = own_wait;
    return -RIG_NV_INVALID;
  }
  if (answer == RIG_FITS)
    *v = plan.to.v;
  return answer;
}

int rings_post(struct rings *r, const struct rig_submission *s, uint64_t *v,
               const char **why) {
  const struct ring_ask ask = {.for_what = RING_POST};
  return short_way(r, s, &ask, v) ? RIG_FITS : post_long_way(r, s, v, why);
}
