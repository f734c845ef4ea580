/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_MMU_H
#define PATHS_PCI_MMU_H
/*
 * mmu: a GPU's MMU in software, for tests. It walks the tables in memory as
 * the published tables have them: levels and fields come from the rows of
 * testdata/mmu.tsv, and it includes no header of the formats. A malformed
 * entry is a result of its own: bits where no field is, a table outside the
 * memory, an aperture that no table is in, a page at a level that holds none,
 * a sparse page, access that is not a user's with atomics.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MMU_LEVELS = 6 };

/* Values as entries have them: PTE_APERTURE. */
enum mmu_aperture { MMU_VIDEO, MMU_PEER, MMU_COHERENT, MMU_NON_COHERENT };

enum mmu_result { MMU_NOTHING, MMU_MAPPED, MMU_MALFORMED };

struct mmu_page {
  enum mmu_aperture aperture;
  unsigned peer, kind;
  unsigned log2; /* of the page's bytes; of what the entry of NOTHING covers */
  uint64_t pa;   /* of the address walked, not of the page */
  bool uncached, read_only;
  const char *wrong; /* of MALFORMED */
};

struct mmu_field {
  unsigned lsb, msb;
};

struct mmu_level {
  unsigned lsb, msb; /* of the address */
  bool dual, holds_pages;
};

/* Bits of a page's entry, in place. */
struct mmu_access {
  uint64_t bits;
  bool uncached, read_only;
};

struct mmu {
  int version;
  const unsigned char *memory;
  uint64_t bytes;
  int nlevels;
  struct mmu_level level[MMU_LEVELS]; /* the root first */
  struct mmu_field pde_aperture, pde_address, pde_flags;
  struct mmu_field big_aperture, big_flags, small_aperture, small_address,
      small_flags;
  struct mmu_field pte_valid, pte_aperture, pte_kind, pte_vid, pte_sys,
      pte_peer;
  struct mmu_access access[4];
  uint64_t access_bits; /* which bits these are about */
  uint64_t sparse;      /* the entry of a sparse page, whole */
  uint64_t pde_video;
  unsigned shift;
};

/* The rows of version 2 or 3. huge: pages at 512 MiB of version 2, at 256 GiB
 * of version 3. Aborts where a row is missing. */
void mmu_init(struct mmu *, int version, bool huge, const void *memory,
              uint64_t bytes);

enum mmu_result mmu_walk(const struct mmu *, uint64_t root, uint64_t va,
                         struct mmu_page *);

/* Calls each(arg, pa, depth, first va) for every table that the root leads to,
 * the root included. Returns how many, or -1 for a malformed entry. */
int64_t mmu_tables(const struct mmu *, uint64_t root,
                   void (*each)(void *arg, uint64_t pa, int depth, uint64_t va),
                   void *arg);
#endif
