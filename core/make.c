/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/classes.h"
#include "core/api/why.h"
#include "core/device.h"
#include "core/lock_order/lock_order.h"
#include "paths/call.h"
#include "rings/launch.h"
#include "rings/rcu.h"

enum {
  PAGE = 4096,
  LINE = 64,
  CHUNK = 65536, /* of the caller's array of words, mapped at once */
  TEXT = 1024
};

static void *default_alloc(void *ctx, size_t align, size_t n) {
  (void)ctx;
  return aligned_alloc(align < sizeof(void *) ? sizeof(void *) : align, n);
}

static void default_release(void *ctx, void *p, size_t n) {
  (void)ctx;
  (void)n;
  free(p);
}

void rig_nv_options_init(struct rig_nv_options *o) {
  *o = (struct rig_nv_options){.size = sizeof *o, .boost = true};
}

void device_sizes_init(struct device_sizes *s) {
  *s = (struct device_sizes){.entries = 262144,
                             .segment_bytes = 1 << 20,
                             .launch_bytes = 1 << 20,
                             .in_flight = 32768};
}

static int place_known(const char *what, int place) {
  if (place == RIG_NV_AUTO || place == RIG_NV_HOST || place == RIG_NV_BAR)
    return 0;
  return why(RIG_NV_INVALID, "make: %d is no place of %s", place, what);
}

static int word_options(const struct rig_nv_options *o) {
  if ((uintptr_t)o->word % sizeof *o->word != 0)
    return why(RIG_NV_INVALID, "make: the word at %p is not 8-byte aligned",
               (void *)o->word);
  if (o->words != NULL && o->word == NULL)
    return why(RIG_NV_INVALID, "make: an array of words and no word");
  if ((uintptr_t)o->words % PAGE != 0)
    return why(RIG_NV_INVALID,
               "make: the array of words at %p does not start "
               "a page",
               o->words);
  if (o->words_bytes > UINTPTR_MAX - (uintptr_t)o->words)
    return why(RIG_NV_INVALID, "make: the array of words ends past the end of "
                               "the address space");
  return 0;
}

static int check_options(const struct rig_nv_options *o) {
  if (o->size != sizeof *o)
    return why(RIG_NV_INVALID,
               "make: options of %zu bytes, not %zu: was "
               "rig_nv_options_init called?",
               o->size, sizeof *o);
  if (o->mode != RIG_NV_LATCH && o->mode != RIG_NV_TURN &&
      o->mode != RIG_NV_POST)
    return why(RIG_NV_INVALID, "make: %d is no mode", (int)o->mode);
  const struct rig_nv_allocator *a = o->allocator;
  if (a != NULL && (a->alloc == NULL || a->release == NULL))
    return why(RIG_NV_INVALID, "make: an allocator without alloc or release");
  int e = place_known("USERD", o->userd_at);
  if (e == 0)
    e = place_known("the entry rings", o->ring_at);
  if (e == 0)
    e = place_known("the segment rings", o->segment_at);
  if (e == 0)
    e = place_known("the launch ring", o->launch_at);
  return e != 0 ? e : word_options(o);
}

static bool has_clock(const struct rig_nv_path *p) {
  const struct rig_nv_clock *c = p->clock;
  if (c == NULL)
    return false;
  switch (c->kind) {
  case RIG_NV_CLOCK_SOURCE:
    return c->read != NULL && c->host != NULL;
  case RIG_NV_CLOCK_REGISTERS:
  case RIG_NV_CLOCK_USERMODE:
    return c->load != NULL || c->mapped != NULL;
  }
  return false;
}

/* What is refused of a path before any call of it. */
static int check_path(const struct rig_nv_path *p,
                      const struct abi_rm_layout **layout) {
  if (p == NULL || p->size != sizeof *p)
    return why(RIG_NV_INVALID, "make: not a path of this version");
  int release = p->rm.release;
  *layout = abi_rm_layout(release);
  if (*layout == NULL)
    return why(RIG_NV_REFUSED,
               "make: release %d of the resource manager: the layouts of 570, "
               "580 and 610 alone are known",
               release);
  const struct rig_nv_gpu *g = &p->gpu;
  if (!abi_class_known(ABI_CHANNEL_CLASS, g->channel_class))
    return why(RIG_NV_REFUSED, "make: channel class 0x%x is not supported",
               g->channel_class);
  if (!abi_class_known(ABI_COMPUTE_CLASS, g->compute_class))
    return why(RIG_NV_REFUSED, "make: compute class 0x%x is not supported",
               g->compute_class);
  if (!abi_class_known(ABI_COPY_CLASS, g->copy_class))
    return why(RIG_NV_REFUSED, "make: copy class 0x%x is not supported",
               g->copy_class);
  if (!has_clock(p))
    return why(RIG_NV_REFUSED, "make: the path has no clock that can be read");
  return 0;
}

static void state_facts(struct rig_nv *d) {
  const struct rig_nv_path *p = d->path;
  struct rig_nv_gpu *g = &d->rings.gpu;
  *g = p->gpu;
  g->local_window = RIG_NV_WINDOWS;
  g->shared_window = RIG_NV_WINDOWS + (UINT64_C(4) << 30);
  abi_arch(g->sm_version, d->arch);
  d->facts = (struct rig_facts){.arch = d->arch,
                                .queues = {"COMPUTE:0", "COPY:0"},
                                .bus = p->bus,
                                .copy_engine = RIG_COPY0,
                                .budget = p->budget,
                                .waits = 1u << RIG_WAIT_WORD,
                                .most_waits = RING_MOST_WAITS,
                                .maps_host = p->map_host != NULL,
                                .hang_ms = p->hang_ms,
                                .cache_bytes = p->cache_bytes,
                                .alignment = PAGE,
                                .edge = d,
                                .key = p->key,
                                .capability = g};
}

/* The word in the caller's array, if it lies there and the path maps it. */
static int map_word(struct rig_nv *d, const struct rig_nv_options *o) {
  uintptr_t base = (uintptr_t)o->words, word = (uintptr_t)o->word;
  uintptr_t end = base + o->words_bytes;
  if (d->path->map_host == NULL || base == 0 || word < base || word >= end ||
      end - word < sizeof *o->word)
    return 0;
  uintptr_t chunk = base + (word - base) / CHUNK * CHUNK;
  uint64_t n = end - chunk < CHUNK ? end - chunk : CHUNK;
  enum rig_mapping mapping;
  int e = path_map_host(d->path, (void *)chunk, n, &mapping, &d->word_map);
  if (e != 0)
    return e;
  d->facts.word = o->word;
  d->facts.word_gpu = d->word_map.address + (word - chunk);
  return 0;
}

static int make_word(struct rig_nv *d, const struct rig_nv_options *o,
                     uint64_t *start) {
  /* Partner: whoever raised the caller's word last. */
  *start = o->word ? shared_load_acquire_64(o->word) : 0;
  int e = map_word(d, o);
  if (e == 0 && d->facts.word == NULL) {
    e = region_make(d, RIG_PINNED, PAGE, &d->own_word);
    if (e != 0)
      return e;
    d->own_word->own_word = true;
    d->facts.own_word = d->own_word;
    d->facts.word = d->own_word->memory.host;
    d->facts.word_gpu = d->own_word->memory.address;
    *d->facts.word = *start;
  }
  d->rings.word = (const uint64_t *)d->facts.word;
  d->rings.word_gpu = d->facts.word_gpu;
  return e;
}

static int make_joins(struct rig_nv *d, uint64_t start) {
  int e = path_alloc(d->path, RIG_PINNED, PAGE, 0, &d->joins);
  if (e != 0)
    return e;
  unsigned char *page = d->joins.host;
  memset(page, 0, PAGE);
  for (int q = 0; q < QUEUES; q++) {
    /* A line each: the channels write them at the same time. */
    memcpy(page + q * LINE, &start, sizeof start);
    d->rings.join_gpu[q] = d->joins.address + (uint64_t)q * LINE;
  }
  return 0;
}

static int make_rings(struct rig_nv *d, const struct device_sizes *s,
                      const struct rig_nv_options *o, uint64_t start) {
  struct mark *marks =
      device_host_alloc(&d->host, LINE, s->in_flight * sizeof *marks);
  if (marks == NULL)
    return -RIG_NV_HOST_MEMORY;
  struct cursor c = {.v = start,
                     .joins = s->start_joins,
                     .entries = {s->start_entries, s->start_entries},
                     .units = {s->start_units, s->start_units},
                     .launch = s->start_launch,
                     .released_by = NOBODY,
                     .freed_entries = {s->start_entries, s->start_entries},
                     .freed_units = {s->start_units, s->start_units},
                     .freed_launch = s->start_launch,
                     .owes = (1u << QUEUES) - 1};
  rings_init(&d->rings, marks, s->in_flight, &c);
  d->rings.doorbell = d->path->doorbell;
  d->rings.flush = d->flush.word = d->path->flush;
  const struct growth_sizes sizes = {
      .entries = {s->entries, s->entries},
      .segment_bytes = {s->segment_bytes, s->segment_bytes},
      .launch_bytes = s->launch_bytes};
  d->growth.path = d->path;
  d->growth.layout = d->layout;
  d->growth.host = d->host;
  d->growth.at =
      places_of(d->path, &(struct places){o->userd_at, o->ring_at,
                                          o->segment_at, o->launch_at});
  return growth_open(&d->growth, &d->rings, &sizes);
}

static int start_channels(struct rig_nv *d, bool boost) {
  struct rig_nv_reply reply = {0};
  int e = growth_schedule(&d->growth);
  if (e != 0 || !boost)
    return e;
  if (!d->path->rm.boost(d->path->ctx, d->path->subdevice, &reply))
    return path_error("boost", &reply);
  return 0;
}

/* A failed make: everything goes back in reverse, and `e`'s reason grows by
 * what stays. A fault of the path is a refusal here: there is no device yet
 * that could be lost. */
static int unmake(struct rig_nv *d, int e) {
  struct rig_nv_reply stays = {0};
  char reason[TEXT];
  struct rig_nv_allocator host = d->host;
  snprintf(reason, sizeof reason, "%s", rig_nv_why());
  bool gone = growth_end(&d->growth, &stays);
  bool fault = growth_free(&d->growth, gone, true) != 0;
  if (d->own_word)
    fault |= region_end(d->own_word) != 0;
  fault |= path_free(d->path, &d->word_map) != 0;
  fault |= path_free(d->path, &d->joins) != 0;
  if (d->rings.marks.at)
    host.release(host.ctx, d->rings.marks.at,
                 d->rings.marks.n * sizeof *d->rings.marks.at);
  char last[TEXT];
  snprintf(last, sizeof last, "%s", fault ? rig_nv_why() : "");
  images_unmake(d);
  local_unmake(d);
  host.release(host.ctx, d, sizeof *d);
  enum rig_nv_error error =
      e == -RIG_NV_FAULT ? RIG_NV_REFUSED : (enum rig_nv_error) - e;
  return why(error, "%s%s%s%s%s", reason,
             stays.text[0] == 0 ? ""
             : gone             ? "; its debugger stays: "
                                : "; its channels, and the memory they name, "
                                  "stay: ",
             stays.text, fault ? "; memory stays: " : "", last);
}

static uint64_t now(void *ctx) {
  (void)ctx;
  return device_now();
}

/* In the order of the memory's lives; unmake undoes it from anywhere. */
static int make_all(struct rig_nv *d, const struct rig_nv_options *o,
                    const struct device_sizes *s) {
  uint64_t start;
  int e = local_make(d);
  if (e == 0)
    e = images_make(d);
  if (e == 0)
    e = make_word(d, o, &start);
  if (e == 0)
    e = make_joins(d, s->start_joins);
  if (e == 0)
    e = make_rings(d, s, o, start);
  if (e == 0)
    e = start_channels(d, o->boost);
  if (e == 0)
    e = clock_open(&d->clock, d->path->clock, now, NULL);
  return e;
}

static const struct rig_edge edge = {.room = rig_nv_room,
                                     .submit = rig_nv_submit,
                                     .commit = rig_nv_commit,
                                     .settle = rig_nv_settle};

static bool power_of_two(uint32_t n) { return n != 0 && (n & (n - 1)) == 0; }

static int check_sizes(const struct device_sizes *s) {
  if (!power_of_two(s->entries) || s->entries < 2 ||
      !power_of_two(s->segment_bytes) || s->segment_bytes < RING_UNIT ||
      (s->launch_bytes != 0 &&
       (!power_of_two(s->launch_bytes) || s->launch_bytes < LAUNCH_UNIT)) ||
      !power_of_two(s->in_flight) || s->in_flight < 2 ||
      s->start_entries % s->entries != 0)
    return why(RIG_NV_INVALID, "make: sizes of rings that no device has");
  return 0;
}

int device_make_sized(const struct rig_nv_path *path,
                      const struct rig_nv_options *options,
                      const struct device_sizes *sizes,
                      struct rig_nv **device) {
  static const struct rig_nv_allocator standard = {default_alloc,
                                                   default_release, NULL};
  struct rig_nv_options defaults;
  const struct abi_rm_layout *layout = NULL;
  if (options == NULL) {
    rig_nv_options_init(&defaults);
    options = &defaults;
  }
  int e = rig_nv_lock_idle();
  if (e == 0)
    e = check_options(options);
  if (e == 0)
    e = check_sizes(sizes);
  if (e == 0)
    e = check_path(path, &layout);
  if (e != 0)
    return e;
  const struct rig_nv_allocator *host =
      options->allocator ? options->allocator : &standard;
  struct rig_nv *d =
      device_host_alloc(host, _Alignof(struct rig_nv), sizeof *d);
  if (d == NULL)
    return -RIG_NV_HOST_MEMORY;
  ring_rcu_register(); /* so that this thread's first submission does not */
  d->host = *host;
  d->edge = &edge;
  d->path = path;
  d->layout = layout;
  d->mode = options->mode;
  state_facts(d);
  e = make_all(d, options, sizes);
  if (e != 0)
    return unmake(d, e);
  *device = d;
  return 0;
}

int rig_nv_make(const struct rig_nv_path *path,
                const struct rig_nv_options *options, struct rig_nv **device) {
  struct device_sizes sizes;
  device_sizes_init(&sizes);
  return device_make_sized(path, options, &sizes, device);
}
