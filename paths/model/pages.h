/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_PAGES_H
#define PATHS_MODEL_PAGES_H
/*
 * Bytes that launches wrote and that memory does not hold yet: pages by GPU
 * address, and of each which bytes were written.
 *
 *   bucket[hash of at] -> page {at, bytes, written} -> ...
 *
 * One thread at a time: the caller holds the model's lock.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE_BYTES = 4096, PAGE_BUCKETS = 1024 };

struct model_page {
  struct model_page *next;
  uint64_t at;
  uint64_t written[PAGE_BYTES / 64]; /* a bit of each byte */
  uint8_t bytes[PAGE_BYTES];
};

/* All 0 is empty. */
struct model_pages {
  struct model_page **bucket;
  size_t n;
};

/* Writes n bytes at `at`; false where the host lacks memory. */
bool model_pages_write(struct model_pages *, uint64_t at, const void *,
                       uint64_t n);
/* Puts over p, which holds the n bytes at `at`, those that were written. */
void model_pages_over(const struct model_pages *, uint64_t at, void *p,
                      uint64_t n);
/* The first n bytes of the page. */
void model_page_over(const struct model_page *, void *p, uint64_t n);
/* The first byte of the page from byte n on that was written, PAGE_BYTES where
 * there is none. */
unsigned model_page_from(const struct model_page *, unsigned n);
/* Moves `from` over `to`; false where the host lacks memory, with some of it
 * moved. */
bool model_pages_move(struct model_pages *to, struct model_pages *from);
/* Takes a page out, to be freed; NULL where there is none. *from is a bucket
 * to begin at, 0 for the first call of several. */
struct model_page *model_pages_take(struct model_pages *, unsigned *from);
void model_pages_clear(struct model_pages *);

#endif
