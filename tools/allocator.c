/* SPDX-License-Identifier: ISC */
#include "tools/allocator.h"

#ifdef TOOLS_JEMALLOC
#include <jemalloc/jemalloc.h>

static void *take(void *ctx, size_t align, size_t n) {
  (void)ctx;
  /* mallocx is undefined for 0 bytes. */
  return mallocx(n ? n : 1, MALLOCX_ALIGN(align));
}

static void release(void *ctx, void *p, size_t n) {
  (void)ctx;
  (void)n;
  /* Not sdallocx, which wants the alignment as well. */
  if (p)
    dallocx(p, 0);
}

static const struct rig_nv_allocator jemalloc = {take, release, NULL};

const struct rig_nv_allocator *tool_allocator(void) { return &jemalloc; }

uint64_t tool_allocated(void) {
  uint64_t bytes = 0;
  size_t size = sizeof bytes;
  return mallctl("thread.allocated", &bytes, &size, NULL, 0) ? 0 : bytes;
}

bool tool_counts_allocations(void) {
  uint64_t bytes;
  size_t size = sizeof bytes;
  return !mallctl("thread.allocated", &bytes, &size, NULL, 0);
}

#else

const struct rig_nv_allocator *tool_allocator(void) { return NULL; }

uint64_t tool_allocated(void) { return 0; }

bool tool_counts_allocations(void) { return false; }
#endif
