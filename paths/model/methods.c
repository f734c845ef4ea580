/* SPDX-License-Identifier: ISC */
#include "paths/model/methods.h"

#define WORD 0xffffffffu
#define UPPER 0x1ffffu          /* upper address bits before Hopper */
#define HOPPER_UPPER 0x1ffffffu /* and from it on */
#define SEM_EXECUTE_BITS 0x03101007u

static const struct model_method host[HOST_METHODS] = {
    [HOST_SET_OBJECT] = {0x000, 0x1fffff, 0x1fffff, "SET_OBJECT"},
    [HOST_NOP] = {0x008, WORD, WORD, "NOP"},
    [HOST_INTERRUPT] = {0x020, WORD, WORD, "NON_STALL_INTERRUPT"},
    [HOST_SEM_ADDR_LO] = {0x05c, 0xfffffffc, 0xfffffffc, "SEM_ADDR_LO"},
    [HOST_SEM_ADDR_HI] = {0x060, 0xff, HOPPER_UPPER, "SEM_ADDR_HI"},
    [HOST_SEM_PAYLOAD_LO] = {0x064, WORD, WORD, "SEM_PAYLOAD_LO"},
    [HOST_SEM_PAYLOAD_HI] = {0x068, WORD, WORD, "SEM_PAYLOAD_HI"},
    [HOST_SEM_EXECUTE] = {0x06c, SEM_EXECUTE_BITS, SEM_EXECUTE_BITS,
                          "SEM_EXECUTE"},
    [HOST_WFI] = {0x078, 0x1, 0x1, "WFI"},
};

static const struct model_method compute[CP_METHODS] = {
    [CP_NO_OPERATION] = {0x100, WORD, WORD, "NO_OPERATION"},
    [CP_WAIT_FOR_IDLE] = {0x110, WORD, WORD, "WAIT_FOR_IDLE"},
    [CP_SHARED_WINDOW_A] = {0x2a0, UPPER, UPPER,
                            "SET_SHADER_SHARED_MEMORY_WINDOW_A"},
    [CP_SHARED_WINDOW_B] = {0x2a4, WORD, WORD,
                            "SET_SHADER_SHARED_MEMORY_WINDOW_B"},
    [CP_SEND_PCAS_A] = {0x2b4, WORD, WORD, "SEND_PCAS_A"},
    [CP_SEND_PCAS_B] = {0x2b8, WORD, WORD, "SEND_PCAS_B"},
    [CP_SEND_SIGNALING_PCAS_B] = {0x2bc, 0x3, 0x3, "SEND_SIGNALING_PCAS_B"},
    [CP_SEND_SIGNALING_PCAS2_B] = {0x2c0, 0xffff0f, 0xffff0f,
                                   "SEND_SIGNALING_PCAS2_B"},
    [CP_LOCAL_SIZE_A] = {0x2e4, 0xff, 0xff,
                         "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_A"},
    [CP_LOCAL_SIZE_B] = {0x2e8, WORD, WORD,
                         "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_B"},
    [CP_LOCAL_SIZE_C] = {0x2ec, 0x1ff, 0x1ff,
                         "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_C"},
    [CP_LOCAL_A] = {0x790, UPPER, HOPPER_UPPER, "SET_SHADER_LOCAL_MEMORY_A"},
    [CP_LOCAL_B] = {0x794, WORD, WORD, "SET_SHADER_LOCAL_MEMORY_B"},
    [CP_LOCAL_WINDOW_A] = {0x7b0, UPPER, UPPER,
                           "SET_SHADER_LOCAL_MEMORY_WINDOW_A"},
    [CP_LOCAL_WINDOW_B] = {0x7b4, WORD, WORD,
                           "SET_SHADER_LOCAL_MEMORY_WINDOW_B"},
    [CP_INVALIDATE] = {0x21c, 0x1017, 0x1017, "INVALIDATE_SHADER_CACHES"},
    [CP_INVALIDATE_NO_WFI] = {0x1698, 0x1011, 0x1011,
                              "INVALIDATE_SHADER_CACHES_NO_WFI"},
};

static const struct model_method copy[CE_METHODS] = {
    [CE_NOP] = {0x100, WORD, WORD, "NOP"},
    [CE_SEM_A] = {0x240, UPPER, HOPPER_UPPER, "SET_SEMAPHORE_A"},
    [CE_SEM_B] = {0x244, WORD, WORD, "SET_SEMAPHORE_B"},
    [CE_SEM_PAYLOAD] = {0x248, WORD, WORD, "SET_SEMAPHORE_PAYLOAD"},
    [CE_SEM_PAYLOAD_UPPER] = {0x24c, WORD, WORD, "SET_SEMAPHORE_PAYLOAD_UPPER"},
    [CE_LAUNCH] = {0x300, 0x0e00079f, 0x0e00079f, "LAUNCH_DMA"},
    [CE_IN_UPPER] = {0x400, UPPER, HOPPER_UPPER, "OFFSET_IN_UPPER"},
    [CE_IN_LOWER] = {0x404, WORD, WORD, "OFFSET_IN_LOWER"},
    [CE_OUT_UPPER] = {0x408, UPPER, HOPPER_UPPER, "OFFSET_OUT_UPPER"},
    [CE_OUT_LOWER] = {0x40c, WORD, WORD, "OFFSET_OUT_LOWER"},
    [CE_PITCH_IN] = {0x410, WORD, WORD, "PITCH_IN"},
    [CE_PITCH_OUT] = {0x414, WORD, WORD, "PITCH_OUT"},
    [CE_LINE_LENGTH] = {0x418, WORD, WORD, "LINE_LENGTH_IN"},
    [CE_LINE_COUNT] = {0x41c, WORD, WORD, "LINE_COUNT"},
    [CE_CONST_A] = {0x700, WORD, WORD, "SET_REMAP_CONST_A"},
    [CE_CONST_B] = {0x704, WORD, WORD, "SET_REMAP_CONST_B"},
    [CE_COMPONENTS] = {0x708, 0x3337777, 0x3337777, "SET_REMAP_COMPONENTS"},
};

/* The classes, those before Hopper first. */
static const uint32_t channels[] = {0xc56f, 0xc76f, 0xc86f, 0xc96f, 0xca6f};
static const uint32_t computes[] = {0xc7c0, 0xc9c0, 0xcbc0, 0xcdc0, 0xcec0};
static const uint32_t copies[] = {0xc7b5, 0xc8b5, 0xc9b5, 0xcab5};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct {
  const struct model_method *methods;
  size_t n;
  const uint32_t *classes;
  size_t nclasses;
  uint32_t hopper; /* the first class of Hopper's generation */
} kinds[] = {
    [KIND_HOST] = {host, COUNT(host), channels, COUNT(channels), 0xc86f},
    [KIND_COMPUTE] = {compute, COUNT(compute), computes, COUNT(computes),
                      0xcbc0},
    [KIND_COPY] = {copy, COUNT(copy), copies, COUNT(copies), 0xc8b5},
};

const struct model_method *model_methods(enum model_kind k, size_t *n) {
  *n = kinds[k].n;
  return kinds[k].methods;
}

bool model_knows(enum model_kind k, uint32_t cls) {
  for (size_t i = 0; i < kinds[k].nclasses; i++)
    if (kinds[k].classes[i] == cls)
      return true;
  return false;
}

int model_find(enum model_kind k, uint32_t at) {
  for (size_t i = 0; i < kinds[k].n; i++)
    if (kinds[k].methods[i].at == at)
      return (int)i;
  return -1;
}

uint32_t model_bits(enum model_kind k, int i, uint32_t cls) {
  const struct model_method *m = &kinds[k].methods[i];
  return cls >= kinds[k].hopper ? m->hopper_bits : m->bits;
}
