/* SPDX-License-Identifier: ISC */
/*
 * The checked encoders of rig_nv_abi.h: each operand is looked at in the
 * order of the arguments, then abi_X of method.h writes. A length or a row
 * count of 0 is refused: no header says what an engine does with one, and a
 * caller that has nothing to move leaves the operation out.
 */
#include "core/abi/method.h"

#include <inttypes.h>

#include "core/abi/gpfifo.h"
#include "core/api/why.h"

#define ADDRESS_BITS 40
#define ADDRESSES (UINT64_C(1) << ADDRESS_BITS)
#define MOST_CLASS 0xffff /* SET_OBJECT's NVCLASS, 15:0 */

enum {
  SEMAPHORE_BYTES = 8,
  STAMPED_BYTES = 16,
  DESCRIPTOR_BYTES = 256, /* SEND_PCAS_A takes the address shifted by 8 */
  WORD_BYTES = 4
};

/* The checks return 0, or -RIG_NV_INVALID with the operation and the operand
 * in the reason. */

static int below(const char *op, const char *name, uint64_t x, unsigned bits) {
  if (x >> bits == 0)
    return 0;
  return why(RIG_NV_INVALID, "%s: %s 0x%" PRIx64 " is not below 2^%u", op, name,
             x, bits);
}

static int address(const char *op, const char *name, uint64_t x,
                   unsigned alignment) {
  if (x % alignment != 0) {
    return why(RIG_NV_INVALID, "%s: %s 0x%" PRIx64 " is not %u-byte aligned",
               op, name, x, alignment);
  }
  return below(op, name, x, ADDRESS_BITS);
}

static int span(const char *op, const char *name, uint64_t x, uint64_t n) {
  const int refused = below(op, name, x, ADDRESS_BITS);
  if (refused)
    return refused;
  if (n <= ADDRESSES - x)
    return 0;
  return why(RIG_NV_INVALID,
             "%s: %s 0x%" PRIx64 " and 0x%" PRIx64 " bytes end above 2^%d", op,
             name, x, n, ADDRESS_BITS);
}

/* Of rows of n bytes: what is checked of a pitch and rows below 2^32 does not
 * overflow, the last row's offset being below 2^64. */
static int rows_span(const char *name, uint64_t x, uint64_t pitch,
                     uint64_t rows, uint64_t n) {
  const int refused = below("box", name, x, ADDRESS_BITS);
  if (refused)
    return refused;
  const uint64_t last = (rows - 1) * pitch;
  if (last <= ADDRESSES - x && n <= ADDRESSES - x - last)
    return 0;
  return why(RIG_NV_INVALID,
             "box: %s 0x%" PRIx64 " and %" PRIu64 " rows of 0x%" PRIx64
             " bytes, 0x%" PRIx64 " apart, end above 2^%d",
             name, x, rows, n, pitch, ADDRESS_BITS);
}

static int count(const char *op, const char *name, uint64_t n, uint64_t most) {
  if (n == 0)
    return why(RIG_NV_INVALID, "%s: %s is 0", op, name);
  if (n <= most)
    return 0;
  return why(RIG_NV_INVALID, "%s: %s %" PRIu64 " is above %" PRIu64, op, name,
             n, most);
}

int rig_nv_set_object(uint32_t *w, enum rig_nv_engine engine, uint32_t cls) {
  if (engine != RIG_NV_COMPUTE && engine != RIG_NV_COPY) {
    return why(RIG_NV_INVALID, "set_object: engine %d is unknown", (int)engine);
  }
  if (cls > MOST_CLASS) {
    return why(RIG_NV_INVALID, "set_object: cls 0x%" PRIx32 " is above 0x%x",
               cls, MOST_CLASS);
  }
  return (int)abi_set_object(w, engine, cls);
}

int rig_nv_acquire(uint32_t *w, uint64_t addr, uint64_t v) {
  const int refused = address("acquire", "addr", addr, SEMAPHORE_BYTES);
  return refused ? refused : (int)abi_acquire(w, addr, v);
}

int rig_nv_release_word(uint32_t *w, uint64_t addr, uint64_t v) {
  const int refused = address("release_word", "addr", addr, SEMAPHORE_BYTES);
  return refused ? refused : (int)abi_release(w, addr, v);
}

int rig_nv_release_stamp(uint32_t *w, uint64_t addr, uint64_t v) {
  const int refused = address("release_stamp", "addr", addr, STAMPED_BYTES);
  return refused ? refused : (int)abi_release_stamp(w, addr, v);
}

int rig_nv_interrupt(uint32_t *w) { return (int)abi_interrupt(w); }

int rig_nv_shared_memory_window(uint32_t *w, uint64_t addr) {
  const int refused = below("shared_memory_window", "addr", addr, ADDRESS_BITS);
  return refused ? refused : (int)abi_shared_window(w, addr);
}

int rig_nv_local_memory_window(uint32_t *w, uint64_t addr) {
  const int refused = below("local_memory_window", "addr", addr, ADDRESS_BITS);
  return refused ? refused : (int)abi_local_window(w, addr);
}

int rig_nv_local_memory(uint32_t *w, uint64_t addr, uint64_t per_tpc) {
  int refused = below("local_memory", "addr", addr, ADDRESS_BITS);
  if (!refused) {
    refused = below("local_memory", "per_tpc", per_tpc, ADDRESS_BITS);
  }
  if (!refused)
    refused = span("local_memory", "addr", addr, per_tpc);
  return refused ? refused : (int)abi_local_memory(w, addr, per_tpc);
}

int rig_nv_invalidate_caches(uint32_t *w) {
  return (int)abi_invalidate_caches(w);
}

int rig_nv_wait_for_idle(uint32_t *w) { return (int)abi_wait_for_idle(w); }

int rig_nv_schedule(uint32_t *w, uint64_t addr) {
  const int refused = address("schedule", "addr", addr, DESCRIPTOR_BYTES);
  return refused ? refused : (int)abi_schedule(w, addr);
}

int rig_nv_copy(uint32_t *w, uint64_t dst, uint64_t src, uint64_t n) {
  int refused = count("copy", "n", n, RIG_NV_MAX_COPY);
  if (!refused)
    refused = span("copy", "dst", dst, n);
  if (!refused)
    refused = span("copy", "src", src, n);
  return refused ? refused : (int)abi_copy(w, dst, src, (uint32_t)n);
}

int rig_nv_box(uint32_t *w, uint64_t dst, uint64_t src, uint64_t dst_pitch,
               uint64_t src_pitch, uint64_t rows, uint64_t n) {
  int refused = below("box", "dst_pitch", dst_pitch, 32);
  if (!refused)
    refused = below("box", "src_pitch", src_pitch, 32);
  if (!refused)
    refused = count("box", "rows", rows, UINT32_MAX);
  if (!refused)
    refused = count("box", "n", n, RIG_NV_MAX_COPY);
  if (!refused)
    refused = rows_span("dst", dst, dst_pitch, rows, n);
  if (!refused)
    refused = rows_span("src", src, src_pitch, rows, n);
  if (refused)
    return refused;
  return (int)abi_box(w, dst, src, (uint32_t)dst_pitch, (uint32_t)src_pitch,
                      (uint32_t)rows, (uint32_t)n);
}

int rig_nv_fill(uint32_t *w, enum rig_nv_component component, uint64_t dst,
                uint32_t v, uint64_t n) {
  if (component != RIG_NV_1B && component != RIG_NV_2B &&
      component != RIG_NV_4B) {
    return why(RIG_NV_INVALID, "fill: component %d is unknown", (int)component);
  }
  const uint64_t bytes = (uint64_t)component;
  int refused = count("fill", "n", n, RIG_NV_MAX_COPY / bytes);
  if (!refused)
    refused = span("fill", "dst", dst, n * bytes);
  return refused ? refused : (int)abi_fill(w, component, dst, v, (uint32_t)n);
}

int rig_nv_copy_release(uint32_t *w, uint64_t addr, uint64_t v) {
  const int refused = address("copy_release", "addr", addr, SEMAPHORE_BYTES);
  return refused ? refused : (int)abi_copy_release(w, addr, v);
}

int rig_nv_copy_release_stamp(uint32_t *w, uint64_t addr, uint64_t v) {
  const int refused =
      address("copy_release_stamp", "addr", addr, STAMPED_BYTES);
  return refused ? refused : (int)abi_copy_release_stamp(w, addr, v);
}

int rig_nv_gpfifo_entry(uint64_t addr, uint64_t words, uint64_t *entry) {
  int refused = address("gpfifo_entry", "addr", addr, WORD_BYTES);
  if (!refused) {
    refused = count("gpfifo_entry", "words", words, RIG_NV_MAX_SEGMENT);
  }
  if (!refused) {
    refused = span("gpfifo_entry", "addr", addr, words * WORD_BYTES);
  }
  if (refused)
    return refused;
  *entry = abi_gpfifo_entry(addr, words);
  return 0;
}
