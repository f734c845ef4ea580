/* SPDX-License-Identifier: ISC */
#include "rings/mark.h"

#include <string.h>

static struct mark *slot(const struct marks *m, uint64_t v) {
  return &m->at[v & (m->n - 1)];
}

static void set(struct mark *s, const struct cursor *c) {
  uint64_t w[CURSOR_WORDS];
  memcpy(w, c, sizeof w);
  for (int i = 0; i < CURSOR_WORDS; i++)
    shared_store_64(&s->w[i], w[i]);
}

void marks_init(struct marks *m, struct mark *at, uint32_t n,
                const struct cursor *start) {
  m->at = at;
  m->n = n;
  for (uint32_t i = 0; i < n; i++) {
    /* Of no value of slot i, as n > 1. */
    const struct cursor none = {.v = (uint64_t)i + 1};
    set(&at[i], &none);
  }
  set(slot(m, start->v), start);
}

bool mark_read(const struct marks *m, uint64_t v, struct cursor *c) {
  uint64_t w[CURSOR_WORDS];
  const struct mark *s = slot(m, v);
  w[0] =
      shared_load_acquire_64(&s->w[0]); /* partner: mark_write's last store */
  if (w[0] != v)
    return false;
  for (int i = 1; i < CURSOR_WORDS; i++)
    w[i] = shared_load_64(&s->w[i]);
  shared_fence_acquire(); /* partner: mark_write's release fence */
  if (shared_load_64(&s->w[0]) != v)
    return false;
  memcpy(c, w, sizeof w);
  return true;
}
