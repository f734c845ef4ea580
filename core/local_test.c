/* SPDX-License-Identifier: ISC */
/* Local memory: its sizes, its records, and when what was replaced goes back.
 */
#include "core/image_bed.h"

#include "rings/rcu.h"

enum { KIB = 1024 };

/* The record now, or zeros. */
static struct setup record(const struct bed *b) {
  return b->d->rings.setup ? *b->d->rings.setup : (struct setup){0};
}

/* A value that enters COMPUTE, and so carries the newest record. */
static uint64_t carry(struct bed *b) {
  const char *failure = NULL;
  struct rig_submission s = {0};
  struct cursor c;
  uint64_t v = rings_last(&b->d->rings) + 1;
  assert_int_equal(rig_nv_room(b->d, &s), RIG_FITS);
  if (rig_nv_submit(b->d, v, &s, &failure) != RIG_COMMITTED)
    fail_msg("submit: %s", failure);
  tail_last(&b->d->rings.tail, &c);
  assert_int_equal(c.setup, record(b).seq);
  return v;
}

static void reached(struct bed *b, uint64_t v) {
  DONE(rig_nv_wait(b->d, v, device_now() + UINT64_C(5000000000)));
}

static void grow(struct bed *b, uint64_t per_thread) {
  DONE(rig_nv_local(b->d, per_thread, NULL));
}

/* An allocation, at which retired memory goes back. */
static void look(struct bed *b) {
  struct rig_nv_region *r = NULL;
  DONE(rig_nv_alloc(b->d, RIG_PINNED, 4, &r));
  DONE(rig_nv_free(b->d, r));
}

/* ---- sizes ---- */

/* Digest of the rules: up to 32 bytes a thread; 32 threads a warp; per TPC up
 * to 32 KiB; in all up to 128 KiB. */
static void test_sizes(void **state) {
  (void)state;
  static const struct {
    uint32_t gpcs, tpcs, sms, warps;
    uint64_t need, per_tpc, bytes;
  } t[] = {
      {1, 1, 2, 4, 1, 32 * KIB, 128 * KIB},
      {1, 1, 2, 4, 128, 32 * KIB, 128 * KIB},
      {1, 1, 2, 4, 129, 64 * KIB, 128 * KIB},
      {1, 1, 2, 4, 576, 160 * KIB, 256 * KIB},
      {1, 3, 1, 4, 576, 96 * KIB, 384 * KIB},
      {2, 3, 1, 2, 596, 64 * KIB, 384 * KIB},
      /* An RTX 5000 Ada: 608 bytes a thread, of 48 warps. */
      {11, 6, 2, 48, 596, 57 * 32 * KIB, UINT64_C(941) * 128 * KIB},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct bed b;
    bed_options(&b, RIG_NV_LIKE_KERNEL, 0x900);
    b.o.gpu.gpcs = t[i].gpcs;
    b.o.gpu.tpcs_per_gpc = t[i].tpcs;
    b.o.gpu.sms_per_tpc = t[i].sms;
    b.o.gpu.warps_per_sm = t[i].warps;
    bed_make(&b);
    uint64_t before = device_bytes(&b);
    grow(&b, t[i].need);
    struct setup s = record(&b);
    if (device_bytes(&b) - before != t[i].bytes ||
        s.local_per_tpc != t[i].per_tpc)
      fail_msg("row %zu: %llu bytes, %llu per TPC", i,
               (unsigned long long)(device_bytes(&b) - before),
               (unsigned long long)s.local_per_tpc);
    assert_int_not_equal(s.local, 0);
    finish(&b);
  }
}

/* ---- records ---- */

/* Each step's growth, and the record's numbers after it. */
static void test_records(void **state) {
  (void)state;
  static const struct {
    uint64_t need;
    uint32_t seq, local_seq, code_seq;
    unsigned pieces; /* that live */
  } t[] = {
      {0, 0, 0, 0, 0},    {576, 1, 1, 0, 1},  {576, 1, 1, 0, 1},
      {1, 1, 1, 0, 1},    {577, 2, 2, 0, 2},  {608, 2, 2, 0, 2},
      {4096, 3, 3, 0, 3}, {4000, 3, 3, 0, 3},
  };
  struct bed b;
  struct model_counts c;
  begin(&b);
  model_counts(b.model, &c);
  const size_t before = c.memories;
  for (size_t i = 0; i < COUNT(t); i++) {
    grow(&b, t[i].need);
    struct setup s = record(&b);
    model_counts(b.model, &c);
    if (s.seq != t[i].seq || s.local_seq != t[i].local_seq ||
        s.code_seq != t[i].code_seq || c.memories - before != t[i].pieces)
      fail_msg("row %zu: records %u, %u, %u and %zu pieces", i, s.seq,
               s.local_seq, s.code_seq, c.memories - before);
  }
  struct setup local = record(&b);
  DONE(local_code_changed(b.d));
  struct setup code = record(&b);
  assert_int_equal(code.seq, local.seq + 1);
  assert_int_equal(code.code_seq, code.seq);
  assert_int_equal(code.local_seq, local.local_seq);
  assert_int_equal(code.local, local.local);
  assert_int_equal(code.local_per_tpc, local.local_per_tpc);
  finish(&b);
}

/* What COMPUTE is told: each change once, by the first value after it that
 * enters that channel. */
static void test_told(void **state) {
  (void)state;
  static const struct {
    enum { LOCAL, CODE, COMPUTE, COPY } what;
    unsigned locals, invalidates; /* told in all */
  } t[] = {
      {COMPUTE, 0, 0}, {LOCAL, 0, 0},   {COPY, 0, 0},    {COMPUTE, 1, 0},
      {COMPUTE, 1, 0}, {CODE, 1, 0},    {COPY, 1, 0},    {COMPUTE, 1, 1},
      {COMPUTE, 1, 1}, {LOCAL, 1, 1},   {LOCAL, 1, 1},   {CODE, 1, 1},
      {CODE, 1, 1},    {COMPUTE, 2, 2}, {COMPUTE, 2, 2}, {LOCAL, 2, 2},
      {COMPUTE, 3, 2}, {CODE, 3, 2},    {COMPUTE, 3, 3}, {COPY, 3, 3},
  };
  struct bed b;
  struct model_counts c;
  begin(&b);
  struct rig_nv_region *r = NULL;
  DONE(rig_nv_alloc(b.d, RIG_PINNED, 4096, &r));
  const uint64_t at = rig_nv_locate(r).address;
  for (size_t i = 0; i < COUNT(t); i++) {
    struct rig_part p = rig_part_copy(at, at + 64, 64);
    struct rig_submission s = {.parts = &p, .nparts = 1};
    const char *failure = NULL;
    uint64_t v = rings_last(&b.d->rings) + 1;
    switch (t[i].what) {
    case LOCAL:
      grow(&b, 32 * (i + 1));
      break;
    case CODE:
      DONE(local_code_changed(b.d));
      break;
    case COMPUTE:
      reached(&b, carry(&b));
      break;
    case COPY:
      assert_int_equal(rig_nv_submit(b.d, v, &s, &failure), RIG_COMMITTED);
      reached(&b, v);
      break;
    }
    model_counts(b.model, &c);
    if (c.locals != t[i].locals || c.invalidates != t[i].invalidates)
      fail_msg("step %zu: told %llu times of local memory, %llu to invalidate",
               i, (unsigned long long)c.locals,
               (unsigned long long)c.invalidates);
  }
  DONE(rig_nv_free(b.d, r));
  finish(&b);
}

/* Sequence numbers go on across 2^32. */
static void test_wrap(void **state) {
  (void)state;
  struct bed b;
  begin(&b);
  grow(&b, 576);
  b.d->local.record[0].seq = b.d->local.record[1].seq = UINT32_MAX - 1;
  uint64_t v = carry(&b); /* knows 2^32 - 2 */
  reached(&b, v);
  for (unsigned i = 1; i <= 4; i++) {
    uint64_t before = device_bytes(&b);
    grow(&b, i * 4096);
    assert_int_equal(record(&b).seq, UINT32_MAX - 1 + i);
    look(&b);
    assert_true(device_bytes(&b) > before); /* nobody knows it yet */
    reached(&b, carry(&b));
    look(&b);
    assert_int_equal(device_bytes(&b), b.d->local.memory.bytes);
  }
  finish(&b);
}

/* ---- replaced memory ---- */

/* What happens after a growth replaced memory, step by step, and how many
 * retired pieces are left after each. */
enum step { GROW, CARRY, STALL, ON, WAIT, LOOK };

static unsigned retired(struct bed *b) {
  struct model_counts c;
  model_counts(b->model, &c);
  /* At the start: none of Device memory. */
  unsigned n = 0;
  for (uint64_t left = c.used[RIG_DEVICE] - b->d->local.memory.bytes; left;
       left -= 256 * KIB)
    n++;
  return n;
}

static void test_replaced(void **state) {
  (void)state;
  static const struct {
    enum step step;
    unsigned retired;
  } t[] = {
      /* Nobody used it, but nobody said so either. */
      {GROW, 1},
      {LOOK, 1},
      {STALL, 1},
      {CARRY, 1},
      {LOOK, 1},
      /* The middle one of two growths. */
      {GROW, 2},
      {LOOK, 2},
      {ON, 2},
      {WAIT, 2},
      /* Carried and reached; the second is not carried. */
      {LOOK, 1},
      {LOOK, 1},
      {STALL, 1},
      {CARRY, 1},
      {LOOK, 1},
      {ON, 1},
      {WAIT, 1},
      {GROW, 1}, /* it frees one and retires one */
      {CARRY, 1},
      {WAIT, 1},
      {LOOK, 0},
      {LOOK, 0},
  };
  for (int last = 0; last <= (int)COUNT(t); last++) {
    struct bed b;
    uint64_t v = 0, need = 576;
    begin(&b);
    grow(&b, need);
    for (int i = 0; i < last; i++) {
      switch (t[i].step) {
      case GROW: /* all pieces are of 256 KiB */
        need += 32;
        grow(&b, need);
        break;
      case CARRY:
        v = carry(&b);
        break;
      case STALL:
        model_stall(b.model, true);
        break;
      case ON:
        model_stall(b.model, false);
        break;
      case WAIT:
        reached(&b, v);
        break;
      case LOOK:
        look(&b);
        break;
      }
      if (retired(&b) != t[i].retired)
        fail_msg("step %d: %u retired pieces", i, retired(&b));
    }
    model_stall(b.model, false);
    reached(&b, rings_last(&b.d->rings));
    finish(&b); /* frees what is left at any step */
  }
}

/* ---- failures ---- */

static void test_answers(void **state) {
  (void)state;
  static const struct {
    enum rig_nv_answer answer;
    int error;
    const char *text;
  } t[] = {
      {RIG_NV_LACKING, RIG_NV_SHORT,
       "local memory of 262144 bytes: Device memory: path_alloc failed on "
       "purpose"},
      {RIG_NV_DENIED, RIG_NV_REFUSED,
       "Device memory: path_alloc failed on purpose"},
      {RIG_NV_FAULTED, RIG_NV_FAULT,
       "Device memory: path_alloc failed on purpose"},
  };
  for (size_t i = 0; i < COUNT(t); i++) {
    struct bed b;
    uint64_t need = 5;
    begin(&b);
    b.f.answer = t[i].answer;
    b.f.fail_at = b.f.calls + 1;
    EXPECT(rig_nv_local(b.d, 576, &need), t[i].error, t[i].text);
    assert_int_equal(need, t[i].error == RIG_NV_SHORT ? 262144 : 5);
    assert_null(b.d->rings.setup);
    if (t[i].error == RIG_NV_FAULT) {
      EXPECT(rig_nv_local(b.d, 576, NULL), RIG_NV_LOST, t[i].text);
      finish(&b);
      continue;
    }
    b.f.fail_at = b.f.calls + 1;
    assert_int_equal(rig_nv_local(b.d, 576, NULL), -t[i].error);
    grow(&b, 576);
    assert_int_equal(record(&b).seq, 1);
    finish(&b);
  }
}

/* A growth that fails at any step leaves what there was. */
static void test_failing_growth(void **state) {
  (void)state;
  struct bed b;
  begin(&b);
  grow(&b, 576);
  struct setup before = record(&b);
  unsigned live = b.live;
  b.fail_at = b.calls + 1;
  assert_int_equal(rig_nv_local(b.d, 4096, NULL), -RIG_NV_HOST_MEMORY);
  assert_non_null(strstr(rig_nv_why(), "the host allocator has no"));
  assert_memory_equal(b.d->rings.setup, &before, sizeof before);
  b.f.fail_at = b.f.calls + 1;
  assert_int_equal(rig_nv_local(b.d, 4096, NULL), -RIG_NV_REFUSED);
  assert_memory_equal(b.d->rings.setup, &before, sizeof before);
  assert_int_equal(b.live, live);
  assert_null(b.d->local.retired);
  EXPECT(rig_nv_local(b.d, UINT64_C(1) << 40, NULL), RIG_NV_INVALID,
         "1099511627776 bytes of local memory a thread take 2^40 bytes or "
         "more");
  assert_memory_equal(b.d->rings.setup, &before, sizeof before);
  finish(&b);
}

/* A free that fails: whose call reports it, and that the rest goes on. */
static void test_failing_free(void **state) {
  (void)state;
  static const char *const text = "free: path_free failed on purpose";
  for (int which = 0; which < 3; which++) {
    struct bed b;
    struct rig_nv_region *r = NULL;
    begin(&b);
    grow(&b, 576);
    grow(&b, 1024);
    reached(&b, carry(&b));
    b.f.answer = RIG_NV_FAULTED;
    b.f.fail_at = b.f.calls + 1;
    switch (which) {
    case 0:
      EXPECT(rig_nv_alloc(b.d, RIG_DEVICE, 4, &r), RIG_NV_FAULT, text);
      assert_null(r);
      break;
    case 1:
      EXPECT(rig_nv_local(b.d, 4096, NULL), RIG_NV_FAULT, text);
      assert_int_equal(record(&b).seq, 2);
      break;
    default:
      b.f.fail_at = 0;
      grow(&b, 1025); /* frees the first, retires the second */
      break;
    }
    assert_int_equal(b.d->local.retired != NULL, which == 2);
    DONE(rig_nv_stop(b.d, NULL));
    /* The path kept one piece of the first two rows. */
    struct model_counts c;
    model_counts(b.model, &c);
    assert_int_equal(c.memories, 1 + (which < 2));
    DONE(rig_nv_release(b.d));
    assert_int_equal(b.live, 0);
    model_counts(b.model, &c);
    assert_int_equal(c.memories, which < 2);
    if (which == 2)
      DONE(rig_nv_path_close(b.model));
  }
}

/* ---- stop ---- */

/* The n-th path call of stop fails: it frees all other memory, or keeps all of
 * it where the channels may still run. No host memory stays. */
static void test_stop(void **state) {
  (void)state;
  for (int personality = MODEL_PATH_KERNEL; personality < MODEL_PATHS;
       personality++) {
    bool whole = false;
    for (unsigned n = 1; !whole; n++) {
      struct bed b;
      bed_options(&b, personality, 0x900);
      bed_make(&b);
      grow(&b, 576);
      grow(&b, 1024);
      uint64_t device = device_bytes(&b);
      b.f.answer = RIG_NV_FAULTED;
      b.f.fail_at = b.f.calls + n;
      int e = rig_nv_stop(b.d, NULL);
      whole = b.f.failed == NULL;
      struct model_counts c;
      model_counts(b.model, &c);
      const bool ends = personality != MODEL_PATH_KERNEL; /* the path's stop */
      uint64_t left = c.used[RIG_DEVICE];
      bool freed = b.f.failed != NULL && strcmp(b.f.failed, "path_free") == 0;
      if (whole || freed)
        assert_true(e == (whole ? 0 : -RIG_NV_FAULT) && left < device);
      else /* what channels that still are may use stays */
        assert_int_equal(left, c.channels != 0 && !ends ? device : 0);
      b.f.fail_at = 0;
      EXPECT(rig_nv_local(b.d, 576, NULL), RIG_NV_REFUSED,
             "the device is stopped");
      DONE(rig_nv_release(b.d));
      assert_int_equal(b.live, 0);
      if (whole)
        DONE(rig_nv_path_close(b.model));
    }
  }
}

static int local_in_lock(void *arg) {
  struct bed *b = arg;
  return rig_nv_local(b->d, 576, NULL);
}

static void test_lock_held(void **state) {
  (void)state;
  struct bed b;
  struct rig_nv_lock l;
  begin(&b);
  DONE(rig_nv_lock_init(&l, &rig_nv_lock_path));
  assert_int_equal(rig_nv_lock_protect(&l, local_in_lock, &b), -RIG_NV_INVALID);
  assert_null(b.d->rings.setup);
  rig_nv_lock_fini(&l);
  finish(&b);
}

/* ---- threads ---- */

enum { GROWERS = 4, GROWTHS = 24, POSTS = 400 };

struct grower {
  struct bed *b;
  uint32_t *done; /* ck_pr */
  uint64_t first;
};

static void *grower(void *arg) {
  struct grower *g = arg;
  for (unsigned i = 0; i < GROWTHS; i++) {
    struct rig_nv_region *r;
    SURE(rig_nv_local(g->b->d, g->first + i * 128, NULL) == 0);
    if (i % 4 == 0)
      SURE(local_code_changed(g->b->d) == 0);
    if (i % 5 == 0)
      SURE(rig_nv_alloc(g->b->d, RIG_PINNED, 4, &r) == 0 &&
           rig_nv_free(g->b->d, r) == 0);
  }
  ck_pr_inc_32(g->done);
  return NULL;
}

/* What a poster reads of a record is one record. */
static void *poster(void *arg) {
  struct grower *g = arg;
  struct rig_submission s = {0};
  uint64_t v;
  for (unsigned i = 0; i < POSTS || ck_pr_load_32(g->done) < GROWERS; i++) {
    ring_rcu_lock();
    const struct setup *at = ring_rcu_dereference(&g->b->d->rings.setup);
    struct setup now = at ? *at : (struct setup){0};
    ring_rcu_unlock();
    SURE(now.seq == (setup_after(now.local_seq, now.code_seq) ? now.local_seq
                                                              : now.code_seq));
    SURE(rig_nv_post_wait(g->b->d, &s, UINT64_MAX, &v) == 0);
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  struct bed b;
  struct grower g[GROWERS + 1];
  pthread_t thread[GROWERS + 1];
  uint32_t done = 0;
  bed_options(&b, RIG_NV_LIKE_KERNEL, 0x900);
  b.plain = true;
  bed_make(&b);
  for (unsigned i = 0; i <= GROWERS; i++) {
    g[i] = (struct grower){&b, &done, 64 + i * 16};
    assert_int_equal(
        pthread_create(&thread[i], NULL, i ? grower : poster, &g[i]), 0);
  }
  for (unsigned i = 0; i <= GROWERS; i++)
    pthread_join(thread[i], NULL);
  /* The largest: what the last thread asked for in the end. */
  const uint64_t need = 64 + GROWERS * 16 + (GROWTHS - 1) * 128;
  assert_int_equal(b.d->local.per_thread, (need + 31) / 32 * 32);
  assert_int_equal(record(&b).local, b.d->local.memory.address);
  reached(&b, rings_last(&b.d->rings));
  finish(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_records),
      cmocka_unit_test(test_told),
      cmocka_unit_test(test_wrap),
      cmocka_unit_test(test_replaced),
      cmocka_unit_test(test_answers),
      cmocka_unit_test(test_failing_growth),
      cmocka_unit_test(test_failing_free),
      cmocka_unit_test(test_stop),
      cmocka_unit_test(test_lock_held),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
