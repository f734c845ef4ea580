/* SPDX-License-Identifier: ISC */
#ifndef RIG_NV_LOCK_ORDER_H
#define RIG_NV_LOCK_ORDER_H
/*
 * lock_order: mutexes that refuse to be taken out of order.
 *
 * A lock has a class, and a class a rank. A thread takes locks in rising rank
 * alone: a take of a rank that is not above every rank the thread holds is
 * refused before it can deadlock, with nothing taken. So a second lock of one
 * class and a recursive take are refused too. The check is always on.
 *
 *   take(l):  rank(l) >  highest rank held  ->  waits for l, holds it, 0
 *             rank(l) <= highest rank held  ->  -RIG_NV_INVALID
 *
 *   thread:   image | local | growth | flush | path     ranks rise
 *              held   held     |       |       take path   -> held
 *              held   held     |       |       take image  -> refused
 *
 * Entry points that may take a lock run their whole body in
 * rig_nv_lock_guarded, or ask rig_nv_lock_idle first: a call from a callback
 * inside a lock is then refused as it starts, before it changed anything.
 *
 * Errors: -RIG_NV_INVALID, nothing taken and nothing changed; rig_nv_why names
 * the lock wanted, the lock held and the place in the source that took each.
 * A mistake that no result can report stops the process: a line on standard
 * error, then abort(), in release builds too. These are a give of a lock that
 * the thread does not hold, rig_nv_lock_fini of a lock that is held, a guarded
 * function that returns holding a lock, and a thread that ends holding one,
 * which would leave every later taker waiting for ever.
 *
 * Ordering: what a thread wrote before its give is visible to the lock's next
 * taker (pthread_mutex_unlock, pthread_mutex_lock).
 *
 * Threads: any thread may call any function, at the same time as others, but
 * rig_nv_lock_init and rig_nv_lock_fini of a lock run alone on it. A lock is
 * given by the thread that took it, in any order. A signal handler calls none
 * of these functions. No function is a cancellation point, and none may be
 * left by longjmp. A thread's first take registers the thread's end and may
 * allocate; a later take and a give allocate nothing and make no system call
 * unless another thread holds or waits for the lock. A thread's end goes
 * unwatched where the process has no thread-specific key left.
 *
 * Fork: the child's thread holds what the thread that forked held, and may
 * give it. A lock that another thread held stays taken in the child, and a
 * take of it waits for ever, since what it guards may be half changed.
 */
#include <pthread.h>

#include "core/api/rig_edge.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order of locks. It is this list; the gaps are for programs' own ranks.
 * Locks that the specification does not name lie between LOCAL and PATH: they
 * guard records of the device that an entry point may reach with an image's
 * and the local memory lock held, and what they guard calls the path. */
enum rig_nv_rank {
  /* An image's functions: held by entry and unload, which may need local
   * memory for a function. */
  RIG_NV_RANK_IMAGE = 100,
  /* A device's local memory: held by entry and stop while they allocate and
   * free it. */
  RIG_NV_RANK_LOCAL = 200,
  /* A device's newest ring generation: held while rings are made and retired
   * ones given back. After LOCAL, as an allocation of local memory gives
   * retired rings back; before PATH, as rings are the path's memory. */
  RIG_NV_RANK_GROWTH = 300,
  /* What devices view of each other's Mapped memory (rings/flush.h), one lock
   * for all: held across grace periods, so after every lock that a growth or
   * a free may hold, and never inside a path's. */
  RIG_NV_RANK_FLUSH = 350,
  /* A path's own: last, as the path calls back into nothing. One at a time. */
  RIG_NV_RANK_PATH = 400
};

/* A kind of lock. It outlives its locks. */
struct rig_nv_lock_class {
  const char *name; /* as refusals call it */
  int rank;         /* an enum rig_nv_rank, or a program's own */
  unsigned flags;   /* 0 */
};

extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_image;
extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_local;
extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_growth;
extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_flush;
extern RIG_PUBLIC const struct rig_nv_lock_class rig_nv_lock_path;

struct rig_nv_lock {
  pthread_mutex_t mutex;
  const struct rig_nv_lock_class *cls;
  const char *site; /* where its holder took it, NULL free; for debuggers */
};

/* The value of a lock with static storage, which needs no rig_nv_lock_init:
 * static struct rig_nv_lock l = RIG_NV_LOCK(&rig_nv_lock_path); */
#define RIG_NV_LOCK(cls) {PTHREAD_MUTEX_INITIALIZER, cls, 0}

/* The most locks that a thread holds; a take beyond it is refused. */
#define RIG_NV_MOST_LOCKS 8

/* "file:line" of where it stands. */
#define RIG_NV_SITE_TEXT(line) #line
#define RIG_NV_SITE_LINE(line) RIG_NV_SITE_TEXT(line)
#define RIG_NV_SITE __FILE__ ":" RIG_NV_SITE_LINE(__LINE__)

/* Makes *l a free lock of the class. INVALID for a class with no name or with
 * flags, or where the system makes no mutex. */
RIG_PUBLIC int rig_nv_lock_init(struct rig_nv_lock *l,
                                const struct rig_nv_lock_class *);
/* Ends a free lock. */
RIG_PUBLIC void rig_nv_lock_fini(struct rig_nv_lock *l);

/* Waits until the lock is free and takes it. INVALID out of order, beyond
 * RIG_NV_MOST_LOCKS, or before rig_nv_lock_init of a zeroed lock. site is the
 * place refusals name, a string that lives as long as the lock is held. */
RIG_PUBLIC int rig_nv_lock_take_at(struct rig_nv_lock *l, const char *site)
    __attribute__((warn_unused_result));
#define rig_nv_lock_take(l) rig_nv_lock_take_at(l, RIG_NV_SITE)

/* Gives a lock that the thread holds. */
RIG_PUBLIC void rig_nv_lock_give(struct rig_nv_lock *l);

/* Takes the lock, runs fn(arg), gives the lock and returns what fn returned;
 * INVALID where the take is refused, fn not run. */
RIG_PUBLIC int rig_nv_lock_protect_at(struct rig_nv_lock *l, int (*fn)(void *),
                                      void *arg, const char *site);
#define rig_nv_lock_protect(l, fn, arg)                                        \
  rig_nv_lock_protect_at(l, fn, arg, RIG_NV_SITE)

/* 0 where the thread holds no lock; else INVALID, and rig_nv_why names the
 * lock. */
RIG_PUBLIC int rig_nv_lock_idle(void) __attribute__((warn_unused_result));

/* Runs fn(arg), the whole body of an entry point, and returns what it
 * returned; INVALID as rig_nv_lock_idle, fn not run. */
RIG_PUBLIC int rig_nv_lock_guarded(int (*fn)(void *), void *arg);

/* Called with the text of each refusal, and with the line of a mistake that
 * stops the process, by the thread concerned, which holds what it held. Its
 * own refusals are not reported. It returns. */
typedef void rig_nv_lock_handler(const char *text);

/* Replaces the handler, NULL none, which is the first, and returns the former
 * one, which other threads may still be in. */
RIG_PUBLIC rig_nv_lock_handler *rig_nv_lock_on_report(rig_nv_lock_handler *);

#ifdef __cplusplus
}
#endif
#endif
