/* SPDX-License-Identifier: ISC */
/*
 * Waiting for a value. The GPU wakes nobody: somebody has to look at the word.
 * One of the waiting threads watches for all, the others sleep on a futex:
 *
 *   watcher   looks, naps 20 us .. 1 ms; each time the word moved, epoch + 1
 *             and a wake; as it leaves, gives the watch up, epoch + 1, a wake
 *   sleeper   loads the epoch, fails to take the watch, sleeps while the epoch
 *             is what it loaded, SLEEP_NS at most
 *
 * Ordering. A wake is not lost: the watcher adds to the epoch and then loads
 * `sleepers`, a sleeper adds to `sleepers` and then the kernel compares the
 * epoch; both adds are full barriers. A watch that ends between a sleeper's
 * load of the epoch and its sleep has moved the epoch, so it does not sleep.
 *
 * A thread that stops while it watches delays the others by SLEEP_NS a look.
 */
#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/api/why.h"
#include "core/device.h"

enum {
  MS = 1000000,       /* in nanoseconds */
  FIRST_NAP = 20000,  /* of a watch, doubled up to MS */
  SLEEP_NS = 20 * MS, /* of a sleeper, which then looks by itself */
  SPINS = 400         /* before anything else: a release's round trip */
};

struct wait {
  struct rig_nv *d;
  uint64_t v, deadline_ns;
  uint64_t word;  /* as last seen */
  uint64_t moved; /* when that was first seen */
};

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Looks at the word; whether v is reached. */
static bool look(struct wait *k) {
  uint64_t word = rig_nv_signaled(k->d);
  if (word != k->word) {
    k->word = word;
    k->moved = device_now();
  }
  return rig_reached(word, k->v);
}

/* Whether the value that is next to be reached may wait for words that others
 * write: then a still word is no sign of a hang. */
static bool next_waits(const struct wait *k) {
  struct cursor c;
  return mark_read(&k->d->rings.marks, k->word + 1, &c) && c.waits;
}

/* 0; TIMEOUT; STALLED. */
static int bounds(const struct wait *k, uint64_t now) {
  int64_t hang = k->d->facts.hang_ms;
  if (now >= k->deadline_ns)
    return why(RIG_NV_TIMEOUT, "wait: value %llu is not reached",
               (unsigned long long)k->v);
  if (hang >= 0 && now > k->moved && (now - k->moved) / MS >= (uint64_t)hang &&
      !next_waits(k))
    return why(RIG_NV_STALLED, "no progress for %lld ms", (long long)hang);
  return 0;
}

static void wake(struct device_watch *w) {
  ck_pr_inc_32(&w->epoch); /* partner: a sleeper's add to `sleepers` */
  shared_fence_full();     /* the epoch, before `sleepers` */
  if (shared_load_32(&w->sleepers) != 0)
    (void)syscall(SYS_futex, &w->epoch, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL,
                  NULL, 0);
}

/* Until v is reached, or an error. The caller holds the watch. */
static int watch(struct wait *k) {
  int e = 0;
  for (uint64_t pause = FIRST_NAP; e == 0;) {
    uint64_t now = device_now(), seen = k->word;
    e = bounds(k, now);
    if (e != 0)
      break;
    device_nap(least(pause, k->deadline_ns - now));
    pause = least(2 * pause, MS);
    bool reached = look(k);
    if (k->word != seen) {
      wake(&k->d->watch);
      pause = FIRST_NAP;
    }
    if (reached)
      break;
    e = device_fault(k->d, false);
    if (e == 0)
      e = device_lost(k->d); /* by a call of another thread */
  }
  shared_store_release_32(&k->d->watch.held, 0); /* partner: the next taker */
  wake(&k->d->watch);
  return e;
}

/* Until somebody saw the word move, the watch is free, or SLEEP_NS is over. */
static void sleep_on(struct wait *k, uint32_t epoch) {
  struct device_watch *w = &k->d->watch;
  uint64_t now = device_now(), ns = SLEEP_NS;
  if (now < k->deadline_ns)
    ns = least(ns, k->deadline_ns - now);
  struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
  ck_pr_inc_32(&w->sleepers); /* partner: wake's add to the epoch */
  shared_fence_full();        /* `sleepers`, before the kernel's compare */
  (void)syscall(SYS_futex, &w->epoch, FUTEX_WAIT_PRIVATE, epoch, &t, NULL, 0);
  ck_pr_dec_32(&w->sleepers);
}

/* Watches, or sleeps while another thread does. */
static int wait_on(struct wait *k) {
  struct device_watch *w = &k->d->watch;
  int e = device_fault(k->d, true);
  k->moved = device_now();
  while (e == 0) {
    uint32_t epoch = shared_load_acquire_32(&w->epoch);
    if (shared_cas_32(&w->held, 0, 1)) /* partner: watch's give */
      return watch(k);
    if (look(k))
      return 0;
    e = bounds(k, device_now());
    if (e != 0)
      return e;
    sleep_on(k, epoch);
    if (look(k))
      return 0;
  }
  return e;
}

int rig_nv_wait(struct rig_nv *d, uint64_t v, uint64_t deadline_ns) {
  struct wait k = {.d = d, .v = v, .deadline_ns = deadline_ns};
  k.word = rig_nv_signaled(d);
  for (int i = 0; i < SPINS && !rig_reached(k.word, v); i++) {
    ck_pr_stall();
    k.word = rig_nv_signaled(d);
  }
  if (rig_reached(k.word, v))
    return 0;
  int e = device_enter(d);
  return e != 0 ? e : device_lose(d, wait_on(&k));
}
