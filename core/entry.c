/* SPDX-License-Identifier: ISC */
/*
 * Entries: the functions of an image that are ready to launch, and prepares,
 * which make them in threads of their own. image.h draws a function's life.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "core/api/why.h"
#include "core/device.h"

/* ---- the list: under struct images's lock ---- */

/* Where the function's link is, or the list's end. */
static struct function **find(struct rig_nv_image *i, const char *name) {
  struct function **at = &i->functions;
  while (*at && strcmp((*at)->kernel.name, name) != 0)
    at = &(*at)->next;
  return at;
}

static void link_function(struct rig_nv_image *i, struct function *f) {
  f->next = i->functions;
  i->functions = f;
}

static void join(struct function *f) {
  RING_ASSERT(pthread_join(f->thread, NULL) == 0);
  f->thread_live = false;
}

/* Joins the function's thread, however long that takes, without the lock. */
static void wait_for(struct function *f) {
  struct rig_nv *d = f->image->device;
  f->claimed = true;
  images_leave(d);
  RING_ASSERT(pthread_join(f->thread, NULL) == 0);
  images_enter(d);
  f->claimed = f->thread_live = false;
}

void image_wait(struct rig_nv_image *i) {
  struct function **at = &i->functions;
  while (*at) {
    if ((*at)->thread_live) {
      wait_for(*at);
      at = &i->functions; /* it may have changed meanwhile */
    } else if ((*at)->state == FUNCTION_FAILED) {
      struct function *f = *at;
      *at = f->next;
      function_free(f);
    } else {
      at = &(*at)->next;
    }
  }
}

/* ---- entry ---- */

/* The function that was made, also by a prepare, which is waited for; or NULL,
 * and the caller makes it. */
static struct function *made(struct rig_nv_image *i, const char *name) {
  images_enter(i->device);
  struct function *f = *find(i, name);
  if (f && f->thread_live)
    wait_for(f);
  if (f && f->state == FUNCTION_FAILED) {
    *find(i, name) = f->next;
    function_free(f);
    f = NULL;
  }
  if (f == NULL)
    i->making = name;
  images_leave(i->device);
  return f;
}

static int make_new(struct rig_nv_image *i, const char *name,
                    struct function **out, uint64_t *bytes) {
  struct cubin_kernel k;
  if (cubin_kernel(&i->cubin, name, &k) != 0)
    return why(RIG_NV_ABSENT, "entry: the image has no function " FUNCTION_NAME,
               name);
  if (!i->laid)
    return why(RIG_NV_INVALID, "entry: the image was not laid");
  struct function *f = function_new(i, &k);
  if (f == NULL)
    return -RIG_NV_HOST_MEMORY;
  int e = function_make(f, bytes);
  if (e != 0) {
    function_free(f);
    return e;
  }
  f->state = FUNCTION_MADE;
  *out = f;
  return 0;
}

/* With the image's lock. */
static int find_or_make(struct rig_nv_image *i, const char *name,
                        struct function **out, uint64_t *bytes) {
  *out = made(i, name);
  if (*out != NULL)
    return 0;
  int e = make_new(i, name, out, bytes);
  images_enter(i->device);
  if (e == 0)
    link_function(i, *out);
  i->making = NULL;
  images_leave(i->device);
  return e;
}

int rig_nv_entry(struct rig_nv_image *i, const char *name,
                 struct rig_nv_function *out, uint64_t *need) {
  struct function *f;
  int e = device_enter(i->device);
  if (e == 0)
    e = rig_nv_lock_take(&i->lock);
  if (e != 0)
    return e;
  e = find_or_make(i, name, &f, need);
  if (e == 0)
    *out = (struct rig_nv_function){.code = i->base + f->kernel.code.offset,
                                    .launch = &f->launch,
                                    .params = f->launch.params_bytes,
                                    .threads = f->launch.threads};
  rig_nv_lock_give(&i->lock);
  return device_lose(i->device, e);
}

/* ---- prepare ---- */

static void *prepare(void *arg) {
  struct function *f = arg;
  struct rig_nv *d = f->image->device;
  int e = function_make(f, NULL);
  images_enter(d);
  f->state = e == 0 ? FUNCTION_MADE : FUNCTION_FAILED;
  images_leave(d);
  return NULL;
}

/* The thread takes none of the program's signals, but those of its own
 * mistakes. */
static bool start(struct function *f) {
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  sigset_t all, before;
  sigfillset(&all);
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
    sigdelset(&all, own[i]);
  if (pthread_sigmask(SIG_BLOCK, &all, &before) != 0)
    return false;
  int error = pthread_create(&f->thread, NULL, prepare, f);
  RING_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
  return error == 0;
}

/* Under struct images's lock: joins threads that are at their end; how many
 * others there are. */
static unsigned running(struct rig_nv_image *i) {
  unsigned n = 0;
  for (struct function *f = i->functions; f; f = f->next) {
    if (f->thread_live && !f->claimed && f->state != FUNCTION_STARTED)
      join(f);
    n += f->thread_live;
  }
  return n;
}

/* Under struct images's lock. */
static bool may_start(struct rig_nv_image *i, const char *name) {
  return i->laid && *find(i, name) == NULL &&
         (i->making == NULL || strcmp(i->making, name) != 0) &&
         running(i) < IMAGE_MOST_PREPARES;
}

static void try_prepare(struct rig_nv_image *i, const char *name) {
  struct cubin_kernel k;
  if (device_enter(i->device) != 0 || cubin_kernel(&i->cubin, name, &k) != 0)
    return;
  images_enter(i->device);
  if (may_start(i, name)) {
    struct function *f = function_new(i, &k);
    if (f != NULL) {
      f->state = FUNCTION_STARTED;
      f->thread_live = start(f);
      if (f->thread_live)
        link_function(i, f);
      else
        function_free(f);
    }
  }
  images_leave(i->device);
}

void rig_nv_prepare(struct rig_nv_image *i, const char *name) {
  char reason[1024]; /* of the thread's last failure, which this is not */
  snprintf(reason, sizeof reason, "%s", rig_nv_why());
  try_prepare(i, name);
  (void)why(RIG_NV_INVALID, "%s", reason);
}
