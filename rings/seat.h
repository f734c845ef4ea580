/* SPDX-License-Identifier: ISC */
#ifndef RINGS_SEAT_H
#define RINGS_SEAT_H
/*
 * Seat: who publishes. A ring's entries carry no valid bit, and the channel
 * fetches all below GP_PUT: values are encoded in any order and shown in the
 * order of values, by one thread at a time, which nobody waits for.
 *
 *   published      published + 1 ...            tail
 *   -----+----------+----------+-------------+------
 *   shown | encoded  | encoded  | being written|       the seat's holder shows
 *   -----+----------+----------+-------------+------   the encoded ones that
 *          ^ walked up to the first that is not         follow what is shown
 *
 *   state     who moves it, to what
 *   FREE      an arrival, to HELD
 *   HELD      its holder: to FREE; after SEAT_ROUNDS, to RELIEF
 *   RELIEF    an arrival, to STANDBY; its holder, to FREE
 *   STANDBY   the arrival, to RELIEF, when it has waited long enough; the
 *             holder, to GIVEN
 *   GIVEN     the arrival that stood by, to HELD: it is the holder now
 *
 * An arrival is a thread whose value is encoded. It takes a free seat; it goes
 * on at once where the seat is held, for the holder looks again after it has
 * freed the seat; and where the holder has served others for long enough it
 * stands by, for a bounded time, to be given the seat.
 *
 * Ordering. Two threads, each a store and then a load of what the other
 * stores, so that at least one of them sees the other (Dekker):
 *
 *   arrival: its mark's v (encoded) | full barrier | the seat's state
 *   holder:  the seat's state, FREE | full barrier | the next mark's v
 *
 * The barriers are read-modify-writes of the state, or shared_fence_full;
 * release and acquire are not enough, nor is a write fence. What the seat
 * guards goes from holder to holder by the state: stored before it is freed or
 * given, loaded after it is taken.
 *
 * Values of one generation are shown at a time: the counts of rings that were
 * born with the next one start anew.
 *
 * GP_PUT never goes back, so nobody takes over from a holder that stopped.
 * A stopped thread delays the values after its own in two places: between
 * its reservation and "encoded", and in the seat.
 */
#include <stdint.h>

#include "rings/cursor.h"
#include "rings/mark.h"

struct rings;

enum { SEAT_FREE, SEAT_HELD, SEAT_RELIEF, SEAT_STANDBY, SEAT_GIVEN };
#ifndef SEAT_ROUNDS
#define SEAT_ROUNDS 4 /* served before the holder asks to be relieved */
#endif
#ifndef SEAT_PATIENCE
#define SEAT_PATIENCE 200 /* pauses that a stand-by waits: about 5 us */
#endif

/* One line: what a holder needs comes with the state. */
struct seat {
  shared_32 state;
  guarded_32 entries[QUEUES]; /* shown by GP_PUT, free-running */
  guarded_32 launch;          /* shown with them */
  guarded_32 generation;      /* whose counts these are */
  guarded_64 published;       /* the last value shown */
  guarded_64 bells;           /* doorbells rung */
} __attribute__((aligned(128)));

/* Nothing after start is shown. Before any other thread. */
void seat_init(struct seat *, const struct cursor *start);
/* Shows every value that is encoded and follows what is shown, or leaves it
 * to the thread that does; the caller's own value is encoded. */
void seat_arrive(struct rings *);
#endif
