/* SPDX-License-Identifier: ISC */
#include "core/abi/rm.h"

#include <stddef.h>

/* What 570, 580 and 610 share is written once; rm_test holds all of it to
 * each release's own numbers. */
#define GROUP {.bytes = 20, .va_space = {8, 4}, .engine_type = {12, 4}}
#define SHARE {.bytes = 12, .va_space = {0, 4}, .flags = {4, 4}}
#define DEBUGGER {.bytes = 12, .app_client = {4, 4}, .class_3d_object = {8, 4}}
#define SM_ERRORS                                                              \
  {.bytes = 4824,                                                              \
   .stride = 48,                                                               \
   .most = 100,                                                                \
   .target_channel = {0, 4},                                                   \
   .sms_to_read = {4, 4},                                                      \
   .starting_sm = {4820, 4},                                                   \
   .mmu_fault_info = {4808, 4},                                                \
   .mmu_fault_valid = {4812, 1},                                               \
   .sm_0 = {8, 48},                                                            \
   .global_esr = {8, 4},                                                       \
   .warp_esr = {12, 4},                                                        \
   .warp_pc = {16, 4},                                                         \
   .esr_addr = {32, 8},                                                        \
   .warp_pc_64 = {40, 8}}
#define MMU_FAULTS                                                             \
  {.bytes = 72,                                                                \
   .stride = 16,                                                               \
   .most = 4,                                                                  \
   .count = {64, 4},                                                           \
   .list_0 = {0, 16},                                                          \
   .address = {0, 8},                                                          \
   .type = {8, 4},                                                             \
   .access = {12, 4}}
#define NOTIFICATION                                                           \
  {.bytes = 16,                                                                \
   .time_stamp = {0, 8},                                                       \
   .info_32 = {8, 4},                                                          \
   .info_16 = {12, 2},                                                         \
   .status = {14, 2}}

/* 610 put hHandleVASpace at byte 32: what follows it moved. */
#define CHANNEL(size, userd_memory, userd_offset, engine)                      \
  {.bytes = size,                                                              \
   .object_error = {0, 4},                                                     \
   .object_buffer = {4, 4},                                                    \
   .gpfifo_offset = {8, 8},                                                    \
   .gpfifo_entries = {16, 4},                                                  \
   .flags = {20, 4},                                                           \
   .context_share = {24, 4},                                                   \
   .userd_memory_0 = {userd_memory, 4},                                        \
   .userd_offset_0 = {userd_offset, 8},                                        \
   .engine_type = {engine, 4}}

/* 580 appended bSkipEnable. */
#define SCHEDULE(size) {.bytes = size, .enable = {0, 1}}

#define LAYOUT(number, channel_layout, schedule_layout)                        \
  {.release = number,                                                          \
   .group = GROUP,                                                             \
   .share = SHARE,                                                             \
   .channel = channel_layout,                                                  \
   .debugger = DEBUGGER,                                                       \
   .schedule = schedule_layout,                                                \
   .sm_errors = SM_ERRORS,                                                     \
   .mmu_faults = MMU_FAULTS,                                                   \
   .notification = NOTIFICATION}

static const struct abi_rm_layout layouts[] = {
    LAYOUT(570, CHANNEL(368, 32, 64, 128), SCHEDULE(2)),
    LAYOUT(580, CHANNEL(368, 32, 64, 128), SCHEDULE(3)),
    LAYOUT(610, CHANNEL(376, 36, 72, 136), SCHEDULE(3)),
};

const struct abi_rm_layout *abi_rm_layout(int release) {
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
    if (layouts[i].release == release)
      return &layouts[i];
  }
  return NULL;
}
