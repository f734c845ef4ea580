/* SPDX-License-Identifier: ISC */
#include "tools/rig_nv/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* nv-chardev-numbers.h of NVIDIA's open kernel modules; UVM's major is the
 * kernel's choice, its minor stands in uvm_common.h. */
enum { CONTROL_MINOR = 255, UVM_MINOR = 0 };

enum verdict { OK, WARN, FAIL };

struct doctor {
  const struct system *s;
  FILE *out;
  int gpu; /* -1: any */
  struct system_gpu gpus[SYSTEM_GPUS];
  size_t n;
  enum system_loaded nvidia, uvm; /* modules */
  int nvidia_major, uvm_major;    /* as system_major */
  const char *container;          /* what shows it to be one, or NULL */
  unsigned absent, failed;        /* device files, lines */
};

__attribute__((format(printf, 4, 5))) static void say(struct doctor *d,
                                                      enum verdict is,
                                                      const char *advice,
                                                      const char *what, ...) {
  static const char *const names[] = {"ok  ", "warn", "FAIL"};
  va_list args;
  fprintf(d->out, "%s  ", names[is]);
  va_start(args, what);
  vfprintf(d->out, what, args);
  va_end(args);
  if (is != OK && advice != NULL)
    fprintf(d->out, "  -> %s", advice);
  fputc('\n', d->out);
  fflush(d->out);
  d->failed += is == FAIL;
}

/* A GPU that is asked about. */
static bool asked(const struct doctor *d, size_t i) {
  return d->gpu < 0 || (size_t)d->gpu == i;
}

#define LOAD "modprobe nvidia nvidia_uvm, as root"
#define GIVE                                                                   \
  "give the container the GPU: --gpus all, or --device for /dev/nvidiactl, "   \
  "/dev/nvidia-uvm and each /dev/nvidiaN"

/* Device files. */

struct file {
  const char *path;
  unsigned minor;
  int major; /* the driver's, as system_major */
  enum system_loaded module;
};

static const char *how_made(const struct doctor *d, const struct file *f) {
  return f->module == SYSTEM_ABSENT ? "its module is not loaded: see below"
         : d->container != NULL     ? GIVE
                                    : "nvidia-modprobe -c 0 -u, as root, makes "
                                      "it, as does nvidia-smi";
}

static const char *how_opened(int error) {
  switch (-error) {
  case EACCES:
    return "sudo chmod 666 it, or join its group; the module's parameters "
           "NVreg_DeviceFileMode and NVreg_DeviceFileGID last";
  case EPERM:
    return "the device rules of a cgroup forbid it: " GIVE
           "; of a service, DeviceAllow= lists it";
  case ENXIO:
  case ENODEV:
    return "the driver does not have it: see below";
  case EIO:
    return "the driver cannot start the GPU: dmesg has lines of NVRM and Xid";
  case EMFILE:
  case ENFILE:
    return "too many files are open: ulimit -n";
  default:
    return "dmesg may say why";
  }
}

static void try_open(struct doctor *d, const struct file *f,
                     const struct system_node *n, enum verdict worst) {
  const struct nvidia_os *os = &d->s->files;
  int fd = os->open(os->ctx, f->path);
  if (fd >= 0) {
    (void)os->close(os->ctx, fd); /* nothing was written */
    say(d, OK, NULL, "%s opens (%u:%u, mode %04o)", f->path, n->major, n->minor,
        n->mode);
    return;
  }
  say(d, worst, how_opened(fd),
      "%s does not open for user %u: %s (mode %04o of user %u, group %u)",
      f->path, d->s->user, strerror(-fd), n->mode, n->user, n->group);
}

static void check_file(struct doctor *d, const struct file *f,
                       enum verdict worst) {
  static const char anew[] =
      "remove it, and have nvidia-modprobe -c 0 -u make it anew, as root; a "
      "container is to be started anew";
  struct system_node n;
  int e = d->s->node(d->s, f->path, &n);
  if (e == -ENOENT) {
    d->absent++;
    say(d, worst, how_made(d, f), "%s is not there", f->path);
  } else if (e != 0)
    say(d, worst, "see who may look into /dev", "%s: %s", f->path,
        strerror(-e));
  else if (!n.device)
    say(d, worst, anew, "%s is no device file", f->path);
  else if (f->major == 0)
    say(d, worst, LOAD, "%s is there, and no driver of its", f->path);
  else if (f->major > 0 && n.major != (unsigned)f->major)
    say(d, worst, anew, "%s has major %u, the driver %d (/proc/devices)",
        f->path, n.major, f->major);
  else if (n.minor != f->minor)
    say(d, worst, anew, "%s has minor %u, not %u", f->path, n.minor, f->minor);
  else
    try_open(d, f, &n, worst);
}

static void check_gpu_file(struct doctor *d, unsigned minor,
                           enum verdict worst) {
  char path[32];
  snprintf(path, sizeof path, "/dev/nvidia%u", minor);
  struct file f = {path, minor, d->nvidia_major, d->nvidia};
  check_file(d, &f, worst);
}

/* Of the GPUs that are asked about, where the driver tells their minors; else
 * whichever there are. One of several may lack: another opens. */
static void check_gpu_files(struct doctor *d) {
  unsigned told = 0, least = 0;
  int there = system_numbered(d->s, "/dev", "nvidia", &least);
  for (size_t i = 0; i < d->n; i++)
    told += asked(d, i) && d->gpus[i].minor >= 0;
  enum verdict worst = told > 1 && there > 0 ? WARN : FAIL;
  for (size_t i = 0; i < d->n; i++)
    if (asked(d, i) && d->gpus[i].minor >= 0)
      check_gpu_file(d, (unsigned)d->gpus[i].minor, worst);
  if (told > 0)
    return;
  struct file any = {"/dev/nvidiaN", 0, d->nvidia_major, d->nvidia};
  if (there <= 0) {
    d->absent++;
    say(d, FAIL, how_made(d, &any), "%s of a GPU is not there", any.path);
  }
  for (int i = 0; i < there; i++, least++) {
    (void)system_numbered(d->s, "/dev", "nvidia", &least);
    check_gpu_file(d, least, there > 1 ? WARN : FAIL);
  }
}

static void check_files(struct doctor *d) {
  struct file control = {"/dev/nvidiactl", CONTROL_MINOR, d->nvidia_major,
                         d->nvidia};
  struct file uvm = {"/dev/nvidia-uvm", UVM_MINOR, d->uvm_major, d->uvm};
  check_file(d, &control, FAIL);
  check_gpu_files(d);
  check_file(d, &uvm, FAIL);
}

/* The driver. */

static void check_module(struct doctor *d, const char *name,
                         enum system_loaded is, const char *load) {
  if (is == SYSTEM_LOADED)
    say(d, OK, NULL, "module %s is loaded", name);
  else if (is == SYSTEM_ABSENT)
    say(d, FAIL, load, "module %s is not loaded", name);
  else
    say(d, WARN, "neither /sys/module nor /proc/modules can be read",
        "whether module %s is loaded is not told", name);
}

static void check_modules(struct doctor *d) {
  check_module(d, "nvidia", d->nvidia,
               LOAD "; where there is none, install NVIDIA's driver; where the "
                    "kernel refuses it, dmesg says why (Secure Boot wants it "
                    "signed)");
  check_module(d, "nvidia_uvm", d->uvm,
               "modprobe nvidia_uvm, or nvidia-modprobe -c 0 -u, as root");
}

static void check_release(struct doctor *d) {
  char version[64], known[NVIDIA_RELEASES], advice[128];
  if (d->nvidia == SYSTEM_ABSENT)
    return;
  nvidia_releases(known);
  if (!system_version(d->s, version)) {
    say(d, WARN, "opening below says whether it is one that is supported",
        "the driver's release is not told");
    return;
  }
  snprintf(advice, sizeof advice, "install one of release %s", known);
  if (nvidia_supports(version))
    say(d, OK, NULL, "release %s of NVIDIA's kernel driver: %s are supported",
        version, known);
  else
    say(d, FAIL, advice,
        "release %s of NVIDIA's kernel driver: %s are supported", version,
        known);
}

/* The PCI functions. */

static const char *how_taken(const struct doctor *d,
                             const struct system_gpu *g) {
  if (strcmp(g->driver, "nouveau") == 0)
    return "write 'blacklist nouveau' to a file in /etc/modprobe.d, make the "
           "initial RAM disk anew, and start the machine anew";
  if (strcmp(g->driver, "vfio-pci") == 0)
    return "it is kept for a virtual machine; to take it back, as root, write "
           "its address to /sys/bus/pci/drivers/vfio-pci/unbind, an empty line "
           "to its driver_override, and its address to "
           "/sys/bus/pci/drivers_probe";
  if (g->driver[0] != '\0')
    return "unbind it, and load NVIDIA's driver";
  return d->nvidia == SYSTEM_ABSENT
             ? LOAD
             : "the driver left it alone: dmesg has lines of NVRM";
}

static void check_function(struct doctor *d, size_t i, enum verdict worst) {
  const struct system_gpu *g = &d->gpus[i];
  bool ours = strcmp(g->driver, "nvidia") == 0;
  say(d, ours || !asked(d, i) ? OK : worst, how_taken(d, g),
      "GPU %zu is %s, device %s, held by %s", i, g->bus, g->device,
      g->driver[0] != '\0' ? g->driver : "no driver");
}

static void check_functions(struct doctor *d) {
  unsigned none = 0;
  bool ours = false;
  if (d->n == 0 && system_numbered(d->s, "/sys/bus/pci/devices", "", &none) < 0)
    say(d, WARN, "GPUs then have the numbers of the driver's own list",
        "/sys/bus/pci cannot be read");
  else if (d->n == 0)
    say(d, FAIL, "is there one, and is it passed on to this machine?",
        "no NVIDIA GPU is among the machine's PCI functions");
  else if (d->gpu >= 0 && (size_t)d->gpu >= d->n)
    say(d, FAIL, "count from 0, in bus order", "GPU %d: the machine has %zu",
        d->gpu, d->n);
  for (size_t i = 0; i < d->n; i++)
    ours = ours || (asked(d, i) && strcmp(d->gpus[i].driver, "nvidia") == 0);
  for (size_t i = 0; i < d->n; i++)
    check_function(d, i, ours ? WARN : FAIL);
}

/* What else there is to know. */

static const char *find_container(const struct system *s) {
  static const char *const marks[] = {"/.dockerenv", "/run/.containerenv",
                                      "/run/systemd/container"};
  for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
    if (system_has(s, marks[i]))
      return marks[i];
  return NULL;
}

static void check_container(struct doctor *d) {
  if (d->absent > 0 && d->nvidia == SYSTEM_LOADED)
    say(d, WARN, GIVE,
        "the module is loaded, and device files are not there: as in a "
        "container that was given no GPU");
  else if (d->container != NULL)
    say(d, OK, NULL, "this is a container (%s)", d->container);
}

static void check_iommu(struct doctor *d) {
  for (size_t i = 0; i < d->n; i++) {
    if (asked(d, i) && d->gpus[i].iommu[0] != '\0') {
      say(d, OK, NULL, "IOMMU on: GPU %zu is in group %s", i, d->gpus[i].iommu);
      return;
    }
  }
  say(d, OK, NULL, "IOMMU off, or not told");
}

static void check_mig(struct doctor *d) {
  for (size_t i = 0; i < d->n; i++) {
    char path[64];
    unsigned least = 0;
    if (!asked(d, i) || d->gpus[i].minor < 0)
      continue;
    snprintf(path, sizeof path, "/proc/driver/nvidia/capabilities/gpu%d/mig",
             d->gpus[i].minor);
    int n = system_numbered(d->s, path, "gi", &least);
    if (n >= 0)
      say(d, n > 0 ? WARN : OK,
          "a path opens a whole GPU: nvidia-smi mig -dci, mig -dgi, and -mig 0",
          "MIG: GPU %zu has %d instances", i, n);
  }
}

/* The path's own answer. */
static int check_open(struct doctor *d) {
  static const char found[] = "mend what failed above";
  static const char unknown[] = "dmesg may say more: lines of NVRM and Xid";
  struct rig_nv_nvidia_options o;
  const struct rig_nv_path *path;
  rig_nv_nvidia_options_init(&o);
  o.gpu = d->gpu;
  if (d->nvidia_major == 0) {
    say(d, FAIL, d->failed > 0 ? found : LOAD,
        "opening was not tried: the kernel has no such driver");
    return 1;
  }
  if (nvidia_open(d->s->driver, &o, &path) != 0) {
    say(d, FAIL, d->failed > 0 ? found : unknown, "opening: %s", rig_nv_why());
    return 1;
  }
  say(d, OK, NULL, "GPU %d at %s opens", path->index, path->bus);
  if (rig_nv_path_close(path) != 0)
    say(d, WARN, unknown, "closing: %s", rig_nv_why());
  return 0;
}

/* The names that releases had for the major of all but UVM's files. */
static int find_major(const struct system *s) {
  static const char *const names[] = {"nvidia", "nvidiactl", "nvidia-frontend"};
  int is = 0;
  for (size_t i = 0; is == 0 && i < sizeof names / sizeof names[0]; i++)
    is = system_major(s, names[i]);
  return is;
}

/* A kernel that stands in for Linux has the driver's files and no modules. */
static enum system_loaded find_module(const struct system *s, const char *name,
                                      int major) {
  return major > 0 ? SYSTEM_LOADED : system_module(s, name);
}

int doctor_run(const struct system *s, int gpu, FILE *out) {
  static void (*const checks[])(struct doctor *) = {
      check_files,     check_modules, check_release, check_functions,
      check_container, check_iommu,   check_mig};
  struct doctor d = {.s = s, .out = out, .gpu = gpu};
  d.n = system_gpus(s, d.gpus);
  d.nvidia_major = find_major(s);
  d.uvm_major = system_major(s, "nvidia-uvm");
  d.nvidia = find_module(s, "nvidia", d.nvidia_major);
  d.uvm = find_module(s, "nvidia_uvm", d.uvm_major);
  d.container = find_container(s);
  for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
    checks[i](&d);
  return check_open(&d);
}
