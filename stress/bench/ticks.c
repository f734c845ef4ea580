/* SPDX-License-Identifier: ISC */
#include "stress/bench/ticks.h"

double ticks_calibrate(void) {
  uint64_t ns = clock_ns(), begin = ticks(), now;
  while ((now = clock_ns()) - ns < 50000000)
    ;
  return (double)(now - ns) / (double)(ticks() - begin);
}

uint64_t ticks_between(void) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 10000; i++) {
    uint64_t begin = ticks(), took = ticks() - begin;
    if (took < least)
      least = took;
  }
  return least;
}

/* The least of many: whatever else ran made the others longer. */
static double chain(uint64_t n, double ns_a_tick) {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 1000; i++) {
    uint64_t begin = ticks();
    ticks_multiply(n);
    uint64_t took = ticks() - begin;
    if (took < least)
      least = took;
  }
  return (double)least * ns_a_tick;
}

/* A chain's length without its ends, and many times n, for a reading may be
 * as coarse as 10 ns. */
double ticks_measure(uint64_t n, double ns_a_tick) {
  const uint64_t times = 16;
  double more = chain((times + 1) * n, ns_a_tick) - chain(n, ns_a_tick);
  return more / (double)times;
}

uint64_t ticks_multiplies(double ns, double ns_a_tick) {
  const uint64_t some = 100;
  double took = ticks_measure(some, ns_a_tick);
  return took <= 0 ? 0 : (uint64_t)(ns * (double)some / took + 0.5);
}
