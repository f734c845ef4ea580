/* SPDX-License-Identifier: ISC */
#include "core/spec_bed.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/lock_order/lock_order.h"
#include "rings/rcu.h"

#define EXPECT(call, error, text)                                              \
  do {                                                                         \
    assert_int_equal(call, -(error));                                          \
    assert_string_equal(rig_nv_why(), text);                                   \
  } while (0)

/* A device on a model, over the model's path with what the tests change. */
struct peer {
  struct rig_nv_path path; /* its ctx is the model's */
  const struct rig_nv_path *model;
  struct rig_nv *d;
  /* What map_peer answers in the model's place, where `forced` is. */
  bool forced, misplaced, keeps; /* keeps: free fails */
  enum rig_mapping mapping;
  enum rig_nv_answer answer;
  uint32_t maps;  /* map_peer's calls (ck_pr) */
  void *page;     /* a flush word of the test's own, unreadable from stop on */
  uint32_t found; /* `left`, as the path's stop was called */
};

/* What all of them run on. */
static enum model_path on;

/* Those that are open, by their path's ctx. */
static struct peer *peers[3];

static struct peer *peer_of(const void *ctx) {
  for (size_t i = 0; i < COUNT(peers); i++)
    if (peers[i] && peers[i]->path.ctx == ctx)
      return peers[i];
  abort();
}

static uint32_t left; /* a reader left its section (ck_pr) */

static bool peer_map(void *ctx, const struct rig_nv_memory *m,
                     enum rig_mapping *mapping, struct rig_nv_memory *out,
                     struct rig_nv_reply *reply) {
  struct peer *p = peer_of(ctx);
  ck_pr_inc_32(&p->maps);
  if (p->forced) {
    *mapping = p->mapping;
    return rig_nv_reply_set(reply, p->answer, "as the test says");
  }
  if (!p->model->map_peer(ctx, m, mapping, out, reply))
    return false;
  out->host = NULL; /* a path need not know it */
  if (p->misplaced)
    out->address += RIG_NV_WINDOWS;
  return true;
}

static bool reaches_all(void *ctx, int index) {
  (void)ctx, (void)index;
  return true;
}

static bool peer_free(void *ctx, const struct rig_nv_memory *m,
                      struct rig_nv_reply *reply) {
  struct peer *p = peer_of(ctx);
  struct rig_nv_memory given = *m;
  if (p->misplaced && given.address >= RIG_NV_WINDOWS)
    given.address -= RIG_NV_WINDOWS;
  if (p->keeps)
    return rig_nv_reply_set(reply, RIG_NV_FAULTED, "kept");
  return p->model->free(ctx, &given, reply);
}

static enum rig_nv_stopped peer_stop(void *ctx) {
  struct peer *p = peer_of(ctx);
  p->found = shared_load_32(&left);
  if (p->page && mprotect(p->page, PAGE, PROT_NONE) != 0)
    abort();
  return p->model->stop(ctx);
}

static void peer_options(struct rig_nv_model_options *o) {
  rig_nv_model_options_init(o);
  o->device_bytes = o->mapped_bytes = o->host_bytes = 4 << 20;
}

static void begin_with(struct peer *p, const struct rig_nv_model_options *o,
                       const struct rig_nv_options *options, bool own_page) {
  struct device_sizes z;
  memset(p, 0, sizeof *p);
  if (model_path_open(on, o, &p->model) != 0)
    fail_msg("model: %s", rig_nv_why());
  p->path = *p->model;
  p->path.map_peer = peer_map;
  p->path.free = peer_free;
  p->path.stop = peer_stop;
  size_t i = 0;
  while (i < COUNT(peers) && peers[i])
    i++;
  assert_true(i < COUNT(peers));
  peers[i] = p;
  if (own_page) {
    p->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(p->page, MAP_FAILED);
    p->path.flush = p->page;
  }
  device_sizes_init(&z);
  z.entries = 64;
  z.segment_bytes = 8192;
  z.in_flight = 16;
  if (device_make_sized(&p->path, options, &z, &p->d) != 0)
    fail_msg("make: %s", rig_nv_why());
}

static void begin_peer(struct peer *p) {
  struct rig_nv_model_options o;
  peer_options(&o);
  begin_with(p, &o, NULL, false);
}

static void stop(struct peer *p) {
  if (rig_nv_stop(p->d, NULL) != 0)
    fail_msg("stop: %s", rig_nv_why());
}

static void release(struct peer *p) {
  if (rig_nv_release(p->d) != 0)
    fail_msg("release: %s", rig_nv_why());
  if (rig_nv_path_close(p->model) != 0)
    fail_msg("close: %s", rig_nv_why());
  for (size_t i = 0; i < COUNT(peers); i++)
    if (peers[i] == p)
      peers[i] = NULL;
  if (p->page)
    assert_int_equal(munmap(p->page, PAGE), 0);
}

static void end_peer(struct peer *p) {
  stop(p);
  release(p);
}

static struct rig_nv_region *view_of(struct rig_nv *d,
                                     struct rig_nv_region *r) {
  enum rig_mapping mapping = RIG_NEVER_MAPS;
  struct rig_nv_region *v = NULL;
  if (rig_nv_map_peer(d, r->device, r, &mapping, &v) != 0)
    fail_msg("map_peer: %s", rig_nv_why());
  assert_int_equal(mapping, RIG_MAPS);
  return v;
}

static void free_region(struct rig_nv_region *r) {
  if (rig_nv_free(r->device, r) != 0)
    fail_msg("free: %s", rig_nv_why());
}

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

static size_t flush_words(const struct rig_nv *d) {
  return d->rings.viewed.now ? d->rings.viewed.now->n : 0;
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

/* ---- work through views ---- */

static const int kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};

/* Work of a writes and reads b's memory through a view. */
static void test_copies(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(kinds); i++) {
    struct peer a, b;
    unsigned char out[PAGE], in[PAGE];
    begin_peer(&a);
    begin_peer(&b);
    struct rig_nv_region *of_b = alloc(b.d, kinds[i]);
    struct rig_nv_region *local = alloc(a.d, RIG_DEVICE);
    struct rig_nv_region *view = view_of(a.d, of_b);
    uint64_t there = rig_nv_locate(view).address;
    uint64_t here = rig_nv_locate(local).address;

    memset(out, 0x5a, sizeof out);
    assert_int_equal(rig_nv_upload(a.d, local, 0, out, PAGE), 0);
    copy(a.d, there, here, PAGE);
    assert_int_equal(rig_nv_download(b.d, of_b, 0, in, PAGE), 0);
    assert_memory_equal(in, out, PAGE);

    memset(out, 0xc3, sizeof out);
    assert_int_equal(rig_nv_upload(b.d, of_b, 0, out, PAGE), 0);
    copy(a.d, here, there, PAGE);
    assert_int_equal(rig_nv_download(a.d, local, 0, in, PAGE), 0);
    assert_memory_equal(in, out, PAGE);

    memset(out, 0x77, sizeof out);
    assert_int_equal(rig_nv_upload(a.d, view, 8, out, 16), 0);
    assert_int_equal(rig_nv_download(b.d, of_b, 8, in, 16), 0);
    assert_memory_equal(in, out, 16);

    free_region(view);
    free_region(local);
    free_region(of_b);
    end_peer(&a);
    end_peer(&b);
  }
}

/* What the host stored through b's BAR is there for a's work: the model moves
 * posted writes only as b's flush word is read. */
static void test_posted(void **state) {
  (void)state;
  struct rig_nv_model_options o;
  struct peer a, b;
  peer_options(&o);
  begin_with(&a, &o, NULL, false);
  o.posts_writes = true;
  begin_with(&b, &o, NULL, false);
  struct rig_nv_region *of_b = alloc(b.d, RIG_MAPPED);
  struct rig_nv_region *local = alloc(a.d, RIG_PINNED);
  struct rig_nv_region *view = view_of(a.d, of_b);
  uint64_t *stored = rig_nv_locate(of_b).host;
  const uint64_t *copied = rig_nv_locate(local).host;
  for (uint64_t i = 1; i <= 20; i++) {
    shared_store_64(stored, i);
    copy(a.d, rig_nv_locate(local).address, rig_nv_locate(view).address, 8);
    assert_int_equal(shared_load_64(copied), i);
  }
  free_region(view);
  free_region(local);
  free_region(of_b);
  end_peer(&a);
  end_peer(&b);
}

/* ---- words ---- */

/* a's value, which waits for b's first, is held back until that. */
static void waits_for(struct rig_nv *a, struct rig_nv *b, uint64_t at) {
  struct rig_wait w = {at, rings_last(&b->rings) + 1, RIG_WAIT_WORD};
  uint64_t v = submit(a, &(struct rig_submission){.waits = &w, .nwaits = 1});
  assert_int_equal(rig_nv_wait(a, v, device_now() + 10 * MS), -RIG_NV_TIMEOUT);
  submit_nothing(b);
  reached(a, v);
}

/* b's word is its own Pinned memory: a has a view of it. */
static void test_viewed_word(void **state) {
  (void)state;
  struct peer a, b;
  begin_peer(&a);
  begin_peer(&b);
  const struct rig_facts *f = rig_nv_facts(b.d);
  struct rig_nv_region *own = f->own_word;
  struct rig_nv_region *view = view_of(a.d, own);
  waits_for(a.d, b.d,
            rig_nv_locate(view).address + f->word_gpu -
                rig_nv_locate(own).address);
  stop(&b);
  EXPECT(rig_nv_release(b.d), RIG_NV_INVALID,
         "release: 1 views of its word are not freed");
  EXPECT(rig_nv_free(b.d, own), RIG_NV_INVALID,
         "free: 1 views of the region are not freed");
  free_region(view);
  release(&b);
  end_peer(&a);
}

/* The words lie in one array of the caller's, which both devices map. */
static void test_words_of_an_array(void **state) {
  (void)state;
  struct rig_nv_model_options o;
  struct rig_nv_options options;
  struct peer p[2];
  uint64_t *array = aligned_alloc(PAGE, PAGE);
  assert_non_null(array);
  memset(array, 0, PAGE);
  peer_options(&o);
  rig_nv_options_init(&options);
  options.words = array;
  options.words_bytes = PAGE;
  for (int i = 0; i < 2; i++) {
    options.word = array + 8 * i;
    begin_with(&p[i], &o, &options, false);
    assert_null(rig_nv_facts(p[i].d)->own_word);
  }
  for (int i = 0; i < 2; i++) { /* each waits for the other's */
    const struct rig_facts *f = rig_nv_facts(p[i].d);
    const struct rig_facts *of = rig_nv_facts(p[!i].d);
    int64_t away = (const char *)of->word - (const char *)f->word;
    waits_for(p[i].d, p[!i].d, f->word_gpu + (uint64_t)away);
  }
  end_peer(&p[0]);
  end_peer(&p[1]);
  free(array);
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

/* ---- flush words ---- */

enum { LIVES = 7, TOO_LATE = 8 };

static struct rig_nv *forked; /* the child's device */
static void *forked_page;     /* whose flush word faults */

static uint32_t gp_puts(void) {
  const struct ring_channel *c = forked->rings.newest->channel;
  return *c[0].gp_put | *c[1].gp_put;
}

static void on_read(int signal) {
  (void)signal;
  _exit(gp_puts() == 0 ? LIVES : TOO_LATE);
}

static int read_of(struct peer *a, struct peer *b) {
  forked = a->d;
  forked_page = b->page;
  pid_t pid = fork();
  int status;
  assert_true(pid >= 0);
  if (pid == 0) {
    struct sigaction s = {.sa_handler = on_read};
    const char *failure;
    sigaction(SIGSEGV, &s, NULL);
    if (mprotect(forked_page, PAGE, PROT_NONE) != 0)
      _exit(2);
    struct rig_submission none = {0};
    enum rig_done done = rig_nv_submit(forked, 1, &none, &failure);
    _exit(done == RIG_COMMITTED && gp_puts() != 0 ? 0 : 1);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* Whether a's submission reads b's flush word, and when. */
static void test_flush(void **state) {
  (void)state;
  struct rig_nv_model_options o;
  struct peer a, b;
  peer_options(&o);
  begin_with(&a, &o, NULL, true);
  begin_with(&b, &o, NULL, true);
  struct rig_nv_region *mapped = alloc(b.d, RIG_MAPPED);
  struct rig_nv_region *pinned = alloc(b.d, RIG_PINNED);
  assert_int_equal(read_of(&a, &b), 0);
  struct rig_nv_region *other = view_of(a.d, pinned);
  assert_int_equal(read_of(&a, &b), 0);
  struct rig_nv_region *one = view_of(a.d, mapped);
  assert_int_equal(read_of(&a, &b), LIVES);
  assert_int_equal(read_of(&b, &a), 0); /* no view the other way */
  struct rig_nv_region *two = view_of(a.d, mapped);
  free_region(one);
  assert_int_equal(read_of(&a, &b), LIVES);
  free_region(two);
  assert_int_equal(read_of(&a, &b), 0);
  one = view_of(a.d, mapped);
  assert_int_equal(read_of(&a, &b), LIVES);
  stop(&b); /* the page is unreadable now */
  assert_int_equal(read_of(&a, &b), 0);
  submit_nothing(a.d);
  free_region(one);
  free_region(other);
  free_region(mapped);
  free_region(pinned);
  release(&b);
  end_peer(&a);
}

/* stop asks the path to stop once the readers of the word are done. */
static uint32_t inside;

static void *read_for_long(void *unused) {
  (void)unused;
  ring_rcu_lock();
  ck_pr_store_32(&inside, 1);
  usleep(30000);
  ck_pr_store_32(&left, 1);
  ring_rcu_unlock();
  return NULL;
}

static void test_stop_waits(void **state) {
  (void)state;
  struct peer a, b;
  pthread_t t;
  ck_pr_store_32(&inside, 0);
  ck_pr_store_32(&left, 0);
  begin_peer(&a);
  begin_peer(&b);
  struct rig_nv_region *r = alloc(b.d, RIG_MAPPED);
  struct rig_nv_region *view = view_of(a.d, r);
  assert_int_equal(pthread_create(&t, NULL, read_for_long, NULL), 0);
  while (!shared_load_32(&inside))
    usleep(100);
  stop(&b);
  assert_int_equal(b.found, 1);
  assert_int_equal(pthread_join(t, NULL), 0);
  free_region(view);
  free_region(r);
  release(&b);
  end_peer(&a);
}

/* ---- threads ---- */

enum { ROUNDS = 60 };

static struct peer crowd[3];
static uint32_t over;

/* Submits on the first device for as long as views come and go. */
static void *submits(void *unused) {
  (void)unused;
  rig_nv_thread_enter();
  while (!shared_load_32(&over))
    reached(crowd[0].d, submit_nothing(crowd[0].d));
  rig_nv_thread_leave();
  return NULL;
}

/* Views of the device's Mapped memory come and go. */
static void *views(void *p) {
  struct peer *of = p;
  struct rig_nv_region *r = alloc(of->d, RIG_MAPPED);
  for (int i = 0; i < ROUNDS; i++) {
    struct rig_nv_region *one = view_of(crowd[0].d, r);
    struct rig_nv_region *two = view_of(crowd[0].d, r);
    free_region(one);
    free_region(two);
  }
  return r;
}

/* The viewed devices stop, and their flush words go, while the first device
 * submits. */
static void test_threads(void **state) {
  (void)state;
  struct rig_nv_model_options o;
  struct rig_nv_region *last[3] = {0};
  pthread_t t[3];
  ck_pr_store_32(&over, 0);
  peer_options(&o);
  for (int i = 0; i < 3; i++)
    begin_with(&crowd[i], &o, NULL, true);
  assert_int_equal(pthread_create(&t[0], NULL, submits, NULL), 0);
  for (int i = 1; i < 3; i++)
    assert_int_equal(pthread_create(&t[i], NULL, views, &crowd[i]), 0);
  for (int i = 1; i < 3; i++) {
    void *r;
    assert_int_equal(pthread_join(t[i], &r), 0);
    last[i] = view_of(crowd[0].d, r);
    stop(&crowd[i]);
  }
  ck_pr_store_32(&over, 1);
  assert_int_equal(pthread_join(t[0], NULL), 0);
  assert_int_equal(flush_words(crowd[0].d), 0);
  for (int i = 1; i < 3; i++) {
    struct rig_nv_region *r = last[i]->viewed;
    free_region(last[i]);
    free_region(r);
    release(&crowd[i]);
  }
  end_peer(&crowd[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_peers),
      cmocka_unit_test(test_answers),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_posted),
      cmocka_unit_test(test_viewed_word),
      cmocka_unit_test(test_words_of_an_array),
      cmocka_unit_test(test_frees),
      cmocka_unit_test(test_failing_free),
      cmocka_unit_test(test_flush),
      cmocka_unit_test(test_stop_waits),
      cmocka_unit_test(test_threads),
  };
  int failed = 0;
  for (int is = 0; is < MODEL_PATHS; is++) {
    on = (enum model_path)is;
    failed +=
        cmocka_run_group_tests_name(model_path_name(on), tests, NULL, NULL);
  }
  return failed;
}
