/* SPDX-License-Identifier: ISC */
#ifndef STRESS_SMOKE_H
#define STRESS_SMOKE_H
/*
 * smoke: what a device of any path must do, each check bounded in time. A
 * check returns true, or false having said on stderr what was wrong.
 *
 * Threads: one caller at a time; the device is in post mode.
 */
#include "paths/path.h"

struct smoke {
  const char *path_name; /* "nvidia", or a model's: device_smoke.c */
  int gpu;               /* its number, -1 the first */
  unsigned threads;
  uint64_t posts, seed;
  bool quick; /* fewer of what takes long, for a busy machine */
  const struct rig_nv_path *path;
  struct rig_nv *device;
};

/* Says what failed, and returns false. */
bool smoke_failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Whether v is reached within 10 s. */
bool smoke_reach(struct smoke *, uint64_t v);
bool smoke_post(struct smoke *, const struct rig_part *, size_t n, uint64_t *v);

/* Opens the path: 0, or the negative of an error, not told. */
int smoke_open(struct smoke *);
/* Opens the path and a device on it, and ends both. */
bool smoke_path_open(struct smoke *);
bool smoke_path_close(struct smoke *);
bool smoke_device_open(struct smoke *);
bool smoke_device_close(struct smoke *);

/* smoke_memory.c: uploads, copies between the kinds at odd offsets, fills,
 * downloads, and every byte of it; large memory; the caller's memory. */
bool smoke_memory(struct smoke *);
/* smoke_posts.c: mixed posts of several threads, checked; times of posts. */
bool smoke_posts(struct smoke *);
bool smoke_times(struct smoke *);
/* smoke_process.c: opens over and over; a second open; a fork; a process that
 * is killed as it posts. */
bool smoke_cycles(struct smoke *, unsigned n);
bool smoke_second(struct smoke *);
bool smoke_fork(struct smoke *);
bool smoke_victim(struct smoke *); /* posts until it is killed */
bool smoke_kill(const struct smoke *);
/* smoke_peers.c: a second GPU's memory and word, where there is one. */
bool smoke_peers(struct smoke *);
/* smoke_faults.c: one wrong address: a copy past a region's end or of the
 * host's memory, a kernel's store, a segment. It stops the device. */
enum smoke_fault_of { SMOKE_COPY, SMOKE_HOST, SMOKE_KERNEL, SMOKE_SEGMENT };
bool smoke_fault(struct smoke *, enum smoke_fault_of);
/* smoke_launches.c: kernels of the GPU's architecture: vectors, chains, shared
 * and local memory, the largest grid, code laid over code; their times. */
bool smoke_launches(struct smoke *);
/* smoke_growth.c: submissions that the rings do not hold, beside others. */
bool smoke_growth(struct smoke *);
/* smoke_costs.c: times of allocations, maps, checks and stores. */
bool smoke_costs(struct smoke *);
#endif
