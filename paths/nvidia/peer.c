/* SPDX-License-Identifier: ISC */
/*
 * GPUs of one process as each other's peers. Ranges are the process's: a GPU
 * maps another one's memory at the other one's address.
 */
#include <ck_pr.h>
#include <stdlib.h>

#include "core/api/why.h"
#include "paths/nvidia/call.h"

enum { NUMBERS = 64 }; /* of GPUs that `peers` has a bit for */

static uint64_t bit(const struct gpu *g) {
  return g->path.index < NUMBERS ? UINT64_C(1) << g->path.index : 0;
}

/* The status is the answer; a call that came to none is a refusal. */
static bool ask(const struct gpu *a, const struct gpu *b, uint32_t request,
                const char *what, uint32_t *status,
                struct rig_nv_reply *reply) {
  struct uvm_peer_access p = {
      .a = a->uuid, .b = b->uuid, .status = NV_ERR_NOT_SUPPORTED};
  bool ok = nvk_call_uvm(a->client, a->client->uvm, request, &p, sizeof p,
                         offsetof(struct uvm_peer_access, status), what, reply);
  *status = p.status;
  return ok;
}

/* UVM makes peers of GPUs that NVLink joins as it registers them, and refuses
 * to be asked for more. Whether it did, a mapping of the other one's memory
 * shows. */
static bool joined(const struct gpu *g, const struct gpu *o) {
  struct rig_nv_reply reply;
  const struct span *s = o->flush.span;
  if (s == NULL || !nvk_span_map(s, g, &reply))
    return false;
  return nvk_span_unmap(s, g, &reply);
}

/* A refusal is the machine's answer, and no failure. */
bool nvk_peers_take(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  for (struct gpu *o = g->client->gpus; o != NULL; o = o->next) {
    struct rig_nv_reply refused;
    uint32_t status;
    if (o == g || bit(o) == 0 || bit(g) == 0)
      continue;
    bool asked = ask(g, o, UVM_ENABLE_PEER_ACCESS, "UVM_ENABLE_PEER_ACCESS",
                     &status, &refused);
    if (!asked && !(status == NV_ERR_INVALID_DEVICE && joined(g, o)))
      continue;
    if (asked)
      g->asked |= bit(o);
    ck_pr_or_64(&g->peers, bit(o)); /* orders nothing: an answer of its own */
    ck_pr_or_64(&o->peers, bit(g));
  }
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

bool nvk_peers_give(void *of, struct rig_nv_reply *reply) {
  struct gpu *g = of;
  bool ok = rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
  for (struct gpu *o = g->client->gpus; o != NULL; o = o->next) {
    struct rig_nv_reply one;
    uint32_t status;
    ck_pr_and_64(&o->peers, ~bit(g));
    if (o == g || ((g->asked & bit(o)) == 0 && (o->asked & bit(g)) == 0))
      continue;
    o->asked &= ~bit(g);
    if (!ask(g, o, UVM_DISABLE_PEER_ACCESS, "UVM_DISABLE_PEER_ACCESS", &status,
             &one) &&
        ok) {
      *reply = one;
      ok = false;
    }
  }
  g->asked = 0;
  ck_pr_and_64(&g->peers, 0);
  return ok;
}

bool nvk_peer_reaches(void *ctx, int index) {
  struct gpu *g = ctx;
  return index >= 0 && index < NUMBERS &&
         (ck_pr_load_64(&g->peers) >> index & 1) != 0;
}

static bool map_locked(struct gpu *g, struct memory *m,
                       const struct rig_nv_memory *theirs,
                       enum rig_mapping *mapping, struct rig_nv_memory *out,
                       struct rig_nv_reply *reply) {
  const struct memory *of = theirs->data;
  struct span *s = of->span;
  *mapping = RIG_NEVER_MAPS;
  if (s->kind != RIG_PINNED && !nvk_peer_reaches(g, s->gpu->path.index))
    return rig_nv_reply_set(reply, RIG_NV_DENIED,
                            "map_peer: GPU %d does not reach the memory of GPU "
                            "%d",
                            g->path.index, s->gpu->path.index);
  if (!nvk_span_view(s, g, m, reply)) {
    *mapping = reply->is == RIG_NV_LACKING ? RIG_NO_ROOM : RIG_NEVER_MAPS;
    return false;
  }
  *mapping = RIG_MAPS;
  g->memories++;
  nvk_memory_describe(m, theirs->address - s->range.at, theirs->bytes, out);
  return true;
}

bool nvk_peer_map(void *ctx, const struct rig_nv_memory *theirs,
                  enum rig_mapping *mapping, struct rig_nv_memory *out,
                  struct rig_nv_reply *reply) {
  struct gpu *g = ctx;
  *mapping = RIG_NEVER_MAPS;
  struct memory *m = malloc(sizeof *m);
  if (m == NULL) {
    *mapping = RIG_NO_ROOM;
    return rig_nv_reply_set(reply, RIG_NV_LACKING, "map_peer: no host memory");
  }
  if (rig_nv_lock_take(&nvk_client_lock)) {
    free(m);
    return rig_nv_reply_set(reply, RIG_NV_WRONG, "%s", rig_nv_why());
  }
  bool ok = map_locked(g, m, theirs, mapping, out, reply);
  rig_nv_lock_give(&nvk_client_lock);
  if (!ok)
    free(m);
  return ok;
}
