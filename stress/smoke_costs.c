/* SPDX-License-Identifier: ISC */
#include <ck_pr.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/device.h"
#include "stress/smoke.h"

enum { TIMES = 50, CHECKS = 1000, QUICK = 10 };

static const char *const names[] = {"Device", "Pinned", "Mapped"};

static bool alloc_cost(struct smoke *s, int kind, uint64_t n) {
  uint64_t made = 0, given = 0;
  int times = s->quick ? TIMES / QUICK : TIMES;
  for (int i = 0; i < times; i++) {
    struct rig_nv_region *r;
    uint64_t begun = device_now();
    if (rig_nv_alloc(s->device, (enum rig_memory)kind, n, &r) != 0)
      return smoke_failed("alloc: %s", rig_nv_why());
    uint64_t there = device_now();
    if (rig_nv_free(s->device, r) != 0)
      return smoke_failed("free: %s", rig_nv_why());
    made += there - begun;
    given += device_now() - there;
  }
  printf("alloc, free of %8" PRIu64 " KiB %s: %" PRIu64 " us, %" PRIu64 " us\n",
         n >> 10, names[kind], made / (uint64_t)times / 1000,
         given / (uint64_t)times / 1000);
  return true;
}

/* What small allocations cost while another thread pins and unpins much. */
struct pinner {
  struct smoke *smoke;
  uint64_t bytes;
  unsigned times, stop; /* (atomic) */
  bool ok;
};

static void *pinner(void *arg) {
  struct pinner *p = arg;
  while (p->ok && !__atomic_load_n(&p->stop, __ATOMIC_RELAXED)) {
    struct rig_nv_region *r;
    p->ok = (rig_nv_alloc(p->smoke->device, RIG_PINNED, p->bytes, &r) == 0 &&
             rig_nv_free(p->smoke->device, r) == 0) ||
            smoke_failed("a thread's alloc or free: %s", rig_nv_why());
    /* Relaxed: both only say when to stop and that it began. */
    __atomic_add_fetch(&p->times, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

static bool small_cost(struct smoke *s, const char *beside) {
  uint64_t sum = 0, most = 0;
  int times = s->quick ? TIMES / QUICK : TIMES;
  for (int i = 0; i < times; i++) {
    struct rig_nv_region *r;
    uint64_t begun = device_now();
    if (rig_nv_alloc(s->device, RIG_DEVICE, 4096, &r) != 0 ||
        rig_nv_free(s->device, r) != 0)
      return smoke_failed("alloc or free: %s", rig_nv_why());
    uint64_t ns = device_now() - begun;
    sum += ns;
    most = ns > most ? ns : most;
  }
  printf("alloc and free of 4 KiB Device, %s: %" PRIu64 " us, at most %" PRIu64
         " us\n",
         beside, sum / (uint64_t)times / 1000, most / 1000);
  return true;
}

static bool beside_cost(struct smoke *s) {
  struct pinner p = {.smoke = s, .bytes = 16 << 20, .ok = true};
  pthread_t thread;
  if (!small_cost(s, "alone"))
    return false;
  if (pthread_create(&thread, NULL, pinner, &p) != 0)
    return smoke_failed("no thread");
  while (__atomic_load_n(&p.times, __ATOMIC_RELAXED) == 0)
    sched_yield();
  bool ok = small_cost(s, "beside a thread that pins 16 MiB");
  __atomic_store_n(&p.stop, 1, __ATOMIC_RELAXED);
  pthread_join(thread, NULL);
  return ok && p.ok;
}

static bool map_cost(struct smoke *s, uint64_t n) {
  void *p =
      mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  struct rig_nv_region *r;
  enum rig_mapping is;
  if (p == MAP_FAILED)
    return smoke_failed("mmap");
  memset(p, 1, n);
  uint64_t begun = device_now();
  if (rig_nv_map_host(s->device, p, n, &is, &r) != 0)
    return smoke_failed("map_host: %s", rig_nv_why());
  uint64_t there = device_now();
  if (rig_nv_free(s->device, r) != 0)
    return smoke_failed("free: %s", rig_nv_why());
  printf("map_host, free of %8" PRIu64 " KiB: %" PRIu64 " us, %" PRIu64 " us\n",
         n >> 10, (there - begun) / 1000, (device_now() - there) / 1000);
  munmap(p, n);
  return true;
}

/* Stores to Mapped memory, as the path's flag has it mapped. */
static bool store_cost(struct smoke *s, unsigned flags, const char *how) {
  enum { BYTES = 1 << 20, ROUNDS = 4 };
  struct rig_nv_memory m;
  struct rig_nv_reply reply;
  if (!s->path->alloc(s->path->ctx, RIG_MAPPED, BYTES, flags, &m, &reply))
    return smoke_failed("alloc: %s", reply.text);
  volatile uint64_t *to = m.host;
  uint64_t begun = device_now();
  for (uint64_t i = 0; i < ROUNDS * (BYTES / 8); i++)
    to[i % (BYTES / 8)] = i;
  (void)*s->path->flush;
  uint64_t ns = device_now() - begun;
  printf("stores to Mapped, asked %s: %.0f MB/s, %.1f ns for 64 bytes\n", how,
         (double)ROUNDS * BYTES * 1e3 / (double)ns,
         (double)ns * 64 / (double)(ROUNDS * BYTES));
  return s->path->free(s->path->ctx, &m, &reply) ||
         smoke_failed("free: %s", reply.text);
}

static uint64_t now(void *ctx) {
  (void)ctx;
  return device_now();
}

/* The GPU's timer beside the system's clock of the day. */
static bool timer(const struct smoke *s) {
  enum { READS = 100 };
  struct timespec t;
  struct clock_measure m;
  uint64_t narrow = UINT64_MAX, begun = device_now();
  for (int i = 0; i < READS; i++) {
    if (clock_measure(s->path->clock, now, NULL, &m) != 0)
      return smoke_failed("%s", rig_nv_why());
    narrow = m.width < narrow ? m.width : narrow;
  }
  uint64_t ns = device_now() - begun;
  clock_gettime(CLOCK_REALTIME, &t);
  int64_t day = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
  printf("GPU timer               %" PRIu64
         " ns a measure, the narrowest %" PRIu64 " ns, %" PRId64
         " ns before the clock of the day\n",
         ns / READS, narrow, day - (int64_t)m.timer);
  return true;
}

static bool check_cost(struct smoke *s) {
  struct rig_nv_reply reply;
  uint64_t begun = device_now();
  for (int i = 0; i < CHECKS; i++)
    if (!s->path->check(s->path->ctx, &reply))
      return smoke_failed("check: %s", reply.text);
  printf("check of the path       %" PRIu64 " ns\n",
         (device_now() - begun) / CHECKS);
  begun = device_now();
  for (int i = 0; i < CHECKS; i++)
    (void)*s->path->flush;
  printf("read of the flush word  %" PRIu64 " ns\n",
         (device_now() - begun) / CHECKS);
  return timer(s);
}

/* One thread stores to Mapped memory and tells another, which posts a copy of
 * it. Where the memory is write-combined, the store waits in the first one's
 * core until that one's fence. */
enum { ROUNDS = 1000, SPINS = 20000 };

struct relay {
  struct smoke *smoke;
  struct rig_nv_region *from, *to;
  bool fence;
  uint64_t rounds;
  uint64_t told, done; /* rounds (release, acquire) */
  unsigned stale;
};

/* Until *word is at least i. It spins a while: what gives the core up may
 * fence. */
static void await(const uint64_t *word, uint64_t i) {
  for (unsigned n = 0; __atomic_load_n(word, __ATOMIC_ACQUIRE) < i; n++) {
    if (n > SPINS) /* partner of the load: the other thread's store */
      sched_yield();
    ck_pr_stall();
  }
}

static void *storer(void *arg) {
  struct relay *r = arg;
  volatile uint64_t *to = rig_nv_locate(r->from).host;
  for (uint64_t i = 1; i <= r->rounds; i++) {
    to[i % 512] = i;
    if (r->fence)
      ck_pr_fence_strict_store();                    /* partner: the copy */
    __atomic_store_n(&r->told, i, __ATOMIC_RELEASE); /* partner: await */
    await(&r->done, i);
  }
  return NULL;
}

static bool one_copy(struct relay *r, uint64_t i) {
  uint64_t v, at = i % 512 * 8;
  const volatile uint64_t *got = rig_nv_locate(r->to).host;
  struct rig_part part = rig_part_copy(rig_nv_locate(r->to).address + at,
                                       rig_nv_locate(r->from).address + at, 8);
  if (!smoke_post(r->smoke, &part, 1, &v) || !smoke_reach(r->smoke, v))
    return false;
  r->stale += got[i % 512] != i;
  return true;
}

static bool relay(struct relay *r) {
  pthread_t thread;
  bool ok = true;
  if (pthread_create(&thread, NULL, storer, r) != 0)
    return smoke_failed("no thread");
  for (uint64_t i = 1; i <= r->rounds; i++) {
    await(&r->told, i);
    ok = ok && one_copy(r, i);
    __atomic_store_n(&r->done, i, __ATOMIC_RELEASE); /* partner: await */
  }
  pthread_join(thread, NULL);
  printf("stores of another thread, %s: %u of %" PRIu64 " stale\n",
         r->fence ? "fenced" : "not fenced", r->stale, r->rounds);
  return ok && (!r->fence || r->stale == 0 ||
                smoke_failed("a store that was fenced did not arrive"));
}

static bool relays(struct smoke *s) {
  struct relay bare = {.smoke = s,
                       .rounds = s->quick ? ROUNDS / QUICK : ROUNDS},
               fenced;
  if (rig_nv_alloc(s->device, RIG_MAPPED, 4096, &bare.from) != 0 ||
      rig_nv_alloc(s->device, RIG_PINNED, 4096, &bare.to) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  fenced = bare;
  fenced.fence = true;
  bool ok = relay(&bare) && relay(&fenced);
  return ((rig_nv_free(s->device, bare.from) == 0 &&
           rig_nv_free(s->device, bare.to) == 0) ||
          smoke_failed("free: %s", rig_nv_why())) &&
         ok;
}

bool smoke_costs(struct smoke *s) {
  for (int k = 0; k < 3; k++)
    if (!alloc_cost(s, k, 4 << 10) || !alloc_cost(s, k, 16 << 20))
      return false;
  return beside_cost(s) && map_cost(s, 4 << 10) && map_cost(s, 64 << 20) &&
         check_cost(s) && store_cost(s, 0, "uncached") &&
         store_cost(s, RIG_NV_COMBINE, "write-combined") && relays(s);
}
