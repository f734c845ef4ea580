/* SPDX-License-Identifier: ISC */
#ifndef PATHS_MODEL_TESTING_H
#define PATHS_MODEL_TESTING_H
/*
 * A bench: the model opened, and on it a group with two channels and their
 * engines, made call by call as a device does, for tests that write words and
 * ring entries by hand. A call that fails fails the test.
 *
 *   block (Pinned): ring 0 | ring 1 | USERD 0 | USERD 1 | segments 0 | 1
 *   words (Pinned): 8-byte semaphore words, and 64 KiB of bytes after a page
 */
#include "core/abi/rm.h"
#include "paths/model/model.h"

enum {
  BENCH_ENTRIES = 16,
  BENCH_SEGMENT = 65536, /* bytes of a channel's segments */
  BENCH_DATA = 4096,     /* where the bytes begin in `words` */
  BENCH_DATA_BYTES = 65536
};

struct bench_channel {
  uint32_t handle, engine, token;
  uint32_t put;
  uint64_t written; /* bytes of the segment ring */
  struct rig_nv_memory notifier;
};

struct bench {
  const struct rig_nv_path *path;
  const struct abi_rm_layout *layout;
  struct rig_nv_memory block, words;
  uint32_t group, share, debugger;
  struct bench_channel channel[2]; /* compute, copy */
};

/* Options NULL: the defaults. */
void bench_open(struct bench *, const struct rig_nv_model_options *);
/* Gives everything back and closes the path. */
void bench_close(struct bench *);

/* Parameters of an allocation as the bench makes it, to be changed. */
void bench_group_params(const struct bench *, uint8_t *p);
void bench_share_params(const struct bench *, uint8_t *p);
void bench_channel_params(const struct bench *, int channel, uint8_t *p);
void bench_debugger_params(const struct bench *, uint8_t *p);
void bench_set(uint8_t *p, struct abi_rm_field, uint64_t x);

/* Writes n words to channel i's segments, and their ring entry; bench_entry
 * writes an entry as it is. bench_put publishes GP_PUT, and
 * bench_ring also rings the doorbell. */
void bench_push(struct bench *, int i, const uint32_t *words, size_t n);
void bench_entry(struct bench *, int i, uint64_t entry);
void bench_put(struct bench *, int i);
void bench_ring(struct bench *, int i);
/* push, then ring. */
void bench_run(struct bench *, int i, const uint32_t *words, size_t n);

/* The GPU address and the host's of word i, or of byte i of the data. */
uint64_t bench_word_at(const struct bench *, int i);
uint64_t *bench_word(const struct bench *, int i);
uint64_t bench_data_at(const struct bench *, uint64_t i);
uint8_t *bench_data(const struct bench *, uint64_t i);

uint64_t bench_load(uint64_t *word);          /* acquire */
void bench_store(uint64_t *word, uint64_t x); /* release */
/* Waits until the word holds x; false after 10 s. */
bool bench_wait(uint64_t *word, uint64_t x);
/* Waits until channel i's notifier has a status: its info32; 0 after 10 s. */
uint32_t bench_wait_error(struct bench *, int i);
uint16_t bench_status(struct bench *, int i); /* acquire */
void bench_sleep_ms(int ms);

#endif
