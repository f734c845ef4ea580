/* SPDX-License-Identifier: ISC */
/*
 * replay_stress: random submissions on the model, by one holder of the turn,
 * on rings from the smallest to those that a device opens with, with counts
 * and values that wrap, judged by the replay. Exit status 0: every byte was
 * as it must be; 1: one was not, or the device failed; 2: wrong options.
 */
#define _POSIX_C_SOURCE 200809L
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/device.h"
#include "paths/pci/model_path.h"
#include "stress/arena.h"
#include "stress/kernels.h"
#include "tools/allocator.h"

enum { CHECKPOINTS = 4, PATIENCE_SECONDS = 60 };

struct settings {
  uint64_t submissions, seed, start;
  bool one_start, row_given, quiet;
  unsigned row;
  enum model_path path; /* MODEL_PATHS: both that walk no tables */
};

struct row {
  const char *name;
  struct device_sizes sizes;
  unsigned parts, ops, waits;
  uint64_t bytes;
};

/* Small rings come with submissions that mostly fit them. */
static const struct row rows[] = {
    {"smallest",
     {.entries = 8,
      .segment_bytes = 1024,
      .in_flight = 4,
      .launch_bytes = 2048},
     2,
     2,
     2,
     256},
    {"small, two in flight",
     {.entries = 16,
      .segment_bytes = 4096,
      .in_flight = 2,
      .launch_bytes = 4096},
     5,
     4,
     3,
     1024},
    {"small, about to wrap",
     {.entries = 16,
      .segment_bytes = 4096,
      .in_flight = 8,
      .start_entries = UINT32_MAX - 31,
      .start_units = UINT32_MAX - 100,
      .start_joins = UINT64_MAX - 3,
      .launch_bytes = 8192,
      .start_launch = UINT32_MAX - 20},
     8,
     4,
     3,
     1024},
    {"middling",
     {.entries = 256,
      .segment_bytes = 16384,
      .in_flight = 64,
      .launch_bytes = 65536},
     12,
     6,
     3,
     4096},
    {"as opened",
     {.entries = 262144,
      .segment_bytes = 1 << 20,
      .in_flight = 32768,
      .launch_bytes = 1 << 20},
     12,
     6,
     3,
     4096},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const uint64_t starts[] = {0, (UINT64_C(1) << 32) - 5, UINT64_MAX - 4};
enum { STARTS = sizeof starts / sizeof *starts };

struct tally {
  uint64_t fits, later, never, grow, busy;
};

struct test {
  const struct settings *settings;
  const struct row *row;
  enum model_path model;
  uint64_t start, last;
  const struct rig_nv_path *path;
  struct rig_nv *device;
  struct kernels kernels;
  struct arena arena;
  struct tally tally;
};

static int failed(const struct test *t, const char *what, const char *cause) {
  fprintf(stderr,
          "replay_stress: %s: %s\n"
          "  rings %s, after value %" PRIu64 "\n  again: --seed=%" PRIu64
          " --start=%" PRIu64 " --row=%u --path=%s --submissions=%" PRIu64 "\n",
          what, cause, t->row->name, t->last, t->settings->seed, t->start,
          (unsigned)(t->row - rows), model_path_name(t->model),
          t->settings->submissions);
  return 1;
}

static uint64_t deadline(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return ((uint64_t)now.tv_sec + PATIENCE_SECONDS) * 1000000000 +
         (uint64_t)now.tv_nsec;
}

static int reach(struct test *t, uint64_t v) {
  replay_release(t->arena.replays[0]);
  if (rig_nv_wait(t->device, v, deadline()) == 0)
    return 0;
  char what[64];
  snprintf(what, sizeof what, "waiting for %" PRIu64, v);
  return failed(t, what, rig_nv_why());
}

static int next(struct test *t, const struct rig_submission **s) {
  struct replay *r = t->arena.replays[0];
  for (;;) {
    uint64_t until;
    switch (replay_next(r, rig_nv_signaled(t->device), s, &until)) {
    case REPLAY_MADE:
      return 0;
    case REPLAY_BROKEN:
      return failed(t, "an encoder refused", rig_nv_why());
    case REPLAY_BUSY:
      t->tally.busy++;
      if (reach(t, until))
        return 1;
    }
  }
}

static int submit(struct test *t, const struct rig_submission *s) {
  const char *failure = "";
  enum rig_done is = rig_nv_submit(t->device, t->last + 1, s, &failure);
  t->tally.fits++;
  if (is != RIG_COMMITTED)
    return failed(t, "submit after RIG_FITS", failure);
  replay_commit(t->arena.replays[0], ++t->last);
  return 0;
}

static int one(struct test *t) {
  const struct rig_submission *s;
  uint64_t word;
  if (next(t, &s))
    return 1;
  for (;;)
    switch (rig_nv_room(t->device, s)) {
    case RIG_FITS:
      return submit(t, s);
    case RIG_LATER:
      t->tally.later++;
      /* LATER is about a value that is given and not yet reached: of those,
       * the one after what the word holds now, read once, for it moves. */
      word = rig_nv_signaled(t->device);
      if (!rig_reached(word, t->last)) {
        if (reach(t, word + 1))
          return 1;
      } else if (rig_nv_room(t->device, s) == RIG_LATER) {
        return failed(t, "room", "RIG_LATER with every value reached");
      }
      break;
    case RIG_NEVER:
      t->tally.never++;
      replay_skip(t->arena.replays[0]);
      return 0;
    case RIG_GROW:
      t->tally.grow++;
      replay_skip(t->arena.replays[0]);
      return 0;
    default:
      return failed(t, "room", "no answer of enum rig_room");
    }
}

static int verify(struct test *t) {
  if (reach(t, t->last))
    return 1;
  struct replay_difference d;
  const char *failure;
  int is = arena_verify(&t->arena, &d, &failure);
  t->last = rig_nv_signaled(t->device);
  if (is < 0)
    return failed(t, "download", failure);
  if (is == 0)
    return 0;
  char what[96], cause[96];
  snprintf(what, sizeof what, "%s at %" PRIu64, d.region, d.offset);
  snprintf(cause, sizeof cause,
           "expected %02x, found %02x; last written by %" PRIu64, d.expected,
           d.found, d.value);
  return failed(t, what, cause);
}

static void progress(const struct test *t, uint64_t done) {
  if (!t->settings->quiet && isatty(STDERR_FILENO))
    fprintf(stderr, "\r%-24s %10" PRIu64 " of %" PRIu64, t->row->name, done,
            t->settings->submissions);
}

static int submissions(struct test *t) {
  uint64_t n = t->settings->submissions, between = n / CHECKPOINTS + 1;
  for (uint64_t i = 1; i <= n; i++) {
    if (one(t))
      return 1;
    if (i % between == 0 && verify(t))
      return 1;
    if (i % 4096 == 0)
      progress(t, i);
  }
  return verify(t);
}

static int with_arena(struct test *t) {
  struct arena_options o = {.slices = 1};
  replay_options_init(&o.replay);
  o.replay.seed = t->settings->seed;
  o.replay.most_parts = t->row->parts;
  o.replay.most_ops = t->row->ops;
  o.replay.most_waits = t->row->waits;
  o.replay.most_bytes = t->row->bytes;
  o.replay.kernel =
      (struct replay_kernel){t->kernels.mix.code, t->kernels.mix.launch, 4096};
  arena_least(&o, o.bytes);
  o.bytes[RIG_DEVICE] += 65536;
  o.bytes[RIG_PINNED] += 16384;
  o.bytes[RIG_MAPPED] += 16384;
  o.bytes[ARENA_DATA] += 1 << 20;
  const char *failure;
  if (arena_make(t->device, &o, &t->arena, &failure))
    return failed(t, "making the arena", failure);
  t->last = rig_nv_signaled(t->device);
  int is = submissions(t);
  struct replay_counts c = arena_counts(&t->arena);
  printf("%-22s %-6s from %20" PRIu64 ": %" PRIu64 " submitted, %" PRIu64
         " ops, %" PRIu64 " launches, %" PRIu64 " joins, %" PRIu64
         " waits, %" PRIu64 " bytes; FITS %" PRIu64 " LATER %" PRIu64
         " NEVER %" PRIu64 " GROW %" PRIu64 " BUSY %" PRIu64 "\n",
         t->row->name, model_path_name(t->model), t->start, c.submissions,
         c.ops, c.launches, c.joins, c.waits, c.bytes, t->tally.fits,
         t->tally.later, t->tally.never, t->tally.grow, t->tally.busy);
  fflush(stdout);
  return is;
}

static int with_device(struct test *t) {
  uint64_t word = t->start;
  struct rig_nv_options o;
  rig_nv_options_init(&o);
  o.word = &word;
  o.mode = RIG_NV_TURN;
  o.allocator = tool_allocator();
  if (device_make_sized(t->path, &o, &t->row->sizes, &t->device))
    return failed(t, "making the device", rig_nv_why());
  int is = kernels_make(t->device, t->path, &t->kernels) == 0
               ? with_arena(t)
               : failed(t, "loading kernels", rig_nv_why());
  const char *failure;
  if (rig_nv_stop(t->device, NULL) && is == 0)
    is = failed(t, "stop", rig_nv_why());
  if (arena_end(&t->arena, &failure) && is == 0)
    is = failed(t, "free", failure);
  if (kernels_end(&t->kernels) && is == 0)
    is = failed(t, "unloading kernels", rig_nv_why());
  if (rig_nv_release(t->device) && is == 0)
    is = failed(t, "release", rig_nv_why());
  return is;
}

static int with_path(const struct settings *settings, const struct row *row,
                     enum model_path model, uint64_t start) {
  struct test t = {.settings = settings,
                   .row = row,
                   .model = model,
                   .start = start,
                   .last = start};
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.seed = settings->seed;
  if (model_path_open(model, &o, &t.path))
    return failed(&t, "opening the model", rig_nv_why());
  int is = with_device(&t);
  if (rig_nv_path_close(t.path) && is == 0)
    is = failed(&t, "close", rig_nv_why());
  return is;
}

static bool wanted(const struct settings *s, unsigned p) {
  return s->path == MODEL_PATHS ? !model_path_walks((enum model_path)p)
                                : s->path == (enum model_path)p;
}

static int all(const struct settings *s) {
  for (unsigned row = 0; row < ROWS; row++)
    for (unsigned i = 0; i < (s->one_start ? 1 : STARTS); i++)
      for (unsigned p = 0; p < MODEL_PATHS; p++)
        if ((!s->row_given || s->row == row) && wanted(s, p) &&
            with_path(s, &rows[row], (enum model_path)p,
                      s->one_start ? s->start : starts[i]))
          return 1;
  return 0;
}

static uint64_t number(const char *text, struct argp_state *state) {
  char *end;
  uint64_t n = strtoull(text, &end, 0);
  if (end == text || *end)
    argp_error(state, "'%s' is no number", text);
  return n;
}

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  switch (key) {
  case 'n':
    s->submissions = number(text, state);
    return 0;
  case 'l':
    s->submissions = 1000000;
    return 0;
  case 's':
    s->seed = number(text, state);
    return 0;
  case 'v':
    s->start = number(text, state);
    s->one_start = true;
    return 0;
  case 'r':
    s->row = (unsigned)number(text, state);
    s->row_given = true;
    if (s->row >= ROWS)
      argp_error(state, "there are %d rows", (int)ROWS);
    return 0;
  case 'a':
    s->path = model_path_of(text);
    if (s->path == MODEL_PATHS)
      argp_error(state, "no path '%s'", text);
    return 0;
  case 'q':
    s->quiet = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"submissions", 'n', "N", 0, "Of each run (10000)", 0},
      {"long", 'l', NULL, 0, "1000000 submissions a run", 0},
      {"seed", 's', "SEED", 0, "Of submissions and model (1)", 0},
      {"start", 'v', "VALUE", 0, "The word's first value, -5 for 2^64 - 5", 0},
      {"row", 'r', "N", 0, "One row of ring sizes alone", 0},
      {"path", 'a', "PATH", 0, "kernel, pci, v2 or v3 alone (kernel, then pci)",
       0},
      {"quiet", 'q', NULL, 0, "No progress", 0},
      {0}};
  static const struct argp argp = {
      options, option,
      NULL,    "Random submissions on the model, judged by a replay.",
      NULL,    NULL,
      NULL};
  struct settings s = {.submissions = 10000, .seed = 1, .path = MODEL_PATHS};
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return 2;
  return all(&s);
}
