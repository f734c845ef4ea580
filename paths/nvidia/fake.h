/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_FAKE_H
#define PATHS_NVIDIA_FAKE_H
/*
 * fake: a kernel driver behind struct nvidia_os, for tests with no GPU. It
 * keeps files, RM objects, mappings, UVM's ranges and registrations, takes
 * every structure apart by the rows of abi/testdata alone, and keeps the first
 * rule that a caller broke in `broken`:
 *
 *   an escape's request has the size and number of its release
 *   allocations are read at the RM's own size; control sizes are exact
 *   escapes go to /dev/nvidiactl, but memory of the host's to a GPU's file
 *   a file of a GPU holds one mapping, of the object that it was made for
 *   no object is freed that is mapped, by the host or by UVM
 *   a DMA buffer is of one whole object of a GPU's memory, by its own file
 *   UVM's ranges are whole pages, apart, and named as they were made
 *
 * It can fail the n-th call of all, and hold one in the middle while others go
 * on. Threads: any; the fields, and what is called between tests' threads, one.
 */
#include <pthread.h>

#include "core/abi/tsv.h"
#include "paths/nvidia/os.h"

enum { FAKE_MOST = 512, FAKE_GPUS = 4, FAKE_CLASSES = 12 };

enum fake_failure {
  FAKE_ERRNO,   /* ENOMEM */
  FAKE_STATUS,  /* an ioctl's status, NV_ERR_NO_MEMORY; else as ERRNO */
  FAKE_REFUSED, /* the same, NV_ERR_INVALID_ARGUMENT */
  FAKE_EIO
};

struct fake_gpu { /* a PCI function */
  const char *bus;
  uint32_t vendor, class24;
  bool driven; /* by NVIDIA's kernel driver */
  unsigned minor;
  bool opens;
  uint32_t classes[FAKE_CLASSES], nclasses, sm_version;
  uint64_t memory, bar; /* bytes that are left */
  uint32_t time_1;      /* of its timer, while it is mapped */
  uint32_t time_0;
};

struct fake_counts {
  size_t files, objects, mappings, ranges, gpu_maps, registrations, anonymous,
      peers, buffers;
};

struct fake {
  struct nvidia_os os;
  const char *version;
  int release;
  bool no_sysfs, no_driver, no_peers, nvlink, mm_by_other, no_dmabuf;
  size_t ngpus;
  struct fake_gpu gpus[FAKE_GPUS];

  unsigned calls, fail_at; /* the n-th call fails, from 1; 0 none */
  const char *fail_name;   /* calls of this name fail, as "UVM_FREE" */
  enum fake_failure failure;
  char failed[48]; /* the name of the call that failed */
  char broken[256];
  unsigned boosts;    /* PERF_BOOSTs */
  uint32_t map_flags; /* of the last RM_MAP_MEMORY */
  char log[16384];    /* the names of calls, a line each */

  struct tsv structs, constants;
  struct fake_state *state;
  pthread_mutex_t lock; /* one call runs */
  pthread_cond_t moved;
  const char *hold_name; /* the next call of this name is held */
  bool held;
};

/* The next call of this name is held as it begins, until fake_go. */
void fake_hold(struct fake *, const char *name);
/* Waits for it, 10 s at most; whether one is held. */
bool fake_held(struct fake *);
void fake_go(struct fake *);
/* How many calls there were, while others may be made. */
unsigned fake_calls(struct fake *);

/* An H200 at 0000:00:06.0 under 580.159.04, with 1 GiB of memory. */
void fake_init(struct fake *);
/* Ends what is left. */
void fake_end(struct fake *);
/* As though the process had just begun: counts of calls, the log. */
void fake_restart(struct fake *);
struct fake_counts fake_counts(const struct fake *);
bool fake_nothing(const struct fake *); /* all counts are 0 */
/* Whether a GPU address is mapped, to the memory of which object. */
uint32_t fake_reached(const struct fake *, uint64_t address, size_t gpu);
/* The bytes of a file that is a DMA buffer, or 0. */
uint64_t fake_buffer(const struct fake *, int fd);
/* The class of the RM's object, or 0. */
uint32_t fake_class(const struct fake *, uint32_t handle);
#endif
