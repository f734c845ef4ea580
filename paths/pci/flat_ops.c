/* SPDX-License-Identifier: ISC */
/* The operations of flat: what they share, and those on physical memory. */
#include <stdlib.h>

#include "paths/pci/flat_op.h"

enum { ALL_WEIGHTS = 107 };

uint64_t flat_draw(struct flat *f, uint64_t n) {
  return f->draw(f->draw_ctx, n);
}

bool flat_one_in(struct flat *f, uint64_t n) { return flat_draw(f, n) == 0; }

/* A number of [0, most], the small ones far more often. */
uint64_t flat_small(struct flat *f, uint64_t most) {
  unsigned bits = 0;
  while (most >> bits != 0)
    bits++;
  const uint64_t n = flat_draw(f, UINT64_C(1) << flat_draw(f, bits + 1));
  return n < most ? n : most;
}

/* ---- one call ---- */

void flat_begin(struct flat *f) {
  f->flushes = f->stores = f->unflushed = f->zeroes = 0;
  f->room = page_table_room(f->t);
  f->failed = f->failing.failed;
  f->confirms = !flat_one_in(f, 6);
  f->failing.until = flat_one_in(f, 8) ? (int64_t)flat_draw(f, 4) : -1;
}

void flat_end(struct flat *f) {
  f->failing.until = -1;
  FLAT_CHECK(f->unflushed == 0);
  FLAT_CHECK(f->flushes <= 1);
}

static bool host_lacked(const struct flat *f) {
  return f->failing.failed != f->failed;
}

void flat_same_room(struct flat *f) {
  const struct page_table_room now = page_table_room(f->t);
  FLAT_CHECK(now.boot == f->room.boot && now.tables == f->room.tables &&
             now.main == f->room.main && now.ntables == f->room.ntables);
}

void flat_refused(struct flat *f, int r) {
  FLAT_CHECK(r == -RIG_NV_INVALID);
  FLAT_CHECK(f->flushes == 0 && f->stores == 0 && f->zeroes == 0);
  flat_same_room(f);
  f->refused++;
}

/* A failure for want of memory, which `lacking` says there may be. */
void flat_lacked(struct flat *f, int r, bool lacking) {
  if (r == -RIG_NV_HOST_MEMORY) {
    FLAT_CHECK(host_lacked(f));
    f->host_failed++;
  } else {
    FLAT_CHECK(r == -RIG_NV_NO_MEMORY && lacking);
    f->lacked++;
  }
}

struct flat_pool flat_pool(const struct flat *f, enum page_pool which) {
  if (which == PAGE_POOL_BOOT || (which == PAGE_POOL_DEFAULT && f->booting))
    return (struct flat_pool){0, f->boot_end / PAGE};
  return (struct flat_pool){f->main_start / PAGE, f->bytes / PAGE};
}

struct flat_pool flat_tables_pool(const struct flat *f) {
  if (f->booting || f->options.tables == PAGE_TABLES_MAIN)
    return flat_pool(f, PAGE_POOL_DEFAULT);
  return (struct flat_pool){f->boot_end / PAGE, f->main_start / PAGE};
}

void flat_own(struct flat *f, struct flat_pool p, uint64_t pa, uint64_t bytes,
              int alloc) {
  FLAT_CHECK(pa % PAGE == 0 && pa / PAGE >= p.first &&
             (pa + bytes) / PAGE <= p.end);
  f->last_id++;
  for (uint64_t i = pa / PAGE; i < (pa + bytes) / PAGE; i++) {
    FLAT_CHECK(f->frame[i].block == 0 && f->frame[i].depth == -1);
    f->frame[i].block = f->last_id;
    f->used[i] = true;
  }
  if (alloc < 0)
    f->block[f->nblocks++] = (struct flat_block){pa, bytes, f->last_id, alloc};
}

void flat_disown(struct flat *f, uint64_t pa, uint64_t bytes) {
  for (uint64_t i = pa / PAGE; i < (pa + bytes) / PAGE; i++) {
    f->frame[i].block = 0;
    f->used[i] = false;
  }
  memset(f->memory + pa, 0xa5, bytes);
}

static void op_palloc(struct flat *f) {
  struct page_request q = page_request(1 + flat_small(f, f->bytes / 2));
  uint64_t pa = 1;
  q.align = UINT64_C(1) << flat_draw(f, 24);
  q.zero = flat_one_in(f, 2);
  q.pool = (enum page_pool)flat_draw(f, 3);
  if (flat_one_in(f, 20))
    q.bytes = 0;
  if (flat_one_in(f, 20))
    q.align = flat_draw(f, 2) * 3;
  if (f->nblocks == FLAT_BLOCKS)
    return;
  flat_begin(f);
  const int r = page_table_palloc(f->t, q, &pa);
  flat_end(f);
  FLAT_CHECK(f->flushes == 0 && f->stores == 0);
  if (q.bytes == 0 || q.align == 0 || q.align == 3) {
    flat_refused(f, r);
    return;
  }
  const struct flat_pool p = flat_pool(f, q.pool);
  const uint64_t n = (q.bytes + PAGE - 1) / PAGE * PAGE;
  if (r != 0) {
    flat_lacked(f, r, flat_longest(f, p.first, p.end) < 2 * (n + q.align));
    FLAT_CHECK(f->zeroes == 0);
    flat_same_room(f);
    return;
  }
  FLAT_CHECK(pa % q.align == 0);
  flat_own(f, p, pa, n, -1);
  FLAT_CHECK(f->zeroes == (q.zero ? 1 : 0));
  FLAT_CHECK(!q.zero || (f->zeroed_at == pa && f->zeroed_bytes == n));
  FLAT_CHECK(!q.zero || flat_zeros(f, pa, n));
}

static void op_pfree(struct flat *f) {
  uint64_t pa = flat_draw(f, f->bytes / PAGE) * PAGE;
  const size_t k = f->nblocks != 0 ? flat_draw(f, f->nblocks) : 0;
  const bool block = f->nblocks != 0 && !flat_one_in(f, 4);
  if (block)
    pa = f->block[k].pa;
  else if (flat_one_in(f, 3))
    pa += 1 + flat_draw(f, PAGE - 1);
  bool there = block;
  for (size_t i = 0; i < f->nblocks; i++)
    there |= f->block[i].pa == pa;
  for (int i = 0; i < FLAT_ALLOCS; i++)
    for (size_t j = 0; f->alloc[i].live && j < f->alloc[i].m.nranges; j++)
      if (f->alloc[i].m.ranges[j].at == pa)
        return; /* a mapping's; op_clean frees those */
  flat_begin(f);
  const int r = page_table_pfree(f->t, pa);
  flat_end(f);
  if (!there) {
    flat_refused(f, r);
    return;
  }
  FLAT_CHECK(r == 0 && f->stores == 0 && f->flushes == 0 && f->zeroes == 0);
  for (size_t i = 0; i < f->nblocks; i++) {
    if (f->block[i].pa != pa)
      continue;
    flat_disown(f, pa, f->block[i].bytes);
    f->block[i] = f->block[--f->nblocks];
    break;
  }
}

const struct flat_kind flat_memory_kinds[FLAT_MEMORY_KINDS] = {{op_palloc, 10},
                                                               {op_pfree, 12}};

/* ---- all of them ---- */

/* The kind of the next operation. */
static void run_kind(struct flat *f, uint64_t k) {
  static const struct {
    const struct flat_kind *kinds;
    int n;
  } all[] = {{flat_memory_kinds, FLAT_MEMORY_KINDS},
             {flat_map_kinds, FLAT_MAP_KINDS},
             {flat_take_kinds, FLAT_TAKE_KINDS}};
  int op = 0;
  for (size_t a = 0; a < sizeof all / sizeof *all; a++) {
    for (int i = 0; i < all[a].n; i++, op++) {
      if (k < all[a].kinds[i].weight) {
        f->done[op]++;
        all[a].kinds[i].run(f);
        return;
      }
      k -= all[a].kinds[i].weight;
    }
  }
}

void flat_op(struct flat *f) {
  const uint64_t k = flat_draw(f, ALL_WEIGHTS + 1);
  f->ops++;
  if (k < ALL_WEIGHTS) {
    run_kind(f, k);
  } else if (f->booting && flat_one_in(f, 3)) {
    page_table_booted(f->t);
    f->booting = false;
  }
}

void flat_fini(struct flat *f) {
  bool confirmed;
  uint64_t kept = 0;
  flat_check(f);
  for (int k = 0; k < FLAT_ALLOCS; k++)
    flat_clean(f, &f->alloc[k]);
  f->confirms = true;
  FLAT_CHECK(page_table_discard(f->t, page_table_base(f->t),
                                page_table_span(f->t), &confirmed) == 0);
  flat_forget(
      f, (struct flat_range){page_table_base(f->t), page_table_span(f->t)});
  for (size_t i = 0; i < f->nblocks; i++) {
    FLAT_CHECK(page_table_pfree(f->t, f->block[i].pa) == 0);
    flat_disown(f, f->block[i].pa, f->block[i].bytes);
  }
  f->nblocks = 0;
  flat_check(f);
  for (uint64_t i = 0; i < f->bytes / PAGE; i++)
    kept += f->frame[i].depth == 0 || f->frame[i].kept;
  const struct page_table_room room = page_table_room(f->t);
  FLAT_CHECK(room.ntables == kept);
  FLAT_CHECK(room.boot + room.tables + room.main == f->bytes - kept * PAGE);
  page_table_destroy(f->t);
  space_fini(&f->space);
  FLAT_CHECK(f->failing.live == 0);
  for (size_t k = 0; k < f->nwindows; k++)
    free(f->window[k].page);
  free(f->memory);
  free(f->frame);
  free(f->used);
}
