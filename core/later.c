/* SPDX-License-Identifier: ISC */
/*
 * Frees that wait for a value: a stack of regions, each with the value after
 * which no work uses it. It is looked through at the device's next allocation
 * or deferred free, and emptied by release.
 *
 *   rig_nv_free_after ---push---> d->later ---take all---> one caller's list
 *                                    ^                          |
 *                                    +---- not yet reached -----+  else freed
 *
 * Threads: any. A region is on the stack or on one caller's list, and one that
 * was pushed is nobody else's to free.
 */
#include "core/api/why.h"
#include "core/device.h"
#include "core/lock_order/lock_order.h"

static void push(struct rig_nv *d, struct rig_nv_region *r) {
  do {
    r->next = ck_pr_load_ptr(&d->later);
    ck_pr_fence_release(); /* the region, before it is seen; partner: take's */
  } while (!ck_pr_cas_ptr(&d->later, r->next, r));
}

static struct rig_nv_region *take(struct rig_nv *d) {
  struct rig_nv_region *all = ck_pr_fas_ptr(&d->later, NULL);
  ck_pr_fence_acquire(); /* partner: push's fence */
  return all;
}

int later_free(struct rig_nv *d, bool all) {
  int fault = 0;
  if (ck_pr_load_ptr(&d->later) == NULL)
    return 0;
  uint64_t word = rig_nv_signaled(d);
  for (struct rig_nv_region *r = take(d), *next; r; r = next) {
    next = r->next;
    if (!all && !rig_reached(word, r->after)) {
      push(d, r);
      continue;
    }
    int e = region_end(r);
    if (e != 0)
      fault = e;
  }
  return fault;
}

uint64_t later_count(const struct rig_nv *d) {
  uint64_t n = 0;
  for (const struct rig_nv_region *r = d->later; r; r = r->next)
    n++;
  return n;
}

int rig_nv_free_after(struct rig_nv *d, struct rig_nv_region *r, uint64_t v) {
  int e = region_may_end(d, r);
  if (e != 0)
    return e;
  if (r->own_word || rig_reached(rig_nv_signaled(d), v))
    return device_lose(d, region_end(r));
  e = later_free(d, false);
  r->after = v;
  push(d, r);
  return device_lose(d, e);
}
