/* SPDX-License-Identifier: ISC */
#include "paths/nvidia/fake_state.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "paths/nvidia/abi/rows.h"

void fake_broke(struct fake *f, const char *format, ...) {
  va_list args;
  if (f->broken[0] != '\0')
    return;
  va_start(args, format);
  vsnprintf(f->broken, sizeof f->broken, format, args);
  va_end(args);
}

/* The call in the middle of which others run gets its own parameters back. */
static void hold(struct fake *f) {
  const char *is = f->state->is;
  unsigned char *arg = f->state->arg;
  f->hold_name = NULL;
  f->held = true;
  pthread_cond_broadcast(&f->moved);
  while (f->held)
    pthread_cond_wait(&f->moved, &f->lock);
  f->state->is = is;
  f->state->arg = arg;
}

void fake_hold(struct fake *f, const char *name) {
  pthread_mutex_lock(&f->lock);
  f->hold_name = name;
  pthread_mutex_unlock(&f->lock);
}

bool fake_held(struct fake *f) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_sec += 10;
  pthread_mutex_lock(&f->lock);
  while (!f->held && pthread_cond_timedwait(&f->moved, &f->lock, &t) == 0) {
  }
  bool held = f->held;
  pthread_mutex_unlock(&f->lock);
  return held;
}

void fake_go(struct fake *f) {
  pthread_mutex_lock(&f->lock);
  f->held = false;
  pthread_cond_broadcast(&f->moved);
  pthread_mutex_unlock(&f->lock);
}

unsigned fake_calls(struct fake *f) {
  pthread_mutex_lock(&f->lock);
  unsigned n = f->calls;
  pthread_mutex_unlock(&f->lock);
  return n;
}

/* Notes the call; true where it is to fail. */
bool fake_fails(struct fake *f, const char *name) {
  if (f->hold_name != NULL && strcmp(name, f->hold_name) == 0)
    hold(f);
  size_t used = strlen(f->log);
  snprintf(f->log + used, sizeof f->log - used, "%s\n", name);
  f->calls++;
  bool now = f->calls == f->fail_at ||
             (f->fail_name != NULL && strcmp(name, f->fail_name) == 0);
  if (now)
    snprintf(f->failed, sizeof f->failed, "%s", name);
  return now;
}

int fake_failure(const struct fake *f) {
  return f->failure == FAKE_EIO ? -EIO : -ENOMEM;
}

/* Fields, by the rows. Looked up once: names are literals, one address each
 * almost always. */

static const char *const *field_row(const struct fake *f, const char *structure,
                                    const char *field) {
  uintptr_t hash = ((uintptr_t)structure * 31 + (uintptr_t)field) / 2;
  struct memo *m = &f->state->memos[hash % MEMOS];
  if (m->structure != structure || m->field != field ||
      m->release != f->release)
    *m = (struct memo){structure, field, f->release,
                       rows_field(&f->structs, f->release, structure, field)};
  return m->row;
}

uint64_t fake_size_of(const struct fake *f, const char *structure) {
  return tsv_number(field_row(f, structure, "(sizeof)")[4]);
}

uint64_t fake_constant(const struct fake *f, const char *name) {
  const char *text = rows_constant(&f->constants, f->release, name);
  if (text == NULL)
    text = rows_constant(&f->constants, 580, name);
  if (text == NULL)
    tsv_die("no such constant", name);
  return tsv_number(text);
}

unsigned char *fake_field_of(const struct fake *f, const char *structure,
                             const char *field, void *at, size_t *n) {
  const char *const *row = field_row(f, structure, field);
  *n = tsv_number(row[4]);
  return (unsigned char *)at + tsv_number(row[3]);
}

uint64_t fake_get_of(const struct fake *f, const char *structure,
                     const char *field, void *at) {
  size_t n;
  uint64_t x = 0;
  const unsigned char *p = fake_field_of(f, structure, field, at, &n);
  memcpy(&x, p, n);
  return x;
}

void fake_set_of(const struct fake *f, const char *structure, const char *field,
                 void *at, uint64_t x) {
  size_t n;
  unsigned char *p = fake_field_of(f, structure, field, at, &n);
  memcpy(p, &x, n);
}

uint64_t fake_get(const struct fake *f, const char *field) {
  return fake_get_of(f, f->state->is, field, f->state->arg);
}

void fake_set(const struct fake *f, const char *field, uint64_t x) {
  fake_set_of(f, f->state->is, field, f->state->arg, x);
}

void fake_uuid_of(size_t gpu, unsigned char uuid[16]) {
  memset(uuid, 0xa0, 16);
  uuid[15] = (unsigned char)gpu;
}

int fake_gpu_of_uuid(const unsigned char *uuid) {
  unsigned char is[16];
  for (int i = 0; i < FAKE_GPUS; i++) {
    fake_uuid_of((size_t)i, is);
    if (memcmp(is, uuid, sizeof is) == 0)
      return i;
  }
  return -1;
}

struct file *fake_file_of(const struct fake *f, int64_t fd) {
  if (fd < FIRST_FD || fd >= FIRST_FD + FAKE_MOST ||
      !f->state->files[fd - FIRST_FD].open)
    return NULL;
  return &f->state->files[fd - FIRST_FD];
}

uint64_t fake_ok(const struct fake *f) { return fake_constant(f, "NV_OK"); }
uint64_t fake_invalid(const struct fake *f) {
  return fake_constant(f, "NV_ERR_INVALID_ARGUMENT");
}
uint64_t fake_no_memory(const struct fake *f) {
  return fake_constant(f, "NV_ERR_NO_MEMORY");
}

uint64_t fake_failing_status(const struct fake *f) {
  return f->failure == FAKE_REFUSED ? fake_invalid(f) : fake_no_memory(f);
}

/* The table of system calls. */

static int run_ioctl(void *ctx, int fd, uint32_t request, void *arg,
                     size_t bytes) {
  struct fake *f = ctx;
  struct file *file = fake_file_of(f, fd);
  if (file == NULL) {
    fake_broke(f, "ioctl of no file");
    return -EBADF;
  }
  f->state->arg = arg;
  return file->uvm ? fake_uvm(f, file, request, bytes)
                   : fake_escape(f, file, request, bytes);
}

static int run_open(void *ctx, const char *path) {
  struct fake *f = ctx;
  struct file is = {.open = true, .gpu = -1};
  unsigned minor;
  if (fake_fails(f, "open"))
    return fake_failure(f);
  is.ctl = strcmp(path, "/dev/nvidiactl") == 0;
  is.uvm = strcmp(path, "/dev/nvidia-uvm") == 0;
  if (f->no_driver)
    return -ENOENT;
  if (!is.ctl && !is.uvm) {
    if (sscanf(path, "/dev/nvidia%u", &minor) != 1)
      return -ENOENT;
    for (size_t i = 0; i < f->ngpus; i++)
      if (f->gpus[i].driven && f->gpus[i].minor == minor)
        is.gpu = (int)i;
    if (is.gpu < 0 || !f->gpus[is.gpu].opens)
      return -EACCES;
  }
  for (int i = 0; i < FAKE_MOST; i++)
    if (!f->state->files[i].open) {
      f->state->files[i] = is;
      return FIRST_FD + i;
    }
  return -EMFILE;
}

static int run_close(void *ctx, int fd) {
  struct fake *f = ctx;
  struct file *file = fake_file_of(f, fd);
  bool fail = fake_fails(f, "close");
  if (file == NULL) {
    fake_broke(f, "close of no file");
    return -EBADF;
  }
  if (file->uvm && file->uvm_initialized)
    f->state->mm = false;
  if (file->buffer != 0)
    f->gpus[file->gpu].memory += file->buffer;
  *file = (struct file){0}; /* Linux closes it also where it fails */
  return fail ? -EIO : 0;
}

static int run_map(void *ctx, int fd, size_t n, void **p) {
  struct fake *f = ctx;
  struct fake_state *s = f->state;
  struct file *file = fd < 0 ? NULL : fake_file_of(f, fd);
  if (fake_fails(f, "map"))
    return fake_failure(f);
  if (fd >= 0 &&
      (file == NULL || file->pending == 0 || file->pending_bytes != n))
    fake_broke(f, "mmap of %zu bytes of a file that has them not", n);
  void *at = mmap(NULL, n, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED || s->nmappings == FAKE_MOST)
    tsv_die("no mapping", "fake");
  struct mapping m = {at, n, file != NULL ? file->pending : 0};
  if (m.object != 0) {
    struct object *o = fake_object_of(f, m.object);
    o->cpu = true;
    if (o->bytes == 0) { /* the usermode region */
      memcpy((char *)at + TIME_0, &f->gpus[o->gpu].time_0, 4);
      memcpy((char *)at + TIME_1, &f->gpus[o->gpu].time_1, 4);
    }
  }
  s->mappings[s->nmappings++] = m;
  *p = at;
  return 0;
}

static int run_unmap(void *ctx, void *p, size_t n) {
  struct fake *f = ctx;
  struct fake_state *s = f->state;
  if (fake_fails(f, "unmap"))
    return fake_failure(f);
  for (size_t i = 0; i < s->nmappings; i++) {
    if (s->mappings[i].at != p || s->mappings[i].n != n)
      continue;
    if (s->mappings[i].object != 0)
      fake_object_of(f, s->mappings[i].object)->cpu = false;
    s->mappings[i] = s->mappings[--s->nmappings];
    munmap(p, n);
    return 0;
  }
  fake_broke(f, "munmap of no mapping");
  return -EINVAL;
}

/* One call at a time. */
#define ALONE(name, parameters, call)                                          \
  static int fake_##name parameters {                                          \
    struct fake *f = ctx;                                                      \
    pthread_mutex_lock(&f->lock);                                              \
    int r = run_##name call;                                                   \
    pthread_mutex_unlock(&f->lock);                                            \
    return r;                                                                  \
  }
ALONE(open, (void *ctx, const char *path), (ctx, path))
ALONE(close, (void *ctx, int fd), (ctx, fd))
ALONE(ioctl, (void *ctx, int fd, uint32_t request, void *arg, size_t bytes),
      (ctx, fd, request, arg, bytes))
ALONE(map, (void *ctx, int fd, size_t n, void **p), (ctx, fd, n, p))
ALONE(unmap, (void *ctx, void *p, size_t n), (ctx, p, n))

static int fake_read(void *ctx, const char *path, char *text, size_t n) {
  struct fake *f = ctx;
  char bus[32], name[16];
  if (sscanf(path, "/sys/bus/pci/devices/%31[^/]/%15s", bus, name) != 2)
    return -ENOENT;
  for (size_t i = 0; i < f->ngpus; i++)
    if (strcmp(f->gpus[i].bus, bus) == 0) {
      if (strcmp(name, "vendor") == 0)
        snprintf(text, n, "0x%04x\n", f->gpus[i].vendor);
      else
        snprintf(text, n, "0x%06x\n", f->gpus[i].class24);
      return 0;
    }
  return -ENOENT;
}

static int fake_list(void *ctx, const char *folder,
                     int (*each)(void *arg, const char *name), void *arg) {
  struct fake *f = ctx;
  (void)folder;
  if (f->no_sysfs)
    return -ENOENT;
  int r = each(arg, ".");
  for (size_t i = 0; r == 0 && i < f->ngpus; i++)
    r = each(arg, f->gpus[i].bus);
  return r;
}

void fake_init(struct fake *f) {
  *f = (struct fake){.os = {.ctx = f,
                            .open = fake_open,
                            .close = fake_close,
                            .ioctl = fake_ioctl,
                            .map = fake_map,
                            .unmap = fake_unmap,
                            .read = fake_read,
                            .list = fake_list},
                     .version = "580.159.04",
                     .release = 580,
                     .ngpus = 1,
                     .gpus = {{.bus = "0000:00:06.0",
                               .vendor = 0x10de,
                               .class24 = 0x030200,
                               .driven = true,
                               .opens = true,
                               .classes = {0xc56f, 0xc361, 0xc461, 0xc561,
                                           0xc86f, 0xcbc0, 0xc8b5, 0xc661},
                               .nclasses = 8,
                               .sm_version = 0x900,
                               .memory = UINT64_C(1) << 30,
                               .bar = UINT64_C(1) << 28}}};
  pthread_mutex_init(&f->lock, NULL);
  pthread_cond_init(&f->moved, NULL);
  rows_read(&f->structs, "rm_structs.tsv");
  rows_read(&f->constants, "rm_consts.tsv");
  f->state = calloc(1, sizeof *f->state);
  if (f->state == NULL)
    tsv_die("no memory", "fake");
  f->state->next_handle = 0xcaf00001;
  f->state->next_cookie = UINT64_C(1) << 40;
}

void fake_restart(struct fake *f) {
  f->calls = f->fail_at = 0;
  f->fail_name = NULL;
  f->failed[0] = f->broken[0] = f->log[0] = '\0';
}

void fake_end(struct fake *f) {
  for (size_t i = 0; i < f->state->nmappings; i++)
    munmap(f->state->mappings[i].at, f->state->mappings[i].n);
  free(f->state);
  pthread_mutex_destroy(&f->lock);
  pthread_cond_destroy(&f->moved);
  for (size_t i = 0; i < f->structs.n; i++)
    free(PTR(f->structs.row[i][0]));
  for (size_t i = 0; i < f->constants.n; i++)
    free(PTR(f->constants.row[i][0]));
}

struct fake_counts fake_counts(const struct fake *f) {
  const struct fake_state *s = f->state;
  struct fake_counts n = {.objects = s->nobjects};
  for (size_t i = 0; i < FAKE_MOST; i++)
    *(s->files[i].buffer != 0 ? &n.buffers : &n.files) += s->files[i].open;
  for (size_t i = 0; i < s->nmappings; i++)
    *(s->mappings[i].object != 0 ? &n.mappings : &n.anonymous) += 1;
  for (size_t i = 0; i < s->nranges; i++) {
    *(s->ranges[i].channel != 0 ? &n.registrations : &n.ranges) += 1;
    n.gpu_maps += s->ranges[i].nmaps;
  }
  for (int i = 0; i < FAKE_GPUS; i++) {
    n.registrations += (size_t)s->gpu[i] + s->vaspace[i];
    for (int k = 0; k < FAKE_GPUS; k++)
      n.peers += s->peer[i][k];
  }
  return n;
}

bool fake_nothing(const struct fake *f) {
  static const struct fake_counts none;
  struct fake_counts n = fake_counts(f);
  return memcmp(&n, &none, sizeof n) == 0;
}

uint64_t fake_buffer(const struct fake *f, int fd) {
  const struct file *file = fake_file_of(f, fd);
  return file != NULL ? file->buffer : 0;
}

uint32_t fake_reached(const struct fake *f, uint64_t address, size_t gpu) {
  for (size_t i = 0; i < f->state->nranges; i++) {
    const struct uvm_range *r = &f->state->ranges[i];
    if (address < r->at || address - r->at >= r->bytes)
      continue;
    for (size_t k = 0; k < r->nmaps; k++)
      if (fake_gpu_of_uuid(r->maps[k].uuid) == (int)gpu)
        return r->maps[k].object;
  }
  return 0;
}
