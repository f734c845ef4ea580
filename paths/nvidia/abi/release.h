/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_ABI_RELEASE_H
#define PATHS_NVIDIA_ABI_RELEASE_H
/*
 * What differs between the releases of NVIDIA's kernel driver, of what this
 * path asks it. The RM compares a control call's size with its own; UVM copies
 * its own size, so a buffer for it is as large as the largest. Constant: any
 * thread.
 */
#include <stddef.h>
#include <stdint.h>

#include "core/abi/rm.h" /* struct abi_rm_field */

enum { RELEASE_FB_INFO_MOST = 1028, RELEASE_UVM_MOST = 32, RELEASE_LIST = 64 };

struct release_layout {
  int release;
  uint16_t vaspace_bytes; /* NV_VASPACE_ALLOCATION_PARAMETERS */
  uint16_t fb_info_bytes; /* NV2080_CTRL_FB_GET_INFO_V2_PARAMS */
  struct {                /* UVM_FREE_PARAMS */
    uint16_t bytes;
    struct abi_rm_field base, length, status; /* no length: n is 0 */
  } uvm_free;
  struct { /* UVM_UNREGISTER_CHANNEL_PARAMS */
    uint16_t bytes;
    struct abi_rm_field gpu, client, channel, status; /* no gpu: n is 0 */
  } uvm_unregister_channel;
};

/* NULL where the release's layouts are not known. */
const struct release_layout *nvk_release_layout(int release);

/* The releases whose layouts are known, as "570, 580 and 610", in n bytes,
 * RELEASE_LIST at most. */
void nvk_release_list(char *text, size_t n);

/* The release of a version such as "580.159.04": 580. -1 if it is none. */
int nvk_release_of(const char *version);
#endif
