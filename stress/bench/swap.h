/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_SWAP_H
#define STRESS_BENCH_SWAP_H
/*
 * Swap: what a reservation moves from one thread to the next, with none of the
 * rings' code. However cheap the rest of a post, threads that reserve at the
 * same time do no better than this.
 *
 *   alone       the tail's pair of words (rings/tail.h), loaded and swapped
 *               for the next until a swap succeeds
 *   with nodes  the same, and the line of the node that the tail names is read
 *               before, and a line of the thread's own written: what a value
 *               with a node of its own moves. The node that a swap displaces
 *               is its thread's next one.
 *
 * Threads: swap_begin with no other inside; then any. A thread that has used
 * one swap since its start uses no other.
 */
#include <stdbool.h>
#include <stdint.h>

struct swap;

/* NULL: no memory. */
struct swap *swap_make(void);
/* The tail is node 0's again, and no thread has one. Once more than so many
 * threads have come since, the next shares a node: SWAP_NODES. */
void swap_begin(struct swap *);
void swap_submit(struct swap *, bool nodes);
/* Swaps so far. */
uint64_t swap_count(const struct swap *);

enum { SWAP_NODES = 4096 };
#endif
