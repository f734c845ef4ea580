/* SPDX-License-Identifier: ISC */
#ifndef STRESS_SMOKE_H
#define STRESS_SMOKE_H
/*
 * smoke: what a device of any path must do, each check bounded in time. A
 * check returns true, or false having said on stderr what was wrong.
 *
 * Threads: one caller at a time; the device is in post mode.
 */
#include <string.h>

#include "paths/path.h"

struct smoke {
  const char *path_name; /* "nvidia", or a model's: device_smoke.c */
  int gpu;               /* its number, -1 the first */
  unsigned threads;
  uint64_t posts, seed;
  bool quick;    /* fewer of what takes long, for a busy machine */
  void *words;   /* a page whose first 8 bytes are the word, or NULL */
  int places[4]; /* of USERD, entries, segments, launches (rig_nv_place) */
  const struct rig_nv_path *path;
  struct rig_nv *device;
};

/* Says what failed, and returns false. */
bool smoke_failed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Whether work runs on a GPU, which is fast and has memory. */
static inline bool smoke_real(const struct smoke *s) {
  return strcmp(s->path_name, "nvidia") == 0;
}
/* n times, the least first. */
void smoke_sort(uint64_t *ns, size_t n);
/* Whether v is reached within 10 s. */
bool smoke_reach(struct smoke *, uint64_t v);
bool smoke_post(struct smoke *, const struct rig_part *, size_t n, uint64_t *v);
bool smoke_post_submission(struct smoke *, const struct rig_submission *,
                           uint64_t *v);

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
bool smoke_mixed(struct smoke *, uint64_t posts, bool tell);
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
/* smoke_crowd.c: the same submission `each` times by every thread at once,
 * which the rings hold together: medians of a thread's ns a post and of all's.
 */
bool smoke_crowd(struct smoke *, const struct rig_submission *, unsigned each,
                 uint64_t *ns_each, uint64_t *ns_all);
/* smoke_places.c: devices with their rings in each place. */
bool smoke_places(struct smoke *);
/* smoke_wraps.c: submissions that wrap the entry and the segment rings; devices
 * whose words begin before a carry of 32 bits and before the end of 64. */
bool smoke_wraps(struct smoke *);
bool smoke_carry(struct smoke *);
/* smoke_growth.c: submissions that the rings do not hold, beside others. */
bool smoke_growth(struct smoke *);
/* smoke_clock.c: stamps of both channels, as times of CLOCK_MONOTONIC. */
bool smoke_clock(struct smoke *);
/* smoke_dma.c: how a PCI function reaches each kind of memory, or why not. */
bool smoke_dma(struct smoke *);
/* smoke_costs.c: times of allocations, maps, checks and stores. */
bool smoke_costs(struct smoke *);
#endif
