/* SPDX-License-Identifier: ISC */
/*
 * Semaphore words: 64-bit and 32-bit accesses, each whole. A release's store
 * is checked as it is executed and lands a few turns later, in the channel's
 * order.
 */
#include <ck_pr.h>
#include <string.h>

#include "paths/model/state.h"

enum { MOST_DELAY = 6 };

static uint64_t bytes_of(const struct model_store *s) {
  return s->stamped ? 16 : s->wide ? 8 : 4;
}

static bool reach_all(struct model *m, uint64_t at, uint64_t n,
                      struct model_twin *t) {
  uint64_t got = n;
  return model_reach_write(m, at, &got, t) && got == n;
}

enum model_step model_store_post(struct model *m, struct model_channel *c,
                                 const struct model_store *s) {
  struct model_twin t;
  uint64_t n = bytes_of(s);
  if (s->at % n)
    return model_stray(m, c, "a release of %llu bytes at 0x%llx is misaligned",
                       (unsigned long long)n, (unsigned long long)s->at);
  if (!reach_all(m, s->at, n, &t))
    return model_fault_mmu(m, c, s->at, FAULT_WRITE);
  if (c->nstores == STORES)
    return STEP_WAIT;
  c->stores[c->nstores] = *s;
  c->stores[c->nstores++].delay = model_below(m, MOST_DELAY);
  return STEP_DONE;
}

static void write(char *p, const struct model_store *s, uint64_t stamp) {
  if (s->stamped)
    ck_pr_store_64((uint64_t *)(void *)(p + 8), stamp);
  /* Release: pairs with the acquire load of whoever reads the word, the host
   * or another channel, who then sees the stamp and the work that the release
   * followed. */
  ck_pr_fence_release();
  if (s->wide)
    ck_pr_store_64((uint64_t *)(void *)p, s->payload);
  else
    ck_pr_store_32((uint32_t *)(void *)p, (uint32_t)s->payload);
}

bool model_store_land(struct model *m, struct model_channel *c) {
  struct model_store s = c->stores[0];
  struct model_twin t;
  memmove(c->stores, c->stores + 1, --c->nstores * sizeof *c->stores);
  if (!reach_all(m, s.at, bytes_of(&s), &t))
    return false;
  uint64_t stamp = model_timer(m);
  model_post_hold(t.post);
  write(t.gpu, &s, stamp);
  if (t.post)
    write(t.host, &s, stamp);
  model_post_go(t.post);
  return true;
}

bool model_word_load(struct model *m, uint64_t at, bool wide, uint64_t *x) {
  struct model_twin t;
  if (!reach_all(m, at, wide ? 8 : 4, &t))
    return false;
  /* Acquire: pairs with the release store of whoever wrote the word. */
  *x = wide ? ck_pr_load_64((uint64_t *)(void *)t.gpu)
            : ck_pr_load_32((uint32_t *)(void *)t.gpu);
  ck_pr_fence_acquire(); /* partner: that store */
  model_post_settle();
  return true;
}
