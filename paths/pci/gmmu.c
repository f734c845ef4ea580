/* SPDX-License-Identifier: ISC */
#include "paths/pci/gmmu.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/api/why.h"

/* The lowest bits of fields. A dual entry's high half counts from its own
 * bit 0: 64 less than the headers have it. */
enum {
  /* NV_MMU_VER2_PDE_*, NV_MMU_VER2_PTE_*, NV_MMU_VER2_DUAL_PDE_* */
  V2_APERTURE = 1,
  V2_VOL = 3,
  V2_PDE_NO_ATS = 5,
  V2_ADDRESS = 8, /* of each: _VID, _SYS, _SMALL_VID */
  V2_PTE_PEER = 33,
  V2_PTE_KIND = 56,
  V2_ADDRESS_BITS = 46, /* _SYS */
  V2_VID_BITS = 25,
  /* NV_MMU_VER3_PDE_*, NV_MMU_VER3_PTE_*, NV_MMU_VER3_DUAL_PDE_* */
  V3_APERTURE = 1,
  V3_PCF = 3,
  V3_PTE_KIND = 8,
  V3_ADDRESS = 12,
  V3_PTE_PEER = 61,
  V3_ADDRESS_BITS = 40,
  /* NV_MMU_VER*_PTE_VALID */
  VALID = 0,
  /* NV_MMU_VER*_ADDRESS_SHIFT */
  ADDRESS_SHIFT = 12,
  PEERS = 8
};

/* Values. */
enum {
  PDE_VIDEO_MEMORY = 1, /* NV_MMU_VER*_PDE_APERTURE_*, and of _DUAL_PDE_ */
  PTE_VIDEO_MEMORY = 0, /* NV_MMU_VER*_PTE_APERTURE_* */
  PTE_PEER_MEMORY = 1,
  PTE_SYSTEM_COHERENT = 2,
  PTE_SYSTEM_NON_COHERENT = 3,
  PTE_KIND_GENERIC = 6,         /* NV_MMU_PTE_KIND_GENERIC_MEMORY */
  V3_PDE_CACHED_NO_ATS = 2,     /* _PDE_PCF_VALID_CACHED_ATS_NOT_ALLOWED */
  V3_PDE_INVALID_NO_ATS = 2,    /* _DUAL_PDE_PCF_BIG_INVALID_ATS_NOT_ALLOWED */
  V3_PTE_RW_ATOMIC_CACHED = 0,  /* _PTE_PCF_REGULAR_RW_ATOMIC_CACHED_ACE */
  V3_PTE_RW_ATOMIC_UNCACHED = 1 /* _PTE_PCF_REGULAR_RW_ATOMIC_UNCACHED_ACE */
};

/* Levels as both versions number them. */
enum { DUAL = 4, LEAF = 5 };

/* The one place that stores what the GPU walks. Nothing is ordered before the
 * flush. */
static void put(const struct gmmu *g, uint64_t at, uint64_t x) {
  if (g->window_bytes < 8 || at > g->window_bytes - 8) {
    fprintf(stderr, "gmmu: a table at 0x%llx lies outside the window\n",
            (unsigned long long)at);
    abort();
  }
  *(volatile uint64_t *)((volatile char *)g->window + at) = x;
}

static void put_entry(const struct gmmu *g, int level, uint64_t table,
                      unsigned i, uint64_t low, uint64_t high) {
  if (level == DUAL) {
    put(g, table + 16ull * i + 8, high);
    put(g, table + 16ull * i, low);
  } else {
    put(g, table + 8ull * i, low);
  }
}

static uint64_t pde_v2(uint64_t child) {
  return (uint64_t)PDE_VIDEO_MEMORY << V2_APERTURE | child >> ADDRESS_SHIFT
                                                                  << V2_ADDRESS;
}

static uint64_t pde_v3(uint64_t child) {
  return (uint64_t)PDE_VIDEO_MEMORY << V3_APERTURE |
         (uint64_t)V3_PDE_CACHED_NO_ATS << V3_PCF |
         child >> ADDRESS_SHIFT << V3_ADDRESS;
}

static void set_table(void *ctx, int level, uint64_t table, unsigned i,
                      uint64_t child) {
  const struct gmmu *g = ctx;
  const bool v2 = g->version == GMMU_V2;
  const uint64_t pde = v2 ? pde_v2(child) : pde_v3(child);
  const uint64_t no_ats = UINT64_C(1) << V2_PDE_NO_ATS;
  if (level != DUAL)
    put_entry(g, level, table, i, v2 ? pde | no_ats : pde, 0);
  else if (v2)
    put_entry(g, level, table, i, no_ats, pde);
  else
    put_entry(g, level, table, i, (uint64_t)V3_PDE_INVALID_NO_ATS << V3_PCF,
              pde);
}

static uint64_t aperture(struct page_target to, unsigned flags) {
  switch (to.kind) {
  case PAGE_GPU:
    return PTE_VIDEO_MEMORY;
  case PAGE_PEER:
    return PTE_PEER_MEMORY;
  case PAGE_SYSTEM:
    break;
  }
  return flags & PAGE_SNOOPED ? PTE_SYSTEM_COHERENT : PTE_SYSTEM_NON_COHERENT;
}

static uint64_t pte_v2(uint64_t pa, struct page_target to, unsigned flags) {
  uint64_t x = UINT64_C(1) << VALID | aperture(to, flags) << V2_APERTURE |
               pa >> ADDRESS_SHIFT << V2_ADDRESS |
               (uint64_t)PTE_KIND_GENERIC << V2_PTE_KIND;
  if (flags & PAGE_UNCACHED)
    x |= UINT64_C(1) << V2_VOL;
  return to.kind == PAGE_PEER ? x | (uint64_t)to.peer << V2_PTE_PEER : x;
}

static uint64_t pte_v3(uint64_t pa, struct page_target to, unsigned flags) {
  const uint64_t pcf = flags & PAGE_UNCACHED ? V3_PTE_RW_ATOMIC_UNCACHED
                                             : V3_PTE_RW_ATOMIC_CACHED;
  uint64_t x = UINT64_C(1) << VALID | aperture(to, flags) << V3_APERTURE |
               pcf << V3_PCF | (uint64_t)PTE_KIND_GENERIC << V3_PTE_KIND |
               pa >> ADDRESS_SHIFT << V3_ADDRESS;
  return to.kind == PAGE_PEER ? x | (uint64_t)to.peer << V3_PTE_PEER : x;
}

static void set_page(void *ctx, int level, uint64_t table, unsigned i,
                     uint64_t pa, struct page_target to, unsigned flags,
                     unsigned fragment) {
  const struct gmmu *g = ctx;
  (void)fragment;
  put_entry(
      g, level, table, i,
      g->version == GMMU_V2 ? pte_v2(pa, to, flags) : pte_v3(pa, to, flags), 0);
}

static void clear(void *ctx, int level, uint64_t table, unsigned i) {
  put_entry(ctx, level, table, i, 0, 0);
}

static bool large(void *ctx, int level) {
  const struct gmmu *g = ctx;
  switch (LEAF - level) {
  case 1:
    return true;
  case 2:
    return g->version == GMMU_V3 || (g->flags & GMMU_PAGE_512M) != 0;
  case 3:
    return (g->flags & GMMU_PAGE_256G) != 0;
  default:
    return false;
  }
}

static void zero(void *ctx, uint64_t pa, uint64_t n) {
  const struct gmmu *g = ctx;
  g->zero(g->ctx, pa, n);
}

static bool flush(void *ctx) {
  const struct gmmu *g = ctx;
  return g->flush(g->ctx);
}

int gmmu_format(struct gmmu *g, struct page_format *f) {
  static const int levels[PAGE_LEVELS] = {12, 21, 29, 38, 47, 56};
  const bool v3 = g->version == GMMU_V3;
  const unsigned known = v3 ? GMMU_PAGE_256G : GMMU_PAGE_512M;
  if (g->version != GMMU_V2 && g->version != GMMU_V3)
    return why(RIG_NV_INVALID, "MMU version %d is neither 2 nor 3",
               (int)g->version);
  if ((g->flags & ~known) != 0)
    return why(RIG_NV_INVALID, "flags 0x%x are not MMU version %d's", g->flags,
               (int)g->version);
  *f = (struct page_format){.ctx = g,
                            .nlevels = v3 ? 6 : 5,
                            .bits = v3 ? 57 : 49,
                            .pa_bits = ADDRESS_SHIFT +
                                       (v3 ? V3_ADDRESS_BITS : V2_ADDRESS_BITS),
                            .gpu_bits = v3 ? 0 : ADDRESS_SHIFT + V2_VID_BITS,
                            .peers = PEERS,
                            .first = v3 ? 0 : 1,
                            .set_table = set_table,
                            .set_page = set_page,
                            .clear = clear,
                            .large = large,
                            .zero = zero,
                            .flush = flush};
  for (int i = 0; i < f->nlevels; i++)
    f->levels[i] = levels[i];
  return 0;
}
