/* SPDX-License-Identifier: ISC */
#ifndef CORE_CUBIN_FIXTURE_H
#define CORE_CUBIN_FIXTURE_H
/* A cubin of testdata/, and changes to it; for tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/api/why.h"
#include "core/cubin/cubin.h"

/* Fixtures and images are smaller. */
enum { FIXTURE_MOST = 16384 };

struct fixture {
  size_t n;
  unsigned char bytes[FIXTURE_MOST];
};

static inline void fixture_read(struct fixture *f, const char *name) {
  char path[128];
  snprintf(path, sizeof path, "core/cubin/testdata/%s.cubin", name);
  FILE *file = fopen(path, "rb");
  if (file == NULL) {
    fail_msg("%s cannot be opened", path);
  }
  f->n = fread(f->bytes, 1, sizeof f->bytes, file);
  fclose(file);
  assert_in_range(f->n, 1, sizeof f->bytes - 1);
}

static inline void fixture_put(struct fixture *f, size_t at, size_t n,
                               uint64_t x) {
  assert_true(n <= 8 && at + n <= f->n);
  memcpy(f->bytes + at, &x, n);
}

static inline uint64_t fixture_get(const unsigned char *at, size_t n) {
  uint64_t x = 0;
  memcpy(&x, at, n);
  return x;
}

/* Parses the first n bytes, which end where memory does as far as ASan can
 * tell, and uses the cubin in every way. The result is cubin_parse's, which
 * leaves its own untouched where it fails. */
static inline int fixture_use(const struct fixture *f, size_t n) {
  struct cubin c, before;
  struct cubin_kernel k;
  unsigned char *bytes = malloc(n + (n == 0));
  assert_non_null(bytes);
  memcpy(bytes, f->bytes, n);
  memset(&c, 0xa5, sizeof c);
  memcpy(&before, &c, sizeof c);
  const int r = cubin_parse(bytes, n, &c);
  if (r != 0) {
    assert_int_equal(r, -RIG_NV_INVALID);
    assert_memory_equal(&c, &before, sizeof c);
  } else {
    uint32_t at = 0;
    while (cubin_next(&c, &at, &k) == 1) {
      assert_int_equal(cubin_kernel(&c, k.name, &k), 0);
    }
    if (c.image_bytes <= 1 << 20) {
      unsigned char *image = malloc(c.image_bytes);
      assert_non_null(image);
      assert_int_equal(cubin_lay(&c, 0, image), 0);
      free(image);
    }
  }
  free(bytes);
  return r;
}
#endif
