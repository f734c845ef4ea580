/* SPDX-License-Identifier: ISC */
#ifndef RINGS_RINGS_H
#define RINGS_RINGS_H
/*
 * Rings: what the GPU fetches, and how a submission gets there.
 *
 *   need      what the parts take of each ring, from one pass over them
 *   reserve   whether that is free, and the cursor after the value
 *   encode    the words and entries, into the reserved ranges
 *   mark      the cursor, kept until the value is reached and longer
 *   publish   GP_PUT and the doorbell
 *
 * Each channel has two rings:
 *
 *   entries   64-bit GPFIFO entries, fetched up to GP_PUT (one slot is always
 *             empty: GP_GET == GP_PUT is an empty ring)
 *
 *        freed                       entries[q]
 *      ----+---------------------------+--------------------------------
 *      free| in use                    | free
 *      ----+---------------------------+--------------------------------
 *
 *   segments  the words that the driver's own entries name, in 64-byte units.
 *             A value's words on a channel are one contiguous piece: a piece
 *             that would cross the ring's end starts at its start instead,
 *             and the units it skipped count as taken. In an empty ring that
 *             skip costs nothing, so what fits an empty ring once fits it from
 *             every position.
 *
 * Threads: one caller at a time of room and submit (the turn), which orders
 * `last`. Everything else is immutable, or ordered as it states.
 */
#include "core/api/rig_nv.h"
#include "rings/cursor.h"
#include "rings/flush.h"
#include "rings/mark.h"

enum {
  RING_UNIT = 64,       /* bytes: a cache line, and a write-combining buffer */
  RING_MOST_WAITS = 256 /* of one submission */
};

/* Bounds of what a ring holds: a channel keeps the log2 of its entries in 5
 * bits, and a count's half is the most that unsigned differences tell. */
#define RING_MOST_ENTRIES (UINT64_C(1) << 31)

/* One channel's rings. Immutable. */
struct ring_channel {
  uint32_t *entries; /* host address; two words an entry */
  uint32_t n;        /* entries, a power of two */
  unsigned char *segments;
  uint64_t segments_gpu; /* aligned to RING_UNIT */
  uint32_t units;        /* a power of two */
  volatile uint32_t *gp_put;
  uint32_t token;
};

/* The rings in use. Immutable. */
struct ring_generation {
  uint32_t id;
  struct ring_channel channel[QUEUES];
};

struct rings {
  const struct ring_generation *newest;
  struct marks marks;
  const uint64_t *word; /* the timeline word: the GPU stores, we load */
  uint64_t word_gpu;
  uint64_t join_gpu[QUEUES]; /* the channels' join words */
  struct rig_nv_gpu gpu;     /* classes and windows of the setup words */
  volatile uint32_t *doorbell;
  volatile uint32_t *flush; /* a word behind the memory BAR, or NULL */
  uint32_t mapped;          /* live regions behind it (ck_pr) */
  struct cursor last;       /* after the last value: the turn holder's */
  struct flush_set viewed;  /* the words behind other devices' BARs */
};

/* What the parts of a submission take, from any cursor. */
struct ring_need {
  uint64_t entries[QUEUES]; /* exact, `lead` excepted */
  uint64_t words[QUEUES];   /* a bound, also for a channel that only joins */
  unsigned used;            /* channels with parts, bit 1 << q */
  unsigned lead;            /* channels whose first words are foreign: one
                             * entry fewer where entering takes no words */
  bool waits;               /* whether it has any */
  int last;                 /* the last part's queue, COMPUTE for no parts */
};

/* A place in every ring for one value. */
struct ring_plan {
  struct cursor from, to;
  uint32_t start[QUEUES]; /* position of the piece, in units */
  unsigned used;          /* channels that the value enters */
  int release;            /* the one that releases it */
};

/* Whether every part is one that this device runs (else RIG_NEVER). */
bool ring_lawful(const struct rig_submission *);
/* The need of a lawful submission. */
void ring_need(const struct rig_submission *, struct ring_need *);
/* The place of the next value, where it fits now. */
enum rig_room ring_reserve(const struct rings *, const struct ring_need *,
                           size_t nparts, struct ring_plan *);
/* Writes the words and entries of a lawful submission into its place. */
void ring_encode(const struct rings *, const struct rig_submission *,
                 const struct ring_plan *);
/* GP_PUT and doorbell of the channels that the value entered. */
void ring_publish(const struct rings *, const struct ring_plan *);

enum rig_room rings_room(const struct rings *, const struct rig_submission *);
enum rig_done rings_submit(struct rings *, uint64_t v,
                           const struct rig_submission *, const char **failure);

/* An invariant of the rings, checked in release builds too: what breaks it
 * would have the GPU fetch what nobody wrote. */
#define RING_ASSERT(x) ((x) ? (void)0 : ring_broken(#x, __FILE__, __LINE__))
void ring_broken(const char *what, const char *file, int line)
    __attribute__((noreturn, cold));
#endif
