/* SPDX-License-Identifier: ISC */
/*
 * Threads that allocate, map and free beside a thread that submits: the work
 * stays whole, and everything is given back. And how fast releases come.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "paths/model/testing.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

enum { PAGE = 4096, LAPS = 200, VALUES = 200 };

static struct bench b;

static void *allocate(void *arg) {
  const struct rig_nv_path *p = b.path;
  uint64_t bad = 0;
  for (uint64_t i = 0; i < LAPS; i++) {
    struct rig_nv_memory m;
    struct rig_nv_reply r;
    enum rig_mapping mapping;
    if (i % 4 == 3) {
      bad += !p->map_host(p->ctx, arg, PAGE * (1 + i % 3), &mapping, &m, &r) &&
             mapping != RIG_NEVER_MAPS; /* in part, beside the other thread's */
      if (!r.text[0])
        bad += !p->free(p->ctx, &m, &r);
      continue;
    }
    bad += !p->alloc(p->ctx, (enum rig_memory)(i % 3), 8 + 1000 * i, 0, &m, &r);
    bad += !p->check(p->ctx, &r);
    bad += !p->free(p->ctx, &m, &r);
  }
  return (void *)(uintptr_t)bad;
}

/* Each value copies 16 bytes from the last value's place to its own. */
static void submits(uint64_t seed) {
  uint64_t w = bench_word_at(&b, 0);
  uint64_t x = UINT64_C(0x0123456789abcdef) * seed;
  memcpy(bench_data(&b, 0), &x, 8);
  for (uint64_t v = 1; v <= VALUES; v++) {
    uint64_t s = bench_data_at(&b, 8 * (v - 1)), d = s + 8;
    const uint32_t copy[] = {0x20050017,
                             (uint32_t)w,
                             (uint32_t)(w >> 32),
                             (uint32_t)(v - 1),
                             0,
                             0x01001003,
                             0x20018000,
                             0xc8b5,
                             0x20048100,
                             (uint32_t)(s >> 32),
                             (uint32_t)s,
                             (uint32_t)(d >> 32),
                             (uint32_t)d,
                             0x20018106,
                             8,
                             0x200180c0,
                             0x182,
                             0x20048090,
                             (uint32_t)(w >> 32),
                             (uint32_t)w,
                             (uint32_t)v,
                             0,
                             0x200180c0,
                             0x0800000c};
    const uint32_t release[] = {
        0x20050017,        (uint32_t)w, (uint32_t)(w >> 32),
        (uint32_t)(v - 1), 0,           0x01001003,
        0x20050017,        (uint32_t)w, (uint32_t)(w >> 32),
        (uint32_t)v,       0,           0x01100001};
    if (v > BENCH_ENTRIES / 2)
      while (bench_load(bench_word(&b, 0)) < v - BENCH_ENTRIES / 2)
        bench_sleep_ms(0);
    if (v % 5 == 0) {
      memcpy(bench_data(&b, 8 * v), &x, 8);
      bench_run(&b, 0, release, COUNT(release));
    } else
      bench_run(&b, 1, copy, COUNT(copy));
  }
  assert_true(bench_wait(bench_word(&b, 0), VALUES));
  for (uint64_t v = 1; v <= VALUES; v++)
    assert_memory_equal(bench_data(&b, 8 * v), &x, 8);
}

static void beside(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    struct rig_nv_model_options o;
    pthread_t t[2];
    char *pages = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    rig_nv_model_options_init(&o);
    o.seed = seed;
    bench_open(&b, &o);
    for (size_t i = 0; i < COUNT(t); i++)
      assert_int_equal(pthread_create(&t[i], NULL, allocate, pages + i * PAGE),
                       0);
    submits(seed);
    for (size_t i = 0; i < COUNT(t); i++) {
      void *bad;
      assert_int_equal(pthread_join(t[i], &bad), 0);
      assert_int_equal((uintptr_t)bad, 0);
    }
    bench_close(&b);
    munmap(pages, 8 * PAGE);
  }
}

/* An idle engine sleeps: the process takes little time. */
static void idles(void **state) {
  (void)state;
  struct timespec before, after;
  bench_open(&b, NULL);
  bench_sleep_ms(100); /* past the short naps */
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
  bench_sleep_ms(200);
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
  double ms = (double)(after.tv_sec - before.tv_sec) * 1e3 +
              (double)(after.tv_nsec - before.tv_nsec) / 1e6;
  if (ms > 50)
    fail_msg("an idle engine ran for %.1f ms of 200", ms);
  bench_close(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(beside),
      cmocka_unit_test(idles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
