/* SPDX-License-Identifier: ISC */
/* Two kernels, constants, zeroed and initialised globals, and addresses that
 * the image holds: of a global, and of functions. For each ARCH of 86, 89, 90,
 * 100 and 120, with nvcc 13.0:
 *   nvcc -cubin -rdc=true -arch=sm_ARCH -o table.o table.cu
 *   nvlink -arch=sm_ARCH -o table_smARCH.cubin table.o */
__constant__ int scale[4] = {1, 2, 3, 5};
__device__ int zeroed[100];
__device__ int started[3] = {7, 8, 9};
__device__ int *place = &started[2];

__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ int (*table[2])(int) = {twice, square};

extern "C" __global__ void choose(int *out, int which) {
  zeroed[which]++;
  out[0] = table[which & 1](out[1]) * scale[which & 3] + *place;
}

extern "C" __global__ void shared(int *out) {
  __shared__ int part[256];
  part[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = part[255 - threadIdx.x];
}
