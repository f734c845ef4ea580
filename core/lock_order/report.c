/* SPDX-License-Identifier: ISC */
#define _POSIX_C_SOURCE 200809L /* dprintf */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/lock_order/held.h"

static _Atomic(rig_nv_lock_handler *) handler;

rig_nv_lock_handler *rig_nv_lock_on_report(rig_nv_lock_handler *next) {
  /* release: pairs with lock_report's acquire; acquire: with the exchange
   * that stored the former handler. */
  return atomic_exchange_explicit(&handler, next, memory_order_acq_rel);
}

bool lock_report(const char *text) {
  /* pairs with rig_nv_lock_on_report's release */
  rig_nv_lock_handler *h = atomic_load_explicit(&handler, memory_order_acquire);
  if (!h)
    return false;
  if (lock_held.reporting)
    return true;
  lock_held.reporting = true;
  h(text);
  lock_held.reporting = false;
  return true;
}

void lock_say(const char *text) {
  dprintf(STDERR_FILENO, "rig_nv: %s\n", text);
}

void lock_text_vadd(struct lock_text *t, const char *fmt, va_list args) {
  size_t left = sizeof t->s - t->n;
  int n = vsnprintf(t->s + t->n, left, fmt, args);
  if (n < 0)
    return;
  if ((size_t)n < left) {
    t->n += (unsigned)n;
    return;
  }
  memcpy(t->s + sizeof t->s - 4, "...", 4);
  t->n = sizeof t->s - 1;
}

void lock_text_add(struct lock_text *t, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  lock_text_vadd(t, fmt, args);
  va_end(args);
}

void lock_stop_process(const char *fmt, ...) {
  struct lock_text text = {.n = 0};
  va_list args;
  va_start(args, fmt);
  lock_text_vadd(&text, fmt, args);
  va_end(args);
  (void)lock_report(text.s); /* the line below says it in any case */
  lock_say(text.s);
  abort();
}
