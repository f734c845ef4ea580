/* SPDX-License-Identifier: ISC */
/*
 * The clock, on scripted timers and host clocks. What judges it: the numbers
 * in the tables, and a world whose true time is known, computed in 128 bits.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/api/rig_nv.h"
#include "core/clock.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define SECOND UINT64_C(1000000000)
#define MS UINT64_C(1000000)
/* Times near those of an H200 on a machine that has run for a while. */
#define BOOTED (UINT64_C(90) * 86400 * SECOND)
#define EPOCH UINT64_C(1767225600000000000)

__extension__ typedef __int128 wide;

/* ---- a world: its time goes on at each look at a clock ---- */

struct world {
  uint64_t time;       /* as CLOCK_MONOTONIC has it */
  uint64_t set, at;    /* the timer showed `set` at this time */
  int64_t ppb;         /* by which its rate is off, in parts in 10^9 */
  uint64_t source;     /* the source's host clock, ahead of `time` */
  uint64_t stale;      /* by which a source's reading is old */
  const uint64_t *gap; /* from a measure's start to its end, one each */
  size_t gaps, next;
  unsigned looks; /* at the timer's low word, or by a source */
  struct rig_nv_clock clock;
};

static uint64_t timer_at(const struct world *w, uint64_t time) {
  wide lived = (wide)time - w->at;
  return (uint64_t)(w->set + lived + lived * w->ppb / 1000000000);
}

static uint64_t now(void *ctx) {
  struct world *w = ctx;
  return w->time;
}

/* Half of the gap before the low word is read, and half behind. */
static uint32_t load(void *ctx, size_t at) {
  struct world *w = ctx;
  uint64_t gap = w->gaps ? w->gap[w->next % w->gaps] : 0;
  if (at == 0x84 || at == 0x9410)
    return (uint32_t)(timer_at(w, w->time) >> 32);
  w->time += gap / 2;
  uint32_t low = (uint32_t)timer_at(w, w->time);
  w->time += gap - gap / 2;
  w->looks++;
  w->next++;
  return low;
}

static bool source(void *ctx, struct rig_nv_reading *r,
                   struct rig_nv_reply *reply) {
  struct world *w = ctx;
  uint64_t gap = w->gaps ? w->gap[w->next++ % w->gaps] : 0;
  r->before = w->time - w->stale + w->source;
  r->timer = timer_at(w, w->time - w->stale + gap / 2);
  w->time += gap;
  r->after = w->time - w->stale + w->source;
  w->looks++;
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static uint64_t source_host(void *ctx) {
  struct world *w = ctx;
  return w->time + w->source;
}

static void world_init(struct world *w, enum rig_nv_clock_kind kind) {
  *w = (struct world){
      .time = BOOTED, .set = EPOCH, .at = BOOTED, .source = 12345 * SECOND};
  w->clock = (struct rig_nv_clock){.kind = kind, .ctx = w};
  if (kind == RIG_NV_CLOCK_SOURCE) {
    w->clock.read = source;
    w->clock.host = source_host;
  } else {
    w->clock.load = load;
  }
}

static const enum rig_nv_clock_kind kinds[] = {
    RIG_NV_CLOCK_SOURCE, RIG_NV_CLOCK_REGISTERS, RIG_NV_CLOCK_USERMODE};

/* ---- the measure at open ---- */

static const struct {
  const char *name;
  uint64_t gaps[16];
  unsigned looks; /* at the timer */
  uint64_t width; /* of what was kept */
} opens[] = {
    {"at once", {3000}, 1, 3000},
    {"nothing between", {0}, 1, 0},
    {"just within", {10000, 1}, 1, 10000},
    {"just not", {10001, 9999, 1}, 2, 9999},
    {"the first within, not the narrowest", {40000, 9000, 100}, 2, 9000},
    {"the last within",
     {20000, 20000, 20000, 20000, 20000, 20000, 20000, 20000, 20000, 20000,
      20000, 20000, 20000, 20000, 20000, 5000},
     16,
     5000},
    {"none: the first",
     {11000, 12000, 12000, 12000, 12000, 12000, 12000, 12000, 12000, 12000,
      12000, 12000, 12000, 12000, 12000, 12000},
     16,
     11000},
    {"none: one in the middle",
     {50000, 50000, 50000, 50000, 50000, 50000, 50000, 10001, 50000, 50000,
      50000, 50000, 50000, 50000, 50000, 10002},
     16,
     10001},
    {"none: the last",
     {5000000, 4000000, 90000, 90000, 90000, 90000, 90000, 90000, 90000, 90000,
      90000, 90000, 90000, 90000, 90000, 80000},
     16,
     80000},
};

static void test_open(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(kinds); k++)
    for (size_t i = 0; i < COUNT(opens); i++) {
      struct world w;
      struct clock c;
      world_init(&w, kinds[k]);
      w.gap = opens[i].gaps;
      w.gaps = 16;
      assert_int_equal(clock_open(&c, &w.clock, now, &w), 0);
      struct clock_line l = clock_line_now(&c);
      if (w.looks != opens[i].looks || l.first.width != opens[i].width ||
          memcmp(&l.first, &l.latest, sizeof l.first) != 0)
        fail_msg("%s, kind %d: %u looks, width %llu", opens[i].name,
                 (int)kinds[k], w.looks, (unsigned long long)l.first.width);
      /* The timer was read in the middle of the gap. */
      assert_int_equal(l.first.timer, timer_at(&w, l.first.host));
    }
}

/* ---- registers ---- */

enum { H = 1, L = 2 };

static const struct {
  const char *name;
  struct {
    int which;
    uint32_t is;
  } reads[26];
  uint64_t timer;
  const char *error; /* or NULL */
} scripts[] = {
    {"still", {{H, 7}, {L, 9}, {H, 7}}, 0x700000009, NULL},
    {"zero", {{H, 0}, {L, 0}, {H, 0}}, 0, NULL},
    {"the most",
     {{H, 0x1fffffff}, {L, 0xffffffff}, {H, 0x1fffffff}},
     0x1fffffffffffffff,
     NULL},
    {"bits that do not count",
     {{H, 0xe0000001}, {L, 5}, {H, 0xe0000001}},
     0x100000005,
     NULL},
    {"the low word wrapped behind it",
     {{H, 7}, {L, 0xffffffe0}, {H, 8}, {H, 8}, {L, 0x40}, {H, 8}},
     0x800000040,
     NULL},
    {"the low word wrapped before it",
     {{H, 7}, {L, 0x20}, {H, 8}, {H, 8}, {L, 0x60}, {H, 8}},
     0x800000060,
     NULL},
    {"twice in a row",
     {{H, 7}, {L, 1}, {H, 8}, {H, 8}, {L, 2}, {H, 9}, {H, 9}, {L, 3}, {H, 9}},
     0x900000003,
     NULL},
    {"set back between",
     {{H, 9}, {L, 1}, {H, 2}, {H, 2}, {L, 4}, {H, 2}},
     0x200000004,
     NULL},
    {"all ones", {{H, UINT32_MAX}}, 0, "does not answer"},
    {"all ones behind it",
     {{H, 7}, {L, UINT32_MAX}, {H, UINT32_MAX}, {H, UINT32_MAX}},
     0,
     "does not answer"},
    {"never still",
     {{H, 0}, {L, 0},  {H, 1},  {H, 1}, {L, 0},  {H, 2},  {H, 3}, {L, 0},
      {H, 4}, {H, 5},  {L, 0},  {H, 6}, {H, 7},  {L, 0},  {H, 8}, {H, 9},
      {L, 0}, {H, 10}, {H, 11}, {L, 0}, {H, 12}, {H, 13}, {L, 0}, {H, 14}},
     0,
     "changed in each of 8"},
};

struct script {
  size_t row, at;
  size_t high, low; /* their registers */
};

static uint32_t scripted(void *ctx, size_t at) {
  struct script *s = ctx;
  int which = scripts[s->row].reads[s->at].which;
  assert_int_equal(at, which == H ? s->high : s->low);
  return scripts[s->row].reads[s->at++].is;
}

static void test_registers(void **state) {
  static const struct {
    enum rig_nv_clock_kind kind;
    size_t low, high;
  } where[] = {{RIG_NV_CLOCK_REGISTERS, 0x9400, 0x9410},
               {RIG_NV_CLOCK_USERMODE, 0x80, 0x84}};
  (void)state;
  for (size_t k = 0; k < COUNT(where); k++)
    for (size_t i = 0; i < COUNT(scripts); i++) {
      struct script s = {.row = i, .high = where[k].high, .low = where[k].low};
      const struct rig_nv_clock c = {
          .kind = where[k].kind, .ctx = &s, .load = scripted};
      struct world w = {.time = 500};
      struct clock_measure m = {1, 2, 3};
      int e = clock_measure(&c, now, &w, &m);
      bool fails = scripts[i].error != NULL;
      if (e != (fails ? -RIG_NV_FAULT : 0) ||
          (fails && strstr(rig_nv_why(), scripts[i].error) == NULL) ||
          m.timer != (fails ? 2 : scripts[i].timer))
        fail_msg("%s: %d, %llx, %s", scripts[i].name, e,
                 (unsigned long long)m.timer, e != 0 ? rig_nv_why() : "");
      assert_int_equal(scripts[i].reads[s.at].which, 0); /* all of them */
      assert_int_equal(m.host, fails ? 1 : 500);
    }
}

/* Registers that lie in memory. */
static void test_mapped(void **state) {
  static uint32_t bar[0x9414 / 4];
  (void)state;
  for (int k = 0; k < 2; k++) {
    const struct rig_nv_clock c = {.kind = k ? RIG_NV_CLOCK_USERMODE
                                             : RIG_NV_CLOCK_REGISTERS,
                                   .mapped = (const volatile char *)bar};
    struct world w = {.time = 1};
    struct clock_measure m;
    bar[0x80 / 4] = 0x10, bar[0x84 / 4] = 0x20;
    bar[0x9400 / 4] = 0x30, bar[0x9410 / 4] = 0x40;
    assert_int_equal(clock_measure(&c, now, &w, &m), 0);
    assert_int_equal(m.timer, k ? 0x2000000010 : 0x4000000030);
  }
}

/* ---- sources ---- */

/* The reading, in the source's clock; then that clock between two of ours. */
static const struct {
  const char *name;
  struct rig_nv_reading reading;
  uint64_t before, host, after;
  uint64_t at, width; /* of the measure */
  const char *error;  /* REFUSED, or NULL */
} sources[] = {
    {"one clock", {1000, 77, 3000}, 5000, 5000, 5000, 2000, 2000, NULL},
    {"ours is ahead",
     {1000, 77, 3000},
     1005000,
     5000,
     1005000,
     1002000,
     2000,
     NULL},
    {"ours is behind",
     {BOOTED, 77, BOOTED + 4000},
     9000,
     BOOTED + 5000,
     9000,
     6000,
     4000,
     NULL},
    {"a wide pair", {1000, 77, 3000}, 5000, 5000, 8000, 3500, 5000, NULL},
    {"its clock near its end",
     {UINT64_MAX - 3000, 77, UINT64_MAX - 1000},
     9000,
     0,
     9000,
     6999,
     2000,
     NULL},
    {"odd widths", {10, 77, 13}, 20, 20, 25, 13, 8, NULL},
    {"its clock ran back", {3000, 77, 2999}, 5000, 5000, 5000, 0, 0, "by 1 ns"},
    {"ours ran back", {1000, 77, 3000}, 5000, 5000, 4000, 0, 0, "by 1000 ns"},
};

struct reader {
  size_t row;
  unsigned nows;
  enum rig_nv_answer is;
};

static bool row_read(void *ctx, struct rig_nv_reading *r,
                     struct rig_nv_reply *reply) {
  const struct reader *s = ctx;
  *r = sources[s->row].reading;
  return rig_nv_reply_set(reply, s->is, "%s", s->is ? "no timer" : "");
}

static uint64_t row_host(void *ctx) {
  const struct reader *s = ctx;
  return sources[s->row].host;
}

static uint64_t row_now(void *ctx) {
  struct reader *s = ctx;
  return s->nows++ == 0 ? sources[s->row].before : sources[s->row].after;
}

static void test_sources(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(sources); i++) {
    struct reader s = {.row = i};
    const struct rig_nv_clock c = {.kind = RIG_NV_CLOCK_SOURCE,
                                   .ctx = &s,
                                   .read = row_read,
                                   .host = row_host};
    struct clock_measure m = {0};
    int e = clock_measure(&c, row_now, &s, &m);
    if (sources[i].error != NULL) {
      assert_int_equal(e, -RIG_NV_REFUSED);
      assert_non_null(strstr(rig_nv_why(), sources[i].error));
    } else if (e != 0 || m.host != sources[i].at ||
               m.width != sources[i].width || m.timer != 77) {
      fail_msg("%s: %d, at %llu, width %llu", sources[i].name, e,
               (unsigned long long)m.host, (unsigned long long)m.width);
    }
  }
}

static void test_refusals(void **state) {
  static const struct {
    enum rig_nv_answer is;
    int error;
  } rows[] = {{RIG_NV_LACKING, RIG_NV_NO_MEMORY},
              {RIG_NV_DENIED, RIG_NV_REFUSED},
              {RIG_NV_FAULTED, RIG_NV_FAULT},
              {RIG_NV_WRONG, RIG_NV_INVALID}};
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct reader s = {.is = rows[i].is};
    const struct rig_nv_clock c = {.kind = RIG_NV_CLOCK_SOURCE,
                                   .ctx = &s,
                                   .read = row_read,
                                   .host = row_host};
    struct clock k;
    assert_int_equal(clock_open(&k, &c, row_now, &s), -rows[i].error);
    assert_string_equal(rig_nv_why(), "clock: no timer");
  }
}

/* ---- lines ---- */

/* The expected times are Python's: latest.host + trunc((stamp - latest.timer)
 * * (latest.host - first.host) / (latest.timer - first.timer)), with the line
 * where the hosts lie a second apart. */
static const struct {
  const char *name;
  uint64_t host[2], timer[2], stamp, is;
} lines[] = {
    {"one measure", {500, 500}, {9000, 9000}, 9100, 600},
    {"before it", {500, 500}, {9000, 9000}, 8900, 400},
    {"below a second: nominal",
     {0, 999999999},
     {5000, 999999999 + 105000},
     999999999 + 205000,
     999999999 + 100000},
    {"a second: the line, a fast timer",
     {0, 1000000000},
     {0, 1000100000},
     1000100000 + 1000100,
     1001000000},
    {"and behind its latest",
     {0, 1000000000},
     {0, 1000100000},
     1000100000 - 1000100,
     999000000},
    {"a slow timer",
     {0, 1000000000},
     {0, 999900000},
     999900000 + 999900,
     1001000000},
    {"its first measure",
     {BOOTED, BOOTED + 3600 * SECOND},
     {EPOCH, EPOCH + UINT64_C(3600360000000)},
     EPOCH,
     BOOTED},
    {"stamps since 1970, a day apart, 100 ppm",
     {BOOTED, BOOTED + 86400 * SECOND},
     {EPOCH, EPOCH + UINT64_C(86408640000000)},
     EPOCH + UINT64_C(172817280000000),
     BOOTED + 2 * 86400 * SECOND},
    {"a year apart, -100 ppm",
     {0, UINT64_C(31536000000000000)},
     {EPOCH, EPOCH + UINT64_C(31532846400000000)},
     EPOCH + UINT64_C(63065692800000000),
     UINT64_C(63072000000000000)},
    {"a stamp that was never written",
     {BOOTED, BOOTED + SECOND},
     {EPOCH, EPOCH + SECOND},
     0,
     0},
    {"past the end",
     {UINT64_MAX - SECOND - 10, UINT64_MAX - 10},
     {EPOCH, EPOCH + SECOND},
     EPOCH + 2 * SECOND,
     UINT64_MAX},
};

static void test_lines(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(lines); i++) {
    const struct clock_line l = {{lines[i].host[0], lines[i].timer[0], 0},
                                 {lines[i].host[1], lines[i].timer[1], 0}};
    uint64_t is = clock_line_time(&l, lines[i].stamp);
    if (is != lines[i].is)
      fail_msg("%s: %llu, not %llu", lines[i].name, (unsigned long long)is,
               (unsigned long long)lines[i].is);
  }
}

static uint64_t random_64(uint64_t *s) {
  *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
  return *s;
}

/* Lines and stamps of all sizes, with rates within a thousandth, beside 128
 * bits. */
static void test_random_lines(void **state) {
  uint64_t s = 88172645463325252u;
  (void)state;
  for (int i = 0; i < 200000; i++) {
    uint64_t apart = SECOND + (random_64(&s) >> (random_64(&s) % 28 + 8));
    uint64_t off = random_64(&s) % (apart / 1000 + 1);
    struct clock_line l = {.first = {random_64(&s) >> 8, EPOCH, 0}};
    l.latest.host = l.first.host + apart;
    l.latest.timer = EPOCH + (i % 2 ? apart + off : apart - off);
    uint64_t far = random_64(&s) >> (random_64(&s) % 60 + 3);
    uint64_t stamp = l.latest.timer + (i % 4 < 2 ? far : 0 - far);
    wide d = i % 4 < 2 ? (wide)far : -(wide)far;
    wide dt = (wide)l.latest.timer - l.first.timer;
    wide is = l.latest.host + d + d * ((wide)apart - dt) / dt;
    is = is < 0 ? 0 : is > UINT64_MAX ? (wide)UINT64_MAX : is;
    if (clock_line_time(&l, stamp) != (uint64_t)is)
      fail_msg("line %d: %llu, not %llu", i,
               (unsigned long long)clock_line_time(&l, stamp),
               (unsigned long long)is);
  }
}

/* ---- measures after the first ---- */

/* One after another in a world whose first measure had this width: the world
 * goes on by `wait`, its timer is set ahead by `set`, and the measure, if there
 * is one, has this width. */
enum kept { NONE, DROPPED, LATEST, ANEW };

static const struct {
  uint64_t wait;
  int64_t set;
  uint64_t width;
  enum kept is;
} again[][6] = {
    {{1, 0, 100, NONE}, {62499998, 0, 100, NONE}, {1, 0, 100, LATEST}},
    {{63 * MS, 0, 100, LATEST},
     {62 * MS, 0, 100, NONE},
     {MS, 0, 100, LATEST},
     {SECOND, 0, 100, LATEST}},
    {{63 * MS, 0, 10000, LATEST},
     {63 * MS, 0, 10001, DROPPED},
     {62 * MS, 0, 1, NONE}, /* a try is a try */
     {63 * MS, 0, 10000, LATEST}},
    {{70 * MS, 60000, 0, LATEST}, /* within a thousandth of 70 ms */
     {70 * MS, -60000, 0, LATEST}},
    {{70 * MS, 80000, 0, ANEW}, {70 * MS, 0, 0, LATEST}},
    {{70 * MS, 76000, 8000, LATEST}, /* 4,000 and 2,000 of the widths */
     {70 * MS, -80000, 8000, ANEW}},
    {{70 * MS, INT64_C(-1000000000000000000), 0, ANEW}, /* years back */
     {2 * SECOND, 0, 0, LATEST},
     {2 * SECOND, INT64_C(500000000000000000), 0, ANEW},
     {70 * MS, 0, 20000, DROPPED},
     {70 * MS, 0, 0, LATEST}},
};

static void test_again(void **state) {
  (void)state;
  for (size_t k = 0; k < COUNT(kinds); k++)
    for (size_t i = 0; i < COUNT(again); i++) {
      struct world w;
      struct clock c;
      uint64_t gap = 4000;
      world_init(&w, kinds[k]);
      w.gap = &gap;
      w.gaps = 1;
      assert_int_equal(clock_open(&c, &w.clock, now, &w), 0);
      for (size_t n = 0; n < 6 && again[i][n].wait + again[i][n].is != 0; n++) {
        struct clock_line was = clock_line_now(&c), is;
        enum kept kept = again[i][n].is;
        unsigned looks = w.looks;
        if (kinds[k] == RIG_NV_CLOCK_REGISTERS)
          kept = NONE;
        w.time += again[i][n].wait;
        w.set += (uint64_t)again[i][n].set;
        gap = again[i][n].width;
        uint64_t middle = w.time + gap / 2;
        assert_int_equal(clock_again(&c), 0);
        is = clock_line_now(&c);
        const struct clock_measure m = {middle, timer_at(&w, middle), gap};
        const struct clock_line wants = {kept == ANEW ? m : was.first,
                                         kept > DROPPED ? m : was.latest};
        if (w.looks - looks != (kept != NONE) ||
            memcmp(&wants, &is, sizeof is) != 0)
          fail_msg("kind %d, row %zu, step %zu: %u looks, latest at %llu",
                   (int)kinds[k], i, n, w.looks - looks,
                   (unsigned long long)is.latest.host);
      }
    }
}

/* A first measure that was wide stays until one is not, and is then replaced,
 * also by one that agrees with it. */
static void test_first_wide(void **state) {
  static const uint64_t gaps[] = {30000, 20000, 10001, 9000, 8000};
  (void)state;
  struct world w;
  struct clock c;
  world_init(&w, RIG_NV_CLOCK_USERMODE);
  w.gap = gaps;
  w.gaps = 1;
  assert_int_equal(clock_open(&c, &w.clock, now, &w), 0);
  assert_int_equal(w.looks, 16);
  for (unsigned i = 1; i < COUNT(gaps); i++) {
    struct clock_line was = clock_line_now(&c);
    w.time += 63 * MS;
    w.gap = &gaps[i];
    assert_int_equal(clock_again(&c), 0);
    struct clock_line is = clock_line_now(&c);
    assert_int_equal(w.looks, 16 + i);
    assert_int_equal(is.latest.width, i < 3 ? 30000 : gaps[i]);
    assert_int_equal(is.first.width, i < 3 ? 30000 : gaps[3]);
    if (i < 3)
      assert_memory_equal(&was, &is, sizeof is);
  }
}

/* A reading from before the latest is on no line with it. */
static void test_stale(void **state) {
  static const uint64_t stales[] = {0, 69 * MS, 71 * MS, 9 * SECOND};
  (void)state;
  for (size_t i = 0; i < COUNT(stales); i++) {
    struct world w;
    struct clock c;
    world_init(&w, RIG_NV_CLOCK_SOURCE);
    assert_int_equal(clock_open(&c, &w.clock, now, &w), 0);
    w.time += 70 * MS;
    w.stale = stales[i];
    assert_int_equal(clock_again(&c), 0);
    struct clock_line l = clock_line_now(&c);
    assert_int_equal(l.latest.host, w.time - stales[i]);
    assert_int_equal(l.first.host, i < 2 ? BOOTED : l.latest.host);
  }
}

/* A read that fails is its caller's, and the next one is due as ever. */
static void test_again_fails(void **state) {
  (void)state;
  struct world w;
  struct clock c;
  world_init(&w, RIG_NV_CLOCK_USERMODE);
  assert_int_equal(clock_open(&c, &w.clock, now, &w), 0);
  struct clock_line was = clock_line_now(&c), is;
  w.time += 63 * MS;
  w.set = UINT64_MAX - SECOND; /* high word: all ones */
  assert_int_equal(clock_again(&c), -RIG_NV_FAULT);
  is = clock_line_now(&c);
  assert_memory_equal(&was, &is, sizeof is);
  assert_int_equal(clock_again(&c), 0); /* not due */
  w.time += 63 * MS;
  assert_int_equal(clock_again(&c), -RIG_NV_FAULT);
  w.set = EPOCH;
  w.time += 63 * MS;
  assert_int_equal(clock_again(&c), 0);
  is = clock_line_now(&c);
  assert_int_equal(is.latest.timer, timer_at(&w, w.time));
}

/* Timers that are off: each time is within half its measure's width, and what
 * the header says of the line's error, of what it truly was. */
static void test_true_times(void **state) {
  static const int64_t ppbs[] = {0, 100000, -100000, 37, -37, 900000, -900000};
  static const uint64_t gaps[] = {3000, 0,    9999, 50000, 2500,
                                  7000, 1000, 4321, 10000};
  (void)state;
  for (size_t k = 0; k < COUNT(kinds); k++)
    for (size_t i = 0; i < COUNT(ppbs); i++) {
      struct world w;
      struct clock c;
      uint64_t s = 1 + i;
      world_init(&w, kinds[k]);
      w.ppb = ppbs[i];
      w.gap = gaps;
      w.gaps = COUNT(gaps);
      assert_int_equal(clock_open(&c, &w.clock, now, &w), 0);
      uint64_t opened = w.time;
      for (int n = 0; n < 400; n++) {
        assert_int_equal(clock_again(&c), 0);
        w.time += n % 50 == 49 ? 600 * SECOND : 1 + random_64(&s) % (30 * MS);
        struct clock_line l = clock_line_now(&c);
        uint64_t since = w.time - l.latest.host;
        uint64_t apart = l.latest.host - l.first.host;
        uint64_t is = clock_time(&c, timer_at(&w, w.time));
        uint64_t off = is > w.time ? is - w.time : w.time - is;
        /* Of the rate: the two widths over the distance, or the timer's own. */
        wide rate =
            apart >= SECOND
                ? (wide)(l.first.width + l.latest.width) / 2 * since / apart
                : (wide)(uint64_t)llabs(ppbs[i]) * since / 1000000000;
        uint64_t may = l.latest.width / 2 + (uint64_t)rate + 2;
        if (off > may)
          fail_msg("kind %d, %lld ppb, after %llu ns: off by %llu, not %llu",
                   (int)kinds[k], (long long)ppbs[i],
                   (unsigned long long)(w.time - opened),
                   (unsigned long long)off, (unsigned long long)may);
      }
    }
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 20000 };

/* Its timer is its host clock and EPOCH, and a measure during which time moved
 * is wide: so all that are taken lie on one line, and a line that is torn does
 * not. */
struct common {
  uint64_t time;     /* (atomic) */
  unsigned in, more; /* threads that read it, and whether ever two (atomic) */
  struct clock clock;
};

/* Relaxed: a time of its own, that orders nothing. */
static uint64_t common_now(void *ctx) {
  const struct common *m = ctx;
  return __atomic_load_n(&m->time, __ATOMIC_RELAXED);
}

static bool common_read(void *ctx, struct rig_nv_reading *r,
                        struct rig_nv_reply *reply) {
  struct common *m = ctx;
  /* Relaxed: `measuring` orders what one thread after the other does. */
  if (__atomic_add_fetch(&m->in, 1, __ATOMIC_RELAXED) != 1)
    __atomic_store_n(&m->more, 1, __ATOMIC_RELAXED);
  r->before = r->after = common_now(ctx);
  r->timer = r->before + EPOCH;
  __atomic_sub_fetch(&m->in, 1, __ATOMIC_RELAXED);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static void *measurer(void *arg) {
  struct common *m = arg;
  for (int i = 0; i < ROUNDS; i++) {
    struct clock_line l = clock_line_now(&m->clock);
    if (clock_again(&m->clock) != 0 || l.first.timer - l.first.host != EPOCH ||
        l.latest.timer - l.latest.host != EPOCH || l.first.host != BOOTED ||
        l.latest.host < BOOTED)
      return arg;
    if (i % 8 == 0)
      (void)__atomic_add_fetch(&m->time, 63 * MS, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void test_threads(void **state) {
  static struct common m = {.time = BOOTED};
  static const struct rig_nv_clock of = {.kind = RIG_NV_CLOCK_SOURCE,
                                         .ctx = &m,
                                         .read = common_read,
                                         .host = common_now};
  pthread_t threads[THREADS];
  (void)state;
  assert_int_equal(clock_open(&m.clock, &of, common_now, &m), 0);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, measurer, &m), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failed;
    assert_int_equal(pthread_join(threads[i], &failed), 0);
    assert_null(failed);
  }
  assert_int_equal(m.more, 0);
  assert_in_range(m.clock.number, 100, THREADS * ROUNDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_open),         cmocka_unit_test(test_registers),
      cmocka_unit_test(test_mapped),       cmocka_unit_test(test_sources),
      cmocka_unit_test(test_refusals),     cmocka_unit_test(test_lines),
      cmocka_unit_test(test_random_lines), cmocka_unit_test(test_again),
      cmocka_unit_test(test_first_wide),   cmocka_unit_test(test_stale),
      cmocka_unit_test(test_again_fails),  cmocka_unit_test(test_true_times),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
