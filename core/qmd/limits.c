/* SPDX-License-Identifier: ISC */
#include "core/qmd/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/abi/classes.h"
#include "core/api/why.h"

enum {
  KIB = 1024,
  WARP = 32,
  /* CUDA C++ Programming Guide: 32-bit registers of a multiprocessor. */
  SM_REGISTERS = 65536,
  /* CUDA's occupancy calculator: registers are given to a warp by 256, and
   * warps to the four parts of a multiprocessor alike. */
  REGISTER_UNIT = 256,
  SM_PARTS = 4,
  /* SM_CONFIG fields count units of 4 KiB, from one. */
  CONFIG_UNIT_KIB = 4,
  LOCAL_THREAD_UNIT = 32,
  LOCAL_TPC_UNIT = 32 * KIB,
  LOCAL_UNIT = 128 * KIB
};

/* Where nvcc's kernels read: run on sm_89 and sm_90. */
#define BANK(at) {0x30, 0x00, 0x0c, 0x18, 0x20, 0x28, at}
/* From the disassembly of sm_120 kernels alone. */
#define BANK_BLACKWELL {0x380, 0x360, 0x370, 0x2f0, 0x2f8, 0x37c, 0x380}
/* What the driver writes for the end of the stack, on all of them. */
#define STACK_LIMIT UINT32_C(0xfffdc0)

/*
 * Configurations: CUDA C++ Programming Guide, Compute Capabilities, shared
 * memory capacity. It lists 0, 8 and 16 KiB too; launches ran with 32 and
 * more alone.
 */
static const struct limits table[] = {
    {"sm_80", 0x80, 5, {32, 64, 100, 132, 164}, BANK(0x160)},
    {"sm_86", 0x86, 3, {32, 64, 100}, BANK(0x160)},
    {"sm_87", 0x87, 5, {32, 64, 100, 132, 164}, BANK(0x160)},
    {"sm_89", 0x89, 3, {32, 64, 100}, BANK(0x160)},
    {"sm_90", 0x90, 6, {32, 64, 100, 132, 164, 228}, BANK(0x210)},
    {"sm_100", 0xa0, 6, {32, 64, 100, 132, 164, 228}, BANK_BLACKWELL},
    {"sm_120", 0xa4, 3, {32, 64, 100}, BANK_BLACKWELL},
};

static uint64_t up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

const struct limits *limits_of(uint32_t sm_version) {
  char arch[16];
  abi_arch(sm_version, arch);
  for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
    if (strcmp(table[i].arch, arch) == 0)
      return &table[i];
  }
  (void)why(RIG_NV_INVALID,
            "no launch limits are known for %s (SM version %#x)", arch,
            (unsigned)sm_version);
  return NULL;
}

uint32_t limits_shared_most(const struct limits *l) {
  return (uint32_t)l->config[l->configs - 1] * KIB;
}

int limits_shared_own(const struct limits *l, uint64_t declared,
                      uint32_t *own) {
  const uint32_t most = limits_shared_most(l) - LIMITS_SHARED_RESERVED;
  if (declared > most) {
    return why(RIG_NV_INVALID,
               "%llu bytes of shared memory exceed the %u of a block on %s",
               (unsigned long long)declared, (unsigned)most, l->arch);
  }
  *own = (uint32_t)up(LIMITS_SHARED_RESERVED + declared, LIMITS_SHARED_GRANULE);
  return 0;
}

static uint32_t code(uint32_t kib) { return kib / CONFIG_UNIT_KIB + 1; }

uint32_t limits_config(const struct limits *l, uint32_t bytes) {
  unsigned i = 0;
  while (i + 1 < l->configs && (uint32_t)l->config[i] * KIB < bytes)
    i++;
  return code(l->config[i]);
}

uint32_t limits_config_most(const struct limits *l) {
  return code(l->config[l->configs - 1]);
}

uint32_t limits_threads(uint32_t registers) {
  const uint64_t a_warp = registers == 0 ? 1 : registers;
  const uint64_t warps = SM_REGISTERS / up(a_warp * WARP, REGISTER_UNIT);
  const uint64_t threads = warps / SM_PARTS * SM_PARTS * WARP;
  return threads < LIMITS_THREADS ? (uint32_t)threads : LIMITS_THREADS;
}

static int axes(const char *what, const uint32_t size[3], uint32_t x,
                uint32_t y, uint32_t z) {
  const uint32_t most[3] = {x, y, z};
  for (unsigned i = 0; i < 3; i++) {
    if (size[i] == 0 || size[i] > most[i]) {
      return why(RIG_NV_INVALID, "a %s of %u in %c is not from 1 to %u", what,
                 (unsigned)size[i], "xyz"[i], (unsigned)most[i]);
    }
  }
  return 0;
}

int limits_size(const uint32_t grid[3], const uint32_t block[3],
                uint32_t threads) {
  int e = axes("grid", grid, LIMITS_GRID_X, LIMITS_GRID_YZ, LIMITS_GRID_YZ);
  if (e == 0)
    e = axes("block", block, LIMITS_BLOCK_XY, LIMITS_BLOCK_XY, LIMITS_BLOCK_Z);
  if (e != 0)
    return e;
  const uint64_t n = (uint64_t)block[0] * block[1] * block[2];
  if (n > threads) {
    return why(RIG_NV_INVALID,
               "a block of %llu threads exceeds the %u of its "
               "kernel",
               (unsigned long long)n, (unsigned)threads);
  }
  return 0;
}

int limits_local(const struct rig_nv_gpu *g, uint64_t need,
                 struct limits_local *out) {
  const uint64_t top = UINT64_C(1) << 40; /* SHADER_LOCAL_MEMORY methods */
  struct limits_local n = {0};
  bool fits = need < top;
  if (fits) {
    n.per_thread = up(need, LOCAL_THREAD_UNIT);
    fits = !__builtin_mul_overflow(n.per_thread * WARP, g->warps_per_sm,
                                   &n.per_tpc) &&
           !__builtin_mul_overflow(n.per_tpc, g->sms_per_tpc, &n.per_tpc) &&
           n.per_tpc < top;
  }
  if (fits) {
    n.per_tpc = up(n.per_tpc, LOCAL_TPC_UNIT);
    fits = !__builtin_mul_overflow(
               n.per_tpc, (uint64_t)g->tpcs_per_gpc * g->gpcs, &n.bytes) &&
           n.bytes < top;
  }
  if (fits) {
    n.bytes = up(n.bytes, LOCAL_UNIT);
    fits = n.bytes < top;
  }
  if (!fits) {
    return why(RIG_NV_INVALID,
               "%llu bytes of local memory a thread take 2^40 bytes or more",
               (unsigned long long)need);
  }
  *out = n;
  return 0;
}

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t bytes_of(const struct limits *l, const struct bank *b) {
  const uint64_t end = (uint64_t)b->params_offset + b->params_bytes;
  const uint32_t own = b->bytes == 0 ? l->bank.params : b->bytes;
  return most(most(end, own), l->bank.bytes);
}

int bank_bytes(const struct limits *l, const struct bank *b, uint32_t *bytes) {
  if (b->params_offset < l->bank.bytes ||
      b->params_offset > LIMITS_PARAMS_OFFSET) {
    return why(RIG_NV_INVALID,
               "parameters at %u of constant bank 0 are not from %u to %u",
               (unsigned)b->params_offset, (unsigned)l->bank.bytes,
               LIMITS_PARAMS_OFFSET);
  }
  const uint64_t n = bytes_of(l, b);
  if (n > LIMITS_BANK_BYTES) {
    return why(RIG_NV_INVALID, "a constant bank 0 of %llu bytes exceeds %u",
               (unsigned long long)n, LIMITS_BANK_BYTES);
  }
  *bytes = (uint32_t)n;
  return 0;
}

uint32_t bank_write(const struct limits *l, const struct bank *b, void *out) {
  unsigned char *at = out;
  const uint32_t n = (uint32_t)bytes_of(l, b);
  const uint32_t stack = STACK_LIMIT;
  const uint32_t end = b->params_offset + b->params_bytes;
  memset(at, 0, b->params_offset);
  memcpy(at + l->bank.block, b->block, sizeof b->block);
  memcpy(at + l->bank.grid, b->grid, sizeof b->grid);
  memcpy(at + l->bank.shared_window, &b->shared_window, 8);
  memcpy(at + l->bank.local_window, &b->local_window, 8);
  memcpy(at + l->bank.stack, &stack, sizeof stack);
  if (b->params_bytes != 0)
    memcpy(at + b->params_offset, b->params, b->params_bytes);
  memset(at + end, 0, n - end);
  return n;
}
