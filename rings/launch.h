/* SPDX-License-Identifier: ISC */
#ifndef RINGS_LAUNCH_H
#define RINGS_LAUNCH_H
/*
 * Launches: a function made ready, and what a launch of it takes of the launch
 * ring.
 *
 *   launch ring, in units of 256 bytes; a value's launches lie in one piece
 *
 *        | descriptor | bank 0 .... | pad | descriptor | bank 0 | pad |
 *        0            256 or 384          (256 k)
 *
 * The GPU reads both by address, when the launch is scheduled or later, until
 * it has completed; the piece is free once its value is reached.
 *
 * Threads: a struct launch does not change from the time its image gives it
 * out to unload. The functions are called by whoever holds the launch's piece.
 */
#include <stdbool.h>

#include "core/api/rig_nv.h"
#include "core/qmd/qmd.h"

enum { LAUNCH_UNIT = QMD_ALIGN };

/* What rig_launch.launch points to. */
struct launch {
  struct qmd_template descriptor;
  const struct limits *limits;
  uint32_t threads;       /* the most in a block */
  uint32_t dynamic_most;  /* bytes of dynamic shared memory, a multiple of
                           * LIMITS_SHARED_GRANULE */
  uint32_t params_offset; /* in bank 0; a multiple of 8 */
  uint32_t params_bytes;  /* that the kernel reads; at most LIMITS_BANK_BYTES
                           * less params_offset */
  uint32_t bank_bytes;    /* the cubin's bank 0, or 0 */
};

/* Whether the part's block, parameters and refs lie where they may, and its
 * sizes are ones that the function runs with. */
bool launch_lawful(const struct rig_submission *, const struct rig_launch *);

/* Units that a lawful launch takes. */
uint32_t launch_units(const struct rig_launch *);

/* Writes bank 0 of a lawful launch to ring memory at `at`, which the GPU sees
 * at `gpu`, LAUNCH_UNIT-aligned both, and fills in *args but for what only the
 * next part tells: next, release, membar. */
void launch_write_bank(const struct rig_submission *, const struct rig_launch *,
                       const struct rig_nv_gpu *, unsigned char *at,
                       uint64_t gpu, struct qmd_args *args);
/* Writes its descriptor there. */
void launch_write_descriptor(const struct rig_launch *,
                             const struct qmd_args *args, unsigned char *at);
#endif
