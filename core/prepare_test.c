/* SPDX-License-Identifier: ISC */
/* Prepares: what they start, who waits for it, and entries of many threads. */
#include "core/image_bed.h"

/* Nobody waits for an entry's path but the entry of the same function. */
struct waiter {
  struct laid *l;
  const char *name;
  uint64_t code;
  uint32_t done; /* ck_pr */
};

static void *wait_entry(void *arg) {
  struct waiter *w = arg;
  struct rig_nv_function e;
  uint64_t need;
  SURE(rig_nv_entry(w->l->image, w->name, &e, &need) == 0);
  w->code = e.code;
  ck_pr_store_32(&w->done, 1);
  return NULL;
}

static void test_prepare(void **state) {
  (void)state;
  struct bed b;
  pthread_t thread;
  begin(&b);
  struct laid l = lay_file(&b, "launch_sm90");
  struct waiter w = {.l = &l, .name = "deep"};
  unsigned live = b.live, calls = b.f.calls;
  gate_set(&b, true);
  (void)why(RIG_NV_INVALID, "before");
  rig_nv_prepare(l.image, "absent");
  assert_string_equal(rig_nv_why(), "before");
  rig_nv_prepare(l.image, "deep"); /* returns, as it waits for nobody */
  gate_await(&b, 1);
  assert_true(b.g.masked);
  rig_nv_prepare(l.image, "deep"); /* started */
  assert_int_equal(b.live, live + 1);
  assert_int_equal(pthread_create(&thread, NULL, wait_entry, &w), 0);
  device_nap(20000000);
  assert_int_equal(ck_pr_load_32(&w.done), 0);
  rig_nv_prepare(l.image, "none"); /* while an entry waits */
  assert_int_equal(b.live, live + 2);
  assert_int_equal(b.f.calls, calls);
  gate_set(&b, false);
  pthread_join(thread, NULL);
  assert_int_equal(w.code, l.base + 0x1080);
  assert_int_equal(entry_of(&l, "deep").code, w.code);
  entry_of(&l, "none");
  rig_nv_prepare(l.image, "deep"); /* it has an entry */
  DONE(rig_nv_local(b.d, 1 << 17, NULL));
  assert_false(b.g.masked); /* of the thread that prepared, nothing changed */
  /* One growth: the second function found enough. And the test's own. */
  assert_int_equal(b.f.calls, calls + 2);
  assert_int_equal(b.live, live + 3);
  unlay(&b, &l);
  finish(&b);
}

/* The bound on threads; and unload, lay and stop wait for them. */
struct opener {
  struct bed *b;
  uint32_t opened; /* ck_pr */
};

static void *open_later(void *arg) {
  struct opener *o = arg;
  device_nap(20000000);
  ck_pr_store_32(&o->opened, 1);
  gate_set(o->b, false);
  return NULL;
}

static void test_joins(void **state) {
  (void)state;
  for (int which = 0; which < 3; which++) {
    struct bed b;
    struct opener o = {&b, 0};
    pthread_t thread;
    char name[8];
    begin_on(&b, 0x806);
    struct laid l = lay_file(&b, "crowd_sm86");
    unsigned live = b.live;
    gate_set(&b, true);
    for (unsigned i = 0; i < 2 * IMAGE_MOST_PREPARES; i++) {
      snprintf(name, sizeof name, "k%02x", i);
      rig_nv_prepare(l.image, name);
    }
    assert_int_equal(b.live, live + IMAGE_MOST_PREPARES);
    assert_int_equal(pthread_create(&thread, NULL, open_later, &o), 0);
    switch (which) {
    case 0:
      DONE(rig_nv_unload(b.d, l.image));
      break;
    case 1:
      assert_int_equal(rig_nv_image_lay(l.image, l.region, l.code),
                       -RIG_NV_INVALID);
      break;
    default:
      DONE(rig_nv_stop(b.d, NULL));
      for (const struct function *f = l.image->functions; f; f = f->next)
        assert_false(f->thread_live);
      break;
    }
    assert_int_equal(ck_pr_load_32(&o.opened), 1);
    pthread_join(thread, NULL);
    assert_int_equal(b.live, live + (which == 0 ? 0 : IMAGE_MOST_PREPARES) -
                                 (which == 0 ? 2 : 0) - (which == 2));
    if (which == 1) { /* threads that have ended make room for others */
      for (unsigned i = 0; i < 128; i++) {
        snprintf(name, sizeof name, "k%02x", i);
        rig_nv_prepare(l.image, name);
      }
      entry_of(&l, "k7f");
    }
    if (which != 0)
      DONE(rig_nv_unload(b.d, l.image));
    DONE(rig_nv_free(b.d, l.region));
    free(l.code);
    finish(&b);
  }
}

/* ---- threads ---- */

enum { THREADS = 4 };

struct user {
  struct laid *l;
  struct bed *b;
  uint64_t code[128];
};

/* Prepares and entries of all functions, in an order of its own; and an image
 * of its own, from load to unload. */
static void *user(void *arg) {
  struct user *u = arg;
  char name[8];
  struct rig_nv_function e;
  uint64_t need;
  for (unsigned i = 0; i < 128; i++) {
    unsigned k = (i * 37 + (unsigned)(uintptr_t)u / 64) % 128;
    snprintf(name, sizeof name, "k%02x", (k + 5) % 128);
    rig_nv_prepare(u->l->image, name);
    snprintf(name, sizeof name, "k%02x", k);
    SURE(rig_nv_entry(u->l->image, name, &e, &need) == 0);
    u->code[k] = e.code;
  }
  struct file f = file_read("launch_sm86");
  for (unsigned i = 0; i < 8; i++) {
    struct laid l = {0};
    SURE(rig_nv_image_load(u->b->d, f.bytes, f.n, &l.place_bytes, &l.image) ==
         0);
    SURE(rig_nv_alloc(u->b->d, RIG_DEVICE, l.place_bytes, &l.region) == 0);
    unsigned char *code = malloc(l.place_bytes);
    SURE(code && rig_nv_image_lay(l.image, l.region, code) == 0);
    rig_nv_prepare(l.image, "both");
    rig_nv_prepare(l.image, "deep");
    if (i % 2)
      SURE(rig_nv_entry(l.image, "deep", &e, &need) == 0);
    SURE(rig_nv_unload(u->b->d, l.image) == 0);
    SURE(rig_nv_free(u->b->d, l.region) == 0);
    free(code);
  }
  free(f.bytes);
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  struct bed b;
  struct user u[THREADS];
  pthread_t thread[THREADS];
  struct rig_submission s = {0};
  uint64_t v = 0;
  bed_options(&b, RIG_NV_LIKE_KERNEL, 0x806);
  b.plain = true;
  bed_make(&b);
  struct laid l = lay_file(&b, "crowd_sm86");
  for (unsigned i = 0; i < THREADS; i++) {
    u[i] = (struct user){.l = &l, .b = &b};
    assert_int_equal(pthread_create(&thread[i], NULL, user, &u[i]), 0);
  }
  for (unsigned i = 0; i < 500; i++) /* posts at the same time */
    DONE(rig_nv_post_wait(b.d, &s, UINT64_MAX, &v));
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join(thread[i], NULL);
  for (unsigned k = 0; k < 128; k++)
    for (unsigned i = 0; i < THREADS; i++)
      assert_int_equal(u[i].code[k], l.base + 0x13f00 - k * 0x100);
  DONE(rig_nv_wait(b.d, v, UINT64_MAX));
  unlay(&b, &l);
  finish(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_prepare),
      cmocka_unit_test(test_joins),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
