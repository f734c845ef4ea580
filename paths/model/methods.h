/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_METHODS_H
#define PATHS_MODEL_METHODS_H
/*
 * The numbers of what channels fetch, as the model reads them: ring entries,
 * headers, and the methods that it runs. They are the model's own, apart from
 * core/abi's, so that model and encoder judge each other.
 *
 * Sources: NVIDIA's open-gpu-doc, classes/host/clc76f.h, classes/compute
 * (clc7c0 to clcec0) and classes/dma-copy (clc7b5 to clcab5); kernel modules,
 * clc86f.h. methods_test.c compares them with rows of those headers.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A ring entry, 64 bits, first word low (GP_ENTRY0, GP_ENTRY1 << 32). */
enum {
  GP_ENTRY_BYTES = 8,
  GP_FETCH_BIT = 0,    /* 0 unconditional */
  GP_GET_LOW_BIT = 2,  /* bits 39:2 of the segment's address lie in place */
  GP_GET_TOP_BIT = 39, /* 32 + GET_HI's 7 */
  GP_LEVEL_BIT = 41,   /* 1 subroutine */
  GP_LENGTH_BIT = 42,  /* 21 bits of words */
  GP_LENGTH_BITS = 21,
  GP_SYNC_BIT = 63 /* 0 proceed */
};

/* USERD, the host's window on a channel: 512 bytes. */
enum { USERD_BYTES = 512, USERD_GP_GET = 0x88, USERD_GP_PUT = 0x8c };

/* A header word: SEC_OP 31:29, COUNT or IMMD_DATA 28:16, SUBCHANNEL 15:13,
 * ADDRESS 11:0 (of words). */
enum model_op {
  OP_TERT = 0,
  OP_INC = 1,
  OP_NON_INC = 3,
  OP_IMMD = 4,
  OP_ONE_INC = 5,
  OP_END = 7
};

enum { SUB_COMPUTE = 1, SUB_COPY = 4, SUBCHANNELS = 8 };

/* A method: its byte offset, its argument's bits before Hopper and from it
 * on, and its name in the class header. */
struct model_method {
  uint32_t at, bits, hopper_bits;
  const char *name;
};

/* Methods below 0x100 are the host's, on every subchannel. */
enum { HOST_METHODS_END = 0x100 };

enum model_host {
  HOST_SET_OBJECT,
  HOST_NOP,
  HOST_INTERRUPT,
  HOST_SEM_ADDR_LO,
  HOST_SEM_ADDR_HI,
  HOST_SEM_PAYLOAD_LO,
  HOST_SEM_PAYLOAD_HI,
  HOST_SEM_EXECUTE,
  HOST_WFI,
  HOST_METHODS
};

enum model_compute {
  CP_NO_OPERATION,
  CP_WAIT_FOR_IDLE,
  CP_SHARED_WINDOW_A,
  CP_SHARED_WINDOW_B,
  CP_SEND_PCAS_A,
  CP_SEND_PCAS_B,
  CP_SEND_SIGNALING_PCAS_B,
  CP_SEND_SIGNALING_PCAS2_B,
  CP_LOCAL_SIZE_A,
  CP_LOCAL_SIZE_B,
  CP_LOCAL_SIZE_C,
  CP_LOCAL_A,
  CP_LOCAL_B,
  CP_LOCAL_WINDOW_A,
  CP_LOCAL_WINDOW_B,
  CP_INVALIDATE,
  CP_INVALIDATE_NO_WFI,
  CP_METHODS
};

enum model_copy {
  CE_NOP,
  CE_SEM_A,
  CE_SEM_B,
  CE_SEM_PAYLOAD,
  CE_SEM_PAYLOAD_UPPER,
  CE_LAUNCH,
  CE_IN_UPPER,
  CE_IN_LOWER,
  CE_OUT_UPPER,
  CE_OUT_LOWER,
  CE_PITCH_IN,
  CE_PITCH_OUT,
  CE_LINE_LENGTH,
  CE_LINE_COUNT,
  CE_CONST_A,
  CE_CONST_B,
  CE_COMPONENTS,
  CE_METHODS
};

/* SEM_EXECUTE */
enum {
  SEM_OPERATION = 0x7,
  SEM_ACQUIRE = 0,
  SEM_RELEASE = 1,
  SEM_ACQ_CIRC_GEQ = 3,
  SEM_SWITCH_TSG = 1 << 12,
  SEM_RELEASE_WFI = 1 << 20,
  SEM_64BIT = 1 << 24,
  SEM_TIMESTAMP = 1 << 25
};

/* LAUNCH_DMA */
enum {
  DMA_TRANSFER = 0x3,
  DMA_PIPELINED = 1,
  DMA_NON_PIPELINED = 2,
  DMA_FLUSH = 1 << 2,
  DMA_SEM_SHIFT = 3, /* 2 bits */
  DMA_SEM_ONE_WORD = 1,
  DMA_SEM_FOUR_WORD = 2,
  DMA_SRC_PITCH = 1 << 7,
  DMA_DST_PITCH = 1 << 8,
  DMA_MULTI_LINE = 1 << 9,
  DMA_REMAP = 1 << 10,
  DMA_FLUSH_GL = 1 << 25,
  DMA_DISABLE_PLC = 1 << 26,
  DMA_SEM_TWO_WORD = 1 << 27
};

/* SET_REMAP_COMPONENTS: what X, Y, Z and W of the destination are, 4 bits
 * apart; sizes and counts less one. */
enum {
  REMAP_CONST_A = 4,
  REMAP_CONST_B = 5,
  REMAP_NO_WRITE = 6,
  REMAP_SIZE_SHIFT = 16,
  REMAP_DST_SHIFT = 24
};

enum model_kind {
  KIND_HOST,
  KIND_COMPUTE,
  KIND_COPY,
  KIND_CHANNEL = KIND_HOST
};

/* The methods of a kind, indexed by its enum, and their number. */
const struct model_method *model_methods(enum model_kind, size_t *n);

/* Whether the tables hold the class, as one of the kind. */
bool model_knows(enum model_kind, uint32_t cls);

/* The method's index, or -1 where the kind has none at byte `at`. */
int model_find(enum model_kind, uint32_t at);

/* The bits that the argument of method i may have, for the class. */
uint32_t model_bits(enum model_kind, int i, uint32_t cls);

#endif
