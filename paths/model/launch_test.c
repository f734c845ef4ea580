/* SPDX-License-Identifier: ISC */
/*
 * Launches that run: what kernels are shown, what orders them and what does
 * not, and how they end. Freedoms are seen both ways over several seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <ck_pr.h>
#include <cmocka.h>

#include "paths/model/launching.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const uint32_t gpus[] = {0x806, 0x807, 0x809, 0x900, 0xa00, 0xa04};

/* What a launch's parameters name: the kernel below writes word + 1 to n words
 * at dst. */
struct move {
  uint64_t dst, src;
  uint32_t n, tag;
};

/* What kernels left, in the order in which they ran. */
struct seen {
  unsigned n;
  uint32_t tag[256];
  struct rig_nv_model_launch last;
  struct move moved;
  uint8_t second[64];
  bool wrong;
  uint64_t *word; /* looked at as kernels run */
  unsigned early; /* of these, how many found 1 there */
};

static void kernel(const struct rig_nv_model_launch *l, void *ctx) {
  struct seen *s = ctx;
  struct move m;
  memcpy(&m, l->params, sizeof m);
  s->tag[s->n++ % COUNT(s->tag)] = m.tag;
  s->last = *l;
  s->early += s->word && bench_load(s->word) == 1;
  s->moved = m;
  if (l->bank[3].bytes)
    memcpy(s->second, l->bank[3].at, sizeof s->second);
  for (uint32_t i = 0; i < m.n; i++) {
    uint32_t x;
    if (!rig_nv_model_read(l, m.src + 4 * i, &x, 4))
      return;
    x++;
    if (!rig_nv_model_write(l, m.dst + 4 * i, &x, 4))
      return;
  }
}

static void open_at(struct launching *l, struct seen *s, uint32_t sm_version,
                    uint64_t seed) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.seed = seed;
  o.personality = seed % 2 ? RIG_NV_LIKE_KERNEL : RIG_NV_LIKE_PCI;
  launching_open(l, sm_version, &o);
  memset(s, 0, sizeof *s);
  for (int i = 0; i < LAUNCHING_PROGRAMS; i++)
    assert_int_equal(rig_nv_model_bind(l->bench.path, launching_code(l, i),
                                       l->params, kernel, s),
                     0);
}

/* A launch of slot i: n words from the data's byte `from` to byte `to`. */
static void write_move(struct launching *l, int slot, int program,
                       uint64_t from, uint64_t to, uint32_t n) {
  const struct move m = {bench_data_at(&l->bench, to),
                         bench_data_at(&l->bench, from), n, (uint32_t)slot};
  launching_write(l, slot, program, &m, sizeof m);
}

static uint32_t data(const struct launching *l, uint64_t at) {
  uint32_t x;
  memcpy(&x, bench_data(&l->bench, at), sizeof x);
  return x;
}

static void set_data(const struct launching *l, uint64_t at, uint32_t x) {
  memcpy(bench_data(&l->bench, at), &x, sizeof x);
}

/* Fails with the path's report where the word does not come. */
static void reach(struct launching *l, int word, uint64_t x) {
  struct rig_nv_reply r;
  if (bench_wait(bench_word(&l->bench, word), x))
    return;
  (void)!l->bench.path->check(l->bench.path->ctx, &r);
  fail_msg("word %d is %llu, not %llu: %s", word,
           (unsigned long long)bench_load(bench_word(&l->bench, word)),
           (unsigned long long)x, r.text);
}

static void shown(void **state) {
  (void)state;
  for (size_t g = 0; g < COUNT(gpus); g++) {
    struct launching l;
    struct seen s;
    struct model_counts n;
    open_at(&l, &s, gpus[g], g + 1);
    write_move(&l, 2, 1, 0, 4096, 64);
    for (uint32_t i = 0; i < 64; i++)
      set_data(&l, 4 * i, 100 + i);
    launching_put(&l, 2, "GRID_WIDTH|CTA_RASTER_WIDTH", 0x7fffffff);
    launching_put(&l, 2, "GRID_HEIGHT|CTA_RASTER_HEIGHT", 65535);
    launching_put(&l, 2, "GRID_DEPTH|CTA_RASTER_DEPTH", 3);
    launching_put(&l, 2, "CTA_THREAD_DIMENSION0", 2);
    launching_put(&l, 2, "CTA_THREAD_DIMENSION1", 4);
    launching_put(&l, 2, "CTA_THREAD_DIMENSION2", 64);
    launching_put(&l, 2, "REGISTER_COUNT|REGISTER_COUNT_V", 128);
    launching_put(&l, 2, "BARRIER_COUNT", 16);
    launching_put(&l, 2, "SHARED_MEMORY_SIZE", 64 * 1024);
    launching_put(&l, 2, "MIN_SM_CONFIG_SHARED_MEM_SIZE", 17);
    launching_put(&l, 2, "TARGET_SM_CONFIG_SHARED_MEM_SIZE", 26);
    launching_put(&l, 2, "SHADER_LOCAL_MEMORY_HIGH_SIZE", 0x230);
    launching_put(&l, 2, "CONSTANT_BUFFER_VALID[3]", 1);
    launching_address(&l, 2, "CONSTANT_BUFFER_ADDR[3]",
                      launching_at(&l, 2) + LAUNCHING_SECOND);
    launching_put(&l, 2, "CONSTANT_BUFFER_SIZE_SHIFTED4[3]", 4);
    memset((char *)l.slots.host + 2 * LAUNCHING_SLOT + LAUNCHING_SECOND, 0x5a,
           64);
    launching_push(&l, 2);
    launching_word(&l, 0, 1, true);
    bench_ring(&l.bench, 0);
    reach(&l, 0, 1);
    const uint32_t grid[] = {0x7fffffff, 65535, 3}, group[] = {2, 4, 64};
    const uint32_t bank_grid[] = {1, 1, 1}, bank_group[] = {32, 1, 1};
    assert_int_equal(s.n, 1);
    assert_int_equal(s.last.descriptor, launching_at(&l, 2));
    assert_int_equal(s.last.code, launching_code(&l, 1));
    assert_memory_equal(s.last.grid, grid, sizeof grid);
    assert_memory_equal(s.last.group, group, sizeof group);
    assert_memory_equal(s.last.bank_grid, bank_grid, sizeof grid);
    assert_memory_equal(s.last.bank_group, bank_group, sizeof group);
    assert_int_equal(s.last.shared, 64 * 1024);
    assert_int_equal(s.last.local, 0x230);
    assert_int_equal(s.last.registers, 128);
    assert_int_equal(s.last.barriers, 16);
    assert_int_equal(s.last.bank[0].bytes, LAUNCHING_BANK_BYTES);
    assert_int_equal(s.last.params_bytes, LAUNCHING_BANK_BYTES - l.params);
    assert_int_equal(s.last.bank[3].bytes, 64);
    for (size_t i = 0; i < 64; i++)
      assert_int_equal(s.second[i], 0x5a);
    for (unsigned i = 1; i < 8; i++)
      assert_int_equal(s.last.bank[i].bytes, i == 3 ? 64 : 0);
    for (uint32_t i = 0; i < 64; i++)
      assert_int_equal(data(&l, 4096 + 4 * i), 101 + i);
    model_counts(l.bench.path, &n);
    assert_int_equal(n.launches, 1);
    assert_int_equal(n.chained, 0);
    assert_int_equal(n.released, 0);
    assert_int_equal(n.locals, 1);
    assert_int_equal(n.pending, 0);
    launching_close(&l);
  }
}

/* Releases of each size, by descriptors of each version. */
static void releases(void **state) {
  (void)state;
  const uint64_t payload = UINT64_C(0x1234567890abcdef);
  for (size_t k = 0; k < 3 * COUNT(gpus); k++) {
    const unsigned size = (unsigned)(k % 3);
    struct launching l;
    struct seen s;
    struct model_counts n;
    open_at(&l, &s, gpus[k / 3], k + 1);
    write_move(&l, 0, 0, 0, 4096, 1);
    set_data(&l, 0, 7);
    launching_put(&l, 0, "CWD_MEMBAR_TYPE", 0);
    launching_release(&l, 0, size, bench_word_at(&l.bench, 2), payload, true);
    *bench_word(&l.bench, 2) = *bench_word(&l.bench, 3) = UINT64_MAX;
    launching_push(&l, 0);
    bench_ring(&l.bench, 0);
    reach(&l, 2, size == 1 ? payload | UINT64_C(0xffffffff) << 32 : payload);
    assert_int_equal(data(&l, 4096), 8);
    assert_int_equal(*bench_word(&l.bench, 3) != UINT64_MAX, size == 0);
    model_counts(l.bench.path, &n);
    assert_int_equal(n.released, 1);
    launching_close(&l);
  }
}

/* A chain runs in its order: each launch adds one to what the one before it
 * wrote. Only the last has a membar. */
static void chains(void **state) {
  (void)state;
  enum { LONG = 100 };
  for (uint64_t seed = 1; seed <= 12; seed++) {
    struct launching l;
    struct seen s;
    struct model_counts n;
    open_at(&l, &s, gpus[seed % COUNT(gpus)], seed);
    set_data(&l, 0, 1000);
    for (int i = 0; i < LONG; i++) {
      write_move(&l, i, i % LAUNCHING_PROGRAMS, (uint64_t)i * 8,
                 (uint64_t)(i + 1) * 8, 1);
      if (i + 1 < LONG) {
        launching_put(&l, i, "CWD_MEMBAR_TYPE", seed % 3 ? 0 : 1);
        launching_chain(&l, i, i + 1, seed % 2);
      }
    }
    launching_release(&l, LONG - 1, 2, bench_word_at(&l.bench, 0), seed, true);
    launching_push(&l, 0);
    bench_ring(&l.bench, 0);
    reach(&l, 0, seed);
    assert_int_equal(s.n, LONG);
    for (uint32_t i = 0; i < LONG; i++) {
      assert_int_equal(s.tag[i], i);
      assert_int_equal(data(&l, 8 * (i + 1)), 1001 + i);
    }
    model_counts(l.bench.path, &n);
    assert_int_equal(n.launches, LONG);
    assert_int_equal(n.chained, LONG - 1);
    launching_close(&l);
  }
}

/* What is forbidden is looked for in SEEDS seeds, what is free until it was
 * seen. */
enum { SEEDS = 24, MOST_SEEDS = 1000 };

static bool more(uint64_t seed, bool free, bool seen) {
  return seed <= SEEDS || (free && !seen && seed <= MOST_SEEDS);
}

/* What stands between two launches, and whether the second may run first or
 * read what was there before the first. */
static void orders(void **state) {
  (void)state;
  static const struct {
    const char *name;
    bool idle, word, waits, ordered;
    uint32_t invalidate; /* the header of such a method */
  } t[] = {{"nothing", false, false, false, false, 0},
           {"a release", false, true, false, false, 0},
           {"a release that waits", false, true, true, true, 0},
           {"WAIT_FOR_IDLE", true, false, false, true, 0},
           {"INVALIDATE_SHADER_CACHES", false, false, false, true, 0x20012087},
           {"its NO_WFI", false, false, false, false, 0x200125a6}};
  for (size_t k = 0; k < COUNT(t); k++) {
    unsigned early = 0, stale = 0;
    bool seen = false;
    for (uint64_t seed = 1; more(seed, !t[k].ordered, seen); seed++) {
      struct launching l;
      struct seen s;
      open_at(&l, &s, 0x900, seed);
      set_data(&l, 0, 10);
      set_data(&l, 64, 0);
      write_move(&l, 0, 0, 0, 64, 1);
      write_move(&l, 1, 0, 64, 128, 1);
      launching_push(&l, 0);
      if (t[k].idle)
        launching_idle(&l);
      if (t[k].word)
        launching_word(&l, 1, 1, t[k].waits);
      const uint32_t invalidate[] = {t[k].invalidate, 0x1011};
      if (t[k].invalidate)
        bench_push(&l.bench, 0, invalidate, 2);
      launching_push(&l, 1);
      launching_word(&l, 0, 1, true);
      bench_ring(&l.bench, 0);
      reach(&l, 0, 1);
      early += s.tag[0] == 1;
      stale += data(&l, 128) == 1;
      assert_true(data(&l, 128) == 1 || data(&l, 128) == 12);
      seen = early && early < seed && stale > early;
      launching_close(&l);
    }
    if (t[k].ordered ? early || stale : !seen)
      fail_msg("%s: %u early, %u stale", t[k].name, early, stale);
  }
}

/* A release that does not wait may be seen before a launch ahead of it ran,
 * and one that waits never is. */
static void passes(void **state) {
  (void)state;
  for (int waits = 0; waits < 2; waits++) {
    unsigned before = 0;
    bool seen = false;
    for (uint64_t seed = 1; more(seed, !waits, seen); seed++) {
      struct launching l;
      struct seen s;
      open_at(&l, &s, 0x900, seed);
      s.word = bench_word(&l.bench, 0);
      write_move(&l, 0, 0, 0, 64, 1);
      launching_push(&l, 0);
      launching_word(&l, 0, 1, waits);
      launching_word(&l, 1, 1, true);
      bench_ring(&l.bench, 0);
      reach(&l, 1, 1);
      before += s.early;
      seen = before && before < seed;
      launching_close(&l);
    }
    if (waits ? before : !seen)
      fail_msg("waits %d: %u before", waits, before);
  }
}

/* A descriptor's release is seen with the launch's writes where one of the two
 * membars precedes it, and else in some seeds before them. */
static void membars(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint32_t cwd;
    bool release, sees;
  } t[] = {{"none", 0, false, false},
           {"L1_MEMBAR", 3, false, false},
           {"L1_SYSMEMBAR", 1, false, true},
           {"the release's", 0, true, true}};
  for (size_t k = 0; k < COUNT(t); k++) {
    unsigned before = 0;
    for (uint64_t seed = 1; more(seed, !t[k].sees, before); seed++) {
      struct launching l;
      struct seen s;
      open_at(&l, &s, gpus[seed % COUNT(gpus)], seed);
      write_move(&l, 0, 0, 0, 4092, 2);
      set_data(&l, 0, 5);
      set_data(&l, 4, 5);
      set_data(&l, 4092, 0);
      set_data(&l, 4096, 0);
      launching_put(&l, 0, "CWD_MEMBAR_TYPE", t[k].cwd);
      launching_release(&l, 0, 2, bench_word_at(&l.bench, 0), 1, t[k].release);
      launching_push(&l, 0);
      bench_ring(&l.bench, 0);
      while (!bench_load(bench_word(&l.bench, 0)))
        ck_pr_stall();
      model_stall(l.bench.path, true);
      before += data(&l, 4092) == 0 || data(&l, 4096) == 0;
      model_stall(l.bench.path, false);
      launching_word(&l, 0, 2, true);
      bench_ring(&l.bench, 0);
      reach(&l, 0, 2);
      assert_int_equal(data(&l, 4092), 6);
      assert_int_equal(data(&l, 4096), 6);
      launching_close(&l);
    }
    if (t[k].sees ? before : !before)
      fail_msg("%s: %u before", t[k].name, before);
  }
}

/* A copy that nothing orders after the launch sees its writes, none of them or
 * one of two pages'. */
static void races(void **state) {
  (void)state;
  unsigned seen[4] = {0};
  bool all = false;
  for (uint64_t seed = 1; more(seed, true, all); seed++) {
    struct launching l;
    struct seen s;
    open_at(&l, &s, 0x900, seed);
    write_move(&l, 0, 0, 0, 4092, 2);
    for (uint64_t at = 0; at < 8; at += 4) {
      set_data(&l, at, 5);
      set_data(&l, 4092 + at, 0);
    }
    const uint64_t from = bench_data_at(&l.bench, 4092);
    const uint64_t to = bench_data_at(&l.bench, 8192);
    const uint64_t w = bench_word_at(&l.bench, 1);
    const uint32_t copy[] = {0x20018000,
                             l.bench.path->gpu.copy_class,
                             0x20048100,
                             (uint32_t)(from >> 32),
                             (uint32_t)from,
                             (uint32_t)(to >> 32),
                             (uint32_t)to,
                             0x20018106,
                             8,
                             0x200180c0,
                             0x182,
                             0x20050017,
                             (uint32_t)w,
                             (uint32_t)(w >> 32),
                             1,
                             0,
                             0x01100001};
    /* After no-ops, so that it comes at any time of the launch's. */
    uint32_t words[256 + COUNT(copy)] = {0};
    const size_t ahead = seed * 3 % 256;
    memcpy(words + ahead, copy, sizeof copy);
    launching_push(&l, 0);
    launching_word(&l, 0, 1, true);
    bench_put(&l.bench, 0);
    bench_run(&l.bench, 1, words, ahead + COUNT(copy));
    reach(&l, 0, 1);
    reach(&l, 1, 1);
    seen[(data(&l, 8192) == 6) + 2 * (data(&l, 8196) == 6)]++;
    all = seen[0] && seen[3] && seen[1] + seen[2];
    launching_close(&l);
  }
  if (!all)
    fail_msg("none %u, first %u, second %u, both %u", seen[0], seen[1], seen[2],
             seen[3]);
}

/* What a launch itself wrote it reads, across pages and in odd places. */
static void rereads(const struct rig_nv_model_launch *l, void *ctx) {
  struct seen *s = ctx;
  struct move m;
  uint8_t x[5000], y[5000];
  memcpy(&m, l->params, sizeof m);
  for (size_t i = 0; i < sizeof x; i++)
    x[i] = (uint8_t)(i * 7);
  s->wrong = !rig_nv_model_write(l, m.dst + 3, x, sizeof x) ||
             !rig_nv_model_read(l, m.dst + 3, y, sizeof y) ||
             memcmp(x, y, sizeof x) != 0 ||
             !rig_nv_model_read(l, m.dst, y, 3) || y[0] != 9 || y[2] != 9 ||
             !rig_nv_model_write(l, m.dst + 64, x, 0);
  s->n++;
}

static void own_writes(void **state) {
  (void)state;
  struct launching l;
  struct seen s;
  open_at(&l, &s, 0x900, 1);
  assert_int_equal(rig_nv_model_bind(l.bench.path, launching_code(&l, 0),
                                     l.params, rereads, &s),
                   0);
  write_move(&l, 0, 0, 0, 100, 0);
  memset(bench_data(&l.bench, 0), 9, 8192);
  launching_push(&l, 0);
  launching_word(&l, 0, 1, true);
  bench_ring(&l.bench, 0);
  reach(&l, 0, 1);
  assert_int_equal(s.n, 1);
  assert_false(s.wrong);
  for (uint64_t i = 0; i < 8192; i++) {
    const uint64_t at = i - 103;
    assert_int_equal(*bench_data(&l.bench, i),
                     at < 5000 ? (uint8_t)(at * 7) : 9);
  }
  launching_close(&l);
}

/* Mapped memory whose host stores are posted: a launch reads what the host
 * stored before the flush word was read, and both see what it wrote. */
static void posted(void **state) {
  (void)state;
  struct rig_nv_model_options o;
  struct rig_nv_memory m;
  struct rig_nv_reply r;
  struct launching l;
  struct seen s = {0};
  rig_nv_model_options_init(&o);
  o.posts_writes = true;
  launching_open(&l, 0x900, &o);
  const struct rig_nv_path *p = l.bench.path;
  assert_int_equal(
      rig_nv_model_bind(p, launching_code(&l, 0), l.params, kernel, &s), 0);
  assert_true(p->alloc(p->ctx, RIG_MAPPED, 8192, 0, &m, &r));
  volatile uint32_t *host = m.host;
  const struct move move = {m.address + 4096, m.address, 1, 0};
  launching_write(&l, 0, 0, &move, sizeof move);
  host[0] = 41;
  host[1024] = 0;
  (void)*p->flush;
  launching_push(&l, 0);
  launching_word(&l, 0, 1, true);
  bench_ring(&l.bench, 0);
  reach(&l, 0, 1);
  assert_int_equal(host[1024], 42);
  assert_true(p->free(p->ctx, &m, &r));
  launching_close(&l);
}

static void other(const struct rig_nv_model_launch *l, void *ctx) {
  (void)l;
  ++*(int *)ctx;
}

static void bindings(void **state) {
  (void)state;
  struct launching l;
  struct seen s;
  int others = 0;
  open_at(&l, &s, 0x900, 1);
  const struct rig_nv_path *p = l.bench.path;
  const uint64_t code = launching_code(&l, 0);
  struct rig_nv_path strange = *p;
  strange.alloc = NULL;
  assert_int_equal(rig_nv_model_bind(&strange, code, 0, kernel, &s),
                   -RIG_NV_INVALID);
  assert_int_equal(rig_nv_model_bind(NULL, code, 0, kernel, &s),
                   -RIG_NV_INVALID);
  assert_int_equal(rig_nv_model_bind(p, code + 1, 0, NULL, NULL),
                   -RIG_NV_INVALID);
  for (uint64_t v = 1; v <= 2; v++) {
    write_move(&l, 0, 0, 0, 64, 0);
    launching_push(&l, 0);
    launching_word(&l, 0, v, true);
    bench_ring(&l.bench, 0);
    reach(&l, 0, v);
    assert_int_equal(s.n, 1);
    assert_int_equal(others, v - 1);
    assert_int_equal(rig_nv_model_bind(p, code, l.params, other, &others), 0);
  }
  assert_int_equal(rig_nv_model_bind(p, code, 0, NULL, NULL), 0);
  assert_int_equal(rig_nv_model_bind(p, code, 0, NULL, NULL), -RIG_NV_INVALID);
  launching_close(&l);
}

/* More launches at once than the engine holds: the channel waits for room. */
static void many(void **state) {
  (void)state;
  enum { ALL = 100 };
  struct launching l;
  struct seen s;
  struct model_counts n;
  static uint32_t words[4 * ALL];
  open_at(&l, &s, 0x900, 3);
  for (int i = 0; i < ALL; i++) {
    const uint32_t one[] = {0x200120ad, (uint32_t)(launching_at(&l, i) >> 8),
                            0x200120b0, 9};
    write_move(&l, i, i % LAUNCHING_PROGRAMS, 0, 64 + 8 * (uint64_t)i, 1);
    memcpy(words + 4 * i, one, sizeof one);
  }
  set_data(&l, 0, 1);
  bench_push(&l.bench, 0, words, COUNT(words));
  launching_word(&l, 0, 1, true);
  bench_ring(&l.bench, 0);
  reach(&l, 0, 1);
  for (uint64_t i = 0; i < ALL; i++)
    assert_int_equal(data(&l, 64 + 8 * i), 2);
  model_counts(l.bench.path, &n);
  assert_int_equal(n.launches, ALL);
  assert_int_equal(n.pending, 0);
  launching_close(&l);
}

/* Channels that end while launches are on their way. */
static void ended(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 20; seed++) {
    struct launching l;
    struct seen s;
    open_at(&l, &s, gpus[seed % COUNT(gpus)], seed);
    for (int i = 0; i < 8; i++) {
      write_move(&l, i, 0, 0, 64 + 8 * (uint64_t)i, 1);
      launching_put(&l, i, "CWD_MEMBAR_TYPE", 0);
      if (i < 7)
        launching_chain(&l, i, i + 1, seed % 2);
    }
    launching_push(&l, 0);
    launching_push(&l, 4);
    bench_ring(&l.bench, 0);
    struct model_counts n = {0};
    while (!n.launches && seed % 4)
      model_counts(l.bench.path, &n);
    launching_close(&l);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(shown),  cmocka_unit_test(releases),
      cmocka_unit_test(chains), cmocka_unit_test(orders),
      cmocka_unit_test(passes), cmocka_unit_test(membars),
      cmocka_unit_test(races),  cmocka_unit_test(own_writes),
      cmocka_unit_test(posted), cmocka_unit_test(bindings),
      cmocka_unit_test(many),   cmocka_unit_test(ended),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
