/* SPDX-License-Identifier: ISC */
#include "paths/model/pages.h"

#include <stdlib.h>
#include <string.h>

static unsigned hash(uint64_t at) {
  return (unsigned)(at / PAGE_BYTES) % PAGE_BUCKETS;
}

static struct model_page *find(const struct model_pages *p, uint64_t at) {
  struct model_page *page = p->n ? p->bucket[hash(at)] : NULL;
  while (page && page->at != at)
    page = page->next;
  return page;
}

static bool add(struct model_pages *p, struct model_page *page) {
  if (!p->bucket)
    p->bucket = calloc(PAGE_BUCKETS, sizeof *p->bucket);
  if (!p->bucket)
    return false;
  page->next = p->bucket[hash(page->at)];
  p->bucket[hash(page->at)] = page;
  p->n++;
  return true;
}

static struct model_page *get(struct model_pages *p, uint64_t at) {
  struct model_page *page = find(p, at);
  if (page || !(page = malloc(sizeof *page)))
    return page;
  page->at = at;
  memset(page->written, 0, sizeof page->written);
  if (add(p, page))
    return page;
  free(page);
  return NULL;
}

/* Bits [from, to) of a word, as far as they are in it. */
static uint64_t mask(unsigned from, unsigned to) {
  uint64_t low = ~UINT64_C(0) << from;
  return to < 64 ? low & ((UINT64_C(1) << to) - 1) : low;
}

bool model_pages_write(struct model_pages *p, uint64_t at, const void *from,
                       uint64_t n) {
  const uint8_t *src = from;
  while (n) {
    unsigned i = (unsigned)(at % PAGE_BYTES);
    unsigned end = n < PAGE_BYTES - i ? i + (unsigned)n : PAGE_BYTES;
    struct model_page *page = get(p, at - i);
    if (!page)
      return false;
    memcpy(page->bytes + i, src, end - i);
    src += end - i;
    at += end - i;
    n -= end - i;
    for (unsigned w = i / 64; i < end; w++, i = w * 64)
      page->written[w] |= mask(i % 64, end - w * 64);
  }
  return true;
}

/* Bytes [from, to) of the page that were written, to p, which holds from. */
static void over(const struct model_page *page, unsigned from, unsigned to,
                 uint8_t *p) {
  for (unsigned w = from / 64, i = from; i < to; w++, i = w * 64) {
    unsigned end = to < w * 64 + 64 ? to : w * 64 + 64;
    uint64_t bits = page->written[w];
    if (!~bits)
      memcpy(p + (i - from), page->bytes + i, end - i);
    for (unsigned b = i; bits && ~bits && b < end; b++)
      if (bits >> b % 64 & 1)
        p[b - from] = page->bytes[b];
  }
}

void model_pages_over(const struct model_pages *p, uint64_t at, void *to,
                      uint64_t n) {
  uint8_t *dst = to;
  while (p->n && n) {
    unsigned i = (unsigned)(at % PAGE_BYTES);
    unsigned end = n < PAGE_BYTES - i ? i + (unsigned)n : PAGE_BYTES;
    const struct model_page *page = find(p, at - i);
    if (page)
      over(page, i, end, dst);
    dst += end - i;
    at += end - i;
    n -= end - i;
  }
}

void model_page_over(const struct model_page *page, void *p, uint64_t n) {
  over(page, 0, n < PAGE_BYTES ? (unsigned)n : PAGE_BYTES, p);
}

unsigned model_page_from(const struct model_page *page, unsigned n) {
  while (n < PAGE_BYTES && !(page->written[n / 64] >> n % 64 & 1))
    n++;
  return n;
}

struct model_page *model_pages_take(struct model_pages *p, unsigned *from) {
  while (p->n && *from < PAGE_BUCKETS && !p->bucket[*from])
    ++*from;
  if (!p->n || *from == PAGE_BUCKETS)
    return NULL;
  struct model_page *page = p->bucket[*from];
  p->bucket[*from] = page->next;
  p->n--;
  return page;
}

bool model_pages_move(struct model_pages *to, struct model_pages *from) {
  unsigned at = 0;
  for (struct model_page *page; (page = model_pages_take(from, &at));) {
    struct model_page *old = find(to, page->at);
    bool ok = true;
    if (old) {
      over(page, 0, PAGE_BYTES, old->bytes);
      for (unsigned w = 0; w < PAGE_BYTES / 64; w++)
        old->written[w] |= page->written[w];
    } else
      ok = add(to, page);
    if (old || !ok)
      free(page);
    if (!ok)
      return false;
  }
  return true;
}

void model_pages_clear(struct model_pages *p) {
  unsigned from = 0;
  for (struct model_page *page; (page = model_pages_take(p, &from));)
    free(page);
  free(p->bucket);
  *p = (struct model_pages){0};
}
