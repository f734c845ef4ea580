/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_HOST_H
#define PATHS_PCI_HOST_H
/*
 * host: host memory for records, through the caller's allocator. NULL is
 * aligned_alloc. Any thread.
 */
#include <stdlib.h>
#include <string.h>

#include "core/api/rig_nv.h"

/* n zeroed bytes for any object, or NULL. */
static inline void *host_alloc(const struct rig_nv_allocator *a, size_t n) {
  const size_t align = _Alignof(max_align_t);
  void *p = NULL;
  if (n > SIZE_MAX - align)
    return NULL;
  if (a != NULL)
    p = a->alloc(a->ctx, align, n);
  else
    p = aligned_alloc(align, (n + align - 1) / align * align);
  return p == NULL ? NULL : memset(p, 0, n);
}

/* Gives back what host_alloc gave; p may be NULL. */
static inline void host_release(const struct rig_nv_allocator *a, void *p,
                                size_t n) {
  if (p == NULL)
    return;
  if (a != NULL)
    a->release(a->ctx, p, n);
  else
    free(p);
}
#endif
