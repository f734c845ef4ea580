/* SPDX-License-Identifier: ISC */
#include "paths/call.h"

#include <inttypes.h>
#include <string.h>

#include "core/api/why.h"

enum { PAGE = 4096 };

int path_error(const char *what, const struct rig_nv_reply *reply) {
  static const enum rig_nv_error errors[] = {
      [RIG_NV_OK] = RIG_NV_FAULT, /* false, and yet no reason */
      [RIG_NV_LACKING] = RIG_NV_NO_MEMORY, [RIG_NV_DENIED] = RIG_NV_REFUSED,
      [RIG_NV_FAULTED] = RIG_NV_FAULT,     [RIG_NV_WRONG] = RIG_NV_INVALID,
  };
  unsigned is = reply->is;
  if (is >= sizeof errors / sizeof errors[0])
    is = RIG_NV_FAULTED;
  return why(errors[is], "%s: %s", what, reply->text);
}

/* What is wrong with where the path put the memory, or NULL. */
static const char *misplaced(const struct rig_nv_memory *m, uint64_t n,
                             bool host) {
  const uint64_t windows_end = UINT64_C(1) << 40;
  uint64_t end;
  if (m->address % PAGE != 0)
    return "at an address that is not a multiple of 4096";
  if (__builtin_add_overflow(m->address, n, &end))
    return "past the end of the address space";
  if (host && end > RIG_NV_WINDOWS)
    return "above the addresses that rings and semaphores can have";
  if (m->address < windows_end && end > RIG_NV_WINDOWS)
    return "in the windows of shared and local memory";
  if (host && m->host == NULL)
    return "with no host address";
  return NULL;
}

/* Gives back memory that the path should not have given. */
static int put_back(const struct rig_nv_path *path, struct rig_nv_memory *m,
                    const char *what, const char *wrong) {
  struct rig_nv_reply reply = {0};
  uint64_t address = m->address;
  bool freed = path->free(path->ctx, m, &reply);
  memset(m, 0, sizeof *m);
  return why(RIG_NV_REFUSED,
             "%s: the path gave memory at 0x%" PRIx64 ", %s%s%s", what, address,
             wrong,
             freed ? "" : "; it stays allocated: ", freed ? "" : reply.text);
}

static const char *const kinds[] = {
    [RIG_DEVICE] = "Device memory",
    [RIG_PINNED] = "Pinned memory",
    [RIG_MAPPED] = "Mapped memory",
};

int path_alloc(const struct rig_nv_path *path, enum rig_memory kind, uint64_t n,
               unsigned flags, struct rig_nv_memory *m) {
  struct rig_nv_reply reply = {0};
  struct rig_nv_memory got = {0};
  if (!path->alloc(path->ctx, kind, n, flags, &got, &reply))
    return path_error(kinds[kind], &reply);
  got.bytes = n;
  const char *wrong = misplaced(&got, n, kind != RIG_DEVICE);
  if (wrong)
    return put_back(path, &got, kinds[kind], wrong);
  *m = got;
  return 0;
}

int path_map_host(const struct rig_nv_path *path, void *p, uint64_t n,
                  enum rig_mapping *mapping, struct rig_nv_memory *m) {
  struct rig_nv_reply reply = {0};
  struct rig_nv_memory got = {0};
  *mapping = RIG_NEVER_MAPS;
  if (path->map_host == NULL)
    return why(RIG_NV_REFUSED, "map_host: the path maps no host memory");
  if (!path->map_host(path->ctx, p, n, mapping, &got, &reply)) {
    if (*mapping == RIG_MAPS)
      *mapping = RIG_NEVER_MAPS;
    return path_error("map_host", &reply);
  }
  got.bytes = n;
  got.host = p;
  const char *wrong = misplaced(&got, n, true);
  if (wrong) {
    *mapping = RIG_NEVER_MAPS;
    return put_back(path, &got, "map_host", wrong);
  }
  *mapping = RIG_MAPS;
  *m = got;
  return 0;
}

int path_map_peer(const struct rig_nv_path *path, enum rig_memory kind,
                  const struct rig_nv_memory *theirs, enum rig_mapping *mapping,
                  struct rig_nv_memory *m) {
  struct rig_nv_reply reply = {0};
  struct rig_nv_memory got = {0};
  if (!path->map_peer(path->ctx, theirs, mapping, &got, &reply)) {
    if (*mapping == RIG_MAPS)
      *mapping = RIG_NEVER_MAPS;
    return path_error("map_peer", &reply);
  }
  got.bytes = theirs->bytes;
  got.host = theirs->host; /* the region's, which outlives the view */
  if (!misplaced(&got, got.bytes, kind != RIG_DEVICE)) {
    *mapping = RIG_MAPS;
    *m = got;
    return 0;
  }
  *mapping = RIG_NEVER_MAPS;
  uint64_t address = got.address;
  int kept = path_free(path, &got);
  return why(RIG_NV_REFUSED,
             "map_peer: the path gave memory at 0x%" PRIx64
             ", where none may lie%s",
             address, kept == 0 ? "" : "; it stays allocated");
}

int path_free(const struct rig_nv_path *path, struct rig_nv_memory *m) {
  struct rig_nv_reply reply = {0};
  if (m->bytes == 0)
    return 0;
  bool freed = path->free(path->ctx, m, &reply);
  memset(m, 0, sizeof *m);
  return freed ? 0 : why(RIG_NV_FAULT, "free: %s", reply.text);
}

int rm_alloc(const struct rig_nv_path *path, const char *name, uint32_t parent,
             uint32_t cls, void *params, size_t bytes, uint32_t *object) {
  struct rig_nv_reply reply = {0};
  if (!path->rm.alloc(path->ctx, parent, cls, params, bytes, object, &reply))
    return path_error(name, &reply);
  return 0;
}
