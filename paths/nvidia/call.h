/* SPDX-License-Identifier: ISC */
#ifndef PATHS_NVIDIA_CALL_H
#define PATHS_NVIDIA_CALL_H
/*
 * Calls of NVIDIA's kernel driver. Each returns true, or false with the answer
 * and its text, which names the call and the answer:
 *
 *   NV_ERR_NO_MEMORY, NV_ERR_INSUFFICIENT_RESOURCES, ENOMEM    LACKING
 *   a GPU that is lost or must be reset, EIO, ENODEV, ENXIO    FAULTED
 *   anything else                                              DENIED
 *
 * A call that fails has changed nothing. Threads: any.
 */
#include "paths/nvidia/state.h"

/* Sets the reply to the answer of a status, or of a negative errno. */
bool nvk_call_status(struct rig_nv_reply *, const char *what, uint32_t status);
bool nvk_call_errno(struct rig_nv_reply *, const char *what, int error);

/* An escape on fd with parameters of n bytes, whose status is at `status`;
 * NULL where they have none. */
bool nvk_call_escape(const struct client *, int fd, uint32_t escape,
                     void *params, size_t n, const uint32_t *status,
                     const char *what, struct rig_nv_reply *);

/* A new object of class cls under parent. The RM reads its own size of the
 * class: it gets a zeroed buffer that begins with the n bytes of params. */
bool nvk_call_alloc(const struct client *, uint32_t parent, uint32_t cls,
                    void *params, size_t n, uint32_t *object, const char *what,
                    struct rig_nv_reply *);
/* Frees the object and those under it; an object of 0 is none. */
bool nvk_call_free(const struct client *, uint32_t parent, uint32_t object,
                   struct rig_nv_reply *);
bool nvk_call_control(const struct client *, uint32_t object, uint32_t cmd,
                      void *params, size_t n, const char *what,
                      struct rig_nv_reply *);

/* A new file of the GPU's, registered with the client. One file holds one
 * mapping until it is mapped. */
bool nvk_call_open(const struct gpu *, int *fd, struct rig_nv_reply *);

/* Maps the first n bytes of the RM's object `memory` of the device for the
 * host, by a file of its own of the GPU's. */
bool nvk_call_map(const struct gpu *, uint32_t device, uint32_t memory,
                  uint64_t n, uint32_t flags, char **host, uint64_t *cookie,
                  const char *what, struct rig_nv_reply *);
bool nvk_call_unmap(const struct gpu *, uint32_t device, uint32_t memory,
                    uint64_t n, char *host, uint64_t cookie,
                    struct rig_nv_reply *);

/* A request of UVM's, whose status is at byte `status` of the n. */
bool nvk_call_uvm(const struct client *, int fd, uint32_t request, void *params,
                  size_t n, size_t status, const char *what,
                  struct rig_nv_reply *);
#endif
