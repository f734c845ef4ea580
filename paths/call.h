/* SPDX-License-Identifier: ISC */
#ifndef PATHS_CALL_H
#define PATHS_CALL_H
/*
 * Calls of a path from a device's side: the path's answers as errors, and the
 * checks of what it gives. Every function returns 0 or the negative error,
 * with the path's text in rig_nv_why:
 *
 *   LACKING NO_MEMORY    DENIED REFUSED    FAULTED FAULT    WRONG INVALID
 *
 * Threads: any.
 */
#include "paths/path.h"

/* The reply as an error; `what` is the call. */
int path_error(const char *what, const struct rig_nv_reply *);

/* n bytes of the kind, whose place is checked: aligned to 4 KiB; no byte from
 * RIG_NV_WINDOWS to 2^40, and none above for memory that the host addresses;
 * a host address for that. REFUSED where the path broke this, and the memory
 * went back. */
int path_alloc(const struct rig_nv_path *, enum rig_memory, uint64_t n,
               unsigned flags, struct rig_nv_memory *);

/* Maps host memory, checked likewise. *mapping is set in every case. */
int path_map_host(const struct rig_nv_path *, void *p, uint64_t n,
                  enum rig_mapping *mapping, struct rig_nv_memory *);

/* Maps another device's memory of the kind, checked likewise. */
int path_map_peer(const struct rig_nv_path *, enum rig_memory kind,
                  const struct rig_nv_memory *theirs, enum rig_mapping *mapping,
                  struct rig_nv_memory *);

/* Gives memory back and zeroes *memory. FAULT: the path kept it. Memory of no
 * bytes is none: 0. */
int path_free(const struct rig_nv_path *, struct rig_nv_memory *memory);

/* A new object, whose parameters are the first `bytes` of a zeroed buffer. */
int rm_alloc(const struct rig_nv_path *, const char *name, uint32_t parent,
             uint32_t cls, void *params, size_t bytes, uint32_t *object);
#endif
