/* SPDX-License-Identifier: ISC */
#ifndef TOOLS_RIG_NV_TOOL_H
#define TOOLS_RIG_NV_TOOL_H
/*
 * tool: what the commands of rig-nv share. A command parses its own arguments
 * and returns the exit status of the program.
 */
#include <argp.h>

#include "core/api/rig_nv.h"

enum tool_status {
  TOOL_OK = 0,
  TOOL_NOT_VERIFIED = 1,
  TOOL_ERROR = 2 /* usage, or any error, told on stderr */
};

int tool_run(int argc, char **argv);
int tool_info(int argc, char **argv);
int tool_doctor(int argc, char **argv);
int tool_locks(int argc, char **argv);

/* A number from 0 to most, in C's notation; else argp_error names the
 * option and ends the program. */
uint64_t tool_number(const char *option, const char *text, uint64_t most,
                     struct argp_state *);

/* Says on stderr what failed, and why. Returns TOOL_ERROR. */
int tool_failed(const char *what, const char *cause);

/* Which GPU, as options say it. */
struct tool_which {
  int gpu;       /* a GPU's number; -1: the first, or the model if none */
  bool model;    /* the model */
  bool no_boost; /* leave the clocks alone */
};
extern const struct argp tool_which_argp; /* of --gpu, --model, --no-boost */

/* A GPU, opened. */
struct tool_gpu {
  const struct rig_nv_path *path;
  struct rig_nv *device;
  const char *what; /* it is */
  bool model;       /* whether it is the model */
};

/* Opens the GPU. TOOL_OK or TOOL_ERROR, told. Nothing is left open by a
 * failure. */
int tool_open(struct tool_gpu *, const struct tool_which *, enum rig_nv_mode,
              const struct rig_nv_model_options *);
/* Stops the device. Its regions may then be freed, before tool_close. */
int tool_stop(struct tool_gpu *);
int tool_close(struct tool_gpu *);
#endif
