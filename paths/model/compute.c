/* SPDX-License-Identifier: ISC */
/*
 * Compute methods: windows and local memory are state that launches find, so
 * a change of either waits for them; caches; and the schedule of a launch.
 */
#include "paths/model/state.h"

static const char *name(int i) {
  size_t n;
  return model_methods(KIND_COMPUTE, &n)[i].name;
}

/* What launches that run may still be looking at. */
static enum model_step shared_state(struct model *m, struct model_channel *c,
                                    int i, uint32_t x) {
  if (c->nlaunches)
    return model_stray(m, c, "%s 0x%x: a change while %u launches run", name(i),
                       x, c->nlaunches);
  if (i == CP_LOCAL_A)
    m->locals++;
  c->compute[i] = x;
  c->compute_set |= 1u << i;
  return STEP_DONE;
}

/* INVALIDATE_SHADER_CACHES, with a wait for idle and without. */
enum { CACHE_INSTRUCTION_BIT = 1 << 0, CACHE_CONSTANT_BIT = 1 << 12 };

static enum model_step invalidate(struct model *m, struct model_channel *c,
                                  bool waits, uint32_t x) {
  if (waits && c->nlaunches)
    return STEP_WAIT;
  if (x & CACHE_INSTRUCTION_BIT)
    model_cache_drop(m, CACHE_CODE);
  if (x & CACHE_CONSTANT_BIT)
    model_cache_drop(m, CACHE_CONSTANTS);
  m->invalidates++;
  return STEP_DONE;
}

/* PCAS_ACTION of SEND_SIGNALING_PCAS2_B; no other action is known to run. */
enum { PREFETCH_SCHEDULE = 9, QMD_SHIFT = 8 };

static enum model_step schedule(struct model *m, struct model_channel *c,
                                uint32_t x) {
  if (x != PREFETCH_SCHEDULE)
    return model_stray(m, c, "%s 0x%x: not PREFETCH_SCHEDULE",
                       name(CP_SEND_SIGNALING_PCAS2_B), x);
  if (!(c->compute_set & 1u << CP_SEND_PCAS_A))
    return model_stray(m, c, "%s 0x%x: nothing set %s",
                       name(CP_SEND_SIGNALING_PCAS2_B), x,
                       name(CP_SEND_PCAS_A));
  return model_launch_schedule(
      m, c, (uint64_t)c->compute[CP_SEND_PCAS_A] << QMD_SHIFT);
}

enum model_step model_compute(struct model *m, struct model_channel *c, int i,
                              uint32_t x) {
  switch (i) {
  case CP_SEND_PCAS_B:
  case CP_SEND_SIGNALING_PCAS_B:
    return model_stray(m, c, "%s 0x%x: not modelled", name(i), x);
  case CP_SEND_SIGNALING_PCAS2_B:
    return schedule(m, c, x);
  case CP_WAIT_FOR_IDLE:
    return c->nlaunches ? STEP_WAIT : STEP_DONE;
  case CP_INVALIDATE:
  case CP_INVALIDATE_NO_WFI:
    return invalidate(m, c, i == CP_INVALIDATE, x);
  case CP_SHARED_WINDOW_A:
  case CP_SHARED_WINDOW_B:
  case CP_LOCAL_WINDOW_A:
  case CP_LOCAL_WINDOW_B:
  case CP_LOCAL_A:
  case CP_LOCAL_B:
  case CP_LOCAL_SIZE_A:
  case CP_LOCAL_SIZE_B:
  case CP_LOCAL_SIZE_C:
    return shared_state(m, c, i, x);
  default:
    c->compute[i] = x;
    c->compute_set |= 1u << i;
    return STEP_DONE;
  }
}
