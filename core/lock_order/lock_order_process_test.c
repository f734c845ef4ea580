/* SPDX-License-Identifier: ISC */
#define _POSIX_C_SOURCE 200809L /* barriers, fork */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/api/rig_nv.h"
#include "core/lock_order/lock_order.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* The inversions are planted, and TSan's own detector stays out of it. */
const char *__tsan_default_options(void);
RIG_PUBLIC const char *__tsan_default_options(void) {
  return "detect_deadlocks=0";
}

static void contains(const char *name, const char *text, const char *part) {
  if (!strstr(text, part))
    fail_msg("%s: \"%s\" lacks \"%s\"", name, text, part);
}

/* Mistakes that stop the process, each in a child of its own. */

static struct rig_nv_lock victim;

static void take_victim(void) {
  if (rig_nv_lock_take_at(&victim, "v") != 0)
    _exit(3);
}
static void *take_and_end(void *unused) {
  take_victim();
  return unused;
}
static void *take_and_stay(void *barrier) {
  take_victim();
  pthread_barrier_wait(barrier);
  while (pause() < 0)
    ;
  return NULL;
}
static void in_thread(void *(*fn)(void *)) {
  pthread_t t;
  pthread_barrier_t b;
  pthread_barrier_init(&b, NULL, 2);
  if (pthread_create(&t, NULL, fn, &b) != 0)
    _exit(4);
  if (fn == take_and_stay)
    pthread_barrier_wait(&b);
  else
    pthread_join(t, NULL);
}
static int take_in_body(void *unused) {
  (void)unused;
  take_victim();
  return 0;
}
static int give_in_body(void *unused) {
  (void)unused;
  rig_nv_lock_give(&victim);
  return 0;
}

static void give_free(void) { rig_nv_lock_give(&victim); }
static void give_twice(void) {
  take_victim();
  rig_nv_lock_give(&victim);
  rig_nv_lock_give(&victim);
}
static void give_others(void) {
  in_thread(take_and_stay);
  rig_nv_lock_give(&victim);
}
static void give_in_protect(void) {
  (void)rig_nv_lock_protect(&victim, give_in_body, NULL);
}
static void give_null(void) { rig_nv_lock_give(NULL); }
static void fini_own(void) {
  take_victim();
  rig_nv_lock_fini(&victim);
}
static void fini_others(void) {
  in_thread(take_and_stay);
  rig_nv_lock_fini(&victim);
}
static void guarded_leaves_one(void) {
  (void)rig_nv_lock_guarded(take_in_body, NULL);
}
static void end_holding(void) { in_thread(take_and_end); }

/* The graph's. */

static const struct rig_nv_lock_class own = {"own", 0, RIG_NV_LOCK_UNRANKED};
static struct rig_nv_lock other = RIG_NV_LOCK(&own);

static void take_both(struct rig_nv_lock *first, struct rig_nv_lock *second) {
  if (rig_nv_lock_take_at(first, "f") != 0 ||
      rig_nv_lock_take_at(second, "s") != 0)
    _exit(3);
  rig_nv_lock_give(second);
  rig_nv_lock_give(first);
}
static void say(const char *text) { dprintf(STDERR_FILENO, "said %s\n", text); }
static void cycle_stops(void) {
  (void)rig_nv_lock_watch(RIG_NV_WATCH_STOP);
  take_both(&victim, &other);
  take_both(&other, &victim);
}
static void cycle_is_handled_and_stops(void) {
  (void)rig_nv_lock_on_report(say);
  cycle_stops();
}
static void end_class_of_own(void) {
  take_victim();
  rig_nv_lock_class_end(&rig_nv_lock_path);
}

static const struct {
  const char *name;
  void (*fn)(void);
  const char *line;
} fatal[] = {
    {"give a free one", give_free,
     "rig_nv: give of lock \"path\", which the thread does not hold\n"},
    {"give twice", give_twice, "which the thread does not hold"},
    {"give another thread's", give_others, "which the thread does not hold"},
    {"give inside protect", give_in_protect, "which the thread does not hold"},
    {"give none", give_null, "give of lock \"?\""},
    {"fini while held", fini_own,
     "rig_nv: fini of lock \"path\", which the thread took at v\n"},
    {"fini of another's", fini_others,
     "rig_nv: fini of lock \"path\", which a thread holds"},
    {"guarded returns with one", guarded_leaves_one,
     "rig_nv: a guarded call returned holding lock \"path\", taken at v\n"},
    {"thread ends with one", end_holding,
     "rig_nv: a thread ended holding lock \"path\", taken at v\n"},
    {"a cycle that stops", cycle_stops,
     "rig_nv: lock order: take of \"path\" at s closes a cycle of 2 classes\n"},
    {"a cycle that is handled and stops", cycle_is_handled_and_stops,
     "said lock order: take of \"path\" at s closes a cycle of 2 classes\n"},
    {"the class of a held lock ends", end_class_of_own,
     "rig_nv: end of class \"path\", of which the thread holds a lock, taken "
     "at v\n"},
};

/* What the child of fn wrote to standard error, cut to n, and its status. */
static int child_of(void (*fn)(void), char *text, size_t n) {
  int fd[2], status;
  assert_int_equal(pipe(fd), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    signal(SIGABRT, SIG_DFL);
    dup2(fd[1], STDERR_FILENO);
    close(fd[0]);
    close(fd[1]);
    fn();
    _exit(0);
  }
  close(fd[1]);
  size_t len = 0;
  ssize_t got;
  while (len + 1 < n && (got = read(fd[0], text + len, n - 1 - len)) > 0)
    len += (size_t)got;
  text[len] = '\0';
  close(fd[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  return status;
}

static void test_fatal(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(fatal); i++) {
    char text[8192];
    assert_int_equal(rig_nv_lock_init(&victim, &rig_nv_lock_path), 0);
    int status = child_of(fatal[i].fn, text, sizeof text);
    contains(fatal[i].name, text, fatal[i].line);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
      fail_msg("%s: status %#x", fatal[i].name, status);
    rig_nv_lock_fini(&victim);
  }
}

/* A forked child gives what its thread held, and takes it again. */
static void give_and_take(void) {
  if (rig_nv_lock_idle() != -RIG_NV_INVALID)
    _exit(1);
  rig_nv_lock_give(&victim);
  if (rig_nv_lock_idle() != 0)
    _exit(2);
  take_victim();
  rig_nv_lock_give(&victim);
}

static void test_fork(void **state) {
  (void)state;
  char text[256];
  assert_int_equal(rig_nv_lock_init(&victim, &rig_nv_lock_path), 0);
  take_victim();
  assert_int_equal(child_of(give_and_take, text, sizeof text), 0);
  assert_int_equal(rig_nv_lock_idle(), -RIG_NV_INVALID);
  rig_nv_lock_give(&victim);
  rig_nv_lock_fini(&victim);
}

/* A report with no handler is said, once, and changes nothing. */
static void cycle_goes_on(void) {
  (void)rig_nv_lock_watch(RIG_NV_WATCH_REPORT);
  take_both(&victim, &other);
  take_both(&other, &victim);
  take_both(&other, &victim);
}

static void test_said(void **state) {
  (void)state;
  char text[8192];
  assert_int_equal(rig_nv_lock_init(&victim, &rig_nv_lock_path), 0);
  assert_int_equal(child_of(cycle_goes_on, text, sizeof text), 0);
  contains("said", text, "rig_nv: lock order: take of \"path\" at s closes");
  assert_null(strstr(strstr(text, "closes") + 1, "closes"));
  rig_nv_lock_fini(&victim);
}

/* A forked child has the graph, and its lock, whatever other threads were
 * learning: what the parent learned closes a cycle in the child. */

static atomic_int forks_end;

static void *learn_anew(void *unused) {
  struct rig_nv_lock_class c[2] = {{"x", 0, RIG_NV_LOCK_UNRANKED},
                                   {"y", 0, RIG_NV_LOCK_UNRANKED}};
  struct rig_nv_lock_record r[2] = {RIG_NV_LOCK_RECORD(&c[0]),
                                    RIG_NV_LOCK_RECORD(&c[1])};
  /* Relaxed: a hint to end. */
  while (!atomic_load_explicit(&forks_end, memory_order_relaxed)) {
    if (rig_nv_lock_taken(&r[0]) || rig_nv_lock_wants(&r[1]))
      return &forks_end;
    rig_nv_lock_given(&r[0]);
    rig_nv_lock_class_end(&c[0]);
    rig_nv_lock_class_end(&c[1]);
  }
  return unused;
}

static void cycle_of_parent(void) {
  alarm(10); /* a graph's lock that stays taken */
  (void)rig_nv_lock_on_report(say);
  if (rig_nv_lock_take_at(&other, "o") != 0)
    _exit(3);
  rig_nv_lock_give(&other);
  rig_nv_lock_give(&victim);
  take_both(&other, &victim);
}

static void test_fork_learning(void **state) {
  (void)state;
  enum { FORKS = 50 };
  pthread_t t;
  void *failed;
  assert_int_equal(rig_nv_lock_init(&victim, &rig_nv_lock_path), 0);
  (void)rig_nv_lock_watch(RIG_NV_WATCH_REPORT);
  assert_int_equal(pthread_create(&t, NULL, learn_anew, NULL), 0);
  for (int i = 0; i < FORKS; i++) {
    char text[8192];
    take_victim();
    assert_int_equal(child_of(cycle_of_parent, text, sizeof text), 0);
    contains("fork", text, "take of \"path\" at s closes a cycle of 2 classes");
    contains("fork", text, " held \"path\" (v) and wanted \"own\" (o)");
    rig_nv_lock_give(&victim);
  }
  atomic_store_explicit(&forks_end, 1, memory_order_relaxed);
  pthread_join(t, &failed);
  assert_null(failed);
  (void)rig_nv_lock_watch(RIG_NV_WATCH_OFF);
  rig_nv_lock_fini(&victim);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fatal),
      cmocka_unit_test(test_fork),
      cmocka_unit_test(test_said),
      cmocka_unit_test(test_fork_learning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
