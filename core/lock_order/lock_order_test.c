/* SPDX-License-Identifier: ISC */
#define _POSIX_C_SOURCE 200809L /* barriers */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/api/rig_nv.h"
#include "core/lock_order/lock_order.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Looks past the order, at the mutex: whether another thread could take l. */
static int is_free(struct rig_nv_lock *l) {
  if (pthread_mutex_trylock(&l->mutex) != 0)
    return 0;
  assert_int_equal(pthread_mutex_unlock(&l->mutex), 0);
  return 1;
}

static void contains(const char *name, const char *text, const char *part) {
  if (!strstr(text, part))
    fail_msg("%s: \"%s\" lacks \"%s\"", name, text, part);
}

/* Every pair of the ready classes: a lock held, another one wanted. */

static const struct rig_nv_lock_class *const ready[] = {
    &rig_nv_lock_image, &rig_nv_lock_local, &rig_nv_lock_growth,
    &rig_nv_lock_flush, &rig_nv_lock_path};
enum { I, L, G, F, P };

#define REFUSED(want, held)                                                    \
  "take of lock " want " at want.c:2 refused: the thread holds lock " held     \
  ", taken at held.c:1, and ranks must rise"
#define IMAGE "\"image\" (rank 100)"
#define LOCAL "\"local\" (rank 200)"
#define GROWTH "\"growth\" (rank 300)"
#define FLUSH "\"flush\" (rank 350)"
#define PATH "\"path\" (rank 400)"

static const struct {
  int held, wanted;
  const char *refusal; /* NULL: taken */
} pairs[] = {
    {I, I, REFUSED(IMAGE, IMAGE)},
    {I, L, NULL},
    {I, G, NULL},
    {I, F, NULL},
    {I, P, NULL},
    {L, I, REFUSED(IMAGE, LOCAL)},
    {L, L, REFUSED(LOCAL, LOCAL)},
    {L, G, NULL},
    {L, F, NULL},
    {L, P, NULL},
    {G, I, REFUSED(IMAGE, GROWTH)},
    {G, L, REFUSED(LOCAL, GROWTH)},
    {G, G, REFUSED(GROWTH, GROWTH)},
    {G, F, NULL},
    {G, P, NULL},
    {F, I, REFUSED(IMAGE, FLUSH)},
    {F, L, REFUSED(LOCAL, FLUSH)},
    {F, G, REFUSED(GROWTH, FLUSH)},
    {F, F, REFUSED(FLUSH, FLUSH)},
    {F, P, NULL},
    {P, I, REFUSED(IMAGE, PATH)},
    {P, L, REFUSED(LOCAL, PATH)},
    {P, G, REFUSED(GROWTH, PATH)},
    {P, F, REFUSED(FLUSH, PATH)},
    {P, P, REFUSED(PATH, PATH)},
};

static void test_pairs(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(pairs); i++) {
    struct rig_nv_lock held, wanted;
    assert_int_equal(rig_nv_lock_init(&held, ready[pairs[i].held]), 0);
    assert_int_equal(rig_nv_lock_init(&wanted, ready[pairs[i].wanted]), 0);
    assert_int_equal(rig_nv_lock_take_at(&held, "held.c:1"), 0);
    int got = rig_nv_lock_take_at(&wanted, "want.c:2");
    assert_false(is_free(&held));
    if (pairs[i].refusal) {
      assert_int_equal(got, -RIG_NV_INVALID);
      assert_string_equal(rig_nv_why(), pairs[i].refusal);
      assert_true(is_free(&wanted));
    } else {
      assert_int_equal(got, 0);
      assert_false(is_free(&wanted));
      rig_nv_lock_give(&wanted);
    }
    rig_nv_lock_give(&held);
    assert_true(is_free(&held));
    rig_nv_lock_fini(&wanted);
    rig_nv_lock_fini(&held);
  }
}

/* Scripts of one thread. Steps: "+x" takes x, "!x" is refused x, which stays
 * as it was, "-x" gives x, "." is idle, "#" is not. Locks: i, l, g, f, p, P the
 * second path lock, z a zeroed one, 0..8 of rising ranks of their own. */

static const struct {
  const char *name, *script, *reason; /* the last refusal's; NULL none */
} scripts[] = {
    {"nothing held", ".", NULL},
    {"the whole order", "+i+l+g+f+p#-p-f-g-l-i.", "holds lock \"path\""},
    {"a middle rank again", "+i+l-l+l-l+g-g+l-l-i.", NULL},
    {"skips ranks", "+i+p-p+g-g-i.", NULL},
    {"second path lock", "+p!P-p+P-P.",
     "take of lock \"path\" (rank 400) at P refused: the thread holds lock "
     "\"path\" (rank 400), taken at p,"},
    {"recursive take", "+p!p-p+p-p.",
     "take of lock \"path\" at p refused: the thread holds that very lock, "
     "taken at p"},
    {"recursive take below the last", "+i+p!i-p-i.",
     "\"image\" at i refused: the thread holds that very lock, taken at i"},
    {"against the last, not the first", "+i+p!l-p+l-l-i.",
     "holds lock \"path\" (rank 400), taken at p"},
    {"given first first", "+i+l+p-i#-l#-p.", "holds lock \"path\""},
    {"given from the middle", "+i+l+p-l!l!g-p+l-i-l.",
     "take of lock \"growth\" (rank 300) at g refused: the thread holds lock "
     "\"path\" (rank 400)"},
    {"the highest given early", "+i+p-p!i+l-i+p-l-p.", "that very lock"},
    {"eight held", "+0+1+2+3+4+5+6+7-7-6-5-4-3-2-1-0.", NULL},
    {"a ninth", "+0+1+2+3+4+5+6+7!8-7+8-8-6-5-4-3-2-1-0.",
     "take of lock \"own8\" at 8 refused: the thread holds 8 locks, the most "
     "there may be, the last \"own7\", taken at 7"},
    {"a ninth after one from the middle",
     "+0+1+2+3+4+5+6+7-3+8!8-0-1-2-4-5-6-7-8.", "that very lock"},
    {"no class", "!z+p!z-p.", "take at z refused: the lock has no class"},
};

static const char lock_names[] = "ilgfpPz012345678";
#define OWN(n) {"own" #n, 500 + n, 0}
static const struct rig_nv_lock_class own[] = {
    OWN(0), OWN(1), OWN(2), OWN(3), OWN(4), OWN(5), OWN(6), OWN(7), OWN(8)};

struct locks {
  struct rig_nv_lock lock[sizeof lock_names - 1];
};

static void locks_make(struct locks *s) {
  memset(s, 0, sizeof *s);
  for (size_t i = 0; i < COUNT(s->lock); i++) {
    if (lock_names[i] == 'z')
      continue;
    const struct rig_nv_lock_class *c = i < COUNT(ready) ? ready[i]
                                        : lock_names[i] == 'P'
                                            ? &rig_nv_lock_path
                                            : &own[lock_names[i] - '0'];
    assert_int_equal(rig_nv_lock_init(&s->lock[i], c), 0);
  }
}

static void locks_end(struct locks *s) {
  for (size_t i = 0; i < COUNT(s->lock); i++)
    if (lock_names[i] != 'z')
      rig_nv_lock_fini(&s->lock[i]);
}

/* Runs the step at p and returns the next one. */
static const char *step(struct locks *s, const char *name, const char *p) {
  static const char sites[] = "i\0l\0g\0f\0p\0P\0z\0"
                              "0\0001\0002\0003\0004\0005\0006\0007\0008";
  if (*p == '.' || *p == '#') {
    int expected = *p == '.' ? 0 : -RIG_NV_INVALID;
    if (rig_nv_lock_idle() != expected)
      fail_msg("%s: at \"%s\"", name, p);
    return p + 1;
  }
  size_t i = (size_t)(strchr(lock_names, p[1]) - lock_names);
  struct rig_nv_lock *l = &s->lock[i];
  int was_free = is_free(l);
  if (*p == '-') {
    rig_nv_lock_give(l);
    if (!is_free(l))
      fail_msg("%s: not given at \"%s\"", name, p);
    return p + 2;
  }
  int expected = *p == '+' ? 0 : -RIG_NV_INVALID;
  if (rig_nv_lock_take_at(l, sites + 2 * i) != expected)
    fail_msg("%s: at \"%s\": %s", name, p, rig_nv_why());
  if (is_free(l) != (*p == '+' ? 0 : was_free))
    fail_msg("%s: wrong state at \"%s\"", name, p);
  return p + 2;
}

static void test_scripts(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(scripts); i++) {
    struct locks s;
    locks_make(&s);
    for (const char *p = scripts[i].script; *p;)
      p = step(&s, scripts[i].name, p);
    if (scripts[i].reason)
      contains(scripts[i].name, rig_nv_why(), scripts[i].reason);
    assert_int_equal(rig_nv_lock_idle(), 0);
    locks_end(&s);
  }
}

/* Calls of a function in protect and guarded. */

struct call {
  int result, ran;
  struct rig_nv_lock *taken; /* which is not free while the function runs */
};

static int body(void *arg) {
  struct call *c = arg;
  c->ran++;
  if (c->taken)
    assert_false(is_free(c->taken));
  return c->result;
}

static const struct {
  const char *name;
  int guarded; /* else protected by a path lock */
  const struct rig_nv_lock_class *held;
  int result, expected, ran;
  const char *reason;
} calls[] = {
    {"protect", 0, NULL, 7, 7, 1, NULL},
    {"protect inside an image's", 0, &rig_nv_lock_image, 0, 0, 1, NULL},
    {"protect a failing function", 0, NULL, -RIG_NV_FAULT, -RIG_NV_FAULT, 1,
     NULL},
    {"protect inside a path's", 0, &rig_nv_lock_path, 7, -RIG_NV_INVALID, 0,
     "take of lock \"path\""},
    {"guarded", 1, NULL, 7, 7, 1, NULL},
    {"guarded failing", 1, NULL, -RIG_NV_LOST, -RIG_NV_LOST, 1, NULL},
    {"guarded inside an image's", 1, &rig_nv_lock_image, 7, -RIG_NV_INVALID, 0,
     "call refused: the thread holds lock \"image\", taken at h"},
    {"guarded inside a path's", 1, &rig_nv_lock_path, 7, -RIG_NV_INVALID, 0,
     "call refused: the thread holds lock \"path\", taken at h"},
};

static void test_calls(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(calls); i++) {
    struct rig_nv_lock held, l;
    assert_int_equal(rig_nv_lock_init(&l, &rig_nv_lock_path), 0);
    if (calls[i].held) {
      assert_int_equal(rig_nv_lock_init(&held, calls[i].held), 0);
      assert_int_equal(rig_nv_lock_take_at(&held, "h"), 0);
    }
    struct call c = {calls[i].result, 0, calls[i].guarded ? NULL : &l};
    int got = calls[i].guarded ? rig_nv_lock_guarded(body, &c)
                               : rig_nv_lock_protect(&l, body, &c);
    if (got != calls[i].expected || c.ran != calls[i].ran)
      fail_msg("%s: %d, ran %d", calls[i].name, got, c.ran);
    if (calls[i].reason)
      contains(calls[i].name, rig_nv_why(), calls[i].reason);
    assert_true(is_free(&l));
    if (calls[i].held) {
      rig_nv_lock_give(&held);
      rig_nv_lock_fini(&held);
    }
    assert_int_equal(rig_nv_lock_idle(), 0);
    rig_nv_lock_fini(&l);
  }
}

static const struct {
  const char *name;
  struct rig_nv_lock_class cls;
  int expected;
  const char *reason;
} inits[] = {
    {"a rank of its own", {"own", -1, 0}, 0, NULL},
    {"no name", {NULL, 1, 0}, -RIG_NV_INVALID, "class name"},
    {"flags",
     {"own", 1, 64},
     -RIG_NV_INVALID,
     "\"own\" has unknown flags 0x40"},
    {"a context",
     {"own", 1, RIG_NV_LOCK_CONTEXT},
     -RIG_NV_INVALID,
     "\"own\" is a context's"},
};

static void test_inits(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(inits); i++) {
    struct rig_nv_lock l;
    if (rig_nv_lock_init(&l, &inits[i].cls) != inits[i].expected)
      fail_msg("%s", inits[i].name);
    if (inits[i].expected == 0)
      rig_nv_lock_fini(&l);
    else
      contains(inits[i].name, rig_nv_why(), inits[i].reason);
  }
  struct rig_nv_lock l;
  assert_int_equal(rig_nv_lock_init(&l, NULL), -RIG_NV_INVALID);
}

/* Sites are the caller's lines. */
static void test_sites(void **state) {
  (void)state;
  static struct rig_nv_lock fixed = RIG_NV_LOCK(&rig_nv_lock_path);
  char at[256];
  assert_int_equal(rig_nv_lock_take(&fixed), 0);
  snprintf(at, sizeof at, "taken at %s:%d", __FILE__, __LINE__ - 1);
  assert_int_equal(rig_nv_lock_idle(), -RIG_NV_INVALID);
  contains("take", rig_nv_why(), at);
  assert_int_equal(rig_nv_lock_protect(&fixed, body, NULL), -RIG_NV_INVALID);
  snprintf(at, sizeof at, "at %s:%d refused", __FILE__, __LINE__ - 1);
  contains("protect", rig_nv_why(), at);
  rig_nv_lock_give(&fixed);
}

/* The handler. */

static int handled;
static char handled_text[512];
static struct rig_nv_lock nested;

static void on_refusal(const char *text) {
  handled++;
  snprintf(handled_text, sizeof handled_text, "%s", text);
  /* A failure of the handler's own: neither reported nor the reason kept. */
  assert_int_equal(rig_nv_lock_idle(), -RIG_NV_INVALID);
  assert_int_equal(rig_nv_lock_init(&nested, NULL), -RIG_NV_INVALID);
}

static void on_other(const char *text) { (void)text; }

static void test_handler(void **state) {
  (void)state;
  struct rig_nv_lock a, b;
  struct call c = {0, 0, NULL};
  assert_int_equal(rig_nv_lock_init(&a, &rig_nv_lock_path), 0);
  assert_int_equal(rig_nv_lock_init(&b, &rig_nv_lock_path), 0);
  assert_null(rig_nv_lock_on_report(on_refusal));
  handled = 0;
  assert_int_equal(rig_nv_lock_take_at(&a, "a"), 0);
  assert_int_equal(handled, 0);
  for (int i = 1; i <= 4; i++) {
    int got = i == 1   ? rig_nv_lock_take_at(&b, "b")
              : i == 2 ? rig_nv_lock_protect(&b, body, &c)
              : i == 3 ? rig_nv_lock_guarded(body, &c)
                       : rig_nv_lock_idle();
    assert_int_equal(got, -RIG_NV_INVALID);
    assert_int_equal(handled, i);
    assert_string_equal(handled_text, rig_nv_why());
    contains("handler", handled_text, "refused: the thread holds lock");
  }
  assert_int_equal(c.ran, 0);
  assert_true(rig_nv_lock_on_report(on_other) == on_refusal);
  assert_int_equal(rig_nv_lock_idle(), -RIG_NV_INVALID);
  assert_true(rig_nv_lock_on_report(NULL) == on_other);
  assert_int_equal(handled, 4);
  rig_nv_lock_give(&a);
  rig_nv_lock_fini(&b);
  rig_nv_lock_fini(&a);
}

/* Threads. Assertions are the main thread's: cmocka's jump out of others. */

static pthread_barrier_t both;

struct holder {
  struct rig_nv_lock first, second;
  int before, took_first, took_second, refused, after;
};

static void *hold_two(void *arg) {
  struct holder *h = arg;
  pthread_barrier_wait(&both);
  h->before = rig_nv_lock_idle();
  h->took_first = rig_nv_lock_take(&h->first);
  pthread_barrier_wait(&both);
  h->took_second = rig_nv_lock_take(&h->second);
  pthread_barrier_wait(&both);
  h->refused = rig_nv_lock_take(&h->first);
  if (h->took_first == 0)
    rig_nv_lock_give(&h->first);
  if (h->took_second == 0)
    rig_nv_lock_give(&h->second);
  pthread_barrier_wait(&both);
  h->after = rig_nv_lock_idle();
  return NULL;
}

/* One thread's path lock forbids another thread no image lock. */
static void test_two_threads(void **state) {
  (void)state;
  static const struct rig_nv_lock_class last = {"last", 900, 0};
  struct holder h[2] = {
      {RIG_NV_LOCK(&rig_nv_lock_image), RIG_NV_LOCK(&rig_nv_lock_local), 9, 9,
       9, 9, 9},
      {RIG_NV_LOCK(&rig_nv_lock_path), RIG_NV_LOCK(&last), 9, 9, 9, 9, 9}};
  pthread_t t[2];
  pthread_barrier_init(&both, NULL, 2);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&t[i], NULL, hold_two, &h[i]), 0);
  for (int i = 0; i < 2; i++)
    pthread_join(t[i], NULL);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(h[i].before, 0);
    assert_int_equal(h[i].took_first, 0);
    assert_int_equal(h[i].took_second, 0);
    assert_int_equal(h[i].refused, -RIG_NV_INVALID);
    assert_int_equal(h[i].after, 0);
    rig_nv_lock_fini(&h[i].first);
    rig_nv_lock_fini(&h[i].second);
  }
  pthread_barrier_destroy(&both);
}

/* A refused take leaves the lock for others. */
static void *take_and_give(void *l) {
  if (rig_nv_lock_take((struct rig_nv_lock *)l) != 0)
    return l;
  rig_nv_lock_give(l);
  return NULL;
}

static void test_refused_is_free(void **state) {
  (void)state;
  struct rig_nv_lock path = RIG_NV_LOCK(&rig_nv_lock_path);
  struct rig_nv_lock image = RIG_NV_LOCK(&rig_nv_lock_image);
  pthread_t t;
  void *failed;
  assert_int_equal(rig_nv_lock_take(&path), 0);
  assert_int_equal(rig_nv_lock_take(&image), -RIG_NV_INVALID);
  assert_int_equal(pthread_create(&t, NULL, take_and_give, &image), 0);
  pthread_join(t, &failed);
  assert_null(failed);
  rig_nv_lock_give(&path);
}

enum { ADDERS = 4, ADDS = 2000 };
static struct rig_nv_lock sum_lock = RIG_NV_LOCK(&rig_nv_lock_local);
static unsigned sum;

static int add_one(void *unused) {
  (void)unused;
  sum++;
  return 0;
}

static void *add(void *unused) {
  for (int i = 0; i < ADDS; i++)
    (void)rig_nv_lock_protect(&sum_lock, add_one, NULL);
  return unused;
}

static void test_excludes(void **state) {
  (void)state;
  pthread_t t[ADDERS];
  sum = 0;
  for (int i = 0; i < ADDERS; i++)
    assert_int_equal(pthread_create(&t[i], NULL, add, NULL), 0);
  for (int i = 0; i < ADDERS; i++)
    pthread_join(t[i], NULL);
  assert_int_equal(sum, ADDERS * ADDS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_scripts),
      cmocka_unit_test(test_calls),
      cmocka_unit_test(test_inits),
      cmocka_unit_test(test_sites),
      cmocka_unit_test(test_handler),
      cmocka_unit_test(test_two_threads),
      cmocka_unit_test(test_refused_is_free),
      cmocka_unit_test(test_excludes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
