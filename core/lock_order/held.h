/* SPDX-License-Identifier: ISC */
#ifndef CORE_LOCK_ORDER_HELD_H
#define CORE_LOCK_ORDER_HELD_H
/*
 * held: what a thread holds and is inside of, and how it tells about it.
 *
 * Threads: each has one of its own, which no other reads.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>

#include "core/lock_order/lock_order.h"

struct holding {
  struct rig_nv_lock_record *record;
  const char *site;
  long top; /* the highest rank up to here; NO_RANK, there is none */
};

#define NO_RANK LONG_MIN /* below every int */

struct inside {
  struct rig_nv_lock_record *record;
  const char *site;
  unsigned depth;
};

struct held {
  /* In the order they were taken, from 1 on; 0 is a top below every other. */
  struct holding at[1 + RIG_NV_MOST_LOCKS];
  struct inside context[RIG_NV_MOST_CONTEXTS];
  unsigned n, contexts;
  unsigned session; /* the graph's, when the contexts were entered */
  bool watched;     /* the thread's end is registered */
  bool reporting;   /* inside the handler */
  bool forking;     /* owns the graph's lock, between fork's handlers */
};

/* In static TLS, which a loaded library reaches with no call and no
 * allocation; a few hundred bytes fit its reserve. */
extern _Thread_local struct held lock_held
    __attribute__((tls_model("initial-exec")));

/* Text that is put together; one that does not fit ends in "...". */
struct lock_text {
  char s[8192];
  unsigned n;
};

void lock_text_add(struct lock_text *, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void lock_text_vadd(struct lock_text *, const char *fmt, va_list)
    __attribute__((format(printf, 2, 0)));

/* Calls the handler, if there is one, and tells whether. */
bool lock_report(const char *text);
/* Says it on standard error. */
void lock_say(const char *text);
/* Reports, says and aborts. */
void lock_stop_process(const char *fmt, ...)
    __attribute__((format(printf, 1, 2), cold, noreturn));

/* Registers the thread's end. */
void lock_watch_end(struct held *);

/* The i-th, from 0 on. */
static inline const struct holding *held_lock(const struct held *h,
                                              unsigned i) {
  return &h->at[1 + i];
}

static inline bool lock_is_ranked(const struct rig_nv_lock_class *c) {
  return !(c->flags & (RIG_NV_LOCK_UNRANKED | RIG_NV_LOCK_CONTEXT));
}
#endif
