/* SPDX-License-Identifier: ISC */
#include "stress/bench/ways.h"

#include <ck_spinlock.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "stress/bench/floor.h"
#include "stress/bench/gpu.h"

const char *const way_names[WAYS] = {"post", "mutex", "spin", "floor"};
const char *const kind_names[KINDS] = {"empty", "copy", "parts"};

enum { PARTS = 64, LINE = 128 };

/* What is submitted; read alone. */
static struct rig_part parts[PARTS];
static struct rig_submission submissions[KINDS];
static struct gpu *gpu;
static struct floor *bottom;
static uint64_t first; /* the last value before way_begin */

static pthread_mutex_t mutex __attribute__((aligned(LINE)));
static ck_spinlock_fas_t spin __attribute__((aligned(LINE)));
static uint64_t last __attribute__((aligned(LINE))); /* under either */

static bool mutex_make(void) {
  pthread_mutexattr_t a;
  if (pthread_mutexattr_init(&a) ||
      pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ADAPTIVE_NP))
    return false;
  return pthread_mutex_init(&mutex, &a) == 0;
}

bool ways_make(void) {
  const uint64_t dst = 0xa0000000, src = 0xb0000000;
  for (unsigned i = 0; i < PARTS; i++)
    parts[i] = (struct rig_part){
        .queue = RIG_COPY0,
        .kind = RIG_COPY,
        .copy = {.dst = dst + 16 * i, .src = src + 16 * i, .bytes = 16}};
  const size_t n[KINDS] = {0, 1, PARTS};
  for (int i = 0; i < KINDS; i++)
    submissions[i] = (struct rig_submission){.parts = parts, .nparts = n[i]};
  gpu = gpu_make();
  bottom = floor_make();
  if (!gpu || !bottom || !mutex_make())
    return false;
  ck_spinlock_fas_init(&spin);
  /* The setup words of both channels. */
  way_begin(WAY_POST, 0);
  (void)way_submit(WAY_POST, KIND_EMPTY);
  (void)way_submit(WAY_POST, KIND_COPY);
  return way_complete(WAY_POST, 2);
}

void way_begin(enum way w, uint64_t multiplies) {
  bottom->multiplies = gpu->multiplies = multiplies;
  last = rings_last(&gpu->rings);
  first = w == WAY_FLOOR ? bottom->count : last;
}

bool way_complete(enum way w, uint64_t n) {
  if (w == WAY_FLOOR)
    return bottom->word == first + n;
  return rings_last(&gpu->rings) == first + n && gpu->word == first + n;
}

uint64_t way_bells(enum way w) {
  return w == WAY_FLOOR ? bottom->count : gpu->rings.seat.bells;
}

static void refused(const char *why) {
  fprintf(stderr, "submit_bench: refused: %s\n", why);
  abort();
}

/* In the lock: RIG_FITS, and submitted; or RIG_LATER. */
static int turn(const struct rig_submission *s) {
  const char *failure;
  int answer = (int)rings_room(&gpu->rings, s);
  if (answer != RIG_FITS)
    return answer;
  if (rings_submit(&gpu->rings, last + 1, s, &failure) != RIG_COMMITTED)
    refused(failure);
  last++;
  return RIG_FITS;
}

static int try(enum way w, const struct rig_submission *s) {
  const char *why = "no room, ever";
  uint64_t v;
  int answer = RIG_FITS;
  switch (w) {
  case WAY_POST:
    answer = rings_post(&gpu->rings, s, &v, &why);
    break;
  case WAY_MUTEX:
    pthread_mutex_lock(&mutex);
    answer = turn(s);
    pthread_mutex_unlock(&mutex);
    break;
  case WAY_SPIN:
    ck_spinlock_fas_lock(&spin);
    answer = turn(s);
    ck_spinlock_fas_unlock(&spin);
    break;
  default:
    floor_submit(bottom);
  }
  if (answer != RIG_FITS && answer != RIG_LATER)
    refused(why);
  return answer;
}

uint64_t way_submit(enum way w, enum kind k) {
  const uint64_t patience = 64;
  uint64_t laters = 0;
  while (try(w, &submissions[k]) != RIG_FITS) {
    /* The rings are full of values behind a thread that has stopped: where
     * threads outnumber cores, it may wait for this one's. */
    if (laters++ < patience)
      ck_pr_stall();
    else
      sched_yield();
  }
  return laters;
}
