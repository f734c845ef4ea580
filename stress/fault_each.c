/* SPDX-License-Identifier: ISC */
/*
 * The life of a device, of which one call fails: each of the path's in turn,
 * with each answer, then each of the host's allocator.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "stress/fault_stress.h"
#include "stress/kernels.h"

enum { PAGE = 4096, REGIONS = 5 };

struct life {
  struct ground g;
  struct rig_nv *d;
  struct rig_nv_region *r[REGIONS];
  struct kernels k;
  void *page;
  int e;            /* the first error */
  const char *step; /* whose it is */
  char why[1024];
  bool broken;
};

/* Runs a step, unless one failed before. */
static bool did(struct life *l, const char *step, int e) {
  if (e >= 0)
    return true;
  if (l->e == 0) {
    l->e = e;
    l->step = step;
    snprintf(l->why, sizeof l->why, "%s", rig_nv_why());
  }
  return false;
}

static uint64_t soon(void) { return device_now() + UINT64_C(20000000000); }

static void *bytes_of(struct life *l) { return l->page; }

static bool memory(struct life *l) {
  static const enum rig_memory kinds[] = {RIG_DEVICE, RIG_PINNED, RIG_MAPPED};
  enum rig_mapping mapping;
  for (int i = 0; i < 3; i++)
    if (!did(l, "alloc", rig_nv_alloc(l->d, kinds[i], PAGE, &l->r[i])))
      return false;
  return did(l, "map_host",
             rig_nv_map_host(l->d, l->page, PAGE, &mapping, &l->r[3])) &&
         did(l, "upload", rig_nv_upload(l->d, l->r[0], 0, bytes_of(l), PAGE)) &&
         did(l, "download",
             rig_nv_download(l->d, l->r[0], 0, bytes_of(l), PAGE));
}

static bool images(struct life *l) {
  uint64_t need;
  if (!did(l, "kernels", kernels_make(l->d, l->g.model, &l->k)))
    return false;
  return did(l, "local", rig_nv_local(l->d, 2048, &need)) &&
         did(l, "local", rig_nv_local(l->d, 4096, &need));
}

/* Values, and a region that goes back at the second alloc after one. */
static bool work(struct life *l) {
  struct rig_submission s = {0};
  uint64_t v = 0, seen = rig_nv_signaled(l->d);
  struct rig_nv_region *late = NULL;
  if (!did(l, "post", rig_nv_post_wait(l->d, &s, soon(), &v)) ||
      !did(l, "sleep", rig_nv_sleep(l->d, seen, 20000)) ||
      !did(l, "alloc", rig_nv_alloc(l->d, RIG_DEVICE, PAGE, &late)))
    return false;
  if (!did(l, "free_after", rig_nv_free_after(l->d, late, v + 1)) ||
      !did(l, "post", rig_nv_post_wait(l->d, &s, soon(), &v)) ||
      !did(l, "wait", rig_nv_wait(l->d, v, soon())))
    return false;
  if (!did(l, "sleep", rig_nv_sleep(l->d, rig_nv_signaled(l->d), 0)))
    return false;
  return did(l, "alloc", rig_nv_alloc(l->d, RIG_PINNED, PAGE, &l->r[4]));
}

/* A fault that a call answered before stop loses the device. */
static bool lost_by(struct life *l) {
  struct rig_nv_region *none = NULL;
  if (l->e != -RIG_NV_FAULT)
    return true;
  int e = rig_nv_alloc(l->d, RIG_DEVICE, PAGE, &none);
  return (e == -RIG_NV_LOST && strcmp(rig_nv_why(), l->why) == 0) ||
         faults_broke("after %s: alloc: %d, %s, not %s", l->step, e,
                      rig_nv_why(), l->why);
}

/* Half before stop, half after it. */
static bool end(struct life *l) {
  if (l->k.image)
    did(l, "unload", kernels_end(&l->k));
  for (int i = 0; i < REGIONS; i += 2)
    if (l->r[i])
      did(l, "free", rig_nv_free(l->d, l->r[i]));
  uint64_t last = rings_last(&l->d->rings);
  did(l, "stop", rig_nv_stop(l->d, l->e ? l->why : NULL));
  l->g.stopped = !l->g.f.path.rm.frees;
  if (rig_nv_signaled(l->d) != last)
    return faults_broke("stop left the word at %llu, not %llu",
                        (unsigned long long)rig_nv_signaled(l->d),
                        (unsigned long long)last);
  for (int i = 1; i < REGIONS; i += 2)
    if (l->r[i])
      did(l, "free", rig_nv_free(l->d, l->r[i]));
  did(l, "release", rig_nv_release(l->d));
  return true;
}

static bool live(struct life *l) {
  if (!did(l, "make", ground_make(&l->g, RIG_NV_POST, &l->d)))
    return true;
  bool whole = memory(l) && images(l) && work(l);
  uint64_t last = rings_last(&l->d->rings), patience = soon();
  /* A device that was lost is stopped with its work in flight. */
  while (!whole && l->e != -RIG_NV_FAULT && rig_nv_signaled(l->d) != last) {
    if (device_now() > patience)
      return faults_broke("after %s: the word stands still", l->step);
    device_nap(50000);
  }
  return lost_by(l) && end(l);
}

static int expected(const struct life *l, const char *failed,
                    enum rig_nv_answer is) {
  bool fault = strcmp(failed, "path_free") == 0 ||
               strcmp(failed, "path_check") == 0 || is == RIG_NV_FAULTED;
  if (fault)
    return strcmp(l->step, "make") == 0 ? -RIG_NV_REFUSED : -RIG_NV_FAULT;
  if (is == RIG_NV_LACKING)
    return strcmp(l->step, "local") == 0 || l->e == -RIG_NV_SHORT
               ? -RIG_NV_SHORT
               : -RIG_NV_NO_MEMORY;
  return is == RIG_NV_DENIED ? -RIG_NV_REFUSED : -RIG_NV_INVALID;
}

/* Whether the failure was one that stop drops, or make goes on after. */
static bool dropped(const struct life *l, const char *failed,
                    enum rig_nv_answer is) {
  (void)l;
  return strcmp(failed, "path_unregister") == 0 ||
         strcmp(failed, "rm_free") == 0 ||
         (strcmp(failed, "path_alloc") == 0 && is == RIG_NV_LACKING);
}

/* The answer, its reason, and what is left. */
static bool judge_path(const struct life *l, enum rig_nv_answer is) {
  const struct failing_path *f = &l->g.f;
  const char *failed = f->failed;
  bool free_failed = strcmp(failed, "path_free") == 0;
  if (l->e == 0 && !dropped(l, failed, is))
    return faults_broke("no call says that %s failed", failed);
  if (l->e != 0 &&
      (l->e != expected(l, failed, is) || strstr(l->why, failed) == NULL))
    return faults_broke("%s: %d, %s", l->step, l->e, l->why);
  bool kernel = l->g.is == MODEL_PATH_KERNEL;
  bool objects = f->nobjects != 0 || f->nregistered != 0;
  if (kernel &&
      objects != (l->e == 0 && (strcmp(failed, "rm_free") == 0 ||
                                strcmp(failed, "path_unregister") == 0)))
    return faults_broke("%zu objects, %zu registrations after %s", f->nobjects,
                        f->nregistered, failed);
  bool make_kept = !kernel && l->d == NULL && f->nobjects != 0;
  if (!(kernel && objects) && !make_kept && f->nmemories != free_failed)
    return faults_broke("%zu memories after %s", f->nmemories, failed);
  if (make_kept && strstr(l->why, "stay") == NULL)
    return faults_broke("it does not say what stays: %s", l->why);
  return true;
}

static bool judge_host(const struct life *l) {
  if (l->e != -RIG_NV_HOST_MEMORY ||
      strstr(l->why, "the host allocator has no") == NULL)
    return faults_broke("%s: %d, %s", l->step ? l->step : "nothing", l->e,
                        l->why);
  if (l->g.f.nmemories != 0 && l->g.is == MODEL_PATH_KERNEL)
    return faults_broke("%zu memories after %s", l->g.f.nmemories, l->step);
  return true;
}

/* One life; *over: the n-th call did not come. */
static bool one(struct faults *s, int path, unsigned n, enum rig_nv_answer is,
                bool *over) {
  struct life l;
  memset(&l, 0, sizeof l);
  if (!ground_open(&l.g, path, s->seed + n, -1))
    return false;
  l.page = aligned_alloc(PAGE, PAGE);
  if (l.page == NULL)
    return faults_broke("no page");
  memset(l.page, 0, PAGE);
  bool host = is == RIG_NV_OK;
  l.g.f.answer = is;
  l.g.f.fail_at = host ? 0 : n;
  l.g.host_fails = host ? n : 0;
  bool right = live(&l);
  *over = host ? l.g.host_calls < n : l.g.f.failed == NULL;
  s->n.lives++;
  if (right && *over)
    right = l.e == 0 || faults_broke("%s: %d, %s", l.step, l.e, l.why);
  else if (right)
    right = host ? judge_host(&l) : judge_path(&l, is);
  if (!*over && host)
    s->n.host_failures++;
  else if (!*over)
    s->n.path_failures++;
  right = right && ground_again(&l.g) && ground_close(&l.g);
  free(l.page);
  return right || faults_broke("model path %d, call %u, answer %d, seed %llu",
                               path, n, (int)is, (unsigned long long)s->seed);
}

bool faults_each(struct faults *s) {
  /* OK: a host allocation fails instead. */
  static const enum rig_nv_answer answers[] = {
      RIG_NV_LACKING, RIG_NV_DENIED, RIG_NV_FAULTED, RIG_NV_WRONG, RIG_NV_OK};
  for (int path = 0; path < MODEL_PATHS; path++)
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
      bool over = false;
      for (unsigned n = 1; !over; n++)
        if (!one(s, path, n, answers[i], &over))
          return false;
    }
  return true;
}
