/* SPDX-License-Identifier: ISC */
#ifndef CORE_QMD_FIELDS_H
#define CORE_QMD_FIELDS_H
/*
 * Where each version of the launch descriptor has its fields: the lowest bit
 * of each, counted from the descriptor's start. No field crosses a word;
 * widths are left to what qmd_check_* lets in. For qmd.c alone.
 *
 * Source: open-gpu-doc, classes/compute/clc7c0qmd.h and clc9c0qmd.h (V03_00),
 * clcbc0qmd.h (V04_00), clcdc0qmd.h and clcec0qmd.h (V05_00), by the names
 * beside the members. _SHIFTEDn fields lack the n low bits.
 */
#include <stdint.h>

/* Values, from the same headers. */
enum {
  QMD_TYPE_GRID_CTA = 2,
  CWD_MEMBAR_TYPE_L1_SYSMEMBAR = 1,
  API_VISIBLE_CALL_LIMIT_NO_CHECK = 1,
  SAMPLER_INDEX_VIA_HEADER_INDEX = 1,
  CONSTANT_BUFFER_PREFETCH_PRE = 1,
  RELEASE_MEMBAR_TYPE_FE_SYSMEMBAR = 1,
  RELEASE_STRUCTURE_SIZE_FOUR_WORDS = 0,
  RELEASE_STRUCTURE_SIZE_TWO_WORDS = 2,
  DEPENDENT_QMD_ACTION_QMD_SCHEDULE = 1
};

enum {
  /* Not prescribed by the headers: what launches ran with. */
  QMD_GROUP_ID_ANY = 0x3f,
  /* PROGRAM_PREFETCH: its address lacks 8 bits, its size is of 9 bits. */
  PREFETCH_SHIFT = 8,
  PREFETCH_SIZE_MOST = 0x1ff,
  BANK_SIZE_SHIFT = 4, /* CONSTANT_BUFFER_SIZE_SHIFTED4 */
  POINTER_SHIFT = 8    /* DEPENDENT_QMD0_POINTER */
};

struct fields {
  uint8_t words, code_shift, shared_shift, local_shift, bank_shift;
  uint8_t local_bits, address_bits; /* of local and code */
  uint8_t invalidates;

  uint16_t major;         /* QMD_MAJOR_VERSION */
  uint16_t group;         /* QMD_GROUP_ID */
  uint16_t type;          /* QMD_TYPE; 0: none */
  uint16_t caching;       /* SM_GLOBAL_CACHING_ENABLE; 0: none */
  uint16_t invalidate[5]; /* INVALIDATE_*_CACHE */
  uint16_t membar;        /* CWD_MEMBAR_TYPE */
  uint16_t call_limit;    /* API_VISIBLE_CALL_LIMIT */
  uint16_t sampler;       /* SAMPLER_INDEX */
  uint16_t sass;          /* SASS_VERSION */
  uint16_t grid[3];       /* GRID_*; CTA_RASTER_* */
  uint16_t block[3];      /* CTA_THREAD_DIMENSION* */
  uint16_t registers;     /* REGISTER_COUNT; REGISTER_COUNT_V */
  uint16_t barriers;      /* BARRIER_COUNT */
  uint16_t shared;        /* SHARED_MEMORY_SIZE, _SHIFTED7 */
  uint16_t config_min, config_max, config_target; /* *_SM_CONFIG_... */
  uint16_t local;         /* SHADER_LOCAL_MEMORY_HIGH_SIZE, _SHIFTED4 */
  uint16_t code[2];       /* PROGRAM_ADDRESS_*, _SHIFTED4: lower, upper */
  uint16_t prefetch[2];   /* PROGRAM_PREFETCH_ADDR_*_SHIFTED */
  uint16_t prefetch_size; /* PROGRAM_PREFETCH_SIZE */
  /* CONSTANT_BUFFER_* of bank 0, and how far on the next bank's are. */
  uint16_t bank_valid, bank_flags_step;
  uint16_t bank_invalidate, bank_prefetch; /* prefetch 0: none asked for */
  uint16_t bank[2], bank_size, bank_step;  /* ADDR_*, _SHIFTED6 */
  /* RELEASE0_*, RELEASE_*(0), RELEASE_SEMAPHORE0_*. Membar 0: FE_NONE, as
   * the launch's own membar comes before the release. */
  uint16_t release_enable, release_size, release_membar, release_64;
  uint16_t release[2], payload[2];
  /* DEPENDENT_QMD0_*, DEPENDENT_QMD_*(0). */
  uint16_t next_enable, next_action, next_prefetch, next;
};

static const struct fields fields_v3 = {
    .words = 64,
    .local_bits = 24,
    .address_bits = 49,
    .major = 580,
    .group = 128,
    .caching = 134,
    .invalidates = 4,
    .invalidate = {186, 187, 188, 189},
    .membar = 368,
    .call_limit = 378,
    .sampler = 382,
    .sass = 1656,
    .grid = {384, 416, 448},
    .block = {592, 608, 624},
    .registers = 648,
    .barriers = 763,
    .shared = 544,
    .config_min = 562,
    .config_max = 569,
    .config_target = 657,
    .local = 1600,
    .code = {1536, 1568},
    .prefetch = {256, 1632},
    .prefetch_size = 1641,
    .bank_valid = 640,
    .bank_flags_step = 1,
    .bank_invalidate = 1074,
    .bank = {1024, 1056},
    .bank_size = 1075,
    .bank_step = 64,
    .release_enable = 823,
    .release_size = 830,
    .release_64 = 829,
    .release = {768, 800},
    .payload = {832, 864},
    .next_enable = 512,
    .next_action = 513,
    .next_prefetch = 516,
    .next = 480,
};

/* The fields an H200 ran with. Bank 0 prefetched ahead takes 0.1 us off each
 * launch of a chain. */
static const struct fields fields_v4 = {
    .words = 96,
    .bank_shift = 6,
    .local_bits = 24,
    .address_bits = 57,
    .major = 580,
    .group = 16,
    .type = 23,
    .invalidates = 5,
    .invalidate = {602, 603, 604, 605, 607},
    .membar = 1136,
    .call_limit = 568,
    .sampler = 569,
    .sass = 536,
    .grid = {1024, 1056, 1088},
    .block = {1152, 1168, 1184},
    .registers = 1200,
    .barriers = 1211,
    .shared = 584,
    .config_min = 608,
    .config_max = 614,
    .config_target = 620,
    .local = 544,
    .code = {1216, 1248},
    .prefetch = {1344, 1376},
    .prefetch_size = 1393,
    .bank_valid = 416,
    .bank_flags_step = 4,
    .bank_invalidate = 419,
    .bank_prefetch = 417,
    .bank = {1536, 1568},
    .bank_size = 1587,
    .bank_step = 64,
    .release_enable = 320,
    .release_size = 321,
    .release_membar = 323,
    .release_64 = 332,
    .release = {640, 672},
    .payload = {704, 736},
    .next_enable = 368,
    .next_action = 369,
    .next_prefetch = 372,
    .next = 448,
};

static const struct fields fields_v5 = {
    .words = 96,
    .code_shift = 4,
    .shared_shift = 7,
    .local_shift = 4,
    .bank_shift = 6,
    .local_bits = 20,
    .address_bits = 57,
    .major = 468,
    .group = 144,
    .type = 151,
    .invalidates = 4,
    .invalidate = {472, 473, 474, 475},
    .membar = 624,
    .call_limit = 456,
    .sampler = 457,
    .sass = 448,
    .grid = {1248, 1280, 1312},
    .block = {1088, 1104, 1120},
    .registers = 1128,
    .barriers = 1137,
    .shared = 1152,
    .config_min = 1163,
    .config_max = 1169,
    .config_target = 1175,
    .local = 1200,
    .code = {1024, 1056},
    .prefetch = {1888, 1920},
    .prefetch_size = 1077,
    .bank_valid = 1856,
    .bank_flags_step = 4,
    .bank_invalidate = 1859,
    .bank = {1344, 1376},
    .bank_size = 1395,
    .bank_step = 64,
    .release_enable = 288,
    .release_size = 289,
    .release_64 = 300,
    .release = {480, 512},
    .payload = {544, 576},
    .next_enable = 336,
    .next_action = 337,
    .next_prefetch = 340,
    .next = 384,
};
#endif
