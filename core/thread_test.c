/* SPDX-License-Identifier: ISC */
#include "core/spec_bed.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct rig_nv *device;

/* A new thread's first submission, in a process of its own that a system call
 * but exit, read or write kills. */
static const struct first {
  const char *name;
  void (*calls[2])(void); /* before it */
  int status;             /* or 256 and the signal */
} firsts[] = {
    {"entered", {rig_nv_thread_enter, NULL}, 0},
    {"entered twice", {rig_nv_thread_enter, rig_nv_thread_enter}, 0},
    {"entered and left", {rig_nv_thread_enter, rig_nv_thread_leave}, 0},
    {"not entered", {NULL, NULL}, 256 + SIGKILL},
    {"left alone", {rig_nv_thread_leave, NULL}, 256 + SIGKILL},
};

static void submit_strictly(const struct first *f) {
  struct rig_submission s = {0};
  const char *failure;
  for (size_t i = 0; i < COUNT(f->calls); i++)
    if (f->calls[i])
      f->calls[i]();
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
    syscall(SYS_exit, 2);
  bool done = rig_nv_room(device, &s) == RIG_FITS &&
              rig_nv_submit(device, 1, &s, &failure) == RIG_COMMITTED;
  syscall(SYS_exit, done ? 0 : 1);
}

/* fork gives the child this thread alone, as new to the library as it is. */
static void *run(void *first) {
  static int status;
  pid_t pid = fork();
  if (pid == 0)
    submit_strictly(first);
  if (pid < 0 || waitpid(pid, &status, 0) != pid)
    return NULL;
  status = WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
  return &status;
}

static void test_first_submission(void **state) {
  (void)state;
  struct bed b;
  begin(&b, KERNEL);
  device = b.d;
  for (size_t i = 0; i < COUNT(firsts); i++) {
    pthread_t t;
    void *status;
    assert_int_equal(
        pthread_create(&t, NULL, run, (void *)(uintptr_t)&firsts[i]), 0);
    assert_int_equal(pthread_join(t, &status), 0);
    assert_non_null(status);
    if (*(int *)status != firsts[i].status)
      fail_msg("%s: %d", firsts[i].name, *(int *)status);
  }
  end(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_first_submission),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
