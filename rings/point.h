/* SPDX-License-Identifier: ISC */
#ifndef RINGS_POINT_H
#define RINGS_POINT_H
/*
 * Points: steps of a submission, or of a look at faults, at which a test stops
 * a thread. A build with -DRING_POINTS calls the function below, which the test
 * has, at each of them; every other build has nothing there.
 *
 *   reserve  SWAP        the tail is about to be swapped
 *            SWAPPED     it is: the value is this thread's
 *   encode   ENCODE      no word of the value is written
 *            ENCODED     all are, and the mark says nothing
 *            ARRIVE      the mark says so, the seat is not looked at
 *   publish  SHOW        in the seat, GP_PUT is as it was
 *            BELL        GP_PUT is stored, the doorbell is not rung
 *            FREE        there is no more to show, the seat is held
 *            RELIEVE     the same, and its holder has asked to be relieved
 *            LOOK        the seat is free, before the second look
 *            STAND_BY    it waits to be given the seat
 *   faults   NOTIFIER    the set is seen to live, its notifier is not read
 */
enum ring_point {
  RING_AT_SWAP,
  RING_AT_SWAPPED,
  RING_AT_ENCODE,
  RING_AT_ENCODED,
  RING_AT_ARRIVE,
  RING_AT_SHOW,
  RING_AT_BELL,
  RING_AT_FREE,
  RING_AT_RELIEVE,
  RING_AT_LOOK,
  RING_AT_STAND_BY,
  RING_AT_NOTIFIER,
  RING_POINTS_N
};

#ifdef RING_POINTS
void ring_point(enum ring_point);
#define RING_POINT(at) ring_point(RING_AT_##at)
#else
#define RING_POINT(at) ((void)0)
#endif
#endif
