/* SPDX-License-Identifier: ISC */
#include "tools/rig_nv/content.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/random.h"
#include "tools/rig_nv/tool.h"

enum { MADE = 1 << 20 };

static int read_all(struct content *c, FILE *f) {
  size_t room = 0;
  for (;;) {
    if (c->n == room) {
      room = room ? 2 * room : MADE;
      unsigned char *more = realloc(c->bytes, room);
      if (!more)
        return ENOMEM;
      c->bytes = more;
    }
    size_t got = fread(c->bytes + c->n, 1, room - c->n, f);
    c->n += got;
    if (c->n > CONTENT_MOST)
      return EFBIG;
    if (got == 0)
      return ferror(f) ? errno : 0;
  }
}

int content_read(struct content *c, const char *file) {
  *c = (struct content){0};
  FILE *f = fopen(file, "rb");
  int e = f ? read_all(c, f) : errno;
  if (f)
    fclose(f); /* nothing was written to it */
  if (e == 0)
    return 0;
  content_drop(c);
  tool_failed(file, e == EFBIG ? "it holds more than 64 MiB" : strerror(e));
  return -1;
}

int content_make(struct content *c, uint64_t seed) {
  *c = (struct content){.bytes = malloc(MADE), .n = MADE};
  if (!c->bytes) {
    tool_failed("the bytes to upload", strerror(ENOMEM));
    return -1;
  }
  struct random random = {seed};
  random_bytes(&random, c->bytes, c->n);
  return 0;
}

void content_drop(struct content *c) {
  free(c->bytes);
  *c = (struct content){0};
}
