/* SPDX-License-Identifier: ISC */
#include "core/image.h"

#include <stdlib.h>
#include <string.h>

#include "core/api/why.h"
#include "core/device.h"

static const struct rig_nv_lock_class images_class = {"images", IMAGES_RANK, 0};

int images_make(struct rig_nv *d) {
  int e = rig_nv_lock_init(&d->images.lock, &images_class);
  d->images.made = e == 0;
  return e;
}

void images_unmake(struct rig_nv *d) {
  if (d->images.made)
    rig_nv_lock_fini(&d->images.lock);
}

void images_enter(struct rig_nv *d) {
  RING_ASSERT(rig_nv_lock_take(&d->images.lock) == 0);
}

void images_leave(struct rig_nv *d) { rig_nv_lock_give(&d->images.lock); }

uint64_t images_live(struct rig_nv *d) {
  uint64_t n = 0;
  images_enter(d);
  for (const struct rig_nv_image *i = d->images.first; i; i = i->next)
    n++;
  images_leave(d);
  return n;
}

void images_stop(struct rig_nv *d) {
  images_enter(d);
  for (struct rig_nv_image *i = d->images.first; i; i = i->next)
    image_wait(i);
  images_leave(d);
}

/* ---- load ---- */

static unsigned number(const char *arch) {
  return (unsigned)strtoul(arch + strlen("sm_"), NULL, 10);
}

/*
 * CUDA C++ Programming Guide, Binary Compatibility: a cubin of X.y runs where
 * the compute capability is X.z, z >= y; on Tegra none but its own does, nor
 * Tegra's elsewhere.
 */
static bool runs_on(unsigned cubin, unsigned gpu) {
  enum { TEGRA = 87 };
  if (cubin == TEGRA || gpu == TEGRA)
    return cubin == gpu;
  return cubin / 10 == gpu / 10 && cubin <= gpu;
}

static int check_arch(const struct cubin *c, const struct limits *l) {
  if (runs_on(c->sm, number(l->arch)))
    return 0;
  return why(RIG_NV_INVALID, "image: a cubin of sm_%u does not run on %s",
             c->sm, l->arch);
}

/* Gives back what load took, the image itself last. */
static void discard(struct rig_nv_image *i) {
  const struct rig_nv_allocator host = i->device->host;
  if (i->bytes != NULL)
    host.release(host.ctx, i->bytes, i->n);
  rig_nv_lock_fini(&i->lock);
  host.release(host.ctx, i, sizeof *i);
}

static int load(struct rig_nv_image *i, const void *cubin) {
  const struct rig_nv *d = i->device;
  i->bytes = device_host_alloc(&d->host, _Alignof(max_align_t), i->n);
  if (i->bytes == NULL)
    return -RIG_NV_HOST_MEMORY;
  memcpy(i->bytes, cubin, i->n);
  int e = cubin_parse(i->bytes, i->n, &i->cubin);
  if (e != 0)
    return e;
  i->limits = limits_of(d->rings.gpu.sm_version);
  if (i->limits == NULL)
    return -RIG_NV_INVALID;
  e = qmd_version_of(d->rings.gpu.sm_version, &i->version);
  return e != 0 ? e : check_arch(&i->cubin, i->limits);
}

int rig_nv_image_load(struct rig_nv *d, const void *cubin, size_t n,
                      uint64_t *place_bytes, struct rig_nv_image **image) {
  int e = device_enter(d);
  if (e != 0)
    return e;
  if (cubin == NULL || n == 0)
    return why(RIG_NV_INVALID, "image: no bytes");
  struct rig_nv_image *i =
      device_host_alloc(&d->host, _Alignof(struct rig_nv_image), sizeof *i);
  if (i == NULL)
    return -RIG_NV_HOST_MEMORY;
  i->device = d;
  i->n = n;
  e = rig_nv_lock_init(&i->lock, &rig_nv_lock_image);
  if (e != 0) {
    d->host.release(d->host.ctx, i, sizeof *i);
    return e;
  }
  e = load(i, cubin);
  if (e != 0) {
    discard(i);
    return e;
  }
  images_enter(d);
  i->next = d->images.first;
  i->prev = &d->images.first;
  if (i->next)
    i->next->prev = &i->next;
  d->images.first = i;
  images_leave(d);
  *place_bytes = i->cubin.image_bytes;
  *image = i;
  return 0;
}

/* ---- lay ---- */

static int check_region(const struct rig_nv_image *i,
                        const struct rig_nv_region *r) {
  if (r == NULL || r->device != i->device)
    return why(RIG_NV_INVALID, "image: not a region of its device");
  if (r->memory.bytes < i->cubin.image_bytes)
    return why(RIG_NV_INVALID,
               "image: a region of %llu bytes is below the %llu it takes",
               (unsigned long long)r->memory.bytes,
               (unsigned long long)i->cubin.image_bytes);
  return 0;
}

/* Ends the place that the image had: no prepare starts then. */
static int unplace(struct rig_nv_image *i, bool *had) {
  int e = 0;
  images_enter(i->device);
  image_wait(i);
  *had = i->laid;
  if (i->functions != NULL)
    e = why(RIG_NV_INVALID,
            "image: laid before, and entry " FUNCTION_NAME " has addresses",
            i->functions->kernel.name);
  else
    i->laid = false;
  images_leave(i->device);
  return e;
}

static void place(struct rig_nv_image *i, uint64_t base) {
  images_enter(i->device);
  i->base = base;
  i->laid = true;
  images_leave(i->device);
}

/* With the image's lock. */
static int lay(struct rig_nv_image *i, uint64_t address, void *out) {
  bool had;
  int e = unplace(i, &had);
  if (e != 0)
    return e;
  e = cubin_lay(&i->cubin, address, out);
  if (e == 0)
    e = local_code_changed(i->device);
  if (e == 0)
    place(i, address);
  else if (had)
    place(i, i->base);
  return e;
}

int rig_nv_image_lay(struct rig_nv_image *i, const struct rig_nv_region *r,
                     void *out) {
  int e = device_enter(i->device);
  if (e == 0)
    e = check_region(i, r);
  if (e == 0)
    e = rig_nv_lock_take(&i->lock);
  if (e != 0)
    return e;
  e = lay(i, r->memory.address, out);
  rig_nv_lock_give(&i->lock);
  return e;
}

/* ---- unload ---- */

int rig_nv_unload(struct rig_nv *d, struct rig_nv_image *i) {
  int e = rig_nv_lock_idle();
  if (e != 0)
    return e;
  if (i == NULL || i->device != d)
    return why(RIG_NV_INVALID, "unload: not an image of this device");
  e = rig_nv_lock_take(&i->lock);
  if (e != 0)
    return e;
  images_enter(d);
  image_wait(i);
  *i->prev = i->next;
  if (i->next)
    i->next->prev = i->prev;
  images_leave(d);
  for (struct function *f = i->functions, *next; f; f = next) {
    next = f->next;
    function_free(f);
  }
  rig_nv_lock_give(&i->lock);
  discard(i);
  return 0;
}
