/* SPDX-License-Identifier: ISC */
#include "stress/bench/report.h"

#include <stdlib.h>
#include <string.h>

#include "stress/bench/gpu.h"

static const struct {
  const char *name, *unit, *head;
  int width, digits; /* of the table; 0: not in it */
} figures[FIGURES] = {
    [NS] = {"time_a_submission", "ns", "ns", 8, 1},
    [CPU] = {"cpu_time_a_submission", "ns", "cpu", 8, 1},
    [RATE] = {"submissions", "1/s", "1/s", 10, 0},
    [BELLS] = {"doorbells", "1/submission", "bells", 6, 2},
    [LATERS] = {"laters", "1/submission", "later", 6, 2},
    [SHARE] = {"fewest_of_a_thread", "1/most_of_a_thread", "share", 6, 2},
    [PING] = {"line_round_trip", "ns", "ping", 6, 0},
};

static const char *const span_names[SPANS] = {"returned", "shown", "released"};
static const char *const quantile_names[QUANTILES] = {"p50", "p99", "p99.9",
                                                      "max"};

struct spread {
  double least, median, most;
};

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static struct spread spread_of(const double *at, unsigned n) {
  double sorted[MOST_RUNS];
  memcpy(sorted, at, n * sizeof *at);
  qsort(sorted, n, sizeof *sorted, ascending);
  return (struct spread){
      .least = sorted[0],
      .median = (sorted[n / 2] + sorted[(n - 1) / 2]) / 2,
      .most = sorted[n - 1],
  };
}

static const char *kind_of(const struct row *r) {
  return r->way >= WAY_FLOOR ? "-" : kind_names[r->kind];
}

static void setting(FILE *f, const struct report *p) {
  fprintf(f, "# %s, %u cores, threads %s\n", p->cpu, p->cores,
          p->pinned ? "pinned" : "not pinned");
  fprintf(f, "# medians of %u runs of ", p->runs);
  if (p->posts)
    fprintf(f, "%lu submissions a thread", p->posts);
  else
    fprintf(f, "%g s", p->seconds);
  fprintf(f,
          " in all; p50, p99, p99.9 and max of one\n"
          "# submission, from as many with a clock around each, %.0f ns of"
          " which are the\n# clock's\n",
          p->reading_ns);
  fprintf(f, "# returned: until the call returned; shown: until GP_PUT showed"
             " it, by whichever\n# thread; released: until the GPU, which"
             " completes at once, had stored its value\n");
  if (!way_built(WAY_RTE_RING))
    fprintf(f, "# rte_ring not installed\n");
  for (unsigned i = 0; i < p->ndoorbells; i++)
    fprintf(f, "# a doorbell of %g ns is %.1f ns\n", p->doorbells[i].asked_ns,
            p->doorbells[i].measured_ns);
  fprintf(f, "# ns, cpu: wall and processor time a submission; ping: round trip"
             " of a line, ns\n");
}

static void row_name(FILE *f, const struct report *p, const struct row *row) {
  fprintf(f, "%7u %5g %-5s %-9s", row->threads,
          p->doorbells[row->doorbell].asked_ns, kind_of(row),
          way_names[row->way]);
}

static void span_table(FILE *f, const struct report *p) {
  fprintf(f, "\nthreads  bell kind  way       span    ");
  for (int q = 0; q < QUANTILES; q++)
    fprintf(f, " %9s", quantile_names[q]);
  fprintf(f, "\n");
  for (unsigned r = 0; r < p->nrows; r++)
    for (int s = 0; s < SPANS; s++) {
      const struct row *row = &p->rows[r];
      if (s != RETURNED && row->way != WAY_POST)
        continue;
      row_name(f, p, row);
      fprintf(f, " %-8s", span_names[s]);
      for (int q = 0; q < QUANTILES; q++)
        fprintf(f, " %9.0f", spread_of(row->span[s][q], p->runs).median);
      fprintf(f, "\n");
    }
}

void report_table(FILE *f, const struct report *p) {
  setting(f, p);
  fprintf(f, "threads  bell kind  way      ");
  for (int i = 0; i < FIGURES; i++)
    fprintf(f, " %*s", figures[i].width, figures[i].head);
  fprintf(f, "\n");
  for (unsigned r = 0; r < p->nrows; r++) {
    const struct row *row = &p->rows[r];
    row_name(f, p, row);
    for (int i = 0; i < FIGURES; i++)
      fprintf(f, " %*.*f", figures[i].width, figures[i].digits,
              spread_of(row->at[i], p->runs).median);
    fprintf(f, "\n");
  }
  span_table(f, p);
}

static void json_text(FILE *f, const char *s) {
  fputc('"', f);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\')
      fputc('\\', f);
    if ((unsigned char)*s >= ' ')
      fputc(*s, f);
  }
  fputc('"', f);
}

static void json_number(FILE *f, const char *name, double x, const char *unit) {
  fprintf(f, "\"%s\": {\"value\": %.10g, \"unit\": \"%s\"}", name, x, unit);
}

static void json_figure(FILE *f, const char *name, const char *unit,
                        const double *at, unsigned n) {
  struct spread s = spread_of(at, n);
  fprintf(f,
          "\"%s\": {\"unit\": \"%s\", \"median\": %.10g, \"least\": %.10g, "
          "\"most\": %.10g, \"each\": [",
          name, unit, s.median, s.least, s.most);
  for (unsigned k = 0; k < n; k++)
    fprintf(f, "%s%.10g", k ? ", " : "", at[k]);
  fprintf(f, "]}");
}

/* "shown": {"p50": ..., ...} */
static void json_span(FILE *f, const struct row *row, int s, unsigned runs) {
  fprintf(f, ",\n     \"%s\": {", span_names[s]);
  for (int q = 0; q < QUANTILES; q++) {
    fprintf(f, "%s", q ? ",\n       " : "");
    json_figure(f, quantile_names[q], "ns", row->span[s][q], runs);
  }
  fprintf(f, "}");
}

static void json_setting(FILE *f, const struct report *p) {
  fprintf(f, "  \"bench\": \"submit_bench\",\n  \"cpu\": ");
  json_text(f, p->cpu);
  fprintf(f, ",\n  \"pinned\": %s,\n  ", p->pinned ? "true" : "false");
  fprintf(f, "\"rte_ring\": %s,\n  ",
          way_built(WAY_RTE_RING) ? "true" : "false");
  const struct {
    const char *name, *unit;
    double x;
  } numbers[] = {
      {"cores", "1", p->cores},
      {"runs", "1", p->runs},
      {p->posts ? "submissions_of_a_thread" : "pass", p->posts ? "1" : "s",
       p->posts ? (double)p->posts : p->seconds},
      {"tick", "ns", p->ns_a_tick},
      {"two_readings", "ns", p->reading_ns},
      {"ring", "entries", GPU_ENTRIES},
      {"segments", "bytes", GPU_SEGMENT_BYTES},
      {"in_flight", "values", GPU_IN_FLIGHT},
  };
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    json_number(f, numbers[i].name, numbers[i].x, numbers[i].unit);
    fprintf(f, ",\n  ");
  }
}

void report_json(FILE *f, const struct report *p) {
  fprintf(f, "{\n");
  json_setting(f, p);
  fprintf(f, "\"rows\": [");
  for (unsigned r = 0; r < p->nrows; r++) {
    const struct row *row = &p->rows[r];
    const struct doorbell *d = &p->doorbells[row->doorbell];
    fprintf(f, "%s\n    {\"way\": \"%s\", \"kind\": \"%s\", ", r ? "," : "",
            way_names[row->way], kind_of(row));
    json_number(f, "threads", row->threads, "1");
    fprintf(f, ", ");
    json_number(f, "doorbell_asked", d->asked_ns, "ns");
    fprintf(f, ", ");
    json_number(f, "doorbell_measured", d->measured_ns, "ns");
    for (int i = 0; i < FIGURES; i++) {
      fprintf(f, ",\n     ");
      json_figure(f, figures[i].name, figures[i].unit, row->at[i], p->runs);
    }
    for (int s = 0; s < SPANS; s++)
      if (s == RETURNED || row->way == WAY_POST)
        json_span(f, row, s, p->runs);
    fprintf(f, "}");
  }
  fprintf(f, "\n  ]\n}\n");
}
