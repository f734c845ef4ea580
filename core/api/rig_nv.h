/* SPDX-License-Identifier: ISC */
#ifndef RIG_NV_H
#define RIG_NV_H
/*
 * rig_nv: the driver of NVIDIA GPUs, from user mode and with no CUDA.
 *
 * A device is one NVIDIA GPU reached by a path. It owns two hardware channels,
 * one for compute and one for copies, and hands them work with plain stores
 * and one doorbell:
 *
 *      rig_nv_room, rig_nv_submit         stores only
 *            |               |
 *            v               v
 *     COMPUTE channel    COPY channel     ring entries name words
 *            |               |
 *            +-- release v --+
 *                    |
 *                    v
 *              timeline word              rig_nv_signaled, sleep, wait
 *
 * A device lives from rig_nv_make to rig_nv_stop, and what its caller still
 * holds of it, its regions and its word, to rig_nv_release.
 *
 * Errors: functions return 0, or the negative of an enum rig_nv_error with
 * the reason in rig_nv_why. INVALID changed nothing.
 *
 * A FAULT that a call answers before stop, and a STALLED of rig_nv_wait, lose
 * the device, and the reason is kept. From then on the functions that allocate,
 * map, move memory, load code, post or wait answer LOST with that first reason,
 * and a thread that waits does so within milliseconds; rig_nv_sleep answers
 * FAULT with it where it was a fault. rig_nv_room and rig_nv_submit go on. What
 * is left to do is rig_nv_stop. Frees, rig_nv_unload and rig_nv_signaled work
 * as ever.
 *
 * Threads: any thread may call any function, at the same time as others,
 * within the rules each states. No function is a cancellation point, and none
 * may be left by longjmp. Entry points that may take a lock are refused with
 * INVALID where the calling thread holds one (core/lock_order).
 */
#include "rig_edge.h"
#include "rig_nv_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct rig_nv;
struct rig_nv_region;
struct rig_nv_path;

enum rig_nv_error {
  RIG_NV_FAULT = 1,   /* the device faulted */
  RIG_NV_INVALID,     /* an argument or a state; nothing was changed */
  RIG_NV_NO_MEMORY,   /* the GPU or the host lacks the memory */
  RIG_NV_SHORT,       /* a growth lacks memory */
  RIG_NV_REFUSED,     /* the path or its resource manager refused */
  RIG_NV_LOST,        /* the device was lost before, for the same reason */
  RIG_NV_TIMEOUT,     /* the deadline passed */
  RIG_NV_STALLED,     /* the word stood still for the bound */
  RIG_NV_NEVER,       /* the parts fit no rings of this device */
  RIG_NV_HOST_MEMORY, /* the host allocator failed */
  RIG_NV_ABSENT       /* no such name */
};

/* The reason of the calling thread's last failure; "" before the first. It
 * stays until the thread's next failure. */
RIG_PUBLIC const char *rig_nv_why(void);

/* Host memory for the device's own records. alloc returns n bytes aligned to
 * `align`, a power of two, or NULL; release gets what alloc gave. Any thread
 * may call either. */
struct rig_nv_allocator {
  void *(*alloc)(void *ctx, size_t align, size_t n);
  void (*release)(void *ctx, void *p, size_t n);
  void *ctx;
};

/* Who gives out values. TURN: the caller, by rig_nv_submit, one thread at a
 * time. POST: the device, by rig_nv_post, to any thread. LATCH: whichever of
 * the two is called first. The other one is then refused, nothing written. */
enum rig_nv_mode { RIG_NV_LATCH, RIG_NV_TURN, RIG_NV_POST };

/* Where a ring lies: in host memory, or in the GPU's behind the memory BAR.
 * AUTO is what was measured to be fastest on the path, and the host's where
 * the BAR lacks room; growth/place.h has both. */
enum rig_nv_place { RIG_NV_AUTO, RIG_NV_HOST, RIG_NV_BAR };

struct rig_nv_options {
  size_t size; /* sizeof of this structure: rig_nv_options_init */
  enum rig_nv_mode mode;
  uint64_t *word; /* the timeline word, 8-byte aligned, or NULL */
  void *words;    /* the array that it lies in, page-aligned, or NULL */
  size_t words_bytes;
  bool boost; /* ask for the GPU's highest clocks (default) */
  int userd_at, ring_at, segment_at, launch_at; /* enum rig_nv_place */
  const struct rig_nv_allocator *allocator;     /* NULL: aligned_alloc */
};

/* Fills in the defaults: no word given, boost on, everything else 0. */
RIG_PUBLIC void rig_nv_options_init(struct rig_nv_options *);

/* Makes the device of the GPU that the path reaches: a channel group, its two
 * channels and their memory. options NULL is the defaults.
 *
 * Where options.word lies in options.words, the channels write that word: the
 * device maps the 64 KiB of the array that hold it. Elsewhere, and on a path
 * that maps no host memory, the word is 8 bytes of the device's own Pinned
 * memory (facts.own_word). It starts at the given word's value, 0 where none
 * is given, and the device's values start after it.
 *
 * It measures the GPU's timer, the clock of stamps, against CLOCK_MONOTONIC.
 *
 * INVALID for options that break the above; REFUSED for a release of the
 * resource manager whose parameters this version does not know, before any
 * call, for what the path refuses or fails at, and for a timer that cannot be
 * read; NO_MEMORY where it lacks memory; HOST_MEMORY. A failed make gives
 * everything back, or rig_nv_why says what stays. */
RIG_PUBLIC int rig_nv_make(const struct rig_nv_path *,
                           const struct rig_nv_options *, struct rig_nv **);

/* Stops the device and waits for none of its work. No other call on it may be
 * in flight. `fault` is why it was lost, or NULL; it is not kept. The word
 * then reads, or comes to read, the last value submitted: it comes to where the
 * channels could not be ended, and as their work ends. Free regions and unload
 * images only once it reads that. Frees, location and rig_nv_signaled stay.
 *
 * A second call returns 0 and asks nothing of the path. It writes the last
 * value where the channels could not be ended and have both faulted since.
 * FAULT: a free of the device's own memory failed, which the device kept; it
 * is stopped all the same. INVALID: called with a lock held. */
RIG_PUBLIC int rig_nv_stop(struct rig_nv *, const char *fault);

/* Gives back what outlives stop. INVALID before stop, while regions that the
 * caller did not free or images that it did not unload live, and while a word
 * of the device's own, which goes with it, is viewed or has not reached the
 * last value. FAULT: the path kept memory; the device is gone all the same. */
RIG_PUBLIC int rig_nv_release(struct rig_nv *);

RIG_PUBLIC const struct rig_facts *rig_nv_facts(const struct rig_nv *);
RIG_PUBLIC const struct rig_nv_gpu *rig_nv_capability(const struct rig_nv *);

/* n bytes of the memory: Device is the GPU's alone, Pinned is host memory
 * that both address, Mapped is the GPU's and the host addresses it through
 * the GPU's BAR. n > 0, a multiple of 4. Addresses are aligned to
 * facts.alignment.
 * INVALID; NO_MEMORY; FAULT; REFUSED after stop. */
RIG_PUBLIC int rig_nv_alloc(struct rig_nv *, enum rig_memory, uint64_t n,
                            struct rig_nv_region **);

/* Maps the n bytes of host memory at p, which starts a page: the whole pages
 * that hold them stay mapped until the region is freed. *mapping says what
 * came of it; *region is set where it is RIG_MAPS, and the call returns 0.
 * REFUSED with RIG_NEVER_MAPS, NO_MEMORY with RIG_NO_ROOM; INVALID, FAULT. */
RIG_PUBLIC int rig_nv_map_host(struct rig_nv *, void *p, uint64_t n,
                               enum rig_mapping *mapping,
                               struct rig_nv_region **region);

/* Whether this device maps Device memory of the other: paths of one key
 * opened both, and this one's GPU reaches the other's memory. Never of a
 * device and itself. It stays so once either is stopped. */
RIG_PUBLIC bool rig_nv_peer(const struct rig_nv *, const struct rig_nv *other);

/* Maps for this device the memory of a region of the other one, which alloc
 * or map_host made there or which is its word's (facts.own_word): *view is a
 * region of this device, of the same kind and bytes. The view is freed before
 * the region. *mapping says what came of it, as in map_host.
 *
 * A view of Mapped memory has this device's later submissions read the other
 * GPU's flush word, so that the host's stores to that memory reach it before
 * their work, until the other device stops. NO_MEMORY with RIG_NO_ROOM where
 * this device views Mapped memory of 64 other devices; REFUSED with
 * RIG_NEVER_MAPS for Mapped memory of a stopped device.
 *
 * INVALID: the device itself; a device of another key; not a region of the
 * other device; a view. REFUSED and NO_MEMORY as the path answers, FAULT;
 * REFUSED once this device is stopped. */
RIG_PUBLIC int rig_nv_map_peer(struct rig_nv *, struct rig_nv *other,
                               struct rig_nv_region *,
                               enum rig_mapping *mapping,
                               struct rig_nv_region **view);

/* Gives back a region of this device once none of its work uses it; also
 * after stop. FAULT: the path failed, and keeps the memory; the region is
 * gone. INVALID: not a region of this device, other devices' views of it
 * live, a lock is held, or it is the device's word and the device is not
 * stopped or the word not at the last value. */
RIG_PUBLIC int rig_nv_free(struct rig_nv *, struct rig_nv_region *);

/* The same, once v is reached: at once where it is, else at the device's next
 * allocation or call of this function after that, or by rig_nv_release. The
 * region is the device's from the call on. FAULT: a free that had waited
 * failed, and the path kept that memory; this region waits all the same. */
RIG_PUBLIC int rig_nv_free_after(struct rig_nv *, struct rig_nv_region *,
                                 uint64_t v);

/* Where the region lies, for as long as it lives. */
RIG_PUBLIC struct rig_location rig_nv_locate(const struct rig_nv_region *);

/* How the PCI function at the bus address fn of this machine, such as
 * "0000:41:00.0", reaches all bytes of a region that rig_nv_alloc made. The
 * memory stays where it is. Once a bus address was given, it is never given
 * back: it stays out of any other allocation, and the path in use, until the
 * process exits, whatever is freed, stopped or released. The file of a DMA
 * buffer is the caller's to close: until then the memory lives, whatever is
 * freed, stopped, released or closed, and counts as allocated.
 * REFUSED with the cause, and fn where that is no function's address; INVALID:
 * another region, or no fn; NO_MEMORY, FAULT; REFUSED after stop. */
RIG_PUBLIC int rig_nv_dma(struct rig_nv *, struct rig_nv_region *,
                          const char *fn, struct rig_dma *);

/* Moves n bytes between host memory and the region, from byte `at` of it, and
 * returns once they are moved. Staged through Pinned memory of the device's
 * own, by submissions where the host does not address the region.
 *
 * In turn mode only the turn's holder may call them: they take the next
 * values, and every value is reached as they return 0, so the caller's next
 * one is rig_nv_signaled + 1. In post mode any threads may, at the same time.
 * INVALID: a range outside the region. NO_MEMORY; FAULT; STALLED: the word
 * stood still for hang_ms, or a minute where the path states none. After one of
 * these two, or LOST, work may still use the region, and it is to be freed
 * after stop alone. */
RIG_PUBLIC int rig_nv_upload(struct rig_nv *, struct rig_nv_region *,
                             uint64_t at, const void *, uint64_t n);
RIG_PUBLIC int rig_nv_download(struct rig_nv *, const struct rig_nv_region *,
                               uint64_t at, void *, uint64_t n);

/* ---- images ---- */

struct rig_nv_image; /* a cubin that a device loaded */

/* What a launch of a function names, until its image is unloaded. */
struct rig_nv_function {
  uint64_t code;      /* struct rig_launch's code */
  const void *launch; /* and launch */
  uint32_t params;    /* bytes of parameters that it reads */
  uint32_t threads;   /* the most of a group */
};

/* Takes the n bytes of a cubin, which it copies. *place_bytes is what the code
 * takes of a region. The image knows nothing of the GPU's memory yet:
 *
 *   load, alloc place_bytes, lay, upload, entry, submit launches
 *
 * INVALID, with the section, symbol or attribute: no cubin that this library
 * reads, such as one that refers to device functions of CUDA's driver (printf,
 * assert); one of another architecture than the device's; a device whose
 * launches are not known. HOST_MEMORY; REFUSED once the device is stopped. */
RIG_PUBLIC int rig_nv_image_load(struct rig_nv *, const void *cubin, size_t n,
                                 uint64_t *place_bytes, struct rig_nv_image **);

/* Writes to out the place_bytes bytes that the caller uploads to the start of
 * the region, relocated for its address. They are the caller's, and so is the
 * region, which stays until the image is unloaded. The device's next work on
 * COMPUTE:0 first invalidates the caches, since other code may have been
 * there. An image may be laid again, elsewhere, until an entry or a prepare of
 * it made a function ready: entries hold addresses. It waits for the threads
 * that are in rig_nv_room, rig_nv_submit or rig_nv_post, and so does a growth
 * of local memory.
 *
 * INVALID, and out may be written: that; a region of another device, or too
 * small. REFUSED once the device is stopped. */
RIG_PUBLIC int rig_nv_image_lay(struct rig_nv_image *,
                                const struct rig_nv_region *, void *out);

/* The image's function of that name, made ready: launches of it allocate
 * nothing. The first call may block, as the device's local memory grows to
 * what the function's stack takes; a later one makes nothing and answers the
 * same. It waits for a prepare of the function.
 *
 * ABSENT: there is none of that name. INVALID: the function takes more than a
 * launch can, with the reason; the image was not laid. SHORT: the GPU lacks
 * *need bytes of local memory. HOST_MEMORY, REFUSED; FAULT, as
 * rig_nv_local. After any of these nothing was made. */
RIG_PUBLIC int rig_nv_entry(struct rig_nv_image *, const char *name,
                            struct rig_nv_function *, uint64_t *need);

/* Starts what rig_nv_entry makes and returns without waiting for it, so that
 * several functions are made ready at once. It reports nothing, failures
 * included, and leaves rig_nv_why as it was: the next rig_nv_entry of the
 * function answers as if it made it itself. It starts nothing for a function
 * that has an entry or a started prepare, before rig_nv_image_lay, with eight
 * of the image running, and where the system has no thread. rig_nv_unload and
 * rig_nv_stop wait for what it started. */
RIG_PUBLIC void rig_nv_prepare(struct rig_nv_image *, const char *name);

/* Ends the image and its entries, once no work that launches them can run;
 * also after stop. Its region is the caller's. INVALID: no image of this
 * device, or a lock is held. */
RIG_PUBLIC int rig_nv_unload(struct rig_nv *, struct rig_nv_image *);

/* Grows the local memory of kernels until each thread has bytes_per_thread:
 * its stack, and 576 bytes beyond it. It takes effect with the device's next
 * work on COMPUTE:0. What it replaces goes back once no work uses it, at the
 * device's next allocation or growth of local memory, or as it stops.
 *
 * 0, also where the threads have as much. SHORT: the GPU lacks *need bytes.
 * INVALID from 2^40 bytes on; HOST_MEMORY; REFUSED, also once the device is
 * stopped. FAULT: the path failed, or it kept a replaced piece. Whatever fails
 * has grown nothing. */
RIG_PUBLIC int rig_nv_local(struct rig_nv *, uint64_t bytes_per_thread,
                            uint64_t *need);

/* Whether the submission fits now (enum rig_room). Writes nothing; any threads
 * at once. In turn mode the turn's holder asks it before each submit. Lock-
 * free: it looks again only where another thread submitted meanwhile. */
RIG_PUBLIC enum rig_room rig_nv_room(void *self, const struct rig_submission *);

/* Submits the work of v, which is the last value plus 1, after room answered
 * RIG_FITS for it: RIG_COMMITTED. RIG_FAILED with *failure, nothing written
 * and the device not lost: v is not the next value; room would not answer
 * RIG_FITS; more waits than facts.most_waits; a wait that is no word, is
 * misaligned, is at 2^40 or above, or asks this device's word for v or
 * later; post mode. */
RIG_PUBLIC enum rig_done rig_nv_submit(void *self, uint64_t v,
                                       const struct rig_submission *,
                                       const char **failure);
/* Posts the work as the next value, in post mode: any threads, at the same
 * time, with no turn. 0 with *v, and then the work runs once the threads now
 * in these functions have gone on; an enum rig_room above 0, nothing written:
 * RIG_LATER, RIG_NEVER, RIG_GROW; -RIG_NV_INVALID, nothing written: the waits
 * that rig_nv_submit refuses, turn mode; -RIG_NV_LOST, -RIG_NV_REFUSED once
 * stopped, likewise.
 *
 * Between the taking of the value and its publication the thread may not be
 * cancelled, leave by longjmp or fork, nor a signal handler of it call these
 * functions and wait: the values after it would wait with it. */
RIG_PUBLIC int rig_nv_post(struct rig_nv *, const struct rig_submission *,
                           uint64_t *v);
/* The same, and waits while the answer is RIG_LATER: TIMEOUT once the time
 * deadline_ns of CLOCK_MONOTONIC has passed, FAULT, STALLED as rig_nv_wait. */
RIG_PUBLIC int rig_nv_post_wait(struct rig_nv *, const struct rig_submission *,
                                uint64_t deadline_ns, uint64_t *v);

/* Growth. Rings that get larger while every thread goes on submitting.
 *
 * rig_nv_room and rig_nv_post answer RIG_GROW for parts that take more of a
 * ring than it holds: entries of a channel's ring, words of the driver's in a
 * channel's segment ring, descriptors and constant banks in the launch ring.
 * rig_nv_grow makes what the parts lack that the calling thread was last
 * answered RIG_GROW for, on this device; rig_nv_grow_for what these parts
 * lack. Once either has returned 0, no thread is answered RIG_GROW for them
 * again, whatever else grows.
 *
 * A segment or launch ring is made anew: the least power of two of bytes, at
 * least a page, that holds twice what the parts take. The next submission
 * starts on it. For entries both channels are made anew, in a channel group of
 * their own: each ring is the least power of two of entries that holds twice
 * what the parts take, at most 2^31, and no smaller than before. Then every
 * submission is answered RIG_LATER until every value before is reached, and
 * the next starts on the new channels; in turn mode a submit that room has
 * answered RIG_FITS for goes first. Replaced rings go back at the device's
 * next growth or rig_nv_alloc after their values are reached; those that the
 * device opened with, channels excepted, and the channels of a resource
 * manager that frees none, at stop.
 *
 * 0 and the parts fit once there is room; SHORT with *need bytes that lack:
 * what was made stays, and the next ask goes on from there. FAULT: a give-back
 * failed, also where it would be SHORT, or the path refused or failed; NEVER:
 * parts that no growth helps; HOST_MEMORY. INVALID: no such RIG_GROW, or the
 * thread holds a lock. REFUSED after stop. Any threads, at the same time; one
 * grows while the others wait for it. */
RIG_PUBLIC int rig_nv_grow(struct rig_nv *, uint64_t *need);
RIG_PUBLIC int rig_nv_grow_for(struct rig_nv *, const struct rig_submission *,
                               uint64_t *need);
/* rig_nv_post_wait, and grows where the answer is RIG_GROW: four times at most,
 * waiting for the values so far in between, then NO_MEMORY with the bytes in
 * rig_nv_why. The errors of rig_nv_grow and of rig_nv_post_wait. */
RIG_PUBLIC int rig_nv_post_grow(struct rig_nv *, const struct rig_submission *,
                                uint64_t deadline_ns, uint64_t *v);

/* Does nothing: RIG_OK. Submitted work runs as its channels fetch it. */
RIG_PUBLIC enum rig_done rig_nv_commit(void *self, uint64_t v,
                                       const char **failure);

/* Converts the stamps of timed submissions; this version takes none: RIG_OK. */
RIG_PUBLIC enum rig_done rig_nv_settle(void *self, const char **failure);

/* The value in the device's word, with acquire order: what the work of values
 * up to it wrote is visible. Never fails, never blocks; also after stop. */
RIG_PUBLIC uint64_t rig_nv_signaled(const struct rig_nv *);

/* Returns 0 once the word differs from seen, at once where it does, and at
 * the latest after still_ms milliseconds (below 0: none given, 1,000). It
 * looks every millisecond. FAULT once the device has faulted: rig_nv_why has
 * the path's report, or a line for each error. */
RIG_PUBLIC int rig_nv_sleep(struct rig_nv *, uint64_t seen, int64_t still_ms);

/* Waits until v is reached. deadline_ns is a time of CLOCK_MONOTONIC;
 * UINT64_MAX is none. 0, also of a lost device where v is reached; TIMEOUT;
 * STALLED once the word stood still for the path's hang_ms; FAULT; LOST. */
RIG_PUBLIC int rig_nv_wait(struct rig_nv *, uint64_t v, uint64_t deadline_ns);

/* Pays ahead what the calling thread's first submission costs beyond stores:
 * it registers the thread for read-copy-update, which allocates and makes
 * system calls. rig_nv_make pays it for its caller. */
RIG_PUBLIC void rig_nv_thread_enter(void);

/* For a thread that submits no more. The registration ends with the thread,
 * as no sooner end is known; a later submission is as cheap as before. */
RIG_PUBLIC void rig_nv_thread_leave(void);

/* The first of the GPU addresses at which kernels see their local and shared
 * memory, which end at 2^40. A path gives no memory there. */
#define RIG_NV_WINDOWS ((UINT64_C(1) << 40) - (UINT64_C(8) << 30))

/* Whether a PCI function is an NVIDIA GPU: vendor 0x10de, base class 0x03 of
 * the 24-bit class code. */
RIG_PUBLIC bool rig_nv_is_gpu(uint32_t vendor, uint32_t class24);

/* The model: a GPU in software. */
enum rig_nv_personality {
  RIG_NV_LIKE_KERNEL, /* objects are freed one by one, stop answers Unknown */
  RIG_NV_LIKE_PCI     /* nothing is freed before stop, which answers Stopped */
};

struct rig_nv_model_options {
  size_t size; /* sizeof of this structure: rig_nv_model_options_init */
  enum rig_nv_personality personality;
  int release;   /* of the resource manager: 580 */
  uint64_t seed; /* of every choice that hardware is free to make */
  struct rig_nv_gpu gpu;
  uint64_t device_bytes, mapped_bytes, host_bytes; /* what each kind holds */
  int64_t hang_ms;                                 /* -1 none */
  bool maps_host;
  uint64_t drop_copy;  /* the n-th copy launch writes nothing; 0 none */
  int index;           /* the GPU's number, -1 the lowest that is free */
  bool no_peers;       /* it reaches no other GPU */
  uint64_t peer_bytes; /* of other GPUs' memory, the most that it maps */
  bool posts_writes;   /* for tests: the GPU sees what the host stored to Mapped
                        * memory only once the host read the flush word */
  bool poisons;        /* overwrites what it fetched from the driver's block */
  int64_t timer_ahead; /* of its timer, ahead of CLOCK_MONOTONIC at open: ns;
                        * the default is about the time since 1970 */
  int timer_ppm;       /* by which that timer's rate is off; 1000 at most */
};

/* A GPU like an H200 under a 580 driver, with 1 GiB of each memory. */
RIG_PUBLIC void rig_nv_model_options_init(struct rig_nv_model_options *);

/* Opens the model. options NULL is the defaults. INVALID, HOST_MEMORY. */
RIG_PUBLIC int rig_nv_path_model(const struct rig_nv_model_options *,
                                 const struct rig_nv_path **);

/* A GPU of this machine, through NVIDIA's kernel driver. */
struct rig_nv_nvidia_options {
  size_t size; /* sizeof of this structure: rig_nv_nvidia_options_init */
  int gpu;     /* its number, in bus order; -1 the first that opens (default) */
};

RIG_PUBLIC void rig_nv_nvidia_options_init(struct rig_nv_nvidia_options *);

/* Opens the GPU, for this process: one path a GPU at a time, and no use of it
 * in a forked child. options NULL is the defaults. ABSENT: there is no such
 * driver or no such GPU. REFUSED: the release of the driver is none of 570,
 * 580 and 610, before any other call; the driver refused a call. NO_MEMORY;
 * HOST_MEMORY; INVALID: the GPU is open. rig_nv_path_close also answers FAULT,
 * the path closed all the same, where the driver refused to give back. */
RIG_PUBLIC int rig_nv_path_nvidia(const struct rig_nv_nvidia_options *,
                                  const struct rig_nv_path **);

/* A launch that the model runs, as its descriptor and its constant banks hold
 * it: grid and group are the descriptor's sizes, bank_grid and bank_group what
 * bank 0 says of them, which is what a GPU's kernel reads. Banks are copies,
 * gone once the kernel returns, [0] with the parameters from params on; bytes
 * 0 is no such bank. */
struct rig_nv_model_launch {
  uint64_t descriptor, code; /* addresses */
  uint32_t grid[3], group[3], bank_grid[3], bank_group[3];
  uint32_t shared; /* bytes of a group: reserved, its own and dynamic ones */
  uint32_t local;  /* bytes of a thread */
  uint32_t registers, barriers;
  const void *params;
  uint32_t params_bytes; /* to the end of bank 0, which ends in units of 16 */
  struct {
    const void *at;
    uint32_t bytes;
  } bank[8];
  void *model; /* the model's own */
};

/* A kernel: does the work of the whole launch. It runs in the model's thread
 * with its lock held, so it waits for nothing, and it calls no function of this
 * library but the next two. */
typedef void rig_nv_model_kernel(const struct rig_nv_model_launch *, void *ctx);

/* Between the launch's kernel and the GPU's memory, n bytes at GPU address
 * `at`. The memory is read as it is as the launch starts, with what the launch
 * itself wrote; what it writes others see once it has ended. So there are no
 * atomic operations on what launches that run at once share. false: an address
 * that no memory has; the launch faults once the kernel returns. */
RIG_PUBLIC bool rig_nv_model_read(const struct rig_nv_model_launch *,
                                  uint64_t at, void *, uint64_t n);
RIG_PUBLIC bool rig_nv_model_write(const struct rig_nv_model_launch *,
                                   uint64_t at, const void *, uint64_t n);

/* Binds the kernel to the code at the GPU address: launches of that address
 * call fn with ctx. Their parameters begin at params_offset of bank 0. Binding
 * again replaces; fn NULL unbinds. Returns once no launch runs what was bound
 * before. INVALID: not a path of the model; nothing to unbind; HOST_MEMORY. */
RIG_PUBLIC int rig_nv_model_bind(const struct rig_nv_path *, uint64_t code,
                                 uint32_t params_offset,
                                 rig_nv_model_kernel *fn, void *ctx);

/* Closes a path that was opened by a function of this library, once its
 * device is released. INVALID while something of a device still holds it. */
RIG_PUBLIC int rig_nv_path_close(const struct rig_nv_path *);

#ifdef __cplusplus
}
#endif
#endif
