/* SPDX-License-Identifier: ISC */
/*
 * The process's client of the kernel driver.
 */
#include "paths/nvidia/call.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/abi/classes.h"
#include "core/api/why.h"

struct rig_nv_lock nvk_client_lock = RIG_NV_LOCK(&rig_nv_lock_path);

static struct client the_client; /* open where it has an os */

/* Handles of objects that the RM does not name itself. Its own begin above
 * 0xc0000000. */
#define FIRST_HANDLE 0x10000u

bool nvk_steps_give(const struct step *steps, size_t n, void *of,
                    struct rig_nv_reply *reply) {
  bool ok = rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  for (size_t i = n; i > 0; i--) {
    struct rig_nv_reply one;
    if (steps[i - 1].give == NULL || steps[i - 1].give(of, &one))
      continue;
    if (ok)
      *reply = one;
    ok = false;
  }
  return ok;
}

bool nvk_steps_take(const struct step *steps, size_t n, void *of,
                    struct rig_nv_reply *reply) {
  struct rig_nv_reply undone;
  for (size_t i = 0; i < n; i++) {
    if (steps[i].take == NULL || steps[i].take(of, reply))
      continue;
    if (!nvk_steps_give(steps, i, of, &undone))
      rig_nv_reply_set(reply, reply->is, "%s; stays: %s", reply->text,
                       undone.text);
    return false;
  }
  return true;
}

static bool open_file(const struct client *c, const char *path, int *fd,
                      struct rig_nv_reply *reply) {
  *fd = c->os->open(c->os->ctx, path);
  return nvk_call_errno(reply, path, *fd < 0 ? *fd : 0);
}

static bool close_file(const struct client *c, const char *path, int fd,
                       struct rig_nv_reply *reply) {
  return nvk_call_errno(reply, path, c->os->close(c->os->ctx, fd));
}

#define CTL "/dev/nvidiactl"
#define UVM "/dev/nvidia-uvm"

static bool take_ctl(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  return open_file(c, CTL, &c->ctl, reply);
}

static bool give_ctl(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  return close_file(c, CTL, c->ctl, reply);
}

static bool take_root(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  struct nv_alloc a = {.cls = NV01_ROOT_CLIENT};
  if (!nvk_call_escape(c, c->ctl, NV_ESC_RM_ALLOC, &a, sizeof a, &a.status,
                       "RM client", reply))
    return false;
  c->root = a.object;
  return true;
}

static bool give_root(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  struct nv_free f = {.root = c->root, .old = c->root};
  return nvk_call_escape(c, c->ctl, NV_ESC_RM_FREE, &f, sizeof f, &f.status,
                         "free of the RM client", reply);
}

/* NULL where the rest is not written for it. */
static const struct release_layout *layout_of(const char *version) {
  int release = nvk_release_of(version);
  return abi_rm_layout(release) != NULL ? nvk_release_layout(release) : NULL;
}

bool nvidia_supports(const char *version) { return layout_of(version) != NULL; }

void nvidia_releases(char text[NVIDIA_RELEASES]) {
  nvk_release_list(text, NVIDIA_RELEASES);
}

/* Before any other call. */
static bool take_release(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  struct nv_build_version v;
  memset(&v, 0, sizeof v);
  if (!nvk_call_control(c, c->root, NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2,
                        &v, sizeof v, "driver version", reply))
    return false;
  snprintf(c->version, sizeof c->version, "%.63s", v.driver);
  c->release = nvk_release_of(c->version);
  c->layout = layout_of(c->version);
  if (c->layout != NULL)
    return true;
  char known[NVIDIA_RELEASES];
  nvidia_releases(known);
  return rig_nv_reply_set(reply, RIG_NV_DENIED,
                          "release %s of NVIDIA's kernel driver: %s are "
                          "supported",
                          c->version, known);
}

static bool take_uvm(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  return open_file(c, UVM, &c->uvm, reply);
}

static bool give_uvm(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  return close_file(c, UVM, c->uvm, reply);
}

static bool take_uvm_mm(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  return open_file(c, UVM, &c->uvm_mm, reply);
}

static bool give_uvm_mm(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  return close_file(c, UVM, c->uvm_mm, reply);
}

/* With no HMM, an address that this path did not map faults, also where the
 * process has memory there. */
static bool take_initialize(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  struct uvm_initialize p = {.flags = UVM_INIT_FLAGS_DISABLE_HMM};
  return nvk_call_uvm(c, c->uvm, UVM_INITIALIZE, &p, sizeof p,
                      offsetof(struct uvm_initialize, status), "UVM_INITIALIZE",
                      reply);
}

/* Without it UVM registers no address space of a GPU. A process has one, as
 * CUDA's, which then serves all, so its refusal is none. */
static bool take_mm(void *of, struct rig_nv_reply *reply) {
  struct client *c = of;
  struct uvm_mm_initialize p = {.uvm = c->uvm};
  (void)nvk_call_uvm(c, c->uvm_mm, UVM_MM_INITIALIZE, &p, sizeof p,
                     offsetof(struct uvm_mm_initialize, status),
                     "UVM_MM_INITIALIZE", reply);
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static const struct step steps[] = {
    {take_ctl, give_ctl},
    {take_root, give_root},
    {take_release, NULL},
    {take_uvm, give_uvm},
    {take_uvm_mm, give_uvm_mm},
    {take_initialize, NULL}, /* it ends with its file, as mm does */
    {take_mm, NULL},
};
enum { STEPS = sizeof steps / sizeof steps[0] };

int nvk_open_error(const struct rig_nv_reply *reply) {
  enum rig_nv_error e = reply->is == RIG_NV_LACKING ? RIG_NV_NO_MEMORY
                        : reply->is == RIG_NV_WRONG ? RIG_NV_INVALID
                                                    : RIG_NV_REFUSED;
  return why(e, "%s", reply->text);
}

static bool absent(int fd) {
  return fd == -ENOENT || fd == -ENXIO || fd == -ENODEV;
}

int nvk_client_take(const struct nvidia_os *os, struct client **client) {
  struct rig_nv_reply reply;
  struct client *c = &the_client;
  *client = c;
  if (c->os == os)
    return 0;
  if (c->os != NULL)
    return why(RIG_NV_INVALID, "paths of another system are open");
  *c = (struct client){.os = os, .next_handle = FIRST_HANDLE, .ctl = -1};
  if (nvk_steps_take(steps, STEPS, c, &reply))
    return 0;
  bool none = absent(c->ctl);
  c->os = NULL;
  return none ? why(RIG_NV_ABSENT, "no NVIDIA kernel driver: %s", reply.text)
              : nvk_open_error(&reply);
}

bool nvk_client_drop(struct client *c, struct rig_nv_reply *reply) {
  if (c->gpus != NULL)
    return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  bool ok = nvk_steps_give(steps, STEPS, c, reply);
  c->os = NULL;
  return ok;
}
