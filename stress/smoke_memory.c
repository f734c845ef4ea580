/* SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stress/random.h"
#include "stress/smoke.h"

enum {
  KINDS = 3,
  BYTES = (1 << 20) + 4096,
  MOVES = 400,
  MOST = 70000,
  N_LAST = 64
};
#define LARGE ((UINT64_C(64) << 20) + 4)

static const char *const names[] = {"Device", "Pinned", "Mapped"};

/* A region of each kind, and what it must hold. */
struct bed {
  struct smoke *smoke;
  struct random random;
  struct rig_nv_region *region[KINDS];
  unsigned char *mirror[KINDS], *found;
};

static void noise(struct random *r, unsigned char *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    p[i] = (unsigned char)random_below(r, 256);
}

static bool compare(struct bed *b, int k) {
  if (rig_nv_download(b->smoke->device, b->region[k], 0, b->found, BYTES) != 0)
    return smoke_failed("download of %s: %s", names[k], rig_nv_why());
  for (size_t i = 0; i < BYTES; i++)
    if (b->found[i] != b->mirror[k][i])
      return smoke_failed("%s memory at %zu: %02x, not %02x", names[k], i,
                          b->found[i], b->mirror[k][i]);
  return true;
}

static bool begin(struct bed *b) {
  struct rig_nv *d = b->smoke->device;
  b->found = malloc(BYTES);
  for (int k = 0; k < KINDS; k++) {
    b->mirror[k] = malloc(BYTES);
    if (b->found == NULL || b->mirror[k] == NULL)
      return smoke_failed("no host memory");
    noise(&b->random, b->mirror[k], BYTES);
    if (rig_nv_alloc(d, (enum rig_memory)k, BYTES, &b->region[k]) != 0)
      return smoke_failed("alloc of %s: %s", names[k], rig_nv_why());
    if (rig_nv_upload(d, b->region[k], 0, b->mirror[k], BYTES) != 0)
      return smoke_failed("upload to %s: %s", names[k], rig_nv_why());
    if (!compare(b, k))
      return false;
  }
  return true;
}

/* A copy or a fill at odd places; the next one waits for it (device order). */
static bool move(struct bed *b, uint64_t *v) {
  int to = (int)random_below(&b->random, KINDS);
  int from = (int)random_below(&b->random, KINDS);
  uint64_t n = 1 + random_below(&b->random, MOST);
  uint64_t at = random_below(&b->random, BYTES / 2 - n);
  uint64_t of = BYTES / 2 + random_below(&b->random, BYTES / 2 - n);
  uint64_t dst = rig_nv_locate(b->region[to]).address + at;
  if (random_below(&b->random, 8) == 0) {
    uint8_t x = (uint8_t)random_below(&b->random, 256);
    struct rig_part fill = rig_part_fill(dst, n, x);
    memset(b->mirror[to] + at, x, n);
    return smoke_post(b->smoke, &fill, 1, v);
  }
  struct rig_part copy =
      rig_part_copy(dst, rig_nv_locate(b->region[from]).address + of, n);
  memcpy(b->mirror[to] + at, b->mirror[from] + of, n);
  return smoke_post(b->smoke, &copy, 1, v);
}

static bool moves(struct bed *b) {
  uint64_t v = 0;
  for (int i = 0; i < MOVES; i++)
    if (!move(b, &v))
      return false;
  if (!smoke_reach(b->smoke, v))
    return false;
  for (int k = 0; k < KINDS; k++)
    if (!compare(b, k))
      return false;
  return true;
}

/* Copies between every two kinds, of the sizes, at odd places. */
static bool wide(struct smoke *s, struct random *random) {
  static const uint64_t sizes[] = {(8 << 20) + 3, (1 << 20) + 1, 65537, 1};
  enum { ROOM = (8 << 20) + 4096 };
  struct rig_nv_region *r[KINDS];
  unsigned char *sent = malloc(2 * ROOM), *got = malloc(ROOM);
  if (sent == NULL || got == NULL)
    return smoke_failed("no host memory");
  for (size_t i = 0; i < 2 * ROOM; i++)
    sent[i] = (unsigned char)(i * 13 ^ i >> 8 ^ i >> 16);
  for (int k = 0; k < KINDS; k++)
    if (rig_nv_alloc(s->device, (enum rig_memory)k, 2 * ROOM, &r[k]) != 0 ||
        rig_nv_upload(s->device, r[k], 0, sent, ROOM) != 0)
      return smoke_failed("%s: %s", names[k], rig_nv_why());
  bool ok = true;
  for (int i = 0; ok && i < KINDS * KINDS * 4; i++) {
    const int from = i % KINDS, to = i / KINDS % KINDS;
    const uint64_t n = sizes[i / (KINDS * KINDS)];
    const uint64_t of = random_below(random, ROOM - n);
    const uint64_t at = random_below(random, ROOM - n);
    struct rig_part copy =
        rig_part_copy(rig_nv_locate(r[to]).address + ROOM + at,
                      rig_nv_locate(r[from]).address + of, n);
    uint64_t v;
    ok = smoke_post(s, &copy, 1, &v) && smoke_reach(s, v) &&
         (rig_nv_download(s->device, r[to], ROOM + at, got, n) == 0 ||
          smoke_failed("download: %s", rig_nv_why()));
    if (ok && memcmp(got, sent + of, n) != 0)
      ok = smoke_failed("%" PRIu64 " bytes from %s to %s differ", n,
                        names[from], names[to]);
  }
  for (int k = 0; k < KINDS; k++)
    ok = rig_nv_free(s->device, r[k]) == 0 && ok;
  free(sent);
  free(got);
  return ok;
}

/* One copy of more than 4 GiB: its ends, and what lies around 2^32. */
static bool longest(struct smoke *s) {
  const uint64_t n = (UINT64_C(4) << 30) + 12345,
                 half = (n + 4095) / 4096 * 4096;
  const uint64_t looks[] = {0, (UINT64_C(1) << 31) - 3000,
                            (UINT64_C(1) << 32) - 3000, n - 5000};
  struct rig_nv_region *r;
  unsigned char sent[5000], got[5000];
  uint64_t v;
  if (!smoke_real(s))
    return true;
  if (rig_nv_alloc(s->device, RIG_DEVICE, 2 * half, &r) != 0)
    return smoke_failed("alloc of 8 GiB: %s", rig_nv_why());
  const uint64_t at = rig_nv_locate(r).address;
  struct rig_part fill = rig_part_fill(at, n, 0x3c);
  struct rig_part copy = rig_part_copy(at + half, at, n);
  bool ok = smoke_post(s, &fill, 1, &v) && smoke_reach(s, v);
  for (size_t i = 0; ok && i < sizeof looks / sizeof looks[0]; i++) {
    for (size_t k = 0; k < sizeof sent; k++)
      sent[k] = (unsigned char)(k * 7 + i);
    ok = rig_nv_upload(s->device, r, looks[i], sent, sizeof sent) == 0 ||
         smoke_failed("upload: %s", rig_nv_why());
  }
  ok = ok && smoke_post(s, &copy, 1, &v) && smoke_reach(s, v);
  for (size_t i = 0; ok && i < sizeof looks / sizeof looks[0]; i++) {
    for (size_t k = 0; k < sizeof sent; k++)
      sent[k] = (unsigned char)(k * 7 + i);
    ok = rig_nv_download(s->device, r, half + looks[i], got, sizeof got) == 0 ||
         smoke_failed("download: %s", rig_nv_why());
    if (ok && memcmp(sent, got, sizeof got) != 0)
      ok = smoke_failed("a copy of %" PRIu64 " bytes differs near %" PRIu64, n,
                        looks[i]);
  }
  if (ok)
    printf("one copy                %" PRIu64 " bytes\n", n);
  return rig_nv_free(s->device, r) == 0 && ok;
}

/* The host's own stores to Pinned and Mapped memory, read by the GPU. */
static bool stores(struct bed *b) {
  for (int k = RIG_PINNED; k < KINDS; k++) {
    volatile unsigned char *host = rig_nv_locate(b->region[k]).host;
    uint64_t v, n = 4099;
    for (uint64_t i = 0; i < n; i++)
      host[i] = b->mirror[k][i] = (unsigned char)(i * 7 + (unsigned)k);
    struct rig_part copy =
        rig_part_copy(rig_nv_locate(b->region[RIG_DEVICE]).address + 1,
                      rig_nv_locate(b->region[k]).address, n);
    memcpy(b->mirror[RIG_DEVICE] + 1, b->mirror[k], n);
    if (!smoke_post(b->smoke, &copy, 1, &v) || !smoke_reach(b->smoke, v) ||
        !compare(b, RIG_DEVICE))
      return false;
  }
  return true;
}

static bool large(struct bed *b) {
  struct rig_nv *d = b->smoke->device;
  struct rig_nv_region *r;
  unsigned char *out = malloc(LARGE), *in = malloc(LARGE);
  bool ok = out != NULL && in != NULL;
  for (uint64_t i = 0; ok && i < LARGE; i++)
    out[i] = (unsigned char)(i ^ i >> 8 ^ i >> 16);
  if (!ok || rig_nv_alloc(d, RIG_DEVICE, LARGE, &r) != 0)
    ok = smoke_failed("alloc of 64 MiB: %s", rig_nv_why());
  else {
    ok = (rig_nv_upload(d, r, 0, out, LARGE) == 0 &&
          rig_nv_download(d, r, 0, in, LARGE) == 0) ||
         smoke_failed("64 MiB: %s", rig_nv_why());
    ok = ok && (memcmp(out, in, LARGE) == 0 || smoke_failed("64 MiB differ"));
    ok = (rig_nv_free(d, r) == 0 || smoke_failed("free: %s", rig_nv_why())) &&
         ok;
  }
  free(out);
  free(in);
  return ok;
}

/* What is not there is refused, time and again, and what is can be had to its
 * last byte. */
static bool limits(struct bed *b) {
  struct rig_nv *d = b->smoke->device;
  uint64_t budget = rig_nv_facts(d)->budget, v;
  struct rig_nv_region *r;
  unsigned char got[N_LAST];
  for (int i = 0; i < 100; i++)
    if (rig_nv_alloc(d, RIG_DEVICE, 2 * budget, &r) != -RIG_NV_NO_MEMORY)
      return smoke_failed("alloc of twice the budget: %s", rig_nv_why());
  uint64_t n = budget / 2 / N_LAST * N_LAST;
  if (rig_nv_alloc(d, RIG_DEVICE, n, &r) != 0)
    return smoke_failed("alloc of half the budget: %s", rig_nv_why());
  struct rig_part fill =
      rig_part_fill(rig_nv_locate(r).address + n - N_LAST, N_LAST, 0xa7);
  bool ok = smoke_post(b->smoke, &fill, 1, &v) && smoke_reach(b->smoke, v) &&
            (rig_nv_download(d, r, n - N_LAST, got, N_LAST) == 0 ||
             smoke_failed("download: %s", rig_nv_why()));
  for (int i = 0; ok && i < N_LAST; i++)
    ok = got[i] == 0xa7 || smoke_failed("the last bytes: %02x", got[i]);
  return (rig_nv_free(d, r) == 0 || smoke_failed("free: %s", rig_nv_why())) &&
         ok;
}

/* The answer of map_host, which must be `mapping`. */
static bool maps(struct bed *b, void *p, uint64_t n, enum rig_mapping mapping,
                 struct rig_nv_region **r) {
  enum rig_mapping is;
  int e = rig_nv_map_host(b->smoke->device, p, n, &is, r);
  return (is == mapping && (e == 0) == (mapping == RIG_MAPS)) ||
         smoke_failed("map_host of %p: mapping %d, %s", p, (int)is,
                      e ? rig_nv_why() : "mapped");
}

static bool callers_memory(struct bed *b) {
  enum { PAGE = 4096, N = 16 * PAGE };
  struct rig_nv *d = b->smoke->device;
  struct rig_nv_region *whole, *part, *none;
  unsigned char *p = mmap(NULL, N + PAGE, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint64_t v;
  if (p == MAP_FAILED || munmap(p + N, PAGE) != 0)
    return smoke_failed("mmap");
  noise(&b->random, p, N);
  if (!maps(b, p, N, RIG_MAPS, &whole) ||
      !maps(b, p + 3 * PAGE, 5 * PAGE, RIG_MAPS, &part) ||
      !maps(b, p + 15 * PAGE, 2 * PAGE, RIG_NEVER_MAPS, &none) ||
      !maps(b, p + N, PAGE, RIG_NEVER_MAPS, &none))
    return false;
  if (rig_nv_locate(part).address !=
      rig_nv_locate(whole).address + 3 * (uint64_t)PAGE)
    return smoke_failed("the shared mapping lies elsewhere");
  uint64_t device = rig_nv_locate(b->region[RIG_DEVICE]).address;
  struct rig_part both[] = {
      rig_part_copy(device + 3, rig_nv_locate(part).address + 1, 5 * PAGE - 2),
      rig_part_copy(rig_nv_locate(whole).address + 9 * PAGE, device + 3, 1234)};
  memcpy(b->mirror[RIG_DEVICE] + 3, p + 3 * PAGE + 1, 5 * PAGE - 2);
  bool ok = smoke_post(b->smoke, both, 2, &v) && smoke_reach(b->smoke, v) &&
            compare(b, RIG_DEVICE) &&
            (memcmp(p + 9 * PAGE, p + 3 * PAGE + 1, 1234) == 0 ||
             smoke_failed("the caller's memory differs"));
  if (rig_nv_free(d, whole) != 0 || rig_nv_free(d, part) != 0)
    ok = smoke_failed("free of the caller's memory: %s", rig_nv_why());
  munmap(p, N);
  return ok;
}

static bool end(struct bed *b, bool ok) {
  for (int k = 0; k < KINDS; k++) {
    if (b->region[k] && rig_nv_free(b->smoke->device, b->region[k]) != 0)
      ok = smoke_failed("free of %s: %s", names[k], rig_nv_why());
    free(b->mirror[k]);
  }
  free(b->found);
  return ok;
}

bool smoke_memory(struct smoke *s) {
  struct bed b = {.smoke = s, .random = {s->seed}};
  return end(&b, begin(&b) && moves(&b) && stores(&b) && large(&b) &&
                     wide(s, &b.random) && longest(s) && limits(&b) &&
                     callers_memory(&b));
}
