/* SPDX-License-Identifier: ISC */
/*
 * A device on the model, in both personalities: its life, its memory, its
 * word, and what each public function refuses.
 */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/device.h"
#include "core/failing_path.h"
#include "core/lock_order/lock_order.h"
#include "paths/model/model.h"

enum { PAGE = 4096, KERNEL = RIG_NV_LIKE_KERNEL, PCI = RIG_NV_LIKE_PCI };

static const struct rig_nv_path *open_model(int personality) {
  struct rig_nv_model_options o;
  const struct rig_nv_path *path = NULL;
  rig_nv_model_options_init(&o);
  o.personality = (enum rig_nv_personality)personality;
  int e = rig_nv_path_model(&o, &path);
  if (e != 0)
    fail_msg("model: %s", rig_nv_why());
  return path;
}

static void close_path(const struct rig_nv_path *path) {
  if (rig_nv_path_close(path) != 0)
    fail_msg("close: %s", rig_nv_why());
}

/* A device on rings that are small, with counts about to wrap. */
static struct rig_nv *make(const struct rig_nv_path *path,
                           const struct rig_nv_options *o) {
  struct device_sizes z;
  struct rig_nv *d = NULL;
  device_sizes_init(&z);
  z.entries = 64;
  z.segment_bytes = 8192;
  z.in_flight = 16;
  z.start_entries = (uint32_t)-64;
  z.start_units = (uint32_t)-20;
  z.start_joins = UINT64_MAX - 3;
  if (device_make_sized(path, o, &z, &d) != 0)
    fail_msg("make: %s", rig_nv_why());
  return d;
}

static void end(struct rig_nv *d) {
  if (rig_nv_stop(d, NULL) != 0 || rig_nv_release(d) != 0)
    fail_msg("stop and release: %s", rig_nv_why());
}

static struct rig_nv_region *alloc(struct rig_nv *d, enum rig_memory kind,
                                   uint64_t n) {
  struct rig_nv_region *r = NULL;
  if (rig_nv_alloc(d, kind, n, &r) != 0)
    fail_msg("alloc: %s", rig_nv_why());
  return r;
}

static uint64_t submit(struct rig_nv *d, const struct rig_submission *s) {
  const char *failure = NULL;
  uint64_t v = rings_last(&d->rings) + 1;
  assert_int_equal(d->edge->room(d, s), RIG_FITS);
  if (d->edge->submit(d, v, s, &failure) != RIG_COMMITTED)
    fail_msg("submit: %s", failure);
  return v;
}

static uint64_t soon(void) { return device_now() + UINT64_C(5000000000); }

static void reached(struct rig_nv *d, uint64_t v) {
  if (rig_nv_wait(d, v, soon()) != 0)
    fail_msg("wait: %s", rig_nv_why());
}

#define EXPECT(call, error, text)                                              \
  do {                                                                         \
    int got = (call);                                                          \
    if (got != -(error) || strcmp(rig_nv_why(), text) != 0)                    \
      fail_msg("%s:\n got %d, %s\nwant %d, %s", #call, got, rig_nv_why(),      \
               -(error), text);                                                \
  } while (0)

/* What outlives nothing: counted by the model. */
static void nothing_left(const struct rig_nv_path *path, const char *when) {
  struct model_counts c;
  model_counts(path, &c);
  if (c.objects || c.memories || c.registrations)
    fail_msg("%s: %zu objects, %zu memories, %zu registrations stay", when,
             c.objects, c.memories, c.registrations);
}

/* ---- make ---- */

static const struct {
  int release;
  const char *text;
} releases[] = {
    {0, "make: release 0 of the resource manager: 570, 580, 610 and 615 are "
        "supported"},
    {569, "make: release 569 of the resource manager: 570, 580, 610 and 615 "
          "are supported"},
    {590, "make: release 590 of the resource manager: 570, 580, 610 and 615 "
          "are supported"},
    {615, "make: release 615 of the resource manager: the layout of its "
          "parameters is not known"},
};

static void test_releases(void **state) {
  (void)state;
  const struct rig_nv_path *model = open_model(KERNEL);
  for (size_t i = 0; i < sizeof releases / sizeof releases[0]; i++) {
    struct failing_path f;
    struct rig_nv *d = NULL;
    failing_path_init(&f, model);
    f.path.rm.release = releases[i].release;
    EXPECT(rig_nv_make(&f.path, NULL, &d), RIG_NV_REFUSED, releases[i].text);
    assert_int_equal(f.calls, 0);
    assert_null(d);
  }
  close_path(model);
}

static void test_every_release(void **state) {
  (void)state;
  static const int known[] = {570, 580, 610};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    struct rig_nv_model_options o;
    const struct rig_nv_path *path;
    rig_nv_model_options_init(&o);
    o.release = known[i];
    assert_int_equal(rig_nv_path_model(&o, &path), 0);
    struct rig_nv *d = make(path, NULL);
    struct rig_submission s = {0};
    reached(d, submit(d, &s));
    end(d);
    close_path(path);
  }
}

static void test_misplaced(void **state) {
  (void)state;
  const struct rig_nv_path *model = open_model(KERNEL);
  struct failing_path f;
  struct rig_nv *d = NULL;
  failing_path_init(&f, model);
  f.misplace = true;
  assert_int_equal(rig_nv_make(&f.path, NULL, &d), -RIG_NV_REFUSED);
  assert_non_null(strstr(rig_nv_why(), "above the addresses that rings and "
                                       "semaphores can have"));
  nothing_left(model, "misplaced memory");
  close_path(model);
}

static const struct {
  const char *name;
  enum rig_nv_answer answer;
  int error;
} answers[] = {
    {"lacking", RIG_NV_LACKING, RIG_NV_NO_MEMORY},
    {"denied", RIG_NV_DENIED, RIG_NV_REFUSED},
    {"faulted", RIG_NV_FAULTED, RIG_NV_REFUSED},
    {"wrong", RIG_NV_WRONG, RIG_NV_INVALID},
};

static const struct rig_nv_path *kept[256];
static size_t nkept;

/* The n-th call fails, for every n: everything goes back, and where the RM
 * frees nothing the reason says what stays. */
static void test_failing_calls(void **state) {
  (void)state;
  for (int personality = KERNEL; personality <= PCI; personality++)
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
      for (unsigned n = 1;; n++) {
        const struct rig_nv_path *model = open_model(personality);
        struct failing_path f;
        struct rig_nv *d = NULL;
        struct model_counts c;
        failing_path_init(&f, model);
        f.fail_at = n;
        f.answer = answers[i].answer;
        int e = rig_nv_make(&f.path, NULL, &d);
        f.fail_at = 0;
        if (e == 0) {
          assert_true(n > 15);
          end(d);
          close_path(model);
          break;
        }
        if (e != -answers[i].error || strstr(rig_nv_why(), f.failed) == NULL)
          fail_msg("%s, call %u, %s: got %d, %s", answers[i].name, n, f.failed,
                   e, rig_nv_why());
        assert_null(d);
        model_counts(model, &c);
        bool stays = strstr(rig_nv_why(), "stay") != NULL;
        if (personality == KERNEL || c.objects == 0)
          nothing_left(model, f.failed);
        if (stays != (c.objects != 0))
          fail_msg("call %u, %s: %zu objects, %s", n, f.failed, c.objects,
                   rig_nv_why());
        assert_int_equal(rig_nv_make(&f.path, NULL, &d), 0);
        end(d);
        if (c.memories == 0)
          close_path(model);
        else /* it stays open, with the memory that stays */
          kept[nkept++] = model;
      }
}

/* ---- facts ---- */

static void test_facts(void **state) {
  (void)state;
  for (int personality = KERNEL; personality <= PCI; personality++) {
    const struct rig_nv_path *path = open_model(personality);
    struct rig_nv *d = make(path, NULL);
    const struct rig_facts *f = rig_nv_facts(d);
    assert_string_equal(f->arch, "sm_90");
    assert_string_equal(f->queues[0], "COMPUTE:0");
    assert_string_equal(f->queues[1], "COPY:0");
    assert_int_equal(f->copy_engine, 1);
    assert_int_equal(f->budget, path->budget);
    assert_int_equal(f->waits, 1);
    assert_int_equal(f->most_waits, 256);
    assert_false(f->may_block);
    assert_true(f->maps_host);
    assert_false(f->host_addresses);
    assert_int_equal(f->hang_ms, path->hang_ms);
    assert_int_equal(f->cache_bytes, path->cache_bytes);
    assert_int_equal(f->alignment, 4096);
    assert_ptr_equal(f->edge, d);
    assert_ptr_equal(f->key, path->key);
    assert_ptr_equal(f->capability, rig_nv_capability(d));
    assert_ptr_equal(f->bus, path->bus);
    assert_non_null(f->own_word);
    const struct rig_nv_gpu *g = rig_nv_capability(d);
    assert_int_equal(g->compute_class, path->gpu.compute_class);
    assert_int_equal(g->local_window, RIG_NV_WINDOWS);
    assert_int_equal(g->shared_window, RIG_NV_WINDOWS + (UINT64_C(4) << 30));
    end(d);
    close_path(path);
  }
}

static const struct {
  uint32_t vendor, class24;
  bool is;
} functions[] = {
    {0x10de, 0x030000, true},   {0x10de, 0x030200, true},
    {0x10de, 0x038000, true},   {0x10de, 0x040300, false},
    {0x10de, 0x0c0330, false},  {0x1002, 0x030000, false},
    {0x10de, 0x1030000, false}, {0x10de, 0x02ffff, false},
};

static void test_is_gpu(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
    assert_int_equal(rig_nv_is_gpu(functions[i].vendor, functions[i].class24),
                     functions[i].is);
  assert_int_equal(RIG_NV_WINDOWS, UINT64_C(0xfe00000000));
}

/* ---- the word ---- */

/* Where the word lies: in the caller's array or of the device's own. */
static const struct {
  const char *name;
  bool given, array;
  size_t bytes; /* of the array */
  size_t at;    /* the word's offset in it; beyond it is outside */
  bool own;
} words[] = {
    {"none given", false, false, 0, 0, true},
    {"a word and no array", true, false, 0, 8, true},
    {"the first of the array", true, true, 65536, 0, false},
    {"the last of a chunk", true, true, 131072, 65528, false},
    {"the first of the second chunk", true, true, 131072, 65536, false},
    {"the last of a short chunk", true, true, 69632, 69624, false},
    {"one page", true, true, 4096, 4088, false},
    {"just past the array", true, true, 4096, 4096, true},
    {"half past the array", true, true, 4092, 4088, true},
};

static const uint64_t firsts[] = {0, 41, UINT32_MAX - 1, UINT64_MAX - 1};

static void test_words(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(KERNEL);
  unsigned char *array = aligned_alloc(PAGE, 196608);
  assert_non_null(array);
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    for (size_t k = 0; k < sizeof firsts / sizeof firsts[0]; k++) {
      struct rig_nv_options o;
      rig_nv_options_init(&o);
      memset(array, 0, 196608);
      uint64_t *word = (uint64_t *)(void *)(array + words[i].at), first = 0;
      if (words[i].given) {
        o.word = word;
        *word = first = firsts[k];
      }
      if (words[i].array) {
        o.words = array;
        o.words_bytes = words[i].bytes;
      }
      struct rig_nv *d = make(path, &o);
      const struct rig_facts *f = rig_nv_facts(d);
      if ((f->own_word != NULL) != words[i].own)
        fail_msg("%s: own word %p", words[i].name, f->own_word);
      assert_int_equal(f->word == word, !words[i].own);
      assert_int_equal(rig_nv_signaled(d), first);
      struct rig_submission s = {0};
      for (int n = 0; n < 40; n++)
        reached(d, submit(d, &s));
      assert_int_equal(rig_nv_signaled(d), first + 40);
      assert_int_equal(*f->word, first + 40);
      if (words[i].own && words[i].given)
        assert_int_equal(*word, first);
      assert_int_equal(rig_nv_stop(d, NULL), 0);
      assert_int_equal(rig_nv_signaled(d), first + 40);
      if (words[i].own)
        assert_int_equal(rig_nv_free(d, f->own_word), 0);
      assert_int_equal(rig_nv_release(d), 0);
      nothing_left(path, words[i].name);
    }
  free(array);
  close_path(path);
}

/* On a path that maps no host memory the word is always its own. */
static void test_no_map_host(void **state) {
  (void)state;
  struct rig_nv_model_options m;
  struct rig_nv_options o;
  const struct rig_nv_path *path;
  uint64_t *array = aligned_alloc(PAGE, PAGE);
  struct rig_nv_region *r;
  enum rig_mapping mapping;
  assert_non_null(array);
  rig_nv_model_options_init(&m);
  m.maps_host = false;
  assert_int_equal(rig_nv_path_model(&m, &path), 0);
  rig_nv_options_init(&o);
  o.word = array;
  o.words = array;
  o.words_bytes = PAGE;
  *array = 7;
  struct rig_nv *d = make(path, &o);
  assert_non_null(rig_nv_facts(d)->own_word);
  assert_false(rig_nv_facts(d)->maps_host);
  assert_int_equal(rig_nv_signaled(d), 7);
  EXPECT(rig_nv_map_host(d, array, PAGE, &mapping, &r), RIG_NV_REFUSED,
         "map_host: the path maps no host memory");
  assert_int_equal(mapping, RIG_NEVER_MAPS);
  end(d);
  close_path(path);
  free(array);
}

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
  for (int personality = KERNEL; personality <= PCI; personality++) {
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
  for (int personality = KERNEL; personality <= PCI; personality++) {
    const struct rig_nv_path *path = open_model(personality);
    struct rig_nv *d = make(path, NULL);
    struct rig_part p = rig_part_copy(0x12345000, 0x1000, 16);
    struct rig_submission s = {.parts = &p, .nparts = 1};
    uint64_t v = submit(d, &s);
    assert_int_equal(rig_nv_wait(d, v, soon()), -RIG_NV_FAULT);
    const char *why = rig_nv_why();
    if (strstr(why, "channel error 31 (FIFO_ERROR_MMU_ERR_FLT), status 0x") ==
            NULL ||
        strstr(why, "\nMMU fault: 0x1000 | PTE | VIRT_READ") == NULL)
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
  for (int personality = KERNEL; personality <= PCI; personality++) {
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
  OPTION(o.segment_at = 2, "make: 2 is no place of the segment rings");
  OPTION(o.launch_at = 2, "make: 2 is no place of the launch ring");
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

/* The n-th host allocation fails: HOST_MEMORY, and nothing stays. */
struct counted {
  unsigned calls, fail_at, live;
};

static void *counted_alloc(void *ctx, size_t align, size_t n) {
  struct counted *c = ctx;
  if (++c->calls == c->fail_at)
    return NULL;
  c->live++;
  return aligned_alloc(align, n);
}

static void counted_release(void *ctx, void *p, size_t n) {
  struct counted *c = ctx;
  (void)n;
  c->live--;
  free(p);
}

static void test_host_memory(void **state) {
  (void)state;
  const struct rig_nv_path *path = open_model(KERNEL);
  struct rig_nv_options o;
  bool made = false;
  rig_nv_options_init(&o);
  for (unsigned n = 1; !made; n++) {
    struct counted c = {0, n, 0};
    struct rig_nv_allocator a = {counted_alloc, counted_release, &c};
    struct rig_nv *d = NULL;
    o.allocator = &a;
    int e = rig_nv_make(path, &o, &d);
    made = e == 0;
    if (made) {
      struct rig_nv_region *r = NULL;
      c.fail_at = c.calls + 1;
      assert_int_equal(rig_nv_alloc(d, RIG_DEVICE, 4, &r), -RIG_NV_HOST_MEMORY);
      assert_null(r);
      end(d);
    } else {
      assert_int_equal(e, -RIG_NV_HOST_MEMORY);
      assert_non_null(strstr(rig_nv_why(), "the host allocator has no"));
    }
    assert_int_equal(c.live, 0);
    nothing_left(path, "a failing host allocator");
  }
  close_path(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_releases),
      cmocka_unit_test(test_every_release),
      cmocka_unit_test(test_misplaced),
      cmocka_unit_test(test_failing_calls),
      cmocka_unit_test(test_host_memory),
      cmocka_unit_test(test_facts),
      cmocka_unit_test(test_is_gpu),
      cmocka_unit_test(test_words),
      cmocka_unit_test(test_no_map_host),
      cmocka_unit_test(test_regions),
      cmocka_unit_test(test_no_memory),
      cmocka_unit_test(test_no_mapped),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_transfers),
      cmocka_unit_test(test_free_after),
      cmocka_unit_test(test_sleep),
      cmocka_unit_test(test_stalled),
      cmocka_unit_test(test_fault),
      cmocka_unit_test(test_stop),
      cmocka_unit_test(test_lock_held),
      cmocka_unit_test(test_bad_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
