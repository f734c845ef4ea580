/* SPDX-License-Identifier: ISC */
#ifndef RINGS_SHARED_H
#define RINGS_SHARED_H
/*
 * Memory that threads share: the only words for it in this library. They are
 * Concurrency Kit's, with the order in the name. A relaxed access is atomic
 * and orders nothing; an acquire load orders what follows it, a release store
 * what came before it, and each names its partner where it is used.
 */
#include <ck_pr.h>
#include <stdint.h>

static inline uint64_t shared_load_64(const uint64_t *p) {
  return ck_pr_load_64(p);
}

static inline uint64_t shared_load_acquire_64(const uint64_t *p) {
  uint64_t v = ck_pr_load_64(p);
  ck_pr_fence_acquire(); /* the load above, before whatever the caller reads */
  return v;
}

static inline void shared_store_64(uint64_t *p, uint64_t v) {
  ck_pr_store_64(p, v);
}

static inline void shared_store_release_64(uint64_t *p, uint64_t v) {
  ck_pr_fence_release(); /* what the caller wrote, before the store below */
  ck_pr_store_64(p, v);
}

static inline uint32_t shared_load_32(const uint32_t *p) {
  return ck_pr_load_32(p);
}

/* Earlier loads before later ones; pairs with shared_fence_release. */
static inline void shared_fence_acquire(void) {
  ck_pr_fence_acquire(); /* partner: the writer's shared_fence_release */
}

/* Earlier stores before later ones; pairs with shared_fence_acquire. */
static inline void shared_fence_release(void) {
  ck_pr_fence_release(); /* partner: the reader's shared_fence_acquire */
}
#endif
