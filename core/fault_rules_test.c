/* SPDX-License-Identifier: ISC */
/*
 * Rules on faults: what a failed free keeps, what a fault loses and who says
 * so. One row a rule.
 */
#include "core/rules_bed.h"

/* ---- what a failed free keeps ---- */

struct scene {
  struct bed b;
  struct rig_nv_region *r;
  uint64_t v; /* reached */
};

static void make_scene(struct scene *s, int personality) {
  open_bed(&s->b, personality);
  s->r = bed_region(&s->b, PAGE);
  s->v = submit_nothing(s->b.d);
  DONE(rig_nv_wait(s->b.d, s->v, UINT64_MAX));
}

/* Has r wait for a value, which is reached then. */
static void defer(struct scene *s) {
  model_stall(s->b.model, true);
  s->v = submit_nothing(s->b.d);
  DONE(rig_nv_free_after(s->b.d, s->r, s->v));
  model_stall(s->b.model, false);
  read_until(s->b.d, s->v);
}

static int by_free(struct scene *s) {
  fail_in(&s->b, 1, RIG_NV_DENIED);
  return rig_nv_free(s->b.d, s->r);
}

static int by_free_after(struct scene *s) {
  fail_in(&s->b, 1, RIG_NV_FAULTED);
  return rig_nv_free_after(s->b.d, s->r, s->v);
}

static int by_next_free_after(struct scene *s) {
  struct rig_nv_region *next = bed_region(&s->b, PAGE);
  defer(s);
  fail_in(&s->b, 1, RIG_NV_FAULTED);
  return rig_nv_free_after(s->b.d, next, s->v + 1); /* which waits */
}

static int by_alloc(struct scene *s) {
  struct rig_nv_region *none = NULL;
  defer(s);
  fail_in(&s->b, 1, RIG_NV_FAULTED);
  int e = rig_nv_alloc(s->b.d, RIG_DEVICE, PAGE, &none);
  assert_null(none);
  return e;
}

static int by_local(struct scene *s) {
  DONE(rig_nv_free(s->b.d, s->r));
  DONE(rig_nv_local(s->b.d, 576, NULL));
  DONE(rig_nv_local(s->b.d, 1024, NULL));
  DONE(rig_nv_wait(s->b.d, submit_nothing(s->b.d), UINT64_MAX));
  fail_in(&s->b, 1, RIG_NV_FAULTED);
  return rig_nv_local(s->b.d, 4096, NULL);
}

static int by_stop(struct scene *s) {
  unsigned calls = s->b.is == MODEL_PATH_KERNEL ? 4 : 2;
  DONE(rig_nv_free(s->b.d, s->r));
  fail_in(&s->b, calls + 1, RIG_NV_FAULTED);
  return rig_nv_stop(s->b.d, NULL);
}

static int by_release(struct scene *s) {
  defer(s);
  DONE(rig_nv_stop(s->b.d, NULL));
  fail_in(&s->b, 1, RIG_NV_FAULTED);
  return rig_nv_release(s->b.d);
}

static int by_release_of_word(struct scene *s) {
  DONE(rig_nv_free(s->b.d, s->r));
  DONE(rig_nv_stop(s->b.d, NULL));
  fail_in(&s->b, 1, RIG_NV_FAULTED);
  return rig_nv_release(s->b.d);
}

static int (*const freers[])(struct scene *) = {
    by_free,  by_free_after, by_next_free_after, by_alloc,
    by_local, by_stop,       by_release,         by_release_of_word};

/* It keeps that memory and no other, and its call says FAULT, stop's too. */
static void failed_free_keeps(int personality) {
  for (size_t i = 0; i < COUNT(freers); i++) {
    struct scene s;
    struct model_counts c;
    make_scene(&s, personality);
    EXPECT(freers[i](&s), RIG_NV_FAULT, FREE_FAILED);
    assert_string_equal(s.b.f.failed, "path_free");
    if (s.b.live != 0) { /* not yet released */
      DONE(rig_nv_stop(s.b.d, NULL));
      DONE(rig_nv_release(s.b.d));
    }
    model_counts(s.b.model, &c);
    assert_int_equal(c.memories, 1);
    assert_int_equal(sweep(&s.b), personality == KERNEL ? 1 : 3);
  }
}

/* A call that fails for another reason says that one, and what stays. */
static void other_reason_first(int personality) {
  struct bed b;
  struct rig_nv_region *none = NULL;
  open_bed(&b, personality);
  b.f.misplace = true;
  fail_in(&b, 2, RIG_NV_FAULTED);
  assert_int_equal(rig_nv_alloc(b.d, RIG_PINNED, PAGE, &none), -RIG_NV_REFUSED);
  assert_non_null(strstr(rig_nv_why(), "above the addresses that rings and "
                                       "semaphores can have; it stays "
                                       "allocated: path_free failed on "
                                       "purpose"));
  b.f.misplace = false;
  DONE(rig_nv_stop(b.d, NULL));
  DONE(rig_nv_release(b.d));
  assert_int_equal(sweep(&b), personality == KERNEL ? 1 : 3);
}

/* ---- loss ---- */

/* The devices of a loss, and all that the calls need. */
struct loss {
  struct bed b, far; /* far: another GPU */
  struct rig_nv_region *r, *of_far;
  struct laid l;
  struct file cubin;
  void *host;
  uint64_t v; /* the last value; the model is stalled, so it is not reached */
};

static void open_loss(struct loss *k, int personality) {
  bed_options(&k->b, personality, 0x900);
  k->b.o.hang_ms = 400;
  bed_make(&k->b);
  open_bed(&k->far, personality);
  k->r = bed_region(&k->b, PAGE);
  k->of_far = bed_region(&k->far, PAGE);
  k->cubin = file_read("add_sm90");
  k->l = lay_bytes(&k->b, &k->cubin);
  k->host = aligned_alloc(PAGE, PAGE);
  assert_non_null(k->host);
  memset(k->host, 0, PAGE);
  k->v = submit_nothing(k->b.d);
  DONE(rig_nv_wait(k->b.d, k->v, UINT64_MAX));
  model_stall(k->b.model, true);
}

static void stall(struct loss *k) { k->v = submit_nothing(k->b.d); }

static int do_alloc(struct loss *k) {
  struct rig_nv_region *none;
  return rig_nv_alloc(k->b.d, RIG_DEVICE, PAGE, &none);
}

static int do_map_host(struct loss *k) {
  enum rig_mapping mapping;
  struct rig_nv_region *none;
  return rig_nv_map_host(k->b.d, k->host, PAGE, &mapping, &none);
}

static int do_map_peer(struct loss *k) {
  enum rig_mapping mapping;
  struct rig_nv_region *none;
  return rig_nv_map_peer(k->b.d, k->far.d, k->of_far, &mapping, &none);
}

static int do_free(struct loss *k) {
  struct rig_nv_region *r = k->r;
  k->r = NULL;
  return rig_nv_free(k->b.d, r);
}

static int do_dma(struct loss *k) {
  struct rig_dma dma;
  return rig_nv_dma(k->b.d, k->r, "0000:41:00.0", &dma);
}

static int do_local(struct loss *k) { return rig_nv_local(k->b.d, 4096, NULL); }

static int do_entry(struct loss *k) {
  struct rig_nv_function e;
  uint64_t need;
  return rig_nv_entry(k->l.image, "add", &e, &need);
}

static int do_load(struct loss *k) {
  struct rig_nv_image *none;
  uint64_t n;
  return rig_nv_image_load(k->b.d, k->cubin.bytes, k->cubin.n, &n, &none);
}

static int do_lay(struct loss *k) {
  return rig_nv_image_lay(k->l.image, k->l.region, k->l.code);
}

static int do_upload(struct loss *k) {
  return rig_nv_upload(k->b.d, k->r, 0, k->host, PAGE);
}

static int do_download(struct loss *k) {
  return rig_nv_download(k->b.d, k->r, 0, k->host, PAGE);
}

static int do_sleep(struct loss *k) {
  return rig_nv_sleep(k->b.d, rig_nv_signaled(k->b.d), 60000);
}

static int do_wait(struct loss *k) {
  stall(k);
  return rig_nv_wait(k->b.d, k->v, UINT64_MAX);
}

static int do_wait_notified(struct loss *k) {
  stall(k);
  notify(k->b.d, RIG_COPY0, 31);
  return rig_nv_wait(k->b.d, k->v, UINT64_MAX);
}

static int do_hang(struct loss *k) {
  k->b.f.fail_at = 0;
  stall(k);
  return rig_nv_wait(k->b.d, k->v, UINT64_MAX);
}

/* Calls whose first call of the path fails, and what they say. */
static const struct {
  const char *name;
  int (*call)(struct loss *);
  int error;
  const char *cause;
} losers[] = {
    {"alloc", do_alloc, RIG_NV_FAULT,
     "Device memory: path_alloc failed on purpose"},
    {"map_host", do_map_host, RIG_NV_FAULT,
     "map_host: path_map_host failed on purpose"},
    {"map_peer", do_map_peer, RIG_NV_FAULT,
     "map_peer: path_map_peer failed on purpose"},
    {"free", do_free, RIG_NV_FAULT, FREE_FAILED},
    {"dma", do_dma, RIG_NV_FAULT, "dma: path_dma failed on purpose"},
    {"local", do_local, RIG_NV_FAULT,
     "Device memory: path_alloc failed on purpose"},
    {"entry", do_entry, RIG_NV_FAULT,
     "Device memory: path_alloc failed on purpose"},
    {"upload", do_upload, RIG_NV_FAULT,
     "Pinned memory: path_alloc failed on purpose"},
    {"download", do_download, RIG_NV_FAULT,
     "Pinned memory: path_alloc failed on purpose"},
    {"sleep", do_sleep, RIG_NV_FAULT, "path_check failed on purpose"},
    {"wait", do_wait, RIG_NV_FAULT, "path_check failed on purpose"},
    {"wait, a notifier", do_wait_notified, RIG_NV_FAULT,
     "path_check failed on purpose"},
    {"wait, too long", do_hang, RIG_NV_STALLED, "no progress for 400 ms"},
};

/* Calls that a lost device refuses, asking the path nothing. */
static const struct {
  const char *name;
  int (*call)(struct loss *);
} refused[] = {
    {"alloc", do_alloc},       {"map_host", do_map_host},
    {"map_peer", do_map_peer}, {"dma", do_dma},
    {"local", do_local},       {"entry", do_entry},
    {"load", do_load},         {"lay", do_lay},
    {"upload", do_upload},     {"download", do_download},
    {"wait", do_wait},
};

static void end_loss(struct loss *k) {
  model_stall(k->b.model, false);
  read_until(k->b.d, k->v);
  DONE(rig_nv_wait(k->b.d, k->v, 0)); /* reached is reached */
  DONE(rig_nv_unload(k->b.d, k->l.image));
  DONE(rig_nv_free(k->b.d, k->l.region));
  if (k->r)
    DONE(rig_nv_free(k->b.d, k->r));
  DONE(rig_nv_stop(k->b.d, rig_nv_why()));
  assert_int_equal(rig_nv_signaled(k->b.d), k->v);
  DONE(rig_nv_release(k->b.d));
  (void)sweep(&k->b);
  DONE(rig_nv_free(k->far.d, k->of_far));
  finish(&k->far);
  free(k->l.code);
  free(k->cubin.bytes);
  free(k->host);
}

static void all_refused(struct loss *k, const char *cause) {
  for (size_t i = 0; i < COUNT(refused); i++) {
    unsigned calls = k->b.f.calls, live = k->b.live;
    int e = refused[i].call(k);
    if (e != -RIG_NV_LOST || strcmp(rig_nv_why(), cause) != 0)
      fail_msg("%s: %d, %s", refused[i].name, e, rig_nv_why());
    assert_int_equal(k->b.f.calls, calls);
    assert_int_equal(k->b.live, live);
  }
}

/* The first fault of any call loses the device, once and for all. */
static void first_cause_stays(int personality) {
  for (size_t i = 0; i < COUNT(losers); i++) {
    struct loss k;
    struct rig_nv_region *r;
    memset(&k, 0, sizeof k);
    open_loss(&k, personality);
    fail_in(&k.b, 1, RIG_NV_FAULTED);
    int e = losers[i].call(&k);
    if (e != -losers[i].error || strcmp(rig_nv_why(), losers[i].cause) != 0)
      fail_msg("%s: %d, %s", losers[i].name, e, rig_nv_why());
    if (k.r == NULL) /* what a refused call is asked about */
      k.r = k.l.region;
    all_refused(&k, losers[i].cause);
    if (k.r == k.l.region)
      k.r = NULL;
    unsigned calls = k.b.f.calls;
    if (losers[i].error == RIG_NV_FAULT) {
      EXPECT(do_sleep(&k), RIG_NV_FAULT, losers[i].cause);
      assert_int_equal(k.b.f.calls, calls);
    } else { /* no fault: it asks and sleeps on */
      DONE(rig_nv_sleep(k.b.d, rig_nv_signaled(k.b.d), 1));
    }
    /* A later fault is its own call's, and not the cause. */
    if ((r = k.r) != NULL) {
      k.r = NULL;
      fail_in(&k.b, 1, RIG_NV_DENIED);
      EXPECT(rig_nv_free(k.b.d, r), RIG_NV_FAULT, FREE_FAILED);
      EXPECT(do_alloc(&k), RIG_NV_LOST, losers[i].cause);
    }
    stall(&k); /* room and submit go on */
    end_loss(&k);
  }
}

/* What is no fault loses nothing. */
static const struct {
  const char *name;
  int (*call)(struct loss *);
  enum rig_nv_answer answer;
  int error;
} keepers[] = {
    {"alloc, lacking", do_alloc, RIG_NV_LACKING, RIG_NV_NO_MEMORY},
    {"alloc, denied", do_alloc, RIG_NV_DENIED, RIG_NV_REFUSED},
    {"alloc, wrong", do_alloc, RIG_NV_WRONG, RIG_NV_INVALID},
    {"dma, denied", do_dma, RIG_NV_DENIED, RIG_NV_REFUSED},
    {"entry, lacking", do_entry, RIG_NV_LACKING, RIG_NV_SHORT},
    {"map_host, denied", do_map_host, RIG_NV_DENIED, RIG_NV_REFUSED},
};

static void refusal_loses_nothing(int personality) {
  for (size_t i = 0; i < COUNT(keepers); i++) {
    struct loss k;
    struct rig_nv_region *r = NULL;
    memset(&k, 0, sizeof k);
    open_loss(&k, personality);
    fail_in(&k.b, 1, keepers[i].answer);
    int e = keepers[i].call(&k);
    if (e != -keepers[i].error)
      fail_msg("%s: %d, %s", keepers[i].name, e, rig_nv_why());
    DONE(rig_nv_alloc(k.b.d, RIG_DEVICE, PAGE, &r));
    DONE(rig_nv_free(k.b.d, r));
    end_loss(&k);
  }
}

/* A post says LOST, whatever latched the mode, and a submit goes on. */
static void lost_post(int personality) {
  for (int posted = 0; posted <= 1; posted++) {
    struct bed b;
    struct rig_submission s = {0};
    struct rig_nv_region *none;
    uint64_t v = 0;
    open_bed(&b, personality);
    if (posted)
      DONE(rig_nv_post(b.d, &s, &v));
    fail_in(&b, 1, RIG_NV_FAULTED);
    assert_int_equal(rig_nv_alloc(b.d, RIG_DEVICE, 4, &none), -RIG_NV_FAULT);
    EXPECT(rig_nv_post(b.d, &s, &v), RIG_NV_LOST,
           "Device memory: path_alloc failed on purpose");
    EXPECT(rig_nv_post_wait(b.d, &s, UINT64_MAX, &v), RIG_NV_LOST,
           "Device memory: path_alloc failed on purpose");
    assert_int_equal(rings_last(&b.d->rings), posted);
    if (!posted) {
      read_until(b.d, submit_nothing(b.d));
      EXPECT(rig_nv_post(b.d, &s, &v), RIG_NV_LOST,
             "Device memory: path_alloc failed on purpose");
    }
    finish(&b);
  }
}

struct sleeper {
  struct bed *b;
  pthread_t thread;
  bool sleeps;
  int e;
  char why[256];
};

static void *sleep_or_wait(void *arg) {
  struct sleeper *s = arg;
  s->e = s->sleeps ? rig_nv_sleep(s->b->d, 0, 60000)
                   : rig_nv_wait(s->b->d, 1, UINT64_MAX);
  snprintf(s->why, sizeof s->why, "%s", rig_nv_why());
  return NULL;
}

/* Those that wait when another call loses the device do not wait on. */
static void loss_ends_waits(int personality) {
  struct bed b;
  struct sleeper all[4];
  struct rig_nv_region *none;
  bed_options(&b, personality, 0x900);
  bed_make(&b);
  model_stall(b.model, true);
  uint64_t start = device_now();
  assert_int_equal(submit_nothing(b.d), 1);
  unsigned calls = b.f.calls;
  for (size_t i = 0; i < COUNT(all); i++) {
    all[i] = (struct sleeper){.b = &b, .sleeps = i == 0};
    SURE(pthread_create(&all[i].thread, NULL, sleep_or_wait, &all[i]) == 0);
  }
  while (ck_pr_load_uint(&b.f.calls) < calls + COUNT(all)) /* their checks */
    device_nap(100000);
  b.f.answer = RIG_NV_FAULTED;
  ck_pr_store_uint(&b.f.fail_at, ck_pr_load_uint(&b.f.calls) + 1);
  assert_int_equal(rig_nv_alloc(b.d, RIG_DEVICE, 4, &none), -RIG_NV_FAULT);
  for (size_t i = 0; i < COUNT(all); i++) {
    SURE(pthread_join(all[i].thread, NULL) == 0);
    assert_int_equal(all[i].e, all[i].sleeps ? -RIG_NV_FAULT : -RIG_NV_LOST);
    assert_string_equal(all[i].why,
                        "Device memory: path_alloc failed on purpose");
  }
  assert_in_range(device_now() - start, 0, UINT64_C(20000) * MS);
  model_stall(b.model, false);
  finish(&b);
}

/* ---- views of a lost device ---- */

/* What a peer answers was learned as the devices opened. */
static void peer_once_lost(int personality) {
  struct loss k;
  memset(&k, 0, sizeof k);
  open_loss(&k, personality);
  bool to = rig_nv_peer(k.b.d, k.far.d), from = rig_nv_peer(k.far.d, k.b.d);
  assert_true(to && from);
  fail_in(&k.b, 1, RIG_NV_FAULTED);
  assert_int_equal(do_alloc(&k), -RIG_NV_FAULT);
  unsigned calls = k.b.f.calls;
  assert_int_equal(rig_nv_peer(k.b.d, k.far.d), to);
  assert_int_equal(rig_nv_peer(k.far.d, k.b.d), from);
  assert_int_equal(k.b.f.calls, calls);
  end_loss(&k);
}

static const struct rule rules[] = {
    {"A path's free that fails keeps the memory it was given, and the call "
     "that freed raises its Fault.",
     failed_free_keeps},
    {"A call that fails for another reason reports that failure in the "
     "Fault's place.",
     other_reason_first},
    {"Any counted call may raise Fault, which loses the device: the first "
     "cause stays.",
     first_cause_stays},
    {"A refusal is the call's result, and loses nothing.",
     refusal_loses_nothing},
    {"A lost device takes no post.", lost_post},
    {"A loss ends the waits of other threads.", loss_ends_waits},
    {"peer must return its result also once either is lost.", peer_once_lost},
};

static void test_rules(void **state) {
  (void)state;
  run_rules(rules, COUNT(rules));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
