/* SPDX-License-Identifier: ISC */
/*
 * The engine: one thread that runs every channel in turns. What hardware is
 * free to choose the seed chooses: which channel steps, for how many words,
 * whether its copies move, its launches go on and its stores land, and when
 * GP_PUT is looked at.
 */
#include <ck_pr.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "core/api/why.h"
#include "paths/model/state.h"

enum {
  MOST_WORDS = 24,  /* of a channel in a turn */
  SPINS = 64,       /* idle turns before the engine sleeps */
  SHORT_NAPS = 500, /* and the naps before it sleeps longer */
  SHORT_NS = 20000,
  LONG_NS = 500000
};

uint64_t model_random(struct model *m) {
  /* xorshift64*, Vigna 2014 */
  m->random ^= m->random >> 12;
  m->random ^= m->random << 25;
  m->random ^= m->random >> 27;
  return m->random * UINT64_C(0x2545f4914f6cdd1d);
}

unsigned model_below(struct model *m, unsigned n) {
  return (unsigned)((model_random(m) >> 32) % n);
}

/* Lands what is due, in order. */
static bool land(struct model *m, struct model_channel *c) {
  bool worked = c->nstores > 0;
  while (c->nstores && !c->stores[0].delay) {
    uint64_t at = c->stores[0].at;
    if (!model_store_land(m, c)) {
      model_fault_mmu(m, c, at, FAULT_WRITE);
      return true;
    }
  }
  if (c->nstores)
    c->stores[0].delay--;
  return worked;
}

/* One turn of the channel; whether it did or has something to do. */
static bool turn(struct model *m, struct model_channel *c) {
  bool worked = land(m, c);
  if (!c->dead && c->nwork) {
    worked = true;
    if (model_below(m, 4))
      model_copy_piece(m, c);
  }
  if (!c->dead)
    worked |= model_launch_turn(m, c);
  if (c->dead || !c->scheduled)
    return worked;
  unsigned words = model_below(m, MOST_WORDS);
  worked |= !words && (c->words || c->nfetched || c->look);
  while (words-- && !c->dead) {
    if (model_fetch(m, c) != STEP_DONE)
      break;
    worked = true;
  }
  return worked;
}

/* A turn of every channel, from one that the seed chooses. */
static bool turns(struct model *m) {
  bool worked = false;
  /* Taken before GP_PUT is read: the exchange orders them, so that a bell
   * that is not seen here is seen by the next turn. */
  bool bell = ck_pr_fas_32(&m->bell, 0) != 0;
  ck_pr_fence_acquire(); /* pairs with the doorbell's store */
  struct model_channel *c;
  m->piece = MODEL_PIECE >> model_below(m, 3);
  for (c = m->channels; bell && c; c = c->next)
    c->look = true;
  size_t skip = m->nchannels ? model_below(m, (unsigned)m->nchannels) : 0;
  for (c = m->channels; skip; c = c->next)
    skip--;
  for (size_t n = m->nchannels; n; n--) {
    worked |= turn(m, c);
    c = c->next ? c->next : m->channels;
  }
  return worked;
}

static void nap(long ns) {
  struct timespec t = {0, ns};
  nanosleep(&t, NULL);
}

static void *run(void *arg) {
  struct model *m = arg;
  /* Acquire: pairs with the store of model_engine_stop. */
  for (unsigned idle = 0; !ck_pr_load_uint(&m->ending);) {
    bool worked = false;
    if (!rig_nv_lock_take(&m->lock)) {
      worked = !m->stalled && !m->stopped && turns(m);
      rig_nv_lock_give(&m->lock);
    }
    if (ck_pr_load_uint(&m->waiters))
      sched_yield();
    if (worked)
      idle = 0;
    else if (++idle < SPINS)
      sched_yield();
    else
      nap(idle < SPINS + SHORT_NAPS ? SHORT_NS : LONG_NS);
    if (idle > SPINS + SHORT_NAPS)
      idle = SPINS + SHORT_NAPS;
  }
  return NULL;
}

int model_engine_start(struct model *m) {
  int e = pthread_create(&m->thread, NULL, run, m);
  if (e)
    return why(RIG_NV_HOST_MEMORY, "the model's engine: %s", strerror(e));
  m->running = true;
  return 0;
}

void model_engine_stop(struct model *m) {
  if (!m->running)
    return;
  ck_pr_store_uint(&m->ending, 1);
  pthread_join(m->thread, NULL);
  m->running = false;
}
