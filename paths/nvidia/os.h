/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_OS_H
#define PATHS_NVIDIA_OS_H
/*
 * The system calls that the path makes, as a table, so that a test can put a
 * kernel driver of its own behind them. The functions return 0, or what they
 * say, or a negative errno. A function that fails has changed nothing.
 *
 * Threads: any.
 */
#include <stddef.h>
#include <stdint.h>

struct nvidia_os {
  void *ctx;
  /* A file descriptor, for reading and writing, closed by exec. */
  int (*open)(void *ctx, const char *path);
  int (*close)(void *ctx, int fd);
  /* Calls again where a signal came between. `bytes` is of what arg points
   * to. */
  int (*ioctl)(void *ctx, int fd, uint32_t request, void *arg, size_t bytes);
  /* Maps n bytes of fd from its start, readable, writable and shared, which a
   * forked child does not inherit; of new memory where fd is -1. */
  int (*map)(void *ctx, int fd, size_t n, void **p);
  int (*unmap)(void *ctx, void *p, size_t n);
  /* Reads a file of less than n bytes as a string. */
  int (*read)(void *ctx, const char *path, char *text, size_t n);
  /* Calls each(arg, name) for every name in the folder, in any order, until
   * it returns other than 0, which is then returned. */
  int (*list)(void *ctx, const char *folder,
              int (*each)(void *arg, const char *name), void *arg);
};

/* This system. */
extern const struct nvidia_os nvidia_os;
#endif
