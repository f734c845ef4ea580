/* SPDX-License-Identifier: ISC */
/*
 * The model's timer: CLOCK_MONOTONIC, ahead by what the options say, at a rate
 * that is off by what they say. A kernel's path has it from a source, whose
 * host clock is CLOCK_MONOTONIC_RAW; a PCI path from registers of BAR 0.
 */
#include <time.h>

#include "core/abi/timer.h"
#include "paths/model/state.h"

static uint64_t now(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t model_timer(const struct model *m) {
  uint64_t at = now(CLOCK_MONOTONIC);
  int64_t lived = (int64_t)(at - m->opened);
  return at + (uint64_t)m->options.timer_ahead +
         (uint64_t)(lived / 1000000 * m->options.timer_ppm +
                    lived % 1000000 * m->options.timer_ppm / 1000000);
}

static uint64_t host(void *ctx) {
  (void)ctx;
  return now(CLOCK_MONOTONIC_RAW);
}

static bool read(void *ctx, struct rig_nv_reading *r,
                 struct rig_nv_reply *reply) {
  const struct model *m = ctx;
  r->before = host(ctx);
  r->timer = model_timer(m);
  r->after = host(ctx);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

/* BAR 0 has no other register. */
static uint32_t load(void *ctx, size_t at) {
  uint64_t t = model_timer(ctx);
  return at == NV_PTIMER_TIME_0   ? (uint32_t)t & NV_TIME_0_NSEC
         : at == NV_PTIMER_TIME_1 ? (uint32_t)(t >> 32) & NV_TIME_1_NSEC
                                  : UINT32_MAX;
}

void model_clock_open(struct model *m) {
  bool pci = m->options.personality == RIG_NV_LIKE_PCI;
  m->opened = now(CLOCK_MONOTONIC);
  m->timer = pci ? (struct rig_nv_clock){.kind = RIG_NV_CLOCK_REGISTERS,
                                         .ctx = m,
                                         .load = load}
                 : (struct rig_nv_clock){.kind = RIG_NV_CLOCK_SOURCE,
                                         .ctx = m,
                                         .read = read,
                                         .host = host};
  m->path.clock = &m->timer;
}
