/* SPDX-License-Identifier: ISC */
#ifndef STRESS_REPLAY_H
#define STRESS_REPLAY_H
/*
 * replay: random submissions, and the judge of what a device made of them.
 *
 * A replay owns places of a device's memory, its regions, and keeps for each
 * a mirror in host memory: the bytes that the region must hold once every
 * value is reached. It makes submissions that touch its regions alone, and
 * runs each committed one on the mirrors, one effect after the other in the
 * order of values, then of parts. It knows what the public headers promise
 * and nothing of how a device keeps it.
 *
 *     replay_next ----> room ---- FITS ----> submit ----> replay_commit(v)
 *          ^             | LATER: replay_release, wait, ask again     |
 *          |             | GROW, NEVER: replay_skip                   |
 *          +-------------+--------------------------------------------+
 *
 * What it makes:
 *   - copies between any of its regions, odd addresses and sizes, rows,
 *     zero bytes, and on COPY:0 alone where they have a byte;
 *   - launches of a kernel that copies and masks, where it is given one;
 *   - words on both queues that release, acquire, copy and fill;
 *   - `after` joins: each that a part needs, or one that implies it, and some
 *     that nobody needs. Parts of different queues that no join orders touch
 *     no byte in common, but for bytes that both only read;
 *   - waits for words that hold their value by then, and for words of the
 *     host, which it releases within a few submissions, or in replay_release.
 *
 * The last region is the host's: the replay writes into it segments, bytes to
 * copy and the words that the host releases, and no work writes it. It is
 * used round and round, each byte again only once its value is reached.
 *
 * The submissions depend on the options and the regions alone, not on time,
 * answers or values.
 *
 * Threads: one at a time a replay. Replays of one device on disjoint regions
 * are independent, since values of one device never overlap.
 */
#include "core/api/rig_nv.h"
#include "stress/effect.h"

#define REPLAY_MOST_REGIONS 8

/* What launches name: a kernel of four parameters, the addresses dst and src,
 * the 64-bit number n and a 32-bit mask, that has dst[i] = src[i] ^ mask for n
 * bytes, whatever its grid and group of one dimension, up to 128 threads. */
struct replay_kernel {
  uint64_t code;
  const void *launch; /* NULL: no launches */
  uint32_t dynamic;   /* the most bytes of dynamic shared memory it may have */
};

struct replay_options {
  uint64_t seed;
  uint64_t start;      /* the timeline's value before the first one */
  uint64_t most_bytes; /* of one copy or fill, all rows */
  unsigned most_parts; /* of one submission, 1..64 */
  unsigned most_ops;   /* of one part of words, 1..8 */
  unsigned most_rows;  /* of a copy part, 1..8; words have boxes anyway */
  bool fills;          /* whether parts fill */
  unsigned most_waits; /* of one submission, 0..64 */
  struct replay_kernel kernel;
  uint64_t word_gpu; /* the device's word, to wait for; 0: no such waits */
};

struct replay_region {
  const char *name;
  uint64_t address; /* of its first byte, for the GPU */
  void *host;       /* for the host, or NULL */
  uint64_t bytes;
};

struct replay_difference {
  const char *region;
  uint64_t offset;
  unsigned expected, found;
  uint64_t value; /* the last to write it; the start for what was uploaded */
};

struct replay_counts {
  uint64_t submissions, parts, copies, fills, launches, words, ops, joins,
      waits, bytes;
  uint64_t skipped;
};

struct replay;

void replay_options_init(struct replay_options *);

/* The least bytes of a region that is not the host's. */
uint64_t replay_least_bytes(const struct replay_options *);
/* The least bytes of the host's region. More of them let more values be in
 * flight. */
uint64_t replay_host_bytes(const struct replay_options *);

/* A replay of n regions, 2..REPLAY_MOST_REGIONS, the last one the host's.
 * contents[i] is what region i holds now; NULL is zeros. The host's is NULL:
 * the replay zeroes it. 0, or -RIG_NV_INVALID, -RIG_NV_HOST_MEMORY with the
 * reason in *failure. */
int replay_make(const struct replay_options *, const struct replay_region *,
                unsigned n, const void *const *contents, struct replay **,
                const char **failure);
void replay_drop(struct replay *);

enum replay_answer { REPLAY_MADE, REPLAY_BUSY, REPLAY_BROKEN };

/* The next submission, which lives until the next call; `word` is what the
 * device's word reads. BUSY: first *until must be reached, for the host's
 * region is full. BROKEN: an encoder refused operands that it must take, and
 * rig_nv_why says which. */
enum replay_answer replay_next(struct replay *, uint64_t word,
                               const struct rig_submission **, uint64_t *until);

/* The submission made last was committed as v, or is given up. */
void replay_commit(struct replay *, uint64_t v);
void replay_skip(struct replay *);

/* Releases every word of the host that a wait may wait for. Call it before
 * waiting for any value. */
void replay_release(struct replay *);

/* Compares what region i was found to hold with its mirror, once everything
 * committed is reached and replay_release was called. True: they are equal. */
bool replay_equal(const struct replay *, unsigned i, const void *found,
                  struct replay_difference *);

const struct replay_counts *replay_counts(const struct replay *);
/* A number of everything that the submissions made so far said. */
uint64_t replay_digest(const struct replay *);
/* The effects of the submission made last. */
size_t replay_effects(const struct replay *, const struct effect **);
#endif
