/* SPDX-License-Identifier: ISC */
/*
 * Where the rings lie: what each choice of places comes to, on paths whose
 * stores keep their order and on others, and that work runs there. The model
 * posts writes: what lies behind the BAR is not seen but after a read of the
 * flush word, or a GP_PUT there.
 */
#include "core/test_bed.h"

enum { A = RIG_NV_AUTO, H = RIG_NV_HOST, B = RIG_NV_BAR };

struct world {
  const struct rig_nv_path *model;
  struct rig_nv_path path; /* the model's, but for put_mapped */
  struct rig_nv *d;
};

static void open_world(struct world *w, bool ordered, uint64_t mapped) {
  struct rig_nv_model_options o;
  rig_nv_model_options_init(&o);
  o.posts_writes = true;
  o.mapped_bytes = mapped;
  if (rig_nv_path_model(&o, &w->model) != 0)
    fail_msg("model: %s", rig_nv_why());
  w->path = *w->model;
  w->path.put_mapped = ordered;
}

static void options_of(struct rig_nv_options *o, const int at[4]) {
  rig_nv_options_init(o);
  o->userd_at = at[0];
  o->ring_at = at[1];
  o->segment_at = at[2];
  o->launch_at = at[3];
}

enum { MIB = 1 << 20 };

static const struct row {
  int at[4]; /* USERD, entries, segments, launches */
  bool ordered;
  uint64_t room; /* Mapped memory */
  /* Behind the BAR; what GP_PUT pushes; what is flushed. */
  bool put, entries, segments, launches, pushes, mapped;
} rows[] = {
    {{A, A, A, A}, false, 64 * MIB, 0, 0, 0, 1, 0, 0},
    {{A, A, A, A}, true, 64 * MIB, 1, 1, 1, 1, 1, 1},
    {{H, A, A, A}, true, 64 * MIB, 0, 0, 0, 1, 0, 0},
    {{H, H, H, H}, true, 64 * MIB, 0, 0, 0, 0, 0, 0},
    {{H, B, H, H}, true, 64 * MIB, 0, 1, 0, 0, 0, 1},
    {{H, H, B, H}, true, 64 * MIB, 0, 0, 1, 0, 0, 1},
    {{A, H, H, H}, true, 64 * MIB, 1, 0, 0, 0, 1, 0},
    {{B, H, B, H}, true, 64 * MIB, 1, 0, 1, 0, 1, 1},
    {{B, B, B, B}, false, 64 * MIB, 1, 1, 1, 1, 0, 1},
    {{B, H, H, H}, false, 64 * MIB, 1, 0, 0, 0, 0, 0},
    {{H, H, H, B}, false, 64 * MIB, 0, 0, 0, 1, 0, 0},
    /* The BAR has room for some of it, or none. */
    {{A, A, A, A}, true, 2 * PAGE, 0, 0, 0, 0, 0, 0},
    {{A, A, A, A}, true, 6 * PAGE, 0, 0, 1, 0, 0, 1},
    {{A, A, A, A}, true, 0, 0, 0, 0, 0, 0, 0},
};

static void test_lies(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    const struct row *r = &rows[i];
    struct rig_nv_options o;
    struct world w;
    open_world(&w, r->ordered, r->room);
    options_of(&o, r->at);
    struct rig_nv *d = make(&w.path, &o);
    const struct ring_generation *g = d->rings.newest;
    for (int q = 0; q < QUEUES; q++) {
      const struct ring_channel *c = &g->channel[q];
      if (c->put_mapped != r->put || c->entries_mapped != r->entries ||
          c->segments_mapped != r->segments)
        fail_msg("row %zu, queue %d: %d %d %d", i, q, c->put_mapped,
                 c->entries_mapped, c->segments_mapped);
    }
    if (g->launches.mapped != r->launches || g->put_pushes != r->pushes ||
        g->mapped != r->mapped)
      fail_msg("row %zu: %d %d %d", i, g->launches.mapped, g->put_pushes,
               g->mapped);
    end(d);
    nothing_left(w.model, "a row");
    close_path(w.model);
  }
}

/* What lacks where it was asked for is refused, and leaves nothing. */
static void test_lacks(void **state) {
  (void)state;
  static const struct {
    int at[4];
    uint64_t room;
  } lacking[] = {{{B, H, H, H}, PAGE},    {{H, B, H, H}, PAGE},
                 {{H, H, B, H}, PAGE},    {{H, H, H, B}, PAGE},
                 {{B, H, H, H}, 0},       {{H, H, B, H}, 3 * PAGE},
                 {{B, B, B, B}, 4 * PAGE}};
  for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
    struct rig_nv_options o;
    struct rig_nv *d = NULL;
    struct world w;
    open_world(&w, true, lacking[i].room);
    options_of(&o, lacking[i].at);
    if (rig_nv_make(&w.path, &o, &d) != -RIG_NV_NO_MEMORY || d != NULL)
      fail_msg("row %zu: %s", i, rig_nv_why());
    nothing_left(w.model, "a refused make");
    close_path(w.model);
  }
}

enum { PIECES = 96, LATER = 8 };

/* Copies that go through rings of 64 entries and, grown, larger ones. */
static void run(struct rig_nv *d, unsigned seed) {
  struct rig_nv_region *r = alloc(d, RIG_PINNED, 2 * PAGE);
  unsigned char *host = r->memory.host;
  uint64_t at = r->memory.address, v = 0, bytes;
  struct rig_part parts[PIECES];
  for (int i = 0; i < PIECES; i++) {
    host[i] = (unsigned char)(i + seed);
    host[PAGE + i] = 0;
    parts[i] = rig_part_copy(at + PAGE + (unsigned)i, at + (unsigned)i, 1);
  }
  for (int i = 0; i < PIECES; i++) {
    v = submit(d, &(struct rig_submission){.parts = &parts[i], .nparts = 1});
    if (i % LATER == 0)
      reached(d, v);
  }
  reached(d, v);
  assert_memory_equal(host, host + PAGE, PIECES);
  const struct ring_need need = {.words = {4096, 4096}, .entries = {100, 100}};
  if (growth_grow(&d->growth, &need, &bytes) != 0)
    fail_msg("grow: %s", rig_nv_why());
  memset(host + PAGE, 0, PIECES);
  reached(
      d, submit(d, &(struct rig_submission){.parts = parts, .nparts = PIECES}));
  assert_memory_equal(host, host + PAGE, PIECES);
  assert_int_equal(rig_nv_free(d, r), 0);
}

static void test_runs(void **state) {
  (void)state;
  for (unsigned i = 0; i < 2 * 3 * 3 * 3; i++) {
    const int at[4] = {(int)(i / 2 % 3), (int)(i / 6 % 3), (int)(i / 18 % 3),
                       A};
    struct rig_nv_options o;
    struct world w;
    open_world(&w, i % 2 != 0, 64 * MIB);
    options_of(&o, at);
    struct rig_nv *d = make(&w.path, &o);
    run(d, i);
    end(d);
    nothing_left(w.model, "places");
    close_path(w.model);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lies),
      cmocka_unit_test(test_lacks),
      cmocka_unit_test(test_runs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
