/* SPDX-License-Identifier: ISC */
/*
 * Faults: what the engine is fed, and the error in both notifiers, the path's
 * report and the MMU's record that come of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paths/model/testing.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define W(...) {__VA_ARGS__}

enum { MOST = 20 };

/* Words of a case. WORD, DATA, END and GAP in place of a low address stand for
 * a word's, the data's, and the first bytes past it. The address's high word
 * follows or precedes it, and is 0x60 for all of them. PCAS_END is END as
 * SEND_PCAS_A has it. */
enum { WORD = 0x7fff0000, DATA, LAST, END, GAP, ODD, PCAS_END };

static uint64_t address(const struct bench *b, uint32_t what) {
  const uint64_t end = bench_data_at(b, BENCH_DATA_BYTES);
  return what == WORD   ? bench_word_at(b, 0)
         : what == DATA ? bench_data_at(b, 0)
         : what == LAST ? end - 8
         : what == END  ? end
         : what == GAP  ? b->words.address - 8
                        : bench_word_at(b, 0) + 4;
}

static const struct {
  const char *name;
  int channel;
  uint32_t error, at, access; /* at: for an MMU fault, what its address is */
  const char *text;           /* of the report; "" none */
  uint32_t words[MOST];
} cases[] = {
    {"release past the end", 0, 31, END, 1, "",
     W(0x20050017, END, 0x60, 1, 0, 0x01100001)},
    {"release before the start", 1, 31, GAP, 1, "",
     W(0x20050017, GAP, 0x60, 1, 0, 0x01100001)},
    {"acquire past the end", 0, 31, END, 0, "",
     W(0x20050017, END, 0x60, 1, 0, 0x01001003)},
    {"acquire at 2^40", 0, 31, 0, 0, "",
     W(0x20050017, 0, 0x100, 1, 0, 0x01001003)},
    {"copy from nowhere", 1, 31, END, 0, "",
     W(0x20018000, 0xc8b5, 0x20048100, 0x60, END, 0x60, DATA, 0x20018106, 8,
       0x200180c0, 0x182)},
    {"copy to nowhere", 1, 31, GAP, 1, "",
     W(0x20018000, 0xc8b5, 0x20048100, 0x60, DATA, 0x60, GAP, 0x20018106, 8,
       0x200180c0, 0x182)},
    {"copy runs past the end", 1, 31, END, 1, "",
     W(0x20018000, 0xc8b5, 0x20048100, 0x60, DATA, 0x60, LAST, 0x20018106, 16,
       0x200180c0, 0x182)},
    {"copy's release to nowhere", 1, 31, END, 1, "",
     W(0x20018000, 0xc8b5, 0x20048090, 0x60, END, 1, 0, 0x200180c0,
       0x0800000c)},

    {"host method unknown", 0, 32, 0, 0,
     "channel error: method 0x70 of class 0xc86f is not known",
     W(0x2001001c, 0)},
    {"compute method unknown", 0, 32, 0, 0,
     "method 0x114 of class 0xcbc0 is not known",
     W(0x20012000, 0xcbc0, 0x20012045, 0)},
    {"copy method unknown", 1, 32, 0, 0,
     "method 0x260 of class 0xc8b5 is not known",
     W(0x20018000, 0xc8b5, 0x20018098, 0)},
    {"compute method before its object", 0, 32, 0, 0,
     "method 0x110 on subchannel 1, which no class is bound to",
     W(0x20012044, 0)},
    {"copy method on compute's", 0, 32, 0, 0,
     "method 0x400 of class 0xcbc0 is not known",
     W(0x20012000, 0xcbc0, 0x20012100, 0)},
    {"copy method on subchannel 0", 1, 32, 0, 0, "method 0x400 on subchannel 0",
     W(0x20018000, 0xc8b5, 0x20010100, 0)},
    {"object of another channel", 0, 32, 0, 0,
     "SET_OBJECT 0xc8b5: the channel has no such engine",
     W(0x20018000, 0xc8b5)},
    {"object on another subchannel", 1, 32, 0, 0,
     "SET_OBJECT 0xc8b5 on subchannel 3, not 4", W(0x20016000, 0xc8b5)},
    {"object's engine bits", 0, 32, 0, 0, "SET_OBJECT 0x1cbc0",
     W(0x20012000, 0x1cbc0)},
    {"launch of no descriptor", 0, 32, 0, 0,
     "SEND_SIGNALING_PCAS2_B 0x9: nothing set SEND_PCAS_A",
     W(0x20012000, 0xcbc0, 0x200120b0, 9)},
    {"schedule with no prefetch", 0, 32, 0, 0,
     "SEND_SIGNALING_PCAS2_B 0x2: not PREFETCH_SCHEDULE",
     W(0x20012000, 0xcbc0, 0x200120ad, 0x1000, 0x200120b0, 2)},
    {"schedule of a part", 0, 32, 0, 0,
     "SEND_SIGNALING_PCAS2_B 0x109: not PREFETCH_SCHEDULE",
     W(0x20012000, 0xcbc0, 0x200120ad, 0x1000, 0x200120b0, 0x109)},
    {"schedule by a queue", 0, 32, 0, 0, "SEND_PCAS_B 0x1: not modelled",
     W(0x20012000, 0xcbc0, 0x200120ae, 1)},
    {"schedule by the older method", 0, 32, 0, 0,
     "SEND_SIGNALING_PCAS_B 0x3: not modelled",
     W(0x20012000, 0xcbc0, 0x200120af, 3)},
    {"descriptor nowhere", 0, 31, END, 0, "",
     W(0x20012000, 0xcbc0, 0x200120ad, PCAS_END, 0x200120b0, 9)},
    {"argument bits", 1, 32, 0, 0,
     "method 0x60 (SEM_ADDR_HI) of class 0xc86f: bits 0x2000000 of 0x2000000",
     W(0x20010018, 0x2000000)},
    {"misaligned release", 0, 32, 0, 0, "a release of 8 bytes at 0x60",
     W(0x20050017, ODD, 0x60, 1, 0, 0x01100001)},
    {"misaligned acquire", 0, 32, 0, 0, "an acquire at 0x60",
     W(0x20050017, ODD, 0x60, 1, 0, 0x01001003)},
    {"stamp's alignment", 0, 32, 0, 0, "a release of 16 bytes",
     W(0x20050017, LAST, 0x60, 1, 0, 0x03100001)},
    {"semaphore unset", 0, 32, 0, 0, "SEM_EXECUTE with no address",
     W(0x2001001b, 0x01100001)},
    {"reduction", 0, 32, 0, 0, "operation 6 is not modelled",
     W(0x20050017, WORD, 0x60, 1, 0, 0x01000006)},
    {"acquire with a release's bits", 0, 32, 0, 0,
     "acquires with bits of a release",
     W(0x20050017, WORD, 0x60, 1, 0, 0x01101003)},
    {"release with an acquire's bit", 0, 32, 0, 0, "releases with SWITCH_TSG",
     W(0x20050017, WORD, 0x60, 1, 0, 0x01101001)},
    {"reserved header bit", 0, 32, 0, 0, "header 0x20011017 has bit 12 set",
     W(0x20011017, 0)},
    {"header without arguments", 0, 32, 0, 0,
     "header 0x20000017 has no arguments", W(0x20000017)},
    {"fresh header", 0, 32, 0, 0,
     "header 0xd5d5d5d5 is what fresh memory holds: nobody wrote it",
     W(0xd5d5d5d5)},
    {"header run before", 0, 32, 0, 0,
     "header 0xd3d3d3d3 was run before and nobody wrote it since",
     W(0xd3d3d3d3)},
    {"header operation", 0, 32, 0, 0,
     "header 0xd5d5c5d5: operation 6 is not modelled", W(0xd5d5c5d5)},
    {"end of segment", 0, 32, 0, 0, "operation 7 is not modelled",
     W(0xe0000000)},
    {"half a method", 0, 32, 0, 0,
     "a segment ends 2 arguments early, in method 0x68",
     W(0x20050017, WORD, 0x60, 1)},
    {"transfer type", 1, 32, 0, 0, "LAUNCH_DMA 0x183: no such transfer type",
     W(0x20018000, 0xc8b5, 0x200180c0, 0x183)},
    {"semaphore type", 1, 32, 0, 0, "no such semaphore type",
     W(0x20018000, 0xc8b5, 0x200180c0, 0x18)},
    {"block-linear", 1, 32, 0, 0, "block-linear source",
     W(0x20018000, 0xc8b5, 0x200180c0, 0x102)},
    {"block-linear destination", 1, 32, 0, 0, "block-linear destination",
     W(0x20018000, 0xc8b5, 0x200180c0, 0x82)},
    {"physical source", 1, 32, 0, 0, "bits 0x1000 of 0x1182",
     W(0x20018000, 0xc8b5, 0x200180c0, 0x1182)},
    {"copy of unset length", 1, 32, 0, 0,
     "LAUNCH_DMA 0x182: nothing set LINE_LENGTH_IN",
     W(0x20018000, 0xc8b5, 0x20048100, 0x60, DATA, 0x60, DATA, 0x200180c0,
       0x182)},
    {"box of unset pitch", 1, 32, 0, 0, "nothing set PITCH_IN",
     W(0x20018000, 0xc8b5, 0x20048100, 0x60, DATA, 0x60, DATA, 0x20038105, 8, 8,
       8, 0x200180c0, 0x382)},
    {"fill of an unset constant", 1, 32, 0, 0, "nothing set SET_REMAP_CONST_A",
     W(0x20018000, 0xc8b5, 0x20048100, 0x60, DATA, 0x60, DATA, 0x20018106, 8,
       0x200181c2, 4, 0x200180c0, 0x582)},
    {"remap of a source", 1, 32, 0, 0, "remaps of source components",
     W(0x20018000, 0xc8b5, 0x20048100, 0x60, DATA, 0x60, DATA, 0x20018106, 8,
       0x200181c2, 0, 0x200180c0, 0x582)},
    {"copy's misaligned release", 1, 32, 0, 0, "a release of 8 bytes",
     W(0x20018000, 0xc8b5, 0x20048090, 0x60, ODD, 1, 0, 0x200180c0,
       0x0800000c)},
};

static size_t resolve(const struct bench *b, const uint32_t *from,
                      uint32_t *to) {
  size_t n = MOST;
  while (n && !from[n - 1])
    n--;
  if (n && from[n - 1] >> 29 == 1 && n < MOST && n % 2)
    n++; /* a header's argument of 0 */
  for (size_t i = 0; i < n; i++)
    to[i] = from[i] == PCAS_END ? (uint32_t)(address(b, END) >> 8)
            : from[i] >= WORD && from[i] <= ODD ? (uint32_t)address(b, from[i])
                                                : from[i];
  return n;
}

static uint64_t field(const uint8_t *p, struct abi_rm_field f) {
  uint64_t x;
  assert_int_equal(rig_nv_params_get(p, 8192, f.at, f.n, &x), 0);
  return x;
}

/* The RM's record of the fault, and of none on a multiprocessor. */
static void recorded(struct bench *b, uint64_t n, uint64_t at,
                     uint64_t access) {
  static uint8_t p[8192];
  const struct abi_rm_layout *l = b->layout;
  struct rig_nv_reply r;
  memset(p, 0, sizeof p);
  assert_true(b->path->rm.mmu_faults(b->path->ctx, b->debugger, p,
                                     l->mmu_faults.bytes, &r));
  assert_int_equal(field(p, l->mmu_faults.count), n);
  if (n) {
    assert_int_equal(field(p, l->mmu_faults.address), at);
    assert_int_equal(field(p, l->mmu_faults.type), 2); /* PTE */
    assert_int_equal(field(p, l->mmu_faults.access), access);
  }
  memset(p, 0xff, sizeof p);
  bench_set(p, l->sm_errors.target_channel, b->channel[0].handle);
  bench_set(p, l->sm_errors.sms_to_read, 100);
  assert_int_equal(
      rig_nv_params_set(p, 8192, l->sm_errors.starting_sm.at, 4, 0), 0);
  assert_true(b->path->rm.sm_errors(b->path->ctx, b->debugger, p,
                                    l->sm_errors.bytes, &r));
  assert_int_equal(field(p, l->sm_errors.mmu_fault_valid), n > 0);
  assert_int_equal(field(p, l->sm_errors.global_esr), 0);
  assert_int_equal(field(p, l->sm_errors.warp_esr), 0);
}

static void notified(struct bench *b, int i, uint32_t error) {
  uint8_t *p = b->channel[i].notifier.host;
  const struct abi_rm_layout *l = b->layout;
  assert_int_equal(bench_wait_error(b, i), error);
  assert_int_equal(bench_status(b, i), 0xffff);
  assert_int_equal(field(p, l->notification.info_16), 0);
  assert_int_not_equal(field(p, l->notification.time_stamp), 0);
}

static void reports(struct bench *b, const char *name, const char *text) {
  struct rig_nv_reply r;
  bool ok = b->path->check(b->path->ctx, &r);
  assert_int_equal(ok, !*text);
  assert_int_equal(r.is, ok ? RIG_NV_OK : RIG_NV_FAULTED);
  if (!strstr(r.text, text))
    fail_msg("%s: \"%s\" has no \"%s\"", name, r.text, text);
  if (!ok)
    assert_memory_equal(r.text, "channel error: ", 15);
}

/* The group has stopped: no word of it moves again. */
static void stopped(struct bench *b) {
  uint64_t w = bench_word_at(b, 5);
  uint32_t release[] = {0x20050017, (uint32_t)w, (uint32_t)(w >> 32),
                        1,          0,           0x01100001};
  bench_run(b, 0, release, COUNT(release));
  bench_run(b, 1, release, COUNT(release));
  bench_sleep_ms(2);
  assert_int_equal(bench_load(bench_word(b, 5)), 0);
}

static void faults(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    struct rig_nv_model_options o;
    struct bench b;
    uint32_t words[MOST];
    rig_nv_model_options_init(&o);
    o.seed = i + 1;
    bench_open(&b, &o);
    recorded(&b, 0, 0, 0);
    size_t n = resolve(&b, cases[i].words, words);
    bench_run(&b, cases[i].channel, words, n);
    notified(&b, 0, cases[i].error);
    notified(&b, 1, cases[i].error);
    reports(&b, cases[i].name, cases[i].text);
    bool mmu = cases[i].error == 31;
    recorded(&b, mmu,
             cases[i].at ? address(&b, cases[i].at) : UINT64_C(1) << 40,
             cases[i].access);
    stopped(&b);
    bench_close(&b);
  }
}

/* Ring entries that are refused, and one of a segment that is not there. */
static void entries(void **state) {
  (void)state;
  static const struct {
    const char *name;
    uint64_t entry;
    uint32_t error;
    const char *text;
  } t[] = {
      {"empty", 0, 32, "ring entry 0, 0x0, is empty"},
      {"conditional", 0x0000060060000001, 32, "fetches conditionally"},
      {"reserved bit", 0x0000060060000002, 32, "has a reserved bit set"},
      {"privileged", 0x0000070060000000, 32, "has a reserved bit set"},
      {"main", 0x0000040060000000, 32, "is of level MAIN"},
      {"sync", 0x8000060060000000, 32, "waits (SYNC)"},
      {"no words", 0x0000020060000000, 32, "has no words"},
      {"fresh memory", 0xd5d5d5d5d5d5d5d5, 32,
       "is what fresh memory holds: nobody wrote it"},
      {"fetched", 0xd3d3d3d3d3d3d3d3, 32,
       "was fetched before and nobody wrote it since"},
      {"segment nowhere", 0x0000060000001000, 31, ""},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct bench b;
    bench_open(&b, NULL);
    bench_entry(&b, 1, t[i].entry);
    bench_ring(&b, 1);
    notified(&b, 0, t[i].error);
    notified(&b, 1, t[i].error);
    reports(&b, t[i].name, t[i].text);
    recorded(&b, t[i].error == 31, 0x1000, 0);
    bench_close(&b);
  }
}

/* A GP_PUT that no ring of so many entries has. */
static void put(void **state) {
  (void)state;
  struct bench b;
  bench_open(&b, NULL);
  b.channel[0].put = BENCH_ENTRIES;
  bench_ring(&b, 0);
  notified(&b, 1, 32);
  reports(&b, "put", "GP_PUT 0x10 is past the ring's 16 entries");
  bench_close(&b);
}

/* A segment that ends past its memory faults at the first byte past it. */
static void overrun(void **state) {
  (void)state;
  struct bench b;
  bench_open(&b, NULL);
  memset(bench_data(&b, BENCH_DATA_BYTES - 8), 0, 8); /* no-ops */
  bench_entry(&b, 0,
              bench_data_at(&b, BENCH_DATA_BYTES - 8) | UINT64_C(1) << 41 |
                  UINT64_C(3) << 42);
  bench_ring(&b, 0);
  notified(&b, 0, 31);
  recorded(&b, 1, bench_data_at(&b, BENCH_DATA_BYTES), 0);
  bench_close(&b);
}

/* Memory ends at its last byte, not at its page's. */
static void inside_a_page(void **state) {
  (void)state;
  struct bench b;
  struct rig_nv_memory m;
  struct rig_nv_reply r;
  bench_open(&b, NULL);
  const struct rig_nv_path *p = b.path;
  assert_true(p->alloc(p->ctx, RIG_PINNED, 104, 0, &m, &r));
  uint32_t lo = (uint32_t)m.address, hi = (uint32_t)(m.address >> 32);
  uint32_t release[] = {0x20050017, lo + 96, hi, 5, 0, 0x01100001};
  bench_run(&b, 0, release, COUNT(release));
  assert_true(bench_wait((uint64_t *)m.host + 12, 5));
  release[1] = lo + 104;
  bench_run(&b, 0, release, COUNT(release));
  notified(&b, 0, 31);
  recorded(&b, 1, m.address + 104, 1);
  assert_true(p->free(p->ctx, &m, &r));
  bench_close(&b);
}

/* A copy's release that a fault overtakes lands before the notifiers hold the
 * error, or never. */
static void late(void **state) {
  (void)state;
  unsigned landed = 0;
  enum { SEEDS = 24, NO_OPS = 24 };
  for (uint64_t seed = 1; seed <= SEEDS; seed++) {
    struct rig_nv_model_options o;
    struct model_counts n;
    struct bench b;
    rig_nv_model_options_init(&o);
    o.seed = seed;
    bench_open(&b, &o);
    uint64_t w = bench_word_at(&b, 0);
    /* No-ops between them, so that the engine has a turn. */
    uint32_t words[9 + NO_OPS + 2] = {
        0x20018000, 0xc8b5, 0x20048090, (uint32_t)(w >> 32), (uint32_t)w,
        1,          0,      0x200180c0, 0x0800000c};
    words[9 + NO_OPS] = 0x2001001c;
    bench_run(&b, 1, words, COUNT(words));
    notified(&b, 0, 32);
    notified(&b, 1, 32);
    model_counts(b.path, &n);
    assert_int_equal(n.pending, 0);
    landed += bench_load(bench_word(&b, 0)) == 1;
    bench_store(bench_word(&b, 0), 1000);
    bench_sleep_ms(3);
    assert_int_equal(bench_load(bench_word(&b, 0)), 1000);
    bench_close(&b);
  }
  assert_in_range(landed, 1, SEEDS - 1);
}

/* A free of the group stops its work: the word moves no more. */
static void freed(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 10; seed++) {
    struct rig_nv_model_options o;
    struct rig_nv_reply r;
    struct bench b;
    rig_nv_model_options_init(&o);
    o.seed = seed;
    bench_open(&b, &o);
    uint64_t w = bench_word_at(&b, 0);
    for (uint32_t v = 1; v < BENCH_ENTRIES; v++) {
      uint32_t release[] = {0x20050017, (uint32_t)w, (uint32_t)(w >> 32),
                            v,          0,           0x01100001};
      bench_run(&b, 0, release, COUNT(release));
    }
    const struct rig_nv_path *p = b.path;
    for (int i = 0; i < 2; i++)
      assert_true(p->unregister_channel(p->ctx, b.channel[i].handle, &r));
    assert_true(p->rm.free(p->ctx, p->device, b.debugger, &r));
    assert_true(p->rm.free(p->ctx, p->device, b.group, &r));
    uint64_t at = bench_load(bench_word(&b, 0));
    bench_store(bench_word(&b, 0), 1000);
    bench_sleep_ms(2);
    assert_in_range(at, 0, BENCH_ENTRIES - 1);
    assert_int_equal(bench_load(bench_word(&b, 0)), 1000);
    for (int i = 0; i < 2; i++)
      assert_true(p->free(p->ctx, &b.channel[i].notifier, &r));
    assert_true(p->free(p->ctx, &b.block, &r));
    assert_true(p->free(p->ctx, &b.words, &r));
    assert_int_equal(rig_nv_path_close(p), 0);
  }
}

static uint64_t state_of;

static uint32_t any(void) {
  state_of ^= state_of << 13;
  state_of ^= state_of >> 7;
  state_of ^= state_of << 17;
  return (uint32_t)(state_of >> 16);
}

/* Random words and entries, half of them near what is legal, end in a fault or
 * in nothing, never in this process's end. */
static void garbage(void **state) {
  (void)state;
  static const uint32_t legal[] = {
      0x20050017, 0x20012000, 0xcbc0,     0x20018000, 0xc8b5,     0x20048100,
      0x20018106, 0x200180c0, 0x00000182, 0x0800000c, 0x20048090, 0x01100001,
      0x200281c0, 0x200181c2, 0x00030004, 0x00000782, 0x60,       0x20088100};
  for (uint64_t seed = 1; seed <= 60; seed++) {
    struct rig_nv_model_options o;
    struct bench b;
    rig_nv_model_options_init(&o);
    o.seed = state_of = seed;
    o.personality = seed % 2 ? RIG_NV_LIKE_KERNEL : RIG_NV_LIKE_PCI;
    bench_open(&b, &o);
    for (int lap = 0; lap < 6; lap++) {
      uint32_t words[40];
      for (size_t k = 0; k < COUNT(words); k++)
        words[k] = any() % 8   ? legal[any() % COUNT(legal)]
                   : any() % 2 ? (uint32_t)b.words.address + any() % 70000
                               : any();
      int i = (int)(any() % 2);
      if (any() % 8)
        bench_push(&b, i, words, 1 + any() % COUNT(words));
      else
        bench_entry(&b, i, (uint64_t)any() << 32 | any());
      bench_ring(&b, i);
    }
    bench_sleep_ms(2);
    bench_close(&b);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(faults),        cmocka_unit_test(entries),
      cmocka_unit_test(put),           cmocka_unit_test(overrun),
      cmocka_unit_test(inside_a_page), cmocka_unit_test(late),
      cmocka_unit_test(freed),         cmocka_unit_test(garbage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
