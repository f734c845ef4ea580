/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_STATE_H
#define PATHS_MODEL_STATE_H
/*
 * The model's state: its memory, its RM's objects, its channels and its
 * engine.
 *
 *   callers                                  engine's thread
 *   alloc, map_host, rm.*  ---- lock ----->  a turn: deliver, copy, run words
 *   GP_PUT (release), doorbell ----------->  exchange, GP_PUT (acquire)
 *   semaphore words, notifiers <----------   64-bit stores, release
 *   the flush word (posts_writes) ------->  post.c
 *
 * Memory of another model is reached by views (peer.c), which hold no lock of
 * their owner: the owner ends a view's access by taking the viewer's lock once
 * its memory is marked gone, and before the memory goes.
 *
 * Threads: the functions of struct rig_nv_path are called by any thread and
 * take the lock themselves; every other function below is called with the lock
 * held, unless it says otherwise. The lock guards all of struct model but
 * bell, ending, waiters and reported, which are read without it.
 */
#include <pthread.h>

#include "core/abi/rm.h"
#include "core/lock_order/lock_order.h"
#include "paths/model/backing.h"
#include "paths/model/descriptor.h"
#include "paths/model/methods.h"
#include "paths/model/model.h"
#include "paths/model/pages.h"

#define MODEL_PAGE UINT64_C(4096)
#define MODEL_LOW UINT64_C(0x6000000000)  /* Pinned, Mapped and host memory */
#define MODEL_HIGH UINT64_C(0x7000000000) /* Device memory from here on */
#define MODEL_PIECE (UINT64_C(1) << 20)   /* most bytes moved under the lock */
/* What fresh memory holds, and what the engine leaves of what it fetched. As a
 * header, a ring entry and an address they are ones that it refuses. */
#define MODEL_POISON 0xd5
#define MODEL_FETCHED 0xd3

/* The RM's status codes that refusals name (nvstatuscodes.h). */
enum model_status {
  ST_IN_USE = 0x17,
  ST_NO_RESOURCES = 0x1a,
  ST_INVALID_ADDRESS = 0x1e,
  ST_INVALID_ARGUMENT = 0x1f,
  ST_INVALID_CLASS = 0x22,
  ST_INVALID_HANDLE = 0x33,
  ST_INVALID_PARENT = 0x36,
  ST_INVALID_STATE = 0x40,
  ST_NO_MEMORY = 0x51
};

/* Channel errors (nverror.h) and the MMU's words for a fault (dev_fault.h). */
enum model_error { ERROR_MMU = 31, ERROR_PBDMA = 32 };
enum { FAULT_READ = 0, FAULT_WRITE = 1, FAULTS = 4 };

/* A memory's bond with its views: it goes with the last of them. */
struct model_share {
  unsigned refs; /* views, and the memory itself */
  unsigned gone; /* the memory was freed; views fault */
  void *block;   /* what views need of it, where its owner has a backing */
  void (*unrefer)(void *block); /* the owner may be closed by then */
};

/* GPU addresses [at, at + bytes) and the host memory behind them. Where the
 * model has a backing, Device memory has no `host`, and no `gpu` where it lies
 * apart; a view has neither. */
struct model_span {
  uint64_t at, bytes;
  char *host; /* as the host sees it, and as the GPU does: the same memory */
  char *gpu;  /* but for Mapped memory of a model that posts writes */
  struct model_post *post; /* of these, else NULL */
  struct model_span *posted;
  struct model_share *share; /* of a view of another model's memory */
  uint64_t mapped;   /* bytes to unmap at its end, 0 for memory of others */
  uint64_t budgeted; /* of used[kind], or of `viewed` */
  int kind;
  bool rings;     /* allocated with RIG_NV_COMBINE: a driver's own rings */
  void *backed;   /* the backing's block, or NULL */
  unsigned users; /* memories that share it */
};

/* Where the GPU writes: `host` too, where there is a post. */
struct model_twin {
  char *gpu, *host;
  struct model_post *post;
};

/* Memory that the path gave. */
struct model_memory {
  struct model_memory *next;
  struct model_span *span;
  struct model_share *share; /* once it was viewed */
  uint64_t address, bytes;
  uint32_t handle;
  unsigned named; /* by this many live channels */
};

struct model_object {
  struct model_object *next;
  uint32_t handle, parent, cls;
  struct model_channel *channel; /* of a channel's object */
};

/* A store that a release executed and that has not landed. */
struct model_store {
  uint64_t at, payload;
  bool wide, stamped;
  unsigned delay; /* turns */
};

enum { STORES = 16, WORK = 8, FETCHED = 16 };

/* One LAUNCH_DMA: a transfer, then a semaphore. */
struct model_work {
  uint64_t src, dst, line, rows; /* line: bytes of a row */
  uint32_t src_pitch, dst_pitch;
  bool transfer, pipelined, drop, fill, flush;
  uint8_t pattern[16]; /* of a fill's element, and which bytes it writes */
  bool writes[16], uniform;
  unsigned element;
  uint64_t row, done; /* progress: rows, bytes of the row */
  unsigned sem;       /* 0, DMA_SEM_ONE_WORD, DMA_SEM_FOUR_WORD */
  struct model_store store;
  bool posted;
};

/* A launch: launch.c draws its life. */
enum model_life { LAUNCH_SCHEDULED, LAUNCH_READ, LAUNCH_RAN, LAUNCH_LANDING };

struct model_launch {
  struct model_launch *next;  /* of the channel */
  struct model_launch *after; /* starts once this one's blocks completed */
  struct model *m;
  struct model_channel *c;
  enum model_life life;
  bool ahead; /* its descriptor may be read before `after` ended */
  uint64_t at;
  struct model_qmd q;
  uint8_t *bank[QV_BANKS]; /* once it was read */
  struct rig_nv_model_launch shown;
  struct model_pages written;
  bool faulted; /* the kernel touched `address` */
  uint64_t address;
  uint32_t access;
};

/* A kernel bound to code. */
struct model_binding {
  struct model_binding *next;
  uint64_t code;
  uint32_t params_offset;
  rig_nv_model_kernel *fn;
  void *ctx;
};

/* What the GPU holds of memory. */
enum model_cache { CACHE_CODE, CACHE_CONSTANTS, CACHES };

struct model_cached {
  struct model_cached *next;
  uint64_t at, n;
  uint8_t bytes[];
};

/* The memories that a channel names. */
enum { NAME_NOTIFIER, NAME_USERD, NAME_RING, NAME_BUFFER, NAMES };

struct model_channel {
  struct model_channel *next;
  uint32_t handle, group, share, token, cls;
  bool registered, scheduled, dead, look;
  struct model_memory *names[NAMES];
  struct model_twin userd, notifier;
  uint64_t ring;
  uint32_t entries, get;
  /* Entries read ahead of their turn, and the segment that runs. */
  uint64_t fetched[FETCHED];
  unsigned nfetched, first;
  uint64_t at, words;
  /* The header whose arguments follow. */
  enum model_op op;
  uint32_t method, sub, count;
  /* Registers: host's, compute's and copy's, and which were set. */
  uint32_t bound[SUBCHANNELS];
  uint32_t host[HOST_METHODS], compute[CP_METHODS], copy[CE_METHODS];
  uint32_t host_set, compute_set, copy_set;
  /* The copy engine's queue, oldest first, and stores yet to land. */
  struct model_work work[WORK];
  unsigned nwork;
  struct model_store stores[STORES];
  unsigned nstores;
  /* Launches yet to end, and what ended ones wrote that no membar followed. */
  struct model_launch *launches;
  unsigned nlaunches;
  struct model_pages late;
  uint32_t word; /* the segment's next, and whether it waits, read already */
  bool held;
  bool releasing; /* held by a host release whose store has yet to land */
};

struct model_fault {
  uint64_t address;
  uint32_t type, access;
};

struct model {
  struct rig_nv_path path;
  struct rig_nv_clock timer;
  uint64_t opened; /* CLOCK_MONOTONIC's time of it */
  struct rig_nv_model_options options;
  const struct model_backing *backing; /* or NULL */
  const struct abi_rm_layout *layout;
  struct rig_nv_lock lock;
  unsigned waiters; /* callers at the lock: the engine lets them in */

  struct model_span **spans; /* by address */
  size_t nspans, spans_room;
  struct model_memory *memories;
  size_t nmemories;
  uint64_t used[3], viewed;
  struct model_memory *flush; /* the path's own */
  struct model_post *post;    /* where it posts writes, else NULL */
  struct model *peer;         /* the open model of the next higher index */
  unsigned pins;              /* threads that look at it from another path */

  struct model_object *objects;
  size_t nobjects, nchannels, nregistered;
  uint32_t next_handle, next_token;
  struct model_channel *channels;

  pthread_t thread;
  uint32_t bell; /* the doorbell */
  unsigned ending;
  bool running, stopped, stalled, peeks;
  uint64_t random;
  uint64_t piece; /* bytes that this turn may still move */
  uint64_t copies, interrupts, words;
  uint64_t launches, chained, released, invalidates, locals;
  struct model_binding *bindings;
  struct model_cached *cached[CACHES];

  struct model_fault faults[FAULTS];
  unsigned nfaults;
  char report[900];
  unsigned reported; /* release: report is whole; pairs with check's load */
};

/* Any thread, with no lock. enter answers WRONG where the lock is refused. */
bool model_enter(struct model *, struct rig_nv_reply *);
void model_leave(struct model *);

/* The next random number, and one below n. */
uint64_t model_random(struct model *);
unsigned model_below(struct model *, unsigned n);

/* spans.c, memory.c. The host address of GPU address `at`, and in *n the bytes
 * from it on, at most *n, that lie together; NULL where there are none. */
char *model_reach(struct model *, uint64_t at, uint64_t *n);
/* As model_reach, for what the GPU writes; false where no span holds it. */
bool model_reach_write(struct model *, uint64_t at, uint64_t *n,
                       struct model_twin *);
/* Whether it lies in memory of a driver's own rings. */
bool model_in_rings(struct model *m, uint64_t at);
/* Where the GPU writes to byte `at` of the memory. */
struct model_twin model_twin_of(const struct model_memory *, uint64_t at);
struct model_memory *model_memory_of(struct model *, uint32_t handle);
/* The memory that holds the n bytes at GPU address `at`, or NULL. */
struct model_memory *model_memory_at(struct model *, uint64_t at, uint64_t n);
/* Whether no memory lies in the n bytes from `at` on. */
bool model_memory_none(const struct model *, uint64_t at, uint64_t n);
bool model_alloc(void *ctx, enum rig_memory, uint64_t n, unsigned flags,
                 struct rig_nv_memory *, struct rig_nv_reply *);
bool model_map_host(void *ctx, void *p, uint64_t n, enum rig_mapping *,
                    struct rig_nv_memory *, struct rig_nv_reply *);
/* A view of n bytes, of memory like `of`, from byte of->at of its block on
 * where there is a backing; NULL where room lacks. It keeps the reference to
 * `of->share`. */
struct model_memory *model_view_new(struct model *, const struct model_span *of,
                                    uint64_t n);
void model_describe(struct model_memory *, struct rig_nv_memory *, uint64_t n);
bool model_free(void *ctx, const struct rig_nv_memory *, struct rig_nv_reply *);
bool model_dma(void *ctx, const struct rig_nv_memory *, const char *fn,
               struct rig_dma *, struct rig_nv_reply *);
/* The path's own flush word, where Mapped memory has room for it. */
void model_flush_open(struct model *);
void model_memories_close(struct model *);

/* peer.c: the models that are open in the process. join and leave are called
 * without the lock, as pass is. */
int model_peers_join(struct model *);
int model_peers_leave(struct model *);
/* Returns once no other model is at a turn that began before the call: none
 * then touches memory that was marked gone. */
void model_peers_pass(struct model *);
bool model_share_gone(const struct model_share *);
void model_share_drop(struct model_share *);
bool model_map_peer(void *ctx, const struct rig_nv_memory *, enum rig_mapping *,
                    struct rig_nv_memory *, struct rig_nv_reply *);
bool model_reaches(void *ctx, int index);

/* post.c: posted writes. A post is one model's; any thread, with or without
 * the lock. hold keeps its host's stores from moving, for a write to both of a
 * twin's places; a post of NULL does nothing. */
int model_post_new(struct model_post **);
void model_post_free(struct model_post *);
volatile uint32_t *model_post_word(struct model_post *);
void model_post_add(struct model_post *, struct model_span *);
void model_post_remove(struct model_post *, struct model_span *);
void model_post_hold(struct model_post *);
void model_post_go(struct model_post *);
/* Moves what the host stored. */
void model_post_move(struct model_post *);
/* Moves, of every model, what the host stored before reads of the flush word
 * that were not trapped. Called after a load of a word that a host may have
 * stored after such a read, before what the word says is used. */
void model_post_settle(void);

/* rm.c, control.c: the RM. */
bool model_rm_alloc(void *ctx, uint32_t parent, uint32_t cls, void *params,
                    size_t bytes, uint32_t *object, struct rig_nv_reply *);
bool model_rm_free(void *ctx, uint32_t parent, uint32_t object,
                   struct rig_nv_reply *);
void model_objects_close(struct model *);
bool model_object_new(struct model *, uint32_t parent, uint32_t cls,
                      uint32_t *handle);
struct model_object *model_object_of(struct model *, uint32_t handle);
void model_rm_functions(struct model *);
/* "CALL: ..., NV status 0x..": DENIED, or LACKING for a lack. */
bool model_refuse(struct rig_nv_reply *, enum model_status, const char *fmt,
                  ...) __attribute__((format(printf, 3, 4)));

/* The field of parameters whose size was compared with the layout's. */
uint64_t model_get(const void *params, size_t bytes, struct abi_rm_field);

/* channel.c: a channel made of its parameters. */
bool model_channel_new(struct model *, struct model_object *group,
                       const void *params, size_t bytes, uint32_t *object,
                       struct rig_nv_reply *);
/* Ends the channel's work: nothing of it lands later. */
void model_channel_end(struct model *, struct model_channel *);

/* engine.c */
int model_engine_start(struct model *);
void model_engine_stop(struct model *); /* without the lock */

/* What a step came to: it is done, it must be tried again, or the channel's
 * group has stopped. */
enum model_step { STEP_DONE, STEP_WAIT, STEP_FAULT };

/* fetch.c: runs the next word of the channel. */
enum model_step model_fetch(struct model *, struct model_channel *);
/* Overwrites the n bytes at `at` where they lie in the driver's block. */
void model_overwrite(struct model *, struct model_channel *, uint64_t at,
                     uint64_t n);
/* host.c, compute.c, copy.c: method i of the kind, with its argument. */
enum model_step model_host(struct model *, struct model_channel *, int i,
                           uint32_t x);
enum model_step model_compute(struct model *, struct model_channel *, int i,
                              uint32_t x);
enum model_step model_copy(struct model *, struct model_channel *, int i,
                           uint32_t x);
/* One piece of the channel's copies; WAIT where it has nothing to do. */
enum model_step model_copy_piece(struct model *, struct model_channel *);

/* store.c: semaphore words. */
enum model_step model_store_post(struct model *, struct model_channel *,
                                 const struct model_store *);
/* Lands the oldest store; false where its memory is gone. */
bool model_store_land(struct model *, struct model_channel *);
/* clock.c. The GPU's timer; any thread, without the lock. open fills in the
 * path's clock. */
uint64_t model_timer(const struct model *);
void model_clock_open(struct model *);
bool model_word_load(struct model *, uint64_t at, bool wide, uint64_t *x);

/* launch.c: launches of the compute engine. */
enum model_step model_launch_schedule(struct model *, struct model_channel *,
                                      uint64_t at);
/* A step of one of the channel's launches; whether it has any. */
bool model_launch_turn(struct model *, struct model_channel *);
/* Stops the launch's group, with a report that begins with its address. For
 * nowhere: a field that holds `at`, of which `bad` is no memory's. */
enum model_step model_launch_stray(struct model_launch *, const char *text);
enum model_step model_launch_nowhere(struct model_launch *, const char *field,
                                     uint64_t at, uint64_t bad,
                                     uint32_t access);
/* Whether the channel's engines have work. */
bool model_busy(const struct model_channel *);
/* Lands what ended launches wrote. */
enum model_step model_launch_flush(struct model *, struct model_channel *);
/* Forgets the channel's launches. */
void model_launches_end(struct model *, struct model_channel *);

/* ready.c: reads the descriptor; its banks, those that were not read before;
 * finds the rest of what the launch starts with, and local memory alone. */
enum model_step model_launch_read(struct model_launch *);
enum model_step model_launch_banks(struct model_launch *);
enum model_step model_launch_ready(struct model_launch *);
enum model_step model_launch_local(struct model_launch *);

/* kernel.c: the n bytes at `at` as the channel's launches see them; false with
 * the first address that no memory has. */
bool model_kernel_read(struct model *, const struct model_channel *,
                       uint64_t at, void *, uint64_t n, uint64_t *bad);
/* Calls the kernel that is bound to the launch's code. */
enum model_step model_kernel_run(struct model_launch *);
void model_bindings_close(struct model *);

/* cache.c: fetches the n bytes at p, which `at` holds, through the cache.
 * FAULT, the channel's group stopped and `what` reported, where the cache
 * holds other ones that were there before. */
enum model_step model_cache_fetch(struct model *, struct model_channel *,
                                  enum model_cache, uint64_t at,
                                  const uint8_t *p, uint64_t n,
                                  const char *what);
void model_cache_drop(struct model *, enum model_cache);

/* fault.c: stop the channel's group. */
enum model_step model_fault_mmu(struct model *, struct model_channel *,
                                uint64_t address, uint32_t access);
enum model_step model_stray(struct model *, struct model_channel *,
                            const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* What the path's check reports with the fault that follows. */
void model_report(struct model *, const struct model_channel *, const char *fmt,
                  ...) __attribute__((format(printf, 3, 4)));

#endif
