/* SPDX-License-Identifier: ISC */
/* Other code of the same names, to lie where that of kernels.cu was. For each
 * ARCH of 86, 89, 90, 100 and 120, with nvcc 13.0:
 *   nvcc -cubin -arch=sm_ARCH -o other_smARCH.cubin other.cu */

/* c[i] = a[i] - b[i]. */
extern "C" __global__ void add(unsigned *c, const unsigned *a,
                               const unsigned *b, unsigned long long n) {
  unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x;
  unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
  for (i += threadIdx.x; i < n; i += step)
    c[i] = a[i] - b[i];
}
