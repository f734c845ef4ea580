/* SPDX-License-Identifier: ISC */
#ifndef CORE_LOCAL_H
#define CORE_LOCAL_H
/*
 * Local memory: what the threads of kernels have for themselves. A device has
 * one piece for all, which only grows, and what the COMPUTE channel must be
 * told of it is published as a record of rings/setup.h.
 *
 *   grow:  new memory -> record n -> the value that carries n -> its word
 *                           |                                      |
 *          old memory  ---retired---------------------------------free
 *
 * A value before the one that carries n may use the old memory, and no later
 * one does. So once the tail's cursor knows n, that cursor's value is one
 * after which nobody uses the old memory, and once the word has reached it the
 * memory goes back, at the device's next allocation or growth of local memory.
 *
 * There are two records, written in turns: a grace period after each
 * publication ends the readers of the one before.
 *
 * Threads: everything but `retired`, which is looked at without it, belongs to
 * who holds the lock. The records' readers are in sections of rings/rcu.h.
 */
#include "core/lock_order/lock_order.h"
#include "paths/path.h"
#include "rings/setup.h"

struct local_retired;

struct local {
  struct rig_nv_lock lock;
  bool made;                     /* the lock is */
  struct rig_nv_memory memory;   /* or none, of no bytes */
  uint64_t per_thread;           /* what it gives */
  struct local_retired *retired; /* or NULL (ck_pr) */
  struct setup record[2];
};

struct rig_nv;

/* Of make. 0, or INVALID where the system makes no lock; unmake also of what
 * was never made. */
int local_make(struct rig_nv *);
void local_unmake(struct rig_nv *);

/* Grows local memory until each thread has `need` bytes, its stack and
 * LIMITS_LOCAL_RESERVED. 0, also where it has them. SHORT with *bytes, what
 * the path lacks memory for; INVALID from 2^40 bytes on, or where the lock is
 * refused; HOST_MEMORY, REFUSED; FAULT, also of a retired piece that the path
 * kept. A failure grew nothing. */
int local_grow(struct rig_nv *, uint64_t need, uint64_t *bytes);

/* Frees retired pieces that no value uses any more. 0, or the last FAULT. */
int local_free_retired(struct rig_nv *);

/* Has the next value that enters COMPUTE invalidate the caches, as code may
 * lie where other code was. 0, or INVALID where the lock is refused. */
int local_code_changed(struct rig_nv *);

/* Of stop: frees all of it, or leaves it to work that may still run. 0, or
 * the last FAULT. */
int local_end(struct rig_nv *, bool give_back);
#endif
