/* SPDX-License-Identifier: ISC */
#ifndef CORE_SPEC_BED_H
#define CORE_SPEC_BED_H
/*
 * For the tests of the specification's sentences: a device on the model, over
 * a path that fails where the test says. A call that fails fails the test.
 * One thread a bed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/device.h"
#include "core/failing_path.h"
#include "paths/pci/model_path.h"

enum { PAGE = 4096, KERNEL = MODEL_PATH_KERNEL };
#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define MS UINT64_C(1000000)

struct bed {
  enum model_path is;
  struct rig_nv_model_options o;
  const struct rig_nv_path *model;
  struct failing_path f;
  struct rig_nv *d;
};

/* `is`: an enum model_path. */
static inline void options(struct bed *b, int is) {
  memset(b, 0, sizeof *b);
  rig_nv_model_options_init(&b->o);
  b->is = (enum model_path)is;
}

static inline void open_path(struct bed *b) {
  if (model_path_open(b->is, &b->o, &b->model) != 0)
    fail_msg("model: %s", rig_nv_why());
  failing_path_init(&b->f, b->model);
}

static inline void make(struct bed *b) {
  struct device_sizes z;
  device_sizes_init(&z);
  z.entries = 64;
  z.segment_bytes = 8192;
  z.in_flight = 16;
  if (device_make_sized(&b->f.path, NULL, &z, &b->d) != 0)
    fail_msg("make: %s", rig_nv_why());
}

static inline void begin(struct bed *b, int is) {
  options(b, is);
  open_path(b);
  make(b);
}

static inline void close_path(struct bed *b) {
  if (rig_nv_path_close(b->model) != 0)
    fail_msg("close: %s", rig_nv_why());
}

static inline void end(struct bed *b) {
  if (rig_nv_stop(b->d, NULL) != 0 || rig_nv_release(b->d) != 0)
    fail_msg("stop and release: %s", rig_nv_why());
  close_path(b);
}

static inline struct rig_nv_region *alloc(struct rig_nv *d,
                                          enum rig_memory kind) {
  struct rig_nv_region *r = NULL;
  if (rig_nv_alloc(d, kind, PAGE, &r) != 0)
    fail_msg("alloc: %s", rig_nv_why());
  return r;
}

static inline uint64_t submit(struct rig_nv *d,
                              const struct rig_submission *s) {
  const char *failure = NULL;
  uint64_t v = rings_last(&d->rings) + 1;
  assert_int_equal(d->edge->room(d, s), RIG_FITS);
  if (d->edge->submit(d, v, s, &failure) != RIG_COMMITTED)
    fail_msg("submit: %s", failure);
  return v;
}

static inline uint64_t submit_nothing(struct rig_nv *d) {
  return submit(d, &(struct rig_submission){0});
}

static inline void reached(struct rig_nv *d, uint64_t v) {
  if (rig_nv_wait(d, v, device_now() + 5000 * MS) != 0)
    fail_msg("wait: %s", rig_nv_why());
}

/* A value whose copy moves n bytes, and its end. */
static inline void copy(struct rig_nv *d, uint64_t dst, uint64_t src,
                        uint64_t n) {
  struct rig_part p = rig_part_copy(dst, src, n);
  reached(d, submit(d, &(struct rig_submission){.parts = &p, .nparts = 1}));
}
#endif
