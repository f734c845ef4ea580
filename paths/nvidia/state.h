/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_STATE_H
#define PATHS_NVIDIA_STATE_H
/*
 * The path's state: one client of NVIDIA's kernel driver for the process, and
 * the GPUs that it has open.
 *
 *   client   /dev/nvidiactl, the RM's client, /dev/nvidia-uvm twice
 *     gpu    /dev/nvidiaN, device, subdevice, usermode region, VA space
 *     gpu    ...
 *     ranges of GPU addresses, ascending, one set for all GPUs:
 *       span      memory: alloc's, or the caller's that map_host maps
 *         view    one of a GPU's mappings of the span; counts its memories
 *       place     of a registered channel
 *
 *   fresh memory     range -> host memory -> RM object -> UVM's range
 *                          -> GPU's mapping -> host's mapping (Mapped)
 *   memory's end     the same backwards
 *
 * The driver takes milliseconds to pin and unpin large memory. So a span is
 * placed with the lock, made or ended without it, and told with it again:
 *
 *   place, busy ----------- make ------------ not busy, or gone
 *   not found, busy ------- end ------------- gone, or kept
 *     with the lock       without it            with it
 *
 * A busy span is its thread's alone. Its addresses are taken from the first to
 * the last, so nobody else gets them in between; a map_host that overlaps it
 * waits; and its GPU counts it among its memories, so it is not closed.
 *
 * The client opens with the first GPU and ends with the last one: then nothing
 * of the process is left in the driver.
 *
 * Threads: `nvk_client_lock`, one for the process and of the class
 * rig_nv_lock_path, guards all of it but what is constant while a GPU is open,
 * its handles, files and addresses, and what a busy span's thread has for
 * itself. The rm functions, check, reaches and dma take no lock.
 *
 * Fork: the child must not use what the parent opened. It inherits the files,
 * which keep the RM's client alive until it ends or execs, and no mapping.
 */
#include "core/abi/timer.h"
#include "core/lock_order/lock_order.h"
#include "paths/nvidia/abi/release.h"
#include "paths/nvidia/abi/rm.h"
#include "paths/nvidia/abi/uvm.h"
#include "paths/nvidia/nvidia.h"
#include "paths/path.h"

#define NVIDIA_PAGE UINT64_C(4096)
#define NVIDIA_HUGE (UINT64_C(2) << 20)
/* The RM backs memory from here on with 2 MiB pages. */
#define NVIDIA_HUGE_FROM (UINT64_C(8) << 20)
/* GPU addresses that are given: below RIG_NV_WINDOWS first, which ring entries
 * and semaphores need; Device memory that has no room there lies above 2^40,
 * in the 47 bits that the GPUs of every class address. */
#define NVIDIA_LOW (UINT64_C(64) << 30)
#define NVIDIA_HIGH (UINT64_C(1) << 40)
#define NVIDIA_END (UINT64_C(1) << 47)
/* What UVM takes for a channel. */
#define NVIDIA_CHANNEL_BYTES (UINT64_C(64) << 20)

/* [at, at + bytes), with a page of no memory at least after it. */
struct range {
  struct range *next; /* of higher addresses */
  uint64_t at, bytes;
};

struct place { /* of a registered channel */
  struct range range;
  struct place *next;
  uint32_t channel;
};

struct view {
  struct view *next;
  struct gpu *gpu;
  size_t memories;
};

/* As far as a span was made, which is how far its end goes back. */
enum span_step {
  SPAN_PLACED,
  SPAN_HOST,   /* `host` is memory of the path's own */
  SPAN_OBJECT, /* `handle` names it */
  SPAN_RANGE,  /* UVM has its range */
  SPAN_WHOLE
};

struct span {
  struct range range; /* bytes: whole pages, as the RM rounds them */
  struct span *next;  /* of all spans */
  struct gpu *gpu;    /* that made it; its device is the object's parent */
  struct view *views;
  int kind;            /* enum rig_memory */
  bool of_caller;      /* map_host's; kind is RIG_PINNED */
  bool kept;           /* its end failed: it stays until the GPU is closed */
  bool busy;           /* a thread makes or ends it, and has what follows for
                        * itself; and `kept`, but not the caller's `host` */
  enum span_step made; /* the last step that is done */
  uint32_t handle;
  char *host;          /* of its first byte, or NULL */
  uint64_t cpu_cookie; /* the RM's name of the host's mapping (Mapped) */
  bool cpu_mapped;
};

struct memory { /* that the path gave: rig_nv_memory.data */
  struct span *span;
  struct gpu *gpu;
};

struct gpu {
  struct gpu *next;
  struct client *client;
  struct rig_nv_path path;
  struct rig_nv_clock clock; /* of the registers below */
  char bus[NVIDIA_BUS];      /* "0000:41:00.0" */
  struct nv_card card;
  int file; /* /dev/nvidiaN */
  struct uvm_uuid uuid;
  uint32_t device_instance, usermode_class, usermode;
  char *registers; /* the usermode region, through BAR 0 */
  uint64_t registers_cookie;
  uint64_t peers; /* bit: the number of a GPU whose memory it reaches (atomic)
                   */
  uint64_t asked; /* of those, the ones that UVM was asked for */
  struct memory flush;
  size_t memories; /* given and not given back, the flush word's excepted */
  struct place *places;
};

struct client {
  const struct nvidia_os *os;
  const struct release_layout *layout;
  int release;
  char version[64];
  int ctl, uvm, uvm_mm; /* files */
  uint32_t root;        /* the RM's client */
  uint32_t next_handle; /* of memory that the RM does not name itself */
  struct gpu *gpus;
  struct range *ranges;
  struct span *spans;
};

extern struct rig_nv_lock nvk_client_lock;

/* client.c: makes the process's client where there is none. ABSENT where the
 * system has no such driver. */
int nvk_client_take(const struct nvidia_os *, struct client **);
/* The reply as the error of an opener: there is no device that could be lost,
 * so a fault is a refusal. */
int nvk_open_error(const struct rig_nv_reply *);
/* Ends it where it has no GPU. */
bool nvk_client_drop(struct client *, struct rig_nv_reply *);

/* A sequence of steps over one object: each is done or changed nothing. */
struct step {
  bool (*take)(void *, struct rig_nv_reply *);
  bool (*give)(void *, struct rig_nv_reply *); /* NULL: takes nothing */
};
/* Takes the steps in order; where one fails, gives back those taken, last
 * first, and returns false with its reply. */
bool nvk_steps_take(const struct step *, size_t n, void *,
                    struct rig_nv_reply *);
/* Gives all n back, last first, whatever fails; the first reason. */
bool nvk_steps_give(const struct step *, size_t n, void *,
                    struct rig_nv_reply *);

/* number.c: fills in the GPU's card and bus address, and in *n how many GPUs
 * the machine has. ABSENT where it has none of the number, or where the driver
 * does not have it. */
int nvk_number_find(const struct client *, int index, struct gpu *, size_t *n);

/* range.c: places `bytes` at a multiple of align. False where no room is. */
bool nvk_range_place(struct client *, struct range *, uint64_t bytes,
                     uint64_t align, bool high);
void nvk_range_remove(struct client *, struct range *);

/* gpu.c */
bool nvk_gpu_open(struct gpu *, struct rig_nv_reply *);
bool nvk_gpu_close(struct gpu *, struct rig_nv_reply *);

/* memory.c, with the lock held, but where it says otherwise and in the path's
 * functions. */
struct span *nvk_span_new(struct gpu *, int kind, uint64_t n);
/* Places it, busy, with one memory for its GPU; false frees it. */
bool nvk_span_place(struct span *, struct memory *, struct rig_nv_reply *);
/* Of a busy span, with or without the lock: takes the steps up to SPAN_WHOLE
 * for its GPU, and gives back what a failure leaves. */
bool nvk_span_make(struct span *, bool combine, struct rig_nv_reply *);
/* It is not busy any more: whole, or gone, or kept where its end failed. */
void nvk_span_told(struct span *);
/* Places and makes it in one. */
bool nvk_span_whole(struct span *, struct memory *, struct rig_nv_reply *);
/* Maps the span for another GPU, and unmaps it. */
bool nvk_span_map(const struct span *, const struct gpu *,
                  struct rig_nv_reply *);
bool nvk_span_unmap(const struct span *, const struct gpu *,
                    struct rig_nv_reply *);
/* One more memory of the span for the GPU, which maps it where it did not.
 * Where it fails *m is unchanged. */
bool nvk_span_view(struct span *, struct gpu *, struct memory *,
                   struct rig_nv_reply *);
/* Gives it back. Of the span's last memory: the span, busy, to be ended and
 * told; else NULL, with *ok. */
struct span *nvk_memory_drop(struct memory *, bool *ok, struct rig_nv_reply *);
/* Of a busy span, with or without the lock. */
bool nvk_span_end(struct span *, struct rig_nv_reply *);
/* Drops it, ends and tells. */
bool nvk_memory_end(struct memory *, struct rig_nv_reply *);
/* The lock again, where the thread has just had it: what allowed that take
 * allows this one. */
void nvk_lock_again(void);
/* Spans that the GPU made and could not end. Its objects are gone. */
void nvk_spans_forget(struct gpu *);
bool nvk_memory_alloc(void *ctx, enum rig_memory, uint64_t n, unsigned flags,
                      struct rig_nv_memory *, struct rig_nv_reply *);
bool nvk_memory_free(void *ctx, const struct rig_nv_memory *,
                     struct rig_nv_reply *);
/* With the lock: the span of one of the GPU's memories was made, or failed. */
void nvk_memory_told(struct gpu *, struct span *, bool lives);
/* Fills in what the device gets, of a memory from byte `at` of its span. */
void nvk_memory_describe(struct memory *, uint64_t at, uint64_t n,
                         struct rig_nv_memory *);

/* host.c, peer.c */
bool nvk_host_map(void *ctx, void *p, uint64_t n, enum rig_mapping *,
                  struct rig_nv_memory *, struct rig_nv_reply *);
bool nvk_peer_map(void *ctx, const struct rig_nv_memory *, enum rig_mapping *,
                  struct rig_nv_memory *, struct rig_nv_reply *);
bool nvk_peer_reaches(void *ctx, int index);
/* Learns which of the open GPUs this one reaches, and asks for what is not
 * there by itself. */
bool nvk_peers_take(void *gpu, struct rig_nv_reply *);
bool nvk_peers_give(void *gpu, struct rig_nv_reply *);

/* dma.c: takes no lock. */
bool nvk_dma(void *ctx, const struct rig_nv_memory *, const char *fn,
             struct rig_dma *, struct rig_nv_reply *);

/* channel.c: the RM's functions of a path, and registrations. */
void nvk_channel_functions(struct gpu *);
bool nvk_channel_register(void *ctx, uint32_t channel, struct rig_nv_reply *);
bool nvk_channel_unregister(void *ctx, uint32_t channel, struct rig_nv_reply *);
#endif
