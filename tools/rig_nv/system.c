/* SPDX-License-Identifier: ISC */
#include "tools/rig_nv/system.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { MOST_PATH = 4096, MOST_TEXT = 65536 };

static void below(const struct system *s, const char *path,
                  char full[MOST_PATH]) {
  snprintf(full, MOST_PATH, "%s%s", s->root, path);
}

static int below_open(void *ctx, const char *path) {
  char full[MOST_PATH];
  below(ctx, path, full);
  return nvidia_os.open(nvidia_os.ctx, full);
}

static int below_read(void *ctx, const char *path, char *text, size_t n) {
  char full[MOST_PATH];
  below(ctx, path, full);
  return nvidia_os.read(nvidia_os.ctx, full, text, n);
}

static int below_list(void *ctx, const char *folder,
                      int (*each)(void *arg, const char *name), void *arg) {
  char full[MOST_PATH];
  below(ctx, folder, full);
  return nvidia_os.list(nvidia_os.ctx, full, each, arg);
}

static int node(const struct system *s, const char *path,
                struct system_node *n) {
  char full[MOST_PATH];
  struct stat is;
  below(s, path, full);
  if (stat(full, &is) != 0)
    return -errno;
  *n = (struct system_node){.device = S_ISCHR(is.st_mode),
                            .major = major(is.st_rdev),
                            .minor = minor(is.st_rdev),
                            .mode = is.st_mode & 07777,
                            .user = is.st_uid,
                            .group = is.st_gid};
  return 0;
}

void system_init(struct system *s, const char *root) {
  *s = (struct system){
      .root = root, .files = nvidia_os, .user = geteuid(), .node = node};
  s->files.ctx = s;
  s->files.open = below_open;
  s->files.read = below_read;
  s->files.list = below_list;
  s->driver = &s->files;
}

bool system_has(const struct system *s, const char *path) {
  struct system_node n;
  return s->node(s, path, &n) == 0;
}

bool system_text(const struct system *s, const char *path, char *text,
                 size_t n) {
  return s->files.read(s->files.ctx, path, text, n) == 0;
}

struct numbered {
  const char *prefix;
  unsigned from, least;
  int n;
};

static int count(void *arg, const char *name) {
  struct numbered *x = arg;
  size_t n = strlen(x->prefix);
  char *end;
  if (strncmp(name, x->prefix, n) != 0 || name[n] < '0' || name[n] > '9')
    return 0;
  unsigned long at = strtoul(name + n, &end, 10);
  if (*end != '\0')
    return 0;
  x->n++;
  if (at >= x->from && at < x->least)
    x->least = (unsigned)at;
  return 0;
}

int system_numbered(const struct system *s, const char *folder,
                    const char *prefix, unsigned *least) {
  struct numbered x = {prefix, *least, UINT32_MAX, 0};
  if (s->files.list(s->files.ctx, folder, count, &x) != 0)
    return -1;
  *least = x.least;
  return x.n;
}

static int none(void *arg, const char *name) {
  (void)arg, (void)name;
  return 0;
}

static bool has_folder(const struct system *s, const char *path) {
  return s->files.list(s->files.ctx, path, none, NULL) == 0;
}

/* The next line of a text, with its end cut off; NULL after the last. */
static char *next_line(char **text) {
  char *line = *text, *end = strchr(line, '\n');
  if (*line == '\0')
    return NULL;
  *text = end != NULL ? end + 1 : line + strlen(line);
  if (end != NULL)
    *end = '\0';
  return line;
}

/* A module's folder is also there where it is a part of the kernel. */
enum system_loaded system_module(const struct system *s, const char *name) {
  char path[64], text[MOST_TEXT], *rest = text, *line;
  size_t n = strlen(name);
  snprintf(path, sizeof path, "/sys/module/%s", name);
  if (has_folder(s, path))
    return SYSTEM_LOADED;
  if (!system_text(s, "/proc/modules", text, sizeof text))
    return has_folder(s, "/sys/module") ? SYSTEM_ABSENT : SYSTEM_UNTOLD;
  while ((line = next_line(&rest)) != NULL)
    if (strncmp(line, name, n) == 0 && line[n] == ' ')
      return SYSTEM_LOADED;
  return SYSTEM_ABSENT;
}

int system_major(const struct system *s, const char *name) {
  char text[MOST_TEXT], *rest = text, *line;
  if (!system_text(s, "/proc/devices", text, sizeof text))
    return -1;
  while ((line = next_line(&rest)) != NULL) {
    char *is;
    long n = strtol(line, &is, 10);
    if (strncmp(line, "Block", 5) == 0)
      break;
    if (is != line && *is == ' ' && strcmp(is + 1, name) == 0)
      return (int)n;
  }
  return 0;
}

/* The first word of digits and dots, in the text's first line. */
static bool first_version(char *text, char version[64]) {
  text[strcspn(text, "\n")] = '\0';
  for (char *at = text; *at != '\0';) {
    at += strspn(at, " \t");
    size_t n = strcspn(at, " \t");
    if (n > 0 && n < 64 && strspn(at, "0123456789.") == n &&
        memchr(at, '.', n) != NULL) {
      memcpy(version, at, n);
      version[n] = '\0';
      return true;
    }
    at += n;
  }
  return false;
}

bool system_version(const struct system *s, char version[64]) {
  char text[1024];
  return (system_text(s, "/sys/module/nvidia/version", text, sizeof text) &&
          first_version(text, version)) ||
         (system_text(s, "/proc/driver/nvidia/version", text, sizeof text) &&
          first_version(text, version));
}

/* The last part of what the link of a PCI function names; "" where there is no
 * such link. */
static void link_of(const struct system *s, const char *bus, const char *name,
                    char *text, size_t n) {
  char path[128], full[MOST_PATH], to[MOST_PATH];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bus, name);
  below(s, path, full);
  ssize_t got = readlink(full, to, sizeof to - 1);
  to[got > 0 ? got : 0] = '\0';
  const char *last = strrchr(to, '/');
  snprintf(text, n, "%s", last != NULL ? last + 1 : to);
}

static int minor_of(const struct system *s, const char *bus) {
  static const char key[] = "Device Minor:";
  char path[128], text[MOST_TEXT], *rest = text, *line;
  snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", bus);
  if (!system_text(s, path, text, sizeof text))
    return -1;
  while ((line = next_line(&rest)) != NULL)
    if (strncmp(line, key, sizeof key - 1) == 0)
      return atoi(line + sizeof key - 1);
  return -1;
}

size_t system_gpus(const struct system *s,
                   struct system_gpu gpus[SYSTEM_GPUS]) {
  char bus[SYSTEM_GPUS][NVIDIA_BUS], path[128];
  size_t n = nvidia_gpus(&s->files, bus, SYSTEM_GPUS);
  if (n > SYSTEM_GPUS)
    n = SYSTEM_GPUS;
  for (size_t i = 0; i < n; i++) {
    struct system_gpu *g = &gpus[i];
    *g = (struct system_gpu){.minor = minor_of(s, bus[i])};
    memcpy(g->bus, bus[i], sizeof g->bus);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/device", g->bus);
    if (!system_text(s, path, g->device, sizeof g->device))
      snprintf(g->device, sizeof g->device, "?");
    g->device[strcspn(g->device, "\n")] = '\0';
    link_of(s, g->bus, "driver", g->driver, sizeof g->driver);
    link_of(s, g->bus, "iommu_group", g->iommu, sizeof g->iommu);
  }
  return n;
}
