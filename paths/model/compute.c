/* SPDX-License-Identifier: ISC */
/*
 * Compute methods: windows, local memory and cache invalidation are state
 * alone; launches are not modelled, so the engine is always idle.
 */
#include "paths/model/state.h"

enum model_step model_compute(struct model *m, struct model_channel *c, int i,
                              uint32_t x) {
  size_t n;
  switch (i) {
  case CP_SEND_PCAS_A:
  case CP_SEND_PCAS_B:
  case CP_SEND_SIGNALING_PCAS_B:
  case CP_SEND_SIGNALING_PCAS2_B:
    return model_stray(m, c, "%s 0x%x: launches are not modelled",
                       model_methods(KIND_COMPUTE, &n)[i].name, x);
  default:
    c->compute[i] = x;
    c->compute_set |= 1u << i;
    return STEP_DONE;
  }
}
