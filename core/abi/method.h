/* SPDX-License-Identifier: ISC */
#ifndef CORE_ABI_METHOD_H
#define CORE_ABI_METHOD_H
/*
 * Channel methods, unchecked: each abi_X writes the words of one operation to
 * w and returns their number, ABI_X_WORDS. These are the encoders of the hot
 * path: straight stores of constants and operands, no branch but a select.
 * rig_nv_abi.h has the checked ones, and the picture of a header word.
 *
 * The caller has made sure of the operands: addresses (and the last byte an
 * operation touches) below 2^40; semaphores 8-byte aligned, stamped ones
 * 16-byte; descriptors 256-byte; lengths and row counts above 0 (what a
 * channel does with a length of 0 is published nowhere).
 *
 * Ordering: plain stores, for memory the GPU does not read yet; the caller
 * orders them before the GP_PUT that shows them. Threads: any.
 *
 * Every name of a number is its header's, after the class it was read from:
 * open-gpu-doc, classes/host/clc56f.h, classes/compute/clc7c0.h and
 * classes/dma-copy/clc7b5.h. The later classes have the same numbers.
 */
#include <stdint.h>

#include "core/api/rig_nv_abi.h"

/* What subchannel an engine is on is this library's choice; every channel has
 * eight. Host methods (below 0x100) run whatever the subchannel. */
enum {
  ABI_SUBCHANNEL_HOST = 0,
  ABI_SUBCHANNEL_COMPUTE = 1,
  ABI_SUBCHANNEL_COPY = 4
};

/* The header word: clc56f.h, DMA_INCR. */
enum {
  NVC56F_DMA_INCR_OPCODE_VALUE = 1,
  NVC56F_DMA_INCR_OPCODE_SHIFT = 29,
  NVC56F_DMA_INCR_COUNT_SHIFT = 16,
  NVC56F_DMA_INCR_SUBCHANNEL_SHIFT = 13
};

enum abi_host_method {
  NVC56F_SET_OBJECT = 0x0,
  NVC56F_NON_STALL_INTERRUPT = 0x20,
  NVC56F_SEM_ADDR_LO = 0x5c, /* _ADDR_HI, _PAYLOAD_LO, _PAYLOAD_HI follow */
  NVC56F_SEM_EXECUTE = 0x6c
};

enum abi_sem_execute {
  NVC56F_SEM_EXECUTE_OPERATION_RELEASE = 0x1,
  NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ = 0x3,
  NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG_EN = 1 << 12,
  NVC56F_SEM_EXECUTE_RELEASE_WFI_EN = 1 << 20,
  NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT = 1 << 24,
  NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP_EN = 1 << 25
};

enum abi_compute_method {
  NVC7C0_WAIT_FOR_IDLE = 0x110,
  NVC7C0_SET_SHADER_SHARED_MEMORY_WINDOW_A = 0x2a0, /* _B follows */
  NVC7C0_SEND_PCAS_A = 0x2b4,
  NVC7C0_SEND_SIGNALING_PCAS2_B = 0x2c0,
  NVC7C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A = 0x2e4, /* _B, _C follow */
  NVC7C0_SET_SHADER_LOCAL_MEMORY_A = 0x790,               /* _B follows */
  NVC7C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A = 0x7b0,        /* _B follows */
  NVC7C0_INVALIDATE_SHADER_CACHES_NO_WFI = 0x1698
};

enum abi_compute_value {
  NVC7C0_SEND_PCAS_A_QMD_ADDRESS_SHIFT = 8,
  NVC7C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_PREFETCH_SCHEDULE = 0x9,
  /* MAX_SM_COUNT: more than any TPC has, so that every SM has its share. */
  ABI_LOCAL_MEMORY_EVERY_SM = 0xff,
  NVC7C0_INVALIDATE_SHADER_CACHES_NO_WFI_INSTRUCTION_TRUE = 1 << 0,
  NVC7C0_INVALIDATE_SHADER_CACHES_NO_WFI_GLOBAL_DATA_TRUE = 1 << 4,
  NVC7C0_INVALIDATE_SHADER_CACHES_NO_WFI_CONSTANT_TRUE = 1 << 12
};

/* After OFFSET_IN_UPPER, one word each: OFFSET_IN_LOWER, OFFSET_OUT_UPPER,
 * OFFSET_OUT_LOWER, PITCH_IN, PITCH_OUT, LINE_LENGTH_IN, LINE_COUNT. */
enum abi_copy_method {
  NVC7B5_SET_SEMAPHORE_A = 0x240, /* _B, _PAYLOAD, _PAYLOAD_UPPER follow */
  NVC7B5_LAUNCH_DMA = 0x300,
  NVC7B5_OFFSET_IN_UPPER = 0x400,
  NVC7B5_OFFSET_OUT_UPPER = 0x408,
  NVC7B5_LINE_LENGTH_IN = 0x418,
  NVC7B5_SET_REMAP_CONST_A = 0x700,
  NVC7B5_SET_REMAP_COMPONENTS = 0x708
};

enum abi_launch_dma {
  NVC7B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED = 0x2,
  NVC7B5_LAUNCH_DMA_FLUSH_ENABLE_TRUE = 1 << 2,
  NVC7B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_ONE_WORD_SEMAPHORE = 1 << 3,
  NVC7B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_FOUR_WORD_SEMAPHORE = 2 << 3,
  NVC7B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_PITCH = 1 << 7,
  NVC7B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH = 1 << 8,
  NVC7B5_LAUNCH_DMA_MULTI_LINE_ENABLE_TRUE = 1 << 9,
  NVC7B5_LAUNCH_DMA_REMAP_ENABLE_TRUE = 1 << 10,
  NVC7B5_LAUNCH_DMA_SEMAPHORE_PAYLOAD_SIZE_TWO_WORD = 1 << 27
};

enum abi_remap_components {
  NVC7B5_SET_REMAP_COMPONENTS_DST_X_CONST_A = 4,
  NVC7B5_SET_REMAP_COMPONENTS_DST_Y_CONST_A = 4 << 4,
  NVC7B5_SET_REMAP_COMPONENTS_DST_Z_CONST_A = 4 << 8,
  NVC7B5_SET_REMAP_COMPONENTS_DST_W_CONST_A = 4 << 12,
  NVC7B5_SET_REMAP_COMPONENTS_COMPONENT_SIZE_SHIFT = 16, /* bytes - 1 */
  NVC7B5_SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS_ONE = 0 << 20,
  NVC7B5_SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS_ONE = 0 << 24
};

enum abi_words {
  ABI_SET_OBJECT_WORDS = 2,
  ABI_ACQUIRE_WORDS = 6,
  ABI_RELEASE_WORDS = 6,
  ABI_RELEASE_STAMP_WORDS = 6,
  ABI_INTERRUPT_WORDS = 2,
  ABI_SHARED_WINDOW_WORDS = 3,
  ABI_LOCAL_WINDOW_WORDS = 3,
  ABI_LOCAL_MEMORY_WORDS = 7,
  ABI_INVALIDATE_CACHES_WORDS = 2,
  ABI_WAIT_FOR_IDLE_WORDS = 2,
  ABI_SCHEDULE_WORDS = 4,
  ABI_COPY_WORDS = 9,
  ABI_BOX_WORDS = 11,
  ABI_FILL_WORDS = 11,
  ABI_COPY_RELEASE_WORDS = 7,
  ABI_COPY_RELEASE_STAMP_WORDS = 7
};
_Static_assert(ABI_BOX_WORDS <= RIG_NV_MOST_WORDS &&
                   ABI_FILL_WORDS <= RIG_NV_MOST_WORDS,
               "the public bound holds for the longest operations");

/* The header of `count` words for the methods from `method` on. */
static inline uint32_t abi_incr(uint32_t count, uint32_t subchannel,
                                uint32_t method) {
  return (uint32_t)NVC56F_DMA_INCR_OPCODE_VALUE
             << NVC56F_DMA_INCR_OPCODE_SHIFT |
         count << NVC56F_DMA_INCR_COUNT_SHIFT |
         subchannel << NVC56F_DMA_INCR_SUBCHANNEL_SHIFT | method >> 2;
}

static inline uint32_t abi_lo(uint64_t x) { return (uint32_t)x; }
static inline uint32_t abi_hi(uint64_t x) { return (uint32_t)(x >> 32); }

static inline unsigned abi_set_object(uint32_t *w, enum rig_nv_engine engine,
                                      uint32_t cls) {
  w[0] = abi_incr(1,
                  engine == RIG_NV_COMPUTE ? ABI_SUBCHANNEL_COMPUTE
                                           : ABI_SUBCHANNEL_COPY,
                  NVC56F_SET_OBJECT);
  w[1] = cls;
  return ABI_SET_OBJECT_WORDS;
}

/* Host semaphores: address, payload and what to do, in one run of methods. */
static inline unsigned abi_semaphore(uint32_t *w, uint64_t addr, uint64_t v,
                                     uint32_t execute) {
  w[0] = abi_incr(5, ABI_SUBCHANNEL_HOST, NVC56F_SEM_ADDR_LO);
  w[1] = abi_lo(addr);
  w[2] = abi_hi(addr);
  w[3] = abi_lo(v);
  w[4] = abi_hi(v);
  w[5] = execute;
  return ABI_ACQUIRE_WORDS;
}

/* Waits for the word in circular order. While it waits, the group's other
 * channels may run: the one that releases the word may be among them. */
static inline unsigned abi_acquire(uint32_t *w, uint64_t addr, uint64_t v) {
  return abi_semaphore(w, addr, v,
                       NVC56F_SEM_EXECUTE_OPERATION_ACQ_CIRC_GEQ |
                           NVC56F_SEM_EXECUTE_ACQUIRE_SWITCH_TSG_EN |
                           NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT);
}

static inline unsigned abi_release(uint32_t *w, uint64_t addr, uint64_t v) {
  return abi_semaphore(w, addr, v,
                       NVC56F_SEM_EXECUTE_OPERATION_RELEASE |
                           NVC56F_SEM_EXECUTE_RELEASE_WFI_EN |
                           NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT);
}

static inline unsigned abi_release_stamp(uint32_t *w, uint64_t addr,
                                         uint64_t v) {
  return abi_semaphore(w, addr, v,
                       NVC56F_SEM_EXECUTE_OPERATION_RELEASE |
                           NVC56F_SEM_EXECUTE_RELEASE_WFI_EN |
                           NVC56F_SEM_EXECUTE_PAYLOAD_SIZE_64BIT |
                           NVC56F_SEM_EXECUTE_RELEASE_TIMESTAMP_EN);
}

static inline unsigned abi_interrupt(uint32_t *w) {
  w[0] = abi_incr(1, ABI_SUBCHANNEL_HOST, NVC56F_NON_STALL_INTERRUPT);
  w[1] = 0;
  return ABI_INTERRUPT_WORDS;
}

static inline unsigned abi_shared_window(uint32_t *w, uint64_t addr) {
  w[0] = abi_incr(2, ABI_SUBCHANNEL_COMPUTE,
                  NVC7C0_SET_SHADER_SHARED_MEMORY_WINDOW_A);
  w[1] = abi_hi(addr);
  w[2] = abi_lo(addr);
  return ABI_SHARED_WINDOW_WORDS;
}

static inline unsigned abi_local_window(uint32_t *w, uint64_t addr) {
  w[0] = abi_incr(2, ABI_SUBCHANNEL_COMPUTE,
                  NVC7C0_SET_SHADER_LOCAL_MEMORY_WINDOW_A);
  w[1] = abi_hi(addr);
  w[2] = abi_lo(addr);
  return ABI_LOCAL_WINDOW_WORDS;
}

static inline unsigned abi_local_memory(uint32_t *w, uint64_t addr,
                                        uint64_t per_tpc) {
  w[0] = abi_incr(2, ABI_SUBCHANNEL_COMPUTE, NVC7C0_SET_SHADER_LOCAL_MEMORY_A);
  w[1] = abi_hi(addr);
  w[2] = abi_lo(addr);
  w[3] = abi_incr(3, ABI_SUBCHANNEL_COMPUTE,
                  NVC7C0_SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A);
  w[4] = abi_hi(per_tpc);
  w[5] = abi_lo(per_tpc);
  w[6] = ABI_LOCAL_MEMORY_EVERY_SM;
  return ABI_LOCAL_MEMORY_WORDS;
}

static inline unsigned abi_invalidate_caches(uint32_t *w) {
  w[0] = abi_incr(1, ABI_SUBCHANNEL_COMPUTE,
                  NVC7C0_INVALIDATE_SHADER_CACHES_NO_WFI);
  w[1] = NVC7C0_INVALIDATE_SHADER_CACHES_NO_WFI_INSTRUCTION_TRUE |
         NVC7C0_INVALIDATE_SHADER_CACHES_NO_WFI_GLOBAL_DATA_TRUE |
         NVC7C0_INVALIDATE_SHADER_CACHES_NO_WFI_CONSTANT_TRUE;
  return ABI_INVALIDATE_CACHES_WORDS;
}

static inline unsigned abi_wait_for_idle(uint32_t *w) {
  w[0] = abi_incr(1, ABI_SUBCHANNEL_COMPUTE, NVC7C0_WAIT_FOR_IDLE);
  w[1] = 0;
  return ABI_WAIT_FOR_IDLE_WORDS;
}

static inline unsigned abi_schedule(uint32_t *w, uint64_t addr) {
  w[0] = abi_incr(1, ABI_SUBCHANNEL_COMPUTE, NVC7C0_SEND_PCAS_A);
  w[1] = (uint32_t)(addr >> NVC7C0_SEND_PCAS_A_QMD_ADDRESS_SHIFT);
  w[2] = abi_incr(1, ABI_SUBCHANNEL_COMPUTE, NVC7C0_SEND_SIGNALING_PCAS2_B);
  w[3] = NVC7C0_SEND_SIGNALING_PCAS2_B_PCAS_ACTION_PREFETCH_SCHEDULE;
  return ABI_SCHEDULE_WORDS;
}

/* Linear memory at virtual addresses on both sides. NON_PIPELINED: a copy
 * starts after the copies before it, so that one may read what another wrote.
 * Without MULTI_LINE_ENABLE the engine looks at neither pitch nor line count,
 * so nothing of an earlier box is left in a copy or fill of one line. */
enum {
  ABI_LAUNCH_LINEAR = NVC7B5_LAUNCH_DMA_DATA_TRANSFER_TYPE_NON_PIPELINED |
                      NVC7B5_LAUNCH_DMA_SRC_MEMORY_LAYOUT_PITCH |
                      NVC7B5_LAUNCH_DMA_DST_MEMORY_LAYOUT_PITCH
};

static inline unsigned abi_copy(uint32_t *w, uint64_t dst, uint64_t src,
                                uint32_t n) {
  w[0] = abi_incr(4, ABI_SUBCHANNEL_COPY, NVC7B5_OFFSET_IN_UPPER);
  w[1] = abi_hi(src);
  w[2] = abi_lo(src);
  w[3] = abi_hi(dst);
  w[4] = abi_lo(dst);
  w[5] = abi_incr(1, ABI_SUBCHANNEL_COPY, NVC7B5_LINE_LENGTH_IN);
  w[6] = n;
  w[7] = abi_incr(1, ABI_SUBCHANNEL_COPY, NVC7B5_LAUNCH_DMA);
  w[8] = ABI_LAUNCH_LINEAR;
  return ABI_COPY_WORDS;
}

static inline unsigned abi_box(uint32_t *w, uint64_t dst, uint64_t src,
                               uint32_t dst_pitch, uint32_t src_pitch,
                               uint32_t rows, uint32_t n) {
  w[0] = abi_incr(8, ABI_SUBCHANNEL_COPY, NVC7B5_OFFSET_IN_UPPER);
  w[1] = abi_hi(src);
  w[2] = abi_lo(src);
  w[3] = abi_hi(dst);
  w[4] = abi_lo(dst);
  w[5] = src_pitch;
  w[6] = dst_pitch;
  w[7] = n;
  w[8] = rows;
  w[9] = abi_incr(1, ABI_SUBCHANNEL_COPY, NVC7B5_LAUNCH_DMA);
  w[10] = ABI_LAUNCH_LINEAR | NVC7B5_LAUNCH_DMA_MULTI_LINE_ENABLE_TRUE;
  return ABI_BOX_WORDS;
}

/* Every destination component is the constant: no source component is named,
 * so no memory is read. With REMAP_ENABLE the line's length counts elements,
 * here of one component. v is cut to the component's bytes: no header says
 * what the engine does with the bits above them. */
static inline unsigned abi_fill(uint32_t *w, enum rig_nv_component component,
                                uint64_t dst, uint32_t v, uint32_t n) {
  const uint32_t bytes = (uint32_t)component;
  w[0] = abi_incr(2, ABI_SUBCHANNEL_COPY, NVC7B5_OFFSET_OUT_UPPER);
  w[1] = abi_hi(dst);
  w[2] = abi_lo(dst);
  w[3] = abi_incr(1, ABI_SUBCHANNEL_COPY, NVC7B5_LINE_LENGTH_IN);
  w[4] = n;
  w[5] = abi_incr(1, ABI_SUBCHANNEL_COPY, NVC7B5_SET_REMAP_CONST_A);
  w[6] = v & UINT32_MAX >> (32 - 8 * bytes);
  w[7] = abi_incr(1, ABI_SUBCHANNEL_COPY, NVC7B5_SET_REMAP_COMPONENTS);
  w[8] = NVC7B5_SET_REMAP_COMPONENTS_DST_X_CONST_A |
         NVC7B5_SET_REMAP_COMPONENTS_DST_Y_CONST_A |
         NVC7B5_SET_REMAP_COMPONENTS_DST_Z_CONST_A |
         NVC7B5_SET_REMAP_COMPONENTS_DST_W_CONST_A |
         (bytes - 1) << NVC7B5_SET_REMAP_COMPONENTS_COMPONENT_SIZE_SHIFT |
         NVC7B5_SET_REMAP_COMPONENTS_NUM_SRC_COMPONENTS_ONE |
         NVC7B5_SET_REMAP_COMPONENTS_NUM_DST_COMPONENTS_ONE;
  w[9] = abi_incr(1, ABI_SUBCHANNEL_COPY, NVC7B5_LAUNCH_DMA);
  w[10] = ABI_LAUNCH_LINEAR | NVC7B5_LAUNCH_DMA_REMAP_ENABLE_TRUE;
  return ABI_FILL_WORDS;
}

/* A launch that moves nothing: flushes what the copies before it wrote out to
 * where every reader sees it, then writes the semaphore. */
static inline unsigned abi_copy_semaphore(uint32_t *w, uint64_t addr,
                                          uint64_t v, uint32_t type) {
  w[0] = abi_incr(4, ABI_SUBCHANNEL_COPY, NVC7B5_SET_SEMAPHORE_A);
  w[1] = abi_hi(addr);
  w[2] = abi_lo(addr);
  w[3] = abi_lo(v);
  w[4] = abi_hi(v);
  w[5] = abi_incr(1, ABI_SUBCHANNEL_COPY, NVC7B5_LAUNCH_DMA);
  w[6] = type | NVC7B5_LAUNCH_DMA_FLUSH_ENABLE_TRUE |
         NVC7B5_LAUNCH_DMA_SEMAPHORE_PAYLOAD_SIZE_TWO_WORD;
  return ABI_COPY_RELEASE_WORDS;
}

static inline unsigned abi_copy_release(uint32_t *w, uint64_t addr,
                                        uint64_t v) {
  return abi_copy_semaphore(
      w, addr, v, NVC7B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_ONE_WORD_SEMAPHORE);
}

/* The engine's four-word semaphore: the payload, then the timer. */
static inline unsigned abi_copy_release_stamp(uint32_t *w, uint64_t addr,
                                              uint64_t v) {
  return abi_copy_semaphore(
      w, addr, v, NVC7B5_LAUNCH_DMA_SEMAPHORE_TYPE_RELEASE_FOUR_WORD_SEMAPHORE);
}
#endif
