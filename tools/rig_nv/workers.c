/* SPDX-License-Identifier: ISC */
#include "tools/rig_nv/workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PROGRESS_MS = 100 };

struct worker {
  struct work *work;
  struct replay *replay;
  uint64_t quota;
  uint64_t last, later, skipped, host_ns; /* the thread's part of the work's */
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
  int e =
      rig_nv_wait(w->device, v, now() + UINT64_C(1000000000) * w->patience_s);
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

/* Room and submit, with the turn. */
static int turn(struct work *w, const struct rig_submission *s, uint64_t *v,
                const char **failure) {
  int is = rig_nv_room(w->device, s);
  if (is != RIG_FITS)
    return is;
  *v = w->last + 1;
  if (rig_nv_submit(w->device, *v, s, failure) != RIG_COMMITTED)
    return -RIG_NV_INVALID;
  w->last = *v;
  return RIG_FITS;
}

/* RIG_FITS with *v, another enum rig_room, or an error with *failure. */
static int once(struct worker *me, const struct rig_submission *s, uint64_t *v,
                const char **failure) {
  struct work *w = me->work;
  int is;
  if (w->turns)
    pthread_mutex_lock(&w->turn);
  uint64_t start = now();
  if (w->turns)
    is = turn(w, s, v, failure);
  else
    is = rig_nv_post(w->device, s, v);
  uint64_t took = now() - start;
  if (w->turns)
    pthread_mutex_unlock(&w->turn);
  else if (is < 0)
    *failure = rig_nv_why();
  if (is == RIG_FITS) {
    me->host_ns += took;
    me->last = *v;
  }
  return is;
}

/* LATER: half of what this thread has in flight is waited for, as waits look
 * once a millisecond. */
static int wait_for_some(struct worker *me, uint64_t word) {
  uint64_t v = word + 1;
  me->later++;
  if (!rig_reached(word, me->last))
    v = word + (me->last - word + 1) / 2;
  replay_release(me->replay);
  return reach(me->work, v);
}

static int submit(struct worker *me, const struct rig_submission *s) {
  for (;;) {
    uint64_t v = 0, word = rig_nv_signaled(me->work->device);
    const char *failure = "no reason given";
    int is = once(me, s, &v, &failure);
    switch (is) {
    case RIG_FITS:
      replay_commit(me->replay, v);
      return TOOL_OK;
    case RIG_LATER:
      if (wait_for_some(me, word))
        return TOOL_ERROR;
      break;
    default:
      if (is < 0)
        return failed(me->work, TOOL_ERROR, "submit", failure);
      me->skipped++;
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

/* After all threads' joins: the turn is nobody's. */
static void add(struct work *w, const struct worker *me) {
  if (rig_reached(me->last, w->last))
    w->last = me->last;
  w->later += me->later;
  w->skipped += me->skipped;
  w->host_ns += me->host_ns;
}

int workers_run(struct work *w, void (*progress)(const struct work *)) {
  struct worker workers[ARENA_MOST_SLICES];
  unsigned n = w->arena->slices, started = 0;
  uint64_t first = w->last;
  w->status = TOOL_OK;
  pthread_mutex_init(&w->turn, NULL);
  for (; started < n; started++) {
    struct worker *me = &workers[started];
    *me = (struct worker){.work = w,
                          .replay = w->arena->replays[started],
                          .quota = w->submissions / n +
                                   (started < w->submissions % n),
                          .last = first};
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
  for (unsigned i = 0; i < started; i++)
    add(w, &workers[i]);
  return w->status;
}
