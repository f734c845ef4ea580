/* SPDX-License-Identifier: ISC */
#include "paths/path.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/api/why.h"

bool rig_nv_reply_set(struct rig_nv_reply *reply, enum rig_nv_answer is,
                      const char *fmt, ...) {
  /* Apart from the reply: an argument may be its text. */
  char text[sizeof reply->text];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (n < 0)
    text[0] = '\0';
  else if ((size_t)n >= sizeof text)
    memcpy(text + sizeof text - sizeof "...", "...", sizeof "...");
  memcpy(reply->text, text, strlen(text) + 1);
  reply->is = is;
  return is == RIG_NV_OK;
}

static int check(const void *p, size_t len, size_t at, size_t n) {
  if (n != 1 && n != 2 && n != 4 && n != 8)
    return why(RIG_NV_INVALID, "a field of %zu bytes: 1, 2, 4 or 8", n);
  if (at > len || n > len - at)
    return why(RIG_NV_INVALID,
               "the field of %zu bytes at byte %zu ends past the %zu bytes", n,
               at, len);
  if (!p)
    return why(RIG_NV_INVALID, "no parameters: NULL");
  return 0;
}

int rig_nv_params_get(const void *p, size_t len, size_t at, size_t n,
                      uint64_t *x) {
  int r = check(p, len, at, n);
  if (r)
    return r;
  const void *field = (const char *)p + at;
  union {
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    uint64_t b8;
  } u;
  memcpy(&u, field, n);
  *x = n == 1 ? u.b1 : n == 2 ? u.b2 : n == 4 ? u.b4 : u.b8;
  return 0;
}

int rig_nv_params_set(void *p, size_t len, size_t at, size_t n, uint64_t x) {
  int r = check(p, len, at, n);
  if (r)
    return r;
  union {
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    uint64_t b8;
  } u;
  if (n == 1)
    u.b1 = (uint8_t)x;
  else if (n == 2)
    u.b2 = (uint16_t)x;
  else if (n == 4)
    u.b4 = (uint32_t)x;
  else
    u.b8 = x;
  memcpy((char *)p + at, &u, n);
  return 0;
}

int rig_nv_path_close(const struct rig_nv_path *path) {
  return path->close(path->ctx);
}

bool rig_nv_is_gpu(uint32_t vendor, uint32_t class24) {
  const uint32_t nvidia = 0x10de, display = 0x03; /* PCI ID, base class */
  return vendor == nvidia && class24 >> 16 == display;
}
