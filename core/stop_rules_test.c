/* SPDX-License-Identifier: ISC */
/*
 * Rules on stop and on what comes after it: who writes the last value, what
 * goes back, what stays and for how long. One row a rule.
 */
#include "core/rules_bed.h"

/* ---- a device with all that a stop gives back, and all that it does not ----
 */

struct whole {
  struct bed b;
  struct rig_nv_region *r;
  struct laid l;
  unsigned char bytes[PAGE];
  size_t callers; /* memories that stop leaves: r, the code, the word */
  size_t own;     /* memories of the device's own */
  uint64_t v;     /* the last value */
};

/* Stalled, with work in flight. */
static void open_whole(struct whole *w, int personality) {
  memset(w, 0, sizeof *w);
  open_bed(&w->b, personality);
  w->r = bed_region(&w->b, PAGE);
  w->l = lay_file(&w->b, "add_sm90");
  (void)entry_of(&w->l, "add"); /* local memory */
  DONE(rig_nv_local(w->b.d, 4096, NULL));
  memset(w->bytes, 0x5a, sizeof w->bytes);
  DONE(rig_nv_upload(w->b.d, w->r, 0, w->bytes, PAGE)); /* staging */
  w->callers = 3;
  w->own = memories(&w->b) - w->callers;
  assert_true(w->own >= 7);
  model_stall(w->b.model, true);
  for (int i = 0; i < 3; i++)
    w->v = submit_nothing(w->b.d);
}

/* What the caller may do after stop, once the word reads the last value. */
static void end_whole(struct whole *w) {
  unsigned calls = w->b.f.calls;
  DONE(rig_nv_unload(w->b.d, w->l.image));
  assert_int_equal(w->b.f.calls, calls);
  DONE(rig_nv_free(w->b.d, w->l.region));
  DONE(rig_nv_free(w->b.d, w->r));
  assert_int_equal(rig_nv_signaled(w->b.d), w->v);
  DONE(rig_nv_release(w->b.d));
  assert_int_equal(w->b.f.calls, calls + w->callers); /* a free each */
  free(w->l.code);
}

/* ---- stop ---- */

/* Whatever call of it fails, a stop stops, asks the path once, says FAULT for
 * its frees alone, and is not undone or repeated by another. */
static bool stop_fails_at(int personality, unsigned n) {
  struct whole w;
  struct model_counts c;
  open_whole(&w, personality);
  fail_in(&w.b, n, RIG_NV_FAULTED);
  int e = rig_nv_stop(w.b.d, "ignored");
  w.b.f.fail_at = 0;
  const char *failed = w.b.f.failed ? w.b.f.failed : "nothing";
  bool memory = strcmp(failed, "path_free") == 0;
  model_counts(w.b.model, &c);
  bool stay = c.channels != 0 || c.registrations != 0;
  size_t kept = stay ? w.own : memory ? 1 : 0;
  if (e != (memory ? -RIG_NV_FAULT : 0) ||
      (memory && strcmp(rig_nv_why(), FREE_FAILED) != 0) ||
      c.memories != w.callers + kept || w.b.f.stops != 1)
    fail_msg("call %u, %s: %d, %zu memories, %zu of the caller's, %u stops", n,
             failed, e, c.memories, w.callers, w.b.f.stops);
  assert_int_equal(rig_nv_signaled(w.b.d), c.channels != 0 ? w.v - 3 : w.v);
  unsigned calls = w.b.f.calls;
  DONE(rig_nv_stop(w.b.d, NULL));
  EXPECT(rig_nv_local(w.b.d, 4, NULL), RIG_NV_REFUSED, "the device is stopped");
  assert_int_equal(w.b.f.calls, calls);
  assert_int_equal(w.b.f.stops, 1);
  if (c.channels != 0) {
    EXPECT(rig_nv_free(w.b.d, w.b.d->own_word), RIG_NV_INVALID,
           "free: the device's word, before it stopped and the word reached "
           "the last value");
    notify(w.b.d, RIG_COMPUTE0, 43); /* the RM ends what it did not free */
    notify(w.b.d, RIG_COPY0, 43);
    DONE(rig_nv_stop(w.b.d, NULL));
    assert_int_equal(w.b.f.calls, calls);
  }
  end_whole(&w);
  assert_int_equal(memories(&w.b), kept);
  (void)sweep(&w.b);
  return w.b.f.failed != NULL;
}

static void stop_that_fails(int personality) {
  unsigned n = 1;
  while (stop_fails_at(personality, n))
    n++;
  assert_true(n > (personality == KERNEL ? 11 : 9));
}

/* Channels that neither the RM nor the path ends bring the word to its last
 * value; a stop writes it only once the RM stopped both, also a later one. */
static const struct {
  const char *name;
  uint32_t before[QUEUES], after[QUEUES];
  bool first, again;
} lasting[] = {
    {"none", {0, 0}, {0, 0}, false, false},
    {"one, then none", {13, 0}, {13, 0}, false, false},
    {"one, then the other", {13, 0}, {13, 13}, false, true},
    {"none, then one", {0, 0}, {0, 13}, false, false},
    {"none, then both", {0, 0}, {31, 31}, false, true},
    {"both", {13, 13}, {13, 13}, true, true},
};

static void notify_both(struct rig_nv *d, const uint32_t errors[QUEUES]) {
  for (int q = 0; q < QUEUES; q++)
    notify(d, q, errors[q]);
}

static void last_value_by_its_writers(int personality) {
  if (personality != KERNEL)
    return; /* its stop ends them: stop_that_fails */
  for (size_t i = 0; i < COUNT(lasting); i++) {
    struct whole w;
    open_whole(&w, personality);
    notify_both(w.b.d, lasting[i].before);
    fail_in(&w.b, 1, RIG_NV_FAULTED); /* an unregister */
    w.b.f.also_at = w.b.f.calls + 4;  /* the group's free */
    DONE(rig_nv_stop(w.b.d, NULL));
    assert_string_equal(w.b.f.failed, "path_unregister");
    assert_string_equal(w.b.f.failed_also, "rm_free");
    bool raised = rig_nv_signaled(w.b.d) == w.v;
    notify_both(w.b.d, lasting[i].after);
    unsigned calls = w.b.f.calls;
    DONE(rig_nv_stop(w.b.d, NULL));
    assert_int_equal(w.b.f.calls, calls);
    if (raised != lasting[i].first ||
        (rig_nv_signaled(w.b.d) == w.v) != lasting[i].again)
      fail_msg("%s: %d, then %d", lasting[i].name, raised,
               rig_nv_signaled(w.b.d) == w.v);
    if (!lasting[i].again)
      EXPECT(rig_nv_release(w.b.d), RIG_NV_INVALID,
             "release: 1 images are not unloaded");
    if (!lasting[i].again) {
      model_stall(w.b.model, false);
      read_until(w.b.d, w.v);
    } /* else its channels run nothing any more, as the notifiers say */
    end_whole(&w);
    assert_int_equal(memories(&w.b), w.own); /* for the process's life */
    model_stall(w.b.model, false);
    (void)sweep(&w.b);
  }
}

/* Says that it failed, so that its device takes the channel for registered. */
static bool unregister_kept(void *ctx, uint32_t channel,
                            struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  (void)f->path.unregister_channel(ctx, channel, reply);
  return rig_nv_reply_set(reply, RIG_NV_FAULTED, "kept");
}

/* Channels that the RM freed write nothing, so stop does; what they named stays
 * while the path keeps them registered. */
static void freed_and_registered(int personality) {
  struct whole w;
  open_whole(&w, personality);
  w.b.g.path.unregister_channel = unregister_kept;
  DONE(rig_nv_stop(w.b.d, NULL));
  assert_int_equal(rig_nv_signaled(w.b.d), w.v);
  size_t kept = personality == KERNEL ? w.own : 0; /* the other path stopped */
  assert_int_equal(memories(&w.b), w.callers + kept);
  end_whole(&w);
  assert_int_equal(memories(&w.b), kept);
  (void)sweep(&w.b);
}

/* The word as stop left it is the next owner's: nothing writes it again, where
 * the channels are gone, and where the RM stopped both and they stay. */
static void word_passes_on(int personality) {
  uint64_t *array = aligned_alloc(PAGE, PAGE);
  assert_non_null(array);
  for (int stay = 0; stay <= (personality == KERNEL); stay++) {
    struct bed b;
    struct rig_nv_options o;
    bed_options(&b, personality, 0x900);
    DONE(model_path_open(b.is, &b.o, &b.model));
    failing_path_init(&b.f, b.model);
    memset(array, 0, PAGE);
    rig_nv_options_init(&o);
    o.word = array + 3;
    o.words = array;
    o.words_bytes = PAGE;
    DONE(rig_nv_make(&b.f.path, &o, &b.d));
    model_stall(b.model, true);
    uint64_t v = submit_nothing(b.d);
    if (stay) {
      notify(b.d, RIG_COMPUTE0, 13);
      notify(b.d, RIG_COPY0, 13);
      fail_in(&b, 4, RIG_NV_FAULTED); /* the group's free */
    }
    DONE(rig_nv_stop(b.d, NULL));
    assert_int_equal(b.f.failed != NULL, stay);
    assert_int_equal(array[3], v);
    shared_store_release_64(array + 3, v - 1);
    if (!stay) /* where it stays, the test's error stops no channel */
      model_stall(b.model, false);
    device_nap(10 * (uint64_t)MS);
    DONE(rig_nv_stop(b.d, NULL));
    DONE(rig_nv_release(b.d));
    assert_int_equal(array[3], v - 1);
    (void)failing_path_sweep(&b.f);
    DONE(rig_nv_path_close(b.model));
  }
  free(array);
}

/* A submit that failed gave the device no value. */
static void failed_submit(int personality) {
  struct bed b;
  const char *failure = NULL;
  struct rig_submission s = {0};
  open_bed(&b, personality);
  model_stall(b.model, true);
  uint64_t v = submit_nothing(b.d);
  assert_int_equal(rig_nv_submit(b.d, v + 2, &s, &failure), RIG_FAILED);
  DONE(rig_nv_stop(b.d, NULL));
  assert_int_equal(rig_nv_signaled(b.d), v);
  bed_release_all(&b);
}

/* After stop the device calls only free and reaches, and takes no work. */
static void after_stop(int personality) {
  struct whole w;
  struct rig_submission s = {0};
  struct rig_nv_region *none;
  enum rig_mapping mapping;
  struct rig_dma dma;
  uint64_t v = 0, n;
  const char *failure = NULL;
  open_whole(&w, personality);
  struct rig_nv *d = w.b.d;
  DONE(rig_nv_stop(d, NULL));
  unsigned calls = w.b.f.calls;
  const char *const text = "the device is stopped";
  EXPECT(rig_nv_alloc(d, RIG_DEVICE, 4, &none), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_map_host(d, &w, 4, &mapping, &none), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_dma(d, w.r, "0", &dma), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_local(d, 4, NULL), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_image_load(d, &w, 4, &n, NULL), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_image_lay(w.l.image, w.l.region, NULL), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_entry(w.l.image, "add", NULL, &n), RIG_NV_REFUSED, text);
  rig_nv_prepare(w.l.image, "sub");
  EXPECT(rig_nv_upload(d, w.r, 0, w.bytes, 4), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_download(d, w.r, 0, w.bytes, 4), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_sleep(d, w.v, 1), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_wait(d, w.v + 1, UINT64_MAX), RIG_NV_REFUSED, text);
  EXPECT(rig_nv_post(d, &s, &v), RIG_NV_REFUSED, text);
  assert_int_equal(rig_nv_submit(d, w.v + 1, &s, &failure), RIG_FAILED);
  assert_string_equal(failure, "submit: the device is stopped");
  (void)rig_nv_peer(d, d);
  assert_non_null(rig_nv_locate(w.r).address ? &w : NULL);
  assert_int_equal(w.b.f.calls, calls);
  end_whole(&w);
  (void)sweep(&w.b);
}

/* A later device of the same hardware keeps what it has while the earlier one
 * frees and unloads. */
static void later_device(int personality) {
  struct whole w, next;
  unsigned char in[PAGE];
  open_whole(&w, personality);
  model_stall(w.b.model, false);
  read_until(w.b.d, w.v);
  DONE(rig_nv_stop(w.b.d, NULL));
  open_whole(&next, personality); /* on another path of the GPU */
  model_stall(next.b.model, false);
  struct rig_nv *same = NULL;
  if (personality == KERNEL) { /* and on the same */
    DONE(rig_nv_make(&w.b.g.path, NULL, &same));
    read_until(same, submit_nothing(same));
  }
  unsigned calls = w.b.f.calls;
  end_whole(&w);
  assert_int_equal(w.b.f.calls, calls + w.callers);
  if (same) {
    read_until(same, submit_nothing(same));
    DONE(rig_nv_stop(same, NULL));
    DONE(rig_nv_release(same));
  }
  DONE(rig_nv_download(next.b.d, next.r, 0, in, PAGE));
  assert_memory_equal(in, next.bytes, PAGE);
  next.v = rig_nv_signaled(next.b.d);
  DONE(rig_nv_stop(next.b.d, NULL));
  end_whole(&next);
  (void)sweep(&w.b);
  (void)sweep(&next.b);
}

/* A word of the device's own stays until it is freed, and reads on. */
static void own_word_stays(int personality) {
  struct bed b;
  open_bed(&b, personality);
  struct rig_nv_region *own = rig_nv_facts(b.d)->own_word;
  const char *const text = "free: the device's word, before it stopped and the "
                           "word reached the last value";
  EXPECT(rig_nv_free(b.d, own), RIG_NV_INVALID, text);
  EXPECT(rig_nv_free_after(b.d, own, 0), RIG_NV_INVALID, text);
  model_stall(b.model, true);
  uint64_t v = submit_nothing(b.d);
  struct rig_nv_region *r = bed_region(&b, PAGE);
  DONE(rig_nv_free_after(b.d, r, v));
  DONE(rig_nv_stop(b.d, NULL));
  assert_int_equal(rig_nv_signaled(b.d), v);
  DONE(rig_nv_free_after(b.d, own, v + 1)); /* no value follows the last */
  assert_null(rig_nv_facts(b.d)->own_word);
  assert_int_equal(rig_nv_signaled(b.d), v);
  bed_release_all(&b);
}

/* Host memory stays mapped until its region is freed, also after stop. */
static void host_stays_mapped(int personality) {
  struct bed b;
  struct rig_nv_region *r;
  enum rig_mapping mapping;
  struct model_counts c;
  void *page = aligned_alloc(PAGE, PAGE);
  assert_non_null(page);
  open_bed(&b, personality);
  DONE(rig_nv_map_host(b.d, page, 12, &mapping, &r));
  DONE(rig_nv_stop(b.d, NULL));
  model_counts(b.model, &c);
  assert_int_equal(c.used[RIG_PINNED], 2 * PAGE); /* it, and the word */
  EXPECT(rig_nv_release(b.d), RIG_NV_INVALID,
         "release: 1 regions are not freed");
  DONE(rig_nv_free(b.d, r));
  model_counts(b.model, &c);
  assert_int_equal(c.used[RIG_PINNED], PAGE);
  bed_release_all(&b);
  free(page);
}

static const struct rule rules[] = {
    {"stop raises a free's Fault once it has stopped the device and given "
     "back every other memory; others it drops, and asks the path to stop.",
     stop_that_fails},
    {"The stop raises the word itself only once the channels are freed or the "
     "path stopped them, or once both channels' notifiers hold an error.",
     last_value_by_its_writers},
    {"The memory an RM object names stays taken while the path keeps the "
     "object's channel registered.",
     freed_and_registered},
    {"Once the word shows the last value and stop has returned, no write may "
     "land.",
     word_passes_on},
    {"The driver must write the last value given to its submit.",
     failed_submit},
    {"After the device's stop, the device calls only free and reaches.",
     after_stop},
    {"Frees and unloads may come after an open of the same hardware, and must "
     "touch nothing of the new device.",
     later_device},
    {"A word of the driver's own must stay until rig frees the word.",
     own_word_stays},
    {"Host pages must stay mapped until the region is freed.",
     host_stays_mapped},
};

static void test_rules(void **state) {
  (void)state;
  run_rules(rules, COUNT(rules));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
