/* SPDX-License-Identifier: ISC */
/*
 * What went wrong: a submission that loads the timeline word, then the tail,
 * judges the one against the other. Stopped between the two, it has a word
 * from before all that the tail's cursor knows to be freed: counts that no
 * rings have, of rings that are sound, or a mark that is another value's.
 *
 * Here the first poster is stopped before each of its accesses in turn, while
 * the others fill the rings, the GPU is done with all of it, and they fill
 * them again. Whatever two accesses those were: the answers are right.
 */
#include <inttypes.h>
#include <stdio.h>

#include "stress/coop/world.h"

enum { FIRST, OTHER, GPU, POSTS = 16 };

struct row {
  const char *name;
  uint32_t refills; /* while it is stopped */
  struct world_shape shape;
};

#define SHAPE .posters = 2, .posts = POSTS, .entries = 16, .units = 64

static const struct row rows[] = {
    {"the word moves on", 1, {SHAPE, .marks = 4}},
    {"its mark is another's", 2, {SHAPE, .marks = 4}},
    {"its slot is the tail's", 3, {SHAPE, .marks = 2}},
    {"past the wrap", 2, {SHAPE, .marks = 4, .v = UINT64_MAX - 3}},
};

enum { MOST_REFILLS = 3, STOPS = 150 };

/* The turns of a stop of FIRST before its access `stop`. */
static size_t turns_of(const struct row *r, uint32_t stop,
                       struct coop_turn *turns) {
  size_t n = 0;
  turns[n++] =
      (struct coop_turn){OTHER, COOP_ON}; /* until the rings are full */
  turns[n++] = (struct coop_turn){FIRST, stop};
  for (uint32_t i = 0; i < r->refills; i++) {
    turns[n++] = (struct coop_turn){GPU, COOP_ON};
    turns[n++] = (struct coop_turn){OTHER, COOP_ON};
  }
  turns[n++] = (struct coop_turn){FIRST, COOP_ON};
  return n;
}

int main(void) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    printf("%s:", rows[i].name);
    int64_t steps = 0;
    for (uint32_t stop = 1; stop <= STOPS; stop++) {
      struct coop_turn turns[3 + 2 * MOST_REFILLS];
      const struct coop_schedule how = {
          .seed = stop,
          .strategy = COOP_TURNS,
          .turns = turns,
          .nturns = turns_of(&rows[i], stop, turns),
      };
      steps += world_run(&rows[i].shape, &how);
    }
    printf(" %d stops, %" PRId64 " steps\n", STOPS, steps);
  }
  return 0;
}
