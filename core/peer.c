/* SPDX-License-Identifier: ISC */
/*
 * Views: one device's mappings of another's memory.
 *
 *   device A   view ----viewed---> region   device B
 *              set  ----source---> flush    (Mapped memory alone)
 *
 * The region counts its views, and its free is refused while there are any:
 * so a view's `viewed`, and through it B's record, outlive the view.
 */
#include "core/api/why.h"
#include "core/device.h"
#include "paths/call.h"

bool rig_nv_peer(const struct rig_nv *d, const struct rig_nv *other) {
  return d != other && d->facts.key == other->facts.key &&
         d->path->reaches(d->path->ctx, other->path->index);
}

static int check(const struct rig_nv *d, const struct rig_nv *other,
                 const struct rig_nv_region *r) {
  int e = device_enter(d);
  if (e != 0)
    return e;
  if (d == other)
    return why(RIG_NV_INVALID, "map_peer: the device itself");
  if (d->facts.key != other->facts.key)
    return why(RIG_NV_INVALID, "map_peer: a device of another key");
  if (r == NULL || r->device != other)
    return why(RIG_NV_INVALID, "map_peer: not a region of the other device");
  if (r->viewed)
    return why(RIG_NV_INVALID, "map_peer: a view, not the region it views");
  return 0;
}

/* A view of Mapped memory is ordered before it exists. */
static int order(struct rig_nv_region *view, enum rig_mapping *mapping) {
  if (view->kind != RIG_MAPPED)
    return 0;
  switch (
      flush_add(&view->device->rings.viewed, &view->viewed->device->flush)) {
  case FLUSH_ADDED:
    return 0;
  case FLUSH_FULL:
    *mapping = RIG_NO_ROOM;
    return why(RIG_NV_NO_MEMORY,
               "map_peer: this device views Mapped memory of %d others, the "
               "most there may be",
               FLUSH_MOST);
  case FLUSH_ENDED:
    break;
  }
  return why(RIG_NV_REFUSED, "map_peer: Mapped memory of a stopped device");
}

int rig_nv_map_peer(struct rig_nv *d, struct rig_nv *other,
                    struct rig_nv_region *r, enum rig_mapping *mapping,
                    struct rig_nv_region **view) {
  *mapping = RIG_NEVER_MAPS;
  int e = check(d, other, r);
  if (e != 0)
    return e;
  struct rig_nv_region *v = region_new(d, r->kind);
  if (v == NULL)
    return -RIG_NV_HOST_MEMORY;
  v->viewed = r;
  e = order(v, mapping);
  if (e != 0) {
    region_discard(v);
    return e;
  }
  e = path_map_peer(d->path, r->kind, &r->memory, mapping, &v->memory);
  if (e != 0) {
    if (v->kind == RIG_MAPPED)
      flush_drop(&d->rings.viewed, &other->flush);
    region_discard(v);
    return device_lose(d, e);
  }
  region_live(v);
  *view = v;
  return 0;
}
