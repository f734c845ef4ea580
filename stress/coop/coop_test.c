/* SPDX-License-Identifier: ISC */
/*
 * The lock-free core under seeded schedules: coop_test [--seeds N] [--from S]
 * [--strategy walk|pct]. A failure says the seed and the strategy; with
 * --seeds 1 they replay it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/coop/world.h"
#include "stress/random.h"

/* Rings in which every submission of the world fits, if alone. */
static const struct world_shape shapes[] = {
    {.entries = 8, .units = 32, .marks = 4, .posters = 3},
    {.entries = 8, .units = 32, .marks = 4, .posters = 4},
    {.entries = 16, .units = 64, .marks = 4, .posters = 4},
    {.entries = 8, .units = 16, .marks = 8, .posters = 3},
    {.entries = 16, .units = 64, .marks = 2, .posters = 3},
    {.entries = 8,
     .units = 32,
     .marks = 4,
     .v = UINT64_MAX - 10,
     .counts = UINT32_MAX - 20,
     .posters = 3},
    {.entries = 8,
     .units = 32,
     .marks = 4,
     .v = UINT32_MAX - 10,
     .counts = UINT32_MAX - 20,
     .posters = 4},
    /* And that grow. */
    {.entries = 8, .units = 32, .marks = 4, .posters = 3, .growths = 1},
    {.entries = 8, .units = 32, .marks = 4, .posters = 3, .growths = 2},
    {.entries = 16, .units = 64, .marks = 2, .posters = 4, .growths = 2},
    {.entries = 8,
     .units = 16,
     .marks = 8,
     .v = UINT64_MAX - 10,
     .counts = UINT32_MAX - 20,
     .posters = 3,
     .growths = 2},
};

enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static int64_t run(uint64_t seed, enum coop_strategy strategy) {
  struct random random = {seed};
  struct world_shape z = shapes[random_below(&random, SHAPES)];
  z.posts = (uint32_t)(random_one_in(&random, 8) ? random_in(&random, 20, 50)
                                                 : random_in(&random, 3, 12));
  z.rooms = (uint32_t)random_below(&random, 2) * z.posts;
  struct coop_schedule how = {.seed = seed, .strategy = strategy};
  how.depth = (int)random_in(&random, 2, 6);
  return world_run(&z, &how);
}

static void run_all(uint64_t from, uint64_t n, enum coop_strategy strategy) {
  int64_t steps = 0;
  for (uint64_t i = 0; i < n; i++)
    steps += run(from + i, strategy);
  printf("%s: seeds %" PRIu64 " to %" PRIu64 ", %" PRId64 " steps\n",
         strategy == COOP_WALK ? "walk" : "pct", from, from + n - 1, steps);
}

int main(int argc, char **argv) {
  uint64_t seeds = 4000, from = 1;
  const char *only = NULL;
  for (int i = 1; i < argc; i += 2) {
    const char *value = i + 1 < argc ? argv[i + 1] : "";
    if (*value && strcmp(argv[i], "--seeds") == 0) {
      seeds = strtoull(value, NULL, 0);
    } else if (*value && strcmp(argv[i], "--from") == 0) {
      from = strtoull(value, NULL, 0);
    } else if (strcmp(argv[i], "--strategy") == 0 &&
               (strcmp(value, "walk") == 0 || strcmp(value, "pct") == 0)) {
      only = value;
    } else {
      fputs("coop_test [--seeds N] [--from S] [--strategy walk|pct]\n", stderr);
      return 2;
    }
  }
  if (!only || strcmp(only, "walk") == 0)
    run_all(from, seeds, COOP_WALK);
  if (!only || strcmp(only, "pct") == 0)
    run_all(from, seeds, COOP_PCT);
  return 0;
}
