/* SPDX-License-Identifier: ISC */
/*
 * What the GPU keeps of code and constants from one launch to the next, by
 * address. It sees no later write: a launch that would run or read what memory
 * held before is refused, where a GPU runs it.
 *
 * One list for each cache, newest first; overlapping fetches both stay.
 */
#include <stdlib.h>
#include <string.h>

#include "paths/model/state.h"

enum { MOST = 256 };

/* The bytes that two ranges share, at *at; 0 where they share none. */
static uint64_t shared(const struct model_cached *k, uint64_t at, uint64_t n,
                       uint64_t *from) {
  uint64_t end = at + n < k->at + k->n ? at + n : k->at + k->n;
  *from = at > k->at ? at : k->at;
  return *from < end ? end - *from : 0;
}

static bool keep(struct model *m, enum model_cache cache, uint64_t at,
                 const uint8_t *p, uint64_t n) {
  struct model_cached *k = malloc(sizeof *k + n);
  if (!k)
    return false;
  k->at = at;
  k->n = n;
  memcpy(k->bytes, p, n);
  k->next = m->cached[cache];
  m->cached[cache] = k;
  return true;
}

/* Forgets what is beyond the MOST newest. */
static void trim(struct model_cached *k) {
  for (unsigned i = 1; k && i < MOST; i++)
    k = k->next;
  while (k && k->next) {
    struct model_cached *old = k->next;
    k->next = old->next;
    free(old);
  }
}

enum model_step model_cache_fetch(struct model *m, struct model_channel *c,
                                  enum model_cache cache, uint64_t at,
                                  const uint8_t *p, uint64_t n,
                                  const char *what) {
  bool held = false;
  for (struct model_cached *k = m->cached[cache]; k; k = k->next) {
    uint64_t from, both = shared(k, at, n, &from);
    if (both && memcmp(k->bytes + (from - k->at), p + (from - at), both))
      return model_stray(m, c,
                         "%s at 0x%llx was written since a launch fetched it "
                         "and no invalidate followed",
                         what, (unsigned long long)at);
    held |= k->at == at && k->n == n;
  }
  if (!held && !keep(m, cache, at, p, n))
    return model_stray(m, c, "%s: no host memory", what);
  trim(m->cached[cache]);
  return STEP_DONE;
}

void model_cache_drop(struct model *m, enum model_cache cache) {
  while (m->cached[cache]) {
    struct model_cached *k = m->cached[cache];
    m->cached[cache] = k->next;
    free(k);
  }
}
