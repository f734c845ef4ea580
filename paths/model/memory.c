/* SPDX-License-Identifier: ISC */
/*
 * Memory: spans of GPU addresses over host memory, with at least a page
 * between two of them, so that work that runs past its memory faults.
 */
#include <ck_pr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "paths/model/state.h"

/* Large memory is poisoned at its ends alone, so that it stays untouched. */
#define POISONED (UINT64_C(4) << 20)
/* The most pages left free below a span, one at least. */
#define GUARD_PAGES 16u

static uint64_t pages(uint64_t n) {
  return (n + MODEL_PAGE - 1) & ~(MODEL_PAGE - 1);
}

static uint64_t end_of(const struct model_span *s) {
  return s->at + pages(s->bytes);
}

/* The index of the first span that ends above `at`. */
static size_t above(const struct model *m, uint64_t at) {
  size_t low = 0, high = m->nspans;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (end_of(m->spans[mid]) > at)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

/* The span whose pages hold `at`, or NULL. */
static struct model_span *holder(struct model *m, uint64_t at) {
  size_t i = above(m, at);
  return i < m->nspans && m->spans[i]->at <= at ? m->spans[i] : NULL;
}

/* Whether the span, which holds `at`, lets work go there; *n as reach has it.
 */
static bool lets(const struct model_span *s, uint64_t at, uint64_t *n) {
  if (at - s->at >= s->bytes || (s->share && model_share_gone(s->share)))
    return false;
  uint64_t left = s->bytes - (at - s->at);
  if (*n > left)
    *n = left;
  return true;
}

static struct model_span *reach(struct model *m, uint64_t at, uint64_t *n) {
  struct model_span *s = holder(m, at);
  return s && lets(s, at, n) ? s : NULL;
}

static struct model_twin twin(const struct model_span *s, uint64_t at) {
  return (struct model_twin){s->gpu + at, s->host + at, s->post};
}

/* As the MMU has it. What it leads to is reached, whoever's it is. */
static bool walk(struct model *m, uint64_t at, uint64_t *n, bool writes,
                 struct model_twin *t) {
  struct model_span *s = holder(m, at);
  if (s && !lets(s, at, n))
    return false;
  char *p = m->backing->reach(m->backing->ctx, at, writes, n);
  if (!p)
    return false;
  struct model_post *post = s ? s->post : NULL;
  *t = (struct model_twin){p, post ? s->host + (at - s->at) : p, post};
  return true;
}

char *model_reach(struct model *m, uint64_t at, uint64_t *n) {
  struct model_twin t;
  if (m->backing)
    return walk(m, at, n, false, &t) ? t.gpu : NULL;
  struct model_span *s = reach(m, at, n);
  return s ? s->gpu + (at - s->at) : NULL;
}

bool model_reach_write(struct model *m, uint64_t at, uint64_t *n,
                       struct model_twin *t) {
  if (m->backing)
    return walk(m, at, n, true, t);
  struct model_span *s = reach(m, at, n);
  if (s)
    *t = twin(s, at - s->at);
  return s;
}

bool model_in_rings(struct model *m, uint64_t at) {
  uint64_t n = 1;
  const struct model_span *s = reach(m, at, &n);
  return s && s->rings;
}

struct model_twin model_twin_of(const struct model_memory *r, uint64_t at) {
  return twin(r->span, r->address - r->span->at + at);
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

/* A free address for n bytes in [low, high), 0 for none: after the last span
 * there or in the first gap, as the seed has it. */
static uint64_t place(struct model *m, uint64_t low, uint64_t high,
                      uint64_t n) {
  uint64_t guard = MODEL_PAGE * (1 + model_below(m, GUARD_PAGES));
  size_t i = above(m, low), last = i;
  uint64_t room = pages(n) + guard;
  if (n > high - low || room > high - low - MODEL_PAGE)
    return 0;
  while (last < m->nspans && m->spans[last]->at < high)
    last++;
  if (last > i && model_below(m, 2)) {
    uint64_t end = end_of(m->spans[last - 1]);
    if (high - end >= room + MODEL_PAGE)
      return end + guard;
  }
  uint64_t from = low;
  for (; i < last; from = end_of(m->spans[i++]))
    if (m->spans[i]->at - from >= room + MODEL_PAGE)
      return from + guard;
  return high - from >= room + MODEL_PAGE ? from + guard : 0;
}

static uint64_t *budgeted(struct model *m, const struct model_span *s) {
  return s->share ? &m->viewed : &m->used[s->kind];
}

static bool insert(struct model *m, struct model_span *s) {
  if (m->nspans == m->spans_room) {
    size_t room = m->spans_room ? 2 * m->spans_room : 64;
    struct model_span **spans = realloc(m->spans, room * sizeof *spans);
    if (!spans)
      return false;
    m->spans = spans;
    m->spans_room = room;
  }
  size_t i = above(m, s->at);
  memmove(m->spans + i + 1, m->spans + i, (m->nspans - i) * sizeof *m->spans);
  m->spans[i] = s;
  m->nspans++;
  *budgeted(m, s) += s->budgeted;
  return true;
}

/* Takes the span out of the GPU's addresses. */
static void take_out(struct model *m, struct model_span *s) {
  if (s->backed)
    m->backing->hide(m->backing->ctx, s->backed);
  size_t i = above(m, s->at);
  memmove(m->spans + i, m->spans + i + 1,
          (m->nspans - i - 1) * sizeof *m->spans);
  m->nspans--;
  *budgeted(m, s) -= s->budgeted;
}

/* The memory of a span that is out of the GPU's addresses; a backed one's with
 * the lock held. */
static void unmap(struct model *m, struct model_span *s) {
  if (s->mapped && s->gpu != s->host)
    munmap(m->backing ? s->host : s->gpu, s->mapped);
  if (s->backed)
    m->backing->drop(m->backing->ctx, s->backed);
  else if (s->mapped)
    munmap(s->host, s->mapped);
}

/* Gives back the memory of a span that no model reaches; locked as unmap. */
static void release(struct model *m, struct model_span *s) {
  if (!s)
    return;
  if (s->share)
    model_share_drop(s->share);
  if (s->post && s->mapped)
    model_post_remove(s->post, s);
  unmap(m, s);
  free(s);
}

static void drop(struct model *m, struct model_span *s) {
  take_out(m, s);
  release(m, s);
}

void model_poison(char *p, uint64_t n) {
  if (n <= 2 * POISONED) {
    memset(p, MODEL_POISON, n);
    return;
  }
  memset(p, MODEL_POISON, POISONED);
  memset(p + n - POISONED, MODEL_POISON, POISONED);
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
  return n <= all && pages(n) <= all - m->used[kind];
}

/* Addresses of the wish's kind, of the model's own choice; `at` is 0 where
 * they lack. */
static struct model_block own_block(struct model *m,
                                    const struct model_wish *w) {
  bool device = w->kind == RIG_DEVICE;
  return (struct model_block){place(m, device ? MODEL_HIGH : MODEL_LOW,
                                    device ? RIG_NV_WINDOWS : MODEL_HIGH,
                                    w->bytes),
                              w->host, NULL};
}

/* A span with addresses, and with memory where it is the caller's or a
 * backing's; NULL where they lack. */
static struct model_span *span_new(struct model *m,
                                   const struct model_wish *wish) {
  struct model_block b = {0};
  struct model_span *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  if (!m->backing)
    b = own_block(m, wish);
  else if (!m->backing->place(m->backing->ctx, wish, &b))
    b.at = 0;
  if (!b.at) {
    free(s);
    return NULL;
  }
  *s = (struct model_span){.at = b.at,
                           .bytes = wish->bytes,
                           .host = wish->host,
                           .gpu = b.bytes,
                           .backed = b.own,
                           .budgeted = pages(wish->bytes),
                           .kind = (int)wish->kind};
  return s;
}

/* Undoes span_new of a span that was not inserted. */
static void span_undo(struct model *m, struct model_span *s) {
  if (s->backed)
    m->backing->hide(m->backing->ctx, s->backed);
  unmap(m, s);
  free(s);
}

static char *fresh(uint64_t n) {
  char *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  model_poison(p, n);
  return p;
}

/* New memory for the span, which the GPU sees apart where `apart`. */
static bool span_fill(struct model *m, struct model_span *s, bool apart) {
  const uint64_t n = pages(s->bytes);
  if (!m->backing)
    s->gpu = fresh(n);
  s->host = apart ? fresh(n) : s->gpu;
  s->mapped = n;
  if ((s->gpu || m->backing) && (s->host || !apart))
    return true;
  if (s->gpu && !m->backing)
    munmap(s->gpu, n);
  if (s->host && apart)
    munmap(s->host, n);
  s->mapped = 0;
  return false;
}

/* A span of n bytes of new memory, which the GPU sees apart where `post`. */
static struct model_span *span_fresh(struct model *m, int kind, uint64_t n,
                                     struct model_post *post) {
  const struct model_wish wish = {.kind = (enum rig_memory)kind, .bytes = n};
  struct model_span *s = span_new(m, &wish);
  if (!s)
    return NULL;
  if (span_fill(m, s, post) && insert(m, s)) {
    if (post)
      model_post_add(post, s);
    return s;
  }
  span_undo(m, s);
  return NULL;
}

/* A span of n bytes of the caller's memory. */
static struct model_span *span_of_host(struct model *m, uint64_t n, char *p) {
  const struct model_wish wish = {.kind = RIG_PINNED, .bytes = n, .host = p};
  struct model_span *s = span_new(m, &wish);
  if (!s)
    return NULL;
  s->gpu = p;
  if (insert(m, s))
    return s;
  span_undo(m, s);
  return NULL;
}

struct model_memory *model_view_new(struct model *m,
                                    const struct model_span *of, uint64_t n) {
  uint64_t all = m->options.peer_bytes;
  const struct model_wish wish = {.kind = (enum rig_memory)of->kind,
                                  .bytes = n,
                                  .view = of->share->block,
                                  .from = of->at};
  if (n > all || pages(n) > all - m->viewed)
    return NULL;
  struct model_span *s = span_new(m, &wish);
  if (!s)
    return NULL;
  s->host = of->host;
  s->gpu = of->gpu;
  s->post = of->post;
  s->share = of->share;
  if (!insert(m, s)) {
    span_undo(m, s);
    return NULL;
  }
  struct model_memory *r = record(m, s, 0, n);
  if (r)
    return r;
  take_out(m, s);
  unmap(m, s);
  free(s);
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
      span_fresh(m, kind, n, kind == RIG_MAPPED ? m->post : NULL);
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

bool model_memory_none(const struct model *m, uint64_t at, uint64_t n) {
  size_t i = above(m, at);
  return i == m->nspans || m->spans[i]->at >= at + n;
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
  uint64_t room = pages(n);
  struct model_span *s = mapped_over(m, p, room);
  if (s && (p < s->host || (uint64_t)(p - s->host) + room > s->bytes))
    return never(mapping, reply, "overlaps a mapping in part", p, n);
  bool fresh = !s;
  if (fresh && !host_holds((uintptr_t)p, (uintptr_t)p + room))
    return never(mapping, reply, "no memory of the process", p, n);
  if (fresh && fits(m, RIG_PINNED, n))
    s = span_of_host(m, room, p);
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
  take_out(m, s);
  return s;
}

/* As release, with no lock held. */
static void release_alone(struct model *m, struct model_span *s) {
  struct rig_nv_reply reply;
  const bool locks = s && s->backed && model_enter(m, &reply);
  release(m, s);
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
  struct model_span *s = span_fresh(m, RIG_MAPPED, MODEL_PAGE, NULL);
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
    release(m, forget(m, m->memories));
  free(m->spans);
}
