/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rig_nv/tool.h"

/* Public, for argp looks it up in the program. */
RIG_PUBLIC const char *argp_program_version = "rig-nv 0.1";

static const struct command {
  const char *name;
  int (*run)(int argc, char **argv);
} commands[] = {{"run", tool_run},
                {"info", tool_info},
                {"doctor", tool_doctor},
                {"locks", tool_locks}};

enum { COMMANDS = sizeof commands / sizeof *commands };

uint64_t tool_number(const char *option, const char *text, uint64_t most,
                     struct argp_state *state) {
  char *end;
  errno = 0;
  uint64_t n = strtoull(text, &end, 0);
  if (errno || end == text || *end || strchr(text, '-') || n > most)
    argp_error(state, "%s: '%s' is no number up to %" PRIu64, option, text,
               most);
  return n;
}

/* The command's own argp names itself by argv[0]. */
static int run(const struct command *c, struct argp_state *state) {
  char name[32];
  snprintf(name, sizeof name, "rig-nv %s", c->name);
  char **argv = state->argv + state->next - 1;
  int argc = state->argc - state->next + 1;
  argv[0] = name;
  state->next = state->argc;
  return c->run(argc, argv);
}

static error_t option(int key, char *text, struct argp_state *state) {
  int *status = state->input;
  if (key == ARGP_KEY_NO_ARGS)
    argp_error(state, "no command");
  if (key != ARGP_KEY_ARG)
    return ARGP_ERR_UNKNOWN;
  for (size_t i = 0; i < COMMANDS; i++)
    if (strcmp(text, commands[i].name) == 0) {
      *status = run(&commands[i], state);
      return 0;
    }
  argp_error(state, "'%s' is no command", text);
  return EINVAL;
}

int main(int argc, char **argv) {
  static const struct argp argp = {
      NULL,
      option,
      "COMMAND [OPTION...]",
      "Drives an NVIDIA GPU from user mode, with no CUDA.\v"
      "Commands:\n"
      "  run [FILE]  random submissions, every byte of them verified\n"
      "  info        the machine's GPUs; what a device states of itself\n"
      "  doctor      why a GPU cannot be opened\n"
      "  locks       the order in which a run takes its locks\n"
      "\n"
      "'rig-nv COMMAND --help' has a command's options. Exit status: 0; 1 "
      "where run does not verify, no GPU opens or a lock is out of order; 2 "
      "for "
      "wrong usage and for any error.",
      NULL,
      NULL,
      NULL};
  int status = TOOL_OK;
  argp_err_exit_status = TOOL_ERROR;
  if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &status))
    return TOOL_ERROR;
  return status;
}
