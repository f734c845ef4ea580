/* SPDX-License-Identifier: ISC */
/*
 * fault_stress: nothing is lost. Every call of a device's life fails in turn;
 * faults, stalls and hangs strike while 8 threads are inside; devices are made,
 * stopped and released by the thousand, forked and exited with. After each,
 * nothing is left behind, the word is right, the reason names the call, and the
 * next make on the same path works. Prints counts; exit status 0, or 1 with
 * what broke, and its seed, on stderr.
 */
#include <argp.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stress/fault_stress.h"

static const struct {
  const char *name;
  bool (*run)(struct faults *);
} parts[] = {
    {"each", faults_each},
    {"threads", faults_threads},
    {"process", faults_process},
};

struct settings {
  struct faults faults;
  const char *only;
  bool exit_open;
};

static uint64_t number(const char *text, uint64_t most,
                       struct argp_state *state) {
  char *end;
  uint64_t n = strtoull(text, &end, 0);
  if (end == text || *end || n > most)
    argp_error(state, "'%s' is no number up to %" PRIu64, text, most);
  return n;
}

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  switch (key) {
  case 's':
    s->faults.seed = number(text, UINT64_MAX, state);
    return 0;
  case 'r':
    s->faults.rounds = (unsigned)number(text, UINT32_MAX, state);
    return 0;
  case 'c':
    s->faults.cycles = (unsigned)number(text, UINT32_MAX, state);
    return 0;
  case 'l':
    s->faults.rounds = 5000;
    s->faults.cycles = 10000;
    s->faults.process = 100;
    return 0;
  case 'o':
    s->only = text;
    return 0;
  case 'q':
    s->faults.quiet = true;
    return 0;
  case 'x':
    s->exit_open = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static bool all(struct settings *s) {
  bool ran = false;
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (s->only && strcmp(s->only, parts[i].name) != 0)
      continue;
    ran = true;
    if (!parts[i].run(&s->faults))
      return false;
  }
  return ran || faults_broke("no part %s", s->only);
}

int main(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"seed", 's', "SEED", 0, "Of models and threads (1)", 0},
      {"rounds", 'r', "N", 0, "Of threads (60)", 0},
      {"cycles", 'c', "N", 0, "Of make, stop and release (300)", 0},
      {"long", 'l', NULL, 0, "5,000 rounds, 10,000 cycles", 0},
      {"only", 'o', "PART", 0, "each, threads or process alone", 0},
      {"quiet", 'q', NULL, 0, "No progress", 0},
      {"exit-open", 'x', NULL, OPTION_HIDDEN, NULL, 0},
      {0}};
  static const struct argp argp = {
      options, option, NULL, "Devices whose calls fail.", NULL, NULL, NULL};
  struct settings s = {
      .faults = {.seed = 1, .rounds = 60, .cycles = 300, .process = 4}};
  argp_err_exit_status = 2;
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return 2;
  if (s.exit_open)
    return faults_exit_open();
  bool right = all(&s);
  const struct totals *n = &s.faults.n;
  printf("%" PRIu64 " lives: %" PRIu64 " path calls and %" PRIu64
         " host allocations failed\n%" PRIu64 " rounds: %" PRIu64
         " posts, %" PRIu64 " devices lost\n%" PRIu64 " cycles\n",
         n->lives, n->path_failures, n->host_failures, n->rounds, n->posts,
         n->lost, n->cycles);
  return right ? 0 : 1;
}
