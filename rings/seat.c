/* SPDX-License-Identifier: ISC */
#include "rings/seat.h"

#include "rings/io.h"
#include "rings/plant.h"
#include "rings/point.h"
#include "rings/rcu.h"
#include "rings/rings.h"

void seat_init(struct seat *s, const struct cursor *start) {
  shared_store_release_32(&s->state, SEAT_FREE); /* before any other thread */
  s->published = start->v;
  s->launch = start->launch;
  s->generation = start->generation;
  s->bells = 0;
  for (int q = 0; q < QUEUES; q++)
    s->entries[q] = start->entries[q];
}

/* Whether the value after what is shown is encoded. */
static bool more(const struct rings *r) {
  return mark_encoded(&r->marks, r->seat.published + 1);
}

/* The last of the values up to `last` that is on the generation of the first
 * that is not shown. None of them is reached, so their marks are their own;
 * generations grow from value to value. */
static void cut(const struct rings *r, struct mark_shown *last) {
  const uint64_t end = last->v;
  struct mark_shown next;
  RING_ASSERT(mark_read_shown(&r->marks, r->seat.published + 1, last));
  while (last->v != end) {
    RING_ASSERT(mark_read_shown(&r->marks, last->v + 1, &next));
    if (next.generation != last->generation)
      return;
    *last = next;
  }
}

/* The last value of the encoded ones that follow what is shown, if any, up to
 * the end of a generation. */
static bool walk(const struct rings *r, struct mark_shown *last) {
  uint64_t v = r->seat.published;
  while (mark_encoded(&r->marks, v + 1))
    v++;
  if (v == r->seat.published)
    return false;
  /* Before the first GP_PUT: once shown, v may complete and its mark be
   * another's. */
  RING_ASSERT(mark_read_shown(&r->marks, v, last));
  if (last->generation != r->seat.generation)
    cut(r, last);
  return true;
}

/* The record of a value's generation, which is no later than the newest. */
static const struct ring_generation *record(const struct rings *r, uint8_t id) {
  /* Partner: growth's assign, which the value's thread had seen. */
  const struct ring_generation *g = ring_rcu_dereference(&r->newest);
  while (g->id != id) {
    RING_ASSERT(g->older != NULL);
    g = g->older;
  }
  return g;
}

/* What is shown of rings born since the generation of what was shown: none. */
static void move_on(struct seat *s, const struct ring_generation *g) {
  for (int q = 0; q < QUEUES; q++)
    if (g->channels_born > s->generation)
      s->entries[q] = 0;
  if (g->launches.born > s->generation)
    s->launch = 0;
  s->generation = g->id;
}

/* GP_PUT and doorbell of each channel that the values up to `last` moved. */
static void show(struct rings *r, const struct mark_shown *last) {
  const struct ring_generation *g = record(r, last->generation);
  struct seat *s = &r->seat;
  unsigned moved = 0;
  if (g->id != s->generation)
    move_on(s, g);
  RING_POINT(SHOW);
  /* Each thread fenced what it wrote before it said "encoded"; this is for
   * what one read puts behind all of it. */
  ring_flush(r, g, g->launches.mapped && last->launch != s->launch);
  s->launch = last->launch;
  for (int q = 0; q < QUEUES; q++) {
    const struct ring_channel *c = &g->channel[q];
    uint32_t by = last->entries[q] - s->entries[q];
    if (by == 0)
      continue;
    RING_ASSERT(by < c->n); /* GP_PUT never goes back, nor around */
    /* What other threads encoded, and this one saw, before it. On x86 and Arm
     * their own fences have it in memory; this is for the language's order.
     * Partner: a GPU in software, at GP_PUT with no doorbell. */
    shared_fence_release();
    io_store_32(c->gp_put, last->entries[q] & (c->n - 1));
    s->entries[q] = last->entries[q];
    moved |= 1u << q;
  }
  s->published = last->v;
  io_write_fence();
  RING_POINT(BELL);
  for (int q = 0; q < QUEUES; q++)
    if (moved & 1u << q) {
      io_store_32(r->doorbell, g->channel[q].token);
      s->bells++;
    }
}

/* After SEAT_ROUNDS: gives the seat to a stand-by, or asks for one and stays
 * while there is more. Whether the holder is rid of the seat for good. */
static bool relieve(struct rings *r, bool *left) {
  shared_32 *state = &r->seat.state;
  *left = false;
  if (shared_cas_32(state, SEAT_STANDBY, SEAT_GIVEN))
    return true;
  (void)shared_cas_32(state, SEAT_HELD, SEAT_RELIEF); /* or it was RELIEF */
  if (more(r))
    return false;
  RING_POINT(RELIEVE);
  if (PLANTED(RING_PLANT_HANDOVER_ZERO)) {
    (void)shared_exchange_32(state, SEAT_FREE);
    *left = true;
    return false;
  }
  /* Not a plain store of FREE: over a fresh STANDBY it would seat the next
   * arrival beside the one that is about to be given the seat. */
  for (;;) {
    if (shared_cas_32(state, SEAT_RELIEF, SEAT_FREE)) {
      *left = true;
      return false;
    }
    if (shared_cas_32(state, SEAT_STANDBY, SEAT_GIVEN))
      return true;
  }
}

static void hold(struct rings *r) {
  shared_32 *state = &r->seat.state;
  for (unsigned round = 0;; round++) {
    struct mark_shown last;
    bool left = false;
    if (walk(r, &last))
      show(r, &last);
    uint64_t shown = r->seat.published; /* read while it is this thread's */
    if (round >= SEAT_ROUNDS) {
      if (relieve(r, &left))
        return;
    } else if (!more(r)) {
      RING_POINT(FREE);
      if (PLANTED(RING_PLANT_SEAT_STORE))
        shared_store_release_32(state, SEAT_FREE);
      else
        (void)shared_exchange_32(state, SEAT_FREE); /* a full barrier */
      left = true;
    }
    if (left)
      RING_POINT(LOOK);
    if (PLANTED(RING_PLANT_NO_SECOND_LOOK) && left)
      return;
    /* The second look: an arrival that saw the seat held has gone on. Its
     * partner is seat_arrive's barrier. */
    if (left && !(mark_encoded(&r->marks, shown + 1) &&
                  shared_load_32(state) == SEAT_FREE &&
                  shared_cas_32(state, SEAT_FREE, SEAT_HELD)))
      return;
  }
}

/* Waits to be given the seat, for a bounded time. Whether it was. */
static bool stand_by(struct rings *r) {
  shared_32 *state = &r->seat.state;
  if (!shared_cas_32(state, SEAT_RELIEF, SEAT_STANDBY))
    return false; /* freed, so looked at again; or another stands by */
  RING_POINT(STAND_BY);
  for (int i = 0; i < SEAT_PATIENCE; i++) {
    if (shared_load_32(state) != SEAT_STANDBY)
      break;
    ck_pr_stall();
  }
  if (shared_cas_32(state, SEAT_STANDBY, SEAT_RELIEF))
    return false; /* the holder stays responsible */
  RING_ASSERT(shared_load_acquire_32(state) == SEAT_GIVEN);
  shared_store_release_32(state, SEAT_HELD);
  return true;
}

void seat_arrive(struct rings *r) {
  shared_32 *state = &r->seat.state;
  if (shared_load_32(state) != SEAT_FREE ||
      !shared_cas_32(state, SEAT_FREE, SEAT_HELD)) {
    shared_fence_full(); /* partner: hold's exchange or swap to FREE */
    uint32_t seen = shared_load_32(state);
    if (seen == SEAT_FREE) {
      if (!shared_cas_32(state, SEAT_FREE, SEAT_HELD))
        return; /* whoever took it looks at marks after this one's */
    } else if (seen != SEAT_RELIEF || !stand_by(r)) {
      return;
    }
  }
  hold(r);
}
