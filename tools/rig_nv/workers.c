/* SPDX-License-Identifier: ISC */
#define _POSIX_C_SOURCE 200809L
#include "tools/rig_nv/workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PATIENCE_SECONDS = 120, PROGRESS_MS = 100 };

struct worker {
  struct work *work;
  struct replay *replay;
  uint64_t quota;
  pthread_t thread;
};

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int failed(struct work *w, int status, const char *what,
                  const char *cause) {
  pthread_mutex_lock(&w->turn);
  if (w->status == TOOL_OK) {
    w->status = status;
    snprintf(w->what, sizeof w->what, "%s", what);
    snprintf(w->cause, sizeof w->cause, "%s", cause);
  }
  pthread_mutex_unlock(&w->turn);
  /* Relaxed: what and status are read under the turn, or after the join. */
  atomic_store_explicit(&w->stop, 1, memory_order_relaxed);
  return status;
}

static int reach(struct work *w, uint64_t v) {
  int e = rig_nv_wait(w->device, v,
                      now() + UINT64_C(1000000000) * PATIENCE_SECONDS);
  if (e == 0)
    return TOOL_OK;
  char what[64];
  snprintf(what, sizeof what, "waiting for value %" PRIu64, v);
  bool still = e == -RIG_NV_STALLED || e == -RIG_NV_TIMEOUT;
  return failed(w, still ? TOOL_NOT_VERIFIED : TOOL_ERROR, what, rig_nv_why());
}

int workers_reach_last(struct work *w) { return reach(w, w->last); }

static int next(struct worker *me, const struct rig_submission **s) {
  for (;;) {
    uint64_t until, word = rig_nv_signaled(me->work->device);
    switch (replay_next(me->replay, word, s, &until)) {
    case REPLAY_MADE:
      return TOOL_OK;
    case REPLAY_BROKEN:
      return failed(me->work, TOOL_ERROR, "writing words", rig_nv_why());
    case REPLAY_BUSY:
      replay_release(me->replay);
      if (reach(me->work, until))
        return TOOL_ERROR;
    }
  }
}

/* One turn. *v is the value submitted, or for LATER one to wait for. */
static enum rig_room turn(struct work *w, const struct rig_submission *s,
                          uint64_t *v, const char **failure) {
  pthread_mutex_lock(&w->turn);
  uint64_t start = now();
  enum rig_room is = rig_nv_room(w->device, s);
  if (is == RIG_FITS) {
    *v = w->last + 1;
    if (rig_nv_submit(w->device, *v, s, failure) == RIG_COMMITTED) {
      w->last = *v;
      w->host_ns += now() - start;
      *failure = NULL;
    }
  } else if (is == RIG_LATER) {
    /* Half of what is in flight: waits look once a millisecond. */
    uint64_t word = rig_nv_signaled(w->device);
    *v = word + (w->last - word + 1) / 2;
    w->later++;
  } else {
    w->skipped++;
  }
  pthread_mutex_unlock(&w->turn);
  return is;
}

static int submit(struct worker *me, const struct rig_submission *s) {
  for (;;) {
    uint64_t v;
    const char *failure = "no reason given";
    switch (turn(me->work, s, &v, &failure)) {
    case RIG_FITS:
      if (failure)
        return failed(me->work, TOOL_ERROR, "submit", failure);
      replay_commit(me->replay, v);
      return TOOL_OK;
    case RIG_LATER:
      replay_release(me->replay);
      if (reach(me->work, v))
        return TOOL_ERROR;
      break;
    default:
      replay_skip(me->replay);
      return TOOL_OK;
    }
  }
}

static void *worker(void *arg) {
  struct worker *me = arg;
  struct work *w = me->work;
  for (uint64_t i = 0; i < me->quota; i++) {
    const struct rig_submission *s;
    /* Relaxed: a hint to end soon. */
    if (atomic_load_explicit(&w->stop, memory_order_relaxed) || next(me, &s) ||
        submit(me, s))
      break;
    /* Relaxed: a number to show. */
    atomic_fetch_add_explicit(&w->done, 1, memory_order_relaxed);
  }
  replay_release(me->replay);
  /* Relaxed: the join orders what the thread did. */
  atomic_fetch_sub_explicit(&w->running, 1, memory_order_relaxed);
  return NULL;
}

int workers_run(struct work *w, void (*progress)(const struct work *)) {
  struct worker workers[ARENA_MOST_SLICES];
  unsigned n = w->arena->slices, started = 0;
  w->status = TOOL_OK;
  pthread_mutex_init(&w->turn, NULL);
  for (; started < n; started++) {
    struct worker *me = &workers[started];
    *me =
        (struct worker){w, w->arena->replays[started],
                        w->submissions / n + (started < w->submissions % n), 0};
    atomic_fetch_add_explicit(&w->running, 1, memory_order_relaxed);
    int e = pthread_create(&me->thread, NULL, worker, me);
    if (e == 0)
      continue;
    atomic_fetch_sub_explicit(&w->running, 1, memory_order_relaxed);
    failed(w, TOOL_ERROR, "starting a thread", strerror(e));
    break;
  }
  while (atomic_load_explicit(&w->running, memory_order_relaxed)) {
    struct timespec t = {.tv_nsec = PROGRESS_MS * 1000000};
    nanosleep(&t, NULL); /* a signal may end it early */
    progress(w);
  }
  for (unsigned i = 0; i < started; i++)
    pthread_join(workers[i].thread, NULL);
  return w->status;
}
