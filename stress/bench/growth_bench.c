/* SPDX-License-Identifier: ISC */
/*
 * What a growth costs those who post meanwhile: the time from a thread's first
 * ask until its value is given, LATERs included, on a device of the model,
 * while one thread grows rings of one kind over and over, each twice or four
 * times as large as the one before; and while nobody grows.
 *
 *     bazel run -c opt //stress/bench:growth_bench -- [THREADS [REPEATS]]
 *
 * A thread does not post on while 4 of its values are in flight, so that the
 * model's pace is in the times only where new channels have everybody wait for
 * it. On a machine with fewer cores than THREADS + 2, the model's engine being
 * one, most of the tail is the scheduler's.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "paths/model/model.h"
#include "stress/bench/histogram.h"
#include "stress/bench/ticks.h"

enum {
  MOST_THREADS = 64,
  AHEAD = 4,
  GROWTHS = 5, /* of a device */
  PAUSE_NS = 200000
};

enum phase {
  NOBODY_GROWS,
  SEGMENTS_GROW,
  LAUNCHES_GROW,
  CHANNELS_GROW,
  PHASES
};
static const char *const names[PHASES] = {"nobody grows", "segments",
                                          "launches", "channels"};

static struct bench {
  struct rig_nv *device;
  uint32_t
      phase;     /* enum phase (relaxed: a post on the edge counts to either) */
  uint32_t stop; /* 1 at the end (relaxed) */
} bench;

struct poster {
  pthread_t thread;
  struct histogram h[PHASES];
  uint64_t most[PHASES], laters[PHASES];
  int answer; /* that ended it, or 0 */
};

static void *posts(void *arg) {
  struct poster *p = arg;
  const struct rig_submission s = {0};
  uint64_t given[AHEAD] = {0}, v = 0;
  for (unsigned i = 0; !shared_load_32(&bench.stop); i++) {
    if (i >= AHEAD)
      while (!rig_reached(rig_nv_signaled(bench.device), given[i % AHEAD]))
        sched_yield();
    uint32_t phase = shared_load_32(&bench.phase);
    uint64_t start = ticks(), laters = 0;
    int answer;
    while ((answer = rig_nv_post(bench.device, &s, &v)) == RIG_LATER) {
      laters++;
      sched_yield(); /* to the model's engine */
    }
    uint64_t took = ticks() - start;
    if (answer != 0) {
      p->answer = answer;
      return NULL;
    }
    given[i % AHEAD] = v;
    histogram_add(&p->h[phase], took);
    p->laters[phase] += laters;
    if (took > p->most[phase])
      p->most[phase] = took;
  }
  return NULL;
}

static void set(uint32_t *to, uint32_t x) { shared_store_release_32(to, x); }

static void pause_ns(uint64_t ns) {
  for (uint64_t end = clock_ns() + ns; clock_ns() < end;)
    sched_yield();
}

/* One growth of the phase's kind, and the first value on it. */
static int grow(enum phase phase) {
  const struct ring_generation *g = bench.device->rings.newest;
  struct ring_need need = {.last = 0};
  uint64_t bytes, v;
  if (phase == SEGMENTS_GROW)
    need.words[0] = (uint64_t)g->channel[0].units * 16 + 1;
  if (phase == LAUNCHES_GROW)
    need.launch = g->launches.units + UINT64_C(1);
  if (phase == CHANNELS_GROW)
    need.entries[0] = g->channel[0].n;
  if (growth_grow(&bench.device->growth, &need, &bytes) != 0)
    return -1;
  const struct rig_submission s = {0};
  if (rig_nv_post_wait(bench.device, &s, UINT64_MAX, &v) != 0)
    return -1;
  return rig_nv_wait(bench.device, v, UINT64_MAX);
}

static int grow_all(enum phase phase, uint64_t *ns) {
  for (unsigned i = 0; i < GROWTHS; i++) {
    pause_ns(PAUSE_NS);
    set(&bench.phase, phase);
    uint64_t start = clock_ns();
    int e = phase == NOBODY_GROWS ? 0 : grow(phase);
    if (phase == NOBODY_GROWS)
      pause_ns(PAUSE_NS);
    *ns += clock_ns() - start;
    set(&bench.phase, NOBODY_GROWS);
    if (e != 0)
      return e;
  }
  return 0;
}

static int fail(const char *what) {
  fprintf(stderr, "growth_bench: %s: %s\n", what, rig_nv_why());
  return 1;
}

/* Posters on a device of their own while one kind grows. */
static int repeat(enum phase phase, unsigned threads, struct poster *p,
                  uint64_t *ns) {
  const struct device_sizes sizes = {.entries = 1024,
                                     .segment_bytes = 16384,
                                     .launch_bytes = 4096,
                                     .in_flight = 4096};
  const struct rig_nv_path *path;
  if (rig_nv_path_model(NULL, &path) != 0 ||
      device_make_sized(path, NULL, &sizes, &bench.device) != 0)
    return fail("make");
  set(&bench.stop, 0);
  for (unsigned i = 0; i < threads; i++)
    if (pthread_create(&p[i].thread, NULL, posts, &p[i]) != 0)
      abort();
  int e = grow_all(phase, ns);
  set(&bench.stop, 1);
  for (unsigned i = 0; i < threads; i++) {
    pthread_join(p[i].thread, NULL);
    if (p[i].answer != 0)
      e = p[i].answer;
  }
  if (e != 0)
    return fail("growing, or posting");
  if (rig_nv_wait(bench.device, rings_last(&bench.device->rings), UINT64_MAX) ||
      rig_nv_stop(bench.device, NULL) || rig_nv_release(bench.device) ||
      rig_nv_path_close(path))
    return fail("the end");
  return 0;
}

static void report(enum phase phase, unsigned threads, const struct poster *p,
                   double tick, double grow_ns) {
  struct histogram h = {0};
  uint64_t most = 0, laters = 0;
  for (unsigned i = 0; i < threads; i++) {
    histogram_merge(&h, &p[i].h[phase]);
    laters += p[i].laters[phase];
    if (p[i].most[phase] > most)
      most = p[i].most[phase];
  }
  printf("%-14s %9" PRIu64 " posts  p50 %7.0f  p99 %8.0f  p99.9 %9.0f  max "
         "%10.0f ns  %.2f LATERs a post",
         names[phase], h.n, histogram_at(&h, 500000) * tick,
         histogram_at(&h, 990000) * tick, histogram_at(&h, 999000) * tick,
         (double)most * tick, h.n ? (double)laters / (double)h.n : 0);
  if (phase != NOBODY_GROWS)
    printf("; a growth, until its first value is reached, %.0f us",
           grow_ns / 1000);
  printf("\n");
}

int main(int argc, char **argv) {
  static struct poster p[MOST_THREADS];
  uint64_t ns[PHASES] = {0};
  unsigned threads = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 0) : 2;
  unsigned repeats = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : 20;
  if (threads == 0 || threads > MOST_THREADS || repeats == 0) {
    fputs("growth_bench [THREADS [REPEATS]]\n", stderr);
    return 2;
  }
  setvbuf(stdout, NULL, _IOLBF, 0); /* what is killed has told its rows */
  double tick = ticks_calibrate();
  for (unsigned i = 0; i < repeats; i++)
    for (int phase = 0; phase < PHASES; phase++)
      if (repeat((enum phase)phase, threads, p, &ns[phase]) != 0)
        return 1;
  printf("%u threads post\n", threads);
  for (int phase = 0; phase < PHASES; phase++)
    report((enum phase)phase, threads, p, tick,
           (double)ns[phase] / (repeats * GROWTHS));
  return 0;
}
