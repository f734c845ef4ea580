/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_NVIDIA_H
#define PATHS_NVIDIA_NVIDIA_H
/*
 * nvidia: the path through NVIDIA's kernel driver, its open modules included,
 * with ioctls on /dev/nvidiactl, /dev/nvidiaN and /dev/nvidia-uvm alone
 * (rig_nv_path_nvidia of core/api/rig_nv.h).
 *
 * A GPU's path is opened once at a time in a process. Its RM frees objects,
 * its stop answers UNKNOWN, and its driver bounds the GPU's work (hang_ms -1).
 * Pinned memory is the process's, pinned; its GPU address is not its host
 * address. The doorbell, and the GPU's timer, are reached through BAR 0; the
 * clock is of the kind USERMODE, three reads of registers of 1 us each.
 *
 * The driver maps Mapped memory write-combined, whatever is asked for: a
 * thread's stores to it may stay in its core until a fence of its own, which
 * its submissions give, as does each locked instruction. Before another thread
 * submits, the one that stored fences.
 *
 * It reaches another GPU's memory where UVM lets the two be peers, which it is
 * asked as the second of them opens.
 *
 * Another PCI function reaches GPU memory by a DMA buffer, which the driver
 * exports and that function's driver imports; Pinned memory it does not.
 *
 * While the driver pins or unpins the memory of one thread, others allocate,
 * map and free; but a map_host waits for what it overlaps.
 *
 * A free that fails keeps the memory, and its addresses, until the GPU's path
 * is closed.
 *
 * Below is what tests and tools see beside the path. Threads: any.
 */
#include "paths/nvidia/abi/release.h"
#include "paths/nvidia/os.h"
#include "paths/path.h"

enum { NVIDIA_BUS = 16, NVIDIA_RELEASES = RELEASE_LIST };

/* The bus addresses of the system's NVIDIA GPUs in bus order, which is how
 * every path numbers them, whichever driver holds each: the first `most` of
 * them. Returns how many there are, 0 also where the system shows no PCI
 * functions: then the kernel driver's own list of its GPUs numbers them. */
size_t nvidia_gpus(const struct nvidia_os *, char (*bus)[NVIDIA_BUS],
                   size_t most);

/* Whether the path knows the release of a version such as "580.159.04", and
 * the releases that it knows, as "570, 580 and 610". */
bool nvidia_supports(const char *version);
void nvidia_releases(char text[NVIDIA_RELEASES]);

/* As rig_nv_path_nvidia, on another system. One system at a time serves all
 * the paths of a process: INVALID for a second one. */
int nvidia_open(const struct nvidia_os *, const struct rig_nv_nvidia_options *,
                const struct rig_nv_path **);

/* The version of the kernel driver, such as "580.159.04". */
const char *nvidia_version(const struct rig_nv_path *);
#endif
