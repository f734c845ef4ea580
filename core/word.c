/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <time.h>

#include "core/api/why.h"
#include "core/device.h"
#include "core/lock_order/lock_order.h"
#include "rings/shared.h"

enum {
  MS = 1000000,      /* in nanoseconds */
  FIRST_NAP = 20000, /* of a wait, doubled up to MS */
  SPINS = 400,       /* before the first nap: a release's round trip */
  SLEEP_MS = 1000    /* of a sleep that is given no bound */
};

uint64_t device_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static void nap(uint64_t ns) {
  struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
  (void)nanosleep(&t,
                  NULL); /* a signal ends it early: the caller looks again */
}

uint64_t rig_nv_signaled(const struct rig_nv *d) {
  /* Partner: the channel's release, and rig_word_raise. */
  return shared_load_acquire_64((const uint64_t *)d->facts.word);
}

/* 0; FAULT; INVALID for a call that may not be made now. */
static int may_wait(const struct rig_nv *d) {
  int e = device_enter(d);
  return e != 0 ? e : device_fault(d, true);
}

int rig_nv_sleep(struct rig_nv *d, uint64_t seen, int64_t still_ms) {
  if (rig_nv_signaled(d) != seen)
    return 0;
  int e = may_wait(d);
  if (e != 0)
    return e;
  uint64_t ms = still_ms < 0 ? SLEEP_MS : (uint64_t)still_ms;
  uint64_t start = device_now();
  while (rig_nv_signaled(d) == seen) {
    e = device_fault(d, false);
    if (e != 0)
      return e;
    uint64_t gone = device_now() - start;
    if (gone / MS >= ms)
      return 0;
    uint64_t left = ms > gone / MS + 1 ? MS : ms * MS - gone;
    nap(left);
  }
  return 0;
}

int rig_nv_wait(struct rig_nv *d, uint64_t v, uint64_t deadline_ns) {
  uint64_t word = rig_nv_signaled(d);
  for (int i = 0; i < SPINS && !rig_reached(word, v); i++) {
    ck_pr_stall();
    word = rig_nv_signaled(d);
  }
  if (rig_reached(word, v))
    return 0;
  int e = may_wait(d);
  uint64_t pause = FIRST_NAP, moved = device_now();
  while (e == 0) {
    uint64_t now = device_now();
    if (now >= deadline_ns)
      return why(RIG_NV_TIMEOUT, "wait: value %llu is not reached",
                 (unsigned long long)v);
    if (d->facts.hang_ms >= 0 &&
        (now - moved) / MS >= (uint64_t)d->facts.hang_ms)
      return why(RIG_NV_STALLED, "no progress for %lld ms",
                 (long long)d->facts.hang_ms);
    nap(pause < deadline_ns - now ? pause : deadline_ns - now);
    pause = pause * 2 < MS ? pause * 2 : MS;
    uint64_t seen = word;
    word = rig_nv_signaled(d);
    if (rig_reached(word, v))
      return 0;
    if (word != seen)
      moved = device_now();
    e = device_fault(d, false);
  }
  return e;
}
