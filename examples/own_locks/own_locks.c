/* SPDX-License-Identifier: ISC */
/*
 * A program's own mutexes in the order of locks: three threads that never
 * deadlock here, as one runs after the other, and would some day.
 *
 *   accounts   pthread mutexes that stay as they are, each beside a record;
 *              two of them are taken at rising addresses
 *   journal    a mutex of the library's, with no rank
 *   the order  accounts before the journal, which `report` gets wrong
 *
 * own_locks [--right]: with --right, report takes them as the others do.
 * Exit status: the number of reports.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api/rig_nv.h"
#include "core/lock_order/lock_order.h"

static const struct rig_nv_lock_class account_class = {
    "account", 0, RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_BY_ADDRESS};
static const struct rig_nv_lock_class journal_class = {
    "journal", 0, RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_NO_BLOCK};

struct account {
  pthread_mutex_t mutex;
  struct rig_nv_lock_record order;
  long balance;
};

#define ACCOUNT(balance)                                                       \
  {PTHREAD_MUTEX_INITIALIZER, RIG_NV_LOCK_RECORD(&account_class), balance}

static struct account accounts[] = {ACCOUNT(100), ACCOUNT(200), ACCOUNT(300)};
enum { ACCOUNTS = sizeof accounts / sizeof *accounts };

static struct rig_nv_lock journal = RIG_NV_LOCK(&journal_class);
static unsigned entries; /* under the journal's lock */

/* A refusal is a bug of this program: it would deadlock. */
static void must(int refused) {
  if (refused == 0)
    return;
  fprintf(stderr, "own_locks: %s\n", rig_nv_why());
  abort();
}

/* The place is the caller's, hence a macro. */
#define account_take(a) account_take_at(a, RIG_NV_SITE)

static void account_take_at(struct account *a, const char *site) {
  must(rig_nv_lock_wants_at(&a->order, site));
  pthread_mutex_lock(&a->mutex);
  must(rig_nv_lock_taken_at(&a->order, site));
}

static void account_give(struct account *a) {
  rig_nv_lock_given(&a->order);
  pthread_mutex_unlock(&a->mutex);
}

static void write_journal(void) {
  must(rig_nv_lock_take(&journal));
  entries++;
  rig_nv_lock_give(&journal);
}

static void *transfer(void *unused) {
  account_take(&accounts[0]);
  account_take(&accounts[2]); /* at a higher address */
  accounts[0].balance -= 10;
  accounts[2].balance += 10;
  write_journal();
  account_give(&accounts[2]);
  account_give(&accounts[0]);
  return unused;
}

static long sum(void) {
  long total = 0;
  for (int i = 0; i < ACCOUNTS; i++) {
    account_take(&accounts[i]);
    total += accounts[i].balance;
    account_give(&accounts[i]);
  }
  return total;
}

/* Wrong: holds the journal while it takes accounts, and sleeps inside it. */
static void *report(void *unused) {
  must(rig_nv_lock_take(&journal));
  printf("%u transfers, %ld in all\n", entries, sum());
  rig_nv_lock_may_block("writing to the disk");
  rig_nv_lock_give(&journal);
  return unused;
}

static void *report_right(void *unused) {
  long total = sum();
  must(rig_nv_lock_take(&journal));
  printf("%u transfers, %ld in all\n", entries, total);
  rig_nv_lock_give(&journal);
  rig_nv_lock_may_block("writing to the disk");
  return unused;
}

static atomic_int reports;

/* Called by the thread concerned, before it waits. */
static void on_report(const char *text) {
  printf("%s\n", text);
  /* Relaxed: read after the threads' joins. */
  atomic_fetch_add_explicit(&reports, 1, memory_order_relaxed);
}

static void print_edge(void *unused, const struct rig_nv_lock_edge *e) {
  (void)unused;
  printf("edge: %s, then %s%s\n", e->from, e->to, e->reported ? ", wrong" : "");
}

static void run(void *(*fn)(void *)) {
  pthread_t t;
  if (pthread_create(&t, NULL, fn, NULL) != 0)
    abort();
  pthread_join(t, NULL);
}

int main(int argc, char **argv) {
  bool right = argc > 1 && strcmp(argv[1], "--right") == 0;
  (void)rig_nv_lock_on_report(on_report); /* there was none */
  (void)rig_nv_lock_watch(RIG_NV_WATCH_REPORT);
  run(transfer);
  run(right ? report_right : report);
  run(transfer);
  rig_nv_lock_each_edge(print_edge, NULL);
  return atomic_load_explicit(&reports, memory_order_relaxed);
}
