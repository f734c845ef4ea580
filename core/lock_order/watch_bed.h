/* SPDX-License-Identifier: ISC */
#ifndef CORE_LOCK_ORDER_WATCH_BED_H
#define CORE_LOCK_ORDER_WATCH_BED_H
/*
 * For the tests of the graph: it watches from begin to end, and what it reports
 * is kept. One test a process at a time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "core/api/rig_nv.h"
#include "core/lock_order/graph.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* The inversions are planted, and TSan's own detector stays out of it. */
const char *__tsan_default_options(void);
RIG_PUBLIC const char *__tsan_default_options(void) {
  return "detect_deadlocks=0";
}

static void contains(const char *name, const char *text, const char *part) {
  if (!strstr(text, part))
    fail_msg("%s: \"%s\" lacks \"%s\"", name, text, part);
}

/* Reports, of whatever thread; one thread runs at a time in the scripts. */
static char last[8192];
static atomic_uint reports;

static void on_report(const char *text) {
  snprintf(last, sizeof last, "%s", text);
  atomic_fetch_add_explicit(&reports, 1, memory_order_relaxed);
}

static void begin(void) {
  (void)rig_nv_lock_watch(RIG_NV_WATCH_REPORT);
  rig_nv_lock_forget();
  (void)rig_nv_lock_on_report(on_report);
  atomic_store_explicit(&reports, 0, memory_order_relaxed);
  last[0] = '\0';
}

static void end(void) {
  (void)rig_nv_lock_watch(RIG_NV_WATCH_OFF);
  (void)rig_nv_lock_on_report(NULL);
}
#endif
