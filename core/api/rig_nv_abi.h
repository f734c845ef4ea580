/* SPDX-License-Identifier: ISC */
#ifndef RIG_NV_ABI_H
#define RIG_NV_ABI_H
/*
 * rig_nv_abi: the words that NVIDIA's channels run, for code that writes its
 * own ring entries (RIG_WORDS).
 *
 * A channel runs pushbuffer segments. In a segment, a header word names a
 * subchannel, a method and a count; the count words after it are the arguments
 * of that method and of the methods after it, one each:
 *
 *   31..29  28..16  15..13      12..0
 *   001     count   subchannel  method / 4      incrementing methods
 *
 * Compute methods go to subchannel 1, copy methods to 4, host methods, which
 * every channel runs, to 0. Compute methods are those of the compute classes
 * from AMPERE_COMPUTE_B (0xc7c0) on, copy methods those of the copy classes
 * from AMPERE_DMA_COPY_B (0xc7b5) on. Sources: NVIDIA's open-gpu-doc,
 * classes/{host,compute,dma-copy}.
 *
 * Each function writes the words of one operation, headers included, to w and
 * returns their number, at most RIG_NV_MOST_WORDS. Where an operand is refused
 * it writes nothing and returns -RIG_NV_INVALID; rig_nv_why names the operand.
 * Addresses are the GPU's virtual addresses, below 2^40. A semaphore is a
 * 64-bit word, 8-byte aligned; a stamped release also writes the GPU's timer
 * in nanoseconds to the 8 bytes at addr + 8, and its addr is 16-byte aligned.
 *
 * Threads: any, at the same time; no state but rig_nv_why's.
 */
#include <stddef.h>
#include <stdint.h>

#include "rig_edge.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RIG_NV_MOST_WORDS 16
/* The most bytes of one line of the copy engine, and of one fill: 2 GiB. */
#define RIG_NV_MAX_COPY (UINT64_C(1) << 31)
/* The most words of one segment: the width of a ring entry's LENGTH. */
#define RIG_NV_MAX_SEGMENT ((UINT64_C(1) << 21) - 1)

enum rig_nv_engine { RIG_NV_COMPUTE, RIG_NV_COPY };
enum rig_nv_component { RIG_NV_1B = 1, RIG_NV_2B = 2, RIG_NV_4B = 4 };

/* A GPU as compiled code sees it. Windows are the GPU addresses at which its
 * kernels see shared and local memory. */
struct rig_nv_gpu {
  uint32_t channel_class, compute_class, copy_class, sm_version;
  uint32_t gpcs, tpcs_per_gpc, sms_per_tpc, warps_per_sm;
  uint64_t shared_window, local_window;
};

/* Binds the engine of class cls (0..0xffff) to the engine's subchannel. A
 * channel runs no method of the engine before it. */
RIG_PUBLIC int rig_nv_set_object(uint32_t *w, enum rig_nv_engine, uint32_t cls);
/* Stops the channel until the semaphore at addr is at least v in circular
 * order. */
RIG_PUBLIC int rig_nv_acquire(uint32_t *w, uint64_t addr, uint64_t v);
/* Waits for the channel's earlier work, every engine idle, then writes v to
 * the semaphore at addr: whoever reads v sees that work's writes. */
RIG_PUBLIC int rig_nv_release_word(uint32_t *w, uint64_t addr, uint64_t v);
RIG_PUBLIC int rig_nv_release_stamp(uint32_t *w, uint64_t addr, uint64_t v);
/* Raises a non-stalling interrupt when the channel reaches it. */
RIG_PUBLIC int rig_nv_interrupt(uint32_t *w);
/* Make kernels' shared and local memory appear at addr. */
RIG_PUBLIC int rig_nv_shared_memory_window(uint32_t *w, uint64_t addr);
RIG_PUBLIC int rig_nv_local_memory_window(uint32_t *w, uint64_t addr);
/* Gives kernels the local memory at addr, per_tpc bytes a TPC (below 2^40). A
 * launch scheduled before it must have completed. */
RIG_PUBLIC int rig_nv_local_memory(uint32_t *w, uint64_t addr,
                                   uint64_t per_tpc);
/* Invalidates the compute engine's instruction, data and constant caches for
 * launches scheduled after it; waits for nothing. */
RIG_PUBLIC int rig_nv_invalidate_caches(uint32_t *w);
/* Holds later compute methods until earlier launches have completed. */
RIG_PUBLIC int rig_nv_wait_for_idle(uint32_t *w);
/* Schedules the launch descriptor at addr, 256-byte aligned. */
RIG_PUBLIC int rig_nv_schedule(uint32_t *w, uint64_t addr);
/* Copies n bytes, 1..RIG_NV_MAX_COPY, in one launch of one line. Lengths and
 * counts of 0 are refused, here and below. */
RIG_PUBLIC int rig_nv_copy(uint32_t *w, uint64_t dst, uint64_t src, uint64_t n);
/* Copies rows rows of n bytes, row i from src + i * src_pitch to
 * dst + i * dst_pitch, in one launch; rows and pitches are below 2^32. */
RIG_PUBLIC int rig_nv_box(uint32_t *w, uint64_t dst, uint64_t src,
                          uint64_t dst_pitch, uint64_t src_pitch, uint64_t rows,
                          uint64_t n);
/* Writes n components from dst, each the low bytes of v, least significant
 * first, reading no memory; at most RIG_NV_MAX_COPY bytes. */
RIG_PUBLIC int rig_nv_fill(uint32_t *w, enum rig_nv_component, uint64_t dst,
                           uint32_t v, uint64_t n);
/* Writes v to the semaphore at addr once the copy engine's earlier copies are
 * complete and visible. */
RIG_PUBLIC int rig_nv_copy_release(uint32_t *w, uint64_t addr, uint64_t v);
RIG_PUBLIC int rig_nv_copy_release_stamp(uint32_t *w, uint64_t addr,
                                         uint64_t v);
/* The ring entry of the segment of `words` words (1..RIG_NV_MAX_SEGMENT) at
 * addr, 4-byte aligned. 0, or -RIG_NV_INVALID with *entry unchanged. */
RIG_PUBLIC int rig_nv_gpfifo_entry(uint64_t addr, uint64_t words,
                                   uint64_t *entry);

#ifdef __cplusplus
}
#endif
#endif
