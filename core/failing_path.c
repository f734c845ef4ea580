/* SPDX-License-Identifier: ISC */
#include "core/failing_path.h"

#include <ck_pr.h>
#include <stdlib.h>
#include <string.h>

/* Whether the call goes through; else the reply says it failed. */
static bool passes(struct failing_path *f, const char *name,
                   struct rig_nv_reply *reply) {
  unsigned call = ck_pr_faa_uint(&f->calls, 1) + 1;
  if (call == ck_pr_load_uint(&f->fail_at))
    f->failed = name;
  else if (call == f->also_at)
    f->failed_also = name;
  else
    return true;
  rig_nv_reply_set(reply, f->answer, "%s failed on purpose", name);
  return false;
}

/* ---- the ledger ---- */

static void enter(struct failing_path *f) {
  while (!ck_pr_cas_uint(&f->lock, 0, 1)) /* partner: leave's store */
    ck_pr_stall();
  ck_pr_fence_acquire();
}

static void leave(struct failing_path *f) {
  ck_pr_fence_release(); /* partner: enter's swap */
  ck_pr_store_uint(&f->lock, 0);
}

static bool memory_in(struct failing_path *f, const struct rig_nv_memory *m) {
  enter(f);
  if (f->nmemories == FAILING_PATH_MOST)
    abort();
  f->memory[f->nmemories++] = *m;
  leave(f);
  return true;
}

static bool memory_out(struct failing_path *f, const struct rig_nv_memory *m) {
  enter(f);
  for (size_t i = 0; i < f->nmemories; i++)
    if (f->memory[i].address == m->address && f->memory[i].data == m->data) {
      f->memory[i] = f->memory[--f->nmemories];
      break;
    }
  leave(f);
  return true;
}

static bool handle_in(struct failing_path *f, uint32_t *all, size_t *n,
                      uint32_t handle) {
  enter(f);
  if (*n == FAILING_PATH_MOST)
    abort();
  all[(*n)++] = handle;
  leave(f);
  return true;
}

static bool handle_out(struct failing_path *f, uint32_t *all, size_t *n,
                       uint32_t handle) {
  enter(f);
  for (size_t i = 0; i < *n; i++)
    if (all[i] == handle) {
      all[i] = all[--*n];
      break;
    }
  leave(f);
  return true;
}

size_t failing_path_sweep(struct failing_path *f) {
  const struct rig_nv_path *p = f->inner;
  size_t n = f->nmemories + f->nobjects + f->nregistered;
  struct rig_nv_reply reply;
  if (n != 0 && !p->rm.frees)
    (void)p->stop(p->ctx);
  /* What was given back otherwise is refused. */
  while (f->nregistered != 0)
    (void)p->unregister_channel(p->ctx, f->registered[--f->nregistered],
                                &reply);
  while (f->nobjects != 0 && p->rm.frees)
    (void)p->rm.free(p->ctx, p->device, f->object[--f->nobjects], &reply);
  while (f->nmemories != 0)
    (void)p->free(p->ctx, &f->memory[--f->nmemories], &reply);
  f->nobjects = 0;
  return n;
}

/* ---- the path ---- */

/* The function `name` with a first parameter ctx: counted, then the inner one's
 * `call`. */
#define THROUGH(name, call, ...)                                               \
  static bool name(void *ctx, __VA_ARGS__, struct rig_nv_reply *reply) {       \
    struct failing_path *f = ctx;                                              \
    const struct rig_nv_path *p = f->inner;                                    \
    return passes(f, #name, reply) && p->call;                                 \
  }

THROUGH(rm_allocate,
        rm.alloc(p->ctx, parent, cls, params, n, object, reply) &&
            (parent != p->device ||
             handle_in(f, f->object, &f->nobjects, *object)),
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
THROUGH(rm_free,
        rm.free(p->ctx, parent, object, reply) &&
            handle_out(f, f->object, &f->nobjects, object),
        uint32_t parent, uint32_t object)
THROUGH(path_map_host,
        map_host(p->ctx, at, n, mapping, m, reply) && memory_in(f, m), void *at,
        uint64_t n, enum rig_mapping *mapping, struct rig_nv_memory *m)
THROUGH(path_map_peer,
        map_peer(p->ctx, theirs, mapping, m, reply) && memory_in(f, m),
        const struct rig_nv_memory *theirs, enum rig_mapping *mapping,
        struct rig_nv_memory *m)
THROUGH(path_dma, dma(p->ctx, m, fn, dma, reply), const struct rig_nv_memory *m,
        const char *fn, struct rig_dma *dma)
THROUGH(path_register,
        register_channel(p->ctx, channel, reply) &&
            handle_in(f, f->registered, &f->nregistered, channel),
        uint32_t channel)
THROUGH(path_unregister,
        unregister_channel(p->ctx, channel, reply) &&
            handle_out(f, f->registered, &f->nregistered, channel),
        uint32_t channel)

THROUGH(clock_read, clock->read(p->clock->ctx, reading, reply),
        struct rig_nv_reading *reading)

static uint64_t clock_host(void *ctx) {
  const struct failing_path *f = ctx;
  return f->inner->clock->host(f->inner->clock->ctx);
}

/* A source's readings are calls. */
static void pass_clock(struct failing_path *f) {
  const struct rig_nv_clock *c = f->inner->clock;
  if (c == NULL || c->kind != RIG_NV_CLOCK_SOURCE)
    return;
  f->clock = (struct rig_nv_clock){
      .kind = c->kind, .ctx = f, .read = clock_read, .host = clock_host};
  f->path.clock = &f->clock;
}

static bool path_alloc(void *ctx, enum rig_memory kind, uint64_t n,
                       unsigned flags, struct rig_nv_memory *m,
                       struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  if (!passes(f, "path_alloc", reply) ||
      !f->inner->alloc(f->inner->ctx, kind, n, flags, m, reply))
    return false;
  (void)memory_in(f, m);
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
         f->inner->free(f->inner->ctx, &inner, reply) && memory_out(f, &inner);
}

static bool path_check(void *ctx, struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  return passes(f, "path_check", reply) &&
         f->inner->check(f->inner->ctx, reply);
}

static bool path_reaches(void *ctx, int index) {
  struct failing_path *f = ctx;
  return f->inner->reaches(f->inner->ctx, index);
}

static enum rig_nv_stopped path_stop(void *ctx) {
  struct failing_path *f = ctx;
  ck_pr_inc_uint(&f->stops);
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
  f->path.map_peer = path_map_peer;
  f->path.reaches = path_reaches;
  f->path.free = path_free;
  f->path.dma = path_dma;
  f->path.register_channel = path_register;
  f->path.unregister_channel = path_unregister;
  f->path.check = path_check;
  f->path.stop = path_stop;
  pass_clock(f);
}
