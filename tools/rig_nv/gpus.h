/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_GPUS_H
#define TOOLS_RIG_NV_GPUS_H
/*
 * gpus: the machine's NVIDIA GPUs, whichever driver holds each, and of those
 * that the path opens what they state. Each is opened and closed, with no
 * device made of it. Threads: one at a time.
 */
#include "tools/rig_nv/system.h"

struct gpus_one {
  struct system_gpu at;
  bool opens;
  char reason[256]; /* why it does not */
  /* Where it opens. */
  const char *arch; /* "sm_90"; NULL: not one that this library knows */
  struct rig_nv_gpu gpu;
  uint64_t memory;     /* bytes */
  int64_t cache_bytes; /* of the L2 cache, -1 untold */
};

/* GPU i of the machine in list[i]; returns how many there are. */
size_t gpus_list(const struct system *, struct gpus_one list[SYSTEM_GPUS]);

/* The multiprocessors of the GPU's whole chip: products have fewer. */
uint32_t gpus_sms(const struct rig_nv_gpu *);
#endif
