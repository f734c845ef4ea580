/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_GMMU_H
#define PATHS_PCI_GMMU_H
/*
 * gmmu: the page-table formats of NVIDIA's MMUs.
 *
 *   GMMU_V2   Pascal to Ada            49-bit addresses   root 47 38 29 21 12
 *   GMMU_V3   Hopper and Blackwell     57-bit addresses   root 56 47 38 29 21
 * 12
 *
 *   bit    entry, bytes                      a page there
 *   12     8                                 4 KiB
 *   21     16: low half, a page or nothing   2 MiB
 *              high half, the leaf table
 *   29     8                                 512 MiB, of V2 with GMMU_PAGE_512M
 *   38     8                                 256 GiB, with GMMU_PAGE_256G
 *   47 up  8
 *
 * The low half of a 16-byte entry could point to a table of 64 KiB pages, a
 * second kind of leaf beside the one of bit 12, which maps 4 KiB pages; these
 * formats never write it. Tables lie in the GPU's memory. V2 has 25 bits for
 * the number of a 4 KiB page in a GPU's memory (NV_MMU_VER2_PTE_ADDRESS_VID),
 * a peer's number above them, so its tables and such pages end at 2^37.
 *
 * Pages are of the generic kind, writable, with atomics. A page that is
 * uncached is volatile; a page of the host's memory that is snooped is
 * coherent. Fragments are not recorded.
 *
 * Stores go to a window of the GPU's memory from its byte 0, 8 bytes at a
 * time and never read. The window holds every table, so where it is shorter
 * than the memory the tables have a pool of their own; a store past its end
 * stops the process. Little-endian hosts.
 *
 * Source: dev_mmu.h of tu102 and gh100, kern_gmmu_fmt_*.c
 * (open-gpu-kernel-modules); tests compare with testdata/mmu.tsv.
 */
#include "paths/pci/format.h"

enum gmmu_version { GMMU_V2 = 2, GMMU_V3 = 3 };

enum {
  GMMU_PAGE_512M = 1, /* V2 of GA10x and later: pages at bit 29 */
  GMMU_PAGE_256G = 2  /* V3 of GB10x and later: pages at bit 38 */
};

/* Lives as long as the tables. */
struct gmmu {
  enum gmmu_version version;
  unsigned flags;
  volatile void *window; /* 8-byte aligned */
  uint64_t window_bytes;
  void *ctx;
  void (*zero)(void *ctx, uint64_t pa, uint64_t n); /* struct page_format's */
  bool (*flush)(void *ctx);
};

/* 0, or INVALID for a version or a flag that there is not. */
int gmmu_format(struct gmmu *, struct page_format *);
#endif
