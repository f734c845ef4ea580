/* SPDX-License-Identifier: ISC */
/*
 * The path: its options, its opening, its checks and its close.
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/api/why.h"
#include "paths/nvidia/call.h"

void rig_nv_nvidia_options_init(struct rig_nv_nvidia_options *o) {
  *o = (struct rig_nv_nvidia_options){.size = sizeof *o, .gpu = -1};
}

const char *nvidia_version(const struct rig_nv_path *path) {
  const struct gpu *g = path->ctx;
  return g->client->version;
}

/* A GPU that fell off the bus reads all ones, which the timer's 29 high bits
 * never are. The driver sends this path no other report. */
static bool check(void *ctx, struct rig_nv_reply *reply) {
  const struct gpu *g = ctx;
  const volatile uint32_t *time_1 =
      (const volatile void *)(g->registers + NV_USERMODE_TIME_1);
  if (*time_1 == UINT32_MAX)
    return rig_nv_reply_set(reply, RIG_NV_FAULTED,
                            "GPU %d at %s does not answer", g->path.index,
                            g->bus);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

/* The device has freed its channels by now; what of its work runs after a
 * free that failed nobody knows. */
static enum rig_nv_stopped stop(void *ctx) {
  (void)ctx;
  return RIG_NV_UNKNOWN;
}

static size_t kept_by_others(const struct gpu *g) {
  size_t n = 0;
  for (const struct span *s = g->client->spans; s != NULL; s = s->next)
    for (const struct view *v = s->views; v != NULL; v = v->next)
      n += s->gpu == g && v->gpu != g && (v->memories != 0 || s->busy);
  return n;
}

static int close_locked(struct gpu *g) {
  struct client *c = g->client;
  struct rig_nv_reply reply, rest;
  size_t channels = 0;
  for (const struct place *p = g->places; p != NULL; p = p->next)
    channels++;
  size_t others = kept_by_others(g);
  if (g->memories != 0 || channels != 0 || others != 0)
    return why(RIG_NV_INVALID,
               "GPU %d is in use: %zu memories, %zu registered channels, %zu "
               "mappings by other GPUs",
               g->path.index, g->memories, channels, others);
  bool ok = nvk_gpu_close(g, &reply);
  struct gpu **link = &c->gpus;
  while (*link != g)
    link = &(*link)->next;
  *link = g->next;
  if (!nvk_client_drop(c, &rest) && ok) {
    reply = rest;
    ok = false;
  }
  free(g);
  return ok ? 0 : why(RIG_NV_FAULT, "close: %s", reply.text);
}

static int close_guarded(void *ctx) {
  int r = rig_nv_lock_take(&nvk_client_lock);
  if (r != 0)
    return r;
  r = close_locked(ctx);
  rig_nv_lock_give(&nvk_client_lock);
  return r;
}

static int close_path(void *ctx) {
  return rig_nv_lock_guarded(close_guarded, ctx);
}

static void fill_path(struct gpu *g, int index) {
  static const char key;
  struct rig_nv_path *p = &g->path;
  p->size = sizeof *p;
  p->ctx = g;
  p->key = &key;
  p->index = index;
  p->cache_bytes = -1;
  p->hang_ms = -1;
  p->bus = g->bus;
  p->clock = &g->clock;
  p->alloc = nvk_memory_alloc;
  p->map_host = nvk_host_map;
  p->map_peer = nvk_peer_map;
  p->reaches = nvk_peer_reaches;
  p->free = nvk_memory_free;
  p->dma = nvk_dma;
  p->register_channel = nvk_channel_register;
  p->unregister_channel = nvk_channel_unregister;
  p->check = check;
  p->stop = stop;
  p->close = close_path;
  nvk_channel_functions(g);
}

/* One path a GPU: the process is one client of the driver, and UVM registers a
 * GPU once for it. */
static int check_free(const struct client *c, int index) {
  for (const struct gpu *g = c->gpus; g != NULL; g = g->next)
    if (g->path.index == index)
      return why(RIG_NV_INVALID, "GPU %d has a path open in this process",
                 index);
  return 0;
}

static int open_gpu(struct client *c, int index,
                    const struct rig_nv_path **path, size_t *n) {
  struct rig_nv_reply reply;
  struct gpu *g = calloc(1, sizeof *g);
  if (g == NULL)
    return why(RIG_NV_HOST_MEMORY, "the record of GPU %d", index);
  g->client = c;
  fill_path(g, index);
  int r = nvk_number_find(c, index, g, n);
  if (r == 0)
    r = check_free(c, index);
  if (r == 0 && !nvk_gpu_open(g, &reply))
    r = nvk_open_error(&reply);
  if (r != 0) {
    free(g);
    return r;
  }
  g->next = c->gpus;
  c->gpus = g;
  *path = &g->path;
  return 0;
}

/* The first that opens; else the first one's reason. */
static int open_any(struct client *c, const struct rig_nv_path **path) {
  char first[1024];
  size_t n = 0;
  int result = open_gpu(c, 0, path, &n);
  snprintf(first, sizeof first, "%s", rig_nv_why());
  for (int i = 1; result != 0 && (size_t)i < n; i++)
    if (open_gpu(c, i, path, &n) == 0)
      return 0;
  return result == 0 ? 0 : why((enum rig_nv_error) - result, "%s", first);
}

struct opening {
  const struct nvidia_os *os;
  const struct rig_nv_nvidia_options *options;
  const struct rig_nv_path **path;
};

static int open_locked(const struct opening *o) {
  struct client *c;
  struct rig_nv_reply reply;
  int gpu = o->options->gpu;
  size_t n;
  int r = nvk_client_take(o->os, &c);
  if (r != 0)
    return r;
  r = gpu < 0 ? open_any(c, o->path) : open_gpu(c, gpu, o->path, &n);
  if (r != 0)
    (void)nvk_client_drop(c, &reply); /* the reason is the GPU's */
  return r;
}

static int open_guarded(void *arg) {
  const struct opening *o = arg;
  if (o->options->size != sizeof *o->options)
    return why(RIG_NV_INVALID, "options of %zu bytes, not %zu",
               o->options->size, sizeof *o->options);
  int r = rig_nv_lock_take(&nvk_client_lock);
  if (r != 0)
    return r;
  r = open_locked(o);
  rig_nv_lock_give(&nvk_client_lock);
  return r;
}

int nvidia_open(const struct nvidia_os *os,
                const struct rig_nv_nvidia_options *options,
                const struct rig_nv_path **path) {
  struct rig_nv_nvidia_options defaults;
  rig_nv_nvidia_options_init(&defaults);
  struct opening o = {os, options ? options : &defaults, path};
  return rig_nv_lock_guarded(open_guarded, &o);
}

int rig_nv_path_nvidia(const struct rig_nv_nvidia_options *options,
                       const struct rig_nv_path **path) {
  return nvidia_open(&nvidia_os, options, path);
}
