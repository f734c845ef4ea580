/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/device.h"
#include "tools/rig_nv/addition.h"
#include "tools/rig_nv/output.h"
#include "tools/rig_nv/workers.h"

enum {
  SMALL_BYTES = 1 << 20, /* of Pinned and of Mapped memory */
  HOST_BYTES = 1 << 20,  /* of the host's region, a thread's */
  DYNAMIC = 8192,        /* bytes of shared memory, of launches */
  HANG_MS = 10000,
  PATIENCE_S = 120, /* of a wait, also where a word stands still */
  /* Words of a copy that is missing may stay unset. */
  DROPPED_HANG_MS = 2000,
  DROPPED_PATIENCE_S = 4,
  /* The keys of options that have no letter. */
  DROP = 256,
  TURN
};

struct settings {
  struct tool_which which;
  const char *file;
  uint64_t submissions, threads, seed, drop_copy;
  bool json, turn;
};

struct run {
  const struct settings *settings;
  struct content content;
  struct tool_gpu gpu;
  struct kernels kernels;
  bool launches; /* whether there are any */
  struct arena arena;
  struct work work;
  uint64_t words; /* added by the kernel over the file */
  double seconds;
  uint64_t bells; /* before the work; after it, what it rang */
  bool verified;
};

static struct work *interrupted; /* for the handler of SIGINT */

static void interrupt(int signal) {
  (void)signal;
  /* Relaxed: a hint to end soon. */
  atomic_store_explicit(&interrupted->stop, 1, memory_order_relaxed);
}

/* A second SIGINT ends the program at once. */
static void catch_interrupts(struct work *w) {
  interrupted = w;
  struct sigaction a = {.sa_handler = interrupt,
                        .sa_flags = SA_RESETHAND | SA_RESTART};
  sigaction(SIGINT, &a, NULL);
}

static void progress(const struct work *w) {
  if (isatty(STDERR_FILENO))
    fprintf(stderr, "\r%10" PRIuLEAST64 " of %" PRIu64 " submissions",
            atomic_load_explicit(&w->done, memory_order_relaxed),
            w->submissions);
}

static uint64_t most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static int make_arena(struct run *r) {
  const struct settings *s = r->settings;
  struct arena_options o = {.content = r->content.bytes,
                            .content_bytes = r->content.n,
                            .slices = (unsigned)s->threads};
  uint64_t least[ARENA_REGIONS];
  replay_options_init(&o.replay);
  o.replay.seed = s->seed;
  arena_least(&o, least);
  o.bytes[RIG_DEVICE] = most(least[RIG_DEVICE], r->content.n);
  o.bytes[RIG_PINNED] = most(least[RIG_PINNED], SMALL_BYTES);
  o.bytes[RIG_MAPPED] = most(least[RIG_MAPPED], SMALL_BYTES);
  o.bytes[ARENA_DATA] = most(least[ARENA_DATA], s->threads * HOST_BYTES);
  if (r->launches)
    o.replay.kernel = (struct replay_kernel){r->kernels.mix.code,
                                             r->kernels.mix.launch, DYNAMIC};
  const char *failure;
  if (arena_make(r->gpu.device, &o, &r->arena, &failure))
    return tool_failed("preparing the memory", failure);
  r->work.device = r->gpu.device;
  r->work.arena = &r->arena;
  r->work.submissions = s->submissions;
  r->work.turns = s->turn;
  r->work.patience_s = s->drop_copy ? DROPPED_PATIENCE_S : PATIENCE_S;
  r->work.last = rig_nv_signaled(r->gpu.device);
  r->bells = device_bells(r->gpu.device);
  return TOOL_OK;
}

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int work(struct run *r) {
  catch_interrupts(&r->work);
  double start = seconds_now();
  int status = workers_run(&r->work, progress);
  r->bells = device_bells(r->gpu.device) - r->bells;
  if (status == TOOL_OK)
    status = workers_reach_last(&r->work);
  r->seconds = seconds_now() - start;
  if (isatty(STDERR_FILENO))
    fputs("\r\033[K", stderr); /* erases the line of the progress */
  if (status != TOOL_OK)
    (void)tool_failed(r->work.what, r->work.cause);
  return status;
}

static int verify(struct run *r) {
  struct replay_difference d;
  const char *failure;
  int is = arena_verify(&r->arena, &d, &failure);
  if (is < 0)
    return tool_failed("downloading what the work wrote", failure);
  r->verified = is == 0;
  if (r->verified)
    return TOOL_OK;
  fprintf(stderr,
          "rig-nv: byte %" PRIu64 " of %s memory is 0x%02x, not 0x%02x, "
          "which value %" PRIu64 " wrote last (seed %" PRIu64 ")\n",
          d.offset, d.region, d.found, d.expected, d.value, r->settings->seed);
  return TOOL_NOT_VERIFIED;
}

static int report(const struct run *r) {
  struct replay_counts c = arena_counts(&r->arena);
  double n = (double)c.submissions;
  struct output o;
  output_begin(&o, r->settings->json);
  output_text(&o, "device", "device", r->gpu.what);
  output_text(&o, "arch", "architecture", rig_nv_facts(r->gpu.device)->arch);
  output_text(&o, "mode", "mode", r->settings->turn ? "turn" : "post");
  output_number(&o, "threads", "threads", r->settings->threads);
  output_number(&o, "seed", "seed", r->settings->seed);
  output_number(&o, "submissions", "submissions", c.submissions);
  output_number(&o, "bytes", "bytes copied", c.bytes);
  output_real(&o, "seconds", "time, s", r->seconds, 3);
  output_real(&o, "submissions_per_second", "submissions a second",
              r->seconds > 0 ? n / r->seconds : 0, 0);
  output_real(&o, "host_ns", "host time each, ns",
              n > 0 ? (double)r->work.host_ns / n : 0, 0);
  output_real(&o, "values_per_doorbell", "values a doorbell",
              r->bells > 0 ? n / (double)r->bells : 0, 2);
  output_number(&o, "launches", "launches", c.launches);
  output_number(&o, "words_added", "words added", r->words);
  output_number(&o, "later", "answers LATER", r->work.later);
  output_number(&o, "skipped", "skipped", r->work.skipped);
  output_bool(&o, "verified", "verified", r->verified);
  if (output_end(&o))
    return tool_failed("writing to stdout", strerror(errno));
  return TOOL_OK;
}

static int worse(int a, int b) { return a > b ? a : b; }

/* The kernels of the GPU's architecture, where there are any. A copy that is
 * dropped is to be one of the work. */
static int load_kernels(struct run *r) {
  if (r->settings->drop_copy)
    return TOOL_OK;
  int e = kernels_make(r->gpu.device, r->gpu.model ? r->gpu.path : NULL,
                       &r->kernels);
  r->launches = e == 0;
  return e == 0 || e == -RIG_NV_ABSENT
             ? TOOL_OK
             : tool_failed("loading the kernels", rig_nv_why());
}

static int add(struct run *r) {
  if (!r->launches)
    return TOOL_OK;
  int status = addition_run(&r->gpu, &r->kernels, &r->content,
                            r->settings->turn, &r->words);
  r->verified = r->verified && status == TOOL_OK;
  return status;
}

static int with_gpu(struct run *r) {
  int status = load_kernels(r);
  if (status == TOOL_OK)
    status = make_arena(r);
  if (status == TOOL_OK) {
    status = work(r);
    if (status == TOOL_OK)
      status = verify(r);
    if (status == TOOL_OK)
      status = add(r);
    status = worse(status, report(r));
  }
  status = worse(status, tool_stop(&r->gpu));
  const char *failure;
  if (arena_end(&r->arena, &failure))
    status = tool_failed("freeing the memory", failure);
  if (kernels_end(&r->kernels))
    status = tool_failed("unloading the kernels", rig_nv_why());
  return worse(status, tool_close(&r->gpu));
}

static int run(const struct settings *s) {
  struct run r = {.settings = s};
  if (s->file ? content_read(&r.content, s->file)
              : content_make(&r.content, s->seed))
    return TOOL_ERROR;
  struct rig_nv_model_options model;
  rig_nv_model_options_init(&model);
  model.seed = s->seed;
  model.drop_copy = s->drop_copy;
  model.hang_ms = s->drop_copy ? DROPPED_HANG_MS : HANG_MS;
  int status =
      tool_open(&r.gpu, &s->which, s->turn ? RIG_NV_TURN : RIG_NV_POST, &model);
  if (status == TOOL_OK)
    status = with_gpu(&r);
  content_drop(&r.content);
  return status;
}

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &s->which;
    return 0;
  case 'n':
    s->submissions = tool_number("--submissions", text, UINT32_MAX, state);
    return 0;
  case 't':
    s->threads = tool_number("--threads", text, ARENA_MOST_SLICES, state);
    if (s->threads == 0)
      argp_error(state, "--threads: none would submit");
    return 0;
  case 's':
    s->seed = tool_number("--seed", text, UINT64_MAX, state);
    return 0;
  case 'j':
    s->json = true;
    return 0;
  case TURN:
    s->turn = true;
    return 0;
  case DROP:
    s->drop_copy = tool_number("--drop-copy", text, UINT64_MAX, state);
    return 0;
  case ARGP_KEY_ARG:
    if (s->file)
      argp_error(state, "'%s': one FILE is enough", text);
    s->file = text;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

int tool_run(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"submissions", 'n', "N", 0, "Of all threads (100000)", 0},
      {"threads", 't', "T", 0, "That submit (4)", 0},
      {"seed", 's', "SEED", 0, "Of the submissions and of the model (1)", 0},
      {"turn", TURN, NULL, 0,
       "Pass one turn from thread to thread, instead of posting", 0},
      {"json", 'j', NULL, 0, "One JSON object", 0},
      {"drop-copy", DROP, "N", OPTION_HIDDEN,
       "The model's N-th copy writes nothing", 0},
      {0}};
  static const struct argp_child children[] = {{&tool_which_argp, 0, NULL, 0},
                                               {0}};
  static const struct argp argp = {
      options,
      option,
      "[FILE]",
      "Uploads FILE, or 1 MiB of pseudo-random bytes, runs random copies, "
      "launches and words with waits and joins between the channels, and "
      "verifies every byte of the memory against a replay on the host. Then "
      "adds a vector to FILE's words by a kernel, and verifies the sums.\v"
      "SIGINT ends it early: what was submitted is verified. Exit status: 0 "
      "where every byte was as the replay has it; 1 where one was not, or the "
      "work stood still; 2 for wrong usage and for any error.",
      children,
      NULL,
      NULL};
  struct settings s = {
      .which = {.gpu = -1}, .submissions = 100000, .threads = 4, .seed = 1};
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return TOOL_ERROR;
  return run(&s);
}
