/* SPDX-License-Identifier: ISC */
/*
 * The RM's objects: a tree below the opener's device, subdevice and address
 * space. Refusals name the call, what was refused and an NV status.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/abi/classes.h"
#include "paths/model/state.h"

/* The most objects of one path. */
#define MOST_OBJECTS 4096u

bool model_refuse(struct rig_nv_reply *reply, enum model_status status,
                  const char *fmt, ...) {
  char text[400];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  bool lacks = status == ST_NO_MEMORY || status == ST_NO_RESOURCES;
  return rig_nv_reply_set(reply, lacks ? RIG_NV_LACKING : RIG_NV_DENIED,
                          "%s: NV status 0x%x", text, (unsigned)status);
}

uint64_t model_get(const void *p, size_t bytes, struct abi_rm_field f) {
  uint64_t x = 0;
  (void)!rig_nv_params_get(p, bytes, f.at, f.n, &x);
  return x;
}

struct model_object *model_object_of(struct model *m, uint32_t handle) {
  struct model_object *o = m->objects;
  while (o && o->handle != handle)
    o = o->next;
  return o;
}

bool model_object_new(struct model *m, uint32_t parent, uint32_t cls,
                      uint32_t *handle) {
  struct model_object *o = calloc(1, sizeof *o);
  if (!o)
    return false;
  o->handle = m->next_handle++;
  o->parent = parent;
  o->cls = cls;
  o->next = m->objects;
  m->objects = o;
  m->nobjects++;
  *handle = o->handle;
  return true;
}

/* Whether the parameters are of the layout's size. */
static bool sized(const void *p, size_t bytes, size_t want, uint32_t cls,
                  struct rig_nv_reply *reply) {
  if (bytes == want && (p || !want))
    return true;
  return model_refuse(reply, ST_INVALID_ARGUMENT,
                      "alloc class 0x%x: %zu bytes of parameters, not %zu", cls,
                      bytes, want);
}

static bool add(struct model *m, uint32_t parent, uint32_t cls,
                uint32_t *object, struct rig_nv_reply *reply) {
  if (!model_object_new(m, parent, cls, object))
    return model_refuse(reply, ST_NO_MEMORY, "alloc class 0x%x", cls);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static bool group(struct model *m, struct model_object *parent, const void *p,
                  size_t bytes, uint32_t *object, struct rig_nv_reply *reply) {
  const uint32_t cls = KEPLER_CHANNEL_GROUP_A;
  if (!sized(p, bytes, m->layout->group.bytes, cls, reply))
    return false;
  uint64_t engine = model_get(p, bytes, m->layout->group.engine_type);
  uint64_t space = model_get(p, bytes, m->layout->group.va_space);
  if (engine != NV2080_ENGINE_TYPE_GRAPHICS)
    return model_refuse(reply, ST_INVALID_ARGUMENT,
                        "alloc class 0x%x: engineType %llu", cls,
                        (unsigned long long)engine);
  if (space && space != m->path.vaspace)
    return model_refuse(reply, ST_INVALID_HANDLE,
                        "alloc class 0x%x: hVASpace 0x%llx", cls,
                        (unsigned long long)space);
  return add(m, parent->handle, cls, object, reply);
}

static bool share(struct model *m, struct model_object *parent, const void *p,
                  size_t bytes, uint32_t *object, struct rig_nv_reply *reply) {
  const uint32_t cls = FERMI_CONTEXT_SHARE_A;
  if (!sized(p, bytes, m->layout->share.bytes, cls, reply))
    return false;
  uint64_t space = model_get(p, bytes, m->layout->share.va_space);
  uint64_t flags = model_get(p, bytes, m->layout->share.flags);
  if (space != m->path.vaspace)
    return model_refuse(reply, ST_INVALID_HANDLE,
                        "alloc class 0x%x: hVASpace 0x%llx", cls,
                        (unsigned long long)space);
  if (flags & ~(uint64_t)NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC)
    return model_refuse(reply, ST_INVALID_ARGUMENT,
                        "alloc class 0x%x: flags 0x%llx", cls,
                        (unsigned long long)flags);
  return add(m, parent->handle, cls, object, reply);
}

static bool engine(struct model *m, struct model_object *parent, uint32_t cls,
                   size_t bytes, uint32_t *object, struct rig_nv_reply *reply) {
  if (!sized(NULL, bytes, 0, cls, reply))
    return false;
  for (struct model_object *o = m->objects; o; o = o->next)
    if (o->parent == parent->handle && o->cls == cls)
      return model_refuse(reply, ST_IN_USE,
                          "alloc class 0x%x: channel 0x%x has object 0x%x", cls,
                          parent->handle, o->handle);
  return add(m, parent->handle, cls, object, reply);
}

static bool debugger(struct model *m, struct model_object *parent,
                     const void *p, size_t bytes, uint32_t *object,
                     struct rig_nv_reply *reply) {
  const uint32_t cls = GT200_DEBUGGER;
  if (!sized(p, bytes, m->layout->debugger.bytes, cls, reply))
    return false;
  uint64_t client = model_get(p, bytes, m->layout->debugger.app_client);
  uint64_t compute = model_get(p, bytes, m->layout->debugger.class_3d_object);
  struct model_object *o = model_object_of(m, (uint32_t)compute);
  if (client != m->path.rm.client)
    return model_refuse(reply, ST_INVALID_HANDLE,
                        "alloc class 0x%x: hAppClient 0x%llx", cls,
                        (unsigned long long)client);
  if (!o || o->cls != m->options.gpu.compute_class)
    return model_refuse(reply, ST_INVALID_HANDLE,
                        "alloc class 0x%x: hClass3dObject 0x%llx", cls,
                        (unsigned long long)compute);
  return add(m, parent->handle, cls, object, reply);
}

/* The class that a class's parent has; 0 for an unknown class. */
static uint32_t parent_class(const struct model *m, uint32_t cls) {
  const struct rig_nv_gpu *g = &m->options.gpu;
  if (cls == KEPLER_CHANNEL_GROUP_A || cls == GT200_DEBUGGER)
    return NV01_DEVICE_0;
  if (cls == FERMI_CONTEXT_SHARE_A || cls == g->channel_class)
    return KEPLER_CHANNEL_GROUP_A;
  if (cls == g->compute_class || cls == g->copy_class)
    return g->channel_class;
  return 0;
}

static bool alloc_locked(struct model *m, uint32_t parent, uint32_t cls,
                         void *params, size_t bytes, uint32_t *object,
                         struct rig_nv_reply *reply) {
  struct model_object *o = model_object_of(m, parent);
  uint32_t want = parent_class(m, cls);
  if (m->stopped)
    return model_refuse(reply, ST_INVALID_STATE, "alloc: the path stopped");
  if (!want)
    return model_refuse(reply, ST_INVALID_CLASS, "alloc class 0x%x", cls);
  if (!o)
    return model_refuse(reply, ST_INVALID_HANDLE,
                        "alloc class 0x%x: parent 0x%x", cls, parent);
  if (o->cls != want)
    return model_refuse(reply, ST_INVALID_PARENT,
                        "alloc class 0x%x: parent 0x%x of class 0x%x", cls,
                        parent, o->cls);
  if (m->nobjects >= MOST_OBJECTS)
    return model_refuse(reply, ST_NO_RESOURCES, "alloc class 0x%x", cls);
  if (cls == KEPLER_CHANNEL_GROUP_A)
    return group(m, o, params, bytes, object, reply);
  if (cls == FERMI_CONTEXT_SHARE_A)
    return share(m, o, params, bytes, object, reply);
  if (cls == GT200_DEBUGGER)
    return debugger(m, o, params, bytes, object, reply);
  if (cls == m->options.gpu.channel_class)
    return model_channel_new(m, o, params, bytes, object, reply);
  return engine(m, o, cls, bytes, object, reply);
}

bool model_rm_alloc(void *ctx, uint32_t parent, uint32_t cls, void *params,
                    size_t bytes, uint32_t *object,
                    struct rig_nv_reply *reply) {
  struct model *m = ctx;
  if (!model_enter(m, reply))
    return false;
  bool ok = alloc_locked(m, parent, cls, params, bytes, object, reply);
  model_leave(m);
  return ok;
}

/* Whether o is `top` or lies under it. */
static bool under(struct model *m, const struct model_object *o, uint32_t top) {
  while (o && o->handle != top)
    o = model_object_of(m, o->parent);
  return o;
}

/* What outside `top` needs something under it, named in the reply. */
static bool needed(struct model *m, uint32_t top, struct rig_nv_reply *reply) {
  for (struct model_object *o = m->objects; o; o = o->next) {
    struct model_channel *c = o->channel;
    if (!c)
      continue;
    bool inside = under(m, o, top);
    if (inside && c->registered)
      return !model_refuse(reply, ST_IN_USE,
                           "free 0x%x: channel 0x%x is registered", top,
                           c->handle);
    if (!inside && under(m, model_object_of(m, c->share), top))
      return !model_refuse(reply, ST_IN_USE, "free 0x%x: channel 0x%x uses it",
                           top, c->handle);
  }
  return false;
}

static void end_channel(struct model *m, struct model_channel *c) {
  struct model_channel **at = &m->channels;
  model_channel_end(m, c);
  while (*at != c)
    at = &(*at)->next;
  *at = c->next;
  m->nchannels--;
  m->nregistered -= c->registered;
  for (size_t i = 0; i < sizeof c->names / sizeof *c->names; i++)
    if (c->names[i])
      c->names[i]->named--;
  free(c);
}

static void remove_object(struct model *m, struct model_object *o) {
  struct model_object **at = &m->objects;
  while (*at != o)
    at = &(*at)->next;
  *at = o->next;
  m->nobjects--;
  if (o->channel)
    end_channel(m, o->channel);
  free(o);
}

/* Removes everything under `top`, children first, then `top`. */
static void remove_tree(struct model *m, uint32_t top) {
  for (struct model_object *o = m->objects; o;) {
    if (o->parent != top) {
      o = o->next;
      continue;
    }
    remove_tree(m, o->handle);
    o = m->objects;
  }
  remove_object(m, model_object_of(m, top));
}

static bool free_locked(struct model *m, uint32_t parent, uint32_t object,
                        struct rig_nv_reply *reply) {
  struct model_object *o = model_object_of(m, object);
  if (!o)
    return model_refuse(reply, ST_INVALID_HANDLE, "free 0x%x", object);
  if (o->parent != parent)
    return model_refuse(reply, ST_INVALID_PARENT,
                        "free 0x%x: parent 0x%x, not 0x%x", object, o->parent,
                        parent);
  if (object == m->path.device || object == m->path.subdevice ||
      object == m->path.vaspace)
    return model_refuse(reply, ST_IN_USE, "free 0x%x: the path's own", object);
  if (needed(m, object, reply))
    return false;
  remove_tree(m, object);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

bool model_rm_free(void *ctx, uint32_t parent, uint32_t object,
                   struct rig_nv_reply *reply) {
  struct model *m = ctx;
  if (!m->path.rm.frees)
    return model_refuse(reply, ST_INVALID_STATE,
                        "free 0x%x: this RM frees no object", object);
  if (!model_enter(m, reply))
    return false;
  bool ok = free_locked(m, parent, object, reply);
  model_leave(m);
  return ok;
}

void model_objects_close(struct model *m) {
  while (m->objects)
    remove_object(m, m->objects);
}
