/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_FAILING_H
#define PATHS_PCI_FAILING_H
/*
 * failing: a host allocator for tests that fails on request and counts what
 * is live. One thread at a time.
 */
#include <stdint.h>
#include <stdlib.h>

#include "core/api/rig_nv.h"

struct failing {
  int64_t until; /* the allocation that fails, counted from 0; below 0 none */
  uint64_t live, calls, failed;
  struct rig_nv_allocator hooks;
};

static inline void *failing_alloc(void *ctx, size_t align, size_t n) {
  struct failing *f = ctx;
  f->calls++;
  if (f->until >= 0 && f->until-- == 0) {
    f->failed++;
    return NULL;
  }
  f->live += n;
  return aligned_alloc(align, (n + align - 1) / align * align);
}

static inline void failing_release(void *ctx, void *p, size_t n) {
  struct failing *f = ctx;
  if (p == NULL || n > f->live)
    abort();
  f->live -= n;
  free(p);
}

static inline const struct rig_nv_allocator *failing_init(struct failing *f) {
  *f = (struct failing){.until = -1};
  f->hooks = (struct rig_nv_allocator){failing_alloc, failing_release, f};
  return &f->hooks;
}
#endif
