/* SPDX-License-Identifier: ISC */
/*
 * short_threads_stress: 10,000 threads, at most 8 at a time, each of which
 * posts once and ends. Nothing is left behind: nothing is allocated meanwhile,
 * every spare of the tail is back, the seat is free, and every value ran once
 * and in order. Exit status 0, or 1 with the reason on stderr.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "stress/chain.h"
#include "stress/post_run.h"

enum { AT_A_TIME = 8, EACH = 1250, PATIENCE_S = 60 };

static struct shared {
  const struct rig_nv_path *path;
  struct rig_nv *device;
  struct chain chain;
  uint64_t calls; /* of the device's allocator (atomic) */
  int64_t live;   /* what it gave and did not get back (atomic) */
} shared;

struct short_thread {
  unsigned slot;
  int answer;
  char why[256];
  pthread_t thread;
};

static void count(int64_t n) {
  /* Relaxed: read where no other thread runs. */
  __atomic_fetch_add(&shared.calls, 1, __ATOMIC_RELAXED);
  __atomic_fetch_add(&shared.live, n, __ATOMIC_RELAXED);
}

static void *host_alloc(void *ctx, size_t align, size_t n) {
  (void)ctx;
  void *p = aligned_alloc(align, (n + align - 1) / align * align);
  count(p != NULL);
  return p;
}

static void host_release(void *ctx, void *p, size_t n) {
  (void)ctx;
  (void)n;
  count(p ? -1 : 0);
  free(p);
}

static int failed(const char *what, const char *cause) {
  fprintf(stderr, "short_threads_stress: %s: %s\n", what, cause);
  return 1;
}

static void *once(void *arg) {
  struct short_thread *t = arg;
  struct rig_part part;
  struct rig_submission s = {.parts = &part, .nparts = 1};
  uint64_t v, end = device_now() + PATIENCE_S * UINT64_C(1000000000);
  chain_link(&shared.chain, t->slot, (int)t->slot % 2, &part);
  t->answer = rig_nv_post_wait(shared.device, &s, end, &v);
  if (t->answer == 0)
    chain_took(&shared.chain, t->slot, v);
  else
    snprintf(t->why, sizeof t->why, "answer %d: %s", t->answer, rig_nv_why());
  return NULL;
}

/* A slot's next thread begins once its last one is joined. */
static int threads(void) {
  static struct short_thread t[AT_A_TIME];
  for (unsigned i = 0; i < AT_A_TIME * (EACH + 1); i++) {
    struct short_thread *my = &t[i % AT_A_TIME];
    if (i >= AT_A_TIME) {
      pthread_join(my->thread, NULL);
      if (my->answer != 0)
        return failed("post", my->why);
    }
    my->slot = i % AT_A_TIME;
    int e =
        i < AT_A_TIME * EACH ? pthread_create(&my->thread, NULL, once, my) : 0;
    if (e != 0)
      return failed("starting a thread", strerror(e));
  }
  return 0;
}

static int with_chain(void) {
  struct rig_nv *d = shared.device;
  struct post_run run = {
      .device = d, .chain = &shared.chain, .patience_s = PATIENCE_S};
  uint64_t begin = rings_last(&d->rings) + 1, calls = shared.calls;
  post_run_init(&run);
  chain_begin(&shared.chain);
  if (threads())
    return 1;
  if (shared.calls != calls)
    return failed("the device's allocator", "a post called it");
  if (!post_run_quiet(&run, begin))
    return failed("afterwards", run.what);
  printf("%d threads, %d at a time: %.2f values a doorbell\n", AT_A_TIME * EACH,
         (int)AT_A_TIME, (double)(AT_A_TIME * EACH) / (double)device_bells(d));
  return 0;
}

static int with_device(void) {
  const struct device_sizes sizes = {
      .entries = 1024, .segment_bytes = 65536, .in_flight = 256};
  const struct rig_nv_allocator hooks = {host_alloc, host_release, NULL};
  struct rig_nv_options o;
  rig_nv_options_init(&o);
  o.mode = RIG_NV_POST;
  o.allocator = &hooks;
  if (device_make_sized(shared.path, &o, &sizes, &shared.device))
    return failed("making the device", rig_nv_why());
  if (chain_make(shared.device, AT_A_TIME, EACH, &shared.chain))
    return failed("making the chain", rig_nv_why());
  if (with_chain())
    return 1; /* work that is stuck keeps its memory */
  if (rig_nv_stop(shared.device, NULL) || chain_end(&shared.chain) ||
      rig_nv_release(shared.device))
    return failed("ending the device", rig_nv_why());
  return shared.live ? failed("the device's allocator", "some is kept") : 0;
}

int main(void) {
  if (rig_nv_path_model(NULL, &shared.path))
    return failed("opening the model", rig_nv_why());
  if (with_device())
    return 1;
  return rig_nv_path_close(shared.path) ? failed("close", rig_nv_why()) : 0;
}
