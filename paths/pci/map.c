/* SPDX-License-Identifier: ISC */
/* Mapping and unmapping: arguments checked, then entries, then one flush. */
#include "core/api/why.h"
#include "paths/pci/page_table.h"
#include "paths/pci/tree.h"

enum { PAGE = 1 << PAGE_LOG2 };

/* ---- what every call refuses ---- */

static int check_range(const struct page_table *t, uint64_t va, uint64_t n) {
  const uint64_t span = page_table_span(t);
  if (va % PAGE != 0 || n % PAGE != 0)
    return why(RIG_NV_INVALID,
               "0x%llx bytes at 0x%llx are not whole 4 KiB pages",
               (unsigned long long)n, (unsigned long long)va);
  if (va < t->base || va - t->base > span || n > span - (va - t->base))
    return why(RIG_NV_INVALID,
               "0x%llx bytes at 0x%llx are not within the 0x%llx from 0x%llx",
               (unsigned long long)n, (unsigned long long)va,
               (unsigned long long)span, (unsigned long long)t->base);
  return 0;
}

static int check_target(const struct page_table *t, struct page_target to,
                        unsigned flags) {
  if (to.kind != PAGE_GPU && to.kind != PAGE_SYSTEM && to.kind != PAGE_PEER)
    return why(RIG_NV_INVALID, "target %d is no memory", (int)to.kind);
  if (to.kind == PAGE_PEER && to.peer >= t->format.peers)
    return why(RIG_NV_INVALID, "GPU %u is not among the %u that entries name",
               to.peer, t->format.peers);
  if ((flags & ~(unsigned)(PAGE_UNCACHED | PAGE_SNOOPED)) != 0)
    return why(RIG_NV_INVALID, "flags 0x%x are not there", flags);
  return 0;
}

/* The ranges' bytes in *sum. */
static int check_physical(const struct page_table *t, struct page_target to,
                          const struct page_range *ranges, size_t n,
                          uint64_t *sum) {
  const uint64_t end =
      to.kind == PAGE_SYSTEM ? UINT64_C(1) << t->format.pa_bits : t->gpu_end;
  *sum = 0;
  for (size_t i = 0; i < n; i++) {
    const struct page_range *p = &ranges[i];
    if (p->at % PAGE != 0 || p->bytes % PAGE != 0)
      return why(RIG_NV_INVALID,
                 "0x%llx bytes at physical 0x%llx are not whole 4 KiB pages",
                 (unsigned long long)p->bytes, (unsigned long long)p->at);
    if (p->at > end || p->bytes > end - p->at)
      return why(RIG_NV_INVALID,
                 "0x%llx bytes at physical 0x%llx end past the 0x%llx that "
                 "entries hold",
                 (unsigned long long)p->bytes, (unsigned long long)p->at,
                 (unsigned long long)end);
    if (p->bytes > UINT64_MAX - *sum)
      return why(RIG_NV_INVALID, "the ranges hold more than 2^64 bytes");
    *sum += p->bytes;
  }
  return 0;
}

static bool flush(struct page_table *t) {
  return t->format.flush(t->format.ctx);
}

/* ---- map ---- */

static int record(struct page_table *t, const struct page_range *ranges,
                  size_t n, struct page_range **out) {
  if (n > SIZE_MAX / sizeof **out - 1)
    return why(RIG_NV_INVALID, "%zu ranges", n);
  *out = host_alloc(t->allocator, (n + 1) * sizeof **out);
  if (*out == NULL)
    return why(RIG_NV_HOST_MEMORY, "no host memory for a mapping's ranges");
  if (n != 0)
    memcpy(*out, ranges, n * sizeof **out);
  return 0;
}

void page_mapping_fini(struct page_table *t, struct page_mapping *m) {
  host_release(t->allocator, m->ranges, (m->nranges + 1) * sizeof *m->ranges);
  *m = (struct page_mapping){0};
}

/* Maps what was checked, and flushes. */
static int fill(struct page_table *t, struct fill *f) {
  const uint64_t va = f->va;
  const int r = tree_fill(t, f);
  if (r != 0)
    tree_clear(t, va, f->va);
  (void)flush(t); /* the vendor records a failure */
  return r;
}

int page_table_map(struct page_table *t, uint64_t va, struct page_target to,
                   const struct page_range *ranges, size_t n, unsigned flags,
                   struct page_mapping *m) {
  struct page_range *kept = NULL;
  uint64_t bytes = 0;
  int r = check_target(t, to, flags);
  if (r == 0)
    r = check_physical(t, to, ranges, n, &bytes);
  if (r == 0)
    r = check_range(t, va, bytes);
  if (r == 0)
    r = tree_unmapped(t, va, va + bytes);
  if (r == 0 && m != NULL)
    r = record(t, ranges, n, &kept);
  if (r != 0)
    return r;
  struct fill f = {.va = va,
                   .end = va + bytes,
                   .target = to,
                   .flags = flags,
                   .next = ranges,
                   .last = n != 0 ? ranges + n : ranges};
  r = fill(t, &f);
  if (r != 0)
    host_release(t->allocator, kept, (n + 1) * sizeof *kept);
  else if (m != NULL)
    *m = (struct page_mapping){va, bytes, kept, n, to, flags};
  return r;
}

/* ---- tables ---- */

/* The depth whose pages are the largest that are not above n bytes. */
static int depth_for(const struct page_table *t, uint64_t n) {
  int d = 0;
  while (!tree_leaf(t, d) && (!t->level[d].maps || tree_size(t, d) > n))
    d++;
  return d;
}

/* Refuses a page of more than n bytes that maps va. */
static int check_pages(const struct page_table *t, uint64_t va, uint64_t n) {
  const struct table *at = t->root;
  for (int d = 0;; d++) {
    const unsigned i = tree_index(t, d, va);
    const bool leaf = tree_leaf(t, d);
    const bool page = leaf ? tree_bit(at, i) : at->slots[i] == &tree_page;
    if (page && tree_size(t, d) > n)
      return why(RIG_NV_INVALID,
                 "a page of 0x%llx bytes, more than 0x%llx, maps 0x%llx",
                 (unsigned long long)tree_size(t, d), (unsigned long long)n,
                 (unsigned long long)va);
    if (page || leaf || at->slots[i] == NULL)
      return 0;
    at = at->slots[i];
  }
}

int page_table_tables(struct page_table *t, uint64_t va, uint64_t bytes,
                      uint64_t tables[PAGE_LEVELS], int *n) {
  const int last = depth_for(t, bytes);
  int r = check_range(t, va, bytes), d = 0;
  if (r == 0 && va - t->base == page_table_span(t))
    r = why(RIG_NV_INVALID, "no table translates 0x%llx",
            (unsigned long long)va);
  if (r == 0)
    r = check_pages(t, va, bytes);
  if (r != 0)
    return r;
  struct table *at = t->root;
  for (d = 0; r == 0; d++) {
    at->kept = true;
    tables[d] = at->pa;
    if (d == last)
      break;
    const unsigned i = tree_index(t, d, va);
    struct table *child = at->slots[i];
    if (child == NULL)
      r = tree_make(t, d + 1, at, i, &child);
    at = child;
  }
  (void)flush(t); /* the vendor records a failure */
  if (r == 0)
    *n = d + 1;
  return r;
}

/* ---- unmap ---- */

int page_table_unmap(struct page_table *t, uint64_t va, uint64_t n,
                     bool *confirmed) {
  int r = check_range(t, va, n);
  if (r == 0)
    r = tree_mapped(t, va, va + n);
  if (r != 0)
    return r;
  tree_clear(t, va, va + n);
  *confirmed = flush(t);
  return 0;
}

int page_table_discard(struct page_table *t, uint64_t va, uint64_t n,
                       bool *confirmed) {
  const int r = check_range(t, va, n);
  if (r != 0)
    return r;
  tree_clear(t, va, va + n);
  *confirmed = flush(t);
  return 0;
}
