/* SPDX-License-Identifier: ISC */
#include "stress/post_run.h"

#include <assert.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/device.h"
#include "rings/rcu.h"
#include "stress/random.h"

enum {
  MOST_PARTS = 65 + BULK_MOST_PARTS, /* a replay's, a link, a bulk's */
  MOST_WAITS = 65,
  SECOND = 1000000000
};

/* A thread of a round, and the submission that it makes. */
struct poster {
  struct post_run *run;
  struct replay *replay;
  unsigned index;
  uint64_t each;
  struct random random;
  struct post_tally tally;
  pthread_t thread;

  struct rig_submission s;
  struct rig_part parts[MOST_PARTS];
  struct rig_wait waits[MOST_WAITS];
};

void post_run_init(struct post_run *r) {
  pthread_mutex_init(&r->turn, NULL);
  pthread_mutex_init(&r->tell, NULL);
  r->stop = 0;
}

__attribute__((format(printf, 2, 3))) static bool
failed(struct post_run *r, const char *format, ...) {
  va_list args;
  pthread_mutex_lock(&r->tell);
  va_start(args, format);
  if (!r->what[0])
    vsnprintf(r->what, sizeof r->what, format, args);
  va_end(args);
  pthread_mutex_unlock(&r->tell);
  /* Relaxed: a hint to end soon; what is read after the joins. */
  __atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
  return false;
}

static uint64_t deadline(const struct post_run *r) {
  return device_now() + (uint64_t)r->patience_s * SECOND;
}

static bool reach(struct post_run *r, uint64_t v) {
  return rig_nv_wait(r->device, v, deadline(r)) == 0 ||
         failed(r, "waiting for value %" PRIu64 ": %s", v, rig_nv_why());
}

static bool random_submission(struct poster *p,
                              const struct rig_submission **s) {
  for (;;) {
    uint64_t until;
    switch (
        replay_next(p->replay, rig_nv_signaled(p->run->device), s, &until)) {
    case REPLAY_MADE:
      return true;
    case REPLAY_BROKEN:
      return failed(p->run, "an encoder refused: %s", rig_nv_why());
    case REPLAY_BUSY:
      p->tally.busy++;
      replay_release(p->replay);
      if (!reach(p->run, until))
        return false;
    }
  }
}

static void add_link(struct poster *p) {
  int queue = random_one_in(&p->random, 3) ? RIG_COMPUTE0 : RIG_COPY0;
  chain_link(p->run->chain, p->index, queue, &p->parts[p->s.nparts++]);
}

/* The replay's submission, a link before something large or after it, and at
 * times a wait for the thread's neighbour in the ring of threads. */
static bool next(struct poster *p) {
  const struct rig_submission *s;
  if (!random_submission(p, &s))
    return false;
  assert(s->nparts + 1 + BULK_MOST_PARTS <= MOST_PARTS &&
         s->nwaits < MOST_WAITS);
  if (s->nparts)
    memcpy(p->parts, s->parts, s->nparts * sizeof *s->parts);
  if (s->nwaits)
    memcpy(p->waits, s->waits, s->nwaits * sizeof *s->waits);
  p->s = *s;
  p->s.parts = p->parts;
  p->s.waits = p->waits;
  bool large = p->run->bulk && random_one_in(&p->random, 3);
  bool link_first = large && random_one_in(&p->random, 2);
  if (link_first)
    add_link(p);
  if (large)
    bulk_add(p->run->bulk, p->index, &p->random, p->parts, &p->s);
  if (!link_first)
    add_link(p);
  if (random_one_in(&p->random, 4))
    chain_wait(p->run->chain, (p->index + 1) % p->run->chain->threads,
               &p->waits[p->s.nwaits++]);
  return true;
}

/* How far the generation of v is behind the newest. */
static void count_age(struct poster *p, uint64_t v) {
  const struct rings *r = &p->run->device->rings;
  struct cursor c;
  ring_rcu_lock();
  const struct ring_generation *g = ring_rcu_dereference(&r->newest);
  if (mark_read(&r->marks, v, &c)) {
    unsigned age = (unsigned)g->id - c.generation;
    p->tally.ages[age < POST_MOST_AGE ? age : POST_MOST_AGE - 1]++;
  }
  ring_rcu_unlock();
}

static void took(struct poster *p, uint64_t v) {
  if (p->run->bulk) {
    count_age(p, v);
    bulk_took(p->run->bulk, p->index, v);
  }
  p->tally.fits++;
  chain_took(p->run->chain, p->index, v);
  replay_commit(p->replay, v);
}

/* LATER was answered since the word read `word`, so some value given by now
 * was not reached then. */
static bool later(struct poster *p, uint64_t word) {
  p->tally.later++;
  uint64_t last = rings_last(&p->run->device->rings);
  return !rig_reached(word, last) ||
         failed(p->run, "RIG_LATER with every value reached, the last %" PRIu64,
                last);
}

/* GROW and NEVER come from what rings hold: they stay. */
static bool skip(struct poster *p, int answer) {
  struct post_run *r = p->run;
  if (answer != RIG_GROW && answer != RIG_NEVER)
    return failed(r, "answer %d: %s", answer, rig_nv_why());
  *(answer == RIG_GROW ? &p->tally.grow : &p->tally.never) += 1;
  replay_skip(p->replay);
  int again = rig_nv_room(r->device, &p->s);
  return again == answer ||
         failed(r, "answer %d, and then room's is %d", answer, again);
}

/* After RIG_GROW. Once grown, these parts are not answered it again. */
static bool grow(struct poster *p) {
  struct post_run *r = p->run;
  uint64_t bytes = 0;
  bool by_parts = random_one_in(&p->random, 4);
  int e = by_parts ? rig_nv_grow_for(r->device, &p->s, &bytes)
                   : rig_nv_grow(r->device, &bytes);
  p->tally.grow++;
  if (e == -RIG_NV_SHORT) {
    p->tally.shorts++;
    return bytes > 0 || failed(r, "short of no bytes");
  }
  if (e != 0)
    return failed(r, "grow: %s", rig_nv_why());
  p->tally.grown++;
  return rig_nv_room(r->device, &p->s) != RIG_GROW ||
         failed(r, "GROW after a growth for the same parts");
}

/* At times, with a bulk. */
static bool disturb(struct poster *p) {
  struct bulk *b = p->run->bulk;
  return !b || !random_one_in(&p->random, 16) ||
         bulk_disturb(b, &p->random) == 0 ||
         failed(p->run, "beside growths: %s", rig_nv_why());
}

static bool post(struct poster *p) {
  struct post_run *r = p->run;
  for (;;) {
    uint64_t v, word = rig_nv_signaled(r->device);
    int answer = rig_nv_post(r->device, &p->s, &v);
    if (answer == RIG_LATER) {
      if (!later(p, word))
        return false;
      replay_release(p->replay);
      if (random_one_in(&p->random, 2)) {
        if (!reach(r, word + 1))
          return false;
        continue;
      }
      answer = rig_nv_post_wait(r->device, &p->s, deadline(r), &v);
    }
    if (answer == RIG_GROW && r->bulk) {
      if (!grow(p))
        return false;
      continue;
    }
    if (answer != 0)
      return skip(p, answer);
    took(p, v);
    return true;
  }
}

/* Asks room until the turn is free. */
static bool take_turn(struct poster *p) {
  struct post_run *r = p->run;
  while (pthread_mutex_trylock(&r->turn)) {
    int answer = rig_nv_room(r->device, &p->s);
    if (answer < RIG_FITS || answer > RIG_GROW)
      return failed(r, "room's answer is %d", answer);
    p->tally.rooms++;
    sched_yield();
  }
  return true;
}

/* With the turn: *v for FITS. */
static int turn(struct poster *p, uint64_t *word, uint64_t *v) {
  struct post_run *r = p->run;
  const char *failure = "no reason given";
  *word = rig_nv_signaled(r->device);
  int answer = rig_nv_room(r->device, &p->s);
  if (answer == RIG_LATER && rig_reached(*word, r->last))
    failed(r, "room: RIG_LATER after %" PRIu64 ", which is reached", r->last);
  if (answer != RIG_FITS)
    return answer;
  if (random_one_in(&p->random, 4))
    sched_yield(); /* with the turn: the others ask room */
  *v = r->last + 1;
  if (rig_nv_submit(r->device, *v, &p->s, &failure) == RIG_COMMITTED)
    r->last = *v;
  else
    failed(r, "submit of %" PRIu64 " after RIG_FITS: %s", *v, failure);
  return answer;
}

static bool submit(struct poster *p) {
  struct post_run *r = p->run;
  for (;;) {
    uint64_t word, v = 0;
    if (!take_turn(p))
      return false;
    int answer = turn(p, &word, &v);
    pthread_mutex_unlock(&r->turn);
    /* Relaxed: this thread's own failure, or a hint. */
    if (__atomic_load_n(&r->stop, __ATOMIC_RELAXED))
      return false;
    if (answer == RIG_FITS)
      took(p, v);
    if (answer == RIG_GROW && r->bulk) {
      if (!grow(p))
        return false;
      continue;
    }
    if (answer != RIG_LATER)
      return answer == RIG_FITS || skip(p, answer);
    p->tally.later++;
    replay_release(p->replay);
    if (!reach(r, word + 1))
      return false;
  }
}

static void *poster(void *arg) {
  struct poster *p = arg;
  pthread_barrier_wait(&p->run->gate);
  for (uint64_t i = 0; i < p->each; i++)
    /* Relaxed: a hint to end soon. */
    if (__atomic_load_n(&p->run->stop, __ATOMIC_RELAXED) || !next(p) ||
        !(p->run->turn_mode ? submit : post)(p) || !disturb(p))
      break;
  replay_release(p->replay);
  return NULL;
}

static void add(struct post_tally *sum, const struct post_tally *t) {
  sum->fits += t->fits;
  sum->later += t->later;
  sum->never += t->never;
  sum->grow += t->grow;
  sum->busy += t->busy;
  sum->rooms += t->rooms;
  sum->grown += t->grown;
  sum->shorts += t->shorts;
  for (int i = 0; i < POST_MOST_AGE; i++)
    sum->ages[i] += t->ages[i];
}

/* What no thread may leave behind. */
static bool tidy(struct post_run *r) {
  const struct rings *rings = &r->device->rings;
  uint32_t state = shared_load_32(&rings->seat.state);
  if (state != SEAT_FREE)
    return failed(r, "the seat's state is %u", state);
  bool home[TAIL_SPARES + 1] = {false};
  uint64_t tail = shared_load_first(&rings->tail.word);
  home[tail_node_of(tail)] = true;
  for (unsigned i = 0; i < TAIL_SPARES; i++) {
    uint32_t node = shared_load_32(&rings->tail.cell[i].node);
    if (node > TAIL_SPARES || home[node])
      return failed(r, "cell %u of the tail holds %u", i, node);
    home[node] = true;
  }
  return true;
}

bool post_run_quiet(struct post_run *r, uint64_t first) {
  uint64_t last = rings_last(&r->device->rings);
  char what[256];
  if (!reach(r, last) || !tidy(r))
    return false;
  if (r->turn_mode && last != r->last)
    return failed(r, "the last value is %" PRIu64 ", not %" PRIu64, last,
                  r->last);
  if (r->device->rings.seat.published != last)
    return failed(r, "published up to %" PRIu64 " of %" PRIu64,
                  r->device->rings.seat.published, last);
  return (chain_check(r->chain, first, last, what, sizeof what) &&
          (!r->bulk ||
           sums_check(&r->bulk->sums, first, last, what, sizeof what))) ||
         failed(r, "%s", what);
}

bool post_run_round(struct post_run *r, uint64_t each) {
  static struct poster posters[CHAIN_MOST_THREADS];
  unsigned n = r->chain->threads;
  r->last = rings_last(&r->device->rings);
  uint64_t first = r->last + 1;
  chain_begin(r->chain);
  if (r->bulk)
    sums_begin(&r->bulk->sums);
  pthread_barrier_init(&r->gate, NULL, n);
  for (unsigned i = 0; i < n; i++) {
    struct poster *p = &posters[i];
    *p = (struct poster){.run = r,
                         .replay = r->arena->replays[i],
                         .index = i,
                         .each = each,
                         .random = {r->seed ^ first ^ (uint64_t)i << 56}};
    int e = pthread_create(&p->thread, NULL, poster, p);
    if (e != 0) /* the others wait at the gate */
      return failed(r, "starting a thread: %s", strerror(e));
  }
  for (unsigned i = 0; i < n; i++) {
    pthread_join(posters[i].thread, NULL);
    add(&r->tally, &posters[i].tally);
  }
  pthread_barrier_destroy(&r->gate);
  return !r->what[0] && post_run_quiet(r, first);
}

bool post_run_verify(struct post_run *r) {
  struct replay_difference d;
  const char *failure;
  int is = arena_verify(r->arena, &d, &failure);
  if (is < 0)
    return failed(r, "download: %s", failure);
  return is == 0 ||
         failed(r,
                "%s memory at %" PRIu64 ": expected %02x, found %02x; last "
                "written by %" PRIu64,
                d.region, d.offset, d.expected, d.found, d.value);
}
