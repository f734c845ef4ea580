/* SPDX-License-Identifier: ISC */
#ifndef CORE_CUBIN_CUBIN_H
#define CORE_CUBIN_CUBIN_H
/*
 * What a cubin holds: the image that goes to GPU memory and the kernels in it.
 *
 * A cubin is an ELF64 file, though not a strict one: its version, flags, types
 * of sections and symbols that it never uses are the compiler's own, and are
 * not looked at. The image has the file's allocated sections in their order,
 * without those of shared memory and without Blackwell's second description of
 * the code (.nv.merc.*):
 *
 *   0            each held section at its alignment, 128 or more
 *   |.text.a |..|.nv.constant0.a |..|.nv.global (zeros) |..| 4,096 or more |
 *                                                              image_bytes -^
 *
 * The tail is there because the GPU fetches instructions ahead of those it
 * runs. Gaps and tail are zeros.
 *
 * cubin_parse checks everything that the other calls read, so that they need
 * no more than the file. It keeps a pointer to the caller's bytes, which stay
 * as they are for as long as the struct is used. Nothing is allocated, and no
 * call recurses. Work is linear in the file's size, but for relocations: each
 * costs up to a 64th of the number of sections.
 *
 * Failures are -RIG_NV_INVALID, name the section, symbol or attribute, and
 * leave the result untouched.
 *
 * Threads: a struct cubin does not change after cubin_parse; any number may
 * read it.
 *
 * Sources: the numbers below are those that nvcc 13.0 writes, see testdata/;
 * the names are those that NVIDIA's cuobjdump and nvdisasm print.
 */
#include <stddef.h>
#include <stdint.h>

enum { CUBIN_BANKS = 8, CUBIN_MARKS = 64 };
/* Widest GPU virtual address: 49 bits. */
#define CUBIN_LIMIT (UINT64_C(1) << 49)

struct cubin {
  const unsigned char *bytes;
  size_t n;
  uint32_t sm;          /* 90 for sm_90 */
  uint64_t image_bytes; /* a multiple of 4,096 */
  uint64_t align;       /* of the image's address: 128 or more, at most 4,096 */

  /* The rest is the module's own. marks[k] is where the image stands before
   * section k * stride. */
  uint32_t sections, stride, symbols, symbol_section;
  uint64_t headers, names, names_bytes, symbols_at;
  uint64_t strings, strings_bytes;
  uint64_t marks[CUBIN_MARKS];
};

/* Bytes of the image; none: bytes is 0. */
struct cubin_part {
  uint64_t offset, bytes;
};

struct cubin_kernel {
  const char *name; /* in the file's bytes */
  struct cubin_part code;
  uint32_t registers, stack_bytes;
  uint32_t barriers; /* named ones and __syncthreads's; 0 of none */
  /* The size of the kernel's section of shared memory. From sm_90 on, nvcc 13.0
   * counts the 1 KiB there that CUDA reserves at its start; before, not. */
  uint64_t shared_bytes;
  uint32_t params_offset, params_bytes; /* in bank 0; 0 of no parameters */
  struct cubin_part banks[CUBIN_BANKS]; /* bank 0 as zeros, parameters too */
};

int cubin_parse(const void *bytes, size_t n, struct cubin *out);

/* The kernel's, or function's, code and what it needs; INVALID where there is
 * none of that name. */
int cubin_kernel(const struct cubin *, const char *name,
                 struct cubin_kernel *out);

/* Each kernel in turn: *at is 0 at first. 1 with *out, or 0 after the last. */
int cubin_next(const struct cubin *, uint32_t *at, struct cubin_kernel *out);

/* Writes the image_bytes bytes of the image, relocated for address base, to
 * out. INVALID: base is not a multiple of align, or the image would end past
 * CUBIN_LIMIT. */
int cubin_lay(const struct cubin *, uint64_t base, void *out);
#endif
