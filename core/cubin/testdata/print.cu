/* SPDX-License-Identifier: ISC */
/* Refers to a device function of CUDA's driver. With nvcc 13.0:
 *   nvcc -cubin -arch=sm_86 -o print_sm86.cubin print.cu */
#include <stdio.h>

extern "C" __global__ void quiet(int *out) { out[0] = 1; }

extern "C" __global__ void print(int n) { printf("%d\n", n); }
