/* SPDX-License-Identifier: ISC */
#ifndef RINGS_RCU_H
#define RINGS_RCU_H
/*
 * rings/rcu.h of the model, which has no grace periods: nothing that a section
 * reads is replaced. It is included before rings/rcu.h, whose guard it takes.
 */
static inline void ring_rcu_lock(void) {}
static inline void ring_rcu_unlock(void) {}
template <typename T> static inline T *ring_rcu_dereference(T *const *cell) {
  return *cell;
}
#endif
