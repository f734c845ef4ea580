/* SPDX-License-Identifier: ISC */
#include "core/qmd/qmd.h"

#include <stddef.h>
#include <string.h>

#include "core/api/why.h"
#include "core/qmd/fields.h"

static const struct fields *fields_of(enum qmd_version v) {
  return v == QMD_V3 ? &fields_v3 : v == QMD_V4 ? &fields_v4 : &fields_v5;
}

int qmd_version_of(uint32_t sm_version, enum qmd_version *v) {
  static const struct {
    const char *arch;
    enum qmd_version version;
  } of[] = {
      {"sm_86", QMD_V3}, {"sm_87", QMD_V3},  {"sm_89", QMD_V3},
      {"sm_90", QMD_V4}, {"sm_100", QMD_V5}, {"sm_120", QMD_V5},
  };
  const struct limits *l = limits_of(sm_version);
  if (l == NULL)
    return -RIG_NV_INVALID;
  for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
    if (strcmp(of[i].arch, l->arch) == 0) {
      *v = of[i].version;
      return 0;
    }
  }
  return why(RIG_NV_INVALID, "no launch descriptor is known to run on %s",
             l->arch);
}

unsigned qmd_bytes(enum qmd_version v) {
  return fields_of(v)->words * (unsigned)sizeof(uint32_t);
}

/* Into words that are 0 there. */
static inline void put(uint32_t *w, unsigned lsb, uint32_t x) {
  w[lsb / 32] |= x << lsb % 32;
}

static inline void put_pair(uint32_t *w, const uint16_t lsb[2], uint64_t x) {
  put(w, lsb[0], (uint32_t)x);
  put(w, lsb[1], (uint32_t)(x >> 32));
}

static void put_code(const struct fields *f, const struct qmd_function *fn,
                     uint32_t *w) {
  const uint64_t units = fn->code_bytes >> PREFETCH_SHIFT;
  put_pair(w, f->code, fn->code >> f->code_shift);
  put_pair(w, f->prefetch, fn->code >> PREFETCH_SHIFT);
  put(w, f->prefetch_size,
      units < PREFETCH_SIZE_MOST ? (uint32_t)units : PREFETCH_SIZE_MOST);
}

static uint32_t bank_units(uint32_t bytes) {
  return (bytes + (1u << BANK_SIZE_SHIFT) - 1) >> BANK_SIZE_SHIFT;
}

static void put_banks(const struct fields *f, const struct qmd_function *fn,
                      uint32_t *w) {
  put(w, f->bank_valid, 1);
  put(w, f->bank_invalidate, 1);
  if (f->bank_prefetch != 0)
    put(w, f->bank_prefetch, CONSTANT_BUFFER_PREFETCH_PRE);
  put(w, f->bank_size, bank_units(fn->bank0_bytes));
  for (unsigned i = 1; i < LIMITS_BANKS; i++) {
    const unsigned at = i * f->bank_step;
    const uint64_t addr = fn->bank[i].addr >> f->bank_shift;
    if (fn->bank[i].bytes == 0)
      continue;
    put(w, f->bank_valid + i * f->bank_flags_step, 1);
    put(w, f->bank[0] + at, (uint32_t)addr);
    put(w, f->bank[1] + at, (uint32_t)(addr >> 32));
    put(w, f->bank_size + at, bank_units(fn->bank[i].bytes));
  }
}

static void put_constant(const struct fields *f, enum qmd_version v,
                         uint32_t *w) {
  put(w, f->major, (uint32_t)v);
  put(w, f->group, QMD_GROUP_ID_ANY);
  if (f->type != 0)
    put(w, f->type, QMD_TYPE_GRID_CTA);
  if (f->caching != 0)
    put(w, f->caching, 1);
  for (unsigned i = 0; i < f->invalidates; i++)
    put(w, f->invalidate[i], 1);
  put(w, f->call_limit, API_VISIBLE_CALL_LIMIT_NO_CHECK);
  put(w, f->sampler, SAMPLER_INDEX_VIA_HEADER_INDEX);
}

/* MIN_ and TARGET_SM_CONFIG lie in one word but for V3's. */
static inline bool one_word(const struct fields *f) {
  return f->config_min / 32 == f->config_target / 32;
}

/* What a launch puts at MIN_SM_CONFIG: both, where they lie in one word. */
static uint32_t configs(const struct fields *f, uint32_t config) {
  return one_word(f) ? config | config << (f->config_target - f->config_min)
                     : config;
}

void qmd_template(enum qmd_version v, const struct qmd_function *fn,
                  struct qmd_template *t) {
  const struct fields *f = fields_of(v);
  const uint32_t most = limits_config_most(fn->limits);
  *t = (struct qmd_template){
      .version = v,
      .shared = fn->shared,
      .configs = configs(f, limits_config(fn->limits, fn->shared)),
      .configs_most = configs(f, most),
  };
  put_constant(f, v, t->words);
  put(t->words, f->sass, fn->limits->sass);
  put(t->words, f->registers, fn->registers);
  put(t->words, f->barriers, fn->barriers);
  put(t->words, f->local, fn->local >> f->local_shift);
  put(t->words, f->config_max, most);
  put_code(f, fn, t->words);
  put_banks(f, fn, t->words);
}

static inline void put_release(const struct fields *f,
                               const struct qmd_release *r, uint32_t *w) {
  put(w, f->release_enable, 1);
  put(w, f->release_size,
      r->size == QMD_TWO_WORDS ? RELEASE_STRUCTURE_SIZE_TWO_WORDS
                               : RELEASE_STRUCTURE_SIZE_FOUR_WORDS);
  if (f->release_membar != 0)
    put(w, f->release_membar, RELEASE_MEMBAR_TYPE_FE_SYSMEMBAR);
  put(w, f->release_64, 1);
  put_pair(w, f->release, r->addr);
  put_pair(w, f->payload, r->payload);
}

static inline void put_next(const struct fields *f, uint64_t next,
                            uint32_t *w) {
  put(w, f->next_enable, 1);
  put(w, f->next_action, DEPENDENT_QMD_ACTION_QMD_SCHEDULE);
  put(w, f->next_prefetch, 1);
  put(w, f->next, (uint32_t)(next >> POINTER_SHIFT));
}

static inline void put_shared(const struct fields *f,
                              const struct qmd_template *t, uint32_t dynamic,
                              uint32_t *w) {
  const uint32_t granule = LIMITS_SHARED_GRANULE;
  const uint32_t configs = dynamic != 0 ? t->configs_most : t->configs;
  const uint32_t bytes =
      t->shared + (dynamic + granule - 1) / granule * granule;
  put(w, f->shared, bytes >> f->shared_shift);
  put(w, f->config_min, configs);
  if (!one_word(f))
    put(w, f->config_target, configs);
}

/* Inlined with a constant f: each position is then a constant. */
__attribute__((always_inline)) static inline unsigned
fill(const struct fields *f, const struct qmd_template *restrict t,
     const struct qmd_args *restrict a, uint32_t *restrict w) {
  memcpy(w, t->words, f->words * sizeof *w);
  for (unsigned i = 0; i < 3; i++) {
    put(w, f->grid[i], a->grid[i]);
    put(w, f->block[i], a->block[i]);
  }
  put_shared(f, t, a->dynamic_shared, w);
  put_pair(w, f->bank, a->bank0 >> f->bank_shift);
  if (a->next != 0)
    put_next(f, a->next, w);
  if (a->release.size != QMD_NO_RELEASE) {
    put_release(f, &a->release, w);
    put(w, f->membar, CWD_MEMBAR_TYPE_L1_SYSMEMBAR);
  } else if (a->membar == QMD_MEMBAR_SYSTEM) {
    put(w, f->membar, CWD_MEMBAR_TYPE_L1_SYSMEMBAR);
  }
  return f->words;
}

unsigned qmd_fill(const struct qmd_template *t, const struct qmd_args *a,
                  uint32_t *out) {
  switch (t->version) {
  case QMD_V3:
    return fill(&fields_v3, t, a, out);
  case QMD_V4:
    return fill(&fields_v4, t, a, out);
  default:
    return fill(&fields_v5, t, a, out);
  }
}

unsigned qmd_write(enum qmd_version v, const struct qmd_launch *l,
                   uint32_t *words) {
  struct qmd_template t;
  qmd_template(v, &l->function, &t);
  return qmd_fill(&t, &l->args, words);
}

static int address(const char *what, uint64_t addr, unsigned align,
                   unsigned bits) {
  if (addr % align != 0) {
    return why(RIG_NV_INVALID, "the %s at %#llx is not %u-byte aligned", what,
               (unsigned long long)addr, align);
  }
  if (addr >> bits != 0) {
    return why(RIG_NV_INVALID, "the %s at %#llx is not below 2^%u", what,
               (unsigned long long)addr, bits);
  }
  return 0;
}

static int at_most(const char *what, uint64_t n, uint64_t most) {
  if (n <= most)
    return 0;
  return why(RIG_NV_INVALID, "%llu %s exceed %llu", (unsigned long long)n, what,
             (unsigned long long)most);
}

enum {
  CODE_ALIGN = 128,
  BANK_ALIGN = 64, /* CONSTANT_BUFFER_ADDR_*_SHIFTED6 */
  LOCAL_ALIGN = 16 /* SHADER_LOCAL_MEMORY_HIGH_SIZE_SHIFTED4 */
};

static int check_banks(const struct fields *f, const struct qmd_function *fn) {
  int e =
      at_most("bytes of constant bank 0", fn->bank0_bytes, LIMITS_BANK_BYTES);
  for (unsigned i = 1; i < LIMITS_BANKS && e == 0; i++) {
    const struct qmd_bank *b = &fn->bank[i];
    if (b->bytes == 0)
      continue;
    e = at_most("bytes of a constant bank", b->bytes, LIMITS_BANK_BYTES);
    if (e == 0)
      e = address("constant bank", b->addr, BANK_ALIGN, f->address_bits);
  }
  return e;
}

int qmd_check_function(enum qmd_version v, const struct qmd_function *fn) {
  const struct fields *f = fields_of(v);
  const uint32_t local = (1u << f->local_bits) - (1u << f->local_shift);
  int e = at_most("registers", fn->registers, LIMITS_REGISTERS);
  if (e == 0)
    e = at_most("barriers", fn->barriers, LIMITS_BARRIERS);
  if (e == 0)
    e = at_most("bytes of shared memory", fn->shared,
                limits_shared_most(fn->limits));
  if (e == 0 && (fn->shared < LIMITS_SHARED_RESERVED ||
                 fn->shared % LIMITS_SHARED_GRANULE != 0)) {
    e = why(RIG_NV_INVALID,
            "%u bytes of shared memory lack the reserved %u or are no "
            "multiple of %u",
            (unsigned)fn->shared, LIMITS_SHARED_RESERVED,
            LIMITS_SHARED_GRANULE);
  }
  if (e == 0)
    e = at_most("bytes of local memory", fn->local, local);
  if (e == 0 && fn->local % LOCAL_ALIGN != 0) {
    e = why(RIG_NV_INVALID, "%u bytes of local memory are no multiple of %u",
            (unsigned)fn->local, LOCAL_ALIGN);
  }
  if (e == 0)
    e = address("code", fn->code, CODE_ALIGN, f->address_bits);
  return e == 0 ? check_banks(f, fn) : e;
}

int qmd_check_args(const struct qmd_function *fn, const struct qmd_args *a) {
  /* Rings lie below 2^40: the width of DEPENDENT_QMD0_POINTER and of V3's
   * RELEASE0_ADDRESS. */
  enum { TOP = 40 };
  int e = limits_size(a->grid, a->block, limits_threads(fn->registers));
  if (e == 0) {
    /* Both are multiples of the granule, so rounding up stays below. */
    e = at_most("bytes of dynamic shared memory", a->dynamic_shared,
                limits_shared_most(fn->limits) - fn->shared);
  }
  if (e == 0)
    e = address("constant bank 0", a->bank0, BANK_ALIGN, TOP);
  if (e == 0)
    e = address("next descriptor", a->next, QMD_ALIGN, TOP);
  if (e == 0 && a->release.size != QMD_NO_RELEASE) {
    e = address("release", a->release.addr,
                a->release.size == QMD_TWO_WORDS ? 8 : 16, TOP);
  }
  return e;
}
