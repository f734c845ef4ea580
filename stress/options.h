/* SPDX-License-Identifier: ISC */
#ifndef STRESS_OPTIONS_H
#define STRESS_OPTIONS_H
/*
 * options: what the command lines of stress programs have in common.
 */
#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

/* The number of an option; one that it cannot be ends the program. */
uint64_t option_number(const char *text, uint64_t least, uint64_t most,
                       const struct argp_state *);

enum { POSTING_POST, POSTING_TURN, POSTING_MODES };
extern const char *const posting_modes[POSTING_MODES];

/* How threads submit: by --seed, --mode, --threads and --patience. */
struct posting {
  uint64_t seed;
  unsigned threads, patience_s, mode;
  bool one_mode; /* `mode`, and not each */
};

static inline bool posting_in(const struct posting *p, unsigned mode) {
  return !p->one_mode || p->mode == mode;
}

/* Children of a program's argp, whose parser has, for ARGP_KEY_INIT,
 * state->child_inputs[0] = the struct posting. */
extern const struct argp_child posting_options[];
#endif
