/* SPDX-License-Identifier: ISC */
/*
 * What the doctor tells of made-up machines, a fault each (system_bed.h).
 */
#include "tools/rig_nv/system_bed.h"

#include "tools/rig_nv/doctor.h"

enum { CHANGES = 10, LINES = 3 };

/* A second GPU, ahead of it on the bus, with minor 1. */
#define SECOND(driver)                                                         \
  {"/sys/bus/pci/devices/0000:00:05.0/vendor", "0x10de\n", NULL},              \
      {"/sys/bus/pci/devices/0000:00:05.0/class", "0x030000\n", NULL},         \
      {"/sys/bus/pci/devices/0000:00:05.0/device", "0x2230\n", NULL}, {        \
    "/sys/bus/pci/devices/0000:00:05.0/driver", NULL,                          \
        "../../../../bus/pci/drivers/" driver                                  \
  }

#define ANEW                                                                   \
  "  -> remove it, and have nvidia-modprobe -c 0 -u make it anew, as root; a " \
  "container is to be started anew"
#define LOAD "  -> modprobe nvidia nvidia_uvm, as root"
#define MADE                                                                   \
  "  -> nvidia-modprobe -c 0 -u, as root, makes it, as does nvidia-smi"
#define GIVE                                                                   \
  "give the container the GPU: --gpus all, or --device for /dev/nvidiactl, "   \
  "/dev/nvidia-uvm and each /dev/nvidiaN"
#define FIRST "  -> mend what failed above"
#define GIVEN                                                                  \
  "warn  the module is loaded, and device files are not there: as "            \
  "in a container that was given no GPU  -> " GIVE

static void second_gpu(struct fake *f) {
  f->gpus[1] = f->gpus[0];
  f->gpus[1].bus = "0000:00:05.0";
  f->gpus[1].minor = 1;
  f->ngpus = 2;
}
static void second_fails(struct fake *f) {
  second_gpu(f);
  f->gpus[1].opens = false;
}
static void release_615(struct fake *f) { f->version = "615.71.09"; }
static void no_driver(struct fake *f) { f->no_driver = true; }
static void does_not_open(struct fake *f) { f->gpus[0].opens = false; }
static void does_not_close(struct fake *f) { f->fail_name = "UVM_FREE"; }
static void no_functions(struct fake *f) { f->no_sysfs = true; }

static const struct row {
  const char *name;
  struct {
    int gpu, status;
    unsigned fails, warns; /* lines of each */
  } is;
  const char *lines[LINES];
  void (*driver)(struct fake *);
  struct change changes[CHANGES];
} rows[] = {
    {"healthy",
     {-1, 0, 0, 0},
     {"ok    /dev/nvidiactl opens (195:255, mode 0666)",
      "ok    GPU 0 is 0000:00:06.0, device 0x2335, held by nvidia",
      "ok    GPU 0 at 0000:00:06.0 opens"},
     NULL,
     {{0}}},
    {"healthy, asked for",
     {0, 0, 0, 0},
     {"ok    release 580.159.04 of NVIDIA's kernel driver: 570, 580 and 610 "
      "are supported",
      "ok    IOMMU on: GPU 0 is in group 12"},
     NULL,
     {{0}}},

    /* device files */
    {"no control file",
     {-1, 1, 2, 1},
     {"FAIL  /dev/nvidiactl is not there" MADE, GIVEN,
      "FAIL  opening: no NVIDIA kernel driver: /dev/nvidiactl: No such file or "
      "directory (errno 2)" FIRST},
     no_driver,
     {{"/dev/nvidiactl", NULL, NULL}}},
    {"no file of the GPU, in a container",
     {-1, 1, 2, 1},
     {"FAIL  /dev/nvidia0 is not there  -> " GIVE, GIVEN},
     does_not_open,
     {{"/dev/nvidia0", NULL, NULL}, {"/.dockerenv", "", NULL}}},
    {"no file of UVM, whose module is not loaded",
     {-1, 1, 3, 1},
     {"FAIL  /dev/nvidia-uvm is not there  -> its module is not loaded: see "
      "below",
      "FAIL  module nvidia_uvm is not loaded  -> modprobe nvidia_uvm, or "
      "nvidia-modprobe -c 0 -u, as root"},
     does_not_open,
     {{"/dev/nvidia-uvm", NULL, NULL},
      {"/sys/module/nvidia_uvm", NULL, NULL},
      {"/proc/devices", "Character devices:\n195 nvidia\n", NULL}}},
    {"no device file",
     {-1, 0, 1, 0},
     {"FAIL  /dev/nvidiactl is no device file" ANEW},
     NULL,
     {{"/dev/nvidiactl", "what a program wrote there", NULL}}},
    {"UVM's major of an earlier start",
     {-1, 0, 1, 0},
     {"FAIL  /dev/nvidia-uvm has major 511, the driver 508 "
      "(/proc/devices)" ANEW},
     NULL,
     {{"/dev/nvidia-uvm", "511:0 0666 0:0 0", NULL}}},
    {"another minor",
     {-1, 0, 1, 0},
     {"FAIL  /dev/nvidia0 has minor 1, not 0" ANEW},
     NULL,
     {{"/dev/nvidia0", "195:1 0666 0:0 0", NULL}}},
    {"no permission",
     {-1, 1, 2, 0},
     {"FAIL  /dev/nvidia0 does not open for user 1000: Permission denied (mode "
      "0660 of user 0, group 44)  -> sudo chmod 666 it, or join its group; the "
      "module's parameters NVreg_DeviceFileMode and NVreg_DeviceFileGID last",
      "FAIL  opening: /dev/nvidia0: Permission denied (errno 13)" FIRST},
     does_not_open,
     {{"/dev/nvidia0", "195:0 0660 0:44 13", NULL}}},
    {"device rules of a cgroup",
     {-1, 1, 2, 0},
     {"FAIL  /dev/nvidia0 does not open for user 1000: Operation not permitted "
      "(mode 0666 of user 0, group 0)  -> the device rules of a cgroup forbid "
      "it: " GIVE "; of a service, DeviceAllow= lists it"},
     does_not_open,
     {{"/dev/nvidia0", "195:0 0666 0:0 1", NULL}}},
    {"a GPU that does not start",
     {-1, 1, 2, 0},
     {"FAIL  /dev/nvidia0 does not open for user 1000: Input/output error "
      "(mode "
      "0666 of user 0, group 0)  -> the driver cannot start the GPU: dmesg has "
      "lines of NVRM and Xid"},
     does_not_open,
     {{"/dev/nvidia0", "195:0 0666 0:0 5", NULL}}},
    {"too many files",
     {-1, 0, 1, 0},
     {"FAIL  /dev/nvidia0 does not open for user 1000: Too many open files "
      "(mode 0666 of user 0, group 0)  -> too many files are open: ulimit -n"},
     NULL,
     {{"/dev/nvidia0", "195:0 0666 0:0 24", NULL}}},
    {"minors are not told",
     {-1, 0, 0, 0},
     {"ok    /dev/nvidia0 opens (195:0, mode 0666)"},
     NULL,
     {{"/proc/driver/nvidia", NULL, NULL},
      {"/dev/nvidia7x", "195:7 0666 0:0 0", NULL}}},
    {"minors are not told, and there is no file",
     {-1, 1, 2, 1},
     {"FAIL  /dev/nvidiaN of a GPU is not there" MADE, GIVEN},
     does_not_open,
     {{"/proc/driver/nvidia", NULL, NULL}, {"/dev/nvidia0", NULL, NULL}}},
    {"minors are not told, and one of two does not open",
     {-1, 0, 0, 1},
     {"ok    /dev/nvidia0 opens (195:0, mode 0666)",
      "warn  /dev/nvidia10 does not open for user 1000: No such device or "
      "address (mode 0666 of user 0, group 0)  -> the driver does not have it: "
      "see below"},
     NULL,
     {{"/proc/driver/nvidia", NULL, NULL},
      {"/dev/nvidia10", "195:10 0666 0:0 6", NULL}}},
    {"one of two GPUs has a file",
     {-1, 0, 0, 2},
     {"warn  /dev/nvidia1 is not there" MADE,
      "ok    GPU 0 is 0000:00:05.0, device 0x2230, held by nvidia",
      "ok    GPU 1 at 0000:00:06.0 opens"},
     second_fails,
     {SECOND("nvidia"),
      {"/proc/driver/nvidia/gpus/0000:00:05.0/information",
       "Device Minor: \t 1\n", NULL}}},
    {"the one of two that has none is asked for",
     {0, 1, 2, 1},
     {"FAIL  /dev/nvidia1 is not there" MADE,
      "FAIL  opening: /dev/nvidia1: Permission denied (errno 13)" FIRST},
     second_fails,
     {SECOND("nvidia"),
      {"/proc/driver/nvidia/gpus/0000:00:05.0/information",
       "Device Minor: \t 1\n", NULL}}},

    /* modules */
    {"no module, files left",
     {-1, 1, 7, 0},
     {"FAIL  /dev/nvidiactl is there, and no driver of its" LOAD,
      "FAIL  module nvidia is not loaded" LOAD
      "; where there is none, install NVIDIA's driver; where the kernel "
      "refuses it, dmesg says why (Secure Boot wants it signed)",
      "FAIL  opening was not tried: the kernel has no such driver" FIRST},
     NULL,
     {{"/proc/devices",
       "Character devices:\n  1 mem\nBlock devices:\n195 "
       "nvidia\n",
       NULL},
      {"/sys/bus/pci/devices/0000:00:06.0/driver", NULL, NULL},
      {"/sys/module/nvidia", NULL, NULL},
      {"/sys/module/nvidia_uvm", NULL, NULL}}},
    {"modules by their list alone",
     {-1, 0, 0, 0},
     {"ok    module nvidia is loaded", "ok    module nvidia_uvm is loaded"},
     NULL,
     {{"/sys/module", NULL, NULL},
      {"/proc/devices", NULL, NULL},
      {"/proc/modules", "nvidia_uvm 9 0 - Live\nnvidia 9 1 nvidia_uvm, Live\n",
       NULL},
      {"/proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.211.01  Tue\nGCC "
       "version:  gcc version 12.2.0\n",
       NULL}}},
    {"modules by their folders alone",
     {-1, 0, 0, 0},
     {"ok    module nvidia is loaded", "ok    module nvidia_uvm is loaded"},
     NULL,
     {{"/proc/devices", NULL, NULL}}},
    {"a module that is named alike",
     {-1, 0, 2, 0},
     {"FAIL  module nvidia_uvm is not loaded  -> modprobe nvidia_uvm, or "
      "nvidia-modprobe -c 0 -u, as root"},
     NULL,
     {{"/sys/module", NULL, NULL},
      {"/proc/devices", NULL, NULL},
      {"/proc/modules", "nvidia_drm 9 0 - Live\nnvidia_uvmx 9 0 - Live\n",
       NULL}}},
    {"neither module nor file",
     {-1, 1, 6, 0},
     {"FAIL  /dev/nvidiactl is not there  -> its module is not loaded: see "
      "below",
      "FAIL  /dev/nvidia0 is not there  -> its module is not loaded: see "
      "below"},
     no_driver,
     {{"/proc/devices", "Character devices:\n", NULL},
      {"/dev/nvidiactl", NULL, NULL},
      {"/dev/nvidia0", NULL, NULL},
      {"/dev/nvidia-uvm", NULL, NULL},
      {"/sys/module/nvidia", NULL, NULL},
      {"/sys/module/nvidia_uvm", NULL, NULL}}},
    {"modules are not told",
     {-1, 0, 0, 3},
     {"warn  whether module nvidia is loaded is not told  -> neither "
      "/sys/module nor /proc/modules can be read",
      "warn  the driver's release is not told  -> opening below says whether "
      "it is one that is supported"},
     NULL,
     {{"/sys/module", NULL, NULL},
      {"/proc/modules", NULL, NULL},
      {"/proc/devices", NULL, NULL}}},
    {"a kernel that stands in for Linux",
     {-1, 0, 0, 1},
     {"ok    module nvidia is loaded", "ok    module nvidia_uvm is loaded"},
     NULL,
     {{"/sys/module", NULL, NULL},
      {"/proc/modules", NULL, NULL},
      {"/proc/devices",
       "Character devices:\n195 nvidia-frontend\n508 nvidia-uvm\n", NULL}}},

    /* the release */
    {"615",
     {-1, 1, 2, 0},
     {"FAIL  release 615.71.09 of NVIDIA's kernel driver: 570, 580 and 610 are "
      "supported  -> install one of release 570, 580 and 610",
      "FAIL  opening: release 615.71.09 of NVIDIA's kernel driver: 570, 580 "
      "and 610 are supported" FIRST},
     release_615,
     {{"/sys/module/nvidia/version", "615.71.09\n", NULL}}},
    {"by /proc alone",
     {-1, 0, 0, 0},
     {"ok    release 610.43.03 of NVIDIA's kernel driver: 570, 580 and 610 are "
      "supported"},
     NULL,
     {{"/sys/module/nvidia/version", NULL, NULL},
      {"/sys/module/nvidia/refcnt", "3\n", NULL},
      {"/proc/driver/nvidia/version",
       "NVRM version: NVIDIA UNIX 64 Kernel Module  610.43.03  "
       "Release Build\nGCC version:  gcc version 12.2.0\n",
       NULL}}},
    {"no version in its words",
     {-1, 0, 0, 1},
     {"warn  the driver's release is not told  -> opening below says whether "
      "it is one that is supported"},
     NULL,
     {{"/sys/module/nvidia/version", "none\n580.1\n", NULL}}},

    /* PCI functions */
    {"nouveau",
     {-1, 1, 2, 0},
     {"FAIL  GPU 0 is 0000:00:06.0, device 0x2335, held by nouveau  -> write "
      "'blacklist nouveau' to a file in /etc/modprobe.d, make the initial RAM "
      "disk anew, and start the machine anew"},
     does_not_open,
     {{"/sys/bus/pci/devices/0000:00:06.0/driver", NULL, "../x/nouveau"}}},
    {"vfio-pci",
     {0, 1, 2, 0},
     {"FAIL  GPU 0 is 0000:00:06.0, device 0x2335, held by vfio-pci  -> it is "
      "kept for a virtual machine; to take it back, as root, write its address "
      "to /sys/bus/pci/drivers/vfio-pci/unbind, an empty line to its "
      "driver_override, and its address to /sys/bus/pci/drivers_probe"},
     does_not_open,
     {{"/sys/bus/pci/devices/0000:00:06.0/driver", NULL, "../x/vfio-pci"}}},
    {"another driver",
     {-1, 1, 2, 0},
     {"FAIL  GPU 0 is 0000:00:06.0, device 0x2335, held by nova-core  -> "
      "unbind it, and load NVIDIA's driver"},
     does_not_open,
     {{"/sys/bus/pci/devices/0000:00:06.0/driver", NULL, "../x/nova-core"}}},
    {"no driver, though it is loaded",
     {-1, 1, 2, 0},
     {"FAIL  GPU 0 is 0000:00:06.0, device 0x2335, held by no driver  -> the "
      "driver left it alone: dmesg has lines of NVRM"},
     does_not_open,
     {{"/sys/bus/pci/devices/0000:00:06.0/driver", NULL, NULL}}},
    {"one of two for a virtual machine",
     {-1, 0, 0, 1},
     {"warn  GPU 0 is 0000:00:05.0, device 0x2230, held by vfio-pci  -> it is "
      "kept for a virtual machine; to take it back, as root, write its address "
      "to /sys/bus/pci/drivers/vfio-pci/unbind, an empty line to its "
      "driver_override, and its address to /sys/bus/pci/drivers_probe",
      "ok    GPU 1 at 0000:00:06.0 opens"},
     second_fails,
     {SECOND("vfio-pci")}},
    {"the other one is asked for",
     {1, 0, 0, 0},
     {"ok    GPU 0 is 0000:00:05.0, device 0x2230, held by vfio-pci",
      "ok    GPU 1 at 0000:00:06.0 opens"},
     second_fails,
     {SECOND("vfio-pci")}},
    {"no such GPU",
     {3, 1, 2, 0},
     {"FAIL  GPU 3: the machine has 1  -> count from 0, in bus order",
      "FAIL  opening: GPU 3: the machine has 1 NVIDIA GPUs" FIRST},
     NULL,
     {{0}}},
    {"no GPU",
     {-1, 1, 2, 0},
     {"FAIL  no NVIDIA GPU is among the machine's PCI functions  -> is there "
      "one, and is it passed on to this machine?",
      "ok    IOMMU off, or not told"},
     no_driver,
     {{"/sys/bus/pci/devices/0000:00:06.0", NULL, NULL}}},
    {"no functions are told",
     {-1, 0, 0, 1},
     {"warn  /sys/bus/pci cannot be read  -> GPUs then have the numbers of the "
      "driver's own list",
      "ok    GPU 0 at 0000:00:06.0 opens"},
     no_functions,
     {{"/sys/bus", NULL, NULL}}},

    /* what else there is to know */
    {"in a container",
     {-1, 0, 0, 0},
     {"ok    this is a container (/run/.containerenv)"},
     NULL,
     {{"/run/.containerenv", "", NULL}}},
    {"no IOMMU",
     {-1, 0, 0, 0},
     {"ok    IOMMU off, or not told"},
     NULL,
     {{"/sys/bus/pci/devices/0000:00:06.0/iommu_group", NULL, NULL}}},
    {"MIG without instances",
     {-1, 0, 0, 0},
     {"ok    MIG: GPU 0 has 0 instances"},
     NULL,
     {{"/proc/driver/nvidia/capabilities/gpu0/mig/config", "", NULL}}},
    {"MIG",
     {-1, 0, 0, 1},
     {"warn  MIG: GPU 0 has 2 instances  -> a path opens a whole GPU: "
      "nvidia-smi mig -dci, mig -dgi, and -mig 0"},
     NULL,
     {{"/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "", NULL},
      {"/proc/driver/nvidia/capabilities/gpu0/mig/gi12/access", "", NULL}}},

    /* the path */
    {"all is well but for the path",
     {-1, 1, 1, 0},
     {"FAIL  opening: /dev/nvidia0: Permission denied (errno 13)  -> dmesg may "
      "say more: lines of NVRM and Xid"},
     does_not_open,
     {{0}}},
    {"what was opened does not close",
     {-1, 0, 0, 1},
     {"warn  closing: close: UVM_FREE: Cannot allocate memory (errno 12)  -> "
      "dmesg "
      "may say more: lines of NVRM and Xid"},
     does_not_close,
     {{0}}},
};

/* What the doctor tells of it, to be freed. */
static char *told_of(const struct machine *m, int gpu, int *status) {
  char *told;
  size_t n;
  FILE *out = open_memstream(&told, &n);
  assert_non_null(out);
  *status = doctor_run(&m->system, gpu, out);
  assert_int_equal(fclose(out), 0);
  return told;
}

static unsigned count(const char *text, const char *word) {
  unsigned n = 0;
  for (const char *at = text; at != NULL && *at != '\0';) {
    n += strncmp(at, word, strlen(word)) == 0;
    at = strchr(at, '\n');
    at = at != NULL ? at + 1 : NULL;
  }
  return n;
}

static bool has_line(const char *text, const char *line) {
  size_t n = strlen(line);
  for (const char *at = text; (at = strstr(at, line)) != NULL; at++)
    if ((at == text || at[-1] == '\n') && at[n] == '\n')
      return true;
  return false;
}

static void judge(const struct row *row, const struct machine *m,
                  const char *told, int status) {
  const char *lacks = NULL;
  for (size_t i = 0; i < LINES && row->lines[i] != NULL && lacks == NULL; i++)
    if (!has_line(told, row->lines[i]))
      lacks = row->lines[i];
  if (lacks != NULL || status != row->is.status ||
      count(told, "FAIL") != row->is.fails ||
      count(told, "warn") != row->is.warns)
    fail_msg("%s: status %d, lacks '%s'; told:\n%s", row->name, status,
             lacks != NULL ? lacks : "", told);
  if (row->driver == does_not_close)
    return;
  if (m->fake.broken[0] != '\0' || !fake_nothing(&m->fake))
    fail_msg("%s: something is left; %s", row->name, m->fake.broken);
}

static void test_rows(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(rows); i++) {
    struct machine m;
    int status;
    machine_make(&m, rows[i].changes, CHANGES, rows[i].driver);
    char *told = told_of(&m, rows[i].is.gpu, &status);
    judge(&rows[i], &m, told, status);
    free(told);
    machine_end(&m);
  }
}

/* The order of the checks. */
static void test_order(void **state) {
  static const char all[] =
      "ok    /dev/nvidiactl opens (195:255, mode 0666)\n"
      "ok    /dev/nvidia0 opens (195:0, mode 0666)\n"
      "ok    /dev/nvidia-uvm opens (508:0, mode 0666)\n"
      "ok    module nvidia is loaded\n"
      "ok    module nvidia_uvm is loaded\n"
      "ok    release 580.159.04 of NVIDIA's kernel driver: 570, 580 and 610 "
      "are supported\n"
      "ok    GPU 0 is 0000:00:06.0, device 0x2335, held by nvidia\n"
      "ok    IOMMU on: GPU 0 is in group 12\n"
      "ok    GPU 0 at 0000:00:06.0 opens\n";
  struct machine m;
  int status;
  (void)state;
  machine_make(&m, NULL, 0, NULL);
  char *told = told_of(&m, -1, &status);
  assert_string_equal(told, all);
  assert_int_equal(status, 0);
  free(told);
  machine_end(&m);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rows),
      cmocka_unit_test(test_order),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
