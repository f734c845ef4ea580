/* SPDX-License-Identifier: ISC */
#ifndef CORE_QMD_LIMITS_H
#define CORE_QMD_LIMITS_H
/*
 * What a launch may take on each architecture: shared memory, threads, sizes,
 * local memory, and where constant bank 0 holds what kernels read of their
 * launch.
 *
 *   bank 0:  driver's words ... 0 ... | params: the kernel's parameters ...
 *
 * A kernel reads its block and grid sizes from bank 0, not from the
 * descriptor: sizes left 0 there give wrong results and no fault.
 *
 * Shared memory: a block's own is the reserved 1 KiB and what the kernel
 * declares, in granules of 128 bytes; dynamic memory comes after it. A
 * multiprocessor divides its L1 into shared memory and cache by one of a few
 * configurations.
 *
 * Everything here is constant or the caller's. Any thread.
 */
#include <stdint.h>

#include "core/api/rig_nv.h"

enum {
  /* CUDA C++ Programming Guide, Technical Specifications per Compute
   * Capability: the same from 8.0 to 12.0. */
  LIMITS_REGISTERS = 255,
  LIMITS_BARRIERS = 16,
  LIMITS_THREADS = 1024,
  LIMITS_GRID_X = 0x7fffffff,
  LIMITS_GRID_YZ = 65535,
  LIMITS_BLOCK_XY = 1024,
  LIMITS_BLOCK_Z = 64,
  LIMITS_BANKS = 8,
  LIMITS_BANK_BYTES = 65536,
  LIMITS_SHARED_RESERVED = 1024, /* of each block, from 8.0 on */
  LIMITS_SHARED_GRANULE = 128,
  /* What a kernel's local memory takes beyond its stack: what launches of
   * nvcc's kernels ran with. */
  LIMITS_LOCAL_RESERVED = 0x240,
  /* The most that precedes the parameters in bank 0. */
  LIMITS_PARAMS_OFFSET = 1024,
  LIMITS_CONFIGS = 6
};

/* Bytes from the start of bank 0. */
struct bank_layout {
  uint16_t bytes; /* the driver's part */
  uint16_t block, grid;
  uint16_t shared_window, local_window;
  uint16_t stack;
  uint16_t params; /* where the compiler starts parameters */
};

struct limits {
  const char *arch;
  uint8_t sass; /* SASS_VERSION of its descriptors */
  /* Shared-memory configurations in use, KiB, ascending; the last is the
   * most a multiprocessor has. */
  uint8_t configs;
  uint16_t config[LIMITS_CONFIGS];
  struct bank_layout bank;
};

struct limits_local {
  uint64_t per_thread, per_tpc, bytes;
};

/* What a launch writes to bank 0. Windows are the device's. */
struct bank {
  uint32_t grid[3], block[3];
  uint64_t shared_window, local_window;
  const void *params;
  uint32_t params_offset, params_bytes;
  uint32_t bytes; /* the cubin's bank 0; 0 if it has none */
};

/* The limits of an SM version as the resource manager tells it (0x900), or
 * NULL with the reason. They live as long as the program. */
const struct limits *limits_of(uint32_t sm_version);

/* The most bytes of shared memory a block has, own and dynamic. */
uint32_t limits_shared_most(const struct limits *);
/* A block's own bytes for what its kernel declares, or INVALID. */
int limits_shared_own(const struct limits *, uint64_t declared, uint32_t *own);
/* The code (as SM_CONFIG fields hold it) of the smallest configuration that
 * holds bytes, which is at most limits_shared_most, and of the largest. */
uint32_t limits_config(const struct limits *, uint32_t bytes);
uint32_t limits_config_most(const struct limits *);

/* The most threads a block of a kernel with these registers has. */
uint32_t limits_threads(uint32_t registers);
/* INVALID with the axis unless the launch has a grid and a block within the
 * maxima, and a block of at most `threads`. */
int limits_size(const uint32_t grid[3], const uint32_t block[3],
                uint32_t threads);

/* The local memory of a GPU on which each thread has `need` bytes (the stack
 * and LIMITS_LOCAL_RESERVED), or INVALID from 2^40 bytes on. */
int limits_local(const struct rig_nv_gpu *, uint64_t need,
                 struct limits_local *);

/* The bytes of bank 0, at most LIMITS_BANK_BYTES, or INVALID. */
int bank_bytes(const struct limits *, const struct bank *, uint32_t *bytes);
/* Writes bank 0 and returns its bytes, which bank_bytes gave; unchecked. out
 * is 8-byte aligned and written only. */
uint32_t bank_write(const struct limits *, const struct bank *, void *out);
#endif
