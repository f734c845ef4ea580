/* SPDX-License-Identifier: ISC */
#ifndef RINGS_STRAIGHT_H
#define RINGS_STRAIGHT_H
/*
 * Straight submissions: the shortcut for what most submissions are.
 *
 *   straight   no waits, no part after another, every part one launch of the
 *              copy engine: one channel, one segment, nothing to decide
 *
 *     entering | launch | launch | ... | release |
 *
 * Need and words are the walk's to the bit (straight_test): a submission takes
 * the same place and becomes the same, whichever way it goes.
 *
 *   straight_words --> straight_take --> straight_put     in line, the queue a
 *          |                | false                       constant
 *          |                v
 *          +------> straight_need --> ring_reserve --> straight_encode
 *
 * straight_take is ring_reserve where that has nothing to decide: the tail is
 * on the newest generation, the piece lies in one, and what the cursor knows to
 * be free is enough. It is lock-free as that is, and orders the same.
 */
#include "rings/rings.h"

enum { STRAIGHT_PARTS = 1024 /* at most: one segment by far */ };

/* Whether a submission is straight, hence lawful, and what it then needs. */
bool straight_need(const struct rig_submission *, struct ring_need *);
/* Writes it into its place, on the only channel that it uses. */
void straight_encode(const struct rings *, const struct rig_submission *,
                     const struct ring_plan *);

#ifdef RIG_COOP /* functions of straight.c, for its judge to come before */
#define straight_take straight_take_here
#define straight_put straight_put_here
#endif
#include "rings/straight_put.h"
#include "rings/straight_take.h"
#ifdef RIG_COOP
#undef straight_take
#undef straight_put
bool straight_take(struct rings *, int q, uint64_t words, size_t nparts,
                   const struct ring_ask *, struct ring_plan *);
void straight_put(const struct rings *, const struct rig_submission *, int q,
                  size_t nparts, const struct ring_plan *);
#endif
#endif
