/* SPDX-License-Identifier: ISC */
/* What a map is to do, found by trying every size for every page. */
#include "paths/pci/flat_op.h"

enum { MOST_PAGES = 300000, MOST_LOG2 = 40 };

struct plan {
  uint64_t va, pages;
  uint64_t pa[MOST_PAGES];
  uint32_t run[MOST_PAGES];
};

static struct plan plan;

/* The pages of the ranges, and which of them follow each other. */
void flat_plan(struct flat *f, uint64_t va, const struct page_range *ranges,
               size_t n) {
  plan.va = va;
  plan.pages = 0;
  for (size_t k = 0; k < n; k++) {
    for (uint64_t at = 0; at < ranges[k].bytes; at += PAGE) {
      const uint64_t i = plan.pages++;
      FLAT_CHECK(i < MOST_PAGES);
      plan.pa[i] = ranges[k].at + at;
      plan.run[i] = 0;
      if (i != 0)
        plan.run[i] = plan.run[i - 1] + (plan.pa[i] != plan.pa[i - 1] + PAGE);
    }
  }
}

/* Whether the naturally aligned block of 2^log2 bytes that holds page i lies
 * in a range contiguous in both spaces, aligned in both. */
static bool block_fits(uint64_t i, unsigned log2) {
  const uint64_t size = UINT64_C(1) << log2, va = plan.va + i * PAGE;
  const uint64_t start = va & ~(size - 1);
  if (start < plan.va || size / PAGE > plan.pages)
    return false;
  const uint64_t first = (start - plan.va) / PAGE,
                 last = first + size / PAGE - 1;
  return last < plan.pages && plan.run[first] == plan.run[last] &&
         plan.pa[first] % size == 0;
}

/* The depth at which page i maps. */
static int depth_at(const struct flat *f, uint64_t i) {
  const int leaf = flat_levels(f) - 1;
  for (int d = 0; d < leaf; d++) {
    const unsigned bit = flat_bit(f, d);
    const uint64_t va = (plan.va + i * PAGE) & ~((UINT64_C(1) << bit) - 1);
    if (!flat_large(f, d) || bit > MOST_LOG2 || !block_fits(i, bit))
      continue;
    const int64_t below = flat_table(f, d + 1, va);
    if (below < 0 || !f->frame[below].kept)
      return d;
  }
  return leaf;
}

static unsigned fragment_at(uint64_t i) {
  unsigned best = 12;
  for (unsigned log2 = 13; log2 <= MOST_LOG2; log2++)
    if (block_fits(i, log2))
      best = log2;
  return best - 12;
}

/* Tables that page i at depth d needs and that are not there, once each. */
static uint64_t missing(const struct flat *f, uint64_t i, int d,
                        uint64_t *last) {
  const uint64_t va = plan.va + i * PAGE;
  uint64_t n = 0;
  for (int e = 1; e <= d; e++) {
    const uint64_t region = (va - page_table_base(f->t)) >> flat_bit(f, e - 1);
    if (last[e] != region && flat_table(f, e, va) < 0)
      n++;
    last[e] = region;
  }
  return n;
}

/* Writes the plan into the records, or only counts the tables it needs. */
uint64_t flat_plan_walk(struct flat *f, struct page_target to, unsigned flags,
                        bool write) {
  uint64_t last[PAGE_LEVELS];
  memset(last, 0xff, sizeof last);
  uint64_t needs = 0;
  for (uint64_t i = 0; i < plan.pages;) {
    const int d = depth_at(f, i);
    const uint64_t size = UINT64_C(1) << flat_bit(f, d);
    needs += missing(f, i, d, last);
    f->entries[flat_levels(f) - 1 - d] += write;
    const unsigned fragment = write ? fragment_at(i) : 0;
    for (uint64_t k = 0; k < size / PAGE; k++, i++)
      if (write)
        *flat_at(f, plan.va + i * PAGE) =
            (struct flat_page){.pa = plan.pa[i],
                               .mapped = true,
                               .kind = (uint8_t)to.kind,
                               .peer = (uint8_t)to.peer,
                               .flags = (uint8_t)flags,
                               .log2 = (uint8_t)flat_bit(f, d),
                               .fragment = (uint8_t)fragment};
  }
  return needs;
}
