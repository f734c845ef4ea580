/* SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/abi/errors.h"
#include "core/api/why.h"
#include "core/device.h"

/* A report of lines, as long as rig_nv_why keeps. */
struct report {
  char text[1024];
  size_t n;
};

static void line(struct report *r, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void line(struct report *r, const char *fmt, ...) {
  va_list args;
  size_t left = sizeof r->text - r->n;
  if (r->n != 0 && left > 1) {
    r->text[r->n++] = '\n';
    left--;
  }
  va_start(args, fmt);
  int n = vsnprintf(r->text + r->n, left, fmt, args);
  va_end(args);
  if (n > 0)
    r->n += (size_t)n < left ? (size_t)n : left - 1;
}

static uint64_t get(const void *params, size_t bytes, struct abi_rm_field f,
                    size_t offset) {
  uint64_t x;
  RING_ASSERT(rig_nv_params_get(params, bytes, f.at + offset, f.n, &x) == 0);
  return x;
}

static void set(void *params, size_t bytes, struct abi_rm_field f, uint64_t x) {
  RING_ASSERT(rig_nv_params_set(params, bytes, f.at, f.n, x) == 0);
}

/* NV_PFAULT_FAULT_TYPE and NV_PFAULT_ACCESS_TYPE of dev_fault.h. */
static const char *const fault_types[] = {"PDE",
                                          "PDE_SIZE",
                                          "PTE",
                                          "VA_LIMIT_VIOLATION",
                                          "UNBOUND_INST_BLOCK",
                                          "PRIV_VIOLATION",
                                          "RO_VIOLATION",
                                          "WO_VIOLATION",
                                          "PITCH_MASK_VIOLATION",
                                          "WORK_CREATION",
                                          "UNSUPPORTED_APERTURE",
                                          "COMPRESSION_FAILURE",
                                          "UNSUPPORTED_KIND",
                                          "REGION_VIOLATION",
                                          "POISONED",
                                          "ATOMIC_VIOLATION"};
static const char *const access_types[] = {
    "VIRT_READ",        "VIRT_WRITE", "VIRT_ATOMIC", "VIRT_PREFETCH",
    "VIRT_ATOMIC_WEAK", NULL,         NULL,          NULL,
    "PHYS_READ",        "PHYS_WRITE", "PHYS_ATOMIC", "PHYS_PREFETCH"};

static const char *name(const char *const *names, size_t n, uint64_t i) {
  return i < n && names[i] ? names[i] : "unknown";
}
#define NAME(names, i) name(names, sizeof names / sizeof names[0], i)

/* A line for each MMU fault that the debugger object recorded. */
static void mmu_lines(const struct rig_nv *d, struct report *r,
                      uint32_t debugger) {
  const struct abi_rm_layout *l = d->layout;
  unsigned char params[256] = {0};
  struct rig_nv_reply reply = {0};
  size_t bytes = l->mmu_faults.bytes;
  RING_ASSERT(bytes <= sizeof params);
  if (!d->path->rm.mmu_faults(d->path->ctx, debugger, params, bytes, &reply)) {
    line(r, "MMU faults: %s", reply.text);
    return;
  }
  uint64_t n = get(params, bytes, l->mmu_faults.count, 0);
  for (uint64_t i = 0; i < n && i < l->mmu_faults.most; i++) {
    size_t at = i * l->mmu_faults.stride;
    line(r, "MMU fault: 0x%" PRIx64 " | %s | %s",
         get(params, bytes, l->mmu_faults.address, at),
         NAME(fault_types, get(params, bytes, l->mmu_faults.type, at)),
         NAME(access_types, get(params, bytes, l->mmu_faults.access, at)));
  }
}

/* Reads the errors of multiprocessors from `first` on: how many, 0 for none or
 * a refusal, which is a line. A GPU has fewer of them than `sms`, which counts
 * those that its production left out, and the RM refuses a range that ends
 * past the last: after the first range, halves of it until one is taken. */
static uint64_t read_sms(const struct rig_nv *d, struct report *r,
                         const struct growth_error *of, unsigned char *params,
                         uint64_t first, uint64_t sms) {
  const struct abi_rm_layout *l = d->layout;
  struct rig_nv_reply reply = {0};
  size_t bytes = l->sm_errors.bytes;
  uint64_t n = sms - first;
  if (n > l->sm_errors.most)
    n = l->sm_errors.most;
  for (; n > 0; n /= 2) {
    memset(params, 0, bytes);
    set(params, bytes, l->sm_errors.target_channel, of->channel);
    set(params, bytes, l->sm_errors.sms_to_read, n);
    set(params, bytes, l->sm_errors.starting_sm, first);
    if (d->path->rm.sm_errors(d->path->ctx, of->debugger, params, bytes,
                              &reply))
      return n;
    if (first == 0 || reply.is != RIG_NV_DENIED)
      break;
  }
  if (n > 0)
    line(r, "multiprocessor errors: %s", reply.text);
  return 0;
}

/* A line for each multiprocessor with an error, or the MMU's, by the debugger
 * of the channels that an error is of. */
static void sm_lines(const struct rig_nv *d, struct report *r,
                     const struct growth_error *of) {
  const struct abi_rm_layout *l = d->layout;
  unsigned char params[8192];
  size_t bytes = l->sm_errors.bytes;
  RING_ASSERT(bytes <= sizeof params);
  const struct rig_nv_gpu *g = &d->rings.gpu;
  uint64_t sms = (uint64_t)g->gpcs * g->tpcs_per_gpc * g->sms_per_tpc;
  for (uint64_t first = 0, n; first < sms; first += n) {
    n = read_sms(d, r, of, params, first, sms);
    if (n == 0)
      return;
    if (get(params, bytes, l->sm_errors.mmu_fault_valid, 0) != 0) {
      mmu_lines(d, r, of->debugger);
      return;
    }
    for (uint64_t i = 0; i < n; i++) {
      size_t at = i * l->sm_errors.stride;
      uint64_t esr = get(params, bytes, l->sm_errors.global_esr, at);
      uint64_t warp = get(params, bytes, l->sm_errors.warp_esr, at);
      if (esr != 0 || warp != 0)
        line(r,
             "SM %" PRIu64 " fault: esr=0x%" PRIx64 " warp_esr=0x%" PRIx64
             " warp_pc=0x%" PRIx64,
             first + i, esr, warp,
             get(params, bytes, l->sm_errors.warp_pc_64, at));
    }
  }
}

/* The channels that live: those in use, ones made for the next values, and ones
 * that were replaced and are not given back. */
enum { MOST_ERRORS = 16 };

/* A line for each distinct notifier error: the RM writes one of the group to
 * both channels' notifiers. */
static void notifier_lines(struct report *r, const struct growth_error *errors,
                           unsigned n) {
  for (unsigned i = 0; i < n; i++) {
    bool said = false;
    for (unsigned k = 0; k < i && !said; k++)
      said = errors[k].error == errors[i].error;
    if (said)
      continue;
    uint32_t code = (uint32_t)(errors[i].error >> 16);
    const char *text = abi_channel_error(code);
    line(r, "channel error %" PRIu32 " (%s), status 0x%" PRIx64, code,
         text ? text : "unknown", errors[i].error & 0xffff);
  }
}

int device_fault(const struct rig_nv *d, bool ask) {
  struct report r = {.n = 0};
  struct rig_nv_reply reply = {0};
  struct growth_error errors[MOST_ERRORS];
  unsigned n = growth_errors(&d->growth, errors, MOST_ERRORS);
  if ((ask || n != 0) && !d->path->check(d->path->ctx, &reply))
    return why(RIG_NV_FAULT, "%s", reply.text);
  if (n == 0)
    return 0;
  notifier_lines(&r, errors, n);
  sm_lines(d, &r, &errors[0]);
  return why(RIG_NV_FAULT, "%s", r.text);
}
