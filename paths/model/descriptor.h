/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_DESCRIPTOR_H
#define PATHS_MODEL_DESCRIPTOR_H
/*
 * Launch descriptors (QMD) as the model reads them: the fields of each
 * version, and what a descriptor must say before memory is looked at. The
 * positions are the model's own, apart from core/qmd's, so that model and
 * writer judge each other.
 *
 * Sources: NVIDIA's open-gpu-doc, classes/compute/clc7c0qmd.h and clc9c0qmd.h
 * (V03_00), clcbc0qmd.h (V04_00), clcdc0qmd.h and clcec0qmd.h (V05_00).
 * descriptor_test.c compares them with rows of those headers.
 *
 * Everything here is constant or the caller's. Any thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QV_WORDS = 96, QV_BANKS = 8, QV_BANK_MOST = 65536 };

/* Fields that launches have. _LO and _HI are a pair's halves; those from
 * QF_BANK_VALID to QF_BANK_SIZE are of each constant bank. */
enum model_qmd_field {
  QF_MAJOR,
  QF_MINOR,
  QF_GROUP,
  QF_TYPE,
  QF_CACHING,
  QF_TEX_HEADER,
  QF_TEX_SAMPLER,
  QF_TEX_DATA,
  QF_SHADER_DATA,
  QF_INSTRUCTION,
  QF_CONSTANT,
  QF_MEMBAR,
  QF_CALL_LIMIT,
  QF_SAMPLER,
  QF_SASS,
  QF_GRID_X,
  QF_GRID_Y,
  QF_GRID_Z,
  QF_GROUP_X,
  QF_GROUP_Y,
  QF_GROUP_Z,
  QF_REGISTERS,
  QF_BARRIERS,
  QF_SHARED,
  QF_CONFIG_MIN,
  QF_CONFIG_MAX,
  QF_CONFIG_TARGET,
  QF_LOCAL,
  QF_CODE_LO,
  QF_CODE_HI,
  QF_PREFETCH_LO,
  QF_PREFETCH_HI,
  QF_PREFETCH_SIZE,
  QF_BANK_VALID,
  QF_BANK_PREFETCH,
  QF_BANK_INVALIDATE,
  QF_BANK_LO,
  QF_BANK_HI,
  QF_BANK_SIZE,
  QF_RELEASE,
  QF_RELEASE_SIZE,
  QF_RELEASE_MEMBAR,
  QF_RELEASE_64,
  QF_RELEASE_LO,
  QF_RELEASE_HI,
  QF_PAYLOAD_LO,
  QF_PAYLOAD_HI,
  QF_NEXT,
  QF_NEXT_ACTION,
  QF_NEXT_PREFETCH,
  QF_NEXT_POINTER,
  QF_FIELDS
};

/* Values, from the same headers. */
enum {
  QV_GRID_CTA = 2,
  QV_L1_NONE = 0,
  QV_L1_SYSMEMBAR = 1,
  QV_L1_MEMBAR = 3,
  QV_FE_SYSMEMBAR = 1,
  QV_FOUR_WORDS = 0,
  QV_ONE_WORD = 1,
  QV_TWO_WORDS = 2,
  QV_SCHEDULE = 1,
  QV_PREFETCH_PRE = 1
};

/* A field's name in the header and its bits, and how far on the next bank's
 * are; the name is NULL where the version has no such field. */
struct model_qmd_bits {
  const char *name;
  uint16_t high, low, step;
};

/* What a GPU's launches look like. */
struct model_arch {
  uint32_t sm_version;
  int version;          /* of descriptors: 3, 4 or 5 */
  uint32_t shared_kib;  /* of a multiprocessor, the most */
  uint32_t block, grid; /* where bank 0 holds their sizes */
};

struct model_qmd {
  const struct model_arch *arch;
  uint32_t words[QV_WORDS];
};

/* NULL where no descriptor is known to run on the GPU. */
const struct model_arch *model_arch(uint32_t sm_version);
/* Bytes of a descriptor of the version. */
unsigned model_qmd_bytes(int version);
const struct model_qmd_bits *model_qmd_bits(int version, enum model_qmd_field);

/* The field's value, 0 where the version has none; of bank i. */
uint32_t model_qmd_get(const struct model_qmd *, enum model_qmd_field);
uint32_t model_qmd_bank(const struct model_qmd *, enum model_qmd_field,
                        unsigned i);

/* In bytes, whatever the version's units. */
uint64_t model_qmd_code(const struct model_qmd *);
uint32_t model_qmd_shared(const struct model_qmd *);
uint32_t model_qmd_local(const struct model_qmd *); /* of a thread */
uint64_t model_qmd_bank_at(const struct model_qmd *, unsigned i);
uint32_t model_qmd_bank_bytes(const struct model_qmd *, unsigned i);
uint64_t model_qmd_release_at(const struct model_qmd *);
uint64_t model_qmd_payload(const struct model_qmd *);

/* Whether the descriptor may run; else false, with the reason, which begins
 * with a field's name, in text. */
bool model_qmd_check(const struct model_qmd *, char *text, size_t n);

#endif
