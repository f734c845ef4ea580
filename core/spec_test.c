/* SPDX-License-Identifier: ISC */
/*
 * Sentences of the specification on facts, memory, submitting and threads that
 * no other test shows; core/SPEC.tsv says which test shows which.
 */
#include "core/spec_bed.h"

#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/lock_order/lock_order.h"
#include "paths/call.h"

/* ---- make, facts ---- */

static unsigned boosts;

static bool count_boost(void *ctx, uint32_t subdevice,
                        struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  boosts += subdevice == f->inner->subdevice;
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static unsigned on_host, elsewhere; /* the memories that make takes */

static bool count_kind(void *ctx, enum rig_memory kind, uint64_t n,
                       unsigned flags, struct rig_nv_memory *m,
                       struct rig_nv_reply *reply) {
  struct failing_path *f = ctx;
  on_host += kind == RIG_PINNED;
  elsewhere += kind != RIG_PINNED;
  return f->inner->alloc(f->inner->ctx, kind, n, flags, m, reply);
}

/* A device as rig_nv_make opens it. */
static void test_opened(void **state) {
  (void)state;
  for (int boost = 0; boost <= 1; boost++) {
    struct bed b;
    struct rig_nv_options o;
    struct model_counts c;
    options(&b, KERNEL);
    open_path(&b);
    b.f.path.rm.boost = count_boost;
    rig_nv_options_init(&o);
    o.boost = boost;
    b.f.path.alloc = count_kind;
    boosts = on_host = elsewhere = 0;
    assert_int_equal(rig_nv_make(&b.f.path, &o, &b.d), 0);
    assert_int_equal(boosts, boost);
    assert_int_equal(on_host, 7);   /* rings 3, notifiers 2, joins, word */
    assert_int_equal(elsewhere, 1); /* the launch ring */
    for (int q = 0; q < QUEUES; q++) {
      assert_int_equal(b.d->rings.newest->channel[q].n, 262144);
      assert_int_equal(b.d->rings.newest->channel[q].units * 64, 1 << 20);
    }
    assert_int_equal(b.d->rings.marks.n, 32768);
    model_counts(b.model, &c);
    assert_int_equal(c.channels, 2);
    assert_int_equal(c.registrations, 2);
    assert_int_equal(c.objects, 7); /* group, share, engines and debugger too */
    end(&b);
  }
}

/* Facts are the path's, and the capability is what it read of its GPU. */
static void test_path_facts(void **state) {
  (void)state;
  struct bed b;
  options(&b, KERNEL);
  b.o.gpu =
      (struct rig_nv_gpu){0xc56f, 0xc9c0, 0xc7b5, 0x809, 3, 5, 2, 48, 0, 0};
  open_path(&b);
  b.f.path.budget = 12345678;
  b.f.path.cache_bytes = -1;
  b.f.path.hang_ms = 4321;
  b.f.path.bus = "0000:41:00.0";
  make(&b);
  const struct rig_facts *f = rig_nv_facts(b.d);
  const struct rig_nv_gpu *g = f->capability;
  assert_string_equal(f->arch, "sm_89");
  assert_int_equal(f->budget, 12345678);
  assert_int_equal(f->cache_bytes, -1);
  assert_int_equal(f->hang_ms, 4321);
  assert_string_equal(f->bus, "0000:41:00.0");
  assert_ptr_equal(g, rig_nv_capability(b.d));
  assert_memory_equal(g, &b.o.gpu, offsetof(struct rig_nv_gpu, shared_window));
  assert_int_equal(g->local_window, RIG_NV_WINDOWS);
  assert_int_equal(g->shared_window, RIG_NV_WINDOWS + (UINT64_C(4) << 30));
  end(&b);
}

static struct rig_nv_memory unfreed[16];
static size_t nunfreed;

static bool fail_free(void *ctx, const struct rig_nv_memory *m,
                      struct rig_nv_reply *reply) {
  (void)ctx;
  unfreed[nunfreed++] = *m;
  return rig_nv_reply_set(reply, RIG_NV_FAULTED, "free failed");
}

static bool fail_boost(void *ctx, uint32_t subdevice,
                       struct rig_nv_reply *reply) {
  (void)ctx, (void)subdevice;
  return rig_nv_reply_set(reply, RIG_NV_DENIED, "boost failed");
}

/* A make that fails, and so do its frees: the error is make's own, and then
 * says what stays. */
static void test_failed_give_back(void **state) {
  (void)state;
  struct bed b;
  struct rig_nv_reply reply;
  options(&b, KERNEL);
  open_path(&b);
  b.f.path.rm.boost = fail_boost;
  b.f.path.free = fail_free;
  nunfreed = 0;
  assert_int_equal(rig_nv_make(&b.f.path, NULL, &b.d), -RIG_NV_REFUSED);
  assert_string_equal(rig_nv_why(), "boost: boost failed; memory stays: "
                                    "free: free failed");
  assert_int_equal(nunfreed, 8); /* rings 4, notifiers 2, joins, word */
  for (size_t i = 0; i < nunfreed; i++)
    assert_true(b.model->free(b.model->ctx, &unfreed[i], &reply));
  close_path(&b);
}

/* ---- memory ---- */

/* Where a path may put memory. */
static const struct {
  const char *name;
  enum rig_memory kind;
  uint64_t address, bytes;
  bool taken;
} places[] = {
    {"Device below the windows", RIG_DEVICE, RIG_NV_WINDOWS - PAGE, PAGE, true},
    {"Device into them", RIG_DEVICE, RIG_NV_WINDOWS - PAGE, PAGE + 4, false},
    {"Device in them", RIG_DEVICE, RIG_NV_WINDOWS, PAGE, false},
    {"Device at their end", RIG_DEVICE, (UINT64_C(1) << 40) - PAGE, 4, false},
    {"Device over them", RIG_DEVICE, PAGE, UINT64_C(1) << 41, false},
    {"Device after them", RIG_DEVICE, UINT64_C(1) << 40, PAGE, true},
    {"Device, misaligned", RIG_DEVICE, PAGE + 256, PAGE, false},
    {"Device past 2^64", RIG_DEVICE, -UINT64_C(4096), PAGE + 4, false},
    {"Pinned below", RIG_PINNED, RIG_NV_WINDOWS - PAGE, PAGE, true},
    {"Pinned into them", RIG_PINNED, RIG_NV_WINDOWS - PAGE, PAGE + 4, false},
    {"Pinned after them", RIG_PINNED, UINT64_C(1) << 40, PAGE, false},
    {"Mapped below", RIG_MAPPED, RIG_NV_WINDOWS - PAGE, PAGE, true},
    {"Mapped after them", RIG_MAPPED, UINT64_C(1) << 40, PAGE, false},
};
static size_t row, frees;

static bool place(void *ctx, enum rig_memory kind, uint64_t n, unsigned flags,
                  struct rig_nv_memory *m, struct rig_nv_reply *reply) {
  (void)ctx, (void)kind, (void)n, (void)flags;
  m->address = places[row].address;
  m->host = places[row].kind == RIG_DEVICE ? NULL : &row;
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static bool place_host(void *ctx, void *p, uint64_t n,
                       enum rig_mapping *mapping, struct rig_nv_memory *m,
                       struct rig_nv_reply *reply) {
  (void)p;
  *mapping = RIG_MAPS;
  return place(ctx, RIG_PINNED, n, 0, m, reply);
}

static bool count_free(void *ctx, const struct rig_nv_memory *m,
                       struct rig_nv_reply *reply) {
  (void)ctx;
  frees += m->address == places[row].address;
  return rig_nv_reply_set(reply, RIG_NV_OK, "%s", "");
}

static void test_places(void **state) {
  (void)state;
  const struct rig_nv_path p = {
      .alloc = place, .map_host = place_host, .free = count_free};
  for (row = 0; row < COUNT(places); row++) {
    struct rig_nv_memory m = {0};
    enum rig_mapping mapping;
    bool pinned = places[row].kind == RIG_PINNED;
    for (int host = 0; host <= pinned; host++) {
      frees = 0;
      int e = host ? path_map_host(&p, &row, places[row].bytes, &mapping, &m)
                   : path_alloc(&p, places[row].kind, places[row].bytes, 0, &m);
      if (e != (places[row].taken ? 0 : -RIG_NV_REFUSED) ||
          frees != !places[row].taken)
        fail_msg("%s: %d, %zu frees", places[row].name, e, frees);
      if (host)
        assert_int_equal(mapping,
                         places[row].taken ? RIG_MAPS : RIG_NEVER_MAPS);
    }
  }
}

/* The host lacks memory, for Pinned memory and for mappings. */
static void test_no_host_memory(void **state) {
  (void)state;
  enum { MOST = 1 << 20 };
  struct bed b;
  struct rig_nv_region *r = NULL;
  enum rig_mapping mapping = RIG_MAPS;
  void *host = aligned_alloc(PAGE, 2 * MOST);
  assert_non_null(host);
  options(&b, KERNEL);
  b.o.host_bytes = MOST;
  open_path(&b);
  make(&b);
  assert_int_equal(rig_nv_alloc(b.d, RIG_PINNED, 2 * MOST, &r),
                   -RIG_NV_NO_MEMORY);
  assert_int_equal(rig_nv_map_host(b.d, host, 2 * MOST, &mapping, &r),
                   -RIG_NV_NO_MEMORY);
  assert_int_equal(mapping, RIG_NO_ROOM);
  assert_null(r);
  assert_int_equal(rig_nv_map_host(b.d, (void *)PAGE, 4, &mapping, &r),
                   -RIG_NV_REFUSED);
  assert_int_equal(mapping, RIG_NEVER_MAPS);
  end(&b);
  free(host);
}

/* A mapping reaches whole pages, and each lives until it is freed. */
static void test_whole_pages(void **state) {
  (void)state;
  struct bed b;
  struct rig_nv_region *one, *two;
  enum rig_mapping mapping;
  unsigned char *page = aligned_alloc(PAGE, PAGE);
  assert_non_null(page);
  begin(&b, KERNEL);
  for (int i = 0; i < PAGE; i++)
    page[i] = (unsigned char)(i >> 4);
  assert_int_equal(rig_nv_map_host(b.d, page, 5, &mapping, &one), 0);
  assert_int_equal(rig_nv_map_host(b.d, page, PAGE, &mapping, &two), 0);
  uint64_t at = rig_nv_locate(one).address;
  copy(b.d, at, at + PAGE - 8, 8);
  assert_memory_equal(page, page + PAGE - 8, 8);
  assert_int_equal(rig_nv_free(b.d, one), 0);
  at = rig_nv_locate(two).address;
  copy(b.d, at + 64, at + PAGE - 8, 8);
  assert_memory_equal(page + 64, page + PAGE - 8, 8);
  assert_int_equal(rig_nv_free(b.d, two), 0);
  end(&b);
  free(page);
}

/* A path's answer as the call's error; the work goes on. */
static const struct {
  const char *name;
  enum { ALLOC, MAP, FREE, SLEEP } call;
  enum rig_nv_answer answer;
  int error;
} answers[] = {
    {"alloc, lacking", ALLOC, RIG_NV_LACKING, RIG_NV_NO_MEMORY},
    {"alloc, denied", ALLOC, RIG_NV_DENIED, RIG_NV_REFUSED},
    {"alloc, faulted", ALLOC, RIG_NV_FAULTED, RIG_NV_FAULT},
    {"map_host, lacking", MAP, RIG_NV_LACKING, RIG_NV_NO_MEMORY},
    {"map_host, denied", MAP, RIG_NV_DENIED, RIG_NV_REFUSED},
    {"map_host, faulted", MAP, RIG_NV_FAULTED, RIG_NV_FAULT},
    {"free, denied", FREE, RIG_NV_DENIED, RIG_NV_FAULT},
    {"free, faulted", FREE, RIG_NV_FAULTED, RIG_NV_FAULT},
    {"sleep, faulted", SLEEP, RIG_NV_FAULTED, RIG_NV_FAULT},
};

static int ask(struct bed *b, size_t i, void *host) {
  struct rig_nv_region *r = NULL;
  enum rig_mapping mapping;
  struct rig_nv_memory kept;
  struct rig_nv_reply reply;
  int e;
  switch (answers[i].call) {
  case ALLOC:
    return rig_nv_alloc(b->d, RIG_DEVICE, PAGE, &r);
  case MAP:
    return rig_nv_map_host(b->d, host, PAGE, &mapping, &r);
  case FREE:
    b->f.fail_at++; /* the alloc comes before it */
    r = alloc(b->d, RIG_DEVICE);
    kept = r->memory;
    e = rig_nv_free(b->d, r);
    assert_true(b->model->free(b->model->ctx, &kept, &reply));
    return e;
  default:
    return rig_nv_sleep(b->d, 0, 0);
  }
}

static void test_answers(void **state) {
  (void)state;
  void *host = aligned_alloc(PAGE, PAGE);
  assert_non_null(host);
  for (size_t i = 0; i < COUNT(answers); i++) {
    struct bed b;
    begin(&b, KERNEL);
    b.f.fail_at = b.f.calls + 1;
    b.f.answer = answers[i].answer;
    int e = ask(&b, i, host);
    if (e != -answers[i].error || !strstr(rig_nv_why(), "failed on purpose"))
      fail_msg("%s: %d, %s", answers[i].name, e, rig_nv_why());
    assert_int_equal(rig_nv_signaled(b.d), 0);
    uint64_t v = submit_nothing(b.d);
    while (rig_nv_signaled(b.d) != v)
      device_nap(100000);
    end(&b);
  }
  free(host);
}

/* ---- submitting ---- */

enum { LIVES = 7, TOO_LATE = 8 };

static struct rig_nv *forked; /* the child's device */

/* A child's exit as one number: its status, or 256 and the signal. */
static int child(void (*run)(void)) {
  pid_t pid = fork();
  int status;
  assert_true(pid >= 0);
  if (pid == 0)
    run();
  assert_int_equal(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static bool submit_parts(void) {
  struct rig_part p[] = {rig_part_copy(8192, 4096, 16),
                         rig_part_words(RIG_COMPUTE0, NULL, 0)};
  struct rig_wait w = {4096, 1, RIG_WAIT_WORD};
  struct rig_submission s = {.parts = p, .nparts = 2, .waits = &w, .nwaits = 1};
  const char *failure;
  uint64_t v = rings_last(&forked->rings) + 1;
  return forked->edge->room(forked, &s) == RIG_FITS &&
         forked->edge->submit(forked, v, &s, &failure) == RIG_COMMITTED &&
         forked->edge->commit(forked, v, &failure) == RIG_OK &&
         forked->edge->settle(forked, &failure) == RIG_OK;
}

/* seccomp's strict mode kills at every system call but exit, read, write. */
static void strictly(void) {
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
    syscall(SYS_exit, 2);
}

static void run_submit(void) {
  strictly();
  syscall(SYS_exit, submit_parts() ? 0 : 1);
}

static void run_system_call(void) {
  strictly();
  syscall(SYS_getppid);
  syscall(SYS_exit, 0);
}

/* The C functions make no system call; a function that makes one is killed. */
static void test_no_system_call(void **state) {
  (void)state;
  struct bed b;
  begin(&b, KERNEL);
  struct rig_nv_region *r = alloc(b.d, RIG_MAPPED);
  forked = b.d;
  assert_int_equal(child(run_submit), 0);
  assert_int_equal(child(run_system_call), 256 + SIGKILL);
  assert_int_equal(rig_nv_free(b.d, r), 0);
  end(&b);
}

static uint32_t gp_puts(void) {
  const struct ring_channel *c = forked->rings.newest->channel;
  return *c[0].gp_put | *c[1].gp_put;
}

static void on_read(int signal) {
  (void)signal;
  _exit(gp_puts() == 0 ? LIVES : TOO_LATE);
}

/* The flush word faults at a read. */
static void run_flush(void) {
  struct sigaction a = {.sa_handler = on_read};
  sigaction(SIGSEGV, &a, NULL);
  if (mprotect((void *)(uintptr_t)forked->path->flush, PAGE, PROT_NONE) != 0)
    _exit(2);
  _exit(submit_parts() && gp_puts() != 0 ? 0 : 1);
}

/* While Mapped memory lives, submit reads the flush word before GP_PUT. */
static void test_flush(void **state) {
  (void)state;
  struct bed b;
  void *word = aligned_alloc(PAGE, PAGE);
  assert_non_null(word);
  options(&b, KERNEL);
  open_path(&b);
  b.f.path.flush = word;
  make(&b);
  forked = b.d;
  struct rig_nv_region *pinned = alloc(b.d, RIG_PINNED);
  assert_int_equal(child(run_flush), 0);
  struct rig_nv_region *mapped = alloc(b.d, RIG_MAPPED);
  assert_int_equal(child(run_flush), LIVES);
  assert_int_equal(rig_nv_free(b.d, mapped), 0);
  assert_int_equal(child(run_flush), 0);
  assert_int_equal(rig_nv_free(b.d, pinned), 0);
  end(&b);
  free(word);
}

/* A wait holds its value back until the host's word is at least w. */
static const struct {
  const char *name;
  uint64_t word, w;
  bool held;
} waits[] = {
    {"holds it", 5, 5, false},
    {"beyond it", 6, 5, false},
    {"one short", 4, 5, true},
    {"across 0", 3, UINT64_MAX, false},
    {"one short of 0", UINT64_MAX, 0, true},
    {"the furthest before", 0, UINT64_MAX / 2 + 2, false},
    {"half the circle", 0, UINT64_MAX / 2 + 1, true},
};

static void test_waits(void **state) {
  (void)state;
  struct bed b;
  begin(&b, KERNEL);
  struct rig_nv_region *r = alloc(b.d, RIG_PINNED);
  struct rig_location l = rig_nv_locate(r);
  uint64_t *word = l.host;
  for (size_t i = 0; i < COUNT(waits); i++) {
    struct rig_wait w = {l.address, waits[i].w, RIG_WAIT_WORD};
    shared_store_release_64(word, waits[i].word);
    uint64_t v =
        submit(b.d, &(struct rig_submission){.waits = &w, .nwaits = 1});
    if (waits[i].held) {
      int e = rig_nv_wait(b.d, v, device_now() + 10 * MS);
      if (e != -RIG_NV_TIMEOUT)
        fail_msg("%s: %d", waits[i].name, e);
      shared_store_release_64(word, waits[i].w);
    }
    if (rig_nv_wait(b.d, v, device_now() + 5000 * MS) != 0)
      fail_msg("%s: %s", waits[i].name, rig_nv_why());
  }
  assert_int_equal(rig_nv_free(b.d, r), 0);
  end(&b);
}

/* A launch on COPY:0 is not run. */
static void test_launch_on_copy(void **state) {
  (void)state;
  struct bed b;
  begin(&b, KERNEL);
  struct rig_part p = rig_part_launch(4096, NULL, 0, 0);
  p.queue = RIG_COPY0;
  struct rig_submission s = {.parts = &p, .nparts = 1};
  assert_int_equal(b.d->edge->room(b.d, &s), RIG_NEVER);
  end(&b);
}

/* ---- threads ---- */

enum { ROUNDS = 200 };

static void *allocate(void *arg) {
  struct rig_nv *d = arg;
  for (int i = 0; i < ROUNDS; i++) {
    struct rig_nv_region *r;
    if (rig_nv_alloc(d, (enum rig_memory)(i % 3), PAGE, &r) != 0 ||
        rig_nv_locate(r).address == 0 || rig_nv_free(d, r) != 0)
      return d;
  }
  return NULL;
}

static void *watch(void *arg) {
  struct rig_nv *d = arg;
  uint64_t seen = rig_nv_signaled(d);
  while (seen != ROUNDS) {
    if (rig_nv_sleep(d, seen, 5000) != 0)
      return d;
    seen = rig_nv_signaled(d);
  }
  return NULL;
}

/* Any thread calls any function while the turn's holder submits. */
static void test_threads(void **state) {
  (void)state;
  void *(*const work[])(void *) = {allocate, allocate, watch};
  pthread_t t[COUNT(work)];
  struct bed b;
  options(&b, KERNEL);
  open_path(&b);
  b.f.path = *b.model; /* one that any thread may call */
  make(&b);
  for (size_t i = 0; i < COUNT(work); i++)
    assert_int_equal(pthread_create(&t[i], NULL, work[i], b.d), 0);
  for (int i = 0; i < ROUNDS; i++)
    reached(b.d, submit_nothing(b.d));
  for (size_t i = 0; i < COUNT(work); i++) {
    void *failed;
    assert_int_equal(pthread_join(t[i], &failed), 0);
    assert_null(failed);
  }
  end(&b);
}

/* signaled takes no lock and asks for none. */
static int signaled_in(void *arg) { return (int)rig_nv_signaled(arg); }

static void test_signaled_in_lock(void **state) {
  (void)state;
  struct bed b;
  struct rig_nv_lock l;
  begin(&b, KERNEL);
  assert_int_equal(rig_nv_lock_init(&l, &rig_nv_lock_path), 0);
  reached(b.d, submit_nothing(b.d));
  assert_int_equal(rig_nv_lock_protect(&l, signaled_in, b.d), 1);
  rig_nv_lock_fini(&l);
  end(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_opened),
      cmocka_unit_test(test_path_facts),
      cmocka_unit_test(test_failed_give_back),
      cmocka_unit_test(test_places),
      cmocka_unit_test(test_no_host_memory),
      cmocka_unit_test(test_whole_pages),
      cmocka_unit_test(test_answers),
      cmocka_unit_test(test_no_system_call),
      cmocka_unit_test(test_flush),
      cmocka_unit_test(test_waits),
      cmocka_unit_test(test_launch_on_copy),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_signaled_in_lock),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
