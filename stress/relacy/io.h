/* SPDX-License-Identifier: ISC */
#ifndef RINGS_IO_H
#define RINGS_IO_H
/*
 * rings/io.h of the model: what the core stores for the GPU reaches the
 * harness. It is included before rings/io.h, whose guard it takes.
 *
 * GP_PUT is a release store here. On the machine it is a plain one, and what
 * orders it is each writer's io_write_fence before "encoded" and the holder's
 * acquire load of that; relacy has no fence that speaks for another thread.
 * Among threads io_write_fence is nothing here, so that the core is seen to
 * need none of it: a fence before a mark's first store would stand in for that
 * store's release order.
 */
#include <cstdint>

void model_store(volatile uint32_t *to, uint32_t x);

static inline void io_write_fence(void) {}

static inline void io_flush(volatile uint32_t *) {}

static inline void io_store_32(volatile uint32_t *to, uint32_t x) {
  model_store(to, x);
}
#endif
