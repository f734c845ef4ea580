/* SPDX-License-Identifier: ISC */
/*
 * page_table_fuzz: bytes as operations on page tables, judged by
 * paths/pci/flat.h. The first bytes choose the format, the pools and the base;
 * each number that an operation draws is the next one to eight bytes.
 */
#include <stdint.h>

#include "paths/pci/flat.h"

enum { MOST_OPS = 150, CHECK_EVERY = 64 };

struct bytes {
  const uint8_t *at;
  size_t n;
};

/* A number below `below`, of as few bytes as hold it; 0 past the end. */
static uint64_t from_bytes(void *ctx, uint64_t below) {
  struct bytes *b = ctx;
  uint64_t x = 0;
  for (uint64_t left = below - 1; left != 0 && b->n != 0; left >>= 8) {
    x = x << 8 | *b->at++;
    b->n--;
  }
  return x % below;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  static struct flat f;
  static const uint64_t boots[] = {4, 24, 300};
  struct bytes b = {data, n};
  struct flat_options o = {0};
  o.format = (enum flat_format)from_bytes(&b, FLAT_FORMATS);
  o.tables = from_bytes(&b, 2) ? PAGE_TABLES_MAIN : PAGE_TABLES_POOL;
  o.boot_pages = boots[from_bytes(&b, 3)];
  o.memory_pages = o.boot_pages + 256 + 20 + from_bytes(&b, 256);
  o.base_high = from_bytes(&b, 2) != 0;
  o.no_huge = true;
  flat_init(&f, o, from_bytes, &b);
  for (int i = 1; i <= MOST_OPS && b.n != 0; i++) {
    flat_op(&f);
    if (i % CHECK_EVERY == 0)
      flat_check(&f);
  }
  flat_fini(&f);
  return 0;
}
