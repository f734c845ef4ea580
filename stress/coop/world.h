/* SPDX-License-Identifier: ISC */
#ifndef STRESS_COOP_WORLD_H
#define STRESS_COOP_WORLD_H
/*
 * world: rings of a test's own memory, the real core over them (a build with
 * -DRIG_COOP), and all who touch them as threads of coop.h:
 *
 *   0 ... posters - 1   post random submissions: none, copies, fills, foreign
 *                       entries, parts of both channels that join, waits
 *   posters             the GPU: two channels that run entries and words up to
 *                       GP_PUT, poison what a value took, and store the word
 *   posters + 1         asks room, reads marks and the last value
 *   the last one        grows the rings: new channels, segment rings or both,
 *                       twice as large, published while the others go on
 *
 * Judged from shadows, which know what has really happened: a value is
 * reserved once, none is left out, and its cursor is the one after the value
 * before, on rings of a later generation from 0; a post is on the newest
 * generation, and on new channels only where all before it is reached; rings
 * that are replaced and done with are not touched; no range is written before
 * its value is reached; GP_PUT grows by less than a ring and shows complete
 * values in order; a LATER of which the caller could know better, or a FITS
 * that does not; a mark is all of one value or none; once all are done,
 * everything is published and reached, the seat is free, the last GP_PUT has a
 * doorbell, every spare node is in a cell.
 *
 * A failure is said, with what replays it, and ends the process with 1.
 */
#include "stress/coop/coop.h"

struct world_shape {
  uint32_t entries, units, marks;
  uint64_t v;      /* the value before the first */
  uint32_t counts; /* where the rings' counts start */
  int posters;
  uint32_t posts; /* of each */
  uint32_t rooms; /* asked; 0: nobody asks */
  int growths;    /* at most WORLD_MOST_GROWTHS; 0: nobody grows */
};

enum { WORLD_MOST_VALUES = 256, WORLD_MOST_GROWTHS = 2 };

/* One run, and its steps. The schedule's length and most are set here. */
int64_t world_run(const struct world_shape *, const struct coop_schedule *);
#endif
