/* SPDX-License-Identifier: ISC */
#ifndef GROWTH_CHANNELS_H
#define GROWTH_CHANNELS_H
/*
 * Channels: one channel group of the RM with its context share, its two
 * channels and their engines, and the memory that they name.
 *
 *   group (KEPLER_CHANNEL_GROUP_A)
 *     share (FERMI_CONTEXT_SHARE_A)
 *     channel[COMPUTE] -- engine[COMPUTE]     debugger (GT200_DEBUGGER, under
 *     channel[COPY]    -- engine[COPY]        the device) names this engine
 *
 *   block, where entries lie, one page or more each:
 *     entries[0] | entries[1] | USERD[0] | USERD[1]
 *   userd, where USERD was to lie elsewhere: USERD[0] | USERD[1]
 *   notifier[q], Pinned, a page: where the RM writes the channel's error
 *
 * The memory that an RM object names stays taken while the RM keeps the
 * object, or while the path keeps the object's channel registered.
 *
 * Threads: one caller at a time of make and end for one set; channels_error
 * from any thread while the set lives.
 */
#include "core/abi/rm.h"
#include "growth/place.h"
#include "paths/path.h"
#include "rings/rings.h"

struct channels {
  uint32_t group, share, channel[QUEUES], engine[QUEUES], debugger;
  bool registered[QUEUES];
  struct rig_nv_memory block, notifier[QUEUES];
  struct rig_nv_memory userd; /* of both, or none: it is in the block */
};

/* Makes the set, not scheduled, with rings of so many entries, powers of two
 * and at least 2, and describes these: entries, n, gp_put, token, and what lies
 * behind the memory BAR. A failed make gives everything back, or its reason
 * says what stays, which is in *channels. The errors of paths/call.h. */
int channels_make(const struct rig_nv_path *, const struct abi_rm_layout *,
                  const uint32_t entries[QUEUES], const struct places *,
                  struct channels *, struct ring_channel ring[QUEUES]);

/* Gives back a set that was to be made and failed with e, which it returns;
 * the reason grows by what stays. */
int channels_undo(const struct rig_nv_path *, struct channels *, int e);

/* Lets the channels run. */
int channels_schedule(const struct rig_nv_path *, const struct abi_rm_layout *,
                      const struct channels *);

/* Ends the registrations and frees the objects, which makes the RM preempt
 * their work. True if the channels are gone, so that nothing of the set runs.
 * *why, if it has no text, gets the first reason of what stays. */
bool channels_end(const struct rig_nv_path *, struct channels *,
                  struct rig_nv_reply *why);

/* Gives the memory back, once nothing of the set runs. 0, or the last FAULT;
 * the rest went back all the same. */
int channels_free_memory(const struct rig_nv_path *, struct channels *);

/* The error in channel q's notifier, or 0: info32 << 16 | status. */
uint64_t channels_error(const struct abi_rm_layout *, const struct channels *,
                        int q);
#endif
