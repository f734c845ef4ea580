/* SPDX-License-Identifier: ISC */
/* What a post costs where many threads post at the same time. */
#include <ck_pr.h>
#include <pthread.h>

#include "core/device.h"
#include "stress/smoke.h"

enum { MOST = 64 };

struct one {
  struct smoke *smoke;
  const struct rig_submission *submission;
  const uint32_t *go;
  unsigned each;
  uint64_t begun, ended, v;
  bool failed;
  pthread_t thread;
};

static void *bursts(void *arg) {
  struct one *o = arg;
  while (!ck_pr_load_32(o->go))
    ck_pr_stall();
  o->begun = device_now();
  for (unsigned i = 0; i < o->each && !o->failed; i++)
    o->failed = !smoke_post_submission(o->smoke, o->submission, &o->v);
  o->ended = device_now();
  return NULL;
}

static bool burst(struct one *all, struct smoke *s, uint64_t *ns_each,
                  uint64_t *ns_all) {
  uint64_t first = UINT64_MAX, last = 0, sum = 0;
  uint32_t go = 0;
  bool ok = true;
  for (unsigned i = 0; i < s->threads; i++) {
    all[i].go = &go;
    if (pthread_create(&all[i].thread, NULL, bursts, &all[i]) != 0)
      return smoke_failed("no thread");
  }
  device_nap(UINT64_C(2000000));
  ck_pr_store_32(&go, 1);
  for (unsigned i = 0; i < s->threads; i++) {
    pthread_join(all[i].thread, NULL);
    first = all[i].begun < first ? all[i].begun : first;
    last = all[i].ended > last ? all[i].ended : last;
    sum += all[i].ended - all[i].begun;
    ok = !all[i].failed && ok;
  }
  /* Also where one failed: the caller's memory may be in use until then. */
  for (unsigned i = 0; i < s->threads; i++)
    ok = smoke_reach(s, all[i].v) && ok;
  *ns_each = sum / s->threads / all->each;
  *ns_all = (last - first) / (s->threads * (uint64_t)all->each);
  return ok;
}

bool smoke_crowd(struct smoke *s, const struct rig_submission *submission,
                 unsigned each, uint64_t *ns_each, uint64_t *ns_all) {
  enum { ROUNDS = 7 };
  struct one all[MOST];
  uint64_t by[2][ROUNDS];
  bool ok = true;
  for (unsigned i = 0; i < s->threads; i++)
    all[i] = (struct one){.smoke = s, .submission = submission, .each = each};
  for (int r = 0; ok && r < ROUNDS; r++)
    ok = burst(all, s, &by[0][r], &by[1][r]);
  smoke_sort(by[0], ROUNDS);
  smoke_sort(by[1], ROUNDS);
  *ns_each = by[0][ROUNDS / 2];
  *ns_all = by[1][ROUNDS / 2];
  return ok;
}
