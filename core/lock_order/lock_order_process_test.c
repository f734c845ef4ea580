/* SPDX-License-Identifier: ISC */
#define _POSIX_C_SOURCE 200809L /* barriers, fork */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/api/rig_nv.h"
#include "core/lock_order/lock_order.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fatal),
      cmocka_unit_test(test_fork),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
