/* SPDX-License-Identifier: ISC */
#include "rings/flush.h"

#include "core/lock_order/lock_order.h"
#include "rings/io.h"
#include "rings/rcu.h"
#include "rings/rings.h"

static struct rig_nv_lock lock = RIG_NV_LOCK(&rig_nv_lock_flush);
static struct flush_set *sets; /* those with words; under the lock */

static void enter(void) {
  /* Refused only to a caller that holds a path's lock. */
  RING_ASSERT(rig_nv_lock_take(&lock) == 0);
}

static void leave(void) { rig_nv_lock_give(&lock); }

static uint32_t count(const struct flush_set *s) {
  return s->now ? s->now->n : 0;
}

/* Where the source's word is, or count(s). */
static uint32_t find(const struct flush_set *s, const struct flush_source *o) {
  uint32_t i = 0;
  while (i < count(s) && s->source[i] != o)
    i++;
  return i;
}

static void link_set(struct flush_set *s) {
  s->next = sets;
  s->prev = &sets;
  if (sets)
    sets->prev = &s->next;
  sets = s;
}

static void unlink_set(struct flush_set *s) {
  *s->prev = s->next;
  if (s->next)
    s->next->prev = s->prev;
}

/* Publishes the words of the first n sources. The array that was there is
 * readers' until the next grace period. */
static void publish(struct flush_set *s, uint32_t n) {
  struct flush_words *next = &s->copy[s->now == &s->copy[0]];
  uint32_t before = count(s);
  next->n = n;
  for (uint32_t i = 0; i < n; i++)
    next->at[i] = s->source[i]->word;
  ring_rcu_assign(&s->now, next); /* partner: flush_read */
  if (before == 0 && n != 0)
    link_set(s);
  if (before != 0 && n == 0)
    unlink_set(s);
}

/* After publish: ends the readers of the former arrays. */
static void wait_for_readers(void) {
#ifndef FLUSH_NO_GRACE /* the mistake that flush_grace_test looks for */
  ring_rcu_synchronize();
#endif
}

/* Publishes the set without its i-th word. */
static void remove_at(struct flush_set *s, uint32_t i) {
  uint32_t last = count(s) - 1;
  s->source[i] = s->source[last];
  s->views[i] = s->views[last];
  publish(s, last);
}

static enum flush_added add(struct flush_set *s, const struct flush_source *o) {
  uint32_t i = find(s, o), n = count(s);
  if (o->ended)
    return FLUSH_ENDED;
  if (i == FLUSH_MOST)
    return FLUSH_FULL;
  if (i < n) {
    s->views[i]++;
    return FLUSH_ADDED;
  }
  s->source[n] = o;
  s->views[n] = 1;
  publish(s, n + 1);
  wait_for_readers();
  return FLUSH_ADDED;
}

enum flush_added flush_add(struct flush_set *s, const struct flush_source *o) {
  enter();
  enum flush_added answer = add(s, o);
  leave();
  return answer;
}

void flush_drop(struct flush_set *s, const struct flush_source *o) {
  enter();
  uint32_t i = find(s, o);
  RING_ASSERT(i < count(s) || o->ended);
  if (i < count(s) && --s->views[i] == 0) {
    remove_at(s, i);
    wait_for_readers();
  }
  leave();
}

void flush_end(struct flush_source *o) {
  enter();
  o->ended = true;
  bool removed = false;
  for (struct flush_set *s = sets, *next; s; s = next) {
    next = s->next; /* remove_at may unlink s */
    uint32_t i = find(s, o);
    if (i < count(s)) {
      remove_at(s, i);
      removed = true;
    }
  }
  if (removed) /* one for all: each set was published once */
    wait_for_readers();
  leave();
}

void flush_read(const struct flush_set *s) {
  /* No view was ever there: nothing to read, and no section to read it in. A
   * view that the caller orders before this is seen here as it is below. */
  if (!ring_rcu_dereference(&s->now)) /* partner: publish */
    return;
  ring_rcu_lock();
  const struct flush_words *w =
      ring_rcu_dereference(&s->now); /* partner: publish */
  for (uint32_t i = 0; w && i < w->n; i++)
    io_flush(w->at[i]);
  ring_rcu_unlock();
}
