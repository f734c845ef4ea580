/* SPDX-License-Identifier: ISC */
#ifndef STRESS_FAULT_STRESS_H
#define STRESS_FAULT_STRESS_H
/*
 * fault_stress: devices on a model whose calls fail, over a path that keeps a
 * ledger, with host memory by hooks that count and fail. What a device leaves
 * behind shows in the ledger, the model's counts, or in the hooks' count.
 *
 * Threads: a ground's path and hooks are any thread's.
 */
#include <stdbool.h>
#include <stdint.h>

#include "core/device.h"
#include "core/failing_path.h"
#include "paths/pci/model_path.h"
#include "stress/random.h"

struct ground {
  const struct rig_nv_path *model;
  struct failing_path f;
  int is;              /* an enum model_path */
  bool stopped;        /* the path was, and takes no other device */
  uint64_t host_calls; /* of the hooks' alloc (atomic) */
  uint64_t host_fails; /* that call fails; 0 none (atomic) */
  uint64_t host_live;  /* allocations (atomic) */
};

struct totals {
  uint64_t lives, path_failures, host_failures, rounds, posts, lost, cycles;
};

/* What the run is asked for. */
struct faults {
  uint64_t seed;
  unsigned rounds;  /* of threads */
  unsigned cycles;  /* of make, stop and release */
  unsigned process; /* forks and exits */
  bool quiet;
  struct totals n;
};

/* Says what broke; false. */
bool faults_broke(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

bool ground_open(struct ground *, int is, uint64_t seed, int64_t hang_ms);
/* rig_nv_make on small rings, in the mode. */
int ground_make(struct ground *, enum rig_nv_mode, struct rig_nv **);
/* Makes a device, runs work and ends it: the path is as good as ever. */
bool ground_again(struct ground *);
/* Sweeps and closes; false where host memory lives. */
bool ground_close(struct ground *);

/* fault_each.c: the n-th call of the path, then of the hooks, for every n of a
 * device's life, in both personalities, with each answer. */
bool faults_each(struct faults *);
/* fault_threads.c: faults, stalls and hangs at random, 8 threads inside. */
bool faults_threads(struct faults *);
/* fault_process.c: cycles; fork with devices open; exit with devices open. */
bool faults_process(struct faults *);
/* Of a process that fault_process.c starts: exits with a device open. */
int faults_exit_open(void);
#endif
