/* SPDX-License-Identifier: ISC */
#ifndef CORE_IMAGE_BED_H
#define CORE_IMAGE_BED_H
/*
 * For tests of images and local memory: a device whose allocator counts and
 * fails at the test's choice, on a model over a path that does too and that
 * holds allocations back; and the cubins of core/cubin/testdata. A call that
 * fails fails the test.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/abi/classes.h"
#include "core/api/why.h"
#include "core/device.h"
#include "core/failing_path.h"
#include "core/lock_order/lock_order.h"
#include "paths/pci/model_path.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Compares a call's answer and its reason. */
#define EXPECT(call, error, text)                                              \
  do {                                                                         \
    int got = (call);                                                          \
    if (got != -(error) || strcmp(rig_nv_why(), text) != 0)                    \
      fail_msg("%s:\n got %d, %s\nwant %d, %s", #call, got, rig_nv_why(),      \
               -(error), text);                                                \
  } while (0)

#define DONE(call)                                                             \
  do {                                                                         \
    if ((call) != 0)                                                           \
      fail_msg("%s: %s", #call, rig_nv_why());                                 \
  } while (0)

/* In threads, which a test's failure may not leave. */
#define SURE(x)                                                                \
  do {                                                                         \
    if (!(x)) {                                                                \
      fprintf(stderr, "%s:%d: not %s: %s\n", __FILE__, __LINE__, #x,           \
              rig_nv_why());                                                   \
      abort();                                                                 \
    }                                                                          \
  } while (0)

/* A path whose allocations wait while it is shut. */
struct gate {
  struct rig_nv_path path; /* what the device is given */
  const struct rig_nv_path *inner;
  pthread_mutex_t mutex;
  pthread_cond_t moved;
  bool shut;
  unsigned waiting; /* allocations */
  bool masked;      /* the last one's thread takes no SIGINT */
};

struct bed {
  enum model_path is;
  struct rig_nv_model_options o;
  bool plain; /* no path over the model: calls from many threads at once */
  const struct rig_nv_path *model;
  struct failing_path f; /* over the model; the gate is over it */
  struct gate g;
  pthread_mutex_t mutex; /* of the next two */
  unsigned calls, live;  /* of the host's allocator */
  unsigned fail_at;      /* the n-th of those fails; 0 none */
  struct rig_nv *d;
};

static inline void *bed_alloc(void *ctx, size_t align, size_t n) {
  struct bed *b = ctx;
  pthread_mutex_lock(&b->mutex);
  bool fails = ++b->calls == b->fail_at;
  b->live += !fails;
  pthread_mutex_unlock(&b->mutex);
  return fails ? NULL : aligned_alloc(align, n);
}

static inline void bed_release(void *ctx, void *p, size_t n) {
  struct bed *b = ctx;
  (void)n;
  pthread_mutex_lock(&b->mutex);
  b->live--;
  pthread_mutex_unlock(&b->mutex);
  free(p);
}

/* The path's other functions get the inner one's ctx from the gate's. */
static inline bool gate_alloc(void *ctx, enum rig_memory kind, uint64_t n,
                              unsigned flags, struct rig_nv_memory *m,
                              struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  struct bed *b = (struct bed *)((char *)f - offsetof(struct bed, f));
  struct gate *g = &b->g;
  sigset_t mask;
  SURE(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
  pthread_mutex_lock(&g->mutex);
  g->masked = sigismember(&mask, SIGINT) == 1;
  g->waiting++;
  pthread_cond_broadcast(&g->moved);
  while (g->shut)
    pthread_cond_wait(&g->moved, &g->mutex);
  g->waiting--;
  pthread_mutex_unlock(&g->mutex);
  return g->inner->alloc(g->inner->ctx, kind, n, flags, m, reply);
}

static inline void gate_set(struct bed *b, bool shut) {
  pthread_mutex_lock(&b->g.mutex);
  b->g.shut = shut;
  pthread_cond_broadcast(&b->g.moved);
  pthread_mutex_unlock(&b->g.mutex);
}

/* Returns once n allocations wait. */
static inline void gate_await(struct bed *b, unsigned n) {
  pthread_mutex_lock(&b->g.mutex);
  while (b->g.waiting < n)
    pthread_cond_wait(&b->g.moved, &b->g.mutex);
  pthread_mutex_unlock(&b->g.mutex);
}

/* `is`: an enum model_path. A GPU with one multiprocessor pair of four warps
 * each, so that local memory is small. */
static inline void bed_options(struct bed *b, int is, uint32_t sm_version) {
  static const struct {
    uint32_t sm_version, channel, compute, copy;
  } of[] = {
      {0x806, AMPERE_CHANNEL_GPFIFO_A, AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B},
      {0x807, AMPERE_CHANNEL_GPFIFO_A, AMPERE_COMPUTE_B, AMPERE_DMA_COPY_B},
      {0x809, AMPERE_CHANNEL_GPFIFO_A, ADA_COMPUTE_A, AMPERE_DMA_COPY_B},
      {0xa00, BLACKWELL_CHANNEL_GPFIFO_A, BLACKWELL_COMPUTE_A,
       BLACKWELL_DMA_COPY_A},
      {0xa04, BLACKWELL_CHANNEL_GPFIFO_B, BLACKWELL_COMPUTE_B,
       BLACKWELL_DMA_COPY_B},
  }; /* others: an H200's */
  memset(b, 0, sizeof *b);
  rig_nv_model_options_init(&b->o);
  b->is = (enum model_path)is;
  b->o.gpu.sm_version = sm_version;
  for (size_t i = 0; i < COUNT(of); i++)
    if (of[i].sm_version == sm_version) {
      b->o.gpu.channel_class = of[i].channel;
      b->o.gpu.compute_class = of[i].compute;
      b->o.gpu.copy_class = of[i].copy;
    }
  b->o.gpu.gpcs = b->o.gpu.tpcs_per_gpc = 1;
  b->o.gpu.warps_per_sm = 4;
}

static inline void bed_make(struct bed *b) {
  const struct rig_nv_allocator host = {bed_alloc, bed_release, b};
  struct rig_nv_options o;
  struct device_sizes z;
  DONE(model_path_open(b->is, &b->o, &b->model));
  failing_path_init(&b->f, b->model);
  pthread_mutex_init(&b->mutex, NULL);
  pthread_mutex_init(&b->g.mutex, NULL);
  pthread_cond_init(&b->g.moved, NULL);
  b->g.inner = &b->f.path;
  b->g.path = b->f.path;
  b->g.path.alloc = gate_alloc;
  device_sizes_init(&z);
  z.entries = 64;
  z.segment_bytes = 8192;
  z.launch_bytes = 16384;
  z.in_flight = 16;
  rig_nv_options_init(&o);
  o.allocator = &host;
  DONE(device_make_sized(b->plain ? b->model : &b->g.path, &o, &z, &b->d));
}

static inline void begin_on(struct bed *b, uint32_t sm_version) {
  bed_options(b, MODEL_PATH_KERNEL, sm_version);
  bed_make(b);
}

static inline void begin(struct bed *b) { begin_on(b, 0x900); }

/* After stop: releases the device, and looks for what it left. */
static inline void bed_release_all(struct bed *b) {
  struct model_counts c;
  DONE(rig_nv_release(b->d));
  assert_int_equal(b->live, 0);
  model_counts(b->model, &c);
  if (c.objects || c.memories || c.registrations)
    fail_msg("%zu objects, %zu memories, %zu registrations stay", c.objects,
             c.memories, c.registrations);
  DONE(rig_nv_path_close(b->model));
  pthread_mutex_destroy(&b->mutex);
  pthread_mutex_destroy(&b->g.mutex);
  pthread_cond_destroy(&b->g.moved);
}

static inline void finish(struct bed *b) {
  DONE(rig_nv_stop(b->d, NULL));
  bed_release_all(b);
}

static inline uint64_t device_bytes(const struct bed *b) {
  struct model_counts c;
  model_counts(b->model, &c);
  return c.used[RIG_DEVICE];
}

/* ---- cubins ---- */

struct file {
  size_t n;
  unsigned char *bytes; /* free() */
};

static inline struct file file_read(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "core/cubin/testdata/%s.cubin", name);
  FILE *in = fopen(path, "rb");
  if (in == NULL)
    fail_msg("%s cannot be opened", path);
  struct file f = {0, malloc(1 << 20)};
  assert_non_null(f.bytes);
  f.n = fread(f.bytes, 1, 1 << 20, in);
  assert_in_range(f.n, 1, (1 << 20) - 1);
  fclose(in);
  return f;
}

/* An image that is laid in a region of its own, which need not be uploaded. */
struct laid {
  struct rig_nv_image *image;
  struct rig_nv_region *region;
  uint64_t place_bytes, base;
  unsigned char *code; /* what lay wrote; free() */
};

static inline struct rig_nv_region *bed_region(struct bed *b, uint64_t n) {
  struct rig_nv_region *r = NULL;
  DONE(rig_nv_alloc(b->d, RIG_DEVICE, n, &r));
  return r;
}

static inline struct laid lay_bytes(struct bed *b, const struct file *f) {
  struct laid l = {0};
  DONE(rig_nv_image_load(b->d, f->bytes, f->n, &l.place_bytes, &l.image));
  l.region = bed_region(b, l.place_bytes);
  l.base = rig_nv_locate(l.region).address;
  l.code = malloc(l.place_bytes);
  assert_non_null(l.code);
  DONE(rig_nv_image_lay(l.image, l.region, l.code));
  return l;
}

/* The caller's bytes of the cubin are gone by then. */
static inline struct laid lay_file(struct bed *b, const char *name) {
  struct file f = file_read(name);
  struct laid l = lay_bytes(b, &f);
  free(f.bytes);
  return l;
}

static inline struct rig_nv_function entry_of(struct laid *l,
                                              const char *name) {
  struct rig_nv_function e;
  uint64_t need;
  DONE(rig_nv_entry(l->image, name, &e, &need));
  return e;
}

static inline void unlay(struct bed *b, struct laid *l) {
  DONE(rig_nv_unload(b->d, l->image));
  DONE(rig_nv_free(b->d, l->region));
  free(l->code);
}
#endif
