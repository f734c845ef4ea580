/* SPDX-License-Identifier: ISC */
#ifndef CORE_QMD_QMD_H
#define CORE_QMD_QMD_H
/*
 * Launch descriptors (QMD): what the compute engine reads to run a grid.
 *
 *   version   words   SM versions
 *   QMD_V3    64      sm_86, sm_87, sm_89   V03_00
 *   QMD_V4    96      sm_90                 V04_00
 *   QMD_V5    96      sm_100, sm_120        V05_00
 *
 * Hopper ignores a V3 descriptor: nothing runs and nothing faults.
 *
 * A descriptor lies 256-byte aligned below 2^40. It may chain to the next
 * one, which starts once this one's blocks completed, and may write a
 * semaphore as it completes.
 *
 * Memory: a launch invalidates the caches it reads through, so it sees what
 * the launches before it in a chain wrote, with no membar between them. The
 * host and other engines see its writes after a system membar, which the
 * last launch before a reader needs. A release has one with it.
 *
 * qmd_fill is the hot path: it copies a template, filled once a function, and
 * sets the launch's own fields. qmd_write is both at once.
 *
 * All of it writes the caller's memory alone. Any thread.
 */
#include <stdint.h>

#include "core/qmd/limits.h"

enum qmd_version { QMD_V3 = 3, QMD_V4 = 4, QMD_V5 = 5 };

enum { QMD_MOST_WORDS = 96, QMD_ALIGN = 256 };

/* What a release writes at its address: the 8 bytes of the payload (8-byte
 * aligned), or those and 8 bytes of time in nanoseconds (16-byte aligned). */
enum qmd_release_size { QMD_NO_RELEASE, QMD_TWO_WORDS, QMD_FOUR_WORDS };

enum qmd_membar { QMD_MEMBAR_NONE, QMD_MEMBAR_SYSTEM };

struct qmd_release {
  enum qmd_release_size size;
  uint64_t addr, payload;
};

struct qmd_bank {
  uint64_t addr;  /* 64-byte aligned */
  uint32_t bytes; /* 0: no such bank */
};

/* What all launches of a function share. */
struct qmd_function {
  const struct limits *limits;
  uint32_t registers, barriers;
  uint32_t shared;     /* a block's own, by limits_shared_own */
  uint32_t local;      /* per thread, by limits_local */
  uint64_t code;       /* address of the first instruction, 128-byte aligned */
  uint64_t code_bytes; /* prefetched as far as the descriptor can say */
  uint32_t bank0_bytes;
  struct qmd_bank bank[LIMITS_BANKS]; /* from 1; 0 is the launch's own */
};

/* What a launch adds. */
struct qmd_args {
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared; /* bytes; rounded up to LIMITS_SHARED_GRANULE */
  uint64_t bank0;          /* address, 64-byte aligned */
  uint64_t next;           /* the chained descriptor's address, or 0 */
  struct qmd_release release;
  enum qmd_membar membar; /* a release is after a system membar anyway */
};

struct qmd_launch {
  struct qmd_function function;
  struct qmd_args args;
};

struct qmd_template {
  _Alignas(64) uint32_t words[QMD_MOST_WORDS];
  enum qmd_version version;
  uint32_t shared;
  uint32_t configs, configs_most; /* without and with dynamic memory */
};

/* The version an SM version (0x900) runs, or INVALID. */
int qmd_version_of(uint32_t sm_version, enum qmd_version *);
/* 256 or 384. */
unsigned qmd_bytes(enum qmd_version);

/* 0, or INVALID with the field that the version or its GPU cannot hold. */
int qmd_check_function(enum qmd_version, const struct qmd_function *);
int qmd_check_args(const struct qmd_function *, const struct qmd_args *);

/* The rest is unchecked: its operands passed the checks. */

/* Writes the descriptor and returns its words. */
unsigned qmd_write(enum qmd_version, const struct qmd_launch *,
                   uint32_t *words);
void qmd_template(enum qmd_version, const struct qmd_function *,
                  struct qmd_template *);
/* Writes the template's version's words to out and returns how many. out is
 * read as well as written: a caller whose ring lies behind a BAR fills a
 * buffer of its own and copies it. */
unsigned qmd_fill(const struct qmd_template *, const struct qmd_args *,
                  uint32_t *out);
#endif
