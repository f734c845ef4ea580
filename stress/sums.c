/* SPDX-License-Identifier: ISC */
#include "stress/sums.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/random.h"

enum {
  ROW_BYTES = SUMS_WORDS * sizeof(uint32_t),
  OTHERS = 4096, /* bytes of arguments that a submission has before */
  ALIGN = 16     /* of a block */
};

/* A launch's block and its parameters: c, a, b, words. */
struct call {
  struct rig_block block;
  uint64_t params[4];
};

_Static_assert(sizeof(struct call) % ALIGN == 0, "calls follow each other");

struct sum {
  unsigned to, from;
  uint32_t n, groups, threads;
};

static struct sum draw(struct random *r) {
  struct sum s;
  s.to = (unsigned)random_below(r, SUMS_ROWS);
  s.from = (s.to + 1 + (unsigned)random_below(r, SUMS_ROWS - 1)) % SUMS_ROWS;
  s.n = (uint32_t)random_in(r, 1, SUMS_WORDS);
  s.groups = (uint32_t)random_in(r, 1, 4);
  s.threads = (uint32_t)random_in(r, 1, 32);
  return s;
}

int sums_make(struct rig_nv *device, const struct rig_nv_function *add,
              unsigned threads, unsigned each, size_t most, struct sums *s) {
  *s = (struct sums){.device = device,
                     .add = *add,
                     .threads = threads,
                     .each = each,
                     .most = most};
  struct random random = {most};
  bool lacks = !(s->order = calloc((size_t)threads * each, sizeof *s->order));
  assert(threads >= 1 && threads <= SUMS_MOST_THREADS && each >= 1);
  for (unsigned t = 0; t < threads; t++) {
    struct sums_thread *me = &s->thread[t];
    me->runs = calloc(each, sizeof *me->runs);
    me->args = malloc(OTHERS + most * sizeof(struct call));
    lacks |= !me->runs || !me->args;
  }
  int e = lacks ? -RIG_NV_HOST_MEMORY
                : rig_nv_alloc(device, RIG_PINNED, sizeof s->row, &s->region);
  if (e != 0) {
    (void)sums_end(s); /* there is no region that could fail to go */
    return e;
  }
  random_bytes(&random, s->row, sizeof s->row);
  memcpy(rig_nv_locate(s->region).host, s->row, sizeof s->row);
  return 0;
}

int sums_end(struct sums *s) {
  int e = s->region ? rig_nv_free(s->device, s->region) : 0;
  for (unsigned t = 0; t < s->threads; t++) {
    free(s->thread[t].runs);
    free(s->thread[t].args);
  }
  free(s->order);
  *s = (struct sums){0};
  return e;
}

void sums_begin(struct sums *s) {
  for (unsigned t = 0; t < s->threads; t++)
    s->thread[t].taken = 0;
}

void sums_add(struct sums *s, unsigned thread, uint64_t seed, size_t n,
              struct rig_part *parts, struct rig_submission *to) {
  struct sums_thread *me = &s->thread[thread];
  struct random random = {seed};
  uint64_t rows = rig_nv_locate(s->region).address;
  size_t at = (to->args_bytes + ALIGN - 1) / ALIGN * ALIGN;
  assert(n >= 1 && n <= s->most && at <= OTHERS && parts == to->parts);
  if (to->args_bytes != 0)
    memcpy(me->args, to->args, to->args_bytes);
  for (size_t i = 0; i < n; i++, at += sizeof(struct call)) {
    struct sum x = draw(&random);
    uint64_t row = rows + x.to * (uint64_t)ROW_BYTES;
    struct call call = {{{x.groups, 1, 1}, {x.threads, 1, 1}, 0, 0},
                        {row, row, rows + x.from * (uint64_t)ROW_BYTES, x.n}};
    memcpy(me->args + at, &call, sizeof call);
    parts[to->nparts++] = rig_part_launch(s->add.code, s->add.launch,
                                          (uint32_t)at, sizeof call.params);
  }
  to->args = me->args;
  to->args_bytes = at;
  me->last = (struct sums_run){.seed = seed, .n = n};
}

void sums_took(struct sums *s, unsigned thread, uint64_t v) {
  struct sums_thread *me = &s->thread[thread];
  assert(me->taken < s->each && me->last.n != 0);
  me->last.v = v;
  me->runs[me->taken++] = me->last;
  me->last.n = 0;
}

static void run(struct sums *s, const struct sums_run *r) {
  struct random random = {r->seed};
  for (size_t i = 0; i < r->n; i++) {
    struct sum x = draw(&random);
    for (uint32_t k = 0; k < x.n; k++)
      s->row[x.to][k] += s->row[x.from][k];
  }
  s->launches += r->n;
}

bool sums_check(struct sums *s, uint64_t first, uint64_t last, char *what,
                size_t size) {
  uint32_t found[SUMS_ROWS][SUMS_WORDS];
  const uint64_t n = last - first + 1;
  assert(n <= (uint64_t)s->threads * s->each);
  memset(s->order, 0, n * sizeof *s->order);
  for (unsigned t = 0; t < s->threads; t++)
    for (unsigned i = 0; i < s->thread[t].taken; i++) {
      const struct sums_run *r = &s->thread[t].runs[i];
      assert(r->v - first < n && s->order[r->v - first] == NULL);
      s->order[r->v - first] = r;
    }
  for (uint64_t i = 0; i < n; i++)
    if (s->order[i] != NULL)
      run(s, s->order[i]);
  memcpy(found, rig_nv_locate(s->region).host, sizeof found);
  for (unsigned i = 0; i < SUMS_ROWS; i++)
    for (unsigned k = 0; k < SUMS_WORDS; k++)
      if (found[i][k] != s->row[i][k]) {
        snprintf(what, size,
                 "after value %" PRIu64 ", row %u of the sums has %08" PRIx32
                 " in word %u, not %08" PRIx32,
                 last, i, found[i][k], k, s->row[i][k]);
        return false;
      }
  return true;
}
