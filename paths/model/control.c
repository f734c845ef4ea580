/* SPDX-License-Identifier: ISC */
/*
 * The RM's controls, and a path's registration of channels.
 */
#include <string.h>

#include "core/abi/classes.h"
#include "paths/model/state.h"

static void set(void *p, size_t bytes, struct abi_rm_field f, size_t at,
                uint64_t x) {
  (void)!rig_nv_params_set(p, bytes, f.at + at, f.n, x);
}

static bool done(struct rig_nv_reply *reply) {
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

/* The channel of the handle, or NULL with the refusal. */
static struct model_channel *channel_of(struct model *m, uint32_t handle,
                                        const char *call,
                                        struct rig_nv_reply *reply) {
  struct model_object *o = model_object_of(m, handle);
  if (m->stopped)
    model_refuse(reply, ST_INVALID_STATE, "%s: the path stopped", call);
  else if (!o || !o->channel)
    model_refuse(reply, ST_INVALID_HANDLE, "%s: channel 0x%x", call, handle);
  else
    return o->channel;
  return NULL;
}

static bool token(void *ctx, uint32_t channel, uint32_t *out,
                  struct rig_nv_reply *reply) {
  struct model *m = ctx;
  if (!model_enter(m, reply))
    return false;
  struct model_channel *c = channel_of(m, channel, "token", reply);
  if (c)
    *out = c->token;
  bool ok = c && done(reply);
  model_leave(m);
  return ok;
}

static bool schedule_locked(struct model *m, uint32_t group, const void *p,
                            size_t bytes, struct rig_nv_reply *reply) {
  struct model_object *o = model_object_of(m, group);
  unsigned n = 0;
  if (m->stopped)
    return model_refuse(reply, ST_INVALID_STATE, "schedule: the path stopped");
  if (!o || o->cls != KEPLER_CHANNEL_GROUP_A)
    return model_refuse(reply, ST_INVALID_HANDLE, "schedule: group 0x%x",
                        group);
  if (bytes != m->layout->schedule.bytes || !p)
    return model_refuse(reply, ST_INVALID_ARGUMENT,
                        "schedule: %zu bytes of parameters, not %u", bytes,
                        m->layout->schedule.bytes);
  bool enable = model_get(p, bytes, m->layout->schedule.enable);
  for (struct model_channel *c = m->channels; c; c = c->next) {
    if (c->group != group)
      continue;
    n++;
    if (enable && !c->registered)
      return model_refuse(reply, ST_INVALID_STATE,
                          "schedule: channel 0x%x is not registered",
                          c->handle);
  }
  if (!n)
    return model_refuse(reply, ST_INVALID_STATE,
                        "schedule: group 0x%x has no channel", group);
  for (struct model_channel *c = m->channels; c; c = c->next)
    if (c->group == group)
      c->scheduled = enable;
  return done(reply);
}

static bool schedule(void *ctx, uint32_t group, void *p, size_t bytes,
                     struct rig_nv_reply *reply) {
  struct model *m = ctx;
  if (!model_enter(m, reply))
    return false;
  bool ok = schedule_locked(m, group, p, bytes, reply);
  model_leave(m);
  return ok;
}

static bool boost(void *ctx, uint32_t subdevice, struct rig_nv_reply *reply) {
  struct model *m = ctx;
  if (!model_enter(m, reply))
    return false;
  bool ok = subdevice == m->path.subdevice && !m->stopped
                ? done(reply)
                : model_refuse(reply, ST_INVALID_HANDLE,
                               "boost: subdevice 0x%x", subdevice);
  model_leave(m);
  return ok;
}

/* Whether the debugger lives and the parameters are of their size. */
static bool debugs(struct model *m, const char *call, uint32_t debugger,
                   const void *p, size_t bytes, size_t want,
                   struct rig_nv_reply *reply) {
  struct model_object *o = model_object_of(m, debugger);
  if (m->stopped)
    return model_refuse(reply, ST_INVALID_STATE, "%s: the path stopped", call);
  if (!o || o->cls != GT200_DEBUGGER)
    return model_refuse(reply, ST_INVALID_HANDLE, "%s: debugger 0x%x", call,
                        debugger);
  if (bytes != want || !p)
    return model_refuse(reply, ST_INVALID_ARGUMENT,
                        "%s: %zu bytes of parameters, not %zu", call, bytes,
                        want);
  return true;
}

static bool sm_errors_locked(struct model *m, uint32_t debugger, void *p,
                             size_t bytes, struct rig_nv_reply *reply) {
  const char *call = "sm_errors";
  if (!debugs(m, call, debugger, p, bytes, m->layout->sm_errors.bytes, reply))
    return false;
  uint64_t n = model_get(p, bytes, m->layout->sm_errors.sms_to_read);
  uint64_t first = model_get(p, bytes, m->layout->sm_errors.starting_sm);
  uint64_t channel = model_get(p, bytes, m->layout->sm_errors.target_channel);
  const struct rig_nv_gpu *g = &m->options.gpu;
  uint64_t sms = (uint64_t)g->gpcs * g->tpcs_per_gpc * g->sms_per_tpc;
  if (!channel_of(m, (uint32_t)channel, call, reply))
    return false;
  if (n > m->layout->sm_errors.most || first > sms || n > sms - first)
    return model_refuse(reply, ST_INVALID_ARGUMENT,
                        "%s: %llu SMs from SM %llu, of %llu", call,
                        (unsigned long long)n, (unsigned long long)first,
                        (unsigned long long)sms);
  /* What a launch does wrong is an MMU fault or refused: no SM has an error. */
  memset((char *)p + m->layout->sm_errors.sm_0.at, 0,
         n * m->layout->sm_errors.stride);
  set(p, bytes, m->layout->sm_errors.mmu_fault_info, 0, 0);
  set(p, bytes, m->layout->sm_errors.mmu_fault_valid, 0, m->nfaults > 0);
  return done(reply);
}

static bool sm_errors(void *ctx, uint32_t debugger, void *p, size_t bytes,
                      struct rig_nv_reply *reply) {
  struct model *m = ctx;
  if (!model_enter(m, reply))
    return false;
  bool ok = sm_errors_locked(m, debugger, p, bytes, reply);
  model_leave(m);
  return ok;
}

static bool mmu_faults(void *ctx, uint32_t debugger, void *p, size_t bytes,
                       struct rig_nv_reply *reply) {
  struct model *m = ctx;
  if (!model_enter(m, reply))
    return false;
  bool ok = debugs(m, "mmu_faults", debugger, p, bytes,
                   m->layout->mmu_faults.bytes, reply);
  unsigned n = m->nfaults < m->layout->mmu_faults.most
                   ? m->nfaults
                   : m->layout->mmu_faults.most;
  for (unsigned i = 0; ok && i < n; i++) {
    size_t at = (size_t)i * m->layout->mmu_faults.stride;
    set(p, bytes, m->layout->mmu_faults.address, at, m->faults[i].address);
    set(p, bytes, m->layout->mmu_faults.type, at, m->faults[i].type);
    set(p, bytes, m->layout->mmu_faults.access, at, m->faults[i].access);
  }
  if (ok) {
    set(p, bytes, m->layout->mmu_faults.count, 0, n);
    done(reply);
  }
  model_leave(m);
  return ok;
}

static bool registers(struct model *m, uint32_t channel, bool want,
                      struct rig_nv_reply *reply) {
  const char *call = want ? "register" : "unregister";
  if (!model_enter(m, reply))
    return false;
  struct model_channel *c = channel_of(m, channel, call, reply);
  bool ok = c && c->registered != want;
  if (ok) {
    c->registered = want;
    m->nregistered = want ? m->nregistered + 1 : m->nregistered - 1;
    if (!want)
      c->scheduled = false;
    done(reply);
  } else if (c)
    model_refuse(reply, ST_INVALID_STATE, "%s: channel 0x%x is%s registered",
                 call, channel, want ? "" : " not");
  model_leave(m);
  return ok;
}

static bool register_channel(void *ctx, uint32_t channel,
                             struct rig_nv_reply *reply) {
  return registers(ctx, channel, true, reply);
}

static bool unregister_channel(void *ctx, uint32_t channel,
                               struct rig_nv_reply *reply) {
  return registers(ctx, channel, false, reply);
}

void model_rm_functions(struct model *m) {
  m->path.rm.alloc = model_rm_alloc;
  m->path.rm.token = token;
  m->path.rm.schedule = schedule;
  m->path.rm.boost = boost;
  m->path.rm.sm_errors = sm_errors;
  m->path.rm.mmu_faults = mmu_faults;
  m->path.rm.free = model_rm_free;
  m->path.register_channel = register_channel;
  m->path.unregister_channel = unregister_channel;
}
