/* SPDX-License-Identifier: ISC */
#ifndef RIG_EDGE_H
#define RIG_EDGE_H
/*
 * rig_edge: what any caller and any driver of rig's devices share.
 *
 * A device runs submissions. A submission is the work of one value: parts,
 * each on one queue of the device, and waits for words that others write.
 * The device's timeline word is a 64-bit unsigned integer in the host's byte
 * order; it holds the last value v such that the work of every value up to v
 * has completed. Values are compared in circular order (rig_reached), so any
 * 64-bit value may be the first.
 *
 *   part i starts once   every part before it on its queue has completed,
 *                        and every part its `after` lists has completed
 *   v starts once        every value before v has completed (device order),
 *                        and every word v waits for holds its value
 *   v is reached once    the word holds v or a later value
 *
 * The C functions of a device stand in its struct rig_edge, which the device's
 * first member points to; `self` is the device (rig_facts.edge).
 *
 * Threads: in turn mode the caller gives one thread at a time the device's
 * turn. The holder asks room for a submission and, where it answers RIG_FITS,
 * hands the same submission to submit, with no other call of either by that
 * thread between them.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define RIG_PUBLIC __attribute__((visibility("default")))
#else
#define RIG_PUBLIC
#endif

/* A structure of zeros. */
#ifdef __cplusplus
#define RIG_NOTHING                                                            \
  {                                                                            \
  }
#else
#define RIG_NOTHING {0}
#endif

/* What room answers. GROW's number is this library's own. */
enum rig_room {
  RIG_FITS,  /* the parts fit now */
  RIG_LATER, /* they fit once a value of the device that is not yet reached is
              */
  RIG_NEVER, /* they fit no rings, or name work that the device does not run */
  RIG_GROW   /* they fit once the device has grown */
};

/* What submit, commit and settle answer. */
enum rig_done {
  RIG_OK,       /* done; submit: encoded, and runs once committed */
  RIG_FAILED,   /* nothing was written; *failure says why */
  RIG_COMMITTED /* every value up to v runs without any further call */
};

enum rig_kind { RIG_NO_PART, RIG_WORDS, RIG_FILL, RIG_COPY, RIG_LAUNCH };
enum rig_queue { RIG_COMPUTE0, RIG_COPY0 }; /* "COMPUTE:0", "COPY:0" */
enum rig_memory { RIG_DEVICE, RIG_PINNED, RIG_MAPPED };
enum rig_mapping { RIG_MAPS, RIG_NO_ROOM, RIG_NEVER_MAPS };
enum rig_wait_kind { RIG_WAIT_WORD, RIG_WAIT_OBJECT };
enum rig_dma_kind { RIG_DMA_BUS, RIG_DMA_BUF };

/* A wait for a word: 8 bytes, 8-byte aligned, at an address of the device.
 * The submission's work starts once the word holds at least `value`. */
struct rig_wait {
  uint64_t at, value;
  int kind; /* enum rig_wait_kind */
};

/* Ring entries that compiled code wrote, placed as they are: two words an
 * entry, low word first. n counts words and is even. What an entry names
 * must stay until the submission's value is reached. */
struct rig_words {
  const uint32_t *at;
  size_t n;
};

/* A copy of `rows` rows of `bytes` bytes (rows 0 is one row), row i from
 * src + src_offset + i * src_pitch to dst + dst_offset + i * dst_pitch. Rows
 * of one copy do not overlap. `local` is for drivers of other machines. */
struct rig_copy {
  uint64_t dst, dst_offset, src, src_offset, bytes, rows, dst_pitch, src_pitch;
  int local;
};

/* A fill of `rows` rows of `bytes` bytes with `byte`. Every rule of a copy
 * holds for it. */
struct rig_fill {
  uint64_t dst, dst_offset, bytes, rows, dst_pitch;
  uint8_t byte;
};

/* The 8 parameter bytes at `at`, a multiple of 8, hold an offset into the
 * memory at slots[slot]; the kernel gets the sum. */
struct rig_ref {
  uint32_t at, slot;
};

/* A launch's block, in args at a multiple of 16; its parameters follow it. */
struct rig_block {
  uint32_t groups[3], threads[3], shared, unused;
};

struct rig_launch {
  uint64_t code;
  const void *launch;
  uint32_t block, params; /* the block's offset in args; parameter bytes */
  const struct rig_ref *refs;
  size_t nrefs;
};

struct rig_part {
  int queue, kind;  /* enum rig_queue, enum rig_kind */
  const int *after; /* indices of earlier parts */
  size_t nafter;
  union {
    struct rig_words words;
    struct rig_copy copy;
    struct rig_fill fill;
    struct rig_launch launch;
  };
};

/* When a timed submission's work ran: CLOCK_MONOTONIC nanoseconds. */
struct rig_times {
  uint64_t start, end;
};

/* Read only during the call it is given to, times excepted, which a driver
 * that times writes later. times NULL is an untimed submission; a driver that
 * does not time leaves times alone. */
struct rig_submission {
  const struct rig_part *parts;
  size_t nparts;
  const void *args;
  size_t args_bytes;
  const uint64_t *slots;
  size_t nslots;
  const struct rig_wait *waits;
  size_t nwaits;
  const uint64_t *handles;
  size_t nhandles;
  struct rig_times *times;
};

/* The C functions of a device. They only store to memory: no system call,
 * no allocation, no lock. A *failure text lives as long as the device. */
struct rig_edge {
  enum rig_room (*room)(void *self, const struct rig_submission *);
  enum rig_done (*submit)(void *self, uint64_t v, const struct rig_submission *,
                          const char **failure);
  enum rig_done (*commit)(void *self, uint64_t v, const char **failure);
  enum rig_done (*settle)(void *self, const char **failure);
};

/* Where a region lies. address and handle are the GPU address of its first
 * byte; host is NULL where the host does not address it. */
struct rig_location {
  uint64_t address, handle;
  void *host;
};

/* How a PCI function reaches memory. BUS: at `bus`. BUF: through the DMA
 * buffer `fd`, from `offset`, once its driver imported it; the caller closes
 * fd. */
struct rig_dma {
  int kind; /* enum rig_dma_kind */
  uint64_t bus;
  int fd;
  uint64_t offset, bytes;
};

/* What a device states of itself. It lives as long as the device. */
struct rig_facts {
  const char *arch;      /* such as "sm_90" */
  const char *queues[2]; /* by enum rig_queue */
  const char *bus;       /* PCI address, or NULL */
  int copy_engine;       /* the queue of the copy engine */
  uint64_t budget;       /* bytes that its work may allocate */
  unsigned waits;        /* bit enum rig_wait_kind: the waits it takes */
  unsigned most_waits;   /* of one submission */
  bool may_block;        /* whether room, submit and commit may block */
  bool maps_host;
  bool host_addresses;     /* whether the host addresses Device memory */
  int64_t hang_ms;         /* a still word's bound in ms, -1 none */
  int64_t cache_bytes;     /* of the last level of cache, -1 unknown */
  uint32_t alignment;      /* of every region's address */
  volatile uint64_t *word; /* read it with acquire order (rig_nv_signaled) */
  uint64_t word_gpu;       /* its GPU address, for other devices' waits */
  void *own_word;  /* the region of a word of the driver's own, else NULL */
  void *edge;      /* self */
  const void *key; /* devices of one key map each other's memory */
  const void *capability;
};

/* Whether a word that reads `word` has reached v. */
static inline bool rig_reached(uint64_t word, uint64_t v) {
  return word - v < UINT64_C(1) << 63;
}

/* Raises *word to `last` with release order, where it has not reached it;
 * never lowers it. Pairs with every acquire load of the word. Any thread. */
RIG_PUBLIC void rig_word_raise(volatile uint64_t *word, uint64_t last);

/* Parts. Each returns a part with no `after`. */
static inline struct rig_part rig_part_words(int queue, const uint32_t *at,
                                             size_t n) {
  struct rig_part p = RIG_NOTHING;
  p.queue = queue;
  p.kind = RIG_WORDS;
  p.words.at = at;
  p.words.n = n;
  return p;
}

static inline struct rig_part rig_part_rows(uint64_t dst, uint64_t dst_pitch,
                                            uint64_t src, uint64_t src_pitch,
                                            uint64_t rows, uint64_t bytes) {
  struct rig_part p = RIG_NOTHING;
  p.queue = RIG_COPY0;
  p.kind = RIG_COPY;
  p.copy.dst = dst;
  p.copy.src = src;
  p.copy.bytes = bytes;
  p.copy.rows = rows;
  p.copy.dst_pitch = dst_pitch;
  p.copy.src_pitch = src_pitch;
  return p;
}

static inline struct rig_part rig_part_copy(uint64_t dst, uint64_t src,
                                            uint64_t bytes) {
  return rig_part_rows(dst, 0, src, 0, 1, bytes);
}

static inline struct rig_part rig_part_fill(uint64_t dst, uint64_t bytes,
                                            uint8_t byte) {
  struct rig_part p = RIG_NOTHING;
  p.queue = RIG_COPY0;
  p.kind = RIG_FILL;
  p.fill.dst = dst;
  p.fill.bytes = bytes;
  p.fill.rows = 1;
  p.fill.byte = byte;
  return p;
}

static inline struct rig_part rig_part_launch(uint64_t code, const void *launch,
                                              uint32_t block, uint32_t params) {
  struct rig_part p = RIG_NOTHING;
  p.queue = RIG_COMPUTE0;
  p.kind = RIG_LAUNCH;
  p.launch.code = code;
  p.launch.launch = launch;
  p.launch.block = block;
  p.launch.params = params;
  return p;
}

#ifdef __cplusplus
}
#endif
#endif
