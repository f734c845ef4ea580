/* SPDX-License-Identifier: ISC */
#ifndef RIG_NV_PATH_H
#define RIG_NV_PATH_H
/*
 * A path: one way to reach a GPU's resource manager (RM), and what it gives a
 * device. A path's opener reaches the RM, makes the RM's device, subdevice and
 * virtual address space, reads what a device needs and fills in a struct
 * rig_nv_path; rig_nv_make allocates everything else through it.
 *
 * Functions: each gets the record's ctx, returns true for success, and else
 * false with the answer and its text in *reply. `text` names the call and the
 * answer; it is empty for success. A function that returns false has changed
 * nothing, `free` excepted, which keeps the memory it was given.
 *
 * Threads: any thread may call any function, at the same time as others. A
 * path takes its locks of the class rig_nv_lock_path
 * (core/lock_order/lock_order.h), one at a time, and its opener runs in
 * rig_nv_lock_guarded.
 *
 * After a device's stop, the device calls only free and reaches.
 */
#include "core/api/rig_nv.h"

enum rig_nv_answer {
  RIG_NV_OK,
  RIG_NV_LACKING, /* the RM or the path lacks memory or another resource */
  RIG_NV_DENIED,  /* any other refusal of the call */
  RIG_NV_FAULTED, /* the GPU, or the way to it, failed */
  RIG_NV_WRONG    /* an argument no caller may give */
};

struct rig_nv_reply {
  enum rig_nv_answer is;
  char text[1024];
};

/* Sets the reply and returns whether it is OK, so that a path's function ends
 * with `return rig_nv_reply_set(...)`. A longer text ends in "...". */
bool rig_nv_reply_set(struct rig_nv_reply *, enum rig_nv_answer,
                      const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The field of n bytes at byte `at` of the len bytes of RM parameters at p, in
 * the host's byte order, unsigned. set writes the low n bytes of x.
 * INVALID if n is not 1, 2, 4 or 8, or if the field ends past len. */
int rig_nv_params_get(const void *p, size_t len, size_t at, size_t n,
                      uint64_t *x);
int rig_nv_params_set(void *p, size_t len, size_t at, size_t n, uint64_t x);

/* A GPU's resource manager. Handles are its 32-bit names of objects. */
struct rig_nv_rm {
  int release;     /* such as 580: sets the layouts of parameters */
  uint32_t client; /* which the device's objects descend from */
  bool frees;      /* whether objects are freed before the RM stops */
  /* A new object of class cls under parent. */
  bool (*alloc)(void *ctx, uint32_t parent, uint32_t cls, void *params,
                size_t bytes, uint32_t *object, struct rig_nv_reply *);
  /* The word that a device stores at the doorbell to wake the channel. */
  bool (*token)(void *ctx, uint32_t channel, uint32_t *token,
                struct rig_nv_reply *);
  /* Schedules the group's channels (NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS). */
  bool (*schedule)(void *ctx, uint32_t group, void *params, size_t bytes,
                   struct rig_nv_reply *);
  /* Raises the GPU's clocks to their maximum, with no end. */
  bool (*boost)(void *ctx, uint32_t subdevice, struct rig_nv_reply *);
  /* NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS. */
  bool (*sm_errors)(void *ctx, uint32_t debugger, void *params, size_t bytes,
                    struct rig_nv_reply *);
  /* NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS. */
  bool (*mmu_faults)(void *ctx, uint32_t debugger, void *params, size_t bytes,
                     struct rig_nv_reply *);
  /* Frees the object under parent and every object under it. Not called
   * where `frees` is false. */
  bool (*free)(void *ctx, uint32_t parent, uint32_t object,
               struct rig_nv_reply *);
};

/* Memory that a path gave. No byte of it lies in [RIG_NV_WINDOWS, 2^40), and
 * Pinned, Mapped and host memory lie below RIG_NV_WINDOWS. */
struct rig_nv_memory {
  uint64_t address; /* of its first byte, for the GPU */
  void *host;       /* for the host, or NULL */
  uint32_t handle;  /* the RM's name for it */
  void *data;       /* the path's own */
  uint64_t bytes;   /* as asked for */
};

/* Flags of alloc. */
enum {
  RIG_NV_COMBINE = 1 /* map BAR memory write-combined: the device's rings */
};

/* How a device reads the GPU's timer, whose nanoseconds its stamps hold. */
enum rig_nv_clock_kind {
  RIG_NV_CLOCK_SOURCE,    /* by `read` */
  RIG_NV_CLOCK_REGISTERS, /* of BAR 0 (NV_PTIMER_TIME_0, _1): at open only */
  RIG_NV_CLOCK_USERMODE   /* of the usermode region: at any time */
};

/* The timer, and a host clock before and after it, in ns. */
struct rig_nv_reading {
  uint64_t before, timer, after;
};

/* It stays as it is while a device may read it: until the device's stop.
 * Threads: any may call its functions, at the same time as others. */
struct rig_nv_clock {
  enum rig_nv_clock_kind kind;
  void *ctx; /* of its functions */
  /* SOURCE: the timer, between two readings of a host clock of the source's
   * own, and that clock itself, which runs at CLOCK_MONOTONIC's rate for the
   * microseconds that lie between the two calls. */
  bool (*read)(void *ctx, struct rig_nv_reading *, struct rig_nv_reply *);
  uint64_t (*host)(void *ctx);
  /* Else: where BAR 0 or the region is mapped for the host; or, where `load`
   * is given, that reads the register at byte `at` of it. */
  const volatile char *mapped;
  uint32_t (*load)(void *ctx, size_t at);
};

enum rig_nv_stopped { RIG_NV_STOPPED, RIG_NV_UNKNOWN };

struct rig_nv_path {
  size_t size; /* sizeof of this structure */
  void *ctx;
  const void *key; /* paths of one key map each other's memory */
  int index;       /* the GPU's number */
  struct rig_nv_rm rm;
  uint32_t device, subdevice, vaspace; /* the RM's objects of the GPU */
  struct rig_nv_gpu gpu;               /* windows unset */
  uint64_t budget;                     /* bytes its work may allocate */
  int64_t cache_bytes;                 /* of the L2 cache, -1 unknown */
  int64_t hang_ms;                     /* a still word's bound, -1 none */
  volatile uint32_t *doorbell;
  volatile uint32_t *flush; /* a word of Mapped memory, or NULL: then there is
                             * no Mapped memory */
  bool put_mapped;          /* what the host stores through the memory BAR
                             * reaches the GPU in that order, so that GP_PUT
                             * may lie in Mapped memory behind the rings */
  const char *bus;          /* PCI address, or NULL */
  const struct rig_nv_clock *clock;

  /* n new bytes of the kind, at an address aligned to 4 KiB. */
  bool (*alloc)(void *ctx, enum rig_memory, uint64_t n, unsigned flags,
                struct rig_nv_memory *, struct rig_nv_reply *);
  /* Maps the n bytes of host memory at p, whole pages. NULL: maps none.
   * *mapping is RIG_MAPS for success, else why not. */
  bool (*map_host)(void *ctx, void *p, uint64_t n, enum rig_mapping *mapping,
                   struct rig_nv_memory *, struct rig_nv_reply *);
  /* Maps for this GPU the memory of another device of this key. */
  bool (*map_peer)(void *ctx, const struct rig_nv_memory *,
                   enum rig_mapping *mapping, struct rig_nv_memory *,
                   struct rig_nv_reply *);
  /* Whether this GPU addresses the memory of GPU `index`. Never fails. */
  bool (*reaches)(void *ctx, int index);
  /* Gives back what alloc, map_host or map_peer gave. */
  bool (*free)(void *ctx, const struct rig_nv_memory *, struct rig_nv_reply *);
  /* How the PCI function at fn reaches memory that alloc gave. A buffer's fd
   * is the caller's, and keeps the memory, also once that is freed. */
  bool (*dma)(void *ctx, const struct rig_nv_memory *, const char *fn,
              struct rig_dma *, struct rig_nv_reply *);
  /* Makes a channel that was allocated under `device` ready to run, and gives
   * back what that took, before the channel is freed. */
  bool (*register_channel)(void *ctx, uint32_t channel, struct rig_nv_reply *);
  bool (*unregister_channel)(void *ctx, uint32_t channel,
                             struct rig_nv_reply *);
  /* false, FAULTED, with the path's report of a fault. Waits for nobody. */
  bool (*check)(void *ctx, struct rig_nv_reply *);
  /* Ends the path's hold of the GPU. STOPPED only once none of the device's
   * work runs or can write memory outside the GPU. */
  enum rig_nv_stopped (*stop)(void *ctx);
  /* rig_nv_path_close of it: 0, or -RIG_NV_INVALID while it is in use. */
  int (*close)(void *ctx);
};
#endif
