/* SPDX-License-Identifier: ISC */
#ifndef CORE_FAILING_PATH_H
#define CORE_FAILING_PATH_H
/*
 * For tests: a path over another one whose n-th call fails, with an answer of
 * the test's choice, and which counts calls. stop and close are not counted:
 * they cannot fail.
 */
#include "paths/path.h"

struct failing_path {
  struct rig_nv_path path; /* what the device is given */
  const struct rig_nv_path *inner;
  unsigned calls;   /* so far */
  unsigned fail_at; /* 1 is the first; 0 none */
  enum rig_nv_answer answer;
  const char *failed; /* the name of the call that failed, or NULL */
  bool misplace;      /* alloc answers an address in the windows */
};

/* Over `inner`, which outlives it. Fails nothing yet. */
void failing_path_init(struct failing_path *, const struct rig_nv_path *inner);
#endif
