/* SPDX-License-Identifier: ISC */
#include "paths/model/descriptor.h"

#include <stdarg.h>
#include <stdio.h>

static const struct model_qmd_bits v3[QF_FIELDS] = {
    [QF_MAJOR] = {"QMD_MAJOR_VERSION", 583, 580, 0},
    [QF_MINOR] = {"QMD_VERSION", 579, 576, 0},
    [QF_GROUP] = {"QMD_GROUP_ID", 133, 128, 0},
    [QF_CACHING] = {"SM_GLOBAL_CACHING_ENABLE", 134, 134, 0},
    [QF_TEX_HEADER] = {"INVALIDATE_TEXTURE_HEADER_CACHE", 186, 186, 0},
    [QF_TEX_SAMPLER] = {"INVALIDATE_TEXTURE_SAMPLER_CACHE", 187, 187, 0},
    [QF_TEX_DATA] = {"INVALIDATE_TEXTURE_DATA_CACHE", 188, 188, 0},
    [QF_SHADER_DATA] = {"INVALIDATE_SHADER_DATA_CACHE", 189, 189, 0},
    [QF_INSTRUCTION] = {"INVALIDATE_INSTRUCTION_CACHE", 190, 190, 0},
    [QF_CONSTANT] = {"INVALIDATE_SHADER_CONSTANT_CACHE", 191, 191, 0},
    [QF_MEMBAR] = {"CWD_MEMBAR_TYPE", 369, 368, 0},
    [QF_CALL_LIMIT] = {"API_VISIBLE_CALL_LIMIT", 378, 378, 0},
    [QF_SAMPLER] = {"SAMPLER_INDEX", 382, 382, 0},
    [QF_SASS] = {"SASS_VERSION", 1663, 1656, 0},
    [QF_GRID_X] = {"CTA_RASTER_WIDTH", 415, 384, 0},
    [QF_GRID_Y] = {"CTA_RASTER_HEIGHT", 431, 416, 0},
    [QF_GRID_Z] = {"CTA_RASTER_DEPTH", 463, 448, 0},
    [QF_GROUP_X] = {"CTA_THREAD_DIMENSION0", 607, 592, 0},
    [QF_GROUP_Y] = {"CTA_THREAD_DIMENSION1", 623, 608, 0},
    [QF_GROUP_Z] = {"CTA_THREAD_DIMENSION2", 639, 624, 0},
    [QF_REGISTERS] = {"REGISTER_COUNT_V", 656, 648, 0},
    [QF_BARRIERS] = {"BARRIER_COUNT", 767, 763, 0},
    [QF_SHARED] = {"SHARED_MEMORY_SIZE", 561, 544, 0},
    [QF_CONFIG_MIN] = {"MIN_SM_CONFIG_SHARED_MEM_SIZE", 567, 562, 0},
    [QF_CONFIG_MAX] = {"MAX_SM_CONFIG_SHARED_MEM_SIZE", 574, 569, 0},
    [QF_CONFIG_TARGET] = {"TARGET_SM_CONFIG_SHARED_MEM_SIZE", 662, 657, 0},
    [QF_LOCAL] = {"SHADER_LOCAL_MEMORY_HIGH_SIZE", 1623, 1600, 0},
    [QF_CODE_LO] = {"PROGRAM_ADDRESS_LOWER", 1567, 1536, 0},
    [QF_CODE_HI] = {"PROGRAM_ADDRESS_UPPER", 1584, 1568, 0},
    [QF_PREFETCH_LO] = {"PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED", 287, 256, 0},
    [QF_PREFETCH_HI] = {"PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED", 1640, 1632, 0},
    [QF_PREFETCH_SIZE] = {"PROGRAM_PREFETCH_SIZE", 1649, 1641, 0},
    [QF_BANK_VALID] = {"CONSTANT_BUFFER_VALID", 640, 640, 1},
    [QF_BANK_INVALIDATE] = {"CONSTANT_BUFFER_INVALIDATE", 1074, 1074, 64},
    [QF_BANK_LO] = {"CONSTANT_BUFFER_ADDR_LOWER", 1055, 1024, 64},
    [QF_BANK_HI] = {"CONSTANT_BUFFER_ADDR_UPPER", 1072, 1056, 64},
    [QF_BANK_SIZE] = {"CONSTANT_BUFFER_SIZE_SHIFTED4", 1087, 1075, 64},
    [QF_RELEASE] = {"RELEASE0_ENABLE", 823, 823, 0},
    [QF_RELEASE_SIZE] = {"RELEASE0_STRUCTURE_SIZE", 831, 830, 0},
    [QF_RELEASE_MEMBAR] = {"RELEASE0_MEMBAR_TYPE", 819, 819, 0},
    [QF_RELEASE_64] = {"RELEASE0_PAYLOAD64B", 829, 829, 0},
    [QF_RELEASE_LO] = {"RELEASE0_ADDRESS_LOWER", 799, 768, 0},
    [QF_RELEASE_HI] = {"RELEASE0_ADDRESS_UPPER", 807, 800, 0},
    [QF_PAYLOAD_LO] = {"RELEASE0_PAYLOAD_LOWER", 863, 832, 0},
    [QF_PAYLOAD_HI] = {"RELEASE0_PAYLOAD_UPPER", 895, 864, 0},
    [QF_NEXT] = {"DEPENDENT_QMD0_ENABLE", 512, 512, 0},
    [QF_NEXT_ACTION] = {"DEPENDENT_QMD0_ACTION", 515, 513, 0},
    [QF_NEXT_PREFETCH] = {"DEPENDENT_QMD0_PREFETCH", 516, 516, 0},
    [QF_NEXT_POINTER] = {"DEPENDENT_QMD0_POINTER", 511, 480, 0},
};

static const struct model_qmd_bits v4[QF_FIELDS] = {
    [QF_MAJOR] = {"QMD_MAJOR_VERSION", 583, 580, 0},
    [QF_MINOR] = {"QMD_MINOR_VERSION", 579, 576, 0},
    [QF_GROUP] = {"QMD_GROUP_ID", 21, 16, 0},
    [QF_TYPE] = {"QMD_TYPE", 25, 23, 0},
    [QF_TEX_HEADER] = {"INVALIDATE_TEXTURE_HEADER_CACHE", 602, 602, 0},
    [QF_TEX_SAMPLER] = {"INVALIDATE_TEXTURE_SAMPLER_CACHE", 603, 603, 0},
    [QF_TEX_DATA] = {"INVALIDATE_TEXTURE_DATA_CACHE", 604, 604, 0},
    [QF_SHADER_DATA] = {"INVALIDATE_SHADER_DATA_CACHE", 605, 605, 0},
    [QF_INSTRUCTION] = {"INVALIDATE_INSTRUCTION_CACHE", 606, 606, 0},
    [QF_CONSTANT] = {"INVALIDATE_SHADER_CONSTANT_CACHE", 607, 607, 0},
    [QF_MEMBAR] = {"CWD_MEMBAR_TYPE", 1137, 1136, 0},
    [QF_CALL_LIMIT] = {"API_VISIBLE_CALL_LIMIT", 568, 568, 0},
    [QF_SAMPLER] = {"SAMPLER_INDEX", 569, 569, 0},
    [QF_SASS] = {"SASS_VERSION", 543, 536, 0},
    [QF_GRID_X] = {"GRID_WIDTH", 1055, 1024, 0},
    [QF_GRID_Y] = {"GRID_HEIGHT", 1071, 1056, 0},
    [QF_GRID_Z] = {"GRID_DEPTH", 1103, 1088, 0},
    [QF_GROUP_X] = {"CTA_THREAD_DIMENSION0", 1167, 1152, 0},
    [QF_GROUP_Y] = {"CTA_THREAD_DIMENSION1", 1183, 1168, 0},
    [QF_GROUP_Z] = {"CTA_THREAD_DIMENSION2", 1199, 1184, 0},
    [QF_REGISTERS] = {"REGISTER_COUNT", 1208, 1200, 0},
    [QF_BARRIERS] = {"BARRIER_COUNT", 1215, 1211, 0},
    [QF_SHARED] = {"SHARED_MEMORY_SIZE", 601, 584, 0},
    [QF_CONFIG_MIN] = {"MIN_SM_CONFIG_SHARED_MEM_SIZE", 613, 608, 0},
    [QF_CONFIG_MAX] = {"MAX_SM_CONFIG_SHARED_MEM_SIZE", 619, 614, 0},
    [QF_CONFIG_TARGET] = {"TARGET_SM_CONFIG_SHARED_MEM_SIZE", 625, 620, 0},
    [QF_LOCAL] = {"SHADER_LOCAL_MEMORY_HIGH_SIZE", 567, 544, 0},
    [QF_CODE_LO] = {"PROGRAM_ADDRESS_LOWER", 1247, 1216, 0},
    [QF_CODE_HI] = {"PROGRAM_ADDRESS_UPPER", 1272, 1248, 0},
    [QF_PREFETCH_LO] = {"PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED", 1375, 1344, 0},
    [QF_PREFETCH_HI] = {"PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED", 1392, 1376, 0},
    [QF_PREFETCH_SIZE] = {"PROGRAM_PREFETCH_SIZE", 1401, 1393, 0},
    [QF_BANK_VALID] = {"CONSTANT_BUFFER_VALID", 416, 416, 4},
    [QF_BANK_PREFETCH] = {"CONSTANT_BUFFER_PREFETCH", 418, 417, 4},
    [QF_BANK_INVALIDATE] = {"CONSTANT_BUFFER_INVALIDATE", 419, 419, 4},
    [QF_BANK_LO] = {"CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6", 1567, 1536, 64},
    [QF_BANK_HI] = {"CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6", 1586, 1568, 64},
    [QF_BANK_SIZE] = {"CONSTANT_BUFFER_SIZE_SHIFTED4", 1599, 1587, 64},
    [QF_RELEASE] = {"RELEASE_ENABLE[0]", 320, 320, 0},
    [QF_RELEASE_SIZE] = {"RELEASE_STRUCTURE_SIZE[0]", 322, 321, 0},
    [QF_RELEASE_MEMBAR] = {"RELEASE_MEMBAR_TYPE[0]", 323, 323, 0},
    [QF_RELEASE_64] = {"RELEASE_PAYLOAD64B[0]", 332, 332, 0},
    [QF_RELEASE_LO] = {"RELEASE_SEMAPHORE0_ADDR_LOWER", 671, 640, 0},
    [QF_RELEASE_HI] = {"RELEASE_SEMAPHORE0_ADDR_UPPER", 696, 672, 0},
    [QF_PAYLOAD_LO] = {"RELEASE_SEMAPHORE0_PAYLOAD_LOWER", 735, 704, 0},
    [QF_PAYLOAD_HI] = {"RELEASE_SEMAPHORE0_PAYLOAD_UPPER", 767, 736, 0},
    [QF_NEXT] = {"DEPENDENT_QMD_ENABLE[0]", 368, 368, 0},
    [QF_NEXT_ACTION] = {"DEPENDENT_QMD_ACTION[0]", 371, 369, 0},
    [QF_NEXT_PREFETCH] = {"DEPENDENT_QMD_PREFETCH[0]", 372, 372, 0},
    [QF_NEXT_POINTER] = {"DEPENDENT_QMD0_POINTER", 479, 448, 0},
};

static const struct model_qmd_bits v5[QF_FIELDS] = {
    [QF_MAJOR] = {"QMD_MAJOR_VERSION", 471, 468, 0},
    [QF_MINOR] = {"QMD_MINOR_VERSION", 467, 464, 0},
    [QF_GROUP] = {"QMD_GROUP_ID", 149, 144, 0},
    [QF_TYPE] = {"QMD_TYPE", 153, 151, 0},
    [QF_TEX_HEADER] = {"INVALIDATE_TEXTURE_HEADER_CACHE", 472, 472, 0},
    [QF_TEX_SAMPLER] = {"INVALIDATE_TEXTURE_SAMPLER_CACHE", 473, 473, 0},
    [QF_TEX_DATA] = {"INVALIDATE_TEXTURE_DATA_CACHE", 474, 474, 0},
    [QF_SHADER_DATA] = {"INVALIDATE_SHADER_DATA_CACHE", 475, 475, 0},
    [QF_INSTRUCTION] = {"INVALIDATE_INSTRUCTION_CACHE", 476, 476, 0},
    [QF_CONSTANT] = {"INVALIDATE_SHADER_CONSTANT_CACHE", 477, 477, 0},
    [QF_MEMBAR] = {"CWD_MEMBAR_TYPE", 625, 624, 0},
    [QF_CALL_LIMIT] = {"API_VISIBLE_CALL_LIMIT", 456, 456, 0},
    [QF_SAMPLER] = {"SAMPLER_INDEX", 457, 457, 0},
    [QF_SASS] = {"SASS_VERSION", 455, 448, 0},
    [QF_GRID_X] = {"GRID_WIDTH", 1279, 1248, 0},
    [QF_GRID_Y] = {"GRID_HEIGHT", 1295, 1280, 0},
    [QF_GRID_Z] = {"GRID_DEPTH", 1327, 1312, 0},
    [QF_GROUP_X] = {"CTA_THREAD_DIMENSION0", 1103, 1088, 0},
    [QF_GROUP_Y] = {"CTA_THREAD_DIMENSION1", 1119, 1104, 0},
    [QF_GROUP_Z] = {"CTA_THREAD_DIMENSION2", 1127, 1120, 0},
    [QF_REGISTERS] = {"REGISTER_COUNT", 1136, 1128, 0},
    [QF_BARRIERS] = {"BARRIER_COUNT", 1141, 1137, 0},
    [QF_SHARED] = {"SHARED_MEMORY_SIZE_SHIFTED7", 1162, 1152, 0},
    [QF_CONFIG_MIN] = {"MIN_SM_CONFIG_SHARED_MEM_SIZE", 1168, 1163, 0},
    [QF_CONFIG_MAX] = {"MAX_SM_CONFIG_SHARED_MEM_SIZE", 1174, 1169, 0},
    [QF_CONFIG_TARGET] = {"TARGET_SM_CONFIG_SHARED_MEM_SIZE", 1180, 1175, 0},
    [QF_LOCAL] = {"SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4", 1215, 1200, 0},
    [QF_CODE_LO] = {"PROGRAM_ADDRESS_LOWER_SHIFTED4", 1055, 1024, 0},
    [QF_CODE_HI] = {"PROGRAM_ADDRESS_UPPER_SHIFTED4", 1076, 1056, 0},
    [QF_PREFETCH_LO] = {"PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED", 1919, 1888, 0},
    [QF_PREFETCH_HI] = {"PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED", 1936, 1920, 0},
    [QF_PREFETCH_SIZE] = {"PROGRAM_PREFETCH_SIZE", 1085, 1077, 0},
    [QF_BANK_VALID] = {"CONSTANT_BUFFER_VALID", 1856, 1856, 4},
    [QF_BANK_PREFETCH] = {"CONSTANT_BUFFER_PREFETCH", 1858, 1857, 4},
    [QF_BANK_INVALIDATE] = {"CONSTANT_BUFFER_INVALIDATE", 1859, 1859, 4},
    [QF_BANK_LO] = {"CONSTANT_BUFFER_ADDR_LOWER_SHIFTED6", 1375, 1344, 64},
    [QF_BANK_HI] = {"CONSTANT_BUFFER_ADDR_UPPER_SHIFTED6", 1394, 1376, 64},
    [QF_BANK_SIZE] = {"CONSTANT_BUFFER_SIZE_SHIFTED4", 1407, 1395, 64},
    [QF_RELEASE] = {"RELEASE_ENABLE[0]", 288, 288, 0},
    [QF_RELEASE_SIZE] = {"RELEASE_STRUCTURE_SIZE[0]", 290, 289, 0},
    [QF_RELEASE_MEMBAR] = {"RELEASE_MEMBAR_TYPE[0]", 291, 291, 0},
    [QF_RELEASE_64] = {"RELEASE_PAYLOAD64B[0]", 300, 300, 0},
    [QF_RELEASE_LO] = {"RELEASE_SEMAPHORE0_ADDR_LOWER", 511, 480, 0},
    [QF_RELEASE_HI] = {"RELEASE_SEMAPHORE0_ADDR_UPPER", 536, 512, 0},
    [QF_PAYLOAD_LO] = {"RELEASE_SEMAPHORE0_PAYLOAD_LOWER", 575, 544, 0},
    [QF_PAYLOAD_HI] = {"RELEASE_SEMAPHORE0_PAYLOAD_UPPER", 607, 576, 0},
    [QF_NEXT] = {"DEPENDENT_QMD0_ENABLE", 336, 336, 0},
    [QF_NEXT_ACTION] = {"DEPENDENT_QMD0_ACTION", 339, 337, 0},
    [QF_NEXT_PREFETCH] = {"DEPENDENT_QMD0_PREFETCH", 340, 340, 0},
    [QF_NEXT_POINTER] = {"DEPENDENT_QMD0_POINTER", 415, 384, 0},
};

static const struct model_qmd_bits *const versions[] = {
    [3] = v3, [4] = v4, [5] = v5};

/* Sizes of bank 0: nvcc's kernels on sm_89 and sm_90 read them there; those
 * of sm_120 by their disassembly. Shared memory: CUDA C++ Programming Guide,
 * Compute Capabilities. */
static const struct model_arch archs[] = {
    {0x806, 3, 100, 0x0, 0xc},     {0x807, 3, 164, 0x0, 0xc},
    {0x809, 3, 100, 0x0, 0xc},     {0x900, 4, 228, 0x0, 0xc},
    {0xa00, 5, 228, 0x360, 0x370}, {0xa04, 5, 100, 0x360, 0x370}};

const struct model_arch *model_arch(uint32_t sm_version) {
  for (size_t i = 0; i < sizeof archs / sizeof *archs; i++)
    if (archs[i].sm_version == sm_version)
      return &archs[i];
  return NULL;
}

unsigned model_qmd_bytes(int version) { return version == 3 ? 256 : 384; }

const struct model_qmd_bits *model_qmd_bits(int version,
                                            enum model_qmd_field f) {
  return &versions[version][f];
}

/* The low `bits` bits of x. */
static uint32_t low(uint32_t x, unsigned bits) {
  return bits < 32 ? x & ((1u << bits) - 1) : x;
}

uint32_t model_qmd_bank(const struct model_qmd *q, enum model_qmd_field f,
                        unsigned i) {
  const struct model_qmd_bits *b = model_qmd_bits(q->arch->version, f);
  unsigned at = b->low + i * b->step;
  if (!b->name)
    return 0;
  return low(q->words[at / 32] >> at % 32, b->high - b->low + 1u);
}

uint32_t model_qmd_get(const struct model_qmd *q, enum model_qmd_field f) {
  return model_qmd_bank(q, f, 0);
}

static uint64_t pair(uint32_t hi, uint32_t lo) {
  return (uint64_t)hi << 32 | lo;
}

/* The units of the version's addresses and sizes, as shifts. */
static bool shifted(const struct model_qmd *q) { return q->arch->version == 5; }

uint64_t model_qmd_code(const struct model_qmd *q) {
  return pair(model_qmd_get(q, QF_CODE_HI), model_qmd_get(q, QF_CODE_LO))
         << (shifted(q) ? 4 : 0);
}

uint32_t model_qmd_shared(const struct model_qmd *q) {
  return model_qmd_get(q, QF_SHARED) << (shifted(q) ? 7 : 0);
}

uint32_t model_qmd_local(const struct model_qmd *q) {
  return model_qmd_get(q, QF_LOCAL) << (shifted(q) ? 4 : 0);
}

uint64_t model_qmd_bank_at(const struct model_qmd *q, unsigned i) {
  return pair(model_qmd_bank(q, QF_BANK_HI, i),
              model_qmd_bank(q, QF_BANK_LO, i))
         << (q->arch->version == 3 ? 0 : 6);
}

uint32_t model_qmd_bank_bytes(const struct model_qmd *q, unsigned i) {
  return model_qmd_bank(q, QF_BANK_SIZE, i) << 4;
}

uint64_t model_qmd_release_at(const struct model_qmd *q) {
  return pair(model_qmd_get(q, QF_RELEASE_HI), model_qmd_get(q, QF_RELEASE_LO));
}

uint64_t model_qmd_payload(const struct model_qmd *q) {
  return pair(model_qmd_get(q, QF_PAYLOAD_HI), model_qmd_get(q, QF_PAYLOAD_LO));
}

/* Where a refusal's text goes. */
struct reason {
  const struct model_qmd *q;
  char *text;
  size_t n;
};

static bool refuse(const struct reason *r, enum model_qmd_field f, unsigned i,
                   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* "FIELD 0x..: why", or FIELD(i) of a bank's. */
static bool refuse(const struct reason *r, enum model_qmd_field f, unsigned i,
                   const char *fmt, ...) {
  const struct model_qmd_bits *b = model_qmd_bits(r->q->arch->version, f);
  char why[200], of[8] = "";
  va_list args;
  va_start(args, fmt);
  vsnprintf(why, sizeof why, fmt, args);
  va_end(args);
  if (b->step)
    snprintf(of, sizeof of, "(%u)", i % QV_BANKS);
  snprintf(r->text, r->n, "%s%s 0x%x: %s", b->name, of,
           (unsigned)model_qmd_bank(r->q, f, i), why);
  return false;
}

/* The bits of the version's fields. */
static void known(int version, uint32_t *words) {
  for (int f = 0; f < QF_FIELDS; f++) {
    const struct model_qmd_bits *b = model_qmd_bits(version, f);
    for (unsigned i = 0; b->name && i < (b->step ? QV_BANKS : 1); i++)
      for (unsigned at = b->low; at <= b->high; at++)
        words[(at + i * b->step) / 32] |= 1u << (at + i * b->step) % 32;
  }
}

static bool strays(const struct reason *r) {
  uint32_t all[QV_WORDS] = {0};
  known(r->q->arch->version, all);
  for (unsigned w = 0; w < model_qmd_bytes(r->q->arch->version) / 4; w++)
    for (unsigned b = 0; b < 32; b++)
      if (r->q->words[w] & ~all[w] & 1u << b) {
        snprintf(r->text, r->n, "bit %u, of a field that is not modelled",
                 32 * w + b);
        return false;
      }
  return true;
}

/* SASS_VERSION as the RM tells the SM version: 0x809 is 0x89. */
static uint32_t sass(uint32_t v) { return (v & 0xf00) >> 4 | (v & 0xf); }

static bool versions_fit(const struct reason *r) {
  const struct model_qmd *q = r->q;
  const struct model_arch *a = q->arch;
  if (model_qmd_get(q, QF_MAJOR) != (uint32_t)a->version)
    return refuse(r, QF_MAJOR, 0, "SM version 0x%x runs V0%d_00",
                  (unsigned)a->sm_version, a->version);
  if (model_qmd_get(q, QF_MINOR))
    return refuse(r, QF_MINOR, 0, "SM version 0x%x runs V0%d_00",
                  (unsigned)a->sm_version, a->version);
  if (model_qmd_bits(a->version, QF_TYPE)->name &&
      model_qmd_get(q, QF_TYPE) != QV_GRID_CTA)
    return refuse(r, QF_TYPE, 0, "not GRID_CTA");
  if (model_qmd_get(q, QF_SASS) != sass(a->sm_version))
    return refuse(r, QF_SASS, 0, "SM version 0x%x", (unsigned)a->sm_version);
  return true;
}

/* CUDA C++ Programming Guide, Technical Specifications per Compute
 * Capability: the same from 8.0 to 12.0. Registers go to a warp by 256. */
enum {
  GROUP_THREADS = 1024,
  GROUP_Z = 64,
  WARP = 32,
  SM_REGISTERS = 65536,
  REGISTER_UNIT = 256,
  REGISTERS = 255,
  BARRIERS = 16
};

static bool sizes(const struct reason *r) {
  const struct model_qmd *q = r->q;
  uint64_t threads = 1;
  for (int f = QF_GRID_X; f <= QF_GROUP_Z; f++)
    if (!model_qmd_get(q, f))
      return refuse(r, f, 0, "an axis of size 0");
  if (model_qmd_get(q, QF_GRID_X) > INT32_MAX)
    return refuse(r, QF_GRID_X, 0, "above 2^31 - 1"); /* y, z: 16 bits */
  if (model_qmd_get(q, QF_GROUP_Z) > GROUP_Z)
    return refuse(r, QF_GROUP_Z, 0, "above %d", GROUP_Z);
  for (int f = QF_GROUP_X; f <= QF_GROUP_Z; f++) {
    threads *= model_qmd_get(q, f);
    if (threads > GROUP_THREADS)
      return refuse(r, f, 0, "blocks of more than %d threads", GROUP_THREADS);
  }
  uint64_t n = model_qmd_get(q, QF_REGISTERS);
  uint64_t warp =
      ((n ? n : 1) * WARP + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
  if (n > REGISTERS || (threads + WARP - 1) / WARP * warp > SM_REGISTERS)
    return refuse(r, QF_REGISTERS, 0, "of %u threads, more than there are",
                  (unsigned)threads);
  if (model_qmd_get(q, QF_BARRIERS) > BARRIERS)
    return refuse(r, QF_BARRIERS, 0, "above %d", BARRIERS);
  return true;
}

enum { SHARED_RESERVED = 1024, SHARED_UNIT = 128, LOCAL_UNIT = 16 };

/* A configuration's code counts units of 4 KiB, from one. */
static uint32_t config_bytes(uint32_t code) {
  return code ? (code - 1) * 4096 : 0;
}

static bool memory(const struct reason *r) {
  const struct model_qmd *q = r->q;
  const uint32_t shared = model_qmd_shared(q);
  const int configs[] = {QF_CONFIG_MIN, QF_CONFIG_TARGET, QF_CONFIG_MAX};
  uint32_t last = 0;
  if (shared < SHARED_RESERVED || shared % SHARED_UNIT)
    return refuse(r, QF_SHARED, 0, "not the reserved %d and units of %d",
                  SHARED_RESERVED, SHARED_UNIT);
  for (size_t i = 0; i < 3; i++) {
    uint32_t code = model_qmd_get(q, configs[i]);
    if (config_bytes(code) < shared)
      return refuse(r, configs[i], 0,
                    "%u bytes hold less than the %u shared ones",
                    (unsigned)config_bytes(code), (unsigned)shared);
    if (config_bytes(code) > q->arch->shared_kib * 1024)
      return refuse(r, configs[i], 0, "more than the %u KiB there are",
                    (unsigned)q->arch->shared_kib);
    if (code < last)
      return refuse(r, configs[i], 0, "below the one it must not be below");
    last = code;
  }
  if (model_qmd_local(q) % LOCAL_UNIT)
    return refuse(r, QF_LOCAL, 0, "not in units of %d", LOCAL_UNIT);
  return true;
}

static bool caches(const struct reason *r) {
  const struct model_qmd *q = r->q;
  const uint32_t membar = model_qmd_get(q, QF_MEMBAR);
  if (!model_qmd_get(q, QF_SHADER_DATA))
    return refuse(r, QF_SHADER_DATA, 0,
                  "the launch may read what its multiprocessors held before");
  if (membar != QV_L1_NONE && membar != QV_L1_SYSMEMBAR &&
      membar != QV_L1_MEMBAR)
    return refuse(r, QF_MEMBAR, 0, "no such membar");
  return true;
}

enum { CODE_ALIGN = 128, BANK_ALIGN = 64, PREFETCH_SHIFT = 8 };

static bool code(const struct reason *r) {
  const struct model_qmd *q = r->q;
  const uint64_t at = model_qmd_code(q);
  if (at % CODE_ALIGN)
    return refuse(r, QF_CODE_LO, 0, "not aligned to %d", CODE_ALIGN);
  if (model_qmd_get(q, QF_PREFETCH_SIZE) &&
      pair(model_qmd_get(q, QF_PREFETCH_HI),
           model_qmd_get(q, QF_PREFETCH_LO)) != at >> PREFETCH_SHIFT)
    return refuse(r, QF_PREFETCH_LO, 0, "not the program at 0x%llx",
                  (unsigned long long)at);
  return true;
}

static bool banks(const struct reason *r) {
  const struct model_qmd *q = r->q;
  if (!model_qmd_bank(q, QF_BANK_VALID, 0))
    return refuse(r, QF_BANK_VALID, 0, "a launch with no bank 0");
  if (!model_qmd_bank(q, QF_BANK_INVALIDATE, 0))
    return refuse(r, QF_BANK_INVALIDATE, 0,
                  "the launch may read another one's bank 0");
  for (unsigned i = 0; i < QV_BANKS; i++) {
    if (!model_qmd_bank(q, QF_BANK_VALID, i))
      continue;
    if (model_qmd_bank_at(q, i) % BANK_ALIGN)
      return refuse(r, QF_BANK_LO, i, "not aligned to %d", BANK_ALIGN);
    if (!model_qmd_bank_bytes(q, i) ||
        model_qmd_bank_bytes(q, i) > QV_BANK_MOST)
      return refuse(r, QF_BANK_SIZE, i, "not from 16 to %d bytes",
                    QV_BANK_MOST);
    if (model_qmd_bank(q, QF_BANK_PREFETCH, i) > QV_PREFETCH_PRE)
      return refuse(r, QF_BANK_PREFETCH, i, "not modelled");
  }
  return true;
}

static bool ends(const struct reason *r) {
  const struct model_qmd *q = r->q;
  const uint32_t size = model_qmd_get(q, QF_RELEASE_SIZE);
  if (model_qmd_get(q, QF_RELEASE)) {
    if (size > QV_TWO_WORDS)
      return refuse(r, QF_RELEASE_SIZE, 0, "no such size");
    if (!model_qmd_get(q, QF_RELEASE_64) != (size == QV_ONE_WORD))
      return refuse(r, QF_RELEASE_64, 0, "not the payload of size %u",
                    (unsigned)size);
  }
  if (model_qmd_get(q, QF_NEXT) &&
      model_qmd_get(q, QF_NEXT_ACTION) != QV_SCHEDULE)
    return refuse(r, QF_NEXT_ACTION, 0, "not QMD_SCHEDULE");
  return true;
}

bool model_qmd_check(const struct model_qmd *q, char *text, size_t n) {
  const struct reason r = {q, text, n};
  return versions_fit(&r) && strays(&r) && sizes(&r) && memory(&r) &&
         caches(&r) && code(&r) && banks(&r) && ends(&r);
}
