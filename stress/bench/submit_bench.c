/* SPDX-License-Identifier: ISC */
/*
 * What a submission costs: time, rate and tail of each way to submit (ways.h)
 * by threads, kind and doorbell, on a GPU that completes at once (gpu.h).
 *
 *     bazel run -c opt //stress/bench:submit_bench -- --json
 *
 * The ways take turns within each run, so that what the machine does meanwhile
 * does it to all of them. Figures of different minutes do not compare; the
 * round trip of a line, measured beside each row, says why.
 *
 * Instructions of N submissions of one way, after the rings' setup
 * (instructions_test.sh):
 *
 *     valgrind --tool=callgrind --toggle-collect=bench_submissions \
 *         submit_bench --ways turn --callgrind copy N
 */
#include <argp.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stress/bench/crew.h"
#include "stress/bench/report.h"
#include "stress/bench/ticks.h"

enum { MOST_LIST = 16, MOST_THREADS = 1024 };

struct settings {
  double threads[MOST_LIST], doorbells[MOST_LIST];
  unsigned nthreads, ndoorbells;
  bool kinds[KINDS], ways[WAYS];
  double seconds;
  uint64_t posts;
  unsigned runs;
  bool json, no_pin, callgrind;
  enum kind kind; /* of callgrind */
};

struct bench {
  struct settings s;
  struct crew_cores cores;
  struct doorbell doorbells[MOST_LIST];
  struct report report;
};

/* callgrind counts what this calls. */
__attribute__((noinline)) void bench_submissions(enum way, enum kind, uint64_t);
void bench_submissions(enum way w, enum kind k, uint64_t n) {
  uint64_t v;
  for (uint64_t i = 0; i < n; i++)
    (void)way_submit(w, k, &v);
}

/* Of the first way asked for: post, where none is. */
static bool callgrind(const struct settings *s) {
  enum way w = WAY_POST;
  while (!s->ways[w])
    w++;
  way_begin(w, 0, false);
  bench_submissions(w, s->kind, s->posts);
  return way_complete(w, s->posts);
}

static bool failed(const char *what) {
  fprintf(stderr, "submit_bench: %s\n", what);
  return false;
}

/* One pass of a row's run. */
static bool pass(struct bench *b, const struct row *row, enum crew_clock clock,
                 struct crew_ticks *t, struct crew_result *r) {
  const struct crew_job j = {.way = row->way,
                             .kind = row->kind,
                             .threads = row->threads,
                             .seconds = b->s.seconds,
                             .posts = b->s.posts};
  way_begin(row->way, b->doorbells[row->doorbell].multiplies,
            clock == CLOCK_STAMPS);
  if (!crew_run(&b->cores, &j, clock, t, r))
    return failed("no memory, or no more threads");
  if (!way_complete(row->way, r->submissions))
    return failed("not all that was submitted is complete");
  return true;
}

/* All passes of a row's run. */
static bool measure(struct bench *b, struct row *row, unsigned run,
                    double ping) {
  static struct crew_ticks t;
  static const unsigned quantile[QUANTILES] = {500000, 990000, 999000, 1000000};
  struct crew_result r, timed;
  uint64_t bells = way_bells(row->way);
  memset(&t, 0, sizeof t);
  if (!pass(b, row, CLOCK_NONE, NULL, &r))
    return false;
  bells = way_bells(row->way) - bells;
  if (!pass(b, row, CLOCK_RETURNED, &t, &timed))
    return false;
  if (row->way == WAY_POST && !pass(b, row, CLOCK_STAMPS, &t, &timed))
    return false;
  const double n = r.submissions ? (double)r.submissions : 1;
  const double at[FIGURES] = {
      [NS] = (double)r.ns / n,
      [CPU] = (double)r.cpu_ns / n,
      [RATE] = n * 1e9 / (double)r.ns,
      [BELLS] = (double)bells / n,
      [LATERS] = (double)r.laters / n,
      [SHARE] = r.most ? (double)r.fewest / (double)r.most : 0,
      [PING] = ping};
  for (int i = 0; i < FIGURES; i++)
    row->at[i][run] = at[i];
  for (int s = 0; s < SPANS; s++)
    for (int q = 0; q < QUANTILES; q++)
      row->span[s][q][run] =
          histogram_at(&t.of[s], quantile[q]) * b->report.ns_a_tick;
  return true;
}

/* Between the first core and the last that so many threads use. */
static double ping_pong(const struct bench *b, unsigned threads) {
  int far = (int)threads < b->cores.n ? (int)threads - 1 : b->cores.n - 1;
  return crew_ping_pong(&b->cores, 0, far > 0 ? far : 1);
}

static bool measure_all(struct bench *b) {
  for (unsigned run = 0; run < b->s.runs; run++) {
    double ping = 0;
    unsigned threads = 0;
    for (unsigned i = 0; i < b->report.nrows; i++) {
      struct row *row = &b->report.rows[i];
      if (row->threads != threads)
        ping = ping_pong(b, threads = row->threads);
      if (!measure(b, row, run, ping))
        return false;
    }
  }
  return true;
}

static void row_add(struct report *r, enum way w, enum kind k, unsigned threads,
                    unsigned doorbell) {
  struct row *row = &r->rows[r->nrows++];
  row->way = w;
  row->kind = k;
  row->threads = threads;
  row->doorbell = doorbell;
}

/* False: no memory. */
static bool rows_make(struct bench *b) {
  const struct settings *s = &b->s;
  struct report *r = &b->report;
  size_t most = (size_t)s->nthreads * s->ndoorbells * (KINDS * WAYS + 3);
  r->rows = calloc(most, sizeof *r->rows);
  for (unsigned t = 0; r->rows && t < s->nthreads; t++)
    for (unsigned d = 0; d < s->ndoorbells; d++) {
      const unsigned threads = (unsigned)s->threads[t];
      if (s->ways[WAY_FLOOR] && threads == 1)
        row_add(r, WAY_FLOOR, KIND_EMPTY, threads, d);
      for (int w = WAY_SWAP; w < WAYS && d == 0; w++) /* they ring no bell */
        if (s->ways[w])
          row_add(r, (enum way)w, KIND_EMPTY, threads, d);
      for (int k = 0; k < KINDS; k++)
        for (int w = 0; w < WAY_FLOOR; w++)
          if (s->kinds[k] && s->ways[w] && way_built((enum way)w) &&
              (threads == 1 || !way_single((enum way)w)))
            row_add(r, (enum way)w, (enum kind)k, threads, d);
    }
  return r->rows != NULL;
}

static const char *cpu_name(void) {
  static char line[256];
  FILE *f = fopen("/proc/cpuinfo", "r");
  char *name = NULL;
  while (f && !name && fgets(line, sizeof line, f))
    if (strncmp(line, "model name", 10) == 0)
      name = strchr(line, ':');
  if (f)
    fclose(f);
  if (!name)
    return "unknown processor";
  name[strcspn(name, "\n")] = 0;
  return name + 1 + (name[1] == ' ');
}

static void calibrate(struct bench *b) {
  struct report *r = &b->report;
  r->cpu = cpu_name();
  r->cores = (unsigned)b->cores.n;
  r->runs = b->s.runs;
  r->pinned = b->cores.pin;
  r->seconds = b->s.seconds;
  r->posts = b->s.posts;
  r->ns_a_tick = ticks_calibrate();
  r->reading_ns = (double)ticks_between() * r->ns_a_tick;
  r->doorbells = b->doorbells;
  r->ndoorbells = b->s.ndoorbells;
  for (unsigned i = 0; i < r->ndoorbells; i++) {
    struct doorbell *d = &b->doorbells[i];
    d->asked_ns = b->s.doorbells[i];
    d->multiplies = ticks_multiplies(d->asked_ns, r->ns_a_tick);
    d->measured_ns = ticks_measure(d->multiplies, r->ns_a_tick);
  }
}

static bool bench(struct bench *b) {
  crew_cores_find(&b->cores);
  b->cores.pin = !b->s.no_pin;
  if (b->s.nthreads == 0)
    for (int t = 1; t <= 16 && t <= 2 * b->cores.n; t *= 2)
      b->s.threads[b->s.nthreads++] = t;
  calibrate(b);
  if (!rows_make(b))
    return failed("no memory");
  bool ok = measure_all(b);
  if (ok)
    (b->s.json ? report_json : report_table)(stdout, &b->report);
  free(b->report.rows);
  return ok;
}

static double number(const char *text, double least, double most,
                     struct argp_state *state) {
  char *end;
  double x = strtod(text, &end);
  if (end == text || *end || !(x >= least && x <= most))
    argp_error(state, "'%s' is no number of [%g, %g]", text, least, most);
  return x;
}

static unsigned whole(const char *text, double most, struct argp_state *state) {
  double x = number(text, 1, most, state);
  if (x != (double)(unsigned)x)
    argp_error(state, "'%s' is not whole", text);
  return (unsigned)x;
}

static unsigned numbers(char *text, double *to, double least, double most,
                        struct argp_state *state) {
  unsigned n = 0;
  char *rest;
  for (char *t = strtok_r(text, ",", &rest); t;
       t = strtok_r(NULL, ",", &rest)) {
    if (n == MOST_LIST)
      argp_error(state, "more than %d numbers", MOST_LIST);
    to[n++] = number(t, least, most, state);
  }
  if (n == 0)
    argp_error(state, "an empty list");
  return n;
}

static unsigned name(const char *text, const char *const *of, unsigned n,
                     struct argp_state *state) {
  unsigned i = 0;
  while (i < n && strcmp(text, of[i]) != 0)
    i++;
  if (i == n)
    argp_error(state, "'%s' is unknown", text);
  return i;
}

static void names(char *text, const char *const *of, unsigned n, bool *given,
                  struct argp_state *state) {
  char *rest;
  memset(given, 0, n * sizeof *given);
  for (char *t = strtok_r(text, ",", &rest); t; t = strtok_r(NULL, ",", &rest))
    given[name(t, of, n, state)] = true;
}

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  switch (key) {
  case 't':
    s->nthreads = numbers(text, s->threads, 1, MOST_THREADS, state);
    return 0;
  case 'k':
    names(text, kind_names, KINDS, s->kinds, state);
    return 0;
  case 'w':
    names(text, way_names, WAYS, s->ways, state);
    return 0;
  case 's':
    s->seconds = number(text, 1e-6, 3600, state);
    return 0;
  case 'p':
    s->posts = whole(text, 4e9, state);
    return 0;
  case 'r':
    s->runs = whole(text, MOST_RUNS, state);
    return 0;
  case 'd':
    s->ndoorbells = numbers(text, s->doorbells, 0, 1e6, state);
    return 0;
  case 'j':
    s->json = true;
    return 0;
  case 'n':
    s->no_pin = true;
    return 0;
  case 'c':
    s->callgrind = true;
    s->kind = (enum kind)name(text, kind_names, KINDS, state);
    return 0;
  case ARGP_KEY_ARG:
    if (!s->callgrind || state->arg_num > 0)
      return ARGP_ERR_UNKNOWN;
    s->posts = whole(text, 4e9, state);
    return 0;
  case ARGP_KEY_END:
    if (s->callgrind && s->posts == 0)
      argp_error(state, "--callgrind KIND N");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

int main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"threads", 't', "N,...", 0,
       "Numbers of threads (1,2,4,8,16, up to twice the cores)", 0},
      {"kinds", 'k', "KIND,...", 0, "empty, copy, parts (all)", 0},
      {"ways", 'w', "WAY,...", 0,
       "post, mutex, spin, rte_ring, turn, bare, floor, swap, swap+node (all)",
       0},
      {"seconds", 's', "S", 0, "Of a pass; a row has two or three a run (0.05)",
       0},
      {"posts", 'p', "N", 0, "Of each thread in a pass, instead", 0},
      {"runs", 'r', "N", 0, "Whose medians are told (7)", 0},
      {"doorbell-ns", 'd', "NS,...", 0, "What a doorbell costs (0,130)", 0},
      {"json", 'j', NULL, 0, "All numbers, as JSON", 0},
      {"no-pin", 'n', NULL, 0, "Threads run on any core", 0},
      {"callgrind", 'c', "KIND", 0,
       "Nothing but N submissions of one way, to count instructions", 0},
      {0}};
  static const struct argp argp = {
      options, option, "[N]", "What a submission costs.", NULL, NULL, NULL};
  static struct bench b = {
      .s = {.doorbells = {0, 130},
            .ndoorbells = 2,
            .kinds = {true, true, true},
            .ways = {true, true, true, true, true, true, true, true, true},
            .seconds = 0.05,
            .runs = 7}};
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &b.s))
    return 2;
  setvbuf(stdout, NULL, _IOLBF, 0); /* what is killed has told its rows */
  if (!ways_make())
    return !failed("no memory");
  return b.s.callgrind ? !callgrind(&b.s) : !bench(&b);
}
