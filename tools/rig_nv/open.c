/* SPDX-License-Identifier: ISC */
#include <stdio.h>

#include "tools/allocator.h"
#include "tools/rig_nv/tool.h"

int tool_failed(const char *what, const char *cause) {
  fprintf(stderr, "rig-nv: %s: %s\n", what, cause);
  return TOOL_ERROR;
}

int tool_open(struct tool_gpu *gpu, enum rig_nv_mode mode,
              const struct rig_nv_model_options *model) {
  *gpu = (struct tool_gpu){.what = "the model, a GPU in software"};
  if (rig_nv_path_model(model, &gpu->path))
    return tool_failed("opening the model", rig_nv_why());
  struct rig_nv_options options;
  rig_nv_options_init(&options);
  options.mode = mode;
  options.allocator = tool_allocator();
  if (rig_nv_make(gpu->path, &options, &gpu->device) == 0)
    return TOOL_OK;
  (void)tool_failed("making the device", rig_nv_why());
  if (rig_nv_path_close(gpu->path))
    (void)tool_failed("closing the model", rig_nv_why());
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
    status = tool_failed("closing the model", rig_nv_why());
  return status;
}
