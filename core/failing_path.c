/* SPDX-License-Identifier: ISC */
#include "core/failing_path.h"

#include <string.h>

/* Whether the call goes through; else the reply says it failed. */
static bool passes(struct failing_path *f, const char *name,
                   struct rig_nv_reply *reply) {
  if (++f->calls != f->fail_at)
    return true;
  f->failed = name;
  rig_nv_reply_set(reply, f->answer, "%s failed on purpose", name);
  return false;
}

/* The function `name` with a first parameter ctx: counted, then the inner one's
 * `call`. */
#define THROUGH(name, call, ...)                                               \
  static bool name(void *ctx, __VA_ARGS__, struct rig_nv_reply *reply) {       \
    struct failing_path *f = ctx;                                              \
    const struct rig_nv_path *p = f->inner;                                    \
    return passes(f, #name, reply) && p->call;                                 \
  }

THROUGH(rm_allocate, rm.alloc(p->ctx, parent, cls, params, n, object, reply),
        uint32_t parent, uint32_t cls, void *params, size_t n, uint32_t *object)
THROUGH(rm_token, rm.token(p->ctx, channel, token, reply), uint32_t channel,
        uint32_t *token)
THROUGH(rm_schedule, rm.schedule(p->ctx, group, params, n, reply),
        uint32_t group, void *params, size_t n)
THROUGH(rm_boost, rm.boost(p->ctx, subdevice, reply), uint32_t subdevice)
THROUGH(rm_sm_errors, rm.sm_errors(p->ctx, debugger, params, n, reply),
        uint32_t debugger, void *params, size_t n)
THROUGH(rm_mmu_faults, rm.mmu_faults(p->ctx, debugger, params, n, reply),
        uint32_t debugger, void *params, size_t n)
THROUGH(rm_free, rm.free(p->ctx, parent, object, reply), uint32_t parent,
        uint32_t object)
THROUGH(path_map_host, map_host(p->ctx, at, n, mapping, m, reply), void *at,
        uint64_t n, enum rig_mapping *mapping, struct rig_nv_memory *m)
THROUGH(path_register, register_channel(p->ctx, channel, reply),
        uint32_t channel)
THROUGH(path_unregister, unregister_channel(p->ctx, channel, reply),
        uint32_t channel)

static bool path_alloc(void *ctx, enum rig_memory kind, uint64_t n,
                       unsigned flags, struct rig_nv_memory *m,
                       struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  if (!passes(f, "path_alloc", reply) ||
      !f->inner->alloc(f->inner->ctx, kind, n, flags, m, reply))
    return false;
  if (f->misplace)
    m->address += RIG_NV_WINDOWS;
  return true;
}

static bool path_free(void *ctx, const struct rig_nv_memory *m,
                      struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  struct rig_nv_memory inner = *m;
  if (inner.address >= RIG_NV_WINDOWS) /* the inner path's lie below */
    inner.address -= RIG_NV_WINDOWS;
  return passes(f, "path_free", reply) &&
         f->inner->free(f->inner->ctx, &inner, reply);
}

static bool path_check(void *ctx, struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  return passes(f, "path_check", reply) &&
         f->inner->check(f->inner->ctx, reply);
}

static enum rig_nv_stopped path_stop(void *ctx) {
  struct failing_path *f = ctx;
  return f->inner->stop(f->inner->ctx);
}

void failing_path_init(struct failing_path *f,
                       const struct rig_nv_path *inner) {
  memset(f, 0, sizeof *f);
  f->inner = inner;
  f->answer = RIG_NV_DENIED;
  f->path = *inner;
  f->path.ctx = f;
  f->path.rm.alloc = rm_allocate;
  f->path.rm.token = rm_token;
  f->path.rm.schedule = rm_schedule;
  f->path.rm.boost = rm_boost;
  f->path.rm.sm_errors = rm_sm_errors;
  f->path.rm.mmu_faults = rm_mmu_faults;
  f->path.rm.free = rm_free;
  f->path.alloc = path_alloc;
  if (inner->map_host)
    f->path.map_host = path_map_host;
  f->path.free = path_free;
  f->path.register_channel = path_register;
  f->path.unregister_channel = path_unregister;
  f->path.check = path_check;
  f->path.stop = path_stop;
}
