/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_CREW_H
#define STRESS_BENCH_CREW_H
/*
 * Crew: threads that do one thing at the same time, each on a core of its own
 * where there are enough. They start together, and the clock runs from the
 * first one's first submission to the last one's last.
 *
 * Threads: one caller at a time.
 */
#include <stdbool.h>
#include <stdint.h>

#include "stress/bench/histogram.h"
#include "stress/bench/ways.h"

struct crew_cores {
  int at[1024]; /* that this process may run on */
  int n;
  bool pin; /* thread i stays on core i modulo n */
};

struct crew_job {
  enum way way;
  enum kind kind;
  unsigned threads;
  double seconds; /* until they stop, or */
  uint64_t posts; /* each thread's, where above 0 */
};

/* What is timed, of one submission each, from before its call. */
enum span {
  RETURNED, /* until the call returned */
  SHOWN,    /* until GP_PUT showed it, by whichever thread */
  RELEASED, /* until the word had it */
  SPANS
};

/* Ticks. A thread that follows stamps (way_begin) has one submission on its
 * mind at a time: it times its next one when it has seen that one's. */
struct crew_ticks {
  struct histogram of[SPANS];
};

struct crew_result {
  uint64_t submissions, laters;
  uint64_t fewest, most; /* of one thread */
  uint64_t ns, cpu_ns;   /* wall time; all threads' processor time */
};

void crew_cores_find(struct crew_cores *);
enum crew_clock {
  CLOCK_NONE,
  CLOCK_RETURNED, /* two readings of the ticks a submission */
  CLOCK_STAMPS    /* SHOWN and RELEASED, of WAY_POST */
};
/* Runs the job, and adds what its clock says to the ticks. False: a thread
 * could not be made. */
bool crew_run(const struct crew_cores *, const struct crew_job *,
              enum crew_clock, struct crew_ticks *, struct crew_result *);
/* The round trip of one line between two threads, on cores a and b of the list
 * (modulo its length), in ns; the median of 9. Below 0: no two cores. */
double crew_ping_pong(const struct crew_cores *, int a, int b);
#endif
