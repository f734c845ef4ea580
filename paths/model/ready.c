/* SPDX-License-Identifier: ISC */
/*
 * What a launch reads and finds: its descriptor, its constant banks, its code
 * as the instruction cache holds it, and the channel's windows and local
 * memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "paths/model/state.h"

typedef unsigned long long ull;

enum {
  CODE_LEAST = 128,       /* a line of the instruction cache */
  CODE_MOST = 16384,      /* of a launch's code that the cache holds */
  LOCAL_TPC_UNIT = 32768, /* of SET_SHADER_LOCAL_MEMORY_NON_THROTTLED */
  WARP = 32               /* threads */
};
#define WINDOW_BYTES (UINT64_C(4) << 30) /* as an H200's launches had them */

static uint64_t pair(uint32_t hi, uint32_t lo) {
  return (uint64_t)hi << 32 | lo;
}

/* What fresh memory holds, and what was fetched before. */
static const char *unwritten(const struct model_launch *l, unsigned n) {
  static const struct {
    uint8_t byte;
    const char *why;
  } t[] = {{MODEL_FETCHED, "was run before and nobody wrote it since"},
           {MODEL_POISON, "is what fresh memory holds: nobody wrote it"}};
  const uint8_t *p = (const uint8_t *)l->q.words;
  for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
    unsigned i = 0;
    while (i < n && p[i] == t[k].byte)
      i++;
    if (i == n)
      return t[k].why;
  }
  return NULL;
}

enum model_step model_launch_read(struct model_launch *l) {
  struct model *m = l->m;
  const struct model_arch *a = model_arch(m->options.gpu.sm_version);
  char text[300];
  uint64_t bad;
  if (!a)
    return model_launch_stray(l, "no descriptor is known to run on this GPU");
  l->q.arch = a;
  const unsigned n = model_qmd_bytes(a->version);
  if (!model_kernel_read(m, l->c, l->at, l->q.words, n, &bad))
    return model_fault_mmu(m, l->c, bad, FAULT_READ);
  const char *why = unwritten(l, n);
  if (why)
    return model_launch_stray(l, why);
  if (!model_qmd_check(&l->q, text, sizeof text))
    return model_launch_stray(l, text);
  l->life = LAUNCH_READ;
  return STEP_DONE;
}

static enum model_step read_bank(struct model_launch *l, unsigned i) {
  const uint64_t at = model_qmd_bank_at(&l->q, i);
  const uint32_t n = model_qmd_bank_bytes(&l->q, i);
  char what[40];
  uint64_t bad;
  snprintf(what, sizeof what, "CONSTANT_BUFFER_ADDR(%u)", i);
  if (!(l->bank[i] = malloc(n)))
    return model_launch_stray(l, "no host memory");
  if (!model_kernel_read(l->m, l->c, at, l->bank[i], n, &bad))
    return model_launch_nowhere(l, what, at, bad, FAULT_READ);
  if (model_qmd_bank(&l->q, QF_BANK_INVALIDATE, i) ||
      model_qmd_get(&l->q, QF_CONSTANT))
    return STEP_DONE;
  snprintf(what, sizeof what, "constant bank %u", i);
  return model_cache_fetch(l->m, l->c, CACHE_CONSTANTS, at, l->bank[i], n,
                           what);
}

enum model_step model_launch_banks(struct model_launch *l) {
  for (unsigned i = 0; i < QV_BANKS; i++)
    if (model_qmd_bank(&l->q, QF_BANK_VALID, i) && !l->bank[i] &&
        read_bank(l, i) == STEP_FAULT)
      return STEP_FAULT;
  return STEP_DONE;
}

/* The code's lines as the launch fetches them. */
static enum model_step fetch_code(struct model_launch *l) {
  const uint64_t at = model_qmd_code(&l->q);
  uint64_t n = (uint64_t)model_qmd_get(&l->q, QF_PREFETCH_SIZE) << 8, bad;
  uint8_t bytes[CODE_MOST];
  n = n < CODE_LEAST ? CODE_LEAST : n > CODE_MOST ? CODE_MOST : n;
  if (!model_reach(l->m, at, &n))
    return model_launch_nowhere(l, "PROGRAM_ADDRESS", at, at, FAULT_READ);
  (void)!model_kernel_read(l->m, l->c, at, bytes, n, &bad);
  if (model_qmd_get(&l->q, QF_INSTRUCTION))
    model_cache_drop(l->m, CACHE_CODE);
  return model_cache_fetch(l->m, l->c, CACHE_CODE, at, bytes, n,
                           "code that the instruction cache holds");
}

static bool has(const struct model_channel *c, int i) {
  return c->compute_set & 1u << i;
}

/* The windows at which kernels see shared and local memory. */
static enum model_step windows(struct model_launch *l) {
  static const int low[] = {CP_SHARED_WINDOW_B, CP_LOCAL_WINDOW_B};
  size_t n;
  const struct model_method *methods = model_methods(KIND_COMPUTE, &n);
  const struct model_channel *c = l->c;
  uint64_t at[2];
  char text[120];
  for (int i = 0; i < 2; i++) {
    const char *name = methods[low[i] - 1].name;
    if (!has(c, low[i]) || !has(c, low[i] - 1)) {
      snprintf(text, sizeof text, "nothing set %s", name);
      return model_launch_stray(l, text);
    }
    at[i] = pair(c->compute[low[i] - 1], c->compute[low[i]]);
    if (!model_memory_none(l->m, at[i], WINDOW_BYTES)) {
      snprintf(text, sizeof text, "%s 0x%llx: a window over memory", name,
               (ull)at[i]);
      return model_launch_stray(l, text);
    }
  }
  if (at[0] - at[1] < WINDOW_BYTES || at[1] - at[0] < WINDOW_BYTES)
    return model_launch_stray(l, "its windows overlap");
  return STEP_DONE;
}

enum model_step model_launch_local(struct model_launch *l) {
  const struct rig_nv_gpu *g = &l->m->options.gpu;
  const struct model_channel *c = l->c;
  const uint64_t at = pair(c->compute[CP_LOCAL_A], c->compute[CP_LOCAL_B]);
  const uint64_t all =
      pair(c->compute[CP_LOCAL_SIZE_A], c->compute[CP_LOCAL_SIZE_B]) *
      g->tpcs_per_gpc * g->gpcs;
  for (uint64_t done = 0; model_qmd_local(&l->q) && done < all;) {
    uint64_t n = all - done;
    if (!model_reach(l->m, at + done, &n))
      return model_launch_nowhere(l, "SET_SHADER_LOCAL_MEMORY_A", at, at + done,
                                  FAULT_WRITE);
    done += n;
  }
  return STEP_DONE;
}

/* Whether the channel's local memory holds what the launch's threads have. */
static enum model_step local(struct model_launch *l) {
  const struct rig_nv_gpu *g = &l->m->options.gpu;
  const struct model_channel *c = l->c;
  const uint32_t need = model_qmd_local(&l->q);
  const uint64_t tpc =
      pair(c->compute[CP_LOCAL_SIZE_A], c->compute[CP_LOCAL_SIZE_B]);
  const uint64_t has_one =
      tpc / ((uint64_t)g->sms_per_tpc * g->warps_per_sm * WARP);
  char text[200];
  if (!need)
    return STEP_DONE;
  for (int i = CP_LOCAL_SIZE_A; i <= CP_LOCAL_B; i++)
    if (!has(c, i)) {
      size_t n;
      snprintf(text, sizeof text, "%s: nothing set %s",
               model_qmd_bits(l->q.arch->version, QF_LOCAL)->name,
               model_methods(KIND_COMPUTE, &n)[i].name);
      return model_launch_stray(l, text);
    }
  if (tpc % LOCAL_TPC_UNIT || c->compute[CP_LOCAL_SIZE_C] < g->sms_per_tpc) {
    snprintf(text, sizeof text,
             "SET_SHADER_LOCAL_MEMORY_NON_THROTTLED 0x%llx for %u SMs: not in "
             "units of %d, or not for the %u of a TPC",
             (ull)tpc, (unsigned)c->compute[CP_LOCAL_SIZE_C], LOCAL_TPC_UNIT,
             (unsigned)g->sms_per_tpc);
    return model_launch_stray(l, text);
  }
  if (need > has_one) {
    snprintf(text, sizeof text,
             "%s: %u bytes of a thread, where the channel's local memory "
             "holds %llu",
             model_qmd_bits(l->q.arch->version, QF_LOCAL)->name, (unsigned)need,
             (ull)has_one);
    return model_launch_stray(l, text);
  }
  return model_launch_local(l);
}

/* Everything is read by now; what the launch runs in is looked at as it
 * starts. */
enum model_step model_launch_ready(struct model_launch *l) {
  if (model_launch_banks(l) == STEP_FAULT || windows(l) == STEP_FAULT ||
      local(l) == STEP_FAULT || fetch_code(l) == STEP_FAULT)
    return STEP_FAULT;
  return STEP_DONE;
}
