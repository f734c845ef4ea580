/* SPDX-License-Identifier: ISC */
#ifndef RINGS_IO_H
#define RINGS_IO_H
/*
 * Memory that the GPU reads: the only place where stores to it are ordered.
 *
 *   ring contents -> io_write_fence -> [io_flush] -> GP_PUT
 *                 -> io_write_fence -> doorbell
 *
 * The partner of every store here is the GPU's fetch: it reads GP_PUT, then
 * the entries below it, then the segments that they name. A running channel
 * may see GP_PUT with no doorbell, so everything is in place before it.
 *
 * Thread fences are not enough: ring memory may be mapped write-combined, and
 * a write-combining store passes every later store but for an sfence (dsb st
 * on Arm), which only the core that wrote can give.
 */
#include <ck_pr.h>
#include <stdint.h>
#include <string.h>

/* Ring contents: n words to `to`, in ring memory. Ordered by nothing. */
static inline void io_copy(uint32_t *to, const uint32_t *from, size_t n) {
  memcpy(to, from, n * sizeof *to);
}

/* This core's earlier stores reach memory before its later ones. */
static inline void io_write_fence(void) {
  ck_pr_fence_strict_store(); /* partner: the GPU's fetch, top to bottom */
}

/* Earlier stores through a GPU's memory BAR reach it before this returns: a
 * read of a word behind the BAR pushes the posted writes before it. */
static inline void io_flush(volatile uint32_t *word) {
  ck_pr_fence_strict_memory(); /* the stores, before the read that pushes */
  (void)ck_pr_load_32((const uint32_t *)word);
}

#ifdef RING_IO_HOOK
/* A benchmark's GPU, which moves when the doorbell is rung: called after each
 * io_store_32 by the thread that stores. */
void ring_io_hook(volatile uint32_t *to, uint32_t x);
#endif

/* One 32-bit store that the GPU looks at: GP_PUT and the doorbell. */
static inline void io_store_32(volatile uint32_t *to, uint32_t x) {
  ck_pr_store_32((uint32_t *)to, x);
#ifdef RING_IO_HOOK
  ring_io_hook(to, x);
#endif
}
#endif
