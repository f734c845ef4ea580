/* SPDX-License-Identifier: ISC */
#include "stress/bench/histogram.h"

void histogram_merge(struct histogram *to, const struct histogram *from) {
  to->n += from->n;
  for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
    to->count[i] += from->count[i];
}

static double middle(unsigned bucket) {
  const unsigned linear = 1u << HISTOGRAM_LINEAR;
  if (bucket < 2 * linear)
    return bucket;
  unsigned shift = (bucket >> HISTOGRAM_LINEAR) - 1;
  uint64_t low = (uint64_t)(linear + bucket % linear) << shift;
  return (double)low + (double)((UINT64_C(1) << shift) - 1) / 2;
}

double histogram_at(const struct histogram *h, uint64_t of_million) {
  const uint64_t million = 1000000;
  uint64_t rest = h->n / million * of_million +
                  (h->n % million * of_million + million - 1) / million;
  unsigned i = 0;
  for (; i + 1 < HISTOGRAM_BUCKETS && h->count[i] < rest; i++)
    rest -= h->count[i];
  return h->n == 0 ? 0 : middle(i);
}
