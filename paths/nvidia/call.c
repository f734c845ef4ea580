/* SPDX-License-Identifier: ISC */
#include "paths/nvidia/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SLACKED = 4096 }; /* bytes of allocation parameters, slack included */

static const char *status_name(uint32_t status) {
  switch (status) {
  case NV_ERR_GPU_IS_LOST:
    return " (the GPU is lost)";
  case NV_ERR_GPU_IN_FULLCHIP_RESET:
  case NV_ERR_RESET_REQUIRED:
    return " (the GPU must be reset)";
  case NV_ERR_IN_USE:
    return " (in use)";
  case NV_ERR_INSUFFICIENT_RESOURCES:
    return " (insufficient resources)";
  case NV_ERR_INVALID_ADDRESS:
    return " (invalid address)";
  case NV_ERR_INVALID_ARGUMENT:
    return " (invalid argument)";
  case NV_ERR_NO_MEMORY:
    return " (no memory)";
  case NV_ERR_NOT_SUPPORTED:
    return " (not supported)";
  default:
    return "";
  }
}

static enum rig_nv_answer answer(uint32_t status) {
  switch (status) {
  case NV_OK:
    return RIG_NV_OK;
  case NV_ERR_NO_MEMORY:
  case NV_ERR_INSUFFICIENT_RESOURCES:
    return RIG_NV_LACKING;
  case NV_ERR_GPU_IS_LOST:
  case NV_ERR_GPU_IN_FULLCHIP_RESET:
  case NV_ERR_RESET_REQUIRED:
    return RIG_NV_FAULTED;
  default:
    return RIG_NV_DENIED;
  }
}

bool nvk_call_status(struct rig_nv_reply *reply, const char *what,
                     uint32_t status) {
  if (status == NV_OK)
    return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  return rig_nv_reply_set(reply, answer(status), "%s: NV status 0x%x%s", what,
                          status, status_name(status));
}

bool nvk_call_errno(struct rig_nv_reply *reply, const char *what, int error) {
  int e = -error;
  enum rig_nv_answer is = e == 0        ? RIG_NV_OK
                          : e == ENOMEM ? RIG_NV_LACKING
                          : e == EIO || e == ENODEV || e == ENXIO
                              ? RIG_NV_FAULTED
                              : RIG_NV_DENIED;
  if (is == RIG_NV_OK)
    return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  return rig_nv_reply_set(reply, is, "%s: %s (errno %d)", what, strerror(e), e);
}

bool nvk_call_escape(const struct client *c, int fd, uint32_t escape,
                     void *params, size_t n, const uint32_t *status,
                     const char *what, struct rig_nv_reply *reply) {
  int e = c->os->ioctl(c->os->ctx, fd, NV_REQUEST(escape, n), params, n);
  if (e != 0)
    return nvk_call_errno(reply, what, e);
  return nvk_call_status(reply, what, status ? *status : NV_OK);
}

bool nvk_call_alloc(const struct client *c, uint32_t parent, uint32_t cls,
                    void *params, size_t n, uint32_t *object, const char *what,
                    struct rig_nv_reply *reply) {
  _Alignas(8) unsigned char slacked[SLACKED] = {0};
  if (n > SLACKED / 2)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s: %zu bytes of parameters",
                            what, n);
  if (n != 0)
    memcpy(slacked, params, n);
  struct nv_alloc a = {.root = c->root,
                       .parent = parent,
                       .cls = cls,
                       .params = n ? (uintptr_t)slacked : 0,
                       .params_size = (uint32_t)n};
  if (!nvk_call_escape(c, c->ctl, NV_ESC_RM_ALLOC, &a, sizeof a, &a.status,
                       what, reply))
    return false;
  if (n != 0)
    memcpy(params, slacked, n);
  *object = a.object;
  return true;
}

bool nvk_call_free(const struct client *c, uint32_t parent, uint32_t object,
                   struct rig_nv_reply *reply) {
  char what[48];
  struct nv_free f = {.root = c->root, .parent = parent, .old = object};
  if (object == 0)
    return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  snprintf(what, sizeof what, "free of object 0x%x", object);
  return nvk_call_escape(c, c->ctl, NV_ESC_RM_FREE, &f, sizeof f, &f.status,
                         what, reply);
}

bool nvk_call_control(const struct client *c, uint32_t object, uint32_t cmd,
                      void *params, size_t n, const char *what,
                      struct rig_nv_reply *reply) {
  struct nv_control k = {.client = c->root,
                         .object = object,
                         .cmd = cmd,
                         .params = (uintptr_t)params,
                         .params_size = (uint32_t)n};
  return nvk_call_escape(c, c->ctl, NV_ESC_RM_CONTROL, &k, sizeof k, &k.status,
                         what, reply);
}

bool nvk_call_open(const struct gpu *g, int *fd, struct rig_nv_reply *reply) {
  const struct client *c = g->client;
  char path[32];
  struct nv_register_fd r = {.ctl = c->ctl};
  snprintf(path, sizeof path, "/dev/nvidia%u", g->card.minor);
  *fd = c->os->open(c->os->ctx, path);
  if (*fd < 0)
    return nvk_call_errno(reply, path, *fd);
  if (nvk_call_escape(c, *fd, NV_ESC_REGISTER_FD, &r, sizeof r, NULL,
                      "registration of the GPU's file", reply))
    return true;
  (void)c->os->close(c->os->ctx, *fd); /* the reason is the registration's */
  return false;
}

static bool map_by(const struct gpu *g, int fd, struct nv_map_memory *m,
                   char **host, const char *what, struct rig_nv_reply *reply) {
  const struct client *c = g->client;
  void *p = NULL;
  m->fd = fd;
  if (!nvk_call_escape(c, c->ctl, NV_ESC_RM_MAP_MEMORY, m, sizeof *m,
                       &m->status, what, reply))
    return false;
  int e = c->os->map(c->os->ctx, fd, m->length, &p);
  if (e == 0) {
    *host = p;
    return true;
  }
  struct rig_nv_reply undone;
  struct nv_unmap_memory u = {.client = m->client,
                              .device = m->device,
                              .memory = m->memory,
                              .address = m->address};
  if (!nvk_call_escape(c, c->ctl, NV_ESC_RM_UNMAP_MEMORY, &u, sizeof u,
                       &u.status, "unmap", &undone))
    return rig_nv_reply_set(reply, undone.is, "%s: mmap: %s; %s", what,
                            strerror(-e), undone.text);
  return nvk_call_errno(reply, what, e);
}

bool nvk_call_map(const struct gpu *g, uint32_t device, uint32_t memory,
                  uint64_t n, uint32_t flags, char **host, uint64_t *cookie,
                  const char *what, struct rig_nv_reply *reply) {
  const struct nvidia_os *os = g->client->os;
  struct nv_map_memory m = {.client = g->client->root,
                            .device = device,
                            .memory = memory,
                            .length = n,
                            .flags = flags};
  int fd;
  if (!nvk_call_open(g, &fd, reply))
    return false;
  bool mapped = map_by(g, fd, &m, host, what, reply);
  int e = os->close(os->ctx, fd); /* the mapping holds it open */
  if (!mapped)
    return false;
  *cookie = m.address;
  if (e == 0)
    return true;
  struct rig_nv_reply undone;
  (void)nvk_call_unmap(g, device, memory, n, *host, *cookie, &undone);
  return nvk_call_errno(reply, what, e);
}

bool nvk_call_unmap(const struct gpu *g, uint32_t device, uint32_t memory,
                    uint64_t n, char *host, uint64_t cookie,
                    struct rig_nv_reply *reply) {
  const struct client *c = g->client;
  struct nv_unmap_memory u = {
      .client = c->root, .device = device, .memory = memory, .address = cookie};
  int e = c->os->unmap(c->os->ctx, host, n);
  if (e != 0)
    return nvk_call_errno(reply, "unmap", e);
  return nvk_call_escape(c, c->ctl, NV_ESC_RM_UNMAP_MEMORY, &u, sizeof u,
                         &u.status, "unmap", reply);
}

bool nvk_call_uvm(const struct client *c, int fd, uint32_t request,
                  void *params, size_t n, size_t status, const char *what,
                  struct rig_nv_reply *reply) {
  uint32_t is;
  int e = c->os->ioctl(c->os->ctx, fd, request, params, n);
  if (e != 0)
    return nvk_call_errno(reply, what, e);
  memcpy(&is, (const char *)params + status, sizeof is);
  return nvk_call_status(reply, what, is);
}
