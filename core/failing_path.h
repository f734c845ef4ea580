/* SPDX-License-Identifier: ISC */
#ifndef CORE_FAILING_PATH_H
#define CORE_FAILING_PATH_H
/*
 * For tests: a path over another one whose n-th call fails, and a second one
 * where the test says, with an answer of the test's choice. It counts calls,
 * and keeps a ledger of what the inner path gave and did not get back. stop and
 * close are not among the calls: they cannot fail.
 *
 * Threads: any may be in the path's functions. The test's fields change while
 * none is, fail_at also then (ck_pr); `failed` is read once they have left.
 */
#include "paths/path.h"

enum { FAILING_PATH_MOST = 512 };

struct failing_path {
  struct rig_nv_path path;   /* what the device is given */
  struct rig_nv_clock clock; /* and its source; registers fail no call */
  const struct rig_nv_path *inner;
  unsigned calls;   /* so far (ck_pr) */
  unsigned fail_at; /* 1 is the first; 0 none */
  unsigned also_at;
  unsigned stops; /* calls of stop (ck_pr) */
  enum rig_nv_answer answer;
  const char *failed;      /* the name of the call that failed, or NULL */
  const char *failed_also; /* and of the one at also_at */
  bool misplace;           /* alloc answers an address in the windows */
  /* The ledger: memory, objects under the device, registered channels. */
  unsigned lock; /* (ck_pr) of the rest */
  size_t nmemories, nobjects, nregistered;
  struct rig_nv_memory memory[FAILING_PATH_MOST];
  uint32_t object[FAILING_PATH_MOST], registered[FAILING_PATH_MOST];
};

/* Over `inner`, which outlives it. Fails nothing yet. */
void failing_path_init(struct failing_path *, const struct rig_nv_path *inner);

/* Gives the inner path back all that is in the ledger, as the end of the
 * process does. Stops it where its RM frees no objects. How many things it
 * was. */
size_t failing_path_sweep(struct failing_path *);
#endif
