/* SPDX-License-Identifier: ISC */
/* Each operand that the public encoders refuse, its reason, and that nothing
 * was written; and the operands just inside, which are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/api/rig_nv.h"

#define TOP (UINT64_C(1) << 40)
#define G2 (UINT64_C(1) << 31)
#define G4 (UINT64_C(1) << 32)

struct encode {
  const char *call;
  int (*encode)(uint32_t *w);
};

struct refused {
  struct encode e;
  const char *reason;
};

/* One function a case, as C has no closures. */
#define FN(n, call)                                                            \
  static int n(uint32_t *w) { return call; }
#define R(n) {#n, n}

FN(object_engine, rig_nv_set_object(w, (enum rig_nv_engine)2, 0xcbc0))
FN(object_class, rig_nv_set_object(w, RIG_NV_COPY, 0x10000))
FN(acquire_align, rig_nv_acquire(w, 0x1004, 1))
FN(acquire_top, rig_nv_acquire(w, TOP, 1))
FN(acquire_wrap, rig_nv_acquire(w, -UINT64_C(8), 1))
FN(release_align, rig_nv_release_word(w, 0x1001, 1))
FN(release_top, rig_nv_release_word(w, TOP + 8, 1))
FN(stamp_align, rig_nv_release_stamp(w, 0x1008, 1))
FN(stamp_top, rig_nv_release_stamp(w, TOP, 1))
FN(shared_top, rig_nv_shared_memory_window(w, TOP))
FN(local_top, rig_nv_local_memory_window(w, TOP))
FN(memory_top, rig_nv_local_memory(w, TOP, 0))
FN(memory_size, rig_nv_local_memory(w, 0, TOP))
FN(memory_cross, rig_nv_local_memory(w, TOP - 0x1000, 0x1001))
FN(schedule_align, rig_nv_schedule(w, 0x1080))
FN(schedule_top, rig_nv_schedule(w, TOP))
FN(copy_zero, rig_nv_copy(w, 0x1000, 0x2000, 0))
FN(copy_long, rig_nv_copy(w, 0x1000, 0x2000, G2 + 1))
FN(copy_wrap, rig_nv_copy(w, 0x1000, 0x2000, UINT64_MAX))
FN(copy_dst_top, rig_nv_copy(w, TOP, 0x2000, 1))
FN(copy_src_top, rig_nv_copy(w, 0x1000, TOP + 5, 1))
FN(copy_dst_cross, rig_nv_copy(w, TOP - 4, 0x2000, 5))
FN(copy_src_cross, rig_nv_copy(w, 0x1000, TOP - G2 + 1, G2))
FN(box_dst_pitch, rig_nv_box(w, 0, 0, G4, 1, 1, 1))
FN(box_src_pitch, rig_nv_box(w, 0, 0, 1, G4, 1, 1))
FN(box_no_rows, rig_nv_box(w, 0, 0, 1, 1, 0, 1))
FN(box_rows, rig_nv_box(w, 0, 0, 0, 0, G4, 1))
FN(box_zero, rig_nv_box(w, 0, 0, 1, 1, 1, 0))
FN(box_long, rig_nv_box(w, 0, 0, 1, 1, 1, G2 + 1))
FN(box_dst_top, rig_nv_box(w, TOP, 0, 1, 1, 1, 1))
FN(box_src_top, rig_nv_box(w, 0, TOP, 1, 1, 1, 1))
FN(box_dst_cross, rig_nv_box(w, TOP - 0x2010, 0, 0x1000, 0, 3, 0x11))
FN(box_src_cross, rig_nv_box(w, 0, TOP - 0x2010, 0, 0x1000, 3, 0x11))
FN(box_far, rig_nv_box(w, 0, 0, G4 - 1, 0, G4 - 1, 1))
FN(fill_component, rig_nv_fill(w, (enum rig_nv_component)3, 0, 0, 1))
FN(fill_none, rig_nv_fill(w, (enum rig_nv_component)0, 0, 0, 1))
FN(fill_zero, rig_nv_fill(w, RIG_NV_1B, 0, 0, 0))
FN(fill_long_1, rig_nv_fill(w, RIG_NV_1B, 0, 0, G2 + 1))
FN(fill_long_2, rig_nv_fill(w, RIG_NV_2B, 0, 0, G2 / 2 + 1))
FN(fill_long_4, rig_nv_fill(w, RIG_NV_4B, 0, 0, G2 / 4 + 1))
FN(fill_wrap, rig_nv_fill(w, RIG_NV_4B, 0, 0, (UINT64_C(1) << 62) + 1))
FN(fill_top, rig_nv_fill(w, RIG_NV_4B, TOP, 0, 1))
FN(fill_cross, rig_nv_fill(w, RIG_NV_4B, TOP - 4, 0, 2))
FN(copy_release_align, rig_nv_copy_release(w, 0x1004, 1))
FN(copy_release_top, rig_nv_copy_release(w, TOP, 1))
FN(copy_stamp_align, rig_nv_copy_release_stamp(w, 0x1008, 1))
FN(copy_stamp_top, rig_nv_copy_release_stamp(w, TOP, 1))

static const struct refused refused[] = {
    {R(object_engine), "set_object: engine 2 is unknown"},
    {R(object_class), "set_object: cls 0x10000 is above 0xffff"},
    {R(acquire_align), "acquire: addr 0x1004 is not 8-byte aligned"},
    {R(acquire_top), "acquire: addr 0x10000000000 is not below 2^40"},
    {R(acquire_wrap), "acquire: addr 0xfffffffffffffff8 is not below 2^40"},
    {R(release_align), "release_word: addr 0x1001 is not 8-byte aligned"},
    {R(release_top), "release_word: addr 0x10000000008 is not below 2^40"},
    {R(stamp_align), "release_stamp: addr 0x1008 is not 16-byte aligned"},
    {R(stamp_top), "release_stamp: addr 0x10000000000 is not below 2^40"},
    {R(shared_top),
     "shared_memory_window: addr 0x10000000000 is not below 2^40"},
    {R(local_top), "local_memory_window: addr 0x10000000000 is not below 2^40"},
    {R(memory_top), "local_memory: addr 0x10000000000 is not below 2^40"},
    {R(memory_size), "local_memory: per_tpc 0x10000000000 is not below 2^40"},
    {R(memory_cross),
     "local_memory: addr 0xfffffff000 and 0x1001 bytes end above 2^40"},
    {R(schedule_align), "schedule: addr 0x1080 is not 256-byte aligned"},
    {R(schedule_top), "schedule: addr 0x10000000000 is not below 2^40"},
    {R(copy_zero), "copy: n is 0"},
    {R(copy_long), "copy: n 2147483649 is above 2147483648"},
    {R(copy_wrap), "copy: n 18446744073709551615 is above 2147483648"},
    {R(copy_dst_top), "copy: dst 0x10000000000 is not below 2^40"},
    {R(copy_src_top), "copy: src 0x10000000005 is not below 2^40"},
    {R(copy_dst_cross), "copy: dst 0xfffffffffc and 0x5 bytes end above 2^40"},
    {R(copy_src_cross),
     "copy: src 0xff80000001 and 0x80000000 bytes end above 2^40"},
    {R(box_dst_pitch), "box: dst_pitch 0x100000000 is not below 2^32"},
    {R(box_src_pitch), "box: src_pitch 0x100000000 is not below 2^32"},
    {R(box_no_rows), "box: rows is 0"},
    {R(box_rows), "box: rows 4294967296 is above 4294967295"},
    {R(box_zero), "box: n is 0"},
    {R(box_long), "box: n 2147483649 is above 2147483648"},
    {R(box_dst_top), "box: dst 0x10000000000 is not below 2^40"},
    {R(box_src_top), "box: src 0x10000000000 is not below 2^40"},
    {R(box_dst_cross), "box: dst 0xffffffdff0 and 3 rows of 0x11 bytes, "
                       "0x1000 apart, end above 2^40"},
    {R(box_src_cross), "box: src 0xffffffdff0 and 3 rows of 0x11 bytes, "
                       "0x1000 apart, end above 2^40"},
    {R(box_far), "box: dst 0x0 and 4294967295 rows of 0x1 bytes, "
                 "0xffffffff apart, end above 2^40"},
    {R(fill_component), "fill: component 3 is unknown"},
    {R(fill_none), "fill: component 0 is unknown"},
    {R(fill_zero), "fill: n is 0"},
    {R(fill_long_1), "fill: n 2147483649 is above 2147483648"},
    {R(fill_long_2), "fill: n 1073741825 is above 1073741824"},
    {R(fill_long_4), "fill: n 536870913 is above 536870912"},
    {R(fill_wrap), "fill: n 4611686018427387905 is above 536870912"},
    {R(fill_top), "fill: dst 0x10000000000 is not below 2^40"},
    {R(fill_cross), "fill: dst 0xfffffffffc and 0x8 bytes end above 2^40"},
    {R(copy_release_align), "copy_release: addr 0x1004 is not 8-byte aligned"},
    {R(copy_release_top), "copy_release: addr 0x10000000000 is not below 2^40"},
    {R(copy_stamp_align),
     "copy_release_stamp: addr 0x1008 is not 16-byte aligned"},
    {R(copy_stamp_top),
     "copy_release_stamp: addr 0x10000000000 is not below 2^40"},
};

/* Just inside each bound. */
FN(in_object, rig_nv_set_object(w, RIG_NV_COMPUTE, 0xffff))
FN(in_object_0, rig_nv_set_object(w, RIG_NV_COPY, 0))
FN(in_acquire, rig_nv_acquire(w, TOP - 8, UINT64_MAX))
FN(in_release, rig_nv_release_word(w, TOP - 8, 0))
FN(in_stamp, rig_nv_release_stamp(w, TOP - 16, 0))
FN(in_interrupt, rig_nv_interrupt(w))
FN(in_shared, rig_nv_shared_memory_window(w, TOP - 1))
FN(in_local, rig_nv_local_memory_window(w, TOP - 1))
FN(in_memory, rig_nv_local_memory(w, TOP - 0x1000, 0x1000))
FN(in_memory_most, rig_nv_local_memory(w, 0, TOP - 1))
FN(in_caches, rig_nv_invalidate_caches(w))
FN(in_idle, rig_nv_wait_for_idle(w))
FN(in_schedule, rig_nv_schedule(w, TOP - 256))
FN(in_copy, rig_nv_copy(w, TOP - G2, TOP - G2, G2))
FN(in_copy_1, rig_nv_copy(w, TOP - 1, 0, 1))
FN(in_box, rig_nv_box(w, TOP - 0x2010, TOP - 0x10, 0x1000, 0, 3, 0x10))
FN(in_box_rows, rig_nv_box(w, 0, 0, 0, 0, G4 - 1, G2))
FN(in_box_one, rig_nv_box(w, TOP - 1, 0, G4 - 1, G4 - 1, 1, 1))
FN(in_fill_1, rig_nv_fill(w, RIG_NV_1B, TOP - G2, 0, G2))
FN(in_fill_2, rig_nv_fill(w, RIG_NV_2B, TOP - G2, 0, G2 / 2))
FN(in_fill_4, rig_nv_fill(w, RIG_NV_4B, TOP - G2, UINT32_MAX, G2 / 4))
FN(in_copy_release, rig_nv_copy_release(w, TOP - 8, 0))
FN(in_copy_stamp, rig_nv_copy_release_stamp(w, TOP - 16, 0))

static const struct {
  struct encode e;
  int words;
  uint32_t last;
} taken[] = {
    {R(in_object), 2, 0xffff},
    {R(in_object_0), 2, 0},
    {R(in_acquire), 6, 0x01001003},
    {R(in_release), 6, 0x01100001},
    {R(in_stamp), 6, 0x03100001},
    {R(in_interrupt), 2, 0},
    {R(in_shared), 3, 0xffffffff},
    {R(in_local), 3, 0xffffffff},
    {R(in_memory), 7, 0xff},
    {R(in_memory_most), 7, 0xff},
    {R(in_caches), 2, 0x1011},
    {R(in_idle), 2, 0},
    {R(in_schedule), 4, 9},
    {R(in_copy), 9, 0x182},
    {R(in_copy_1), 9, 0x182},
    {R(in_box), 11, 0x382},
    {R(in_box_rows), 11, 0x382},
    {R(in_box_one), 11, 0x382},
    {R(in_fill_1), 11, 0x582},
    {R(in_fill_2), 11, 0x582},
    {R(in_fill_4), 11, 0x582},
    {R(in_copy_release), 7, 0x0800000c},
    {R(in_copy_stamp), 7, 0x08000014},
};

enum { UNTOUCHED = 0x5ca1ab1e };

static void wipe(uint32_t w[RIG_NV_MOST_WORDS]) {
  for (size_t i = 0; i < RIG_NV_MOST_WORDS; i++)
    w[i] = UNTOUCHED;
}

static void test_refused(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    uint32_t w[RIG_NV_MOST_WORDS];
    wipe(w);
    const int answer = refused[i].e.encode(w);
    if (answer != -RIG_NV_INVALID ||
        strcmp(rig_nv_why(), refused[i].reason) != 0) {
      fail_msg("%s: %d, %s", refused[i].e.call, answer, rig_nv_why());
    }
    for (size_t k = 0; k < RIG_NV_MOST_WORDS; k++) {
      if (w[k] != UNTOUCHED)
        fail_msg("%s wrote", refused[i].e.call);
    }
  }
}

static void test_taken(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
    uint32_t w[RIG_NV_MOST_WORDS];
    wipe(w);
    const int n = taken[i].e.encode(w);
    if (n != taken[i].words) {
      fail_msg("%s: %d, %s", taken[i].e.call, n, rig_nv_why());
    }
    if (w[n - 1] != taken[i].last || w[n] != UNTOUCHED) {
      fail_msg("%s ends in 0x%x, 0x%x", taken[i].e.call, w[n - 1], w[n]);
    }
  }
}

static void test_entries(void **state) {
  (void)state;
  static const struct {
    uint64_t addr, words;
    const char *reason; /* NULL: taken */
  } cases[] = {
      {0x1002, 1, "gpfifo_entry: addr 0x1002 is not 4-byte aligned"},
      {TOP, 1, "gpfifo_entry: addr 0x10000000000 is not below 2^40"},
      {0, 0, "gpfifo_entry: words is 0"},
      {0, 0x200000, "gpfifo_entry: words 2097152 is above 2097151"},
      {0, UINT64_C(1) << 62,
       "gpfifo_entry: words 4611686018427387904 is above 2097151"},
      {TOP - 4, 2,
       "gpfifo_entry: addr 0xfffffffffc and 0x8 bytes end above 2^40"},
      {TOP - 4, 1, NULL},
      {0, 0x1fffff, NULL},
      {TOP - 4 * UINT64_C(0x1fffff), 0x1fffff, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    uint64_t entry = UNTOUCHED;
    const int answer =
        rig_nv_gpfifo_entry(cases[i].addr, cases[i].words, &entry);
    if (cases[i].reason == NULL) {
      assert_int_equal(answer, 0);
      continue;
    }
    assert_int_equal(answer, -RIG_NV_INVALID);
    assert_string_equal(rig_nv_why(), cases[i].reason);
    assert_int_equal(entry, UNTOUCHED);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_refused),
      cmocka_unit_test(test_taken),
      cmocka_unit_test(test_entries),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
