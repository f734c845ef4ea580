/* SPDX-License-Identifier: ISC */
#ifndef CORE_PEER_BED_H
#define CORE_PEER_BED_H
/*
 * For tests of devices that map each other's memory: up to three, each on a
 * model of its own, over its path with what the tests change. A call that fails
 * fails the test. One thread a bed.
 */
#include "core/spec_bed.h"

#include <stdlib.h>
#include <sys/mman.h>

#define EXPECT(call, error, text)                                              \
  do {                                                                         \
    assert_int_equal(call, -(error));                                          \
    assert_string_equal(rig_nv_why(), text);                                   \
  } while (0)

static const int kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};

/* A device on a model, over the model's path with what the tests change. */
struct peer {
  struct rig_nv_path path; /* its ctx is the model's */
  const struct rig_nv_path *model;
  struct rig_nv *d;
  /* What map_peer answers in the model's place, where `forced` is. */
  bool forced, misplaced, keeps; /* keeps: free fails */
  enum rig_mapping mapping;
  enum rig_nv_answer answer;
  uint32_t maps;  /* map_peer's calls (ck_pr) */
  void *page;     /* a flush word of the test's own, unreadable from stop on */
  uint32_t found; /* `left`, as the path's stop was called */
};

/* Those that are open, by their path's ctx. */
static struct peer *peers[3];

static inline struct peer *peer_of(const void *ctx) {
  for (size_t i = 0; i < COUNT(peers); i++)
    if (peers[i] && peers[i]->path.ctx == ctx)
      return peers[i];
  abort();
}

/* What all of them run on. */
static enum model_path on;

static uint32_t left; /* a reader left its section (ck_pr) */

static inline bool peer_map(void *ctx, const struct rig_nv_memory *m,
                            enum rig_mapping *mapping,
                            struct rig_nv_memory *out,
                            struct rig_nv_reply *reply) {
  struct peer *p = peer_of(ctx);
  ck_pr_inc_32(&p->maps);
  if (p->forced) {
    *mapping = p->mapping;
    return rig_nv_reply_set(reply, p->answer, "as the test says");
  }
  if (!p->model->map_peer(ctx, m, mapping, out, reply))
    return false;
  out->host = NULL; /* a path need not know it */
  if (p->misplaced)
    out->address += RIG_NV_WINDOWS;
  return true;
}

static inline bool reaches_all(void *ctx, int index) {
  (void)ctx, (void)index;
  return true;
}

static inline bool peer_free(void *ctx, const struct rig_nv_memory *m,
                             struct rig_nv_reply *reply) {
  struct peer *p = peer_of(ctx);
  struct rig_nv_memory given = *m;
  if (p->misplaced && given.address >= RIG_NV_WINDOWS)
    given.address -= RIG_NV_WINDOWS;
  if (p->keeps)
    return rig_nv_reply_set(reply, RIG_NV_FAULTED, "kept");
  return p->model->free(ctx, &given, reply);
}

static inline enum rig_nv_stopped peer_stop(void *ctx) {
  struct peer *p = peer_of(ctx);
  p->found = shared_load_32(&left);
  if (p->page && mprotect(p->page, PAGE, PROT_NONE) != 0)
    abort();
  return p->model->stop(ctx);
}

static inline void peer_options(struct rig_nv_model_options *o) {
  rig_nv_model_options_init(o);
  o->device_bytes = o->mapped_bytes = o->host_bytes = 4 << 20;
}

static inline void begin_with(struct peer *p,
                              const struct rig_nv_model_options *o,
                              const struct rig_nv_options *options,
                              bool own_page) {
  struct device_sizes z;
  memset(p, 0, sizeof *p);
  if (model_path_open(on, o, &p->model) != 0)
    fail_msg("model: %s", rig_nv_why());
  p->path = *p->model;
  p->path.map_peer = peer_map;
  p->path.free = peer_free;
  p->path.stop = peer_stop;
  size_t i = 0;
  while (i < COUNT(peers) && peers[i])
    i++;
  assert_true(i < COUNT(peers));
  peers[i] = p;
  if (own_page) {
    p->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p->page, MAP_FAILED);
    p->path.flush = p->page;
  }
  device_sizes_init(&z);
  z.entries = 64;
  z.segment_bytes = 8192;
  z.in_flight = 16;
  if (device_make_sized(&p->path, options, &z, &p->d) != 0)
    fail_msg("make: %s", rig_nv_why());
}

static inline void begin_peer(struct peer *p) {
  struct rig_nv_model_options o;
  peer_options(&o);
  begin_with(p, &o, NULL, false);
}

static inline void stop(struct peer *p) {
  if (rig_nv_stop(p->d, NULL) != 0)
    fail_msg("stop: %s", rig_nv_why());
}

static inline void release(struct peer *p) {
  if (rig_nv_release(p->d) != 0)
    fail_msg("release: %s", rig_nv_why());
  if (rig_nv_path_close(p->model) != 0)
    fail_msg("close: %s", rig_nv_why());
  for (size_t i = 0; i < COUNT(peers); i++)
    if (peers[i] == p)
      peers[i] = NULL;
  if (p->page)
    assert_int_equal(munmap(p->page, PAGE), 0);
}

static inline void end_peer(struct peer *p) {
  stop(p);
  release(p);
}

static inline struct rig_nv_region *view_of(struct rig_nv *d,
                                            struct rig_nv_region *r) {
  enum rig_mapping mapping = RIG_NEVER_MAPS;
  struct rig_nv_region *v = NULL;
  if (rig_nv_map_peer(d, r->device, r, &mapping, &v) != 0)
    fail_msg("map_peer: %s", rig_nv_why());
  assert_int_equal(mapping, RIG_MAPS);
  return v;
}

static inline void free_region(struct rig_nv_region *r) {
  if (rig_nv_free(r->device, r) != 0)
    fail_msg("free: %s", rig_nv_why());
}

static inline size_t flush_words(const struct rig_nv *d) {
  return d->rings.viewed.now ? d->rings.viewed.now->n : 0;
}
#endif
