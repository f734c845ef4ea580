/* SPDX-License-Identifier: ISC */
#include "tools/rig_nv/gpus.h"

#include <limits.h>
#include <stdio.h>

#include "core/qmd/limits.h"

static void keep_reason(struct gpus_one *g) {
  snprintf(g->reason, sizeof g->reason, "%s", rig_nv_why());
}

/* 0, or the path's error. */
static int look(const struct system *s, int index, struct gpus_one *g) {
  struct rig_nv_nvidia_options o;
  const struct rig_nv_path *path;
  rig_nv_nvidia_options_init(&o);
  o.gpu = index;
  int e = nvidia_open(s->driver, &o, &path);
  if (e != 0) {
    keep_reason(g);
    return e;
  }
  const struct limits *l = limits_of(path->gpu.sm_version);
  snprintf(g->at.bus, sizeof g->at.bus, "%s", path->bus);
  g->arch = l != NULL ? l->arch : NULL;
  g->gpu = path->gpu;
  g->memory = path->budget;
  g->cache_bytes = path->cache_bytes;
  e = rig_nv_path_close(path);
  g->opens = e == 0;
  if (e != 0)
    keep_reason(g);
  return e;
}

/* Where the system shows no PCI functions the driver's list numbers GPUs: the
 * path knows where it ends, unless it refuses the driver. */
static size_t by_driver(const struct system *s, struct gpus_one *list) {
  if (look(s, INT_MAX, &list[0]) != -RIG_NV_ABSENT)
    return 0;
  for (int i = 0; i < SYSTEM_GPUS; i++) {
    list[i] = (struct gpus_one){.at = {.bus = "?", .device = "?", .minor = -1}};
    if (look(s, i, &list[i]) == -RIG_NV_ABSENT)
      return (size_t)i;
  }
  return SYSTEM_GPUS;
}

size_t gpus_list(const struct system *s, struct gpus_one list[SYSTEM_GPUS]) {
  struct system_gpu at[SYSTEM_GPUS];
  size_t n = system_gpus(s, at);
  if (n == 0)
    return by_driver(s, list);
  for (size_t i = 0; i < n; i++) {
    list[i] = (struct gpus_one){.at = at[i]};
    (void)look(s, (int)i, &list[i]); /* its reason is kept */
  }
  return n;
}

uint32_t gpus_sms(const struct rig_nv_gpu *g) {
  return g->gpcs * g->tpcs_per_gpc * g->sms_per_tpc;
}
