/* SPDX-License-Identifier: ISC */
#ifndef RINGS_FLUSH_H
#define RINGS_FLUSH_H
/*
 * Flush words of viewed devices: what a submission of one device reads before
 * GP_PUT, so that the host's writes through other GPUs' memory BARs reach
 * those GPUs before this device's work reads them (rings/io.h).
 *
 *   device A                       set of A             sources
 *   views Mapped memory      +-----------------+
 *   of B (two views) ------> | B  2 views  *---|------> B: word, live
 *   of C (one)       ------> | C  1 view   *---|------> C: word, live
 *                            +-----------------+
 *                              now -> {2, B's word, C's word}     readers
 *
 * Readers get an immutable array by RCU. The writer, who holds the one lock of
 * every set, fills a set's other array, publishes it and waits for a grace
 * period, so that outside the lock no reader is in that other array: two are
 * enough, no change needs memory, and taking a word out cannot fail.
 *
 * A device's own flush word is not in its set. Its Mapped regions are counted
 * (rings.mapped), as they come and go more often than views and so pay no
 * grace period; the set is then never full for them; and the word outlives
 * every reader, since a stop is alone on its device.
 *
 * Ordering: flush_add publishes the word before it returns, so a submission
 * that the caller orders after it reads the word. flush_drop and flush_end
 * return once no submission reads the word they took out, which may be
 * unmapped from then on.
 *
 * Threads: any, at the same time as others. The lock has the class
 * rig_nv_lock_flush, so that a caller holds no path's lock; it is held across
 * grace periods, which wait for no lock.
 */
#include <stdbool.h>
#include <stdint.h>

enum { FLUSH_MOST = 64 }; /* words of a set */

/* A device's flush word, for the sets of those that view it. Zeroed but for
 * the word. It outlives the views: a set keeps its address. */
struct flush_source {
  volatile uint32_t *word;
  bool ended; /* under the lock */
};

/* Immutable while published. */
struct flush_words {
  uint32_t n;
  volatile uint32_t *at[FLUSH_MOST];
};

/* Empty if zeroed. At one address from its first view to its last. */
struct flush_set {
  const struct flush_words *now; /* RCU; NULL as long as there was none */
  struct flush_words copy[2];
  /* Under the lock: whose the words are, and how many views count each. */
  const struct flush_source *source[FLUSH_MOST];
  uint64_t views[FLUSH_MOST];
  struct flush_set *next, **prev; /* among the sets with words */
};

enum flush_added {
  FLUSH_ADDED,
  FLUSH_FULL, /* FLUSH_MOST other words are there */
  FLUSH_ENDED /* the source's device is stopped */
};

/* Counts one more view of the source's memory. */
enum flush_added flush_add(struct flush_set *, const struct flush_source *);
/* One fewer; the word goes with the last one, or went with flush_end. */
void flush_drop(struct flush_set *, const struct flush_source *);
/* Takes the source's word out of every set, for good. */
void flush_end(struct flush_source *);

/* Reads every word of the set: a submission's stores so far, and the host's
 * before it, reach the viewed GPUs first. Needs no lock, allocates nothing. */
void flush_read(const struct flush_set *);
#endif
