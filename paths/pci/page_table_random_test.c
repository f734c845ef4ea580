/* SPDX-License-Identifier: ISC */
/*
 * page_table_random: random operations on page tables against flat.h, in
 * lives of some thousand each. --long does 10^7 of them; --seed N replays the
 * life that a failure prints. Exit status 0: every one was right.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paths/pci/flat.h"
#include "stress/random.h"

enum { LIFE = 2000, CHECK_EVERY = 64, SHORT_LIVES = 12, LONG_LIVES = 5000 };

static uint64_t from_random(void *ctx, uint64_t n) {
  return random_below(ctx, n);
}

/* Pools that run out often, and some that do not. */
static struct flat_options draw_options(struct random *r, uint64_t seed) {
  static const uint64_t boots[] = {4, 24, 300};
  struct flat_options o = {0};
  o.format = (enum flat_format)(seed % FLAT_FORMATS);
  o.tables = random_one_in(r, 2) ? PAGE_TABLES_MAIN : PAGE_TABLES_POOL;
  o.boot_pages = boots[random_below(r, 3)];
  o.memory_pages = o.boot_pages + 256 + 20 + random_small(r, 1400);
  o.base_high = random_one_in(r, 2);
  return o;
}

static uint64_t totals[16], entries[3], refused, lacked, host_failed,
    unconfirmed;

static void live(uint64_t seed, int ops) {
  static struct flat f;
  struct random r = {seed};
  const struct flat_options o = draw_options(&r, seed);
  fprintf(stderr, "seed %" PRIu64 "\r", seed);
  flat_init(&f, o, from_random, &r);
  for (int i = 1; i <= ops; i++) {
    flat_op(&f);
    if (i % CHECK_EVERY == 0)
      flat_check(&f);
  }
  flat_fini(&f);
  for (int k = 0; k < 16; k++)
    totals[k] += f.done[k];
  for (int k = 0; k < 3; k++)
    entries[k] += f.entries[k];
  refused += f.refused;
  lacked += f.lacked;
  host_failed += f.host_failed;
  unconfirmed += f.unconfirmed;
}

int main(int argc, char **argv) {
  uint64_t first = 1, lives = SHORT_LIVES;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--long") == 0) {
      lives = LONG_LIVES;
    } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) {
      first = strtoull(argv[++i], NULL, 0);
      lives = 1;
    } else {
      fprintf(stderr, "%s [--long] [--seed N]\n", argv[0]);
      return 2;
    }
  }
  for (uint64_t k = 0; k < lives; k++)
    live(first + k, LIFE);
  printf("%" PRIu64 " operations: palloc %" PRIu64 ", pfree %" PRIu64
         ", map %" PRIu64 ", unmap %" PRIu64 ", discard %" PRIu64
         ", tables %" PRIu64 ", alloc %" PRIu64 ", free %" PRIu64 "\n",
         lives * LIFE, totals[0], totals[1], totals[2], totals[3], totals[4],
         totals[5], totals[6], totals[7]);
  printf("%" PRIu64 " refused, %" PRIu64 " without room, %" PRIu64
         " without host memory, %" PRIu64 " unconfirmed\n",
         refused, lacked, host_failed, unconfirmed);
  printf("entries of the leaf and the two levels above it: %" PRIu64 " %" PRIu64
         " %" PRIu64 "\n",
         entries[0], entries[1], entries[2]);
  return entries[2] != 0 && refused != 0 && lacked != 0 && host_failed != 0 &&
                 unconfirmed != 0
             ? 0
             : 1;
}
