/* SPDX-License-Identifier: ISC */
/*
 * growth_stress: threads that submit to one device of the model while its rings
 * grow, each kind of them and from several threads at once, and local memory
 * too, on a path that lacks memory at random. Every byte, what every launch
 * adds, the order of values, that what was replaced is given back once and that
 * nothing of it is used afterwards: freed memory is the process's no more, and
 * a fault for the GPU. Exit status 0: all
 * was as it must be; 1: it was not, or the device failed; 2: wrong options.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/device.h"
#include "paths/pci/model_path.h"
#include "stress/kernels.h"
#include "stress/options.h"
#include "stress/post_run.h"
#include "tools/allocator.h"

enum {
  EACH = 24, /* submissions of a thread in a round */
  ROUNDS = 2,
  LONG = 1000000
};

struct settings {
  struct posting posting;
  uint64_t devices;
  unsigned one_in;
};

/* Growths, of one ring or several. */
struct growths {
  uint64_t all, entries, segments, launches;
};

struct test {
  const struct settings *settings;
  uint64_t seed;
  unsigned mode;
  enum model_path is;
  const struct rig_nv_path *model;
  struct rig_nv_path path; /* the model's, which lacks at random */
  struct rig_nv *device;
  struct kernels kernels;
  struct bulk bulk;
  struct arena arena;
  struct chain chain;
  struct post_run run;
  struct growths growths;
  uint64_t launches; /* of the sums */
};

static int failed(const struct test *t, const char *what, const char *cause) {
  fprintf(stderr,
          "growth_stress: %s: %s\n"
          "  model path %s\n"
          "  again: --seed=%" PRIu64 " --mode=%u --threads=%u --devices=1\n",
          what, cause, model_path_name(t->is), t->seed, t->mode,
          t->settings->posting.threads);
  return 1;
}

/* ---- a path that lacks ---- */

/* Lacks one call in so many, 0: none (relaxed: any call may see the change). */
static uint32_t lacks_one_in;
static uint64_t calls; /* a number for each (relaxed) */
static const struct rig_nv_path *inner;

static bool lacks(struct rig_nv_reply *reply) {
  uint32_t one_in = __atomic_load_n(&lacks_one_in, __ATOMIC_RELAXED);
  struct random r = {__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED)};
  if (one_in == 0 || !random_one_in(&r, one_in))
    return false;
  rig_nv_reply_set(reply, RIG_NV_LACKING, "lacks at random");
  return true;
}

static bool lacking_alloc(void *ctx, enum rig_memory kind, uint64_t n,
                          unsigned flags, struct rig_nv_memory *m,
                          struct rig_nv_reply *reply) {
  return !lacks(reply) && inner->alloc(ctx, kind, n, flags, m, reply);
}

static bool lacking_object(void *ctx, uint32_t parent, uint32_t cls,
                           void *params, size_t bytes, uint32_t *object,
                           struct rig_nv_reply *reply) {
  return !lacks(reply) &&
         inner->rm.alloc(ctx, parent, cls, params, bytes, object, reply);
}

static bool lacking_registration(void *ctx, uint32_t channel,
                                 struct rig_nv_reply *reply) {
  return !lacks(reply) && inner->register_channel(ctx, channel, reply);
}

static bool lacking_schedule(void *ctx, uint32_t group, void *params,
                             size_t bytes, struct rig_nv_reply *reply) {
  return !lacks(reply) && inner->rm.schedule(ctx, group, params, bytes, reply);
}

static void lack(const struct test *t, bool on) {
  __atomic_store_n(&lacks_one_in, on ? t->settings->one_in : 0,
                   __ATOMIC_RELAXED);
}

/* ---- a device ---- */

/* What lives of the device in the path, with no value in flight and one on the
 * newest rings. */
static size_t kept(const struct test *t) {
  const struct rig_nv *d = t->device;
  const struct ring_generation *g = d->rings.newest;
  size_t sets = 1, rings = 3 + (g->launches.born != 0);
  for (const struct ring_generation *k = g; k->older; k = k->older)
    sets += model_path_is_pci(t->is) && k->channels_born == k->id;
  for (int q = 0; q < QUEUES; q++)
    rings += g->channel[q].segments_born != 0;
  /* The arena's; the chain's, the bulk's, the sums' and the code; joins, word,
   * staging and local memory; of a set, the block and notifiers. */
  return ARENA_REGIONS + 4 + 4 + 3 * sets + rings;
}

/* A value, reached, and what is done with by then given back. */
static bool step(const struct test *t) {
  struct rig_nv *d = t->device;
  struct rig_nv_region *r;
  const struct rig_submission none = {0};
  const char *failure;
  uint64_t v = rings_last(&d->rings) + 1;
  bool ok = t->mode == POSTING_TURN
                ? rig_nv_room(d, &none) == RIG_FITS &&
                      rig_nv_submit(d, v, &none, &failure) == RIG_COMMITTED
                : rig_nv_post(d, &none, &v) == 0;
  return ok && rig_nv_wait(d, v, UINT64_MAX) == 0 &&
         rig_nv_alloc(d, RIG_PINNED, 4, &r) == 0 && rig_nv_free(d, r) == 0;
}

/* All that was replaced went back. Where nothing is freed, failed growths
 * leave more. */
static int check_kept(struct test *t) {
  struct model_counts c;
  if (!step(t) || !step(t))
    return failed(t, "a last value", rig_nv_why());
  if (shared_load_32(&t->device->growth.waiting) != 0)
    return failed(t, "giving back", "some waits on");
  model_counts(t->model, &c);
  size_t want = kept(t);
  if (t->is == MODEL_PATH_KERNEL ? c.memories != want : c.memories < want) {
    char what[128];
    snprintf(what, sizeof what, "%zu memories live, not %zu", c.memories, want);
    return failed(t, "giving back", what);
  }
  return 0;
}

static void count_growths(struct test *t) {
  const struct ring_generation *g = t->device->rings.newest;
  for (; g->older; g = g->older) {
    t->growths.all++;
    t->growths.entries += g->channels_born == g->id;
    t->growths.launches += g->launches.born == g->id;
    for (int q = 0; q < QUEUES; q++)
      t->growths.segments += g->channel[q].segments_born == g->id;
  }
}

static int with_chain(struct test *t) {
  const struct posting *s = &t->settings->posting;
  if (chain_make(t->device, s->threads, EACH, &t->chain))
    return failed(t, "making the chain", rig_nv_why());
  t->run = (struct post_run){.device = t->device,
                             .arena = &t->arena,
                             .chain = &t->chain,
                             .turn_mode = t->mode == POSTING_TURN,
                             .bulk = &t->bulk,
                             .seed = t->seed,
                             .patience_s = s->patience_s};
  post_run_init(&t->run);
  for (unsigned i = 0; i < ROUNDS; i++) {
    lack(t, true);
    bool ok = post_run_round(&t->run, EACH);
    lack(t, false);
    if (!ok || !post_run_verify(&t->run))
      return failed(t, "a round", t->run.what);
  }
  count_growths(t);
  return check_kept(t);
}

static int with_arena(struct test *t) {
  struct arena_options o = {.slices = t->settings->posting.threads};
  replay_options_init(&o.replay);
  o.replay.seed = t->seed;
  o.replay.most_parts = 4;
  o.replay.most_ops = 4;
  o.replay.most_waits = 3;
  o.replay.most_bytes = 1024;
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

static int with_kernels(struct test *t) {
  if (kernels_make(t->device, t->model, &t->kernels))
    return failed(t, "loading kernels", rig_nv_why());
  if (bulk_make(t->device, &t->kernels.add, t->settings->posting.threads, EACH,
                &t->bulk))
    return failed(t, "what is large", rig_nv_why());
  return with_arena(t);
}

static int with_device(struct test *t) {
  static const struct device_sizes sizes = {.entries = 16,
                                            .segment_bytes = 2048,
                                            .launch_bytes = 4096,
                                            .in_flight = 32,
                                            .start_entries = UINT32_MAX - 15,
                                            .start_units = UINT32_MAX - 20,
                                            .start_joins = UINT64_MAX - 3,
                                            .start_launch = UINT32_MAX - 2};
  uint64_t word = UINT32_MAX - 100;
  struct rig_nv_options o;
  rig_nv_options_init(&o);
  o.word = &word;
  o.mode = t->mode == POSTING_TURN ? RIG_NV_TURN : RIG_NV_POST;
  o.allocator = tool_allocator();
  if (device_make_sized(&t->path, &o, &sizes, &t->device))
    return failed(t, "making the device", rig_nv_why());
  int is = with_kernels(t);
  const char *failure;
  if (is != 0)
    return is; /* work that is stuck keeps its memory */
  if (rig_nv_stop(t->device, NULL))
    is = failed(t, "stop", rig_nv_why());
  t->launches = t->bulk.sums.launches;
  if (chain_end(&t->chain) || bulk_end(&t->bulk))
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
  struct model_counts c;
  rig_nv_model_options_init(&o);
  o.seed = t->seed;
  if (model_path_open(t->is, &o, &t->model))
    return failed(t, "opening the model", rig_nv_why());
  inner = t->model;
  t->path = *t->model;
  t->path.alloc = lacking_alloc;
  t->path.rm.alloc = lacking_object;
  t->path.rm.schedule = lacking_schedule;
  t->path.register_channel = lacking_registration;
  if (with_device(t))
    return 1;
  model_counts(t->model, &c);
  if (c.memories || c.objects || c.registrations)
    return failed(t, "the end", "something of the device lives on");
  return rig_nv_path_close(t->model) ? failed(t, "close", rig_nv_why()) : 0;
}

static void add(struct post_tally *sum, const struct post_tally *t) {
  sum->fits += t->fits;
  sum->later += t->later;
  sum->grow += t->grow;
  sum->grown += t->grown;
  sum->shorts += t->shorts;
  for (int i = 0; i < POST_MOST_AGE; i++)
    sum->ages[i] += t->ages[i];
}

static void print(const struct settings *s, unsigned mode,
                  const struct post_tally *t, const struct growths *g,
                  uint64_t launches) {
  printf("%s: %" PRIu64 " devices, %" PRIu64 " generations (entries %" PRIu64
         ", segments %" PRIu64 ", launches %" PRIu64 "), %" PRIu64
         " launches; FITS %" PRIu64 " LATER %" PRIu64 " GROW %" PRIu64
         ", grown %" PRIu64 " short %" PRIu64 "; ages",
         posting_modes[mode], s->devices, g->all, g->entries, g->segments,
         g->launches, launches, t->fits, t->later, t->grow, t->grown,
         t->shorts);
  for (int i = 0; i < POST_MOST_AGE; i++)
    printf(" %" PRIu64, t->ages[i]);
  printf("\n");
  fflush(stdout);
}

static int in_mode(const struct settings *s, unsigned mode) {
  static const enum model_path paths[] = {MODEL_PATH_PCI,    MODEL_PATH_KERNEL,
                                          MODEL_PATH_KERNEL, MODEL_PATH_V2,
                                          MODEL_PATH_KERNEL, MODEL_PATH_V3};
  struct post_tally sum = {0};
  struct growths growths = {0};
  uint64_t launches = 0;
  for (uint64_t i = 0; i < s->devices; i++) {
    uint64_t seed = s->posting.seed + i;
    struct test t = {
        .settings = s, .seed = seed, .is = paths[seed % 6], .mode = mode};
    if (with_path(&t))
      return 1;
    add(&sum, &t.run.tally);
    growths.all += t.growths.all;
    growths.entries += t.growths.entries;
    growths.segments += t.growths.segments;
    growths.launches += t.growths.launches;
    launches += t.launches;
  }
  print(s, mode, &sum, &growths, launches);
  return 0;
}

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &s->posting;
    return 0;
  case 'n':
    s->devices = option_number(text, 1, UINT32_MAX, state);
    return 0;
  case 'l':
    s->devices = LONG;
    return 0;
  case 'k':
    s->one_in = (unsigned)option_number(text, 0, UINT32_MAX, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"devices", 'n', "N", 0, "In each mode, one after the other (16)", 0},
      {"long", 'l', NULL, 0, "1000000 devices in each mode", 0},
      {"lack", 'k', "N", 0, "One call of the path in N lacks (12), 0 none", 0},
      {0}};
  static const struct argp argp = {
      .options = options,
      .parser = option,
      .doc = "Threads that submit to the model while its rings grow.",
      .children = posting_options};
  struct settings s = {.posting = {.seed = 1, .threads = 8, .patience_s = 60},
                       .devices = 16,
                       .one_in = 12};
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return 2;
  for (unsigned mode = 0; mode < POSTING_MODES; mode++)
    if (posting_in(&s.posting, mode) && in_mode(&s, mode))
      return 1;
  return 0;
}
