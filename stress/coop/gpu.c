/* SPDX-License-Identifier: ISC */
#include <string.h>

#include "stress/coop/world_state.h"

static uint64_t low_first(const uint32_t *at) {
  return (uint64_t)at[1] << 32 | at[0];
}

static uint64_t high_first(const uint32_t *at) {
  return (uint64_t)at[0] << 32 | at[1];
}

/* The words of the operation with this header, by literal headers. */
static unsigned words_of(uint32_t header) {
  switch (header) {
  case 0x20012000: /* SET_OBJECT, compute */
  case 0x20018000: /* SET_OBJECT, copy */
    return 2;
  case 0x200221ec: /* windows */
  case 0x200220a8:
    return 3;
  case 0x20050017: /* SEM_ADDR_LO .. SEM_EXECUTE */
    return 6;
  case 0x20048090: /* a release by the copy engine */
    return 7;
  case 0x20048100: /* a copy */
    return 9;
  case 0x20028102: /* a fill */
    return 11;
  default:
    world_broken("an operation that the GPU knows");
  }
}

/* The value is done: its ranges are poisoned, then given away by the word. */
static void reach(uint64_t v) {
  struct random *random = &world.random[world.shape->posters];
  const struct life *l = world_life(v);
  const struct ring_generation *g = &world.generation[l->to.generation - FIRST];
  CHECK("values are reached in order", world_nth(v) == world.reached + 1);
  for (int q = 0; q < QUEUES; q++) {
    struct channel *c = world_channel(g, q);
    struct segments *s = world_segments(g, q);
    CHECK("all of a value's entries were fetched",
          (int32_t)(c->fetched - l->to.entries[q]) >= 0);
    for (uint32_t i = 0; i < c->n; i++)
      if (c->entry_of[i] == world_nth(v))
        memset(&c->entries[2 * i], POISON, 8);
    for (uint32_t i = 0; i < s->n; i++)
      if (s->unit_of[i] == world_nth(v))
        memset(&s->at[i * RING_UNIT], POISON, RING_UNIT);
  }
  for (uint64_t n = random_small(random, 40); n > 0; n--)
    coop_point();
  /* Partner: ring_reserve's acquire load. No point from the store on. */
  shared_store_release_64(&world.word, v);
  world.reached++;
  for (int q = 0; q < QUEUES; q++) {
    struct channel *c = world_channel(g, q);
    struct segments *s = world_segments(g, q);
    for (uint32_t i = 0; i < c->n; i++)
      if (c->entry_of[i] == world_nth(v))
        c->entry_of[i] = 0;
    for (uint32_t i = 0; i < s->n; i++)
      if (s->unit_of[i] == world_nth(v))
        s->unit_of[i] = 0;
    for (int born = FIRST; born < g->channels_born; born++)
      world.channel[born - FIRST][q].gone = true;
    for (int born = FIRST; born < g->channel[q].segments_born; born++)
      world.segments[born - FIRST][q].gone = true;
  }
}

static void release(uint64_t at, uint64_t v) {
  if (at == WORD)
    reach(v);
  else if (at == JOIN || at == JOIN + 0x40)
    shared_store_release_64(&world.join[at != JOIN], v);
  else
    world_broken("a release of a word of the rings");
}

/* Whether the word at this address is v or later. */
static bool acquired(uint64_t at, uint64_t v) {
  uint64_t seen = v;
  if (at == WORD)
    seen = shared_load_acquire_64(&world.word);
  else if (at == JOIN || at == JOIN + 0x40)
    seen = shared_load_acquire_64(&world.join[at != JOIN]);
  else
    CHECK("an acquire of a known word", at == OTHERS);
  return (int64_t)(seen - v) >= 0;
}

/* The next entry, if GP_PUT shows one. */
static bool fetch(struct channel *c, int q) {
  uint32_t n = c->n, k = c->fetched & (n - 1);
  if (k == shared_load_acquire_32(&c->gp_put)) /* partner: the seat's holder */
    return false;
  uint64_t e = low_first(&c->entries[2 * k]);
  uint64_t at = e & UINT64_C(0xfffffffffc), words = e >> 42 & 0x1fffff;
  uint64_t base = (uint64_t)SEGMENTS << q;
  c->of = c->entry_of[k];
  c->fetched++;
  if (e == low_first(world_foreign) || e == low_first(world_foreign + 2))
    return true;
  CHECK("an entry names a segment ring",
        at >= base && at - base < GENERATIONS * SEGMENTS_APART);
  const struct segments *s = &world.segments[(at - base) / SEGMENTS_APART][q];
  base += (at - base) / SEGMENTS_APART * SEGMENTS_APART;
  CHECK("an entry names a segment",
        at - base + 4 * words <= s->n * (uint64_t)RING_UNIT);
  for (uint64_t i = (at - base) / RING_UNIT;
       i * RING_UNIT < at - base + 4 * words; i++)
    CHECK("a segment in its value's units", s->unit_of[i] == c->of);
  c->at = (const uint32_t *)(s->at + (at - base));
  c->left = words;
  return true;
}

/* One entry or operation of a channel. False: it has none, or waits. */
static bool gpu_step(struct channel *c, int q) {
  if (c->n == 0)
    return false;
  if (c->left == 0)
    return fetch(c, q);
  const uint32_t *at = c->at;
  unsigned n = words_of(at[0]);
  CHECK("operations end with their segment", n <= c->left);
  if (at[0] == 0x20050017 && at[5] == 0x01001003) {
    if (!acquired(low_first(at + 1), low_first(at + 3)))
      return false;
  } else if (at[0] == 0x20050017) {
    CHECK("a release by the host", at[5] == 0x01100001);
    release(low_first(at + 1), low_first(at + 3));
  } else if (at[0] == 0x20048090) {
    release(high_first(at + 1), low_first(at + 3));
  } else {
    coop_point();
  }
  c->at += n;
  c->left -= n;
  return true;
}

/* One of any channel, and of the others where it has none. */
static bool gpu_any(void) {
  enum { ALL = GENERATIONS * QUEUES };
  /* Where nobody grows, of the first two alone, so that a seed's run is that of
   * rings that do not grow. */
  unsigned n = world.shape->growths == 0 ? QUEUES : ALL;
  unsigned first =
      (unsigned)random_below(&world.random[world.shape->posters], n);
  for (unsigned i = 0; i < n; i++) {
    unsigned k = (first + i) % n;
    if (gpu_step(&world.channel[k / QUEUES][k % QUEUES], (int)(k % QUEUES)))
      return true;
  }
  return false;
}

static bool idle(void) {
  for (int i = 0; i < GENERATIONS; i++)
    for (int q = 0; q < QUEUES; q++)
      if (world.channel[i][q].left != 0)
        return false;
  return true;
}

void world_gpu(void *arg) {
  (void)arg;
  for (;;) {
    /* Seen before what they left is looked at. */
    bool last = world.done == world.shape->posters;
    if (gpu_any())
      continue;
    if (last && idle())
      return;
    coop_spin();
  }
}
