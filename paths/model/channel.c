/* SPDX-License-Identifier: ISC */
/*
 * A channel: what its parameters must name, and its end.
 */
#include <stdlib.h>
#include <string.h>

#include "core/abi/classes.h"
#include "paths/model/state.h"

static bool refuse(struct rig_nv_reply *reply, enum model_status status,
                   const char *what, uint64_t x) {
  return model_refuse(reply, status, "alloc channel: %s 0x%llx", what,
                      (unsigned long long)x);
}

/* The GPU's own memory of the parameter's handle, at least n bytes from `at`.
 */
static struct model_memory *named(struct model *m, uint64_t handle, uint64_t at,
                                  uint64_t n) {
  struct model_memory *r = model_memory_of(m, (uint32_t)handle);
  if (!r || r == m->flush || r->span->share || !r->span->gpu || at > r->bytes ||
      n > r->bytes - at)
    return NULL;
  return r;
}

static bool ring(struct model *m, struct model_channel *c, const void *p,
                 size_t bytes, struct rig_nv_reply *reply) {
  uint64_t n = model_get(p, bytes, m->layout->channel.gpfifo_entries);
  c->ring = model_get(p, bytes, m->layout->channel.gpfifo_offset);
  if (n < 2 || n & (n - 1))
    return refuse(reply, ST_INVALID_ARGUMENT, "gpFifoEntries", n);
  c->entries = (uint32_t)n;
  c->names[NAME_RING] = model_memory_at(m, c->ring, n * GP_ENTRY_BYTES);
  if (c->ring % GP_ENTRY_BYTES || !c->names[NAME_RING] ||
      c->names[NAME_RING]->span->share)
    return refuse(reply, ST_INVALID_ADDRESS,
                  "gpFifoOffset is no memory for all entries:", c->ring);
  return true;
}

static bool userd(struct model *m, struct model_channel *c, const void *p,
                  size_t bytes, struct rig_nv_reply *reply) {
  uint64_t handle = model_get(p, bytes, m->layout->channel.userd_memory_0);
  uint64_t at = model_get(p, bytes, m->layout->channel.userd_offset_0);
  struct model_memory *r = named(m, handle, 0, 0);
  if (!r)
    return refuse(reply, ST_INVALID_HANDLE, "hUserdMemory[0]", handle);
  if (at % USERD_BYTES || !named(m, handle, at, USERD_BYTES))
    return refuse(reply, ST_INVALID_ARGUMENT, "userdOffset[0]", at);
  c->names[NAME_USERD] = r;
  c->userd = model_twin_of(r, at);
  for (struct model_channel *o = m->channels; o; o = o->next)
    if (o->userd.host == c->userd.host)
      return refuse(reply, ST_IN_USE, "userdOffset[0]", at);
  return true;
}

static bool memories(struct model *m, struct model_channel *c, const void *p,
                     size_t bytes, struct rig_nv_reply *reply) {
  uint64_t handle = model_get(p, bytes, m->layout->channel.object_error);
  struct model_memory *r = named(m, handle, 0, m->layout->notification.bytes);
  if (!r)
    return refuse(reply, ST_INVALID_HANDLE, "hObjectError", handle);
  c->names[NAME_NOTIFIER] = r;
  c->notifier = model_twin_of(r, 0);
  handle = model_get(p, bytes, m->layout->channel.object_buffer);
  if (handle && !(c->names[NAME_BUFFER] = named(m, handle, 0, 0)))
    return refuse(reply, ST_INVALID_HANDLE, "hObjectBuffer", handle);
  return userd(m, c, p, bytes, reply) && ring(m, c, p, bytes, reply);
}

static bool check(struct model *m, struct model_channel *c, const void *p,
                  size_t bytes, struct rig_nv_reply *reply) {
  if (bytes != m->layout->channel.bytes || !p)
    return refuse(reply, ST_INVALID_ARGUMENT, "bytes of parameters", bytes);
  uint64_t share = model_get(p, bytes, m->layout->channel.context_share);
  struct model_object *s = model_object_of(m, (uint32_t)share);
  if (!s || s->cls != FERMI_CONTEXT_SHARE_A || s->parent != c->group)
    return refuse(reply, ST_INVALID_HANDLE, "hContextShare", share);
  c->share = s->handle;
  return memories(m, c, p, bytes, reply);
}

bool model_channel_new(struct model *m, struct model_object *group,
                       const void *params, size_t bytes, uint32_t *object,
                       struct rig_nv_reply *reply) {
  struct model_channel *c = calloc(1, sizeof *c);
  if (!c)
    return model_refuse(reply, ST_NO_MEMORY, "alloc channel");
  c->group = group->handle;
  c->cls = m->options.gpu.channel_class;
  if (!check(m, c, params, bytes, reply))
    goto undo;
  if (!model_object_new(m, group->handle, c->cls, &c->handle)) {
    model_refuse(reply, ST_NO_MEMORY, "alloc channel");
    goto undo;
  }
  model_object_of(m, c->handle)->channel = c;
  c->token = m->next_token++;
  for (size_t i = 0; i < sizeof c->names / sizeof *c->names; i++)
    if (c->names[i])
      c->names[i]->named++;
  /* The RM clears a channel's USERD as it makes the channel. */
  model_post_hold(c->userd.post);
  memset(c->userd.gpu, 0, USERD_BYTES);
  memset(c->userd.host, 0, USERD_BYTES);
  model_post_go(c->userd.post);
  c->next = m->channels;
  m->channels = c;
  m->nchannels++;
  *object = c->handle;
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
undo:
  free(c);
  return false;
}

/* What was executed lands now or never, as the seed has it. */
void model_channel_end(struct model *m, struct model_channel *c) {
  if (model_below(m, 2))
    while (c->nstores)
      (void)!model_store_land(m, c);
  model_launches_end(m, c);
  c->nstores = c->nwork = c->nfetched = 0;
  c->releasing = c->held = false;
  c->words = c->count = 0;
  c->dead = true;
}
