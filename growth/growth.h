/* SPDX-License-Identifier: ISC */
#ifndef GROWTH_GROWTH_H
#define GROWTH_GROWTH_H
/*
 * Growth: a device's rings over its life. Each growth makes larger ones and
 * publishes them as the next generation (rings/rings.h), while everybody goes
 * on submitting; what it replaced goes back later.
 *
 *   rings.newest --> record 3 --older--> record 2 --> record 1 --> record 0
 *                    channels            launches     segments[0]  channels
 *                                                                  segments[]
 *                                                                  launches
 *
 * A record holds what was made for its generation: a piece is a channel set,
 * a segment ring, or the launch ring. Records stay until stop, so whoever goes
 * down `older` needs no more than that; pieces do not:
 *
 *   in use      of the newest generation
 *     | a growth publishes one that replaces it (replaced = that one's id)
 *   replaced    values may be on it, submissions may take more of it
 *     | the mark of the word's value is of generation `replaced` or later
 *   reached     the GPU has done with it, for good: the first value of that
 *     |         generation came after every value on the piece. A thread that
 *     |         looked at a set's notifiers may still be there, or one that
 *     |         reserved on the piece and did not get it
 *     | a grace period that begins after that
 *   given back  or kept by a path that failed
 *
 * Both, in this order: a grace period that began before the timeline came so
 * far says nothing of a thread that reserved on the piece in between. A
 * submission touches a piece only before its value is reached (stress/coop
 * checks that), so for those the timeline would do; the grace period is for
 * who reads notifiers, and it keeps that from being a condition on every line
 * between the tail and the doorbell. The look at the word, and what follows, is
 * made by the device's next growth or allocation. Nobody calls back later: a
 * worker thread for that survives neither fork nor dlclose.
 *
 * Until stop stay: the segment and launch rings of the open, and channels where
 * the RM frees no object, 26 replaced sets at most: each has a ring twice as
 * large as the one before, from 2^18 entries to 2^31.
 *
 * Ordering: growth_grow's ring_rcu_assign of newest, with ring_reserve's and
 * the seat's ring_rcu_dereference. A set's `ended` is stored before the grace
 * period that its memory goes back after, and loaded in a section.
 *
 * Threads: grow, give_back and errors by any, at the same time as others and
 * as submissions; growths and give-backs take the growth lock (rank
 * RIG_NV_RANK_GROWTH) and hold it over path calls and grace periods. The
 * others alone on the device.
 */
#include "core/abi/rm.h"
#include "core/lock_order/lock_order.h"
#include "growth/channels.h"
#include "growth/place.h"
#include "paths/path.h"
#include "rings/rings.h"

/* The rings of a generation. */
struct growth_sizes {
  uint32_t entries[QUEUES];
  uint64_t segment_bytes[QUEUES];
  uint64_t launch_bytes; /* 0: none */
};

/* The sizes of what a need has to grow; 0 for what it need not, UINT64_MAX for
 * a size that no ring has.
 *
 *   segments, launches  the least power of two of bytes, a page at least, that
 *                       holds twice what the parts take
 *   entries             of both channels or of none: the least power of two
 *                       that holds twice, 2^31 at most, no fewer than now */
void growth_sizes_for(const struct ring_generation *now,
                      const struct ring_need *, struct growth_sizes *);

/* Pieces of a record. */
enum growth_piece {
  GROWTH_LAUNCHES,
  GROWTH_SEGMENTS, /* and of queue q, + q */
  GROWTH_CHANNELS = GROWTH_SEGMENTS + QUEUES,
  GROWTH_PIECES
};

struct growth_record {
  struct ring_generation ring; /* first: what the record is found by */
  struct channels channels;
  struct rig_nv_memory segments[QUEUES], launches;
  /* Under the lock: the generation that replaced the piece, or 0. */
  uint8_t replaced[GROWTH_PIECES];
  shared_32 ended; /* 1: its notifiers are about to go */
  struct growth_record *next;
};

struct growth {
  struct rig_nv_lock lock;
  struct rings *rings;
  const struct rig_nv_path *path;
  const struct abi_rm_layout *layout;
  struct rig_nv_allocator host;
  struct places at;                    /* places_of */
  struct growth_record first, *newest; /* newest under the lock */
  struct growth_record *failed; /* never published: what a failed growth could
                                 * not give back. Under the lock */
  shared_32 waiting;            /* replaced pieces that are not given back */
};

/* Makes the first generation, and has *rings begin with it; path, layout, host
 * and the places are set. A failed open is undone by end and free. The errors
 * of paths/call.h. */
int growth_open(struct growth *, struct rings *, const struct growth_sizes *);
/* Lets its channels run. */
int growth_schedule(struct growth *);

/* Makes what the need asks for beyond the newest rings, and publishes it. 0
 * where nothing lacks then. A growth that lacks memory publishes what it made:
 *   SHORT  with *bytes that the rest takes
 *   FAULT  a free of what was replaced failed, also where it would be SHORT;
 *          or the path refused or failed
 *   HOST_MEMORY; INVALID of the lock's */
int growth_grow(struct growth *, const struct ring_need *, uint64_t *bytes);

/* Gives back what was replaced and is done with. 0, or FAULT: a free failed;
 * the rest went back all the same. */
int growth_give_back(struct growth *);

/* An error in a notifier of a channel set that lives. */
struct growth_error {
  uint64_t error;             /* channels_error's */
  uint32_t debugger, channel; /* of its set: the RM's, and COMPUTE's */
};
/* The first `most` of them, those of the newest sets first; how many. */
unsigned growth_errors(const struct growth *, struct growth_error *,
                       unsigned most);

/* Ends every set, as channels_end does. True if all are gone. */
bool growth_end(struct growth *, struct rig_nv_reply *why);
/* Whether the RM freed the channels of every set. */
bool growth_freed(const struct growth *);
/* Whether both channels that the last value is on hold an error: no work of
 * the device runs. Those of older generations had none left. */
bool growth_stopped(const struct growth *);
/* Gives back the records, and the memory that no work uses: of the channel
 * sets, which their objects name, and of the other rings. 0, or the last FAULT;
 * the rest went back all the same. */
int growth_free(struct growth *, bool channels, bool rings);
#endif
