/* SPDX-License-Identifier: ISC */
/*
 * The loss of a device: the first fault that a call of it met before its stop,
 * or the bound past which it hung. It is kept from then on, before the call
 * that met it returns, so that what a path reports but once is reported again:
 *
 *   none --first to find a cause--> writing --cause whole--> known
 *
 * Ordering. Whoever sees `known` sees the cause. A post reads no more than the
 * mode, which a loss turns from POST to LOST; one that latches POST reads the
 * loss after that. Each writes its own word and then, past a full fence, looks
 * at the other's, so at least one of them sees both.
 *
 * A thread that stops while it writes delays the calls that look at the loss,
 * and no submission.
 */
#include <stdio.h>

#include "core/api/why.h"
#include "core/device.h"

enum { WRITING_NAP = 1000 /* in nanoseconds */ };

/* Whether there is a cause, which is whole then. */
static bool known(const struct rig_nv *d) {
  uint32_t state;
  /* Partner: keep's release. */
  while ((state = shared_load_acquire_32(&d->loss.state)) == LOSS_WRITING)
    device_nap(WRITING_NAP);
  return state == LOSS_KNOWN;
}

static void keep(struct rig_nv *d, int e) {
  struct device_loss *l = &d->loss;
  if (!shared_cas_32(&l->state, LOSS_NONE, LOSS_WRITING)) {
    (void)known(d); /* the next call finds a cause all the same */
    return;
  }
  l->error = (enum rig_nv_error) - e;
  snprintf(l->cause, sizeof l->cause, "%s", rig_nv_why());
  shared_store_release_32(&l->state, LOSS_KNOWN); /* partner: known */
  shared_fence_full(); /* the loss, before the mode; partner: mode_latch's */
  (void)shared_cas_32(&d->mode, RIG_NV_POST, MODE_LOST);
}

int device_lose(struct rig_nv *d, int e) {
  if ((e == -RIG_NV_FAULT || e == -RIG_NV_STALLED) &&
      !shared_load_32(&d->stopped))
    keep(d, e);
  return e;
}

int device_lost(const struct rig_nv *d) {
  return known(d) ? why(RIG_NV_LOST, "%s", d->loss.cause) : 0;
}

int device_faulted(const struct rig_nv *d) {
  if (!known(d) || d->loss.error != RIG_NV_FAULT)
    return 0;
  return why(RIG_NV_FAULT, "%s", d->loss.cause);
}

bool mode_latch(struct rig_nv *d, enum rig_nv_mode mode) {
  bool post = mode == RIG_NV_POST;
  if (shared_load_32(&d->mode) == RIG_NV_LATCH && !(post && known(d)) &&
      shared_cas_32(&d->mode, RIG_NV_LATCH, (uint32_t)mode) && post) {
    shared_fence_full(); /* the mode, before the loss; partner: keep's */
    if (known(d))
      (void)shared_cas_32(&d->mode, RIG_NV_POST, MODE_LOST);
  }
  return shared_load_32(&d->mode) == (uint32_t)mode;
}
