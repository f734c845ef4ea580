/* SPDX-License-Identifier: ISC */
/*
 * The model as a path: its options, its opening, its stop and its close.
 */
#include <ck_pr.h>
#include <stdlib.h>

#include "core/abi/classes.h"
#include "core/api/why.h"
#include "paths/model/state.h"

/* An H200's (h200.md of its RM's answers): GR_GET_INFO, and its L2 cache. */
static const struct rig_nv_gpu h200 = {
    .channel_class = HOPPER_CHANNEL_GPFIFO_A,
    .compute_class = HOPPER_COMPUTE_A,
    .copy_class = HOPPER_DMA_COPY_A,
    .sm_version = 0x900,
    .gpcs = 8,
    .tpcs_per_gpc = 9,
    .sms_per_tpc = 2,
    .warps_per_sm = 64,
};

#define GIB (UINT64_C(1) << 30)
#define CACHE_BYTES (INT64_C(50) << 20)
#define CLIENT 0xc1d00001u
#define FIRST_HANDLE 0xcaf00001u
#define FIRST_TOKEN 0xau
/* From CLOCK_MONOTONIC to a timer of nanoseconds since 1970, as an H200's: of
 * a machine that booted as 2026 began. */
#define MODEL_AHEAD INT64_C(1767225600000000000)
enum { MOST_PPM = 1000 };

void rig_nv_model_options_init(struct rig_nv_model_options *o) {
  *o = (struct rig_nv_model_options){
      .size = sizeof *o,
      .personality = RIG_NV_LIKE_KERNEL,
      .release = 580,
      .seed = 1,
      .gpu = h200,
      .device_bytes = GIB,
      .mapped_bytes = GIB,
      .host_bytes = GIB,
      .hang_ms = -1,
      .maps_host = true,
      .index = -1,
      .peer_bytes = GIB,
      .poisons = true,
      .timer_ahead = MODEL_AHEAD,
  };
}

bool model_enter(struct model *m, struct rig_nv_reply *reply) {
  ck_pr_inc_uint(&m->waiters);
  int r = rig_nv_lock_take(&m->lock);
  ck_pr_dec_uint(&m->waiters);
  return !r || rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
}

void model_leave(struct model *m) { rig_nv_lock_give(&m->lock); }

static bool check(void *ctx, struct rig_nv_reply *reply) {
  struct model *m = ctx;
  /* Acquire: pairs with model_stray's store. */
  bool reported = ck_pr_load_uint(&m->reported);
  ck_pr_fence_acquire();
  if (reported)
    return rig_nv_reply_set(reply, RIG_NV_FAULTED, "%s", m->report);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

/* What lives at a PCI path's stop ends with it: no store lands later. */
static void end_all(struct model *m) {
  for (struct model_channel *c = m->channels; c; c = c->next)
    model_channel_end(m, c);
  struct model_object *o = m->objects;
  while (o) {
    struct model_channel *c = o->channel;
    for (size_t i = 0; c && i < sizeof c->names / sizeof *c->names; i++) {
      if (c->names[i])
        c->names[i]->named--;
      c->names[i] = NULL;
    }
    o = o->next;
  }
  m->nregistered = 0;
  m->stopped = true;
}

static enum rig_nv_stopped stop(void *ctx) {
  struct model *m = ctx;
  struct rig_nv_reply reply;
  if (m->options.personality == RIG_NV_LIKE_KERNEL || !model_enter(m, &reply))
    return RIG_NV_UNKNOWN;
  if (!m->stopped)
    end_all(m);
  model_leave(m);
  return RIG_NV_STOPPED;
}

/* The opener's device, subdevice and address space. */
enum { OWN_OBJECTS = 3 };

static void count(const struct model *m, struct model_counts *n) {
  *n = (struct model_counts){
      .objects = m->stopped ? 0 : m->nobjects - OWN_OBJECTS,
      .channels = m->stopped ? 0 : m->nchannels,
      .memories = m->nmemories - (m->flush != NULL),
      .registrations = m->nregistered,
      .copies = m->copies,
      .interrupts = m->interrupts,
      .words = m->words,
      .launches = m->launches,
      .chained = m->chained,
      .released = m->released,
      .invalidates = m->invalidates,
      .locals = m->locals,
  };
  for (const struct model_channel *c = m->channels; c; c = c->next)
    n->pending += c->nwork + c->nlaunches + c->nstores;
  for (int i = RIG_DEVICE; i <= RIG_MAPPED; i++)
    n->used[i] = m->used[i];
  n->viewed = m->viewed;
  if (m->flush)
    n->used[RIG_MAPPED] -= MODEL_PAGE;
}

static void destroy(struct model *m) {
  model_engine_stop(m);
  model_objects_close(m);
  model_memories_close(m);
  model_bindings_close(m);
  for (int i = 0; i < CACHES; i++)
    model_cache_drop(m, (enum model_cache)i);
  model_post_free(m->post);
  if (m->backing)
    m->backing->close(m->backing->ctx);
  rig_nv_lock_fini(&m->lock);
  free(m);
}

static int close_guarded(void *ctx) {
  struct model *m = ctx;
  struct model_counts n;
  int r = rig_nv_lock_take(&m->lock);
  if (r)
    return r;
  count(m, &n);
  rig_nv_lock_give(&m->lock);
  if (n.objects || n.memories || n.registrations)
    return why(RIG_NV_INVALID,
               "the model is in use: %zu objects, %zu memories, %zu "
               "registered channels",
               n.objects, n.memories, n.registrations);
  r = model_peers_leave(m);
  if (r)
    return r;
  destroy(m);
  return 0;
}

static int close_path(void *ctx) {
  return rig_nv_lock_guarded(close_guarded, ctx);
}

static int check_options(const struct rig_nv_model_options *o) {
  const struct rig_nv_gpu *g = &o->gpu;
  if (o->size != sizeof *o)
    return why(RIG_NV_INVALID, "options of %zu bytes, not %zu", o->size,
               sizeof *o);
  if (o->personality != RIG_NV_LIKE_KERNEL && o->personality != RIG_NV_LIKE_PCI)
    return why(RIG_NV_INVALID, "no personality %d", (int)o->personality);
  if (!abi_rm_layout(o->release))
    return why(RIG_NV_INVALID, "no parameters of release %d", o->release);
  if (!model_knows(KIND_CHANNEL, g->channel_class))
    return why(RIG_NV_INVALID, "no channel class 0x%x", g->channel_class);
  if (!model_knows(KIND_COMPUTE, g->compute_class))
    return why(RIG_NV_INVALID, "no compute class 0x%x", g->compute_class);
  if (!model_knows(KIND_COPY, g->copy_class))
    return why(RIG_NV_INVALID, "no copy class 0x%x", g->copy_class);
  if (o->index < -1)
    return why(RIG_NV_INVALID, "no index %d of a GPU", o->index);
  if (!g->gpcs || !g->tpcs_per_gpc || !g->sms_per_tpc || !g->warps_per_sm)
    return why(RIG_NV_INVALID, "a GPU of no multiprocessors or warps");
  if (o->timer_ppm < -MOST_PPM || o->timer_ppm > MOST_PPM)
    return why(RIG_NV_INVALID, "a timer that is %d ppm off", o->timer_ppm);
  return 0;
}

static void fill_path(struct model *m) {
  static const char key;
  struct rig_nv_path *p = &m->path;
  p->size = sizeof *p;
  p->ctx = m;
  p->key = m->backing ? m->backing->key : &key;
  p->rm.release = m->options.release;
  p->rm.client = CLIENT;
  p->rm.frees = m->options.personality == RIG_NV_LIKE_KERNEL;
  p->gpu = m->options.gpu;
  p->gpu.shared_window = p->gpu.local_window = 0;
  p->budget = m->options.device_bytes;
  p->cache_bytes = CACHE_BYTES;
  p->hang_ms = m->options.hang_ms;
  p->doorbell = &m->bell;
  p->alloc = model_alloc;
  p->map_host = m->options.maps_host ? model_map_host : NULL;
  p->map_peer = model_map_peer;
  p->reaches = model_reaches;
  p->free = model_free;
  p->dma = model_dma;
  p->check = check;
  p->stop = stop;
  p->close = close_path;
  model_rm_functions(m);
}

/* An odd factor keeps seeds apart; 0 is xorshift's fixed point. */
static void seed(struct model *m) {
  const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
  m->random = (m->options.seed ^ odd) * odd;
  if (!m->random)
    m->random = odd;
  m->peeks = model_below(m, 2);
}

static int build(struct model *m) {
  int r = rig_nv_lock_init(&m->lock, &rig_nv_lock_path);
  if (r)
    return r;
  m->layout = abi_rm_layout(m->options.release);
  m->next_handle = FIRST_HANDLE;
  m->next_token = FIRST_TOKEN;
  seed(m);
  fill_path(m);
  model_clock_open(m);
  if (!model_object_new(m, CLIENT, NV01_DEVICE_0, &m->path.device) ||
      !model_object_new(m, m->path.device, NV20_SUBDEVICE_0,
                        &m->path.subdevice) ||
      !model_object_new(m, m->path.device, FERMI_VASPACE_A, &m->path.vaspace)) {
    r = why(RIG_NV_HOST_MEMORY, "the model's objects");
    goto undo;
  }
  r = m->options.posts_writes ? model_post_new(&m->post) : 0;
  if (r)
    goto undo;
  model_flush_open(m);
  r = model_engine_start(m);
  if (r)
    goto undo;
  r = model_peers_join(m);
  if (!r)
    return 0;
  model_engine_stop(m);
undo:
  model_objects_close(m);
  model_memories_close(m);
  model_post_free(m->post);
  rig_nv_lock_fini(&m->lock);
  return r;
}

struct opening {
  const struct rig_nv_model_options *options;
  const struct model_backing *backing;
  const struct rig_nv_path **path;
};

static int open_guarded(void *arg) {
  struct opening *o = arg;
  struct rig_nv_model_options defaults;
  rig_nv_model_options_init(&defaults);
  const struct rig_nv_model_options *options =
      o->options ? o->options : &defaults;
  int r = check_options(options);
  if (r)
    return r;
  struct model *m = calloc(1, sizeof *m);
  if (!m)
    return why(RIG_NV_HOST_MEMORY, "the model");
  m->options = *options;
  m->backing = o->backing;
  r = build(m);
  if (r) {
    free(m);
    return r;
  }
  *o->path = &m->path;
  return 0;
}

int model_open(const struct rig_nv_model_options *options,
               const struct model_backing *backing,
               const struct rig_nv_path **path) {
  struct opening o = {options, backing, path};
  return rig_nv_lock_guarded(open_guarded, &o);
}

int rig_nv_path_model(const struct rig_nv_model_options *options,
                      const struct rig_nv_path **path) {
  return model_open(options, NULL, path);
}

const struct model_backing *model_backing_of(const struct rig_nv_path *path) {
  const struct model *m = path->ctx;
  return m->backing;
}

void model_counts(const struct rig_nv_path *path, struct model_counts *n) {
  struct model *m = path->ctx;
  struct rig_nv_reply reply;
  *n = (struct model_counts){0};
  if (!model_enter(m, &reply))
    return;
  count(m, n);
  model_leave(m);
}

void model_stall(const struct rig_nv_path *path, bool hold) {
  struct model *m = path->ctx;
  struct rig_nv_reply reply;
  if (!model_enter(m, &reply))
    return;
  m->stalled = hold;
  model_leave(m);
}
