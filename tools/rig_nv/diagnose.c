/* SPDX-License-Identifier: ISC */
/*
 * The command doctor.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "tools/rig_nv/doctor.h"
#include "tools/rig_nv/tool.h"

enum { ROOT = 256 }; /* the key of an option that has no letter */

struct settings {
  int gpu;
  const char *root;
};

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  switch (key) {
  case 'g':
    s->gpu = (int)tool_number("--gpu", text, INT_MAX, state);
    return 0;
  case ROOT:
    s->root = text;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

int tool_doctor(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"gpu", 'g', "N", 0, "GPU N of the machine, by bus address (any)", 0},
      {"root", ROOT, "DIR", OPTION_HIDDEN, "The folder for /", 0},
      {0}};
  static const struct argp argp = {
      options,
      option,
      "",
      "Says why a GPU cannot be opened, and what to do: looks at the device "
      "files, the driver's modules and release, and the PCI functions, then "
      "opens it. Changes nothing.\v"
      "Exit status: 0 where a GPU opened; 1 where none did; 2 for wrong usage "
      "and for any error.",
      NULL,
      NULL,
      NULL};
  struct settings s = {.gpu = -1, .root = ""};
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return TOOL_ERROR;
  struct system system;
  system_init(&system, s.root);
  int status = doctor_run(&system, s.gpu, stdout);
  if (fflush(stdout) || ferror(stdout))
    return tool_failed("writing to stdout", strerror(errno));
  return status;
}
