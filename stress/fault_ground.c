/* SPDX-License-Identifier: ISC */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "stress/fault_stress.h"

bool faults_broke(const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  fprintf(stderr, "fault_stress: broken: ");
  vfprintf(stderr, fmt, args);
  fprintf(stderr, "\n");
  va_end(args);
  return false;
}

/* Relaxed: the counts are read where no other thread runs. */
static void *host_alloc(void *ctx, size_t align, size_t n) {
  struct ground *g = ctx;
  uint64_t call = __atomic_add_fetch(&g->host_calls, 1, __ATOMIC_RELAXED);
  if (call == __atomic_load_n(&g->host_fails, __ATOMIC_RELAXED))
    return NULL;
  void *p = aligned_alloc(align < sizeof p ? sizeof p : align, n);
  if (p)
    __atomic_fetch_add(&g->host_live, 1, __ATOMIC_RELAXED);
  return p;
}

static void host_release(void *ctx, void *p, size_t n) {
  struct ground *g = ctx;
  (void)n;
  __atomic_fetch_sub(&g->host_live, 1, __ATOMIC_RELAXED);
  free(p);
}

bool ground_open(struct ground *g, int is, uint64_t seed, int64_t hang_ms) {
  struct rig_nv_model_options o;
  memset(g, 0, sizeof *g);
  rig_nv_model_options_init(&o);
  o.seed = seed;
  o.hang_ms = hang_ms;
  o.gpu.gpcs = o.gpu.tpcs_per_gpc = 1; /* local memory is small */
  o.gpu.warps_per_sm = 4;
  g->is = is;
  if (model_path_open((enum model_path)is, &o, &g->model) != 0)
    return faults_broke("model: %s", rig_nv_why());
  failing_path_init(&g->f, g->model);
  return true;
}

int ground_make(struct ground *g, enum rig_nv_mode mode, struct rig_nv **d) {
  const struct rig_nv_allocator host = {host_alloc, host_release, g};
  struct rig_nv_options o;
  struct device_sizes z;
  rig_nv_options_init(&o);
  o.mode = mode;
  o.allocator = &host;
  device_sizes_init(&z);
  z.entries = 256;
  z.segment_bytes = 16384;
  z.launch_bytes = 16384;
  z.in_flight = 32;
  return device_make_sized(&g->f.path, &o, &z, d);
}

bool ground_again(struct ground *g) {
  struct rig_nv *d = NULL;
  uint64_t v = 0, end = device_now() + UINT64_C(20000000000);
  g->f.fail_at = g->f.also_at = 0;
  g->host_fails = 0;
  g->f.path.hang_ms = -1; /* a busy machine's work is no hang */
  if (g->stopped)
    return true;
  if (ground_make(g, RIG_NV_POST, &d) != 0 ||
      rig_nv_post(d, &(struct rig_submission){0}, &v) != 0 ||
      rig_nv_wait(d, v, end) != 0 || rig_nv_stop(d, NULL) != 0 ||
      rig_nv_signaled(d) != v || rig_nv_release(d) != 0)
    return faults_broke("the next make on the path: %s", rig_nv_why());
  g->stopped = !g->f.path.rm.frees;
  return true;
}

bool ground_close(struct ground *g) {
  (void)failing_path_sweep(&g->f);
  if (g->host_live != 0)
    return faults_broke("%llu host allocations are left",
                        (unsigned long long)g->host_live);
  return rig_nv_path_close(g->model) == 0 || faults_broke("%s", rig_nv_why());
}
