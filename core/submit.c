/* SPDX-License-Identifier: ISC */
#include "core/device.h"

enum rig_room rig_nv_room(void *self, const struct rig_submission *s) {
  const struct rig_nv *d = self;
  return rings_room(&d->rings, s);
}

enum rig_done rig_nv_submit(void *self, uint64_t v,
                            const struct rig_submission *s,
                            const char **failure) {
  struct rig_nv *d = self;
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
