/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_BACKING_H
#define PATHS_MODEL_BACKING_H
/*
 * backing: where the memory of a model lies whose GPU has an MMU, and how GPU
 * addresses lead to it. A model without one places memory itself, and each of
 * its addresses is some memory's own.
 *
 *   alloc, map_host, map_peer --- place --> a block: addresses, bytes, entries
 *   an access of the engine ----- reach --> the bytes behind an address
 *   free --- hide --> no address leads there --- drop --> the bytes are others'
 *
 * Between hide and drop the turns of the other models pass, so that no view
 * of the block is in use any more.
 *
 * The model keeps the budgets, the handles, the views' ends and each memory's
 * last byte; an access that reach refuses faults, whatever the model knows of
 * its address, and one that reach grants is made, also where the model knows
 * of no memory there.
 *
 * Threads: the model's lock is held in all of them; not in close, and unrefer
 * is any thread's, also once the backing is closed. The engine calls reach,
 * and nothing else but fault.
 */
#include "paths/model/model.h"

/* NV_PFAULT_FAULT_TYPE of dev_fault.h. */
enum model_fault_type {
  FAULT_PDE = 0,
  FAULT_PTE = 2,
  FAULT_VA_LIMIT = 3,
  FAULT_READ_ONLY = 6,
  FAULT_APERTURE = 10,
  FAULT_KIND = 12
};

/* What is to be placed. */
struct model_wish {
  enum rig_memory kind;
  uint64_t bytes;
  char *host;    /* whole pages of the caller's, mapped in place; NULL: new */
  void *view;    /* another model's block, of which bytes are viewed, or NULL */
  uint64_t from; /* the first of these */
};

struct model_block {
  uint64_t at; /* GPU address, in pages of its own, nothing at its end */
  char *bytes; /* as the GPU reaches them; NULL where they lie apart */
  void *own;   /* the backing's */
};

struct model_backing {
  void *ctx;
  const void *key; /* the path's: paths of one key view each other's memory */
  /* false: it has no room. New memory is poisoned (model_poison). */
  bool (*place)(void *ctx, const struct model_wish *, struct model_block *);
  void (*hide)(void *ctx, void *own);
  void (*drop)(void *ctx, void *own);
  /* The bytes behind GPU address `at`, and in *n how many from it on, at most
   * *n, lie together; NULL where there are none, or none to be written. */
  char *(*reach)(void *ctx, uint64_t at, bool write, uint64_t *n);
  /* Why such an access is refused, with *why the words, or NULL. */
  enum model_fault_type (*fault)(void *ctx, uint64_t at, bool write,
                                 const char **why);
  /* A block's description for another model's views, until unrefer. */
  void *(*refer)(void *own);
  void (*unrefer)(void *block);
  void (*close)(void *ctx);
};

/* As rig_nv_path_model, of a model with that backing, which it closes as it
 * closes itself; where this fails it does not. */
int model_open(const struct rig_nv_model_options *,
               const struct model_backing *, const struct rig_nv_path **);

/* A model's, or NULL. */
const struct model_backing *model_backing_of(const struct rig_nv_path *);

/* Fills n bytes, of many their ends alone, with what fresh memory holds. */
void model_poison(char *p, uint64_t n);

#endif
