/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_CONTENT_H
#define TOOLS_RIG_NV_CONTENT_H
/*
 * content: the bytes that run uploads: a file's, or 1 MiB of pseudo-random
 * ones that depend on the seed alone.
 */
#include <stddef.h>
#include <stdint.h>

/* The most of a file: the replay keeps five bytes of host memory for each. */
#define CONTENT_MOST ((size_t)64 << 20)

struct content {
  unsigned char *bytes;
  size_t n;
};

/* 0; or -1, nothing read, the cause told on stderr. */
int content_read(struct content *, const char *file);
int content_make(struct content *, uint64_t seed);
void content_drop(struct content *);
#endif
