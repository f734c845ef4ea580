/* SPDX-License-Identifier: ISC */
/*
 * cubin_fuzz: bytes as a cubin. Whatever they are:
 *   - a refusal has a reason that names its cause, and leaves the result as it
 *     was
 *   - what is accepted has its kernels and their banks inside the image
 *   - every byte of the image is written, its tail with zeros
 *   - nothing outside the file or the image is touched (ASan)
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "core/cubin/cubin.h"

#define BASE UINT64_C(0x710000000)

/* Images up to here are laid. */
enum { MOST_IMAGE = 1 << 18 };

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      fprintf(stderr, "cubin_fuzz: %s\n", #condition);                         \
      abort();                                                                 \
    }                                                                          \
  } while (0)

static void check_part(const struct cubin *c, struct cubin_part part) {
  CHECK(part.offset <= c->image_bytes &&
        part.bytes <= c->image_bytes - part.offset);
  CHECK(part.offset % 128 == 0);
}

static void check_kernels(const struct cubin *c) {
  struct cubin_kernel k, found;
  uint32_t at = 0;
  for (int n = 0; n < 64 && cubin_next(c, &at, &k) == 1; n++) {
    check_part(c, k.code);
    for (int i = 0; i < CUBIN_BANKS; i++) {
      check_part(c, k.banks[i]);
    }
    CHECK(cubin_kernel(c, k.name, &found) == 0);
    CHECK(strcmp(found.name, k.name) == 0);
  }
}

static void check_image(const struct cubin *c) {
  if (c->image_bytes > MOST_IMAGE) {
    return;
  }
  unsigned char *one = malloc(c->image_bytes), *two = malloc(c->image_bytes);
  CHECK(one != NULL && two != NULL);
  memset(one, 0x5a, c->image_bytes);
  memset(two, 0xa5, c->image_bytes);
  CHECK(cubin_lay(c, BASE, one) == 0);
  CHECK(cubin_lay(c, BASE, two) == 0);
  CHECK(memcmp(one, two, c->image_bytes) == 0);
  for (size_t at = c->image_bytes - 4096; at < c->image_bytes; at++) {
    CHECK(one[at] == 0);
  }
  free(one);
  free(two);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  struct cubin c, before;
  memset(&c, 0x77, sizeof c);
  memcpy(&before, &c, sizeof c);
  const int r = cubin_parse(data, n, &c);
  if (r != 0) {
    CHECK(r == -RIG_NV_INVALID);
    CHECK(strncmp(rig_nv_why(), "cubin: ", 7) == 0);
    CHECK(memcmp(&c, &before, sizeof c) == 0);
    return 0;
  }
  CHECK(c.image_bytes >= 4096 && c.image_bytes % 4096 == 0);
  CHECK(c.image_bytes <= CUBIN_LIMIT);
  check_kernels(&c);
  check_image(&c);
  return 0;
}
