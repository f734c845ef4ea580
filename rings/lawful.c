/* SPDX-License-Identifier: ISC */
#include "rings/launch.h"
#include "rings/rings.h"

/* One byte or more goes by the copy engine. */
static bool on_engine(const struct rig_part *p, uint64_t bytes) {
  return bytes == 0 || p->queue == RIG_COPY0;
}

static bool after_lawful(const struct rig_part *p, size_t index) {
  for (size_t i = 0; i < p->nafter; i++)
    if (p->after[i] < 0 || (size_t)p->after[i] >= index)
      return false;
  return true;
}

static bool part_lawful(const struct rig_submission *s, size_t index) {
  const struct rig_part *p = &s->parts[index];
  if (p->queue != RIG_COMPUTE0 && p->queue != RIG_COPY0)
    return false;
  if (!after_lawful(p, index))
    return false;
  switch (p->kind) {
  case RIG_WORDS:
    return p->words.n % 2 == 0;
  case RIG_COPY:
    return on_engine(p, p->copy.bytes);
  case RIG_FILL:
    return on_engine(p, p->fill.bytes);
  case RIG_LAUNCH:
    return p->queue == RIG_COMPUTE0 && launch_lawful(s, &p->launch);
  default:
    return false;
  }
}

bool ring_lawful(const struct rig_submission *s) {
  for (size_t i = 0; i < s->nparts; i++)
    if (!part_lawful(s, i))
      return false;
  return true;
}
