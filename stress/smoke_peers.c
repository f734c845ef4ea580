/* SPDX-License-Identifier: ISC */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/random.h"
#include "stress/smoke.h"

enum { BYTES = 300000, KINDS = 3, MOST = 8 };

static const char *const names[] = {"Device", "Pinned", "Mapped"};

/* Two devices: `near` works on a region of its own and a view of far's. */
struct pair {
  struct smoke *near, *far;
  struct rig_nv_region *own, *theirs, *view;
  unsigned char *sent, *found;
};

static bool equal(const struct pair *p, const char *what) {
  return memcmp(p->sent, p->found, BYTES) == 0 ||
         smoke_failed("%s: other bytes", what);
}

static uint64_t at(const struct rig_nv_region *r) {
  return rig_nv_locate(r).address;
}

static bool copy(struct pair *p, const struct rig_nv_region *to,
                 const struct rig_nv_region *from) {
  struct rig_part part = rig_part_copy(at(to), at(from), BYTES);
  uint64_t v;
  return smoke_post(p->near, &part, 1, &v) && smoke_reach(p->near, v);
}

static bool bring(struct pair *p, struct rig_nv *d, struct rig_nv_region *r) {
  return rig_nv_upload(d, r, 0, p->sent, BYTES) == 0 ||
         smoke_failed("upload: %s", rig_nv_why());
}

static bool fetch(struct pair *p, struct rig_nv *d, struct rig_nv_region *r) {
  memset(p->found, 0, BYTES);
  return rig_nv_download(d, r, 0, p->found, BYTES) == 0 ||
         smoke_failed("download: %s", rig_nv_why());
}

/* Near reads what far has, then writes it. */
static bool both_ways(struct pair *p, struct random *random) {
  struct rig_nv *near = p->near->device, *far = p->far->device;
  for (int i = 0; i < BYTES; i++)
    p->sent[i] = (unsigned char)random_below(random, 256);
  if (!bring(p, far, p->theirs) || !copy(p, p->own, p->view) ||
      !fetch(p, near, p->own) || !equal(p, "read from the other GPU"))
    return false;
  for (int i = 0; i < BYTES; i++)
    p->sent[i] ^= 0x5a;
  return bring(p, near, p->own) && copy(p, p->view, p->own) &&
         fetch(p, far, p->theirs) && equal(p, "written to the other GPU");
}

static bool kind_of(struct pair *p, int kind, struct random *random) {
  struct rig_nv *near = p->near->device, *far = p->far->device;
  enum rig_mapping is;
  bool reaches = rig_nv_peer(near, far);
  if (rig_nv_alloc(near, RIG_DEVICE, BYTES, &p->own) != 0 ||
      rig_nv_alloc(far, (enum rig_memory)kind, BYTES, &p->theirs) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  int r = rig_nv_map_peer(near, far, p->theirs, &is, &p->view);
  bool ok = r == 0 ? both_ways(p, random)
                   : (kind != RIG_PINNED && !reaches && is == RIG_NEVER_MAPS) ||
                         smoke_failed("map_peer: %d, %s", r, rig_nv_why());
  printf("peers                   GPU %d, %s memory of GPU %d: %s\n",
         p->near->path->index, names[kind], p->far->path->index,
         !ok      ? "FAILED"
         : r == 0 ? "read and written"
                  : rig_nv_why());
  if (r == 0 && rig_nv_free(near, p->view) != 0)
    ok = smoke_failed("free of a view: %s", rig_nv_why());
  if (rig_nv_free(near, p->own) != 0 || rig_nv_free(far, p->theirs) != 0)
    ok = smoke_failed("free: %s", rig_nv_why());
  return ok;
}

/* Near's work waits for a value of far's that is posted later. */
static bool word(struct smoke *near, struct smoke *far) {
  struct rig_nv_region *of = rig_nv_facts(far->device)->own_word, *view;
  enum rig_mapping is;
  uint64_t waits, v = rig_nv_signaled(far->device) + 1, done;
  if (rig_nv_map_peer(near->device, far->device, of, &is, &view) != 0)
    return smoke_failed("map_peer of a word: %s", rig_nv_why());
  struct rig_wait wait = {.at = at(view), .value = v, .kind = RIG_WAIT_WORD};
  struct rig_submission s = {.waits = &wait, .nwaits = 1};
  bool ok = rig_nv_post(near->device, &s, &waits) == 0 ||
            smoke_failed("post: %s", rig_nv_why());
  if (ok && rig_nv_signaled(near->device) == waits)
    ok = smoke_failed("the wait held nothing back");
  ok = ok && smoke_post(far, NULL, 0, &done) && smoke_reach(far, done) &&
       smoke_reach(near, waits);
  if (rig_nv_free(near->device, view) != 0)
    ok = smoke_failed("free of a view: %s", rig_nv_why());
  return ok;
}

static bool both(struct smoke *near, struct smoke *far, struct random *random) {
  struct pair p = {.near = near, .far = far};
  p.sent = malloc(BYTES);
  p.found = malloc(BYTES);
  bool ok = p.sent != NULL && p.found != NULL;
  for (int kind = 0; ok && kind < KINDS; kind++)
    ok = kind_of(&p, kind, random);
  free(p.sent);
  free(p.found);
  return ok && word(near, far);
}

static bool with_second(struct smoke *s, struct smoke *other) {
  struct random random = {s->seed};
  if (!smoke_device_open(other))
    return false;
  bool ok = both(s, other, &random) && both(other, s, &random);
  return smoke_device_close(other) && ok;
}

bool smoke_peers(struct smoke *s) {
  struct smoke other = *s;
  other.gpu = s->path->index + 1;
  int r = smoke_open(&other);
  if (r == -RIG_NV_ABSENT) {
    printf("peers                   none: %s\n", rig_nv_why());
    return true;
  }
  if (r != 0)
    return smoke_failed("open of a second GPU: %s", rig_nv_why());
  bool ok = with_second(s, &other);
  return smoke_path_close(&other) && ok;
}
