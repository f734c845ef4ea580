/* SPDX-License-Identifier: ISC */
/*
 * Memory kinds, their budgets and addresses, maps of host memory, and every
 * refusal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "paths/model/testing.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define MIB (UINT64_C(1) << 20)

enum { PAGE = 4096 };

static const struct rig_nv_path *open_with(uint64_t device, uint64_t mapped,
                                           uint64_t host, uint64_t seed) {
  const struct rig_nv_path *p;
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.device_bytes = device;
  o.mapped_bytes = mapped;
  o.host_bytes = host;
  o.seed = seed;
  assert_int_equal(rig_nv_path_model(&o, &p), 0);
  return p;
}

static void matches(const char *name, const struct rig_nv_reply *r,
                    const char *text) {
  if (!strstr(r->text, text))
    fail_msg("%s: \"%s\" has no \"%s\"", name, r->text, text);
}

static void kinds(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int kind;
    uint64_t n;
    unsigned flags;
    enum rig_nv_answer is;
    const char *text;
  } t[] = {
      {"Device", RIG_DEVICE, 4, 0, RIG_NV_OK, ""},
      {"Pinned", RIG_PINNED, 5000, 0, RIG_NV_OK, ""},
      {"Mapped", RIG_MAPPED, 4096, 0, RIG_NV_OK, ""},
      {"combined", RIG_MAPPED, MIB, RIG_NV_COMBINE, RIG_NV_OK, ""},
      {"all", RIG_DEVICE, 2 * MIB, 0, RIG_NV_OK, ""},
      {"Mapped all but the flush word's", RIG_MAPPED, 3 * MIB - PAGE, 0,
       RIG_NV_OK, ""},
      {"too much Device", RIG_DEVICE, 2 * MIB + 4, 0, RIG_NV_LACKING,
       "alloc: no 2097156 bytes of Device memory"},
      {"too much Mapped", RIG_MAPPED, 3 * MIB, 0, RIG_NV_LACKING, "Mapped"},
      {"too much Pinned", RIG_PINNED, 4 * MIB + 4, 0, RIG_NV_LACKING, "Pinned"},
      {"most", RIG_PINNED, UINT64_MAX, 0, RIG_NV_LACKING, "Pinned"},
      {"none", RIG_DEVICE, 0, 0, RIG_NV_WRONG, "alloc: 0 bytes"},
      {"kind", 3, 4, 0, RIG_NV_WRONG, "alloc: no memory kind 3"},
      {"kind below", -1, 4, 0, RIG_NV_WRONG, "alloc: no memory kind -1"},
      {"flags", RIG_PINNED, 4, 2, RIG_NV_WRONG, "alloc: flags 0x2"},
  };
  const struct rig_nv_path *p = open_with(2 * MIB, 3 * MIB, 4 * MIB, 3);
  for (size_t i = 0; i < COUNT(t); i++) {
    struct rig_nv_memory m = {0};
    struct rig_nv_reply r;
    struct model_counts n;
    bool ok = p->alloc(p->ctx, (enum rig_memory)t[i].kind, t[i].n, t[i].flags,
                       &m, &r);
    assert_int_equal(r.is, t[i].is);
    assert_int_equal(ok, t[i].is == RIG_NV_OK);
    matches(t[i].name, &r, t[i].text);
    model_counts(p, &n);
    assert_int_equal(n.memories, ok);
    if (!ok) {
      assert_int_equal(m.address, 0);
      continue;
    }
    assert_int_equal(m.address % PAGE, 0);
    assert_int_equal(m.bytes, t[i].n);
    assert_int_equal(n.used[t[i].kind], (t[i].n + PAGE - 1) / PAGE * PAGE);
    if (t[i].kind == RIG_DEVICE) {
      assert_null(m.host);
      assert_in_range(m.address, UINT64_C(0x7000000000), RIG_NV_WINDOWS - 1);
    } else {
      assert_in_range(m.address, UINT64_C(0x6000000000),
                      UINT64_C(0x6fffffffff));
      assert_int_equal(((uint8_t *)m.host)[0], 0xd5);
      assert_int_equal(((uint8_t *)m.host)[t[i].n - 1], 0xd5);
    }
    assert_true(p->free(p->ctx, &m, &r));
  }
  assert_int_equal(rig_nv_path_close(p), 0);
}

/* Many memories, freed and taken in other orders: at least a page apart. */
static void apart(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 8; seed++) {
    const struct rig_nv_path *p = open_with(64 * MIB, 64 * MIB, 64 * MIB, seed);
    struct rig_nv_memory m[60] = {0};
    struct rig_nv_reply r;
    for (size_t lap = 0; lap < 4; lap++)
      for (size_t i = 0; i < COUNT(m); i++) {
        if (m[i].bytes && (i + lap) % 3)
          continue;
        if (m[i].bytes)
          assert_true(p->free(p->ctx, &m[i], &r));
        assert_true(p->alloc(p->ctx, (enum rig_memory)(i % 3),
                             PAGE * (1 + i * 7 % 5), 0, &m[i], &r));
        for (size_t k = 0; k < COUNT(m); k++)
          if (k != i && m[k].bytes)
            assert_true(m[k].address + m[k].bytes + PAGE <= m[i].address ||
                        m[i].address + m[i].bytes + PAGE <= m[k].address);
      }
    for (size_t i = 0; i < COUNT(m); i++)
      assert_true(p->free(p->ctx, &m[i], &r));
    assert_int_equal(rig_nv_path_close(p), 0);
  }
}

static void no_mapped(void **state) {
  (void)state;
  struct rig_nv_memory m;
  struct rig_nv_reply r;
  const struct rig_nv_path *p = open_with(MIB, PAGE - 1, MIB, 1);
  assert_null(p->flush);
  assert_false(p->alloc(p->ctx, RIG_MAPPED, 4, 0, &m, &r));
  assert_int_equal(r.is, RIG_NV_LACKING);
  matches("Mapped", &r, "no flush word");
  assert_int_equal(rig_nv_path_close(p), 0);
  p = open_with(MIB, PAGE, MIB, 1);
  assert_non_null(p->flush);
  assert_int_equal(rig_nv_path_close(p), 0);
}

/* Ten pages of the process: 0 to 5 usable, 6 read-only, 7 gone, 8 and 9. */
static char *ten_pages(void) {
  char *p = mmap(NULL, 10 * PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(p, MAP_FAILED);
  memset(p, 1, 10 * PAGE);
  assert_int_equal(mprotect(p + 6 * PAGE, PAGE, PROT_READ), 0);
  assert_int_equal(munmap(p + 7 * PAGE, PAGE), 0);
  return p;
}

static void host_maps(void **state) {
  (void)state;
  static const struct {
    const char *name;
    long at; /* bytes from the first page; -1 NULL */
    uint64_t n;
    enum rig_nv_answer is;
    enum rig_mapping mapping;
    const char *text;
  } t[] = {
      {"NULL", -1, 8, RIG_NV_DENIED, RIG_NEVER_MAPS, "map_host: no memory"},
      {"none", 0, 0, RIG_NV_WRONG, RIG_NEVER_MAPS, "map_host: 0 bytes"},
      {"inside a page", 8, 8, RIG_NV_WRONG, RIG_NEVER_MAPS, "starts no page"},
      {"read-only", 6 * PAGE, 8, RIG_NV_DENIED, RIG_NEVER_MAPS, "no memory"},
      {"into read-only", 4 * PAGE, 2 * PAGE + 1, RIG_NV_DENIED, RIG_NEVER_MAPS,
       "no memory of the process: 8193 bytes"},
      {"gone", 7 * PAGE, PAGE, RIG_NV_DENIED, RIG_NEVER_MAPS, "no memory"},
      {"past the end", 0, UINT64_MAX, RIG_NV_DENIED, RIG_NEVER_MAPS, ""},
      {"1 to 3", PAGE, 2 * PAGE + 1, RIG_NV_OK, RIG_MAPS, ""},
      {"the same", PAGE, 3 * PAGE, RIG_NV_OK, RIG_MAPS, ""},
      {"inside it", 2 * PAGE, 1, RIG_NV_OK, RIG_MAPS, ""},
      {"around it", 0, 5 * PAGE, RIG_NV_DENIED, RIG_NEVER_MAPS, "in part"},
      {"its first page", 0, PAGE + 1, RIG_NV_DENIED, RIG_NEVER_MAPS, "in part"},
      {"its last page", 3 * PAGE, PAGE + 1, RIG_NV_DENIED, RIG_NEVER_MAPS,
       "overlaps a mapping in part"},
      {"before it", 0, PAGE, RIG_NV_OK, RIG_MAPS, ""},
      {"after it", 4 * PAGE, PAGE, RIG_NV_OK, RIG_MAPS, ""},
      {"no room", 8 * PAGE, 2 * PAGE, RIG_NV_LACKING, RIG_NO_ROOM,
       "map_host: no room for 8192 bytes"},
      {"room", 8 * PAGE, PAGE, RIG_NV_OK, RIG_MAPS, ""},
  };
  const struct rig_nv_path *p = open_with(MIB, MIB, 6 * PAGE, 5);
  char *pages = ten_pages();
  struct rig_nv_memory made[COUNT(t)] = {0};
  struct rig_nv_reply r;
  uint64_t first = 0;
  for (size_t i = 0; i < COUNT(t); i++) {
    enum rig_mapping mapping = (enum rig_mapping)9;
    char *at = t[i].at < 0 ? NULL : pages + t[i].at;
    bool ok = p->map_host(p->ctx, at, t[i].n, &mapping, &made[i], &r);
    if (r.is != t[i].is || mapping != t[i].mapping)
      fail_msg("%s: %d, %d: %s", t[i].name, (int)r.is, (int)mapping, r.text);
    assert_int_equal(ok, t[i].is == RIG_NV_OK);
    matches(t[i].name, &r, t[i].text);
    if (!ok)
      continue;
    assert_ptr_equal(made[i].host, at);
    assert_int_equal(made[i].bytes, t[i].n);
    assert_int_not_equal(made[i].address, (uintptr_t)at);
    assert_in_range(made[i].address, UINT64_C(0x6000000000),
                    UINT64_C(0x6fffffffff));
    /* Pages of one mapping keep their distance. */
    if (t[i].at == PAGE)
      first = made[i].address;
    if (t[i].at == 2 * PAGE)
      assert_int_equal(made[i].address, first + PAGE);
  }
  for (size_t i = 0; i < COUNT(t); i++)
    if (made[i].bytes)
      assert_true(p->free(p->ctx, &made[i], &r));
  struct model_counts n;
  model_counts(p, &n);
  assert_int_equal(n.used[RIG_PINNED], 0);
  munmap(pages, 10 * PAGE);
  assert_int_equal(rig_nv_path_close(p), 0);
}

/* A shared mapping stays until its last user is gone. */
static void shared(void **state) {
  (void)state;
  struct bench b;
  struct rig_nv_memory m[2];
  struct rig_nv_reply r;
  enum rig_mapping mapping;
  bench_open(&b, NULL);
  const struct rig_nv_path *p = b.path;
  char *pages = ten_pages();
  assert_true(p->map_host(p->ctx, pages, 2 * PAGE, &mapping, &m[0], &r));
  assert_true(p->map_host(p->ctx, pages + PAGE, 8, &mapping, &m[1], &r));
  assert_true(p->free(p->ctx, &m[0], &r));
  uint64_t at = m[1].address;
  uint32_t release[] = {0x20050017, (uint32_t)at, (uint32_t)(at >> 32), 9,
                        0,          0x01100001};
  bench_run(&b, 0, release, COUNT(release));
  assert_true(bench_wait((uint64_t *)(void *)(pages + PAGE), 9));
  assert_true(p->free(p->ctx, &m[1], &r));
  bench_run(&b, 0, release, COUNT(release));
  assert_int_equal(bench_wait_error(&b, 0), 31);
  munmap(pages, 10 * PAGE);
  bench_close(&b);
}

static void frees(void **state) {
  (void)state;
  struct bench b;
  bench_open(&b, NULL);
  const struct rig_nv_path *p = b.path;
  struct rig_nv_memory m, gone, none = {0}, lies;
  struct rig_nv_reply r;
  assert_true(p->alloc(p->ctx, RIG_DEVICE, 8, 0, &m, &r));
  gone = lies = m;
  lies.data = &lies;
  const struct {
    const char *name;
    const struct rig_nv_memory *m;
    const char *text;
  } t[] = {
      {"no memory", &none, "free: memory 0x0 at 0x0 is none of the path's"},
      {"another record", &lies, "is none of the path's"},
      {"the block", &b.block, "free: a channel names memory"},
      {"a notifier", &b.channel[1].notifier, "a channel names memory"},
      {"memory", &m, ""},
      {"twice", &gone, "is none of the path's"},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    bool ok = p->free(p->ctx, t[i].m, &r);
    assert_int_equal(ok, !*t[i].text);
    assert_int_equal(r.is, ok ? RIG_NV_OK : RIG_NV_WRONG);
    matches(t[i].name, &r, t[i].text);
  }
  bench_close(&b);
}

static void others(void **state) {
  (void)state;
  const struct rig_nv_path *p = open_with(MIB, MIB, MIB, 1);
  struct rig_nv_memory m, view;
  struct rig_nv_reply r;
  struct rig_dma dma;
  enum rig_mapping mapping = RIG_MAPS;
  assert_true(p->alloc(p->ctx, RIG_DEVICE, 8, 0, &m, &r));
  assert_false(p->map_peer(p->ctx, &m, &mapping, &view, &r));
  assert_int_equal(mapping, RIG_NEVER_MAPS);
  matches("map_peer", &r, "map_peer: ");
  assert_false(p->dma(p->ctx, &m, "0000:41:00.0", &dma, &r));
  assert_int_equal(r.is, RIG_NV_DENIED);
  matches("dma", &r, "0000:41:00.0");
  assert_false(p->reaches(p->ctx, 0));
  assert_false(p->reaches(p->ctx, 1));
  assert_true(p->free(p->ctx, &m, &r));
  assert_int_equal(rig_nv_path_close(p), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kinds),     cmocka_unit_test(apart),
      cmocka_unit_test(no_mapped), cmocka_unit_test(host_maps),
      cmocka_unit_test(shared),    cmocka_unit_test(frees),
      cmocka_unit_test(others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
