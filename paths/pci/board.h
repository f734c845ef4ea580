/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_BOARD_H
#define PATHS_PCI_BOARD_H
/*
 * board: a GPU's memory and its MMU in software, for tests of what writes its
 * page tables.
 *
 *   host     format --> window   [ tables ]       stores lie here, in flight
 *                          |  flush: they land, and the TLB is emptied
 *   GPU      memory     [ tables ][ the rest ]     walked from the root, with
 *                          |                       what it met kept in the TLB
 *                    a page: of this memory, of a peer's, of the machine's
 *
 * So what was mapped is reached from the flush on and no earlier, and what was
 * unmapped may be reached until it. The walker (paths/pci/mmu.h) shares
 * nothing with the format that writes, and the machine's memory is reached
 * where the board was told of it alone, as behind an IOMMU: its bus addresses
 * are the process's own.
 *
 * The seed evicts pages from the TLB and numbers peers. Plants are bugs for
 * tests to catch.
 *
 * Threads: one call at a time on a board, but board_hold and board_drop any. A
 * board's peers read and write its memory meanwhile.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "paths/model/backing.h"
#include "paths/pci/format.h"

struct board;

enum board_plant {
  BOARD_NO_PLANT,
  BOARD_NO_FLUSH_OF_MAPS,   /* a flush after entries were set does nothing */
  BOARD_NO_FLUSH_OF_UNMAPS, /* nor one after entries were cleared */
  BOARD_NO_INVALIDATE,      /* flushes land stores and keep the TLB */
  BOARD_WRONG_BIT           /* a bit of each page's entry is another */
};

struct board_options {
  int version;     /* of the MMU: 2 or 3 */
  uint64_t memory; /* bytes, of which the first `window` hold the tables */
  uint64_t window;
  uint64_t seed;
};

/* A board with no memory mapped, or NULL: the host lacks memory. */
struct board *board_new(const struct board_options *);
/* It walks no more and lets its peers go. */
void board_end(struct board *);
/* Its memory stays as long as somebody holds it. */
void board_hold(struct board *);
void board_drop(struct board *);

/* The format that writes its tables: of the board's version, through the
 * window. */
const struct page_format *board_format(const struct board *);
/* Where its walks begin. */
void board_root(struct board *, uint64_t pa);

char *board_memory(struct board *);
uint64_t board_bytes(const struct board *);

/* Puts a bug in, from now on; the bit is of WRONG_BIT. */
void board_plant(struct board *, enum board_plant, unsigned bit);

/* Lets it reach, or no longer reach, the n bytes of the process's at p. What
 * was let twice is reached until it is barred twice. false: no host memory. */
bool board_let(struct board *, const void *p, uint64_t n);
void board_bar(struct board *, const void *p, uint64_t n);

/* The number under which entries name the other board's memory, which this one
 * holds; -1: there is none left. */
int board_peer(struct board *, struct board *other);

/* The bytes behind the address, and in *n how many from it on, at most *n, lie
 * together; NULL, with the fault and *wrong where it is of a malformed entry.
 */
char *board_reach(struct board *, uint64_t va, bool write, uint64_t *n,
                  enum model_fault_type *, const char **wrong);
#endif
