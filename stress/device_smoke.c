/* SPDX-License-Identifier: ISC */
/*
 * device_smoke: the checks of smoke.h over a path, one after the other, on
 * lines of their own as each ends. It never asks for the GPU's highest clocks.
 * Exit status 0: all was as it must be; 1: it was not; 2: wrong options.
 * SIGALRM ends a stage that takes longer than STAGE_S.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/device.h"
#include "paths/pci/model_path.h"
#include "stress/smoke.h"
#include "tools/allocator.h"

enum { STAGE_S = 100, REACH_S = 10 };

bool smoke_failed(const char *fmt, ...) {
  va_list args;
  fflush(stdout);
  fprintf(stderr, "device_smoke: ");
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fprintf(stderr, "\n");
  return false;
}

bool smoke_reach(struct smoke *s, uint64_t v) {
  uint64_t deadline = device_now() + REACH_S * UINT64_C(1000000000);
  return rig_nv_wait(s->device, v, deadline) == 0 ||
         smoke_failed("value %" PRIu64 " (the word reads %" PRIu64 "): %s", v,
                      rig_nv_signaled(s->device), rig_nv_why());
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

void smoke_sort(uint64_t *ns, size_t n) { qsort(ns, n, sizeof *ns, ascending); }

bool smoke_post(struct smoke *s, const struct rig_part *parts, size_t n,
                uint64_t *v) {
  struct rig_submission sub = {.parts = parts, .nparts = n};
  return smoke_post_submission(s, &sub, v);
}

bool smoke_post_submission(struct smoke *s, const struct rig_submission *sub,
                           uint64_t *v) {
  uint64_t deadline = device_now() + REACH_S * UINT64_C(1000000000);
  int r = rig_nv_post_wait(s->device, sub, deadline, v);
  return r == 0 || smoke_failed("post: %d, %s", r, r < 0 ? rig_nv_why() : "");
}

/* Paths besides "nvidia". */
static const char *const models[MODEL_PATHS] = {[MODEL_PATH_KERNEL] = "model",
                                                [MODEL_PATH_PCI] = "model-pci",
                                                [MODEL_PATH_V2] = "model-v2",
                                                [MODEL_PATH_V3] = "model-v3"};

/* Its number, or MODEL_PATHS. */
static enum model_path model_of(const char *name) {
  unsigned i = 0;
  while (i < MODEL_PATHS && strcmp(models[i], name) != 0)
    i++;
  return (enum model_path)i;
}

int smoke_open(struct smoke *s) {
  const enum model_path is = model_of(s->path_name);
  if (is != MODEL_PATHS)
    return model_path_open(is, NULL, &s->path);
  struct rig_nv_nvidia_options o;
  rig_nv_nvidia_options_init(&o);
  o.gpu = s->gpu;
  return rig_nv_path_nvidia(&o, &s->path);
}

bool smoke_path_open(struct smoke *s) {
  int r = smoke_open(s);
  return r == 0 || smoke_failed("open: %d, %s", r, rig_nv_why());
}

bool smoke_path_close(struct smoke *s) {
  return rig_nv_path_close(s->path) == 0 ||
         smoke_failed("close: %s", rig_nv_why());
}

bool smoke_device_open(struct smoke *s) {
  struct rig_nv_options o;
  rig_nv_options_init(&o);
  o.mode = RIG_NV_POST;
  o.boost = false; /* the machine's clocks are others' too */
  o.allocator = tool_allocator();
  o.word = o.words = s->words;
  o.words_bytes = s->words ? 4096 : 0;
  o.userd_at = s->places[0];
  o.ring_at = s->places[1];
  o.segment_at = s->places[2];
  o.launch_at = s->places[3];
  return rig_nv_make(s->path, &o, &s->device) == 0 ||
         smoke_failed("make: %s", rig_nv_why());
}

bool smoke_device_close(struct smoke *s) {
  if (rig_nv_stop(s->device, NULL) != 0)
    return smoke_failed("stop: %s", rig_nv_why());
  return rig_nv_release(s->device) == 0 ||
         smoke_failed("release: %s", rig_nv_why());
}

static void print_facts(const struct smoke *s) {
  const struct rig_facts *f = rig_nv_facts(s->device);
  const struct rig_nv_gpu *g = rig_nv_capability(s->device);
  printf("path                    %s, GPU %d, bus %s, release %d\n",
         s->path_name, s->path->index, f->bus ? f->bus : "none",
         s->path->rm.release);
  printf("architecture            %s: %u GPCs, %u TPCs each, %u SMs each, %u "
         "warps\n",
         f->arch, g->gpcs, g->tpcs_per_gpc, g->sms_per_tpc, g->warps_per_sm);
  printf("classes                 channel %x, compute %x, copy %x\n",
         g->channel_class, g->compute_class, g->copy_class);
  printf("budget                  %" PRIu64 " MiB; L2 cache %" PRId64
         " bytes; Mapped memory %s\n",
         f->budget >> 20, f->cache_bytes, s->path->flush ? "yes" : "no");
  fflush(stdout);
}

struct settings {
  struct smoke smoke;
  unsigned cycles;
  const char *only;
};

static bool wanted(const struct settings *s, const char *stage) {
  if (s->only != NULL && strcmp(s->only, stage) != 0)
    return false;
  alarm(STAGE_S);
  return true;
}

/* A stage that is run alone, where it is named. */
static bool named(const struct settings *s, const char *stage) {
  return s->only != NULL && strcmp(s->only, stage) == 0;
}

static bool tell(const char *stage, bool ok) {
  printf("%-23s %s\n", stage, ok ? "passed" : "FAILED");
  fflush(stdout);
  return ok;
}

/* With one device open. A device whose work is stuck is stopped all the
 * same. */
static bool with_device(struct settings *s) {
  struct smoke *k = &s->smoke;
  bool ok = true;
  print_facts(k);
  if (named(s, "victim"))
    return smoke_victim(k);
  if (named(s, "fault"))
    return tell("fault", smoke_fault(k, SMOKE_COPY));
  if (named(s, "fault-host"))
    return tell("fault-host", smoke_fault(k, SMOKE_HOST));
  if (named(s, "fault-kernel"))
    return tell("fault-kernel", smoke_fault(k, SMOKE_KERNEL));
  if (named(s, "fault-segment"))
    return tell("fault-segment", smoke_fault(k, SMOKE_SEGMENT));
  if (wanted(s, "second"))
    ok = tell("second", smoke_second(k));
  if (ok && wanted(s, "memory"))
    ok = tell("memory", smoke_memory(k));
  if (ok && wanted(s, "fork"))
    ok = tell("fork", smoke_fork(k));
  if (ok && wanted(s, "peers"))
    ok = tell("peers", smoke_peers(k));
  if (ok && wanted(s, "clock"))
    ok = tell("clock", smoke_clock(k));
  if (ok && wanted(s, "dma"))
    ok = tell("dma", smoke_dma(k));
  if (ok && wanted(s, "costs"))
    ok = tell("costs", smoke_costs(k));
  if (ok && wanted(s, "times"))
    ok = tell("times", smoke_times(k));
  if (ok && wanted(s, "launches")) {
    alarm(4 * STAGE_S);
    ok = tell("launches", smoke_launches(k));
  }
  if (ok && wanted(s, "wraps"))
    ok = tell("wraps", smoke_wraps(k));
  if (ok && wanted(s, "growth")) {
    alarm(4 * STAGE_S);
    ok = tell("growth", smoke_growth(k));
  }
  if (ok && wanted(s, "posts")) {
    alarm(4 * STAGE_S);
    ok = tell("posts", smoke_posts(k));
  }
  return ok;
}

static bool opened(struct settings *s) {
  struct smoke *k = &s->smoke;
  alarm(STAGE_S);
  if (!smoke_path_open(k))
    return false;
  bool ok = smoke_device_open(k);
  if (ok) {
    ok = with_device(s);
    alarm(STAGE_S);
    ok = smoke_device_close(k) && ok;
  }
  return smoke_path_close(k) && tell("open and stop", ok);
}

/* Stages that open devices of their own. */
static const struct {
  const char *name;
  bool (*run)(struct smoke *);
} apart[] = {{"places", smoke_places}, {"carry", smoke_carry}};

static bool all(struct settings *s) {
  bool ok = true, own = false;
  if (s->only != NULL)
    own = strcmp(s->only, "cycles") == 0 || strcmp(s->only, "kill") == 0;
  for (size_t i = 0; s->only && i < sizeof apart / sizeof apart[0]; i++)
    own |= strcmp(s->only, apart[i].name) == 0;
  if (!own)
    ok = opened(s);
  if (s->only != NULL && !own)
    return ok;
  for (size_t i = 0; ok && i < sizeof apart / sizeof apart[0]; i++)
    if (wanted(s, apart[i].name)) {
      alarm(4 * STAGE_S);
      ok = tell(apart[i].name, apart[i].run(&s->smoke));
    }
  if (ok && wanted(s, "cycles")) {
    alarm(2 * STAGE_S);
    ok = tell("cycles", smoke_cycles(&s->smoke, s->cycles));
  }
  if (ok && wanted(s, "kill")) {
    ok = tell("kill", smoke_kill(&s->smoke));
    s->only = "memory"; /* by the next process: this one */
    ok = ok && opened(s);
  }
  return ok;
}

static uint64_t number(const char *text, uint64_t most,
                       struct argp_state *state) {
  char *end;
  uint64_t n = strtoull(text, &end, 0);
  if (end == text || *end || n > most)
    argp_error(state, "'%s' is no number up to %" PRIu64, text, most);
  return n;
}

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  switch (key) {
  case 'p':
    if (model_of(text) == MODEL_PATHS && strcmp(text, "nvidia") != 0)
      argp_error(state, "no path '%s'", text);
    s->smoke.path_name = text;
    return 0;
  case 'g':
    s->smoke.gpu = strcmp(text, "-1") == 0 ? -1 : (int)number(text, 63, state);
    return 0;
  case 'n':
    s->smoke.posts = number(text, UINT64_MAX / 2, state);
    return 0;
  case 't':
    s->smoke.threads = (unsigned)number(text, 64, state);
    return 0;
  case 's':
    s->smoke.seed = number(text, UINT64_MAX, state);
    return 0;
  case 'c':
    s->cycles = (unsigned)number(text, 1000000, state);
    return 0;
  case 'q':
    s->smoke.quick = true;
    return 0;
  case 'o':
    s->only = text;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"path", 'p', "PATH", 0,
       "model (the default), model-pci, model-v2 or model-v3 (behind page "
       "tables), nvidia",
       0},
      {"gpu", 'g', "N", 0, "Its number; -1, the default: the first", 0},
      {"posts", 'n', "N", 0, "Mixed posts of all threads (100000)", 0},
      {"threads", 't', "T", 0, "That post (8)", 0},
      {"seed", 's', "SEED", 0, "Of the posts (1)", 0},
      {"cycles", 'c', "N", 0, "Devices opened and stopped (200)", 0},
      {"quick", 'q', NULL, 0, "A tenth of what is measured", 0},
      {"only", 'o', "STAGE", 0,
       "second, memory, fork, peers, clock, dma, costs, times, launches, "
       "wraps, growth, posts, places, carry, cycles, kill; none: "
       "open and stop alone; fault, fault-host, fault-kernel, "
       "fault-segment: a wrong address",
       0},
      {0}};
  static const struct argp argp = {
      options, option, NULL, "What a device of a path must do.",
      NULL,    NULL,   NULL};
  struct settings s = {.smoke = {.path_name = "model",
                                 .gpu = -1,
                                 .posts = 100000,
                                 .threads = 8,
                                 .seed = 1},
                       .cycles = 200};
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  return all(&s) ? 0 : 1;
}
