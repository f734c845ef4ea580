/* SPDX-License-Identifier: ISC */
/*
 * What a submission allocates: nothing, from a thread's second call on. The
 * first call may pay for the thread's own records; what it paid is printed.
 */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/api/rig_nv.h"
#include "stress/kernels.h"
#include "tools/allocator.h"

enum { CALLS = 1000 };

struct job {
  struct rig_nv *d;
  enum rig_nv_mode mode;
  const struct rig_submission *s;
  uint64_t first, later; /* bytes that the calls allocated */
};

/* One submission as the mode has it. */
static void submit(struct job *j) {
  const char *failure = NULL;
  uint64_t v = rig_nv_signaled(j->d) + 1;
  if (j->mode == RIG_NV_POST) {
    assert_int_equal(rig_nv_post(j->d, j->s, &v), 0);
    return;
  }
  assert_int_equal(rig_nv_room(j->d, j->s), RIG_FITS);
  if (rig_nv_submit(j->d, v, j->s, &failure) != RIG_COMMITTED)
    fail_msg("submit: %s", failure);
}

static void *thread(void *arg) {
  struct job *j = arg;
  uint64_t last = rig_nv_signaled(j->d);
  for (int i = 0; i < CALLS; i++) {
    uint64_t before = tool_allocated();
    submit(j);
    uint64_t bytes = tool_allocated() - before;
    *(i == 0 ? &j->first : &j->later) += bytes;
    if (rig_nv_wait(j->d, ++last, UINT64_MAX) != 0)
      fail_msg("wait: %s", rig_nv_why());
  }
  return NULL;
}

static const char *const modes[] = {"latch", "turn", "post"};

static void test_allocations(void **state) {
  (void)state;
  const struct rig_nv_path *path;
  struct rig_nv_region *r;
  if (!tool_counts_allocations())
    skip();
  for (enum rig_nv_mode mode = RIG_NV_TURN; mode <= RIG_NV_POST; mode++) {
    struct rig_nv_options o;
    struct rig_nv *d;
    rig_nv_options_init(&o);
    o.mode = mode;
    o.allocator = tool_allocator();
    assert_int_equal(rig_nv_path_model(NULL, &path), 0);
    assert_int_equal(rig_nv_make(path, &o, &d), 0);
    assert_int_equal(rig_nv_alloc(d, RIG_MAPPED, 1 << 20, &r), 0);
    uint64_t at = rig_nv_locate(r).address;
    const int after[] = {0};
    struct rig_part parts[64];
    for (int i = 0; i < 64; i += 2) {
      parts[i] = rig_part_copy(at + 8192, at, 16);
      parts[i + 1] = rig_part_words(RIG_COMPUTE0, NULL, 0);
      parts[i + 1].after = after;
      parts[i + 1].nafter = 1;
    }
    struct rig_part fill = rig_part_fill(at + 1, 4099, 7);
    struct kernels k;
    assert_int_equal(kernels_make(d, path, &k), 0);
    const struct {
      _Alignas(16) struct rig_block block;
      uint64_t params[4];
    } args = {{{1, 1, 1}, {32, 1, 1}, 0, 0}, {at + 65536, at, 4096, 0x55}};
    struct rig_part launches[64];
    for (int i = 0; i < 64; i++)
      launches[i] = i % 3 ? rig_part_launch(k.mix.code, k.mix.launch, 0,
                                            sizeof args.params)
                          : parts[i];
    const struct rig_submission kinds[] = {
        {0},
        {.parts = parts, .nparts = 1},
        {.parts = &fill, .nparts = 1},
        {.parts = parts, .nparts = 64},
        {.parts = launches + 1,
         .nparts = 1,
         .args = &args,
         .args_bytes = sizeof args},
        {.parts = launches,
         .nparts = 64,
         .args = &args,
         .args_bytes = sizeof args},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
      struct job j = {.d = d, .mode = mode, .s = &kinds[i]};
      pthread_t t;
      assert_int_equal(pthread_create(&t, NULL, thread, &j), 0);
      assert_int_equal(pthread_join(t, NULL), 0);
      print_message("%s, kind %zu: the first call allocated %" PRIu64
                    " bytes\n",
                    modes[mode], i, j.first);
      assert_int_equal(j.later, 0);
    }
    assert_int_equal(kernels_end(&k), 0);
    assert_int_equal(rig_nv_free(d, r), 0);
    assert_int_equal(rig_nv_stop(d, NULL), 0);
    assert_int_equal(rig_nv_release(d), 0);
    assert_int_equal(rig_nv_path_close(path), 0);
  }
}

/* The count itself counts. */
static void test_counts(void **state) {
  (void)state;
  if (!tool_counts_allocations())
    skip();
  const struct rig_nv_allocator *a = tool_allocator();
  uint64_t before = tool_allocated();
  void *p = a->alloc(a->ctx, 64, 4096);
  assert_non_null(p);
  assert_true(tool_allocated() - before >= 4096);
  a->release(a->ctx, p, 4096);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
