/* SPDX-License-Identifier: ISC */
/*
 * Opening, the two personalities, stop and close.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/lock_order/lock_order.h"
#include "paths/model/testing.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

typedef void change(struct rig_nv_model_options *);

static void none(struct rig_nv_model_options *o) { (void)o; }
static void size(struct rig_nv_model_options *o) { o->size--; }
static void person(struct rig_nv_model_options *o) {
  o->personality = (enum rig_nv_personality)2;
}
static void release(struct rig_nv_model_options *o) { o->release = 571; }
static void channel(struct rig_nv_model_options *o) {
  o->gpu.channel_class = 0xc46f;
}
static void compute(struct rig_nv_model_options *o) {
  o->gpu.compute_class = 0xc6c0;
}
static void copy(struct rig_nv_model_options *o) { o->gpu.copy_class = 0xc6b5; }
static void sms(struct rig_nv_model_options *o) { o->gpu.tpcs_per_gpc = 0; }
static void no_memory(struct rig_nv_model_options *o) {
  o->device_bytes = o->mapped_bytes = o->host_bytes = 0;
}
static void seed_0(struct rig_nv_model_options *o) { o->seed = 0; }
static void seed_odd(struct rig_nv_model_options *o) {
  o->seed = UINT64_C(0x9e3779b97f4a7c15);
}

static void options(void **state) {
  (void)state;
  static const struct {
    change *change;
    const char *text; /* "" where it opens */
  } t[] = {
      {none, ""},
      {no_memory, ""},
      {seed_0, ""},
      {seed_odd, ""},
      {size, "bytes, not"},
      {person, "no personality 2"},
      {release, "no parameters of release 571"},
      {channel, "no channel class 0xc46f"},
      {compute, "no compute class 0xc6c0"},
      {copy, "no copy class 0xc6b5"},
      {sms, "no multiprocessors"},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    const struct rig_nv_path *p = NULL;
    struct rig_nv_model_options o;
    rig_nv_model_options_init(&o);
    t[i].change(&o);
    int r = rig_nv_path_model(&o, &p);
    assert_int_equal(r, *t[i].text ? -RIG_NV_INVALID : 0);
    if (r) {
      assert_null(p);
      if (!strstr(rig_nv_why(), t[i].text))
        fail_msg("\"%s\" has no \"%s\"", rig_nv_why(), t[i].text);
    } else
      assert_int_equal(rig_nv_path_close(p), 0);
  }
}

/* What a path states, by options. */
static void states(void **state) {
  (void)state;
  const struct rig_nv_path *p, *q;
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.hang_ms = 250;
  o.maps_host = false;
  o.personality = RIG_NV_LIKE_PCI;
  o.device_bytes = 12345;
  assert_int_equal(rig_nv_path_model(NULL, &p), 0);
  assert_int_equal(rig_nv_path_model(&o, &q), 0);
  assert_int_equal(p->size, sizeof *p);
  assert_int_equal(p->rm.release, 580);
  assert_true(p->rm.frees);
  assert_false(q->rm.frees);
  assert_int_equal(p->hang_ms, -1);
  assert_int_equal(q->hang_ms, 250);
  assert_non_null(p->map_host);
  assert_null(q->map_host);
  assert_int_equal(p->budget, 1 << 30);
  assert_int_equal(q->budget, 12345);
  assert_ptr_equal(p->key, q->key);
  assert_int_equal(p->gpu.sm_version, 0x900);
  assert_int_equal(p->gpu.shared_window, 0);
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_int_equal(rig_nv_path_close(q), 0);
}

/* A path's opener and close are refused inside a lock, and so is what takes
 * the path's lock inside another path's. */
static void inside_a_lock(void **state) {
  (void)state;
  const struct rig_nv_path *p, *q;
  struct rig_nv_memory m;
  struct rig_nv_reply r;
  struct rig_nv_lock l = RIG_NV_LOCK(&rig_nv_lock_path);
  assert_int_equal(rig_nv_path_model(NULL, &p), 0);
  assert_int_equal(rig_nv_lock_take(&l), 0);
  assert_int_equal(rig_nv_path_model(NULL, &q), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_path_close(p), -RIG_NV_INVALID);
  assert_false(p->alloc(p->ctx, RIG_DEVICE, 8, 0, &m, &r));
  assert_int_equal(r.is, RIG_NV_WRONG);
  rig_nv_lock_give(&l);
  assert_int_equal(rig_nv_path_close(p), 0);
}

static void in_use(const struct rig_nv_path *p, const char *text) {
  assert_int_equal(rig_nv_path_close(p), -RIG_NV_INVALID);
  if (!strstr(rig_nv_why(), text))
    fail_msg("\"%s\" has no \"%s\"", rig_nv_why(), text);
}

static void closes(void **state) {
  (void)state;
  struct bench b;
  struct rig_nv_reply r;
  bench_open(&b, NULL);
  const struct rig_nv_path *p = b.path;
  in_use(p, "7 objects, 4 memories, 2 registered channels");
  for (int i = 0; i < 2; i++)
    assert_true(p->unregister_channel(p->ctx, b.channel[i].handle, &r));
  in_use(p, "7 objects, 4 memories, 0 registered");
  assert_true(p->rm.free(p->ctx, p->device, b.debugger, &r));
  assert_true(p->rm.free(p->ctx, p->device, b.group, &r));
  in_use(p, "0 objects, 4 memories");
  assert_true(p->free(p->ctx, &b.words, &r));
  assert_true(p->free(p->ctx, &b.block, &r));
  assert_true(p->free(p->ctx, &b.channel[0].notifier, &r));
  in_use(p, "0 objects, 1 memories");
  assert_true(p->free(p->ctx, &b.channel[1].notifier, &r));
  uint8_t params[64] = {0};
  uint32_t group;
  bench_group_params(&b, params);
  assert_true(p->rm.alloc(p->ctx, p->device, 0xa06c, params, 20, &group, &r));
  in_use(p, "1 objects, 0 memories, 0 registered");
  assert_true(p->rm.free(p->ctx, p->device, group, &r));
  assert_int_equal(rig_nv_path_close(p), 0);
}

/* A PCI-like path's stop ends every object, and its work at once. */
static void stops(void **state) {
  (void)state;
  struct bench b;
  struct rig_nv_reply r;
  struct rig_nv_memory m;
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.personality = RIG_NV_LIKE_PCI;
  bench_open(&b, &o);
  const struct rig_nv_path *p = b.path;
  in_use(p, "7 objects, 4 memories, 2 registered channels");
  uint64_t w = bench_word_at(&b, 0);
  uint32_t words[] = {0x20050017, (uint32_t)w, (uint32_t)(w >> 32),
                      1,          0,           0x01100001};
  bench_run(&b, 0, words, COUNT(words));
  assert_int_equal(p->stop(p->ctx), RIG_NV_STOPPED);
  bench_store(bench_word(&b, 0), 77);
  bench_run(&b, 0, words, COUNT(words));
  bench_sleep_ms(3);
  assert_int_equal(bench_load(bench_word(&b, 0)), 77);
  uint32_t made;
  uint8_t none_[64] = {0};
  assert_false(p->alloc(p->ctx, RIG_PINNED, 8, 0, &m, &r));
  assert_int_equal(r.is, RIG_NV_DENIED);
  assert_false(p->rm.alloc(p->ctx, p->device, 0xa06c, none_, 20, &made, &r));
  assert_int_equal(r.is, RIG_NV_DENIED);
  assert_false(p->rm.token(p->ctx, b.channel[0].handle, &made, &r));
  assert_false(p->rm.schedule(p->ctx, b.group, none_, 3, &r));
  assert_false(p->rm.boost(p->ctx, p->subdevice, &r));
  assert_false(p->unregister_channel(p->ctx, b.channel[0].handle, &r));
  in_use(p, "0 objects, 4 memories, 0 registered");
  bench_close(&b); /* stops again */
}

/* Several paths at once, each with its own engine. */
static void several(void **state) {
  (void)state;
  struct bench b[3];
  for (int i = 0; i < 3; i++)
    bench_open(&b[i], NULL);
  for (uint32_t i = 0; i < 3; i++) {
    uint64_t w = bench_word_at(&b[i], 0);
    uint32_t words[] = {0x20050017, (uint32_t)w, (uint32_t)(w >> 32),
                        i + 1,      0,           0x01100001};
    bench_run(&b[i], 0, words, COUNT(words));
  }
  for (uint32_t i = 0; i < 3; i++)
    assert_true(bench_wait(bench_word(&b[i], 0), i + 1));
  for (int i = 0; i < 3; i++)
    bench_close(&b[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options),       cmocka_unit_test(states),
      cmocka_unit_test(inside_a_lock), cmocka_unit_test(closes),
      cmocka_unit_test(stops),         cmocka_unit_test(several),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
