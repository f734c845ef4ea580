/* SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/device.h"
#include "stress/post_run.h"
#include "stress/smoke.h"

enum { MOST_EACH = 1024, PATIENCE_S = 20 };

static bool rounds(struct smoke *s, struct post_run *r, uint64_t posts,
                   bool tell) {
  uint64_t each = posts / s->threads + 1;
  for (uint64_t done = 0; done < each;) {
    uint64_t n = each - done < MOST_EACH ? each - done : MOST_EACH;
    if (!post_run_round(r, n) || !post_run_verify(r))
      return smoke_failed("posts: %s", r->what);
    done += n;
  }
  if (tell)
    printf("posts                   %" PRIu64
           " of %u threads, all bytes right; "
           "LATER %" PRIu64 ", GROW %" PRIu64 ", NEVER %" PRIu64 "\n",
           r->tally.fits, s->threads, r->tally.later, r->tally.grow,
           r->tally.never);
  return true;
}

static bool with_arena(struct smoke *s, struct arena *arena, uint64_t posts,
                       bool tell) {
  struct chain chain;
  if (chain_make(s->device, s->threads, MOST_EACH, &chain) != 0)
    return smoke_failed("chain: %s", rig_nv_why());
  struct post_run run = {.device = s->device,
                         .arena = arena,
                         .chain = &chain,
                         .seed = s->seed,
                         .patience_s = PATIENCE_S};
  post_run_init(&run);
  bool ok = rounds(s, &run, posts, tell);
  return (chain_end(&chain) == 0 ||
          smoke_failed("free of the chain: %s", rig_nv_why())) &&
         ok;
}

bool smoke_mixed(struct smoke *s, uint64_t posts, bool tell) {
  struct arena_options o = {.slices = s->threads};
  struct arena arena;
  const char *failure;
  replay_options_init(&o.replay);
  o.replay.seed = s->seed;
  arena_least(&o, o.bytes);
  for (unsigned i = 0; i < ARENA_REGIONS; i++)
    o.bytes[i] += (uint64_t)(i == ARENA_DATA ? 65536 : 4096) * o.slices;
  if (arena_make(s->device, &o, &arena, &failure) != 0)
    return smoke_failed("arena: %s", failure);
  bool ok = with_arena(s, &arena, posts, tell);
  return (arena_end(&arena, &failure) == 0 ||
          smoke_failed("free of the arena: %s", failure)) &&
         ok;
}

bool smoke_posts(struct smoke *s) { return smoke_mixed(s, s->posts, true); }

enum { TRIPS = 20000, BATCHES = 200, BATCH = 64, QUICK = 10 };

/* Posts until the word shows it, each alone. */
static bool round_trips(struct smoke *s, uint64_t *took) {
  int n = s->quick ? TRIPS / QUICK : TRIPS;
  for (int i = 0; i < n; i++) {
    uint64_t v, begun = device_now(), now;
    if (!smoke_post(s, NULL, 0, &v))
      return false;
    do
      now = device_now();
    while (!rig_reached(rig_nv_signaled(s->device), v) &&
           now - begun < UINT64_C(1000000000));
    if (!smoke_reach(s, v))
      return false;
    took[i] = device_now() - begun;
  }
  smoke_sort(took, (size_t)n);
  printf("round trip              p50 %" PRIu64 " ns, p99 %" PRIu64
         " ns, least %" PRIu64 " ns\n",
         took[n / 2], took[n / 100 * 99], took[0]);
  return true;
}

/* Posts with nothing to wait for: what each costs the host. */
static bool host_cost(struct smoke *s, uint64_t *took) {
  int n = s->quick ? BATCHES / QUICK : BATCHES;
  for (int i = 0; i < n; i++) {
    uint64_t v = 0, begun = device_now();
    for (int k = 0; k < BATCH; k++)
      if (!smoke_post(s, NULL, 0, &v))
        return false;
    took[i] = device_now() - begun;
    if (!smoke_reach(s, v))
      return false;
  }
  smoke_sort(took, (size_t)n);
  printf("host cost of a post     p50 %" PRIu64 " ns, least %" PRIu64 " ns\n",
         took[n / 2] / BATCH, took[0] / BATCH);
  return true;
}

bool smoke_times(struct smoke *s) {
  uint64_t *took = malloc(TRIPS * sizeof *took);
  if (took == NULL)
    return smoke_failed("no host memory");
  bool ok = round_trips(s, took) && host_cost(s, took);
  free(took);
  return ok;
}
