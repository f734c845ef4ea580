/* SPDX-License-Identifier: ISC */
#include "rings/rings.h"

#include <stdio.h>
#include <stdlib.h>

#include "rings/plant.h"
#include "rings/rcu.h"

void ring_broken(const char *what, const char *file, int line) {
  fprintf(stderr, "librig_nv: %s:%d: broken: %s\n", file, line, what);
  abort();
}

/* RIG_NEVER and RIG_GROW come from what the rings hold, never from what is
 * free, and from a bound that no cursor changes. */
static enum rig_room capacity(const struct ring_generation *g,
                              const struct ring_need *need) {
  enum rig_room answer = RIG_FITS;
  for (int q = 0; q < QUEUES; q++) {
    const struct ring_channel *c = &g->channel[q];
    if (need->entries[q] > RING_MOST_ENTRIES - 1)
      return RIG_NEVER;
    if (need->entries[q] > c->n - 1 ||
        need->words[q] > (uint64_t)c->units * (RING_UNIT / sizeof(uint32_t)))
      answer = RIG_GROW;
  }
  return need->launch > g->launches.units ? RIG_GROW : answer;
}

/* What place() and refresh() answer beside ring_reserve's answers. */
enum {
  TORN = -3,  /* mark[word] is gone: the word has moved on */
  BROKEN = -4 /* counts that no rings have: a garbage cursor, or a bug */
};

/* Takes a contiguous piece of n of a ring's units, behind *count, if free. */
static int take_piece(uint32_t units, uint32_t freed, uint32_t n,
                      uint32_t *count, uint32_t *start) {
  uint32_t used = *count - freed;
  if (used >= 2 * (uint64_t)units) /* a free skip, and all of the ring */
    return BROKEN;
  uint32_t at = *count & (units - 1);
  uint32_t skip = n > units - at ? units - at : 0;
  if (used == 0 ? n > units : used > units || (uint64_t)skip + n > units - used)
    return RIG_LATER;
  *start = skip != 0 ? 0 : at;
  *count += skip + n;
  return RIG_FITS;
}

/* Takes `entries` and a piece of `units` on channel q, if free. */
static int take(const struct ring_channel *c, struct ring_plan *p, int q,
                uint32_t entries, uint32_t units) {
  const struct cursor *from = &p->from;
  uint32_t used = from->entries[q] - from->freed_entries[q];
  if (used >= c->n)
    return BROKEN;
  if (entries > c->n - 1 - used)
    return RIG_LATER;
  p->to.entries[q] = from->entries[q] + entries;
  return take_piece(c->units, from->freed_units[q], units, &p->to.units[q],
                    &p->start[q]);
}

/* Whether any words come before foreign entries that lead channel q's: none
 * where COMPUTE goes on behind a value that it released, with no waits. */
static bool led(const struct ring_plan *p, const struct ring_need *need,
                int q) {
  return q == RIG_COPY0 || (p->from.owes & 1u << q) != 0 ||
         p->from.released_by != q || need->waits ||
         (p->setup && p->to.setup != p->from.setup);
}

/* Planted: whether some thread has looked at the record before. */
static bool taken(uint32_t seq) {
  static shared_32 last;
  return shared_exchange_32(&last, seq) == seq;
}

/* The record that a value on COMPUTE brings its channel up to. Loaded after
 * the tail, so never one from before the tail's. */
static void take_setup(const struct rings *r, struct ring_plan *p) {
  p->setup = ring_rcu_dereference(&r->setup); /* partner: setup.h's assign */
  if (p->setup)
    p->to.setup = p->setup->seq;
  if (PLANTED(RING_PLANT_OWED_TAKEN) && p->setup && taken(p->setup->seq))
    p->from.setup = p->setup->seq;
}

/* Puts the counts of p->from into the terms of p->generation: all of a ring
 * born since is free. Its generation stays the tail's. Again, it changes
 * nothing. */
static void install(struct ring_plan *p) {
  const struct ring_generation *g = p->generation;
  struct cursor *c = &p->from;
  if (g->id == c->generation)
    return;
  for (int q = 0; q < QUEUES; q++) {
    if (g->channel[q].segments_born > c->generation)
      c->units[q] = c->freed_units[q] = 0;
    if (g->channels_born > c->generation)
      c->entries[q] = c->freed_entries[q] = 0;
  }
  if (g->launches.born > c->generation)
    c->launch = c->freed_launch = 0;
  if (g->channels_born > c->generation) {
    c->owes = (1u << QUEUES) - 1;
    c->released_by = NOBODY;
  }
}

/* The cursor after p->from and this submission, in the space that p->from
 * knows to be free. p->from may be garbage. */
static int place(const struct rings *r, const struct ring_need *need,
                 size_t nparts, const struct ring_ask *ask,
                 struct ring_plan *p) {
  const struct ring_generation *g = p->generation;
  p->to = p->from;
  p->to.v = p->from.v + 1;
  if (ask->for_what == RING_SUBMIT && p->to.v != ask->v)
    return RING_NOT_NEXT;
  if (ask->own && !rig_reached(p->from.v, ask->own_wait))
    return RING_OWN_WAIT;
  /* No order but the word's between the old channels and new ones. */
  if (g->channels_born > p->from.generation && p->from.behind != 0)
    return RIG_LATER;
  /* n marks: v's takes the place of v - n's, which must be reached. */
  p->to.behind = (uint16_t)(p->from.behind + 1);
  if (p->from.behind >= r->marks.n)
    return RIG_LATER;
  /* The copy engine may write the 64 bits in two stores, so where both halves
   * change COMPUTE releases. */
  p->release = (uint32_t)p->to.v == 0 ? RIG_COMPUTE0 : need->last;
  p->used = need->used | 1u << p->release;
  p->launch_releases = need->launch_releases && (uint32_t)p->to.v != 0;
  p->setup = NULL;
  if (p->used & 1u << RIG_COMPUTE0)
    take_setup(r, p);
  for (int q = 0; q < QUEUES; q++) {
    if (!(p->used & 1u << q))
      continue;
    uint32_t entries = (uint32_t)need->entries[q];
    if (need->lead & 1u << q && !led(p, need, q))
      entries--;
    int answer =
        take(&g->channel[q], p, q, entries, ring_units(need->words[q]));
    if (answer != RIG_FITS)
      return answer;
  }
  if (need->launch != 0) {
    uint32_t freed = PLANTED(RING_PLANT_LAUNCHES_OVER) ? p->from.launch
                                                       : p->from.freed_launch;
    int answer = take_piece(g->launches.units, freed, (uint32_t)need->launch,
                            &p->to.launch, &p->launch);
    if (answer != RIG_FITS)
      return answer;
  }
  p->to.joins = p->from.joins + nparts + 1;
  p->to.released_by = (p->launch_releases ? NOBODY : p->release) & 3;
  p->to.owes = p->from.owes & ~p->used & 3;
  p->to.waits = need->waits;
  if (!PLANTED(RING_PLANT_MARK_OLDER))
    p->to.generation = g->id;
  return RIG_FITS;
}

/* Brings what p->from knows to be free up to the word, which is loaded after
 * the tail: it lies between p->from's freed value and p->from.v, or p->from is
 * garbage or no longer the tail's. RIG_FITS if there was news; RIG_LATER if
 * not. */
static int refresh(const struct rings *r, uint64_t word, struct ring_plan *p) {
  const struct ring_generation *g = p->generation;
  struct cursor *from = &p->from, freed;
  uint64_t behind = from->v - word;
  if (PLANTED(RING_PLANT_FLIGHT_AFTER_MARK) &&
      !mark_read(&r->marks, word, &freed))
    return TORN;
  if (behind == from->behind)
    return RIG_LATER;
  /* Before mark[word] is read: n values later it is another's. */
  if (behind > from->behind)
    return BROKEN;
  if (!mark_read(&r->marks, word, &freed))
    return TORN;
  from->behind = (uint16_t)behind;
  /* Of a ring born later, the mark says nothing: its counts are another's. */
  if (g->launches.born <= freed.generation)
    from->freed_launch = freed.launch;
  for (int q = 0; q < QUEUES; q++) {
    if (g->channels_born <= freed.generation)
      from->freed_entries[q] = freed.entries[q];
    if (g->channel[q].segments_born <= freed.generation)
      from->freed_units[q] = freed.units[q];
  }
  return RIG_FITS;
}

/* What the tail's cursor in p->from and the word came to. */
struct attempt {
  int answer;
  bool looked; /* at the word */
  uint64_t word;
};

/* A place on generation g. Inline: of every submission, and its arguments are
 * many. */
static inline __attribute__((always_inline)) void
attempt(const struct rings *r, const struct ring_generation *g,
        const struct ring_need *need, size_t nparts, const struct ring_ask *ask,
        struct ring_plan *p, struct attempt *a) {
  a->looked = false;
  p->generation = g;
  if (p->from.generation > g->id) {
    a->answer = BROKEN; /* read after the tail, g is no older: garbage */
    return;
  }
  install(p);
  a->answer = place(r, need, nparts, ask, p);
  if (a->answer != RIG_LATER)
    return;
  a->looked = true;
  a->word = shared_load_acquire_64(r->word); /* partner: the GPU's release */
  a->answer = refresh(r, a->word, p);
  if (a->answer == RIG_FITS)
    a->answer = place(r, need, nparts, ask, p);
}

/* What does not fit now on the newest generation may fit on an older one, down
 * to the tail's: room may have said so before a growth of another thread's,
 * and new channels would have it wait. Not with a garbage cursor, which may
 * name a generation whose rings are gone. False: the tail moved. */
static bool attempt_older(const struct rings *r, const struct tail_at *tail,
                          const struct ring_need *need, size_t nparts,
                          const struct ring_ask *ask, struct ring_plan *p,
                          struct attempt *a) {
  while (a->answer == RIG_LATER) {
    if (tail_read(&r->tail, &p->from).word != tail->word ||
        !tail_same(&r->tail, tail))
      return false;
    if (p->from.generation == p->generation->id)
      return true;
    attempt(r, p->generation->older, need, nparts, ask, p, a);
  }
  return true;
}

int ring_reserve(struct rings *r, const struct ring_need *need, size_t nparts,
                 const struct ring_ask *ask, struct ring_plan *p) {
  const bool down = ask->for_what == RING_SUBMIT || PLANTED(RING_PLANT_STARVE);
  for (;;) {
    struct attempt a = {.answer = RIG_FITS};
    const struct ring_generation *g = NULL;
    if (PLANTED(RING_PLANT_GENERATION_BEFORE_TAIL))
      g = ring_rcu_dereference(&r->newest);
    const struct tail_at tail = tail_read(&r->tail, &p->from);
    if (!PLANTED(RING_PLANT_GENERATION_BEFORE_TAIL))
      g = ring_rcu_dereference(&r->newest); /* partner: growth's assign */
    enum rig_room bound = capacity(g, need);
    if (bound != RIG_FITS)
      return bound;
    attempt(r, g, need, nparts, ask, p, &a);
    if (down && !attempt_older(r, &tail, need, nparts, ask, p, &a))
      continue;
    const int answer = a.answer;
    if (answer == RIG_FITS && ask->for_what != RING_ROOM) {
      /* p->from is the tail's as it was read, or has news that no steps
       * tell: of what is free, or of rings. */
      const bool news = a.looked || p->to.generation != p->from.generation;
      if (tail_swap(&r->tail, &tail, news ? NULL : &p->from, &p->to))
        return RIG_FITS;
      continue;
    }
    if (PLANTED(RING_PLANT_LATER_UNCHECKED) && answer == RIG_LATER)
      return answer;
    /* An answer that rests on loads alone: exact from an unchanged tail, and
     * where the word was looked at, from an unchanged word. */
    if (!tail_same(&r->tail, &tail))
      continue;
    if (a.looked && answer != RIG_FITS &&
        shared_load_acquire_64(r->word) != a.word) /* partner: the GPU's */
      continue;
    /* A word that holds no value of these rings, or counts that they cannot
     * have. */
    RING_ASSERT(answer != BROKEN);
    RING_ASSERT(answer != TORN);
    return answer;
  }
}
