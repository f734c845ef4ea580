/* SPDX-License-Identifier: ISC */
#include "growth/growth.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/api/why.h"
#include "paths/call.h"
#include "rings/plant.h"
#include "rings/point.h"
#include "rings/rcu.h"

/* ---- make ---- */

/* A set, and its rings' description in `ring`. On failure, what stays of it is
 * in *channels. */
static int make_channels(const struct growth *g, const uint32_t entries[QUEUES],
                         struct channels *c, struct ring_channel ring[QUEUES]) {
  struct ring_channel made[QUEUES];
  memcpy(made, ring, sizeof made);
  int e = channels_make(g->path, g->layout, entries, &g->at, c, made);
  if (e != 0)
    return e;
  e = channels_schedule(g->path, g->layout, c);
  if (e != 0)
    return channels_undo(g->path, c, e);
  memcpy(ring, made, sizeof made);
  return 0;
}

/* What GP_PUT pushes, or does not, of the rings that the generation has. */
static void lies(const struct growth *g, struct ring_generation *n) {
  n->put_pushes = g->path->put_mapped && n->channel[0].put_mapped;
  n->mapped = n->channel[0].entries_mapped;
  for (int q = 0; q < QUEUES; q++)
    n->mapped |= n->channel[q].segments_mapped;
}

int growth_open(struct growth *g, struct rings *r,
                const struct growth_sizes *z) {
  static uint64_t serials;
  struct growth_record *first = &g->first;
  int e = rig_nv_lock_init(&g->lock, &rig_nv_lock_growth);
  if (e != 0)
    return e;
  g->rings = r;
  g->newest = first;
  e = place_launches(g->path, g->at.launches, z->launch_bytes, &first->launches,
                     &first->ring.launches);
  for (int q = 0; e == 0 && q < QUEUES; q++)
    e = place_segments(g->path, g->at.segments, z->segment_bytes[q],
                       &first->segments[q], &first->ring.channel[q]);
  if (e == 0) {
    e = channels_make(g->path, g->layout, z->entries, &g->at, &first->channels,
                      first->ring.channel);
    if (e != 0) /* it gave back what it could, and said what stays */
      memset(&first->channels, 0, sizeof first->channels);
  }
  lies(g, &first->ring);
  r->serial = ck_pr_faa_64(&serials, 1) + 1;
  r->newest = &first->ring; /* before any other thread */
  return e;
}

int growth_schedule(struct growth *g) {
  return channels_schedule(g->path, g->layout, &g->first.channels);
}

/* ---- give back ---- */

/* The generation of the word's value. Its mark is gone only where the word
 * moves on by all of the marks meanwhile; 0 then, which replaced nothing. */
static uint8_t reached(const struct growth *g) {
  struct cursor c;
  if (PLANTED(RING_PLANT_NO_TIMELINE))
    return UINT8_MAX;
  for (int i = 0; i < 4; i++) {
    /* Partner: the GPU's release. */
    uint64_t word = shared_load_acquire_64(g->rings->word);
    if (mark_read(&g->rings->marks, word, &c))
      return c.generation;
  }
  return 0;
}

static struct growth_record *older(const struct growth_record *r) {
  return (struct growth_record *)(uintptr_t)
      r->ring.older; /* its first member */
}

/* Frees one memory; the last fault, or the one before. */
static int free_memory(const struct growth *g, struct rig_nv_memory *m,
                       int fault) {
  int e = path_free(g->path, m);
  return e != 0 ? e : fault;
}

/* What does not end stays until stop, which tries once more: the set, or its
 * debugger alone, which names no memory. */
static int end_channels(const struct growth *g, struct growth_record *r) {
  struct rig_nv_reply stays = {0};
  int e = 0;
  if (channels_end(g->path, &r->channels, &stays))
    e = channels_free_memory(g->path, &r->channels);
  else
    ck_pr_store_32(&r->ended, 0);
  if (e == 0 && stays.text[0] != 0)
    e = why(RIG_NV_FAULT, "of channels that a growth replaced, some stays: %s",
            stays.text);
  return e;
}

static int give(struct growth *g, struct growth_record *r, int piece,
                int fault) {
  int e = 0;
  if (piece == GROWTH_LAUNCHES)
    e = path_free(g->path, &r->launches);
  else if (piece == GROWTH_CHANNELS)
    e = end_channels(g, r);
  else
    e = path_free(g->path, &r->segments[piece - GROWTH_SEGMENTS]);
  r->replaced[piece] = 0;
  ck_pr_dec_32(&g->waiting);
  return e != 0 ? e : fault;
}

/* Whether the piece is replaced, and its work reached. */
static bool done(const struct growth_record *r, int piece, uint8_t upto) {
  if (PLANTED(RING_PLANT_LAUNCHES_EARLY) && piece == GROWTH_LAUNCHES)
    return r->replaced[piece] != 0;
  return r->replaced[piece] != 0 && r->replaced[piece] <= upto;
}

/* How many pieces are done with; their sets are about to end. */
static unsigned count_done(struct growth *g, uint8_t upto) {
  unsigned n = 0;
  for (struct growth_record *r = g->newest; r; r = older(r))
    for (int p = 0; p < GROWTH_PIECES; p++)
      if (done(r, p, upto)) {
        if (p == GROWTH_CHANNELS)
          ck_pr_store_32(&r->ended, 1); /* partner: growth_errors */
        n++;
      }
  return n;
}

/* With the lock: what was replaced and is done with, by now. */
static int give_back(struct growth *g) {
  int fault = 0;
  if (shared_load_32(&g->waiting) == 0)
    return 0;
  uint8_t upto = reached(g);
  if (count_done(g, upto) == 0)
    return 0;
  /* After the timeline came so far, not beside it: the threads that reserved
   * on these rings, or looked at them, before that. */
  if (!PLANTED(RING_PLANT_NO_GRACE))
    ring_rcu_synchronize();
  for (struct growth_record *r = g->newest; r; r = older(r))
    for (int p = 0; p < GROWTH_PIECES; p++)
      if (done(r, p, upto))
        fault = give(g, r, p, fault);
  return fault;
}

int growth_give_back(struct growth *g) {
  if (shared_load_32(&g->waiting) == 0)
    return 0;
  int e = rig_nv_lock_take(&g->lock);
  if (e != 0)
    return e;
  e = give_back(g);
  rig_nv_lock_give(&g->lock);
  return e;
}

/* ---- grow ---- */

/* The piece of the generation before, which `id` replaces. */
static void replace(struct growth *g, uint8_t born, int piece, uint8_t id) {
  struct growth_record *r = g->newest;
  while (r->ring.id != born)
    r = older(r);
  bool stays = piece == GROWTH_CHANNELS ? !g->path->rm.frees : r == &g->first;
  if (stays)
    return;
  r->replaced[piece] = id;
  ck_pr_inc_32(&g->waiting);
}

/* With the lock. Of the record's rings, those born with it are new. */
static void publish(struct growth *g, struct growth_record *r) {
  const struct ring_generation *now = &g->newest->ring, *next = &r->ring;
  if (next->launches.born == next->id && now->launches.units != 0)
    replace(g, now->launches.born, GROWTH_LAUNCHES, next->id);
  for (int q = 0; q < QUEUES; q++)
    if (next->channel[q].segments_born == next->id)
      replace(g, now->channel[q].segments_born, GROWTH_SEGMENTS + q, next->id);
  if (next->channels_born == next->id)
    replace(g, now->channels_born, GROWTH_CHANNELS, next->id);
  g->newest = r;
  /* Partner: ring_rcu_dereference of who reserves and who shows. */
  ring_rcu_assign(&g->rings->newest, next);
}

static uint64_t sum(uint64_t a, uint64_t b) {
  return a + b < a ? UINT64_MAX : a + b;
}

/* Bytes of what is to be made and was not. */
static uint64_t lacking(const struct growth_sizes *z) {
  uint64_t n = z->launch_bytes;
  for (int q = 0; q < QUEUES; q++)
    n = sum(n, sum(z->segment_bytes[q], (uint64_t)z->entries[q] * 8));
  return n;
}

static int no_ring(void) {
  return why(RIG_NV_NO_MEMORY, "no ring is as large as the parts need");
}

/* Makes one piece after the other, and takes each out of *z; how many. */
static int make_pieces(const struct growth *g, struct growth_sizes *z,
                       struct growth_record *r, unsigned *made) {
  struct ring_generation *n = &r->ring;
  int e = 0;
  if (z->launch_bytes != 0) {
    e = z->launch_bytes == UINT64_MAX
            ? no_ring()
            : place_launches(g->path, g->at.launches, z->launch_bytes,
                             &r->launches, &n->launches);
    if (e != 0)
      return e;
    n->launches.born = n->id;
    z->launch_bytes = 0;
    ++*made;
  }
  for (int q = 0; q < QUEUES; q++) {
    if (z->segment_bytes[q] == 0)
      continue;
    e = z->segment_bytes[q] == UINT64_MAX
            ? no_ring()
            : place_segments(g->path, g->at.segments, z->segment_bytes[q],
                             &r->segments[q], &n->channel[q]);
    if (e != 0)
      return e;
    n->channel[q].segments_born = n->id;
    z->segment_bytes[q] = 0;
    ++*made;
  }
  if (z->entries[0] == 0)
    return 0;
  e = make_channels(g, z->entries, &r->channels, n->channel);
  if (e != 0)
    return e;
  n->channels_born = n->id;
  z->entries[0] = z->entries[1] = 0;
  ++*made;
  return 0;
}

static void discard(const struct growth *g, struct growth_record *r) {
  g->host.release(g->host.ctx, r, sizeof *r);
}

/* What a failed growth could not give back is stop's. */
static void keep_failed(struct growth *g, struct growth_record *r) {
  if (r->channels.group == 0 && r->channels.block.bytes == 0 &&
      r->channels.notifier[0].bytes == 0) {
    discard(g, r);
    return;
  }
  r->next = g->failed;
  g->failed = r;
}

static struct growth_record *record(const struct growth *g) {
  const struct ring_generation *now = &g->newest->ring;
  struct growth_record *r =
      g->host.alloc(g->host.ctx, _Alignof(struct growth_record), sizeof *r);
  if (r == NULL) {
    why(RIG_NV_HOST_MEMORY, "the host allocator has no %zu bytes", sizeof *r);
    return NULL;
  }
  memset(r, 0, sizeof *r);
  r->ring = *now;
  r->ring.id = now->id + 1;
  r->ring.older = now;
  return r;
}

/* With the lock. */
static int build(struct growth *g, const struct ring_need *need,
                 uint64_t *bytes) {
  const struct ring_generation *now = &g->newest->ring;
  struct growth_sizes z;
  unsigned made = 0;
  growth_sizes_for(now, need, &z);
  *bytes = lacking(&z);
  if (*bytes == 0)
    return 0;
  if (now->id == RING_MOST_GENERATION)
    return why(RIG_NV_SHORT, "grow: %d generations, the most there may be",
               RING_MOST_GENERATION + 1);
  struct growth_record *r = record(g);
  if (r == NULL)
    return -RIG_NV_HOST_MEMORY;
  int e = make_pieces(g, &z, r, &made);
  *bytes = lacking(&z);
  lies(g, &r->ring);
  if (made != 0)
    publish(g, r);
  else
    keep_failed(g, r);
  if (e == -RIG_NV_REFUSED || e == -RIG_NV_INVALID)
    e = -RIG_NV_FAULT; /* grow has no answer for it */
  return e == -RIG_NV_NO_MEMORY ? -RIG_NV_SHORT : e;
}

int growth_grow(struct growth *g, const struct ring_need *need,
                uint64_t *bytes) {
  char text[1024];
  int e = rig_nv_lock_take(&g->lock);
  if (e != 0)
    return e;
  int fault = give_back(g);
  snprintf(text, sizeof text, "%s", fault != 0 ? rig_nv_why() : "");
  e = build(g, need, bytes);
  rig_nv_lock_give(&g->lock);
  /* Another failure is reported in the fault's place. */
  if (fault != 0 && (e == 0 || e == -RIG_NV_SHORT))
    e = why(RIG_NV_FAULT, "%s", text);
  return e;
}

/* ---- faults ---- */

unsigned growth_errors(const struct growth *g, struct growth_error *error,
                       unsigned most) {
  unsigned n = 0;
  ring_rcu_lock();
  const struct ring_generation *ring = ring_rcu_dereference(&g->rings->newest);
  for (; ring; ring = ring->older) {
    const struct growth_record *r = (const struct growth_record *)ring;
    if (ring->channels_born != ring->id || shared_load_32(&r->ended))
      continue;
    RING_POINT(NOTIFIER);
    for (int q = 0; q < QUEUES && n < most; q++) {
      uint64_t is = channels_error(g->layout, &r->channels, q);
      if (is != 0)
        error[n++] = (struct growth_error){is, r->channels.debugger,
                                           r->channels.channel[RIG_COMPUTE0]};
    }
  }
  ring_rcu_unlock();
  return n;
}

/* ---- stop ---- */

bool growth_end(struct growth *g, struct rig_nv_reply *why) {
  bool gone = true;
  for (struct growth_record *r = g->newest; r; r = older(r))
    gone &= channels_end(g->path, &r->channels, why);
  for (struct growth_record *r = g->failed; r; r = r->next)
    gone &= channels_end(g->path, &r->channels, why);
  return gone;
}

bool growth_freed(const struct growth *g) {
  uint32_t group = 0;
  for (const struct growth_record *r = g->newest; r; r = older(r))
    group |= r->channels.group;
  for (const struct growth_record *r = g->failed; r; r = r->next)
    group |= r->channels.group;
  return group == 0;
}

bool growth_stopped(const struct growth *g) {
  const struct growth_record *r = g->newest;
  struct cursor last;
  tail_last(&g->rings->tail, &last);
  while (r->ring.id > last.generation)
    r = older(r);
  for (uint8_t born = r->ring.channels_born; r->ring.id != born;)
    r = older(r);
  for (int q = 0; q < QUEUES; q++)
    if (channels_error(g->layout, &r->channels, q) == 0)
      return false;
  return true;
}

static int free_record(struct growth *g, struct growth_record *r, bool channels,
                       bool rings) {
  int fault = channels ? channels_free_memory(g->path, &r->channels) : 0;
  if (rings) {
    fault = free_memory(g, &r->launches, fault);
    for (int q = 0; q < QUEUES; q++)
      fault = free_memory(g, &r->segments[q], fault);
  }
  if (r != &g->first)
    discard(g, r);
  return fault;
}

int growth_free(struct growth *g, bool channels, bool rings) {
  int fault = 0;
  if (g->newest == NULL) /* never opened */
    return 0;
  for (struct growth_record *r = g->newest, *next; r; r = next) {
    next = older(r);
    int e = free_record(g, r, channels, rings);
    fault = e != 0 ? e : fault;
  }
  for (struct growth_record *r = g->failed, *next; r; r = next) {
    next = r->next;
    int e = free_record(g, r, channels, rings);
    fault = e != 0 ? e : fault;
  }
  g->newest = &g->first;
  g->failed = NULL;
  g->rings->newest = &g->first.ring; /* after every other thread */
  rig_nv_lock_fini(&g->lock);
  return fault;
}
