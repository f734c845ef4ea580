/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_MODEL_H
#define PATHS_MODEL_MODEL_H
/*
 * The model: a GPU in software that is stricter than silicon, reached by the
 * path that rig_nv_path_model opens.
 *
 * What hardware may choose, the seed chooses: when GP_PUT is looked at, also
 * with no doorbell or only after one; how far ahead ring entries are read;
 * which channel steps, and for how many words; when copies move and in what
 * pieces; when launches read their descriptors and constants, run and end, and
 * in which order where nothing orders them; when others see what a launch with
 * no system membar wrote; that a release which asks for no wait or flush comes
 * before the copies ahead of it; when a release's store lands, a copy's while
 * its channel goes on and a host's while it waits, and whether one that a fault
 * or a free overtakes lands at all (before it, or never); which GPU addresses
 * memory gets.
 *
 * What hardware takes and the model refuses, as error 32 with the path's
 * report: methods and argument bits that its tables do not have; a launch of a
 * register that nothing set; ring entries that are empty, conditional, of
 * level MAIN or waiting; a segment that ends inside a method's arguments;
 * SEM_EXECUTE with bits of the other operation; launches whose descriptors its
 * tables do not have, that read through caches which nobody invalidated, or
 * whose channel lacks windows or local memory; a change of these while launches
 * run. Memory ends at its last byte, not its page's; host memory that is mapped
 * ends at its last page.
 *
 * What it fetched from memory that a channel's hObjectBuffer names or that was
 * allocated with RIG_NV_COMBINE, which is for a driver's own rings, ring
 * entries, words of segments, descriptors and their bank 0, it overwrites
 * before anything that the words release is seen, and refuses by name where it
 * meets it again (`poisons`).
 *
 * Kernels are C functions bound to code (rig_nv_model_bind). One runs at once
 * and at its launch's start, in the engine's thread; a launch's writes land at
 * its end, in two halves.
 *
 * Models open in one process are GPUs of one machine: they have one key, and
 * map each other's memory. A view of memory that was freed faults. Channels
 * name no views.
 *
 * Posted writes (`posts_writes`): Mapped memory lies twice, as the host stores
 * it and as the GPU sees it, and what the host changed moves once a thread has
 * read the flush word, which a SIGSEGV handler notices; signals at other
 * addresses go to the handler that was there. A channel whose USERD is Mapped
 * memory sees GP_PUT as it is stored, and what was stored before it. What the
 * GPU writes both see at once. No thread may block SIGSEGV as it reads the
 * word, nor read it in a signal handler.
 *
 * Host memory that is mapped must stay the process's until it is freed: the
 * model reads and writes it in place.
 *
 * Below is what tests see beside the path: what lives in the model, and a hold
 * on its engine. `path` is one that rig_nv_path_model opened and that is not
 * closed. Threads: any.
 */
#include "paths/path.h"

struct model_counts {
  size_t objects;       /* of the RM, the opener's three excepted */
  size_t channels;      /* of these */
  size_t memories;      /* given and not given back */
  size_t registrations; /* of channels */
  size_t pending;       /* copies, launches, and stores of releases, yet to
                         * be made */
  uint64_t used[3];     /* bytes, by enum rig_memory; map_host's in PINNED */
  uint64_t viewed;      /* bytes of other models' memory that it maps */
  uint64_t copies;      /* LAUNCH_DMAs that transfer, decoded since open */
  uint64_t interrupts;  /* NON_STALL_INTERRUPTs since open */
  uint64_t launches;    /* whose kernels ran since open */
  uint64_t chained;     /* of the launches scheduled, by a descriptor */
  uint64_t released;    /* releases by descriptors */
  uint64_t invalidates; /* INVALIDATE_SHADER_CACHES, with a wait or without */
  uint64_t locals;      /* settings of SET_SHADER_LOCAL_MEMORY */
  uint64_t words;       /* pushbuffer words run since open */
};

void model_counts(const struct rig_nv_path *path, struct model_counts *);

/* Holds the engine, or lets it go on. Once the call that holds it returns, the
 * engine reads and writes nothing. */
void model_stall(const struct rig_nv_path *path, bool hold);

#endif
