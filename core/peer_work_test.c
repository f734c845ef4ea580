/* SPDX-License-Identifier: ISC */
/*
 * Work through views: whose bytes it moves, whose words it waits for, and whose
 * flush words it reads, until the viewed device stops.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/peer_bed.h"
#include "rings/rcu.h"

/* ---- bytes ---- */

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
      cmocka_unit_test(test_copies),
      cmocka_unit_test(test_posted),
      cmocka_unit_test(test_viewed_word),
      cmocka_unit_test(test_words_of_an_array),
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
