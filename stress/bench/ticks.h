/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BENCH_TICKS_H
#define STRESS_BENCH_TICKS_H
/*
 * Ticks: the processor's counter, the cheapest clock there is, and how long
 * one is by CLOCK_MONOTONIC. x86-64's counts at a constant rate since 2008
 * (CPUID's invariant TSC). Instructions before a reading are done by then;
 * stores may still wait in the store buffer.
 */
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static inline uint64_t ticks(void) {
#if defined(__x86_64__)
  _mm_lfence(); /* RDTSC alone overtakes what comes before it */
  return __rdtsc();
#else
  uint64_t t;
  __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(t));
  return t;
#endif
}

static inline uint64_t clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Nanoseconds a tick, against 50 ms of the clock. */
double ticks_calibrate(void);
/* Ticks between two readings with nothing between them, at the least. */
uint64_t ticks_between(void);

/* n multiplies, each of which needs the one before: a time that no other work
 * of the core shortens, and that no memory takes part in. */
static inline void ticks_multiply(uint64_t n) {
  uint64_t x = n | 1;
  for (uint64_t i = 0; i < n; i++) {
    x *= UINT64_C(0x9e3779b97f4a7c15);
    __asm__ volatile("" : "+r"(x)); /* no closed form */
  }
}

/* How many of them take ns, with ns_a_tick for a clock. */
uint64_t ticks_multiplies(double ns, double ns_a_tick);
/* How long n of them take, in ns. */
double ticks_measure(uint64_t n, double ns_a_tick);
#endif
