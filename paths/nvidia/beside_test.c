/* SPDX-License-Identifier: ISC */
/*
 * What other threads do while the driver keeps one in a call: each call that
 * memory is made and ended by is held in turn.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "paths/nvidia/fake.h"
#include "paths/nvidia/nvidia.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define PAGE UINT64_C(4096)

enum op { ALLOC, FREE, MAP, UNMAP }; /* the last two: the caller's memory */

struct job {
  const struct rig_nv_path *p;
  enum op op;
  int kind;
  char *at; /* of the caller's memory */
  uint64_t n;
  struct rig_nv_memory m;
  enum rig_mapping mapping;
  struct rig_nv_reply reply;
  bool ok;
  unsigned done; /* (atomic) */
  pthread_t thread;
};

static void *run(void *arg) {
  struct job *j = arg;
  void *ctx = j->p->ctx;
  switch (j->op) {
  case ALLOC:
    j->ok =
        j->p->alloc(ctx, (enum rig_memory)j->kind, j->n, 0, &j->m, &j->reply);
    break;
  case MAP:
    j->ok = j->p->map_host(ctx, j->at, j->n, &j->mapping, &j->m, &j->reply);
    break;
  default:
    j->ok = j->p->free(ctx, &j->m, &j->reply);
  }
  __atomic_store_n(&j->done, 1, __ATOMIC_RELEASE); /* partner: done */
  return NULL;
}

static void start(struct job *j) {
  j->done = 0;
  assert_int_equal(pthread_create(&j->thread, NULL, run, j), 0);
}

static bool done(const struct job *j) {
  return __atomic_load_n(&j->done, __ATOMIC_ACQUIRE); /* partner: run */
}

static void join(struct job *j) {
  assert_int_equal(pthread_join(j->thread, NULL), 0);
}

static void pause_for(long ms) {
  const struct timespec t = {.tv_nsec = ms * 1000000};
  nanosleep(&t, NULL);
}

/* ---- others go on ---- */

static const struct {
  enum op op;
  int kind;
  const char *name; /* of the call that is held */
} holds[] = {
    {ALLOC, RIG_PINNED, "map"},
    {ALLOC, RIG_PINNED, "NV_ESC_RM_ALLOC_MEMORY"},
    {ALLOC, RIG_PINNED, "UVM_CREATE_EXTERNAL_RANGE"},
    {ALLOC, RIG_PINNED, "UVM_MAP_EXTERNAL_ALLOCATION"},
    {ALLOC, RIG_DEVICE, "NV_ESC_RM_ALLOC"},
    {ALLOC, RIG_DEVICE, "UVM_MAP_EXTERNAL_ALLOCATION"},
    {ALLOC, RIG_MAPPED, "NV_ESC_RM_ALLOC"},
    {ALLOC, RIG_MAPPED, "NV_ESC_RM_MAP_MEMORY"},
    {ALLOC, RIG_MAPPED, "map"},
    {FREE, RIG_PINNED, "UVM_FREE"},
    {FREE, RIG_PINNED, "NV_ESC_RM_FREE"},
    {FREE, RIG_PINNED, "unmap"},
    {FREE, RIG_DEVICE, "NV_ESC_RM_FREE"},
    {FREE, RIG_MAPPED, "unmap"},
    {FREE, RIG_MAPPED, "NV_ESC_RM_UNMAP_MEMORY"},
    {MAP, RIG_PINNED, "NV_ESC_RM_ALLOC_MEMORY"},
    {UNMAP, RIG_PINNED, "UVM_FREE"},
    {UNMAP, RIG_PINNED, "NV_ESC_RM_FREE"},
};

enum { KINDS = 3, PAGES = 16, OTHERS = KINDS * 2 + 1 };

/* Memory of each kind, and of the caller's, made by this thread. */
static void others_make(const struct rig_nv_path *p, uint64_t n, char *pages,
                        struct rig_nv_memory m[OTHERS]) {
  struct rig_nv_reply reply;
  enum rig_mapping is;
  for (int i = 0; i < KINDS * 2; i++)
    if (!p->alloc(p->ctx, (enum rig_memory)(i % KINDS), n, 0, &m[i], &reply))
      fail_msg("alloc: %s", reply.text);
  if (!p->map_host(p->ctx, pages + PAGES / 2 * PAGE, PAGE, &is, &m[OTHERS - 1],
                   &reply))
    fail_msg("map_host: %s", reply.text);
  assert_true(p->check(p->ctx, &reply));
}

static void others_end(const struct rig_nv_path *p,
                       const struct rig_nv_memory m[OTHERS]) {
  struct rig_nv_reply reply;
  for (int i = 0; i < OTHERS; i++)
    if (!p->free(p->ctx, &m[i], &reply))
      fail_msg("free: %s", reply.text);
}

static void apart(const struct rig_nv_memory *a,
                  const struct rig_nv_memory m[OTHERS]) {
  for (int i = 0; i < OTHERS; i++)
    if (a->address < m[i].address + m[i].bytes &&
        m[i].address < a->address + a->bytes)
      fail_msg("memory %d lies where the held one does", i);
}

static void prepare(struct job *j, const struct rig_nv_path *p, enum op op,
                    int kind, char *pages) {
  *j = (struct job){.p = p,
                    .op = op == FREE    ? ALLOC
                          : op == UNMAP ? MAP
                                        : op,
                    .kind = kind,
                    .at = pages,
                    .n = 5 * PAGE};
  if (op != FREE && op != UNMAP)
    return;
  (void)run(j);
  assert_true(j->ok);
  j->op = op;
}

static void one(struct fake *f, size_t i, bool fails, char *pages) {
  const struct rig_nv_path *p;
  struct rig_nv_memory m[OTHERS], again[OTHERS];
  struct job j;
  struct rig_nv_reply reply;
  fake_restart(f);
  assert_int_equal(nvidia_open(&f->os, NULL, &p), 0);
  prepare(&j, p, holds[i].op, holds[i].kind, pages);
  fake_hold(f, holds[i].name);
  start(&j);
  assert_true(fake_held(f));
  others_make(p, j.n, pages, m); /* while the thread is held, and it stays */
  assert_int_equal(rig_nv_path_close(p), -RIG_NV_INVALID);
  others_end(p, m);
  others_make(p, j.n, pages, m);
  assert_false(done(&j));
  if (holds[i].op == FREE || holds[i].op == UNMAP)
    apart(&j.m, m); /* its addresses are not given before they are back */
  f->fail_name = fails ? holds[i].name : NULL;
  f->failure = FAKE_STATUS;
  fake_go(f);
  join(&j);
  f->fail_name = NULL;
  if (j.ok == fails)
    fail_msg("row %zu: %d, %s", i, (int)j.ok, j.reply.text);
  if (j.ok && (holds[i].op == ALLOC || holds[i].op == MAP)) {
    apart(&j.m, m);
    assert_true(p->free(p->ctx, &j.m, &reply));
  }
  others_make(p, j.n, pages + PAGE, again);
  if (fails && (holds[i].op == FREE || holds[i].op == UNMAP))
    apart(&j.m, again);
  others_end(p, again);
  others_end(p, m);
  assert_int_equal(rig_nv_path_close(p), 0);
}

static char *pages_new(void) {
  char *p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(p, MAP_FAILED);
  return p;
}

static void test_others_go_on(void **state) {
  char *pages = pages_new();
  (void)state;
  for (size_t i = 0; i < COUNT(holds); i++)
    for (int fails = 0; fails < 2; fails++) {
      struct fake f;
      fake_init(&f);
      one(&f, i, fails, pages);
      /* What could not be ended went with the device, mapped or not. */
      if (!fails) {
        assert_string_equal(f.broken, "");
        assert_true(fake_nothing(&f));
      }
      fake_end(&f);
    }
  munmap(pages, PAGES * PAGE);
}

/* Addresses go to the next that asks, once they are back and no sooner. */
static void test_addresses(void **state) {
  struct fake f;
  const struct rig_nv_path *p;
  struct job j;
  struct rig_nv_memory meanwhile, after;
  struct rig_nv_reply reply;
  (void)state;
  fake_init(&f);
  assert_int_equal(nvidia_open(&f.os, NULL, &p), 0);
  prepare(&j, p, FREE, RIG_PINNED, NULL);
  fake_hold(&f, "NV_ESC_RM_FREE");
  start(&j);
  assert_true(fake_held(&f));
  assert_true(p->alloc(p->ctx, RIG_PINNED, j.n, 0, &meanwhile, &reply));
  assert_int_not_equal(meanwhile.address, j.m.address);
  fake_go(&f);
  join(&j);
  assert_true(p->alloc(p->ctx, RIG_PINNED, j.n, 0, &after, &reply));
  assert_int_equal(after.address, j.m.address);
  assert_true(p->free(p->ctx, &meanwhile, &reply));
  assert_true(p->free(p->ctx, &after, &reply));
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_string_equal(f.broken, "");
  fake_end(&f);
}

/* ---- the same memory of the caller's ---- */

/* The first thread maps or unmaps pages [2, 10) and is held; the second maps
 * `n` pages from `page`. */
enum second { NOT_MADE, SHARED, OF_ITS_OWN };

static const struct {
  const char *name;
  enum op op;
  const char *call;
  bool fails;
  uint64_t page, n;
  bool waits;
  enum second is;
} meets[] = {
    {"the same", MAP, "NV_ESC_RM_ALLOC_MEMORY", false, 2, 8, true, SHARED},
    {"inside", MAP, "UVM_MAP_EXTERNAL_ALLOCATION", false, 4, 1, true, SHARED},
    {"its last page", MAP, "NV_ESC_RM_ALLOC_MEMORY", false, 9, 1, true, SHARED},
    {"in part", MAP, "NV_ESC_RM_ALLOC_MEMORY", false, 9, 2, true, NOT_MADE},
    {"just before", MAP, "NV_ESC_RM_ALLOC_MEMORY", false, 1, 1, false,
     OF_ITS_OWN},
    {"just behind", MAP, "NV_ESC_RM_ALLOC_MEMORY", false, 10, 1, false,
     OF_ITS_OWN},
    {"one that fails", MAP, "NV_ESC_RM_ALLOC_MEMORY", true, 2, 8, true,
     OF_ITS_OWN},
    {"one that fails late", MAP, "UVM_MAP_EXTERNAL_ALLOCATION", true, 9, 2,
     true, OF_ITS_OWN},
    {"one that ends", UNMAP, "UVM_FREE", false, 4, 1, true, OF_ITS_OWN},
    {"and in part", UNMAP, "NV_ESC_RM_FREE", false, 9, 2, true, OF_ITS_OWN},
    {"beside its end", UNMAP, "NV_ESC_RM_FREE", false, 10, 2, false,
     OF_ITS_OWN},
    {"one that cannot end", UNMAP, "UVM_FREE", true, 4, 1, true, NOT_MADE},
};

static void meet(struct fake *f, size_t i, char *pages) {
  const struct rig_nv_path *p;
  struct job first, second = {.op = MAP};
  struct rig_nv_memory m;
  struct rig_nv_reply reply;
  assert_int_equal(nvidia_open(&f->os, NULL, &p), 0);
  prepare(&first, p, MAP, RIG_PINNED, pages + 2 * PAGE);
  first.n = 8 * PAGE;
  if (meets[i].op == UNMAP) {
    (void)run(&first);
    assert_true(first.ok);
    first.op = UNMAP;
  }
  fake_hold(f, meets[i].call);
  start(&first);
  assert_true(fake_held(f));
  unsigned calls = fake_calls(f);
  second.p = p;
  second.at = pages + meets[i].page * PAGE;
  second.n = meets[i].n * PAGE;
  start(&second);
  if (meets[i].waits) {
    pause_for(20);
    assert_false(done(&second));
    assert_int_equal(fake_calls(f), calls);
    /* Who waits keeps nobody else. */
    assert_true(p->alloc(p->ctx, RIG_DEVICE, PAGE, 0, &m, &reply));
    assert_true(p->free(p->ctx, &m, &reply));
  } else {
    join(&second);
    assert_false(done(&first));
  }
  f->fail_name = meets[i].fails ? meets[i].call : NULL;
  f->failure = FAKE_REFUSED;
  if (meets[i].fails && meets[i].op == MAP)
    f->fail_name = NULL, f->fail_at = f->calls + 1;
  fake_go(f);
  join(&first);
  if (meets[i].waits)
    join(&second);
  f->fail_name = NULL;
  assert_int_equal(first.ok, !meets[i].fails);
  bool made = meets[i].is != NOT_MADE;
  if (second.ok != made || second.mapping != (made ? RIG_MAPS : RIG_NEVER_MAPS))
    fail_msg("%s: %d, %s", meets[i].name, (int)second.mapping,
             second.reply.text);
  if (made)
    assert_int_equal(second.m.handle == first.m.handle, meets[i].is == SHARED);
  if (meets[i].op == MAP && first.ok)
    assert_true(p->free(p->ctx, &first.m, &reply));
  if (made) {
    assert_int_equal(fake_reached(f, second.m.address, 0), second.m.handle);
    assert_true(p->free(p->ctx, &second.m, &reply));
  }
  assert_int_equal(rig_nv_path_close(p), 0);
}

static void test_meets(void **state) {
  char *pages = pages_new();
  (void)state;
  for (size_t i = 0; i < COUNT(meets); i++) {
    struct fake f;
    fake_init(&f);
    meet(&f, i, pages);
    if (!meets[i].fails || meets[i].op == MAP)
      assert_string_equal(f.broken, "");
    fake_end(&f);
  }
  munmap(pages, PAGES * PAGE);
}

/* A GPU whose mapping another GPU shares is not closed while that one ends
 * it. */
static void test_owner(void **state) {
  struct fake f;
  const struct rig_nv_path *p, *q;
  struct rig_nv_nvidia_options o;
  struct rig_nv_memory mine;
  struct rig_nv_reply reply;
  enum rig_mapping is;
  struct job j;
  char *pages = pages_new();
  (void)state;
  fake_init(&f);
  f.ngpus = 2;
  f.gpus[1] = f.gpus[0];
  f.gpus[1].bus = "0000:00:07.0";
  f.gpus[1].minor = 1;
  rig_nv_nvidia_options_init(&o);
  o.gpu = 0;
  assert_int_equal(nvidia_open(&f.os, &o, &p), 0);
  o.gpu = 1;
  assert_int_equal(nvidia_open(&f.os, &o, &q), 0);
  assert_true(p->map_host(p->ctx, pages, 5 * PAGE, &is, &mine, &reply));
  prepare(&j, q, UNMAP, RIG_PINNED, pages);
  assert_int_equal(j.m.handle, mine.handle);
  assert_true(p->free(p->ctx, &mine, &reply));
  fake_hold(&f, "NV_ESC_RM_FREE");
  start(&j);
  assert_true(fake_held(&f));
  assert_int_equal(rig_nv_path_close(p), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_path_close(q), -RIG_NV_INVALID);
  fake_go(&f);
  join(&j);
  assert_true(j.ok);
  assert_int_equal(rig_nv_path_close(p), 0);
  assert_int_equal(rig_nv_path_close(q), 0);
  assert_string_equal(f.broken, "");
  assert_true(fake_nothing(&f));
  fake_end(&f);
  munmap(pages, PAGES * PAGE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_others_go_on),
      cmocka_unit_test(test_addresses),
      cmocka_unit_test(test_meets),
      cmocka_unit_test(test_owner),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
