/* SPDX-License-Identifier: ISC */
#ifndef CORE_ABI_RM_H
#define CORE_ABI_RM_H
/*
 * Parameters of the resource manager, by driver release: how many bytes each
 * structure has, and at which byte the fields that a device sets or reads
 * begin. The RM checks a control call's size exactly, and reads an
 * allocation's own size whatever the caller's: so keep allocation parameters
 * in a zeroed buffer with slack behind them.
 *
 * Fields are little-endian and unsigned. The tables are constant: any thread.
 *
 * Sources: NVIDIA's open-gpu-kernel-modules, tags 570.211.01 and 580.142, and
 * 610.43.03: alloc/alloc_channel.h, nvos.h, class/cl83de.h, class/cl9067.h,
 * ctrl/ctrl83de/ctrl83dedebug.h, ctrl/ctrla06c.h. A release publishes its own:
 * an unknown one has no layout here.
 */
#include <stdint.h>

struct abi_rm_field {
  uint16_t at, n; /* its first byte, and its bytes */
};

struct abi_rm_layout {
  int release;
  struct { /* NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS */
    uint16_t bytes;
    struct abi_rm_field va_space, engine_type;
  } group;
  struct { /* NV_CTXSHARE_ALLOCATION_PARAMETERS */
    uint16_t bytes;
    struct abi_rm_field va_space, flags;
  } share;
  struct { /* NV_CHANNEL_ALLOC_PARAMS */
    uint16_t bytes;
    struct abi_rm_field object_error, object_buffer, gpfifo_offset,
        gpfifo_entries, flags, context_share, userd_memory_0, userd_offset_0,
        engine_type;
  } channel;
  struct { /* NV83DE_ALLOC_PARAMETERS */
    uint16_t bytes;
    struct abi_rm_field app_client, class_3d_object;
  } debugger;
  struct { /* NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS */
    uint16_t bytes;
    struct abi_rm_field enable;
  } schedule;
  struct { /* NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS */
    uint16_t bytes, stride, most; /* of smErrorStateArray, at sm_0 */
    struct abi_rm_field target_channel, sms_to_read, starting_sm,
        mmu_fault_info, mmu_fault_valid;
    /* Of the array's first element; element i's are i * stride after. */
    struct abi_rm_field sm_0, global_esr, warp_esr, warp_pc, esr_addr,
        warp_pc_64;
  } sm_errors;
  struct { /* NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS */
    uint16_t bytes, stride, most; /* of mmuFaultInfoList, at list_0 */
    struct abi_rm_field count;
    struct abi_rm_field list_0, address, type, access;
  } mmu_faults;
  struct { /* NvNotification: what the RM writes to a channel's notifier */
    uint16_t bytes;
    struct abi_rm_field time_stamp, info_32, info_16, status;
  } notification;
};

/* NULL where the release's layouts are not known: 570, 580 and 610 are. */
const struct abi_rm_layout *abi_rm_layout(int release);

enum abi_rm_constant {
  NV2080_ENGINE_TYPE_GRAPHICS = 0x1,
  NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC = 0x1
};

/* The channel's USERD: AmpereAControlGPFifo of clc56f.h, NV_RAMUSERD of
 * dev_ram. The Blackwell classes publish GP_PUT only. */
enum abi_userd {
  ABI_USERD_GP_GET = 0x88,
  ABI_USERD_GP_PUT = 0x8c,
  ABI_USERD_BYTES = 512
};
#endif
