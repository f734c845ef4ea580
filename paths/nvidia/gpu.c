/* SPDX-License-Identifier: ISC */
/*
 * A GPU: the objects that the path makes of it, and what it reads of it.
 */
#include <string.h>

#include "core/abi/classes.h"
#include "paths/nvidia/call.h"

enum { MOST_CLASSES = 1024 }; /* a GPU lists fewer than 200 */

static bool done(struct rig_nv_reply *reply) {
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

/* The first open of a GPU without persistence initialises it. */
static bool take_file(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  return nvk_call_open(g, &g->file, reply);
}

static bool give_file(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  const struct nvidia_os *os = g->client->os;
  return nvk_call_errno(reply, "close of the GPU", os->close(os->ctx, g->file));
}

static bool take_id(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  struct nv_id_info p = {.gpu_id = g->card.gpu_id};
  if (!nvk_call_control(g->client, g->client->root,
                        NV0000_CTRL_CMD_GPU_GET_ID_INFO_V2, &p, sizeof p,
                        "GPU id", reply))
    return false;
  g->device_instance = p.device_instance;
  return true;
}

static bool take_device(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  uint32_t root = g->client->root;
  struct nv_device_params p = {
      .device_id = g->device_instance,
      .client_share = root,
      .va_mode = NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES};
  return nvk_call_alloc(g->client, root, NV01_DEVICE_0, &p, sizeof p,
                        &g->path.device, "device", reply);
}

static bool give_device(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  return nvk_call_free(g->client, g->client->root, g->path.device, reply);
}

static bool take_subdevice(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  struct nv_subdevice_params p = {0};
  return nvk_call_alloc(g->client, g->path.device, NV20_SUBDEVICE_0, &p,
                        sizeof p, &g->path.subdevice, "subdevice", reply);
}

static bool give_subdevice(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  return nvk_call_free(g->client, g->path.device, g->path.subdevice, reply);
}

/* The classes that this library may be able to use, newest first: a GPU lists
 * those of its forebears too. */
static const uint32_t channels[] = {
    BLACKWELL_CHANNEL_GPFIFO_B, BLACKWELL_CHANNEL_GPFIFO_A,
    HOPPER_CHANNEL_GPFIFO_A, AMPERE_CHANNEL_GPFIFO_A};
static const uint32_t computes[] = {BLACKWELL_COMPUTE_B, BLACKWELL_COMPUTE_A,
                                    HOPPER_COMPUTE_A,    ADA_COMPUTE_A,
                                    AMPERE_COMPUTE_B,    AMPERE_COMPUTE_A};
static const uint32_t copies[] = {BLACKWELL_DMA_COPY_B, BLACKWELL_DMA_COPY_A,
                                  HOPPER_DMA_COPY_A, AMPERE_DMA_COPY_B,
                                  AMPERE_DMA_COPY_A};
static const uint32_t usermodes[] = {BLACKWELL_USERMODE_A, HOPPER_USERMODE_A,
                                     AMPERE_USERMODE_A, TURING_USERMODE_A};

static uint32_t pick(const uint32_t *known, size_t n, const uint32_t *list,
                     uint32_t listed) {
  for (size_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < listed; k++)
      if (known[i] == list[k])
        return known[i];
  return 0;
}
#define PICK(known) pick(known, sizeof known / sizeof known[0], list, n)

static bool pick_classes(struct gpu *g, const uint32_t *list, uint32_t n,
                         struct rig_nv_reply *reply) {
  struct rig_nv_gpu *is = &g->path.gpu;
  is->channel_class = PICK(channels);
  is->compute_class = PICK(computes);
  is->copy_class = PICK(copies);
  g->usermode_class = PICK(usermodes);
  const char *lacks = !is->channel_class   ? "channel"
                      : !is->compute_class ? "compute"
                      : !is->copy_class    ? "copy"
                      : !g->usermode_class ? "usermode"
                                           : NULL;
  return lacks == NULL ||
         rig_nv_reply_set(reply, RIG_NV_DENIED,
                          "GPU %d at %s lists no %s class that is known",
                          g->path.index, g->bus, lacks);
}

/* Asks for how many there are, then for them. */
static bool take_classes(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  uint32_t list[MOST_CLASSES] = {0};
  struct nv_class_list p = {0};
  if (!nvk_call_control(g->client, g->path.device,
                        NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &p, sizeof p,
                        "count of classes", reply))
    return false;
  if (p.n > MOST_CLASSES)
    return rig_nv_reply_set(reply, RIG_NV_DENIED, "the GPU lists %u classes",
                            p.n);
  p.list = (uintptr_t)list;
  if (!nvk_call_control(g->client, g->path.device,
                        NV0080_CTRL_CMD_GPU_GET_CLASSLIST, &p, sizeof p,
                        "list of classes", reply))
    return false;
  return pick_classes(g, list, p.n < MOST_CLASSES ? p.n : MOST_CLASSES, reply);
}

static bool take_counts(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  struct nv_info list[] = {
      {NV2080_CTRL_GR_INFO_INDEX_SM_VERSION, 0},
      {NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_GPCS, 0},
      {NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_TPC_PER_GPC, 0},
      {NV2080_CTRL_GR_INFO_INDEX_LITTER_NUM_SM_PER_TPC, 0},
      {NV2080_CTRL_GR_INFO_INDEX_MAX_WARPS_PER_SM, 0}};
  struct nv_gr_info p = {.n = sizeof list / sizeof list[0],
                         .list = (uintptr_t)list};
  if (!nvk_call_control(g->client, g->path.subdevice,
                        NV2080_CTRL_CMD_GR_GET_INFO, &p, sizeof p,
                        "counts of multiprocessors", reply))
    return false;
  struct rig_nv_gpu *is = &g->path.gpu;
  is->sm_version = list[0].data;
  is->gpcs = list[1].data;
  is->tpcs_per_gpc = list[2].data;
  is->sms_per_tpc = list[3].data;
  is->warps_per_sm = list[4].data;
  return true;
}

static bool take_sizes(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  const struct release_layout *l = g->client->layout;
  unsigned char params[RELEASE_FB_INFO_MOST] = {0};
  struct nv_fb_info p = {.n = 2,
                         .list = {{NV2080_CTRL_FB_INFO_INDEX_HEAP_SIZE, 0},
                                  {NV2080_CTRL_FB_INFO_INDEX_L2CACHE_SIZE, 0}}};
  memcpy(params, &p, sizeof p);
  if (!nvk_call_control(g->client, g->path.subdevice,
                        NV2080_CTRL_CMD_FB_GET_INFO_V2, params,
                        l->fb_info_bytes, "sizes of memory", reply))
    return false;
  memcpy(&p, params, sizeof p);
  g->path.budget = (uint64_t)p.list[0].data * 1024;
  g->path.cache_bytes = p.list[1].data != 0 ? (int64_t)p.list[1].data : -1;
  return true;
}

static bool take_uuid(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  struct nv_gid_info p = {.flags =
                              NV2080_GPU_CMD_GPU_GET_GID_FLAGS_FORMAT_BINARY,
                          .length = NV_UUID_BYTES};
  if (!nvk_call_control(g->client, g->path.subdevice,
                        NV2080_CTRL_CMD_GPU_GET_GID_INFO, &p, sizeof p, "UUID",
                        reply))
    return false;
  memcpy(g->uuid.bytes, p.data, NV_UUID_BYTES);
  return true;
}

/* With no parameters it is the region in BAR 0, whose timer can be read. */
static bool take_usermode(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  return nvk_call_alloc(g->client, g->path.subdevice, g->usermode_class, NULL,
                        0, &g->usermode, "usermode region", reply);
}

static bool give_usermode(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  return nvk_call_free(g->client, g->path.subdevice, g->usermode, reply);
}

static bool take_registers(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  if (!nvk_call_map(g, g->path.subdevice, g->usermode, NV_USERMODE_BYTES,
                    NVOS33_FLAGS_CACHING_TYPE_UNCACHED, &g->registers,
                    &g->registers_cookie, "map of the usermode region", reply))
    return false;
  g->path.doorbell =
      (volatile uint32_t *)(void *)(g->registers + NV_USERMODE_DOORBELL);
  g->clock = (struct rig_nv_clock){.kind = RIG_NV_CLOCK_USERMODE,
                                   .mapped = g->registers};
  return true;
}

static bool give_registers(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  return nvk_call_unmap(g, g->path.subdevice, g->usermode, NV_USERMODE_BYTES,
                        g->registers, g->registers_cookie, reply);
}

/* As wide as UVM, which owns it, asks of the RM's. */
#define VA_BASE UINT64_C(0x1000)
#define VA_SIZE UINT64_C(0x1fffffb000000)

static bool take_vaspace(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  unsigned char params[64] = {0}; /* a longer release's tail is zero */
  struct nv_vaspace_params p = {
      .flags = NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING |
               NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED,
      .va_base = VA_BASE,
      .va_size = VA_SIZE};
  memcpy(params, &p, sizeof p);
  return nvk_call_alloc(g->client, g->path.device, FERMI_VASPACE_A, params,
                        g->client->layout->vaspace_bytes, &g->path.vaspace,
                        "address space", reply);
}

static bool give_vaspace(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  return nvk_call_free(g->client, g->path.device, g->path.vaspace, reply);
}

static bool take_uvm_gpu(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  struct uvm_register_gpu p = {.gpu = g->uuid, .ctl = -1};
  return nvk_call_uvm(g->client, g->client->uvm, UVM_REGISTER_GPU, &p, sizeof p,
                      offsetof(struct uvm_register_gpu, status),
                      "UVM_REGISTER_GPU", reply);
}

static bool unregister(const struct gpu *g, uint32_t request, const char *what,
                       struct rig_nv_reply *reply) {
  struct uvm_unregister p = {.gpu = g->uuid};
  return nvk_call_uvm(g->client, g->client->uvm, request, &p, sizeof p,
                      offsetof(struct uvm_unregister, status), what, reply);
}

static bool give_uvm_gpu(void *of, struct rig_nv_reply *reply) {
  return unregister(of, UVM_UNREGISTER_GPU, "UVM_UNREGISTER_GPU", reply);
}

static bool take_uvm_vaspace(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  struct uvm_register_vaspace p = {.gpu = g->uuid,
                                   .ctl = g->client->ctl,
                                   .client = g->client->root,
                                   .va_space = g->path.vaspace};
  return nvk_call_uvm(g->client, g->client->uvm, UVM_REGISTER_GPU_VASPACE, &p,
                      sizeof p, offsetof(struct uvm_register_vaspace, status),
                      "UVM_REGISTER_GPU_VASPACE", reply);
}

static bool give_uvm_vaspace(void *of, struct rig_nv_reply *reply) {
  return unregister(of, UVM_UNREGISTER_GPU_VASPACE,
                    "UVM_UNREGISTER_GPU_VASPACE", reply);
}

/* A GPU whose BAR has no room has no flush word, and no Mapped memory. */
static bool take_flush(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  struct rig_nv_reply lacks;
  struct span *s = nvk_span_new(g, RIG_MAPPED, NVIDIA_PAGE);
  if (s == NULL)
    return done(reply);
  if (!nvk_span_whole(s, &g->flush, &lacks)) {
    g->flush.span = NULL;
    /* What has no room is no failure; a failure is. */
    return lacks.is == RIG_NV_LACKING
               ? done(reply)
               : rig_nv_reply_set(reply, lacks.is, "%s", lacks.text);
  }
  g->path.flush = (volatile uint32_t *)(void *)s->host;
  g->path.put_mapped = true; /* posted writes of one BAR */
  return true;
}

static bool give_flush(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  bool ok = g->flush.span == NULL || nvk_memory_end(&g->flush, reply);
  g->flush.span = NULL;
  g->path.flush = NULL;
  g->path.put_mapped = false;
  return ok;
}

static const struct step steps[] = {
    {take_file, give_file},
    {take_id, NULL},
    {take_device, give_device},
    {take_subdevice, give_subdevice},
    {take_classes, NULL},
    {take_counts, NULL},
    {take_sizes, NULL},
    {take_uuid, NULL},
    {take_usermode, give_usermode},
    {take_registers, give_registers},
    {take_vaspace, give_vaspace},
    {take_uvm_gpu, give_uvm_gpu},
    {take_uvm_vaspace, give_uvm_vaspace},
    {nvk_peers_take, nvk_peers_give},
    {take_flush, give_flush},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

bool nvk_gpu_open(struct gpu *g, struct rig_nv_reply *reply) {
  bool ok = nvk_steps_take(steps, STEPS, g, reply);
  if (!ok)
    nvk_spans_forget(g);
  return ok;
}

bool nvk_gpu_close(struct gpu *g, struct rig_nv_reply *reply) {
  bool ok = nvk_steps_give(steps, STEPS, g, reply);
  nvk_spans_forget(g);
  return ok;
}
