/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_FAKE_STATE_H
#define PATHS_NVIDIA_FAKE_STATE_H
/*
 * The fake driver's state, and what its parts share: fake.c has the system
 * calls and the fields of structures, fake_rm.c the RM's objects and escapes,
 * fake_uvm.c UVM's requests.
 */
#include <stdarg.h>

#include "paths/nvidia/fake.h"

#define PAGE UINT64_C(4096)
#define HUGE (UINT64_C(2) << 20)
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

enum { FIRST_FD = 100, USERMODE = 0x10000, TIME_0 = 0x80, TIME_1 = 0x84 };

struct file {
  bool open, uvm, ctl, uvm_initialized;
  int gpu; /* of /dev/nvidiaN, else -1 */
  bool registered;
  uint32_t pending; /* the object that it will map */
  uint64_t pending_bytes;
  uint64_t buffer; /* bytes of a DMA buffer, which is memory of its own */
};

struct object {
  uint32_t handle, parent, cls;
  int gpu;
  uint64_t bytes;  /* of memory */
  uint64_t cookie; /* of its host mapping, 0 none */
  bool cpu;        /* mapped by the host */
};

struct mapping {
  void *at;
  size_t n;
  uint32_t object; /* 0: new memory */
};

struct gpu_map {
  unsigned char uuid[16];
  uint32_t object;
};

struct uvm_range {
  uint64_t at, bytes;
  struct gpu_map maps[FAKE_GPUS];
  size_t nmaps;
  uint32_t channel; /* of a registration's range, else 0 */
};

enum { MEMOS = 1024 };

struct memo {
  const char *structure, *field;
  int release;
  const char *const *row;
};

struct fake_state {
  struct file files[FAKE_MOST];
  struct object objects[FAKE_MOST];
  size_t nobjects;
  struct mapping mappings[FAKE_MOST];
  size_t nmappings;
  struct uvm_range ranges[FAKE_MOST];
  size_t nranges;
  bool mm, gpu[FAKE_GPUS], vaspace[FAKE_GPUS], peer[FAKE_GPUS][FAKE_GPUS];
  uint32_t next_handle;
  uint64_t next_cookie;
  struct memo memos[MEMOS];
  /* The call: its structure and where that is. */
  const char *is;
  unsigned char *arg;
};

#define PTR(x) ((void *)(uintptr_t)(x))

/* fake.c. The first rule that was broken stays. */
void fake_broke(struct fake *f, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Notes the call; true where it is to fail. failure: with which errno. */
bool fake_fails(struct fake *f, const char *name);
int fake_failure(const struct fake *f);
/* A release's constant, size and field, by the rows; get and set are of the
 * call's structure. */
uint64_t fake_constant(const struct fake *f, const char *name);
uint64_t fake_size_of(const struct fake *f, const char *structure);
unsigned char *fake_field_of(const struct fake *f, const char *structure,
                             const char *field, void *at, size_t *n);
uint64_t fake_get_of(const struct fake *f, const char *structure,
                     const char *field, void *at);
void fake_set_of(const struct fake *f, const char *structure, const char *field,
                 void *at, uint64_t x);
uint64_t fake_get(const struct fake *f, const char *field);
void fake_set(const struct fake *f, const char *field, uint64_t x);
/* Statuses. */
uint64_t fake_ok(const struct fake *f);
uint64_t fake_invalid(const struct fake *f);
uint64_t fake_no_memory(const struct fake *f);
uint64_t fake_failing_status(const struct fake *f);
/* The open file, or NULL. */
struct file *fake_file_of(const struct fake *f, int64_t fd);
void fake_uuid_of(size_t gpu, unsigned char uuid[16]);
int fake_gpu_of_uuid(const unsigned char *uuid);

/* fake_rm.c */
struct object *fake_object_of(const struct fake *f, uint64_t handle);
struct object *fake_object_new(struct fake *f, uint32_t handle, uint32_t parent,
                               uint32_t cls, int gpu);
void fake_object_free(struct fake *f, uint32_t handle);
int fake_escape(struct fake *f, struct file *file, uint32_t request,
                size_t bytes);

/* fake_uvm.c */
int fake_uvm(struct fake *f, struct file *file, uint32_t request, size_t bytes);
#endif
