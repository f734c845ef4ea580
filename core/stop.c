/* SPDX-License-Identifier: ISC */
#include "core/api/why.h"
#include "core/device.h"
#include "core/lock_order/lock_order.h"
#include "paths/call.h"

/* The word, by a stop that is called again: once the RM reported an error for
 * the channels that the first one left. */
static int again(struct rig_nv *d) {
  if (d->owed && growth_stopped(&d->growth)) {
    d->owed = false;
    rig_word_raise(d->facts.word, rings_last(&d->rings));
  }
  return 0;
}

/* The staging regions, the free one on top of the stuck. */
static struct rig_nv_region *take_staging(struct rig_nv *d) {
  struct rig_nv_region *all = d->stuck;
  if (d->staging) {
    d->staging->next = all;
    all = d->staging;
  }
  d->staging = d->stuck = NULL;
  return all;
}

/* Gives the staging regions back; the last fault, or the one before. */
static int fault_of_staging(struct rig_nv *d, int fault) {
  for (struct rig_nv_region *r = take_staging(d), *next; r; r = next) {
    next = r->next;
    int e = region_end(r);
    if (e != 0)
      fault = e;
  }
  return fault;
}

/* Gives back what else the device itself holds of the path, once nothing runs;
 * the last fault, or the one before. */
static int give_back(struct rig_nv *d, int fault) {
  struct rig_nv_memory *all[] = {&d->joins, &d->word_map};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    int e = path_free(d->path, all[i]);
    if (e != 0)
      fault = e;
  }
  return fault_of_staging(d, fault);
}

/*
 * The word is raised only where no work can write it later: where the channels
 * are gone, or the path stopped, or both notifiers hold an error. Elsewhere
 * the channels' own releases bring it to the last value, and what they use
 * stays allocated for the life of the process.
 */
int rig_nv_stop(struct rig_nv *d, const char *fault) {
  struct rig_nv_reply dropped = {0};
  (void)fault; /* the caller's, who knows it */
  int e = rig_nv_lock_idle();
  if (e != 0)
    return e;
  if (shared_load_32(&d->stopped))
    return again(d);
  ck_pr_store_32(&d->stopped, 1);
  ck_pr_store_32(&d->mode, MODE_STOPPED);
  images_stop(d);
  bool gone = growth_end(&d->growth, &dropped);
  flush_end(&d->flush); /* other devices read its word no more */
  bool stopped = d->path->stop(d->path->ctx) == RIG_NV_STOPPED;
  bool silent = gone || stopped;
  /* Freed: also where a registration stays. The RM stops a channel that it
   * reports an error for. */
  d->owed = !growth_freed(&d->growth) && !silent && !growth_stopped(&d->growth);
  if (!d->owed)
    rig_word_raise(d->facts.word, rings_last(&d->rings));
  d->host.release(d->host.ctx, d->rings.marks.at,
                  d->rings.marks.n * sizeof *d->rings.marks.at);
  d->rings.marks.at = NULL;
  int local = local_end(d, silent); /* else work may still use it */
  d->records = d->owed;             /* whose notifiers a second call looks at */
  e = d->records ? 0 : growth_free(&d->growth, silent, silent);
  e = silent ? give_back(d, e) : 0;
  return e != 0 ? e : local;
}

int rig_nv_release(struct rig_nv *d) {
  int e = rig_nv_lock_idle();
  if (e != 0)
    return e;
  if (!shared_load_32(&d->stopped))
    return why(RIG_NV_INVALID, "release: the device is not stopped");
  uint64_t images = images_live(d);
  if (images != 0)
    return why(RIG_NV_INVALID, "release: %llu images are not unloaded",
               (unsigned long long)images);
  uint64_t own = d->own_word != NULL;
  for (struct rig_nv_region *r = d->stuck; r; r = r->next)
    own++;
  own += d->staging != NULL;
  uint64_t live = shared_load_64(&d->regions) - own - later_count(d);
  if (live != 0)
    return why(RIG_NV_INVALID, "release: %llu regions are not freed",
               (unsigned long long)live);
  uint64_t views = d->own_word ? shared_load_64(&d->own_word->views) : 0;
  if (views != 0)
    return why(RIG_NV_INVALID, "release: %llu views of its word are not freed",
               (unsigned long long)views);
  bool pending = d->own_word != NULL || d->later != NULL;
  if (pending && !rig_reached(rig_nv_signaled(d), rings_last(&d->rings)))
    return why(RIG_NV_INVALID, "release: the word has not reached the last "
                               "value: work of the device may still write it");
  e = later_free(d, true);
  if (d->own_word) {
    int f = region_end(d->own_word);
    e = f != 0 ? f : e;
  }
  struct rig_nv_allocator host = d->host;
  /* Left where the channels did not go: their memory stays, for work may
   * still use it. */
  for (struct rig_nv_region *r = take_staging(d), *next; r; r = next) {
    next = r->next;
    host.release(host.ctx, r, sizeof *r);
  }
  if (d->records)
    (void)growth_free(&d->growth, false, false); /* gives no memory back */
  images_unmake(d);
  local_unmake(d);
  host.release(host.ctx, d, sizeof *d);
  return e;
}
