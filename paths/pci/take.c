/* SPDX-License-Identifier: ISC */
/* New memory at new addresses, and giving both back. */
#include "core/api/why.h"
#include "paths/pci/page_table.h"
#include "paths/pci/tree.h"

enum { PAGE = 1 << PAGE_LOG2 };

/* What an alloc has chosen so far. */
struct choice {
  struct tlsf *pool;
  uint64_t bytes, below;
  struct page_range *ranges;
  size_t n, room;
};

/* ---- choosing memory ---- */

static int choice_room(struct page_table *t, struct choice *c) {
  if (c->n < c->room)
    return 0;
  const size_t room = c->room != 0 ? 2 * c->room : 4;
  struct page_range *wider = host_alloc(t->allocator, room * sizeof *wider);
  if (wider == NULL)
    return why(RIG_NV_HOST_MEMORY, "no host memory for a mapping's ranges");
  if (c->n != 0)
    memcpy(wider, c->ranges, c->n * sizeof *wider);
  host_release(t->allocator, c->ranges, c->room * sizeof *c->ranges);
  c->ranges = wider;
  c->room = room;
  return 0;
}

static void choice_undo(struct page_table *t, struct choice *c) {
  for (size_t i = 0; i < c->n; i++)
    tlsf_free(c->pool, tlsf_find(c->pool, c->ranges[i].at));
  host_release(t->allocator, c->ranges, c->room * sizeof *c->ranges);
}

/* One more block; from is tlsf_take_below's. */
static int choose_block(struct page_table *t, struct choice *c, uint64_t bytes,
                        uint64_t align, struct tlsf_block **from) {
  struct tlsf_block *b;
  int r = choice_room(t, c);
  if (r == 0)
    r = c->below >= t->memory
            ? tlsf_take(c->pool, bytes, align, &b)
            : tlsf_take_below(c->pool, bytes, align, c->below, from, &b);
  if (r == 0)
    c->ranges[c->n++] = (struct page_range){tlsf_address(c->pool, b), bytes};
  return r;
}

/* One block, aligned as the largest block of pages that it could hold. */
static int choose_one(struct page_table *t, struct choice *c) {
  int r = -RIG_NV_NO_MEMORY;
  for (size_t i = 0; i <= t->npages && r == -RIG_NV_NO_MEMORY; i++) {
    struct tlsf_block *from = NULL;
    if (i == t->npages)
      r = choose_block(t, c, c->bytes, PAGE, &from);
    else if (t->pages[i].bytes <= c->bytes)
      r = choose_block(t, c, c->bytes, t->pages[i].align, &from);
  }
  return r;
}

/* The largest blocks of pages that there are; 4 KiB at the end. */
static int choose_many(struct page_table *t, struct choice *c) {
  uint64_t left = c->bytes;
  int r = 0;
  for (size_t i = 0; i <= t->npages && left != 0; i++) {
    const struct page_block page = {PAGE, PAGE};
    const struct page_block *b = i < t->npages ? &t->pages[i] : &page;
    struct tlsf_block *from = NULL;
    while (left >= b->bytes &&
           (r = choose_block(t, c, b->bytes, b->align, &from)) == 0)
      left -= b->bytes;
    if (r != 0 && r != -RIG_NV_NO_MEMORY)
      return r;
  }
  return left == 0 ? 0 : r;
}

static int choose(struct page_table *t, const struct page_alloc *a,
                  struct choice *c) {
  c->pool = t->booting ? &t->boot_pool : &t->main_pool;
  c->below = a->below < t->gpu_end ? a->below : t->gpu_end;
  if (a->bytes > page_table_memory(t))
    return why(RIG_NV_NO_MEMORY, "%llu bytes are more than the GPU's memory",
               (unsigned long long)a->bytes);
  c->bytes = (a->bytes + PAGE - 1) / PAGE * PAGE;
  if (c->bytes > tlsf_free_bytes(c->pool))
    return why(RIG_NV_NO_MEMORY, "%llu bytes of the pool are free, not %llu",
               (unsigned long long)tlsf_free_bytes(c->pool),
               (unsigned long long)c->bytes);
  const int r = a->contiguous ? choose_one(t, c) : choose_many(t, c);
  if (r != 0)
    choice_undo(t, c);
  return r;
}

/* ---- alloc ---- */

/* New addresses that the tables translate. */
static int choose_addresses(struct page_table *t, struct space_holder *h,
                            uint64_t bytes, struct space_hold *hold) {
  const uint64_t align = UINT64_C(1) << (63 - __builtin_clzll(bytes));
  int r = space_alloc(h, bytes, align, hold);
  if (r != 0)
    return r;
  if (hold->at >= t->base && hold->at - t->base <= page_table_span(t) - bytes)
    return 0;
  r = why(RIG_NV_INVALID,
          "the space has 0x%llx, which the tables do not translate",
          (unsigned long long)hold->at);
  const int freed = space_free(t->space, hold);
  return freed != 0 ? freed : r;
}

/* Maps what was chosen at the hold's addresses. */
static int map_choice(struct page_table *t, const struct page_alloc *a,
                      struct choice *c, const struct space_hold *hold,
                      struct page_mapping *m) {
  const struct page_target gpu = {.kind = PAGE_GPU};
  if (a->contiguous)
    t->format.zero(t->format.ctx, c->ranges[0].at, c->bytes);
  return page_table_map(t, hold->at, gpu, c->ranges, c->n, a->flags, m);
}

int page_table_alloc(struct page_table *t, struct space_holder *h,
                     struct page_alloc a, struct space_hold *hold,
                     struct page_mapping *m) {
  struct choice c = {0};
  struct space_hold taken;
  if (a.bytes == 0)
    return why(RIG_NV_INVALID, "0 bytes asked for");
  if ((a.flags & ~(unsigned)(PAGE_UNCACHED | PAGE_SNOOPED)) != 0)
    return why(RIG_NV_INVALID, "flags 0x%x are not there", a.flags);
  if (h->space != t->space)
    return why(RIG_NV_INVALID, "the holder is of another space");
  int r = choose(t, &a, &c);
  if (r != 0)
    return r;
  r = choose_addresses(t, h, c.bytes, &taken);
  if (r == 0) {
    r = map_choice(t, &a, &c, &taken, m);
    const int freed = r == 0 ? 0 : space_free(t->space, &taken);
    r = freed != 0 ? freed : r;
  }
  if (r != 0) {
    choice_undo(t, &c);
    return r;
  }
  *hold = taken;
  host_release(t->allocator, c.ranges, c.room * sizeof *c.ranges);
  return 0;
}

/* ---- free ---- */

static bool has_memory(const struct page_mapping *m) {
  return m->target.kind == PAGE_GPU;
}

/* Every range is a block of its own: 0 or INVALID. Marks are left off. */
static int check_blocks(struct page_table *t, const struct page_mapping *m) {
  struct tlsf *pool;
  size_t marked = 0;
  int r = 0;
  for (; r == 0 && marked < m->nranges; marked++) {
    const struct page_range *p = &m->ranges[marked];
    struct tlsf_block *b = tree_block(t, p->at, &pool);
    if (b == NULL)
      r = -RIG_NV_INVALID;
    else if (b->mark || tlsf_bytes(pool, b) != p->bytes)
      r = why(RIG_NV_INVALID, "0x%llx bytes at physical 0x%llx are no block",
              (unsigned long long)p->bytes, (unsigned long long)p->at);
    if (r != 0)
      break;
    b->mark = true;
  }
  while (marked-- > 0)
    tree_block(t, m->ranges[marked].at, &pool)->mark = false;
  return r;
}

static int check_free(struct page_table *t, const struct space_hold *hold,
                      const struct page_mapping *m) {
  if (hold->at != m->va || hold->bytes != m->bytes)
    return why(RIG_NV_INVALID, "the hold is not of the mapping's addresses");
  int r = space_held(t->space, hold);
  if (r == 0 && has_memory(m))
    r = check_blocks(t, m);
  return r;
}

int page_table_free(struct page_table *t, const struct space_hold *hold,
                    struct page_mapping *m, bool *confirmed) {
  int r = check_free(t, hold, m);
  if (r == 0)
    r = page_table_unmap(t, m->va, m->bytes, confirmed);
  if (r != 0 || !*confirmed)
    return r;
  /* The hold may be gone only where its holder was released meanwhile. */
  r = space_free(t->space, hold);
  for (size_t i = 0; has_memory(m) && i < m->nranges; i++) {
    const int freed = page_table_pfree(t, m->ranges[i].at);
    r = r != 0 ? r : freed;
  }
  page_mapping_fini(t, m);
  return r;
}
