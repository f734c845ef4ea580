/* SPDX-License-Identifier: ISC */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/device.h"
#include "stress/smoke.h"

enum {
  STAMPS = 400,
  QUICK = 20,
  PAUSE_NS = 10000000,
  SLACK_NS = 200 /* bits of the timer that do not count, and rounding */
};

/* Both channels in turn write a stamp behind the page's first words: a
 * segment of the words, and their entry, lie in the page too. */
static bool stamp(struct smoke *s, struct rig_nv_region *page, uint64_t i,
                  uint64_t *is) {
  struct rig_location at = rig_nv_locate(page);
  uint32_t *words = (uint32_t *)at.host + 64;
  volatile uint64_t *semaphore = at.host;
  uint64_t entry, v;
  int n = rig_nv_release_stamp(words, at.address, i);
  if (n < 0 || rig_nv_gpfifo_entry(at.address + 256, (uint64_t)n, &entry) != 0)
    return smoke_failed("words: %s", rig_nv_why());
  const uint32_t entries[] = {(uint32_t)entry, (uint32_t)(entry >> 32)};
  struct rig_part part =
      rig_part_words(i % 2 ? RIG_COMPUTE0 : RIG_COPY0, entries, 2);
  if (!smoke_post(s, &part, 1, &v) || !smoke_reach(s, v))
    return false;
  *is = semaphore[1];
  return semaphore[0] == i || smoke_failed("no stamp was written");
}

struct seen {
  uint64_t width, late, early; /* the widest measure; times before and behind */
};

/* A stamp's time lies between the times around its work, but for what the
 * measure and its line may be off. */
static bool one(struct smoke *s, struct rig_nv_region *page, uint64_t i,
                struct seen *seen) {
  uint64_t is;
  if (clock_again(&s->device->clock) != 0)
    return smoke_failed("%s", rig_nv_why());
  uint64_t before = device_now();
  if (!stamp(s, page, i, &is))
    return false;
  uint64_t after = device_now(), at = clock_time(&s->device->clock, is);
  struct clock_line l = clock_line_now(&s->device->clock);
  uint64_t since = before - l.latest.host;
  uint64_t may = l.latest.width / 2 + since / CLOCK_DRIFT + SLACK_NS;
  if (l.latest.width > seen->width)
    seen->width = l.latest.width;
  if (at < before && before - at > seen->early)
    seen->early = before - at;
  if (at > after && at - after > seen->late)
    seen->late = at - after;
  return at + may >= before && at <= after + may
             ? true
             : smoke_failed("stamp %" PRIu64 ": %" PRId64 " ns after its work "
                            "began, which took %" PRIu64 " ns; may be off by "
                            "%" PRIu64 " ns",
                            i, (int64_t)(at - before), after - before, may);
}

bool smoke_clock(struct smoke *s) {
  const struct timespec pause = {.tv_nsec = PAUSE_NS};
  struct rig_nv_region *page;
  struct seen seen = {0};
  bool ok = true;
  if (rig_nv_alloc(s->device, RIG_PINNED, 4096, &page) != 0)
    return smoke_failed("alloc: %s", rig_nv_why());
  memset(rig_nv_locate(page).host, 0, 4096);
  for (uint64_t i = 1; ok && i <= (s->quick ? QUICK : STAMPS); i++) {
    ok = one(s, page, i, &seen);
    nanosleep(&pause, NULL);
  }
  struct clock_line l = clock_line_now(&s->device->clock);
  int64_t host = (int64_t)(l.latest.host - l.first.host);
  int64_t timer = (int64_t)(l.latest.timer - l.first.timer);
  printf("GPU clock               kind %d, the first measure %" PRIu64
         " ns wide, the widest %" PRIu64 " ns; off by %+.3f ppm over %.1f s\n",
         (int)s->path->clock->kind, l.first.width, seen.width,
         host > 0 ? 1e6 * (double)(timer - host) / (double)host : 0,
         (double)host / 1e9);
  printf("stamps                  at most %" PRIu64
         " ns before their work, %" PRIu64 " ns behind it\n",
         seen.early, seen.late);
  return (rig_nv_free(s->device, page) == 0 ||
          smoke_failed("free: %s", rig_nv_why())) &&
         ok;
}
