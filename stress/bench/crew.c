/* SPDX-License-Identifier: ISC */
#include "stress/bench/crew.h"

#include <ck_pr.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "stress/bench/ticks.h"

enum { LINE = 128 };

void crew_cores_find(struct crew_cores *c) {
  cpu_set_t set;
  c->n = 0;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int i = 0; i < CPU_SETSIZE; i++)
      if (CPU_ISSET(i, &set))
        c->at[c->n++] = i;
  if (c->n == 0)
    c->at[c->n++] = 0;
}

/* A thread that cannot be pinned runs where it likes. */
static void pin(const struct crew_cores *c, int i) {
  cpu_set_t set;
  if (!c->pin)
    return;
  CPU_ZERO(&set);
  CPU_SET(c->at[i % c->n], &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

/* Where the threads meet. Every thread reads `stop` at each submission and
 * nobody writes it meanwhile. */
struct meeting {
  uint32_t ready __attribute__((aligned(LINE)));
  uint32_t go __attribute__((aligned(LINE)));
  uint32_t stop __attribute__((aligned(LINE)));
};

struct hand {
  const struct crew_cores *cores;
  const struct crew_job *job;
  struct meeting *meeting;
  enum crew_clock clock;
  struct crew_ticks *ticks;
  int index;
  uint64_t submissions, laters, begin, end, cpu; /* ns */
} __attribute__((aligned(LINE)));

static void meet(struct meeting *m) {
  ck_pr_inc_32(&m->ready);
  while (ck_pr_load_32(&m->go) == 0)
    sched_yield();
}

static uint64_t cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* A value whose stamp a thread has not seen yet. */
struct sample {
  bool taken;
  uint64_t v, begin;
};

/* Whether there is none to wait for any more. A stamp that was overwritten
 * says nothing: this thread was stopped, and later values' were not. */
static bool sampled(struct hand *h, const struct sample *s) {
  uint64_t shown, released;
  if (!s->taken)
    return true;
  switch (way_stamp(s->v, &shown, &released)) {
  case GPU_NOT_YET:
    return false;
  case GPU_STAMPED:
    histogram_add(&h->ticks->of[SHOWN], shown - s->begin);
    histogram_add(&h->ticks->of[RELEASED], released - s->begin);
    break;
  case GPU_OVERWRITTEN:
    break;
  }
  return true;
}

static uint64_t submit_timed(struct hand *h, struct sample *s) {
  const struct crew_job *j = h->job;
  uint64_t v, begin = ticks();
  const uint64_t laters = way_submit(j->way, j->kind, &v);
  if (h->clock == CLOCK_RETURNED)
    histogram_add(&h->ticks->of[RETURNED], ticks() - begin);
  else if (sampled(h, s))
    *s = (struct sample){.taken = true, .v = v, .begin = begin};
  return laters;
}

static void submit_all(struct hand *h) {
  const struct crew_job *j = h->job;
  struct sample s = {0};
  uint64_t n = 0, laters = 0, most = j->posts ? j->posts : UINT64_MAX, v;
  for (; n < most && ck_pr_load_32(&h->meeting->stop) == 0; n++)
    laters += h->clock == CLOCK_NONE ? way_submit(j->way, j->kind, &v)
                                     : submit_timed(h, &s);
  (void)sampled(h, &s);
  h->submissions = n;
  h->laters = laters;
}

static void *work(void *arg) {
  struct hand *h = arg;
  pin(h->cores, h->index);
  meet(h->meeting);
  h->cpu = cpu_ns();
  h->begin = clock_ns();
  submit_all(h);
  h->end = clock_ns();
  h->cpu = cpu_ns() - h->cpu;
  return NULL;
}

static void gather(const struct hand *h, unsigned n, struct crew_ticks *all,
                   struct crew_result *r) {
  uint64_t begin = h[0].begin, end = h[0].end;
  *r = (struct crew_result){.fewest = UINT64_MAX};
  for (unsigned i = 0; i < n; i++) {
    uint64_t mine = h[i].submissions;
    begin = h[i].begin < begin ? h[i].begin : begin;
    end = h[i].end > end ? h[i].end : end;
    r->submissions += mine;
    r->laters += h[i].laters;
    r->cpu_ns += h[i].cpu;
    r->fewest = mine < r->fewest ? mine : r->fewest;
    r->most = mine > r->most ? mine : r->most;
    for (int k = 0; all && k < SPANS; k++)
      histogram_merge(&all->of[k], &h[i].ticks->of[k]);
  }
  r->ns = end - begin;
}

static void rest(double seconds) {
  struct timespec t = {.tv_sec = (time_t)seconds};
  t.tv_nsec = (long)((seconds - (double)t.tv_sec) * 1e9);
  nanosleep(&t, NULL);
}

/* Starts the first n, has them work, and waits for them. */
static void conduct(struct meeting *m, const struct crew_job *j,
                    const pthread_t *thread, unsigned n) {
  while (ck_pr_load_32(&m->ready) < n)
    sched_yield();
  ck_pr_store_32(&m->go, 1);
  if (j->posts == 0)
    rest(j->seconds);
  if (j->posts == 0 || n < j->threads)
    ck_pr_store_32(&m->stop, 1);
  for (unsigned i = 0; i < n; i++)
    pthread_join(thread[i], NULL);
}

bool crew_run(const struct crew_cores *cores, const struct crew_job *j,
              enum crew_clock clock, struct crew_ticks *all,
              struct crew_result *r) {
  static struct meeting m;
  struct hand *h = aligned_alloc(LINE, j->threads * sizeof *h);
  struct crew_ticks *ticks_of = calloc(j->threads, sizeof *ticks_of);
  pthread_t *thread = calloc(j->threads, sizeof *thread);
  unsigned n = 0;
  memset(&m, 0, sizeof m);
  if (h && ticks_of && thread) {
    for (; n < j->threads; n++) {
      h[n] = (struct hand){.cores = cores,
                           .job = j,
                           .meeting = &m,
                           .clock = clock,
                           .ticks = &ticks_of[n],
                           .index = (int)n};
      if (pthread_create(&thread[n], NULL, work, &h[n]))
        break;
    }
    conduct(&m, j, thread, n);
    if (n == j->threads)
      gather(h, n, all, r);
  }
  free(thread);
  free(ticks_of);
  free(h);
  return n == j->threads;
}

enum { TRIPS = 2000, REPEATS = 9 };

struct ball {
  uint32_t at __attribute__((aligned(LINE)));
  const struct crew_cores *cores;
  int core;
};

static void *pong(void *arg) {
  struct ball *b = arg;
  pin(b->cores, b->core);
  for (uint32_t i = 0; i < TRIPS * (REPEATS + 1); i++) {
    while (ck_pr_load_32(&b->at) != 2 * i + 1)
      ck_pr_stall();
    ck_pr_store_32(&b->at, 2 * i + 2);
  }
  return NULL;
}

struct ping {
  struct ball ball;
  int core;
  double ns[REPEATS + 1]; /* a round trip; the first is not counted */
};

static void *ping(void *arg) {
  struct ping *p = arg;
  uint32_t i = 0;
  pin(p->ball.cores, p->core);
  for (unsigned k = 0; k <= REPEATS; k++) {
    uint64_t begin = clock_ns();
    for (uint32_t end = i + TRIPS; i < end; i++) {
      ck_pr_store_32(&p->ball.at, 2 * i + 1);
      while (ck_pr_load_32(&p->ball.at) != 2 * i + 2)
        ck_pr_stall();
    }
    p->ns[k] = (double)(clock_ns() - begin) / TRIPS;
  }
  return NULL;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double crew_ping_pong(const struct crew_cores *c, int a, int b) {
  static struct ping p;
  pthread_t one, other;
  if (c->at[a % c->n] == c->at[b % c->n])
    return -1;
  p = (struct ping){.ball = {.cores = c, .core = b}, .core = a};
  if (pthread_create(&other, NULL, pong, &p.ball))
    return -1;
  if (pthread_create(&one, NULL, ping, &p))
    ping(&p); /* here */
  else
    pthread_join(one, NULL);
  pthread_join(other, NULL);
  qsort(p.ns + 1, REPEATS, sizeof *p.ns, ascending);
  return p.ns[1 + REPEATS / 2];
}
