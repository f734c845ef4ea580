/* SPDX-License-Identifier: ISC */
#ifndef STRESS_RANDOM_H
#define STRESS_RANDOM_H
/*
 * random: a small generator of numbers, the same ones on every machine for
 * one seed. SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
 * number generators", OOPSLA 2014). One thread at a time a generator.
 */
#include <stdbool.h>
#include <stdint.h>

struct random {
  uint64_t state;
};

static inline uint64_t random_next(struct random *r) {
  uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* A number below n; 0 for n 0. The bias of the remainder matters to nobody
 * here. */
static inline uint64_t random_below(struct random *r, uint64_t n) {
  return n ? random_next(r) % n : 0;
}

/* A number of [low, high]. */
static inline uint64_t random_in(struct random *r, uint64_t low,
                                 uint64_t high) {
  return low + random_below(r, high - low + 1);
}

/* True once in n on average. */
static inline bool random_one_in(struct random *r, uint64_t n) {
  return random_below(r, n) == 0;
}

/* A number of [0, most]: the small ones come far more often. */
static inline uint64_t random_small(struct random *r, uint64_t most) {
  int bits = 0;
  while (bits < 63 && most >> bits)
    bits++;
  uint64_t n = random_below(r, UINT64_C(1) << random_in(r, 0, (uint64_t)bits));
  return n < most ? n : most;
}

void random_bytes(struct random *, void *to, uint64_t n);
#endif
