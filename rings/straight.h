/* SPDX-License-Identifier: ISC */
#ifndef RINGS_STRAIGHT_H
#define RINGS_STRAIGHT_H
/*
 * Straight submissions: the walk's shortcut for what most submissions are.
 *
 *   straight   no waits, no part after another, every part one launch of the
 *              copy engine: one channel, one segment, nothing to decide
 *
 *     entering | launch | launch | ... | release |
 *
 * Need and words are the walk's to the bit (straight_test): a submission takes
 * the same place and becomes the same, whichever way it goes.
 */
#include "rings/rings.h"

enum { STRAIGHT_PARTS = 1024 /* at most: one segment by far */ };

/* Whether a submission is straight, hence lawful, and what it then needs. */
bool straight_need(const struct rig_submission *, struct ring_need *);
/* Writes it into its place, on the only channel that it uses. */
void straight_encode(const struct rings *, const struct rig_submission *,
                     const struct ring_plan *);
#endif
