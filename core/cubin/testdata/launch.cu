/* SPDX-License-Identifier: ISC */
/* What launches take: parameters from none to many, shared memory of each
 * sort, named barriers, a big stack, and constant banks 3 and 4. For each ARCH
 * of 86, 90 and 120, with nvcc 13.0:
 *   nvcc -cubin -arch=sm_ARCH -o launch_smARCH.cubin launch.cu */
struct many {
  long long at[500];
};

__constant__ int scale[1024];
__device__ int counted[16];
__device__ int *place = &counted[3];

extern "C" __global__ void none() { counted[0]++; }

extern "C" __global__ void many(int *out, struct many m, char last) {
  out[0] = (int)m.at[out[1]] + last;
}

extern "C" __global__ void dynamic(int *out) {
  extern __shared__ int part[];
  part[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = part[31 - threadIdx.x];
}

extern "C" __global__ void both(int *out) {
  extern __shared__ int part[];
  __shared__ int own[33];
  part[threadIdx.x] = out[threadIdx.x];
  own[threadIdx.x] = out[threadIdx.x + 1];
  __syncthreads();
  out[threadIdx.x] = part[31 - threadIdx.x] + own[32 - threadIdx.x];
}

extern "C" __global__ void named(int *out) {
  asm volatile("bar.sync 5, 64;");
  out[0] = scale[out[1]] + *place;
  asm volatile("bar.sync 0, 64;");
}

extern "C" __global__ void deep(int *out, int n) {
  volatile int kept[16384];
  for (int i = 0; i < n; i++)
    kept[out[i] & 16383] = i;
  out[0] = kept[out[n] & 16383];
}
