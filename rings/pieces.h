/* SPDX-License-Identifier: ISC */
#ifndef RINGS_PIECES_H
#define RINGS_PIECES_H
/*
 * Copies and fills as the copy engine's launches: how a part is cut, and into
 * how many. Arithmetic alone, in closed form: a part may ask for more rows
 * and bytes than any loop ends over.
 *
 *   a box    rows of a copy that hold at most 2 GiB and lie less than 2^32
 *            bytes apart: one launch for each 2^32 - 1 rows
 *   lines    any other copy: one launch for each 2 GiB of each row
 *   a fill   each row by itself: bytes up to the first multiple of 4, four-byte
 *            components 2 GiB at a time, bytes for the rest
 *
 *     dst        first multiple of 4                          dst + n
 *      |  head    |  middle / 4 components                |  tail |
 *      | 0..3     | ...                                   | 0..3  |
 */
#include <stdbool.h>
#include <stdint.h>

#include "core/api/rig_nv.h"

#define PIECE_MOST_ROWS UINT32_MAX
#define PIECE_MOST_COMPONENTS (RIG_NV_MAX_COPY / 4)

/* Counts stop here: more than any ring holds, and a sum of two is no less. */
#define PIECE_ENDLESS (UINT64_C(1) << 62)

static inline uint64_t piece_sum(uint64_t a, uint64_t b) {
  return a + b < PIECE_ENDLESS ? a + b : PIECE_ENDLESS;
}

static inline uint64_t piece_product(uint64_t a, uint64_t b) {
  uint64_t x;
  return __builtin_mul_overflow(a, b, &x) || x > PIECE_ENDLESS ? PIECE_ENDLESS
                                                               : x;
}

/* a / b, rounded up; b > 0. */
static inline uint64_t piece_divide(uint64_t a, uint64_t b) {
  return a / b + (a % b != 0);
}

static inline uint64_t piece_rows(uint64_t rows) { return rows ? rows : 1; }

static inline bool piece_boxed(const struct rig_copy *c) {
  return c->rows > 1 && c->bytes <= RIG_NV_MAX_COPY &&
         c->dst_pitch <= UINT32_MAX && c->src_pitch <= UINT32_MAX;
}

/* Launches of a copy of one byte or more. */
static inline uint64_t piece_copies(const struct rig_copy *c) {
  uint64_t rows = piece_rows(c->rows);
  if (piece_boxed(c))
    return piece_divide(rows, PIECE_MOST_ROWS);
  return piece_product(rows, piece_divide(c->bytes, RIG_NV_MAX_COPY));
}

/* One row of a fill. */
struct piece_fill {
  uint32_t head, tail;
  uint64_t components;
};

static inline struct piece_fill piece_fill_row(uint64_t dst, uint64_t bytes) {
  struct piece_fill f;
  f.head = (uint32_t)(-dst & 3);
  if (f.head > bytes)
    f.head = (uint32_t)bytes;
  f.components = (bytes - f.head) / 4;
  f.tail = (uint32_t)((bytes - f.head) % 4);
  return f;
}

/* Launches of a fill of one byte or more. Rows are cut alike where they lie
 * alike to a multiple of 4, which recurs every four rows. */
static inline uint64_t piece_fills(const struct rig_fill *p) {
  uint64_t rows = piece_rows(p->rows), n = 0;
  for (uint64_t i = 0; i < 4 && i < rows; i++) {
    struct piece_fill f =
        piece_fill_row(p->dst + p->dst_offset + i * p->dst_pitch, p->bytes);
    uint64_t alike = (rows - i - 1) / 4 + 1;
    uint64_t launches = (f.head != 0) +
                        piece_divide(f.components, PIECE_MOST_COMPONENTS) +
                        (f.tail != 0);
    n = piece_sum(n, piece_product(alike, launches));
  }
  return n;
}
#endif
