/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_MODEL_H
#define PATHS_MODEL_MODEL_H
/*
 * What tests see of the model beside its path: what lives in it, and a hold on
 * its engine. `path` is one that rig_nv_path_model opened and that is not
 * closed. Threads: any.
 */
#include "paths/path.h"

struct model_counts {
  size_t objects;       /* of the RM, the opener's three excepted */
  size_t channels;      /* of these */
  size_t memories;      /* given and not given back */
  size_t registrations; /* of channels */
  uint64_t used[3];     /* bytes, by enum rig_memory; map_host's in PINNED */
  uint64_t copies;      /* LAUNCH_DMAs that transfer, decoded since open */
  uint64_t interrupts;  /* NON_STALL_INTERRUPTs since open */
  uint64_t words;       /* pushbuffer words run since open */
};

void model_counts(const struct rig_nv_path *path, struct model_counts *);

/* Holds the engine, or lets it go on. Once the call that holds it returns, the
 * engine reads and writes nothing. */
void model_stall(const struct rig_nv_path *path, bool hold);

#endif
