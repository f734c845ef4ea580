/* SPDX-License-Identifier: ISC */
#ifndef PATHS_PCI_MODEL_PATH_H
#define PATHS_PCI_MODEL_PATH_H
/*
 * model_path: a path to a model whose memory lies behind page tables, for the
 * tests of a device.
 *
 *   alloc, map_host, map_peer    addresses of a space, physical memory of the
 *                                page tables' pools or the host's, entries of
 *                                version 2 or 3, a flush
 *   each access of the engine    a walk of these tables (paths/pci/board.h)
 *   free                         unmap, a flush, then memory and addresses
 *
 * All else is the PCI-like model's. Device memory lies apart where the seed
 * has it so. Memory is given with a page at least of no memory behind it. Such
 * paths view each other's video memory through the aperture of peers, and the
 * rest as the machine's; they and plain models view nothing of each other.
 */
#include "paths/model/model.h"
#include "paths/pci/board.h"

/* What a test runs on: the model's personalities, and those with tables. */
enum model_path {
  MODEL_PATH_KERNEL = RIG_NV_LIKE_KERNEL,
  MODEL_PATH_PCI = RIG_NV_LIKE_PCI,
  MODEL_PATH_V2,
  MODEL_PATH_V3,
  MODEL_PATHS
};

/* "kernel", "pci", "v2", "v3", and the path of a name; MODEL_PATHS: none. */
const char *model_path_name(enum model_path);
enum model_path model_path_of(const char *name);

/* Whether stop ends the work, and nothing of the RM is freed before it. */
static inline bool model_path_is_pci(enum model_path is) {
  return is != MODEL_PATH_KERNEL;
}

/* Whether tables are walked. */
static inline bool model_path_walks(enum model_path is) {
  return is == MODEL_PATH_V2 || is == MODEL_PATH_V3;
}

/* As rig_nv_path_model. options NULL is the defaults; the personality is what
 * `is` says. */
int model_path_open(enum model_path is, const struct rig_nv_model_options *,
                    const struct rig_nv_path **);

/* Puts a bug into the board of a path that walks tables (board_plant). */
void model_path_plant(const struct rig_nv_path *, enum board_plant,
                      unsigned bit);
#endif
