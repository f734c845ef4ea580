/* SPDX-License-Identifier: ISC */
/* What stress programs and rig-nv launch. For each ARCH of 86, 89, 90, 100
 * and 120, with nvcc 13.0:
 *   nvcc -cubin -arch=sm_ARCH -o kernels_smARCH.cubin kernels.cu */

/* dst[i] = src[i] ^ mask, by any grid of blocks of one dimension. */
extern "C" __global__ void mix(unsigned char *dst, const unsigned char *src,
                               unsigned long long n, unsigned mask) {
  unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x;
  unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
  for (i += threadIdx.x; i < n; i += step)
    dst[i] = src[i] ^ (unsigned char)mask;
}

/* c[i] = a[i] + b[i]. */
extern "C" __global__ void add(unsigned *c, const unsigned *a,
                               const unsigned *b, unsigned long long n) {
  unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x;
  unsigned long long step = gridDim.x * (unsigned long long)blockDim.x;
  for (i += threadIdx.x; i < n; i += step)
    c[i] = a[i] + b[i];
}

extern "C" __global__ void nothing() {}

/* out[i] = in[some other i] + 1: each element comes from far away, so that a
 * launch which reads what was there before the one ahead of it is seen. */
extern "C" __global__ void step(unsigned *out, const unsigned *in,
                                unsigned n) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = in[(unsigned)((i * 2654435761ull + 97) % n)] + 1;
}

/* Of blocks 0, 2^20, 2^21, ... and the last: how many, and the last's index. */
extern "C" __global__ void count(unsigned long long *to) {
  if (threadIdx.x == 0 &&
      (blockIdx.x % (1u << 20) == 0 || blockIdx.x == gridDim.x - 1)) {
    atomicAdd(&to[0], 1);
    atomicMax(&to[1], blockIdx.x);
  }
}

/* Each block of threads reverses its n words of `at`, in shared memory. */
extern "C" __global__ void reverse(unsigned *at, unsigned n) {
  extern __shared__ unsigned part[];
  unsigned *own = at + blockIdx.x * (unsigned long long)n;
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
    part[i] = own[i];
  __syncthreads();
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x)
    own[i] = part[n - 1 - i];
}

/* out[t] = the sum over k < 128 of t + k, by way of the thread's stack. */
extern "C" __global__ void deep(unsigned *out) {
  unsigned t = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
  volatile unsigned kept[128];
#pragma unroll 1
  for (unsigned k = 0; k < 128; k++)
    kept[(k * 7) % 128] = t + k;
#pragma unroll 1
  for (unsigned k = 0; k < 128; k++)
    sum += kept[(k * 3 + t) % 128];
  out[t] = sum;
}

/* Runs for about `rounds` rounds of arithmetic, then says so. */
extern "C" __global__ void linger(unsigned *out, unsigned long long rounds) {
  unsigned x = threadIdx.x;
#pragma unroll 1
  for (unsigned long long k = 0; k < rounds; k++)
    asm volatile("mad.lo.u32 %0, %0, 1664525, 1013904223;" : "+r"(x));
  if (threadIdx.x == 0)
    out[blockIdx.x] = x;
}
