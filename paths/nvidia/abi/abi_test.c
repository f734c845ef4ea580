/* SPDX-License-Identifier: ISC */
/*
 * The numbers of rm.h, uvm.h and release.c against those of each release's
 * headers (testdata/).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/abi/classes.h"
#include "paths/nvidia/abi/release.h"
#include "paths/nvidia/abi/rm.h"
#include "paths/nvidia/abi/rows.h"
#include "paths/nvidia/abi/uvm.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static struct tsv structs, constants;

static const int releases[] = {570, 580, 610};

#define NVOS02 "nv_ioctl_nvos02_parameters_with_fd"
#define NVOS33 "nv_ioctl_nvos33_parameters_with_fd"
#define CARD "nv_ioctl_card_info_t"
#define EXPORT "nv_ioctl_export_to_dma_buf_fd_t"
#define VASPACE "NV_VASPACE_ALLOCATION_PARAMETERS"
#define MEMORY "NV_MEMORY_ALLOCATION_PARAMS"
#define VERSION "NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS"
#define ID "NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS"
#define CLASSES "NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS"
#define GR "NV2080_CTRL_GR_GET_INFO_PARAMS"
#define FB "NV2080_CTRL_FB_GET_INFO_V2_PARAMS"
#define GID "NV2080_CTRL_GPU_GET_GID_INFO_PARAMS"
#define BOOST "NV2080_CTRL_PERF_BOOST_PARAMS"
#define TOKEN "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS"
#define CHANNEL "UVM_REGISTER_CHANNEL_PARAMS"
#define MAP "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS"

#define FIELD(structure, field, type, member)                                  \
  {structure, field, offsetof(struct type, member),                            \
   sizeof(((struct type *)0)->member)}

static const struct {
  const char *structure, *field;
  size_t at, n;
} fields[] = {
    FIELD("NVOS00_PARAMETERS", "hRoot", nv_free, root),
    FIELD("NVOS00_PARAMETERS", "hObjectParent", nv_free, parent),
    FIELD("NVOS00_PARAMETERS", "hObjectOld", nv_free, old),
    FIELD("NVOS00_PARAMETERS", "status", nv_free, status),
    FIELD(NVOS02, "params.hRoot", nv_alloc_memory, root),
    FIELD(NVOS02, "params.hObjectParent", nv_alloc_memory, parent),
    FIELD(NVOS02, "params.hObjectNew", nv_alloc_memory, object),
    FIELD(NVOS02, "params.hClass", nv_alloc_memory, cls),
    FIELD(NVOS02, "params.flags", nv_alloc_memory, flags),
    FIELD(NVOS02, "params.pMemory", nv_alloc_memory, memory),
    FIELD(NVOS02, "params.limit", nv_alloc_memory, limit),
    FIELD(NVOS02, "params.status", nv_alloc_memory, status),
    FIELD(NVOS02, "fd", nv_alloc_memory, fd),
    FIELD("NVOS21_PARAMETERS", "hRoot", nv_alloc, root),
    FIELD("NVOS21_PARAMETERS", "hObjectParent", nv_alloc, parent),
    FIELD("NVOS21_PARAMETERS", "hObjectNew", nv_alloc, object),
    FIELD("NVOS21_PARAMETERS", "hClass", nv_alloc, cls),
    FIELD("NVOS21_PARAMETERS", "pAllocParms", nv_alloc, params),
    FIELD("NVOS21_PARAMETERS", "paramsSize", nv_alloc, params_size),
    FIELD("NVOS21_PARAMETERS", "status", nv_alloc, status),
    FIELD(NVOS33, "params.hClient", nv_map_memory, client),
    FIELD(NVOS33, "params.hDevice", nv_map_memory, device),
    FIELD(NVOS33, "params.hMemory", nv_map_memory, memory),
    FIELD(NVOS33, "params.offset", nv_map_memory, offset),
    FIELD(NVOS33, "params.length", nv_map_memory, length),
    FIELD(NVOS33, "params.pLinearAddress", nv_map_memory, address),
    FIELD(NVOS33, "params.status", nv_map_memory, status),
    FIELD(NVOS33, "params.flags", nv_map_memory, flags),
    FIELD(NVOS33, "fd", nv_map_memory, fd),
    FIELD("NVOS34_PARAMETERS", "hClient", nv_unmap_memory, client),
    FIELD("NVOS34_PARAMETERS", "hDevice", nv_unmap_memory, device),
    FIELD("NVOS34_PARAMETERS", "hMemory", nv_unmap_memory, memory),
    FIELD("NVOS34_PARAMETERS", "pLinearAddress", nv_unmap_memory, address),
    FIELD("NVOS34_PARAMETERS", "status", nv_unmap_memory, status),
    FIELD("NVOS34_PARAMETERS", "flags", nv_unmap_memory, flags),
    FIELD("NVOS54_PARAMETERS", "hClient", nv_control, client),
    FIELD("NVOS54_PARAMETERS", "hObject", nv_control, object),
    FIELD("NVOS54_PARAMETERS", "cmd", nv_control, cmd),
    FIELD("NVOS54_PARAMETERS", "flags", nv_control, flags),
    FIELD("NVOS54_PARAMETERS", "params", nv_control, params),
    FIELD("NVOS54_PARAMETERS", "paramsSize", nv_control, params_size),
    FIELD("NVOS54_PARAMETERS", "status", nv_control, status),
    FIELD(CARD, "valid", nv_card, valid),
    FIELD(CARD, "pci_info.domain", nv_card, domain),
    FIELD(CARD, "pci_info.bus", nv_card, bus),
    FIELD(CARD, "pci_info.slot", nv_card, slot),
    FIELD(CARD, "pci_info.function", nv_card, function),
    FIELD(CARD, "pci_info.vendor_id", nv_card, vendor),
    FIELD(CARD, "pci_info.device_id", nv_card, device),
    FIELD(CARD, "gpu_id", nv_card, gpu_id),
    FIELD(CARD, "interrupt_line", nv_card, interrupt_line),
    FIELD(CARD, "reg_address", nv_card, reg_address),
    FIELD(CARD, "reg_size", nv_card, reg_size),
    FIELD(CARD, "fb_address", nv_card, fb_address),
    FIELD(CARD, "fb_size", nv_card, fb_size),
    FIELD(CARD, "minor_number", nv_card, minor),
    FIELD(CARD, "dev_name", nv_card, dev_name),
    FIELD("nv_ioctl_register_fd_t", "ctl_fd", nv_register_fd, ctl),
    FIELD(EXPORT, "fd", nv_export, fd),
    FIELD(EXPORT, "hClient", nv_export, client),
    FIELD(EXPORT, "totalObjects", nv_export, total),
    FIELD(EXPORT, "numObjects", nv_export, n),
    FIELD(EXPORT, "index", nv_export, index),
    FIELD(EXPORT, "totalSize", nv_export, bytes),
    FIELD(EXPORT, "mappingType", nv_export, mapping),
    FIELD(EXPORT, "handles", nv_export, memory),
    FIELD(EXPORT, "offsets", nv_export, offset),
    FIELD(EXPORT, "sizes", nv_export, size),
    FIELD(EXPORT, "status", nv_export, status),
    FIELD("NV0080_ALLOC_PARAMETERS", "deviceId", nv_device_params, device_id),
    FIELD("NV0080_ALLOC_PARAMETERS", "hClientShare", nv_device_params,
          client_share),
    FIELD("NV0080_ALLOC_PARAMETERS", "hTargetClient", nv_device_params,
          target_client),
    FIELD("NV0080_ALLOC_PARAMETERS", "hTargetDevice", nv_device_params,
          target_device),
    FIELD("NV0080_ALLOC_PARAMETERS", "flags", nv_device_params, flags),
    FIELD("NV0080_ALLOC_PARAMETERS", "vaSpaceSize", nv_device_params, va_size),
    FIELD("NV0080_ALLOC_PARAMETERS", "vaStartInternal", nv_device_params,
          va_start),
    FIELD("NV0080_ALLOC_PARAMETERS", "vaLimitInternal", nv_device_params,
          va_limit),
    FIELD("NV0080_ALLOC_PARAMETERS", "vaMode", nv_device_params, va_mode),
    FIELD("NV2080_ALLOC_PARAMETERS", "subDeviceId", nv_subdevice_params,
          subdevice_id),
    FIELD(VASPACE, "index", nv_vaspace_params, index),
    FIELD(VASPACE, "flags", nv_vaspace_params, flags),
    FIELD(VASPACE, "vaSize", nv_vaspace_params, va_size),
    FIELD(VASPACE, "vaStartInternal", nv_vaspace_params, va_start),
    FIELD(VASPACE, "vaLimitInternal", nv_vaspace_params, va_limit),
    FIELD(VASPACE, "bigPageSize", nv_vaspace_params, big_page_size),
    FIELD(VASPACE, "vaBase", nv_vaspace_params, va_base),
    FIELD(MEMORY, "owner", nv_memory_params, owner),
    FIELD(MEMORY, "type", nv_memory_params, type),
    FIELD(MEMORY, "flags", nv_memory_params, flags),
    FIELD(MEMORY, "width", nv_memory_params, width),
    FIELD(MEMORY, "height", nv_memory_params, height),
    FIELD(MEMORY, "pitch", nv_memory_params, pitch),
    FIELD(MEMORY, "attr", nv_memory_params, attr),
    FIELD(MEMORY, "attr2", nv_memory_params, attr2),
    FIELD(MEMORY, "format", nv_memory_params, format),
    FIELD(MEMORY, "comprCovg", nv_memory_params, compr_covg),
    FIELD(MEMORY, "zcullCovg", nv_memory_params, zcull_covg),
    FIELD(MEMORY, "rangeLo", nv_memory_params, range_lo),
    FIELD(MEMORY, "rangeHi", nv_memory_params, range_hi),
    FIELD(MEMORY, "size", nv_memory_params, size),
    FIELD(MEMORY, "alignment", nv_memory_params, alignment),
    FIELD(MEMORY, "offset", nv_memory_params, offset),
    FIELD(MEMORY, "limit", nv_memory_params, limit),
    FIELD(MEMORY, "address", nv_memory_params, address),
    FIELD(MEMORY, "ctagOffset", nv_memory_params, ctag_offset),
    FIELD(MEMORY, "hVASpace", nv_memory_params, va_space),
    FIELD(MEMORY, "internalflags", nv_memory_params, internal_flags),
    FIELD(MEMORY, "tag", nv_memory_params, tag),
    FIELD(MEMORY, "numaNode", nv_memory_params, numa_node),
    FIELD(VERSION, "driverVersionBuffer", nv_build_version, driver),
    FIELD(VERSION, "versionBuffer", nv_build_version, version),
    FIELD(VERSION, "driverBranch", nv_build_version, branch),
    FIELD(VERSION, "titleBuffer", nv_build_version, title),
    FIELD(VERSION, "changelistNumber", nv_build_version, changelist),
    FIELD(VERSION, "officialChangelistNumber", nv_build_version,
          official_changelist),
    FIELD(ID, "gpuId", nv_id_info, gpu_id),
    FIELD(ID, "gpuFlags", nv_id_info, flags),
    FIELD(ID, "deviceInstance", nv_id_info, device_instance),
    FIELD(ID, "subDeviceInstance", nv_id_info, subdevice_instance),
    FIELD(ID, "sliStatus", nv_id_info, sli_status),
    FIELD(ID, "boardId", nv_id_info, board_id),
    FIELD(ID, "gpuInstance", nv_id_info, gpu_instance),
    FIELD(ID, "numaId", nv_id_info, numa_id),
    FIELD(CLASSES, "numClasses", nv_class_list, n),
    FIELD(CLASSES, "classList", nv_class_list, list),
    FIELD(GR, "grInfoListSize", nv_gr_info, n),
    FIELD(GR, "grInfoList", nv_gr_info, list),
    FIELD(GR, "grRouteInfo.flags", nv_gr_info, route_flags),
    FIELD(GR, "grRouteInfo.route", nv_gr_info, route),
    FIELD(FB, "fbInfoListSize", nv_fb_info, n),
    FIELD(FB, "fbInfoList[0].index", nv_fb_info, list[0].index),
    FIELD(FB, "fbInfoList[0].data", nv_fb_info, list[0].data),
    FIELD(GID, "index", nv_gid_info, index),
    FIELD(GID, "flags", nv_gid_info, flags),
    FIELD(GID, "length", nv_gid_info, length),
    FIELD(GID, "data", nv_gid_info, data),
    FIELD(BOOST, "flags", nv_boost, flags),
    FIELD(BOOST, "duration", nv_boost, duration),
    FIELD(TOKEN, "workSubmitToken", nv_token, token),
    FIELD("UVM_INITIALIZE_PARAMS", "flags", uvm_initialize, flags),
    FIELD("UVM_INITIALIZE_PARAMS", "rmStatus", uvm_initialize, status),
    FIELD("UVM_MM_INITIALIZE_PARAMS", "uvmFd", uvm_mm_initialize, uvm),
    FIELD("UVM_MM_INITIALIZE_PARAMS", "rmStatus", uvm_mm_initialize, status),
    FIELD("UVM_REGISTER_GPU_PARAMS", "gpu_uuid", uvm_register_gpu, gpu),
    FIELD("UVM_REGISTER_GPU_PARAMS", "numaEnabled", uvm_register_gpu,
          numa_enabled),
    FIELD("UVM_REGISTER_GPU_PARAMS", "numaNodeId", uvm_register_gpu, numa_node),
    FIELD("UVM_REGISTER_GPU_PARAMS", "rmCtrlFd", uvm_register_gpu, ctl),
    FIELD("UVM_REGISTER_GPU_PARAMS", "hClient", uvm_register_gpu, client),
    FIELD("UVM_REGISTER_GPU_PARAMS", "hSmcPartRef", uvm_register_gpu, smc_part),
    FIELD("UVM_REGISTER_GPU_PARAMS", "rmStatus", uvm_register_gpu, status),
    FIELD("UVM_UNREGISTER_GPU_PARAMS", "gpu_uuid", uvm_unregister, gpu),
    FIELD("UVM_UNREGISTER_GPU_PARAMS", "rmStatus", uvm_unregister, status),
    FIELD("UVM_UNREGISTER_GPU_VASPACE_PARAMS", "gpuUuid", uvm_unregister, gpu),
    FIELD("UVM_UNREGISTER_GPU_VASPACE_PARAMS", "rmStatus", uvm_unregister,
          status),
    FIELD("UVM_REGISTER_GPU_VASPACE_PARAMS", "gpuUuid", uvm_register_vaspace,
          gpu),
    FIELD("UVM_REGISTER_GPU_VASPACE_PARAMS", "rmCtrlFd", uvm_register_vaspace,
          ctl),
    FIELD("UVM_REGISTER_GPU_VASPACE_PARAMS", "hClient", uvm_register_vaspace,
          client),
    FIELD("UVM_REGISTER_GPU_VASPACE_PARAMS", "hVaSpace", uvm_register_vaspace,
          va_space),
    FIELD("UVM_REGISTER_GPU_VASPACE_PARAMS", "rmStatus", uvm_register_vaspace,
          status),
    FIELD(CHANNEL, "gpuUuid", uvm_register_channel, gpu),
    FIELD(CHANNEL, "rmCtrlFd", uvm_register_channel, ctl),
    FIELD(CHANNEL, "hClient", uvm_register_channel, client),
    FIELD(CHANNEL, "hChannel", uvm_register_channel, channel),
    FIELD(CHANNEL, "base", uvm_register_channel, base),
    FIELD(CHANNEL, "length", uvm_register_channel, length),
    FIELD(CHANNEL, "rmStatus", uvm_register_channel, status),
    FIELD("UVM_ENABLE_PEER_ACCESS_PARAMS", "gpuUuidA", uvm_peer_access, a),
    FIELD("UVM_ENABLE_PEER_ACCESS_PARAMS", "gpuUuidB", uvm_peer_access, b),
    FIELD("UVM_ENABLE_PEER_ACCESS_PARAMS", "rmStatus", uvm_peer_access, status),
    FIELD("UVM_DISABLE_PEER_ACCESS_PARAMS", "gpuUuidA", uvm_peer_access, a),
    FIELD("UVM_DISABLE_PEER_ACCESS_PARAMS", "gpuUuidB", uvm_peer_access, b),
    FIELD("UVM_DISABLE_PEER_ACCESS_PARAMS", "rmStatus", uvm_peer_access,
          status),
    FIELD("UVM_CREATE_EXTERNAL_RANGE_PARAMS", "base", uvm_create_range, base),
    FIELD("UVM_CREATE_EXTERNAL_RANGE_PARAMS", "length", uvm_create_range,
          length),
    FIELD("UVM_CREATE_EXTERNAL_RANGE_PARAMS", "rmStatus", uvm_create_range,
          status),
    FIELD("UvmGpuMappingAttributes", "gpuUuid", uvm_attributes, gpu),
    FIELD("UvmGpuMappingAttributes", "gpuMappingType", uvm_attributes, mapping),
    FIELD("UvmGpuMappingAttributes", "gpuCachingType", uvm_attributes, caching),
    FIELD("UvmGpuMappingAttributes", "gpuFormatType", uvm_attributes, format),
    FIELD("UvmGpuMappingAttributes", "gpuElementBits", uvm_attributes,
          element_bits),
    FIELD("UvmGpuMappingAttributes", "gpuCompressionType", uvm_attributes,
          compression),
    FIELD(MAP, "base", uvm_map, base),
    FIELD(MAP, "length", uvm_map, length),
    FIELD(MAP, "offset", uvm_map, offset),
    FIELD(MAP, "perGpuAttributes", uvm_map, gpus),
    FIELD(MAP, "gpuAttributesCount", uvm_map, n),
    FIELD(MAP, "rmCtrlFd", uvm_map, ctl),
    FIELD(MAP, "hClient", uvm_map, client),
    FIELD(MAP, "hMemory", uvm_map, memory),
    FIELD(MAP, "rmStatus", uvm_map, status),
    FIELD("UVM_UNMAP_EXTERNAL_PARAMS", "base", uvm_unmap, base),
    FIELD("UVM_UNMAP_EXTERNAL_PARAMS", "length", uvm_unmap, length),
    FIELD("UVM_UNMAP_EXTERNAL_PARAMS", "gpuUuid", uvm_unmap, gpu),
    FIELD("UVM_UNMAP_EXTERNAL_PARAMS", "rmStatus", uvm_unmap, status),
};

static void test_fields(void **state) {
  (void)state;
  for (size_t r = 0; r < COUNT(releases); r++)
    for (size_t i = 0; i < COUNT(fields); i++) {
      const char *const *row = rows_field(&structs, releases[r],
                                          fields[i].structure, fields[i].field);
      if (fields[i].at != tsv_number(row[3]) ||
          fields[i].n != tsv_number(row[4]))
        fail_msg("%d %s %s: %zu bytes at %zu", releases[r], fields[i].structure,
                 fields[i].field, fields[i].n, fields[i].at);
    }
}

/* Whole structures; those that differ by release are in test_layouts. */
static const struct {
  const char *structure;
  size_t n;
} sizes[] = {
    {"NVOS00_PARAMETERS", sizeof(struct nv_free)},
    {NVOS02, sizeof(struct nv_alloc_memory)},
    {"NVOS21_PARAMETERS", sizeof(struct nv_alloc)},
    {NVOS33, sizeof(struct nv_map_memory)},
    {"NVOS34_PARAMETERS", sizeof(struct nv_unmap_memory)},
    {"NVOS54_PARAMETERS", sizeof(struct nv_control)},
    {CARD, sizeof(struct nv_card)},
    {"nv_ioctl_register_fd_t", sizeof(struct nv_register_fd)},
    {EXPORT, sizeof(struct nv_export)},
    {"NV0080_ALLOC_PARAMETERS", sizeof(struct nv_device_params)},
    {"NV2080_ALLOC_PARAMETERS", sizeof(struct nv_subdevice_params)},
    {MEMORY, sizeof(struct nv_memory_params)},
    {VERSION, sizeof(struct nv_build_version)},
    {ID, sizeof(struct nv_id_info)},
    {CLASSES, sizeof(struct nv_class_list)},
    {GR, sizeof(struct nv_gr_info)},
    {GID, sizeof(struct nv_gid_info)},
    {BOOST, sizeof(struct nv_boost)},
    {TOKEN, sizeof(struct nv_token)},
    {"UVM_INITIALIZE_PARAMS", sizeof(struct uvm_initialize)},
    {"UVM_MM_INITIALIZE_PARAMS", sizeof(struct uvm_mm_initialize)},
    {"UVM_REGISTER_GPU_PARAMS", sizeof(struct uvm_register_gpu)},
    {"UVM_UNREGISTER_GPU_PARAMS", sizeof(struct uvm_unregister)},
    {"UVM_UNREGISTER_GPU_VASPACE_PARAMS", sizeof(struct uvm_unregister)},
    {"UVM_REGISTER_GPU_VASPACE_PARAMS", sizeof(struct uvm_register_vaspace)},
    {CHANNEL, sizeof(struct uvm_register_channel)},
    {"UVM_ENABLE_PEER_ACCESS_PARAMS", sizeof(struct uvm_peer_access)},
    {"UVM_DISABLE_PEER_ACCESS_PARAMS", sizeof(struct uvm_peer_access)},
    {"UVM_CREATE_EXTERNAL_RANGE_PARAMS", sizeof(struct uvm_create_range)},
    {"UvmGpuMappingAttributes", sizeof(struct uvm_attributes)},
    {MAP, sizeof(struct uvm_map)},
    {"UVM_UNMAP_EXTERNAL_PARAMS", sizeof(struct uvm_unmap)},
};

static void test_sizes(void **state) {
  (void)state;
  for (size_t r = 0; r < COUNT(releases); r++)
    for (size_t i = 0; i < COUNT(sizes); i++) {
      const char *const *row =
          rows_field(&structs, releases[r], sizes[i].structure, "(sizeof)");
      if (sizes[i].n != tsv_number(row[4]))
        fail_msg("%d %s: %zu bytes", releases[r], sizes[i].structure,
                 sizes[i].n);
    }
}

static void check(int release, const char *structure, const char *field,
                  struct abi_rm_field f) {
  char number[16];
  snprintf(number, sizeof number, "%d", release);
  const char *key[] = {number, structure, field};
  const char *const *row = tsv_find(&structs, key, 3);
  if ((row == NULL) != (f.n == 0) ||
      (row != NULL &&
       (f.at != tsv_number(row[3]) || f.n != tsv_number(row[4]))))
    fail_msg("%d %s %s: %u bytes at %u", release, structure, field, f.n, f.at);
}

#define FREE "UVM_FREE_PARAMS"
#define UNREGISTER "UVM_UNREGISTER_CHANNEL_PARAMS"

static void test_layouts(void **state) {
  (void)state;
  for (size_t r = 0; r < COUNT(releases); r++) {
    int n = releases[r];
    const struct release_layout *l = nvk_release_layout(n);
    assert_non_null(l);
    assert_int_equal(l->release, n);
    const struct {
      const char *structure;
      unsigned bytes;
    } whole[] = {{VASPACE, l->vaspace_bytes},
                 {FB, l->fb_info_bytes},
                 {FREE, l->uvm_free.bytes},
                 {UNREGISTER, l->uvm_unregister_channel.bytes}};
    for (size_t i = 0; i < COUNT(whole); i++)
      assert_int_equal(whole[i].bytes,
                       tsv_number(rows_field(&structs, n, whole[i].structure,
                                             "(sizeof)")[4]));
    assert_true(l->fb_info_bytes <= RELEASE_FB_INFO_MOST);
    assert_true(l->uvm_free.bytes <= RELEASE_UVM_MOST);
    assert_true(l->uvm_unregister_channel.bytes <= RELEASE_UVM_MOST);
    check(n, FREE, "base", l->uvm_free.base);
    check(n, FREE, "length", l->uvm_free.length);
    check(n, FREE, "rmStatus", l->uvm_free.status);
    check(n, UNREGISTER, "gpuUuid", l->uvm_unregister_channel.gpu);
    check(n, UNREGISTER, "hClient", l->uvm_unregister_channel.client);
    check(n, UNREGISTER, "hChannel", l->uvm_unregister_channel.channel);
    check(n, UNREGISTER, "rmStatus", l->uvm_unregister_channel.status);
  }
}

#define NUMBER(name) {#name, NULL, (uint64_t)(uint32_t)(name)}
#define IN(name, bits) {#name, #bits, (uint64_t)(uint32_t)(name)}

/* Constants, and values that are shifted to their bits. */
static const struct {
  const char *name, *bits;
  uint64_t is;
} numbers[] = {
    NUMBER(NV_ESC_CARD_INFO),
    NUMBER(NV_ESC_REGISTER_FD),
    NUMBER(NV_ESC_EXPORT_TO_DMABUF_FD),
    NUMBER(NV_DMABUF_EXPORT_MAX_HANDLES),
    NUMBER(NV_DMABUF_EXPORT_MAPPING_TYPE_DEFAULT),
    NUMBER(NV_ESC_RM_ALLOC_MEMORY),
    NUMBER(NV_ESC_RM_FREE),
    NUMBER(NV_ESC_RM_CONTROL),
    NUMBER(NV_ESC_RM_ALLOC),
    NUMBER(NV_ESC_RM_MAP_MEMORY),
    NUMBER(NV_ESC_RM_UNMAP_MEMORY),
    NUMBER(NV_IOCTL_MAGIC),
    NUMBER(UVM_INITIALIZE),
    NUMBER(UVM_MM_INITIALIZE),
    NUMBER(UVM_INIT_FLAGS_DISABLE_HMM),
    NUMBER(UVM_REGISTER_GPU),
    NUMBER(UVM_UNREGISTER_GPU),
    NUMBER(UVM_REGISTER_GPU_VASPACE),
    NUMBER(UVM_UNREGISTER_GPU_VASPACE),
    NUMBER(UVM_REGISTER_CHANNEL),
    NUMBER(UVM_UNREGISTER_CHANNEL),
    NUMBER(UVM_CREATE_EXTERNAL_RANGE),
    NUMBER(UVM_MAP_EXTERNAL_ALLOCATION),
    NUMBER(UVM_UNMAP_EXTERNAL),
    NUMBER(UVM_FREE),
    NUMBER(UVM_ENABLE_PEER_ACCESS),
    NUMBER(UVM_DISABLE_PEER_ACCESS),
    NUMBER(UvmGpuMappingTypeReadWriteAtomic),
    NUMBER(NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2),
    NUMBER(NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2),
    NUMBER(NV0080_CTRL_CMD_GPU_GET_CLASSLIST),
    NUMBER(NV2080_CTRL_CMD_GR_GET_INFO),
    NUMBER(NV2080_CTRL_CMD_FB_GET_INFO_V2),
    NUMBER(NV2080_CTRL_CMD_GPU_GET_GID_INFO),
    NUMBER(NV2080_CTRL_CMD_PERF_BOOST),
    NUMBER(NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN),
    NUMBER(NVA06C_CTRL_CMD_GPFIFO_SCHEDULE),
    NUMBER(NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES),
    NUMBER(NV83DE_CTRL_CMD_DEBUG_READ_MMU_FAULT_INFO),
    NUMBER(NV2080_CTRL_PERF_BOOST_DURATION_INFINITE),
    IN(NV2080_CTRL_PERF_BOOST_FLAGS_CMD_BOOST_TO_MAX,
       NV2080_CTRL_PERF_BOOST_FLAGS_CMD),
    IN(NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_YES,
       NV2080_CTRL_PERF_BOOST_FLAGS_CUDA),
    IN(NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_PRIORITY_HIGH,
       NV2080_CTRL_PERF_BOOST_FLAGS_CUDA_PRIORITY),
    NUMBER(NV2080_CTRL_FB_INFO_INDEX_HEAP_SIZE),
    NUMBER(NV2080_CTRL_FB_INFO_INDEX_L2CACHE_SIZE),
    NUMBER(NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS),
    NUMBER(NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC),
    NUMBER(NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC),
    NUMBER(NV2080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM),
    NUMBER(NV2080_CTRL_GR_INFO_INDEX_SM_VERSION),
    IN(NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY,
       NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT),
    NUMBER(NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING),
    NUMBER(NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED),
    NUMBER(NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES),
    IN(NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS, NVOS02_FLAGS_PHYSICALITY),
    IN(NVOS02_FLAGS_COHERENCY_CACHED, NVOS02_FLAGS_COHERENCY),
    IN(NVOS02_FLAGS_MAPPING_NO_MAP, NVOS02_FLAGS_MAPPING),
    IN(NVOS33_FLAGS_CACHING_TYPE_UNCACHED, NVOS33_FLAGS_CACHING_TYPE),
    IN(NVOS33_FLAGS_CACHING_TYPE_WRITECOMBINED, NVOS33_FLAGS_CACHING_TYPE),
    NUMBER(NVOS32_TYPE_IMAGE),
    IN(NVOS32_ATTR_LOCATION_VIDMEM, NVOS32_ATTR_LOCATION),
    IN(NVOS32_ATTR_PHYSICALITY_CONTIGUOUS, NVOS32_ATTR_PHYSICALITY),
    IN(NVOS32_ATTR_PHYSICALITY_ALLOW_NONCONTIGUOUS, NVOS32_ATTR_PHYSICALITY),
    IN(NVOS32_ATTR_PAGE_SIZE_HUGE, NVOS32_ATTR_PAGE_SIZE),
    IN(NVOS32_ATTR2_GPU_CACHEABLE_YES, NVOS32_ATTR2_GPU_CACHEABLE),
    IN(NVOS32_ATTR2_PAGE_SIZE_HUGE_2MB, NVOS32_ATTR2_PAGE_SIZE_HUGE),
    IN(NVOS32_ATTR2_ZBC_PREFER_NO_ZBC, NVOS32_ATTR2_ZBC),
    NUMBER(NVOS32_ALLOC_FLAGS_MAP_NOT_REQUIRED),
    NUMBER(NVOS32_ALLOC_FLAGS_MEMORY_HANDLE_PROVIDED),
    NUMBER(NVOS32_ALLOC_FLAGS_ALIGNMENT_FORCE),
    NUMBER(NVOS32_ALLOC_FLAGS_IGNORE_BANK_PLACEMENT),
    NUMBER(NVOS32_ALLOC_FLAGS_PERSISTENT_VIDMEM),
    NUMBER(NV01_ROOT_CLIENT),
    NUMBER(NV01_DEVICE_0),
    NUMBER(NV20_SUBDEVICE_0),
    NUMBER(NV01_MEMORY_LOCAL_USER),
    NUMBER(NV01_MEMORY_SYSTEM_OS_DESCRIPTOR),
    NUMBER(FERMI_VASPACE_A),
    NUMBER(TURING_USERMODE_A),
    NUMBER(AMPERE_USERMODE_A),
    NUMBER(HOPPER_USERMODE_A),
    NUMBER(BLACKWELL_USERMODE_A),
    NUMBER(AMPERE_CHANNEL_GPFIFO_A),
    NUMBER(HOPPER_CHANNEL_GPFIFO_A),
    NUMBER(BLACKWELL_CHANNEL_GPFIFO_A),
    NUMBER(BLACKWELL_CHANNEL_GPFIFO_B),
    NUMBER(AMPERE_COMPUTE_A),
    NUMBER(AMPERE_COMPUTE_B),
    NUMBER(ADA_COMPUTE_A),
    NUMBER(HOPPER_COMPUTE_A),
    NUMBER(BLACKWELL_COMPUTE_A),
    NUMBER(BLACKWELL_COMPUTE_B),
    NUMBER(AMPERE_DMA_COPY_A),
    NUMBER(AMPERE_DMA_COPY_B),
    NUMBER(HOPPER_DMA_COPY_A),
    NUMBER(BLACKWELL_DMA_COPY_A),
    NUMBER(BLACKWELL_DMA_COPY_B),
    NUMBER(NV_OK),
    NUMBER(NV_ERR_GPU_IS_LOST),
    NUMBER(NV_ERR_GPU_IN_FULLCHIP_RESET),
    NUMBER(NV_ERR_IN_USE),
    NUMBER(NV_ERR_INSUFFICIENT_RESOURCES),
    NUMBER(NV_ERR_INVALID_ADDRESS),
    NUMBER(NV_ERR_INVALID_ARGUMENT),
    NUMBER(NV_ERR_INVALID_DEVICE),
    NUMBER(NV_ERR_NO_MEMORY),
    NUMBER(NV_ERR_NOT_SUPPORTED),
    NUMBER(NV_ERR_RESET_REQUIRED),
};

/* Three constants were not among those of 610: 580's stand in. */
static const char *value(int release, const char *name) {
  const char *text = rows_constant(&constants, release, name);
  if (text == NULL && release == 610)
    text = rows_constant(&constants, 580, name);
  if (text == NULL)
    fail_msg("%d has no %s", release, name);
  return text;
}

static void test_numbers(void **state) {
  (void)state;
  for (size_t r = 0; r < COUNT(releases); r++)
    for (size_t i = 0; i < COUNT(numbers); i++) {
      uint64_t is = tsv_number(value(releases[r], numbers[i].name));
      if (numbers[i].bits != NULL) {
        struct tsv_bits b = tsv_bits(value(releases[r], numbers[i].bits));
        is = (is & tsv_mask(b)) << b.lsb;
      }
      if (is != numbers[i].is)
        fail_msg("%d %s: 0x%llx", releases[r], numbers[i].name,
                 (unsigned long long)numbers[i].is);
    }
}

static const struct {
  const char *version;
  int release;
  bool known;
} versions[] = {
    {"570.211.01", 570, true},
    {"580.159.04", 580, true},
    {"610.43.03", 610, true},
    {"615.71.09", 615, false},
    {"590.48.01", 590, false},
    {"535.54.03", 535, false},
    {"", -1, false},
    {"580", -1, false},
    {"x580.1", -1, false},
    {".580", -1, false},
    {"99999999999.1", -1, false},
};

static void test_versions(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(versions); i++) {
    int n = nvk_release_of(versions[i].version);
    if (n != versions[i].release ||
        (nvk_release_layout(n) != NULL) != versions[i].known)
      fail_msg("version '%s' is release %d", versions[i].version, n);
  }
}

/* What is told to be known is, by both halves of the layouts. */
static void test_list(void **state) {
  static const struct {
    size_t n;
    const char *text;
  } rows[] = {{RELEASE_LIST, "570, 580 and 610"},
              {17, "570, 580 and 610"},
              {16, "570, 580 and 61"},
              {6, "570, "},
              {1, ""}};
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    char text[RELEASE_LIST];
    memset(text, '!', sizeof text);
    nvk_release_list(text, rows[i].n);
    assert_string_equal(text, rows[i].text);
  }
  for (int n = 0; n < 1000; n++)
    if ((nvk_release_layout(n) != NULL) != (abi_rm_layout(n) != NULL))
      fail_msg("%d: one half alone", n);
}

static int read_tables(void **state) {
  (void)state;
  rows_read(&structs, "rm_structs.tsv");
  rows_read(&constants, "rm_consts.tsv");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fields),   cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_layouts),  cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_versions), cmocka_unit_test(test_list),
  };
  return cmocka_run_group_tests(tests, read_tables, NULL);
}
