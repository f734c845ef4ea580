/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_WAYS_H
#define STRESS_BENCH_WAYS_H
/*
 * Ways to submit, all through the same encoder on the same GPU:
 *
 *   post    rings_post
 *   mutex   rings_room and rings_submit in an adaptive pthread mutex, which
 *           spins for a while before it sleeps
 *   spin    the same in a ck_spinlock (fetch-and-store)
 *   floor   floor.h: one thread, no encoder
 *
 * and what is submitted:
 *
 *   empty   no parts: the release alone, on COMPUTE
 *   copy    one copy of 16 bytes
 *   parts   64 of them
 *
 * Threads: way_begin with no other inside; then any submit at the same time,
 * floor's one.
 */
#include <stdbool.h>

#include "core/api/rig_nv.h"

enum way { WAY_POST, WAY_MUTEX, WAY_SPIN, WAY_FLOOR, WAYS };
enum kind { KIND_EMPTY, KIND_COPY, KIND_PARTS, KINDS };

extern const char *const way_names[WAYS];
extern const char *const kind_names[KINDS];

/* What the other functions use. False: no memory. */
bool ways_make(void);
/* Before threads submit: a doorbell costs so many multiplies. */
void way_begin(enum way, uint64_t multiplies);
/* After them: whether everything submitted is complete. */
bool way_complete(enum way, uint64_t submissions);
/* Doorbells rung so far. */
uint64_t way_bells(enum way);

/* Submits, and returns how often the answer before that was RIG_LATER. */
uint64_t way_submit(enum way, enum kind);
#endif
