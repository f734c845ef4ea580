/* SPDX-License-Identifier: ISC */
#ifndef CORE_IMAGE_H
#define CORE_IMAGE_H
/*
 * Images: loaded code. An image keeps its cubin, and a record of each function
 * that was made ready to launch.
 *
 *   load --lay--> laid --entry f, prepare f--> stays where it lies --unload-->
 *                 |  ^
 *                 `--'  lay elsewhere
 *
 *   a function:
 *
 *     none --entry makes it-----------------------> made
 *     ^  |                                           ^
 *     |  `--prepare--> started --its thread ends-----+
 *     |                                              |
 *     `----------------dropped-------------------- failed
 *
 * A thread is joined, and a failed function dropped, by the next entry of the
 * function, lay, unload or stop, which wait for it. A prepare joins threads
 * that have ended, and so waits for none.
 *
 * Locks: an image's own, which all but prepare hold for the whole call; inside
 * it, for moments, struct images's, for what prepare and its threads touch. So
 * prepare waits for no other call's work.
 */
#include <pthread.h>

#include "core/cubin/cubin.h"
#include "core/lock_order/lock_order.h"
#include "paths/path.h"
#include "rings/launch.h"

enum {
  /* The rank of struct images's lock: after an image's, before the local
   * memory's. */
  IMAGES_RANK = RIG_NV_RANK_IMAGE + 50,
  /* Prepares of one image that run at once; one more does nothing. */
  IMAGE_MOST_PREPARES = 8
};

/* A device's. */
struct images {
  struct rig_nv_lock lock;
  bool made;                  /* the lock is */
  struct rig_nv_image *first; /* those that live; under the lock */
};

enum function_state { FUNCTION_STARTED, FUNCTION_MADE, FUNCTION_FAILED };

/* Belongs to its thread while that makes it; does not change from MADE to
 * unload. */
struct function {
  struct launch launch; /* first: aligned to a cache line */
  struct rig_nv_image *image;
  struct cubin_kernel kernel;
  /* The rest under struct images's lock. */
  struct function *next;
  enum function_state state;
  bool thread_live; /* not yet joined */
  bool claimed;     /* somebody waits for it, and joins it */
  pthread_t thread;
};

struct rig_nv_image {
  struct rig_nv_lock lock;
  struct rig_nv *device;
  unsigned char *bytes; /* the cubin's, n of them */
  size_t n;
  struct cubin cubin;
  const struct limits *limits;
  enum qmd_version version;
  /* The rest under struct images's lock. */
  struct rig_nv_image *next, **prev;
  uint64_t base; /* where it was laid; changes with no function on the list */
  bool laid;
  const char *making; /* what entry makes: no prepare starts it */
  struct function *functions;
};

/* A function's name in reasons. */
#define FUNCTION_NAME "%.200s"

/* Of make. 0, or INVALID where the system makes no lock; unmake also of what
 * was never made. */
int images_make(struct rig_nv *);
void images_unmake(struct rig_nv *);
/* Of stop: waits for every started prepare. */
void images_stop(struct rig_nv *);
/* How many live. */
uint64_t images_live(struct rig_nv *);

/* Takes and gives struct images's lock. Callers of the first hold no lock, or
 * an image's. */
void images_enter(struct rig_nv *);
void images_leave(struct rig_nv *);
/* Under that lock, which it gives and takes again: joins the image's threads,
 * and drops what they failed at. */
void image_wait(struct rig_nv_image *);

/* A record of a kernel of the image's, or NULL with rig_nv_why set. */
struct function *function_new(struct rig_nv_image *,
                              const struct cubin_kernel *);
void function_free(struct function *);
/* Makes it ready to launch. 0; INVALID: it takes more than a launch can; the
 * errors of local_grow, with *bytes for SHORT. A failure made nothing. */
int function_make(struct function *, uint64_t *bytes);
#endif
