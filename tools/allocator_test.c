/* SPDX-License-Identifier: ISC */
#include "tools/allocator.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void aligned(void **state) {
  (void)state;
  static const struct {
    size_t align, n;
  } t[] = {{1, 1},     {8, 0},     {16, 3},       {64, 64},
           {128, 100}, {4096, 10}, {4096, 70000}, {1 << 16, 1 << 21}};
  const struct rig_nv_allocator *a = tool_allocator();
  if (!a)
    skip();
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    void *p = a->alloc(a->ctx, t[i].align, t[i].n);
    if (!p || (uintptr_t)p % t[i].align)
      fail_msg("%zu bytes aligned to %zu: %p", t[i].n, t[i].align, p);
    memset(p, 0xa5, t[i].n);
    a->release(a->ctx, p, t[i].n);
  }
}

/* The pointer escapes, so that no compiler drops the pair. */
static void *volatile sink;

static void by_malloc(size_t n) {
  sink = malloc(n);
  free(sink);
}

static void by_hooks(size_t n) {
  const struct rig_nv_allocator *a = tool_allocator();
  sink = a->alloc(a->ctx, 64, n);
  a->release(a->ctx, sink, n);
}

static void by_nothing(size_t n) { (void)n; }

static void counts(void **state) {
  (void)state;
  static const struct {
    const char *name;
    void (*run)(size_t n);
    size_t n, least, most;
  } t[] = {
      {"nothing", by_nothing, 1, 0, 0},
      {"malloc", by_malloc, 1000, 1000, 1280},
      {"large malloc", by_malloc, 1 << 20, 1 << 20, (1 << 20) + (1 << 18)},
      {"hooks", by_hooks, 1000, 1000, 1280},
      {"one byte", by_hooks, 1, 1, 64},
  };
  if (!tool_counts_allocations()) {
    assert_int_equal(tool_allocated(), 0);
    skip();
  }
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    uint64_t before = tool_allocated();
    t[i].run(t[i].n);
    uint64_t n = tool_allocated() - before;
    if (n < t[i].least || n > t[i].most)
      fail_msg("%s: %llu bytes", t[i].name, (unsigned long long)n);
  }
}

static void *allocate(void *arg) {
  (void)arg;
  by_malloc(1 << 20);
  return NULL;
}

/* pthread_create itself allocates in the calling thread, less than that. */
static void counts_the_thread_alone(void **state) {
  (void)state;
  pthread_t t;
  uint64_t before = tool_allocated();
  assert_int_equal(pthread_create(&t, NULL, allocate, NULL), 0);
  assert_int_equal(pthread_join(t, NULL), 0);
  assert_true(tool_allocated() - before < 1 << 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(aligned),
      cmocka_unit_test(counts),
      cmocka_unit_test(counts_the_thread_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
