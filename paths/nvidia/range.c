/* SPDX-License-Identifier: ISC */
/*
 * GPU addresses: the ranges in use, ascending, and the first gap that fits.
 */
#include "paths/nvidia/state.h"

static uint64_t up(uint64_t at, uint64_t align) {
  return (at + align - 1) / align * align;
}

/* The first gap in [low, high) with a page after it. The link before it, or
 * NULL where none fits. */
static struct range **gap(struct client *c, uint64_t low, uint64_t high,
                          uint64_t bytes, uint64_t align, uint64_t *at) {
  struct range **link = &c->ranges;
  *at = up(low, align);
  for (; *link != NULL && (*link)->at < high; link = &(*link)->next) {
    const struct range *r = *link;
    if (r->at + r->bytes <= low)
      continue;
    if (*at < r->at && r->at - *at >= bytes + NVIDIA_PAGE)
      return link;
    *at = up(r->at + r->bytes + NVIDIA_PAGE, align);
  }
  if (*at < high && high - *at >= bytes + NVIDIA_PAGE)
    return link;
  return NULL;
}

bool nvk_range_place(struct client *c, struct range *r, uint64_t bytes,
                     uint64_t align, bool high) {
  uint64_t at;
  if (bytes > NVIDIA_END)
    return false;
  struct range **link = gap(c, NVIDIA_LOW, RIG_NV_WINDOWS, bytes, align, &at);
  if (link == NULL && high)
    link = gap(c, NVIDIA_HIGH, NVIDIA_END, bytes, align, &at);
  if (link == NULL)
    return false;
  *r = (struct range){.next = *link, .at = at, .bytes = bytes};
  *link = r;
  return true;
}

void nvk_range_remove(struct client *c, struct range *r) {
  struct range **link = &c->ranges;
  while (*link != r)
    link = &(*link)->next;
  *link = r->next;
}
