/* SPDX-License-Identifier: ISC */
/* strdup under -std=c17. */
#define _DEFAULT_SOURCE
#include "paths/pci/mmu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/abi/tsv.h"

enum { VERSION, KIND, NAME, BITS, VALUE };

static const char *const *row(const struct tsv *t, int version,
                              const char *kind, const char *name) {
  const char *const key[] = {version == 2 ? "2" : "3", kind, name};
  const char *const *r = tsv_find(t, key, 3);
  if (r == NULL)
    tsv_die("no such row", name);
  return r;
}

static struct mmu_field bits(const char *text) {
  struct mmu_field f;
  if (sscanf(text, "%u:%u", &f.msb, &f.lsb) != 2 || f.msb < f.lsb)
    tsv_die("are not bits", text);
  return f;
}

/* NV_MMU_VER<version>_<name> */
static struct mmu_field field(const struct tsv *t, int version,
                              const char *name) {
  char whole[96];
  snprintf(whole, sizeof whole, "NV_MMU_VER%d_%s", version, name);
  return bits(row(t, version, "field", whole)[BITS]);
}

static uint64_t value(const struct tsv *t, int version, const char *name) {
  char whole[96];
  snprintf(whole, sizeof whole, "NV_MMU_VER%d_%s", version, name);
  return tsv_number(row(t, version, "value", whole)[VALUE]);
}

static uint64_t get(uint64_t x, struct mmu_field f) {
  const unsigned width = f.msb - f.lsb + 1;
  return x >> f.lsb & (width == 64 ? ~UINT64_C(0) : (UINT64_C(1) << width) - 1);
}

static uint64_t mask(struct mmu_field f) {
  return get(~UINT64_C(0), (struct mmu_field){0, f.msb - f.lsb}) << f.lsb;
}

/* A field of the high half of a dual entry, within that half. */
static struct mmu_field high(struct mmu_field f) {
  return (struct mmu_field){f.lsb - 64, f.msb - 64};
}

/* As tsv_read, of this package's testdata, which programs carry along. */
static void read_rows(struct tsv *t) {
  static const char *const rows[] = {
#include "paths/pci/mmu_rows.inc"
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char *kept = strdup(rows[i]);
    if (kept == NULL)
      tsv_die("no memory", rows[i]);
    tsv_split(t, kept);
  }
}

static void read_levels(struct mmu *m, const struct tsv *t, bool huge) {
  static const char *const v2[] = {"PD3", "PD2", "PD1", "PD0", "PT_SMALL"};
  static const char *const v3[] = {"PD4", "PD3", "PD2",
                                   "PD1", "PD0", "PT_SMALL"};
  m->nlevels = m->version == 2 ? 5 : 6;
  for (int d = 0; d < m->nlevels; d++) {
    const char *name = m->version == 2 ? v2[d] : v3[d];
    const char *const *r = row(t, m->version, "level", name);
    const struct mmu_field f = bits(r[BITS]);
    m->level[d].lsb = f.lsb;
    m->level[d].msb = f.msb;
    m->level[d].dual = strstr(r[VALUE], "entry_size=16") != NULL;
    m->level[d].holds_pages =
        strstr(r[VALUE], "can_be_pte=1") != NULL ||
        (huge && strcmp(name, m->version == 2 ? "PD1" : "PD2") == 0);
  }
}

static void read_fields(struct mmu *m, const struct tsv *t) {
  const int v = m->version;
  const bool v2 = v == 2;
  m->pde_aperture = field(t, v, "PDE_APERTURE");
  m->pde_address = field(t, v, v2 ? "PDE_ADDRESS_VID" : "PDE_ADDRESS");
  m->pde_flags = field(t, v, v2 ? "PDE_NO_ATS" : "PDE_PCF");
  m->big_aperture = field(t, v, "DUAL_PDE_APERTURE_BIG");
  m->big_flags = field(t, v, v2 ? "DUAL_PDE_NO_ATS" : "DUAL_PDE_PCF_BIG");
  m->small_aperture = high(field(t, v, "DUAL_PDE_APERTURE_SMALL"));
  m->small_address = high(field(
      t, v, v2 ? "DUAL_PDE_ADDRESS_SMALL_VID" : "DUAL_PDE_ADDRESS_SMALL"));
  m->small_flags =
      high(field(t, v, v2 ? "DUAL_PDE_VOL_SMALL" : "DUAL_PDE_PCF_SMALL"));
  m->pte_valid = field(t, v, "PTE_VALID");
  m->pte_aperture = field(t, v, "PTE_APERTURE");
  m->pte_kind = field(t, v, "PTE_KIND");
  m->pte_vid = field(t, v, v2 ? "PTE_ADDRESS_VID" : "PTE_ADDRESS");
  m->pte_sys = field(t, v, v2 ? "PTE_ADDRESS_SYS" : "PTE_ADDRESS");
  m->pte_peer = field(t, v, v2 ? "PTE_ADDRESS_VID_PEER" : "PTE_PEER_ID");
  m->pde_video = value(t, v, "PDE_APERTURE_VIDEO_MEMORY");
  m->shift = (unsigned)value(t, v, "PTE_ADDRESS_SHIFT");
}

static void read_access_v2(struct mmu *m, const struct tsv *t) {
  const struct mmu_field vol = field(t, 2, "PTE_VOL");
  const struct mmu_field ro = field(t, 2, "PTE_READ_ONLY");
  for (unsigned i = 0; i < 4; i++) {
    const char *v = i & 1 ? "PTE_VOL_TRUE" : "PTE_VOL_FALSE";
    const char *r = i & 2 ? "PTE_READ_ONLY_TRUE" : "PTE_READ_ONLY_FALSE";
    m->access[i].bits = value(t, 2, v) << vol.lsb | value(t, 2, r) << ro.lsb;
  }
  m->access_bits = mask(vol) | mask(ro);
  m->sparse = value(t, 2, "PTE_VOL_TRUE") << vol.lsb;
}

static void read_access_v3(struct mmu *m, const struct tsv *t) {
  static const char *const names[] = {"PTE_PCF_REGULAR_RW_ATOMIC_CACHED_ACE",
                                      "PTE_PCF_REGULAR_RW_ATOMIC_UNCACHED_ACE",
                                      "PTE_PCF_REGULAR_RO_ATOMIC_CACHED_ACE",
                                      "PTE_PCF_REGULAR_RO_ATOMIC_UNCACHED_ACE"};
  const struct mmu_field pcf = field(t, 3, "PTE_PCF");
  for (unsigned i = 0; i < 4; i++)
    m->access[i].bits = value(t, 3, names[i]) << pcf.lsb;
  m->access_bits = mask(pcf);
  m->sparse = value(t, 3, "PTE_PCF_SPARSE") << pcf.lsb;
}

/* What pages grant: cached or not, to be written or not. */
static void read_access(struct mmu *m, const struct tsv *t) {
  if (m->version == 2)
    read_access_v2(m, t);
  else
    read_access_v3(m, t);
  for (unsigned i = 0; i < 4; i++) {
    m->access[i].uncached = (i & 1) != 0;
    m->access[i].read_only = (i & 2) != 0;
  }
}

void mmu_init(struct mmu *m, int version, bool huge, const void *memory,
              uint64_t bytes) {
  static struct tsv rows;
  if (rows.n == 0)
    read_rows(&rows);
  *m = (struct mmu){.version = version, .memory = memory, .bytes = bytes};
  read_levels(m, &rows, huge);
  read_fields(m, &rows);
  read_access(m, &rows);
}

static uint64_t load(const struct mmu *m, uint64_t at) {
  uint64_t x;
  memcpy(&x, m->memory + at, sizeof x);
  return x;
}

static enum mmu_result malformed(struct mmu_page *page, const char *wrong) {
  page->wrong = wrong;
  return MMU_MALFORMED;
}

static enum mmu_result page_at(const struct mmu *m, int d, uint64_t x,
                               uint64_t va, struct mmu_page *page) {
  const unsigned log2 = m->level[d].lsb;
  const uint64_t inside = va & ((UINT64_C(1) << log2) - 1);
  page->aperture = (enum mmu_aperture)get(x, m->pte_aperture);
  const bool video = page->aperture == MMU_VIDEO || page->aperture == MMU_PEER;
  const struct mmu_field address = video ? m->pte_vid : m->pte_sys;
  const uint64_t pa = get(x, address) << m->shift;
  page->log2 = log2;
  page->pa = pa + inside;
  page->kind = (unsigned)get(x, m->pte_kind);
  page->peer = page->aperture == MMU_PEER ? (unsigned)get(x, m->pte_peer) : 0;
  uint64_t known = mask(m->pte_valid) | mask(m->pte_aperture) | mask(address) |
                   mask(m->pte_kind) | m->access_bits;
  unsigned a = 0;
  while (a < 4 && (x & m->access_bits) != m->access[a].bits)
    a++;
  if (a == 4)
    return malformed(page, "a page of another access");
  page->uncached = m->access[a].uncached;
  page->read_only = m->access[a].read_only;
  if (page->aperture == MMU_PEER)
    known |= mask(m->pte_peer);
  if ((x & ~known) != 0)
    return malformed(page, "bits of a page that no field has");
  if (!m->level[d].holds_pages)
    return malformed(page, "a page at a level that holds none");
  if ((pa & ((UINT64_C(1) << log2) - 1)) != 0)
    return malformed(page, "a page that is not aligned");
  return MMU_MAPPED;
}

/* The table that an entry points to. NOTHING, MAPPED (a table), MALFORMED. */
static enum mmu_result table_at(const struct mmu *m, uint64_t x,
                                struct mmu_field aperture,
                                struct mmu_field address,
                                struct mmu_field flags, uint64_t *table,
                                struct mmu_page *page) {
  if (get(x, aperture) == 0)
    return x == 0 ? MMU_NOTHING
                  : malformed(page, "bits of an entry of nothing");
  if (get(x, aperture) != m->pde_video)
    return malformed(page, "a table outside the GPU's memory");
  if ((x & ~(mask(aperture) | mask(address) | mask(flags))) != 0)
    return malformed(page, "bits of a table that no field has");
  *table = get(x, address) << m->shift;
  if (*table > m->bytes || m->bytes - *table < 4096)
    return malformed(page, "a table past the end of memory");
  return MMU_MAPPED;
}

#define PAGE_HERE UINT64_MAX /* in a child's place */

/* Entry i of a table: NOTHING, MAPPED with a *child, MALFORMED. */
static enum mmu_result entry(const struct mmu *m, int d, uint64_t table,
                             unsigned i, uint64_t va, uint64_t *child,
                             struct mmu_page *page) {
  const struct mmu_level *l = &m->level[d];
  const uint64_t at = table + (l->dual ? 16ull : 8ull) * i;
  const uint64_t low = load(m, at);
  const bool leaf = d == m->nlevels - 1;
  *child = PAGE_HERE;
  if (get(low, m->pte_valid) != 0) {
    if (l->dual && load(m, at + 8) != 0)
      return malformed(page, "a page whose entry has a second half");
    return page_at(m, d, low, va, page);
  }
  if (low == m->sparse && l->holds_pages)
    return malformed(page, "a sparse page");
  if (leaf)
    return low == 0 ? MMU_NOTHING : malformed(page, "bits of no page");
  if (!l->dual)
    return table_at(m, low, m->pde_aperture, m->pde_address, m->pde_flags,
                    child, page);
  const uint64_t up = load(m, at + 8);
  if (get(low, m->big_aperture) != 0 || (low & ~mask(m->big_flags)) != 0 ||
      (up == 0 && low != 0))
    return malformed(page, "bits of a table of big pages");
  return table_at(m, up, m->small_aperture, m->small_address, m->small_flags,
                  child, page);
}

enum mmu_result mmu_walk(const struct mmu *m, uint64_t root, uint64_t va,
                         struct mmu_page *page) {
  uint64_t table = root;
  *page = (struct mmu_page){0};
  if (va >> (m->level[0].msb + 1) != 0)
    return malformed(page, "an address that no root translates");
  for (int d = 0;; d++) {
    uint64_t child;
    const unsigned i =
        (unsigned)get(va, (struct mmu_field){m->level[d].lsb, m->level[d].msb});
    page->log2 = m->level[d].lsb;
    const enum mmu_result r = entry(m, d, table, i, va, &child, page);
    if (r != MMU_MAPPED || child == PAGE_HERE)
      return r;
    table = child;
  }
}

struct visit {
  const struct mmu *m;
  void (*each)(void *arg, uint64_t pa, int depth, uint64_t va);
  void *arg;
};

static int64_t tables_in(const struct visit *v, uint64_t table, int d,
                         uint64_t va) {
  const struct mmu_level *l = &v->m->level[d];
  int64_t n = 1;
  v->each(v->arg, table, d, va);
  if (d == v->m->nlevels - 1)
    return n;
  for (unsigned i = 0; i >> (l->msb - l->lsb + 1) == 0; i++) {
    const uint64_t at = va + ((uint64_t)i << l->lsb);
    struct mmu_page page;
    uint64_t child;
    const enum mmu_result r = entry(v->m, d, table, i, at, &child, &page);
    if (r == MMU_MALFORMED)
      return -1;
    if (r == MMU_NOTHING || child == PAGE_HERE)
      continue;
    const int64_t below = tables_in(v, child, d + 1, at);
    if (below < 0)
      return -1;
    n += below;
  }
  return n;
}

int64_t mmu_tables(const struct mmu *m, uint64_t root,
                   void (*each)(void *arg, uint64_t pa, int depth, uint64_t va),
                   void *arg) {
  const struct visit v = {m, each, arg};
  return tables_in(&v, root, 0, 0);
}
