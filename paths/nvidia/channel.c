/* SPDX-License-Identifier: ISC */
/*
 * The RM as a path gives it, and UVM's registrations of channels.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "paths/nvidia/call.h"

static bool rm_alloc(void *ctx, uint32_t parent, uint32_t cls, void *params,
                     size_t bytes, uint32_t *object,
                     struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  char what[40];
  snprintf(what, sizeof what, "object of class 0x%x", cls);
  return nvk_call_alloc(g->client, parent, cls, params, bytes, object, what,
                        reply);
}

static bool rm_token(void *ctx, uint32_t channel, uint32_t *token,
                     struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  struct nv_token p = {.token = UINT32_MAX};
  if (!nvk_call_control(g->client, channel,
                        NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN, &p,
                        sizeof p, "GPFIFO_GET_WORK_SUBMIT_TOKEN", reply))
    return false;
  *token = p.token;
  return true;
}

static bool rm_schedule(void *ctx, uint32_t group, void *params, size_t bytes,
                        struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  return nvk_call_control(g->client, group, NVA06C_CTRL_CMD_GPFIFO_SCHEDULE,
                          params, bytes, "GPFIFO_SCHEDULE", reply);
}

static bool rm_boost(void *ctx, uint32_t subdevice,
                     struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  struct nv_boost p = {.flags = NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX |
                                NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_YES |
                                NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_PRIORITY_HIGH,
                       .duration = NV2080_CTRL_PERF_BOOST_DURATION_INFINITE};
  return nvk_call_control(g->client, subdevice, NV2080_CTRL_CMD_PERF_BOOST, &p,
                          sizeof p, "PERF_BOOST", reply);
}

static bool rm_sm_errors(void *ctx, uint32_t debugger, void *params,
                         size_t bytes, struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  return nvk_call_control(
      g->client, debugger, NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES,
      params, bytes, "DEBUG_READ_ALL_SM_ERROR_STATES", reply);
}

static bool rm_mmu_faults(void *ctx, uint32_t debugger, void *params,
                          size_t bytes, struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  return nvk_call_control(g->client, debugger,
                          NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO, params,
                          bytes, "DEBUG_READ_MMU_FAULT_INFO", reply);
}

static bool rm_free(void *ctx, uint32_t parent, uint32_t object,
                    struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  return nvk_call_free(g->client, parent, object, reply);
}

void nvk_channel_functions(struct gpu *g) {
  g->path.rm = (struct rig_nv_rm){.release = g->client->release,
                                  .client = g->client->root,
                                  .frees = true,
                                  .alloc = rm_alloc,
                                  .token = rm_token,
                                  .schedule = rm_schedule,
                                  .boost = rm_boost,
                                  .sm_errors = rm_sm_errors,
                                  .mmu_faults = rm_mmu_faults,
                                  .free = rm_free};
}

static bool register_locked(struct gpu *g, struct place *p,
                            struct rig_nv_reply *reply) {
  struct client *c = g->client;
  if (!nvk_range_place(c, &p->range, NVIDIA_CHANNEL_BYTES, NVIDIA_HUGE, false))
    return rig_nv_reply_set(reply, RIG_NV_LACKING,
                            "registration: no addresses");
  struct uvm_register_channel u = {.gpu = g->uuid,
                                   .ctl = c->ctl,
                                   .client = c->root,
                                   .channel = p->channel,
                                   .base = p->range.at,
                                   .length = p->range.bytes};
  if (!nvk_call_uvm(c, c->uvm, UVM_REGISTER_CHANNEL, &u, sizeof u,
                    offsetof(struct uvm_register_channel, status),
                    "UVM_REGISTER_CHANNEL", reply)) {
    nvk_range_remove(c, &p->range);
    return false;
  }
  p->next = g->places;
  g->places = p;
  return true;
}

bool nvk_channel_register(void *ctx, uint32_t channel,
                          struct rig_nv_reply *reply) {
  struct gpu *g = ctx;
  struct place *p = calloc(1, sizeof *p);
  if (p == NULL)
    return rig_nv_reply_set(reply, RIG_NV_LACKING,
                            "registration: no host memory");
  p->channel = channel;
  if (rig_nv_lock_take(&nvk_client_lock)) {
    free(p);
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
  }
  bool ok = register_locked(g, p, reply);
  rig_nv_lock_give(&nvk_client_lock);
  if (!ok)
    free(p);
  return ok;
}

static void field(unsigned char *p, struct abi_rm_field f, const void *x) {
  memcpy(p + f.at, x, f.n);
}

static bool unregister_locked(struct gpu *g, uint32_t channel,
                              struct rig_nv_reply *reply) {
  struct client *c = g->client;
  const struct release_layout *l = c->layout;
  unsigned char u[RELEASE_UVM_MOST] = {0};
  struct place **link = &g->places;
  while (*link != NULL && (*link)->channel != channel)
    link = &(*link)->next;
  struct place *p = *link;
  if (p == NULL)
    return rig_nv_reply_set(reply, RIG_NV_WRONG,
                            "channel 0x%x is not registered", channel);
  field(u, l->uvm_unregister_channel.gpu, &g->uuid); /* n is 0 from 610 on */
  field(u, l->uvm_unregister_channel.client, &c->root);
  field(u, l->uvm_unregister_channel.channel, &channel);
  if (!nvk_call_uvm(
          c, c->uvm, UVM_UNREGISTER_CHANNEL, u, l->uvm_unregister_channel.bytes,
          l->uvm_unregister_channel.status.at, "UVM_UNREGISTER_CHANNEL", reply))
    return false;
  *link = p->next;
  nvk_range_remove(c, &p->range);
  free(p);
  return true;
}

bool nvk_channel_unregister(void *ctx, uint32_t channel,
                            struct rig_nv_reply *reply) {
  struct gpu *g = ctx;
  if (rig_nv_lock_take(&nvk_client_lock))
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
  bool ok = unregister_locked(g, channel, reply);
  rig_nv_lock_give(&nvk_client_lock);
  return ok;
}
