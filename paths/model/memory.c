/* SPDX-License-Identifier: ISC */
/*
 * Memory: what the path's functions give and take back.
 */
#include <ck_pr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paths/model/span.h"

struct model_twin model_twin_of(const struct model_memory *r, uint64_t at) {
  return model_span_twin(r->span, r->address - r->span->at + at);
}

struct model_memory *model_memory_of(struct model *m, uint32_t handle) {
  struct model_memory *r = m->memories;
  while (r && r->handle != handle)
    r = r->next;
  return r;
}

struct model_memory *model_memory_at(struct model *m, uint64_t at, uint64_t n) {
  for (struct model_memory *r = m->memories; r; r = r->next)
    if (at >= r->address && at - r->address <= r->bytes &&
        n <= r->bytes - (at - r->address))
      return r;
  return NULL;
}

/* A record of n bytes from byte `at` of the span. */
static struct model_memory *record(struct model *m, struct model_span *s,
                                   uint64_t at, uint64_t n) {
  struct model_memory *r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  r->span = s;
  r->address = s->at + at;
  r->bytes = n;
  r->handle = m->next_handle++;
  r->next = m->memories;
  m->memories = r;
  m->nmemories++;
  s->users++;
  return r;
}

void model_describe(struct model_memory *r, struct rig_nv_memory *out,
                    uint64_t n) {
  out->address = r->address;
  out->host = r->span->kind == RIG_DEVICE ? NULL : model_twin_of(r, 0).host;
  out->handle = r->handle;
  out->data = r;
  out->bytes = n;
}

static uint64_t budget(const struct model *m, int kind) {
  return kind == RIG_DEVICE   ? m->options.device_bytes
         : kind == RIG_MAPPED ? m->options.mapped_bytes
                              : m->options.host_bytes;
}

static bool fits(const struct model *m, int kind, uint64_t n) {
  uint64_t all = budget(m, kind);
  return n <= all && model_whole(n) <= all - m->used[kind];
}

static void drop(struct model *m, struct model_span *s) {
  model_span_out(m, s);
  model_span_end(m, s);
}

struct model_memory *model_view_new(struct model *m,
                                    const struct model_span *of, uint64_t n) {
  uint64_t all = m->options.peer_bytes;
  if (n > all || model_whole(n) > all - m->viewed)
    return NULL;
  struct model_span *s = model_span_view(m, of, n);
  struct model_memory *r = s ? record(m, s, 0, n) : NULL;
  if (r || !s)
    return r;
  model_span_out(m, s);
  s->share = NULL; /* the caller's reference */
  model_span_end(m, s);
  return NULL;
}

static const char *const kinds[] = {"Device", "Pinned", "Mapped"};

static bool lacks(struct rig_nv_reply *reply, int kind, uint64_t n) {
  return rig_nv_reply_set(reply, RIG_NV_LACKING,
                          "alloc: no %llu bytes of %s memory",
                          (unsigned long long)n, kinds[kind]);
}

static bool alloc_locked(struct model *m, int kind, uint64_t n, unsigned flags,
                         struct rig_nv_memory *out,
                         struct rig_nv_reply *reply) {
  if (m->stopped)
    return rig_nv_reply_set(reply, RIG_NV_DENIED, "alloc: the path stopped");
  if (kind == RIG_MAPPED && !m->flush)
    return rig_nv_reply_set(reply, RIG_NV_LACKING,
                            "alloc: no Mapped memory: no flush word");
  if (!fits(m, kind, n))
    return lacks(reply, kind, n);
  struct model_span *s =
      model_span_fresh(m, kind, n, kind == RIG_MAPPED ? m->post : NULL);
  if (!s)
    return lacks(reply, kind, n);
  s->rings = flags & RIG_NV_COMBINE;
  struct model_memory *r = record(m, s, 0, n);
  if (!r) {
    drop(m, s);
    return lacks(reply, kind, n);
  }
  model_describe(r, out, n);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

bool model_alloc(void *ctx, enum rig_memory kind, uint64_t n, unsigned flags,
                 struct rig_nv_memory *out, struct rig_nv_reply *reply) {
  struct model *m = ctx;
  int k = (int)kind;
  if (k < RIG_DEVICE || k > RIG_MAPPED)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "alloc: no memory kind %d", k);
  if (!n)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "alloc: 0 bytes");
  if (flags & ~(unsigned)RIG_NV_COMBINE)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "alloc: flags 0x%x", flags);
  if (!model_enter(m, reply))
    return false;
  bool ok = alloc_locked(m, k, n, flags, out, reply);
  model_leave(m);
  return ok;
}

/* Whether the process may read and write every page of [at, end). */
static bool host_holds(uintptr_t at, uintptr_t end) {
  FILE *maps = fopen("/proc/self/maps", "re");
  if (!maps)
    return false;
  char line[512];
  bool whole = true; /* the next line starts a mapping */
  while (at < end && fgets(line, sizeof line, maps)) {
    unsigned long low, high;
    char perms[5];
    if (whole && sscanf(line, "%lx-%lx %4s", &low, &high, perms) == 3 &&
        high > at) {
      if (low > at || perms[0] != 'r' || perms[1] != 'w')
        break;
      at = high;
    }
    whole = strchr(line, '\n') != NULL;
  }
  fclose(maps);
  return at >= end;
}

static bool never(enum rig_mapping *mapping, struct rig_nv_reply *reply,
                  const char *what, const void *p, uint64_t n) {
  *mapping = RIG_NEVER_MAPS;
  return rig_nv_reply_set(reply, RIG_NV_DENIED,
                          "map_host: %s: %llu bytes at %p", what,
                          (unsigned long long)n, p);
}

/* The span of caller's memory that holds a byte of [p, p + n), or NULL. */
static struct model_span *mapped_over(struct model *m, const char *p,
                                      uint64_t n) {
  for (size_t i = 0; i < m->nspans; i++) {
    struct model_span *s = m->spans[i];
    if (!s->mapped && !s->share && (uintptr_t)s->host < (uintptr_t)p + n &&
        (uintptr_t)p < (uintptr_t)s->host + s->bytes)
      return s;
  }
  return NULL;
}

static bool map_locked(struct model *m, char *p, uint64_t n,
                       enum rig_mapping *mapping, struct rig_nv_memory *out,
                       struct rig_nv_reply *reply) {
  if (m->stopped)
    return never(mapping, reply, "the path stopped", p, n);
  uint64_t room = model_whole(n);
  struct model_span *s = mapped_over(m, p, room);
  if (s && (p < s->host || (uint64_t)(p - s->host) + room > s->bytes))
    return never(mapping, reply, "overlaps a mapping in part", p, n);
  bool fresh = !s;
  if (fresh && !host_holds((uintptr_t)p, (uintptr_t)p + room))
    return never(mapping, reply, "no memory of the process", p, n);
  if (fresh && fits(m, RIG_PINNED, n))
    s = model_span_of_host(m, room, p);
  struct model_memory *r =
      s ? record(m, s, (uint64_t)(p - s->host), room) : NULL;
  if (!r) {
    if (fresh && s)
      drop(m, s);
    *mapping = RIG_NO_ROOM;
    return rig_nv_reply_set(reply, RIG_NV_LACKING,
                            "map_host: no room for %llu bytes",
                            (unsigned long long)n);
  }
  model_describe(r, out, n);
  *mapping = RIG_MAPS;
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

bool model_map_host(void *ctx, void *p, uint64_t n, enum rig_mapping *mapping,
                    struct rig_nv_memory *out, struct rig_nv_reply *reply) {
  struct model *m = ctx;
  *mapping = RIG_NEVER_MAPS;
  if (!n)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "map_host: 0 bytes");
  if ((uintptr_t)p % MODEL_PAGE)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "map_host: %p starts no page",
                            p);
  if (!p || n > (UINT64_C(1) << 47) - (uintptr_t)p % (UINT64_C(1) << 47))
    return never(mapping, reply, "no memory of the process", p, n);
  if (!model_enter(m, reply))
    return false;
  bool ok = map_locked(m, p, n, mapping, out, reply);
  model_leave(m);
  return ok;
}

/* Takes the memory out; returns its span, to be released, where it was the
 * last to use it. */
static struct model_span *forget(struct model *m, struct model_memory *r) {
  struct model_memory **at = &m->memories;
  struct model_span *s = r->span;
  while (*at != r)
    at = &(*at)->next;
  *at = r->next;
  m->nmemories--;
  free(r);
  if (--s->users)
    return NULL;
  model_span_out(m, s);
  return s;
}

/* As release, with no lock held. */
static void release_alone(struct model *m, struct model_span *s) {
  struct rig_nv_reply reply;
  const bool locks = s && s->backed && model_enter(m, &reply);
  model_span_end(m, s);
  if (locks)
    model_leave(m);
}

/* Views of the memory fault from the viewers' next turns on. */
static bool end_views(struct model_memory *r) {
  if (!r->share)
    return false;
  ck_pr_store_uint(&r->share->gone, 1); /* pairs with model_share_gone */
  model_share_drop(r->share);
  return true;
}

bool model_free(void *ctx, const struct rig_nv_memory *memory,
                struct rig_nv_reply *reply) {
  struct model *m = ctx;
  if (!model_enter(m, reply))
    return false;
  struct model_memory *r = model_memory_of(m, memory->handle);
  struct model_span *s = NULL;
  bool ok = false, viewed = false;
  if (!r || r == m->flush || r != memory->data || r->address != memory->address)
    rig_nv_reply_set(reply, RIG_NV_WRONG,
                     "free: memory 0x%x at 0x%llx is none of the path's",
                     memory->handle, (unsigned long long)memory->address);
  else if (r->named)
    rig_nv_reply_set(reply, RIG_NV_WRONG,
                     "free: a channel names memory 0x%x at 0x%llx", r->handle,
                     (unsigned long long)r->address);
  else {
    viewed = end_views(r);
    s = forget(m, r);
    ok = rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  }
  model_leave(m);
  if (viewed)
    model_peers_pass(m);
  release_alone(m, s);
  return ok;
}

bool model_dma(void *ctx, const struct rig_nv_memory *memory, const char *fn,
               struct rig_dma *dma, struct rig_nv_reply *reply) {
  (void)ctx, (void)memory, (void)dma;
  return rig_nv_reply_set(reply, RIG_NV_DENIED,
                          "dma: the model's machine has no function %s",
                          fn ? fn : "(null)");
}

void model_flush_open(struct model *m) {
  if (!fits(m, RIG_MAPPED, MODEL_PAGE))
    return;
  struct model_span *s = model_span_fresh(m, RIG_MAPPED, MODEL_PAGE, NULL);
  if (!s)
    return;
  m->flush = record(m, s, 0, MODEL_PAGE);
  if (!m->flush) {
    drop(m, s);
    return;
  }
  m->path.flush =
      m->post ? model_post_word(m->post) : (volatile uint32_t *)(void *)s->host;
}

void model_memories_close(struct model *m) {
  while (m->memories)
    model_span_end(m, forget(m, m->memories));
  free(m->spans);
}
