/* SPDX-License-Identifier: ISC */
/*
 * The lock-free core of rings/ under relacy: reservation, marks, seat and what
 * stands between them in rings.c and straight_take.h, the very files, as one
 * C++ unit. By hand is what they call and what is arithmetic alone:
 * ring_lawful, ring_need and ring_encode (a value's entries and units hold the
 * value), straight_put.h, the GPU, and io.h.
 *
 * A set-up is -D: POSTERS x EACH values, MARKS, ENTRIES a ring and TAKES of
 * them a value, READER (a thread that asks room), GPU_THREAD (else the GPU is
 * done with everything at once inside GP_PUT's store), CHANNELS, START (the
 * value before the first), SHORT 0 (ring_reserve alone). SEAT_ROUNDS,
 * SEAT_PATIENCE, TAIL_SPARES and TAIL_STEP_BITS are the core's own.
 *
 * Checked: a value is reserved once, none is left out; a cursor that an answer
 * rests on is exact; a range is not written before the GPU has reached its
 * value (a race, or no poison); GP_PUT grows, by less than a ring, and
 * shows written entries alone, in the order of values; the last GP_PUT has a
 * doorbell behind it; room says FITS where it does; LATER names a value that
 * the caller could not know to be reached; once all threads are done, all is
 * published and reached, the seat is free, and every spare node is in a cell.
 * What only one thread may touch of the seat is guarded_* (rings/shared.h).
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>

#define _Static_assert static_assert /* gcc has none in C++ */

#include "rings/shared.h"

#include "stress/relacy/io.h"
#include "stress/relacy/rcu.h"

#include "rings/rings.h"

[[noreturn]] static void model_broken(const char *what, const char *file,
                                      int line);
#undef RING_ASSERT
#define RING_ASSERT(x) ((x) ? (void)0 : model_broken(#x, __FILE__, __LINE__))

#include "rings/mark.c"
#define set tail_set
#define take tail_take
#include "rings/tail.c"
#undef set
#undef take
#include "rings/reserve.c"
#include "rings/seat.c"

#ifndef TAKES
#define TAKES 1
#endif
#ifndef SHORT
#define SHORT 1
#endif

/* By hand, for straight_put.h's, whose guard this takes. */
#define RINGS_STRAIGHT_PUT_H
enum { TAKEN_WORDS = TAKES * (RING_UNIT / sizeof(uint32_t)) };
enum { STRAIGHT_LEAST = TAKEN_WORDS };
/* The shorter way, then the other; more than an entry is the other's. */
static bool straight_words(const struct rig_submission *, uint64_t *words) {
  *words = TAKEN_WORDS;
  return SHORT && TAKES == 1;
}
static void straight_put(const struct rings *, const struct rig_submission *,
                         int q, size_t nparts, const struct ring_plan *);
#include "rings/straight.h"

/* rings.c asks through the harness, which judges each answer. */
static int model_reserve(struct rings *, const struct ring_need *, size_t,
                         const struct ring_ask *, struct ring_plan *);
static bool model_take(struct rings *, int q, uint64_t words, size_t,
                       const struct ring_ask *, struct ring_plan *);
#define ring_reserve model_reserve
#define straight_take model_take
#include "rings/rings.c"
#undef ring_reserve
#undef straight_take

#ifndef POSTERS
#define POSTERS 2
#endif
#ifndef EACH
#define EACH 1
#endif
#ifndef MARKS
#define MARKS 2
#endif
#ifndef ENTRIES
#define ENTRIES 4
#endif
#ifndef READER
#define READER 0
#endif
#ifndef GPU_THREAD
#define GPU_THREAD 0
#endif
#ifndef CHANNELS
#define CHANNELS 1
#endif
#ifndef START
#define START UINT64_C(0)
#endif

namespace {

enum {
  VALUES = POSTERS * EACH,
  THREADS = POSTERS + (READER != 0) + GPU_THREAD
};
const uint64_t START_JOINS = UINT64_MAX; /* counts wrap at once */
const uint32_t START_COUNT = UINT32_MAX; /* so do these */
const uint64_t POISON = 0xdead0000dead, NO_VALUE = 0xbeef;

/* A value that was answered LATER from, and the word that its caller knew. */
struct later {
  uint64_t from, known;
};

struct core : rl::test_suite<core, THREADS> {
  struct rings *r;
  struct mark *marks;
  shared_64 word;
  shared_32 put[QUEUES];
  guarded_64 entry[QUEUES][ENTRIES], unit[QUEUES][ENTRIES];
  struct ring_generation generation;

  /* Shadows, outside the memory model: what has really happened. */
  uint32_t shown[QUEUES], fetched[QUEUES];
  uint64_t reached;
  bool rung;
  int done, nlater;
  int owner[VALUES + 1];
  uint64_t known[VALUES + 1];
  struct later laters[64];
  uint64_t knows[THREADS];
  volatile uint32_t gp_put[QUEUES], bell; /* addresses alone */

  void before();
  void after();
  void thread(unsigned);

  void post(unsigned id);
  void ask();
  bool gpu_run();
  void gpu();
  void check_later(uint64_t from, uint64_t word);
};

core *model;
alignas(128) unsigned char rings_at[sizeof(struct rings)];
alignas(128) unsigned char marks_at[MARKS * sizeof(struct mark)];

/* The place of v in the order of values; START's is 0. */
uint64_t nth(uint64_t v) { return v - START; }

/* Whether c is the cursor after c.v: every value takes the same. What it knows
 * to be freed depends on who reserved it, and agrees with itself. */
bool exact(const struct cursor &c) {
  uint64_t n = nth(c.v), freed = n - c.behind;
  uint32_t entries = 0, units = 0, freed_entries = 0, freed_units = 0;
  for (int q = 0; q < QUEUES; q++) {
    entries += c.entries[q] - START_COUNT;
    units += c.units[q] - START_COUNT;
    freed_entries += c.freed_entries[q] - START_COUNT;
    freed_units += c.freed_units[q] - START_COUNT;
  }
  uint64_t joins = c.joins - START_JOINS;
  return joins >= n && joins <= CHANNELS * n && entries == TAKES * n &&
         units == TAKES * n && freed <= n && c.behind <= MARKS &&
         freed_entries == TAKES * freed && freed_units == TAKES * freed &&
         c.generation == 1 && (n == 0 || c.released_by < CHANNELS);
}

/* Whether one more value fits while those in (word, from] are in flight. On
 * two channels it may fit where this says no. */
bool fits(uint64_t from, uint64_t word) {
  uint64_t flight = rig_reached(word, from) ? 0 : from - word;
  return flight < MARKS && (flight + 1) * TAKES <= ENTRIES - 1;
}

void core::check_later(uint64_t from, uint64_t at) {
  RL_ASSERT("LATER, and it fits" && !fits(from, at));
}

/* The GPU: takes the next value's entries and units, and stores the word. */
bool core::gpu_run() {
  bool ran = false;
  for (int q = 0; q < CHANNELS; q++) {
    uint32_t limit = put[q].load(rl::mo_acquire, $);
    while ((fetched[q] & (ENTRIES - 1)) != limit) {
      uint64_t v = 0;
      for (uint32_t i = 0; i < TAKES; i++) {
        guarded_64 &e = entry[q][(fetched[q] + i) & (ENTRIES - 1)];
        v = e;
        if (i == 0 && v != reached + 1 && CHANNELS > 1 && v - START <= VALUES)
          goto other; /* it acquires the value before it */
        RL_ASSERT("an entry of the next value" && v == reached + 1);
        e = POISON;
        guarded_64 &u = unit[q][(fetched[q] + i) & (ENTRIES - 1)];
        RL_ASSERT("a unit of the next value" && u == v);
        u = POISON;
      }
      fetched[q] += TAKES;
      word.store(v, rl::mo_release, $);
      reached = v;
      ran = true;
    }
  other:;
  }
  return ran;
}

void core::gpu() {
  for (;;) {
    if (gpu_run())
      continue;
    bool all = done == POSTERS;
    for (int q = 0; q < CHANNELS; q++)
      all = all && fetched[q] == shown[q];
    if (all)
      return;
    rl::yield(1, $);
  }
}

void core::post(unsigned id) {
  struct rig_part part = {};
  struct rig_submission s = {};
  part.queue = (int)(id % CHANNELS);
  s.parts = &part;
  s.nparts = part.queue == RIG_COMPUTE0 ? 0 : 1; /* both are straight */
  for (int i = 0; i < EACH; i++) {
    uint64_t v = NO_VALUE;
    const char *failure = NULL;
    int answer;
    while ((answer = rings_post(r, &s, &v, &failure)) == RIG_LATER)
      rl::yield(1, $);
    RL_ASSERT(answer == RIG_FITS);
    RL_ASSERT(nth(v) - 1 < VALUES && owner[nth(v)] == (int)id);
  }
}

void core::ask() {
  struct rig_submission s = {};
  for (int i = 0; i < READER; i++) {
    enum rig_room answer = rings_room(r, &s);
    RL_ASSERT(answer == RIG_FITS || answer == RIG_LATER);
    /* mark_read's own promise. */
    struct cursor c;
    uint64_t v = word.load(rl::mo_relaxed, $);
    if (mark_read(&r->marks, v, &c)) {
      RL_ASSERT("no mixed mark" && c.v == v && exact(c));
    }
  }
}

void core::thread(unsigned id) {
  if (id < POSTERS) {
    post(id);
    done++;
  } else if (id < POSTERS + (READER != 0)) {
    ask();
  } else {
    gpu();
  }
}

void core::before() {
  model = this;
  r = new (rings_at) struct rings;
  marks = reinterpret_cast<struct mark *>(marks_at);
  for (int i = 0; i < MARKS; i++)
    new (&marks[i]) struct mark;
  word.store(START, rl::mo_relaxed, $);
  memset(&generation, 0, sizeof generation);
  generation.id = 1;
  for (int q = 0; q < QUEUES; q++) {
    put[q].store(START_COUNT & (ENTRIES - 1), rl::mo_relaxed, $);
    shown[q] = fetched[q] = START_COUNT;
    generation.channel[q].n = ENTRIES;
    generation.channel[q].units = ENTRIES;
    generation.channel[q].gp_put = &gp_put[q];
    for (int i = 0; i < ENTRIES; i++) {
      entry[q][i] = POISON;
      unit[q][i] = POISON;
    }
  }
  reached = START;
  rung = true;
  done = nlater = 0;
  for (int i = 0; i <= VALUES; i++) {
    owner[i] = -1;
    known[i] = START;
  }
  for (int i = 0; i < THREADS; i++)
    knows[i] = START;
  struct cursor start;
  memset(&start, 0, sizeof start);
  start.v = START;
  start.joins = START_JOINS;
  start.generation = 1;
  start.released_by = NOBODY;
  for (int q = 0; q < QUEUES; q++)
    start.entries[q] = start.units[q] = start.freed_entries[q] =
        start.freed_units[q] = START_COUNT;
  rings_init(r, marks, MARKS, &start);
  shared_store_release_32(&r->mapped, 0);
  r->newest = &generation;
  r->word = &word;
  r->doorbell = &bell;
  r->flush = NULL;
}

/* Every node is the tail's or in one cell. */
void check_nodes(const struct tail &t) {
  unsigned seen = 1u << tail_node_of(shared_load_first(&t.word));
  for (int i = 0; i < TAIL_SPARES; i++) {
    uint32_t node = shared_load_32(&t.cell[i].node);
    RL_ASSERT("a spare in each cell" && node <= TAIL_SPARES);
    seen |= 1u << node;
  }
  RL_ASSERT("no node twice" && seen == (2u << TAIL_SPARES) - 1);
}

void core::after() {
  for (int i = 1; i <= VALUES; i++)
    RL_ASSERT("values are dense" && owner[i] >= 0);
  RL_ASSERT("nothing encoded is left" && r->seat.published == START + VALUES);
  RL_ASSERT("all is reached" && word.load(rl::mo_relaxed, $) == START + VALUES);
  RL_ASSERT("a doorbell behind the last GP_PUT" && rung);
  RL_ASSERT(rings_last(r) == START + VALUES);
  RL_ASSERT(shared_load_32(&r->seat.state) == SEAT_FREE);
  check_nodes(r->tail);
  for (int i = 0; i < nlater; i++) {
    uint64_t by_tail = known[nth(laters[i].from)];
    check_later(laters[i].from, rig_reached(by_tail, laters[i].known)
                                    ? by_tail
                                    : laters[i].known);
  }
  for (int i = 0; i < MARKS; i++)
    marks[i].~mark();
  r->~rings();
}

} // namespace

void model_store(volatile uint32_t *to, uint32_t x) {
  core *m = model;
  if (to == &m->bell) {
    m->rung = true;
    return;
  }
  int q = to == &m->gp_put[1];
  uint32_t by = (x - m->shown[q]) & (ENTRIES - 1);
  RL_ASSERT("GP_PUT grows" && x < ENTRIES && by != 0);
  m->put[q].store(x, rl::mo_release, $);
  m->shown[q] += by;
  m->rung = false;
  if (!GPU_THREAD)
    while (m->gpu_run())
      ;
}

static void model_broken(const char *what, const char *file, int line) {
  rl::ctx().fail_test(what, rl::test_result_user_assert_failed,
                      rl::debug_info("RING_ASSERT", file, (unsigned)line));
  abort();
}

/* The word that the calling thread may know. */
static uint64_t model_known() {
  core *m = model;
  uint64_t known = shared_load_acquire_64(&m->word);
  m->knows[rl::thread_index()] = known;
  return known;
}

static void judge(int answer, uint64_t known, const struct ring_ask *ask,
                  const struct ring_plan *p) {
  core *m = model;
  RL_ASSERT(answer == RIG_FITS || answer == RIG_LATER);
  RL_ASSERT("the cursor of the tail" && exact(p->from));
  if (answer == RIG_LATER) {
    if (CHANNELS == 1)
      m->check_later(p->from.v, known);
    if (CHANNELS == 1 && m->nlater < 64)
      m->laters[m->nlater++] = {p->from.v, known};
  } else {
    RL_ASSERT(exact(p->to));
    RL_ASSERT(p->to.v == p->from.v + 1);
    RL_ASSERT(nth(p->from.v) < VALUES + (ask->for_what == RING_ROOM));
    if (ask->for_what == RING_ROOM && CHANNELS == 1)
      RL_ASSERT("room says FITS" &&
                fits(p->from.v, shared_load_acquire_64(&m->word)));
  }
}

static int model_reserve(struct rings *r, const struct ring_need *need,
                         size_t nparts, const struct ring_ask *ask,
                         struct ring_plan *p) {
  uint64_t known = model_known();
  int answer = ring_reserve(r, need, nparts, ask, p);
  judge(answer, known, ask, p);
  return answer;
}

static bool model_take(struct rings *r, int q, uint64_t words, size_t nparts,
                       const struct ring_ask *ask, struct ring_plan *p) {
  uint64_t known = model_known();
  bool taken = straight_take(r, q, words, nparts, ask, p);
  if (taken)
    judge(RIG_FITS, known, ask, p);
  return taken;
}

bool straight_need(const struct rig_submission *, struct ring_need *) {
  return false;
}

/* No device is viewed. */
void flush_read(const struct flush_set *) {}

bool ring_lawful(const struct rig_submission *) { return true; }

/* By hand, for walk.c's. */
void ring_need(const struct rig_submission *s, struct ring_need *need) {
  memset(need, 0, sizeof *need);
  need->last = s->nparts == 0 ? RIG_COMPUTE0 : s->parts[0].queue;
  need->used = 1u << need->last;
  for (int q = 0; q < QUEUES; q++) {
    need->entries[q] = TAKES;
    need->words[q] = TAKEN_WORDS;
  }
}

/* By hand, for walk.c's: the value, in all that was reserved for it. */
void ring_encode(const struct rings *, const struct rig_submission *,
                 const struct ring_need *, const struct ring_plan *p) {
  core *m = model;
  uint64_t n = nth(p->to.v);
  RL_ASSERT("a value twice" && n - 1 < VALUES && m->owner[n] < 0);
  m->owner[n] = (int)rl::thread_index();
  m->known[n] = m->knows[rl::thread_index()];
  int q = p->release;
  for (uint32_t i = 0; i < TAKES; i++) {
    guarded_64 &e = m->entry[q][(p->from.entries[q] + i) & (ENTRIES - 1)];
    guarded_64 &u = m->unit[q][(p->from.units[q] + i) & (ENTRIES - 1)];
    RL_ASSERT("a free entry" && e == POISON);
    e = p->to.v;
    RL_ASSERT("a free unit" && u == POISON);
    u = p->to.v;
  }
}

static void straight_put(const struct rings *r, const struct rig_submission *s,
                         int, size_t, const struct ring_plan *p) {
  ring_encode(r, s, NULL, p);
}

namespace {

const char usage[] =
    "core [--random N] [--first I] [--bound C] [--full] [--depth D] "
    "[--expect REPORT] [--trace]\n"
    "  random schedules I to I + N - 1; all with at most C preemptions; all.\n"
    "  With --expect, 0 is for a bug whose report contains REPORT.\n";

struct options {
  unsigned long long random, first;
  int bound;
  bool full, trace;
  unsigned depth;
  const char *expect;
};

/* Relacy's report, without the history that follows it; empty where it found
 * nothing. */
std::string search(rl::scheduler_type_e how, const options &o) {
  std::ostringstream said;
  std::ostringstream progress;
  rl::test_params p;
  p.search_type = how;
  p.iteration_count = (rl::iteration_t)o.random - 1; /* and one more */
  p.context_bound = (unsigned)o.bound;
  p.execution_depth_limit = o.depth;
  p.output_stream = &said;
  p.progress_stream = &progress;
  if (how == rl::sched_random && o.first != 0)
    p.initial_state = std::to_string(o.first);
  bool ok = rl::simulate<core>(p);
  unsigned long long at = (unsigned long long)p.stop_iteration;
  if (how == rl::sched_random)
    printf("random schedules from %llu: ", o.first);
  else if (how == rl::sched_bound)
    printf("schedules with at most %d preemptions: ", o.bound);
  else
    printf("all schedules: ");
  std::string s = said.str();
  if (ok) {
    printf("%llu, nothing found\n",
           at + 1 - (how == rl::sched_random ? o.first : 0));
    s.clear();
  } else {
    s = s.substr(s.find(rl::test_result_str(p.test_result)));
    printf("the one numbered %llu: %s\n", at,
           s.substr(0, s.find('\n')).c_str());
    if (o.trace)
      fputs(s.c_str(), stdout);
    s.resize(s.find('\n'));
  }
  fflush(stdout);
  return s;
}

} // namespace

int main(int argc, char **argv) {
  options o = {0, 0, -1, false, false, 4000, NULL};
  for (int i = 1; i < argc; i++) {
    const char *a = argv[i];
    if (!strcmp(a, "--full"))
      o.full = true;
    else if (!strcmp(a, "--trace"))
      o.trace = true;
    else if (i + 1 == argc)
      return fputs(usage, stderr), 2;
    else if (!strcmp(a, "--expect"))
      o.expect = argv[++i];
    else if (!strcmp(a, "--random"))
      o.random = strtoull(argv[++i], NULL, 0);
    else if (!strcmp(a, "--first"))
      o.first = strtoull(argv[++i], NULL, 0);
    else if (!strcmp(a, "--bound"))
      o.bound = atoi(argv[++i]);
    else if (!strcmp(a, "--depth"))
      o.depth = (unsigned)atoi(argv[++i]);
    else
      return fputs(usage, stderr), 2;
  }
  printf("%d posters x %d from %#llx, %d marks, %d of %d entries a value, "
         "%d channels, room %d times, the GPU %s; %d spares, %d rounds, "
         "patience %d\n",
         POSTERS, EACH, (unsigned long long)START, MARKS, TAKES, ENTRIES,
         CHANNELS, READER, GPU_THREAD ? "a thread" : "in the seat", TAIL_SPARES,
         SEAT_ROUNDS, SEAT_PATIENCE);
  std::string report;
  if (o.random)
    report = search(rl::sched_random, o);
  if (o.bound >= 0 && report.empty())
    report = search(rl::sched_bound, o);
  if (o.full && report.empty())
    report = search(rl::sched_full, o);
  bool passed =
      o.expect ? report.find(o.expect) != report.npos : report.empty();
  puts(passed ? "passed" : "FAILED");
  return !passed;
}
