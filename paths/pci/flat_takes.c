/* SPDX-License-Identifier: ISC */
/* Operations of flat on memory at new addresses: alloc, free. */
#include "paths/pci/flat_op.h"

/* ---- alloc and free ---- */

/* What the pool may lack, in the bounds of the contract. */
static bool may_lack(struct flat *f, const struct page_alloc *a, uint64_t n,
                     uint64_t align) {
  const struct flat_pool p = flat_pool(f, PAGE_POOL_DEFAULT),
                         q = flat_tables_pool(f);
  const uint64_t tables = (uint64_t)flat_levels(f) * (n / PAGE / 4 + 2) * PAGE;
  uint64_t end_frame = a->below / PAGE < p.end ? a->below / PAGE : p.end;
  end_frame = end_frame > p.first ? end_frame : p.first;
  const uint64_t free_bytes = flat_free(f, p.first, end_frame);
  /* The space: its longest free run, by the records of holds. */
  const struct flat_window *w = &f->window[f->nwindows - 1];
  uint64_t longest = 0, run = 0;
  for (uint64_t i = 0; i < w->pages; i++) {
    bool held = false;
    for (int k = 0; k < FLAT_ALLOCS; k++)
      held |= f->alloc[k].live &&
              w->va + i * PAGE - f->alloc[k].hold.at < f->alloc[k].hold.bytes;
    run = held ? 0 : run + PAGE;
    longest = run > longest ? run : longest;
  }
  return longest < 2 * (n + align) || free_bytes < n + tables ||
         flat_free(f, q.first, q.end) < tables ||
         (a->contiguous &&
          flat_longest(f, p.first, end_frame) < 2 * (n + PAGE));
}

/* The blocks are the largest that the pool had. */
static void check_blocks(struct flat *f, const struct page_mapping *m,
                         uint64_t below) {
  static const uint64_t sizes[] = {1 << 21, 1 << 16, 4096};
  const struct flat_pool p = flat_pool(f, PAGE_POOL_DEFAULT);
  uint64_t left = m->bytes;
  int k = 0;
  for (size_t i = 0; i < m->nranges; i++) {
    while (k < 2 && sizes[k] > m->ranges[i].bytes) {
      if (left >= sizes[k] && below >= f->bytes)
        FLAT_CHECK(flat_longest(f, p.first, p.end) < 4 * sizes[k]);
      k++;
    }
    FLAT_CHECK(m->ranges[i].bytes == sizes[k]);
    left -= sizes[k];
  }
  FLAT_CHECK(left == 0);
}

static void allocated(struct flat *f, const struct page_alloc *a, int k,
                      uint64_t n, uint64_t align) {
  const struct flat_alloc *x = &f->alloc[k];
  const struct page_mapping *m = &x->m;
  const struct flat_window *w = &f->window[f->nwindows - 1];
  const uint64_t before = f->room.ntables;
  FLAT_CHECK(x->hold.at % align == 0 && x->hold.bytes == n);
  FLAT_CHECK(x->hold.at >= w->va && x->hold.at + n <= w->va + w->pages * PAGE);
  FLAT_CHECK(m->va == x->hold.at && m->bytes == n && m->flags == a->flags &&
             m->target.kind == PAGE_GPU);
  for (size_t i = 0; i < m->nranges; i++) {
    flat_own(f, flat_pool(f, PAGE_POOL_DEFAULT), m->ranges[i].at,
             m->ranges[i].bytes, k);
    FLAT_CHECK(m->ranges[i].at + m->ranges[i].bytes <= a->below);
  }
  FLAT_CHECK(f->zeroes == f->ntables - before + a->contiguous);
  if (a->contiguous)
    FLAT_CHECK(m->nranges == 1 && m->ranges[0].bytes == n &&
               flat_zeros(f, m->ranges[0].at, n));
  else
    check_blocks(f, m, a->below);
  FLAT_CHECK(flat_unmapped(f, m->va, n / PAGE));
  flat_plan(f, m->va, m->ranges, m->nranges);
  (void)flat_plan_walk(f, m->target, m->flags, true);
  flat_check_range(f, m->va, n);
}

static void op_alloc(struct flat *f) {
  struct page_alloc a = page_alloc(1 + flat_small(f, f->bytes / 2));
  uint64_t before, after;
  int k = 0;
  a.contiguous = flat_one_in(f, 2);
  a.flags = (unsigned)flat_draw(f, 4);
  if (flat_one_in(f, 3))
    a.below = flat_draw(f, f->bytes / PAGE + 8) * PAGE + flat_draw(f, PAGE);
  const bool refuse = flat_one_in(f, 30);
  if (refuse)
    flat_one_in(f, 2) ? (a.bytes = 0) : (a.flags |= 8);
  while (k < FLAT_ALLOCS && f->alloc[k].live)
    k++;
  if (k == FLAT_ALLOCS)
    return;
  struct flat_alloc *x = &f->alloc[k];
  const uint64_t n = (a.bytes + PAGE - 1) / PAGE * PAGE;
  uint64_t align = PAGE;
  while (align * 2 <= n)
    align *= 2;
  FLAT_CHECK(space_unheld(&f->space, &before) == 0);
  flat_begin(f);
  const int r = page_table_alloc(f->t, &f->holder, a, &x->hold, &x->m);
  flat_end(f);
  FLAT_CHECK(space_unheld(&f->space, &after) == 0);
  if (refuse) {
    flat_refused(f, r);
  } else if (r != 0) {
    flat_lacked(f, r, may_lack(f, &a, n, align));
    flat_same_room(f);
    FLAT_CHECK(f->flushes == 1 || f->stores == 0);
  } else {
    FLAT_CHECK(f->flushes == 1);
    allocated(f, &a, k, n, align);
    x->live = true;
    x->unmapped = false;
  }
  FLAT_CHECK(after == before - (r == 0 ? n : 0));
}

static void op_free(struct flat *f) {
  struct flat_alloc *x = &f->alloc[flat_draw(f, FLAT_ALLOCS)];
  struct page_range ranges[64];
  size_t nranges = 0;
  if (!x->live || x->m.nranges > 64)
    return;
  struct space_hold hold = x->hold;
  const bool stale = flat_one_in(f, 10);
  if (stale)
    hold.serial += 1 + flat_draw(f, 3);
  const struct flat_range at = {x->m.va, x->m.bytes};
  const bool refuse = stale || x->unmapped || !flat_whole(f, at);
  nranges = x->m.nranges;
  memcpy(ranges, x->m.ranges, nranges * sizeof *ranges);
  bool confirmed = false;
  flat_begin(f);
  const int r = page_table_free(f->t, &hold, &x->m, &confirmed);
  flat_end(f);
  if (refuse) {
    flat_refused(f, r);
    FLAT_CHECK(space_held(&f->space, &x->hold) == 0);
    return;
  }
  FLAT_CHECK(r == 0 && f->flushes == 1 && confirmed == f->confirms);
  flat_forget(f, at);
  flat_check_range(f, at.va, at.n);
  if (!confirmed) { /* memory and addresses are kept */
    f->unconfirmed++;
    x->unmapped = true;
    FLAT_CHECK(space_held(&f->space, &x->hold) == 0);
    return;
  }
  FLAT_CHECK(space_held(&f->space, &x->hold) == -RIG_NV_INVALID);
  for (size_t i = 0; i < nranges; i++)
    flat_disown(f, ranges[i].at, ranges[i].bytes);
  x->live = false;
}

/* Gives back by hand what a free kept, or what a discard left unmapped. */
void flat_clean(struct flat *f, struct flat_alloc *x) {
  bool confirmed;
  const struct flat_range at = {x->m.va, x->m.bytes};
  if (!x->live)
    return;
  f->confirms = true;
  if (!x->unmapped)
    FLAT_CHECK(page_table_discard(f->t, at.va, at.n, &confirmed) == 0 &&
               confirmed);
  flat_forget(f, at);
  for (size_t i = 0; i < x->m.nranges; i++) {
    FLAT_CHECK(page_table_pfree(f->t, x->m.ranges[i].at) == 0);
    flat_disown(f, x->m.ranges[i].at, x->m.ranges[i].bytes);
  }
  FLAT_CHECK(space_free(&f->space, &x->hold) == 0);
  page_mapping_fini(f->t, &x->m);
  x->live = false;
}

static void op_clean(struct flat *f) {
  flat_clean(f, &f->alloc[flat_draw(f, FLAT_ALLOCS)]);
}

const struct flat_kind flat_take_kinds[FLAT_TAKE_KINDS] = {
    {op_alloc, 12}, {op_free, 12}, {op_clean, 3}};
