/* SPDX-License-Identifier: ISC */
#ifndef STRESS_KERNELS_H
#define STRESS_KERNELS_H
/*
 * kernels: the functions of testdata/kernels.cu on a device. A GPU runs what
 * nvcc made of them; the model runs what stands here.
 *
 * Threads: one at a time.
 */
#include "core/api/rig_nv.h"

struct kernels {
  struct rig_nv *device;
  const struct rig_nv_path *model; /* or NULL */
  struct rig_nv_image *image;
  struct rig_nv_region *code;
  struct rig_nv_function mix, add;
};

/* The cubin of that name, of testdata, for the architecture; or NULL. */
struct kernels_cubin;
const struct kernels_cubin *kernels_cubin(const char *name, const char *arch);

/* Loads the cubin of the device's architecture. `model` is the device's path
 * if it is the model, else NULL. 0, or the negative of an enum rig_nv_error,
 * nothing left: ABSENT where there is no cubin for it. */
int kernels_make(struct rig_nv *, const struct rig_nv_path *model,
                 struct kernels *);
/* Another function of theirs, by its name; `deep` has a stack of 512 bytes. */
int kernels_find(struct kernels *, const char *name, struct rig_nv_function *);
/* Once no launch of them can run; also after stop. */
int kernels_end(struct kernels *);
#endif
