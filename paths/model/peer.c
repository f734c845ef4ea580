/* SPDX-License-Identifier: ISC */
/*
 * Models as each other's peers: a list of those that are open, and views of
 * one's memory in another's addresses.
 *
 *   map_peer   list, pin | owner's lock: find, refer | own lock: view
 *   free       own lock: mark gone, take out | list, pin | viewer's lock,
 *              for each other model | the memory goes
 *
 * A thread holds one lock at a time; a pin keeps a model open between two.
 *
 * Why a view's access is safe: engines touch memory in a turn, with their lock
 * held. A turn that began before the memory was marked gone ends before free
 * gets the viewer's lock, and a later one sees the mark, since the lock orders
 * it after the mark. So a free leaves no access behind, and needs no lock of
 * two models.
 */
#include <ck_pr.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>

#include "core/api/why.h"
#include "paths/model/state.h"

/* The open models, by index. */
static struct rig_nv_lock list_lock = RIG_NV_LOCK(&rig_nv_lock_path);
static struct model *list;

static int join_locked(struct model *m) {
  int index = m->options.index < 0 ? 0 : m->options.index;
  struct model **at = &list;
  while (*at && (*at)->path.index <= index) {
    if ((*at)->path.index == index && m->options.index >= 0)
      return why(RIG_NV_INVALID, "a model of index %d is open", index);
    if ((*at)->path.index == index)
      index++;
    at = &(*at)->peer;
  }
  m->path.index = index;
  m->peer = *at;
  *at = m;
  return 0;
}

int model_peers_join(struct model *m) {
  int r = rig_nv_lock_take(&list_lock);
  if (r)
    return r;
  r = join_locked(m);
  rig_nv_lock_give(&list_lock);
  return r;
}

int model_peers_leave(struct model *m) {
  int r = rig_nv_lock_take(&list_lock);
  if (r)
    return r;
  struct model **at = &list;
  while (*at != m)
    at = &(*at)->peer;
  *at = m->peer;
  rig_nv_lock_give(&list_lock);
  while (ck_pr_load_uint(&m->pins))
    sched_yield();
  ck_pr_fence_acquire(); /* pairs with unpin */
  return 0;
}

/* The open model of the lowest index above `index`, pinned, or NULL. */
static struct model *pin_above(int index, int *error) {
  struct model *m = NULL;
  *error = rig_nv_lock_take(&list_lock);
  if (*error)
    return NULL;
  for (m = list; m && m->path.index <= index; m = m->peer)
    ;
  if (m)
    ck_pr_inc_uint(&m->pins);
  rig_nv_lock_give(&list_lock);
  return m;
}

static void unpin(struct model *m) {
  ck_pr_fence_release(); /* pairs with model_peers_leave */
  ck_pr_dec_uint(&m->pins);
}

void model_peers_pass(struct model *self) {
  struct rig_nv_reply reply;
  struct model *m;
  int error;
  for (int i = -1; (m = pin_above(i, &error)); unpin(m)) {
    i = m->path.index;
    if (m != self && model_enter(m, &reply))
      model_leave(m);
  }
}

bool model_share_gone(const struct model_share *s) {
  return ck_pr_load_uint(&s->gone); /* its lock orders it: see above */
}

void model_share_drop(struct model_share *s) {
  bool last;
  ck_pr_fence_release(); /* this holder's accesses, before the last drop */
  ck_pr_dec_uint_zero(&s->refs, &last);
  if (!last)
    return;
  ck_pr_fence_acquire(); /* pairs with the other droppers' fence */
  if (s->unrefer)
    s->unrefer(s->block);
  free(s);
}

/* Whether the models are GPUs of one kind of path. */
static bool akin(const struct model *a, const struct model *b) {
  return a->path.key == b->path.key;
}

bool model_reaches(void *ctx, int index) {
  const struct model *self = ctx;
  if (self->options.no_peers || index == self->path.index ||
      rig_nv_lock_take(&list_lock))
    return false;
  const struct model *m = list;
  while (m && m->path.index != index)
    m = m->peer;
  const bool reaches = m && akin(m, self);
  rig_nv_lock_give(&list_lock);
  return reaches;
}

/* What map_peer came to; a text of NULL is success. */
struct seen {
  struct model_span of; /* what a view needs, with a reference to its share */
  uint64_t bytes;
  const char *text;
};

static struct model_memory *find(struct model *m,
                                 const struct rig_nv_memory *memory) {
  struct model_memory *r = m->memories;
  while (r && (r != memory->data || r->handle != memory->handle ||
               r->address != memory->address || r == m->flush))
    r = r->next;
  return r;
}

/* Refers to the memory, with its owner's lock held. */
static void refer(struct model *m, struct model_memory *r, struct seen *s) {
  if (!r->share) {
    r->share = calloc(1, sizeof *r->share);
    if (r->share)
      r->share->refs = 1;
    if (r->share && m->backing) {
      r->share->unrefer = m->backing->unrefer;
      r->share->block = m->backing->refer(r->span->backed);
    }
  }
  if (!r->share) {
    s->text = "no memory of the host's for it:";
    return;
  }
  struct model_twin t = {0};
  if (r->span->gpu)
    t = model_twin_of(r, 0);
  ck_pr_inc_uint(&r->share->refs);
  s->of = (struct model_span){.at = r->address - r->span->at,
                              .kind = r->span->kind,
                              .host = t.host,
                              .gpu = t.gpu,
                              .post = t.post,
                              .share = r->share};
  s->bytes = r->bytes;
  s->text = NULL;
}

/* Looks in the model; whether the memory is there. */
static bool look(struct model *m, const struct model *self,
                 const struct rig_nv_memory *memory, struct seen *s) {
  struct rig_nv_reply reply;
  if (!model_enter(m, &reply))
    return false;
  struct model_memory *r = find(m, memory);
  if (r && r->span->share)
    s->text = "a view of another GPU's memory:";
  else if (r && m == self)
    s->text = "this GPU's own memory:";
  else if (r)
    refer(m, r, s);
  model_leave(m);
  return r;
}

static void resolve(struct model *self, const struct rig_nv_memory *memory,
                    struct seen *s) {
  struct model *m;
  int error;
  s->text = "no memory of an open model:";
  for (int i = -1; (m = pin_above(i, &error));) {
    bool found = akin(m, self) && look(m, self, memory, s);
    i = m->path.index;
    unpin(m);
    if (found)
      return;
  }
  if (error)
    s->text = rig_nv_why();
}

static bool refuse(const struct rig_nv_memory *memory, const char *text,
                   struct rig_nv_reply *reply) {
  return rig_nv_reply_set(reply, RIG_NV_DENIED,
                          "map_peer: %s memory 0x%x at 0x%llx", text,
                          memory->handle, (unsigned long long)memory->address);
}

static bool view(struct model *m, const struct rig_nv_memory *memory,
                 const struct seen *s, enum rig_mapping *mapping,
                 struct rig_nv_memory *out, struct rig_nv_reply *reply) {
  if (m->stopped)
    return refuse(memory, "the path stopped:", reply);
  if (model_share_gone(s->of.share))
    return refuse(memory, "freed meanwhile:", reply);
  struct model_memory *r = model_view_new(m, &s->of, s->bytes);
  if (!r) {
    *mapping = RIG_NO_ROOM;
    return rig_nv_reply_set(reply, RIG_NV_LACKING,
                            "map_peer: no room for %llu bytes",
                            (unsigned long long)s->bytes);
  }
  model_describe(r, out, s->bytes);
  *mapping = RIG_MAPS;
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

bool model_map_peer(void *ctx, const struct rig_nv_memory *memory,
                    enum rig_mapping *mapping, struct rig_nv_memory *out,
                    struct rig_nv_reply *reply) {
  struct model *m = ctx;
  struct seen s = {.text = "this GPU reaches no other:"};
  *mapping = RIG_NEVER_MAPS;
  if (!m->options.no_peers)
    resolve(m, memory, &s);
  if (s.text)
    return refuse(memory, s.text, reply);
  bool ok = false;
  if (model_enter(m, reply)) {
    ok = view(m, memory, &s, mapping, out, reply);
    model_leave(m);
  }
  if (!ok)
    model_share_drop(s.of.share);
  return ok;
}
