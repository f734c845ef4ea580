/* SPDX-License-Identifier: ISC */
#include "core/abi/classes.h"

#include <stdio.h>

bool abi_class_known(enum abi_class_kind kind, uint32_t cls) {
  switch (kind) {
  case ABI_CHANNEL_CLASS:
    return cls == AMPERE_CHANNEL_GPFIFO_A || cls == AMPERE_CHANNEL_GPFIFO_B ||
           cls == HOPPER_CHANNEL_GPFIFO_A ||
           cls == BLACKWELL_CHANNEL_GPFIFO_A ||
           cls == BLACKWELL_CHANNEL_GPFIFO_B;
  case ABI_COMPUTE_CLASS:
    return cls == AMPERE_COMPUTE_B || cls == ADA_COMPUTE_A ||
           cls == HOPPER_COMPUTE_A || cls == BLACKWELL_COMPUTE_A ||
           cls == BLACKWELL_COMPUTE_B;
  case ABI_COPY_CLASS:
    return cls == AMPERE_DMA_COPY_B || cls == HOPPER_DMA_COPY_A ||
           cls == BLACKWELL_DMA_COPY_A || cls == BLACKWELL_DMA_COPY_B;
  }
  return false;
}

void abi_arch(uint32_t sm_version, char out[16]) {
  /* The one version whose bytes are not its compute capability. */
  if (sm_version == 0xa04) {
    snprintf(out, 16, "sm_120");
    return;
  }
  const unsigned major = sm_version >> 8 & 0xff;
  const unsigned low = sm_version & 0xff;
  snprintf(out, 16, "sm_%u%u", major, low > 0xf ? low >> 4 : low);
}
