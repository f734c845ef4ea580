/* SPDX-License-Identifier: ISC */
/* The model's timer, as its path's clock gives it, beside CLOCK_MONOTONIC. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "paths/model/model.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const struct {
  enum rig_nv_personality personality;
  int64_t ahead; /* 0: the default */
  int ppm;
} rows[] = {
    {RIG_NV_LIKE_KERNEL, 0, 0},     {RIG_NV_LIKE_PCI, 0, 0},
    {RIG_NV_LIKE_KERNEL, 5, 1000},  {RIG_NV_LIKE_PCI, -5, 1000},
    {RIG_NV_LIKE_KERNEL, 7, -1000}, {RIG_NV_LIKE_PCI, INT64_C(1) << 60, -100},
};

/* The timer, low bits and all; the registers of a PCI path have none of the
 * lowest five. */
static uint64_t read(const struct rig_nv_clock *c) {
  if (c->kind == RIG_NV_CLOCK_SOURCE) {
    struct rig_nv_reading r;
    struct rig_nv_reply reply;
    uint64_t before = c->host(c->ctx);
    assert_true(c->read(c->ctx, &r, &reply));
    assert_true(before <= r.before && r.before <= r.after &&
                r.after <= c->host(c->ctx));
    return r.timer;
  }
  for (;;) {
    uint32_t high = c->load(c->ctx, 0x9410), low = c->load(c->ctx, 0x9400);
    assert_int_equal(low % 32, 0);
    if (c->load(c->ctx, 0x9410) == high)
      return (uint64_t)high << 32 | low;
  }
}

static void test_timer(void **state) {
  static const struct timespec nap = {.tv_nsec = 20000000};
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct rig_nv_model_options o;
    const struct rig_nv_path *p;
    rig_nv_model_options_init(&o);
    o.personality = rows[i].personality;
    o.timer_ahead = rows[i].ahead ? rows[i].ahead : o.timer_ahead;
    o.timer_ppm = rows[i].ppm;
    uint64_t early = now();
    assert_int_equal(rig_nv_path_model(&o, &p), 0);
    uint64_t late = now();
    assert_int_equal(p->clock->kind, rows[i].personality == RIG_NV_LIKE_KERNEL
                                         ? RIG_NV_CLOCK_SOURCE
                                         : RIG_NV_CLOCK_REGISTERS);
    nanosleep(&nap, NULL);
    uint64_t before = now(), timer = read(p->clock), after = now();
    /* What it gained, of the least and the most that the path has lived. */
    int64_t least = (int64_t)(before - late) / 1000 * rows[i].ppm / 1000;
    int64_t most = (int64_t)(after - early) / 1000 * rows[i].ppm / 1000;
    int64_t low = least < most ? least : most;
    int64_t high = least < most ? most : least;
    uint64_t real = timer - (uint64_t)o.timer_ahead;
    if (real + 32 + 2 < before + (uint64_t)low ||
        real > after + (uint64_t)high + 2)
      fail_msg("row %zu: %lld ns off", i, (long long)(real - before));
    assert_int_equal(rig_nv_path_close(p), 0);
  }
}

static void test_wrong(void **state) {
  static const int ppms[] = {-1001, 1001, INT32_MIN, INT32_MAX};
  (void)state;
  for (size_t i = 0; i < COUNT(ppms); i++) {
    struct rig_nv_model_options o;
    const struct rig_nv_path *p = NULL;
    rig_nv_model_options_init(&o);
    o.timer_ppm = ppms[i];
    assert_int_equal(rig_nv_path_model(&o, &p), -RIG_NV_INVALID);
    assert_non_null(strstr(rig_nv_why(), "ppm off"));
    assert_null(p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_timer),
      cmocka_unit_test(test_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
