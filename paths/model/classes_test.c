/* SPDX-License-Identifier: ISC */
/*
 * Every generation that the tables know runs the words that every generation
 * has, and takes the bits of addresses that its class header publishes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "paths/model/testing.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define LO(x) (uint32_t)(uint64_t)(x)
#define HI(x) (uint32_t)((uint64_t)(x) >> 32)
#define RUN(b, i, ...)                                                         \
  do {                                                                         \
    const uint32_t words_[] = {__VA_ARGS__};                                   \
    bench_run(b, i, words_, COUNT(words_));                                    \
  } while (0)
#define SET_COPY(b) 0x20018000, (b)->path->gpu.copy_class
#define ACQUIRE(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x01001003
#define RELEASE(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x01100001
#define COPY_RELEASE(a, v)                                                     \
  0x20048090, HI(a), LO(a), LO(v), HI(v), 0x200180c0, 0x0800000c

static const struct generation {
  const char *name;
  uint32_t channel, compute, copy;
  int release;
} generations[] = {
    {"sm_86", 0xc56f, 0xc7c0, 0xc7b5, 570},
    {"sm_86, host B", 0xc76f, 0xc7c0, 0xc7b5, 580},
    {"sm_89", 0xc56f, 0xc9c0, 0xc7b5, 580},
    {"sm_90", 0xc86f, 0xcbc0, 0xc8b5, 580},
    {"sm_100", 0xc96f, 0xcdc0, 0xc9b5, 610},
    {"sm_120", 0xca6f, 0xcec0, 0xcab5, 610},
};

static void open_on(struct bench *b, const struct generation *g) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.gpu.channel_class = g->channel;
  o.gpu.compute_class = g->compute;
  o.gpu.copy_class = g->copy;
  o.release = g->release;
  bench_open(b, &o);
}

/* COPY waits for COMPUTE's release. */
static bool acquire(struct bench *b) {
  uint64_t w = bench_word_at(b, 0), v = bench_word_at(b, 1);
  RUN(b, 1, ACQUIRE(w, 5), RELEASE(v, 1));
  RUN(b, 0, 0x20012000, b->path->gpu.compute_class, RELEASE(w, 5));
  return bench_wait(bench_word(b, 1), 1);
}

static bool copy(struct bench *b) {
  uint64_t s = bench_data_at(b, 1), d = bench_data_at(b, 4096);
  memset(bench_data(b, 1), 0x5b, 100);
  RUN(b, 1, SET_COPY(b), 0x20048100, HI(s), LO(s), HI(d), LO(d), 0x20018106,
      100, 0x200180c0, 0x00000182, COPY_RELEASE(bench_word_at(b, 0), 1));
  return bench_wait(bench_word(b, 0), 1) &&
         !memcmp(bench_data(b, 1), bench_data(b, 4096), 100) &&
         !*bench_data(b, 4196);
}

/* 3 rows of 20 bytes, 32 apart, to rows 64 apart. */
static bool box(struct bench *b) {
  uint64_t s = bench_data_at(b, 0), d = bench_data_at(b, 4096);
  for (uint64_t i = 0; i < 96; i++)
    *bench_data(b, i) = (uint8_t)(i + 1);
  RUN(b, 1, SET_COPY(b), 0x20088100, HI(s), LO(s), HI(d), LO(d), 32, 64, 20, 3,
      0x200180c0, 0x00000382, COPY_RELEASE(bench_word_at(b, 0), 1));
  bool ok = bench_wait(bench_word(b, 0), 1);
  for (uint64_t y = 0; y < 3; y++)
    ok &= !memcmp(bench_data(b, 32 * y), bench_data(b, 4096 + 64 * y), 20) &&
          !*bench_data(b, 4096 + 64 * y + 20);
  return ok;
}

static bool fill(struct bench *b) {
  uint64_t d = bench_data_at(b, 64);
  RUN(b, 1, SET_COPY(b), 0x200181c0, 0x44332211, 0x200181c2, 0x00030004,
      0x20028102, HI(d), LO(d), 0x20018106, 2, 0x200180c0, 0x00000582,
      COPY_RELEASE(bench_word_at(b, 0), 1));
  return bench_wait(bench_word(b, 0), 1) &&
         !memcmp(bench_data(b, 63), "\0\x11\x22\x33\x44\x11\x22\x33\x44\0", 10);
}

static const struct {
  const char *name;
  bool (*run)(struct bench *);
} operations[] = {
    {"acquire", acquire}, {"copy", copy}, {"box", box}, {"fill", fill}};

static void runs(void **state) {
  (void)state;
  for (size_t g = 0; g < COUNT(generations); g++)
    for (size_t i = 0; i < COUNT(operations); i++) {
      struct rig_nv_reply r;
      struct bench b;
      open_on(&b, &generations[g]);
      if (!operations[i].run(&b)) {
        b.path->check(b.path->ctx, &r);
        fail_msg("%s: %s: %s", generations[g].name, operations[i].name, r.text);
      }
      bench_close(&b);
    }
}

/* The highest bit of the method's field in the class's rows, -1 none. */
static int top_bit(uint32_t cls, const char *method, const char *name) {
  FILE *f = fopen("paths/model/testdata/methods.tsv", "r");
  char line[256], want[160];
  int high = -1, low;
  assert_non_null(f);
  snprintf(want, sizeof want, "%x\tfield\t%s\t%s\t\t", cls, method, name);
  while (high < 0 && fgets(line, sizeof line, f))
    if (!strncmp(line, want, strlen(want)))
      assert_int_equal(sscanf(line + strlen(want), "%d:%d", &high, &low), 2);
  fclose(f);
  return high;
}

enum kind { CHANNEL, COMPUTE, COPY };

/* One argument to the method: the field's top bit is taken, and the next is
 * refused by its name. */
static void widths(void **state) {
  (void)state;
  static const struct {
    const char *method, *field;
    enum kind kind;
    uint32_t header;
  } t[] = {
      {"SEM_ADDR_HI", "OFFSET", CHANNEL, 0x20010018},
      {"OFFSET_IN_UPPER", "UPPER", COPY, 0x20018100},
      {"OFFSET_OUT_UPPER", "UPPER", COPY, 0x20018102},
      {"SET_SEMAPHORE_A", "UPPER", COPY, 0x20018090},
      {"SET_SHADER_LOCAL_MEMORY_A", "ADDRESS_UPPER", COMPUTE, 0x200121e4},
      {"SET_SHADER_SHARED_MEMORY_WINDOW_A", "BASE_ADDRESS_UPPER", COMPUTE,
       0x200120a8},
  };
  for (size_t g = 0; g < COUNT(generations); g++)
    for (size_t i = 0; i < COUNT(t); i++)
      for (int over = 0; over < 2; over++) {
        const struct generation *of = &generations[g];
        const uint32_t classes[] = {of->channel, of->compute, of->copy};
        int c = t[i].kind != COMPUTE;
        struct rig_nv_reply r;
        struct bench b;
        char text[160];
        int top = top_bit(classes[t[i].kind], t[i].method, t[i].field);
        if (top < 0)
          fail_msg("%s: no row of %s", of->name, t[i].method);
        const uint32_t x = 1u << (top + over);
        open_on(&b, of);
        RUN(&b, c, c ? 0x20018000 : 0x20012000, classes[c ? COPY : COMPUTE],
            t[i].header, x, RELEASE(bench_word_at(&b, 0), 1));
        snprintf(text, sizeof text, "(%s) of class 0x%x: bits 0x%x of 0x%x",
                 t[i].method, classes[t[i].kind], x, x);
        if (over)
          assert_int_equal(bench_wait_error(&b, c), 32);
        else
          assert_true(bench_wait(bench_word(&b, 0), 1));
        b.path->check(b.path->ctx, &r);
        if (!strstr(r.text, over ? text : ""))
          fail_msg("%s: %s: %s", of->name, t[i].method, r.text);
        bench_close(&b);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs),
      cmocka_unit_test(widths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
