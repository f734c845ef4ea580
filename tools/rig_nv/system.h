/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_SYSTEM_H
#define TOOLS_RIG_NV_SYSTEM_H
/*
 * system: what Linux tells of a machine's NVIDIA GPUs in files, read below a
 * folder that stands for its root, so that a test can make one up. Nothing is
 * written. Paths are absolute, as on the machine.
 *
 *   /sys/bus/pci/devices/BUS/   vendor, class, device, driver, iommu_group
 *   /sys/module/NAME/           or /proc/modules: what is loaded
 *   /proc/devices               majors of device files
 *   /proc/driver/nvidia/        version; gpus/BUS/information: minors
 *
 * A test has no device files, so it puts functions of its own for them into
 * `node` and `files.open`. Threads: one at a time.
 */
#include "paths/nvidia/nvidia.h"

struct system_node {
  bool device; /* of characters */
  unsigned major, minor, mode, user, group;
};

struct system {
  const char *root;               /* "" of this machine */
  struct nvidia_os files;         /* this machine's calls, below the root */
  const struct nvidia_os *driver; /* what the path opens a GPU with */
  unsigned user;                  /* who this process runs as */
  /* 0, or a negative errno. */
  int (*node)(const struct system *, const char *path, struct system_node *);
};

/* Not to be moved: `files` points to it. */
void system_init(struct system *, const char *root);

bool system_has(const struct system *, const char *path);
/* The file as a string, in n bytes. False where it cannot be read, or has more
 * of them. */
bool system_text(const struct system *, const char *path, char *text, size_t n);
/* How many names of the folder are `prefix` and a number, and in *least the
 * least number of those from *least on. -1: there is no such folder. */
int system_numbered(const struct system *, const char *folder,
                    const char *prefix, unsigned *least);

enum system_loaded { SYSTEM_ABSENT, SYSTEM_LOADED, SYSTEM_UNTOLD };
enum system_loaded system_module(const struct system *, const char *name);

/* The major of device files of the name in /proc/devices; 0: it has none of
 * it; -1: it cannot be read. */
int system_major(const struct system *, const char *name);

/* The version of NVIDIA's kernel driver, such as "580.159.04". */
bool system_version(const struct system *, char version[64]);

struct system_gpu {
  char bus[NVIDIA_BUS];
  char device[8];  /* its PCI device id, "0x2335"; "?" untold */
  char driver[32]; /* that holds it; "" none */
  char iommu[16];  /* its group; "" none */
  int minor;       /* of its /dev/nvidiaN; -1 untold */
};

enum { SYSTEM_GPUS = 64 };

/* GPU i of the machine in gpus[i], as nvidia_gpus numbers them. */
size_t system_gpus(const struct system *, struct system_gpu gpus[SYSTEM_GPUS]);
#endif
