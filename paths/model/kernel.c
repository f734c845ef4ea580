/* SPDX-License-Identifier: ISC */
/*
 * Kernels: C functions bound to code, and what they see of the GPU's memory.
 *
 *   read    memory, over it what ended launches of the channel wrote (late),
 *           over that what this launch wrote
 *   write   kept with the launch until it ends
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "paths/model/state.h"

bool model_kernel_read(struct model *m, const struct model_channel *c,
                       uint64_t at, void *to, uint64_t n, uint64_t *bad) {
  uint8_t *p = to;
  for (uint64_t done = 0; done < n;) {
    uint64_t got = n - done;
    const char *from = model_reach(m, at + done, &got);
    *bad = at + done;
    if (!from)
      return false;
    memcpy(p + done, from, got);
    done += got;
  }
  model_pages_over(&c->late, at, to, n);
  return true;
}

static bool fault(struct model_launch *l, uint64_t at, uint32_t access) {
  if (!l->faulted) {
    l->faulted = true;
    l->address = at;
    l->access = access;
  }
  return false;
}

bool rig_nv_model_read(const struct rig_nv_model_launch *shown, uint64_t at,
                       void *p, uint64_t n) {
  struct model_launch *l = shown->model;
  uint64_t bad;
  if (!model_kernel_read(l->m, l->c, at, p, n, &bad))
    return fault(l, bad, FAULT_READ);
  model_pages_over(&l->written, at, p, n);
  return true;
}

bool rig_nv_model_write(const struct rig_nv_model_launch *shown, uint64_t at,
                        const void *p, uint64_t n) {
  struct model_launch *l = shown->model;
  for (uint64_t done = 0; done < n;) {
    uint64_t got = n - done;
    struct model_twin t;
    if (!model_reach_write(l->m, at + done, &got, &t))
      return fault(l, at + done, FAULT_WRITE);
    done += got;
  }
  return model_pages_write(&l->written, at, p, n) || fault(l, at, FAULT_WRITE);
}

static struct model_binding **binding(struct model *m, uint64_t code) {
  struct model_binding **at = &m->bindings;
  while (*at && (*at)->code != code)
    at = &(*at)->next;
  return at;
}

static const struct model_binding *bound(const struct model *m, uint64_t code) {
  const struct model_binding *b = m->bindings;
  while (b && b->code != code)
    b = b->next;
  return b;
}

/* What bank 0 holds at the byte, 0 where it ends before. */
static uint32_t banked(const struct model_launch *l, uint32_t at) {
  uint32_t x = 0;
  if (at + sizeof x <= model_qmd_bank_bytes(&l->q, 0))
    memcpy(&x, l->bank[0] + at, sizeof x);
  return x;
}

static void show(struct model_launch *l, const struct model_binding *b) {
  const struct model_qmd *q = &l->q;
  struct rig_nv_model_launch *s = &l->shown;
  s->model = l;
  s->descriptor = l->at;
  s->code = b->code;
  for (uint32_t i = 0; i < 3; i++) {
    s->grid[i] = model_qmd_get(q, (enum model_qmd_field)(QF_GRID_X + i));
    s->group[i] = model_qmd_get(q, (enum model_qmd_field)(QF_GROUP_X + i));
    s->bank_group[i] = banked(l, q->arch->block + 4 * i);
    s->bank_grid[i] = banked(l, q->arch->grid + 4 * i);
  }
  s->shared = model_qmd_shared(q);
  s->local = model_qmd_local(q);
  s->registers = model_qmd_get(q, QF_REGISTERS);
  s->barriers = model_qmd_get(q, QF_BARRIERS);
  for (unsigned i = 0; i < QV_BANKS; i++)
    if (l->bank[i]) {
      s->bank[i].at = l->bank[i];
      s->bank[i].bytes = model_qmd_bank_bytes(q, i);
    }
  s->params = l->bank[0] + b->params_offset;
  s->params_bytes = s->bank[0].bytes - b->params_offset;
}

enum model_step model_kernel_run(struct model_launch *l) {
  const uint64_t code = model_qmd_code(&l->q);
  const struct model_binding *b = bound(l->m, code);
  char text[160];
  if (!b) {
    snprintf(text, sizeof text, "PROGRAM_ADDRESS 0x%llx: no kernel is bound",
             (unsigned long long)code);
    return model_launch_stray(l, text);
  }
  if (b->params_offset > model_qmd_bank_bytes(&l->q, 0)) {
    snprintf(text, sizeof text,
             "CONSTANT_BUFFER_SIZE(0): %u bytes end before the parameters at "
             "%u",
             (unsigned)model_qmd_bank_bytes(&l->q, 0),
             (unsigned)b->params_offset);
    return model_launch_stray(l, text);
  }
  show(l, b);
  l->m->launches++;
  b->fn(&l->shown, b->ctx);
  if (l->faulted)
    return model_fault_mmu(l->m, l->c, l->address, l->access);
  l->life = LAUNCH_RAN;
  return STEP_DONE;
}

static int bind(struct model *m, const struct model_binding *as) {
  struct model_binding **at = binding(m, as->code), *b = *at;
  if (!as->fn && !b)
    return why(RIG_NV_INVALID, "nothing is bound to code at 0x%llx",
               (unsigned long long)as->code);
  if (!as->fn) {
    *at = b->next;
    free(b);
    return 0;
  }
  if (!b && !(*at = b = calloc(1, sizeof *b)))
    return why(RIG_NV_HOST_MEMORY, "a binding of code");
  struct model_binding *next = b->next;
  *b = *as;
  b->next = next;
  return 0;
}

int rig_nv_model_bind(const struct rig_nv_path *path, uint64_t code,
                      uint32_t params_offset, rig_nv_model_kernel *fn,
                      void *ctx) {
  const struct model_binding as = {
      .code = code, .params_offset = params_offset, .fn = fn, .ctx = ctx};
  struct rig_nv_reply reply;
  if (!path || path->alloc != model_alloc)
    return why(RIG_NV_INVALID, "kernels are bound on a path of the model");
  if (!model_enter(path->ctx, &reply))
    return why(RIG_NV_INVALID, "%s", reply.text);
  int r = bind(path->ctx, &as);
  model_leave(path->ctx);
  return r;
}

void model_bindings_close(struct model *m) {
  while (m->bindings) {
    struct model_binding *b = m->bindings;
    m->bindings = b->next;
    free(b);
  }
}
