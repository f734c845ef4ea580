/* SPDX-License-Identifier: ISC */
/*
 * The array that a reader found stays as it is until its section closes. The
 * program is built twice: with rings/flush.c as it is, and with one that waits
 * for no reader (FLUSH_NO_GRACE), which has to be caught: by the change that
 * the reader sees, and under TSan by its report.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rings/flush.h"
#include "rings/rcu.h"
#include "rings/shared.h"

enum { KEPT = 0, CHANGED = 1, REPORTED = 66 }; /* TSan's exit status */

#ifndef FLUSH_NO_GRACE
enum { EXPECTED = KEPT };
#elif defined RING_RCU_TSAN
enum { EXPECTED = REPORTED };
#else
enum { EXPECTED = CHANGED };
#endif

static struct flush_set set;
static volatile uint32_t words[4];
static struct flush_source sources[4];
static uint32_t inside; /* the reader has its array */

static void nap(void) {
  struct timespec t = {.tv_nsec = 50 * 1000 * 1000};
  nanosleep(&t, NULL);
}

static void add(int i) {
  if (flush_add(&set, &sources[i]) != FLUSH_ADDED)
    _exit(2);
}

static void add_one(void) { add(2); }
static void drop_one(void) { flush_drop(&set, &sources[1]); }
static void end_one(void) { flush_end(&sources[1]); }

/* The change that ends the reader's array; the next one goes where that was. */
static const struct first {
  const char *name;
  void (*change)(void);
} firsts[] = {{"add", add_one}, {"drop", drop_one}, {"end", end_one}};

static void *writer(void *first) {
  const struct first *f = first;
  while (!shared_load_32(&inside))
    ck_pr_stall();
  f->change();
  add(3);
  return NULL;
}

static bool same(const struct flush_words *w) {
  return w->n == 2 && w->at[0] == &words[0] && w->at[1] == &words[1];
}

static void run(const struct first *f) {
  pthread_t t;
  for (int i = 0; i < 4; i++)
    sources[i].word = &words[i];
  add(0);
  add(1);
  if (pthread_create(&t, NULL, writer, (void *)(uintptr_t)f) != 0)
    _exit(2);
  ring_rcu_lock();
  const struct flush_words *w = ring_rcu_dereference(&set.now);
  bool kept = same(w);
  ck_pr_store_32(&inside, 1); /* orders none of the reads below */
  nap();
  kept &= same(w);
  ring_rcu_unlock();
  if (pthread_join(t, NULL) != 0 || set.now->at[set.now->n - 1] != &words[3])
    _exit(2);
  _exit(kept ? KEPT : CHANGED);
}

static void test_kept(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
    pid_t pid = fork();
    int status;
    assert_true(pid >= 0);
    if (pid == 0)
      run(&firsts[i]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != EXPECTED)
      fail_msg("%s: %#x", firsts[i].name, (unsigned)status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
