/* SPDX-License-Identifier: ISC */
#include "core/device.h"

const struct rig_facts *rig_nv_facts(const struct rig_nv *d) {
  return &d->facts;
}

const struct rig_nv_gpu *rig_nv_capability(const struct rig_nv *d) {
  return &d->rings.gpu;
}
