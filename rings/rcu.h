/* SPDX-License-Identifier: ISC */
#ifndef RINGS_RCU_H
#define RINGS_RCU_H
/*
 * Read-copy-update: liburcu's bulletproof flavour (bp), behind one layer.
 *
 *   reader     lock .. p = dereference(&cell) .. reads *p .. unlock
 *   writer     assign(&cell, new) .. synchronize .. old is the writer's again
 *
 * synchronize returns once every section that was open as it began is closed.
 * So a reader that found the old pointer reads it before the writer, and one
 * whose section begins later finds the new one.
 *
 * Ordering: assign is a release store, whose partner is dereference's acquire
 * load. What a section read is read before the synchronize that waited for it
 * returns, and what the writer wrote after that is not seen by the section.
 * A thread that saw an assign happen, say by a value that the writer gave it,
 * dereferences that pointer or a later one.
 *
 * Threads: any. A thread's first section, or ring_rcu_register before it,
 * makes it known to liburcu: that may allocate, takes a mutex and makes system
 * calls, and is undone as the thread ends. Later sections do none of that: two
 * stores to memory of the thread's own. Sections nest. synchronize is called
 * in none, and by no thread whose locks a reader may wait for.
 *
 * Under TSan and UBSan the sections are calls, as liburcu's inlined code is
 * volatile accesses and a record less aligned than its type. TSan gets the
 * edges of a grace period from one tag: it judges the users, not liburcu. The
 * tag also orders sections begun after the grace period did, so that a read
 * which is too late by little may pass.
 */
#include <ck_pr.h>
#include <stdint.h>

#include "rings/shared.h"
#include "rings/validate.h"

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define RING_RCU_TSAN
#endif
#if __has_feature(undefined_behavior_sanitizer)
#define RING_RCU_CALLS
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define RING_RCU_TSAN
#endif

#if !defined(RING_RCU_TSAN) && !defined(RING_RCU_CALLS) &&                     \
    !defined(_LGPL_SOURCE)
#define _LGPL_SOURCE /* the sections inlined */
#endif
#include <urcu/urcu-bp.h>

#ifdef RING_RCU_TSAN
void __tsan_acquire(void *);
void __tsan_release(void *);
extern char ring_rcu_tag; /* every section to every grace period */
#define RING_RCU_LEAVES() __tsan_release(&ring_rcu_tag)
#define RING_RCU_WAITED() __tsan_acquire(&ring_rcu_tag)
#else
#define RING_RCU_LEAVES() ((void)0)
#define RING_RCU_WAITED() ((void)0)
#endif

static inline void ring_rcu_lock(void) {
  coop_point();
  urcu_bp_read_lock();
  VALIDATE_ENTER(&rig_nv_lock_in_rcu);
}

static inline void ring_rcu_unlock(void) {
  coop_point();
  VALIDATE_LEAVE(&rig_nv_lock_in_rcu);
  RING_RCU_LEAVES(); /* partner: the writer's RING_RCU_WAITED */
  urcu_bp_read_unlock();
}

/* Returns once no section that was open before the call is. */
static inline void ring_rcu_synchronize(void) {
  VALIDATE_SYNCHRONIZE();
  urcu_bp_synchronize_rcu();
  RING_RCU_WAITED(); /* partner: the readers' RING_RCU_LEAVES */
}

/* The pointer in the cell, in a section or under the writers' lock. */
static inline void *ring_rcu_dereference(const void *cell) {
  coop_point();
  void *p = ck_pr_load_ptr((void *const *)cell);
  ck_pr_fence_acquire(); /* partner: ring_rcu_assign */
  return p;
}

/* Puts p, and what the caller wrote behind it, into the cell. */
static inline void ring_rcu_assign(void *cell, const void *p) {
  coop_point();
  ck_pr_fence_release(); /* partner: ring_rcu_dereference */
  ck_pr_store_ptr((void **)cell, (void *)(uintptr_t)p);
}

/* Pays the calling thread's first section. The thread's end undoes it: the
 * flavour has nothing that undoes it sooner. */
static inline void ring_rcu_register(void) { urcu_bp_register_thread(); }
#endif
