/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_ABI_RM_H
#define PATHS_NVIDIA_ABI_RM_H
/*
 * What NVIDIA's kernel driver takes on /dev/nvidiactl and /dev/nvidiaN: the
 * escapes, and the parameters of the allocations and control calls that this
 * path makes. Padding is named and zero. One layout for releases 570, 580 and
 * 610; what differs is in release.h.
 *
 * Sources: open-gpu-kernel-modules, nv_escape.h, nv-ioctl.h, nvos.h,
 * nv-unix-nvos-params-wrappers.h, class/cl*.h, ctrl/ctrl*.h; rows of all
 * numbers in testdata/, which abi_test compares.
 */
#include <stdint.h>

enum nv_escape {
  NV_ESC_RM_ALLOC_MEMORY = 0x27,
  NV_ESC_RM_FREE = 0x29,
  NV_ESC_RM_CONTROL = 0x2a,
  NV_ESC_RM_ALLOC = 0x2b,
  NV_ESC_RM_MAP_MEMORY = 0x4e,
  NV_ESC_RM_UNMAP_MEMORY = 0x4f,
  NV_ESC_CARD_INFO = 0xc8,
  NV_ESC_REGISTER_FD = 0xc9,
  NV_ESC_EXPORT_TO_DMABUF_FD = 0xd9
};
enum { NV_IOCTL_MAGIC = 'F' };

/* The request of an escape with parameters of n bytes, below 16 KiB: read and
 * write direction, size, magic, number (asm-generic/ioctl.h). */
#define NV_REQUEST(escape, n)                                                  \
  (UINT32_C(3) << 30 | (uint32_t)(n) << 16 | (uint32_t)NV_IOCTL_MAGIC << 8 |   \
   (uint32_t)(escape))

struct nv_free { /* NVOS00_PARAMETERS */
  uint32_t root, parent, old, status;
};

struct nv_alloc_memory { /* nv_ioctl_nvos02_parameters_with_fd */
  uint32_t root, parent, object, cls, flags, pad;
  uint64_t memory, limit;
  uint32_t status, pad2;
  int32_t fd;
  uint32_t pad3;
};

struct nv_alloc { /* NVOS21_PARAMETERS */
  uint32_t root, parent, object, cls;
  uint64_t params;
  uint32_t params_size, status;
};

struct nv_map_memory { /* nv_ioctl_nvos33_parameters_with_fd */
  uint32_t client, device, memory, pad;
  uint64_t offset, length, address;
  uint32_t status, flags;
  int32_t fd;
  uint32_t pad2;
};

struct nv_unmap_memory { /* NVOS34_PARAMETERS */
  uint32_t client, device, memory, pad;
  uint64_t address;
  uint32_t status, flags;
};

struct nv_control { /* NVOS54_PARAMETERS */
  uint32_t client, object, cmd, flags;
  uint64_t params;
  uint32_t params_size, status;
};

struct nv_card { /* nv_ioctl_card_info_t; the escape takes an array */
  uint8_t valid, pad[3];
  uint32_t domain;
  uint8_t bus, slot, function, pad2;
  uint16_t vendor, device;
  uint32_t gpu_id;
  uint16_t interrupt_line, pad3;
  uint64_t reg_address, reg_size, fb_address, fb_size;
  uint32_t minor;
  uint8_t dev_name[10], pad4[2];
};
enum {
  NV_CARDS = 64
}; /* elements that the escape was called with on an H200 */

struct nv_register_fd { /* nv_ioctl_register_fd_t */
  int32_t ctl;
};

enum {
  NV_DMABUF_EXPORT_MAX_HANDLES = 128,
  NV_DMABUF_EXPORT_MAPPING_TYPE_DEFAULT = 0
};

/* nv_ioctl_export_to_dma_buf_fd_t. A fd of -1 asks for a new buffer, and is
 * its file on return; several calls may fill it. 580 adds bAllowMmap to pad2,
 * which lets a process map the buffer: not asked for. */
struct nv_export {
  int32_t fd;
  uint32_t client, total, n, index, pad;
  uint64_t bytes;
  uint8_t mapping, pad2[3];
  uint32_t memory[NV_DMABUF_EXPORT_MAX_HANDLES], pad3;
  uint64_t offset[NV_DMABUF_EXPORT_MAX_HANDLES];
  uint64_t size[NV_DMABUF_EXPORT_MAX_HANDLES];
  uint32_t status, pad4;
};

/* Parameters of allocations. */

struct nv_device_params { /* NV0080_ALLOC_PARAMETERS */
  uint32_t device_id, client_share, target_client, target_device, flags, pad;
  uint64_t va_size, va_start, va_limit;
  uint32_t va_mode, pad2;
};
enum { NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES = 0 };

struct nv_subdevice_params { /* NV2080_ALLOC_PARAMETERS */
  uint32_t subdevice_id;
};

struct nv_vaspace_params { /* NV_VASPACE_ALLOCATION_PARAMETERS; 580 adds pasid
                            */
  uint32_t index, flags;
  uint64_t va_size, va_start, va_limit;
  uint32_t big_page_size, pad;
  uint64_t va_base;
};
enum {
  NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED = 0x8,
  NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING = 0x40
};

struct nv_memory_params { /* NV_MEMORY_ALLOCATION_PARAMS */
  uint32_t owner, type, flags, width, height;
  int32_t pitch;
  uint32_t attr, attr2, format, compr_covg, zcull_covg, pad;
  uint64_t range_lo, range_hi, size, alignment, offset, limit, address;
  uint32_t ctag_offset, va_space, internal_flags, tag;
  int32_t numa_node;
  uint32_t pad2;
};
enum {
  NVOS32_TYPE_IMAGE = 0,
  NVOS32_ATTR_PAGE_SIZE_HUGE = 3 << 23,
  NVOS32_ATTR_LOCATION_VIDMEM = 0 << 25,
  NVOS32_ATTR_PHYSICALITY_CONTIGUOUS = 2 << 27,
  NVOS32_ATTR_PHYSICALITY_ALLOW_NONCONTIGUOUS = 3 << 27,
  NVOS32_ATTR2_ZBC_PREFER_NO_ZBC = 1 << 0,
  NVOS32_ATTR2_GPU_CACHEABLE_YES = 1 << 2,
  NVOS32_ATTR2_PAGE_SIZE_HUGE_2MB = 1 << 20,
  NVOS32_ALLOC_FLAGS_IGNORE_BANK_PLACEMENT = 0x1,
  NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE = 0x100,
  NVOS32_ALLOC_FLAGS_MEMORY_HANDLE_PROVIDED = 0x4000,
  NVOS32_ALLOC_FLAGS_MAP_NOT_REQUIRED = 0x8000,
  NVOS32_ALLOC_FLAGS_PERSISTENT_VIDMEM = 0x10000,
  NV_MMU_PTE_KIND_GENERIC_MEMORY = 6 /* dev_mmu.h of tu102 to gb202 */
};

enum { /* of nv_alloc_memory */
       NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS = 1 << 4,
       NVOS02_FLAGS_COHERENCY_CACHED = 1 << 12,
       NVOS02_FLAGS_MAPPING_NO_MAP = 1 << 30
};

enum { /* of nv_map_memory */
       NVOS33_FLAGS_CACHING_TYPE_UNCACHED = 1 << 23,
       NVOS33_FLAGS_CACHING_TYPE_WRITECOMBINED = 2 << 23
};

/* Control calls. */

enum nv_control_command {
  NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2 = 0x13e,
  NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2 = 0x205,
  NV0080_CTRL_CMD_GPU_GET_CLASSLIST = 0x800201,
  NV2080_CTRL_CMD_GPU_GET_GID_INFO = 0x2080014a,
  NV2080_CTRL_CMD_GR_GET_INFO = 0x20801201,
  NV2080_CTRL_CMD_FB_GET_INFO_V2 = 0x20801303,
  NV2080_CTRL_CMD_PERF_BOOST = 0x2080200a
};
/* Those above INT_MAX. */
#define NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES UINT32_C(0x83de030c)
#define NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO UINT32_C(0x83de0328)
#define NVA06C_CTRL_CMD_GPFIFO_SCHEDULE UINT32_C(0xa06c0101)
#define NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN UINT32_C(0xc36f0108)

struct nv_build_version { /* NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS */
  char driver[256], version[256], branch[256], title[256];
  uint32_t changelist, official_changelist;
};

struct nv_id_info { /* NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS */
  uint32_t gpu_id, flags, device_instance, subdevice_instance, sli_status,
      board_id, gpu_instance;
  int32_t numa_id;
};

struct nv_class_list { /* NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS */
  uint32_t n, pad;
  uint64_t list;
};

struct nv_info { /* NVXXXX_CTRL_XXX_INFO */
  uint32_t index, data;
};

struct nv_gr_info { /* NV2080_CTRL_GR_GET_INFO_PARAMS */
  uint32_t n, pad;
  uint64_t list; /* of struct nv_info */
  uint32_t route_flags, pad2;
  uint64_t route;
};
enum {
  NV2080_CTRL_GR_INFO_INDEX_SM_VERSION = 0xc,
  NV2080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM = 0xd,
  NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS = 0x14,
  NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC = 0x17,
  NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC = 0x20
};

struct nv_fb_info { /* NV2080_CTRL_FB_GET_INFO_V2_PARAMS: its first elements */
  uint32_t n;
  struct nv_info list[4];
};
enum {
  NV2080_CTRL_FB_INFO_INDEX_HEAP_SIZE = 0x9,    /* KiB */
  NV2080_CTRL_FB_INFO_INDEX_L2CACHE_SIZE = 0x1b /* bytes */
};

struct nv_gid_info { /* NV2080_CTRL_GPU_GET_GID_INFO_PARAMS */
  uint32_t index, flags, length;
  uint8_t data[256];
};
enum { NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY = 2, NV_UUID_BYTES = 16 };

struct nv_boost { /* NV2080_CTRL_PERF_BOOST_PARAMS */
  uint32_t flags, duration;
};
enum {
  NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX = 2 << 0,
  NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_YES = 1 << 4,
  NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_PRIORITY_HIGH = 1 << 6
};
#define NV2080_CTRL_PERF_BOOST_DURATION_INFINITE UINT32_MAX

struct nv_token { /* NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS */
  uint32_t token;
};

_Static_assert(sizeof(struct nv_free) == 16, "NVOS00_PARAMETERS");
_Static_assert(sizeof(struct nv_alloc_memory) == 56, "nvos02 with fd");
_Static_assert(sizeof(struct nv_alloc) == 32, "NVOS21_PARAMETERS");
_Static_assert(sizeof(struct nv_map_memory) == 56, "nvos33 with fd");
_Static_assert(sizeof(struct nv_unmap_memory) == 32, "NVOS34_PARAMETERS");
_Static_assert(sizeof(struct nv_control) == 32, "NVOS54_PARAMETERS");
_Static_assert(sizeof(struct nv_export) == 2608, "export");
_Static_assert(sizeof(struct nv_card) == 72, "nv_ioctl_card_info_t");
_Static_assert(sizeof(struct nv_device_params) == 56, "NV0080");
_Static_assert(sizeof(struct nv_vaspace_params) == 48, "570's vaspace");
_Static_assert(sizeof(struct nv_memory_params) == 128, "memory");
_Static_assert(sizeof(struct nv_build_version) == 1032, "version");
_Static_assert(sizeof(struct nv_id_info) == 32, "id");
_Static_assert(sizeof(struct nv_class_list) == 16, "class list");
_Static_assert(sizeof(struct nv_gr_info) == 32, "gr info");
_Static_assert(sizeof(struct nv_gid_info) == 268, "gid");

/* Answers (nvstatuscodes.h). */
enum nv_status {
  NV_OK = 0x0,
  NV_ERR_GPU_IS_LOST = 0xf,
  NV_ERR_GPU_IN_FULLCHIP_RESET = 0x10,
  NV_ERR_IN_USE = 0x17,
  NV_ERR_INSUFFICIENT_RESOURCES = 0x1a,
  NV_ERR_INVALID_ADDRESS = 0x1e,
  NV_ERR_INVALID_ARGUMENT = 0x1f,
  NV_ERR_INVALID_DEVICE = 0x26,
  NV_ERR_NO_MEMORY = 0x51,
  NV_ERR_NOT_SUPPORTED = 0x56,
  NV_ERR_RESET_REQUIRED = 0x62
};
#endif
