/* SPDX-License-Identifier: ISC */
/*
 * Views: which devices have them of which, what map_peer answers, and the order
 * of frees.
 */
#include "core/lock_order/lock_order.h"
#include "core/peer_bed.h"

/* ---- which devices ---- */

/* a looks at b; a has another key, or reaches nothing. */
static const struct {
  const char *name;
  bool other_key, no_peers, itself, peer;
} pairs[] = {
    {"one key", false, false, false, true},
    {"another key", true, false, false, false},
    {"it reaches nothing", false, true, false, false},
    {"itself", false, false, true, false},
};

static void test_peers(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(pairs); i++) {
    static char key;
    struct rig_nv_model_options o;
    struct peer a, b;
    peer_options(&o);
    o.no_peers = pairs[i].no_peers;
    begin_with(&a, &o, NULL, false);
    begin_peer(&b);
    struct rig_nv *other = pairs[i].itself ? a.d : b.d;
    if (pairs[i].other_key)
      a.d->facts.key = &key;
    if (pairs[i].itself)
      a.path.reaches = reaches_all;
    for (int stops = 0; stops < 3; stops++) { /* none, b, both */
      if (rig_nv_peer(a.d, other) != pairs[i].peer)
        fail_msg("%s: after %d stops", pairs[i].name, stops);
      if (stops < 2)
        stop(stops == 0 ? &b : &a);
    }
    release(&a);
    release(&b);
  }
}

/* ---- what map_peer answers ---- */

enum state {
  LIVE,
  STOPPED,    /* the other device */
  SELF_STOPS, /* this device */
  ITSELF,     /* a region of this device's own, of this device */
  KEY,        /* another key */
  NONE,       /* no region */
  FOREIGN,    /* a region of neither */
  VIEW,       /* a view that the other device has */
  HELD,       /* a lock is held */
  FULL,       /* 64 words are there */
  NOWHERE     /* the path puts the view where no memory lies */
};

enum { MAPS = RIG_MAPS, ROOM = RIG_NO_ROOM, NEVER = RIG_NEVER_MAPS };
enum { BAD = RIG_NV_INVALID, NO = RIG_NV_REFUSED, LACKS = RIG_NV_NO_MEMORY };

#define FULL_TEXT                                                              \
  "map_peer: this device views Mapped memory of 64 others, the most there "    \
  "may be"
#define STOPPED_TEXT "map_peer: Mapped memory of a stopped device"
#define HELD_TEXT "call refused: the thread holds lock \"path\", taken at test"
#define DEV RIG_DEVICE
#define PIN RIG_PINNED
#define MAP RIG_MAPPED

static const struct {
  const char *name;
  int kind;
  enum state state;
  int error, mapping;
  const char *text;
  unsigned maps; /* the path's calls */
} answers[] = {
    {"Device", DEV, LIVE, 0, MAPS, NULL, 1},
    {"Pinned", PIN, LIVE, 0, MAPS, NULL, 1},
    {"Mapped", MAP, LIVE, 0, MAPS, NULL, 1},
    {"Device of a stopped one", DEV, STOPPED, 0, MAPS, NULL, 1},
    {"Pinned of a stopped one", PIN, STOPPED, 0, MAPS, NULL, 1},
    {"Mapped of a stopped one", MAP, STOPPED, NO, NEVER, STOPPED_TEXT, 0},
    {"Mapped for a stopped one", MAP, SELF_STOPS, NO, NEVER,
     "the device is stopped", 0},
    {"Device for a stopped one", DEV, SELF_STOPS, NO, NEVER,
     "the device is stopped", 0},
    {"its own", MAP, ITSELF, BAD, NEVER, "map_peer: the device itself", 0},
    {"another key", MAP, KEY, BAD, NEVER, "map_peer: a device of another key",
     0},
    {"no region", MAP, NONE, BAD, NEVER,
     "map_peer: not a region of the other device", 0},
    {"a region of neither", MAP, FOREIGN, BAD, NEVER,
     "map_peer: not a region of the other device", 0},
    {"a view", MAP, VIEW, BAD, NEVER,
     "map_peer: a view, not the region it views", 0},
    {"a lock held", MAP, HELD, BAD, NEVER, HELD_TEXT, 0},
    {"Mapped, full", MAP, FULL, LACKS, ROOM, FULL_TEXT, 0},
    {"Device, full", DEV, FULL, 0, MAPS, NULL, 1},
    {"Pinned, full", PIN, FULL, 0, MAPS, NULL, 1},
    {"no such place", PIN, NOWHERE, NO, NEVER, NULL, 1},
    {"no such place, Mapped", MAP, NOWHERE, NO, NEVER, NULL, 1},
};

/* 64 words of no device, in d's set. */
static struct flush_source sources[FLUSH_MOST];
static volatile uint32_t words[FLUSH_MOST];

static void fill(struct rig_nv *d) {
  for (int i = 0; i < FLUSH_MOST; i++) {
    sources[i] = (struct flush_source){.word = &words[i]};
    assert_int_equal(flush_add(&d->rings.viewed, &sources[i]), FLUSH_ADDED);
  }
}

static void check_answer(size_t i, struct peer *a, struct peer *b,
                         struct rig_nv_region *r, struct rig_nv *other) {
  const char *name = answers[i].name;
  enum rig_mapping mapping = RIG_NO_ROOM;
  struct rig_nv_region *view = NULL;
  uint64_t regions = a->d->regions;
  size_t before = flush_words(a->d);
  int e = rig_nv_map_peer(a->d, other, r, &mapping, &view);
  if (e != -answers[i].error || (int)mapping != answers[i].mapping)
    fail_msg("%s: %d, mapping %d: %s", name, e, (int)mapping, rig_nv_why());
  if (answers[i].text && strcmp(rig_nv_why(), answers[i].text) != 0)
    fail_msg("%s: %s", name, rig_nv_why());
  if (a->maps != answers[i].maps)
    fail_msg("%s: %u calls of the path", name, a->maps);
  if (e != 0) {
    if (view || a->d->regions != regions || flush_words(a->d) != before)
      fail_msg("%s: something changed", name);
    return;
  }
  struct rig_location l = rig_nv_locate(view), of = rig_nv_locate(r);
  if (l.host != of.host || l.handle != l.address || l.address % PAGE != 0 ||
      view->memory.bytes != r->memory.bytes || view->device != a->d)
    fail_msg("%s: located wrongly", name);
  size_t words_now = before + (r->kind == RIG_MAPPED);
  if (flush_words(a->d) != words_now)
    fail_msg("%s: %zu flush words", name, flush_words(a->d));
  (void)b;
  free_region(view);
  if (flush_words(a->d) != before || a->d->regions != regions)
    fail_msg("%s: the view left something", name);
}

static void test_answers(void **state) {
  (void)state;
  static struct rig_nv_lock held = RIG_NV_LOCK(&rig_nv_lock_path);
  for (size_t i = 0; i < COUNT(answers); i++) {
    static char key;
    struct peer a, b;
    enum state s = answers[i].state;
    begin_peer(&a);
    begin_peer(&b);
    struct rig_nv_region *of_b = alloc(b.d, answers[i].kind);
    struct rig_nv_region *of_a = alloc(a.d, answers[i].kind);
    struct rig_nv_region *view = s == VIEW ? view_of(b.d, of_a) : NULL;
    struct rig_nv_region *r = s == VIEW                     ? view
                              : s == NONE                   ? NULL
                              : s == ITSELF || s == FOREIGN ? of_a
                                                            : of_b;
    if (s == STOPPED)
      stop(&b);
    if (s == SELF_STOPS)
      stop(&a);
    if (s == KEY)
      b.d->facts.key = &key;
    if (s == FULL)
      fill(a.d);
    a.misplaced = s == NOWHERE;
    if (s == HELD)
      assert_int_equal(rig_nv_lock_take_at(&held, "test"), 0);
    check_answer(i, &a, &b, r, s == ITSELF ? a.d : b.d);
    if (s == HELD)
      rig_nv_lock_give(&held);
    if (s == FULL)
      for (int k = 0; k < FLUSH_MOST; k++)
        flush_drop(&a.d->rings.viewed, &sources[k]);
    if (view)
      free_region(view);
    free_region(of_a);
    free_region(of_b);
    end_peer(&a);
    end_peer(&b);
  }
}

/* What the path refuses: nothing changed. */
static const struct {
  const char *name;
  enum rig_nv_answer answer;
  enum rig_mapping says, mapping;
  int error;
} refusals[] = {
    {"cannot", RIG_NV_DENIED, RIG_NEVER_MAPS, RIG_NEVER_MAPS, NO},
    {"no room", RIG_NV_LACKING, RIG_NO_ROOM, RIG_NO_ROOM, LACKS},
    {"refused, for room", RIG_NV_DENIED, RIG_NO_ROOM, RIG_NO_ROOM, NO},
    {"wrong", RIG_NV_WRONG, RIG_NEVER_MAPS, RIG_NEVER_MAPS, BAD},
    /* Last: the device is lost. */
    {"failed, and yet maps", RIG_NV_FAULTED, RIG_MAPS, RIG_NEVER_MAPS,
     RIG_NV_FAULT},
};

static void test_refusals(void **state) {
  (void)state;
  struct peer a, b;
  begin_peer(&a);
  begin_peer(&b);
  struct rig_nv_region *r = alloc(b.d, RIG_MAPPED);
  for (size_t i = 0; i < COUNT(refusals); i++) {
    enum rig_mapping mapping = RIG_MAPS;
    struct rig_nv_region *view = NULL;
    uint64_t regions = a.d->regions;
    a.forced = true;
    a.mapping = refusals[i].says;
    a.answer = refusals[i].answer;
    int e = rig_nv_map_peer(a.d, b.d, r, &mapping, &view);
    if (e != -refusals[i].error || mapping != refusals[i].mapping ||
        strcmp(rig_nv_why(), "map_peer: as the test says") != 0)
      fail_msg("%s: %d, %d: %s", refusals[i].name, e, (int)mapping,
               rig_nv_why());
    if (view || a.d->regions != regions || flush_words(a.d) != 0 || r->views)
      fail_msg("%s: something changed", refusals[i].name);
  }
  free_region(r);
  end_peer(&a);
  end_peer(&b);
}

/* ---- the order of frees ---- */

static void test_frees(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(kinds); i++) {
    struct peer a, b;
    begin_peer(&a);
    begin_peer(&b);
    struct rig_nv_region *r = alloc(b.d, kinds[i]);
    struct rig_nv_region *local = alloc(a.d, RIG_PINNED);
    struct rig_nv_region *one = view_of(a.d, r), *two = view_of(a.d, r);
    EXPECT(rig_nv_free(b.d, r), RIG_NV_INVALID,
           "free: 2 views of the region are not freed");
    EXPECT(rig_nv_free(b.d, one), RIG_NV_INVALID,
           "free: not a region of this device");
    free_region(one);
    EXPECT(rig_nv_free(b.d, r), RIG_NV_INVALID,
           "free: 1 views of the region are not freed");
    copy(a.d, rig_nv_locate(two).address, rig_nv_locate(local).address, PAGE);
    stop(&b);
    stop(&a);
    EXPECT(rig_nv_release(b.d), RIG_NV_INVALID,
           "release: 1 regions are not freed");
    free_region(local);
    EXPECT(rig_nv_release(a.d), RIG_NV_INVALID,
           "release: 1 regions are not freed");
    free_region(two);
    free_region(r);
    release(&b);
    release(&a);
  }
}

/* A free that the path fails at: the view is gone all the same. */
static void test_failing_free(void **state) {
  (void)state;
  struct peer a, b;
  begin_peer(&a);
  begin_peer(&b);
  struct rig_nv_region *r = alloc(b.d, RIG_MAPPED);
  struct rig_nv_region *view = view_of(a.d, r);
  struct rig_nv_memory kept = view->memory;
  struct rig_nv_reply reply;
  a.keeps = true;
  EXPECT(rig_nv_free(a.d, view), RIG_NV_FAULT, "free: kept");
  a.keeps = false;
  assert_int_equal(flush_words(a.d), 0);
  assert_true(a.model->free(a.model->ctx, &kept, &reply));
  free_region(r);
  end_peer(&a);
  end_peer(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_peers),        cmocka_unit_test(test_answers),
      cmocka_unit_test(test_refusals),     cmocka_unit_test(test_frees),
      cmocka_unit_test(test_failing_free),
  };
  int failed = 0;
  for (int is = 0; is < MODEL_PATHS; is++) {
    on = (enum model_path)is;
    failed +=
        cmocka_run_group_tests_name(model_path_name(on), tests, NULL, NULL);
  }
  return failed;
}
