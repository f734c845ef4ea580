/* SPDX-License-Identifier: ISC */
/* 128 kernels, k00 to k7f. With nvcc 13.0:
 *   nvcc -cubin -arch=sm_86 -o crowd_sm86.cubin crowd.cu */
#define KERNEL(n) extern "C" __global__ void k##n() {}
#define ROW(n)                                                                 \
  KERNEL(n##0) KERNEL(n##1) KERNEL(n##2) KERNEL(n##3) KERNEL(n##4)             \
  KERNEL(n##5) KERNEL(n##6) KERNEL(n##7) KERNEL(n##8) KERNEL(n##9)             \
  KERNEL(n##a) KERNEL(n##b) KERNEL(n##c) KERNEL(n##d) KERNEL(n##e)             \
  KERNEL(n##f)
ROW(0) ROW(1) ROW(2) ROW(3) ROW(4) ROW(5) ROW(6) ROW(7)
