/* SPDX-License-Identifier: ISC */
/*
 * Where the rings lie: for each choice of places a device, whose posts are
 * checked and whose times are a line of a table.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "stress/kernels.h"
#include "stress/smoke.h"

enum { TRIPS = 5000, BATCHES = 300, BATCH = 64, IN_FLIGHT = 4000, QUICK = 50 };

/* What a post is timed with, and how many of that. */
struct work {
  struct smoke *smoke;
  struct rig_submission submission;
  size_t trips, batches;
  unsigned each; /* of a thread's burst */
  uint64_t ns[TRIPS];
};

static bool post(struct work *w, uint64_t *v) {
  return smoke_post_submission(w->smoke, &w->submission, v);
}

/* From before a post until the word shows it, each alone: the median. */
static bool trip(struct work *w, uint64_t *median, uint64_t *p99) {
  struct rig_nv *d = w->smoke->device;
  for (size_t i = 0; i < w->trips; i++) {
    uint64_t v, begun = device_now();
    if (!post(w, &v))
      return false;
    while (!rig_reached(rig_nv_signaled(d), v) &&
           device_now() - begun < UINT64_C(1000000000))
      ;
    w->ns[i] = device_now() - begun;
    if (!smoke_reach(w->smoke, v))
      return false;
  }
  smoke_sort(w->ns, w->trips);
  *median = w->ns[w->trips / 2];
  *p99 = w->ns[w->trips * 99 / 100];
  return true;
}

/* What the host spends on one of a batch: the median of batches. */
static bool cost(struct work *w, uint64_t *median) {
  for (size_t i = 0; i < w->batches; i++) {
    uint64_t v = 0, begun = device_now();
    for (int k = 0; k < BATCH; k++)
      if (!post(w, &v))
        return false;
    w->ns[i] = (device_now() - begun) / BATCH;
    if (!smoke_reach(w->smoke, v))
      return false;
  }
  smoke_sort(w->ns, w->batches);
  *median = w->ns[w->batches / 2];
  return true;
}

/* The three, and the line's part. */
static bool all_of(struct work *w) {
  uint64_t ns[5];
  bool ok = trip(w, &ns[0], &ns[1]) && cost(w, &ns[2]) &&
            smoke_crowd(w->smoke, &w->submission, w->each, &ns[3], &ns[4]);
  if (ok)
    printf(" | %5" PRIu64 " %5" PRIu64 " %4" PRIu64 " %5" PRIu64 " %4" PRIu64,
           ns[0], ns[1], ns[2], ns[3], ns[4]);
  fflush(stdout);
  return ok;
}

/* Launch rings that hold what all threads post at once. */
static bool held(struct work *w, const struct rig_part *launch) {
  enum { MANY = 32768 };
  struct rig_submission sub = w->submission;
  struct rig_part *parts = malloc(MANY * sizeof *parts);
  uint64_t need;
  if (parts == NULL)
    return smoke_failed("no host memory");
  for (int i = 0; i < MANY; i++)
    parts[i] = *launch;
  sub.parts = parts;
  sub.nparts = w->smoke->threads * w->each;
  int e = rig_nv_grow_for(w->smoke->device, &sub, &need);
  free(parts);
  return e == 0 || smoke_failed("grow: %s", rig_nv_why());
}

static bool timed(struct work *w, struct kernels *k, struct rig_nv_region *r) {
  static const uint64_t params[4];
  static _Alignas(16) struct {
    struct rig_block block;
    uint64_t params[4];
  } call = {.block = {{1, 1, 1}, {32, 1, 1}, 0, 0}};
  struct rig_nv_function nothing;
  uint64_t at = rig_nv_locate(r).address;
  struct rig_part copy = rig_part_copy(at + 16, at, 16);
  if (kernels_find(k, "nothing", &nothing) != 0)
    return smoke_failed("kernels: %s", rig_nv_why());
  struct rig_part launch =
      rig_part_launch(nothing.code, nothing.launch, 0, sizeof params);
  bool ok = all_of(w);
  w->submission = (struct rig_submission){.parts = &copy, .nparts = 1};
  ok = ok && all_of(w);
  w->submission = (struct rig_submission){
      .parts = &launch, .nparts = 1, .args = &call, .args_bytes = sizeof call};
  ok = ok && held(w, &launch) && all_of(w);
  printf("\n");
  return ok;
}

/* One device, on a path of its own as not each has a second: its line, and then
 * mixed posts of all threads. */
static bool placed(struct smoke *s, struct work *w) {
  struct kernels k;
  struct rig_nv_region *r;
  const bool real = smoke_real(s);
  if (!smoke_path_open(s) || !smoke_device_open(s))
    return false;
  if (kernels_make(s->device, real ? NULL : s->path, &k) != 0 ||
      rig_nv_alloc(s->device, RIG_DEVICE, 4096, &r) != 0)
    return smoke_failed("kernels: %s", rig_nv_why());
  w->submission = (struct rig_submission){0};
  bool ok = timed(w, &k, r);
  ok = (rig_nv_free(s->device, r) == 0 && kernels_end(&k) == 0) && ok;
  ok = ok && smoke_mixed(s, s->posts / 50, false);
  return smoke_device_close(s) && smoke_path_close(s) && ok;
}

bool smoke_places(struct smoke *s) {
  static const char *const names[] = {"auto", "host", "BAR"};
  /* USERD, entries, segments, launches. */
  static const enum rig_nv_place rows[][4] = {
      {RIG_NV_AUTO, RIG_NV_AUTO, RIG_NV_AUTO, RIG_NV_AUTO},
      {RIG_NV_HOST, RIG_NV_HOST, RIG_NV_HOST, RIG_NV_HOST},
      {RIG_NV_HOST, RIG_NV_HOST, RIG_NV_HOST, RIG_NV_BAR},
      {RIG_NV_HOST, RIG_NV_HOST, RIG_NV_BAR, RIG_NV_BAR},
      {RIG_NV_HOST, RIG_NV_BAR, RIG_NV_HOST, RIG_NV_BAR},
      {RIG_NV_HOST, RIG_NV_BAR, RIG_NV_BAR, RIG_NV_BAR},
      {RIG_NV_BAR, RIG_NV_HOST, RIG_NV_HOST, RIG_NV_HOST},
      {RIG_NV_BAR, RIG_NV_HOST, RIG_NV_HOST, RIG_NV_BAR},
      {RIG_NV_BAR, RIG_NV_HOST, RIG_NV_BAR, RIG_NV_BAR},
      {RIG_NV_BAR, RIG_NV_BAR, RIG_NV_HOST, RIG_NV_BAR},
      {RIG_NV_BAR, RIG_NV_BAR, RIG_NV_BAR, RIG_NV_HOST},
      {RIG_NV_BAR, RIG_NV_BAR, RIG_NV_BAR, RIG_NV_BAR},
  };
  struct work *w = calloc(1, sizeof *w);
  const size_t less = s->quick || !smoke_real(s) ? QUICK : 1;
  bool ok = true;
  if (w == NULL)
    return smoke_failed("no host memory");
  *w = (struct work){.smoke = s,
                     .trips = TRIPS / less,
                     .batches = BATCHES / less,
                     .each = (unsigned)(IN_FLIGHT / s->threads / less)};
  printf(
      "ns: round trip's p50 and p99; the host's p50 of a post by one thread, "
      "of each of %u, of all of these\n"
      "USERD entries segments launches | %-26s | %-26s | launch\n",
      s->threads, "empty", "copy");
  for (size_t i = 0; ok && i < sizeof rows / sizeof rows[0]; i++) {
    memcpy(s->places, rows[i], sizeof s->places);
    printf("%5s %7s %8s %8s", names[rows[i][0]], names[rows[i][1]],
           names[rows[i][2]], names[rows[i][3]]);
    fflush(stdout);
    ok = placed(s, w);
  }
  memset(s->places, 0, sizeof s->places);
  free(w);
  return ok;
}
