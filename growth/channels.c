/* SPDX-License-Identifier: ISC */
#include "growth/channels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/abi/classes.h"
#include "core/api/why.h"
#include "paths/call.h"
#include "rings/shared.h"

enum {
  PAGE = 4096,
  /* Allocation parameters sit in a zeroed buffer with slack: the RM reads its
   * own size of the class, whatever the caller's. */
  PARAMS = 1024,
  NO_PARAMS = 0,
  USERD_BYTES = QUEUES * PAGE
};

static const char *const names[] = {"COMPUTE", "COPY"};

static uint64_t pages(uint64_t n) { return (n + PAGE - 1) / PAGE * PAGE; }

/* Offsets in the block, and where USERD lies apart, in its memory. */
struct layout {
  uint64_t entries[QUEUES], userd[QUEUES], bytes;
  bool apart;
};

static struct layout lay_out(const uint32_t entries[QUEUES], bool apart) {
  struct layout l = {.apart = apart};
  uint64_t at = 0;
  for (int q = 0; q < QUEUES; q++) {
    l.entries[q] = at;
    at += pages((uint64_t)entries[q] * 8);
  }
  for (int q = 0; q < QUEUES; q++)
    l.userd[q] = apart ? (uint64_t)q * PAGE : at + (uint64_t)q * PAGE;
  l.bytes = apart ? at : at + USERD_BYTES;
  return l;
}

static void set(void *params, struct abi_rm_field f, uint64_t x) {
  RING_ASSERT(rig_nv_params_set(params, PARAMS, f.at, f.n, x) == 0);
}

/* The block, USERD where it lies elsewhere, and the notifiers. */
static int allocate_memory(const struct rig_nv_path *path,
                           const struct layout *l, const struct places *at,
                           struct channels *c, struct ring_channel *ring) {
  int e = place_alloc(path, at->entries, l->bytes, &c->block,
                      &ring->entries_mapped);
  ring->put_mapped = ring->entries_mapped;
  if (e == 0 && l->apart)
    e = place_alloc(path, at->userd, USERD_BYTES, &c->userd, &ring->put_mapped);
  for (int q = 0; e == 0 && q < QUEUES; q++)
    e = path_alloc(path, RIG_PINNED, PAGE, 0, &c->notifier[q]);
  if (e != 0)
    return e;
  memset(c->block.host, 0, l->bytes);
  if (l->apart)
    memset(c->userd.host, 0, USERD_BYTES);
  for (int q = 0; q < QUEUES; q++)
    memset(c->notifier[q].host, 0, PAGE);
  return 0;
}

static int make_group(const struct rig_nv_path *path,
                      const struct abi_rm_layout *l, struct channels *c) {
  unsigned char params[PARAMS] = {0};
  set(params, l->group.engine_type, NV2080_ENGINE_TYPE_GRAPHICS);
  int e = rm_alloc(path, "channel group", path->device, KEPLER_CHANNEL_GROUP_A,
                   params, l->group.bytes, &c->group);
  if (e != 0)
    return e;
  memset(params, 0, sizeof params);
  set(params, l->share.va_space, path->vaspace);
  set(params, l->share.flags, NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC);
  return rm_alloc(path, "context share", c->group, FERMI_CONTEXT_SHARE_A,
                  params, l->share.bytes, &c->share);
}

static int make_channel(const struct rig_nv_path *path,
                        const struct abi_rm_layout *l,
                        const uint32_t entries[QUEUES], const struct layout *at,
                        struct channels *c, int q, uint32_t *token) {
  unsigned char params[PARAMS] = {0};
  struct rig_nv_reply reply = {0};
  uint32_t cls =
      q == RIG_COMPUTE0 ? path->gpu.compute_class : path->gpu.copy_class;
  set(params, l->channel.gpfifo_offset, c->block.address + at->entries[q]);
  set(params, l->channel.gpfifo_entries, entries[q]);
  set(params, l->channel.object_error, c->notifier[q].handle);
  set(params, l->channel.object_buffer, c->block.handle);
  set(params, l->channel.userd_memory_0,
      at->apart ? c->userd.handle : c->block.handle);
  set(params, l->channel.userd_offset_0, at->userd[q]);
  set(params, l->channel.context_share, c->share);
  int e = rm_alloc(path, names[q], c->group, path->gpu.channel_class, params,
                   l->channel.bytes, &c->channel[q]);
  if (e != 0)
    return e;
  e = rm_alloc(path, q == RIG_COMPUTE0 ? "compute engine" : "copy engine",
               c->channel[q], cls, NULL, NO_PARAMS, &c->engine[q]);
  if (e != 0)
    return e;
  if (!path->rm.token(path->ctx, c->channel[q], token, &reply))
    return path_error("work submit token", &reply);
  if (!path->register_channel(path->ctx, c->channel[q], &reply))
    return path_error("registration", &reply);
  c->registered[q] = true;
  return 0;
}

static int make_debugger(const struct rig_nv_path *path,
                         const struct abi_rm_layout *l, struct channels *c) {
  unsigned char params[PARAMS] = {0};
  set(params, l->debugger.app_client, path->rm.client);
  set(params, l->debugger.class_3d_object, c->engine[RIG_COMPUTE0]);
  return rm_alloc(path, "debugger", path->device, GT200_DEBUGGER, params,
                  l->debugger.bytes, &c->debugger);
}

static int make_objects(const struct rig_nv_path *path,
                        const struct abi_rm_layout *l,
                        const uint32_t entries[QUEUES], const struct layout *at,
                        struct channels *c, uint32_t token[QUEUES]) {
  int e = make_group(path, l, c);
  for (int q = 0; e == 0 && q < QUEUES; q++)
    e = make_channel(path, l, entries, at, c, q, &token[q]);
  return e != 0 ? e : make_debugger(path, l, c);
}

int channels_undo(const struct rig_nv_path *path, struct channels *c, int e) {
  struct rig_nv_reply stays = {0};
  char reason[sizeof stays.text], fault[sizeof stays.text] = "";
  snprintf(reason, sizeof reason, "%s", rig_nv_why());
  bool named = c->channel[0] != 0;
  bool gone = channels_end(path, c, &stays);
  if ((gone || !named) && channels_free_memory(path, c) != 0)
    snprintf(fault, sizeof fault, "%s", rig_nv_why());
  return why(-e, "%s%s%s%s%s%s", reason,
             stays.text[0] ? "; what was made of its channels stays" : "",
             stays.text[0] == 0 ? ""
             : named && !gone   ? ", with the memory that it names: "
                                : ": ",
             stays.text, fault[0] ? "; memory of its rings stays: " : "",
             fault);
}

int channels_make(const struct rig_nv_path *path, const struct abi_rm_layout *l,
                  const uint32_t entries[QUEUES], const struct places *places,
                  struct channels *c, struct ring_channel ring[QUEUES]) {
  struct layout at = lay_out(entries, places->userd != places->entries);
  uint32_t token[QUEUES] = {0};
  struct ring_channel lies = {0};
  memset(c, 0, sizeof *c);
  int e = allocate_memory(path, &at, places, c, &lies);
  if (e == 0)
    e = make_objects(path, l, entries, &at, c, token);
  if (e != 0)
    return channels_undo(path, c, e);
  for (int q = 0; q < QUEUES; q++) {
    unsigned char *block = c->block.host;
    unsigned char *userd = at.apart ? c->userd.host : block;
    userd += at.userd[q];
    ring[q].entries = (uint32_t *)(void *)(block + at.entries[q]);
    ring[q].n = entries[q];
    ring[q].entries_mapped = lies.entries_mapped;
    ring[q].gp_put = (uint32_t *)(void *)(userd + ABI_USERD_GP_PUT);
    ring[q].put_mapped = lies.put_mapped;
    ring[q].token = token[q];
  }
  return 0;
}

int channels_schedule(const struct rig_nv_path *path,
                      const struct abi_rm_layout *l, const struct channels *c) {
  unsigned char params[PARAMS] = {0};
  struct rig_nv_reply reply = {0};
  set(params, l->schedule.enable, 1);
  if (!path->rm.schedule(path->ctx, c->group, params, l->schedule.bytes,
                         &reply))
    return path_error("schedule", &reply);
  return 0;
}

/* Keeps the first reason; the call that failed ended nothing. */
static bool keep(struct rig_nv_reply *why, const struct rig_nv_reply *reply) {
  if (why->text[0] == 0)
    *why = *reply;
  return false;
}

/* Frees the object, if there is one and the RM frees at all. */
static bool end_object(const struct rig_nv_path *path, uint32_t parent,
                       uint32_t *object, struct rig_nv_reply *why) {
  struct rig_nv_reply reply = {0};
  if (*object == 0)
    return true;
  if (!path->rm.frees) {
    rig_nv_reply_set(&reply, RIG_NV_DENIED, "the RM frees no object");
    return keep(why, &reply);
  }
  if (!path->rm.free(path->ctx, parent, *object, &reply))
    return keep(why, &reply);
  *object = 0;
  return true;
}

bool channels_end(const struct rig_nv_path *path, struct channels *c,
                  struct rig_nv_reply *why) {
  bool gone = true;
  for (int q = 0; q < QUEUES; q++) {
    struct rig_nv_reply reply = {0};
    if (!c->registered[q])
      continue;
    if (path->unregister_channel(path->ctx, c->channel[q], &reply))
      c->registered[q] = false;
    else
      gone = keep(why, &reply);
  }
  end_object(path, path->device, &c->debugger, why); /* runs no work */
  return end_object(path, path->device, &c->group, why) && gone;
}

int channels_free_memory(const struct rig_nv_path *path, struct channels *c) {
  int fault = 0;
  struct rig_nv_memory *all[] = {&c->block, &c->notifier[0], &c->notifier[1],
                                 &c->userd};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    int e = path_free(path, all[i]);
    if (e != 0)
      fault = e;
  }
  return fault;
}

uint64_t channels_error(const struct abi_rm_layout *l, const struct channels *c,
                        int q) {
  const unsigned char *n = c->notifier[q].host;
  /* info16 and status, one word: the RM writes status last. */
  uint32_t status =
      shared_load_32((const uint32_t *)(n + l->notification.info_16.at)) >> 16;
  shared_fence_acquire(); /* partner: the RM's store of status */
  uint32_t info =
      shared_load_32((const uint32_t *)(n + l->notification.info_32.at));
  return (uint64_t)info << 16 | status;
}
