/* SPDX-License-Identifier: ISC */
/*
 * The C functions of a device, and submission without a turn.
 */
#include "core/api/why.h"
#include "core/device.h"

static bool in_mode(struct rig_nv *d, enum rig_nv_mode mode) {
  return shared_load_32(&d->mode) == (uint32_t)mode || mode_latch(d, mode);
}

/* Why the device takes no post. */
static int closed(const struct rig_nv *d) {
  if (shared_load_32(&d->stopped))
    return why(RIG_NV_REFUSED, "the device is stopped");
  int e = device_lost(d);
  return e != 0 ? e : why(RIG_NV_INVALID, "post: the device is in turn mode");
}

enum rig_room rig_nv_room(void *self, const struct rig_submission *s) {
  struct rig_nv *d = self;
  return rings_room(&d->rings, s);
}

enum rig_done rig_nv_submit(void *self, uint64_t v,
                            const struct rig_submission *s,
                            const char **failure) {
  struct rig_nv *d = self;
  if (!in_mode(d, RIG_NV_TURN)) {
    *failure = shared_load_32(&d->stopped)
                   ? "submit: the device is stopped"
                   : "submit: the device is in post mode";
    return RIG_FAILED;
  }
  return rings_submit(&d->rings, v, s, failure);
}

enum rig_done rig_nv_commit(void *self, uint64_t v, const char **failure) {
  (void)self;
  (void)v;
  *failure = NULL;
  return RIG_OK;
}

enum rig_done rig_nv_settle(void *self, const char **failure) {
  (void)self;
  *failure = NULL;
  return RIG_OK;
}

int rig_nv_post(struct rig_nv *d, const struct rig_submission *s, uint64_t *v) {
  const char *refused;
  if (!in_mode(d, RIG_NV_POST))
    return closed(d);
  int answer = rings_post(&d->rings, s, v, &refused);
  return answer < 0 ? why(RIG_NV_INVALID, "post: %s", refused) : answer;
}

int rig_nv_post_wait(struct rig_nv *d, const struct rig_submission *s,
                     uint64_t deadline_ns, uint64_t *v) {
  for (;;) {
    /* Before the answer, so that a value reached since then ends the wait. */
    uint64_t word = rig_nv_signaled(d);
    int answer = rig_nv_post(d, s, v);
    if (answer != RIG_LATER)
      return answer;
    int e = rig_nv_wait(d, word + 1, deadline_ns);
    if (e != 0)
      return e;
  }
}

uint64_t device_bells(const struct rig_nv *d) { return d->rings.seat.bells; }
