/* SPDX-License-Identifier: ISC */
#define _POSIX_C_SOURCE 200809L /* dprintf */

#include "core/lock_order/lock_order.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/api/why.h"

const struct rig_nv_lock_class rig_nv_lock_image = {"image", RIG_NV_RANK_IMAGE,
                                                    0};
const struct rig_nv_lock_class rig_nv_lock_local = {"local", RIG_NV_RANK_LOCAL,
                                                    0};
const struct rig_nv_lock_class rig_nv_lock_growth = {"growth",
                                                     RIG_NV_RANK_GROWTH, 0};
const struct rig_nv_lock_class rig_nv_lock_flush = {"flush", RIG_NV_RANK_FLUSH,
                                                    0};
const struct rig_nv_lock_class rig_nv_lock_path = {"path", RIG_NV_RANK_PATH, 0};

/* More than a reason holds, so that why marks a cut. */
enum { REPORT_BYTES = 2048 };

/* The locks that this thread holds, in the order they were taken. Takes rise
 * in rank and gives keep the order, so the last has the highest rank. */
struct held {
  struct rig_nv_lock *lock[RIG_NV_MOST_LOCKS];
  unsigned n;
  bool watched;   /* the thread's end is registered */
  bool reporting; /* inside the handler */
};

/* In static TLS, which a loaded library reaches with no call and no
 * allocation; a hundred bytes fit its reserve. */
static _Thread_local struct held held
    __attribute__((tls_model("initial-exec")));

static _Atomic(rig_nv_lock_handler *) handler;

rig_nv_lock_handler *rig_nv_lock_on_report(rig_nv_lock_handler *next) {
  /* release: pairs with report's acquire; acquire: with the exchange that
   * stored the former handler. */
  return atomic_exchange_explicit(&handler, next, memory_order_acq_rel);
}

static void report(const char *text) {
  /* pairs with rig_nv_lock_on_report's release */
  rig_nv_lock_handler *h = atomic_load_explicit(&handler, memory_order_acquire);
  if (!h || held.reporting)
    return;
  held.reporting = true;
  h(text);
  held.reporting = false;
}

/* The reason is kept last: the handler's own calls may fail and keep theirs. */
__attribute__((format(printf, 1, 2), cold)) static int refuse(const char *fmt,
                                                              ...) {
  char text[REPORT_BYTES];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  report(text);
  return why(RIG_NV_INVALID, "%s", text);
}

__attribute__((format(printf, 1, 2), cold, noreturn)) static void
stop_process(const char *fmt, ...) {
  char text[REPORT_BYTES];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  report(text);
  dprintf(STDERR_FILENO, "rig_nv: %s\n", text);
  abort();
}

/* The thread's end. */

static pthread_key_t end_key;
static bool end_key_made; /* written once, inside pthread_once */

static void on_end(void *unused) {
  (void)unused;
  if (held.n == 0)
    return;
  const struct rig_nv_lock *l = held.lock[held.n - 1];
  stop_process("a thread ended holding lock \"%s\", taken at %s", l->cls->name,
               l->site);
}

static void make_end_key(void) {
  end_key_made = pthread_key_create(&end_key, on_end) == 0;
}

/* The code of on_end goes when the library is unloaded. */
__attribute__((destructor)) static void delete_end_key(void) {
  if (end_key_made)
    pthread_key_delete(end_key);
}

/* Failure leaves this thread's end unwatched and every lock sound. */
__attribute__((cold)) static void watch_end(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  held.watched = true;
  pthread_once(&once, make_end_key);
  if (end_key_made)
    (void)pthread_setspecific(end_key, &held);
}

int rig_nv_lock_init(struct rig_nv_lock *l,
                     const struct rig_nv_lock_class *cls) {
  if (!l || !cls || !cls->name)
    return why(RIG_NV_INVALID, "lock init: no lock, class or class name");
  if (cls->flags != 0)
    return why(RIG_NV_INVALID, "lock init: class \"%s\" has unknown flags %#x",
               cls->name, cls->flags);
  /* The default kind has no owner: the order refuses a recursive take, give
   * knows the holder, and a forked child, whose thread id is another, may give
   * what it holds. */
  int error = pthread_mutex_init(&l->mutex, NULL);
  if (error != 0)
    return why(RIG_NV_INVALID, "lock init: no mutex for \"%s\": error %d",
               cls->name, error);
  l->cls = cls;
  l->site = NULL;
  return 0;
}

void rig_nv_lock_fini(struct rig_nv_lock *l) {
  /* A lock that this thread holds: its site may be read. */
  for (unsigned i = 0; i < held.n; i++)
    if (held.lock[i] == l)
      stop_process("fini of lock \"%s\", which the thread took at %s",
                   l->cls->name, l->site);
  /* To destroy a locked mutex is undefined. */
  int error = pthread_mutex_trylock(&l->mutex);
  if (error == 0)
    error = pthread_mutex_unlock(&l->mutex);
  if (error == 0)
    error = pthread_mutex_destroy(&l->mutex);
  if (error != 0)
    stop_process("fini of lock \"%s\", which a thread holds: error %d",
                 l->cls ? l->cls->name : "?", error);
  l->cls = NULL;
}

/* Why the held locks forbid a take of l. */
__attribute__((cold)) static int refuse_take(const struct rig_nv_lock *l,
                                             const char *site) {
  if (!l || !l->cls)
    return refuse("take at %s refused: the lock has no class", site);
  for (unsigned i = 0; i < held.n; i++)
    if (held.lock[i] == l)
      return refuse("take of lock \"%s\" at %s refused: the thread holds that "
                    "very lock, taken at %s",
                    l->cls->name, site, l->site);
  const struct rig_nv_lock *last = held.lock[held.n - 1];
  if (last->cls->rank < l->cls->rank)
    return refuse("take of lock \"%s\" at %s refused: the thread holds %u "
                  "locks, the most there may be, the last \"%s\", taken at %s",
                  l->cls->name, site, held.n, last->cls->name, last->site);
  return refuse("take of lock \"%s\" (rank %d) at %s refused: the thread holds "
                "lock \"%s\" (rank %d), taken at %s, and ranks must rise",
                l->cls->name, l->cls->rank, site, last->cls->name,
                last->cls->rank, last->site);
}

/* Whether the locks that the thread holds allow a take of l. */
static inline bool in_order(const struct rig_nv_lock *l) {
  if (!l || !l->cls)
    return false;
  if (held.n == 0)
    return true;
  return held.n < RIG_NV_MOST_LOCKS &&
         held.lock[held.n - 1]->cls->rank < l->cls->rank;
}

int rig_nv_lock_take_at(struct rig_nv_lock *l, const char *site) {
  if (!in_order(l))
    return refuse_take(l, site);
  if (!held.watched)
    watch_end();
  int error = pthread_mutex_lock(&l->mutex);
  if (error != 0)
    return refuse("take of lock \"%s\" at %s refused: mutex error %d",
                  l->cls->name, site, error);
  l->site = site;
  held.lock[held.n++] = l;
  return 0;
}

void rig_nv_lock_give(struct rig_nv_lock *l) {
  unsigned i = held.n;
  while (i > 0 && held.lock[i - 1] != l)
    i--;
  if (i == 0)
    stop_process("give of lock \"%s\", which the thread does not hold",
                 l && l->cls ? l->cls->name : "?");
  for (; i < held.n; i++)
    held.lock[i - 1] = held.lock[i];
  held.n--;
  l->site = NULL;
  int error = pthread_mutex_unlock(&l->mutex);
  if (error != 0)
    stop_process("give of lock \"%s\": mutex error %d", l->cls->name, error);
}

int rig_nv_lock_protect_at(struct rig_nv_lock *l, int (*fn)(void *), void *arg,
                           const char *site) {
  int refused = rig_nv_lock_take_at(l, site);
  if (refused != 0)
    return refused;
  int result = fn(arg);
  rig_nv_lock_give(l);
  return result;
}

int rig_nv_lock_idle(void) {
  if (held.n == 0)
    return 0;
  const struct rig_nv_lock *l = held.lock[held.n - 1];
  return refuse("call refused: the thread holds lock \"%s\", taken at %s",
                l->cls->name, l->site);
}

int rig_nv_lock_guarded(int (*fn)(void *), void *arg) {
  int refused = rig_nv_lock_idle();
  if (refused != 0)
    return refused;
  int result = fn(arg);
  if (held.n != 0) {
    const struct rig_nv_lock *l = held.lock[held.n - 1];
    stop_process("a guarded call returned holding lock \"%s\", taken at %s",
                 l->cls->name, l->site);
  }
  return result;
}
