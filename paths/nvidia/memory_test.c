/* SPDX-License-Identifier: ISC */
/*
 * Memory and channels, over the fake driver.
 */
#include <pthread.h>

#include "paths/nvidia/memory_bed.h"

/* What path.h says of where memory lies. */
static void check_place(struct bed *b, int kind, uint64_t n,
                        const struct rig_nv_memory *m) {
  uint64_t end = m->address + n;
  assert_int_equal(m->address % PAGE, 0);
  assert_true(m->address >= 64 * GIB);
  assert_true(end <= RIG_NV_WINDOWS ||
              (kind == RIG_DEVICE && m->address >= UINT64_C(1) << 40));
  assert_int_equal(m->host == NULL, kind == RIG_DEVICE);
  assert_int_equal(m->bytes, n);
  assert_int_equal(fake_reached(&b->f, m->address, 0), m->handle);
  assert_int_equal(fake_reached(&b->f, end - 1, 0), m->handle);
  assert_int_equal(fake_class(&b->f, m->handle),
                   kind == RIG_PINNED ? 0x71 : 0x40);
  /* What runs past memory faults. */
  uint64_t whole = (end + PAGE - 1) / PAGE * PAGE;
  if (n < 8 * MIB)
    assert_int_equal(fake_reached(&b->f, whole, 0), 0);
}

static const struct {
  int kind;
  uint64_t n, align; /* of the address, at least */
} places[] = {
    {RIG_DEVICE, 1, 64 * KIB},
    {RIG_DEVICE, 4096, 64 * KIB},
    {RIG_DEVICE, 4097, 64 * KIB},
    {RIG_DEVICE, 2 * MIB, 2 * MIB},
    {RIG_DEVICE, 8 * MIB, 2 * MIB},
    {RIG_DEVICE, 8 * MIB + 4, 2 * MIB},
    {RIG_DEVICE, 512 * MIB, 2 * MIB},
    {RIG_PINNED, 1, PAGE},
    {RIG_PINNED, 5000, PAGE},
    {RIG_PINNED, 8 * MIB + 4, PAGE},
    {RIG_MAPPED, 4, PAGE},
    {RIG_MAPPED, 4096, PAGE},
    {RIG_MAPPED, 65536, PAGE},
    {RIG_MAPPED, 16 * MIB + 4, 2 * MIB},
};

static void test_places(void **state) {
  (void)state;
  static const char *const versions[] = {"570.1", "580.1", "610.1"};
  static const int releases[] = {570, 580, 610};
  for (size_t v = 0; v < COUNT(versions); v++) {
    struct bed *b = bed_new(1);
    struct rig_nv_memory m[COUNT(places)];
    assert_int_equal(rig_nv_path_close(b->p), 0);
    b->f.version = versions[v];
    b->f.release = releases[v];
    assert_int_equal(open_gpu(&b->f, 0, &b->p), 0);
    struct fake_counts before = fake_counts(&b->f);
    for (size_t i = 0; i < COUNT(places); i++) {
      if (!alloc(b, places[i].kind, places[i].n, &m[i]))
        fail_msg("row %zu: %s", i, b->reply.text);
      check_place(b, places[i].kind, places[i].n, &m[i]);
      assert_int_equal(m[i].address % places[i].align, 0);
      if (m[i].host != NULL) /* it is memory */
        memset(m[i].host, 1, places[i].n);
    }
    for (size_t i = 0; i < COUNT(places); i++) /* with the others there */
      check_place(b, places[i].kind, places[i].n, &m[i]);
    for (size_t i = 0; i < COUNT(places); i += 2)
      assert_true(give(b, &m[i]));
    for (size_t i = 1; i < COUNT(places); i += 2)
      assert_true(give(b, &m[i]));
    struct fake_counts after = fake_counts(&b->f);
    assert_memory_equal(&before, &after, sizeof after);
    bed_end(b);
  }
}

/* Memory in gaps that others left, of every size about theirs: a page of none
 * stays behind each. */
static void test_gaps(void **state) {
  enum { N = 12 };
  struct bed *b = bed_new(1);
  struct rig_nv_memory m[N], in[N];
  (void)state;
  for (uint64_t size = 1; size <= 5; size++) {
    for (int i = 0; i < N; i++)
      assert_true(alloc(b, RIG_PINNED, 2 * PAGE, &m[i]));
    for (int i = 0; i < N; i += 2)
      assert_true(give(b, &m[i]));
    for (int i = 0; i < N; i += 2)
      assert_true(alloc(b, RIG_PINNED, size * PAGE, &in[i]));
    for (int i = 0; i < N; i += 2) {
      check_place(b, RIG_PINNED, size * PAGE, &in[i]);
      check_place(b, RIG_PINNED, 2 * PAGE, &m[i + 1]);
    }
    for (int i = 0; i < N; i += 2) {
      assert_true(give(b, &in[i]));
      assert_true(give(b, &m[i + 1]));
    }
  }
  bed_end(b);
}

static void test_wrong(void **state) {
  static const struct {
    int kind;
    uint64_t n;
    unsigned flags;
    enum rig_nv_answer is;
  } rows[] = {{RIG_DEVICE, 0, 0, RIG_NV_WRONG},
              {3, 4096, 0, RIG_NV_WRONG},
              {-1, 4096, 0, RIG_NV_WRONG},
              {RIG_DEVICE, 4096, 2, RIG_NV_WRONG},
              {RIG_DEVICE, 2 * GIB, 0, RIG_NV_LACKING},
              {RIG_DEVICE, UINT64_MAX, 0, RIG_NV_LACKING},
              {RIG_DEVICE, UINT64_C(1) << 46, 0, RIG_NV_LACKING},
              {RIG_PINNED, UINT64_C(1) << 40, 0, RIG_NV_LACKING},
              {RIG_PINNED, UINT64_MAX - 4096, 0, RIG_NV_LACKING},
              {RIG_MAPPED, 300 * MIB, 0, RIG_NV_LACKING},
              {RIG_MAPPED, UINT64_C(1) << 40, 0, RIG_NV_LACKING}};
  struct bed *b = bed_new(1);
  struct rig_nv_memory m;
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++)
    if (b->p->alloc(b->p->ctx, (enum rig_memory)rows[i].kind, rows[i].n,
                    rows[i].flags, &m, &b->reply) ||
        b->reply.is != rows[i].is || b->reply.text[0] == '\0')
      fail_msg("row %zu: %d, %s", i, (int)b->reply.is, b->reply.text);
  bed_end(b);
}

static void test_combine(void **state) {
  static const struct {
    unsigned flags;
    uint32_t caching; /* NVOS33_FLAGS_CACHING_TYPE */
  } rows[] = {{0, 1}, {RIG_NV_COMBINE, 2}};
  struct bed *b = bed_new(1);
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct rig_nv_memory m;
    assert_true(
        b->p->alloc(b->p->ctx, RIG_MAPPED, 4096, rows[i].flags, &m, &b->reply));
    assert_int_equal(b->f.map_flags >> 23 & 7, rows[i].caching);
    assert_true(give(b, &m));
  }
  bed_end(b);
}

/* For every n, the n-th call of an allocation fails: nothing of it is left. */
static void test_every_call(void **state) {
  static const enum fake_failure how[] = {FAKE_ERRNO, FAKE_STATUS, FAKE_REFUSED,
                                          FAKE_EIO};
  static const enum rig_nv_answer is[] = {RIG_NV_LACKING, RIG_NV_LACKING,
                                          RIG_NV_DENIED, RIG_NV_FAULTED};
  struct bed *b = bed_new(1);
  (void)state;
  struct fake_counts before = fake_counts(&b->f);
  for (size_t row = 0; row < 3 * COUNT(how); row++) {
    int kind = (int)(row % 3);
    bool done = false;
    unsigned n = 0;
    b->f.failure = how[row / 3];
    while (!done) {
      struct rig_nv_memory m;
      fake_restart(&b->f);
      b->f.fail_at = ++n;
      done = alloc(b, kind, 12 * KIB, &m);
      b->f.fail_at = 0;
      /* Those that have no status are ENOMEM's or EIO's. */
      if (!done && b->reply.is != is[row / 3] &&
          b->reply.is != RIG_NV_LACKING &&
          !(b->reply.is == RIG_NV_FAULTED && strcmp(b->f.failed, "close") == 0))
        fail_msg("kind %d, call %u, %s: %s", kind, n, b->f.failed,
                 b->reply.text);
      if (done && !give(b, &m))
        fail_msg("free: %s", b->reply.text);
      struct fake_counts after = fake_counts(&b->f);
      if (memcmp(&before, &after, sizeof after) != 0 || b->f.broken[0] != '\0')
        fail_msg("kind %d, call %u, %s: something is left; %s", kind, n,
                 b->f.failed, b->f.broken);
    }
    assert_true(n > 3);
  }
  bed_end(b);
}

/* A free that fails keeps the memory and its addresses until the close. */
static void test_free_fails(void **state) {
  static const struct {
    int kind;
    const char *name;
  } rows[] = {{RIG_DEVICE, "UVM_FREE"},
              {RIG_DEVICE, "NV_ESC_RM_FREE"},
              {RIG_PINNED, "UVM_FREE"},
              {RIG_PINNED, "NV_ESC_RM_FREE"},
              {RIG_PINNED, "unmap"},
              {RIG_MAPPED, "unmap"},
              {RIG_MAPPED, "NV_ESC_RM_UNMAP_MEMORY"},
              {RIG_MAPPED, "UVM_FREE"}};
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct bed *b = bed_new(1);
    struct rig_nv_memory m, next;
    assert_true(alloc(b, rows[i].kind, 4096, &m));
    b->f.fail_name = rows[i].name;
    b->f.failure = FAKE_REFUSED;
    assert_false(give(b, &m));
    assert_int_not_equal(b->reply.is, RIG_NV_OK);
    assert_int_not_equal(b->reply.text[0], '\0');
    b->f.fail_name = NULL;
    assert_true(alloc(b, rows[i].kind, 4096, &next));
    assert_int_not_equal(next.address, m.address);
    assert_true(give(b, &next));
    assert_int_equal(rig_nv_path_close(b->p), 0);
    struct fake_counts n = fake_counts(&b->f);
    assert_int_equal(n.files, 0);
    assert_int_equal(n.objects, 0);
    assert_int_equal(n.anonymous, 0);
    fake_end(&b->f);
    free(b);
  }
}

/* A channel's registration, and its place. */
static void test_channels(void **state) {
  struct bed *b = bed_new(1);
  uint32_t group, channel, token;
  (void)state;
  unsigned char params[1024] = {0};
  const struct rig_nv_rm *rm = &b->p->rm;
  void *ctx = b->p->ctx;
  assert_true(
      rm->alloc(ctx, b->p->device, 0xa06c, params, 20, &group, &b->reply));
  assert_true(rm->alloc(ctx, group, 0xc86f, params, 368, &channel, &b->reply));
  assert_true(rm->token(ctx, channel, &token, &b->reply));
  assert_int_equal(token, channel ^ 0x55);
  assert_true(rm->schedule(ctx, group, params, 3, &b->reply));
  assert_true(rm->boost(ctx, b->p->subdevice, &b->reply));
  struct fake_counts before = fake_counts(&b->f);
  for (unsigned n = 1; n < 3; n++) { /* the call fails, and then not */
    fake_restart(&b->f);
    b->f.failure = FAKE_STATUS;
    b->f.fail_at = n;
    bool ok = b->p->register_channel(ctx, channel, &b->reply);
    assert_int_equal(ok, n == 2);
    assert_int_equal(b->reply.is, ok ? RIG_NV_OK : RIG_NV_LACKING);
    b->f.fail_at = 0;
  }
  assert_int_equal(fake_counts(&b->f).registrations, before.registrations + 1);
  assert_int_equal(rig_nv_path_close(b->p), -RIG_NV_INVALID);
  assert_non_null(strstr(rig_nv_why(), "1 registered channels"));
  assert_false(b->p->unregister_channel(ctx, channel + 1, &b->reply));
  assert_int_equal(b->reply.is, RIG_NV_WRONG);
  b->f.fail_name = "UVM_UNREGISTER_CHANNEL";
  assert_false(b->p->unregister_channel(ctx, channel, &b->reply));
  b->f.fail_name = NULL;
  assert_true(b->p->unregister_channel(ctx, channel, &b->reply));
  struct fake_counts after = fake_counts(&b->f);
  assert_memory_equal(&before, &after, sizeof after);
  assert_true(rm->free(ctx, b->p->device, group, &b->reply));
  assert_int_equal(fake_class(&b->f, channel), 0);
  bed_end(b);
}

/* Addresses run out and come back; Device memory then lies above 2^40. */
static void test_addresses(void **state) {
  enum { N = 16, SMALL = 14 };
  struct bed *b = bed_new(1);
  struct rig_nv_memory m[N], small[SMALL], more;
  (void)state;
  b->f.gpus[0].memory = UINT64_C(1) << 45;
  int high = 0;
  for (int i = 0; i < N; i++) {
    assert_true(alloc(b, RIG_DEVICE, 100 * GIB, &m[i]));
    check_place(b, RIG_DEVICE, 100 * GIB, &m[i]);
    high += m[i].address >= UINT64_C(1) << 40;
  }
  assert_int_equal(high, N - 9); /* 952 GiB lie below the windows */
  assert_false(alloc(b, RIG_PINNED, 100 * GIB, &more));
  assert_int_equal(b->reply.is, RIG_NV_LACKING);
  for (int i = 0; i < SMALL; i++) { /* up to the windows, and past them */
    assert_true(alloc(b, RIG_DEVICE, 4 * GIB, &small[i]));
    check_place(b, RIG_DEVICE, 4 * GIB, &small[i]);
  }
  for (int i = 0; i < SMALL; i++)
    assert_true(give(b, &small[i]));
  for (int i = 0; i < N; i++)
    assert_true(give(b, &m[i]));
  assert_true(alloc(b, RIG_DEVICE, 900 * GIB, &more));
  assert_true(more.address < RIG_NV_WINDOWS);
  assert_true(give(b, &more));
  bed_end(b);
}

struct worker {
  struct bed *b;
  char *pages;
  unsigned seed;
  bool ok;
};

static void *work(void *arg) {
  struct worker *w = arg;
  struct rig_nv_reply reply;
  const struct rig_nv_path *p = w->b->p;
  w->ok = true;
  for (unsigned i = 0; i < 60 && w->ok; i++) {
    struct rig_nv_memory m, h;
    enum rig_mapping is;
    enum rig_memory kind = (enum rig_memory)((i + w->seed) % 3);
    w->ok =
        p->alloc(p->ctx, kind, 4096 * (1 + i % 5), 0, &m, &reply) &&
        p->map_host(p->ctx, w->pages + i % 4 * PAGE, PAGE, &is, &h, &reply) &&
        p->check(p->ctx, &reply) && p->free(p->ctx, &m, &reply) &&
        p->free(p->ctx, &h, &reply);
  }
  return NULL;
}

static void test_threads(void **state) {
  enum { N = 4 };
  struct bed *b = bed_new(1);
  char *p = pages(4);
  pthread_t threads[N];
  struct worker w[N];
  (void)state;
  struct fake_counts before = fake_counts(&b->f);
  for (unsigned i = 0; i < N; i++) {
    w[i] = (struct worker){b, p, i, false};
    assert_int_equal(pthread_create(&threads[i], NULL, work, &w[i]), 0);
  }
  for (unsigned i = 0; i < N; i++) {
    pthread_join(threads[i], NULL);
    assert_true(w[i].ok);
  }
  struct fake_counts after = fake_counts(&b->f);
  assert_memory_equal(&before, &after, sizeof after);
  munmap(p, 4 * PAGE);
  bed_end(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_places),     cmocka_unit_test(test_gaps),
      cmocka_unit_test(test_wrong),      cmocka_unit_test(test_combine),
      cmocka_unit_test(test_every_call), cmocka_unit_test(test_free_fails),
      cmocka_unit_test(test_channels),   cmocka_unit_test(test_addresses),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
