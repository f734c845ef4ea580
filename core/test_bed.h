/* SPDX-License-Identifier: ISC */
#ifndef CORE_TEST_BED_H
#define CORE_TEST_BED_H
/*
 * For tests: a device on the model, on rings that are small and counts that
 * are about to wrap. A call that fails fails the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/device.h"
#include "core/failing_path.h"
#include "core/lock_order/lock_order.h"
#include "paths/pci/model_path.h"

enum { PAGE = 4096, KERNEL = MODEL_PATH_KERNEL };

/* `is`: an enum model_path. */
static inline const struct rig_nv_path *open_model(int is) {
  const struct rig_nv_path *path = NULL;
  int e = model_path_open((enum model_path)is, NULL, &path);
  if (e != 0)
    fail_msg("model: %s", rig_nv_why());
  return path;
}

static inline void close_path(const struct rig_nv_path *path) {
  if (rig_nv_path_close(path) != 0)
    fail_msg("close: %s", rig_nv_why());
}

/* A device on rings that are small, with counts about to wrap. */
static inline struct rig_nv *make(const struct rig_nv_path *path,
                                  const struct rig_nv_options *o) {
  struct device_sizes z;
  struct rig_nv *d = NULL;
  device_sizes_init(&z);
  z.entries = 64;
  z.segment_bytes = 8192;
  z.in_flight = 16;
  z.start_entries = (uint32_t)-64;
  z.start_units = (uint32_t)-20;
  z.start_joins = UINT64_MAX - 3;
  if (device_make_sized(path, o, &z, &d) != 0)
    fail_msg("make: %s", rig_nv_why());
  return d;
}

static inline void end(struct rig_nv *d) {
  if (rig_nv_stop(d, NULL) != 0 || rig_nv_release(d) != 0)
    fail_msg("stop and release: %s", rig_nv_why());
}

static inline struct rig_nv_region *alloc(struct rig_nv *d,
                                          enum rig_memory kind, uint64_t n) {
  struct rig_nv_region *r = NULL;
  if (rig_nv_alloc(d, kind, n, &r) != 0)
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

static inline uint64_t soon(void) {
  return device_now() + UINT64_C(5000000000);
}

static inline void reached(struct rig_nv *d, uint64_t v) {
  if (rig_nv_wait(d, v, soon()) != 0)
    fail_msg("wait: %s", rig_nv_why());
}

#define EXPECT(call, error, text)                                              \
  do {                                                                         \
    int got = (call);                                                          \
    if (got != -(error) || strcmp(rig_nv_why(), text) != 0)                    \
      fail_msg("%s:\n got %d, %s\nwant %d, %s", #call, got, rig_nv_why(),      \
               -(error), text);                                                \
  } while (0)

/* What outlives nothing: counted by the model. */
static inline void nothing_left(const struct rig_nv_path *path,
                                const char *when) {
  struct model_counts c;
  model_counts(path, &c);
  if (c.objects || c.memories || c.registrations)
    fail_msg("%s: %zu objects, %zu memories, %zu registrations stay", when,
             c.objects, c.memories, c.registrations);
}
#endif
