/* SPDX-License-Identifier: ISC */
#include "paths/nvidia/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static int os_open(void *ctx, const char *path) {
  (void)ctx;
  int fd;
  do
    fd = open(path, O_RDWR | O_CLOEXEC);
  while (fd < 0 && errno == EINTR);
  return fd < 0 ? -errno : fd;
}

/* Linux has closed the descriptor also where a signal came between. */
static int os_close(void *ctx, int fd) {
  (void)ctx;
  return close(fd) == 0 || errno == EINTR ? 0 : -errno;
}

static int os_ioctl(void *ctx, int fd, uint32_t request, void *arg,
                    size_t bytes) {
  (void)ctx, (void)bytes;
  int r;
  do
    r = ioctl(fd, (unsigned long)request, arg);
  while (r < 0 && errno == EINTR);
  return r < 0 ? -errno : 0;
}

/* A child that kept a mapping of the GPU's memory would keep it in reach once
 * it is somebody else's. */
static int os_map(void *ctx, int fd, size_t n, void **p) {
  (void)ctx;
  int flags = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
  void *at = mmap(NULL, n, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (at == MAP_FAILED)
    return -errno;
  if (madvise(at, n, MADV_DONTFORK) != 0) {
    int e = errno;
    munmap(at, n);
    return -e;
  }
  *p = at;
  return 0;
}

static int os_unmap(void *ctx, void *p, size_t n) {
  (void)ctx;
  return munmap(p, n) == 0 ? 0 : -errno;
}

static int os_read(void *ctx, const char *path, char *text, size_t n) {
  (void)ctx;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  size_t got = 0;
  ssize_t r = 0;
  while (got < n && (r = read(fd, text + got, n - got)) != 0) {
    if (r < 0 && errno != EINTR)
      break;
    got += r > 0 ? (size_t)r : 0;
  }
  int e = r < 0 ? -errno : got == n ? -EFBIG : 0;
  close(fd);
  if (e == 0)
    text[got] = '\0';
  return e;
}

static int os_list(void *ctx, const char *folder,
                   int (*each)(void *arg, const char *name), void *arg) {
  (void)ctx;
  DIR *d = opendir(folder);
  if (d == NULL)
    return -errno;
  int r = 0;
  errno = 0;
  for (struct dirent *at; r == 0 && (at = readdir(d)) != NULL; errno = 0)
    r = each(arg, at->d_name);
  if (r == 0 && errno != 0)
    r = -errno;
  closedir(d);
  return r;
}

const struct nvidia_os nvidia_os = {
    .open = os_open,
    .close = os_close,
    .ioctl = os_ioctl,
    .map = os_map,
    .unmap = os_unmap,
    .read = os_read,
    .list = os_list,
};
