/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_MEMORY_BED_H
#define PATHS_NVIDIA_MEMORY_BED_H
/*
 * For tests of memory over the fake driver. One thread a bed, but for what its
 * path may be asked by any. A call that fails fails the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "paths/nvidia/fake.h"
#include "paths/nvidia/nvidia.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define PAGE UINT64_C(4096)
#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static inline int open_gpu(struct fake *f, int gpu,
                           const struct rig_nv_path **path) {
  struct rig_nv_nvidia_options o;
  rig_nv_nvidia_options_init(&o);
  o.gpu = gpu;
  return nvidia_open(&f->os, &o, path);
}

/* A fake with `n` GPUs, the first opened. */
struct bed {
  struct fake f;
  const struct rig_nv_path *p;
  struct rig_nv_reply reply;
};

static inline struct bed *bed_new(size_t n) {
  static const char *const buses[FAKE_GPUS] = {"0000:01:00.0", "0000:02:00.0",
                                               "0000:03:00.0", "0000:04:00.0"};
  struct bed *b = calloc(1, sizeof *b);
  assert_non_null(b);
  fake_init(&b->f);
  b->f.ngpus = n;
  for (size_t i = 0; i < n; i++) {
    b->f.gpus[i] = b->f.gpus[0];
    b->f.gpus[i].bus = buses[i];
    b->f.gpus[i].minor = (unsigned)i;
  }
  assert_int_equal(open_gpu(&b->f, 0, &b->p), 0);
  return b;
}

#define assert_sound(b)                                                        \
  do {                                                                         \
    if ((b)->f.broken[0] != '\0')                                              \
      fail_msg("%s", (b)->f.broken);                                           \
  } while (0)

static inline void bed_end(struct bed *b) {
  assert_int_equal(rig_nv_path_close(b->p), 0);
  assert_sound(b);
  assert_true(fake_nothing(&b->f));
  fake_end(&b->f);
  free(b);
}

static inline bool alloc(struct bed *b, int kind, uint64_t n,
                         struct rig_nv_memory *m) {
  return b->p->alloc(b->p->ctx, (enum rig_memory)kind, n, 0, m, &b->reply);
}

static inline bool give(struct bed *b, const struct rig_nv_memory *m) {
  return b->p->free(b->p->ctx, m, &b->reply);
}

/* Of the caller's memory. */
static inline bool map(struct bed *b, void *p, uint64_t n, enum rig_mapping *is,
                       struct rig_nv_memory *m) {
  return b->p->map_host(b->p->ctx, p, n, is, m, &b->reply);
}

static inline char *pages(uint64_t n) {
  char *p = mmap(NULL, (n + 1) * PAGE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(p, MAP_FAILED);
  assert_int_equal(munmap(p + n * PAGE, PAGE), 0);
  return p;
}
#endif
