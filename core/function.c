/* SPDX-License-Identifier: ISC */
/*
 * What is found out of a kernel once, for all launches of it.
 */
#include "core/api/why.h"
#include "core/device.h"

enum {
  /* What kernels ran with that use none. */
  BARRIERS_LEAST = 1,
  /* From this architecture on, a section of shared memory counts the reserved
   * bytes too (core/cubin/cubin.h). */
  SM_COUNTS_RESERVED = 90
};

struct function *function_new(struct rig_nv_image *i,
                              const struct cubin_kernel *k) {
  struct function *f =
      device_host_alloc(&i->device->host, _Alignof(struct function), sizeof *f);
  if (f != NULL) {
    f->image = i;
    f->kernel = *k;
  }
  return f;
}

void function_free(struct function *f) {
  const struct rig_nv_allocator *host = &f->image->device->host;
  host->release(host->ctx, f, sizeof *f);
}

/* The bytes that a kernel declares, without those that are reserved. */
static uint64_t declared(const struct rig_nv_image *i, uint64_t section) {
  bool counted = i->cubin.sm >= SM_COUNTS_RESERVED;
  if (!counted || section < LIMITS_SHARED_RESERVED)
    return section; /* 0: nothing in the cubin has shared memory */
  return section - LIMITS_SHARED_RESERVED;
}

/* Where its parameters begin: those of a kernel without any, where they
 * would. */
static int check_params(const struct limits *l, const struct cubin_kernel *k,
                        struct bank *bank, uint32_t *bank0_bytes) {
  enum { PARAM_ALIGN = 8 }; /* of 8-byte refs */
  *bank = (struct bank){.params_offset =
                            k->params_bytes ? k->params_offset : l->bank.params,
                        .params_bytes = k->params_bytes};
  if (bank->params_offset % PARAM_ALIGN != 0)
    return why(RIG_NV_INVALID,
               "parameters at %u of constant bank 0 are not %d-byte aligned",
               bank->params_offset, PARAM_ALIGN);
  if (k->banks[0].bytes > LIMITS_BANK_BYTES)
    return why(RIG_NV_INVALID, "a constant bank 0 of %llu bytes exceeds %u",
               (unsigned long long)k->banks[0].bytes, LIMITS_BANK_BYTES);
  bank->bytes = (uint32_t)k->banks[0].bytes;
  return bank_bytes(l, bank, bank0_bytes);
}

static int check_bank(unsigned n, uint64_t bytes) {
  if (bytes <= LIMITS_BANK_BYTES)
    return 0;
  return why(RIG_NV_INVALID, "a constant bank %u of %llu bytes exceeds %u", n,
             (unsigned long long)bytes, LIMITS_BANK_BYTES);
}

/* What all launches of a kernel share, or INVALID: it takes more than a launch
 * can. */
static int plan(const struct rig_nv_image *i, const struct cubin_kernel *k,
                struct qmd_function *f, struct bank *bank, uint64_t *need) {
  const struct limits *l = i->limits;
  struct limits_local local;
  *f = (struct qmd_function){
      .limits = l,
      .registers = k->registers,
      .barriers = k->barriers > BARRIERS_LEAST ? k->barriers : BARRIERS_LEAST,
      .code = i->base + k->code.offset,
      .code_bytes = k->code.bytes};
  *need = (uint64_t)k->stack_bytes + LIMITS_LOCAL_RESERVED;
  int e = check_params(l, k, bank, &f->bank0_bytes);
  if (e == 0)
    e = limits_shared_own(l, declared(i, k->shared_bytes), &f->shared);
  if (e == 0)
    e = limits_local(&i->device->rings.gpu, *need, &local);
  for (unsigned n = 1; n < LIMITS_BANKS && e == 0; n++) {
    e = check_bank(n, k->banks[n].bytes);
    f->bank[n] = (struct qmd_bank){i->base + k->banks[n].offset,
                                   (uint32_t)k->banks[n].bytes};
  }
  if (e != 0)
    return e;
  f->local =
      local.per_thread < UINT32_MAX ? (uint32_t)local.per_thread : UINT32_MAX;
  return qmd_check_function(i->version, f);
}

/* Local memory last: it does not shrink again. */
int function_make(struct function *f, uint64_t *bytes) {
  const struct rig_nv_image *i = f->image;
  const struct cubin_kernel *k = &f->kernel;
  struct qmd_function fn;
  struct bank bank;
  uint64_t need;
  int e = plan(i, k, &fn, &bank, &need);
  if (e != 0)
    return why((enum rig_nv_error) - e, "entry: " FUNCTION_NAME ": %s", k->name,
               rig_nv_why());
  e = local_grow(i->device, need, bytes);
  if (e != 0)
    return e;
  f->launch =
      (struct launch){.limits = i->limits,
                      .threads = limits_threads(k->registers),
                      .dynamic_most = limits_shared_most(i->limits) - fn.shared,
                      .params_offset = bank.params_offset,
                      .params_bytes = bank.params_bytes,
                      .bank_bytes = bank.bytes};
  qmd_template(i->version, &fn, &f->launch.descriptor);
  return 0;
}
