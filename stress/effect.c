/* SPDX-License-Identifier: ISC */
#include "stress/effect.h"

static uint64_t hull(uint64_t bytes, uint64_t rows, uint64_t pitch) {
  return bytes && rows ? (rows - 1) * pitch + bytes : 0;
}

uint64_t effect_writes(const struct effect *e) {
  switch (e->kind) {
  case EFFECT_COPY:
    return hull(e->bytes, e->rows, e->dst_pitch);
  case EFFECT_FILL:
    return e->bytes;
  case EFFECT_STORE:
    return sizeof(uint64_t);
  case EFFECT_READ:
    break;
  }
  return 0;
}

uint64_t effect_reads(const struct effect *e) {
  if (e->kind == EFFECT_COPY)
    return hull(e->bytes, e->rows, e->src_pitch);
  return e->kind == EFFECT_READ ? sizeof(uint64_t) : 0;
}

bool places_meet(struct place a, uint64_t n, struct place b, uint64_t m) {
  return a.region == b.region && n && m && a.at < b.at + m && b.at < a.at + n;
}

bool effects_conflict(const struct effect *a, const struct effect *b) {
  uint64_t aw = effect_writes(a), ar = effect_reads(a);
  uint64_t bw = effect_writes(b), br = effect_reads(b);
  return places_meet(a->dst, aw, b->dst, bw) ||
         places_meet(a->dst, aw, b->src, br) ||
         places_meet(a->src, ar, b->dst, bw);
}

enum effect_byte effect_byte(const struct effect *e, struct place p,
                             unsigned char *value, struct place *from) {
  uint64_t n = effect_writes(e), i = p.at - e->dst.at;
  if (p.region != e->dst.region || p.at < e->dst.at || i >= n)
    return EFFECT_BYTE_NO;
  if (e->kind == EFFECT_COPY) {
    uint64_t row = e->rows > 1 ? i / e->dst_pitch : 0;
    uint64_t column = i - row * e->dst_pitch;
    if (column >= e->bytes)
      return EFFECT_BYTE_NO;
    *value = e->mask;
    from->region = e->src.region;
    from->at = e->src.at + row * e->src_pitch + column;
    return EFFECT_BYTE_FROM;
  }
  unsigned unit = e->kind == EFFECT_STORE ? sizeof(uint64_t) : e->unit;
  *value = (unsigned char)(e->value >> (8 * (i % unit)));
  return EFFECT_BYTE_IS;
}
