/* SPDX-License-Identifier: ISC */
#define _GNU_SOURCE /* pthread_timedjoin_np, barriers */

#include "core/lock_order/watch_bed.h"

#include <time.h>

/* Scripts. "|" ends a thread and starts the next one, so that no two of a
 * script ever meet. Steps, of the lock or context x:
 *
 *   +x take   !x take, refused   ?x try   -x give   (x enter   )x leave
 *   Xx end its class    ~b may block   ~a may allocate   ~x may wait for x
 *   @0 @1 the graph off, on
 *
 * and after a step "*" for each report that it makes; none, it makes none.
 *
 * Locks: a..h of unranked classes, A..H others of the same; 1..4 of rising
 * ranks; m, n, M of a class by address, at rising addresses, unranked; x, y of
 * one with a rank between 2's and 3's; t of a class that forbids a take inside,
 * q of one that forbids blocking, u one that forbids allocating, z of one whose
 * rank is not read. Contexts: r
 * the RCU section, v reserve to encoded, o no allocation, g, i, j, k own ones
 * that forbid nothing. */

static const struct {
  const char *name, *script;
  const char *text; /* in the last report; NULL: there is none */
} scripts[] = {
    /* cycles */
    {"one order", "+a+b-b-a|+a+b-b-a|+a+b+c-c-b-a", NULL},
    {"given in any order", "+a+b-a-b|+a+b-b-a", NULL},
    {"never both at once", "+a-a+b-b|+b-b+a-a", NULL},
    {"two locks, one thread", "+a+b-b-a+b+a*-a-b", "cycle of 2 classes"},
    {"two locks, two threads", "+a+b-b-a|+b+a*-a-b", "cycle of 2 classes"},
    {"three locks, three threads", "+a+b-b-a|+b+c-c-b|+c+a*-a-c",
     "cycle of 3 classes"},
    {"three, the middle last", "+c+a-a-c|+a+b-b-a|+b+c*-c-b",
     "take of \"c\" at c closes a cycle of 3 classes"},
    {"eight locks, eight threads",
     "+a+b-b-a|+b+c-c-b|+c+d-d-c|+d+e-e-d|+e+f-f-e|+f+g-g-f|+g+h-h-g|"
     "+h+a*-a-h",
     "cycle of 8 classes"},
    {"reported once", "+a+b-b-a|+b+a*-a-b|+b+a-a-b|+b+a-a-b|+a+b-b-a",
     "cycle of 2"},
    {"reported once, then another",
     "+a+b+c-c-b-a|+b+a*-a-b|+c+a*-a-c|+c+b*-b-c",
     "take of \"b\" at b closes a cycle of 2"},
    {"of classes, not of locks", "+a+b-b-a|+B+A*-A-B", "cycle of 2"},
    {"from below the last", "+a+b+c-c-b-a|+c+d+a*-a-d-c", "cycle of 2"},
    {"after a give between", "+a+b-a+c-c-b|+c+b*-b-c|+c+a*-a-c", "cycle of 3"},
    {"one report of one cycle", "+a+b-b-a|+b+c-c-b|+b+c+a*-a-c-b",
     "cycle of 2"},
    {"two reports of two cycles", "+a+b-b-a|+a+c-c-a|+b+c+a**-a-c-b",
     "cycle of 2"},
    {"the shortest way", "+a+b+c+d-d-c-b-a|+d+a*-a-d", "cycle of 2"},
    {"a reported edge is no order", "+a+b-b-a|+b+a*-a-b|+a+c-c-a|+c+b-b-c",
     "take of \"a\""},
    {"ranks and none", "+1+a-a-1|+a+2-2-a|+2+b-b-2|+b+1*-1-b",
     "take of \"one\""},
    {"ranks alone", "+1+2+3-3-2-1|+1+3-3-1|+3!1*-3", "ranks must rise"},
    {"a refused take teaches nothing", "+3!1*-3|+1+3-3-1", "ranks must rise"},
    {"a rank that is not read", "+z+1-1-z@0+z+1-1-z", NULL},
    {"unranked between ranks", "+2+a!1*-a-2", "holds lock \"two\""},
    /* of one class */
    {"nested in its class", "+a+A*-A-a", "inside another of its class"},
    {"nested, once", "+a+A*-A-a|+A+a-a-A", "inside another of its class"},
    {"the very lock", "+a!a*-a", "that very lock"},
    {"the very lock, below", "+a+b!a*-b-a", "that very lock"},
    {"by address", "+m+n+M-M-n-m|+m+M-M-m", NULL},
    {"by address, against", "+n!m*-n", "addresses must rise"},
    {"by address, against the first", "+m+M!n*-M-m", "addresses must rise"},
    {"by address, against one below", "+M?m!n*-m-M", "addresses must rise"},
    {"by address, given between", "+m+M-M+n-n-m", NULL},
    {"by address with a rank", "+2+x+y+3-3-y-x-2", NULL},
    {"by address with a rank, against", "+y!x*-y", "addresses must rise"},
    {"by address, a rank too high", "+3!x*-3", "ranks must rise"},
    {"by address in a cycle", "+m+n+a-a-n-m|+a+M*-M-a", "cycle of 2"},
    /* tries */
    {"a try is no wait", "+a+b-b-a|+b?a-a-b", NULL},
    {"a try's lock is held", "?a+b-b-a|+b+a*-a-b", "cycle of 2"},
    {"a take under a try", "+a+b-b-a|?b+a*-a-b", "cycle of 2"},
    {"a try against ranks", "+3?1-1-3|+3?1!2*-1-3", "holds lock \"three\""},
    {"a try below, the upper one given", "+3?1-3+2-2-1", NULL},
    {"a try in its class", "+a?A-A-a", NULL},
    {"a try against addresses", "+n?m-m!m*-n", "addresses must rise"},
    /* contexts */
    {"a grace period", "~r|+a~r-a|(r)r~r", NULL},
    {"a grace period in a section", "(r~r*)r", "may wait at ~ inside"},
    {"in a nested section", "(r(r)r~r*)r~r", "\"RCU section\" (r)"},
    {"a lock across both", "+a~r-a|(r+a*-a)r",
     "take of \"a\" at a closes a cycle of 2 classes"},
    {"across both, the section first", "(r+a-a)r|+a~r*-a",
     "wants \"RCU section\" (~)"},
    {"across three threads", "(r+a-a)r|+a+b-b-a|+b~r*-b", "cycle of 3"},
    {"a try in a section", "(r?a-a)r|+a~r-a", NULL},
    {"a section in a lock", "+a(r)r-a|(r)r~r", NULL},
    {"blocks in a section", "(r~b*)r", "may block at ~ inside \"RCU section\""},
    {"allocates in a section", "(r~a)r", NULL},
    {"blocks outside", "~b(r)r~b", NULL},
    {"blocks, once a place", "(r~b*~b)r|(r~b)r", "may block"},
    {"allocates while reserved", "(v~a*)v",
     "may allocate at ~ inside \"reserve to encoded\""},
    {"blocks while reserved", "(v~b*)v", "may block"},
    {"takes while reserved", "(v+a*-a)v",
     "take of \"a\" at a inside \"reserve to encoded\" (v)"},
    {"takes while reserved, once", "(v+a*-a)v|(v+a-a)v", "take of \"a\""},
    {"tries while reserved", "(v?a-a)v", NULL},
    {"waits for values while reserved", "(v~v*)v", "may wait"},
    {"waits for values with a lock", "+a~v-a|(v)v", NULL},
    {"takes it while reserved", "+a~v-a|(v+a*-a)v", "cycle of 2"},
    {"allocates where none may", "(o~a*)o", "\"call that allocates nothing\""},
    {"blocks where none may allocate", "(o~b)o~a", NULL},
    {"two contexts, two reports", "(v(o~a**)o)v", "may allocate"},
    {"left in any order", "(r(v)r~a*)v~b", "reserve to encoded"},
    {"own contexts", "(g+a-a)g|+a~g*-a", "cycle of 2"},
    {"own in itself", "(g~g*)g~g", "may wait at ~ inside \"own g\" (g)"},
    {"own in own", "(g~i)g|(i~g*)i", "cycle of 2"},
    {"five contexts", "(g(i(j(k(r~b)r)k)j)i)g~b", NULL},
    {"a leave with no enter", ")r~b", NULL},
    {"a thread ends inside", "(r|",
     "a thread ended inside \"RCU section\" (r)"},
    {"no take in a lock's", "+t+a*-a-t", "inside \"leaf\" (t)"},
    {"no blocking in a lock's", "+q~b*~a-q", "may block"},
    {"no grace period in a lock's", "+q~r*-q", "may wait"},
    {"no allocation in a lock's", "+u~a*~b-u", "may allocate"},
    /* the graph's life */
    {"off", "@0+a+b-b-a+b+a-a-b(r~r~b)r", NULL},
    {"off for one", "@0+a+b-b-a@1+b+a-a-b", NULL},
    {"kept while off", "+a+b-b-a@0+c-c@1+b+a*-a-b", "cycle of 2"},
    {"on with one held", "@0+a@1+b-b-a+b+a*-a-b", "cycle of 2"},
    {"off inside a context", "(r@0)r@1~b(r~b*)r", "may block"},
    {"a class ends", "+a+b-b-aXb+b+a-a-b", NULL},
    {"ends and is learned anew", "+a+b-b-aXb+a+b-b-a|+b+a*-a-b", "cycle of 2"},
    {"ends beside a lock held", "+aXb+b-b-a+b+a*-a-b", "cycle of 2"},
    {"a reported class ends", "+a+b-b-a+b+a*-a-bXa+a+b-b-a+b+a*-a-b",
     "cycle of 2"},
    {"the middle of a cycle ends", "+a+b-b-a|+b+c-c-bXb|+c+a-a-c", NULL},
};

#define OWN(name) {name, 0, RIG_NV_LOCK_UNRANKED}
static const struct rig_nv_lock_class unranked[] = {
    OWN("a"), OWN("b"), OWN("c"), OWN("d"),
    OWN("e"), OWN("f"), OWN("g"), OWN("h")};
static const struct rig_nv_lock_class ranked[] = {
    {"one", 500, 0}, {"two", 501, 0}, {"three", 503, 0}, {"four", 504, 0}};
static const struct rig_nv_lock_class by_address = {
    "by", 0, RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_BY_ADDRESS};
static const struct rig_nv_lock_class ranked_by_address = {
    "by rank", 502, RIG_NV_LOCK_BY_ADDRESS};
static const struct rig_nv_lock_class leaf = {
    "leaf", 0, RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_NO_TAKE};
static const struct rig_nv_lock_class quick = {
    "quick", 0, RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_NO_BLOCK};
static const struct rig_nv_lock_class lean = {
    "lean", 0, RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_NO_ALLOCATE};

static const struct rig_nv_lock_class far = {"far", 900, RIG_NV_LOCK_UNRANKED};

static const char letters[] = "abcdefghABCDEFGH1234mnMxytquz";
static struct rig_nv_lock locks[sizeof letters - 1];

static const struct rig_nv_lock_class *class_of(char c) {
  switch (c) {
  case 'm':
  case 'n':
  case 'M':
    return &by_address;
  case 'x':
  case 'y':
    return &ranked_by_address;
  case 't':
    return &leaf;
  case 'q':
    return &quick;
  case 'u':
    return &lean;
  case 'z':
    return &far;
  }
  if (c >= '1' && c <= '4')
    return &ranked[c - '1'];
  return &unranked[c >= 'a' ? c - 'a' : c - 'A'];
}

static const struct rig_nv_lock_class own_context[] = {
    {"own g", 0, RIG_NV_LOCK_CONTEXT},
    {"own i", 0, RIG_NV_LOCK_CONTEXT},
    {"own j", 0, RIG_NV_LOCK_CONTEXT},
    {"own k", 0, RIG_NV_LOCK_CONTEXT}};
static struct rig_nv_lock_record own[] = {
    RIG_NV_LOCK_RECORD(&own_context[0]), RIG_NV_LOCK_RECORD(&own_context[1]),
    RIG_NV_LOCK_RECORD(&own_context[2]), RIG_NV_LOCK_RECORD(&own_context[3])};

static struct rig_nv_lock_record *context_of(char c) {
  return c == 'r'   ? &rig_nv_lock_in_rcu
         : c == 'v' ? &rig_nv_lock_in_reserve
         : c == 'o' ? &rig_nv_lock_in_no_alloc
         : c == 'g' ? &own[0]
         : c == 'i' ? &own[1]
         : c == 'j' ? &own[2]
                    : &own[3];
}

/* "name of a letter" as a site: the letters of all, each a string. */
static const char *site_of(char c) {
  static char sites[128][2];
  sites[(unsigned char)c][0] = c;
  return sites[(unsigned char)c];
}

static void locks_make(void) {
  for (size_t i = 0; i < COUNT(locks); i++)
    assert_int_equal(rig_nv_lock_init(&locks[i], class_of(letters[i])), 0);
}

static void locks_end(void) {
  for (size_t i = 0; i < COUNT(locks); i++)
    rig_nv_lock_fini(&locks[i]);
}

/* A step; false: it went otherwise. */
static bool step(char what, char x) {
  const char *at = strchr(letters, x);
  struct rig_nv_lock *l = at ? &locks[at - letters] : NULL;
  switch (what) {
  case '+':
    return rig_nv_lock_take_at(l, site_of(x)) == 0;
  case '!':
    return rig_nv_lock_take_at(l, site_of(x)) == -RIG_NV_INVALID;
  case '?':
    return rig_nv_lock_try_at(l, site_of(x)) == 0;
  case '-':
    rig_nv_lock_give(l);
    return true;
  case 'X':
    rig_nv_lock_class_end(class_of(x));
    return true;
  case '(':
    if (rig_nv_lock_watched())
      rig_nv_lock_enter_at(context_of(x), site_of(x));
    return true;
  case ')':
    rig_nv_lock_leave(context_of(x));
    return true;
  case '~':
    if (x == 'b')
      rig_nv_lock_may_block_at("may block", "~");
    else if (x == 'a')
      rig_nv_lock_may_allocate_at("may allocate", "~");
    else
      rig_nv_lock_may_wait_at(context_of(x), "may wait", "~");
    return true;
  case '@':
    (void)rig_nv_lock_watch(x == '0' ? RIG_NV_WATCH_OFF : RIG_NV_WATCH_REPORT);
    return true;
  }
  return false;
}

/* Runs one thread's steps. Assertions are the main thread's: cmocka's jump out
 * of others. */
struct part {
  const char *at;   /* where it starts; where it ended */
  char failed[128]; /* "" none */
};

static void *run_part(void *arg) {
  struct part *p = arg;
  const char *s = p->at;
  while (*s && *s != '|' && !p->failed[0]) {
    const char *begun = s;
    unsigned before = atomic_load_explicit(&reports, memory_order_relaxed);
    bool as_said = step(s[0], s[1]);
    unsigned n = atomic_load_explicit(&reports, memory_order_relaxed) - before;
    unsigned stars = 0;
    for (s += 2; *s == '*'; s++)
      stars++;
    if (as_said && n == stars)
      continue;
    snprintf(p->failed, sizeof p->failed, "at \"%.40s\": %u reports%s", begun,
             n, as_said ? "" : ", otherwise");
    /* The thread's end may stop the process for a lock that it holds. */
    print_error("%s: %s\n", p->failed, last);
  }
  p->at = s;
  return NULL;
}

static void run_script(const char *name, const char *script) {
  struct part p = {script, ""};
  for (;;) {
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, run_part, &p), 0);
    pthread_join(t, NULL);
    if (p.failed[0])
      fail_msg("%s: %s: %s", name, p.failed, last);
    if (!*p.at++)
      return;
  }
}

static void test_scripts(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(scripts); i++) {
    begin();
    locks_make();
    run_script(scripts[i].name, scripts[i].script);
    if (scripts[i].text)
      contains(scripts[i].name, last, scripts[i].text);
    locks_end();
    end();
  }
}

/* All that a report says. */
static void test_text(void **state) {
  (void)state;
  static const struct {
    const char *script;
    const char *line[5];
  } texts[] = {
      {"+a+d+b-b-d-a|+b+c-c-b|+d+c+a*-a-c-d",
       {"lock order: take of \"a\" at a closes a cycle of 2 classes",
        " holds \"d\" (d), \"c\" (c) and wants \"a\" (a)",
        " held \"a\" (a) and wanted \"d\" (d)"}},
      {"+a+d+b-b-d-a|+b+c-c-b|+c+a*-a-c",
       {"lock order: take of \"a\" at a closes a cycle of 3 classes",
        " holds \"c\" (c) and wants \"a\" (a)",
        " held \"a\" (a), \"d\" (d) and wanted \"b\" (b)",
        " held \"b\" (b) and wanted \"c\" (c)"}},
      {"+a(v(r~a*)r)v-a",
       {"lock order: may allocate at ~ inside \"reserve to encoded\" (v)",
        " holds \"a\" (a), \"reserve to encoded\" (v), \"RCU section\" (r)"}},
      {"+b+a+A*-A-a-b",
       {"lock order: take of \"a\" at A inside another of its class, taken at "
        "a, in no order (RIG_NV_LOCK_BY_ADDRESS)",
        " holds \"b\" (b), \"a\" (a)"}},
  };
  for (size_t i = 0; i < COUNT(texts); i++) {
    begin();
    locks_make();
    run_script(texts[i].script, texts[i].script);
    const char *line = last;
    for (size_t j = 0; j < COUNT(texts[i].line) && texts[i].line[j]; j++) {
      char is[256];
      assert_non_null(line);
      size_t n = strcspn(line, "\n");
      snprintf(is, sizeof is, "%.*s", (int)n, line);
      unsigned thread;
      int after = 0;
      if (j && sscanf(is, "  thread %u%n", &thread, &after) == 1)
        memmove(is, is + after, strlen(is + after) + 1);
      assert_string_equal(is, texts[i].line[j]);
      line = line[n] ? line + n + 1 : NULL;
    }
    assert_null(line);
    locks_end();
    end();
  }
}

/* Counters, and what is listed. */

static char listed[1024];

static void list(void *what, const struct rig_nv_lock_edge *e) {
  size_t n = strlen(listed);
  if (what)
    snprintf(listed + n, sizeof listed - n, "%s>%s@%s,%s%s ", e->from, e->to,
             e->from_site, e->to_site, e->reported ? "!" : "");
  else
    snprintf(listed + n, sizeof listed - n, "%s:%d:%u ", e->to, e->to_rank,
             e->to_flags);
}

static void test_counts(void **state) {
  (void)state;
  struct rig_nv_lock_counts c;
  begin();
  locks_make();
  run_script("counts",
             "+a+b-b-a|+b+a*-a-b|+c+C*-C-c|+2!1*-2|(r~b*)r|+3~r-3|(r|");
  rig_nv_lock_count(&c);
  assert_int_equal(c.cycles, 1);
  assert_int_equal(c.nested, 1);
  assert_int_equal(c.refusals, 1);
  assert_int_equal(c.misplaced, 1);
  assert_int_equal(c.ended, 1);
  assert_int_equal(c.unwatched, 0);
  assert_int_equal(c.edges, 2); /* a b, three and a grace period */
  /* a, b, c, two, the section, its block, three. Rank 500 never waited. */
  assert_int_equal(c.classes, 7);
  listed[0] = '\0';
  rig_nv_lock_each_edge(list, &c);
  assert_string_equal(listed, "a>b@a,b b>a@b,a! RCU section>(blocks)@r,~! "
                              "three>RCU section@3,~ ");
  listed[0] = '\0';
  rig_nv_lock_each_class(list, NULL);
  assert_string_equal(listed, "a:0:1 b:0:1 c:0:1 two:501:0 (blocks):0:4 "
                              "RCU section:0:12 three:503:0 ");
  /* A class that ends takes its edges along. */
  rig_nv_lock_class_end(&unranked[1]);
  rig_nv_lock_class_end(rig_nv_lock_in_rcu.cls);
  rig_nv_lock_count(&c);
  assert_int_equal(c.edges, 0);
  assert_int_equal(c.classes, 5);
  listed[0] = '\0';
  rig_nv_lock_each_edge(list, &c);
  assert_string_equal(listed, "");
  rig_nv_lock_forget();
  rig_nv_lock_count(&c);
  assert_int_equal(c.cycles + c.nested + c.refusals + c.misplaced + c.edges +
                       c.classes + c.unwatched + c.ended,
                   0);
  locks_end();
  end();
}

/* The handler's own takes are learned, and not reported inside it. */
static struct rig_nv_lock in_handler[2] = {RIG_NV_LOCK(&unranked[6]),
                                           RIG_NV_LOCK(&unranked[7])};

static void on_report_take(const char *text) {
  on_report(text);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(rig_nv_lock_take(&in_handler[i]), 0);
    assert_int_equal(rig_nv_lock_take(&in_handler[1 - i]), 0);
    rig_nv_lock_give(&in_handler[1 - i]);
    rig_nv_lock_give(&in_handler[i]);
  }
}

static void test_handler(void **state) {
  (void)state;
  struct rig_nv_lock_counts c;
  begin();
  (void)rig_nv_lock_on_report(on_report_take);
  locks_make();
  run_script("handler", "+a+b-b-a|+b+a*-a-b");
  rig_nv_lock_count(&c);
  assert_int_equal(c.cycles, 2);
  assert_int_equal(reports, 1);
  locks_end();
  end();
}

/* Threads that meet. */

static struct timespec in_ten_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_sec += 10;
  return t;
}

/* A chain that is known is taken with the graph's lock in other hands. */
static void test_known_takes_no_lock(void **state) {
  (void)state;
  static const char known[] = "+1+a+m+n+b(g~b~a~r)g-b-n-m-a-1";
  begin();
  locks_make();
  run_script("known", known);
  struct part p = {known, ""};
  pthread_t t;
  graph_enter();
  assert_int_equal(pthread_create(&t, NULL, run_part, &p), 0);
  struct timespec until = in_ten_seconds();
  int ended = pthread_timedjoin_np(t, NULL, &until);
  graph_leave();
  if (ended != 0)
    pthread_join(t, NULL);
  assert_int_equal(ended, 0);
  assert_string_equal(p.failed, "");
  locks_end();
  end();
}

/* A lock that another thread, or this one, holds is not had by a try. */
static void *try_first(void *unused) {
  (void)unused;
  return rig_nv_lock_try(&locks[0]) == 1 ? NULL : &locks[0];
}

static void test_busy(void **state) {
  (void)state;
  pthread_t t;
  void *failed;
  struct rig_nv_lock none = RIG_NV_LOCK(NULL);
  begin();
  locks_make();
  assert_int_equal(rig_nv_lock_take(&locks[0]), 0);
  assert_int_equal(pthread_create(&t, NULL, try_first, NULL), 0);
  pthread_join(t, &failed);
  assert_null(failed);
  assert_int_equal(rig_nv_lock_try(&locks[0]), 1);
  rig_nv_lock_give(&locks[0]);
  assert_int_equal(rig_nv_lock_idle(), 0);
  assert_int_equal(reports, 0);
  assert_int_equal(rig_nv_lock_try(&none), -RIG_NV_INVALID);
  locks_end();
  end();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scripts),
      cmocka_unit_test(test_text),
      cmocka_unit_test(test_counts),
      cmocka_unit_test(test_handler),
      cmocka_unit_test(test_known_takes_no_lock),
      cmocka_unit_test(test_busy),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
