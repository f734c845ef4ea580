/* SPDX-License-Identifier: ISC */
#include "core/api/why.h"
#include "core/device.h"
#include "core/lock_order/lock_order.h"
#include "paths/call.h"

/* The RM stops a channel that it reports an error for. */
static bool both_stopped(const struct rig_nv *d) {
  for (int q = 0; q < QUEUES; q++)
    if (channels_error(d->layout, &d->channels, q) == 0)
      return false;
  return true;
}

/* Gives back what the device itself holds of the path, once nothing runs. */
static int give_back(struct rig_nv *d) {
  int fault = 0, e = channels_free_memory(d->path, &d->channels);
  if (e != 0)
    fault = e;
  struct rig_nv_memory *all[] = {&d->joins, &d->word_map};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    e = path_free(d->path, all[i]);
    if (e != 0)
      fault = e;
  }
  if (d->staging) {
    e = region_end(d->staging);
    d->staging = NULL;
    if (e != 0)
      fault = e;
  }
  return fault;
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
    return 0;
  ck_pr_store_32(&d->stopped, 1);
  bool gone = channels_end(d->path, &d->channels, &dropped);
  flush_end(&d->flush); /* other devices read its word no more */
  bool stopped = d->path->stop(d->path->ctx) == RIG_NV_STOPPED;
  bool silent = gone || stopped;
  if (silent || both_stopped(d))
    rig_word_raise(d->facts.word, d->rings.last.v);
  d->host.release(d->host.ctx, d->rings.marks.at,
                  d->rings.marks.n * sizeof *d->rings.marks.at);
  d->rings.marks.at = NULL;
  return silent ? give_back(d) : 0;
}

int rig_nv_release(struct rig_nv *d) {
  int e = rig_nv_lock_idle();
  if (e != 0)
    return e;
  if (!shared_load_32(&d->stopped))
    return why(RIG_NV_INVALID, "release: the device is not stopped");
  uint64_t own = (d->own_word != NULL) + (d->staging != NULL);
  uint64_t live = shared_load_64(&d->regions) - own;
  if (live != 0)
    return why(RIG_NV_INVALID, "release: %llu regions are not freed",
               (unsigned long long)live);
  uint64_t views = d->own_word ? shared_load_64(&d->own_word->views) : 0;
  if (views != 0)
    return why(RIG_NV_INVALID, "release: %llu views of its word are not freed",
               (unsigned long long)views);
  if (d->own_word && !rig_reached(rig_nv_signaled(d), d->rings.last.v))
    return why(RIG_NV_INVALID, "release: the word has not reached the last "
                               "value: work of the device may still write it");
  if (d->own_word)
    e = region_end(d->own_word);
  struct rig_nv_allocator host = d->host;
  if (d->staging) /* its memory stays: work may still use it */
    host.release(host.ctx, d->staging, sizeof *d->staging);
  host.release(host.ctx, d, sizeof *d);
  return e;
}
