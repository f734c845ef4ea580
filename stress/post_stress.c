/* SPDX-License-Identifier: ISC */
/*
 * post_stress: threads that submit to one device of the model at the same
 * time, in post mode and in turn mode, on rings from the smallest to those
 * that a device opens with, with counts and values that wrap. Exit status 0:
 * all was as it must be; 1: it was not, or the device failed; 2: wrong options.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/device.h"
#include "paths/pci/model_path.h"
#include "stress/kernels.h"
#include "stress/options.h"
#include "stress/post_run.h"
#include "tools/allocator.h"

enum {
  MOST_EACH = 1024, /* submissions of a thread in a round */
  ROUNDS = 2,       /* at least */
  LONG = 100000000
};

struct settings {
  struct posting posting;
  uint64_t submissions, start;
  unsigned row;
  bool one_start, row_given, quiet;
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
     {.entries = 4, .segment_bytes = 512, .in_flight = 2, .launch_bytes = 1024},
     1,
     2,
     1,
     256},
    {"small, four in flight",
     {.entries = 16,
      .segment_bytes = 2048,
      .in_flight = 4,
      .launch_bytes = 4096},
     2,
     3,
     2,
     512},
    {"small, about to wrap",
     {.entries = 32,
      .segment_bytes = 4096,
      .in_flight = 8,
      .start_entries = UINT32_MAX - 63,
      .start_units = UINT32_MAX - 100,
      .start_joins = UINT64_MAX - 3,
      .launch_bytes = 8192,
      .start_launch = UINT32_MAX - 20},
     4,
     4,
     3,
     1024},
    {"middling",
     {.entries = 256,
      .segment_bytes = 16384,
      .in_flight = 64,
      .launch_bytes = 32768},
     6,
     6,
     3,
     2048},
    {"as opened",
     {.entries = 262144,
      .segment_bytes = 1 << 20,
      .in_flight = 32768,
      .launch_bytes = 1 << 20},
     6,
     6,
     3,
     2048},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const uint64_t starts[] = {0, (UINT64_C(1) << 32) - 5, UINT64_MAX - 4};
enum { STARTS = sizeof starts / sizeof *starts };

struct test {
  const struct settings *settings;
  const struct row *row;
  enum model_path model;
  unsigned mode;
  uint64_t start;
  const struct rig_nv_path *path;
  struct rig_nv *device;
  struct kernels kernels;
  struct arena arena;
  struct chain chain;
  struct post_run run;
};

static int failed(const struct test *t, const char *what, const char *cause) {
  const struct settings *s = t->settings;
  fprintf(stderr,
          "post_stress: %s: %s\n"
          "  rings %s\n"
          "  again: --seed=%" PRIu64 " --start=%" PRIu64
          " --row=%u --mode=%u --path=%s --threads=%u --submissions=%" PRIu64
          "\n",
          what, cause, t->row->name, s->posting.seed, t->start,
          (unsigned)(t->row - rows), t->mode, model_path_name(t->model),
          s->posting.threads, s->submissions);
  return 1;
}

static void progress(const struct test *t, uint64_t done, uint64_t of) {
  if (!t->settings->quiet && isatty(STDERR_FILENO))
    fprintf(stderr, "\r%-22s %-6s %s %12" PRIu64 " of %" PRIu64, t->row->name,
            model_path_name(t->model), posting_modes[t->mode], done, of);
}

static int rounds(struct test *t) {
  uint64_t n = t->settings->submissions, each = t->chain.each;
  for (uint64_t done = 0; done < n; done += each * t->chain.threads) {
    if (!post_run_round(&t->run, each) || !post_run_verify(&t->run))
      return failed(t, "a round", t->run.what);
    progress(t, done, n);
  }
  return 0;
}

static void print_tally(const struct test *t, uint64_t bells) {
  const struct post_tally *a = &t->run.tally;
  printf("%-22s %-6s %s from %20" PRIu64 ": FITS %" PRIu64 " LATER %" PRIu64
         " NEVER %" PRIu64 " GROW %" PRIu64 " BUSY %" PRIu64 " rooms %" PRIu64
         "; values a doorbell %.2f\n",
         t->row->name, model_path_name(t->model), posting_modes[t->mode],
         t->start, a->fits, a->later, a->never, a->grow, a->busy, a->rooms,
         bells ? (double)a->fits / (double)bells : 0);
  fflush(stdout);
}

static int with_chain(struct test *t) {
  const struct posting *s = &t->settings->posting;
  uint64_t each = t->settings->submissions / s->threads / ROUNDS + 1;
  if (chain_make(t->device, s->threads,
                 (unsigned)(each < MOST_EACH ? each : MOST_EACH), &t->chain))
    return failed(t, "making the chain", rig_nv_why());
  t->run = (struct post_run){.device = t->device,
                             .arena = &t->arena,
                             .chain = &t->chain,
                             .turn_mode = t->mode == POSTING_TURN,
                             .seed = s->seed,
                             .patience_s = s->patience_s};
  post_run_init(&t->run);
  uint64_t bells = device_bells(t->device);
  int is = rounds(t);
  print_tally(t, device_bells(t->device) - bells);
  return is;
}

static int with_arena(struct test *t) {
  struct arena_options o = {.slices = t->settings->posting.threads};
  replay_options_init(&o.replay);
  o.replay.seed = t->settings->posting.seed;
  o.replay.most_parts = t->row->parts;
  o.replay.most_ops = t->row->ops;
  o.replay.most_waits = t->row->waits;
  o.replay.most_bytes = t->row->bytes;
  o.replay.kernel =
      (struct replay_kernel){t->kernels.mix.code, t->kernels.mix.launch, 4096};
  arena_least(&o, o.bytes);
  for (unsigned i = 0; i < ARENA_REGIONS; i++)
    o.bytes[i] += (uint64_t)(i == ARENA_DATA ? 65536 : 4096) * o.slices;
  const char *failure;
  if (arena_make(t->device, &o, &t->arena, &failure))
    return failed(t, "making the arena", failure);
  return with_chain(t);
}

static int with_device(struct test *t) {
  uint64_t word = t->start;
  struct rig_nv_options o;
  rig_nv_options_init(&o);
  o.word = &word;
  o.mode = t->mode == POSTING_TURN ? RIG_NV_TURN : RIG_NV_POST;
  o.allocator = tool_allocator();
  if (device_make_sized(t->path, &o, &t->row->sizes, &t->device))
    return failed(t, "making the device", rig_nv_why());
  if (kernels_make(t->device, t->path, &t->kernels))
    return failed(t, "loading kernels", rig_nv_why());
  int is = with_arena(t);
  const char *failure;
  if (is != 0)
    return is; /* work that is stuck keeps its memory */
  if (rig_nv_stop(t->device, NULL))
    is = failed(t, "stop", rig_nv_why());
  if (chain_end(&t->chain))
    is = failed(t, "free", rig_nv_why());
  if (arena_end(&t->arena, &failure))
    is = failed(t, "free", failure);
  if (kernels_end(&t->kernels))
    is = failed(t, "unloading kernels", rig_nv_why());
  if (rig_nv_release(t->device))
    is = failed(t, "release", rig_nv_why());
  return is;
}

static int with_path(struct test *t) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.seed = t->settings->posting.seed ^ t->start;
  if (model_path_open(t->model, &o, &t->path))
    return failed(t, "opening the model", rig_nv_why());
  int is = with_device(t);
  if (is != 0)
    return is;
  return rig_nv_path_close(t->path) ? failed(t, "close", rig_nv_why()) : 0;
}

static bool wanted(const struct settings *s, unsigned p) {
  return s->path == MODEL_PATHS ? !model_path_walks((enum model_path)p)
                                : s->path == (enum model_path)p;
}

static int row_and_mode(const struct settings *s, unsigned row, unsigned mode) {
  for (unsigned i = 0; i < (s->one_start ? 1 : STARTS); i++)
    for (int p = 0; p < MODEL_PATHS; p++) {
      struct test t = {.settings = s,
                       .row = &rows[row],
                       .model = (enum model_path)p,
                       .mode = mode,
                       .start = s->one_start ? s->start : starts[i]};
      if (wanted(s, (unsigned)p) && with_path(&t))
        return 1;
    }
  return 0;
}

static int all(const struct settings *s) {
  for (unsigned row = 0; row < ROWS; row++)
    for (unsigned mode = 0; mode < POSTING_MODES; mode++)
      if ((!s->row_given || s->row == row) && posting_in(&s->posting, mode) &&
          row_and_mode(s, row, mode))
        return 1;
  return 0;
}

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &s->posting;
    return 0;
  case 'n':
    s->submissions = option_number(text, 1, UINT64_MAX / 2, state);
    return 0;
  case 'l':
    s->submissions = LONG;
    return 0;
  case 'v':
    s->start = option_number(text, 0, UINT64_MAX, state);
    s->one_start = true;
    return 0;
  case 'r':
    s->row = (unsigned)option_number(text, 0, ROWS - 1, state);
    s->row_given = true;
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
      {"submissions", 'n', "N", 0, "Of each run, all threads (200)", 0},
      {"long", 'l', NULL, 0, "100000000 submissions a run", 0},
      {"start", 'v', "VALUE", 0, "The word's first value, -5 for 2^64 - 5", 0},
      {"row", 'r', "N", 0, "One row of ring sizes alone", 0},
      {"path", 'a', "PATH", 0, "kernel, pci, v2 or v3 alone (kernel, then pci)",
       0},
      {"quiet", 'q', NULL, 0, "No progress", 0},
      {0}};
  static const struct argp argp = {
      .options = options,
      .parser = option,
      .doc = "Threads that submit to the model at the same time.",
      .children = posting_options};
  struct settings s = {.posting = {.seed = 1, .threads = 4, .patience_s = 60},
                       .submissions = 200,
                       .path = MODEL_PATHS};
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return 2;
  return all(&s);
}
