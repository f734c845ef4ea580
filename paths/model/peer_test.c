/* SPDX-License-Identifier: ISC */
/*
 * Models as peers: their numbers, views of each kind of memory, refusals, what
 * frees leave, and engines of two models at each other's memory.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "paths/model/testing.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define LO(x) (uint32_t)(uint64_t)(x)
#define HI(x) (uint32_t)((uint64_t)(x) >> 32)
#define RUN(b, i, ...)                                                         \
  do {                                                                         \
    const uint32_t words_[] = {__VA_ARGS__};                                   \
    bench_run(b, i, words_, COUNT(words_));                                    \
  } while (0)
#define SET_COPY 0x20018000, 0xc8b5
#define ACQUIRE(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x01001003
#define RELEASE(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x01100001
#define COPY(d, s, n)                                                          \
  0x20048100, HI(s), LO(s), HI(d), LO(d), 0x20018106, (uint32_t)(n),           \
      0x200180c0, 0x00000182
#define COPY_RELEASE(a, v)                                                     \
  0x20048090, HI(a), LO(a), LO(v), HI(v), 0x200180c0, 0x0800000c

enum { PAGE = 4096, HOST = RIG_MAPPED + 1, KINDS };

static const uint64_t GIB = UINT64_C(1) << 30;

static struct rig_nv_reply reply;

static struct rig_nv_model_options seeded(uint64_t seed) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.seed = seed;
  return o;
}

static bool map(const struct rig_nv_path *p, const struct rig_nv_memory *of,
                struct rig_nv_memory *view) {
  enum rig_mapping mapping = (enum rig_mapping)9;
  bool ok = p->map_peer(p->ctx, of, &mapping, view, &reply);
  assert_int_equal(mapping == RIG_MAPS, ok);
  return ok;
}

static void give(const struct rig_nv_path *p, const struct rig_nv_memory *m) {
  if (!p->free(p->ctx, m, &reply))
    fail_msg("%s", reply.text);
}

/* Memory of one of KINDS; *pages holds a HOST one's. */
static void take(const struct rig_nv_path *p, int kind, uint64_t n,
                 struct rig_nv_memory *m, void **pages) {
  enum rig_mapping mapping;
  *pages = NULL;
  if (kind != HOST) {
    assert_true(p->alloc(p->ctx, (enum rig_memory)kind, n, 0, m, &reply));
    return;
  }
  *pages =
      mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(*pages, MAP_FAILED);
  assert_true(p->map_host(p->ctx, *pages, n, &mapping, m, &reply));
}

/* Models opened one after the other, and closed at the end. */
static void indices(void **state) {
  (void)state;
  static const struct {
    int asked, got; /* -1: refused */
    bool alone;
    const char *text;
  } t[] = {{-1, 0, false, ""},
           {3, 3, false, ""},
           {-1, 1, true, ""},
           {-1, 2, false, ""},
           {-1, 4, false, ""},
           {3, -1, false, "a model of index 3 is open"},
           {0, -1, false, "a model of index 0 is open"},
           {-2, -1, false, "no index -2 of a GPU"}};
  const struct rig_nv_path *p[COUNT(t)] = {NULL};
  for (size_t i = 0; i < COUNT(t); i++) {
    struct rig_nv_model_options o = seeded(i + 1);
    o.index = t[i].asked;
    o.no_peers = t[i].alone;
    int r = rig_nv_path_model(&o, &p[i]);
    assert_int_equal(r, t[i].got < 0 ? -RIG_NV_INVALID : 0);
    if (r && !strstr(rig_nv_why(), t[i].text))
      fail_msg("%s", rig_nv_why());
    if (!r)
      assert_int_equal(p[i]->index, t[i].got);
    if (!r)
      assert_ptr_equal(p[i]->key, p[0]->key);
  }
  for (size_t i = 0; i < COUNT(t); i++)
    for (int index = -1; p[i] && index < 7; index++)
      assert_int_equal(p[i]->reaches(p[i]->ctx, index),
                       !t[i].alone && index >= 0 && index <= 4 &&
                           index != t[i].got);
  assert_int_equal(rig_nv_path_close(p[0]), 0);
  assert_false(p[1]->reaches(p[1]->ctx, 0));
  struct rig_nv_model_options o = seeded(1);
  assert_int_equal(rig_nv_path_model(&o, &p[0]), 0);
  assert_int_equal(p[0]->index, 0);
  assert_true(p[1]->reaches(p[1]->ctx, 0));
  for (size_t i = 0; i < COUNT(t); i++)
    if (p[i])
      assert_int_equal(rig_nv_path_close(p[i]), 0);
}

/* Bytes go through two views of each kind, to and fro, and frees of views
 * leave the memory and each other. */
static void views(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int kind;
    uint64_t n, low, high;
  } t[] = {
      {"Device", RIG_DEVICE, 9000, 0x7000000000, RIG_NV_WINDOWS},
      {"Pinned", RIG_PINNED, 5000, 0x6000000000, 0x7000000000},
      {"Mapped", RIG_MAPPED, PAGE, 0x6000000000, 0x7000000000},
      {"host", HOST, 2 * PAGE, 0x6000000000, 0x7000000000},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct rig_nv_model_options o = seeded(i + 1);
    struct rig_nv_memory m, view[2];
    struct model_counts n;
    struct bench a, b;
    void *pages;
    bench_open(&b, NULL);
    bench_open(&a, &o);
    take(b.path, t[i].kind, t[i].n, &m, &pages);
    for (int k = 0; k < 2; k++) {
      if (!map(a.path, &m, &view[k]))
        fail_msg("%s: %s", t[i].name, reply.text);
      assert_int_equal(view[k].bytes, m.bytes);
      assert_ptr_equal(view[k].host, m.host);
      assert_in_range(view[k].address, t[i].low, t[i].high - 1);
    }
    assert_int_not_equal(view[0].address, view[1].address);
    model_counts(a.path, &n);
    assert_int_equal(n.viewed, 2 * ((t[i].n + PAGE - 1) / PAGE * PAGE));
    assert_int_equal(n.memories, 6);
    memset(bench_data(&a, 0), 0x31, 64);
    uint64_t w = bench_word_at(&a, 0), data = bench_data_at(&a, 0);
    RUN(&a, 1, SET_COPY, COPY(view[0].address + t[i].n - 64, data, 64),
        COPY(data + 256, view[1].address + t[i].n - 64, 64),
        COPY_RELEASE(w, 1));
    assert_true(bench_wait(bench_word(&a, 0), 1));
    assert_memory_equal(bench_data(&a, 256), bench_data(&a, 0), 64);
    if (m.host)
      assert_memory_equal((char *)m.host + t[i].n - 64, bench_data(&a, 0), 64);
    give(a.path, &view[0]);
    RUN(&b, 1, SET_COPY,
        COPY(bench_data_at(&b, 0), m.address + t[i].n - 64, 64),
        COPY_RELEASE(bench_word_at(&b, 0), 1));
    assert_true(bench_wait(bench_word(&b, 0), 1));
    assert_memory_equal(bench_data(&b, 0), bench_data(&a, 0), 64);
    RUN(&a, 1, COPY(data + 512, view[1].address + t[i].n - 64, 64),
        COPY_RELEASE(w, 2));
    assert_true(bench_wait(bench_word(&a, 0), 2));
    assert_memory_equal(bench_data(&a, 512), bench_data(&a, 0), 64);
    /* A view ends at its memory's last byte. */
    RUN(&a, 1, COPY(view[1].address + t[i].n, data, 1));
    assert_int_equal(bench_wait_error(&a, 0), 31);
    give(a.path, &view[1]);
    model_counts(a.path, &n);
    assert_int_equal(n.viewed, 0);
    give(b.path, &m);
    bench_close(&a);
    bench_close(&b);
    if (pages)
      munmap(pages, t[i].n);
  }
}

enum { OTHERS, OWN, VIEW, FREED, NOTHING, BIG };

static void refusals(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool alone, stopped;
    int what;
    uint64_t peer_bytes;
    enum rig_mapping mapping;
    const char *text;
  } t[] = {
      {"maps", false, false, OTHERS, PAGE, RIG_MAPS, ""},
      {"own", false, false, OWN, PAGE, RIG_NEVER_MAPS,
       "map_peer: this GPU's own memory: memory 0x"},
      {"a view", false, false, VIEW, 2 * PAGE, RIG_NEVER_MAPS,
       "map_peer: a view of another GPU's memory: memory 0x"},
      {"freed", false, false, FREED, PAGE, RIG_NEVER_MAPS,
       "map_peer: no memory of an open model: memory 0x"},
      {"nothing", false, false, NOTHING, PAGE, RIG_NEVER_MAPS,
       "map_peer: no memory of an open model: memory 0x0 at 0x0"},
      {"alone", true, false, OTHERS, PAGE, RIG_NEVER_MAPS,
       "map_peer: this GPU reaches no other: memory 0x"},
      {"stopped", false, true, OTHERS, PAGE, RIG_NEVER_MAPS,
       "map_peer: the path stopped: memory 0x"},
      {"budget", false, false, OTHERS, PAGE - 1, RIG_NO_ROOM,
       "map_peer: no room for 4096 bytes"},
      {"addresses", false, false, BIG, UINT64_MAX, RIG_NO_ROOM,
       "map_peer: no room for 42949672960 bytes"},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct rig_nv_model_options o = seeded(i + 1);
    struct rig_nv_memory m[6] = {0}, view = {0}, first = {0};
    struct model_counts before, after;
    const struct rig_nv_path *a, *b;
    enum rig_mapping mapping = (enum rig_mapping)9;
    o.host_bytes = 100 * GIB;
    assert_int_equal(rig_nv_path_model(&o, &b), 0);
    o.no_peers = t[i].alone;
    o.peer_bytes = t[i].peer_bytes;
    o.personality = RIG_NV_LIKE_PCI;
    assert_int_equal(rig_nv_path_model(&o, &a), 0);
    void *pages;
    take(b, RIG_PINNED, PAGE, &m[OTHERS], &pages);
    take(a, RIG_PINNED, PAGE, &m[OWN], &pages);
    take(b, RIG_PINNED, PAGE, &m[FREED], &pages);
    if (t[i].what == VIEW)
      assert_true(map(a, &m[OTHERS], &m[VIEW]));
    give(b, &m[FREED]);
    if (t[i].what == BIG) {
      take(b, RIG_PINNED, 40 * GIB, &m[BIG], &pages);
      assert_true(map(a, &m[BIG], &first));
    }
    if (t[i].stopped)
      assert_int_equal(a->stop(a->ctx), RIG_NV_STOPPED);
    model_counts(a, &before);
    bool ok = a->map_peer(a->ctx, &m[t[i].what], &mapping, &view, &reply);
    model_counts(a, &after);
    if (ok != (t[i].mapping == RIG_MAPS) || mapping != t[i].mapping ||
        !strstr(reply.text, t[i].text))
      fail_msg("%s: %d: %s", t[i].name, (int)mapping, reply.text);
    assert_int_equal(reply.is, ok                       ? RIG_NV_OK
                               : mapping == RIG_NO_ROOM ? RIG_NV_LACKING
                                                        : RIG_NV_DENIED);
    if (ok)
      give(a, &view);
    else
      assert_memory_equal(&before, &after, sizeof before);
    for (int k = 0; k < 6; k++)
      if (k != FREED && m[k].bytes)
        give(k == OWN || k == VIEW ? a : b, &m[k]);
    if (first.bytes)
      give(a, &first);
    assert_int_equal(rig_nv_path_close(a), 0);
    assert_int_equal(rig_nv_path_close(b), 0);
  }
}

/* A channel's parameters name no view. */
static void names(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t field; /* of the parameters of channel 0 */
  } t[] = {{"hObjectError", 0},
           {"hObjectBuffer", 1},
           {"hUserdMemory[0]", 2},
           {"gpFifoOffset", 3}};
  struct rig_nv_memory m, view;
  struct bench a, b;
  void *pages;
  bench_open(&b, NULL);
  bench_open(&a, NULL);
  take(b.path, RIG_PINNED, 2 * PAGE, &m, &pages);
  assert_true(map(a.path, &m, &view));
  for (size_t i = 0; i < COUNT(t); i++) {
    const struct abi_rm_field fields[] = {
        a.layout->channel.object_error, a.layout->channel.object_buffer,
        a.layout->channel.userd_memory_0, a.layout->channel.gpfifo_offset};
    uint8_t params[1024] = {0};
    uint32_t object;
    bench_channel_params(&a, 0, params);
    bench_set(params, a.layout->channel.userd_offset_0, 2 * PAGE + 512);
    bench_set(params, fields[t[i].field],
              t[i].field == 3 ? view.address : view.handle);
    assert_false(a.path->rm.alloc(a.path->ctx, a.group, 0xc86f, params,
                                  a.layout->channel.bytes, &object, &reply));
    if (!strstr(reply.text, t[i].text))
      fail_msg("%s: %s", t[i].text, reply.text);
  }
  give(a.path, &view);
  give(b.path, &m);
  bench_close(&a);
  bench_close(&b);
}

/* Memory that is freed before its views: their accesses fault at their
 * addresses, with the host's pages gone. */
static void gone(void **state) {
  (void)state;
  static const char *const accesses[] = {"acquire", "release", "copy from it",
                                         "copy to it"};
  for (int kind = 0; kind < KINDS; kind++)
    for (size_t i = 0; i < COUNT(accesses); i++) {
      struct rig_nv_memory m, view;
      struct bench a, b;
      void *pages;
      bench_open(&b, NULL);
      bench_open(&a, NULL);
      take(b.path, kind, PAGE, &m, &pages);
      assert_true(map(a.path, &m, &view));
      const uint64_t v = view.address, d = bench_data_at(&a, 0);
      const uint32_t words[][11] = {{ACQUIRE(v, 1)},
                                    {RELEASE(v, 1)},
                                    {SET_COPY, COPY(d, v, 8)},
                                    {SET_COPY, COPY(v, d, 8)}};
      give(b.path, &m);
      if (pages)
        munmap(pages, PAGE);
      bench_run(&a, 1, words[i], i < 2 ? 6 : 11);
      if (bench_wait_error(&a, 0) != 31) {
        a.path->check(a.path->ctx, &reply);
        fail_msg("%s: %s", accesses[i], reply.text);
      }
      assert_false(bench_status(&b, 0));
      give(a.path, &view);
      bench_close(&a);
      bench_close(&b);
    }
}

/* Two engines hand a block of bytes to and fro, each by views of the other's
 * words and memory. */
static void ping_pong(void **state) {
  (void)state;
  enum { LAPS = 60, BYTES = 4096 };
  for (uint64_t seed = 1; seed <= 3; seed++) {
    struct rig_nv_model_options o = seeded(seed), q = seeded(seed + 100);
    struct rig_nv_memory of_b, of_a;
    struct bench a, b;
    bench_open(&a, &o);
    bench_open(&b, &q);
    assert_true(map(a.path, &b.words, &of_b));
    assert_true(map(b.path, &a.words, &of_a));
    const uint64_t aw = bench_word_at(&a, 0), bw = bench_word_at(&b, 0);
    const uint64_t data = bench_data_at(&a, 0) - a.words.address;
    for (uint64_t i = 0; i < BYTES; i++)
      *bench_data(&a, i) = (uint8_t)(i * seed);
    for (uint64_t v = 1; v <= LAPS; v++) {
      /* a: block k to b's block k; b: its block k to a's block k + 1. */
      uint64_t k = v % 8 * BYTES, next = (v + 1) % 8 * BYTES;
      if (v == 1)
        memcpy(bench_data(&a, k), bench_data(&a, 0), BYTES);
      RUN(&a, 1, ACQUIRE(aw, v - 1), SET_COPY,
          COPY(of_b.address + data + k, bench_data_at(&a, k), BYTES),
          COPY_RELEASE(of_b.address, v));
      RUN(&b, 1, ACQUIRE(bw, v), SET_COPY,
          COPY(of_a.address + data + next, bench_data_at(&b, k), BYTES),
          COPY_RELEASE(of_a.address, v));
      if (v % 8 == 0)
        assert_true(bench_wait(bench_word(&a, 0), v));
    }
    assert_true(bench_wait(bench_word(&a, 0), LAPS));
    const uint64_t last = (LAPS + 1) % 8 * BYTES;
    for (uint64_t i = 0; i < BYTES; i++)
      assert_int_equal(*bench_data(&a, last + i), (uint8_t)(i * seed));
    give(a.path, &of_b);
    give(b.path, &of_a);
    bench_close(&a);
    bench_close(&b);
  }
}

/* Frees of host memory, and its unmapping, while another model's engine copies
 * from it: the engine faults and nothing else does. */
static void freed_beside(void **state) {
  (void)state;
  enum { LAPS = 30, BYTES = 256 * PAGE };
  struct bench b;
  bench_open(&b, NULL);
  for (uint64_t lap = 1; lap <= LAPS; lap++) {
    struct rig_nv_model_options o = seeded(lap);
    struct rig_nv_memory m, view, to;
    struct bench a;
    void *pages, *none;
    bench_open(&a, &o);
    take(b.path, HOST, BYTES, &m, &pages);
    take(a.path, RIG_DEVICE, BYTES, &to, &none);
    assert_true(map(a.path, &m, &view));
    for (int i = 0; i < 8; i++)
      RUN(&a, 1, SET_COPY, COPY(to.address, view.address, BYTES),
          COPY(view.address, to.address, BYTES),
          RELEASE(bench_word_at(&a, 0), (uint64_t)i + 1));
    while (lap % 2 && bench_load(bench_word(&a, 0)) == 0)
      bench_sleep_ms(0);
    give(b.path, &m);
    munmap(pages, BYTES);
    RUN(&a, 1, COPY(to.address, view.address, 8));
    assert_int_equal(bench_wait_error(&a, 0), 31);
    give(a.path, &view);
    give(a.path, &to);
    bench_close(&a);
  }
  bench_close(&b);
}

static const struct rig_nv_path *owner;

/* Opens and closes a model, maps what the owner frees at the same time. */
static void *come_and_go(void *arg) {
  const struct rig_nv_memory *m = arg;
  uintptr_t bad = 0;
  for (uint64_t i = 1; i <= 40; i++) {
    struct rig_nv_model_options o = seeded(i);
    const struct rig_nv_path *p;
    struct rig_nv_memory view;
    struct rig_nv_reply r;
    enum rig_mapping mapping;
    if (rig_nv_path_model(&o, &p))
      return (void *)(bad + 1);
    bad += !p->reaches(p->ctx, owner->index);
    for (int k = 0; k < 3; k++) {
      if (p->map_peer(p->ctx, m, &mapping, &view, &r))
        bad += !p->free(p->ctx, &view, &r);
      else
        bad += 1;
    }
    bad += rig_nv_path_close(p) != 0;
  }
  return (void *)bad;
}

static void comes_and_goes(void **state) {
  (void)state;
  struct rig_nv_memory m, other;
  pthread_t t[2];
  void *none;
  assert_int_equal(rig_nv_path_model(NULL, &owner), 0);
  take(owner, RIG_PINNED, PAGE, &m, &none);
  for (size_t i = 0; i < COUNT(t); i++)
    assert_int_equal(pthread_create(&t[i], NULL, come_and_go, &m), 0);
  for (int i = 0; i < 100; i++) {
    take(owner, RIG_DEVICE, PAGE, &other, &none);
    give(owner, &other);
  }
  for (size_t i = 0; i < COUNT(t); i++) {
    void *bad;
    assert_int_equal(pthread_join(t[i], &bad), 0);
    assert_int_equal((uintptr_t)bad, 0);
  }
  give(owner, &m);
  assert_int_equal(rig_nv_path_close(owner), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(indices),      cmocka_unit_test(views),
      cmocka_unit_test(refusals),     cmocka_unit_test(names),
      cmocka_unit_test(gone),         cmocka_unit_test(ping_pong),
      cmocka_unit_test(freed_beside), cmocka_unit_test(comes_and_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
