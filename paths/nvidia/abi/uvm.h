/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_ABI_UVM_H
#define PATHS_NVIDIA_ABI_UVM_H
/*
 * What NVIDIA's UVM driver takes on /dev/nvidia-uvm. A request is its bare
 * number and carries no size: the driver reads and writes its own size, so a
 * wrong layout is silent. One layout for releases 570, 580 and 610 but of two
 * structures (release.h).
 *
 * Sources: open-gpu-kernel-modules, uvm_ioctl.h, uvm_linux_ioctl.h,
 * uvm_types.h; rows of all numbers in testdata/, which abi_test compares.
 */
#include <stdint.h>

enum uvm_request {
  UVM_REGISTER_GPU_VASPACE = 0x19,
  UVM_UNREGISTER_GPU_VASPACE = 0x1a,
  UVM_REGISTER_CHANNEL = 0x1b,
  UVM_UNREGISTER_CHANNEL = 0x1c,
  UVM_ENABLE_PEER_ACCESS = 0x1d,
  UVM_DISABLE_PEER_ACCESS = 0x1e,
  UVM_MAP_EXTERNAL_ALLOCATION = 0x21,
  UVM_FREE = 0x22,
  UVM_REGISTER_GPU = 0x25,
  UVM_UNREGISTER_GPU = 0x26,
  UVM_UNMAP_EXTERNAL = 0x42,
  UVM_CREATE_EXTERNAL_RANGE = 0x49,
  UVM_MM_INITIALIZE = 0x4b,
  UVM_INITIALIZE = 0x30000001
};

struct uvm_uuid { /* NvProcessorUuid */
  uint8_t bytes[16];
};

struct uvm_initialize {
  uint64_t flags;
  uint32_t status, pad;
};
enum { UVM_INIT_FLAGS_DISABLE_HMM = 1 };

struct uvm_mm_initialize {
  int32_t uvm;
  uint32_t status;
};

struct uvm_register_gpu {
  struct uvm_uuid gpu;
  uint8_t numa_enabled, pad[3];
  int32_t numa_node, ctl;
  uint32_t client, smc_part, status;
};

/* UVM_UNREGISTER_GPU and UVM_UNREGISTER_GPU_VASPACE. */
struct uvm_unregister {
  struct uvm_uuid gpu;
  uint32_t status;
};

struct uvm_register_vaspace {
  struct uvm_uuid gpu;
  int32_t ctl;
  uint32_t client, va_space, status;
};

struct uvm_register_channel {
  struct uvm_uuid gpu;
  int32_t ctl;
  uint32_t client, channel, pad;
  uint64_t base, length;
  uint32_t status, pad2;
};

struct uvm_peer_access { /* UVM_ENABLE_PEER_ACCESS, UVM_DISABLE_PEER_ACCESS */
  struct uvm_uuid a, b;
  uint32_t status;
};

struct uvm_create_range { /* UVM_CREATE_EXTERNAL_RANGE_PARAMS */
  uint64_t base, length;
  uint32_t status, pad;
};

struct uvm_attributes { /* UvmGpuMappingAttributes */
  struct uvm_uuid gpu;
  uint32_t mapping, caching, format, element_bits, compression;
};
enum { UvmGpuMappingTypeReadWriteAtomic = 1, UVM_MAX_GPUS = 256 };

struct uvm_map { /* UVM_MAP_EXTERNAL_ALLOCATION_PARAMS */
  uint64_t base, length, offset;
  struct uvm_attributes gpus[UVM_MAX_GPUS];
  uint64_t n;
  int32_t ctl;
  uint32_t client, memory, status;
};

struct uvm_unmap { /* UVM_UNMAP_EXTERNAL_PARAMS */
  uint64_t base, length;
  struct uvm_uuid gpu;
  uint32_t status, pad;
};

_Static_assert(sizeof(struct uvm_initialize) == 16, "initialize");
_Static_assert(sizeof(struct uvm_mm_initialize) == 8, "mm initialize");
_Static_assert(sizeof(struct uvm_register_gpu) == 40, "register gpu");
_Static_assert(sizeof(struct uvm_unregister) == 20, "unregister");
_Static_assert(sizeof(struct uvm_register_vaspace) == 32, "register vaspace");
_Static_assert(sizeof(struct uvm_register_channel) == 56, "register channel");
_Static_assert(sizeof(struct uvm_peer_access) == 36, "peer access");
_Static_assert(sizeof(struct uvm_create_range) == 24, "create range");
_Static_assert(sizeof(struct uvm_attributes) == 36, "attributes");
_Static_assert(sizeof(struct uvm_map) == 9264, "map");
_Static_assert(sizeof(struct uvm_unmap) == 40, "unmap");
#endif
