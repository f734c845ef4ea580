/* SPDX-License-Identifier: ISC */
#include "tools/rig_nv/addition.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stress/random.h"

enum { A, B, C, VECTORS, GROUP = 128, MOST_GROUPS = 1024, PATIENCE_S = 20 };

struct addition {
  struct tool_gpu *gpu;
  const struct kernels *kernels;
  bool turn;
  uint64_t words;
  uint32_t *host[VECTORS];
  struct rig_nv_region *region[VECTORS];
};

static int make(struct addition *a, const struct content *c) {
  struct random random = {c->n};
  for (int i = 0; i < VECTORS; i++) {
    a->host[i] = calloc(a->words, 4);
    if (a->host[i] == NULL)
      return tool_failed("vector addition", "no host memory");
  }
  if (c->n > 0)
    memcpy(a->host[A], c->bytes, c->n);
  random_bytes(&random, a->host[B], 4 * a->words);
  for (int i = 0; i < VECTORS; i++)
    if (rig_nv_alloc(a->gpu->device, i == B ? RIG_PINNED : RIG_DEVICE,
                     4 * a->words, &a->region[i]) != 0 ||
        rig_nv_upload(a->gpu->device, a->region[i], 0, a->host[i],
                      4 * a->words) != 0)
      return tool_failed("vector addition", rig_nv_why());
  return TOOL_OK;
}

static int submit(struct addition *a, const struct rig_submission *s,
                  uint64_t *v) {
  struct rig_nv *d = a->gpu->device;
  const char *failure = "it does not fit";
  if (!a->turn)
    return rig_nv_post(d, s, v) == 0
               ? TOOL_OK
               : tool_failed("posting the addition", rig_nv_why());
  *v = rig_nv_signaled(d) + 1; /* everything before was waited for */
  if (rig_nv_room(d, s) == RIG_FITS &&
      rig_nv_submit(d, *v, s, &failure) == RIG_COMMITTED)
    return TOOL_OK;
  return tool_failed("submitting the addition", failure);
}

static int launch(struct addition *a) {
  struct {
    _Alignas(16) struct rig_block block;
    uint64_t params[4];
  } args = {{{1, 1, 1}, {GROUP, 1, 1}, 0, 0}, {0, 0, 0, a->words}};
  uint64_t groups = (a->words + GROUP - 1) / GROUP, slots[VECTORS], v;
  struct rig_ref refs[VECTORS];
  struct timespec now;
  args.block.groups[0] =
      (uint32_t)(groups < MOST_GROUPS ? groups : MOST_GROUPS);
  for (uint32_t i = 0; i < VECTORS; i++) {
    refs[i] = (struct rig_ref){8 * i, i};
    slots[i] = rig_nv_locate(a->region[(i + C) % VECTORS]).address;
  }
  const struct rig_nv_function *add = &a->kernels->add;
  struct rig_part p =
      rig_part_launch(add->code, add->launch, 0, sizeof args.params);
  p.launch.refs = refs;
  p.launch.nrefs = VECTORS;
  struct rig_submission s = {.parts = &p,
                             .nparts = 1,
                             .args = &args,
                             .args_bytes = sizeof args,
                             .slots = slots,
                             .nslots = VECTORS};
  if (submit(a, &s, &v) != TOOL_OK)
    return TOOL_ERROR;
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (rig_nv_wait(a->gpu->device, v,
                  ((uint64_t)now.tv_sec + PATIENCE_S) * 1000000000) != 0)
    return tool_failed("waiting for the addition", rig_nv_why());
  return TOOL_OK;
}

static int compare(struct addition *a) {
  if (rig_nv_download(a->gpu->device, a->region[C], 0, a->host[C],
                      4 * a->words) != 0)
    return tool_failed("downloading the sums", rig_nv_why());
  for (uint64_t i = 0; i < a->words; i++)
    if (a->host[C][i] != a->host[A][i] + a->host[B][i]) {
      fprintf(stderr,
              "rig-nv: word %" PRIu64 " of the addition is 0x%08x, not 0x%08x "
              "+ 0x%08x\n",
              i, a->host[C][i], a->host[A][i], a->host[B][i]);
      return TOOL_NOT_VERIFIED;
    }
  return TOOL_OK;
}

int addition_run(struct tool_gpu *gpu, const struct kernels *kernels,
                 const struct content *c, bool turn, uint64_t *words) {
  struct addition a = {
      .gpu = gpu, .kernels = kernels, .turn = turn, .words = c->n / 4 + 1};
  int status = make(&a, c);
  if (status == TOOL_OK)
    status = launch(&a);
  if (status == TOOL_OK)
    status = compare(&a);
  *words = a.words;
  for (int i = 0; i < VECTORS; i++) {
    if (a.region[i] && rig_nv_free(gpu->device, a.region[i]) != 0)
      status = tool_failed("freeing the vectors", rig_nv_why());
    free(a.host[i]);
  }
  return status;
}
