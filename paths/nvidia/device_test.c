/* SPDX-License-Identifier: ISC */
/*
 * A device over the path, over the fake driver: every call of a make fails
 * once, and a stop gives all back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/device.h"
#include "paths/nvidia/fake.h"
#include "paths/nvidia/nvidia.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static const struct {
  const char *version;
  int release;
  enum fake_failure how;
} rows[] = {{"570.1", 570, FAKE_STATUS},
            {"580.1", 580, FAKE_STATUS},
            {"580.1", 580, FAKE_ERRNO},
            {"580.1", 580, FAKE_EIO},
            {"610.1", 610, FAKE_REFUSED}};

static void check(struct fake *f, struct fake_counts before, unsigned n) {
  struct fake_counts after = fake_counts(f);
  if (memcmp(&before, &after, sizeof after) != 0 || f->broken[0] != '\0')
    fail_msg("call %u, %s: something is left; %s; calls:\n%s", n, f->failed,
             f->broken, f->log);
}

static void test_make(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct fake f;
    const struct rig_nv_path *p;
    struct rig_nv_options o;
    /* Small rings: what they hold is not looked at. */
    const struct device_sizes sizes = {
        .entries = 16, .segment_bytes = 4096, .in_flight = 8};
    rig_nv_options_init(&o);
    fake_init(&f);
    f.version = rows[i].version;
    f.release = rows[i].release;
    f.failure = rows[i].how;
    assert_int_equal(nvidia_open(&f.os, NULL, &p), 0);
    struct fake_counts before = fake_counts(&f);
    unsigned n = 0;
    for (bool made = false; !made;) {
      struct rig_nv *d;
      fake_restart(&f);
      f.fail_at = ++n;
      int r = device_make_sized(p, &o, &sizes, &d);
      /* Else memory behind the BAR had no room, and the host's was taken. */
      made = r == 0 && f.failed[0] == '\0';
      f.fail_at = 0;
      if (r == 0) {
        assert_int_equal(rig_nv_path_close(p), -RIG_NV_INVALID);
        assert_int_equal(rig_nv_stop(d, NULL), 0);
        assert_int_equal(rig_nv_release(d), 0);
      } else if (r != -RIG_NV_REFUSED && r != -RIG_NV_NO_MEMORY) {
        fail_msg("call %u: %d, %s", n, r, rig_nv_why());
      }
      check(&f, before, n);
    }
    assert_true(n > 25);
    assert_int_equal(rig_nv_path_close(p), 0);
    assert_true(fake_nothing(&f));
    fake_end(&f);
  }
}

/* Boost is asked for where the options say so, and nowhere else. */
static void test_boost(void **state) {
  (void)state;
  for (int boost = 0; boost < 2; boost++) {
    struct fake f;
    const struct rig_nv_path *p;
    struct rig_nv *d;
    struct rig_nv_options o;
    rig_nv_options_init(&o);
    o.boost = boost;
    fake_init(&f);
    assert_int_equal(nvidia_open(&f.os, NULL, &p), 0);
    assert_int_equal(rig_nv_make(p, &o, &d), 0);
    assert_int_equal(f.boosts, boost);
    assert_int_equal(rig_nv_stop(d, NULL), 0);
    assert_int_equal(rig_nv_release(d), 0);
    assert_int_equal(rig_nv_path_close(p), 0);
    assert_string_equal(f.broken, "");
    fake_end(&f);
  }
}

/* GA100's classes are listed, and refused by a make. */
static void test_refused_classes(void **state) {
  struct fake f;
  const struct rig_nv_path *p;
  struct rig_nv *d;
  (void)state;
  fake_init(&f);
  f.gpus[0].classes[5] = 0xc6c0;
  f.gpus[0].classes[6] = 0xc6b5;
  assert_int_equal(nvidia_open(&f.os, NULL, &p), 0);
  assert_int_equal(rig_nv_make(p, NULL, &d), -RIG_NV_REFUSED);
  assert_non_null(strstr(rig_nv_why(), "0xc6c0"));
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_true(fake_nothing(&f));
  fake_end(&f);
}

/* A GPU that is gone once its path is open: its timer does not answer. */
static void test_lost(void **state) {
  struct fake f;
  const struct rig_nv_path *p;
  struct rig_nv *d = NULL;
  (void)state;
  fake_init(&f);
  f.gpus[0].time_1 = UINT32_MAX;
  assert_int_equal(nvidia_open(&f.os, NULL, &p), 0);
  struct fake_counts before = fake_counts(&f), after;
  assert_int_equal(rig_nv_make(p, NULL, &d), -RIG_NV_REFUSED);
  assert_string_equal(rig_nv_why(), "clock: the GPU's timer does not answer");
  after = fake_counts(&f);
  assert_memory_equal(&before, &after, sizeof after);
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_true(fake_nothing(&f));
  assert_string_equal(f.broken, "");
  fake_end(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_make),
      cmocka_unit_test(test_boost),
      cmocka_unit_test(test_refused_classes),
      cmocka_unit_test(test_lost),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
