/* SPDX-License-Identifier: ISC */
#include "paths/nvidia/fake_state.h"

#include <errno.h>
#include <sys/mman.h>

/* Objects. */

struct object *fake_object_of(const struct fake *f, uint64_t handle) {
  for (size_t i = 0; i < f->state->nobjects; i++)
    if (f->state->objects[i].handle == handle)
      return &f->state->objects[i];
  return NULL;
}

uint32_t fake_class(const struct fake *f, uint32_t handle) {
  const struct object *o = fake_object_of(f, handle);
  return o != NULL ? o->cls : 0;
}

struct object *fake_object_new(struct fake *f, uint32_t handle, uint32_t parent,
                               uint32_t cls, int gpu) {
  struct fake_state *s = f->state;
  if (s->nobjects == FAKE_MOST)
    tsv_die("too many objects", "fake");
  if (fake_object_of(f, handle) != NULL)
    fake_broke(f, "handle 0x%x is given twice", handle);
  struct object *o = &s->objects[s->nobjects++];
  *o = (struct object){
      .handle = handle, .parent = parent, .cls = cls, .gpu = gpu};
  return o;
}

static bool mapped_by_uvm(const struct fake *f, uint32_t handle) {
  for (size_t i = 0; i < f->state->nranges; i++)
    for (size_t k = 0; k < f->state->ranges[i].nmaps; k++)
      if (f->state->ranges[i].maps[k].object == handle)
        return true;
  return false;
}

void fake_object_free(struct fake *f, uint32_t handle) {
  struct fake_state *s = f->state;
  for (size_t i = 0; i < s->nobjects;) {
    if (s->objects[i].parent != handle) {
      i++;
      continue;
    }
    fake_object_free(f, s->objects[i].handle);
    i = 0;
  }
  struct object *o = fake_object_of(f, handle);
  if (o->cpu)
    fake_broke(f, "object 0x%x is freed and mapped by the host", handle);
  if (mapped_by_uvm(f, handle))
    fake_broke(f, "object 0x%x is freed and mapped by UVM", handle);
  if (o->bytes != 0 && o->gpu >= 0 &&
      o->cls == fake_constant(f, "NV01_MEMORY_LOCAL_USER"))
    f->gpus[o->gpu].memory += o->bytes;
  *o = s->objects[--s->nobjects];
}

/* Escapes: each returns the status. */

static const char *const allocations[][2] = {
    {"NV01_DEVICE_0", "NV0080_ALLOC_PARAMETERS"},
    {"NV20_SUBDEVICE_0", "NV2080_ALLOC_PARAMETERS"},
    {"FERMI_VASPACE_A", "NV_VASPACE_ALLOCATION_PARAMETERS"},
    {"NV01_MEMORY_LOCAL_USER", "NV_MEMORY_ALLOCATION_PARAMS"},
};

/* Reads every byte of the RM's own size, as the RM does. */
static const char *read_params(struct fake *f, uint32_t cls, uint64_t at) {
  for (size_t i = 0; i < COUNT(allocations); i++) {
    if (fake_constant(f, allocations[i][0]) != cls)
      continue;
    uint64_t n = fake_size_of(f, allocations[i][1]);
    unsigned sum = 0;
    for (uint64_t k = 0; k < n + 64; k++) /* slack is there, and zero */
      sum += k < n ? 0u : ((const volatile unsigned char *)PTR(at))[k];
    if (sum != 0)
      fake_broke(f, "class 0x%x: no slack behind its parameters", cls);
    if (fake_get(f, "paramsSize") != n)
      fake_broke(f, "class 0x%x: %u bytes of parameters", cls,
                 (unsigned)fake_get(f, "paramsSize"));
    return allocations[i][1];
  }
  return NULL;
}

static uint64_t alloc_memory(struct fake *f, struct object *o, void *params) {
  static const char is[] = "NV_MEMORY_ALLOCATION_PARAMS";
  uint64_t n = fake_get_of(f, is, "size", params);
  if (n % fake_get_of(f, is, "alignment", params) != 0 || n == 0 ||
      fake_get_of(f, is, "limit", params) != n - 1)
    fake_broke(f, "GPU memory of %llu bytes", (unsigned long long)n);
  if (n > f->gpus[o->gpu].memory) {
    f->state->nobjects--;
    return fake_no_memory(f);
  }
  f->gpus[o->gpu].memory -= n;
  o->bytes = n;
  return fake_ok(f);
}

static uint64_t alloc(struct fake *f, struct file *file) {
  uint32_t cls = (uint32_t)fake_get(f, "hClass");
  uint32_t parent = (uint32_t)fake_get(f, "hObjectParent");
  bool root = cls == fake_constant(f, "NV01_ROOT_CLIENT");
  struct object *p = fake_object_of(f, parent);
  if (!file->ctl)
    fake_broke(f, "RM_ALLOC of a file of a GPU");
  if (fake_get(f, "hObjectNew") != 0)
    fake_broke(f, "RM_ALLOC with a handle of the caller's");
  if (!root && (p == NULL || fake_object_of(f, fake_get(f, "hRoot")) == NULL))
    return fake_invalid(f);
  int gpu = p != NULL ? p->gpu : -1;
  const char *is = read_params(f, cls, fake_get(f, "pAllocParms"));
  void *params = PTR(fake_get(f, "pAllocParms"));
  if (cls == fake_constant(f, "NV01_DEVICE_0"))
    gpu = (int)fake_get_of(f, is, "deviceId", params);
  uint32_t handle = f->state->next_handle++;
  struct object *o = fake_object_new(f, handle, root ? 0 : parent, cls, gpu);
  uint64_t status = fake_ok(f);
  if (cls == fake_constant(f, "NV01_MEMORY_LOCAL_USER"))
    status = alloc_memory(f, o, params);
  if (status == fake_ok(f))
    fake_set(f, "hObjectNew", handle);
  return status;
}

static uint64_t alloc_host(struct fake *f, struct file *file) {
  uint64_t flags = fake_get(f, "params.flags");
  uint64_t limit = fake_get(f, "params.limit");
  unsigned char present;
  if (file->gpu < 0 || !file->registered)
    fake_broke(f, "RM_ALLOC_MEMORY on another file");
  if (fake_get(f, "params.hClass") !=
      fake_constant(f, "NV01_MEMORY_SYSTEM_OS_DESCRIPTOR"))
    fake_broke(f, "RM_ALLOC_MEMORY of another class");
  if ((flags >> 30 & 3) != fake_constant(f, "NVOS02_FLAGS_MAPPING_NO_MAP") ||
      (flags >> 12 & 15) != fake_constant(f, "NVOS02_FLAGS_COHERENCY_CACHED") ||
      (flags >> 4 & 15) !=
          fake_constant(f, "NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS"))
    fake_broke(f, "RM_ALLOC_MEMORY with flags 0x%x", (unsigned)flags);
  uint64_t at = fake_get(f, "params.pMemory");
  if (at % PAGE != 0 || (limit + 1) % PAGE != 0)
    fake_broke(f, "RM_ALLOC_MEMORY of no whole pages");
  for (uint64_t k = 0; k <= limit; k += PAGE)
    if (mincore(PTR(at + k), PAGE, &present) != 0)
      return fake_constant(f, "NV_ERR_INVALID_ADDRESS");
  struct object *o =
      fake_object_new(f, (uint32_t)fake_get(f, "params.hObjectNew"),
                      (uint32_t)fake_get(f, "params.hObjectParent"),
                      (uint32_t)fake_get(f, "params.hClass"), file->gpu);
  o->bytes = limit + 1;
  return fake_ok(f);
}

static uint64_t rm_free(struct fake *f, struct file *file) {
  uint64_t handle = fake_get(f, "hObjectOld");
  struct object *o = fake_object_of(f, handle);
  if (!file->ctl)
    fake_broke(f, "RM_FREE on a file of a GPU");
  if (o == NULL || (handle != fake_get(f, "hRoot") &&
                    o->parent != fake_get(f, "hObjectParent"))) {
    fake_broke(f, "RM_FREE of no object 0x%x", (unsigned)handle);
    return fake_invalid(f);
  }
  fake_object_free(f, o->handle);
  return fake_ok(f);
}

static uint64_t map_memory(struct fake *f, struct file *file) {
  struct object *o = fake_object_of(f, fake_get(f, "params.hMemory"));
  struct object *device = fake_object_of(f, fake_get(f, "params.hDevice"));
  uint64_t n = fake_get(f, "params.length");
  struct file *to = fake_file_of(f, (int32_t)fake_get(f, "fd"));
  f->map_flags = (uint32_t)fake_get(f, "params.flags");
  if (!file->ctl || o == NULL || device == NULL)
    return fake_invalid(f);
  if (to == NULL || to->gpu != o->gpu || !to->registered || to->pending != 0)
    fake_broke(f, "RM_MAP_MEMORY by a file that cannot map it");
  if (o->cpu || n != (o->bytes != 0 ? o->bytes : USERMODE))
    fake_broke(f, "RM_MAP_MEMORY of %llu bytes", (unsigned long long)n);
  if (o->bytes != 0 && n > f->gpus[o->gpu].bar)
    return fake_no_memory(f);
  if (o->bytes != 0)
    f->gpus[o->gpu].bar -= n;
  to->pending = o->handle;
  to->pending_bytes = n;
  o->cookie = f->state->next_cookie += PAGE;
  fake_set(f, "params.pLinearAddress", o->cookie);
  return fake_ok(f);
}

static uint64_t unmap_memory(struct fake *f, struct file *file) {
  struct object *o = fake_object_of(f, fake_get(f, "hMemory"));
  if (!file->ctl || o == NULL || o->cookie == 0 ||
      o->cookie != fake_get(f, "pLinearAddress")) {
    fake_broke(f, "RM_UNMAP_MEMORY of no mapping");
    return fake_invalid(f);
  }
  if (o->cpu)
    fake_broke(f, "RM_UNMAP_MEMORY before munmap");
  if (o->bytes != 0)
    f->gpus[o->gpu].bar += o->bytes;
  o->cookie = 0;
  return fake_ok(f);
}

static void set_class_list(struct fake *f, void *p, const struct fake_gpu *g) {
  static const char is[] = "NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS";
  uint32_t *list = PTR(fake_get_of(f, is, "classList", p));
  for (uint32_t i = 0; list != NULL && i < g->nclasses; i++)
    list[i] = g->classes[i];
  fake_set_of(f, is, "numClasses", p, g->nclasses);
}

static void set_infos(struct fake *f, uint32_t *list, uint64_t n,
                      const struct fake_gpu *g) {
  const struct {
    const char *index;
    uint64_t is;
  } known[] = {{"NV2080_CTRL_GR_INFO_INDEX_SM_VERSION", g->sm_version},
               {"NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS", 8},
               {"NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC", 9},
               {"NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC", 2},
               {"NV2080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM", 64},
               {"NV2080_CTRL_FB_INFO_INDEX_HEAP_SIZE", g->memory / 1024},
               {"NV2080_CTRL_FB_INFO_INDEX_L2CACHE_SIZE", 62914560}};
  for (uint64_t i = 0; i < n; i++)
    for (size_t k = 0; k < COUNT(known); k++)
      if (list[2 * i] == fake_constant(f, known[k].index))
        list[2 * i + 1] = (uint32_t)known[k].is;
}

static const struct {
  const char *command, *params;
} controls[] = {
    {"NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2",
     "NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS"},
    {"NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2",
     "NV0000_CTRL_GPU_GET_ID_INFO_V2_PARAMS"},
    {"NV0080_CTRL_CMD_GPU_GET_CLASSLIST",
     "NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS"},
    {"NV2080_CTRL_CMD_GR_GET_INFO", "NV2080_CTRL_GR_GET_INFO_PARAMS"},
    {"NV2080_CTRL_CMD_FB_GET_INFO_V2", "NV2080_CTRL_FB_GET_INFO_V2_PARAMS"},
    {"NV2080_CTRL_CMD_GPU_GET_GID_INFO", "NV2080_CTRL_GPU_GET_GID_INFO_PARAMS"},
    {"NV2080_CTRL_CMD_PERF_BOOST", "NV2080_CTRL_PERF_BOOST_PARAMS"},
    {"NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN",
     "NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS"},
};
enum { VERSION, ID, CLASSES, GR, FB, GID, BOOST, TOKEN };

static uint64_t answer(struct fake *f, size_t command, const struct object *o,
                       void *p) {
  const char *is = controls[command].params;
  struct fake_gpu *g = o->gpu >= 0 ? &f->gpus[o->gpu] : NULL;
  size_t n;
  switch (command) {
  case VERSION:
    strcpy((char *)fake_field_of(f, is, "driverVersionBuffer", p, &n),
           f->version);
    return fake_ok(f);
  case ID: /* ids are 0x600 + the GPU */
    fake_set_of(f, is, "deviceInstance", p,
                fake_get_of(f, is, "gpuId", p) - 0x600);
    return fake_ok(f);
  case CLASSES:
    set_class_list(f, p, g);
    return fake_ok(f);
  case GR:
    set_infos(f, PTR(fake_get_of(f, is, "grInfoList", p)),
              fake_get_of(f, is, "grInfoListSize", p), g);
    return fake_ok(f);
  case FB:
    set_infos(
        f, (uint32_t *)PTR(fake_field_of(f, is, "fbInfoList[0].index", p, &n)),
        fake_get_of(f, is, "fbInfoListSize", p), g);
    return fake_ok(f);
  case GID:
    if (fake_get_of(f, is, "flags", p) != 2 ||
        fake_get_of(f, is, "length", p) != 16)
      fake_broke(f, "GID_INFO asks no binary UUID");
    fake_uuid_of((size_t)o->gpu, fake_field_of(f, is, "data", p, &n));
    return fake_ok(f);
  case BOOST:
    f->boosts++;
    if (fake_get_of(f, is, "flags", p) != 0x52 ||
        fake_get_of(f, is, "duration", p) != UINT32_MAX)
      fake_broke(f, "PERF_BOOST of other flags");
    return fake_ok(f);
  default:
    if (fake_get_of(f, is, "workSubmitToken", p) != UINT32_MAX)
      fake_broke(f, "GET_WORK_SUBMIT_TOKEN of another token");
    fake_set_of(f, is, "workSubmitToken", p, o->handle ^ 0x55);
    return fake_ok(f);
  }
}

static uint64_t control(struct fake *f, struct file *file) {
  struct object *o = fake_object_of(f, fake_get(f, "hObject"));
  uint64_t n = fake_get(f, "paramsSize");
  if (!file->ctl || o == NULL)
    return fake_invalid(f);
  for (size_t i = 0; i < COUNT(controls); i++) {
    if (fake_get(f, "cmd") != fake_constant(f, controls[i].command))
      continue;
    /* What is asked first is asked of any release. */
    if (n != fake_size_of(f, controls[i].params))
      fake_broke(f, "%s: %llu bytes", controls[i].command,
                 (unsigned long long)n);
    return answer(f, i, o, PTR(fake_get(f, "params")));
  }
  return fake_ok(f); /* commands whose parameters are the device's */
}

static uint64_t card_info(struct fake *f, struct file *file) {
  static const char is[] = "nv_ioctl_card_info_t";
  uint64_t stride = fake_size_of(f, is);
  (void)file;
  for (size_t i = 0, n = 0; i < f->ngpus; i++) {
    unsigned domain, bus, device, function;
    if (!f->gpus[i].driven)
      continue;
    /* Not in the order of the bus. */
    unsigned char *at = f->state->arg + stride * (f->ngpus - 1 - n++);
    sscanf(f->gpus[i].bus, "%x:%x:%x.%x", &domain, &bus, &device, &function);
    fake_set_of(f, is, "valid", at, 1);
    fake_set_of(f, is, "pci_info.domain", at, domain);
    fake_set_of(f, is, "pci_info.bus", at, bus);
    fake_set_of(f, is, "pci_info.slot", at, device);
    fake_set_of(f, is, "pci_info.function", at, function);
    fake_set_of(f, is, "gpu_id", at, 0x600 + i);
    fake_set_of(f, is, "minor_number", at, f->gpus[i].minor);
  }
  return fake_ok(f);
}

static uint64_t register_fd(struct fake *f, struct file *file) {
  struct file *ctl = fake_file_of(f, (int32_t)fake_get(f, "ctl_fd"));
  if (ctl == NULL || !ctl->ctl || file->registered)
    fake_broke(f, "REGISTER_FD");
  file->registered = true;
  return fake_ok(f);
}

static uint64_t export(struct fake *f, struct file *file) {
  size_t n;
  uint32_t handle;
  memcpy(&handle, fake_field_of(f, f->state->is, "handles", f->state->arg, &n),
         sizeof handle);
  uint64_t offset, size;
  memcpy(&offset, fake_field_of(f, f->state->is, "offsets", f->state->arg, &n),
         sizeof offset);
  memcpy(&size, fake_field_of(f, f->state->is, "sizes", f->state->arg, &n),
         sizeof size);
  struct object *o = fake_object_of(f, handle);
  if (file->gpu < 0 || !file->registered || (int32_t)fake_get(f, "fd") != -1 ||
      fake_get(f, "totalObjects") != 1 || fake_get(f, "numObjects") != 1 ||
      fake_get(f, "index") != 0 || fake_get(f, "mappingType") != 0 ||
      fake_object_of(f, fake_get(f, "hClient")) == NULL || offset != 0 ||
      size == 0 || size % PAGE != 0 || fake_get(f, "totalSize") != size)
    fake_broke(f, "EXPORT_TO_DMABUF_FD");
  if (o == NULL || o->cls != fake_constant(f, "NV01_MEMORY_LOCAL_USER") ||
      o->gpu != file->gpu || o->bytes != size)
    return fake_invalid(f);
  if (f->no_dmabuf)
    return fake_constant(f, "NV_ERR_NOT_SUPPORTED");
  for (int i = 0; i < FAKE_MOST; i++)
    if (!f->state->files[i].open) {
      /* What the buffer keeps lacks once the object is gone; here at once. */
      f->state->files[i] =
          (struct file){.open = true, .gpu = o->gpu, .buffer = size};
      f->gpus[o->gpu].memory -= size;
      fake_set(f, "fd", (uint64_t)(FIRST_FD + i));
      return fake_ok(f);
    }
  return fake_no_memory(f);
}

static const struct {
  const char *name, *structure, *status;
  uint64_t (*run)(struct fake *, struct file *);
} escapes[] = {
    {"NV_ESC_RM_ALLOC", "NVOS21_PARAMETERS", "status", alloc},
    {"NV_ESC_RM_ALLOC_MEMORY", "nv_ioctl_nvos02_parameters_with_fd",
     "params.status", alloc_host},
    {"NV_ESC_RM_FREE", "NVOS00_PARAMETERS", "status", rm_free},
    {"NV_ESC_RM_CONTROL", "NVOS54_PARAMETERS", "status", control},
    {"NV_ESC_RM_MAP_MEMORY", "nv_ioctl_nvos33_parameters_with_fd",
     "params.status", map_memory},
    {"NV_ESC_RM_UNMAP_MEMORY", "NVOS34_PARAMETERS", "status", unmap_memory},
    {"NV_ESC_CARD_INFO", "nv_ioctl_card_info_t", NULL, card_info},
    {"NV_ESC_REGISTER_FD", "nv_ioctl_register_fd_t", NULL, register_fd},
    {"NV_ESC_EXPORT_TO_DMABUF_FD", "nv_ioctl_export_to_dma_buf_fd_t", "status",
     export},
};

int fake_escape(struct fake *f, struct file *file, uint32_t request,
                size_t bytes) {
  uint64_t nr = request & 0xff, n = request >> 16 & 0x3fff;
  for (size_t i = 0; i < COUNT(escapes); i++) {
    if (nr != fake_constant(f, escapes[i].name))
      continue;
    f->state->is = escapes[i].structure;
    uint64_t one = fake_size_of(f, escapes[i].structure);
    bool many = escapes[i].run == card_info;
    if (request >> 30 != 3 || (request >> 8 & 0xff) != 'F' || n != bytes ||
        (many ? n % one != 0 || n < one * f->ngpus : n != one))
      fake_broke(f, "%s: request 0x%x", escapes[i].name, request);
    bool fail = fake_fails(f, escapes[i].name);
    if (fail && (f->failure == FAKE_ERRNO || f->failure == FAKE_EIO ||
                 escapes[i].status == NULL))
      return fake_failure(f);
    uint64_t status = fail ? fake_failing_status(f) : escapes[i].run(f, file);
    if (escapes[i].status != NULL)
      fake_set(f, escapes[i].status, status);
    return 0;
  }
  fake_broke(f, "escape 0x%x", request);
  return -EINVAL;
}
