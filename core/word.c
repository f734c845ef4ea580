/* SPDX-License-Identifier: ISC */
#include <time.h>

#include "core/api/why.h"
#include "core/device.h"
#include "core/lock_order/lock_order.h"
#include "rings/shared.h"

enum {
  MS = 1000000,   /* in nanoseconds */
  SLEEP_MS = 1000 /* of a sleep that is given no bound */
};

uint64_t device_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

/* A signal ends it early: the caller looks again. */
void device_nap(uint64_t ns) {
  struct timespec t = {.tv_sec = 0, .tv_nsec = (long)ns};
  VALIDATE_BLOCK("nanosleep");
  (void)nanosleep(&t, NULL);
}

uint64_t rig_nv_signaled(const struct rig_nv *d) {
  /* Partner: the channel's release, and rig_word_raise. */
  return shared_load_acquire_64((const uint64_t *)d->facts.word);
}

static int sleep_while(struct rig_nv *d, uint64_t seen, int64_t still_ms) {
  int e = device_faulted(d);
  if (e == 0)
    e = device_fault(d, true);
  if (e != 0)
    return e;
  uint64_t ms = still_ms < 0 ? SLEEP_MS : (uint64_t)still_ms;
  uint64_t start = device_now();
  while (rig_nv_signaled(d) == seen) {
    e = device_fault(d, false);
    if (e == 0)
      e = device_faulted(d); /* by a call of another thread */
    if (e != 0)
      return e;
    uint64_t gone = device_now() - start;
    if (gone / MS >= ms)
      return 0;
    uint64_t left = ms > gone / MS + 1 ? MS : ms * MS - gone;
    device_nap(left);
  }
  return 0;
}

int rig_nv_sleep(struct rig_nv *d, uint64_t seen, int64_t still_ms) {
  if (rig_nv_signaled(d) != seen)
    return 0;
  int e = device_live(d);
  return e != 0 ? e : device_lose(d, sleep_while(d, seen, still_ms));
}
