/* SPDX-License-Identifier: ISC */
#ifndef RINGS_SETUP_H
#define RINGS_SETUP_H
/*
 * Setup: what the COMPUTE channel must be told before the next launches. Local
 * memory for kernels, and that code may lie where other code was.
 *
 *   rings.setup -> record n      the newest, immutable; NULL before the first
 *   cursor.setup = m             the record that the last value knew
 *
 * The value whose swap of the tail moves cursor.setup from m to n carries what
 * changed after m: exactly one value carries each change, after its waits and
 * before its parts, and every later launch comes after it. A value that enters
 * COMPUTE reads the record after the tail. The tail's cursor knew a record
 * that was newest before, so the one read is that one or a later one: m never
 * goes back.
 *
 * Sequence numbers are compared in circular order (setup_after).
 *
 * Ordering: ring_rcu_assign of the pointer, by whoever changes it under the
 * device's local memory lock, with ring_rcu_dereference by whoever reserves. A
 * thread that saw a change made reserves with it or a later one.
 */
#include <stdbool.h>
#include <stdint.h>

struct setup {
  uint32_t seq;       /* the last record's + 1; the first one's is 1 */
  uint32_t local_seq; /* of the record that changed local memory last */
  uint32_t code_seq;  /* of the record that asked to invalidate caches last */
  uint64_t local;     /* local memory's GPU address; 0: none yet */
  uint64_t local_per_tpc;
};

/* Whether a comes after b. */
static inline bool setup_after(uint32_t a, uint32_t b) {
  return (int32_t)(a - b) > 0;
}
#endif
