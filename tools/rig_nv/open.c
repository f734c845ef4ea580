/* SPDX-License-Identifier: ISC */
#include <limits.h>
#include <stdio.h>

#include "tools/allocator.h"
#include "tools/rig_nv/tool.h"

int tool_failed(const char *what, const char *cause) {
  fprintf(stderr, "rig-nv: %s: %s\n", what, cause);
  return TOOL_ERROR;
}

static error_t option(int key, char *text, struct argp_state *state) {
  struct tool_which *w = state->input;
  switch (key) {
  case 'g':
    w->gpu = (int)tool_number("--gpu", text, INT_MAX, state);
    return 0;
  case 'm':
    w->model = true;
    return 0;
  case 'b':
    w->no_boost = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option which_options[] = {
    {"gpu", 'g', "N", 0, "GPU N of the machine, by bus address (the first)", 0},
    {"model", 'm', NULL, 0, "The model, as where there is no GPU", 0},
    {"no-boost", 'b', NULL, 0, "Do not ask for the highest clocks", 0},
    {0}};
const struct argp tool_which_argp = {which_options, option, NULL, NULL,
                                     NULL,          NULL,   NULL};

/* A GPU where there is one; the model where there is none and none was asked
 * for. */
static int open_path(struct tool_gpu *gpu, const struct tool_which *which,
                     const struct rig_nv_model_options *model) {
  if (!which->model) {
    struct rig_nv_nvidia_options o;
    rig_nv_nvidia_options_init(&o);
    o.gpu = which->gpu;
    *gpu = (struct tool_gpu){.what = "a GPU, by NVIDIA's kernel driver"};
    int e = rig_nv_path_nvidia(&o, &gpu->path);
    if (e == 0)
      return TOOL_OK;
    if (which->gpu >= 0 || e != -RIG_NV_ABSENT)
      return tool_failed("opening the GPU", rig_nv_why());
  }
  *gpu =
      (struct tool_gpu){.what = "the model, a GPU in software", .model = true};
  if (rig_nv_path_model(model, &gpu->path))
    return tool_failed("opening the model", rig_nv_why());
  return TOOL_OK;
}

int tool_open(struct tool_gpu *gpu, const struct tool_which *which,
              enum rig_nv_mode mode, const struct rig_nv_model_options *model) {
  if (open_path(gpu, which, model) != TOOL_OK)
    return TOOL_ERROR;
  struct rig_nv_options options;
  rig_nv_options_init(&options);
  options.mode = mode;
  options.boost = !which->no_boost;
  options.allocator = tool_allocator();
  if (rig_nv_make(gpu->path, &options, &gpu->device) == 0)
    return TOOL_OK;
  (void)tool_failed("making the device", rig_nv_why());
  if (rig_nv_path_close(gpu->path))
    (void)tool_failed("closing the path", rig_nv_why());
  return TOOL_ERROR;
}

int tool_stop(struct tool_gpu *gpu) {
  if (rig_nv_stop(gpu->device, NULL))
    return tool_failed("stopping the device", rig_nv_why());
  return TOOL_OK;
}

int tool_close(struct tool_gpu *gpu) {
  int status = TOOL_OK;
  if (rig_nv_release(gpu->device))
    status = tool_failed("releasing the device", rig_nv_why());
  if (rig_nv_path_close(gpu->path))
    status = tool_failed("closing the path", rig_nv_why());
  return status;
}
