/* SPDX-License-Identifier: ISC */
#include "stress/bench/ways.h"

#include <ck_spinlock.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/abi/gpfifo.h"
#include "core/abi/method.h"
#include "stress/bench/floor.h"
#include "stress/bench/gpu.h"
#include "stress/bench/peer.h"
#include "stress/bench/swap.h"

const char *const way_names[WAYS] = {"post",     "mutex", "spin",
                                     "rte_ring", "turn",  "bare",
                                     "floor",    "swap",  "swap+node"};
const char *const kind_names[KINDS] = {"empty", "copy", "parts"};

enum { PARTS = 64, LINE = 128 };

/* What is submitted; read alone. */
static struct rig_part parts[PARTS];
static struct rig_submission submissions[KINDS];
static struct gpu *gpu;
static struct floor *bottom;
static struct peer *peer;
static struct swap *swap;

/* What a post of each kind writes to its rings behind a value that its channel
 * released: copies, the release, and an entry. */
enum {
  ENTRY_BYTES = NVC56F_GP_ENTRY_SIZE,
  RELEASE_BYTES = ABI_COPY_RELEASE_WORDS * 4,
  COPY_BYTES = ABI_COPY_WORDS * 4
};
static const uint32_t peer_bytes[KINDS] = {
    [KIND_EMPTY] = ABI_RELEASE_WORDS * 4 + ENTRY_BYTES,
    [KIND_COPY] = COPY_BYTES + RELEASE_BYTES + ENTRY_BYTES,
    [KIND_PARTS] = PARTS * COPY_BYTES + RELEASE_BYTES + ENTRY_BYTES};
_Static_assert((int)KINDS == (int)PEER_RINGS, "a ring of the peer's each");
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
  swap = swap_make();
  if (!gpu || !bottom || !swap || !mutex_make())
    return false;
  peer = peer_make(peer_bytes);
  if (peer_built() && !peer)
    return false;
  ck_spinlock_fas_init(&spin);
  /* The setup words of both channels. */
  uint64_t v;
  way_begin(WAY_POST, 0, false);
  (void)way_submit(WAY_POST, KIND_EMPTY, &v);
  (void)way_submit(WAY_POST, KIND_COPY, &v);
  return way_complete(WAY_POST, 2);
}

bool way_built(enum way w) { return w != WAY_RTE_RING || peer_built(); }

bool way_single(enum way w) {
  return w == WAY_TURN || w == WAY_BARE || w == WAY_FLOOR;
}

static bool on_floor(enum way w) { return w == WAY_BARE || w == WAY_FLOOR; }

static bool is_swap(enum way w) { return w == WAY_SWAP || w == WAY_SWAP_NODE; }

void way_begin(enum way w, uint64_t multiplies, bool stamps) {
  bottom->multiplies = gpu->multiplies = multiplies;
  last = rings_last(&gpu->rings);
  gpu->stamps = stamps;
  gpu->stamped = last;
  if (is_swap(w))
    swap_begin(swap);
  first = on_floor(w)         ? bottom->count
          : w == WAY_RTE_RING ? peer_count(peer)
          : is_swap(w)        ? swap_count(swap)
                              : last;
}

/* The peer counts 32 bits. */
bool way_complete(enum way w, uint64_t n) {
  if (on_floor(w))
    return bottom->word == first + n;
  if (w == WAY_RTE_RING)
    return peer_count(peer) == (uint32_t)(first + n);
  if (is_swap(w))
    return swap_count(swap) == first + n;
  return rings_last(&gpu->rings) == first + n && gpu->word == first + n;
}

uint64_t way_bells(enum way w) {
  return on_floor(w)         ? bottom->count
         : w == WAY_RTE_RING ? peer_count(peer)
         : is_swap(w)        ? 0
                             : gpu->rings.seat.bells;
}

enum gpu_stamped way_stamp(uint64_t v, uint64_t *shown, uint64_t *released) {
  return gpu_stamp(gpu, v, shown, released);
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

static int try(enum way w, enum kind k, uint64_t *v) {
  const struct rig_submission *s = &submissions[k];
  const char *why = "no room, ever";
  int answer = RIG_FITS;
  switch (w) {
  case WAY_POST:
    answer = rings_post(&gpu->rings, s, v, &why);
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
  case WAY_TURN:
    answer = turn(s);
    break;
  case WAY_RTE_RING:
    peer_submit(peer, k, gpu->multiplies);
    break;
  case WAY_BARE:
    floor_encode(bottom, s);
    break;
  case WAY_SWAP:
  case WAY_SWAP_NODE:
    swap_submit(swap, w == WAY_SWAP_NODE);
    break;
  default:
    floor_submit(bottom);
  }
  if (answer != RIG_FITS && answer != RIG_LATER)
    refused(why);
  return answer;
}

uint64_t way_submit(enum way w, enum kind k, uint64_t *v) {
  const uint64_t patience = 64;
  uint64_t laters = 0;
  while (try(w, k, v) != RIG_FITS) {
    /* The rings are full of values behind a thread that has stopped: where
     * threads outnumber cores, it may wait for this one's. */
    if (laters++ < patience)
      ck_pr_stall();
    else
      sched_yield();
  }
  return laters;
}
