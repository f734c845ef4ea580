/* SPDX-License-Identifier: ISC */
/*
 * Growing a device's rings, in both personalities: what each answer is, that
 * parts fit and run afterwards, when what was replaced goes back, and that
 * nothing is lost where a call of the path fails.
 */
#include <pthread.h>

#include "core/test_bed.h"

enum { ENTRIES = 200, COPIES = 300 };

/* Submissions that the rings of test_bed do not hold: by entries of COPY, by
 * words of COPY. All that they do is to release words of `words`. */
struct world {
  const struct rig_nv_path *model;
  struct failing_path f;
  struct rig_nv *d;
  struct rig_nv_region *words; /* Pinned: a segment; from WORD on, words */
  uint32_t entries[2 * ENTRIES];
  struct rig_part copies[COPIES], entry_part;
  struct rig_submission by_entries, by_words, small;
};

enum { WORD = 2048 };

static void parts(struct world *w) {
  unsigned char *host = w->words->memory.host;
  uint64_t at = w->words->memory.address, e;
  int n = rig_nv_release_word((uint32_t *)(void *)host, at + WORD, 7);
  assert_int_equal(rig_nv_gpfifo_entry(at, (uint64_t)n, &e), 0);
  for (int i = 0; i < ENTRIES; i++)
    memcpy(&w->entries[2 * i], &e, sizeof e);
  w->entry_part = rig_part_words(RIG_COPY0, w->entries, 2 * ENTRIES);
  for (int i = 0; i < COPIES; i++)
    w->copies[i] = rig_part_copy(at + WORD + 8 * (i + 1u), at + WORD, 8);
  w->by_entries = (struct rig_submission){.parts = &w->entry_part, .nparts = 1};
  w->by_words = (struct rig_submission){.parts = w->copies, .nparts = COPIES};
}

static void begin(struct world *w, int personality) {
  memset(w, 0, sizeof *w);
  w->model = open_model(personality);
  failing_path_init(&w->f, w->model);
  w->d = make(&w->f.path, NULL);
  w->words = alloc(w->d, RIG_PINNED, 8192);
  memset(w->words->memory.host, 0, 8192);
  parts(w);
}

static void finish(struct world *w) {
  assert_int_equal(rig_nv_free(w->d, w->words), 0);
  end(w->d);
  nothing_left(w->model, "the end");
  close_path(w->model);
}

static uint64_t *word(const struct world *w, int i) {
  return (uint64_t *)(void *)((char *)w->words->memory.host + WORD) + i;
}

/* Both submissions, in values of their own, and what they did. */
static void run_both(struct world *w) {
  memset(word(w, 0), 0, 8192 - WORD);
  reached(w->d, submit(w->d, &w->by_entries));
  assert_int_equal(*word(w, 0), 7);
  reached(w->d, submit(w->d, &w->by_words));
  for (int i = 1; i <= COPIES; i++)
    assert_int_equal(*word(w, i), 7);
}

static void grow(struct rig_nv *d) {
  uint64_t bytes = 0;
  if (rig_nv_grow(d, &bytes) != 0)
    fail_msg("grow: %s", rig_nv_why());
}

static struct model_counts counts(const struct world *w) {
  struct model_counts c;
  model_counts(w->model, &c);
  return c;
}

static void give_back(struct world *w) {
  struct rig_nv_region *r = alloc(w->d, RIG_PINNED, 4);
  assert_int_equal(rig_nv_free(w->d, r), 0);
}

/* Each kind of growth from a small ring, and no GROW for those parts again. */
static void test_grows(void **state) {
  (void)state;
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++) {
    struct world w;
    begin(&w, personality);
    reached(w.d, submit(w.d, &w.small));
    assert_int_equal(rig_nv_room(w.d, &w.by_words), RIG_GROW);
    grow(w.d);
    const struct ring_generation *g = w.d->rings.newest;
    assert_int_equal(g->id, 1);
    assert_int_equal(g->channel[RIG_COPY0].units * 64, 32768);
    assert_int_equal(g->channel[RIG_COMPUTE0].units * 64, 8192);
    assert_int_equal(g->channel[RIG_COPY0].n, 64);
    assert_int_equal(rig_nv_room(w.d, &w.by_words), RIG_FITS);
    assert_int_equal(rig_nv_room(w.d, &w.by_entries), RIG_GROW);
    grow(w.d);
    g = w.d->rings.newest;
    assert_int_equal(g->id, 2);
    assert_int_equal(g->channel[RIG_COPY0].n, 512);
    assert_int_equal(g->channel[RIG_COMPUTE0].n, 64);
    assert_int_equal(rig_nv_room(w.d, &w.by_entries), RIG_FITS);
    grow(w.d); /* again: there is nothing to make */
    assert_int_equal(w.d->rings.newest->id, 2);
    run_both(&w);
    run_both(&w);
    finish(&w);
  }
}

/* Launch rings grow by a need made by hand, where they were: in the BAR or,
 * as the options had it, on the host. */
static void test_launch_rings(void **state) {
  (void)state;
  for (int at = RIG_NV_AUTO; at <= RIG_NV_HOST; at++) {
    struct rig_nv_options o;
    const struct rig_nv_path *path = open_model(KERNEL);
    rig_nv_options_init(&o);
    o.launch_at = at;
    struct rig_nv *d = make(path, &o);
    const struct ring_need need = {.launch = 5000};
    uint64_t bytes;
    assert_int_equal(growth_grow(&d->growth, &need, &bytes), 0);
    const struct ring_launches *l = &d->rings.newest->launches;
    assert_int_equal(l->units, 16384);
    assert_int_equal(l->born, 1);
    assert_int_equal(l->mapped, at == RIG_NV_AUTO);
    struct rig_submission s = {0};
    reached(d, submit(d, &s));
    end(d);
    nothing_left(path, "launch rings");
    close_path(path);
  }
}

/* A ring that is of the open, then of one growth, then of another. */
static void ring_goes_back(struct world *w, const struct ring_need *need,
                           const struct ring_need *more) {
  uint64_t bytes;
  size_t memories = counts(w).memories;
  /* A ring of the open stays. */
  assert_int_equal(growth_grow(&w->d->growth, need, &bytes), 0);
  reached(w->d, submit(w->d, &w->small));
  give_back(w);
  assert_int_equal(counts(w).memories, memories + 1);
  /* One of a growth: not before a value of the next generation is reached. */
  assert_int_equal(growth_grow(&w->d->growth, more, &bytes), 0);
  give_back(w);
  assert_int_equal(counts(w).memories, memories + 2);
  model_stall(w->model, true);
  uint64_t v = submit(w->d, &w->small);
  give_back(w);
  assert_int_equal(counts(w).memories, memories + 2);
  model_stall(w->model, false);
  reached(w->d, v);
  assert_int_equal(counts(w).memories, memories + 2);
  give_back(w);
  assert_int_equal(counts(w).memories, memories + 1);
}

/* When what was replaced goes back. */
static void test_goes_back(void **state) {
  (void)state;
  static const struct {
    struct ring_need need, more;
  } rings[] = {
      {{.words = {4096, 0}}, {.words = {8193, 0}}},
      {{.words = {0, 4096}}, {.words = {0, 8193}}},
      {{.launch = 5000}, {.launch = 16385}},
  };
  struct world w;
  struct ring_need need;
  uint64_t bytes;
  begin(&w, KERNEL);
  size_t objects = counts(&w).objects;
  for (size_t i = 0; i < sizeof rings / sizeof rings[0]; i++)
    ring_goes_back(&w, &rings[i].need, &rings[i].more);
  size_t memories = counts(&w).memories;
  /* Channels, of the open too; and at a growth. */
  need = (struct ring_need){.entries = {100, 0}};
  assert_int_equal(growth_grow(&w.d->growth, &need, &bytes), 0);
  assert_int_equal(counts(&w).channels, 4);
  give_back(&w);
  assert_int_equal(counts(&w).channels, 4);
  reached(w.d, submit(w.d, &w.small));
  assert_int_equal(growth_grow(&w.d->growth, &need, &bytes), 0); /* none */
  assert_int_equal(counts(&w).channels, 2);
  assert_int_equal(counts(&w).objects, objects);
  assert_int_equal(counts(&w).memories, memories);
  finish(&w);
}

/* Replaced channels of an RM that frees nothing stay until stop. */
static void test_frees_none(void **state) {
  (void)state;
  struct world w;
  uint64_t bytes;
  begin(&w, MODEL_PATH_PCI);
  for (uint64_t n = 64; n < 64 << 4; n *= 2) {
    const struct ring_need need = {.entries = {0, n}};
    assert_int_equal(growth_grow(&w.d->growth, &need, &bytes), 0);
    reached(w.d, submit(w.d, &w.small));
    give_back(&w);
  }
  assert_int_equal(counts(&w).channels, 2 * 5);
  assert_int_equal(rig_nv_grow_for(w.d, &w.by_words, &bytes), 0);
  run_both(&w);
  finish(&w);
}

/* A call that fails: of the growth, or of what was replaced. The device goes
 * on, a later growth makes up for it, and stop gives everything back. */
static bool failing(int personality, enum rig_nv_answer answer, unsigned n) {
  struct world w;
  const struct ring_need first = {.entries = {100, 0},
                                  .words = {4096, 4096},
                                  .launch = 5000},
                         more = {.entries = {0, 300},
                                 .words = {40000, 40000},
                                 .launch = 50000};
  uint64_t bytes = 0;
  begin(&w, personality);
  assert_int_equal(growth_grow(&w.d->growth, &first, &bytes), 0);
  reached(w.d, submit(w.d, &w.small)); /* so that there is much to give back */
  w.f.answer = answer;
  w.f.fail_at = w.f.calls + n;
  int e = growth_grow(&w.d->growth, &more, &bytes);
  w.f.fail_at = 0;
  const char *failed = w.f.failed ? w.f.failed : "nothing";
  bool ends = w.f.failed && (strcmp(failed, "path_free") == 0 ||
                             strcmp(failed, "rm_free") == 0 ||
                             strcmp(failed, "path_unregister") == 0);
  int want = !w.f.failed                        ? 0
             : ends || answer != RIG_NV_LACKING ? -RIG_NV_FAULT
                                                : -RIG_NV_SHORT;
  if (want == -RIG_NV_SHORT && strstr(rig_nv_why(), "Mapped memory"))
    want = 0; /* Pinned memory does */
  if (e != want)
    fail_msg("call %u, %s: %d, not %d: %s", n, failed, e, want, rig_nv_why());
  if (e == -RIG_NV_SHORT)
    assert_true(bytes > 0);
  reached(w.d, submit(w.d, &w.small));
  assert_int_equal(growth_grow(&w.d->growth, &more, &bytes), 0);
  assert_int_equal(growth_grow(&w.d->growth, &first, &bytes), 0);
  run_both(&w);
  give_back(&w);
  assert_int_equal(rig_nv_free(w.d, w.words), 0);
  assert_int_equal(rig_nv_stop(w.d, NULL), 0);
  assert_int_equal(rig_nv_release(w.d), 0);
  bool was = w.f.failed != NULL;
  /* What the path kept as its free failed is nobody's. */
  if (strcmp(failed, "path_free") == 0)
    assert_int_equal(counts(&w).memories, 1);
  else
    nothing_left(w.model, failed);
  if (strcmp(failed, "path_free") != 0)
    close_path(w.model);
  return was;
}

static void test_failing(void **state) {
  (void)state;
  static const enum rig_nv_answer answers[] = {RIG_NV_LACKING, RIG_NV_DENIED,
                                               RIG_NV_FAULTED};
  for (int personality = KERNEL; personality < MODEL_PATHS; personality++)
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
      unsigned n = 1;
      while (failing(personality, answers[i], n))
        n++;
      assert_true(n > 15);
    }
}

/* Short of memory: what was made stays, and the growth goes on from there. */
static void test_short(void **state) {
  (void)state;
  struct world w;
  const struct ring_need need = {
      .entries = {0, 100}, .words = {4096, 0}, .launch = 5000};
  uint64_t bytes = 0;
  begin(&w, KERNEL);
  w.f.answer = RIG_NV_LACKING;
  w.f.fail_at = w.f.calls + 3; /* launches, segments, the block */
  assert_int_equal(growth_grow(&w.d->growth, &need, &bytes), -RIG_NV_SHORT);
  assert_int_equal(bytes, (64 + 256) * 8);
  assert_string_equal(w.f.failed, "path_alloc");
  const struct ring_generation *g = w.d->rings.newest;
  assert_int_equal(g->id, 1);
  assert_int_equal(g->launches.units, 16384);
  assert_int_equal(g->channel[0].units, 512);
  assert_int_equal(g->channel[1].n, 64);
  assert_int_equal(growth_grow(&w.d->growth, &need, &bytes), 0);
  g = w.d->rings.newest;
  assert_int_equal(g->id, 2);
  assert_int_equal(g->launches.born, 1);
  assert_int_equal(g->channel[1].n, 256);
  const struct ring_need endless = {.words = {UINT64_C(1) << 62, 0}};
  assert_int_equal(growth_grow(&w.d->growth, &endless, &bytes), -RIG_NV_SHORT);
  assert_true(bytes == UINT64_MAX);
  assert_int_equal(w.d->rings.newest->id, 2);
  finish(&w);
}

/* A free that fails is raised also where the growth lacks memory; the rest goes
 * back all the same. */
static bool unfreeable;
static bool (*inner_free)(void *, const struct rig_nv_memory *,
                          struct rig_nv_reply *);
static bool fail_free(void *ctx, const struct rig_nv_memory *m,
                      struct rig_nv_reply *reply) {
  if (unfreeable) {
    unfreeable = false;
    return rig_nv_reply_set(reply, RIG_NV_FAULTED, "the first free failed");
  }
  return inner_free(ctx, m, reply);
}

static void test_fault_of_give_back(void **state) {
  (void)state;
  for (int lacks = 0; lacks < 2; lacks++) {
    struct world w;
    struct ring_need need = {.words = {4096, 4096}};
    uint64_t bytes;
    begin(&w, KERNEL);
    inner_free = w.f.path.free;
    w.f.path.free = fail_free;
    for (int i = 0; i < 2; i++) {
      assert_int_equal(growth_grow(&w.d->growth, &need, &bytes), 0);
      for (int q = 0; q < QUEUES; q++)
        need.words[q] = 4 * need.words[q];
    }
    reached(w.d, submit(w.d, &w.small));
    size_t memories = counts(&w).memories;
    unfreeable = true;
    w.f.answer = RIG_NV_LACKING;
    w.f.fail_at = lacks ? w.f.calls + 2 : 0; /* one free is counted */
    EXPECT(growth_grow(&w.d->growth, &need, &bytes), RIG_NV_FAULT,
           "free: the first free failed");
    w.f.fail_at = 0;
    assert_int_equal(counts(&w).memories, memories - 1 + (lacks ? 0 : 2));
    assert_int_equal(growth_grow(&w.d->growth, &need, &bytes), 0);
    assert_int_equal(rig_nv_free(w.d, w.words), 0);
    end(w.d);
    assert_int_equal(counts(&w).memories, 1);
  }
}

/* ---- the calls ---- */

struct other {
  struct world *w;
  int answer;
};

static void *on_other_thread(void *arg) {
  struct other *o = arg;
  uint64_t bytes;
  o->answer = rig_nv_grow(o->w->d, &bytes);
  return NULL;
}

static const char none[] =
    "grow: the last RIG_GROW on this thread, if any, was "
    "not this device's";

static void test_asks(void **state) {
  (void)state;
  struct world a, b;
  struct other o = {.w = &a};
  pthread_t thread;
  uint64_t bytes;
  begin(&a, KERNEL);
  EXPECT(rig_nv_grow(a.d, &bytes), RIG_NV_INVALID, none);
  assert_int_equal(rig_nv_room(a.d, &a.small), RIG_FITS);
  EXPECT(rig_nv_grow(a.d, &bytes), RIG_NV_INVALID, none);
  assert_int_equal(rig_nv_room(a.d, &a.by_words), RIG_GROW);
  assert_int_equal(pthread_create(&thread, NULL, on_other_thread, &o), 0);
  pthread_join(thread, NULL);
  assert_int_equal(o.answer, -RIG_NV_INVALID);
  begin(&b, KERNEL); /* another device, perhaps where one was before */
  EXPECT(rig_nv_grow(b.d, &bytes), RIG_NV_INVALID, none);
  assert_int_equal(rig_nv_room(b.d, &b.by_words), RIG_GROW);
  EXPECT(rig_nv_grow(a.d, &bytes), RIG_NV_INVALID, none);
  assert_int_equal(rig_nv_room(a.d, &a.small), RIG_FITS);
  grow(b.d); /* an answer of another device, or FITS, changes nothing */
  grow(b.d);
  assert_int_equal(rig_nv_room(b.d, &b.by_words), RIG_FITS);
  assert_int_equal(rig_nv_room(a.d, &a.by_words), RIG_GROW);
  assert_int_equal(rig_nv_room(a.d, &a.by_entries), RIG_GROW);
  grow(a.d); /* the last */
  assert_int_equal(rig_nv_room(a.d, &a.by_entries), RIG_FITS);
  assert_int_equal(rig_nv_room(a.d, &a.by_words), RIG_GROW);
  finish(&b);
  finish(&a);
}

static void test_grow_for(void **state) {
  (void)state;
  struct world w;
  uint64_t bytes;
  begin(&w, KERNEL);
  struct rig_part odd = rig_part_words(RIG_COPY0, w.entries, 3),
                  most = rig_part_words(RIG_COPY0, w.entries, UINT32_MAX - 3);
  struct rig_submission never = {.parts = &odd, .nparts = 1},
                        large = {.parts = &most, .nparts = 1};
  EXPECT(rig_nv_grow_for(w.d, &never, &bytes), RIG_NV_NEVER,
         "grow: a part that the device does not run");
  EXPECT(rig_nv_grow_for(w.d, &large, &bytes), RIG_NV_NEVER,
         "grow: more than 2^31 - 1 entries of a ring");
  assert_int_equal(rig_nv_grow_for(w.d, &w.small, &bytes), 0);
  assert_int_equal(w.d->rings.newest->id, 0);
  assert_int_equal(rig_nv_grow_for(w.d, &w.by_words, &bytes), 0);
  assert_int_equal(rig_nv_grow_for(w.d, &w.by_entries, &bytes), 0);
  assert_int_equal(w.d->rings.newest->id, 2);
  /* 2^31 - 9 entries are 16 GiB, which the model has not. */
  most = rig_part_words(RIG_COPY0, w.entries, UINT32_MAX - 7);
  assert_int_equal(rig_nv_grow_for(w.d, &large, &bytes), -RIG_NV_SHORT);
  assert_true(bytes == (UINT64_C(1) << 34) + 64 * 8);
  run_both(&w);
  struct rig_nv_lock lock = RIG_NV_LOCK(&rig_nv_lock_path);
  assert_int_equal(rig_nv_lock_take(&lock), 0);
  assert_int_equal(rig_nv_grow_for(w.d, &w.small, &bytes), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_grow(w.d, &bytes), -RIG_NV_INVALID);
  rig_nv_lock_give(&lock);
  assert_int_equal(rig_nv_free(w.d, w.words), 0);
  assert_int_equal(rig_nv_stop(w.d, NULL), 0);
  EXPECT(rig_nv_grow_for(w.d, &w.small, &bytes), RIG_NV_REFUSED,
         "the device is stopped");
  EXPECT(rig_nv_grow(w.d, &bytes), RIG_NV_REFUSED, "the device is stopped");
  assert_int_equal(rig_nv_release(w.d), 0);
  close_path(w.model);
}

static unsigned allocs;
static bool lack(void *ctx, enum rig_memory kind, uint64_t n, unsigned flags,
                 struct rig_nv_memory *m, struct rig_nv_reply *reply) {
  (void)ctx, (void)kind, (void)flags, (void)m;
  allocs++;
  return rig_nv_reply_set(reply, RIG_NV_LACKING, "no %d bytes", (int)n);
}

static void test_post_grow(void **state) {
  (void)state;
  struct world w;
  uint64_t v = 0;
  begin(&w, KERNEL);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(rig_nv_post_grow(w.d, &w.by_words, soon(), &v), 0);
    assert_int_equal(rig_nv_post_grow(w.d, &w.by_entries, soon(), &v), 0);
    assert_int_equal(v, 2 * (i + 1));
  }
  reached(w.d, v);
  assert_int_equal(*word(&w, COPIES), 7);
  /* Four asks, and no more. */
  bool (*alloc_before)(void *, enum rig_memory, uint64_t, unsigned,
                       struct rig_nv_memory *, struct rig_nv_reply *) =
      w.f.path.alloc;
  w.f.path.alloc = lack;
  allocs = 0;
  struct rig_part many[4 * COPIES];
  for (int i = 0; i < 4 * COPIES; i++)
    many[i] = w.copies[0];
  struct rig_submission large = {.parts = many, .nparts = 4 * COPIES};
  EXPECT(rig_nv_post_grow(w.d, &large, soon(), &v), RIG_NV_NO_MEMORY,
         "post: no memory for the 131072 bytes that its rings need");
  assert_int_equal(allocs, 4); /* and each time one piece */
  w.f.path.alloc = alloc_before;
  assert_int_equal(rig_nv_post_grow(w.d, &large, soon(), &v), 0);
  w.copies[0].after = (const int[]){0};
  w.copies[0].nafter = 1;
  assert_int_equal(rig_nv_post_grow(w.d, &w.by_words, soon(), &v), RIG_NEVER);
  reached(w.d, rings_last(&w.d->rings));
  finish(&w);
}

/* ---- faults ---- */

static void notify(const struct rig_nv *d, const struct channels *c,
                   uint32_t error) {
  unsigned char *n = c->notifier[RIG_COPY0].host;
  shared_store_release_32(
      (uint32_t *)(void *)(n + d->layout->notification.info_32.at), error);
  shared_store_release_32(
      (uint32_t *)(void *)(n + d->layout->notification.info_16.at),
      error ? UINT32_C(0xffff) << 16 : 0);
}

static bool faulted(struct rig_nv *d) {
  int e = device_fault(d, false);
  assert_true(e == 0 || e == -RIG_NV_FAULT);
  assert_true(e == 0 || strstr(rig_nv_why(), "channel error 31"));
  return e != 0;
}

/* Notifiers of every set that lives are looked at. */
static void test_notifiers(void **state) {
  (void)state;
  struct world w;
  begin(&w, KERNEL);
  struct growth_record *first = &w.d->growth.first;
  reached(w.d, submit(w.d, &w.small));
  assert_int_equal(rig_nv_room(w.d, &w.by_entries), RIG_GROW);
  grow(w.d);
  struct growth_record *second = w.d->growth.newest;
  assert_true(second != first);
  struct channels *sets[] = {&first->channels, &second->channels};
  for (int reaches = 0; reaches < 2; reaches++) {
    for (int i = 0; i < 2; i++) { /* before and after a value on the second */
      assert_false(faulted(w.d));
      notify(w.d, sets[i], 31);
      assert_true(faulted(w.d));
      notify(w.d, sets[i], 0);
    }
    reached(w.d, submit(w.d, &w.small));
  }
  give_back(&w);
  assert_int_equal(counts(&w).channels, 2);
  assert_false(faulted(w.d));
  notify(w.d, sets[1], 31);
  assert_true(faulted(w.d));
  notify(w.d, sets[1], 0);
  finish(&w);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_grows),
      cmocka_unit_test(test_launch_rings),
      cmocka_unit_test(test_goes_back),
      cmocka_unit_test(test_frees_none),
      cmocka_unit_test(test_failing),
      cmocka_unit_test(test_short),
      cmocka_unit_test(test_fault_of_give_back),
      cmocka_unit_test(test_asks),
      cmocka_unit_test(test_grow_for),
      cmocka_unit_test(test_post_grow),
      cmocka_unit_test(test_notifiers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
