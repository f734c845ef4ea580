/* SPDX-License-Identifier: ISC */
#ifndef RINGS_SHARED_H
#define RINGS_SHARED_H
/*
 * Memory that threads share: the only words for it in this library. They are
 * Concurrency Kit's, with the order in the name. A relaxed access is atomic
 * and orders nothing; an acquire load orders what follows it, a release store
 * what came before it, and each names its partner where it is used. Every
 * read-modify-write is a full barrier, whether it succeeds or not.
 *
 * Their types say so: a shared_64 is touched through these functions alone. A
 * guarded_64 is an ordinary word, of whoever holds what guards it. With
 * -DRIG_RELACY, in C++, all of them are relacy's. With -DRIG_COOP each first
 * lets another thread of a test run (stress/coop).
 */
#include <stdbool.h>
#include <stdint.h>

#ifdef RIG_RELACY
#include "rings/shared_relacy.h"
#else
#include <ck_pr.h>

typedef uint64_t shared_64, guarded_64;
typedef uint32_t shared_32, guarded_32;

/* Two words that are swapped as one, and loaded one by one. */
typedef struct {
  uint64_t w[2];
} __attribute__((aligned(16))) shared_pair;

#ifdef RIG_COOP
void coop_point(void);
void coop_spin(void);
#else
#define coop_point() ((void)0)
#define coop_spin() ((void)0)
#endif

/* Earlier loads before later ones; pairs with shared_fence_release. */
static inline void shared_fence_acquire(void) {
  coop_point();
  ck_pr_fence_acquire(); /* partner: the writer's shared_fence_release */
}

/* Earlier stores before later ones; pairs with shared_fence_acquire. */
static inline void shared_fence_release(void) {
  coop_point();
  ck_pr_fence_release(); /* partner: the reader's shared_fence_acquire */
}

/* Earlier stores before later loads; pairs with another thread's, or with its
 * read-modify-write. On x86 a locked operation is that, at a quarter of
 * mfence's price. */
static inline void shared_fence_full(void) {
  coop_point();
#if defined(__x86_64__)
  uint32_t own = 0;
  (void)ck_pr_faa_32(&own, 0);
#else
  ck_pr_fence_memory(); /* partner: the other thread's */
#endif
}

static inline uint64_t shared_load_64(const shared_64 *p) {
  coop_point();
  return ck_pr_load_64(p);
}

static inline uint64_t shared_load_acquire_64(const shared_64 *p) {
  coop_point();
  uint64_t v = ck_pr_load_64(p);
  ck_pr_fence_acquire(); /* the load above, before whatever the caller reads */
  return v;
}

static inline void shared_store_64(shared_64 *p, uint64_t v) {
  coop_point();
  ck_pr_store_64(p, v);
}

static inline void shared_store_release_64(shared_64 *p, uint64_t v) {
  coop_point();
  ck_pr_fence_release(); /* what the caller wrote, before the store below */
  ck_pr_store_64(p, v);
}

static inline uint64_t shared_load_acquire_first(const shared_pair *p) {
  coop_point();
  uint64_t v = ck_pr_load_64(&p->w[0]);
  ck_pr_fence_acquire(); /* the load above, before whatever the caller reads */
  return v;
}

static inline uint64_t shared_load_first(const shared_pair *p) {
  coop_point();
  return ck_pr_load_64(&p->w[0]);
}

static inline uint64_t shared_load_second(const shared_pair *p) {
  coop_point();
  return ck_pr_load_64(&p->w[1]);
}

/* Before any other thread. */
static inline void shared_init_pair(shared_pair *p, uint64_t a, uint64_t b) {
  p->w[0] = a;
  p->w[1] = b;
}

static inline bool shared_cas_pair(shared_pair *p, uint64_t from_first,
                                   uint64_t from_second, uint64_t to_first,
                                   uint64_t to_second) {
  uint64_t from[2] = {from_first, from_second}, to[2] = {to_first, to_second};
  uint64_t seen[2];
  coop_point();
  ck_pr_fence_release(); /* what the caller wrote, before the swap */
  bool swapped = ck_pr_cas_64_2_value(p->w, from, to, seen);
  ck_pr_fence_acquire(); /* the swap, before whatever the caller reads */
  return swapped;
}

static inline uint32_t shared_load_32(const shared_32 *p) {
  coop_point();
  return ck_pr_load_32(p);
}

static inline uint32_t shared_load_acquire_32(const shared_32 *p) {
  coop_point();
  uint32_t v = ck_pr_load_32(p);
  ck_pr_fence_acquire(); /* the load above, before whatever the caller reads */
  return v;
}

static inline void shared_store_release_32(shared_32 *p, uint32_t v) {
  coop_point();
  ck_pr_fence_release(); /* what the caller wrote, before the store below */
  ck_pr_store_32(p, v);
}

static inline bool shared_cas_32(shared_32 *p, uint32_t from, uint32_t to) {
  coop_point();
  ck_pr_fence_release(); /* what the caller wrote, before the swap */
  bool swapped = ck_pr_cas_32(p, from, to);
  ck_pr_fence_acquire(); /* the swap, before whatever the caller reads */
  return swapped;
}

static inline uint32_t shared_exchange_32(shared_32 *p, uint32_t v) {
  coop_point();
  ck_pr_fence_release(); /* what the caller wrote, before the exchange */
  uint32_t old = ck_pr_fas_32(p, v);
  ck_pr_fence_acquire(); /* the exchange, before whatever the caller reads */
  return old;
}

/* A spin for another thread: to this one, nothing. */
static inline void shared_spin(void) { coop_spin(); }
#ifdef RIG_COOP
#define ck_pr_stall() shared_spin()
#endif
#endif
#endif
