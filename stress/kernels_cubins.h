/* SPDX-License-Identifier: ISC */
#ifndef STRESS_KERNELS_CUBINS_H
#define STRESS_KERNELS_CUBINS_H
/*
 * What nvcc made of testdata's .cu files, written by testdata/embed.sh.
 */
#include <stddef.h>

struct kernels_cubin {
  const char *name, *arch; /* NULL ends the table */
  const unsigned char *bytes;
  size_t n;
};

extern const struct kernels_cubin kernels_cubins[];
#endif
