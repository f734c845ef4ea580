/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_HISTOGRAM_H
#define STRESS_BENCH_HISTOGRAM_H
/*
 * Histogram: log-linear counts of 64-bit numbers. Numbers below 2^LINEAR have
 * a bucket each; every further power of two is cut into 2^LINEAR equal ones,
 * so a bucket is at most 1/64 as wide as what it holds is large.
 *
 *   bucket   0 .. 63    64 .. 127      128 .. 191        ...
 *   holds    0 .. 63    64 .. 127 (1)  128 .. 255 (2)    ...    (its width)
 *
 * One thread at a time a histogram.
 */
#include <stdint.h>

enum {
  HISTOGRAM_LINEAR = 6,
  HISTOGRAM_BUCKETS = (64 - HISTOGRAM_LINEAR + 1) << HISTOGRAM_LINEAR
};

struct histogram {
  uint64_t n;
  uint64_t count[HISTOGRAM_BUCKETS];
};

static inline unsigned histogram_bucket(uint64_t x) {
  if (x >> HISTOGRAM_LINEAR == 0)
    return (unsigned)x;
  unsigned shift = 63 - (unsigned)__builtin_clzll(x) - HISTOGRAM_LINEAR;
  return (shift << HISTOGRAM_LINEAR) + (unsigned)(x >> shift);
}

static inline void histogram_add(struct histogram *h, uint64_t x) {
  h->n++;
  h->count[histogram_bucket(x)]++;
}

void histogram_merge(struct histogram *to, const struct histogram *from);
/* The middle of the bucket of the least number that at least `of_million`
 * millionths of them do not exceed. 0 of an empty one. */
double histogram_at(const struct histogram *, uint64_t of_million);
#endif
