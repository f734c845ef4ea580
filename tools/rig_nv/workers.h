/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_WORKERS_H
#define TOOLS_RIG_NV_WORKERS_H
/*
 * workers: the threads of run. Each makes submissions by its own replay, and
 * posts them, or takes the device's turn for room and submit alone:
 *
 *     replay_next  --> | post                            | --> replay_commit
 *          ^           | turn: room, submit v = last + 1 |
 *          |                        | LATER
 *          +--- wait, no turn held -+
 *
 * One thread starts and joins them; the turn is the workers' meanwhile.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "stress/arena.h"
#include "tools/rig_nv/tool.h"

/* What the workers of one run share. The fields up to the turn are set before
 * they start; those below it are the turn holder's. */
struct work {
  struct rig_nv *device;
  struct arena *arena;
  uint64_t submissions; /* of all threads */
  bool turns;           /* turn mode; else post mode */
  unsigned patience_s;  /* of each wait */
  pthread_mutex_t turn;
  /* The turn's, or after workers_run. host_ns: in calls that submitted. */
  uint64_t last, later, skipped, host_ns;

  atomic_uint_least64_t done; /* submissions made */
  atomic_uint running;        /* threads */
  atomic_int stop;            /* set by a failure and by a signal */
  int status;                 /* under the turn, as are the next */
  char what[128], cause[512]; /* of the first failure */
};

/* Runs all slices' threads to their end, calling progress at times on the
 * calling thread. TOOL_OK; TOOL_NOT_VERIFIED where the work stood still;
 * TOOL_ERROR. The last two with what and cause. */
int workers_run(struct work *, void (*progress)(const struct work *));

/* Waits until every value given is reached; the same answers. */
int workers_reach_last(struct work *);
#endif
