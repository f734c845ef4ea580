/* SPDX-License-Identifier: ISC */
/*
 * Host methods: semaphores, waits for idle and interrupts. They do not wait
 * for copies and launches unless they say so.
 */
#include "paths/model/state.h"

static bool needs(const struct model_channel *c, uint32_t methods) {
  return (c->host_set & methods) == methods;
}

static uint64_t pair(uint32_t hi, uint32_t lo) {
  return (uint64_t)hi << 32 | lo;
}

static enum model_step acquire(struct model *m, struct model_channel *c,
                               uint64_t at, uint64_t payload, uint32_t x) {
  bool wide = x & SEM_64BIT;
  uint64_t word;
  if (x & (SEM_RELEASE_WFI | SEM_TIMESTAMP))
    return model_stray(m, c, "SEM_EXECUTE 0x%x acquires with bits of a release",
                       x);
  if (at % (wide ? 8 : 4))
    return model_stray(m, c, "an acquire at 0x%llx is misaligned",
                       (unsigned long long)at);
  if (!model_word_load(m, at, wide, &word))
    return model_fault_mmu(m, c, at, FAULT_READ);
  bool reached;
  if ((x & SEM_OPERATION) == SEM_ACQUIRE)
    reached = word == (wide ? payload : (uint32_t)payload);
  else if (wide)
    reached = word - payload < UINT64_C(1) << 63;
  else
    reached = (uint32_t)word - (uint32_t)payload < 1u << 31;
  return reached ? STEP_DONE : STEP_WAIT;
}

static enum model_step release(struct model *m, struct model_channel *c,
                               uint64_t at, uint64_t payload, uint32_t x) {
  if (x & SEM_SWITCH_TSG)
    return model_stray(m, c, "SEM_EXECUTE 0x%x releases with SWITCH_TSG", x);
  if (x & SEM_RELEASE_WFI) {
    if (model_busy(c))
      return STEP_WAIT;
    if (model_launch_flush(m, c) == STEP_FAULT)
      return STEP_FAULT;
  }
  if (c->releasing) { /* later methods run after the write */
    c->releasing = c->nstores > 0;
    return c->releasing ? STEP_WAIT : STEP_DONE;
  }
  struct model_store s = {.at = at,
                          .payload = payload,
                          .wide = x & SEM_64BIT,
                          .stamped = x & SEM_TIMESTAMP};
  enum model_step step = model_store_post(m, c, &s);
  if (step != STEP_DONE)
    return step;
  c->releasing = true;
  return STEP_WAIT;
}

static enum model_step execute(struct model *m, struct model_channel *c,
                               uint32_t x) {
  uint32_t most = 1u << HOST_SEM_ADDR_LO | 1u << HOST_SEM_ADDR_HI |
                  1u << HOST_SEM_PAYLOAD_LO;
  if (x & SEM_64BIT)
    most |= 1u << HOST_SEM_PAYLOAD_HI;
  if (!needs(c, most))
    return model_stray(m, c, "SEM_EXECUTE with no address or payload set");
  uint64_t at = pair(c->host[HOST_SEM_ADDR_HI], c->host[HOST_SEM_ADDR_LO]);
  uint64_t payload =
      pair(c->host[HOST_SEM_PAYLOAD_HI], c->host[HOST_SEM_PAYLOAD_LO]);
  switch (x & SEM_OPERATION) {
  case SEM_ACQUIRE:
  case SEM_ACQ_CIRC_GEQ:
    return acquire(m, c, at, payload, x);
  case SEM_RELEASE:
    return release(m, c, at, payload, x);
  default:
    return model_stray(m, c, "SEM_EXECUTE 0x%x: operation %u is not modelled",
                       x, x & SEM_OPERATION);
  }
}

enum model_step model_host(struct model *m, struct model_channel *c, int i,
                           uint32_t x) {
  switch (i) {
  case HOST_SEM_EXECUTE:
    return execute(m, c, x);
  case HOST_WFI:
    return model_busy(c) ? STEP_WAIT : STEP_DONE;
  case HOST_INTERRUPT:
    m->interrupts++;
    return STEP_DONE;
  default:
    c->host[i] = x;
    c->host_set |= 1u << i;
    return STEP_DONE;
  }
}
