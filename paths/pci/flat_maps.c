/* SPDX-License-Identifier: ISC */
/* Operations of flat on mappings: map, unmap, discard, tables. */
#include "paths/pci/flat_op.h"

enum { MOST_RANGES = 4 };

/* ---- map ---- */

struct map {
  uint64_t va, pages;
  struct page_target to;
  struct page_range ranges[MOST_RANGES];
  size_t n;
  unsigned flags;
  bool huge; /* begins with a page of the third level, where one fits */
};

static uint64_t pa_end(const struct flat *f, enum page_target_kind kind) {
  return UINT64_C(1) << (kind != PAGE_SYSTEM && f->format.gpu_bits
                             ? f->format.gpu_bits
                             : f->format.pa_bits);
}

/* Sizes at which large pages begin to fit. */
static uint64_t draw_pages(struct flat *f, uint64_t room, bool huge) {
  const unsigned large = flat_bit(f, flat_levels(f) - 2),
                 larger = flat_bit(f, flat_levels(f) - 3);
  uint64_t pages = 1 + flat_small(f, 40);
  if (flat_one_in(f, 3))
    pages = (1 + flat_draw(f, 3)) << (large - 12);
  if (huge)
    pages = UINT64_C(1) << (larger - 12);
  if (flat_one_in(f, 4))
    pages += flat_draw(f, 5);
  return pages < room ? pages : room;
}

static void draw_map(struct flat *f, struct map *m) {
  const struct flat_window *w = &f->window[flat_draw(f, f->nwindows - 1)];
  const unsigned large = flat_bit(f, flat_levels(f) - 2);
  uint64_t at = flat_draw(f, w->pages);
  if (flat_one_in(f, 2))
    at &= ~((UINT64_C(1) << (large - 12)) - 1);
  m->huge = flat_one_in(f, 16);
  if (m->huge)
    at &= ~((UINT64_C(1) << (flat_bit(f, flat_levels(f) - 3) - 12)) - 1);
  m->va = w->va + at * PAGE;
  m->to.kind = (enum page_target_kind)flat_draw(f, 3);
  m->to.peer =
      m->to.kind == PAGE_PEER ? (unsigned)flat_draw(f, f->format.peers) : 0;
  m->flags = (unsigned)flat_draw(f, 4);
  m->n = flat_draw(f, MOST_RANGES + 1);
  m->pages = 0;
  for (size_t k = 0; k < m->n; k++) {
    const uint64_t n =
        draw_pages(f, w->pages - at - m->pages, m->huge && k == 0);
    const uint64_t most = pa_end(f, m->to.kind) / PAGE - n;
    const uint64_t va = m->va / PAGE + m->pages;
    uint64_t pa = flat_draw(f, most);
    if (!flat_one_in(f, 3)) /* as va is aligned */
      pa = (pa & ~((UINT64_C(1) << 18) - 1)) | (va & ((1 << 18) - 1));
    if (k != 0 && flat_one_in(f, 3))
      pa = (m->ranges[k - 1].at + m->ranges[k - 1].bytes) / PAGE;
    pa = pa < most ? pa : most;
    m->ranges[k] = (struct page_range){pa * PAGE, n * PAGE};
    m->pages += n;
  }
}

/* Makes it one that is refused. */
static void spoil(struct flat *f, struct map *m) {
  struct page_range *p = &m->ranges[m->n - 1];
  switch (flat_draw(f, 7)) {
  case 0:
    m->va += 1 + flat_draw(f, PAGE - 1);
    break;
  case 1:
    p->at += 1 + flat_draw(f, PAGE - 1);
    break;
  case 2:
    p->bytes += 1 + flat_draw(f, PAGE - 1);
    break;
  case 3:
    p->at = pa_end(f, m->to.kind) - p->bytes + PAGE * (1 + flat_draw(f, 2));
    break;
  case 4:
    m->to = (struct page_target){PAGE_PEER, f->format.peers};
    break;
  case 5:
    m->flags |= 4;
    break;
  default: {
    const uint64_t end = page_table_base(f->t) + page_table_span(f->t);
    m->va = end - m->pages * PAGE + PAGE;
  }
  }
}

bool flat_unmapped(const struct flat *f, uint64_t va, uint64_t pages) {
  for (uint64_t i = 0; i < pages; i++)
    if (flat_at(f, va + i * PAGE)->mapped)
      return false;
  return true;
}

static void check_record(struct flat *f, const struct map *m,
                         struct page_mapping *x) {
  FLAT_CHECK(x->va == m->va && x->bytes == m->pages * PAGE);
  FLAT_CHECK(x->nranges == m->n && x->flags == m->flags &&
             x->target.kind == m->to.kind && x->target.peer == m->to.peer);
  for (size_t k = 0; k < m->n; k++)
    FLAT_CHECK(x->ranges[k].at == m->ranges[k].at &&
               x->ranges[k].bytes == m->ranges[k].bytes);
  page_mapping_fini(f->t, x);
}

/* Unmaps what is in the way. */
static void make_way(struct flat *f, const struct map *m) {
  const struct flat_range x = {m->va, m->pages * PAGE};
  bool confirmed;
  f->confirms = true;
  FLAT_CHECK(page_table_discard(f->t, x.va, x.n, &confirmed) == 0 && confirmed);
  flat_forget(f, x);
}

static void op_map(struct flat *f) {
  struct map m = {0};
  struct page_mapping x;
  draw_map(f, &m);
  if (m.huge)
    make_way(f, &m);
  const bool spoilt = m.n != 0 && m.pages != 0 && flat_one_in(f, 10);
  const bool record = flat_one_in(f, 2);
  if (spoilt)
    spoil(f, &m);
  const struct flat_pool p = flat_tables_pool(f);
  const uint64_t room = flat_free(f, p.first, p.end) / PAGE;
  const bool refuse = spoilt || !flat_unmapped(f, m.va, m.pages);
  uint64_t needs = 0;
  if (!refuse) {
    flat_plan(f, m.va, m.ranges, m.n);
    needs = flat_plan_walk(f, m.to, m.flags, false);
  }
  flat_begin(f);
  const int r = page_table_map(f->t, m.va, m.to, m.ranges, m.n, m.flags,
                               record ? &x : NULL);
  flat_end(f);
  if (refuse) {
    flat_refused(f, r);
    return;
  }
  if (r != 0) {
    flat_lacked(f, r, needs > room);
    FLAT_CHECK(f->flushes == 1 || f->stores == 0);
    FLAT_CHECK(r != -RIG_NV_NO_MEMORY || f->flushes == 1);
    flat_same_room(f);
  } else {
    FLAT_CHECK(f->flushes == 1 && needs <= room);
    FLAT_CHECK(f->zeroes == needs);
    (void)flat_plan_walk(f, m.to, m.flags, true);
    if (record)
      check_record(f, &m, &x);
  }
  flat_check_range(f, m.va, m.pages * PAGE);
}

/* ---- unmap and discard ---- */

/* Often what is mapped, often less or more. */
struct flat_range flat_draw_range(struct flat *f) {
  const struct flat_window *w = &f->window[flat_draw(f, f->nwindows)];
  uint64_t i = flat_draw(f, w->pages), n = 0;
  for (int tries = 0; tries < 64 && !w->page[i].mapped; tries++)
    i = flat_draw(f, w->pages);
  if (w->page[i].mapped && !flat_one_in(f, 8)) {
    const uint64_t size = UINT64_C(1) << (w->page[i].log2 - 12);
    i = ((w->va / PAGE + i) & ~(size - 1)) - w->va / PAGE;
  }
  while (i != 0 && w->page[i - 1].mapped && !flat_one_in(f, 6))
    i--;
  while (i + n < w->pages && w->page[i + n].mapped &&
         (n == 0 || !flat_one_in(f, 50)))
    n++;
  if (flat_one_in(f, 6))
    n += flat_draw(f, 4);
  if (flat_one_in(f, 6) && n != 0)
    n--;
  n = n < w->pages - i ? n : w->pages - i;
  return (struct flat_range){w->va + i * PAGE, n * PAGE};
}

static bool spoil_range(struct flat *f, struct flat_range *x) {
  const uint64_t end = page_table_base(f->t) + page_table_span(f->t);
  if (!flat_one_in(f, 12))
    return false;
  switch (flat_draw(f, 4)) {
  case 0:
    x->va += 1 + flat_draw(f, PAGE - 1);
    return true;
  case 1:
    x->n += 1 + flat_draw(f, PAGE - 1);
    return true;
  case 2:
    x->n = end - x->va + PAGE;
    return true;
  default:
    x->va = end + PAGE;
    return true;
  }
}

static uint64_t page_start(const struct flat_page *p, uint64_t va) {
  return va & ~((UINT64_C(1) << p->log2) - 1);
}

/* Whether pages within the range map all of it. */
bool flat_whole(const struct flat *f, struct flat_range x) {
  for (uint64_t at = x.va; at < x.va + x.n; at += PAGE) {
    const struct flat_page *p = flat_at(f, at);
    if (p == NULL || !p->mapped || page_start(p, at) < x.va ||
        page_start(p, at) + (UINT64_C(1) << p->log2) > x.va + x.n)
      return false;
  }
  return true;
}

/* Forgets every page that maps any of the range, whole. */
void flat_forget(struct flat *f, struct flat_range x) {
  for (size_t k = 0; k < f->nwindows; k++) {
    const struct flat_window *w = &f->window[k];
    const struct flat_span span = flat_span(w, x.va, x.n);
    for (uint64_t i = span.first; i < span.end; i++) {
      const uint64_t va = w->va + i * PAGE;
      struct flat_page *p = &w->page[i];
      if (!p->mapped)
        continue;
      const uint64_t start = page_start(p, va), n = UINT64_C(1)
                                                    << (p->log2 - 12);
      for (uint64_t j = 0; j < n; j++)
        flat_at(f, start + j * PAGE)->mapped = false;
    }
  }
}

static void op_unmap(struct flat *f) {
  struct flat_range x = flat_draw_range(f);
  const bool spoilt = spoil_range(f, &x);
  const bool refuse = spoilt || !flat_whole(f, x);
  bool confirmed = false;
  flat_begin(f);
  const int r = page_table_unmap(f->t, x.va, x.n, &confirmed);
  flat_end(f);
  if (refuse) {
    flat_refused(f, r);
    return;
  }
  FLAT_CHECK(r == 0 && f->flushes == 1 && f->zeroes == 0);
  FLAT_CHECK(confirmed == f->confirms);
  f->unconfirmed += !confirmed;
  flat_forget(f, x);
  flat_check_range(f, x.va, x.n);
}

static void op_discard(struct flat *f) {
  struct flat_range x = flat_draw_range(f);
  const bool all = flat_one_in(f, 40);
  if (all)
    x = (struct flat_range){page_table_base(f->t), page_table_span(f->t)};
  const bool spoilt = !all && spoil_range(f, &x);
  bool confirmed = false;
  flat_begin(f);
  const int r = page_table_discard(f->t, x.va, x.n, &confirmed);
  flat_end(f);
  if (spoilt) {
    flat_refused(f, r);
    return;
  }
  FLAT_CHECK(r == 0 && f->flushes == 1 && f->zeroes == 0);
  FLAT_CHECK(confirmed == f->confirms);
  flat_forget(f, x);
  if (!all)
    flat_check_range(f, x.va, x.n);
}

/* ---- tables ---- */

static int tables_depth(const struct flat *f, uint64_t n) {
  for (int d = 0; d < flat_levels(f) - 1; d++)
    if (flat_large(f, d) && UINT64_C(1) << flat_bit(f, d) <= n)
      return d;
  return flat_levels(f) - 1;
}

static void op_tables(struct flat *f) {
  struct flat_range x = flat_draw_range(f);
  uint64_t got[PAGE_LEVELS];
  int n = -1;
  x.n = UINT64_C(1) << flat_bit(f, (int)flat_draw(f, (uint64_t)flat_levels(f)));
  if (flat_one_in(f, 3))
    x.n = flat_draw(f, 4) * PAGE;
  const uint64_t end_va = page_table_base(f->t) + page_table_span(f->t);
  const bool spoilt = spoil_range(f, &x) || x.n > end_va - x.va;
  const struct flat_page *p = flat_at(f, x.va);
  const bool refuse =
      spoilt || (p != NULL && p->mapped && UINT64_C(1) << p->log2 > x.n);
  const int depth = tables_depth(f, x.n);
  uint64_t needs = 0;
  for (int d = 1; !refuse && d <= depth; d++)
    needs += flat_table(f, d, x.va) < 0;
  const struct flat_pool pool = flat_tables_pool(f);
  const uint64_t room = flat_free(f, pool.first, pool.end) / PAGE;
  flat_begin(f);
  const int r = page_table_tables(f->t, x.va, x.n, got, &n);
  flat_end(f);
  if (refuse) {
    flat_refused(f, r);
    return;
  }
  FLAT_CHECK(f->flushes == 1);
  for (int d = 0; d <= depth && flat_table(f, d, x.va) >= 0; d++)
    f->frame[flat_table(f, d, x.va)].kept = true;
  if (r != 0) {
    flat_lacked(f, r, needs > room);
    return;
  }
  FLAT_CHECK(n == depth + 1 && f->zeroes == needs);
  for (int d = 0; d < n; d++)
    FLAT_CHECK(got[d] == (uint64_t)flat_table(f, d, x.va) * PAGE);
}

const struct flat_kind flat_map_kinds[FLAT_MAP_KINDS] = {
    {op_map, 30}, {op_unmap, 20}, {op_discard, 6}, {op_tables, 2}};
