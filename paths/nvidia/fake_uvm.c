/* SPDX-License-Identifier: ISC */
#include "paths/nvidia/fake_state.h"

#include <errno.h>

/* UVM. */

static int gpu_at(struct fake *f, const char *field) {
  size_t n;
  return fake_gpu_of_uuid(
      fake_field_of(f, f->state->is, field, f->state->arg, &n));
}

static uint64_t uvm_initialize(struct fake *f, struct file *file) {
  if (fake_get(f, "flags") != fake_constant(f, "UVM_INIT_FLAGS_DISABLE_HMM"))
    fake_broke(f, "UVM_INITIALIZE of other flags");
  file->uvm_initialized = true;
  return fake_ok(f);
}

static uint64_t uvm_mm(struct fake *f, struct file *file) {
  struct file *other = fake_file_of(f, (int32_t)fake_get(f, "uvmFd"));
  if (other == NULL || other == file || !other->uvm_initialized)
    return fake_invalid(f);
  if (f->mm_by_other)
    return fake_constant(f, "NV_ERR_IN_USE");
  f->state->mm = true;
  return fake_ok(f);
}

static uint64_t uvm_flag(struct fake *f, const char *field, bool *flags,
                         bool to) {
  int gpu = gpu_at(f, field);
  if (gpu < 0 || flags[gpu] == to) {
    fake_broke(f, "%s", f->state->is);
    return fake_invalid(f);
  }
  flags[gpu] = to;
  return fake_ok(f);
}

static uint64_t uvm_register_gpu(struct fake *f, struct file *file) {
  (void)file;
  return uvm_flag(f, "gpu_uuid", f->state->gpu, true);
}

static uint64_t uvm_unregister_gpu(struct fake *f, struct file *file) {
  (void)file;
  return uvm_flag(f, "gpu_uuid", f->state->gpu, false);
}

static uint64_t uvm_register_vaspace(struct fake *f, struct file *file) {
  struct object *o = fake_object_of(f, fake_get(f, "hVaSpace"));
  (void)file;
  if (!f->state->mm && !f->mm_by_other)
    return fake_constant(f, "NV_ERR_PAGE_TABLE_NOT_AVAIL");
  if (o == NULL || o->cls != fake_constant(f, "FERMI_VASPACE_A"))
    fake_broke(f, "UVM_REGISTER_GPU_VASPACE of no address space");
  return uvm_flag(f, "gpuUuid", f->state->vaspace, true);
}

static uint64_t uvm_unregister_vaspace(struct fake *f, struct file *file) {
  (void)file;
  return uvm_flag(f, "gpuUuid", f->state->vaspace, false);
}

static uint64_t range_new(struct fake *f, uint64_t at, uint64_t n,
                          uint32_t channel) {
  struct fake_state *s = f->state;
  if (at % PAGE != 0 || n % PAGE != 0 || n == 0)
    fake_broke(f, "a range of 0x%llx bytes at 0x%llx", (unsigned long long)n,
               (unsigned long long)at);
  for (size_t i = 0; i < s->nranges; i++)
    if (at < s->ranges[i].at + s->ranges[i].bytes && s->ranges[i].at < at + n)
      fake_broke(f, "ranges overlap at 0x%llx", (unsigned long long)at);
  if (s->nranges == FAKE_MOST)
    tsv_die("too many ranges", "fake");
  s->ranges[s->nranges++] =
      (struct uvm_range){.at = at, .bytes = n, .channel = channel};
  return fake_ok(f);
}

static struct uvm_range *range_of(struct fake *f, uint64_t at) {
  for (size_t i = 0; i < f->state->nranges; i++)
    if (f->state->ranges[i].at == at)
      return &f->state->ranges[i];
  return NULL;
}

static uint64_t uvm_create(struct fake *f, struct file *file) {
  (void)file;
  return range_new(f, fake_get(f, "base"), fake_get(f, "length"), 0);
}

static uint64_t uvm_map(struct fake *f, struct file *file) {
  struct uvm_range *r = range_of(f, fake_get(f, "base"));
  struct object *o = fake_object_of(f, fake_get(f, "hMemory"));
  int gpu = gpu_at(f, "perGpuAttributes[0].gpuUuid");
  (void)file;
  if (r == NULL || o == NULL || gpu < 0 || !f->state->vaspace[gpu] ||
      fake_get(f, "length") != r->bytes || o->bytes < r->bytes ||
      fake_get(f, "gpuAttributesCount") != 1 || fake_get(f, "offset") != 0 ||
      fake_get(f, "perGpuAttributes[0].gpuMappingType") !=
          fake_constant(f, "UvmGpuMappingTypeReadWriteAtomic")) {
    fake_broke(f, "UVM_MAP_EXTERNAL_ALLOCATION");
    return fake_invalid(f);
  }
  if (o->gpu != gpu && o->cls == fake_constant(f, "NV01_MEMORY_LOCAL_USER") &&
      !f->state->peer[o->gpu][gpu] && (!f->nvlink || f->no_peers))
    return fake_constant(f, "NV_ERR_INVALID_DEVICE");
  for (size_t i = 0; i < r->nmaps; i++)
    if (fake_gpu_of_uuid(r->maps[i].uuid) == gpu)
      fake_broke(f, "mapped twice at 0x%llx", (unsigned long long)r->at);
  struct gpu_map *m = &r->maps[r->nmaps++];
  fake_uuid_of((size_t)gpu, m->uuid);
  m->object = o->handle;
  return fake_ok(f);
}

static uint64_t uvm_unmap(struct fake *f, struct file *file) {
  struct uvm_range *r = range_of(f, fake_get(f, "base"));
  int gpu = gpu_at(f, "gpuUuid");
  (void)file;
  for (size_t i = 0; r != NULL && i < r->nmaps; i++)
    if (fake_gpu_of_uuid(r->maps[i].uuid) == gpu &&
        fake_get(f, "length") == r->bytes) {
      r->maps[i] = r->maps[--r->nmaps];
      return fake_ok(f);
    }
  fake_broke(f, "UVM_UNMAP_EXTERNAL of no mapping");
  return fake_invalid(f);
}

static uint64_t uvm_free(struct fake *f, struct file *file) {
  struct uvm_range *r = range_of(f, fake_get(f, "base"));
  (void)file;
  if (r == NULL || r->channel != 0 ||
      (f->release <= 580 && fake_get(f, "length") != r->bytes)) {
    fake_broke(f, "UVM_FREE of no range");
    return fake_invalid(f);
  }
  *r = f->state->ranges[--f->state->nranges];
  return fake_ok(f);
}

static uint64_t uvm_channel(struct fake *f, struct file *file) {
  struct object *o = fake_object_of(f, fake_get(f, "hChannel"));
  (void)file;
  if (o == NULL || fake_get(f, "base") % HUGE != 0 ||
      fake_get(f, "length") != UINT64_C(64) << 20)
    fake_broke(f, "UVM_REGISTER_CHANNEL");
  return range_new(f, fake_get(f, "base"), fake_get(f, "length"),
                   (uint32_t)fake_get(f, "hChannel"));
}

static uint64_t uvm_unchannel(struct fake *f, struct file *file) {
  (void)file;
  if (f->release <= 580 && gpu_at(f, "gpuUuid") < 0)
    fake_broke(f, "UVM_UNREGISTER_CHANNEL of no GPU");
  for (size_t i = 0; i < f->state->nranges; i++) {
    struct uvm_range *r = &f->state->ranges[i];
    if (r->channel == 0 || r->channel != fake_get(f, "hChannel"))
      continue;
    *r = f->state->ranges[--f->state->nranges];
    return fake_ok(f);
  }
  fake_broke(f, "UVM_UNREGISTER_CHANNEL of no channel");
  return fake_invalid(f);
}

static uint64_t set_peers(struct fake *f, bool to) {
  int a = gpu_at(f, "gpuUuidA"), b = gpu_at(f, "gpuUuidB");
  if (a < 0 || b < 0 || a == b || f->state->peer[a][b] == to)
    fake_broke(f, "%s", f->state->is);
  if (f->nvlink)
    return fake_constant(f, "NV_ERR_INVALID_DEVICE");
  if (f->no_peers)
    return fake_constant(f, "NV_ERR_NOT_SUPPORTED");
  f->state->peer[a][b] = f->state->peer[b][a] = to;
  return fake_ok(f);
}

static uint64_t uvm_peers(struct fake *f, struct file *file) {
  (void)file;
  return set_peers(f, true);
}

static uint64_t uvm_no_peers(struct fake *f, struct file *file) {
  (void)file;
  return set_peers(f, false);
}

static const struct {
  const char *name, *structure;
  uint64_t (*run)(struct fake *, struct file *);
} requests[] = {
    {"UVM_INITIALIZE", "UVM_INITIALIZE_PARAMS", uvm_initialize},
    {"UVM_MM_INITIALIZE", "UVM_MM_INITIALIZE_PARAMS", uvm_mm},
    {"UVM_REGISTER_GPU", "UVM_REGISTER_GPU_PARAMS", uvm_register_gpu},
    {"UVM_UNREGISTER_GPU", "UVM_UNREGISTER_GPU_PARAMS", uvm_unregister_gpu},
    {"UVM_REGISTER_GPU_VASPACE", "UVM_REGISTER_GPU_VASPACE_PARAMS",
     uvm_register_vaspace},
    {"UVM_UNREGISTER_GPU_VASPACE", "UVM_UNREGISTER_GPU_VASPACE_PARAMS",
     uvm_unregister_vaspace},
    {"UVM_REGISTER_CHANNEL", "UVM_REGISTER_CHANNEL_PARAMS", uvm_channel},
    {"UVM_UNREGISTER_CHANNEL", "UVM_UNREGISTER_CHANNEL_PARAMS", uvm_unchannel},
    {"UVM_CREATE_EXTERNAL_RANGE", "UVM_CREATE_EXTERNAL_RANGE_PARAMS",
     uvm_create},
    {"UVM_MAP_EXTERNAL_ALLOCATION", "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS",
     uvm_map},
    {"UVM_UNMAP_EXTERNAL", "UVM_UNMAP_EXTERNAL_PARAMS", uvm_unmap},
    {"UVM_FREE", "UVM_FREE_PARAMS", uvm_free},
    {"UVM_ENABLE_PEER_ACCESS", "UVM_ENABLE_PEER_ACCESS_PARAMS", uvm_peers},
    {"UVM_DISABLE_PEER_ACCESS", "UVM_DISABLE_PEER_ACCESS_PARAMS", uvm_no_peers},
};

int fake_uvm(struct fake *f, struct file *file, uint32_t request,
             size_t bytes) {
  for (size_t i = 0; i < COUNT(requests); i++) {
    if (request != fake_constant(f, requests[i].name))
      continue;
    f->state->is = requests[i].structure;
    if (bytes != fake_size_of(f, requests[i].structure))
      fake_broke(f, "%s: %zu bytes", requests[i].name, bytes);
    bool fail = fake_fails(f, requests[i].name);
    if (fail && (f->failure == FAKE_ERRNO || f->failure == FAKE_EIO))
      return fake_failure(f);
    if (!file->uvm_initialized && requests[i].run != uvm_initialize &&
        requests[i].run != uvm_mm)
      fake_broke(f, "%s of a file that is not initialized", requests[i].name);
    fake_set(f, "rmStatus",
             fail ? fake_failing_status(f) : requests[i].run(f, file));
    return 0;
  }
  fake_broke(f, "UVM request 0x%x", request);
  return -EINVAL;
}
