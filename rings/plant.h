/* SPDX-License-Identifier: ISC */
#ifndef RINGS_PLANT_H
#define RINGS_PLANT_H
/*
 * Plants: orders and looks of the lock-free core that a build may leave out on
 * purpose, so that the tests that are to find such a bug are seen to find it.
 * -D and a flag plants one; no build of the library has any.
 *
 *   RING_PLANT_     what is weaker, and what is then lost
 *
 *   ENCODED_PLAIN   a mark's v is stored relaxed. The seat's holder sees
 *                   "encoded", reads the mark's words from before, and shows
 *                   an old cursor.
 *   NO_SENTINEL     v - 1 is not stored into a mark that is rewritten. A
 *                   reader of v - n sees v - n, then words of v, then v - n
 *                   again: mark_read gives a mixed mark. (Behind the release
 *                   fence, which stays, a caller that looks at the tail again
 *                   sees it swapped: only mark_read's own promise is broken.)
 *   RELAXED_SENTINEL
 *                   v - 1 is stored relaxed. A reader sees v - 1 and not the
 *                   swap of the tail that reserved v: the mark is gone, tail
 *                   and word are unchanged, and that is no state of the rings.
 *                   (The tail's swap as a full barrier and io_write_fence both
 *                   stand between: only a model with neither shows it.)
 *   FLIGHT_AFTER_MARK
 *                   values in flight are tested after mark[word] is read. With
 *                   n in flight that mark is the newest value's, being
 *                   written: gone, with tail and word unchanged.
 *   LATER_UNCHECKED
 *                   LATER is answered without a second look at tail and word.
 *                   The tail's node is rewritten while it is read, or the word
 *                   moves on: LATER, with every value reached.
 *   GENERATION_BEFORE_TAIL
 *                   rings.newest is read before the tail. A growth and a value
 *                   on its rings come between: that value's counts are taken
 *                   for the older rings' (BROKEN, or a range in flight).
 *   MARK_OLDER      a value's cursor says the generation of the value before.
 *                   The next value installs the new rings again, from 0, over
 *                   what this one wrote; the seat shows it to the old ones.
 *   OWED_TAKEN      who first sees a record of setup is to tell of it, by an
 *                   exchange, and not the value whose swap moves the cursor on
 *                   to it. A thread that loses its swap, or is answered LATER,
 *                   tells nobody, and neither does anybody else.
 *   STARVE          a post takes the old channels while new ones are ready:
 *                   there is always a value in flight, and no value is ever
 *                   the first on the new ones.
 *   NO_GRACE        replaced rings go back with no grace period. A thread has
 *                   seen that a channel set lives, and reads its notifier.
 *   NO_TIMELINE     they go back after a grace period alone. The channels have
 *                   yet to fetch what was encoded into them.
 *   LAUNCHES_EARLY  so do launch rings alone. Launches have yet to read their
 *                   descriptors and constants there.
 *   LAUNCHES_OVER   all of the launch ring counts as free. A value's launches
 *                   are written over those in flight.
 *   SEAT_STORE      the seat is freed by a release store. The store waits in
 *                   its core while the second look passes it: the holder sees
 *                   no value, the arrival whose value that is sees HELD.
 *   NO_SECOND_LOOK  the holder does not look again once the seat is free. It
 *                   looks, sees no more; a value is encoded, its thread sees
 *                   HELD and goes on; the holder frees the seat.
 *   HANDOVER_ZERO   a holder that asked to be relieved frees the seat by an
 *                   exchange. An arrival has just stood by: it waits for a
 *                   seat that the next arrival takes, or that nobody gives it.
 */

/* 1 where -Dflag, else 0; not for flags with another value. */
#define PLANTED(flag) PLANTED_(flag)
#define PLANTED_(value) PLANTED__(PLANT_COMMA_##value)
#define PLANTED__(comma) PLANTED___(comma 1, 0, 0)
#define PLANTED___(first, second, ...) second
#define PLANT_COMMA_1 0,
#endif
