/* SPDX-License-Identifier: ISC */
#include <errno.h>
#include <string.h>

#include "tools/rig_nv/gpus.h"
#include "tools/rig_nv/output.h"
#include "tools/rig_nv/tool.h"

enum { ROOT = 256 }; /* the key of an option that has no letter */

struct settings {
  struct tool_which which;
  bool json;
  const char *root;
};

static error_t option(int key, char *text, struct argp_state *state) {
  struct settings *s = state->input;
  if (key == ARGP_KEY_INIT)
    state->child_inputs[0] = &s->which;
  else if (key == 'j')
    s->json = true;
  else if (key == ROOT)
    s->root = text;
  else
    return ARGP_ERR_UNKNOWN;
  return 0;
}

static void facts(struct output *o, const struct rig_facts *f) {
  output_text(o, "arch", "architecture", f->arch);
  output_text(o, "bus", "PCI address", f->bus);
  output_text(o, "queue_0", "queue 0", f->queues[0]);
  output_text(o, "queue_1", "queue 1", f->queues[1]);
  output_text(o, "copy_engine", "queue of copies", f->queues[f->copy_engine]);
  output_number(o, "budget", "budget, bytes", f->budget);
  output_bool(o, "waits_words", "waits for words",
              f->waits >> RIG_WAIT_WORD & 1);
  output_bool(o, "waits_objects", "waits for objects",
              f->waits >> RIG_WAIT_OBJECT & 1);
  output_number(o, "most_waits", "most waits", f->most_waits);
  output_bool(o, "may_block", "submit may block", f->may_block);
  output_bool(o, "maps_host", "maps host memory", f->maps_host);
  output_bool(o, "host_addresses", "host sees Device", f->host_addresses);
  output_signed(o, "hang_ms", "hang bound, ms", f->hang_ms);
  output_signed(o, "cache_bytes", "last cache, bytes", f->cache_bytes);
  output_number(o, "alignment", "alignment, bytes", f->alignment);
  output_bool(o, "own_word", "word of its own", f->own_word != NULL);
}

static void classes(struct output *o, const struct rig_nv_gpu *g) {
  output_hex(o, "channel_class", "channel class", g->channel_class);
  output_hex(o, "compute_class", "compute class", g->compute_class);
  output_hex(o, "copy_class", "copy class", g->copy_class);
  output_hex(o, "sm_version", "SM version", g->sm_version);
}

static void capability(struct output *o, const struct rig_nv_gpu *g) {
  classes(o, g);
  output_number(o, "gpcs", "GPCs", g->gpcs);
  output_number(o, "tpcs_per_gpc", "TPCs a GPC", g->tpcs_per_gpc);
  output_number(o, "sms_per_tpc", "SMs a TPC", g->sms_per_tpc);
  output_number(o, "warps_per_sm", "warps a SM", g->warps_per_sm);
  output_hex(o, "shared_window", "shared window", g->shared_window);
  output_hex(o, "local_window", "local window", g->local_window);
}

static int show(const struct tool_gpu *gpu, bool json) {
  struct output o;
  output_begin(&o, json);
  output_text(&o, "device", "device", gpu->what);
  facts(&o, rig_nv_facts(gpu->device));
  capability(&o, rig_nv_capability(gpu->device));
  if (output_end(&o))
    return tool_failed("writing to stdout", strerror(errno));
  return TOOL_OK;
}

static void one(struct output *o, size_t index, const struct gpus_one *g) {
  output_item(o);
  output_number(o, "gpu", "GPU", index);
  output_text(o, "bus", "PCI address", g->at.bus);
  output_text(o, "pci_device", "PCI device", g->at.device);
  output_text(o, "held_by", "held by", g->at.driver[0] ? g->at.driver : NULL);
  output_bool(o, "opens", "opens", g->opens);
  if (!g->opens) {
    output_text(o, "reason", "reason", g->reason);
    return;
  }
  output_text(o, "arch", "architecture", g->arch);
  classes(o, &g->gpu);
  output_number(o, "most_sms", "SMs, at most", gpus_sms(&g->gpu));
  output_number(o, "memory_bytes", "memory, bytes", g->memory);
  output_signed(o, "cache_bytes", "last cache, bytes", g->cache_bytes);
}

/* The machine's GPUs. */
static int list(const struct settings *s) {
  static struct gpus_one gpus[SYSTEM_GPUS];
  struct system system;
  struct output o;
  char version[64], releases[NVIDIA_RELEASES];
  system_init(&system, s->root);
  nvidia_releases(releases);
  bool driver = system_version(&system, version);
  size_t n = gpus_list(&system, gpus);
  output_begin(&o, s->json);
  output_text(&o, "driver", "NVIDIA's kernel driver", driver ? version : NULL);
  output_text(&o, "releases", "supported releases", releases);
  output_number(&o, "count", "GPUs", n);
  output_list_begin(&o, "gpus");
  for (size_t i = 0; i < n; i++)
    one(&o, i, &gpus[i]);
  output_list_end(&o);
  if (output_end(&o))
    return tool_failed("writing to stdout", strerror(errno));
  return TOOL_OK;
}

static int of_one(const struct settings *s) {
  struct tool_gpu gpu;
  if (tool_open(&gpu, &s->which, RIG_NV_LATCH, NULL))
    return TOOL_ERROR;
  int status = show(&gpu, s->json);
  if (tool_stop(&gpu))
    status = TOOL_ERROR;
  if (tool_close(&gpu))
    status = TOOL_ERROR;
  return status;
}

int tool_info(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"json", 'j', NULL, 0, "One JSON object", 0},
      {"root", ROOT, "DIR", OPTION_HIDDEN, "The folder for /", 0},
      {0}};
  static const struct argp_child children[] = {{&tool_which_argp, 0, NULL, 0},
                                               {0}};
  static const struct argp argp = {
      options,
      option,
      "",
      "Lists the machine's NVIDIA GPUs, whichever driver holds each, and what "
      "those state that open. With --gpu or --model, prints what the device "
      "states of itself and of its GPU.",
      children,
      NULL,
      NULL};
  struct settings s = {.which = {.gpu = -1}, .root = ""};
  if (argp_parse(&argp, argc, argv, 0, NULL, &s))
    return TOOL_ERROR;
  return s.which.model || s.which.gpu >= 0 ? of_one(&s) : list(&s);
}
