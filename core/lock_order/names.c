/* SPDX-License-Identifier: ISC */
#include "core/lock_order/names.h"

#include <string.h>

enum {
  BYTES = 1 << 17,
  NAMES = 1 << 12,    /* number 0 is "?" */
  BUCKETS = 2 * NAMES /* a power of two, never full */
};

static char bytes[BYTES] = "?";
static uint32_t used = 2; /* of the bytes */
static uint32_t at[NAMES];
static uint16_t names = 1;
static uint16_t bucket[BUCKETS]; /* 0: free */

static uint32_t hash(const char *s) {
  uint32_t h = 2166136261u; /* FNV-1a */
  for (; *s; s++)
    h = (h ^ (unsigned char)*s) * 16777619u;
  return h;
}

uint16_t names_id(const char *s) {
  if (!s)
    return 0;
  uint32_t b = hash(s) % BUCKETS;
  for (; bucket[b]; b = (b + 1) % BUCKETS)
    if (strcmp(bytes + at[bucket[b]], s) == 0)
      return bucket[b];
  size_t n = strlen(s) + 1;
  if (names == NAMES || n > BYTES - used)
    return 0;
  memcpy(bytes + used, s, n);
  at[names] = used;
  used += (uint32_t)n;
  bucket[b] = names;
  return names++;
}

const char *names_text(uint16_t id) { return bytes + at[id]; }
