/* SPDX-License-Identifier: ISC */
#include "stress/options.h"

#include <inttypes.h>
#include <stdlib.h>

#include "stress/chain.h"

uint64_t option_number(const char *text, uint64_t least, uint64_t most,
                       const struct argp_state *state) {
  char *end;
  uint64_t n = strtoull(text, &end, 0);
  if (end == text || *end || n < least || n > most)
    argp_error(state, "'%s' is no number from %" PRIu64 " to %" PRIu64, text,
               least, most);
  return n;
}

const char *const posting_modes[POSTING_MODES] = {"post", "turn"};

static error_t option(int key, char *text, struct argp_state *state) {
  struct posting *p = state->input;
  switch (key) {
  case 's':
    p->seed = option_number(text, 0, UINT64_MAX, state);
    return 0;
  case 'm':
    p->mode = (unsigned)option_number(text, 0, POSTING_MODES - 1, state);
    p->one_mode = true;
    return 0;
  case 't':
    p->threads = (unsigned)option_number(text, 1, CHAIN_MOST_THREADS, state);
    return 0;
  case 'p':
    p->patience_s = (unsigned)option_number(text, 1, 3600, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"seed", 's', "SEED", 0, "Of submissions and model (1)", 0},
    {"mode", 'm', "N", 0, "0: post mode alone; 1: turn mode alone", 0},
    {"threads", 't', "T", 0, "That submit", 0},
    {"patience", 'p', "SECONDS", 0, "Of each wait for a value (60)", 0},
    {0}};
static const struct argp argp = {options, option, NULL, NULL, NULL, NULL, NULL};

const struct argp_child posting_options[] = {{&argp, 0, NULL, 0}, {0}};
