/* SPDX-License-Identifier: ISC */
/*
 * What launches run in: windows and local memory that the channel lacks or
 * changes, caches that nobody invalidated, and memory that a kernel leaves or
 * that is freed under it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "paths/model/launching.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define TOP (UINT64_C(1) << 40)

static const uint32_t gpus[] = {0x809, 0x900, 0xa04};

/* What the channel lacks or holds wrong. */
enum lacks {
  WINDOWS = 1 << 0,
  LOCAL = 1 << 1,
  SMALL = 1 << 2,    /* local memory for half the bytes */
  UNITS = 1 << 3,    /* of a size that is in no units */
  UNMAPPED = 1 << 4, /* of the second TPC */
  OVER = 1 << 5,     /* a window over memory */
  OVERLAP = 1 << 6,  /* windows over each other */
  NO_LOCAL = 1 << 7  /* by the launch */
};

static void set_channel(struct launching *l, unsigned lacks) {
  const uint32_t object[] = {0x20012000, l->bench.path->gpu.compute_class};
  const uint32_t over[] = {
      0x200220a8, (uint32_t)(l->code.address >> 32), 0, 0x200221ec, 0xfe, 0};
  const uint32_t same[] = {0x200220a8, 0xff, 0, 0x200221ec, 0xfe, 0x80000000};
  const uint64_t page = lacks & UNMAPPED ? 4096 : 0;
  const uint64_t size = lacks & SMALL   ? l->per_tpc / 2
                        : lacks & UNITS ? l->per_tpc + 16384
                                        : l->per_tpc;
  if (lacks & WINDOWS)
    bench_push(&l->bench, 0, object, 2);
  else
    launching_bind(l);
  if (lacks & OVER)
    bench_push(&l->bench, 0, over, COUNT(over));
  if (lacks & OVERLAP)
    bench_push(&l->bench, 0, same, COUNT(same));
  if (!(lacks & LOCAL))
    launching_local(l, l->local.address + page, size);
}

static void channels(void **state) {
  (void)state;
  static const struct {
    const char *name;
    unsigned lacks;
    uint32_t error;
    const char *text;
  } t[] = {
      {"no windows", WINDOWS, 32,
       "nothing set SET_SHADER_SHARED_MEMORY_WINDOW_A"},
      {"no local memory", LOCAL, 32,
       "SHADER_LOCAL_MEMORY_HIGH_SIZE: nothing set"},
      {"none, and none asked for", LOCAL | NO_LOCAL, 0, ""},
      {"local memory of fewer bytes", SMALL, 32,
       "576 bytes of a thread, where the channel's local memory holds 288"},
      {"local memory in units", UNITS, 32, "not in units of 32768"},
      {"local memory's end", UNMAPPED, 31, "SET_SHADER_LOCAL_MEMORY_A 0x"},
      {"window over memory", OVER, 32, "a window over memory"},
      {"windows overlap", OVERLAP, 32, "its windows overlap"},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct launching l;
    launching_open_bare(&l, 0x900, NULL);
    launching_bind_all(&l, NULL, NULL);
    set_channel(&l, t[i].lacks);
    launching_write(&l, 0, 0, NULL, 0);
    if (t[i].lacks & NO_LOCAL)
      launching_put(&l, 0, "SHADER_LOCAL_MEMORY_HIGH_SIZE", 0);
    launching_go(&l);
    if (t[i].error)
      launching_stopped(&l, t[i].name, t[i].error, t[i].text, "launch 0x");
    else
      assert_true(bench_wait(bench_word(&l.bench, 0), 1));
    if (t[i].error == 31)
      launching_recorded(&l, l.local.address + 2 * l.per_tpc, 1);
    launching_close(&l);
  }
}

/* A change of what launches look at, while one runs and after it is idle. */
static void changes(void **state) {
  (void)state;
  for (int local = 0; local < 2; local++)
    for (int idle = 0; idle < 2; idle++) {
      struct launching l;
      launching_open_at(&l, 0x900, (uint64_t)(1 + local * 2 + idle));
      launching_write(&l, 0, 0, NULL, 0);
      launching_push(&l, 0);
      if (idle)
        launching_idle(&l);
      if (local)
        launching_local(&l, l.local.address, l.per_tpc);
      else
        launching_bind(&l);
      launching_word(&l, 0, 1, true);
      bench_ring(&l.bench, 0);
      if (idle)
        assert_true(bench_wait(bench_word(&l.bench, 0), 1));
      else
        launching_stopped(
            &l, "change", 32,
            local ? "SET_SHADER_LOCAL_MEMORY_A 0x70: a change"
                  : "SET_SHADER_SHARED_MEMORY_WINDOW_A 0xff: a change",
            "while 1 launches run");
      launching_close(&l);
    }
}

/* An access to where no memory is, or not all of it. */
struct bad {
  uint64_t at;
  bool writes;
  bool answered; /* what the access answered */
  uint64_t entered, asked;
};

static void touches(const struct rig_nv_model_launch *l, void *ctx) {
  struct bad *b = ctx;
  uint64_t x[2] = {0};
  b->answered = b->writes ? rig_nv_model_write(l, b->at, x, sizeof x)
                          : rig_nv_model_read(l, b->at, x, sizeof x);
}

static void kernels(void **state) {
  (void)state;
  for (int k = 0; k < 6; k++) {
    struct bad b = {.writes = k % 2, .answered = true};
    struct launching l;
    launching_open_at(&l, 0x900, (uint64_t)k + 1);
    const uint64_t end = bench_data_at(&l.bench, BENCH_DATA_BYTES);
    launching_bind_all(&l, touches, &b);
    b.at = k < 2 ? 0 : k < 4 ? end - 8 : TOP - 8;
    launching_write(&l, 0, 0, NULL, 0);
    launching_go(&l);
    launching_stopped(&l, "kernel", 31, "", "");
    launching_recorded(&l, k < 2 ? 0 : k < 4 ? end : TOP - 8, b.writes);
    assert_false(b.answered);
    launching_close(&l);
  }
}

/* Writes a word to where its context says, and gives another thread the time
 * to ask for the model's lock. */
static void writes(const struct rig_nv_model_launch *l, void *ctx) {
  struct bad *b = ctx;
  const uint64_t x = 1;
  (void)rig_nv_model_write(l, b->at, &x, sizeof x);
  bench_store(&b->entered, 1);
  (void)bench_wait(&b->asked, 1);
  bench_sleep_ms(1);
}

/* Memory that is freed between a kernel and the landing of what it wrote, and
 * local memory before its launch ended. */
static void freed(void **state) {
  (void)state;
  enum { SEEDS = 20, MOST_SEEDS = 500 };
  for (int local = 0; local < 2; local++) {
    unsigned faults = 0, fine = 0;
    for (uint64_t seed = 1; seed <= SEEDS || (!faults && seed <= MOST_SEEDS);
         seed++) {
      struct rig_nv_memory m;
      struct rig_nv_reply r;
      struct launching l;
      struct bad b = {0};
      launching_open_at(&l, gpus[seed % COUNT(gpus)], seed);
      const struct rig_nv_path *p = l.bench.path;
      assert_true(p->alloc(p->ctx, RIG_DEVICE, 8, 0, &m, &r));
      b.at = local ? bench_data_at(&l.bench, 0) : m.address;
      launching_bind_all(&l, writes, &b);
      launching_write(&l, 0, 0, NULL, 0);
      launching_put(&l, 0, "CWD_MEMBAR_TYPE", 0);
      launching_push(&l, 0);
      bench_ring(&l.bench, 0);
      assert_true(bench_wait(&b.entered, 1));
      bench_store(&b.asked, 1);
      assert_true(p->free(p->ctx, local ? &l.local : &m, &r));
      launching_word(&l, 0, 1, true);
      bench_ring(&l.bench, 0);
      char text[1024];
      launching_outcome(&l, text, sizeof text);
      if (bench_status(&l.bench, 0)) {
        assert_int_equal(bench_wait_error(&l.bench, 0), 31);
        launching_recorded(&l, local ? l.local.address : m.address, 1);
        faults++;
      } else
        fine++;
      if (local) /* for the close to free */
        assert_true(p->alloc(p->ctx, RIG_DEVICE, 8, 0, &l.local, &r));
      if (local)
        assert_true(p->free(p->ctx, &m, &r));
      launching_close(&l);
    }
    if (!faults)
      fail_msg("local %d: %u faults, %u fine", local, faults, fine);
  }
}

/* Code and constants that were written between two launches. */
static void caches(void **state) {
  (void)state;
  enum { NO_INVALIDATE, INSTRUCTION = 1, CONSTANT = 0x1000 };
  static const struct {
    const char *name;
    uint32_t invalidate; /* the argument; 0: none */
    bool code, second, by_descriptor;
    const char *text; /* NULL: it runs */
  } t[] = {
      {"nothing written", 0, false, false, false, NULL},
      {"code", 0, true, false, false, "code that the instruction cache holds"},
      {"code, constants invalidated", CONSTANT, true, false, false,
       "was written since a launch fetched it"},
      {"code, invalidated", INSTRUCTION, true, false, false, NULL},
      {"code, by the descriptor", 0, true, false, true, NULL},
      {"bank 3", 0, false, true, false, "constant bank 3 at 0x"},
      {"bank 3, code invalidated", INSTRUCTION, false, true, false,
       "constant bank 3 at 0x"},
      {"bank 3, invalidated", CONSTANT, false, true, false, NULL},
      {"bank 3, by the descriptor", 0, false, true, true, NULL},
  };
  for (size_t i = 0; i < COUNT(t); i++)
    for (size_t g = 0; g < COUNT(gpus); g++) {
      struct launching l;
      struct model_counts n;
      launching_open_at(&l, gpus[g], i + g);
      for (int k = 0; k < 2; k++) {
        launching_write(&l, 0, 0, NULL, 0);
        if (k) /* it fetches less than the first one did */
          launching_put(&l, 0, "PROGRAM_PREFETCH_SIZE", 0);
        launching_put(&l, 0, "CONSTANT_BUFFER_VALID[3]", 1);
        launching_put(&l, 0, "CONSTANT_BUFFER_SIZE_SHIFTED4[3]", 16);
        launching_address(&l, 0, "CONSTANT_BUFFER_ADDR[3]",
                          launching_at(&l, 0) + LAUNCHING_SECOND);
        if (k && t[i].by_descriptor) {
          launching_put(&l, 0, "CONSTANT_BUFFER_INVALIDATE[3]", 1);
          launching_put(&l, 0, "INVALIDATE_INSTRUCTION_CACHE", 1);
        }
        if (k && t[i].code)
          ((char *)l.code.host)[100] ^= 1;
        if (k && t[i].second)
          ((char *)l.slots.host)[LAUNCHING_SECOND + 255] ^= 1;
        /* Without a wait for idle, and with one. */
        const uint32_t words[] = {g % 2 ? 0x20012087 : 0x200125a6,
                                  t[i].invalidate};
        if (k && t[i].invalidate)
          bench_push(&l.bench, 0, words, 2);
        if (k) {
          launching_go(&l);
        } else {
          launching_push(&l, 0);
          launching_word(&l, 1, 1, true);
          bench_ring(&l.bench, 0);
          assert_true(bench_wait(bench_word(&l.bench, 1), 1));
        }
      }
      if (t[i].text)
        launching_stopped(&l, t[i].name, 32, t[i].text,
                          "no invalidate followed");
      else if (!bench_wait(bench_word(&l.bench, 0), 1)) {
        char text[1024];
        launching_report(&l, text, sizeof text);
        fail_msg("%s: %s", t[i].name, text);
      }
      model_counts(l.bench.path, &n);
      assert_int_equal(n.invalidates, t[i].invalidate != 0);
      launching_close(&l);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channels), cmocka_unit_test(changes),
      cmocka_unit_test(kernels),  cmocka_unit_test(freed),
      cmocka_unit_test(caches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
