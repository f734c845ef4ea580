/* SPDX-License-Identifier: ISC */
#ifndef CORE_CLOCK_H
#define CORE_CLOCK_H
/*
 * clock: the GPU's timer, whose nanoseconds stamps hold, against the host's
 * CLOCK_MONOTONIC.
 *
 *   measure   host | timer | host       its width lies between the two
 *
 *    host              . latest
 *      |          .                     converted along the line through both
 *      |     .                          once they lie CLOCK_APART_NS apart,
 *      | first                          and before at 1 ns a tick from the
 *      +------------------- timer       latest
 *
 *   at open        the first of CLOCK_READS measures within CLOCK_WIDTH_NS, or
 *                  the narrowest: first and latest
 *   again          one measure, CLOCK_EVERY_NS after the last try at the
 *                  earliest; a wide one is dropped
 *     first wide   first and latest
 *     the timer    first and latest: it lies CLOCK_DRIFT and the widths off
 *     was set      what the latest one said, so no line joins the two
 *     else         latest
 *
 * So a time is within half the width of its measure, 5 us once one was within
 * CLOCK_WIDTH_NS, plus the line's error over the time since: CLOCK_WIDTH_NS
 * over the distance of its two measures, or the timer's own error.
 *
 * A clock of RIG_NV_CLOCK_REGISTERS is measured at open alone.
 *
 * Ordering. The line is published in one of two places, in turns, by its
 * number. A reader loads the number (acquire), the place (relaxed), and the
 * number again behind an acquire fence: it is whole if the two are equal. The
 * writer fences (release) before it writes the other place, whose readers then
 * see a later number, and stores the number (release) behind it. A writer that
 * stops in the middle delays no reader.
 *
 * Threads: clock_open runs alone. clock_again and clock_time: any, at the same
 * time; of several clock_again one measures, and the others do not wait for it.
 */
#include "paths/path.h"
#include "rings/shared.h"

enum {
  CLOCK_READS = 16,
  CLOCK_WIDTH_NS = 10000,
  CLOCK_APART_NS = 1000000000,
  CLOCK_EVERY_NS = 62500000,
  CLOCK_DRIFT = 1000 /* a timer's rate is within 1 / CLOCK_DRIFT of nominal */
};

struct clock_measure {
  uint64_t host, timer, width;
};

struct clock_line {
  struct clock_measure first, latest;
};

struct clock {
  const struct rig_nv_clock *of; /* the path's */
  uint64_t (*now)(void *ctx);    /* CLOCK_MONOTONIC, in ns */
  void *ctx;
  struct {
    shared_64 first[3], latest[3]; /* host, timer, width */
  } lines[2];
  shared_64 number;    /* of the line, which is lines[number % 2] */
  shared_64 next;      /* the earliest time of another measure */
  shared_32 measuring; /* 1 while a thread does */
};

/* Reads the path's timer, as a measure of the host's clock `now`. The errors
 * of paths/call.h for a source's; FAULT where the registers answer all ones,
 * as those of a GPU that is lost do, or nothing that holds still; REFUSED where
 * a host clock runs back. */
int clock_measure(const struct rig_nv_clock *, uint64_t (*now)(void *ctx),
                  void *ctx, struct clock_measure *);

/* Takes the measure at open. The clock is of a path's, which stays. */
int clock_open(struct clock *, const struct rig_nv_clock *,
               uint64_t (*now)(void *ctx), void *ctx);

/* Measures again where it is time, and no other thread does. 0, or the errors
 * of clock_measure with the line unchanged. */
int clock_again(struct clock *);

/* The host's time of a stamp, in ns: never below 0, nor past UINT64_MAX. */
uint64_t clock_time(const struct clock *, uint64_t stamp);

/* The same along a line. */
uint64_t clock_line_time(const struct clock_line *, uint64_t stamp);
/* The line, whole. */
struct clock_line clock_line_now(const struct clock *);
#endif
