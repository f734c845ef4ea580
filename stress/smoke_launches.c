/* SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/device.h"
#include "rings/launch.h"
#include "stress/kernels.h"
#include "stress/kernels_cubins.h"
#include "stress/smoke.h"

enum { LONG_S = 60, MOST_LINKS = 64, LAYS = 20 };

/* One launch's block and parameters. */
struct call {
  _Alignas(16) struct rig_block block;
  uint64_t params[4];
};

static struct call call_of(uint32_t groups, uint32_t threads, uint32_t shared,
                           uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  return (struct call){{{groups, 1, 1}, {threads, 1, 1}, shared, 0},
                       {a, b, c, d}};
}

/* Posts n launches of the entry, one after the other, as one value. */
static bool post(struct smoke *s, const struct rig_nv_function *e,
                 const struct call *calls, size_t n, uint64_t *v) {
  struct rig_part parts[MOST_LINKS];
  for (size_t i = 0; i < n; i++)
    parts[i] =
        rig_part_launch(e->code, e->launch, (uint32_t)(i * sizeof *calls),
                        sizeof calls->params);
  struct rig_submission sub = {.parts = parts,
                               .nparts = n,
                               .args = calls,
                               .args_bytes = n * sizeof *calls};
  int r = rig_nv_post_wait(s->device, &sub,
                           device_now() + LONG_S * UINT64_C(1000000000), v);
  return r == 0 || smoke_failed("post: %d, %s", r, r < 0 ? rig_nv_why() : "");
}

static bool reach(struct smoke *s, uint64_t v) {
  return rig_nv_wait(s->device, v,
                     device_now() + LONG_S * UINT64_C(1000000000)) == 0 ||
         smoke_failed("launch %" PRIu64 ": %s", v, rig_nv_why());
}

static bool run(struct smoke *s, const struct rig_nv_function *e,
                struct call c) {
  uint64_t v;
  return post(s, e, &c, 1, &v) && reach(s, v);
}

static bool fails(int e) { return e != 0 && !smoke_failed("%s", rig_nv_why()); }

/* Words of the device's memory, for a check. */
struct words {
  struct rig_nv_region *region;
  uint32_t *host;
  size_t n;
  uint64_t at;
};

static bool words_make(struct smoke *s, struct words *w, enum rig_memory kind,
                       size_t n) {
  *w = (struct words){.host = calloc(n, 4), .n = n};
  if (w->host == NULL)
    return smoke_failed("no host memory");
  if (fails(rig_nv_alloc(s->device, kind, 4 * n, &w->region)))
    return false;
  w->at = rig_nv_locate(w->region).address;
  return true;
}

static bool words_put(struct smoke *s, struct words *w) {
  return !fails(rig_nv_upload(s->device, w->region, 0, w->host, 4 * w->n));
}

static bool words_get(struct smoke *s, struct words *w) {
  return !fails(rig_nv_download(s->device, w->region, 0, w->host, 4 * w->n));
}

static bool words_end(struct smoke *s, struct words *w) {
  free(w->host);
  return w->region == NULL || !fails(rig_nv_free(s->device, w->region));
}

static bool is_word(const char *what, size_t i, uint32_t got, uint32_t want) {
  return got == want ||
         smoke_failed("%s: word %zu is %u, not %u", what, i, got, want);
}

/* c = a +- b, whatever the memory. */
static bool vectors(struct smoke *s, const struct rig_nv_function *add,
                    bool minus) {
  size_t n = smoke_real(s) ? (1 << 20) + 3 : 4099;
  struct words w[3];
  bool ok = true;
  for (int i = 0; i < 3; i++)
    ok = words_make(s, &w[i], (enum rig_memory)i, n) && ok;
  for (size_t i = 0; ok && i < n; i++) {
    w[0].host[i] = (uint32_t)i * 2654435761u;
    w[1].host[i] = (uint32_t)i ^ 0x5a5a;
  }
  ok = ok && words_put(s, &w[0]) && words_put(s, &w[1]) &&
       run(s, add, call_of(97, 128, 0, w[2].at, w[0].at, w[1].at, n)) &&
       words_get(s, &w[2]);
  for (size_t i = 0; ok && i < n; i++)
    ok = is_word("add", i, w[2].host[i],
                 minus ? w[0].host[i] - w[1].host[i]
                       : w[0].host[i] + w[1].host[i]);
  for (int i = 0; i < 3; i++)
    ok = words_end(s, &w[i]) && ok;
  return ok;
}

/* Each launch of a chain reads what the one before wrote, all over. A stale
 * read anywhere shows at the end, and where the memory is the host's, so do
 * writes that the last one's membar did not push. */
static bool chain(struct smoke *s, struct kernels *k, enum rig_memory kind) {
  const uint32_t n = smoke_real(s) ? 270336 : 1024, threads = 256;
  const size_t rounds = smoke_real(s) ? (kind == RIG_DEVICE ? 400 : 4) : 3;
  struct rig_nv_function step;
  struct words w[2];
  struct call links[MOST_LINKS];
  uint64_t v = 0;
  if (fails(kernels_find(k, "step", &step)))
    return false;
  bool ok = words_make(s, &w[0], kind, n) && words_make(s, &w[1], kind, n) &&
            words_put(s, &w[0]) && words_put(s, &w[1]);
  for (size_t i = 0; i < MOST_LINKS; i++)
    links[i] = call_of((n + threads - 1) / threads, threads, 0, w[~i & 1].at,
                       w[i & 1].at, n, 0);
  uint64_t begun = device_now();
  for (size_t r = 0; ok && r < rounds; r++)
    ok = post(s, &step, links, MOST_LINKS, &v);
  ok = ok && reach(s, v);
  uint64_t ns = device_now() - begun;
  if (ok && kind == RIG_PINNED) /* as the host sees it, at once */
    memcpy(w[0].host, rig_nv_locate(w[0].region).host, (size_t)4 * n);
  else
    ok = ok && words_get(s, &w[0]);
  for (size_t i = 0; ok && i < n; i++)
    ok = is_word("chain", i, w[0].host[i], (uint32_t)(rounds * MOST_LINKS));
  if (ok)
    printf("chain in %-14s %zu launches over %u words: %" PRIu64 " ns each\n",
           kind == RIG_DEVICE ? "Device" : "Pinned", rounds * MOST_LINKS, n,
           ns / (rounds * MOST_LINKS));
  return words_end(s, &w[0]) && words_end(s, &w[1]) && ok;
}

/* All the dynamic shared memory that there is. */
static bool dynamic(struct smoke *s, struct kernels *k) {
  enum { GROUPS = 5 };
  struct rig_nv_function reverse;
  struct words w;
  if (fails(kernels_find(k, "reverse", &reverse)))
    return false;
  const uint32_t bytes = ((const struct launch *)reverse.launch)->dynamic_most;
  const uint32_t n = bytes / 4;
  bool ok = words_make(s, &w, RIG_DEVICE, (size_t)GROUPS * n);
  for (size_t i = 0; ok && i < w.n; i++)
    w.host[i] = (uint32_t)i;
  ok = ok && words_put(s, &w) &&
       run(s, &reverse, call_of(GROUPS, 128, bytes, w.at, n, 0, 0)) &&
       words_get(s, &w);
  for (size_t i = 0; ok && i < w.n; i++)
    ok =
        is_word("reverse", i, w.host[i], (uint32_t)(i / n * n + n - 1 - i % n));
  if (ok)
    printf("dynamic shared          %u bytes\n", bytes);
  return words_end(s, &w) && ok;
}

/* Local memory grows while a launch that uses the old one runs. */
static bool local(struct smoke *s, struct kernels *k) {
  struct rig_nv_function linger, deep;
  struct words w;
  uint64_t v, last, need;
  const uint64_t rounds = smoke_real(s) ? 50000000 : 1;
  if (fails(kernels_find(k, "linger", &linger)) ||
      !words_make(s, &w, RIG_DEVICE, 4096))
    return false;
  struct call slow = call_of(64, 64, 0, w.at, rounds, 0, 0);
  struct call stack = call_of(8, 128, 0, w.at + 4096, 0, 0, 0);
  bool ok = post(s, &linger, &slow, 1, &v) &&
            !fails(kernels_find(k, "deep", &deep)) &&
            post(s, &deep, &stack, 1, &last);
  if (ok && smoke_real(s) && rig_reached(rig_nv_signaled(s->device), v))
    printf("local                   the first launch had ended before\n");
  ok = ok && post(s, &linger, &slow, 1, &v) &&
       !fails(rig_nv_local(s->device, smoke_real(s) ? 4096 : 1100, &need)) &&
       post(s, &deep, &stack, 1, &last) && reach(s, last) && words_get(s, &w);
  for (uint32_t t = 0; ok && t < 1024; t++)
    ok = is_word("deep", t, w.host[1024 + t], 128 * t + 128 * 127 / 2);
  return words_end(s, &w) && ok;
}

static bool largest_grid(struct smoke *s, struct kernels *k) {
  const uint32_t most = 0x7fffffff;
  struct rig_nv_function count;
  struct words w;
  if (fails(kernels_find(k, "count", &count)) ||
      !words_make(s, &w, RIG_DEVICE, 4))
    return false;
  uint64_t begun = device_now();
  bool ok =
      words_put(s, &w) && run(s, &count, call_of(most, 1, 0, w.at, 0, 0, 0));
  uint64_t ns = device_now() - begun;
  ok = ok && words_get(s, &w) && is_word("count", 0, w.host[0], 2049) &&
       is_word("count", 2, w.host[2], most - 1);
  if (ok)
    printf("largest grid            %u blocks in %" PRIu64 " ms\n", most,
           ns / 1000000);
  return words_end(s, &w) && ok;
}

/* Other code where code has been, over and over. */
static bool laid_over(struct smoke *s) {
  static const char *const names[] = {"kernels", "other"};
  struct rig_nv_region *code;
  unsigned char *bytes;
  uint64_t most = 0;
  bool ok = true;
  const char *arch = rig_nv_facts(s->device)->arch;
  for (int i = 0; i < 2; i++) {
    const struct kernels_cubin *c = kernels_cubin(names[i], arch);
    most = c->n > most ? c->n : most;
  }
  most = (most + 65535) / 65536 * 65536;
  bytes = malloc(most);
  if (bytes == NULL || fails(rig_nv_alloc(s->device, RIG_DEVICE, most, &code)))
    return smoke_failed("no memory for code");
  for (int i = 0; ok && i < LAYS; i++) {
    const struct kernels_cubin *c = kernels_cubin(names[i % 2], arch);
    struct rig_nv_image *image;
    struct kernels k = {.device = s->device,
                        .model = smoke_real(s) ? NULL : s->path};
    struct rig_nv_function add;
    uint64_t n;
    if (fails(rig_nv_image_load(s->device, c->bytes, c->n, &n, &image)))
      return false;
    k.image = image;
    ok = n <= most && !fails(rig_nv_image_lay(image, code, bytes)) &&
         !fails(rig_nv_upload(s->device, code, 0, bytes, n)) &&
         !fails(kernels_find(&k, "add", &add)) &&
         vectors(s, &add, smoke_real(s) && i % 2 == 1);
    ok = !fails(rig_nv_unload(s->device, image)) && ok;
  }
  free(bytes);
  return !fails(rig_nv_free(s->device, code)) && ok;
}

/* An empty launch there and back; chained ones; what the host spends. */
static bool times(struct smoke *s, struct kernels *k) {
  enum { TRIPS = 2000 };
  static uint64_t ns[TRIPS];
  const int trips = smoke_real(s) ? TRIPS : 50,
            chains = smoke_real(s) ? 200 : 4;
  const int posts = smoke_real(s) ? 20000 : 200;
  struct rig_nv_function nothing;
  struct call links[MOST_LINKS];
  uint64_t v = 0, begun;
  if (fails(kernels_find(k, "nothing", &nothing)))
    return false;
  for (int i = 0; i < MOST_LINKS; i++)
    links[i] = call_of(1, 32, 0, 0, 0, 0, 0);
  for (int i = 0; i < trips; i++) {
    begun = device_now();
    if (!post(s, &nothing, links, 1, &v))
      return false;
    while (!rig_reached(rig_nv_signaled(s->device), v))
      if (device_now() - begun > UINT64_C(1000000000))
        return smoke_failed("an empty launch took a second");
    ns[i] = device_now() - begun;
  }
  smoke_sort(ns, (size_t)trips);
  printf("empty launch            %" PRIu64 " ns p50, %" PRIu64 " ns p99\n",
         ns[trips / 2], ns[trips * 99 / 100]);
  for (int i = 0; i < chains; i++) {
    begun = device_now();
    if (!post(s, &nothing, links, MOST_LINKS, &v))
      return false;
    while (!rig_reached(rig_nv_signaled(s->device), v))
      if (device_now() - begun > UINT64_C(1000000000))
        return smoke_failed("a chain took a second");
    ns[i] = (device_now() - begun) / MOST_LINKS;
  }
  smoke_sort(ns, (size_t)chains);
  printf("chain of %d             %" PRIu64 " ns a launch p50, %" PRIu64
         " least\n",
         MOST_LINKS, ns[chains / 2], ns[0]);
  uint64_t spent = 0;
  for (int i = 0; i < posts; i++) {
    begun = device_now();
    if (!post(s, &nothing, links, 1, &v))
      return false;
    spent += device_now() - begun;
    if (i % 512 == 511 && !reach(s, v)) /* the host's cost, with room */
      return false;
  }
  printf("host, one launch        %" PRIu64 " ns\n", spent / (uint64_t)posts);
  return reach(s, v);
}

bool smoke_launches(struct smoke *s) {
  struct kernels k;
  if (fails(kernels_make(s->device, smoke_real(s) ? NULL : s->path, &k)))
    return false;
  bool ok = vectors(s, &k.add, false) && chain(s, &k, RIG_DEVICE) &&
            chain(s, &k, RIG_PINNED) && dynamic(s, &k) && local(s, &k) &&
            largest_grid(s, &k) && times(s, &k);
  ok = !fails(kernels_end(&k)) && ok;
  return ok && laid_over(s);
}
