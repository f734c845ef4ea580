/* SPDX-License-Identifier: ISC */
/*
 * Words written by hand, with the numbers of the class headers as literals,
 * run on the model under several seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "paths/model/testing.h"

#define LO(x) (uint32_t)(uint64_t)(x)
#define HI(x) (uint32_t)((uint64_t)(x) >> 32)
#define COUNT(a) (sizeof(a) / sizeof *(a))
#define RUN(b, i, ...)                                                         \
  do {                                                                         \
    const uint32_t words_[] = {__VA_ARGS__};                                   \
    bench_run(b, i, words_, COUNT(words_));                                    \
  } while (0)
#define SET_COMPUTE(b) 0x20012000, (b)->path->gpu.compute_class
#define SET_COPY(b) 0x20018000, (b)->path->gpu.copy_class
#define ACQUIRE(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x01001003
#define RELEASE(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x01100001
#define STAMP(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x03100001
#define COPY(d, s, n)                                                          \
  0x20048100, HI(s), LO(s), HI(d), LO(d), 0x20018106, (uint32_t)(n),           \
      0x200180c0, 0x00000182
#define COPY_RELEASE(a, v)                                                     \
  0x20048090, HI(a), LO(a), LO(v), HI(v), 0x200180c0, 0x0800000c
#define COPY_STAMP(a, v)                                                       \
  0x20048090, HI(a), LO(a), LO(v), HI(v), 0x200180c0, 0x08000014

#define BIG UINT64_C(0x123456789abcdef0)

static void release(struct bench *b) {
  uint64_t w = bench_word_at(b, 0);
  RUN(b, 0, RELEASE(w, BIG));
  assert_true(bench_wait(bench_word(b, 0), BIG));
  RUN(b, 1, RELEASE(w, BIG + 1));
  assert_true(bench_wait(bench_word(b, 0), BIG + 1));
}

/* What the model's timer is from CLOCK_MONOTONIC, where no option says. */
static uint64_t now(void) {
  struct rig_nv_model_options o;
  struct timespec t;
  rig_nv_model_options_init(&o);
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec +
         (uint64_t)o.timer_ahead;
}

static void stamps(struct bench *b) {
  uint64_t before = now();
  RUN(b, 0, STAMP(bench_word_at(b, 2), 7));
  RUN(b, 1, SET_COPY(b), COPY_STAMP(bench_word_at(b, 4), 8));
  assert_true(bench_wait(bench_word(b, 2), 7));
  assert_true(bench_wait(bench_word(b, 4), 8));
  assert_in_range(*bench_word(b, 3), before, now());
  assert_in_range(*bench_word(b, 5), before, now());
}

static void narrow(struct bench *b) {
  uint64_t w = bench_word_at(b, 0);
  bench_store(bench_word(b, 0), UINT64_MAX);
  RUN(b, 0, 0x20030017, LO(w + 4), HI(w), 9, 0x2001001b, 0x00100001);
  assert_true(bench_wait(bench_word(b, 0), UINT64_C(9) << 32 | 0xffffffff));
}

/* COPY waits for COMPUTE's word, and COMPUTE for COPY's. */
static void acquires(struct bench *b) {
  uint64_t w = bench_word_at(b, 0), v = bench_word_at(b, 1);
  RUN(b, 1, ACQUIRE(w, 5), RELEASE(v, 1));
  RUN(b, 0, RELEASE(w, 4));
  assert_true(bench_wait(bench_word(b, 0), 4));
  bench_sleep_ms(3);
  assert_int_equal(bench_load(bench_word(b, 1)), 0);
  RUN(b, 0, RELEASE(w, 5), ACQUIRE(v, 1), RELEASE(w, 6));
  assert_true(bench_wait(bench_word(b, 0), 6));
  assert_int_equal(bench_load(bench_word(b, 1)), 1);
}

/* A word is reached in circular order, whoever writes it. */
static void circular(struct bench *b) {
  uint64_t w = bench_word_at(b, 0), v = bench_word_at(b, 1);
  bench_store(bench_word(b, 0), UINT64_MAX - 1);
  RUN(b, 0, ACQUIRE(w, 3), RELEASE(v, 1));
  bench_sleep_ms(3);
  assert_int_equal(bench_load(bench_word(b, 1)), 0);
  bench_store(bench_word(b, 0), 4);
  assert_true(bench_wait(bench_word(b, 1), 1));
  RUN(b, 0, ACQUIRE(w, UINT64_MAX), RELEASE(v, 2));
  assert_true(bench_wait(bench_word(b, 1), 2));
}

static void copies(struct bench *b) {
  uint64_t w = bench_word_at(b, 0);
  for (int i = 0; i < 4096; i++)
    *bench_data(b, (uint64_t)i) = (uint8_t)(i * 7 + 1);
  RUN(b, 1, SET_COPY(b),
      COPY(bench_data_at(b, 8192), bench_data_at(b, 0), 4096),
      COPY(bench_data_at(b, 16384 + 1), bench_data_at(b, 8192 + 3), 1001),
      COPY_RELEASE(w, 1));
  assert_true(bench_wait(bench_word(b, 0), 1));
  assert_memory_equal(bench_data(b, 8192), bench_data(b, 0), 4096);
  assert_memory_equal(bench_data(b, 16385), bench_data(b, 3), 1001);
  assert_int_equal(*bench_data(b, 16384), 0);
  assert_int_equal(*bench_data(b, 16385 + 1001), 0);
}

/* 8 rows of 100 bytes, 128 apart, to rows 200 apart. */
static void box(struct bench *b) {
  uint64_t s = bench_data_at(b, 0), d = bench_data_at(b, 4096);
  for (int i = 0; i < 1024; i++)
    *bench_data(b, (uint64_t)i) = (uint8_t)(i | 1);
  RUN(b, 1, SET_COPY(b), 0x20088100, HI(s), LO(s), HI(d), LO(d), 128, 200, 100,
      8, 0x200180c0, 0x00000382, COPY_RELEASE(bench_word_at(b, 0), 1));
  assert_true(bench_wait(bench_word(b, 0), 1));
  for (uint64_t y = 0; y < 8; y++) {
    assert_memory_equal(bench_data(b, 4096 + 200 * y), bench_data(b, 128 * y),
                        100);
    assert_int_equal(*bench_data(b, 4096 + 200 * y + 100), 0);
  }
}

/* Remapped constants: components of 4, 2 and 1 bytes, and rows. */
static void fills(struct bench *b) {
  static const struct {
    uint32_t components, value, n, bytes;
  } t[] = {
      {0x00030004, 0x44332211, 9, 36},
      {0x00010004, 0x44332211, 9, 18},
      {0x00000004, 0x44332211, 9, 9},
      {0x01000065, 0x44332211, 9, 18}, /* X is constant B, Y not written */
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    uint64_t d = bench_data_at(b, 512 * i + 1);
    unsigned size = 1 + (t[i].components >> 16 & 3);
    RUN(b, 1, SET_COPY(b), 0x200281c0, t[i].value, t[i].value, 0x200181c2,
        t[i].components, 0x20028102, HI(d), LO(d), 0x20018106, t[i].n,
        0x200180c0, 0x00000582, COPY_RELEASE(bench_word_at(b, 0), i + 1));
    assert_true(bench_wait(bench_word(b, 0), i + 1));
    for (uint32_t k = 0; k < t[i].bytes; k++) {
      uint8_t want = (uint8_t)(t[i].value >> 8 * (k % size));
      if (t[i].components >> 24)
        want = k % 2 ? 0 : 0x11;
      assert_int_equal(*bench_data(b, 512 * i + 1 + k), want);
    }
    assert_int_equal(*bench_data(b, 512 * i), 0);
    assert_int_equal(*bench_data(b, 512 * i + 1 + t[i].bytes), 0);
  }
}

/* A fill of rows leaves what lies between them. */
static void fill_rows(struct bench *b) {
  uint64_t d = bench_data_at(b, 0);
  RUN(b, 1, SET_COPY(b), 0x200181c0, 0xab, 0x200181c2, 0x00000004, 0x20028102,
      HI(d), LO(d), 0x20038105, 64, 10, 4, 0x200180c0, 0x00000782,
      COPY_RELEASE(bench_word_at(b, 0), 1));
  assert_true(bench_wait(bench_word(b, 0), 1));
  for (uint64_t k = 0; k < 512; k++)
    assert_int_equal(*bench_data(b, k), k < 256 && k % 64 < 10 ? 0xab : 0);
}

/* Device memory is written and read by copies alone. */
static void device_memory(struct bench *b) {
  const struct rig_nv_path *p = b->path;
  struct rig_nv_reply reply;
  struct rig_nv_memory m;
  const uint64_t n = UINT64_C(3) << 20;
  assert_true(p->alloc(p->ctx, RIG_DEVICE, n, 0, &m, &reply));
  memset(bench_data(b, 0), 0x5a, 4096);
  RUN(b, 1, SET_COPY(b), COPY(m.address + n - 4096, bench_data_at(b, 0), 4096),
      COPY(m.address, m.address + n / 2, n / 2),
      COPY(bench_data_at(b, 8192), m.address + n / 2 - 4096, 4096),
      COPY_RELEASE(bench_word_at(b, 0), 1));
  assert_true(bench_wait(bench_word(b, 0), 1));
  assert_memory_equal(bench_data(b, 8192), bench_data(b, 0), 4096);
  assert_true(p->free(p->ctx, &m, &reply));
}

static void compute_state(struct bench *b) {
  uint64_t w = bench_word_at(b, 8);
  RUN(b, 0, SET_COMPUTE(b), 0x200220a8, 0xff, 0, 0x200221ec, 0xfe, 0,
      0x200221e4, 0x70, 0, 0x200320b9, 0, 0x8000, 0xff, 0x200125a6, 0x1011,
      0x20012044, 0, 0x20010008, 0, RELEASE(w, 1));
  assert_true(bench_wait(bench_word(b, 8), 1));
  struct model_counts n;
  model_counts(b->path, &n);
  assert_int_equal(n.interrupts, 1);
}

/* Other headers: non-incrementing, immediate, increment once, and no-ops. */
static void headers(struct bench *b) {
  uint64_t w = bench_word_at(b, 0);
  RUN(b, 0, 0, 0x60020019, 5, 6, 0x8000001a, 0xa0030017, LO(w + 8), 7, HI(w),
      0x20010017, LO(w), 0x2001001b, 0x01000001);
  assert_true(bench_wait(bench_word(b, 0), 6));
}

/* More submissions than the ring has entries, in halves of both channels. */
static void laps(struct bench *b) {
  uint64_t w = bench_word_at(b, 0);
  for (uint64_t v = 1; v <= 5 * BENCH_ENTRIES; v++) {
    RUN(b, v % 2 ? 0 : 1, ACQUIRE(w, v - 1), RELEASE(w, v));
    if (v % 7 == 0)
      assert_true(bench_wait(bench_word(b, 0), v));
  }
  assert_true(bench_wait(bench_word(b, 0), 5 * BENCH_ENTRIES));
}

/* Nothing runs while the engine is held. */
static void stalls(struct bench *b) {
  model_stall(b->path, true);
  RUN(b, 0, RELEASE(bench_word_at(b, 0), 1));
  bench_sleep_ms(5);
  assert_int_equal(bench_load(bench_word(b, 0)), 0);
  model_stall(b->path, false);
  assert_true(bench_wait(bench_word(b, 0), 1));
}

static const struct {
  const char *name;
  void (*run)(struct bench *);
} cases[] = {
    {"release", release},
    {"stamps", stamps},
    {"narrow", narrow},
    {"acquires", acquires},
    {"circular", circular},
    {"copies", copies},
    {"box", box},
    {"fills", fills},
    {"fill rows", fill_rows},
    {"device memory", device_memory},
    {"compute", compute_state},
    {"headers", headers},
    {"laps", laps},
    {"stalls", stalls},
};

static void runs(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++)
    for (size_t i = 0; i < COUNT(cases); i++) {
      struct rig_nv_model_options o;
      struct rig_nv_reply reply;
      struct bench b;
      rig_nv_model_options_init(&o);
      o.seed = seed;
      o.personality = seed % 2 ? RIG_NV_LIKE_KERNEL : RIG_NV_LIKE_PCI;
      bench_open(&b, &o);
      cases[i].run(&b);
      if (!b.path->check(b.path->ctx, &reply))
        fail_msg("%s: %s", cases[i].name, reply.text);
      bench_close(&b);
    }
}

/* Each GPU's classes run the same words. */
static void classes(void **state) {
  (void)state;
  static const struct {
    uint32_t channel, compute, copy;
    int release;
  } t[] = {{0xc56f, 0xc7c0, 0xc7b5, 570},
           {0xc56f, 0xc9c0, 0xc7b5, 580},
           {0xc86f, 0xcbc0, 0xc8b5, 610},
           {0xc96f, 0xcdc0, 0xc9b5, 580},
           {0xca6f, 0xcec0, 0xcab5, 610}};
  for (size_t i = 0; i < COUNT(t); i++) {
    struct rig_nv_model_options o;
    struct bench b;
    rig_nv_model_options_init(&o);
    o.gpu.channel_class = t[i].channel;
    o.gpu.compute_class = t[i].compute;
    o.gpu.copy_class = t[i].copy;
    o.release = t[i].release;
    bench_open(&b, &o);
    copies(&b);
    compute_state(&b);
    bench_close(&b);
  }
}

/* Whether word C was seen while the 8 bytes at word B were still to come. The
 * engine is held for each look, so that both are looked at together. */
static bool stale(struct bench *b) {
  for (int i = 0; i < 20000; i++) {
    bench_sleep_ms(0); /* lets the engine in */
    model_stall(b->path, true);
    uint64_t c = *bench_word(b, 2), copied = *bench_word(b, 1);
    model_stall(b->path, false);
    if (c)
      return !copied;
  }
  fail_msg("no release came");
  return false;
}

/* A release says that copies are done only where it asks for that. A: words
 * of the release, behind an 8 MiB copy and one of 8 bytes from A to B. */
static void orders(void **state) {
  (void)state;
  enum { MOST_SEEDS = 40 };
  static const struct {
    const char *name;
    bool late;       /* whether some seed shows the word before the copy */
    uint32_t method; /* 0 for the host's release, else LAUNCH_DMA's argument */
    uint32_t execute;
    bool wfi;
  } t[] = {
      {"host release", true, 0, 0x01000001, false},
      {"host release, WFI", false, 0, 0x01100001, false},
      {"WFI, host release", false, 0, 0x01000001, true},
      {"copy release", false, 0x0800000c, 0, false},
      {"copy release, no flush", true, 0x08000008, 0, false},
      {"copy release, GL flush", true, 0x0a00000c, 0, false},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    bool late = false;
    for (uint64_t seed = 1; seed <= MOST_SEEDS && !late; seed++) {
      struct rig_nv_model_options o;
      struct rig_nv_memory m;
      struct rig_nv_reply r;
      struct bench b;
      rig_nv_model_options_init(&o);
      o.seed = seed;
      bench_open(&b, &o);
      const struct rig_nv_path *p = b.path;
      assert_true(p->alloc(p->ctx, RIG_DEVICE, 16u << 20, 0, &m, &r));
      uint64_t to = bench_word_at(&b, 1), c = bench_word_at(&b, 2);
      bench_store(bench_word(&b, 0), 1);
      bench_store(bench_word(&b, 1), 0);
      const uint32_t copies_[] = {
          SET_COPY(&b), COPY(m.address, m.address + (8u << 20), 8u << 20),
          COPY(to, bench_word_at(&b, 0), 8)};
      bench_push(&b, 1, copies_, COUNT(copies_));
      const uint32_t wfi[] = {0x2001001e, 0};
      if (t[i].wfi)
        bench_push(&b, 1, wfi, COUNT(wfi));
      const uint32_t host[] = {0x20050017, LO(c), HI(c), 1, 0, t[i].execute};
      const uint32_t copy[] = {0x20048090, HI(c),      LO(c),      1,
                               0,          0x200180c0, t[i].method};
      if (t[i].method)
        bench_run(&b, 1, copy, COUNT(copy));
      else
        bench_run(&b, 1, host, COUNT(host));
      late |= stale(&b);
      assert_true(p->free(p->ctx, &m, &r));
      bench_close(&b);
    }
    if (late != t[i].late)
      fail_msg("%s: %s", t[i].name, late ? "before the copy" : "never early");
  }
}

/* Some seeds look at GP_PUT with no doorbell, and some do not. */
static void bells(void **state) {
  (void)state;
  unsigned looked = 0;
  enum { SEEDS = 12 };
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    struct rig_nv_model_options o;
    struct bench b;
    rig_nv_model_options_init(&o);
    o.seed = seed;
    bench_open(&b, &o);
    uint64_t w = bench_word_at(&b, 0);
    const uint32_t words[] = {RELEASE(w, 1)};
    bench_push(&b, 0, words, COUNT(words));
    bench_put(&b, 0);
    bench_sleep_ms(5);
    looked += bench_load(bench_word(&b, 0)) == 1;
    bench_ring(&b, 0);
    assert_true(bench_wait(bench_word(&b, 0), 1));
    bench_close(&b);
  }
  assert_in_range(looked, 1, SEEDS - 1);
}

/* The n-th copy writes nothing, and its release comes all the same. */
static void drops(void **state) {
  (void)state;
  for (uint64_t n = 1; n <= 3; n++) {
    struct rig_nv_model_options o;
    struct bench b;
    rig_nv_model_options_init(&o);
    o.drop_copy = n;
    bench_open(&b, &o);
    memset(bench_data(&b, 0), 1, 64);
    RUN(&b, 1, SET_COPY(&b),
        COPY(bench_data_at(&b, 64), bench_data_at(&b, 0), 8),
        COPY(bench_data_at(&b, 128), bench_data_at(&b, 0), 8),
        COPY_RELEASE(bench_word_at(&b, 0), 1),
        COPY(bench_data_at(&b, 192), bench_data_at(&b, 0), 8),
        COPY_RELEASE(bench_word_at(&b, 0), 2));
    assert_true(bench_wait(bench_word(&b, 0), 2));
    for (uint64_t i = 1; i <= 3; i++)
      assert_int_equal(*bench_data(&b, 64 * i), i != n);
    bench_close(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs),  cmocka_unit_test(classes),
      cmocka_unit_test(drops), cmocka_unit_test(orders),
      cmocka_unit_test(bells),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
