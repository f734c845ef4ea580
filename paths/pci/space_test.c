/* SPDX-License-Identifier: ISC */
/* A space: what it refuses, the bound within which a take succeeds, holds that
 * name their take for ever, and random takes of several holders against one
 * owner a unit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "paths/pci/failing.h"
#include "paths/pci/space.h"
#include "stress/random.h"

enum { UNIT = 16, UNITS = 4096, HOLDERS = 4, HOLDS = 600, STEPS = 30000 };

#define BASE UINT64_C(0x1000000000)

static const struct {
  const char *name;
  uint64_t base, bytes;
  int result;
} ranges[] = {
    {"one byte", 0, 1, 0},
    {"all but one", 0, UINT64_MAX, 0},
    {"the last", UINT64_MAX - 1, 1, 0},
    {"none", 4096, 0, -RIG_NV_INVALID},
    {"past the end", UINT64_MAX, 1, -RIG_NV_INVALID},
    {"far past the end", 4096, UINT64_MAX, -RIG_NV_INVALID},
};

static void test_init(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++) {
    struct space s, before;
    struct failing f;
    memset(&s, 0x77, sizeof s);
    memset(&before, 0x77, sizeof before);
    const int r =
        space_init(&s, ranges[k].base, ranges[k].bytes, failing_init(&f));
    assert_int_equal(r, ranges[k].result);
    if (r != 0) {
      assert_memory_equal(&s, &before, sizeof s);
      continue;
    }
    assert_int_equal(f.calls, 0); /* lazy */
    assert_int_equal(space_base(&s), ranges[k].base);
    assert_int_equal(space_bytes(&s), ranges[k].bytes);
    space_fini(&s);
  }
}

static const struct {
  const char *name;
  uint64_t n, align;
  int result;
} takes[] = {
    {"a byte", 1, 1, 0},
    {"all of it", UNITS *UNIT, 1, 0},
    {"at 4096", 4096, 4096, 0},
    {"nothing", 0, 1, -RIG_NV_INVALID},
    {"align 0", 1, 0, -RIG_NV_INVALID},
    {"align 3", 1, 3, -RIG_NV_INVALID},
    {"align 2^63 + 1", 1, (UINT64_C(1) << 63) + 1, -RIG_NV_INVALID},
    {"a byte too many", UNITS *UNIT + 1, 1, -RIG_NV_NO_MEMORY},
    {"2^64 - 1", UINT64_MAX, 1, -RIG_NV_NO_MEMORY},
    {"at 2^63", 1, UINT64_C(1) << 63, -RIG_NV_NO_MEMORY},
};

static void test_takes(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof takes / sizeof *takes; k++) {
    struct space s;
    struct space_holder h;
    struct space_hold x = {1, 2, 3};
    uint64_t unheld;
    assert_int_equal(space_init(&s, BASE, UNITS * UNIT, NULL), 0);
    space_holder_init(&h, &s);
    assert_int_equal(space_alloc(&h, takes[k].n, takes[k].align, &x),
                     takes[k].result);
    assert_int_equal(space_unheld(&s, &unheld), 0);
    if (takes[k].result != 0) {
      assert_true(x.at == 1 && x.bytes == 2 && x.serial == 3);
      assert_int_equal(unheld, UNITS * UNIT);
    } else {
      assert_true(x.at % takes[k].align == 0 && x.bytes >= takes[k].n &&
                  x.bytes < takes[k].n + UNIT);
      assert_int_equal(unheld, UNITS * UNIT - x.bytes);
    }
    space_fini(&s);
  }
}

/* Exactly one free range of 2 * (max(n, 16) + align) bytes: it succeeds. */
static const struct {
  uint64_t n, align;
} bounds[] = {{1, 1},         {16, 1},        {17, 1},        {16, 16},
              {1, 4096},      {4096, 1},      {4096, 4096},   {4097, 4096},
              {65535, 65536}, {65537, 65536}, {100000, 2048}, {1, 1 << 20}};

static void test_bound(void **state) {
  (void)state;
  for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
    const uint64_t n = bounds[k].n, align = bounds[k].align;
    const uint64_t free_bytes = 2 * ((n < 16 ? 16 : n) + align);
    const uint64_t room = (free_bytes + UNIT - 1) / UNIT * UNIT;
    for (uint64_t off = 0; off < 64; off++) {
      struct space s;
      struct space_holder h;
      struct space_hold before, after;
      struct space_hold x = {0};
      assert_int_equal(space_init(&s, BASE + off * UNIT, room + 2 * UNIT, NULL),
                       0);
      space_holder_init(&h, &s);
      /* All but a unit at each end is free. */
      assert_int_equal(space_alloc(&h, UNIT, 1, &before), 0);
      assert_int_equal(space_alloc(&h, room, 1, &x), 0);
      assert_int_equal(space_alloc(&h, UNIT, 1, &after), 0);
      assert_int_equal(space_free(&s, &x), 0);
      assert_int_equal(space_alloc(&h, n, align, &x), 0);
      assert_int_equal(x.at % align, 0);
      space_fini(&s);
    }
  }
}

static void test_stale(void **state) {
  (void)state;
  struct space s, other;
  struct space_holder h;
  struct space_hold x, y;
  assert_int_equal(space_init(&s, BASE, 4096, NULL), 0);
  assert_int_equal(space_init(&other, BASE, 4096, NULL), 0);
  space_holder_init(&h, &s);
  assert_int_equal(space_alloc(&h, 4096, 1, &x), 0);
  assert_int_equal(space_held(&s, &x), 0);
  assert_int_equal(space_free(&other, &x), -RIG_NV_INVALID);
  assert_int_equal(space_free(&s, &x), 0);
  assert_int_equal(space_free(&s, &x), -RIG_NV_INVALID);
  assert_int_equal(space_alloc(&h, 4096, 1, &y), 0);
  assert_int_equal(y.at, x.at); /* the same addresses, another take */
  assert_int_equal(space_held(&s, &x), -RIG_NV_INVALID);
  assert_int_equal(space_free(&s, &x), -RIG_NV_INVALID);
  assert_int_equal(space_release(&h), 0);
  assert_int_equal(space_free(&s, &y), -RIG_NV_INVALID);
  assert_int_equal(space_release(&h), 0); /* of nothing */
  assert_int_equal(space_alloc(&h, 4096, 1, &y), 0);
  space_fini(&other);
  space_fini(&s);
}

/* Inside a lock that comes after it, a space is refused; inside a path's it
 * is not. */
static void test_lock_order(void **state) {
  (void)state;
  static const struct rig_nv_lock_class late = {.name = "late",
                                                .rank = RIG_NV_RANK_SPACE + 1};
  struct rig_nv_lock locks[2];
  struct space s;
  struct space_holder h;
  struct space_hold x, y = {0};
  uint64_t n = 7;
  assert_int_equal(rig_nv_lock_init(&locks[0], &rig_nv_lock_path), 0);
  assert_int_equal(rig_nv_lock_init(&locks[1], &late), 0);
  assert_int_equal(space_init(&s, BASE, 4096, NULL), 0);
  space_holder_init(&h, &s);
  assert_int_equal(rig_nv_lock_take(&locks[0]), 0);
  assert_int_equal(space_alloc(&h, 64, 1, &x), 0);
  assert_int_equal(rig_nv_lock_take(&locks[1]), 0);
  assert_int_equal(space_alloc(&h, 64, 1, &y), -RIG_NV_INVALID);
  assert_int_equal(space_held(&s, &x), -RIG_NV_INVALID);
  assert_int_equal(space_free(&s, &x), -RIG_NV_INVALID);
  assert_int_equal(space_release(&h), -RIG_NV_INVALID);
  assert_int_equal(space_unheld(&s, &n), -RIG_NV_INVALID);
  rig_nv_lock_give(&locks[1]);
  rig_nv_lock_give(&locks[0]);
  assert_int_equal(y.serial, 0);
  assert_int_equal(space_unheld(&s, &n), 0);
  assert_int_equal(n, 4096 - 64);
  space_fini(&s);
  rig_nv_lock_fini(&locks[1]);
  rig_nv_lock_fini(&locks[0]);
}

/* ---- random ---- */

struct held {
  struct space_hold x;
  int holder;
};

static uint64_t longest(const uint64_t *owner) {
  uint64_t best = 0, run = 0;
  for (size_t i = 0; i < UNITS; i++) {
    run = owner[i] == 0 ? run + 1 : 0;
    best = run > best ? run : best;
  }
  return best * UNIT;
}

static void mark(uint64_t *owner, const struct space_hold *x, uint64_t who) {
  const uint64_t at = (x->at - BASE) / UNIT;
  assert_true(x->at >= BASE && at + x->bytes / UNIT <= UNITS);
  for (uint64_t i = 0; i < x->bytes / UNIT; i++) {
    assert_true((owner[at + i] == 0) == (who != 0));
    owner[at + i] = who;
  }
}

static void test_random(void **state) {
  (void)state;
  static uint64_t owner[UNITS];
  static struct held held[HOLDS];
  size_t n = 0;
  struct space s;
  struct space_holder h[HOLDERS];
  struct failing f;
  struct random r = {1};
  uint64_t serial = 0, unheld, count;
  assert_int_equal(space_init(&s, BASE, UNITS * UNIT, failing_init(&f)), 0);
  for (int i = 0; i < HOLDERS; i++)
    space_holder_init(&h[i], &s);
  for (int step = 0; step < STEPS; step++) {
    const uint64_t what = random_below(&r, 100);
    const int who = (int)random_below(&r, HOLDERS);
    if (what < 60 && n < HOLDS) {
      const uint64_t bytes = 1 + random_small(&r, 4000);
      const uint64_t align = UINT64_C(1) << random_below(&r, 13);
      struct space_hold x;
      f.until = random_one_in(&r, 8) ? 0 : -1;
      const uint64_t failed = f.failed;
      const int got = space_alloc(&h[who], bytes, align, &x);
      if (got == -RIG_NV_HOST_MEMORY) {
        assert_true(f.failed > failed);
      } else if (got != 0) {
        assert_int_equal(got, -RIG_NV_NO_MEMORY);
        assert_true(longest(owner) < 2 * ((bytes < 16 ? 16 : bytes) + align));
      } else {
        assert_true(x.at % align == 0 && x.bytes >= bytes);
        mark(owner, &x, ++serial);
        held[n++] = (struct held){x, who};
      }
    } else if (what < 99 && n != 0) {
      const size_t k = random_below(&r, n);
      assert_int_equal(space_free(&s, &held[k].x), 0);
      assert_int_equal(space_free(&s, &held[k].x), -RIG_NV_INVALID);
      mark(owner, &held[k].x, 0);
      held[k] = held[--n];
    } else if (what == 99) { /* an owner ends, wherever it stood */
      assert_int_equal(space_release(&h[who]), 0);
      for (size_t k = 0; k < n;) {
        if (held[k].holder != who) {
          k++;
          continue;
        }
        mark(owner, &held[k].x, 0);
        assert_int_equal(space_held(&s, &held[k].x), -RIG_NV_INVALID);
        held[k] = held[--n];
      }
    }
    count = 0;
    for (size_t k = 0; k < n; k++)
      count += held[k].x.bytes;
    assert_int_equal(space_unheld(&s, &unheld), 0);
    assert_int_equal(unheld, UNITS * UNIT - count);
  }
  space_fini(&s);
  assert_int_equal(f.live, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_init),       cmocka_unit_test(test_takes),
      cmocka_unit_test(test_bound),      cmocka_unit_test(test_stale),
      cmocka_unit_test(test_lock_order), cmocka_unit_test(test_random),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
