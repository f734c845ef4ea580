/* SPDX-License-Identifier: ISC */
/*
 * Faults stop a channel's whole group and are written to the notifier of each
 * of its channels, as the RM does. What the GPU was fed and refuses is named
 * in the path's report beside it.
 */
#include <ck_pr.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "paths/model/state.h"

static void write(const struct model *m, char *p, uint32_t error) {
  ck_pr_store_64(
      (uint64_t *)(void *)(p + m->layout->notification.time_stamp.at),
      model_timer(m));
  ck_pr_store_16((uint16_t *)(void *)(p + m->layout->notification.info_16.at),
                 0);
  ck_pr_store_32((uint32_t *)(void *)(p + m->layout->notification.info_32.at),
                 error);
  /* Release: whoever sees the status sees the rest, and that no store of the
   * group lands any more. Pairs with the device's look at its notifiers. */
  ck_pr_fence_release();
  ck_pr_store_16((uint16_t *)(void *)(p + m->layout->notification.status.at),
                 0xffff);
}

static void notify(struct model *m, struct model_channel *c, uint32_t error) {
  struct model_post *post = c->notifier.post;
  model_post_hold(post);
  write(m, c->notifier.gpu, error);
  if (post)
    write(m, c->notifier.host, error);
  model_post_go(post);
}

/* The stores that were executed land before the notifiers say so, or never:
 * the seed's choice. */
static void stop_group(struct model *m, uint32_t group, uint32_t error) {
  struct model_channel *c;
  for (c = m->channels; c; c = c->next)
    if (c->group == group && !c->dead)
      model_channel_end(m, c);
  for (c = m->channels; c; c = c->next)
    if (c->group == group)
      notify(m, c, error);
}

enum model_step model_fault_mmu(struct model *m, struct model_channel *c,
                                uint64_t address, uint32_t access) {
  const char *text = NULL;
  enum model_fault_type type = FAULT_PTE;
  if (m->backing)
    type = m->backing->fault(m->backing->ctx, address, access == FAULT_WRITE,
                             &text);
  if (text)
    model_report(m, c, "0x%llx: %s", (unsigned long long)address, text);
  if (m->nfaults < FAULTS)
    m->faults[m->nfaults++] = (struct model_fault){address, type, access};
  stop_group(m, c->group, ERROR_MMU);
  return STEP_FAULT;
}

static void report(struct model *m, const struct model_channel *c,
                   const char *fmt, va_list args) {
  char text[700];
  if (m->reported)
    return;
  vsnprintf(text, sizeof text, fmt, args);
  snprintf(m->report, sizeof m->report, "channel error: %s (channel 0x%x)",
           text, c->handle);
  ck_pr_fence_release();             /* the text, before the flag: check */
  ck_pr_store_uint(&m->reported, 1); /* pairs with check's load */
}

void model_report(struct model *m, const struct model_channel *c,
                  const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  report(m, c, fmt, args);
  va_end(args);
}

enum model_step model_stray(struct model *m, struct model_channel *c,
                            const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  report(m, c, fmt, args);
  va_end(args);
  stop_group(m, c->group, ERROR_PBDMA);
  return STEP_FAULT;
}
