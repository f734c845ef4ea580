/* SPDX-License-Identifier: ISC */
/*
 * Launches: what SEND_SIGNALING_PCAS2_B schedules, from its descriptor in
 * memory to the end of its blocks. Those that nothing orders go on in any
 * order, a step at a time, as the seed has it:
 *
 *   SCHEDULED --> READ ----------> RAN ------------> LANDING --> gone
 *      descriptor     kernel: reads    its writes,       the rest,
 *      (and banks)    memory           half of them      release, dependent
 *
 * A dependent launch is scheduled as its predecessor ends. With the prefetch
 * that the predecessor asks for, it is READ any time before that.
 *
 * Without a system membar (CWD_MEMBAR_TYPE, or the release's) the writes are
 * seen by the channel's launches alone, and by others some time later, at a
 * later launch's membar or at a release that waits for idle.
 */
#include <stdlib.h>

#include "paths/model/state.h"

typedef unsigned long long ull;

enum { LAUNCHES = 32 }; /* that are scheduled at once; more wait */

bool model_busy(const struct model_channel *c) {
  return c->nwork || c->nlaunches;
}

static void drop(struct model_launch *l) {
  struct model_channel *c = l->c;
  struct model_launch **at = &c->launches;
  while (*at != l)
    at = &(*at)->next;
  *at = l->next;
  c->nlaunches--;
  for (struct model_launch *o = c->launches; o; o = o->next)
    if (o->after == l)
      o->after = NULL;
  for (unsigned i = 0; i < QV_BANKS; i++)
    free(l->bank[i]);
  model_pages_clear(&l->written);
  free(l);
}

static enum model_step create(struct model *m, struct model_channel *c,
                              uint64_t at, struct model_launch *after) {
  struct model_launch *l = calloc(1, sizeof *l), **end = &c->launches;
  if (!l)
    return model_stray(m, c, "launch 0x%llx: no host memory", (ull)at);
  l->m = m;
  l->c = c;
  l->at = at;
  l->after = after;
  l->ahead = after != NULL;
  while (*end)
    end = &(*end)->next;
  *end = l;
  c->nlaunches++;
  return STEP_DONE;
}

enum model_step model_launch_schedule(struct model *m, struct model_channel *c,
                                      uint64_t at) {
  return c->nlaunches < LAUNCHES ? create(m, c, at, NULL) : STEP_WAIT;
}

enum model_step model_launch_stray(struct model_launch *l, const char *text) {
  return model_stray(l->m, l->c, "launch 0x%llx: %s", (ull)l->at, text);
}

enum model_step model_launch_nowhere(struct model_launch *l, const char *what,
                                     uint64_t at, uint64_t bad,
                                     uint32_t access) {
  model_report(l->m, l->c, "launch 0x%llx: %s 0x%llx: no memory at 0x%llx",
               (ull)l->at, what, (ull)at, (ull)bad);
  return model_fault_mmu(l->m, l->c, bad, access);
}

static enum model_step dependent(struct model_launch *l,
                                 struct model_launch *after) {
  l->m->chained++;
  return create(l->m, l->c,
                (uint64_t)model_qmd_get(&l->q, QF_NEXT_POINTER) << 8, after);
}

static bool chains(const struct model_launch *l) {
  return model_qmd_get(&l->q, QF_NEXT);
}

static enum model_step read_descriptor(struct model_launch *l) {
  enum model_step read = model_launch_read(l);
  if (read == STEP_DONE && chains(l) && model_qmd_get(&l->q, QF_NEXT_PREFETCH))
    return dependent(l, l);
  return read;
}

static enum model_step start(struct model_launch *l) {
  enum model_step ready = model_launch_ready(l);
  return ready == STEP_DONE ? model_kernel_run(l) : ready;
}

/* Writes a page out to where everybody sees it; false with the first byte
 * that no memory has. */
static bool land(struct model *m, const struct model_page *page,
                 uint64_t *bad) {
  struct model_twin t;
  uint64_t n = PAGE_BYTES;
  if (!model_reach_write(m, page->at, &n, &t))
    n = 0;
  const unsigned past = model_page_from(page, (unsigned)n);
  *bad = page->at + past;
  if (n) {
    model_post_hold(t.post);
    model_page_over(page, t.gpu, n);
    if (t.post)
      model_page_over(page, t.host, n);
    model_post_go(t.post);
  }
  return past == PAGE_BYTES;
}

/* Lands `most` pages of what ended launches wrote. */
static enum model_step land_pages(struct model *m, struct model_channel *c,
                                  size_t most) {
  unsigned from = 0;
  uint64_t bad;
  for (struct model_page *page;
       most-- && (page = model_pages_take(&c->late, &from));) {
    bool landed = land(m, page, &bad);
    free(page);
    if (!landed)
      return model_fault_mmu(m, c, bad, FAULT_WRITE);
  }
  return STEP_DONE;
}

enum model_step model_launch_flush(struct model *m, struct model_channel *c) {
  return land_pages(m, c, SIZE_MAX);
}

static bool membar(const struct model_launch *l) {
  return model_qmd_get(&l->q, QF_MEMBAR) == QV_L1_SYSMEMBAR ||
         (model_qmd_get(&l->q, QF_RELEASE) &&
          model_qmd_get(&l->q, QF_RELEASE_MEMBAR) == QV_FE_SYSMEMBAR);
}

/* The blocks are done: launches see what they wrote, and others half of it
 * where a membar follows. */
static enum model_step end_blocks(struct model_launch *l) {
  if (model_launch_local(l) == STEP_FAULT)
    return STEP_FAULT;
  if (!model_pages_move(&l->c->late, &l->written))
    return model_launch_stray(l, "no host memory");
  l->life = LAUNCH_LANDING;
  return membar(l) ? land_pages(l->m, l->c, (l->c->late.n + 1) / 2) : STEP_DONE;
}

static enum model_step post(struct model_launch *l) {
  const uint32_t size = model_qmd_get(&l->q, QF_RELEASE_SIZE);
  const struct model_store s = {.at = model_qmd_release_at(&l->q),
                                .payload = model_qmd_payload(&l->q),
                                .wide = size != QV_ONE_WORD,
                                .stamped = size == QV_FOUR_WORDS};
  enum model_step step = model_store_post(l->m, l->c, &s);
  if (step == STEP_DONE)
    l->m->released++;
  return step;
}

/* The rest lands, the release is made, the dependent launch scheduled. The
 * driver may then use the memory of the descriptor and bank 0 again. */
static enum model_step end(struct model_launch *l) {
  struct model *m = l->m;
  struct model_channel *c = l->c;
  if (membar(l) && model_launch_flush(m, c) == STEP_FAULT)
    return STEP_FAULT;
  if (model_qmd_get(&l->q, QF_RELEASE)) {
    enum model_step step = post(l);
    if (step != STEP_DONE)
      return step;
  }
  model_overwrite(m, c, l->at, model_qmd_bytes(l->q.arch->version));
  model_overwrite(m, c, model_qmd_bank_at(&l->q, 0),
                  model_qmd_bank_bytes(&l->q, 0));
  if (chains(l) && !model_qmd_get(&l->q, QF_NEXT_PREFETCH) &&
      dependent(l, NULL) == STEP_FAULT)
    return STEP_FAULT;
  drop(l);
  return STEP_DONE;
}

/* Whether the launch may go on. Descriptors are prefetched one ahead. */
static bool goes_on(const struct model_launch *l) {
  if (l->life == LAUNCH_SCHEDULED)
    return !l->after || (l->ahead && !l->after->after);
  return l->life != LAUNCH_READ || !l->after;
}

static enum model_step step(struct model_launch *l) {
  switch (l->life) {
  case LAUNCH_SCHEDULED:
    return read_descriptor(l);
  case LAUNCH_READ:
    /* Bank 0 is read ahead of the start, or as it starts. */
    return l->bank[0] || model_below(l->m, 2) ? start(l)
                                              : model_launch_banks(l);
  case LAUNCH_RAN:
    return end_blocks(l);
  default:
    return end(l);
  }
}

/* A launch that may go on, from one that the seed chooses. */
static struct model_launch *choose(struct model *m,
                                   const struct model_channel *c) {
  struct model_launch *l = c->launches;
  for (unsigned skip = model_below(m, c->nlaunches); skip; skip--)
    l = l->next;
  while (!goes_on(l))
    l = l->next ? l->next : c->launches;
  return l;
}

bool model_launch_turn(struct model *m, struct model_channel *c) {
  if (c->late.n && !model_below(m, 16))
    (void)land_pages(m, c, (c->late.n + 1) / 2); /* a fault: c is dead */
  if (c->dead || !c->nlaunches)
    return false;
  if (model_below(m, 4))
    (void)step(choose(m, c));
  return true;
}

/* What ended launches wrote lands or not, as the seed has it. */
void model_launches_end(struct model *m, struct model_channel *c) {
  uint64_t bad;
  unsigned from = 0;
  const bool lands = c->late.n && model_below(m, 2);
  for (struct model_page *page; (page = model_pages_take(&c->late, &from));) {
    if (lands)
      (void)land(m, page, &bad);
    free(page);
  }
  model_pages_clear(&c->late);
  while (c->launches)
    drop(c->launches);
}
