/* SPDX-License-Identifier: ISC */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rings/flush.h"
#include "rings/rcu.h"
#include "rings/shared.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* Scripts of one thread, on sets A to C and sources x to z: "+Ax" adds, "!Ax"
 * finds the source ended, "-Ax" drops, "ex" ends. Then the words of each set,
 * sorted. */
static const struct {
  const char *name, *script, *words[3];
} scripts[] = {
    {"nothing", "", {"", "", ""}},
    {"one", "+Ax", {"x", "", ""}},
    {"views of one source count", "+Ax+Ax+Ax-Ax-Ax", {"x", "", ""}},
    {"the last view takes it", "+Ax+Ax-Ax-Ax", {"", "", ""}},
    {"and comes back", "+Ax-Ax+Ax", {"x", "", ""}},
    {"the first of three goes", "+Ax+Ay+Az-Ax", {"yz", "", ""}},
    {"the middle one goes", "+Ax+Ay+Az-Ay", {"xz", "", ""}},
    {"the last one goes", "+Ax+Ay+Az-Az", {"xy", "", ""}},
    {"counts move along", "+Ax+Ay+Az+Az-Ax-Az", {"yz", "", ""}},
    {"sets are apart", "+Ax+By-Ax", {"", "y", ""}},
    {"one source in three sets", "+Ax+Bx+Cx-Bx", {"x", "", "x"}},
    {"ended in no set", "ex!Ax", {"", "", ""}},
    {"ended everywhere", "+Ax+Bx+Cx+Byex", {"", "y", ""}},
    {"ended with views", "+Ax+Ax+Ayex-Ax-Ax!Ax", {"y", "", ""}},
    {"ended twice", "+Axexex-Ax", {"", "", ""}},
    {"all ended in any order", "+Ax+Ay+Azeyexez-Az-Ax-Ay", {"", "", ""}},
    {"sets leave the list", "+Ax+Bx+Cx-Bxex", {"", "", ""}},
    {"and enter it again", "+Ax+Bx-Ax-Bx+Bx+Axex", {"", "", ""}},
};

/* The source's letter is the word's value. */
static void look(const char *name, const struct flush_set *s,
                 const char *words) {
  const struct flush_words *w = s->now;
  size_t n = w ? w->n : 0;
  if (n != strlen(words))
    fail_msg("%s: %zu words, not \"%s\"", name, n, words);
  for (size_t i = 0; i < n; i++)
    if (!strchr(words, (int)*w->at[i]))
      fail_msg("%s: word %c", name, (int)*w->at[i]);
}

static const char *step(const char *name, const char *p, struct flush_set *sets,
                        struct flush_source *sources) {
  if (*p == 'e') {
    flush_end(&sources[p[1] - 'x']);
    return p + 2;
  }
  struct flush_set *s = &sets[p[1] - 'A'];
  const struct flush_source *o = &sources[p[2] - 'x'];
  if (*p == '-')
    flush_drop(s, o);
  else if (flush_add(s, o) != (*p == '+' ? FLUSH_ADDED : FLUSH_ENDED))
    fail_msg("%s: at \"%s\"", name, p);
  return p + 3;
}

static void test_scripts(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(scripts); i++) {
    volatile uint32_t words[3] = {'x', 'y', 'z'};
    struct flush_source sources[3] = {
        {.word = &words[0]}, {.word = &words[1]}, {.word = &words[2]}};
    struct flush_set sets[3];
    memset(sets, 0, sizeof sets);
    for (const char *p = scripts[i].script; *p;)
      p = step(scripts[i].name, p, sets, sources);
    for (int s = 0; s < 3; s++) {
      look(scripts[i].name, &sets[s], scripts[i].words[s]);
      flush_read(&sets[s]);
    }
    for (int o = 0; o < 3; o++) /* out of the list: they go */
      flush_end(&sources[o]);
  }
}

/* The 65th word is refused, another view of the 64 is not, and a word that
 * goes makes room. */
static void test_full(void **state) {
  (void)state;
  static volatile uint32_t words[FLUSH_MOST + 1];
  static struct flush_source sources[FLUSH_MOST + 1];
  static struct flush_set set;
  for (int i = 0; i <= FLUSH_MOST; i++) {
    sources[i].word = &words[i];
    assert_int_equal(flush_add(&set, &sources[i]),
                     i < FLUSH_MOST ? FLUSH_ADDED : FLUSH_FULL);
  }
  assert_int_equal(set.now->n, FLUSH_MOST);
  for (int i = 0; i < FLUSH_MOST; i++)
    assert_int_equal(flush_add(&set, &sources[i]), FLUSH_ADDED);
  flush_drop(&set, &sources[5]);
  assert_int_equal(flush_add(&set, &sources[FLUSH_MOST]), FLUSH_FULL);
  flush_drop(&set, &sources[5]);
  assert_int_equal(flush_add(&set, &sources[FLUSH_MOST]), FLUSH_ADDED);
  for (int i = 0; i <= FLUSH_MOST; i++)
    flush_end(&sources[i]);
  assert_int_equal(set.now->n, 0);
}

/* Threads: two read a set, one has views of lasting sources come and go, and
 * one ends sources whose word it then frees. */

enum { ROUNDS = 300, READERS = 2 };

static struct flush_set shared;
static uint32_t over;

static void *reader(void *unused) {
  (void)unused;
  while (!shared_load_32(&over))
    flush_read(&shared);
  return NULL;
}

static void *viewer(void *unused) {
  static volatile uint32_t words[3];
  (void)unused;
  struct flush_source sources[3] = {
      {.word = &words[0]}, {.word = &words[1]}, {.word = &words[2]}};
  for (int i = 0; i < ROUNDS; i++) {
    const struct flush_source *o = &sources[i % 3];
    if (flush_add(&shared, o) != FLUSH_ADDED)
      return NULL;
    flush_drop(&shared, o);
  }
  return &shared;
}

static void *ender(void *unused) {
  (void)unused;
  for (int i = 0; i < ROUNDS; i++) {
    uint32_t *word = malloc(sizeof *word);
    if (!word)
      return NULL;
    *word = 1;
    struct flush_source o = {.word = word};
    if (flush_add(&shared, &o) != FLUSH_ADDED)
      return NULL;
    flush_end(&o);
    free(word); /* no reader reads it */
  }
  return &shared;
}

static void test_threads(void **state) {
  (void)state;
  pthread_t readers[READERS], views, ends;
  void *result;
  for (int i = 0; i < READERS; i++)
    assert_int_equal(pthread_create(&readers[i], NULL, reader, NULL), 0);
  assert_int_equal(pthread_create(&views, NULL, viewer, NULL), 0);
  assert_int_equal(pthread_create(&ends, NULL, ender, NULL), 0);
  assert_int_equal(pthread_join(views, &result), 0);
  assert_non_null(result);
  assert_int_equal(pthread_join(ends, &result), 0);
  assert_non_null(result);
  ck_pr_store_32(&over, 1);
  for (int i = 0; i < READERS; i++)
    assert_int_equal(pthread_join(readers[i], NULL), 0);
  assert_int_equal(shared.now->n, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scripts),
      cmocka_unit_test(test_full),
      cmocka_unit_test(test_threads),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
