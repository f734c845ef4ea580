/* SPDX-License-Identifier: ISC */
/*
 * A thread that stops in a section, having looked at what others then replace.
 * Rings: they go on to the new ones, and what was replaced is not given back
 * before the stopped thread goes on. What a channel is owed: a value that comes
 * first has it, though the stopped thread was about to.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs those above. */
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "core/device.h"
#include "paths/model/model.h"
#include "rings/point.h"
#include "stress/kernels.h"

enum {
  MS = 1000000,
  STILL_MS = 100, /* a give-back that waits is seen to wait so long */
  PATIENCE_S = 30
};

static struct world {
  const struct rig_nv_path *path;
  struct rig_nv *device;
  struct rig_submission s; /* of a thread that posts */
  enum ring_point at;
  uint32_t stopped, go, given; /* 1 once it is so (release, acquire) */
} world;

static __thread bool stops;

static void nap(void) {
  struct timespec t = {.tv_nsec = MS};
  nanosleep(&t, NULL); /* an early end does no harm */
}

static bool get(const uint32_t *flag) {
  return shared_load_acquire_32(flag) != 0;
}

static void wait_for(const uint32_t *flag, const char *what) {
  for (int i = 0; i < PATIENCE_S * 1000; i++) {
    if (get(flag))
      return;
    nap();
  }
  fail_msg("%s", what);
}

void ring_point(enum ring_point at) {
  if (!stops || at != world.at)
    return;
  stops = false; /* once */
  shared_store_release_32(&world.stopped, 1);
  while (!get(&world.go))
    nap();
}

/* Reads notifiers, or reserves on the rings that were the newest. */
static void *looks(void *arg) {
  int *answer = arg;
  uint64_t v;
  stops = true;
  *answer = world.at == RING_AT_NOTIFIER
                ? device_fault(world.device, false)
                : rig_nv_post(world.device, &world.s, &v);
  return NULL;
}

static void *gives_back(void *arg) {
  int *answer = arg;
  *answer = growth_give_back(&world.device->growth);
  shared_store_release_32(&world.given, 1);
  return NULL;
}

static struct model_counts counts(void) {
  struct model_counts c;
  model_counts(world.path, &c);
  return c;
}

static void reach(uint64_t v) {
  if (rig_nv_wait(world.device, v, UINT64_MAX) != 0)
    fail_msg("%s", rig_nv_why());
}

static uint64_t post(void) {
  uint64_t v = 0;
  assert_int_equal(rig_nv_post(world.device, &world.s, &v), 0);
  reach(v);
  return v;
}

static void begin(enum ring_point at) {
  const struct device_sizes sizes = {.entries = 16,
                                     .segment_bytes = 4096,
                                     .launch_bytes = 4096,
                                     .in_flight = 8};
  world = (struct world){.at = at};
  assert_int_equal(rig_nv_path_model(NULL, &world.path), 0);
  assert_int_equal(device_make_sized(world.path, NULL, &sizes, &world.device),
                   0);
  (void)post();
}

static void end(void) {
  assert_int_equal(rig_nv_stop(world.device, NULL), 0);
  assert_int_equal(rig_nv_release(world.device), 0);
  assert_int_equal(rig_nv_path_close(world.path), 0);
}

static void stopped(enum ring_point at) {
  pthread_t looker, giver;
  int looked = -1, gave = -1;
  const struct ring_need need = {.entries = {100, 0}};
  uint64_t bytes;
  begin(at);
  assert_int_equal(growth_grow(&world.device->growth, &need, &bytes), 0);
  assert_int_equal(pthread_create(&looker, NULL, looks, &looked), 0);
  wait_for(&world.stopped, "the thread does not come to the point");
  uint64_t v = post(); /* on the new channels: the old ones are done with */
  assert_int_equal(world.device->rings.seat.generation, 1);
  assert_int_equal(pthread_create(&giver, NULL, gives_back, &gave), 0);
  for (int i = 0; i < STILL_MS; i++)
    nap();
  bool early = get(&world.given) || counts().channels != 4;
  shared_store_release_32(&world.go, 1);
  pthread_join(looker, NULL);
  pthread_join(giver, NULL);
  if (early)
    fail_msg("given back while a thread looks at it");
  assert_int_equal(looked, 0);
  assert_int_equal(gave, 0);
  assert_int_equal(counts().channels, 2);
  if (at != RING_AT_NOTIFIER)
    assert_int_equal(rings_last(&world.device->rings), v + 1);
  end();
}

static void test_notifier(void **state) {
  (void)state;
  stopped(RING_AT_NOTIFIER);
}

static void test_swap(void **state) {
  (void)state;
  stopped(RING_AT_SWAP);
}

/* Local memory has grown, of which COMPUTE is to be told. A thread stops before
 * the swap that would make it the one to tell; another's value comes first and
 * tells, so the thread's own need not. */
static void test_owed(void **state) {
  (void)state;
  struct kernels k;
  struct rig_nv_function deep;
  struct rig_nv_region *out;
  pthread_t looker;
  int looked = -1;
  begin(RING_AT_SWAP);
  assert_int_equal(kernels_make(world.device, world.path, &k), 0);
  assert_int_equal(rig_nv_alloc(world.device, RIG_PINNED, 4096, &out), 0);
  (void)post(); /* tells of all so far */
  assert_int_equal(kernels_find(&k, "deep", &deep), 0);
  struct {
    _Alignas(16) struct rig_block block;
    uint64_t out;
  } call = {{{1, 1, 1}, {32, 1, 1}, 0, 0}, rig_nv_locate(out).address};
  struct rig_part p = rig_part_launch(deep.code, deep.launch, 0, 8);
  world.s = (struct rig_submission){
      .parts = &p, .nparts = 1, .args = &call, .args_bytes = sizeof call};
  const struct model_counts before = counts();
  assert_int_equal(pthread_create(&looker, NULL, looks, &looked), 0);
  wait_for(&world.stopped, "the thread does not come to the point");
  uint64_t v = post();
  bool told = counts().locals == before.locals + 1;
  shared_store_release_32(&world.go, 1);
  pthread_join(looker, NULL);
  assert_int_equal(looked, 0);
  reach(v + 1);
  if (!told || counts().locals != before.locals + 1)
    fail_msg("COMPUTE is not told of local memory once");
  assert_int_equal(counts().launches, before.launches + 2);
  assert_int_equal(kernels_end(&k), 0);
  assert_int_equal(rig_nv_free(world.device, out), 0);
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_notifier),
      cmocka_unit_test(test_swap),
      cmocka_unit_test(test_owed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
