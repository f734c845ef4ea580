/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_SYSTEM_BED_H
#define TOOLS_RIG_NV_SYSTEM_BED_H
/*
 * A made-up machine: files in a temporary folder, of which those in /dev say
 * what a device file there would, and the fake driver. It is the healthy one
 * with a row's changes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths/nvidia/fake.h"
#include "tools/rig_nv/system.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

struct change {
  const char *path;
  const char *text; /* of the file; NULL: nothing is there */
  const char *link; /* what it links to, instead */
};

/* Of a file in /dev: major:minor, mode, user:group, the errno of an open. */
static const struct change healthy[] = {
    {"/dev/nvidiactl", "195:255 0666 0:0 0", NULL},
    {"/dev/nvidia0", "195:0 0666 0:0 0", NULL},
    {"/dev/nvidia-uvm", "508:0 0666 0:0 0", NULL},
    {"/dev/null", "1:3 0666 0:0 0", NULL},
    {"/proc/devices",
     "Character devices:\n  1 mem\n195 nvidia\n195 nvidiactl\n508 nvidia-uvm\n"
     "\nBlock devices:\n  8 sd\n",
     NULL},
    {"/proc/modules", "ext4 1 0 - Live 0x0\n", NULL},
    {"/sys/module/ext4/refcnt", "1\n", NULL},
    {"/sys/module/nvidia/version", "580.159.04\n", NULL},
    {"/sys/module/nvidia_uvm/refcnt", "0\n", NULL},
    {"/proc/driver/nvidia/gpus/0000:00:06.0/information",
     "Model: \t\t NVIDIA H200\nDevice Minor: \t 0\n", NULL},
    {"/sys/bus/pci/devices/0000:00:06.0/vendor", "0x10de\n", NULL},
    {"/sys/bus/pci/devices/0000:00:06.0/class", "0x030200\n", NULL},
    {"/sys/bus/pci/devices/0000:00:06.0/device", "0x2335\n", NULL},
    {"/sys/bus/pci/devices/0000:00:06.0/driver", NULL,
     "../../../../bus/pci/drivers/nvidia"},
    {"/sys/bus/pci/devices/0000:00:06.0/iommu_group", NULL,
     "../../../kernel/iommu_groups/12"},
    {"/sys/bus/pci/devices/0000:00:01.0/vendor", "0x8086\n", NULL},
    {"/sys/bus/pci/devices/0000:00:01.0/class", "0x020000\n", NULL},
};

struct machine {
  struct system system;
  struct fake fake;
  char root[4096];
};

static int remove_one(const char *path, const struct stat *s, int type,
                      struct FTW *at) {
  (void)s, (void)type, (void)at;
  return remove(path);
}

static void remove_all(const char *path) {
  if (nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
    fail_msg("%s: %s", path, strerror(errno));
}

static void change(const struct machine *m, const struct change *c) {
  char path[8192];
  int n = snprintf(path, sizeof path, "%s%s", m->root, c->path);
  assert_in_range(n, 1, sizeof path - 1);
  remove_all(path);
  if (c->text == NULL && c->link == NULL)
    return;
  for (char *at = path + strlen(m->root); (at = strchr(at + 1, '/')) != NULL;) {
    *at = '\0';
    if (mkdir(path, 0700) != 0)
      assert_int_equal(errno, EEXIST);
    *at = '/';
  }
  if (c->link != NULL) {
    assert_int_equal(symlink(c->link, path), 0);
    return;
  }
  FILE *f = fopen(path, "we");
  assert_non_null(f);
  assert_true(fputs(c->text, f) >= 0);
  assert_int_equal(fclose(f), 0);
}

/* What the file in /dev says; errno of its open in *error. */
static int node(const struct system *s, const char *path, int *error,
                struct system_node *n) {
  char text[64];
  int e = s->files.read(s->files.ctx, path, text, sizeof text);
  if (e != 0)
    return e;
  *n = (struct system_node){0};
  n->device = sscanf(text, "%u:%u %o %u:%u %d", &n->major, &n->minor, &n->mode,
                     &n->user, &n->group, error) == 6;
  return 0;
}

static int made_up_node(const struct system *s, const char *path,
                        struct system_node *n) {
  int error;
  return node(s, path, &error, n);
}

static int made_up_open(void *ctx, const char *path) {
  struct system_node n;
  int error = 0, e = node(ctx, path, &error, &n);
  if (e != 0 || !n.device)
    fail_msg("%s is opened", path);
  return error != 0 ? -error : nvidia_os.open(nvidia_os.ctx, "/dev/null");
}

/* driver: what of the fake is otherwise, or NULL. */
static void machine_make(struct machine *m, const struct change *changes,
                         size_t n, void (*driver)(struct fake *)) {
  const char *folder = getenv("TEST_TMPDIR");
  snprintf(m->root, sizeof m->root, "%s/rootXXXXXX", folder ? folder : "/tmp");
  assert_non_null(mkdtemp(m->root));
  for (size_t i = 0; i < COUNT(healthy); i++)
    change(m, &healthy[i]);
  for (size_t i = 0; i < n && changes[i].path != NULL; i++)
    change(m, &changes[i]);
  fake_init(&m->fake);
  if (driver != NULL)
    driver(&m->fake);
  system_init(&m->system, m->root);
  m->system.files.open = made_up_open;
  m->system.node = made_up_node;
  m->system.user = 1000;
  m->system.driver = &m->fake.os;
}

static void machine_end(struct machine *m) {
  fake_end(&m->fake);
  remove_all(m->root);
}
#endif
