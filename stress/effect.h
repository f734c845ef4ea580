/* SPDX-License-Identifier: ISC */
#ifndef STRESS_EFFECT_H
#define STRESS_EFFECT_H
/*
 * effect: what one operation of a submission does to memory, in words that
 * know of no ring, no method and no device. The replay runs effects one after
 * the other; the generator asks them what they touch.
 *
 * A place is a byte of a region of the replay's memory.
 */
#include <stdbool.h>
#include <stdint.h>

struct place {
  unsigned region;
  uint64_t at;
};

enum effect_kind {
  EFFECT_COPY,  /* rows of bytes from src to dst, each byte ^ mask */
  EFFECT_FILL,  /* bytes at dst, each component `unit` low bytes of value */
  EFFECT_STORE, /* the 8 bytes at dst hold value */
  EFFECT_READ   /* the 8 bytes at src are read: an acquire */
};

struct effect {
  enum effect_kind kind;
  unsigned part; /* the part of the submission that does it */
  bool ordered;  /* after all before it in its part, before all after it */
  struct place dst, src;
  uint64_t bytes, rows, dst_pitch, src_pitch;
  unsigned char mask;
  unsigned unit;
  uint64_t value;
};

/* The bytes from the first to the last that it writes, or reads: 0 for none.
 * What lies between rows counts as touched. */
uint64_t effect_writes(const struct effect *);
uint64_t effect_reads(const struct effect *);

/* Whether n bytes at a and m bytes at b have a byte in common. */
bool places_meet(struct place a, uint64_t n, struct place b, uint64_t m);

/* Whether one writes a byte that the other reads or writes. */
bool effects_conflict(const struct effect *, const struct effect *);

/* Whether e writes the byte at p. Where it does, *value is that byte or, for
 * a copy, the byte is *value ^ the one at *from and the answer is
 * EFFECT_BYTE_FROM. */
enum effect_byte { EFFECT_BYTE_NO, EFFECT_BYTE_IS, EFFECT_BYTE_FROM };
enum effect_byte effect_byte(const struct effect *e, struct place p,
                             unsigned char *value, struct place *from);
#endif
