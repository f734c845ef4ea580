/* SPDX-License-Identifier: ISC */
/*
 * Host memory of the caller's. A range that lies in one that is mapped shares
 * its span, whichever GPU mapped that; one that lies there in part is refused.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "core/api/why.h"
#include "paths/nvidia/call.h"

static bool never(enum rig_mapping *mapping, struct rig_nv_reply *reply,
                  const char *what, const void *p, uint64_t n) {
  *mapping = RIG_NEVER_MAPS;
  return rig_nv_reply_set(reply, RIG_NV_DENIED,
                          "map_host: %s: %" PRIu64 " bytes at %p", what, n, p);
}

static bool answered(enum rig_mapping *mapping, bool ok,
                     const struct rig_nv_reply *reply) {
  *mapping = ok                            ? RIG_MAPS
             : reply->is == RIG_NV_LACKING ? RIG_NO_ROOM
                                           : RIG_NEVER_MAPS;
  return ok;
}

/* A span whose host memory holds a byte of [p, p + n). Pinned memory of ours
 * is the process's like any other; Mapped memory is the GPU's. */
static struct span *over(const struct client *c, uintptr_t p, uint64_t n) {
  struct span *s = c->spans;
  for (; s != NULL; s = s->next) {
    uintptr_t host = (uintptr_t)s->host;
    if ((s->of_caller || s->kind == RIG_MAPPED) && s->made == SPAN_WHOLE &&
        host < p + n && p < host + s->range.bytes)
      return s;
  }
  return NULL;
}

static bool map_locked(struct gpu *g, struct memory *m, char *p, uint64_t n,
                       enum rig_mapping *mapping, struct rig_nv_memory *out,
                       struct rig_nv_reply *reply) {
  struct span *s = over(g->client, (uintptr_t)p, n);
  if (s != NULL && !s->of_caller)
    return never(mapping, reply, "Mapped memory", p, n);
  if (s != NULL && s->kept)
    return never(mapping, reply, "a mapping that could not be ended", p, n);
  if (s != NULL &&
      (p < s->host || (uint64_t)(p - s->host) + n > s->range.bytes))
    return never(mapping, reply, "overlaps a mapping in part", p, n);
  if (s == NULL) {
    s = nvk_span_new(g, RIG_PINNED, n);
    if (s == NULL) {
      *mapping = RIG_NO_ROOM;
      return rig_nv_reply_set(reply, RIG_NV_LACKING,
                              "map_host: no room for %" PRIu64 " bytes", n);
    }
    s->of_caller = true;
    s->host = p;
    if (!nvk_span_make(s, false, reply))
      return answered(mapping, false, reply);
  }
  if (!answered(mapping, nvk_span_view(s, g, m, reply), reply))
    return false;
  g->memories++;
  nvk_memory_describe(m, (uint64_t)(p - s->host), n, out);
  return true;
}

bool nvk_host_map(void *ctx, void *p, uint64_t n, enum rig_mapping *mapping,
                  struct rig_nv_memory *out, struct rig_nv_reply *reply) {
  struct gpu *g = ctx;
  *mapping = RIG_NEVER_MAPS;
  if (n == 0 || (uintptr_t)p % NVIDIA_PAGE != 0)
    return rig_nv_reply_set(reply, RIG_NV_WRONG,
                            "map_host: %" PRIu64 " bytes at %p: no pages", n,
                            p);
  if (p == NULL || n > NVIDIA_END || (uintptr_t)p + n > NVIDIA_END)
    return never(mapping, reply, "no memory of the process", p, n);
  uint64_t whole = (n + NVIDIA_PAGE - 1) / NVIDIA_PAGE * NVIDIA_PAGE;
  struct memory *m = malloc(sizeof *m);
  if (m == NULL) {
    *mapping = RIG_NO_ROOM;
    return rig_nv_reply_set(reply, RIG_NV_LACKING, "map_host: no host memory");
  }
  if (rig_nv_lock_take(&nvk_client_lock)) {
    free(m);
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
  }
  bool ok = map_locked(g, m, p, whole, mapping, out, reply);
  rig_nv_lock_give(&nvk_client_lock);
  if (!ok)
    free(m);
  else
    out->bytes = n;
  return ok;
}
