/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_REPORT_H
#define STRESS_BENCH_REPORT_H
/*
 * What submit_bench measured, as tables or as JSON. A row is one way, kind,
 * number of threads and doorbell; a figure of it is the median of its runs.
 */
#include <stdio.h>

#include "stress/bench/crew.h"
#include "stress/bench/ways.h"

enum { MOST_RUNS = 99 };

enum figure {
  NS,     /* wall time over all threads' submissions */
  CPU,    /* their processor time over their submissions */
  RATE,   /* those a second */
  BELLS,  /* doorbells a submission */
  LATERS, /* answers of RIG_LATER a submission */
  SHARE,  /* of the thread with the fewest, of the one with the most */
  PING,   /* round trip of a line, between the first and the last core in
           * use, just before the row's threads ran; below 0: one core */
  FIGURES
};

/* Of a span's times (crew.h), in a pass of its own that reads the clock. */
enum quantile { P50, P99, P99_9, MOST, QUANTILES };

struct row {
  enum way way;
  enum kind kind; /* floor has none */
  unsigned threads;
  unsigned doorbell; /* index of the doorbell that it used */
  double at[FIGURES][MOST_RUNS];
  double span[SPANS][QUANTILES][MOST_RUNS]; /* ns; 0 where there are none */
};

struct doorbell {
  double asked_ns, measured_ns; /* what a store costs */
  unsigned long multiplies;
};

struct report {
  const char *cpu;
  unsigned cores, runs;
  bool pinned;
  double seconds;      /* of a pass, or */
  unsigned long posts; /* of each thread in a pass, where above 0 */
  double ns_a_tick;
  double reading_ns; /* of two readings of the ticks, within P50 and so on */
  const struct doorbell *doorbells;
  unsigned ndoorbells;
  struct row *rows;
  unsigned nrows;
};

void report_table(FILE *, const struct report *);
void report_json(FILE *, const struct report *);
#endif
