/* SPDX-License-Identifier: ISC */
/*
 * What a process holds: nothing grows over many devices, a fork's child may
 * end, and so may a process with a device open.
 */
#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/api/why.h"
#include "stress/fault_stress.h"

extern char **environ;

enum {
  WARM = 8,         /* cycles before the first count */
  FRESH = 16,       /* of these, one runs in a thread of its own */
  SLACK_PAGES = 256 /* that the process may grow by, in all */
};

struct held {
  unsigned files, mappings;
  long pages; /* resident */
};

static struct held count(void) {
  struct held h = {0};
  DIR *d = opendir("/proc/self/fd");
  while (d != NULL && readdir(d) != NULL)
    h.files++;
  if (d != NULL)
    closedir(d);
  FILE *f = fopen("/proc/self/maps", "re");
  for (int c; f != NULL && (c = getc(f)) != EOF;)
    h.mappings += c == '\n';
  if (f != NULL)
    fclose(f);
  f = fopen("/proc/self/statm", "re");
  if (f != NULL && fscanf(f, "%*d %ld", &h.pages) != 1)
    h.pages = 0;
  if (f != NULL)
    fclose(f);
  return h;
}

/* A sanitizer's own memory grows. */
static bool counts_pages(void) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#endif
#endif
  return true;
}

static bool grew(struct held was, struct held is) {
  return is.files != was.files || is.mappings > was.mappings + 2 ||
         (counts_pages() && is.pages > was.pages + SLACK_PAGES);
}

/* The RM of a PCI path frees nothing: its path is opened anew. */
static bool cycle(struct ground *g) {
  struct ground own, *on = g;
  if (g == NULL) {
    on = &own;
    if (!ground_open(on, MODEL_PATH_PCI, 1, -1))
      return false;
  }
  if (!ground_again(on))
    return false;
  if (on->f.nmemories != 0 || on->host_live != 0 ||
      (g != NULL && (on->f.nobjects != 0 || on->f.nregistered != 0)))
    return faults_broke("a device left %zu memories, %zu objects",
                        on->f.nmemories, on->f.nobjects);
  return g != NULL || ground_close(on);
}

static void *cycle_of_thread(void *arg) { return cycle(arg) ? arg : NULL; }

static bool cycle_apart(struct ground *g) {
  pthread_t t;
  void *right = NULL;
  if (pthread_create(&t, NULL, cycle_of_thread, g) != 0)
    return faults_broke("no thread");
  pthread_join(t, &right);
  return right != NULL;
}

static bool cycles(struct faults *s) {
  struct ground g;
  struct held first = {0}, last;
  if (!ground_open(&g, MODEL_PATH_KERNEL, s->seed, -1))
    return false;
  for (unsigned i = 0; i < s->cycles; i++) {
    bool right = i % FRESH == 1   ? cycle_apart(&g)
                 : i % FRESH == 2 ? cycle(NULL)
                                  : cycle(&g);
    if (!right)
      return faults_broke("cycle %u", i);
    if (i == WARM + s->cycles / 20)
      first = count();
    s->n.cycles++;
  }
  last = count();
  if (s->cycles > 2 * WARM && grew(first, last))
    return faults_broke("%u cycles: files %u -> %u, mappings %u -> %u, pages "
                        "%ld -> %ld",
                        s->cycles, first.files, last.files, first.mappings,
                        last.mappings, first.pages, last.pages);
  printf("%u cycles: files %u -> %u, mappings %u -> %u, pages %ld -> %ld\n",
         s->cycles, first.files, last.files, first.mappings, last.mappings,
         first.pages, last.pages);
  return ground_close(&g);
}

static bool ends_well(pid_t child, const char *what) {
  int status = -1;
  return (child > 0 && waitpid(child, &status, 0) == child && status == 0) ||
         faults_broke("%s ended with 0x%x", what, status);
}

struct poster {
  struct rig_nv *d;
  uint32_t ended; /* (ck_pr) */
  int e;
  pthread_t thread;
};

static void *post_on(void *arg) {
  struct poster *p = arg;
  uint64_t v;
  while (p->e == 0 && !ck_pr_load_32(&p->ended))
    p->e = rig_nv_post_wait(p->d, &(struct rig_submission){0},
                            device_now() + UINT64_C(20000000000), &v);
  return NULL;
}

/* The child ends at once, by exit and by _exit, while another thread posts. */
static bool forks(struct faults *s) {
  struct ground g;
  struct poster p = {0};
  uint64_t v = 0;
  if (!ground_open(&g, MODEL_PATH_KERNEL, s->seed, -1) ||
      ground_make(&g, RIG_NV_POST, &p.d) != 0)
    return faults_broke("%s", rig_nv_why());
  if (pthread_create(&p.thread, NULL, post_on, &p) != 0)
    return faults_broke("no thread");
  bool right = true;
  for (unsigned i = 0; i < s->process && right; i++) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0 && i % 2)
      exit(0);
    if (child == 0)
      _exit(0);
    right = ends_well(child, "a forked child");
  }
  ck_pr_store_32(&p.ended, 1);
  pthread_join(p.thread, NULL);
  right = right && (p.e == 0 || faults_broke("post: %s", rig_nv_why()));
  uint64_t end = device_now() + UINT64_C(20000000000);
  right = right &&
          rig_nv_post_wait(p.d, &(struct rig_submission){0}, end, &v) == 0 &&
          rig_nv_wait(p.d, v, end) == 0 && rig_nv_stop(p.d, NULL) == 0 &&
          rig_nv_release(p.d) == 0;
  return (right || faults_broke("forks: %s", rig_nv_why())) &&
         ground_again(&g) && ground_close(&g);
}

int faults_exit_open(void) {
  static struct ground g;
  static struct rig_nv *d; /* found by a leak checker */
  uint64_t v;
  if (!ground_open(&g, MODEL_PATH_KERNEL, 1, -1) ||
      ground_make(&g, RIG_NV_POST, &d) != 0)
    return 1;
  for (int i = 0; i < 20; i++)
    if (rig_nv_post_wait(d, &(struct rig_submission){0}, UINT64_MAX, &v) != 0)
      return 1;
  exit(0);
}

static bool exits(struct faults *s) {
  char *argv[] = {"fault_stress", "--exit-open", NULL};
  for (unsigned i = 0; i < s->process; i++) {
    pid_t child = -1;
    fflush(NULL);
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, argv, environ) != 0)
      return faults_broke("no process");
    if (!ends_well(child, "a process with a device open"))
      return false;
  }
  return true;
}

bool faults_process(struct faults *s) {
  return cycles(s) && forks(s) && exits(s);
}
