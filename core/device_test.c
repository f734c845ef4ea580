/* SPDX-License-Identifier: ISC */
/*
 * A device's memory, its waits and its end.
 */
#include "core/test_bed.h"

/* ---- memory ---- */

static void test_regions(void **state) {
  (void)state;
  static const struct {
    enum rig_memory kind;
    bool host, low;
  } kinds[] = {{RIG_DEVICE, false, false},
               {RIG_PINNED, true, true},
               {RIG_MAPPED, true, true}};
  static const uint64_t sizes[] = {4, 4096, 4100, 1 << 20};
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++) {
    const struct rig_nv_path *path = open_model(personality);
    struct rig_nv *d = make(path, NULL);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
      for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        struct rig_nv_region *r = alloc(d, kinds[i].kind, sizes[k]);
        struct rig_location l = rig_nv_locate(r);
        assert_int_equal(l.address % 4096, 0);
        assert_int_equal(l.handle, l.address);
        assert_int_equal(l.host != NULL, kinds[i].host);
        if (kinds[i].low)
          assert_true(l.address + sizes[k] <= RIG_NV_WINDOWS);
        if (l.host)
          memset(l.host, 1, sizes[k]);
        assert_int_equal(rig_nv_free(d, r), 0);
      }
    end(d);
    close_path(path);
  }
}

static void test_no_memory(void **state) {
  (void)state;
  struct rig_nv_model_options o;
  const struct rig_nv_path *path;
  struct rig_nv_region *r = NULL;
  rig_nv_model_options_init(&o);
  o.device_bytes = o.mapped_bytes = 1 << 20;
  assert_int_equal(rig_nv_path_model(&o, &path), 0);
  struct rig_nv *d = make(path, NULL);
  for (int i = 0; i < 100; i++) {
    assert_int_equal(rig_nv_alloc(d, RIG_DEVICE, 2 << 20, &r),
                     -RIG_NV_NO_MEMORY);
    assert_int_equal(rig_nv_alloc(d, RIG_MAPPED, 2 << 20, &r),
                     -RIG_NV_NO_MEMORY);
  }
  assert_null(r);
  r = alloc(d, RIG_DEVICE, 1 << 19);
  assert_int_equal(rig_nv_free(d, r), 0);
  end(d);
  close_path(path);
}

/* A path that has no Mapped memory: no flush word, and None for Mapped. */
static void test_no_mapped(void **state) {
  (void)state;
  struct rig_nv_model_options o;
  const struct rig_nv_path *path;
  struct rig_nv_region *r = NULL;
  rig_nv_model_options_init(&o);
  o.mapped_bytes = 0;
  assert_int_equal(rig_nv_path_model(&o, &path), 0);
  struct rig_nv *d = make(path, NULL);
  assert_int_equal(rig_nv_alloc(d, RIG_MAPPED, 4096, &r), -RIG_NV_NO_MEMORY);
  struct rig_submission s = {0};
  reached(d, submit(d, &s));
  end(d);
  close_path(path);
}

static void fill(unsigned char *p, size_t n, unsigned seed) {
  for (size_t i = 0; i < n; i++)
    p[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

/* Copies between any two kinds at odd offsets, and host memory that the
 * caller has. */
static void test_copies(void **state) {
  (void)state;
  enum { N = 40003, ROOM = N + 64, ROUNDED = (ROOM + 3) / 4 * 4 };
  const struct rig_nv_path *path = open_model(KERNEL);
  struct rig_nv *d = make(path, NULL);
  unsigned char *given = malloc(N), *got = malloc(ROUNDED);
  void *host = aligned_alloc(PAGE, 65536);
  struct rig_nv_region *from, *to;
  enum rig_mapping mapping;
  assert_true(given && got && host);
  for (int a = RIG_DEVICE; a <= RIG_MAPPED + 1; a++)
    for (int b = RIG_DEVICE; b <= RIG_MAPPED; b++) {
      if (a <= RIG_MAPPED)
        from = alloc(d, (enum rig_memory)a, ROUNDED);
      else if (rig_nv_map_host(d, host, ROUNDED, &mapping, &from) != 0)
        fail_msg("map_host: %s", rig_nv_why());
      to = alloc(d, (enum rig_memory)b, ROUNDED);
      fill(given, N, (unsigned)(16 * a + b));
      memset(got, 0xcc, ROUNDED);
      assert_int_equal(rig_nv_upload(d, to, 0, got, ROUNDED), 0);
      assert_int_equal(rig_nv_upload(d, from, 13, given, N), 0);
      struct rig_part p = rig_part_copy(rig_nv_locate(to).address + 5,
                                        rig_nv_locate(from).address + 13, N);
      struct rig_submission s = {.parts = &p, .nparts = 1};
      reached(d, submit(d, &s));
      assert_int_equal(rig_nv_download(d, to, 0, got, ROUNDED), 0);
      for (int i = 0; i < 5; i++)
        assert_int_equal(got[i], 0xcc);
      assert_memory_equal(got + 5, given, N);
      for (int i = 5 + N; i < ROUNDED; i++)
        assert_int_equal(got[i], 0xcc);
      assert_int_equal(rig_nv_free(d, from), 0);
      assert_int_equal(rig_nv_free(d, to), 0);
    }
  free(given);
  free(got);
  free(host);
  end(d);
  close_path(path);
}

/* More than the staging region holds, at odd places. */
static void test_transfers(void **state) {
  (void)state;
  enum { N = 3 * 1024 * 1024 + 12 };
  static const struct {
    uint64_t at, n;
  } ranges[] = {{0, 0}, {0, N},     {1, N - 1},
                {N, 0}, {N - 1, 1}, {7, (1 << 20) + 1}};
  const struct rig_nv_path *path = open_model(KERNEL);
  struct rig_nv *d = make(path, NULL);
  struct rig_nv_region *r = alloc(d, RIG_DEVICE, N);
  unsigned char *mirror = calloc(1, N), *got = malloc(N);
  assert_true(mirror && got);
  assert_int_equal(rig_nv_upload(d, r, 0, mirror, N), 0);
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
    fill(mirror + ranges[i].at, ranges[i].n, (unsigned)i);
    assert_int_equal(
        rig_nv_upload(d, r, ranges[i].at, mirror + ranges[i].at, ranges[i].n),
        0);
    memset(got, 0, N);
    assert_int_equal(rig_nv_download(d, r, 0, got, N), 0);
    assert_memory_equal(got, mirror, N);
    assert_int_equal(rig_nv_download(d, r, ranges[i].at, got, ranges[i].n), 0);
    assert_memory_equal(got, mirror + ranges[i].at, ranges[i].n);
    assert_int_equal(rig_nv_signaled(d), rings_last(&d->rings));
  }
  free(mirror);
  free(got);
  assert_int_equal(rig_nv_free(d, r), 0);
  end(d);
  close_path(path);
}

/* What a deferred free leaves in the model, and when it goes. */
static void test_free_after(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(KERNEL);
  struct rig_nv *d = make(path, NULL);
  struct rig_submission s = {0};
  struct model_counts c;
  model_counts(path, &c);
  size_t before = c.memories;
#define LIVES(n)                                                               \
  do {                                                                         \
    model_counts(path, &c);                                                    \
    assert_int_equal(c.memories - before, n);                                  \
  } while (0)
  /* Reached: at once. */
  assert_int_equal(rig_nv_free_after(d, alloc(d, RIG_DEVICE, 4096), 0), 0);
  LIVES(0);
  /* Not yet: at the next allocation after it is. */
  model_stall(path, true);
  uint64_t v = submit(d, &s);
  assert_int_equal(rig_nv_free_after(d, alloc(d, RIG_DEVICE, 4096), v), 0);
  assert_int_equal(rig_nv_free_after(d, alloc(d, RIG_MAPPED, 4096), v), 0);
  assert_int_equal(rig_nv_free_after(d, alloc(d, RIG_PINNED, 4096), v + 1), 0);
  LIVES(3);
  struct rig_nv_region *r = alloc(d, RIG_DEVICE, 4096);
  LIVES(4);
  assert_int_equal(rig_nv_free(d, r), 0);
  model_stall(path, false);
  reached(d, v);
  LIVES(3);
  r = alloc(d, RIG_DEVICE, 4096);
  LIVES(2);
  EXPECT(rig_nv_free_after(d, NULL, v), RIG_NV_INVALID,
         "free: not a region of this device");
  assert_int_equal(rig_nv_free(d, r), 0);
  /* What waits for a value that never comes goes with the device. */
  LIVES(1);
  end(d);
  nothing_left(path, "release");
  close_path(path);
}

/* ---- waiting ---- */

static void test_sleep(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(KERNEL);
  struct rig_nv *d = make(path, NULL);
  struct rig_submission s = {0};
  model_stall(path, true);
  uint64_t v = submit(d, &s), start = device_now();
  assert_int_equal(rig_nv_sleep(d, v - 1, 20), 0);
  assert_true(device_now() - start >= 20000000);
  assert_int_equal(rig_nv_signaled(d), v - 1);
  start = device_now();
  assert_int_equal(rig_nv_sleep(d, v, 10000), 0); /* differs already */
  assert_true(device_now() - start < UINT64_C(5000000000));
  EXPECT(rig_nv_wait(d, v, device_now() + 3000000), RIG_NV_TIMEOUT,
         "wait: value 1 is not reached");
  EXPECT(rig_nv_wait(d, v, 0), RIG_NV_TIMEOUT, "wait: value 1 is not reached");
  model_stall(path, false);
  while (rig_nv_signaled(d) != v)
    assert_int_equal(rig_nv_sleep(d, v - 1, 5000), 0);
  assert_int_equal(rig_nv_wait(d, v, 0), 0);
  assert_int_equal(rig_nv_wait(d, v, UINT64_MAX), 0);
  end(d);
  close_path(path);
}

static void test_stalled(void **state) {
  (void)state;
  struct rig_nv_model_options o;
  const struct rig_nv_path *path;
  rig_nv_model_options_init(&o);
  o.hang_ms = 30;
  assert_int_equal(rig_nv_path_model(&o, &path), 0);
  struct rig_nv *d = make(path, NULL);
  struct rig_submission s = {0};
  model_stall(path, true);
  uint64_t v = submit(d, &s);
  EXPECT(rig_nv_wait(d, v, UINT64_MAX), RIG_NV_STALLED,
         "no progress for 30 ms");
  model_stall(path, false);
  end(d);
  close_path(path);
}

static void test_fault(void **state) {
  (void)state;
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++) {
    const struct rig_nv_path *path = open_model(personality);
    struct rig_nv *d = make(path, NULL);
    struct rig_part p = rig_part_copy(0x12345000, 0x1000, 16);
    struct rig_submission s = {.parts = &p, .nparts = 1};
    uint64_t v = submit(d, &s);
    assert_int_equal(rig_nv_wait(d, v, soon()), -RIG_NV_FAULT);
    const char *why = rig_nv_why();
    /* Where tables are walked, none leads there. */
    const char *line = model_path_walks((enum model_path)personality)
                           ? "\nMMU fault: 0x1000 | PDE | VIRT_READ"
                           : "\nMMU fault: 0x1000 | PTE | VIRT_READ";
    if (strstr(why, "channel error 31 (FIFO_ERROR_MMU_ERR_FLT), status 0x") ==
            NULL ||
        strstr(why, line) == NULL)
      fail_msg("the report: %s", why);
    assert_int_equal(rig_nv_sleep(d, v - 1, 1000), -RIG_NV_FAULT);
    assert_int_equal(rig_nv_stop(d, "fault"), 0);
    assert_int_equal(rig_nv_signaled(d), v);
    assert_int_equal(rig_nv_release(d), 0);
    close_path(path);
  }
}

/* ---- stop ---- */

static void test_stop(void **state) {
  (void)state;
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++) {
    const struct rig_nv_path *path = open_model(personality);
    struct rig_nv *d = make(path, NULL);
    struct rig_nv_region *r = alloc(d, RIG_DEVICE, 4096), *none = NULL;
    struct rig_part p = rig_part_copy(rig_nv_locate(r).address,
                                      rig_nv_locate(r).address + 64, 16);
    struct rig_submission s = {.parts = &p, .nparts = 1};
    EXPECT(rig_nv_release(d), RIG_NV_INVALID,
           "release: the device is not stopped");
    model_stall(path, true);
    uint64_t v = 0;
    for (int i = 0; i < 5; i++)
      v = submit(d, &s);
    model_stall(path, false);
    assert_int_equal(rig_nv_stop(d, NULL), 0);
    assert_int_equal(rig_nv_signaled(d), v);
    assert_int_equal(rig_nv_stop(d, "again"), 0);
    EXPECT(rig_nv_alloc(d, RIG_DEVICE, 4, &none), RIG_NV_REFUSED,
           "the device is stopped");
    EXPECT(rig_nv_upload(d, r, 0, "", 0), RIG_NV_REFUSED,
           "the device is stopped");
    EXPECT(rig_nv_release(d), RIG_NV_INVALID,
           "release: 1 regions are not freed");
    assert_int_equal(rig_nv_free(d, r), 0);
    assert_int_equal(rig_nv_release(d), 0);
    if (personality == KERNEL) {
      nothing_left(path, "stop");
      struct rig_nv *next = make(path, NULL);
      reached(next, submit(next, &(struct rig_submission){0}));
      end(next);
    }
    close_path(path);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_regions),   cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_no_mapped), cmocka_unit_test(test_copies),
      cmocka_unit_test(test_transfers), cmocka_unit_test(test_free_after),
      cmocka_unit_test(test_sleep),     cmocka_unit_test(test_stalled),
      cmocka_unit_test(test_fault),     cmocka_unit_test(test_stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
