/* SPDX-License-Identifier: ISC */
/* For each ARCH of 86, 89, 90, 100 and 120, with nvcc 13.0:
 *   nvcc -cubin -arch=sm_ARCH -o add_smARCH.cubin add.cu */
extern "C" __global__ void add(float *out, const float *a, const float *b,
                               int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = a[i] + b[i];
}
