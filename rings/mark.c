/* SPDX-License-Identifier: ISC */
#include "rings/mark.h"

#include <string.h>

static struct mark *slot(const struct marks *m, uint64_t v) {
  return &m->at[v & (m->n - 1)];
}

void marks_init(struct marks *m, struct mark *at, uint32_t n,
                const struct cursor *start) {
  m->at = at;
  m->n = n;
  for (uint32_t i = 0; i < n; i++) {
    memset(&at[i], 0, sizeof at[i]);
    at[i].w[0] = (uint64_t)i + 1; /* of no value of slot i, as n > 1 */
  }
  memcpy(slot(m, start->v), start, sizeof *start);
}

void mark_write(const struct marks *m, const struct cursor *c) {
  uint64_t w[MARK_WORDS];
  struct mark *s = slot(m, c->v);
  memcpy(w, c, sizeof w);
  shared_store_release_64(&s->w[0], c->v - 1); /* partner: mark_read's look
                                                * behind its fence */
  shared_fence_release(); /* partner: mark_read's acquire fence */
  for (int i = 1; i < MARK_WORDS; i++)
    shared_store_64(&s->w[i], w[i]);
  shared_store_release_64(&s->w[0], c->v); /* partner: mark_read's first load */
}

bool mark_read(const struct marks *m, uint64_t v, struct cursor *c) {
  uint64_t w[MARK_WORDS];
  const struct mark *s = slot(m, v);
  w[0] =
      shared_load_acquire_64(&s->w[0]); /* partner: mark_write's last store */
  if (w[0] != v)
    return false;
  for (int i = 1; i < MARK_WORDS; i++)
    w[i] = shared_load_64(&s->w[i]);
  shared_fence_acquire(); /* partner: mark_write's release fence */
  if (shared_load_64(&s->w[0]) != v)
    return false;
  memcpy(c, w, sizeof *c);
  return true;
}
