/* SPDX-License-Identifier: ISC */
/*
 * Rounds of 8 threads on one device, which post or submit, wait, sleep and
 * allocate until something ends them: a fault of the work, of a call, a hang, a
 * stop in the midst. Meanwhile the model stalls and goes on at random, and a
 * host allocation fails now and then.
 */
#include <ck_pr.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/api/why.h"
#include "stress/fault_stress.h"

enum { THREADS = 8, PAGE = 4096, MS = 1000000, HANG_MS = 60, PATIENCE_S = 60 };

enum ending { BAD_COPY, BAD_CALL, HANG, QUIET, BAD_STOP, ENDINGS };

struct round {
  struct ground g;
  struct rig_nv *d;
  struct rig_nv_region *r; /* a page for each thread */
  bool turns;              /* thread 0 submits, in turn mode */
  uint32_t ended;          /* threads leave (ck_pr) */
  uint32_t bad;            /* one posts a copy that faults (ck_pr) */
  uint64_t posts;          /* (ck_pr) */
};

struct visitor {
  struct round *round;
  unsigned i;
  struct random random;
  int e; /* what ended it, 0 for the round's end */
  char why[1024];
  pthread_t thread;
};

static uint64_t soon(void) {
  return device_now() + PATIENCE_S * UINT64_C(1000000000);
}

static int turn(struct round *o, const struct rig_submission *s) {
  const char *failure = NULL;
  for (uint64_t word = rig_nv_signaled(o->d); rig_nv_room(o->d, s) == RIG_LATER;
       word = rig_nv_signaled(o->d)) {
    int e = rig_nv_wait(o->d, word + 1, soon());
    if (e != 0)
      return e;
  }
  uint64_t v = rings_last(&o->d->rings) + 1;
  if (rig_nv_submit(o->d, v, s, &failure) != RIG_COMMITTED)
    return why(RIG_NV_INVALID, "%s", failure);
  return 0;
}

static int submit(struct visitor *t) {
  struct round *o = t->round;
  uint64_t base = rig_nv_locate(o->r).address + (uint64_t)t->i * PAGE, v;
  struct rig_part part =
      rig_part_copy(base, base + PAGE / 2, random_in(&t->random, 0, 512));
  if (ck_pr_load_32(&o->bad) && ck_pr_cas_32(&o->bad, 1, 0))
    part = rig_part_copy(base, 0x1000, 16); /* where no memory is */
  struct rig_submission s = {.parts = &part,
                             .nparts = random_below(&t->random, 4) != 0};
  if (part.copy.src == 0x1000)
    s.nparts = 1;
  int e = o->turns ? turn(o, &s) : rig_nv_post_wait(o->d, &s, soon(), &v);
  if (e == 0)
    ck_pr_inc_64(&o->posts);
  return e;
}

static int memory(struct visitor *t) {
  struct rig_nv *d = t->round->d;
  struct rig_nv_region *r;
  uint64_t need;
  if (random_one_in(&t->random, 4)) {
    int e = rig_nv_local(d, random_in(&t->random, 1, 4096), &need);
    return e == -RIG_NV_SHORT ? 0 : e;
  }
  int e =
      rig_nv_alloc(d, (enum rig_memory)random_below(&t->random, 3), PAGE, &r);
  if (e != 0)
    return e;
  return random_one_in(&t->random, 2)
             ? rig_nv_free(d, r)
             : rig_nv_free_after(d, r, rig_nv_signaled(d) + 1);
}

/* Lacking memory is no end. */
static int memory_or_none(struct visitor *t) {
  int e = memory(t);
  return e == -RIG_NV_HOST_MEMORY ? 0 : e;
}

static int step(struct visitor *t) {
  struct round *o = t->round;
  switch (random_below(&t->random, 8)) {
  case 0:
    return memory_or_none(t);
  case 1:
    return rig_nv_sleep(o->d, rig_nv_signaled(o->d),
                        (int64_t)random_below(&t->random, 5));
  case 2:
  case 3: {
    uint64_t last = rings_last(&o->d->rings),
             back = random_below(&t->random, 4);
    return rig_nv_wait(o->d, last > back ? last - back : 0, soon());
  }
  default:
    return !o->turns || t->i == 0 ? submit(t) : 0;
  }
}

static void *visit(void *arg) {
  struct visitor *t = arg;
  while (t->e == 0 && !ck_pr_load_32(&t->round->ended))
    t->e = step(t);
  if (t->e != 0)
    snprintf(t->why, sizeof t->why, "%s", rig_nv_why());
  return NULL;
}

/* What ends the round, after stalls. */
static void disturb(struct round *o, struct random *r, enum ending ending) {
  for (uint64_t n = random_below(r, 4); n != 0; n--) {
    device_nap(random_below(r, 2 * MS));
    model_stall(o->g.model, true);
    device_nap(random_below(r, 2 * MS));
    model_stall(o->g.model, false);
    uint64_t calls = __atomic_load_n(&o->g.host_calls, __ATOMIC_RELAXED);
    __atomic_store_n(&o->g.host_fails, calls + random_in(r, 1, 4),
                     __ATOMIC_RELAXED);
  }
  device_nap(random_below(r, 3 * MS));
  switch (ending) {
  case BAD_COPY:
    ck_pr_store_32(&o->bad, 1);
    break;
  case BAD_CALL:
    /* Again where the threads made as many calls before it was stored. */
    for (int i = 0; i < 500 && shared_load_32(&o->d->loss.state) == LOSS_NONE;
         i++) {
      ck_pr_store_uint(&o->g.f.fail_at, ck_pr_load_uint(&o->g.f.calls) +
                                            (unsigned)random_in(r, 1, 8));
      device_nap(20 * MS);
    }
    break;
  case HANG:
    model_stall(o->g.model, true);
    break;
  case QUIET:
  case BAD_STOP:
    ck_pr_store_32(&o->ended, 1);
    break;
  case ENDINGS:
    break;
  }
}

/* Every LOST names the first cause, and nothing else ended a thread. */
static bool judge(const struct round *o, const struct visitor *all,
                  enum ending ending) {
  const char *cause = o->d->loss.cause;
  bool lost = o->d->loss.state == LOSS_KNOWN;
  bool quiet = ending == QUIET || ending == BAD_STOP;
  if (lost == quiet)
    return faults_broke("the device is %slost: %s", lost ? "" : "not ", cause);
  for (unsigned i = 0; i < THREADS; i++) {
    int e = all[i].e;
    bool right =
        quiet ? e == 0
              : e == -RIG_NV_FAULT || e == -RIG_NV_STALLED ||
                    (e == -RIG_NV_LOST && strcmp(all[i].why, cause) == 0);
    if (e == -RIG_NV_STALLED)
      right = right && ending == HANG;
    if (e == -RIG_NV_FAULT && ending == BAD_COPY)
      right = right && strstr(all[i].why, "channel error 31") != NULL;
    if (e == -RIG_NV_FAULT && ending == BAD_CALL)
      right = right && strstr(all[i].why, "failed on purpose") != NULL;
    if (!right)
      return faults_broke("thread %u ended with %d, %s; the cause is %s", i, e,
                          all[i].why, cause);
  }
  return true;
}

/* What the RM writes to a notifier as it ends a channel. */
static void notify(struct rig_nv *d, int q) {
  unsigned char *n = d->growth.newest->channels.notifier[q].host;
  ck_pr_store_32((uint32_t *)(void *)(n + d->layout->notification.info_32.at),
                 43);
  ck_pr_fence_release(); /* partner: channels_error's acquire fence */
  ck_pr_store_32((uint32_t *)(void *)(n + d->layout->notification.info_16.at),
                 UINT32_C(0xffff) << 16);
}

static bool stop(struct round *o, struct random *r, enum ending ending) {
  uint64_t last = rings_last(&o->d->rings);
  o->g.f.fail_at = 0;
  o->g.f.failed = NULL;
  if (ending == BAD_STOP)
    o->g.f.fail_at = o->g.f.calls + (unsigned)random_in(r, 1, 14);
  int e = rig_nv_stop(o->d, NULL);
  const char *failed = o->g.f.failed;
  o->g.f.fail_at = 0;
  if (e != 0 && (failed == NULL || strcmp(failed, "path_free") != 0))
    return faults_broke("stop: %d, %s", e, rig_nv_why());
  if (failed && rig_nv_signaled(o->d) != last) {
    /* Its channels are still there: the RM ends them. */
    model_stall(o->g.model, true);
    notify(o->d, RIG_COMPUTE0);
    notify(o->d, RIG_COPY0);
    if (rig_nv_stop(o->d, NULL) != 0)
      return faults_broke("stop again: %s", rig_nv_why());
  }
  if (rig_nv_signaled(o->d) != last)
    return faults_broke("stop left the word at %llu, not %llu",
                        (unsigned long long)rig_nv_signaled(o->d),
                        (unsigned long long)last);
  if (o->g.f.path.rm.frees && failed == NULL && o->g.f.nobjects != 0)
    return faults_broke("%zu objects are left", o->g.f.nobjects);
  o->g.stopped = !o->g.f.path.rm.frees;
  return true;
}

/* `most` memories are left by a free that failed; any by a stop that did. */
static bool end(struct round *o, size_t most) {
  if (rig_nv_free(o->d, o->r) != 0 || rig_nv_release(o->d) != 0)
    return faults_broke("free and release: %s", rig_nv_why());
  if (o->g.f.nmemories > most)
    return faults_broke("%zu memories are left", o->g.f.nmemories);
  (void)failing_path_sweep(&o->g.f); /* before its channels go on */
  model_stall(o->g.model, false);
  return ground_again(&o->g) && ground_close(&o->g);
}

static bool visitors(struct round *o, struct random *r, enum ending ending) {
  static struct visitor all[THREADS];
  for (unsigned i = 0; i < THREADS; i++) {
    all[i] = (struct visitor){.round = o, .i = i, .random = {random_next(r)}};
    if (pthread_create(&all[i].thread, NULL, visit, &all[i]) != 0)
      return faults_broke("no thread");
  }
  disturb(o, r, ending);
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join(all[i].thread, NULL);
  return judge(o, all, ending);
}

static bool once(struct faults *s, uint64_t seed) {
  struct round o;
  struct random r = {seed};
  memset(&o, 0, sizeof o);
  enum ending ending = (enum ending)random_below(&r, ENDINGS);
  int path = (int)random_below(&r, MODEL_PATHS);
  o.turns = random_below(&r, 2) != 0;
  if (!ground_open(&o.g, path, random_next(&r), ending == HANG ? HANG_MS : -1))
    return false;
  o.g.f.answer = RIG_NV_FAULTED;
  if (ground_make(&o.g, o.turns ? RIG_NV_TURN : RIG_NV_POST, &o.d) != 0 ||
      rig_nv_alloc(o.d, RIG_DEVICE, THREADS * PAGE, &o.r) != 0)
    return faults_broke("%s", rig_nv_why());
  bool right = visitors(&o, &r, ending);
  s->n.posts += o.posts;
  s->n.lost += o.d->loss.state == LOSS_KNOWN;
  const char *failed = o.g.f.failed;
  size_t most = failed && strcmp(failed, "path_free") == 0;
  right = right && stop(&o, &r, ending);
  if (o.g.f.failed != NULL)
    most = FAILING_PATH_MOST;
  s->n.rounds++;
  return right && end(&o, most);
}

bool faults_threads(struct faults *s) {
  for (unsigned i = 0; i < s->rounds; i++) {
    if (!once(s, s->seed + i))
      return faults_broke("threads, seed %llu",
                          (unsigned long long)(s->seed + i));
    if (!s->quiet && i % 100 == 99)
      printf("%u rounds\n", i + 1);
  }
  return true;
}
