/* SPDX-License-Identifier: ISC */
#include "rings/launch.h"

#include <string.h>

#include "rings/io.h"

enum {
  LINE = 64,
  /* Bank 0 is composed on the stack and copied in whole lines, as ring memory
   * may be written alone. A multiple of LINE, and more than what precedes the
   * parameters. */
  WINDOW = 2048
};

_Static_assert((int)WINDOW >= (int)LIMITS_PARAMS_OFFSET && WINDOW % LINE == 0,
               "the driver's part lies in the first window");

static const struct launch *function(const struct rig_launch *x) {
  return x->launch;
}

static const struct rig_block *block(const struct rig_submission *s,
                                     const struct rig_launch *x) {
  return (const void *)((const unsigned char *)s->args + x->block);
}

/* Bytes past those that the kernel reads are left out. */
static uint32_t params(const struct rig_launch *x) {
  uint32_t most = function(x)->params_bytes;
  return x->params < most ? x->params : most;
}

static uint32_t bank_size(const struct launch *f) {
  uint32_t n = f->params_offset + f->params_bytes;
  return f->bank_bytes > n ? f->bank_bytes : n;
}

bool launch_lawful(const struct rig_submission *s, const struct rig_launch *x) {
  const uint64_t granule = LIMITS_SHARED_GRANULE;
  if (x->launch == NULL || x->block % 16 != 0 ||
      (uint64_t)x->block + sizeof(struct rig_block) + x->params > s->args_bytes)
    return false;
  const struct rig_block *b = block(s, x);
  if ((b->shared + granule - 1) / granule * granule > function(x)->dynamic_most)
    return false;
  for (size_t i = 0; i < x->nrefs; i++)
    if (x->refs[i].at % 8 != 0 || (uint64_t)x->refs[i].at + 8 > x->params ||
        x->refs[i].slot >= s->nslots)
      return false;
  return limits_size(b->groups, b->threads, function(x)->threads) == 0;
}

uint32_t launch_units(const struct rig_launch *x) {
  const struct launch *f = function(x);
  uint32_t n = qmd_bytes(f->descriptor.version) + bank_size(f);
  return (n + LAUNCH_UNIT - 1) / LAUNCH_UNIT;
}

/* The parameters' part of bytes [from, to) of bank 0, refs added. */
static void put_params(const struct rig_submission *s,
                       const struct rig_launch *x, uint32_t from, uint32_t to,
                       unsigned char *w) {
  const unsigned char *p = (const unsigned char *)(block(s, x) + 1);
  uint32_t first = function(x)->params_offset, end = first + params(x);
  uint32_t at = first > from ? first : from;
  uint32_t stop = end < to ? end : to;
  if (at >= stop)
    return;
  memcpy(w + (at - from), p + (at - first), stop - at);
  for (size_t i = 0; i < x->nrefs; i++) {
    uint32_t r = first + x->refs[i].at;
    uint64_t sum;
    if (r < at || r + 8 > stop)
      continue;
    memcpy(&sum, w + (r - from), sizeof sum);
    sum += s->slots[x->refs[i].slot];
    memcpy(w + (r - from), &sum, sizeof sum);
  }
}

void launch_write_bank(const struct rig_submission *s,
                       const struct rig_launch *x, const struct rig_nv_gpu *gpu,
                       unsigned char *at, uint64_t gpu_at,
                       struct qmd_args *args) {
  _Alignas(LINE) unsigned char w[WINDOW];
  const struct launch *f = function(x);
  const struct rig_block *b = block(s, x);
  const uint32_t skip = qmd_bytes(f->descriptor.version);
  const uint32_t n = bank_size(f);
  struct bank head = {.shared_window = gpu->shared_window,
                      .local_window = gpu->local_window,
                      .params_offset = f->params_offset,
                      .bytes = n < WINDOW ? n : WINDOW};
  *args =
      (struct qmd_args){.dynamic_shared = b->shared, .bank0 = gpu_at + skip};
  memcpy(head.grid, b->groups, sizeof head.grid);
  memcpy(head.block, b->threads, sizeof head.block);
  memcpy(args->grid, b->groups, sizeof args->grid);
  memcpy(args->block, b->threads, sizeof args->block);
  for (uint32_t from = 0, to; from < n; from = to) {
    to = n - from < WINDOW ? n : from + WINDOW;
    uint32_t lines = (to - from + LINE - 1) / LINE * LINE;
    if (from == 0)
      (void)bank_write(f->limits, &head, w);
    else
      memset(w, 0, to - from);
    memset(w + (to - from), 0, lines - (to - from));
    put_params(s, x, from, to, w);
    io_copy((uint32_t *)(at + skip + from), (const uint32_t *)w,
            lines / sizeof(uint32_t));
  }
}

void launch_write_descriptor(const struct rig_launch *x,
                             const struct qmd_args *args, unsigned char *at) {
  _Alignas(LINE) uint32_t w[QMD_MOST_WORDS];
  unsigned n = qmd_fill(&function(x)->descriptor, args, w);
  io_copy((uint32_t *)at, w, n);
}
