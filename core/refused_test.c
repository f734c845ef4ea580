/* SPDX-License-Identifier: ISC */
/*
 * What each public function of a device refuses, having changed nothing.
 */
#include "core/test_bed.h"

/* ---- what each function refuses ---- */

static int call_locked(struct rig_nv_lock *l, int (*fn)(void *), void *arg) {
  return rig_nv_lock_protect(l, fn, arg);
}

struct locked {
  struct rig_nv *d;
  const struct rig_nv_path *path;
  struct rig_nv_region *r;
  int which;
};

static int locked_call(void *arg) {
  struct locked *k = arg;
  struct rig_nv *d = NULL;
  struct rig_nv_region *r = NULL;
  enum rig_mapping mapping;
  const struct rig_nv_path *path = NULL;
  switch (k->which) {
  case 0:
    return rig_nv_make(k->path, NULL, &d);
  case 1:
    return rig_nv_stop(k->d, NULL);
  case 2:
    return rig_nv_release(k->d);
  case 3:
    return rig_nv_alloc(k->d, RIG_DEVICE, 4096, &r);
  case 4:
    return rig_nv_free(k->d, k->r);
  case 5:
    return rig_nv_map_host(k->d, NULL, 4096, &mapping, &r);
  case 6:
    return rig_nv_upload(k->d, k->r, 0, "", 0);
  case 7:
    return rig_nv_download(k->d, k->r, 0, &d, 0);
  case 8:
    return rig_nv_sleep(k->d, rig_nv_signaled(k->d), 0);
  case 9:
    return rig_nv_wait(k->d, rig_nv_signaled(k->d) + 1, 0);
  case 10:
    return rig_nv_path_model(NULL, &path);
  default:
    return 1;
  }
}

/* Every entry point that may take a lock is refused while its thread holds
 * one, having changed nothing. */
static void test_lock_held(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(KERNEL);
  struct rig_nv *d = make(path, NULL);
  struct rig_nv_lock l;
  assert_int_equal(rig_nv_lock_init(&l, &rig_nv_lock_path), 0);
  struct locked k = {d, path, alloc(d, RIG_DEVICE, 4096), 0};
  for (; k.which <= 10; k.which++) {
    int e = call_locked(&l, locked_call, &k);
    if (e != -RIG_NV_INVALID || strstr(rig_nv_why(), "path") == NULL)
      fail_msg("call %d: got %d, %s", k.which, e, rig_nv_why());
  }
  rig_nv_lock_fini(&l);
  assert_int_equal(rig_nv_free(d, k.r), 0);
  end(d);
  close_path(path);
}

static void bad_options(const struct rig_nv_path *path) {
  struct rig_nv_options o;
  struct rig_nv *d = NULL;
  uint64_t *page = aligned_alloc(PAGE, PAGE);
  struct rig_nv_allocator half = {NULL, NULL, NULL};
  assert_non_null(page);
#define OPTION(set, text)                                                      \
  do {                                                                         \
    rig_nv_options_init(&o);                                                   \
    set;                                                                       \
    EXPECT(rig_nv_make(path, &o, &d), RIG_NV_INVALID, text);                   \
    assert_null(d);                                                            \
  } while (0)
  char size[96];
  snprintf(size, sizeof size,
           "make: options of 3 bytes, not %zu: was rig_nv_options_init "
           "called?",
           sizeof o);
  OPTION(o.size = 3, size);
  OPTION(o.mode = (enum rig_nv_mode)9, "make: 9 is no mode");
  OPTION(o.allocator = &half, "make: an allocator without alloc or release");
  OPTION(o.userd_at = 7, "make: 7 is no place of USERD");
  OPTION(o.ring_at = -1, "make: -1 is no place of the entry rings");
  OPTION(o.segment_at = 3, "make: 3 is no place of the segment rings");
  OPTION(o.launch_at = 3, "make: 3 is no place of the launch ring");
  OPTION((o.words = page, o.words_bytes = PAGE),
         "make: an array of words and no word");
  char misaligned[96];
  snprintf(misaligned, sizeof misaligned,
           "make: the word at %p is not 8-byte aligned",
           (void *)((char *)page + 4));
  OPTION(o.word = (uint64_t *)(void *)((char *)page + 4), misaligned);
  snprintf(misaligned, sizeof misaligned,
           "make: the array of words at %p does not start a page",
           (void *)(page + 1));
  OPTION((o.word = page, o.words = page + 1), misaligned);
  OPTION((o.word = page, o.words = page, o.words_bytes = SIZE_MAX),
         "make: the array of words ends past the end of the address space");
  EXPECT(rig_nv_make(NULL, NULL, &d), RIG_NV_INVALID,
         "make: not a path of this version");
  struct rig_nv_path bad = *path;
  bad.size = 8;
  EXPECT(rig_nv_make(&bad, NULL, &d), RIG_NV_INVALID,
         "make: not a path of this version");
#define CLASS(field, value, text)                                              \
  do {                                                                         \
    bad = *path;                                                               \
    bad.gpu.field = value;                                                     \
    EXPECT(rig_nv_make(&bad, NULL, &d), RIG_NV_REFUSED, text);                 \
  } while (0)
  CLASS(channel_class, 0xa06f, "make: channel class 0xa06f is not supported");
  CLASS(compute_class, 0xc6c0, "make: compute class 0xc6c0 is not supported");
  CLASS(copy_class, 0xc6b5, "make: copy class 0xc6b5 is not supported");
  free(page);
}

static void test_bad_arguments(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(KERNEL), *other;
  struct rig_nv *d = make(path, NULL), *d2;
  struct rig_nv_region *r = alloc(d, RIG_DEVICE, 4096), *none = NULL;
  enum rig_mapping mapping = RIG_MAPS;
  unsigned char byte = 0;
  other = open_model(KERNEL);
  d2 = make(other, NULL);

  EXPECT(rig_nv_alloc(d, (enum rig_memory)7, 4096, &none), RIG_NV_INVALID,
         "alloc: 7 is no kind of memory");
  EXPECT(rig_nv_alloc(d, RIG_DEVICE, 0, &none), RIG_NV_INVALID,
         "alloc: fewer than one byte");
  EXPECT(rig_nv_alloc(d, RIG_PINNED, 4098, &none), RIG_NV_INVALID,
         "alloc: 4098 bytes are not a multiple of 4");
  EXPECT(rig_nv_map_host(d, (void *)4096, 0, &mapping, &none), RIG_NV_INVALID,
         "map_host: fewer than one byte");
  EXPECT(rig_nv_map_host(d, (void *)4100, 4, &mapping, &none), RIG_NV_INVALID,
         "map_host: 0x1004 does not start a page");
  EXPECT(rig_nv_map_host(d, (void *)8192, UINT64_MAX - 100, &mapping, &none),
         RIG_NV_INVALID, "map_host: past the end of the address space");
  assert_null(none);
  EXPECT(rig_nv_free(d, NULL), RIG_NV_INVALID,
         "free: not a region of this device");
  EXPECT(rig_nv_free(d2, r), RIG_NV_INVALID,
         "free: not a region of this device");
  EXPECT(rig_nv_upload(d, NULL, 0, &byte, 1), RIG_NV_INVALID,
         "upload: not a region of this device");
  EXPECT(rig_nv_upload(d2, r, 0, &byte, 1), RIG_NV_INVALID,
         "upload: not a region of this device");
  EXPECT(rig_nv_upload(d, r, 4096, &byte, 1), RIG_NV_INVALID,
         "upload: 1 bytes at 4096 of a region of 4096");
  EXPECT(rig_nv_upload(d, r, 4097, &byte, 0), RIG_NV_INVALID,
         "upload: 0 bytes at 4097 of a region of 4096");
  EXPECT(rig_nv_download(d, r, 1, &byte, UINT64_MAX), RIG_NV_INVALID,
         "download: 18446744073709551615 bytes at 1 of a region of 4096");
  EXPECT(rig_nv_download(d2, r, 0, &byte, 1), RIG_NV_INVALID,
         "download: not a region of this device");
  bad_options(path);
  assert_int_equal(rig_nv_path_close(path), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_free(d, r), 0);
  end(d);
  end(d2);
  close_path(other);
  close_path(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lock_held),
      cmocka_unit_test(test_bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
