/* SPDX-License-Identifier: ISC */
/*
 * Posted writes: what the host stores to Mapped memory reaches the GPU, and
 * other GPUs' views, by a read of the owner's flush word alone.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <ck_pr.h>
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
#define STAMP(a, v) 0x20050017, LO(a), HI(a), LO(v), HI(v), 0x03100001
#define COPY(d, s, n)                                                          \
  0x20048100, HI(s), LO(s), HI(d), LO(d), 0x20018106, (uint32_t)(n),           \
      0x200180c0, 0x00000182
#define COPY_RELEASE(a, v)                                                     \
  0x20048090, HI(a), LO(a), LO(v), HI(v), 0x200180c0, 0x0800000c

enum { PAGE = 4096, FRESH = 0xd5 };

static struct rig_nv_reply reply;

static void open_posting(struct bench *b, uint64_t seed, bool posts) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.seed = seed;
  o.posts_writes = posts;
  bench_open(b, &o);
}

static void take(const struct bench *b, uint64_t n, struct rig_nv_memory *m) {
  assert_true(b->path->alloc(b->path->ctx, RIG_MAPPED, n, 0, m, &reply));
}

static void give(const struct bench *b, const struct rig_nv_memory *m) {
  assert_true(b->path->free(b->path->ctx, m, &reply));
}

static void flush(const struct bench *b) {
  ck_pr_fence_memory();
  (void)*b->path->flush;
}

/* Byte `at` as b's copy engine sees it at the address. */
static uint8_t seen(struct bench *b, uint64_t at) {
  static uint64_t value = 1000;
  value++;
  *bench_data(b, 0) = 0;
  RUN(b, 1, SET_COPY, COPY(bench_data_at(b, 0), at, 1),
      COPY_RELEASE(bench_word_at(b, 0), value));
  assert_true(bench_wait(bench_word(b, 0), value));
  return *bench_data(b, 0);
}

enum { NO_FLUSH, OWNERS, VIEWERS, BOTH };

/* Byte 0x11 stored to fresh memory, a flush, and what each GPU then sees. */
static void flushes(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool posts, viewer_posts, viewed; /* seen through a view */
    int flush;
    uint8_t want;
  } t[] = {
      {"none", true, false, false, NO_FLUSH, FRESH},
      {"flushed", true, false, false, OWNERS, 0x11},
      {"does not post", false, false, false, NO_FLUSH, 0x11},
      {"view, none", true, false, true, NO_FLUSH, FRESH},
      {"view, its own flush", true, false, true, VIEWERS, FRESH},
      {"view, its own trap", true, true, true, VIEWERS, FRESH},
      {"view, the owner's", true, false, true, OWNERS, 0x11},
      {"view, the owner's; both post", true, true, true, OWNERS, 0x11},
      {"view, both", true, true, true, BOTH, 0x11},
      {"view of one that does not post", false, true, true, NO_FLUSH, 0x11},
  };
  for (size_t i = 0; i < COUNT(t); i++)
    for (uint64_t seed = 1; seed <= 3; seed++) {
      struct rig_nv_memory m, view;
      enum rig_mapping mapping;
      struct bench a, b;
      open_posting(&b, seed, t[i].posts);
      open_posting(&a, seed + 50, t[i].viewer_posts);
      take(&b, 3 * PAGE, &m);
      assert_true(a.path->map_peer(a.path->ctx, &m, &mapping, &view, &reply));
      uint8_t *p = (uint8_t *)m.host + PAGE + 5;
      const uint64_t at = (t[i].viewed ? view : m).address + PAGE + 5;
      struct bench *by = t[i].viewed ? &a : &b;
      for (int lap = 0; lap < 3; lap++) {
        const uint8_t old = t[i].want == FRESH || !lap ? FRESH : 0x11;
        *p = 0x11;
        if (t[i].want == FRESH)
          assert_int_equal(seen(by, at), old);
        if (t[i].flush == VIEWERS || t[i].flush == BOTH)
          flush(&a);
        if (t[i].flush == OWNERS || t[i].flush == BOTH)
          flush(&b);
        uint8_t got = seen(by, at);
        if (got != t[i].want)
          fail_msg("%s: 0x%x, not 0x%x", t[i].name, got, t[i].want);
        assert_int_equal(seen(by, at + 1), FRESH);
      }
      give(&a, &view);
      give(&b, &m);
      bench_close(&a);
      bench_close(&b);
    }
}

/* A word in Pinned memory that the host stores after the flush, and that the
 * GPU acquires before it copies. The page is open from the flush before. */
static void acquired(uint64_t seed) {
  struct rig_nv_memory m;
  struct bench b;
  open_posting(&b, seed, true);
  take(&b, PAGE, &m);
  volatile uint8_t *p = m.host;
  const uint64_t w = bench_word_at(&b, 2), done = bench_word_at(&b, 0);
  for (uint64_t v = 1; v <= 40; v++) {
    RUN(&b, 1, ACQUIRE(w, v), SET_COPY,
        COPY(bench_data_at(&b, 0), m.address, 1), COPY_RELEASE(done, v));
    bench_sleep_ms(1); /* the engine is at the acquire */
    flush(&b);
    *p = (uint8_t)v;
    flush(&b);
    bench_store(bench_word(&b, 2), v);
    assert_true(bench_wait(bench_word(&b, 0), v));
    assert_int_equal(*bench_data(&b, 0), (uint8_t)v);
  }
  give(&b, &m);
  bench_close(&b);
}

static void acquires(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 6; seed++)
    acquired(seed);
}

/* What the GPU writes, its own and another's through a view, both the host and
 * the GPU see at once; what the host posted beside it stays posted. */
static void gpu_writes(void **state) {
  (void)state;
  struct rig_nv_memory m, view;
  enum rig_mapping mapping;
  struct bench a, b;
  open_posting(&b, 5, true);
  open_posting(&a, 6, false);
  take(&b, PAGE, &m);
  assert_true(a.path->map_peer(a.path->ctx, &m, &mapping, &view, &reply));
  struct bench *by[] = {&b, &a};
  const uint64_t at[] = {m.address, view.address};
  uint8_t *p = m.host;
  uint64_t *words = m.host;
  for (size_t i = 0; i < COUNT(by); i++) {
    const uint64_t d = at[i] + 512 * i, v = i + 1;
    uint8_t *h = p + 512 * i;
    memset(bench_data(by[i], 8), 0x40 + (int)i, 8);
    h[15] = h[17] = 0x77; /* posted */
    /* 8 bytes, components of 2 of which the second is not written, a stamped
     * release, and a copy's release. */
    RUN(by[i], 1, SET_COPY, COPY(d, bench_data_at(by[i], 8), 8), 0x200181c0,
        0x50, 0x200181c2, 0x01000064, 0x20028102, HI(d + 16), LO(d + 16),
        0x20018106, 4, 0x200180c0, 0x00000582, COPY_RELEASE(d + 64, v),
        STAMP(d + 96, v));
    assert_true(bench_wait(words + 64 * i + 12, v));
    assert_true(bench_wait(words + 64 * i + 8, v));
    assert_memory_equal(h, bench_data(by[i], 8), 8);
    assert_memory_equal(h + 16, "\x50\x77\x50\xd5\x50\xd5\x50\xd5", 8);
    assert_int_not_equal(words[64 * i + 13], UINT64_C(0xd5d5d5d5d5d5d5d5));
    assert_int_equal(seen(&b, m.address + 512 * i + 7), 0x40 + i);
    assert_int_equal(seen(&b, m.address + 512 * i + 16), 0x50);
    assert_int_equal(seen(&b, m.address + 512 * i + 96), v);
    assert_int_equal(seen(&b, m.address + 512 * i + 15), FRESH);
    assert_int_equal(seen(&b, m.address + 512 * i + 17), FRESH);
    assert_int_equal(h[15], 0x77);
  }
  flush(&b);
  assert_int_equal(seen(&b, m.address + 15), 0x77);
  give(&a, &view);
  give(&b, &m);
  bench_close(&a);
  bench_close(&b);
}

enum { THREADS = 4, LAPS = 60 };

static struct bench shared;
static struct rig_nv_memory area;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Each stores to its own bytes and flushes, then takes the turn to copy. */
static void *stores(void *arg) {
  const uintptr_t me = (uintptr_t)arg;
  uint8_t *p = (uint8_t *)area.host + me * 24;
  uintptr_t bad = 0;
  for (int lap = 1; lap <= LAPS; lap++) {
    memset(p, (int)(lap * 4 + (int)me), 24);
    flush(&shared);
    pthread_mutex_lock(&turn);
    for (uint64_t i = 0; i < 24; i += 23)
      bad += seen(&shared, area.address + me * 24 + i) !=
             (uint8_t)(lap * 4 + (int)me);
    pthread_mutex_unlock(&turn);
  }
  return (void *)bad;
}

static void threads(void **state) {
  (void)state;
  pthread_t t[THREADS];
  open_posting(&shared, 7, true);
  take(&shared, PAGE, &area);
  for (uintptr_t i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&t[i], NULL, stores, (void *)i), 0);
  for (size_t i = 0; i < THREADS; i++) {
    void *bad;
    assert_int_equal(pthread_join(t[i], &bad), 0);
    assert_int_equal((uintptr_t)bad, 0);
  }
  give(&shared, &area);
  bench_close(&shared);
}

/* A channel whose ring, or USERD too, lies in Mapped memory. */
static void rings(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool userd, flush;
    const char *text; /* "" where it runs */
  } t[] = {{"ring, flushed", false, true, ""},
           {"ring, no flush", false, false,
            "ring entry 0, 0xd5d5d5d5d5d5d5d5, is what fresh memory holds"},
           {"ring and USERD, flushed", true, true, ""},
           {"ring and USERD, no flush", true, false, ""}};
  for (size_t i = 0; i < COUNT(t); i++) {
    uint8_t params[1024] = {0};
    struct rig_nv_memory m;
    struct bench b;
    uint32_t c, token;
    open_posting(&b, i + 1, true);
    const struct rig_nv_path *p = b.path;
    take(&b, 3 * PAGE, &m);
    bench_channel_params(&b, 0, params);
    bench_set(params, b.layout->channel.object_buffer, m.handle);
    bench_set(params, b.layout->channel.gpfifo_offset, m.address);
    bench_set(params, b.layout->channel.userd_memory_0,
              t[i].userd ? m.handle : b.block.handle);
    bench_set(params, b.layout->channel.userd_offset_0,
              t[i].userd ? PAGE : 2 * PAGE + 512);
    assert_true(p->rm.alloc(p->ctx, b.group, 0xc86f, params,
                            b.layout->channel.bytes, &c, &reply));
    assert_true(p->register_channel(p->ctx, c, &reply));
    assert_true(p->rm.token(p->ctx, c, &token, &reply));
    memset(params, 0, sizeof params);
    bench_set(params, b.layout->schedule.enable, 1);
    assert_true(p->rm.schedule(p->ctx, b.group, params,
                               b.layout->schedule.bytes, &reply));
    const uint32_t words[] = {RELEASE(bench_word_at(&b, 0), 3)};
    char *host = m.host;
    memcpy(host + 2 * PAGE, words, sizeof words);
    *(uint64_t *)(void *)host = (m.address + 2 * PAGE) | UINT64_C(1) << 41 |
                                (uint64_t)COUNT(words) << 42;
    if (t[i].flush)
      flush(&b);
    char *userd =
        t[i].userd ? host + PAGE : (char *)b.block.host + 2 * PAGE + 512;
    ck_pr_fence_release();
    ck_pr_store_32((uint32_t *)(void *)(userd + 0x8c), 1);
    ck_pr_store_32((uint32_t *)p->doorbell, token);
    if (*t[i].text) {
      assert_int_equal(bench_wait_error(&b, 0), 32);
      assert_false(p->check(p->ctx, &reply));
      if (!strstr(reply.text, t[i].text))
        fail_msg("%s: %s", t[i].name, reply.text);
    } else if (!bench_wait(bench_word(&b, 0), 3)) {
      p->check(p->ctx, &reply);
      fail_msg("%s: %s", t[i].name, reply.text);
    } else
      assert_int_equal(ck_pr_load_32((uint32_t *)(void *)(userd + 0x88)), 1);
    assert_true(p->unregister_channel(p->ctx, c, &reply));
    assert_true(p->rm.free(p->ctx, b.group, c, &reply));
    give(&b, &m);
    bench_close(&b);
  }
}

static char *closed;
static volatile sig_atomic_t others;

static void opens_it(int sig, siginfo_t *info, void *context) {
  (void)sig, (void)context;
  others += (char *)info->si_addr == closed;
  mprotect(closed, PAGE, PROT_READ);
}

static void opens_it_simply(int sig) {
  (void)sig;
  others++;
  mprotect(closed, PAGE, PROT_READ);
}

/* Other faults go to the handler that was there, of either kind; a handler
 * that took the model's place loses it to the next model. */
static void chains(void **state) {
  (void)state;
  closed = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(closed, MAP_FAILED);
  for (int simple = 0; simple < 2; simple++) {
    struct sigaction own = {0}, old;
    struct rig_nv_memory m;
    struct bench b;
    if (simple)
      own.sa_handler = opens_it_simply;
    else {
      own.sa_sigaction = opens_it;
      own.sa_flags = SA_SIGINFO;
    }
    assert_int_equal(sigaction(SIGSEGV, &own, &old), 0);
    others = 0;
    open_posting(&b, 8, true);
    take(&b, PAGE, &m);
    (void)*(volatile char *)closed;
    assert_int_equal(others, 1);
    *(volatile char *)m.host = 9;
    flush(&b);
    assert_int_equal(seen(&b, m.address), 9);
    assert_int_equal(others, 1);
    assert_int_equal(mprotect(closed, PAGE, PROT_NONE), 0);
    give(&b, &m);
    bench_close(&b);
    assert_int_equal(sigaction(SIGSEGV, &old, NULL), 0);
  }
  munmap(closed, PAGE);
}

/* Words come and go: each posting model has a page of its own, 16 at most. */
static void many(void **state) {
  (void)state;
  enum { MOST = 16 };
  const struct rig_nv_path *p[MOST], *more = NULL;
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.posts_writes = true;
  for (int lap = 0; lap < 2; lap++) {
    for (int i = 0; i < MOST; i++)
      assert_int_equal(rig_nv_path_model(&o, &p[i]), 0);
    assert_int_equal(rig_nv_path_model(&o, &more), -RIG_NV_INVALID);
    assert_non_null(strstr(rig_nv_why(), "more than 16 models post writes"));
    for (int i = 0; i < MOST; i++) {
      (void)*p[i]->flush;
      assert_int_equal(rig_nv_path_close(p[i]), 0);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(flushes),    cmocka_unit_test(acquires),
      cmocka_unit_test(gpu_writes), cmocka_unit_test(threads),
      cmocka_unit_test(rings),      cmocka_unit_test(chains),
      cmocka_unit_test(many),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
