/* SPDX-License-Identifier: ISC */
/*
 * What the descriptor of a launch costs: qmd_fill of a function's template,
 * for each version, beside the plain copy of as many bytes in the same run.
 *
 *     bazel run -c opt //stress/bench:launch_bench
 *
 * Grid, bank 0 and the release differ from launch to launch, and the lines
 * written go round a megabyte, as a launch ring's do. The least and the median
 * of many short runs: whatever else the machine did made the others longer.
 *
 * Instructions of N fills of version V (3, 4 or 5; 0: of the copy):
 *
 *     valgrind --tool=callgrind --toggle-collect=bench_fills \
 *         launch_bench --callgrind V N
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/qmd/qmd.h"
#include "stress/bench/ticks.h"

enum { SLOTS = (1 << 20) / (QMD_MOST_WORDS * 4), RUNS = 2000, EACH = 200 };

static const struct version {
  int number; /* 0: the copy */
  uint32_t sm_version;
} versions[] = {{0, 0x900}, {3, 0x809}, {4, 0x900}, {5, 0xa00}};
enum { VERSIONS = sizeof versions / sizeof *versions };

struct ring {
  uint32_t w[SLOTS][QMD_MOST_WORDS];
};

static struct ring ring __attribute__((aligned(64)));
static struct qmd_template templates[VERSIONS];

static void template_make(const struct version *v, struct qmd_template *t) {
  enum qmd_version of;
  if (qmd_version_of(v->sm_version, &of) != 0)
    abort();
  const struct qmd_function f = {.limits = limits_of(v->sm_version),
                                 .registers = 32,
                                 .barriers = 1,
                                 .code = 0x200000,
                                 .code_bytes = 4096,
                                 .bank0_bytes = 1024};
  qmd_template(of, &f, t);
}

/* n launches of a function, or as many copies of its template. */
__attribute__((noinline)) void bench_fills(const struct qmd_template *, bool,
                                           uint64_t n);
void bench_fills(const struct qmd_template *t, bool fill, uint64_t n) {
  static uint64_t at;
  struct qmd_args a = {.grid = {1, 1, 1},
                       .block = {256, 1, 1},
                       .release = {.size = QMD_TWO_WORDS, .addr = 0x1000}};
  for (uint64_t i = 0; i < n; i++, at++) {
    uint32_t *to = ring.w[at % SLOTS];
    a.grid[0] = (uint32_t)at & 0xffff;
    a.bank0 = 0x300000 + (at % SLOTS) * 1024;
    a.release.payload = at;
    if (fill)
      (void)qmd_fill(t, &a, to);
    else
      memcpy(to, t->words, sizeof t->words);
    __asm__ volatile("" : : "r"(to) : "memory"); /* it is written */
  }
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  static double ns[VERSIONS][RUNS];
  for (int v = 0; v < VERSIONS; v++)
    template_make(&versions[v], &templates[v]);
  if (argc == 4 && strcmp(argv[1], "--callgrind") == 0) {
    for (int v = 0; v < VERSIONS; v++)
      if (versions[v].number == atoi(argv[2])) {
        bench_fills(&templates[v], v != 0, strtoull(argv[3], NULL, 10));
        return 0;
      }
  }
  if (argc != 1) {
    fprintf(stderr, "launch_bench [--callgrind 0|3|4|5 N]\n");
    return 2;
  }
  const double ns_a_tick = ticks_calibrate();
  for (int run = 0; run < RUNS; run++)
    for (int v = 0; v < VERSIONS; v++) {
      const uint64_t begin = ticks();
      bench_fills(&templates[v], v != 0, EACH);
      ns[v][run] = (double)(ticks() - begin) * ns_a_tick / EACH;
    }
  printf("descriptor   least ns  median ns  of the copy\n");
  for (int v = 0; v < VERSIONS; v++) {
    qsort(ns[v], RUNS, sizeof *ns[v], ascending);
    printf("%-11s %9.1f %10.1f %12.2f\n",
           v == 0 ? "copied" : (const char *[]){"V3", "V4", "V5"}[v - 1],
           ns[v][0], ns[v][RUNS / 2], ns[v][RUNS / 2] / ns[0][RUNS / 2]);
  }
  return 0;
}
