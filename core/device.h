/* SPDX-License-Identifier: ISC */
#ifndef CORE_DEVICE_H
#define CORE_DEVICE_H
/*
 * A device's record. Made by core/make.c, ended by core/stop.c; what outlives
 * stop is what frees, locations and rig_nv_signaled read.
 *
 *   make ----> live ----stop----> stopped ----release----> gone
 *
 * Threads: the fields are immutable from make to stop but for those that say
 * otherwise.
 */
#include "core/abi/rm.h"
#include "core/clock.h"
#include "core/image.h"
#include "core/local.h"
#include "growth/growth.h"
#include "paths/path.h"
#include "rings/rings.h"
#include "rings/validate.h"

/* What a device's rings hold, and where their counts start: tests use small
 * rings and counts about to wrap. */
struct device_sizes {
  uint32_t entries;       /* of a channel's ring */
  uint32_t segment_bytes; /* of its segment ring */
  uint32_t in_flight;     /* values, a power of two, at least 2 */
  uint32_t start_entries; /* a multiple of entries */
  uint32_t start_units;
  uint64_t start_joins;
  uint32_t launch_bytes; /* of the launch ring; 0: none */
  uint32_t start_launch;
};

/* 262,144 entries, 1 MiB twice, 32,768 values, counts from 0. */
void device_sizes_init(struct device_sizes *);

/* rig_nv_make with rings of these sizes. */
int device_make_sized(const struct rig_nv_path *, const struct rig_nv_options *,
                      const struct device_sizes *, struct rig_nv **);

/* Memory of the device that its caller holds, or of its own. */
struct rig_nv_region {
  struct rig_nv_region *next; /* of a stack of the device's */
  uint64_t after;             /* core/later.c: freed once it is reached */
  struct rig_nv *device;
  struct rig_nv_memory memory;
  enum rig_memory kind;
  bool own_word;
  bool allocated;  /* by rig_nv_alloc */
  uint32_t on_bus; /* a PCI function was told where it lies (ck_pr) */
  struct rig_nv_region *viewed; /* of another device, or NULL: no view */
  uint64_t views;               /* of it that live (ck_pr) */
};

/* Who looks at the word for all that wait: core/wait.c. */
struct device_watch {
  uint32_t held;     /* 1 while a thread watches (ck_pr) */
  uint32_t epoch;    /* a futex: how often the word was seen to move, or the
                      * watch to end (ck_pr) */
  uint32_t sleepers; /* threads that sleep on it, or are about to (ck_pr) */
};

/* Why the device is lost: core/lost.c. */
enum { LOSS_NONE, LOSS_WRITING, LOSS_KNOWN };

struct device_loss {
  uint32_t state; /* (ck_pr) the rest does not change once it is LOSS_KNOWN */
  enum rig_nv_error error; /* FAULT, or STALLED */
  char cause[1024];        /* as long as rig_nv_why keeps */
};

/* What enum rig_nv_mode becomes: POST once the device is lost, and any once it
 * is stopped. A post looks at nothing else. */
enum { MODE_LOST = RIG_NV_POST + 1, MODE_STOPPED };

struct rig_nv {
  const struct rig_edge *edge; /* first: rig_facts.edge */
  struct rings rings;
  struct growth growth; /* what the rings lie in */
  const struct rig_nv_path *path;
  const struct abi_rm_layout *layout;
  struct rig_nv_allocator host; /* the caller's, or aligned_alloc and free */
  struct rig_facts facts;
  char arch[16];
  struct rig_nv_memory joins;     /* a Pinned page: the two join words */
  struct rig_nv_memory word_map;  /* of the caller's array, or none */
  struct rig_nv_region *own_word; /* or NULL; freed by its holder or release */
  struct rig_nv_region *staging;  /* one that is free, or NULL (ck_pr) */
  struct rig_nv_region *stuck;    /* staging regions that work may still use,
                                   * until stop: a stack (ck_pr) */
  struct rig_nv_region *later;    /* core/later.c: a stack (ck_pr) */
  uint32_t mode;                  /* enum rig_nv_mode, latched (ck_pr) */
  struct device_loss loss;
  struct device_watch watch;
  uint64_t regions;          /* that the caller holds (ck_pr) */
  struct flush_source flush; /* for devices that view Mapped memory */
  struct clock clock;        /* of the GPU's timer */
  struct local local;
  struct images images;
  uint32_t stopped; /* 0 or 1 (ck_pr) */
  bool owed;        /* the word, by a stop that left channels */
  bool records;     /* growth's records stay for that, until release */
  uint64_t last;    /* once a word of its own is freed: what it read */
};

/* Host memory by the device's hooks: zeroed, or NULL with rig_nv_why set. */
void *device_host_alloc(const struct rig_nv_allocator *, size_t align,
                        size_t n);

/* 0; INVALID: the thread holds a lock; REFUSED: the device is stopped. */
int device_live(const struct rig_nv *);
/* The same, and LOST. */
int device_enter(const struct rig_nv *);

/* Keeps the thread's last failure as why the device is lost, where e is FAULT
 * or STALLED, the device is not stopped, and it is the first. Returns e. */
int device_lose(struct rig_nv *, int e);
/* 0, or LOST with the first cause. */
int device_lost(const struct rig_nv *);
/* 0, or FAULT with the first cause, where that is a fault. */
int device_faulted(const struct rig_nv *);

/* Whether the device runs in the mode; latches it where none is. Never POST
 * where it is lost, nor any where it is stopped. */
bool mode_latch(struct rig_nv *, enum rig_nv_mode);

/* The record of a region of the kind, with no memory; NULL with rig_nv_why
 * set. region_discard undoes it, region_live counts it in, with its memory. */
struct rig_nv_region *region_new(struct rig_nv *, enum rig_memory);
void region_discard(struct rig_nv_region *);
void region_live(struct rig_nv_region *);

/* A region of the kind. The errors of paths/call.h; HOST_MEMORY. */
int region_make(struct rig_nv *, enum rig_memory, uint64_t n,
                struct rig_nv_region **);
/* Gives it back whatever the path says, or keeps memory that is on the bus.
 * 0, or FAULT: the path kept it. */
int region_end(struct rig_nv_region *);

/* 0, or INVALID: the thread holds a lock, it is not the device's, it has
 * views, or it is the device's word, whose last value work may yet write. */
int region_may_end(const struct rig_nv *, const struct rig_nv_region *);

/* Frees the regions whose value is reached, or all of them. 0, or the last
 * FAULT. */
int later_free(struct rig_nv *, bool all);
/* How many there are, with no other call in flight. */
uint64_t later_count(const struct rig_nv *);

/* FAULT with the report, once a notifier holds an error or the path has one;
 * else 0. `ask` the path also while no notifier is set. */
int device_fault(const struct rig_nv *, bool ask);

/* Doorbells rung so far, while no thread submits. */
uint64_t device_bells(const struct rig_nv *);

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t device_now(void);
/* Sleeps for less than a second. */
void device_nap(uint64_t ns);
#endif
