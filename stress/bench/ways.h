/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_WAYS_H
#define STRESS_BENCH_WAYS_H
/*
 * Ways to submit, the first four through the same encoder on the same GPU:
 *
 *   post      rings_post
 *   mutex     rings_room and rings_submit in an adaptive pthread mutex, which
 *             spins for a while before it sleeps
 *   spin      the same in a ck_spinlock (fetch-and-store)
 *   turn      the same in no lock: one thread
 *   rte_ring  peer.h: DPDK's ring, if it is installed; as many bytes
 *   bare      floor.h: one thread, the words of the same parts and no rings
 *   floor     floor.h: one thread, no encoder
 *   swap      swap.h: nothing but the swap that takes a value's place
 *   swap+node the same, with a node of its own for each value
 *
 * and what is submitted:
 *
 *   empty   no parts: the release alone, on COMPUTE
 *   copy    one copy of 16 bytes
 *   parts   64 of them
 *
 * Threads: way_begin with no other inside; then any submit at the same time,
 * of the ways of one thread that one.
 */
#include <stdbool.h>

#include "core/api/rig_nv.h"
#include "stress/bench/gpu.h"

enum way {
  WAY_POST,
  WAY_MUTEX,
  WAY_SPIN,
  WAY_RTE_RING,
  WAY_TURN,
  WAY_BARE,
  WAY_FLOOR, /* from here on, of no kind */
  WAY_SWAP,
  WAY_SWAP_NODE,
  WAYS
};
enum kind { KIND_EMPTY, KIND_COPY, KIND_PARTS, KINDS };

extern const char *const way_names[WAYS];
extern const char *const kind_names[KINDS];

/* Whether this build has it. */
bool way_built(enum way);
/* Whether no more than one thread may use it. */
bool way_single(enum way);

/* What the other functions use. False: no memory. */
bool ways_make(void);
/* Before threads submit: a doorbell costs so many multiplies, and whether the
 * GPU notes when it showed and released each value. */
void way_begin(enum way, uint64_t multiplies, bool stamps);
/* After them: whether everything submitted is complete. */
bool way_complete(enum way, uint64_t submissions);
/* Doorbells rung so far. */
uint64_t way_bells(enum way);

/* Submits, and returns how often the answer before that was RIG_LATER. *v is
 * the value, of WAY_POST alone. */
uint64_t way_submit(enum way, enum kind, uint64_t *v);
/* When a posted value was shown and released (gpu.h). */
enum gpu_stamped way_stamp(uint64_t v, uint64_t *shown, uint64_t *released);
#endif
