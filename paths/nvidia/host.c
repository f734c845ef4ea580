/* SPDX-License-Identifier: ISC */
/*
 * Host memory of the caller's. A range that lies in one that is mapped shares
 * its span, whichever GPU mapped that; one that lies there in part is refused.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "core/api/why.h"
#include "paths/nvidia/call.h"

enum { FIRST_NAP = 20000, MOST_NAP = 1000000 };
#define WAIT_NS UINT64_C(30000000000) /* the driver pins a GiB in a second */

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
 * is the process's like any other; Mapped memory is the GPU's, which nobody
 * has before it is whole. */
static struct span *over(const struct client *c, uintptr_t p, uint64_t n) {
  struct span *s = c->spans;
  for (; s != NULL; s = s->next) {
    if (!s->of_caller && (s->busy || s->kind != RIG_MAPPED))
      continue;
    uintptr_t host = (uintptr_t)s->host;
    if ((s->busy || s->made == SPAN_WHOLE) && host < p + n &&
        p < host + s->range.bytes)
      return s;
  }
  return NULL;
}

/* The same, once no thread makes or ends it, with the lock given up meanwhile.
 * False where that takes WAIT_NS. */
static bool over_still(const struct client *c, uintptr_t p, uint64_t n,
                       struct span **found) {
  uint64_t nap = FIRST_NAP;
  for (uint64_t waited = 0; waited < WAIT_NS; waited += nap) {
    const struct timespec t = {.tv_nsec = (long)nap};
    *found = over(c, p, n);
    if (*found == NULL || !(*found)->busy)
      return true;
    rig_nv_lock_give(&nvk_client_lock);
    nanosleep(&t, NULL); /* one that a signal ends is as good */
    nvk_lock_again();
    nap = 2 * nap < MOST_NAP ? 2 * nap : MOST_NAP;
  }
  return false;
}

/* Shares the span that holds it; *fresh is one that is placed, to be made, or
 * NULL where there is no such. */
static bool map_locked(struct gpu *g, struct memory *m, char *p, uint64_t n,
                       enum rig_mapping *mapping, struct span **fresh,
                       struct rig_nv_reply *reply) {
  struct span *s;
  *mapping = RIG_NO_ROOM;
  if (!over_still(g->client, (uintptr_t)p, n, &s))
    return rig_nv_reply_set(reply, RIG_NV_LACKING,
                            "map_host: another thread maps or frees memory at "
                            "%p and does not come to an end",
                            (void *)p);
  if (s != NULL && !s->of_caller)
    return never(mapping, reply, "Mapped memory", p, n);
  if (s != NULL && s->kept)
    return never(mapping, reply, "a mapping that could not be ended", p, n);
  if (s != NULL &&
      (p < s->host || (uint64_t)(p - s->host) + n > s->range.bytes))
    return never(mapping, reply, "overlaps a mapping in part", p, n);
  if (s != NULL) {
    if (!answered(mapping, nvk_span_view(s, g, m, reply), reply))
      return false;
  } else {
    s = nvk_span_new(g, RIG_PINNED, n);
    if (s == NULL)
      return rig_nv_reply_set(reply, RIG_NV_LACKING,
                              "map_host: no room for %" PRIu64 " bytes", n);
    s->of_caller = true;
    s->host = p;
    if (!nvk_span_place(s, m, reply))
      return answered(mapping, false, reply);
    *fresh = s;
  }
  g->memories++;
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
  struct span *fresh = NULL;
  struct memory *m = malloc(sizeof *m);
  if (m == NULL) {
    *mapping = RIG_NO_ROOM;
    return rig_nv_reply_set(reply, RIG_NV_LACKING, "map_host: no host memory");
  }
  if (rig_nv_lock_take(&nvk_client_lock)) {
    free(m);
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
  }
  bool ok = map_locked(g, m, p, whole, mapping, &fresh, reply);
  if (fresh != NULL) {
    rig_nv_lock_give(&nvk_client_lock);
    ok = answered(mapping, nvk_span_make(fresh, false, reply), reply);
    nvk_lock_again();
    nvk_memory_told(g, fresh, ok);
  }
  rig_nv_lock_give(&nvk_client_lock);
  if (ok)
    nvk_memory_describe(m, (uint64_t)((char *)p - m->span->host), n, out);
  else
    free(m);
  return ok;
}
