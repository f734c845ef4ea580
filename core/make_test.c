/* SPDX-License-Identifier: ISC */
/*
 * Making a device, in both personalities: what is refused before any call, and
 * that a failed make gives everything back; its facts and its word.
 */
#include "core/test_bed.h"

/* ---- make ---- */

static const struct {
  int release;
  const char *text;
} releases[] = {
    {0, "make: release 0 of the resource manager: the layouts of 570, 580 and "
        "610 alone are known"},
    {569, "make: release 569 of the resource manager: the layouts of 570, 580 "
          "and 610 alone are known"},
    {590, "make: release 590 of the resource manager: the layouts of 570, 580 "
          "and 610 alone are known"},
    {615, "make: release 615 of the resource manager: the layouts of 570, 580 "
          "and 610 alone are known"},
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

/* As rig_nv_make, of rings that are soon made. */
static int make_small(const struct rig_nv_path *path, struct rig_nv **d) {
  struct device_sizes z;
  device_sizes_init(&z);
  z.entries = 64;
  z.segment_bytes = z.launch_bytes = 8192;
  z.in_flight = 16;
  return device_make_sized(path, NULL, &z, d);
}

/* The n-th call fails, for every n: everything goes back, and where the RM
 * frees nothing the reason says what stays. */
static void test_failing_calls(void **state) {
  (void)state;
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++)
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++)
      for (unsigned n = 1;; n++) {
        const struct rig_nv_path *model = open_model(personality);
        struct failing_path f;
        struct rig_nv *d = NULL;
        struct model_counts c;
        failing_path_init(&f, model);
        f.fail_at = n;
        f.answer = answers[i].answer;
        int e = make_small(&f.path, &d);
        f.fail_at = 0;
        bool fell_back = e == 0 && f.failed != NULL;
        if (fell_back) /* no room behind the BAR for the launch ring */
          assert_int_equal(answers[i].answer, RIG_NV_LACKING);
        if (e == 0) {
          assert_true(fell_back || n > 15);
          end(d);
          close_path(model);
          if (fell_back)
            continue;
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
        assert_int_equal(make_small(&f.path, &d), 0);
        end(d);
        if (c.memories == 0)
          close_path(model);
        else /* it stays open, with the memory that stays */
          kept[nkept++] = model;
      }
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

/* ---- facts ---- */

static void test_facts(void **state) {
  (void)state;
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++) {
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_releases),    cmocka_unit_test(test_every_release),
      cmocka_unit_test(test_misplaced),   cmocka_unit_test(test_failing_calls),
      cmocka_unit_test(test_host_memory), cmocka_unit_test(test_facts),
      cmocka_unit_test(test_is_gpu),      cmocka_unit_test(test_words),
      cmocka_unit_test(test_no_map_host),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
