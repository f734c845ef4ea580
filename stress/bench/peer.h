/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_PEER_H
#define STRESS_BENCH_PEER_H
/*
 * Peer: DPDK's rte_ring, the multi-producer ring that others are measured by,
 * from the headers of libdpdk-dev if they are installed.
 *
 *   rte_ring   slots of so many bytes; a producer takes a slot by a swap of
 *              the head, fills it, and waits until every producer before it
 *              has said so, to say so itself (the tail)
 *
 * An enqueue copies as many bytes as the post of one kind writes to its rings,
 * and encodes none. Nothing is fetched: whoever finds the ring full says that
 * all of it was, as a consumer that copies nothing would. Each enqueue pays
 * for a doorbell of its own. A ring of the same memory as the segments'.
 *
 * Threads: peer_make before the others; then any.
 */
#include <stdbool.h>
#include <stdint.h>

enum { PEER_RINGS = 3 };

struct peer;

/* Whether this build has DPDK's headers. */
bool peer_built(void);
/* A ring of messages of bytes[i] each, multiples of 4. NULL: no memory, or not
 * built. */
struct peer *peer_make(const uint32_t bytes[PEER_RINGS]);
/* Enqueues on ring i, and rings a doorbell that costs so many multiplies. */
void peer_submit(struct peer *, unsigned i, uint64_t multiplies);
/* All that was enqueued so far, modulo 2^32. */
uint32_t peer_count(const struct peer *);
#endif
