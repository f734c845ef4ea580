/* SPDX-License-Identifier: ISC */
#include "stress/kernels.h"

#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "rings/launch.h"
#include "stress/kernels_cubins.h"

/* What the model runs. They read and write in pieces, so that two launches
 * that nothing orders would be seen to mix. */
enum { PIECE = 512 };

static uint64_t param(const struct rig_nv_model_launch *l, unsigned at,
                      unsigned n) {
  uint64_t x = 0;
  if (at + n <= l->params_bytes)
    memcpy(&x, (const unsigned char *)l->params + at, n);
  return x;
}

/* A kernel finds its place by the sizes that bank 0 has. */
static bool sizes_right(const struct rig_nv_model_launch *l) {
  return memcmp(l->grid, l->bank_grid, sizeof l->grid) == 0 &&
         memcmp(l->group, l->bank_group, sizeof l->group) == 0;
}

static void run_mix(const struct rig_nv_model_launch *l, void *ctx) {
  uint64_t dst = param(l, 0, 8), src = param(l, 8, 8), n = param(l, 16, 8);
  unsigned char w[PIECE], mask = (unsigned char)param(l, 24, 4);
  (void)ctx;
  if (!sizes_right(l))
    mask = (unsigned char)~mask;
  for (uint64_t at = 0, k; at < n; at += k) {
    k = n - at < PIECE ? n - at : PIECE;
    if (!rig_nv_model_read(l, src + at, w, k))
      return;
    for (uint64_t i = 0; i < k; i++)
      w[i] ^= mask;
    if (!rig_nv_model_write(l, dst + at, w, k))
      return;
  }
}

static void run_add(const struct rig_nv_model_launch *l, void *ctx) {
  uint64_t c = param(l, 0, 8), a = param(l, 8, 8), b = param(l, 16, 8);
  uint64_t n = param(l, 24, 8);
  uint32_t w[2][PIECE / 4];
  (void)ctx;
  for (uint64_t at = 0, k; at < n; at += k) {
    k = n - at < PIECE / 4 ? n - at : PIECE / 4;
    if (!rig_nv_model_read(l, a + 4 * at, w[0], 4 * k) ||
        !rig_nv_model_read(l, b + 4 * at, w[1], 4 * k))
      return;
    for (uint64_t i = 0; i < k; i++)
      w[0][i] += w[1][i] + !sizes_right(l);
    if (!rig_nv_model_write(l, c + 4 * at, w[0], 4 * k))
      return;
  }
}

static void run_nothing(const struct rig_nv_model_launch *l, void *ctx) {
  (void)l, (void)ctx;
}

static void run_step(const struct rig_nv_model_launch *l, void *ctx) {
  uint64_t out = param(l, 0, 8), in = param(l, 8, 8), n = param(l, 16, 4);
  (void)ctx;
  if (l->grid[0] * (uint64_t)l->group[0] < n || !sizes_right(l))
    return;
  for (uint64_t i = 0; i < n; i++) {
    uint32_t x;
    if (!rig_nv_model_read(l, in + 4 * ((i * 2654435761 + 97) % n), &x, 4))
      return;
    x++;
    if (!rig_nv_model_write(l, out + 4 * i, &x, 4))
      return;
  }
}

static void run_count(const struct rig_nv_model_launch *l, void *ctx) {
  uint64_t to = param(l, 0, 8), n = l->bank_grid[0], at[2];
  (void)ctx;
  if (!rig_nv_model_read(l, to, at, sizeof at))
    return;
  at[0] += (n - 1) / (1 << 20) + 1 + ((n - 1) % (1 << 20) != 0);
  if (at[1] < n - 1)
    at[1] = n - 1;
  (void)rig_nv_model_write(l, to, at, sizeof at); /* a fault is the model's */
}

static void run_reverse(const struct rig_nv_model_launch *l, void *ctx) {
  uint64_t at = param(l, 0, 8), n = param(l, 8, 4);
  uint32_t a, b;
  (void)ctx;
  if (l->shared < 4 * n)
    return;
  for (uint64_t i = 0; i < l->grid[0]; i++, at += 4 * n)
    for (uint64_t k = 0; k < n / 2; k++)
      if (!rig_nv_model_read(l, at + 4 * k, &a, 4) ||
          !rig_nv_model_read(l, at + 4 * (n - 1 - k), &b, 4) ||
          !rig_nv_model_write(l, at + 4 * k, &b, 4) ||
          !rig_nv_model_write(l, at + 4 * (n - 1 - k), &a, 4))
        return;
}

static void run_deep(const struct rig_nv_model_launch *l, void *ctx) {
  uint64_t out = param(l, 0, 8);
  (void)ctx;
  for (uint32_t t = 0; t < l->grid[0] * l->bank_group[0]; t++) {
    uint32_t sum = 128 * t + 128 * 127 / 2;
    if (l->local < 512 ||
        !rig_nv_model_write(l, out + UINT64_C(4) * t, &sum, 4))
      return;
  }
}

static void run_linger(const struct rig_nv_model_launch *l, void *ctx) {
  uint64_t out = param(l, 0, 8);
  (void)ctx;
  for (uint32_t i = 0; i < l->grid[0]; i++)
    if (!rig_nv_model_write(l, out + UINT64_C(4) * i, &i, 4))
      return;
}

static const struct {
  const char *name;
  rig_nv_model_kernel *fn;
} functions[] = {
    {"mix", run_mix},   {"add", run_add},       {"nothing", run_nothing},
    {"step", run_step}, {"count", run_count},   {"reverse", run_reverse},
    {"deep", run_deep}, {"linger", run_linger},
};

const struct kernels_cubin *kernels_cubin(const char *name, const char *arch) {
  for (const struct kernels_cubin *c = kernels_cubins; c->arch; c++)
    if (strcmp(c->name, name) == 0 && strcmp(c->arch, arch) == 0)
      return c;
  return NULL;
}

static int load(struct kernels *k, const struct kernels_cubin *c) {
  uint64_t n;
  int e = rig_nv_image_load(k->device, c->bytes, c->n, &n, &k->image);
  if (e == 0)
    e = rig_nv_alloc(k->device, RIG_DEVICE, n, &k->code);
  unsigned char *image = e == 0 ? malloc(n) : NULL;
  if (e == 0 && image == NULL)
    e = why(RIG_NV_HOST_MEMORY, "kernels: no host memory");
  if (e == 0)
    e = rig_nv_image_lay(k->image, k->code, image);
  if (e == 0)
    e = rig_nv_upload(k->device, k->code, 0, image, n);
  free(image);
  return e;
}

int kernels_find(struct kernels *k, const char *name,
                 struct rig_nv_function *entry) {
  uint64_t need;
  int e = rig_nv_entry(k->image, name, entry, &need);
  if (e != 0 || k->model == NULL)
    return e;
  const struct launch *l = entry->launch;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strcmp(functions[i].name, name) == 0)
      return rig_nv_model_bind(k->model, entry->code, l->params_offset,
                               functions[i].fn, NULL);
  return why(RIG_NV_ABSENT, "kernels: the model has no %s", name);
}

int kernels_make(struct rig_nv *device, const struct rig_nv_path *model,
                 struct kernels *k) {
  const char *arch = rig_nv_facts(device)->arch;
  const struct kernels_cubin *c = kernels_cubin("kernels", arch);
  *k = (struct kernels){.device = device, .model = model};
  if (c == NULL)
    return why(RIG_NV_ABSENT, "kernels: no cubin for %s", arch);
  int e = load(k, c);
  if (e == 0)
    e = kernels_find(k, "mix", &k->mix);
  if (e == 0)
    e = kernels_find(k, "add", &k->add);
  if (e != 0)
    (void)kernels_end(k); /* e's reason is the one to tell */
  return e;
}

int kernels_end(struct kernels *k) {
  int e = 0, f = 0;
  if (k->image)
    e = rig_nv_unload(k->device, k->image);
  if (k->code)
    f = rig_nv_free(k->device, k->code);
  *k = (struct kernels){0};
  return e != 0 ? e : f;
}
