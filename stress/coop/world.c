/* SPDX-License-Identifier: ISC */
#include "stress/coop/world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rings/rcu.h"
#include "stress/coop/world_state.h"

enum { STEPS_A_VALUE = 90 /* about */, MOST_POINTS = 1000 };

struct world world;

const uint32_t world_foreign[4] = {0x4000, 0x10 << 10, 0x5000, 0x10 << 10};

static void replay(FILE *to) {
  static const char *const names[] = {"walk", "pct", "turns"};
  fprintf(to, "seed %" PRIu64 ", strategy %s, depth %d\n", world.how->seed,
          names[world.how->strategy], world.how->depth);
}

void world_broken(const char *what) {
  printf("broken: %s; thread %d\n", what, coop_self());
  replay(stdout);
  fflush(stdout);
  _exit(1);
}

/* A RING_ASSERT, which has said what. */
static void on_abort(int sig) {
  (void)sig;
  fflush(stderr);
  world_broken("an invariant of the rings, above");
}

struct life *world_life(uint64_t v) {
  CHECK("a value of these rings", world_nth(v) <= WORLD_MOST_VALUES);
  return &world.life[world_nth(v)];
}

/* A submission and what it points to. */
struct made {
  struct rig_submission s;
  struct rig_part parts[2];
  struct rig_wait waits[2];
};

static void make(struct made *m, struct random *random) {
  static const int first[] = {0};
  memset(m, 0, sizeof *m);
  m->s.parts = m->parts;
  m->s.nparts = random_below(random, 3); /* at most 7 entries a channel */
  m->s.waits = m->waits;
  m->s.nwaits = random_one_in(random, 4) ? 1 + random_below(random, 2) : 0;
  for (size_t i = 0; i < m->s.nparts; i++) {
    struct rig_part *p = &m->parts[i];
    switch (random_below(random, 3)) {
    case 0:
      *p = rig_part_words((int)random_below(random, QUEUES), world_foreign,
                          2 * random_below(random, 3));
      break;
    case 1:
      *p = rig_part_copy(0xa000, 0xb000, 16);
      break;
    default:
      *p = rig_part_fill(0xa000, 16, 0x5a);
      break;
    }
    if (i > 0 && random_one_in(random, 2)) {
      p->after = first;
      p->nafter = 1;
    }
  }
  m->waits[0] = (struct rig_wait){.at = OTHERS, .value = 7};
  m->waits[1] = (struct rig_wait){.at = WORD, .value = world.shape->v};
}

static void poster(void *arg) {
  (void)arg;
  int self = coop_self();
  uint64_t before = 0;
  for (uint32_t i = 0; i < world.shape->posts; i++) {
    struct made m;
    uint64_t v = 0;
    const char *why = NULL;
    int answer;
    make(&m, &world.random[self]);
    while ((answer = rings_post(&world.rings, &m.s, &v, &why)) == RIG_LATER)
      coop_spin();
    CHECK("a post that fits", answer == RIG_FITS);
    CHECK("the value that it reserved", world_life(v)->by == self);
    CHECK("a thread's values grow", world_nth(v) > before);
    before = world_nth(v);
  }
  world.done++;
}

static void reader(void *arg) {
  (void)arg;
  uint64_t before = 0;
  for (uint32_t i = 0; i < world.shape->rooms; i++) {
    struct made m;
    struct cursor c;
    make(&m, &world.random[coop_self()]);
    (void)rings_room(&world.rings, &m.s);
    /* mark_read's own promise. */
    uint64_t v = shared_load_64(&world.word);
    if (mark_read(&world.rings.marks, v, &c))
      CHECK("no mixed mark", memcmp(&c, &world_life(v)->to, sizeof c) == 0);
    uint64_t last = world_nth(rings_last(&world.rings));
    CHECK("the last value grows", last >= before);
    before = last;
  }
}

/* Rings that begin with g: n entries and GP_PUT 0, or units. */
static void make_channels(struct ring_generation *g, const uint32_t n[QUEUES]) {
  g->channels_born = g->id;
  for (int q = 0; q < QUEUES; q++) {
    struct channel *c = world_channel(g, q);
    struct ring_channel *ring = &g->channel[q];
    c->n = n[q];
    memset(c->entries, POISON, sizeof c->entries);
    ring->entries = c->entries;
    ring->n = n[q];
    ring->gp_put = &c->gp_put;
    ring->token = (uint32_t)q;
  }
}

static void make_segments(struct ring_generation *g, int q, uint32_t n) {
  struct ring_channel *ring = &g->channel[q];
  ring->segments_born = g->id;
  struct segments *s = world_segments(g, q);
  s->n = n;
  memset(s->at, POISON, n * (size_t)RING_UNIT);
  ring->segments = s->at;
  ring->segments_gpu =
      ((uint64_t)SEGMENTS << q) + (uint64_t)SEGMENTS_APART * (g->id - FIRST);
  ring->units = n;
}

static void grower(void *arg) {
  struct random *random = &world.random[coop_self()];
  (void)arg;
  for (int i = 1; i <= world.shape->growths; i++) {
    const struct ring_generation *now = &world.generation[i - 1];
    struct ring_generation *g = &world.generation[i];
    uint64_t what = random_in(random, 1, 7);
    for (uint64_t n = random_below(random, MOST_POINTS); n > 0; n--)
      coop_point();
    *g = *now;
    g->id++;
    g->older = now;
    if (what & 4) {
      uint32_t n[QUEUES];
      for (int q = 0; q < QUEUES; q++)
        n[q] = 2 * now->channel[q].n;
      make_channels(g, n);
    }
    for (int q = 0; q < QUEUES; q++)
      if (what & 1u << q)
        make_segments(g, q, 2 * now->channel[q].units);
    /* Partner: the posters' ring_rcu_dereference. */
    ring_rcu_assign(&world.rings.newest, g);
  }
}

static void begin(void) {
  const struct world_shape *z = world.shape;
  struct ring_generation *g = &world.generation[0];
  const uint32_t entries[QUEUES] = {z->entries, z->entries};
  struct cursor start = {.v = z->v,
                         .joins = UINT64_MAX - 5, /* counts wrap soon */
                         .generation = FIRST,
                         .released_by = NOBODY,
                         .owes = 3};
  g->id = FIRST;
  make_channels(g, entries);
  for (int q = 0; q < QUEUES; q++) {
    struct channel *c = world_channel(g, q);
    make_segments(g, q, z->units);
    start.entries[q] = start.freed_entries[q] = z->counts;
    start.units[q] = start.freed_units[q] = z->counts;
    c->shown = c->fetched = z->counts;
    c->gp_put = z->counts & (z->entries - 1);
    world.join[q] = start.joins;
    world.rings.join_gpu[q] = JOIN + 0x40 * (uint64_t)q;
  }
  rings_init(&world.rings, world.marks, z->marks, &start);
  world.rings.newest = g;
  world.word = z->v;
  world.rings.word = &world.word;
  world.rings.word_gpu = WORD;
  world.rings.doorbell = &world.doorbell;
  world.rings.gpu.compute_class = 0xcbc0;
  world.rings.gpu.copy_class = 0xc8b5;
  world.life[0] = (struct life){.reserved = true, .encoded = true, .to = start};
  world.rung = true;
}

int64_t world_run(const struct world_shape *z,
                  const struct coop_schedule *schedule) {
  struct coop_schedule how = *schedule;
  struct coop_thread threads[COOP_MOST_THREADS];
  struct random seeds = {how.seed ^ UINT64_C(0x5bd1e995)};
  int n = 0;
  memset(&world, 0, sizeof world);
  world.shape = z;
  world.how = &how;
  CHECK("a shape within bounds",
        z->entries << z->growths <= MOST_ENTRIES &&
            z->units << z->growths <= MOST_UNITS && z->marks <= MOST_MARKS &&
            z->posters <= MOST_POSTERS &&
            (uint64_t)z->posters * z->posts <= WORLD_MOST_VALUES);
  for (int i = 0; i < COOP_MOST_THREADS; i++)
    world.random[i].state = random_next(&seeds);
  begin();
  how.length = (uint64_t)z->posters * z->posts * STEPS_A_VALUE;
  how.most = 100 * how.length;
  while (n < z->posters)
    threads[n++] = (struct coop_thread){poster, NULL};
  threads[n++] = (struct coop_thread){world_gpu, NULL};
  if (z->rooms != 0)
    threads[n++] = (struct coop_thread){reader, NULL};
  if (z->growths != 0)
    threads[n++] = (struct coop_thread){grower, NULL};
  (void)signal(SIGABRT, on_abort);
  int64_t steps = coop_run(&how, threads, n);
  CHECK("a run ends", steps >= 0);
  world_judge();
  return steps;
}
