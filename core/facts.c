/* SPDX-License-Identifier: ISC */
#include "core/device.h"

const struct rig_facts *rig_nv_facts(const struct rig_nv *d) {
  return &d->facts;
}

const struct rig_nv_gpu *rig_nv_capability(const struct rig_nv *d) {
  return &d->rings.gpu;
}

bool rig_nv_is_gpu(uint32_t vendor, uint32_t class24) {
  const uint32_t nvidia = 0x10de, display = 0x03; /* PCI ID, base class */
  return vendor == nvidia && class24 >> 16 == display;
}
