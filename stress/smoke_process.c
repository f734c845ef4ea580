/* SPDX-License-Identifier: ISC */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/device.h"
#include "stress/smoke.h"

extern char **environ;

/* Files of the process, and mappings: in all, and shared ones, which a path's
 * are. */
struct counts {
  unsigned files, mappings, shared;
};

static struct counts count(void) {
  struct counts n = {0};
  DIR *d = opendir("/proc/self/fd");
  while (d != NULL && readdir(d) != NULL)
    n.files++;
  if (d != NULL)
    closedir(d);
  FILE *f = fopen("/proc/self/maps", "re");
  char line[512];
  while (f != NULL && fgets(line, sizeof line, f) != NULL) {
    char perms[5] = "";
    n.mappings++;
    if (sscanf(line, "%*s %4s", perms) == 1 && perms[3] == 's')
      n.shared++;
  }
  if (f != NULL)
    fclose(f);
  return n;
}

static bool same(const char *what, struct counts was, struct counts is) {
  printf("%s files %u -> %u, shared mappings %u -> %u, all mappings "
         "%u -> %u\n",
         what, was.files, is.files, was.shared, is.shared, was.mappings,
         is.mappings);
  return (was.files == is.files && was.shared == is.shared) ||
         smoke_failed("files or shared mappings were left");
}

static bool device_cycles(struct smoke *s, unsigned n, uint64_t *ns) {
  uint64_t begun = device_now();
  for (unsigned i = 0; i < n; i++) {
    uint64_t v;
    if (!smoke_device_open(s) || !smoke_post(s, NULL, 0, &v) ||
        !smoke_reach(s, v) || !smoke_device_close(s))
      return false;
  }
  *ns = n != 0 ? (device_now() - begun) / n : 0;
  return true;
}

bool smoke_cycles(struct smoke *s, unsigned n) {
  uint64_t ns, begun;
  unsigned paths = n / 20 + 1;
  struct counts before = count();
  if (!smoke_path_open(s) || !device_cycles(s, 1, &ns))
    return false;
  struct counts first = count();
  if (!s->path->rm.frees) /* its stop ends the path, too */
    n = 0;
  if (!device_cycles(s, n, &ns) ||
      !same("devices                ", first, count()) || !smoke_path_close(s))
    return false;
  printf("a device opened, used, stopped: %" PRIu64 " us, of %u\n", ns / 1000,
         n);
  begun = device_now();
  for (unsigned i = 0; i < paths; i++)
    if (!smoke_path_open(s) || !device_cycles(s, 1, &ns) ||
        !smoke_path_close(s))
      return false;
  printf("a path opened, used, closed: %" PRIu64 " us, of %u\n",
         (device_now() - begun) / paths / 1000, paths);
  return same("paths                  ", before, count());
}

/* The model opens as often as it is asked. */
bool smoke_second(struct smoke *s) {
  struct smoke again = *s;
  if (strcmp(s->path_name, "nvidia") != 0)
    return true;
  again.gpu = s->path->index;
  struct rig_nv_nvidia_options o;
  rig_nv_nvidia_options_init(&o);
  o.gpu = s->path->index;
  int r = rig_nv_path_nvidia(&o, &again.path);
  if (r != -RIG_NV_INVALID)
    return smoke_failed("a second open of the GPU answers %d", r);
  printf("second open             refused: %s\n", rig_nv_why());
  return true;
}

/* A child that ends at once, by exit and by _exit, in the midst of work. */
bool smoke_fork(struct smoke *s) {
  for (int i = 0; i < 4; i++) {
    uint64_t v;
    if (!smoke_post(s, NULL, 0, &v))
      return false;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0 && i % 2)
      exit(0);
    if (child == 0)
      _exit(0);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
      return smoke_failed("a forked child ended with %d", status);
    if (!smoke_post(s, NULL, 0, &v) || !smoke_reach(s, v))
      return false;
  }
  printf("fork and exit           4 times\n");
  return true;
}

enum { VICTIMS = 8, VICTIM_S = 20 };

static void *victim(void *arg) {
  struct smoke *s = arg;
  for (;;) {
    uint64_t v;
    int answer = rig_nv_post(s->device, &(struct rig_submission){0}, &v);
    if (answer == RIG_LATER)
      (void)rig_nv_wait(s->device, rig_nv_signaled(s->device) + 1,
                        device_now() + 1000000);
  }
  return NULL;
}

bool smoke_victim(struct smoke *s) {
  pthread_t threads[VICTIMS];
  for (int i = 0; i < VICTIMS; i++)
    if (pthread_create(&threads[i], NULL, victim, s) != 0)
      return smoke_failed("no thread");
  printf("ready\n");
  fflush(stdout);
  sleep(VICTIM_S);
  return smoke_failed("the victim was not killed");
}

static bool await_ready(int fd) {
  FILE *f = fdopen(fd, "r");
  char line[256];
  bool ready = false;
  while (f != NULL && !ready && fgets(line, sizeof line, f) != NULL)
    ready = strcmp(line, "ready\n") == 0;
  if (f != NULL)
    fclose(f);
  return ready || smoke_failed("the victim did not start");
}

bool smoke_kill(const struct smoke *s) {
  char gpu[32];
  int pipes[2], status = 0;
  pid_t child;
  posix_spawn_file_actions_t actions;
  snprintf(gpu, sizeof gpu, "--gpu=%d", s->gpu);
  char *argv[] = {
      "device_smoke", "--path", (char *)(uintptr_t)s->path_name, gpu, "--only",
      "victim",       NULL};
  if (pipe(pipes) != 0 || posix_spawn_file_actions_init(&actions) != 0)
    return smoke_failed("pipe");
  posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipes[0]);
  posix_spawn_file_actions_addclose(&actions, pipes[1]);
  int e = posix_spawn(&child, "/proc/self/exe", &actions, NULL, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(pipes[1]);
  if (e != 0)
    return smoke_failed("spawn: %s", strerror(e));
  bool ok = await_ready(pipes[0]);
  device_nap(UINT64_C(200000000));
  kill(child, SIGKILL);
  ok = waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
       WTERMSIG(status) == SIGKILL && ok;
  printf("killed as it posted     %s\n", ok ? "yes" : "no");
  return ok || smoke_failed("the victim ended with %d", status);
}
