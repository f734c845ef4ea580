/* SPDX-License-Identifier: ISC */
/*
 * The copy engine: LAUNCH_DMA takes a snapshot of the registers into the
 * channel's queue, and the engine moves it there piece by piece.
 *
 *   queue   [ front ][ next ] ...   front runs; next runs before it where it
 *                                   is a pipelined transfer alone
 *   launch  transfer, then its semaphore; a semaphore with no flush may come
 *           before the transfer, and before those queued ahead of it
 */
#include <string.h>

#include "paths/model/state.h"

/* The most rows of one piece. */
#define PIECE_ROWS 4096u

static uint64_t pair(uint32_t hi, uint32_t lo) {
  return (uint64_t)hi << 32 | lo;
}

/* The name of the first method of `most` that nothing set, or NULL. */
static const char *unset(const struct model_channel *c, uint32_t most) {
  size_t n;
  const struct model_method *methods = model_methods(KIND_COPY, &n);
  for (size_t i = 0; i < n; i++)
    if (most & ~c->copy_set & 1u << i)
      return methods[i].name;
  return NULL;
}

/* What a fill's elements hold: constants, or bytes left as they are. */
static const char *pattern(const struct model_channel *c,
                           struct model_work *w) {
  uint32_t r = c->copy[CE_COMPONENTS];
  unsigned size = 1 + (r >> REMAP_SIZE_SHIFT & 3);
  unsigned n = 1 + (r >> REMAP_DST_SHIFT & 3);
  w->element = size * n;
  for (unsigned i = 0; i < n; i++) {
    uint32_t from = r >> 4 * i & 7;
    if (from != REMAP_CONST_A && from != REMAP_CONST_B &&
        from != REMAP_NO_WRITE)
      return "remaps of source components are not modelled";
    uint32_t v = c->copy[from == REMAP_CONST_B ? CE_CONST_B : CE_CONST_A];
    for (unsigned b = 0; b < size; b++) {
      w->pattern[i * size + b] = (uint8_t)(v >> 8 * b);
      w->writes[i * size + b] = from != REMAP_NO_WRITE;
    }
  }
  w->uniform = true;
  for (unsigned i = 0; i < w->element; i++)
    w->uniform &= w->writes[i] && w->pattern[i] == w->pattern[0];
  return NULL;
}

/* The registers that the launch x reads. */
static uint32_t registers(const struct model_channel *c, uint32_t x) {
  uint32_t most = 0;
  if (x & DMA_TRANSFER) {
    most |= 1u << CE_OUT_UPPER | 1u << CE_OUT_LOWER | 1u << CE_LINE_LENGTH;
    if (!(x & DMA_REMAP))
      most |= 1u << CE_IN_UPPER | 1u << CE_IN_LOWER;
    else
      most |= 1u << CE_COMPONENTS;
    if (x & DMA_MULTI_LINE)
      most |= 1u << CE_LINE_COUNT | 1u << CE_PITCH_OUT |
              (x & DMA_REMAP ? 0 : 1u << CE_PITCH_IN);
  }
  if (x & DMA_REMAP)
    for (unsigned i = 0; i <= (c->copy[CE_COMPONENTS] >> REMAP_DST_SHIFT & 3);
         i++) {
      uint32_t from = c->copy[CE_COMPONENTS] >> 4 * i & 7;
      most |= from == REMAP_CONST_A   ? 1u << CE_CONST_A
              : from == REMAP_CONST_B ? 1u << CE_CONST_B
                                      : 0;
    }
  if (x >> DMA_SEM_SHIFT & 3) {
    most |= 1u << CE_SEM_A | 1u << CE_SEM_B | 1u << CE_SEM_PAYLOAD;
    if (x & DMA_SEM_TWO_WORD)
      most |= 1u << CE_SEM_PAYLOAD_UPPER;
  }
  return most;
}

/* Why the launch is refused, or NULL. */
static const char *refusal(uint32_t x) {
  if ((x & DMA_TRANSFER) == 3)
    return "no such transfer type";
  if ((x >> DMA_SEM_SHIFT & 3) == 3)
    return "no such semaphore type";
  if (x & DMA_TRANSFER && !(x & DMA_DST_PITCH))
    return "a block-linear destination is not modelled";
  if (x & DMA_TRANSFER && !(x & DMA_REMAP) && !(x & DMA_SRC_PITCH))
    return "a block-linear source is not modelled";
  return NULL;
}

static const char *take(struct model *m, struct model_channel *c, uint32_t x,
                        struct model_work *w) {
  const uint32_t *r = c->copy;
  memset(w, 0, sizeof *w);
  w->transfer = x & DMA_TRANSFER;
  w->pipelined = (x & DMA_TRANSFER) == DMA_PIPELINED;
  w->flush = x & DMA_FLUSH && !(x & DMA_FLUSH_GL);
  w->src = pair(r[CE_IN_UPPER], r[CE_IN_LOWER]);
  w->dst = pair(r[CE_OUT_UPPER], r[CE_OUT_LOWER]);
  w->line = r[CE_LINE_LENGTH];
  w->rows = x & DMA_MULTI_LINE ? r[CE_LINE_COUNT] : 1;
  w->src_pitch = r[CE_PITCH_IN];
  w->dst_pitch = r[CE_PITCH_OUT];
  w->fill = x & DMA_REMAP;
  if (w->transfer && w->fill) {
    const char *why = pattern(c, w);
    if (why)
      return why;
    w->line *= w->element;
  }
  if (w->transfer)
    w->drop = ++m->copies == m->options.drop_copy;
  w->sem = x >> DMA_SEM_SHIFT & 3;
  w->store.at = pair(r[CE_SEM_A], r[CE_SEM_B]);
  w->store.payload = r[CE_SEM_PAYLOAD];
  w->store.wide = x & DMA_SEM_TWO_WORD;
  if (w->store.wide)
    w->store.payload = pair(r[CE_SEM_PAYLOAD_UPPER], r[CE_SEM_PAYLOAD]);
  w->store.stamped = w->sem == DMA_SEM_FOUR_WORD;
  return NULL;
}

static enum model_step post(struct model *m, struct model_channel *c,
                            struct model_work *w) {
  enum model_step step = model_store_post(m, c, &w->store);
  if (step == STEP_DONE)
    w->posted = true;
  return step;
}

/* Whether the newest launch's semaphore may go ahead of the queue: it asks for
 * no flush, and overtakes no other. */
static bool ahead(struct model *m, const struct model_channel *c) {
  const struct model_work *w = &c->work[c->nwork - 1];
  if (!w->sem || w->flush)
    return false;
  for (unsigned i = 0; i + 1 < c->nwork; i++)
    if (c->work[i].sem && !c->work[i].posted)
      return false;
  return model_below(m, 2);
}

static enum model_step launch(struct model *m, struct model_channel *c,
                              uint32_t x) {
  const char *why = refusal(x);
  if (why)
    return model_stray(m, c, "LAUNCH_DMA 0x%x: %s", x, why);
  why = unset(c, registers(c, x));
  if (why)
    return model_stray(m, c, "LAUNCH_DMA 0x%x: nothing set %s", x, why);
  if (c->nwork == WORK)
    return STEP_WAIT;
  why = take(m, c, x, &c->work[c->nwork]);
  if (why)
    return model_stray(m, c, "LAUNCH_DMA 0x%x: %s", x, why);
  c->nwork++;
  if (ahead(m, c) && post(m, c, &c->work[c->nwork - 1]) == STEP_FAULT)
    return STEP_FAULT;
  return STEP_DONE;
}

enum model_step model_copy(struct model *m, struct model_channel *c, int i,
                           uint32_t x) {
  if (i == CE_LAUNCH)
    return launch(m, c, x);
  c->copy[i] = x;
  c->copy_set |= 1u << i;
  return STEP_DONE;
}

static void fill(char *dst, uint64_t n, const struct model_work *w) {
  if (w->uniform) {
    memset(dst, w->pattern[0], n);
    return;
  }
  uint64_t at = w->done % w->element;
  for (uint64_t i = 0; i < n; i++) {
    if (w->writes[at])
      dst[i] = (char)w->pattern[at];
    at = at + 1 == w->element ? 0 : at + 1;
  }
}

static void write(const struct model_twin *dst, const char *src, uint64_t n,
                  const struct model_work *w) {
  model_post_hold(dst->post);
  if (w->fill)
    fill(dst->gpu, n, w);
  else
    memmove(dst->gpu, src, n);
  if (dst->post && w->fill)
    fill(dst->host, n, w);
  else if (dst->post)
    memcpy(dst->host, dst->gpu, n);
  model_post_go(dst->post);
}

/* Moves up to `most` bytes of the row; *moved says how many. */
static enum model_step move(struct model *m, struct model_channel *c,
                            const struct model_work *w, uint64_t most,
                            uint64_t *moved) {
  uint64_t n = w->line - w->done < most ? w->line - w->done : most;
  uint64_t from = w->src + w->row * w->src_pitch + w->done;
  uint64_t to = w->dst + w->row * w->dst_pitch + w->done;
  char *src = NULL;
  if (!w->fill && !(src = model_reach(m, from, &n)))
    return model_fault_mmu(m, c, from, FAULT_READ);
  struct model_twin dst;
  if (!model_reach_write(m, to, &n, &dst))
    return model_fault_mmu(m, c, to, FAULT_WRITE);
  if (!w->drop)
    write(&dst, src, n, w);
  *moved = n;
  return STEP_DONE;
}

/* Moves what this turn may; DONE once the transfer is complete. */
static enum model_step transfer(struct model *m, struct model_channel *c,
                                struct model_work *w) {
  for (unsigned rows = 0; w->line && w->row < w->rows;) {
    uint64_t moved = 0;
    if (!m->piece || rows == PIECE_ROWS)
      return STEP_WAIT;
    if (move(m, c, w, m->piece, &moved) == STEP_FAULT)
      return STEP_FAULT;
    m->piece -= moved;
    w->done += moved;
    if (w->done == w->line) {
      w->done = 0;
      w->row++;
      rows++;
    }
  }
  w->transfer = false;
  return STEP_DONE;
}

/* Which launch of the queue runs. */
static unsigned choose(struct model *m, const struct model_channel *c) {
  const struct model_work *w = c->work;
  bool passes = c->nwork > 1 && w[1].pipelined && w[1].transfer && !w[1].sem;
  return passes && model_below(m, 2) ? 1 : 0;
}

enum model_step model_copy_piece(struct model *m, struct model_channel *c) {
  if (!c->nwork)
    return STEP_WAIT;
  unsigned i = choose(m, c);
  struct model_work *w = &c->work[i];
  enum model_step step;
  if (w->transfer) {
    step = transfer(m, c, w);
    if (step == STEP_FAULT)
      return step;
    if (step == STEP_WAIT)
      return STEP_DONE; /* a piece of it */
  }
  if (i)
    return STEP_DONE; /* it stays in its place, with nothing left to do */
  if (w->sem && !w->posted) {
    step = post(m, c, w);
    if (step != STEP_DONE)
      return step;
  }
  memmove(c->work, c->work + 1, --c->nwork * sizeof *c->work);
  return STEP_DONE;
}
