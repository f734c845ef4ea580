/* SPDX-License-Identifier: ISC */
#ifndef RINGS_CURSOR_H
#define RINGS_CURSOR_H
/*
 * Cursor: where every ring stands after a value. The cursor after value v + 1
 * is a function of the one after v and of one submission, and its counts only
 * ever grow:
 *
 *   v            the value
 *   joins        the last tag of join words: the next value's parts take one
 *                each, and one says that its waits are over
 *   entries[q]   ring entries of queue q's channel taken so far
 *   units[q]     64-byte units of its segment ring taken so far, skips at the
 *                ring's end included
 *   launch       256-byte units of the launch ring, alike
 *   setup        the newest record of setup that a value carried (setup.h)
 *   released_by  the channel that releases v: COMPUTE is done with v before it
 *                fetches on, COPY's engine before the engine's next work;
 *                NOBODY where neither is known to be: its last launch does
 *   waits        whether v waits for words that others may write
 *   owes         channels that have not had their setup words (bit 1 << q)
 *
 *   behind       v less the value that `freed` is of, which was reached when
 *                a submission last looked at the timeline word
 *   freed_entries, freed_units, freed_launch   the counts of that value's
 *                cursor: what lies before them is free
 *   generation   the rings that v is on; each has at least one that is twice
 *                as large as the one before, so they are few. Counts of a ring
 *                born since then are another ring's: whoever goes on from here
 *                on a later generation starts them at 0 (reserve.c, install)
 *
 * Freed counts are as old as they may be: what was free is free until it is
 * taken, so a submission that fits by them need not look at the word.
 *
 * Counts are free-running and wrap at 2^32; a position is a count modulo the
 * ring's size, a power of two. One cursor is one cache line.
 */
#include <stddef.h>
#include <stdint.h>

enum { QUEUES = 2, NOBODY = QUEUES };

struct cursor {
  uint64_t v;
  uint64_t joins;
  uint32_t entries[QUEUES];
  uint32_t units[QUEUES];
  uint32_t launch;
  uint32_t setup;
  uint32_t freed_entries[QUEUES];
  uint32_t freed_units[QUEUES];
  uint32_t freed_launch;
  uint16_t behind;
  uint8_t generation;
  unsigned char released_by : 2, owes : QUEUES, waits : 1;
};

enum { CURSOR_WORDS = sizeof(struct cursor) / sizeof(uint64_t) };

_Static_assert(sizeof(struct cursor) == 64, "a cursor is one cache line");
_Static_assert(offsetof(struct cursor, v) == 0, "a mark's first word is v");
#endif
