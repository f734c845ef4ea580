/* SPDX-License-Identifier: ISC */
#include "core/clock.h"

#include "core/abi/timer.h"
#include "core/api/why.h"
#include "paths/call.h"

enum {
  TRIES = 8, /* of high, low, high: the low word wraps every 4 s */
  HALF = 32
};

/* ---- measures ---- */

/* Whether `after` comes no earlier; the time between the two. */
static int width_of(uint64_t before, uint64_t after, uint64_t *width) {
  if (after < before)
    return why(RIG_NV_REFUSED, "clock: a host clock ran back by %llu ns",
               (unsigned long long)(before - after));
  *width = after - before;
  return 0;
}

static uint32_t load(const struct rig_nv_clock *c, size_t at) {
  return c->load
             ? c->load(c->ctx, at)
             : *(const volatile uint32_t *)(const volatile void *)(c->mapped +
                                                                   at);
}

/* The high word again behind the low one, which may have wrapped between. */
static int read_registers(const struct rig_nv_clock *c, size_t low_at,
                          size_t high_at, uint64_t *timer) {
  for (int i = 0; i < TRIES; i++) {
    uint32_t high = load(c, high_at);
    if (high == UINT32_MAX)
      return why(RIG_NV_FAULT, "clock: the GPU's timer does not answer");
    uint32_t low = load(c, low_at);
    if (load(c, high_at) == high) {
      *timer = (uint64_t)(high & NV_TIME_1_NSEC) << HALF | low;
      return 0;
    }
  }
  return why(RIG_NV_FAULT,
             "clock: the high word of the GPU's timer changed in each of %d "
             "readings",
             TRIES);
}

static int measure_registers(const struct rig_nv_clock *c,
                             uint64_t (*now)(void *), void *ctx,
                             struct clock_measure *m) {
  bool bar = c->kind == RIG_NV_CLOCK_REGISTERS;
  uint64_t before = now(ctx);
  int e =
      read_registers(c, bar ? NV_PTIMER_TIME_0 : NV_USERMODE_TIME_0,
                     bar ? NV_PTIMER_TIME_1 : NV_USERMODE_TIME_1, &m->timer);
  if (e == 0)
    e = width_of(before, now(ctx), &m->width);
  m->host = before + m->width / 2;
  return e;
}

/* The source's clock, and then that between two of ours, which maps it. */
static int measure_source(const struct rig_nv_clock *c, uint64_t (*now)(void *),
                          void *ctx, struct clock_measure *m) {
  struct rig_nv_reply reply = {0};
  struct rig_nv_reading r;
  uint64_t theirs, ours;
  if (!c->read(c->ctx, &r, &reply))
    return path_error("clock", &reply);
  uint64_t before = now(ctx), host = c->host(c->ctx), after = now(ctx);
  int e = width_of(r.before, r.after, &theirs);
  if (e == 0)
    e = width_of(before, after, &ours);
  if (e != 0)
    return e;
  m->timer = r.timer;
  m->width = theirs + ours;
  m->host = before + ours / 2 - (host - r.before - theirs / 2);
  return 0;
}

int clock_measure(const struct rig_nv_clock *c, uint64_t (*now)(void *ctx),
                  void *ctx, struct clock_measure *m) {
  struct clock_measure got = {0};
  int e = c->kind == RIG_NV_CLOCK_SOURCE ? measure_source(c, now, ctx, &got)
                                         : measure_registers(c, now, ctx, &got);
  if (e == 0)
    *m = got;
  return e;
}

/* ---- the line ---- */

static void put(shared_64 at[3], const struct clock_measure *m) {
  shared_store_64(&at[0], m->host);
  shared_store_64(&at[1], m->timer);
  shared_store_64(&at[2], m->width);
}

static struct clock_measure get(const shared_64 at[3]) {
  struct clock_measure m = {.host = shared_load_64(&at[0]),
                            .timer = shared_load_64(&at[1]),
                            .width = shared_load_64(&at[2])};
  return m;
}

struct clock_line clock_line_now(const struct clock *c) {
  for (;;) { /* again only where a measure was published meanwhile */
    struct clock_line line;
    /* Partner: the store of the number in publish. */
    uint64_t number = shared_load_acquire_64(&c->number);
    line.first = get(c->lines[number % 2].first);
    line.latest = get(c->lines[number % 2].latest);
    shared_fence_acquire(); /* partner: the fence in publish */
    if (shared_load_64(&c->number) == number)
      return line;
  }
}

/* By who holds `measuring`, or opens. */
static void publish(struct clock *c, const struct clock_line *line) {
  uint64_t number = shared_load_64(&c->number) + 1;
  /* Who reads what is stored below sees the number that is there now, and so
   * not the one of the line that was there. Partner: clock_line_now's fence. */
  shared_fence_release();
  put(c->lines[number % 2].first, &line->first);
  put(c->lines[number % 2].latest, &line->latest);
  shared_store_release_64(&c->number, number); /* partner: clock_line_now */
}

static uint64_t magnitude(int64_t x) {
  return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

/* Whether the timer went on between the two measures as one that is near its
 * nominal rate does. */
static bool goes_on(const struct clock_measure *a,
                    const struct clock_measure *b) {
  uint64_t host = b->host - a->host, off = b->timer - a->timer - host;
  return (int64_t)host >= 0 &&
         magnitude((int64_t)off) <=
             host / CLOCK_DRIFT + (a->width + b->width) / 2;
}

static void take(struct clock *c, const struct clock_measure *m) {
  struct clock_line line = clock_line_now(c);
  if (m->width > CLOCK_WIDTH_NS)
    return;
  if (line.first.width > CLOCK_WIDTH_NS || !goes_on(&line.latest, m))
    line.first = *m;
  line.latest = *m;
  publish(c, &line);
}

int clock_open(struct clock *c, const struct rig_nv_clock *of,
               uint64_t (*now)(void *ctx), void *ctx) {
  struct clock_line line = {.first = {.width = UINT64_MAX}};
  struct clock_measure m = line.first;
  *c = (struct clock){.of = of, .now = now, .ctx = ctx};
  for (int i = 0; i < CLOCK_READS && m.width > CLOCK_WIDTH_NS; i++) {
    int e = clock_measure(of, now, ctx, &m);
    if (e != 0)
      return e;
    if (m.width < line.first.width)
      line.first = m;
  }
  line.latest = line.first;
  publish(c, &line);
  shared_store_64(&c->next, now(ctx) + CLOCK_EVERY_NS);
  return 0;
}

/* Relaxed: `next` orders nothing. It is the holder's of `measuring`. */
static bool due(const struct clock *c, uint64_t now) {
  return (int64_t)(now - shared_load_64(&c->next)) >= 0;
}

int clock_again(struct clock *c) {
  int e = 0;
  uint64_t now = c->now(c->ctx);
  if (c->of->kind == RIG_NV_CLOCK_REGISTERS || !due(c, now) ||
      !shared_cas_32(&c->measuring, 0, 1)) /* partner: the store below */
    return 0;
  if (due(c, now)) { /* still: another thread may just have measured */
    struct clock_measure m;
    shared_store_64(&c->next, now + CLOCK_EVERY_NS);
    e = clock_measure(c->of, c->now, c->ctx, &m);
    if (e == 0)
      take(c, &m);
  }
  shared_store_release_32(&c->measuring, 0); /* partner: the next swap */
  return e;
}

/* n * part / whole, part below whole, whole below 2^62: bit by bit from n's
 * highest, the remainder below whole, so that nothing overflows. */
static uint64_t share(uint64_t n, uint64_t part, uint64_t whole) {
  uint64_t quotient = 0, rest = 0, bit = UINT64_C(1) << 63;
  if (part == 0)
    return 0;
  while (bit > n)
    bit >>= 1;
  for (; bit != 0; bit >>= 1) {
    quotient *= 2;
    rest = 2 * rest + (n & bit ? part : 0);
    for (; rest >= whole; rest -= whole)
      quotient++;
  }
  return quotient;
}

uint64_t clock_line_time(const struct clock_line *l, uint64_t stamp) {
  uint64_t host = l->latest.host - l->first.host;
  uint64_t timer = l->latest.timer - l->first.timer;
  int64_t ticks = (int64_t)(stamp - l->latest.timer);
  uint64_t n = magnitude(ticks);
  /* What the timer's rate is off, of n: goes_on keeps it below a hundredth. */
  if (host >= CLOCK_APART_NS && host >= timer)
    n += share(n, host - timer, timer);
  else if (host >= CLOCK_APART_NS)
    n -= share(n, timer - host, timer);
  if (ticks < 0)
    return n > l->latest.host ? 0 : l->latest.host - n;
  return n > UINT64_MAX - l->latest.host ? UINT64_MAX : l->latest.host + n;
}

uint64_t clock_time(const struct clock *c, uint64_t stamp) {
  struct clock_line line = clock_line_now(c);
  return clock_line_time(&line, stamp);
}
