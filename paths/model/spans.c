/* SPDX-License-Identifier: ISC */
/*
 * Spans: GPU addresses and the host memory behind them, in the order of their
 * addresses, with at least a page between two of them, so that work that runs
 * past its memory faults. Where the model has a backing, that places them, and
 * each access goes through it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "paths/model/span.h"

/* Large memory is poisoned at its ends alone, so that it stays untouched. */
#define POISONED (UINT64_C(4) << 20)
/* The most pages left free below a span, one at least. */
#define GUARD_PAGES 16u

static uint64_t end_of(const struct model_span *s) {
  return s->at + model_whole(s->bytes);
}

/* The index of the first span that ends above `at`. */
static size_t above(const struct model *m, uint64_t at) {
  size_t low = 0, high = m->nspans;
  while (low < high) {
    size_t mid = low + (high - low) / 2;
    if (end_of(m->spans[mid]) > at)
      high = mid;
    else
      low = mid + 1;
  }
  return low;
}

/* The span whose pages hold `at`, or NULL. */
static struct model_span *holder(struct model *m, uint64_t at) {
  size_t i = above(m, at);
  return i < m->nspans && m->spans[i]->at <= at ? m->spans[i] : NULL;
}

/* Whether the span, which holds `at`, lets work go there; *n as reach has it.
 */
static bool lets(const struct model_span *s, uint64_t at, uint64_t *n) {
  if (at - s->at >= s->bytes || (s->share && model_share_gone(s->share)))
    return false;
  uint64_t left = s->bytes - (at - s->at);
  if (*n > left)
    *n = left;
  return true;
}

static struct model_span *reach(struct model *m, uint64_t at, uint64_t *n) {
  struct model_span *s = holder(m, at);
  return s && lets(s, at, n) ? s : NULL;
}

struct model_twin model_span_twin(const struct model_span *s, uint64_t at) {
  return (struct model_twin){s->gpu + at, s->host + at, s->post};
}

/* As the MMU has it. What it leads to is reached, whoever's it is. */
static bool walk(struct model *m, uint64_t at, uint64_t *n, bool writes,
                 struct model_twin *t) {
  struct model_span *s = holder(m, at);
  if (s && !lets(s, at, n))
    return false;
  char *p = m->backing->reach(m->backing->ctx, at, writes, n);
  if (!p)
    return false;
  struct model_post *post = s ? s->post : NULL;
  *t = (struct model_twin){p, post ? s->host + (at - s->at) : p, post};
  return true;
}

char *model_reach(struct model *m, uint64_t at, uint64_t *n) {
  struct model_twin t;
  if (m->backing)
    return walk(m, at, n, false, &t) ? t.gpu : NULL;
  struct model_span *s = reach(m, at, n);
  return s ? s->gpu + (at - s->at) : NULL;
}

bool model_reach_write(struct model *m, uint64_t at, uint64_t *n,
                       struct model_twin *t) {
  if (m->backing)
    return walk(m, at, n, true, t);
  struct model_span *s = reach(m, at, n);
  if (s)
    *t = model_span_twin(s, at - s->at);
  return s;
}

bool model_in_rings(struct model *m, uint64_t at) {
  uint64_t n = 1;
  const struct model_span *s = reach(m, at, &n);
  return s && s->rings;
}

bool model_memory_none(const struct model *m, uint64_t at, uint64_t n) {
  size_t i = above(m, at);
  return i == m->nspans || m->spans[i]->at >= at + n;
}

/* A free address for n bytes in [low, high), 0 for none: after the last span
 * there or in the first gap, as the seed has it. */
static uint64_t place(struct model *m, uint64_t low, uint64_t high,
                      uint64_t n) {
  uint64_t guard = MODEL_PAGE * (1 + model_below(m, GUARD_PAGES));
  size_t i = above(m, low), last = i;
  uint64_t room = model_whole(n) + guard;
  if (n > high - low || room > high - low - MODEL_PAGE)
    return 0;
  while (last < m->nspans && m->spans[last]->at < high)
    last++;
  if (last > i && model_below(m, 2)) {
    uint64_t end = end_of(m->spans[last - 1]);
    if (high - end >= room + MODEL_PAGE)
      return end + guard;
  }
  uint64_t from = low;
  for (; i < last; from = end_of(m->spans[i++]))
    if (m->spans[i]->at - from >= room + MODEL_PAGE)
      return from + guard;
  return high - from >= room + MODEL_PAGE ? from + guard : 0;
}

static uint64_t *budgeted(struct model *m, const struct model_span *s) {
  return s->share ? &m->viewed : &m->used[s->kind];
}

static bool insert(struct model *m, struct model_span *s) {
  if (m->nspans == m->spans_room) {
    size_t room = m->spans_room ? 2 * m->spans_room : 64;
    struct model_span **spans = realloc(m->spans, room * sizeof *spans);
    if (!spans)
      return false;
    m->spans = spans;
    m->spans_room = room;
  }
  size_t i = above(m, s->at);
  memmove(m->spans + i + 1, m->spans + i, (m->nspans - i) * sizeof *m->spans);
  m->spans[i] = s;
  m->nspans++;
  *budgeted(m, s) += s->budgeted;
  return true;
}

void model_span_out(struct model *m, struct model_span *s) {
  if (s->backed)
    m->backing->hide(m->backing->ctx, s->backed);
  size_t i = above(m, s->at);
  memmove(m->spans + i, m->spans + i + 1,
          (m->nspans - i - 1) * sizeof *m->spans);
  m->nspans--;
  *budgeted(m, s) -= s->budgeted;
}

/* The memory of a span that is out of the GPU's addresses; a backed one's with
 * the lock held. */
static void unmap(struct model *m, struct model_span *s) {
  if (s->mapped && s->gpu != s->host)
    munmap(m->backing ? s->host : s->gpu, s->mapped);
  if (s->backed)
    m->backing->drop(m->backing->ctx, s->backed);
  else if (s->mapped)
    munmap(s->host, s->mapped);
}

void model_span_end(struct model *m, struct model_span *s) {
  if (!s)
    return;
  if (s->share)
    model_share_drop(s->share);
  if (s->post && s->mapped)
    model_post_remove(s->post, s);
  unmap(m, s);
  free(s);
}

void model_poison(char *p, uint64_t n) {
  if (n <= 2 * POISONED) {
    memset(p, MODEL_POISON, n);
    return;
  }
  memset(p, MODEL_POISON, POISONED);
  memset(p + n - POISONED, MODEL_POISON, POISONED);
}

/* Addresses of the wish's kind, of the model's own choice; `at` is 0 where
 * they lack. */
static struct model_block own_block(struct model *m,
                                    const struct model_wish *w) {
  bool device = w->kind == RIG_DEVICE;
  return (struct model_block){place(m, device ? MODEL_HIGH : MODEL_LOW,
                                    device ? RIG_NV_WINDOWS : MODEL_HIGH,
                                    w->bytes),
                              w->host, NULL};
}

/* A span with addresses, and with memory where it is the caller's or a
 * backing's; NULL where they lack. */
static struct model_span *span_new(struct model *m,
                                   const struct model_wish *wish) {
  struct model_block b = {0};
  struct model_span *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  if (!m->backing)
    b = own_block(m, wish);
  else if (!m->backing->place(m->backing->ctx, wish, &b))
    b.at = 0;
  if (!b.at) {
    free(s);
    return NULL;
  }
  *s = (struct model_span){.at = b.at,
                           .bytes = wish->bytes,
                           .host = wish->host,
                           .gpu = b.bytes,
                           .backed = b.own,
                           .budgeted = model_whole(wish->bytes),
                           .kind = (int)wish->kind};
  return s;
}

/* Undoes span_new of a span that was not inserted. */
static void span_undo(struct model *m, struct model_span *s) {
  if (s->backed)
    m->backing->hide(m->backing->ctx, s->backed);
  unmap(m, s);
  free(s);
}

static char *fresh(uint64_t n) {
  char *p = mmap(NULL, n, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  model_poison(p, n);
  return p;
}

/* New memory for the span, which the GPU sees apart where `apart`. */
static bool span_fill(struct model *m, struct model_span *s, bool apart) {
  const uint64_t n = model_whole(s->bytes);
  if (!m->backing)
    s->gpu = fresh(n);
  s->host = apart ? fresh(n) : s->gpu;
  s->mapped = n;
  if ((s->gpu || m->backing) && (s->host || !apart))
    return true;
  if (s->gpu && !m->backing)
    munmap(s->gpu, n);
  if (s->host && apart)
    munmap(s->host, n);
  s->mapped = 0;
  return false;
}

struct model_span *model_span_fresh(struct model *m, int kind, uint64_t n,
                                    struct model_post *post) {
  const struct model_wish wish = {.kind = (enum rig_memory)kind, .bytes = n};
  struct model_span *s = span_new(m, &wish);
  if (!s)
    return NULL;
  if (span_fill(m, s, post) && insert(m, s)) {
    if (post)
      model_post_add(post, s);
    return s;
  }
  span_undo(m, s);
  return NULL;
}

struct model_span *model_span_of_host(struct model *m, uint64_t n, char *p) {
  const struct model_wish wish = {.kind = RIG_PINNED, .bytes = n, .host = p};
  struct model_span *s = span_new(m, &wish);
  if (!s)
    return NULL;
  s->gpu = p;
  if (insert(m, s))
    return s;
  span_undo(m, s);
  return NULL;
}

struct model_span *model_span_view(struct model *m, const struct model_span *of,
                                   uint64_t n) {
  const struct model_wish wish = {.kind = (enum rig_memory)of->kind,
                                  .bytes = n,
                                  .view = of->share->block,
                                  .from = of->at};
  struct model_span *s = span_new(m, &wish);
  if (!s)
    return NULL;
  s->host = of->host;
  s->gpu = of->gpu;
  s->post = of->post;
  s->share = of->share;
  if (insert(m, s))
    return s;
  span_undo(m, s);
  return NULL;
}
