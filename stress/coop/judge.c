/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "stress/coop/world_state.h"

/* What the next value takes, from its cursor on, whatever was freed. */
static bool same_place(const struct cursor *a, const struct cursor *b) {
  return a->v == b->v && a->joins == b->joins &&
         memcmp(a->entries, b->entries, sizeof a->entries) == 0 &&
         memcmp(a->units, b->units, sizeof a->units) == 0 &&
         a->generation == b->generation && a->released_by == b->released_by &&
         a->owes == b->owes && a->waits == b->waits;
}

/* The cursor after a value, for one on generation g. */
static struct cursor as_of(const struct cursor *after,
                           const struct ring_generation *g) {
  struct cursor c = *after;
  for (int q = 0; q < QUEUES; q++) {
    if (g->channels_born > after->generation)
      c.entries[q] = 0;
    if (g->channel[q].segments_born > after->generation)
      c.units[q] = 0;
  }
  if (g->channels_born > after->generation) {
    c.owes = 3;
    c.released_by = NOBODY;
  }
  return c;
}

/* Whether one more value fits on g behind the last one, whose cursor is `last`,
 * once the value at place `reached` is reached: by its bounds, or by the least
 * that it may take. */
static bool fits(const struct ring_need *need, const struct ring_generation *g,
                 const struct cursor *last, uint32_t reached, bool least) {
  const struct cursor from = as_of(last, g),
                      freed = as_of(&world.life[reached].to, g);
  uint64_t v = last->v + 1;
  unsigned used = need->used | 1u << ((uint32_t)v == 0 ? 0 : need->last);
  if (world_nth(last->v) - reached >= world.shape->marks)
    return false;
  if (g->channels_born > last->generation && world_nth(last->v) != reached)
    return false;
  for (int q = 0; q < QUEUES; q++) {
    if (!(used >> q & 1))
      continue;
    uint64_t entries = need->entries[q], bytes = need->words[q] * 4;
    uint64_t size = (uint64_t)g->channel[q].units * RING_UNIT;
    if (least && need->lead >> q & 1)
      entries--;
    if ((uint32_t)(from.entries[q] - freed.entries[q]) + entries >
        g->channel[q].n - 1)
      return false;
    uint64_t taken = (uint64_t)(from.units[q] - freed.units[q]) * RING_UNIT;
    uint64_t at = (uint64_t)from.units[q] * RING_UNIT % size;
    bytes = (bytes + RING_UNIT - 1) / RING_UNIT * RING_UNIT;
    uint64_t skip = at + bytes > size ? size - at : 0;
    if (taken == 0 ? bytes > size : taken + skip + bytes > size)
      return false;
  }
  return true;
}

int __real_ring_reserve(struct rings *, const struct ring_need *, size_t,
                        const struct ring_ask *, struct ring_plan *);
int __wrap_ring_reserve(struct rings *, const struct ring_need *, size_t,
                        const struct ring_ask *, struct ring_plan *);
bool __real_straight_take(struct rings *, int, uint64_t, size_t,
                          const struct ring_ask *, struct ring_plan *);
bool __wrap_straight_take(struct rings *, int, uint64_t, size_t,
                          const struct ring_ask *, struct ring_plan *);
void __real_ring_encode(const struct rings *, const struct rig_submission *,
                        const struct ring_need *, const struct ring_plan *);
void __wrap_ring_encode(const struct rings *, const struct rig_submission *,
                        const struct ring_need *, const struct ring_plan *);
void __real_straight_put(const struct rings *, const struct rig_submission *,
                         int, size_t, const struct ring_plan *);
void __wrap_straight_put(const struct rings *, const struct rig_submission *,
                         int, size_t, const struct ring_plan *);

/* An answer, to a thread that knew the values up to the place `known` to be
 * reached, and `newest` to be a generation. */
static void judge(int answer, uint32_t known, uint8_t newest,
                  const struct ring_need *need, const struct ring_ask *ask,
                  const struct ring_plan *p) {
  CHECK("FITS or LATER", answer == RIG_FITS || answer == RIG_LATER);
  const struct life *last = world_life(p->from.v);
  const struct ring_generation *g = p->generation;
  CHECK("the newest generation", g->id >= newest);
  if (last->reserved) {
    const struct cursor from = as_of(&last->to, g);
    CHECK("the cursor of the tail", same_place(&p->from, &from));
  }
  if (answer == RIG_LATER) {
    CHECK("LATER, and it fits", world_nth(p->from.v) < known ||
                                    !fits(need, g, &p->from, known, false));
    return;
  }
  if (ask->for_what == RING_ROOM) {
    if (world_nth(p->from.v) >= world.reached)
      CHECK("room says FITS", fits(need, g, &p->from, world.reached, true));
    return;
  }
  CHECK("new channels with a value in flight",
        g->channels_born <= p->from.generation ||
            world_nth(p->from.v) == world.reached);
  CHECK("a cursor of its generation", p->to.generation == g->id);
  struct life *l = world_life(p->to.v);
  CHECK("a value twice", !l->reserved);
  CHECK("the value after the last", p->to.v == p->from.v + 1);
  *l = (struct life){
      .reserved = true, .by = coop_self(), .from = p->from, .to = p->to};
}

/* What rings.c calls (the linker's --wrap): judges each answer. */
int __wrap_ring_reserve(struct rings *r, const struct ring_need *need,
                        size_t nparts, const struct ring_ask *ask,
                        struct ring_plan *p) {
  uint32_t known = world.reached;
  const uint8_t newest = r->newest->id;
  int answer = __real_ring_reserve(r, need, nparts, ask, p);
  judge(answer, known, newest, need, ask, p);
  return answer;
}

bool __wrap_straight_take(struct rings *r, int q, uint64_t words, size_t nparts,
                          const struct ring_ask *ask, struct ring_plan *p) {
  uint32_t known = world.reached;
  const uint8_t newest = r->newest->id;
  if (!__real_straight_take(r, q, words, nparts, ask, p))
    return false;
  const struct ring_need need = {
      .entries = {1, 1}, .words = {words, words}, .used = 1u << q, .last = q};
  judge(RIG_FITS, known, newest, &need, ask, p);
  return true;
}

/* Takes the value's ranges in the shadows. */
static void own(int q, uint32_t v, const struct ring_plan *p) {
  struct channel *c = world_channel(p->generation, q);
  struct segments *s = world_segments(p->generation, q);
  CHECK("rings that are done with", !c->gone && !s->gone);
  for (uint32_t i = p->from.entries[q]; i != p->to.entries[q]; i++) {
    uint32_t k = i % c->n;
    CHECK("an entry of a value not reached", c->entry_of[k] == 0);
    for (int b = 0; b < 8; b++)
      CHECK("a free entry was written",
            ((unsigned char *)&c->entries[2 * k])[b] == POISON);
    c->entry_of[k] = v;
  }
  for (uint32_t i = p->from.units[q]; i != p->to.units[q]; i++) {
    uint32_t k = i % s->n;
    CHECK("a unit of a value not reached", s->unit_of[k] == 0);
    for (int b = 0; b < RING_UNIT; b++)
      CHECK("a free unit was written",
            s->at[k * RING_UNIT + (uint32_t)b] == POISON);
    s->unit_of[k] = v;
  }
}

/* Before the words of a value that has its place. */
static struct life *place_owned(const struct ring_plan *p) {
  struct life *l = world_life(p->to.v);
  uint32_t v = (uint32_t)world_nth(p->to.v);
  CHECK("the mark of a value not reached",
        v - world.reached <= world.shape->marks);
  for (int q = 0; q < QUEUES; q++)
    if (p->used >> q & 1)
      own(q, v, p);
  return l;
}

void __wrap_ring_encode(const struct rings *r, const struct rig_submission *s,
                        const struct ring_need *need,
                        const struct ring_plan *p) {
  struct life *l = place_owned(p);
  __real_ring_encode(r, s, need, p);
  l->encoded = true;
}

void __wrap_straight_put(const struct rings *r, const struct rig_submission *s,
                         int q, size_t nparts, const struct ring_plan *p) {
  struct life *l = place_owned(p);
  __real_straight_put(r, s, q, nparts, p);
  l->encoded = true;
}

static struct channel *of_put(volatile uint32_t *to) {
  for (int i = 0; i < GENERATIONS; i++)
    for (int q = 0; q < QUEUES; q++)
      if (to == &world.channel[i][q].gp_put)
        return &world.channel[i][q];
  world_broken("a GP_PUT of the rings");
}

/* GP_PUT and the doorbell, by the holder of the seat (rings/io.h). */
void ring_io_hook(volatile uint32_t *to, uint32_t x) {
  if (to == &world.doorbell) {
    world.rung = true;
    return;
  }
  struct channel *c = of_put(to);
  CHECK("GP_PUT of channels that are done with", !c->gone);
  uint32_t n = c->n, by = (x - c->shown) & (n - 1);
  CHECK("GP_PUT grows", x < n && by != 0);
  CHECK("GP_PUT grows by less than a ring", c->shown + by - c->fetched < n);
  for (; by > 0; by--, c->shown++) {
    uint32_t v = c->entry_of[c->shown % n];
    CHECK("GP_PUT shows written entries", v != 0 && world.life[v].encoded);
    CHECK("GP_PUT shows values in order", v >= c->shown_of);
    c->shown_of = v;
  }
  world.rung = false;
  coop_point();
}

/* Every node is the tail's or in one cell. */
static void end_nodes(void) {
  const struct tail *t = &world.rings.tail;
  bool seen[TAIL_SPARES + 1] = {false};
  seen[tail_node_of(t->word.w[0])] = true;
  for (int i = 0; i < TAIL_SPARES; i++) {
    uint32_t node = t->cell[i].node;
    CHECK("a spare in each cell", node <= TAIL_SPARES && !seen[node]);
    seen[node] = true;
  }
}

void world_judge(void) {
  uint32_t n = (uint32_t)world.shape->posters * world.shape->posts;
  for (uint32_t i = 1; i <= n; i++) {
    const struct life *l = &world.life[i], *before = &world.life[i - 1];
    CHECK("values are dense", l->reserved);
    CHECK("generations grow", l->to.generation >= before->to.generation);
    const struct cursor from =
        as_of(&before->to, &world.generation[l->to.generation - FIRST]);
    CHECK("a value starts where the last one ended",
          same_place(&l->from, &from));
  }
  CHECK("nothing encoded is left", world_nth(world.rings.seat.published) == n);
  CHECK("all is reached", world.reached == n && world_nth(world.word) == n);
  CHECK("the last value", world_nth(rings_last(&world.rings)) == n);
  CHECK("a doorbell behind the last GP_PUT", world.rung);
  CHECK("the seat is free", world.rings.seat.state == SEAT_FREE);
  end_nodes();
}
