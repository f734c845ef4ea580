/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_LAUNCHING_H
#define PATHS_MODEL_LAUNCHING_H
/*
 * A bench with memory for launches whose descriptors tests write field by
 * field, by the names and bits of the rows in testdata/qmd.tsv.
 *
 *   slots (Pinned): of 2 KiB: a descriptor, at byte 512 its bank 0 of 1 KiB,
 *                   at 1536 a bank of 256 bytes
 *   code (Pinned):  programs of 1 KiB, program i filled with the byte 1 + i
 *   local (Device): local memory of 0x240 bytes a thread
 *
 * A call that fails fails the test. One thread.
 */
#include "paths/model/testing.h"

enum {
  LAUNCHING_SLOTS = 128,
  LAUNCHING_SLOT = 2048,
  LAUNCHING_BANK = 512,
  LAUNCHING_BANK_BYTES = 1024,
  LAUNCHING_SECOND = 1536, /* another bank's */
  LAUNCHING_PROGRAMS = 16,
  LAUNCHING_PROGRAM = 1024,
  LAUNCHING_LOCAL = 0x240
};

struct launching {
  struct bench bench;
  const char *cls, *version; /* of the rows */
  uint32_t sm_version;
  uint32_t params, block, grid; /* where bank 0 holds them */
  struct rig_nv_memory slots, code, local;
  uint64_t per_tpc;
};

/* A GPU of the SM version, with two TPCs of 32 warps; options NULL: the
 * defaults. The class is bound, and windows and local memory set. */
void launching_open(struct launching *, uint32_t sm_version,
                    const struct rig_nv_model_options *);
/* With nothing bound and set. */
void launching_open_bare(struct launching *, uint32_t sm_version,
                         const struct rig_nv_model_options *);
void launching_close(struct launching *);

/* Pushes the words that bind the class and set the windows, and local memory;
 * one of them alone. */
void launching_bind(struct launching *);
void launching_local(struct launching *, uint64_t at, uint64_t per_tpc);

/* The number of a field's bits: the first of the names that the class has, or
 * of those with _SHIFTEDn, whose units are then taken. Names are split by
 * '|'; "NAME[i]" is bank i's. */
void launching_put(struct launching *, int slot, const char *names,
                   uint64_t value);
/* Both halves, NAME_LOWER and NAME_UPPER, "[i]" at the end of NAME. */
void launching_address(struct launching *, int slot, const char *names,
                       uint64_t value);
/* Whether the class has one of the fields. */
bool launching_has(const struct launching *, const char *names);
/* The field's name of these, with no index. */
const char *launching_name(const struct launching *, const char *names);

/* Writes a descriptor that runs program i over one group of 32 threads, and a
 * bank 0 that says so and holds n bytes of parameters. */
void launching_write(struct launching *, int slot, int program,
                     const void *params, size_t n);
void launching_release(struct launching *, int slot, unsigned size, uint64_t at,
                       uint64_t payload, bool membar);
void launching_chain(struct launching *, int slot, int next, bool prefetch);

uint64_t launching_at(const struct launching *, int slot);
uint64_t launching_code(const struct launching *, int program);
uint8_t *launching_bank(const struct launching *, int slot);

/* Pushes the slot's schedule. */
void launching_push(struct launching *, int slot);
/* Pushes a release of x to word i of the bench, with a wait for idle or not. */
void launching_word(struct launching *, int i, uint64_t x, bool waits);
void launching_idle(struct launching *);

/* A GPU and personality by the seed, whose programs are bound to a kernel that
 * does nothing; fn NULL is that one. */
void launching_open_at(struct launching *, uint32_t sm_version, uint64_t seed);
void launching_bind_all(struct launching *, rig_nv_model_kernel *fn, void *ctx);
/* Schedules slot 0, then a release of 1 to word 0 that waits, and lets the
 * engine go. */
void launching_go(struct launching *);

/* The text of the path's check. */
void launching_report(struct launching *, char *text, size_t n);
/* Both channels have the error, the report holds each of the texts, and word 0
 * was never released. */
void launching_stopped(struct launching *, const char *name, uint32_t error,
                       const char *a, const char *b);
/* The MMU's record of the fault: its address, and 0 a read, 1 a write. */
void launching_recorded(struct launching *, uint64_t at, uint64_t access);
/* Waits for word 0 or an error: the error and the report, with its numbers
 * taken out, since addresses are the seed's. */
void launching_outcome(struct launching *, char *text, size_t n);

#endif
