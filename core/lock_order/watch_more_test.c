/* SPDX-License-Identifier: ISC */
#define _POSIX_C_SOURCE 200809L /* barriers */

#include "core/lock_order/watch_bed.h"

static const struct rig_nv_lock_class plain[] = {
    {"a", 0, RIG_NV_LOCK_UNRANKED}, {"b", 0, RIG_NV_LOCK_UNRANKED}};
static const struct rig_nv_lock_class by_address = {
    "by", 0, RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_BY_ADDRESS};

/* More classes and edges than there is room for. */

enum { MANY = 300 };

static void test_limits(void **state) {
  (void)state;
  static char names[MANY][8];
  static struct rig_nv_lock_class cls[MANY];
  static struct rig_nv_lock_record r[MANY];
  struct rig_nv_lock_counts c;
  begin();
  for (int i = 0; i < MANY; i++) {
    snprintf(names[i], sizeof names[i], "%d", i);
    cls[i] = (struct rig_nv_lock_class){names[i], 0, RIG_NV_LOCK_UNRANKED};
    r[i] = (struct rig_nv_lock_record)RIG_NV_LOCK_RECORD(&cls[i]);
  }
  for (int i = 0; i < MANY; i++)
    for (int j = i + 1; j < MANY; j++) {
      assert_int_equal(rig_nv_lock_wants_at(&r[i], "i"), 0);
      assert_int_equal(rig_nv_lock_taken_at(&r[i], "i"), 0);
      assert_int_equal(rig_nv_lock_wants_at(&r[j], "j"), 0);
      rig_nv_lock_given(&r[i]);
    }
  rig_nv_lock_count(&c);
  assert_int_equal(c.classes, GRAPH_UNWATCHED);
  assert_int_equal(c.edges, GRAPH_UNWATCHED * (GRAPH_UNWATCHED - 1) / 2);
  assert_int_equal(c.unwatched, MANY - GRAPH_UNWATCHED + c.edges - GRAPH_EDGES);
  assert_int_equal(reports, 0);
  /* Unwatched: nothing. The last watched one, whose edges have no places. */
  static const struct {
    int from, to;
    unsigned reports;
    const char *text;
  } takes[] = {
      {MANY - 1, 3, 0, ""},
      {4, MANY - 2, 0, ""},
      {GRAPH_UNWATCHED - 1, GRAPH_UNWATCHED - 2, 1,
       "\"253\" came before \"254\", where is not kept"},
      {1, 0, 2, "held \"0\" (i) and wanted \"1\" (j)"},
  };
  for (size_t i = 0; i < COUNT(takes); i++) {
    assert_int_equal(rig_nv_lock_taken_at(&r[takes[i].from], "from"), 0);
    assert_int_equal(rig_nv_lock_wants_at(&r[takes[i].to], "to"), 0);
    rig_nv_lock_given(&r[takes[i].from]);
    assert_int_equal(reports, takes[i].reports);
    contains("limits", last, takes[i].text);
  }
  /* A class that ends makes room for one that had none. */
  rig_nv_lock_class_end(&cls[7]);
  assert_int_equal(rig_nv_lock_wants_at(&r[MANY - 1], "again"), 0);
  assert_int_not_equal(r[MANY - 1].node % GRAPH_CLASSES, GRAPH_UNWATCHED);
  rig_nv_lock_forget();
  end();
}

/* A cycle of as many classes as there are: its text is cut. */
static void test_longest(void **state) {
  (void)state;
  static char names[GRAPH_UNWATCHED][64];
  static struct rig_nv_lock_class cls[GRAPH_UNWATCHED];
  static struct rig_nv_lock_record r[GRAPH_UNWATCHED];
  begin();
  for (int i = 0; i < GRAPH_UNWATCHED; i++) {
    snprintf(names[i], sizeof names[i], "%060d", i);
    cls[i] = (struct rig_nv_lock_class){names[i], 0, RIG_NV_LOCK_UNRANKED};
    r[i] = (struct rig_nv_lock_record)RIG_NV_LOCK_RECORD(&cls[i]);
  }
  for (int i = 0; i < GRAPH_UNWATCHED; i++) {
    assert_int_equal(reports, 0);
    assert_int_equal(rig_nv_lock_taken(&r[i]), 0);
    assert_int_equal(rig_nv_lock_wants(&r[(i + 1) % GRAPH_UNWATCHED]), 0);
    rig_nv_lock_given(&r[i]);
  }
  assert_int_equal(reports, 1);
  contains("longest", last, "closes a cycle of 255 classes\n");
  assert_string_equal(last + strlen(last) - 3, "...");
  rig_nv_lock_forget();
  end();
}

/* A class whose memory another one got, with no word of it. */
static void test_reused(void **state) {
  (void)state;
  struct rig_nv_lock_class c = {"first", 0, RIG_NV_LOCK_UNRANKED};
  struct rig_nv_lock other = RIG_NV_LOCK(&plain[0]);
  struct rig_nv_lock l = RIG_NV_LOCK(&c);
  begin();
  assert_int_equal(rig_nv_lock_take(&l), 0);
  assert_int_equal(rig_nv_lock_take(&other), 0);
  rig_nv_lock_give(&other);
  rig_nv_lock_give(&l);
  c.name = "second";
  assert_int_equal(rig_nv_lock_init(&l, &c), 0);
  assert_int_equal(rig_nv_lock_take(&other), 0);
  assert_int_equal(rig_nv_lock_take(&l), 0);
  rig_nv_lock_give(&l);
  rig_nv_lock_give(&other);
  assert_int_equal(reports, 0);
  assert_int_equal(rig_nv_lock_take(&l), 0);
  assert_int_equal(rig_nv_lock_take(&other), 0);
  rig_nv_lock_give(&other);
  rig_nv_lock_give(&l);
  assert_int_equal(reports, 1);
  contains("reused", last, "holds \"second\"");
  rig_nv_lock_fini(&l);
  end();
}

/* Two threads take two locks in two orders for the first time, at one time:
 * the one that comes second, whichever, is reported. */

enum { ROUNDS = 200 };

struct racer {
  struct rig_nv_lock_record *first, *second;
  pthread_barrier_t *start;
};

static void *race(void *arg) {
  struct racer *r = arg;
  for (int i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait(r->start);
    if (rig_nv_lock_taken(&r->first[i]) || rig_nv_lock_wants(&r->second[i]))
      return arg;
    rig_nv_lock_given(&r->first[i]);
    pthread_barrier_wait(r->start);
    pthread_barrier_wait(r->start); /* meanwhile the classes are forgotten */
  }
  return NULL;
}

static void test_race(void **state) {
  (void)state;
  struct rig_nv_lock_record a[ROUNDS], b[ROUNDS];
  pthread_barrier_t start;
  pthread_t t[2];
  struct racer racers[2] = {{a, b, &start}, {b, a, &start}};
  begin();
  for (int i = 0; i < ROUNDS; i++) {
    a[i] = (struct rig_nv_lock_record)RIG_NV_LOCK_RECORD(&plain[0]);
    b[i] = (struct rig_nv_lock_record)RIG_NV_LOCK_RECORD(&plain[1]);
  }
  pthread_barrier_init(&start, NULL, 3);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&t[i], NULL, race, &racers[i]), 0);
  unsigned wrong = 0;
  for (unsigned i = 0; i < ROUNDS; i++) {
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&start);
    wrong += atomic_load_explicit(&reports, memory_order_relaxed) != i + 1;
    rig_nv_lock_forget();
    pthread_barrier_wait(&start);
  }
  for (int i = 0; i < 2; i++) {
    void *failed;
    pthread_join(t[i], &failed);
    assert_null(failed);
  }
  assert_int_equal(wrong, 0);
  pthread_barrier_destroy(&start);
  end();
}

/* A program's own locks. */
static void test_own(void **state) {
  (void)state;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  struct rig_nv_lock_record own_mutex = RIG_NV_LOCK_RECORD(&plain[0]);
  struct rig_nv_lock_record path = RIG_NV_LOCK_RECORD(&rig_nv_lock_path);
  struct rig_nv_lock ours = RIG_NV_LOCK(&rig_nv_lock_path);
  struct rig_nv_lock_record none = RIG_NV_LOCK_RECORD(NULL);
  struct rig_nv_lock_record nine[9];
  begin();
  /* mutex -> path */
  assert_int_equal(rig_nv_lock_wants(&own_mutex), 0);
  pthread_mutex_lock(&mutex);
  assert_int_equal(rig_nv_lock_taken(&own_mutex), 0);
  assert_int_equal(rig_nv_lock_idle(), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_lock_wants(&own_mutex), -RIG_NV_INVALID);
  contains("own", rig_nv_why(), "that very lock");
  assert_int_equal(rig_nv_lock_take(&ours), 0);
  assert_int_equal(rig_nv_lock_wants(&path), -RIG_NV_INVALID);
  contains("own", rig_nv_why(), "ranks must rise");
  rig_nv_lock_give(&ours);
  rig_nv_lock_given(&own_mutex);
  pthread_mutex_unlock(&mutex);
  assert_int_equal(reports, 3);
  /* path -> mutex, after a try no report, and so with a wait one */
  assert_int_equal(rig_nv_lock_take(&ours), 0);
  assert_int_equal(rig_nv_lock_taken(&own_mutex), 0);
  rig_nv_lock_given(&own_mutex);
  assert_int_equal(reports, 3);
  assert_int_equal(rig_nv_lock_wants(&own_mutex), 0);
  assert_int_equal(reports, 4);
  contains("own", last, "closes a cycle of 2 classes");
  rig_nv_lock_give(&ours);
  assert_int_equal(rig_nv_lock_wants(&none), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_lock_taken(&none), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_lock_idle(), 0);
  for (int i = 0; i < 9; i++) {
    nine[i] = (struct rig_nv_lock_record)RIG_NV_LOCK_RECORD(&by_address);
    assert_int_equal(rig_nv_lock_taken(&nine[i]),
                     i < RIG_NV_MOST_LOCKS ? 0 : -RIG_NV_INVALID);
  }
  contains("own", rig_nv_why(), "8 locks, the most there may be");
  for (int i = 0; i < RIG_NV_MOST_LOCKS; i++)
    rig_nv_lock_given(&nine[i]);
  end();
}

/* The macros' places, and that they are nothing while the graph is off. */
static void test_macros(void **state) {
  (void)state;
  char at[256];
  assert_int_equal(rig_nv_lock_watch(RIG_NV_WATCH_OFF), RIG_NV_WATCH_OFF);
  rig_nv_lock_enter(&rig_nv_lock_in_rcu);
  begin();
  rig_nv_lock_may_synchronize();
  assert_int_equal(reports, 0);
  rig_nv_lock_enter(&rig_nv_lock_in_rcu);
  snprintf(at, sizeof at, " inside \"RCU section\" (%s:%d)", __FILE__,
           __LINE__ - 2);
  rig_nv_lock_may_synchronize();
  contains("synchronize", last, "lock order: a grace period at ");
  contains("synchronize", last, at);
  rig_nv_lock_may_block("a sleep");
  contains("block", last, "lock order: a sleep at ");
  rig_nv_lock_may_allocate("malloc");
  assert_int_equal(reports, 2);
  rig_nv_lock_leave(&rig_nv_lock_in_rcu);
  rig_nv_lock_enter(&rig_nv_lock_in_no_alloc);
  rig_nv_lock_may_allocate("malloc");
  contains("allocate", last, "lock order: malloc at ");
  rig_nv_lock_leave(&rig_nv_lock_in_no_alloc);
  assert_int_equal(rig_nv_lock_watch(RIG_NV_WATCH_STOP), RIG_NV_WATCH_REPORT);
  assert_int_equal(rig_nv_lock_watch((enum rig_nv_watch)7), RIG_NV_WATCH_STOP);
  assert_int_equal(rig_nv_lock_watch(RIG_NV_WATCH_OFF), RIG_NV_WATCH_REPORT);
  rig_nv_lock_may_block("a sleep");
  assert_int_equal(reports, 3);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_limits), cmocka_unit_test(test_longest),
      cmocka_unit_test(test_reused), cmocka_unit_test(test_race),
      cmocka_unit_test(test_own),    cmocka_unit_test(test_macros),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
