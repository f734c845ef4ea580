/* SPDX-License-Identifier: ISC */
#ifndef CORE_ABI_GPFIFO_H
#define CORE_ABI_GPFIFO_H
/*
 * A ring entry (GP entry): what a channel fetches to find a segment.
 *
 *   63    62..42  41     40..32    31..2    1  0
 *   SYNC  LENGTH  LEVEL  GET_HI    GET      0  FETCH
 *
 * LENGTH counts words. LEVEL is SUBROUTINE. SYNC clear: the host goes on
 * without waiting for the entry's methods. FETCH clear: unconditional.
 * Entries have no valid bit; GP_PUT alone says how far they may be fetched.
 * GET_HI has 8 bits (39:32); bit 40 was PRIV and stays clear.
 *
 * Source: open-gpu-doc, classes/host/clc56f.h, GP_ENTRY0 and GP_ENTRY1; the
 * same in every class to clca6f.h.
 */
#include <stdint.h>

enum {
  NVC56F_GP_ENTRY_SIZE = 8,
  NVC56F_GP_ENTRY_LEVEL_SHIFT = 41,
  NVC56F_GP_ENTRY_LEVEL_SUBROUTINE = 1,
  NVC56F_GP_ENTRY_LENGTH_SHIFT = 42
};

/* Unchecked: addr 4-byte aligned, the segment's end at most 2^40, words from 1
 * to RIG_NV_MAX_SEGMENT. Any thread. */
static inline uint64_t abi_gpfifo_entry(uint64_t addr, uint64_t words) {
  return addr |
         (uint64_t)NVC56F_GP_ENTRY_LEVEL_SUBROUTINE
             << NVC56F_GP_ENTRY_LEVEL_SHIFT |
         words << NVC56F_GP_ENTRY_LENGTH_SHIFT;
}
#endif
