/* SPDX-License-Identifier: ISC */
/*
 * What a path maps and does not allocate, over the fake driver: the caller's
 * memory, and other GPUs'.
 */
#include "paths/nvidia/memory_bed.h"

/* The caller's memory: pages [0, 16) are there, 16 is not. A row maps `n`
 * bytes from page `page` with the mappings of the rows above it in place. */
static const struct {
  const char *name;
  uint64_t page, n;
  enum rig_mapping is;
  int shares; /* the row whose object it has, or -1: a new one */
} maps[] = {
    {"whole", 2, 8 * PAGE, RIG_MAPS, -1},
    {"the same", 2, 8 * PAGE, RIG_MAPS, 0},
    {"its first page", 2, PAGE, RIG_MAPS, 0},
    {"its last page", 9, PAGE, RIG_MAPS, 0},
    {"odd bytes of it", 4, 5000, RIG_MAPS, 0},
    {"past its end", 9, 2 * PAGE, RIG_NEVER_MAPS, -1},
    {"past its end by a byte", 9, PAGE + 1, RIG_NEVER_MAPS, -1},
    {"before its start", 1, 2 * PAGE, RIG_NEVER_MAPS, -1},
    {"around it", 1, 12 * PAGE, RIG_NEVER_MAPS, -1},
    {"just before", 1, PAGE, RIG_MAPS, -1},
    {"just after", 10, PAGE, RIG_MAPS, -1},
    {"across two", 9, 2 * PAGE, RIG_NEVER_MAPS, -1},
    {"not there", 16, PAGE, RIG_NEVER_MAPS, -1},
    {"there in part", 15, 2 * PAGE, RIG_NEVER_MAPS, -1},
};

static void test_map_host(void **state) {
  struct bed *b = bed_new(1);
  struct rig_nv_memory m[COUNT(maps)] = {{0}};
  char *p = pages(16);
  (void)state;
  struct fake_counts before = fake_counts(&b->f);
  for (size_t i = 0; i < COUNT(maps); i++) {
    enum rig_mapping is = RIG_NO_ROOM;
    bool ok = map(b, p + maps[i].page * PAGE, maps[i].n, &is, &m[i]);
    if (is != maps[i].is || ok != (is == RIG_MAPS) ||
        (b->reply.text[0] == '\0') != ok)
      fail_msg("%s: mapping %d, %s", maps[i].name, (int)is, b->reply.text);
    if (!ok)
      continue;
    assert_ptr_equal(m[i].host, p + maps[i].page * PAGE);
    assert_int_equal(m[i].address % PAGE, 0);
    assert_in_range(m[i].address, 64 * GIB, RIG_NV_WINDOWS - maps[i].n);
    assert_int_equal(m[i].bytes, maps[i].n);
    assert_int_equal(fake_class(&b->f, m[i].handle), 0x71);
    const struct rig_nv_memory *of =
        &m[maps[i].shares >= 0 ? maps[i].shares : 0];
    assert_int_equal(m[i].handle == of->handle, maps[i].shares >= 0 || i == 0);
    if (maps[i].shares >= 0)
      assert_int_equal(m[i].address - of->address,
                       (char *)m[i].host - (char *)of->host);
  }
  /* The first user goes first: the rest keeps its memory mapped. */
  for (size_t i = 0; i < COUNT(maps); i++)
    if (maps[i].is == RIG_MAPS) {
      assert_int_equal(fake_reached(&b->f, m[i].address, 0), m[i].handle);
      assert_true(give(b, &m[i]));
    }
  struct fake_counts after = fake_counts(&b->f);
  assert_memory_equal(&before, &after, sizeof after);
  munmap(p, 16 * PAGE);
  bed_end(b);
}

static void test_map_wrong(void **state) {
  struct bed *b = bed_new(1);
  char *p = pages(1);
  struct rig_nv_memory m, mapped;
  enum rig_mapping is;
  (void)state;
  const struct {
    void *p;
    uint64_t n;
    enum rig_nv_answer is;
  } rows[] = {{p, 0, RIG_NV_WRONG},
              {p + 1, 4, RIG_NV_WRONG},
              {NULL, 4096, RIG_NV_DENIED},
              {p, UINT64_MAX, RIG_NV_DENIED},
              {(void *)(UINTPTR_MAX - PAGE + 1), 4096, RIG_NV_DENIED}};
  for (size_t i = 0; i < COUNT(rows); i++) {
    assert_false(map(b, rows[i].p, rows[i].n, &is, &m));
    assert_int_equal(is, RIG_NEVER_MAPS);
    assert_int_equal(b->reply.is, rows[i].is);
  }
  /* The GPU's own memory, as the host sees it. */
  assert_true(alloc(b, RIG_MAPPED, 4096, &mapped));
  assert_false(map(b, mapped.host, 4096, &is, &m));
  assert_int_equal(is, RIG_NEVER_MAPS);
  assert_true(give(b, &mapped));
  munmap(p, PAGE);
  bed_end(b);
}

/* A lack of room is told from a refusal, and nothing is left of either. */
static void test_map_fails(void **state) {
  static const struct {
    enum fake_failure how;
    enum rig_mapping is;
  } rows[] = {{FAKE_STATUS, RIG_NO_ROOM}, {FAKE_REFUSED, RIG_NEVER_MAPS}};
  struct bed *b = bed_new(1);
  char *p = pages(2);
  (void)state;
  struct fake_counts before = fake_counts(&b->f);
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct rig_nv_memory m;
    enum rig_mapping is;
    unsigned n = 0;
    b->f.failure = rows[i].how;
    for (bool done = false; !done;) {
      fake_restart(&b->f);
      b->f.fail_at = ++n;
      done = map(b, p, PAGE, &is, &m);
      b->f.fail_at = 0;
      assert_int_equal(is, done ? RIG_MAPS : rows[i].is);
      if (done)
        assert_true(give(b, &m));
      struct fake_counts after = fake_counts(&b->f);
      assert_memory_equal(&before, &after, sizeof after);
    }
    assert_int_equal(n, 4); /* describe, range, map, and none that fails */
  }
  munmap(p, 2 * PAGE);
  bed_end(b);
}

/* Views of each kind by another GPU, with and without peer access. */
static void test_peers(void **state) {
  static const struct {
    bool no_peers, nvlink;
    bool maps[3]; /* by kind */
  } rows[] = {{false, false, {true, true, true}},
              {true, false, {false, true, false}},
              {false, true, {true, true, true}},
              {true, true, {false, true, false}}}; /* refused, and no link */
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct bed *b = bed_new(2);
    const struct rig_nv_path *q;
    b->f.no_peers = rows[i].no_peers;
    b->f.nvlink = rows[i].nvlink;
    assert_int_equal(open_gpu(&b->f, 1, &q), 0);
    assert_ptr_equal(b->p->key, q->key);
    assert_int_equal(b->p->reaches(b->p->ctx, 1), !rows[i].no_peers);
    assert_int_equal(q->reaches(q->ctx, 0), !rows[i].no_peers);
    assert_false(q->reaches(q->ctx, 1));
    assert_false(q->reaches(q->ctx, -1));
    assert_false(q->reaches(q->ctx, 64));
    for (int k = 0; k < 3; k++) {
      struct rig_nv_memory m, view, again;
      enum rig_mapping is;
      assert_true(alloc(b, k, 4096, &m));
      assert_int_equal(fake_reached(&b->f, m.address, 1), 0);
      bool ok = q->map_peer(q->ctx, &m, &is, &view, &b->reply);
      assert_int_equal(ok, rows[i].maps[k]);
      assert_int_equal(is, ok ? RIG_MAPS : RIG_NEVER_MAPS);
      if (ok) {
        assert_int_equal(fake_reached(&b->f, view.address, 1), m.handle);
        assert_true(q->map_peer(q->ctx, &m, &is, &again, &b->reply));
        assert_int_equal(rig_nv_path_close(b->p), -RIG_NV_INVALID);
        assert_true(q->free(q->ctx, &view, &b->reply));
        assert_int_equal(fake_reached(&b->f, again.address, 1), m.handle);
        assert_true(q->free(q->ctx, &again, &b->reply));
        assert_int_equal(fake_reached(&b->f, m.address, 1), 0);
      }
      assert_int_equal(fake_reached(&b->f, m.address, 0), m.handle);
      assert_true(give(b, &m));
    }
    assert_int_equal(rig_nv_path_close(q), 0);
    assert_false(b->p->reaches(b->p->ctx, 1));
    bed_end(b);
  }
}

/* Two GPUs map one range of the caller's; it stays until both are done, and
 * so does the first one's path. */
static void test_shared_by_gpus(void **state) {
  struct bed *b = bed_new(2);
  const struct rig_nv_path *q;
  struct rig_nv_memory mine, theirs;
  enum rig_mapping is;
  char *p = pages(4);
  (void)state;
  assert_int_equal(open_gpu(&b->f, 1, &q), 0);
  assert_true(map(b, p, 4 * PAGE, &is, &mine));
  assert_true(q->map_host(q->ctx, p + PAGE, PAGE, &is, &theirs, &b->reply));
  assert_int_equal(theirs.address, mine.address + PAGE);
  assert_true(give(b, &mine));
  assert_int_equal(fake_reached(&b->f, theirs.address, 0), 0);
  assert_int_equal(fake_reached(&b->f, theirs.address, 1), theirs.handle);
  assert_int_equal(rig_nv_path_close(b->p), -RIG_NV_INVALID);
  assert_true(q->free(q->ctx, &theirs, &b->reply));
  assert_int_equal(rig_nv_path_close(q), 0);
  munmap(p, 4 * PAGE);
  bed_end(b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_map_host),       cmocka_unit_test(test_map_wrong),
      cmocka_unit_test(test_map_fails),      cmocka_unit_test(test_peers),
      cmocka_unit_test(test_shared_by_gpus),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
