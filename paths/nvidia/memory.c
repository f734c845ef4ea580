/* SPDX-License-Identifier: ISC */
/*
 * Memory: a span is made in steps and ends by the same backwards, from
 * wherever it came to. The steps run without the lock (state.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/abi/classes.h"
#include "core/api/why.h"
#include "paths/nvidia/call.h"

static const char *const kinds[] = {"Device", "Pinned", "Mapped"};

static uint64_t rounded(int kind, uint64_t n) {
  uint64_t page =
      kind != RIG_PINNED && n >= NVIDIA_HUGE_FROM ? NVIDIA_HUGE : NVIDIA_PAGE;
  return (n + page - 1) / page * page;
}

/* As large a page as the memory may have. */
static uint64_t alignment(const struct span *s) {
  return s->range.bytes >= NVIDIA_HUGE ? NVIDIA_HUGE
         : s->kind != RIG_PINNED       ? UINT64_C(65536)
                                       : NVIDIA_PAGE;
}

struct span *nvk_span_new(struct gpu *g, int kind, uint64_t n) {
  if (n > NVIDIA_END)
    return NULL;
  struct span *s = calloc(1, sizeof *s);
  if (s == NULL)
    return NULL;
  s->gpu = g;
  s->kind = kind;
  s->range.bytes = rounded(kind, n);
  return s;
}

static bool take_host(struct span *s, struct rig_nv_reply *reply) {
  const struct nvidia_os *os = s->gpu->client->os;
  void *p = NULL;
  if (s->kind != RIG_PINNED || s->of_caller)
    return true;
  int e = os->map(os->ctx, -1, s->range.bytes, &p);
  if (e != 0)
    return nvk_call_errno(reply, "alloc: host memory", e);
  s->host = p;
  return true;
}

/* The host's pages, pinned, under the handle of ours that the span has. */
static bool describe_host(struct span *s, struct rig_nv_reply *reply) {
  const struct client *c = s->gpu->client;
  struct nv_alloc_memory p = {.root = c->root,
                              .parent = s->gpu->path.device,
                              .object = s->handle,
                              .cls = NV01_MEMORY_SYSTEM_OS_DESCRIPTOR,
                              .flags = NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS |
                                       NVOS02_FLAGS_COHERENCY_CACHED |
                                       NVOS02_FLAGS_MAPPING_NO_MAP,
                              .memory = (uintptr_t)s->host,
                              .limit = s->range.bytes - 1,
                              .fd = -1};
  return nvk_call_escape(c, s->gpu->file, NV_ESC_RM_ALLOC_MEMORY, &p, sizeof p,
                         &p.status, "host memory of the RM", reply);
}

static bool take_object(struct span *s, struct rig_nv_reply *reply) {
  const struct gpu *g = s->gpu;
  uint64_t n = s->range.bytes;
  bool huge = n >= NVIDIA_HUGE_FROM;
  if (s->kind == RIG_PINNED)
    return describe_host(s, reply);
  uint32_t physicality = s->kind == RIG_MAPPED
                             ? NVOS32_ATTR_PHYSICALITY_CONTIGUOUS
                             : NVOS32_ATTR_PHYSICALITY_ALLOW_NONCONTIGUOUS;
  struct nv_memory_params p = {
      .owner = g->client->root,
      .type = NVOS32_TYPE_IMAGE,
      .flags = NVOS32_ALLOC_FLAGS_MAP_NOT_REQUIRED |
               NVOS32_ALLOC_FLAGS_MEMORY_HANDLE_PROVIDED |
               NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE |
               NVOS32_ALLOC_FLAGS_IGNORE_BANK_PLACEMENT |
               NVOS32_ALLOC_FLAGS_PERSISTENT_VIDMEM,
      .attr = NVOS32_ATTR_LOCATION_VIDMEM | physicality |
              (huge ? NVOS32_ATTR_PAGE_SIZE_HUGE : 0),
      .attr2 = NVOS32_ATTR2_ZBC_PREFER_NO_ZBC | NVOS32_ATTR2_GPU_CACHEABLE_YES |
               (huge ? NVOS32_ATTR2_PAGE_SIZE_HUGE_2MB : 0),
      .format = NV_MMU_PTE_KIND_GENERIC_MEMORY,
      .size = n,
      .alignment = huge ? NVIDIA_HUGE : NVIDIA_PAGE,
      .limit = n - 1};
  return nvk_call_alloc(g->client, g->path.device, NV01_MEMORY_LOCAL_USER, &p,
                        sizeof p, &s->handle, "GPU memory of the RM", reply);
}

static bool take_range(struct span *s, struct rig_nv_reply *reply) {
  const struct client *c = s->gpu->client;
  struct uvm_create_range p = {.base = s->range.at, .length = s->range.bytes};
  return nvk_call_uvm(c, c->uvm, UVM_CREATE_EXTERNAL_RANGE, &p, sizeof p,
                      offsetof(struct uvm_create_range, status),
                      "UVM_CREATE_EXTERNAL_RANGE", reply);
}

static bool give_range(struct span *s, struct rig_nv_reply *reply) {
  const struct client *c = s->gpu->client;
  const struct release_layout *l = c->layout;
  unsigned char p[RELEASE_UVM_MOST] = {0};
  size_t n = sizeof p;
  if (rig_nv_params_set(p, n, l->uvm_free.base.at, 8, s->range.at) != 0 ||
      (l->uvm_free.length.n != 0 &&
       rig_nv_params_set(p, n, l->uvm_free.length.at, 8, s->range.bytes) != 0))
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
  return nvk_call_uvm(c, c->uvm, UVM_FREE, p, l->uvm_free.bytes,
                      l->uvm_free.status.at, "UVM_FREE", reply);
}

bool nvk_span_map(const struct span *s, const struct gpu *g,
                  struct rig_nv_reply *reply) {
  const struct client *c = g->client;
  struct uvm_map p = {
      .base = s->range.at,
      .length = s->range.bytes,
      .gpus = {{.gpu = g->uuid, .mapping = UvmGpuMappingTypeReadWriteAtomic}},
      .n = 1,
      .ctl = c->ctl,
      .client = c->root,
      .memory = s->handle};
  return nvk_call_uvm(c, c->uvm, UVM_MAP_EXTERNAL_ALLOCATION, &p, sizeof p,
                      offsetof(struct uvm_map, status),
                      "UVM_MAP_EXTERNAL_ALLOCATION", reply);
}

bool nvk_span_unmap(const struct span *s, const struct gpu *g,
                    struct rig_nv_reply *reply) {
  const struct client *c = g->client;
  struct uvm_unmap p = {
      .base = s->range.at, .length = s->range.bytes, .gpu = g->uuid};
  return nvk_call_uvm(c, c->uvm, UVM_UNMAP_EXTERNAL, &p, sizeof p,
                      offsetof(struct uvm_unmap, status), "UVM_UNMAP_EXTERNAL",
                      reply);
}

static bool take_cpu(struct span *s, bool combine, struct rig_nv_reply *reply) {
  uint32_t flags = combine ? NVOS33_FLAGS_CACHING_TYPE_WRITECOMBINED
                           : NVOS33_FLAGS_CACHING_TYPE_UNCACHED;
  if (s->kind != RIG_MAPPED)
    return true;
  s->cpu_mapped = nvk_call_map(s->gpu, s->gpu->path.device, s->handle,
                               s->range.bytes, flags, &s->host, &s->cpu_cookie,
                               "map of GPU memory through the BAR", reply);
  return s->cpu_mapped;
}

/* The last step that is still done; SPAN_PLACED: all went back. */
static bool give_back(struct span *s, struct rig_nv_reply *reply) {
  const struct gpu *g = s->gpu;
  const struct nvidia_os *os = g->client->os;
  if (s->cpu_mapped) {
    if (!nvk_call_unmap(g, g->path.device, s->handle, s->range.bytes, s->host,
                        s->cpu_cookie, reply))
      return false;
    s->cpu_mapped = false;
  }
  if (s->made >= SPAN_RANGE) {
    if (!give_range(s, reply))
      return false;
    s->made = SPAN_OBJECT;
  }
  if (s->made >= SPAN_OBJECT) {
    if (!nvk_call_free(g->client, g->path.device, s->handle, reply))
      return false;
    s->made = SPAN_HOST;
  }
  if (s->made >= SPAN_HOST && s->kind == RIG_PINNED && !s->of_caller) {
    int e = os->unmap(os->ctx, s->host, s->range.bytes);
    if (e != 0)
      return nvk_call_errno(reply, "free: host memory", e);
  }
  s->made = SPAN_PLACED;
  return true;
}

static void discard(struct span *s) {
  struct client *c = s->gpu->client;
  struct span **link = &c->spans;
  while (*link != s)
    link = &(*link)->next;
  *link = s->next;
  nvk_range_remove(c, &s->range);
  while (s->views != NULL) {
    struct view *v = s->views;
    s->views = v->next;
    free(v);
  }
  free(s);
}

bool nvk_span_end(struct span *s, struct rig_nv_reply *reply) {
  bool ok = rig_nv_reply_set(reply, RIG_NV_OK, "%s", "") && give_back(s, reply);
  s->kept = !ok;
  return ok;
}

void nvk_span_told(struct span *s) {
  s->busy = false;
  if (s->made == SPAN_PLACED)
    discard(s);
  else if (s->kept)
    s->views->memories = 0; /* one view, and nobody's memory */
}

static bool make_steps(struct span *s, bool combine,
                       struct rig_nv_reply *reply) {
  if (!take_host(s, reply))
    return false;
  s->made = SPAN_HOST;
  if (!take_object(s, reply))
    return false;
  s->made = SPAN_OBJECT;
  if (!take_range(s, reply))
    return false;
  s->made = SPAN_RANGE;
  if (!nvk_span_map(s, s->gpu, reply) || !take_cpu(s, combine, reply))
    return false;
  s->made = SPAN_WHOLE;
  return true;
}

bool nvk_span_place(struct span *s, struct memory *m,
                    struct rig_nv_reply *reply) {
  struct client *c = s->gpu->client;
  struct view *v = calloc(1, sizeof *v);
  uint64_t n = s->range.bytes;
  const char *kind = kinds[s->kind];
  if (v == NULL ||
      !nvk_range_place(c, &s->range, n, alignment(s), s->kind == RIG_DEVICE)) {
    free(v);
    free(s);
    return rig_nv_reply_set(
        reply, RIG_NV_LACKING,
        "alloc: no addresses for %" PRIu64 " bytes of %s memory", n, kind);
  }
  if (s->kind == RIG_PINNED)
    s->handle = c->next_handle++; /* the RM names host memory as it is told */
  v->gpu = s->gpu;
  v->memories = 1;
  s->views = v;
  s->next = c->spans;
  s->busy = true;
  c->spans = s;
  *m = (struct memory){s, s->gpu};
  return true;
}

bool nvk_span_make(struct span *s, bool combine, struct rig_nv_reply *reply) {
  struct rig_nv_reply undone;
  if (make_steps(s, combine, reply))
    return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  if (!nvk_span_end(s, &undone))
    rig_nv_reply_set(reply, reply->is, "%s; memory stays: %s", reply->text,
                     undone.text);
  return false;
}

bool nvk_span_whole(struct span *s, struct memory *m,
                    struct rig_nv_reply *reply) {
  if (!nvk_span_place(s, m, reply))
    return false;
  bool ok = nvk_span_make(s, false, reply);
  nvk_span_told(s);
  return ok;
}

static struct view *view_of(const struct span *s, const struct gpu *g) {
  struct view *v = s->views;
  while (v != NULL && v->gpu != g)
    v = v->next;
  return v;
}

bool nvk_span_view(struct span *s, struct gpu *g, struct memory *m,
                   struct rig_nv_reply *reply) {
  struct view *v = view_of(s, g);
  if (v == NULL) {
    v = calloc(1, sizeof *v);
    if (v == NULL)
      return rig_nv_reply_set(reply, RIG_NV_LACKING, "no host memory");
    if (!nvk_span_map(s, g, reply)) {
      free(v);
      return false;
    }
    v->gpu = g;
    v->next = s->views;
    s->views = v;
  }
  v->memories++;
  *m = (struct memory){s, g};
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

/* Takes out a view of no memories; true where it was the last. */
static bool last_view(struct span *s, struct view *v) {
  if (s->views == v && v->next == NULL)
    return true; /* stays, for the span's end */
  struct view **link = &s->views;
  while (*link != v)
    link = &(*link)->next;
  *link = v->next;
  free(v);
  return false;
}

struct span *nvk_memory_drop(struct memory *m, bool *ok,
                             struct rig_nv_reply *reply) {
  struct span *s = m->span;
  struct view *v = view_of(s, m->gpu);
  *ok = rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  if (--v->memories > 0)
    return NULL;
  if (last_view(s, v)) {
    s->busy = true;
    return s;
  }
  *ok = nvk_span_unmap(s, m->gpu, reply);
  return NULL;
}

bool nvk_memory_end(struct memory *m, struct rig_nv_reply *reply) {
  bool ok;
  struct span *s = nvk_memory_drop(m, &ok, reply);
  if (s == NULL)
    return ok;
  ok = nvk_span_end(s, reply);
  nvk_span_told(s);
  return ok;
}

void nvk_spans_forget(struct gpu *g) {
  struct rig_nv_reply reply;
  struct span *next;
  for (struct span *s = g->client->spans; s != NULL; s = next) {
    next = s->next;
    if (s->gpu != g)
      continue;
    /* Its object went with the device; its host memory can now go. */
    if (s->made > SPAN_HOST)
      s->made = SPAN_HOST;
    s->cpu_mapped = false;
    (void)give_back(s, &reply);
    discard(s);
  }
}

void nvk_memory_describe(struct memory *m, uint64_t at, uint64_t n,
                         struct rig_nv_memory *out) {
  const struct span *s = m->span;
  *out = (struct rig_nv_memory){.address = s->range.at + at,
                                .host = s->host ? s->host + at : NULL,
                                .handle = s->handle,
                                .data = m,
                                .bytes = n};
}

void nvk_lock_again(void) {
  if (rig_nv_lock_take(&nvk_client_lock) == 0)
    return;
  fprintf(stderr, "%s\n", rig_nv_why());
  abort();
}

/* The span of fresh memory, placed and counted; NULL with the reply. */
static struct span *place_locked(struct gpu *g, struct memory *m, int kind,
                                 uint64_t n, struct rig_nv_reply *reply) {
  if (kind == RIG_MAPPED && g->path.flush == NULL) {
    rig_nv_reply_set(reply, RIG_NV_LACKING,
                     "alloc: no Mapped memory: the BAR had no room for a flush "
                     "word");
    return NULL;
  }
  struct span *s = nvk_span_new(g, kind, n);
  if (s == NULL) {
    rig_nv_reply_set(reply, RIG_NV_LACKING,
                     "alloc: no %" PRIu64 " bytes of %s memory", n,
                     kinds[kind]);
    return NULL;
  }
  if (!nvk_span_place(s, m, reply))
    return NULL;
  g->memories++;
  return s;
}

bool nvk_memory_alloc(void *ctx, enum rig_memory kind, uint64_t n,
                      unsigned flags, struct rig_nv_memory *out,
                      struct rig_nv_reply *reply) {
  struct gpu *g = ctx;
  int k = (int)kind;
  if (k < RIG_DEVICE || k > RIG_MAPPED)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "alloc: no memory kind %d", k);
  if (n == 0)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "alloc: 0 bytes");
  if (flags & ~(unsigned)RIG_NV_COMBINE)
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "alloc: flags 0x%x", flags);
  struct memory *m = malloc(sizeof *m);
  if (m == NULL)
    return rig_nv_reply_set(reply, RIG_NV_LACKING, "alloc: no host memory");
  if (rig_nv_lock_take(&nvk_client_lock)) {
    free(m);
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
  }
  struct span *s = place_locked(g, m, k, n, reply);
  bool ok = s != NULL;
  if (ok) {
    rig_nv_lock_give(&nvk_client_lock);
    ok = nvk_span_make(s, flags & RIG_NV_COMBINE, reply);
    nvk_lock_again();
    nvk_memory_told(g, s, ok);
  }
  rig_nv_lock_give(&nvk_client_lock);
  if (ok)
    nvk_memory_describe(m, 0, n, out);
  else
    free(m);
  return ok;
}

void nvk_memory_told(struct gpu *g, struct span *s, bool lives) {
  nvk_span_told(s);
  if (!lives)
    g->memories--;
}

bool nvk_memory_free(void *ctx, const struct rig_nv_memory *memory,
                     struct rig_nv_reply *reply) {
  struct gpu *g = ctx;
  struct memory *m = memory->data;
  bool ok;
  if (rig_nv_lock_take(&nvk_client_lock))
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
  struct span *s = nvk_memory_drop(m, &ok, reply);
  if (s != NULL) {
    rig_nv_lock_give(&nvk_client_lock);
    ok = nvk_span_end(s, reply);
    nvk_lock_again();
    nvk_span_told(s);
  }
  g->memories--;
  rig_nv_lock_give(&nvk_client_lock);
  free(m);
  return ok;
}
