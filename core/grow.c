/* SPDX-License-Identifier: ISC */
/*
 * Growth of a device's rings, for parts that they do not hold: growth/ makes
 * the rings; here is which parts.
 */
#include <inttypes.h>

#include "core/api/why.h"
#include "core/device.h"

enum { ASKS = 4 /* growths that a submission asks for, as an allocation */ };

int rig_nv_grow(struct rig_nv *d, uint64_t *bytes) {
  struct ring_need need;
  int e = device_enter(d);
  if (e != 0)
    return e;
  if (!rings_grow_need(&d->rings, &need))
    return why(RIG_NV_INVALID, "grow: the last RIG_GROW on this thread, if "
                               "any, was not this device's");
  return device_lose(d, growth_grow(&d->growth, &need, bytes));
}

int rig_nv_grow_for(struct rig_nv *d, const struct rig_submission *s,
                    uint64_t *bytes) {
  struct ring_need need;
  int e = device_enter(d);
  if (e != 0)
    return e;
  if (!ring_lawful(s))
    return why(RIG_NV_NEVER, "grow: a part that the device does not run");
  ring_need(s, &need);
  for (int q = 0; q < QUEUES; q++)
    if (need.entries[q] > RING_MOST_ENTRIES - 1)
      return why(RIG_NV_NEVER, "grow: more than 2^31 - 1 entries of a ring");
  return device_lose(d, growth_grow(&d->growth, &need, bytes));
}

/* What holds memory now may be done with it: the replaced rings go back once
 * the values so far are reached. */
static int wait_for_memory(struct rig_nv *d, uint64_t deadline_ns) {
  return rig_nv_wait(d, rings_last(&d->rings), deadline_ns);
}

int rig_nv_post_grow(struct rig_nv *d, const struct rig_submission *s,
                     uint64_t deadline_ns, uint64_t *v) {
  for (int asked = 1;; asked++) {
    uint64_t bytes;
    int answer = rig_nv_post_wait(d, s, deadline_ns, v);
    if (answer != RIG_GROW)
      return answer;
    int e = rig_nv_grow(d, &bytes);
    if (e == -RIG_NV_SHORT && asked == ASKS)
      return why(RIG_NV_NO_MEMORY,
                 "post: no memory for the %" PRIu64 " bytes "
                 "that its rings need",
                 bytes);
    if (e == -RIG_NV_SHORT)
      e = wait_for_memory(d, deadline_ns);
    if (e != 0)
      return e;
  }
}
