/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_GPU_H
#define STRESS_BENCH_GPU_H
/*
 * A GPU that completes at once, and the rings that it fetches from, in host
 * memory, of a device's usual sizes and with no path.
 *
 * The doorbell's store costs what it is told to (an uncached store to a BAR
 * takes 130 ns), then the timeline word is the last value published: all of
 * it in the thread that rings, hence in the seat. The rings under it are a
 * build of rings/ with RING_IO_HOOK.
 *
 * With `stamps` on, the same thread notes when GP_PUT showed each value and
 * when the word had it. A stamp is overwritten by the value GPU_STAMPS later,
 * and protected as a mark is (rings/mark.h).
 *
 * Threads: gpu_make before the others; one GPU a process, for the hook knows
 * the doorbell's address alone.
 */
#include "rings/rings.h"

enum { /* core/make.c's */
       GPU_ENTRIES = 262144,
       GPU_SEGMENT_BYTES = 1 << 20,
       GPU_IN_FLIGHT = 32768,
       /* A power of two; enough for a thread that loses its core for a while */
       GPU_STAMPS = 1 << 16
};

/* Of one value, in ticks. */
struct gpu_stamp {
  shared_64 v;        /* v - 1 while the others are written */
  shared_64 shown;    /* when GP_PUT had been stored */
  shared_64 released; /* when the word had been */
};

/* What the GPU writes and what it looks at lie in lines of their own. */
struct gpu {
  struct rings rings;
  struct ring_generation generation;
  uint64_t multiplies; /* that a doorbell costs; not while others submit */
  bool stamps;         /* likewise */
  uint64_t shown;      /* when GP_PUT was last stored; the seat's, as is: */
  uint64_t stamped;    /* the last value that has a stamp */
  struct gpu_stamp *stamp;
  uint64_t word __attribute__((aligned(128)));
  uint32_t gp_put[QUEUES] __attribute__((aligned(128)));
  uint32_t doorbell __attribute__((aligned(128)));
};

/* Its first value after 0 is published too, so that no channel owes setup.
 * NULL: no memory. For the rest of the process. */
struct gpu *gpu_make(void);

enum gpu_stamped { GPU_NOT_YET, GPU_STAMPED, GPU_OVERWRITTEN };
/* The stamp of v, by any thread. */
enum gpu_stamped gpu_stamp(const struct gpu *, uint64_t v, uint64_t *shown,
                           uint64_t *released);

/* Room of n bytes in lines of their own, zeroed, and touched: no page of it
 * is met for the first time while the clock runs. NULL: no memory. */
void *gpu_memory(size_t n);
#endif
