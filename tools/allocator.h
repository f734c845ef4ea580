/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_ALLOCATOR_H
#define TOOLS_ALLOCATOR_H
/*
 * The allocator of this repository's programs and tests: jemalloc, or in a
 * sanitizer's build the library's default, which the sanitizer sees.
 *
 * Threads: any.
 */
#include <stdbool.h>
#include <stdint.h>

#include "core/api/rig_nv.h"

/* For rig_nv_options.allocator. NULL in a sanitizer's build. */
const struct rig_nv_allocator *tool_allocator(void);

/* The bytes that the calling thread has allocated since it began, freed ones
 * included, by tool_allocator or by malloc; it never decreases. 0 where
 * nothing counts. */
uint64_t tool_allocated(void);

/* Whether tool_allocated counts. */
bool tool_counts_allocations(void);
#endif
