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
 * Each channel has two rings, and COMPUTE the launch ring beside them
 * (launch.h), whose pieces are taken as those of segments are:
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
 * A value's life, and who moves it on:
 *
 *   free       its mark is another value's
 *     | the swap of the tail, by the thread whose value it becomes
 *   reserved   its ranges are that thread's to write
 *     | mark_write, by the same thread, after io_write_fence
 *   encoded    complete, and shown to no channel
 *     | GP_PUT, by the seat's holder, in the order of values
 *   published  the channels fetch it
 *     | the channel's release of the word
 *   reached    its ranges are free; its mark says where they end
 *
 * Ordering, each store with the load that pairs with it:
 *
 *   tail's swap            tail_read        a node's words, before the tail
 *   mark: v - 1            mark_read        no mixed mark
 *   mark: v                mark_read, walk  ring contents and cursor
 *   mark: v | barrier      seat | barrier   no encoded value is left alone
 *   seat: FREE, GIVEN      seat's taker     what the seat guards
 *   GP_PUT                 the GPU          everything that GP_PUT shows
 *   the word (GPU)         ring_reserve     the GPU's last read of a range,
 *                                           before it is written again, by
 *                                           whoever has that from the tail
 *
 * What is free is in the cursor: the counts of a value that was reached when a
 * submission last looked. Most need not look, and so move neither the word's
 * line nor a mark's. Where that is not enough, the word is loaded after the
 * tail and so lies between that value and the tail's; that it is not that value
 * is tested before its mark is read, for n values after it the mark is
 * another's. RIG_LATER is answered only from an unchanged tail and word.
 *
 * Generations (struct ring_generation): the newest is read after the tail, by
 * ring_rcu_dereference, whose partner is growth's ring_rcu_assign.
 *
 * Threads: any thread may call room, submit and post at the same time.
 * Reservation is lock-free: a thread that stops anywhere in it stops nobody.
 * Publication is not (seat.h): a thread that stops between its swap and
 * "encoded", or in the seat, delays the values after its own.
 */
#include "core/api/rig_nv.h"
#include "rings/cursor.h"
#include "rings/flush.h"
#include "rings/mark.h"
#include "rings/seat.h"
#include "rings/setup.h"
#include "rings/tail.h"

enum {
  RING_UNIT = 64,       /* bytes: a cache line, and a write-combining buffer */
  RING_MOST_WAITS = 256 /* of one submission */
};

/* Bounds of what a ring holds: a channel keeps the log2 of its entries in 5
 * bits, and a count's half is the most that unsigned differences tell. */
#define RING_MOST_ENTRIES (UINT64_C(1) << 31)
#define RING_MOST_UNITS (UINT64_C(1) << 31)

/* One channel's rings. Immutable. */
struct ring_channel {
  uint8_t segments_born; /* the generation that its segment ring began with */
  uint32_t *entries;     /* host address; two words an entry */
  uint32_t n;            /* entries, a power of two */
  unsigned char *segments;
  uint64_t segments_gpu; /* aligned to RING_UNIT */
  uint32_t units;        /* a power of two */
  volatile uint32_t *gp_put;
  uint32_t token;
  bool entries_mapped, segments_mapped, put_mapped; /* behind the memory BAR */
};

/* The launch ring. Immutable. */
struct ring_launches {
  uint8_t born;      /* the generation that it began with */
  unsigned char *at; /* host address */
  uint64_t gpu;      /* aligned to LAUNCH_UNIT, below 2^40 */
  uint32_t units;    /* a power of two; 0: there is none */
  bool mapped;       /* lies behind the memory BAR: the flush word is read
                      * before GP_PUT shows launches */
};

/*
 * A generation: rings of certain sizes. Immutable.
 *
 *   rings.newest ---> id 5 --older--> id 4 --older--> ... --older--> id 0
 *                                      ^ the tail's, say: values follow each
 *                                        other from generation to generation
 *
 * A growth publishes the next one, whose rings are those of the one before but
 * for some that are larger, born with it. The cursor says which generation a
 * value is on. The swap of the tail that moves it on installs the new one:
 * counts of rings born since start at 0, and all of them is free. Channels of
 * their own have no order with the old ones but the word's, so the first value
 * on new channels is taken only where all before it are reached.
 *
 * newest is read after the tail. A cursor of generation i was swapped in by a
 * thread that had read i or a later one from newest, so whoever reads the
 * tail, then newest, finds i or a later one. Read before the tail, it may be
 * older than the cursor's, whose counts are then taken for other rings'.
 *
 * Records stay until stop. A ring that a later generation replaced goes back
 * once the mark of the word's value is of that one or a later one and then a
 * grace period has passed (growth/growth.h); so whoever reads the tail in an
 * RCU section finds the rings of its generation, and of later ones, alive.
 */
struct ring_generation {
  uint8_t id;
  uint8_t channels_born; /* the generation that its channels began with */
  struct ring_channel channel[QUEUES];
  struct ring_launches launches;
  bool put_pushes; /* its GP_PUTs lie behind the memory BAR: a store to one
                    * pushes what the host stored through that BAR before */
  bool mapped;     /* some of its entries or segments lie there: where nothing
                    * pushes them, the flush word is read before GP_PUT */
  const struct ring_generation *older; /* or NULL: the first */
};

enum { RING_MOST_GENERATION = 254 }; /* of ids, which never wrap */

struct rings {
  const struct ring_generation *newest; /* RCU */
  struct marks marks;
  const shared_64 *word; /* the timeline word: the GPU stores, we load */
  uint64_t word_gpu;
  uint64_t join_gpu[QUEUES]; /* the channels' join words */
  struct rig_nv_gpu gpu;     /* classes and windows of the setup words */
  volatile uint32_t *doorbell;
  volatile uint32_t *flush;  /* a word behind the memory BAR, or NULL */
  shared_32 mapped;          /* live regions behind it (ck_pr) */
  struct flush_set viewed;   /* the words behind other devices' BARs */
  const struct setup *setup; /* RCU; NULL before the first (setup.h) */
  uint64_t serial; /* of these rings in the process; 0: not a device's */
  struct tail tail;
  struct seat seat;
};

/* What the parts of a submission take, from any cursor. */
struct ring_need {
  uint64_t entries[QUEUES]; /* exact, `lead` excepted */
  uint64_t words[QUEUES];   /* a bound, also for a channel that only joins */
  uint64_t launch;          /* units of the launch ring */
  unsigned used;            /* channels with parts, bit 1 << q */
  unsigned lead;            /* channels whose first words are foreign: one
                             * entry fewer where entering takes no words */
  uint64_t enter;           /* the bound of entering a channel, in words */
  bool waits;               /* whether it has any */
  bool straight;            /* whether it is (straight.h) */
  bool joins;               /* whether any part comes after another */
  bool launch_releases;     /* the last launch may release the value: it is
                             * the last part, and COMPUTE has all of them */
  int last;                 /* the last part's queue, COMPUTE for no parts */
};

/* Units of a piece of so many words. */
static inline uint32_t ring_units(uint64_t words) {
  const uint64_t a_unit = RING_UNIT / sizeof(uint32_t);
  return (uint32_t)((words + a_unit - 1) / a_unit);
}

/* A place in every ring for one value. */
struct ring_plan {
  const struct ring_generation *generation;
  struct cursor from, to;    /* from: its counts are the generation's */
  uint32_t start[QUEUES];    /* position of the piece, in units */
  uint32_t launch;           /* of the launches' piece, in its units */
  unsigned used;             /* channels that the value enters */
  int release;               /* the one that releases it */
  bool launch_releases;      /* its last launch does, not the channel */
  const struct setup *setup; /* for a value on COMPUTE; or NULL */
};

/* Whether every part is one that this device runs (else RIG_NEVER). */
bool ring_lawful(const struct rig_submission *);
/* The need of a lawful submission. */
void ring_need(const struct rig_submission *, struct ring_need *);
/* What is asked of ring_reserve. */
enum ring_asks { RING_ROOM, RING_SUBMIT, RING_POST };
struct ring_ask {
  enum ring_asks for_what;
  uint64_t v;        /* SUBMIT: the value that the caller expects */
  bool own;          /* some of its waits name the device's own word, */
  uint64_t own_wait; /* and the latest value that one of them asks for */
};

/* What ring_reserve answers beside an enum rig_room. */
enum {
  RING_NOT_NEXT = -1, /* SUBMIT: another value is the next */
  RING_OWN_WAIT = -2  /* a wait for the value itself, or a later one */
};

/* The place of the next value, where it fits now. For SUBMIT and POST the
 * place is taken with RIG_FITS: the caller encodes into it. In an RCU section
 * that lasts until then. */
int ring_reserve(struct rings *, const struct ring_need *, size_t nparts,
                 const struct ring_ask *, struct ring_plan *);
/* Writes the words and entries of a lawful submission into its place. */
void ring_encode(const struct rings *, const struct rig_submission *,
                 const struct ring_need *, const struct ring_plan *);
/* Pushes the host's earlier stores to Mapped memory before a GP_PUT of the
 * generation, and those to a mapped launch ring where it shows launches. */
void ring_flush(const struct rings *, const struct ring_generation *,
                bool launches);

/* Empty rings after the value `start->v`; the rest of *rings is filled in. */
void rings_init(struct rings *, struct mark *, uint32_t n,
                const struct cursor *start);
enum rig_room rings_room(struct rings *, const struct rig_submission *);
enum rig_done rings_submit(struct rings *, uint64_t v,
                           const struct rig_submission *, const char **failure);
/* 0 with *v; an enum rig_room above 0; or -RIG_NV_INVALID with *why. */
int rings_post(struct rings *, const struct rig_submission *, uint64_t *v,
               const char **why);
/* The need of the submission that room or post last answered RIG_GROW to on
 * the calling thread, if that was on these rings, which have a serial. */
bool rings_grow_need(const struct rings *, struct ring_need *);
/* The last value reserved. */
uint64_t rings_last(const struct rings *);

/* An invariant of the rings, checked in release builds too: what breaks it
 * would have the GPU fetch what nobody wrote. */
#define RING_ASSERT(x) ((x) ? (void)0 : ring_broken(#x, __FILE__, __LINE__))
void ring_broken(const char *what, const char *file, int line)
    __attribute__((noreturn, cold));
#endif
