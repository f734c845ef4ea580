/* SPDX-License-Identifier: ISC */
/* A kernel with a stack frame. For each ARCH of 86, 89, 90, 100 and 120, with
 * nvcc 13.0:
 *   nvcc -cubin -arch=sm_ARCH -o stack_smARCH.cubin stack.cu */
extern "C" __global__ void stack(int *out, long long big, int n) {
  volatile int kept[64];
  for (int i = 0; i < n; i++)
    kept[out[i] & 63] = (int)big;
  out[0] = kept[out[n] & 63];
}
