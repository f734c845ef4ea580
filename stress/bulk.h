/* SPDX-License-Identifier: ISC */
#ifndef STRESS_BULK_H
#define STRESS_BULK_H
/*
 * bulk: what makes submissions larger than a device's rings, of any size up to
 * a most, which a thread comes to step by step, so that rings grow many times:
 *
 *   one part of many ring entries       the entry ring of one queue
 *   one part of many of the driver's words    COPY's segment ring
 *   many launches (sums.h)              the launch ring
 *
 * and what else goes on while rings grow: memory is allocated and freed, and
 * local memory grows.
 *
 * Threads: as sums.h says; disturb is any thread's at any time.
 */
#include "stress/random.h"
#include "stress/sums.h"

/* Parts that an add adds, at most. */
enum { BULK_MOST_PARTS = 512 };

struct bulk {
  struct rig_nv *device;
  struct rig_nv_region *region; /* a word, what is filled, a segment */
  uint32_t *entries;            /* each releases the word */
  struct sums sums;
  unsigned added[SUMS_MOST_THREADS]; /* by thread */
};

/* For so many submissions of each thread in a round; the sums' `add`. 0, or the
 * negative of an enum rig_nv_error with rig_nv_why. */
int bulk_make(struct rig_nv *, const struct rig_nv_function *add,
              unsigned threads, unsigned each, struct bulk *);
/* Also after the device's stop. */
int bulk_end(struct bulk *);

/* Gives the submission something large behind its parts, as sums_add does. */
void bulk_add(struct bulk *, unsigned thread, struct random *,
              struct rig_part *parts, struct rig_submission *);
/* What was added last, if anything, is part of value v. */
void bulk_took(struct bulk *, unsigned thread, uint64_t v);
/* Something else; also where it lacks memory. 0, or the negative of another
 * error with rig_nv_why. */
int bulk_disturb(struct bulk *, struct random *);
#endif
