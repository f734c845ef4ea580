/* SPDX-License-Identifier: ISC */
#ifndef CORE_ABI_CLASSES_H
#define CORE_ABI_CLASSES_H
/*
 * The RM's class numbers that a device or a path names, and which channel and
 * engine classes this library's words are written for. Constant: any thread.
 *
 * Sources: open-gpu-kernel-modules, g_allclasses.h and class/cl*.h; no number
 * changed from release 570 to 610. AMPERE_CHANNEL_GPFIFO_B is open-gpu-doc's,
 * classes/host/clc76f.h.
 */
#include <stdbool.h>
#include <stdint.h>

enum abi_class {
  NV01_ROOT = 0x0,
  NV01_ROOT_CLIENT = 0x41,
  NV01_DEVICE_0 = 0x80,
  NV20_SUBDEVICE_0 = 0x2080,
  NV01_MEMORY_SYSTEM = 0x3e,
  NV01_MEMORY_LOCAL_USER = 0x40,
  NV01_MEMORY_VIRTUAL = 0x70,
  NV01_MEMORY_SYSTEM_OS_DESCRIPTOR = 0x71,
  FERMI_VASPACE_A = 0x90f1,
  FERMI_CONTEXT_SHARE_A = 0x9067,
  KEPLER_CHANNEL_GROUP_A = 0xa06c,
  GT200_DEBUGGER = 0x83de,

  VOLTA_USERMODE_A = 0xc361,
  TURING_USERMODE_A = 0xc461,
  AMPERE_USERMODE_A = 0xc561,
  HOPPER_USERMODE_A = 0xc661,
  BLACKWELL_USERMODE_A = 0xc761,

  AMPERE_CHANNEL_GPFIFO_A = 0xc56f,
  AMPERE_CHANNEL_GPFIFO_B = 0xc76f,
  HOPPER_CHANNEL_GPFIFO_A = 0xc86f,
  BLACKWELL_CHANNEL_GPFIFO_A = 0xc96f,
  BLACKWELL_CHANNEL_GPFIFO_B = 0xca6f,

  AMPERE_COMPUTE_A = 0xc6c0, /* GA100 */
  AMPERE_COMPUTE_B = 0xc7c0,
  ADA_COMPUTE_A = 0xc9c0,
  HOPPER_COMPUTE_A = 0xcbc0,
  BLACKWELL_COMPUTE_A = 0xcdc0,
  BLACKWELL_COMPUTE_B = 0xcec0,

  AMPERE_DMA_COPY_A = 0xc6b5, /* GA100 */
  AMPERE_DMA_COPY_B = 0xc7b5,
  HOPPER_DMA_COPY_A = 0xc8b5,
  BLACKWELL_DMA_COPY_A = 0xc9b5,
  BLACKWELL_DMA_COPY_B = 0xcab5
};

enum abi_class_kind { ABI_CHANNEL_CLASS, ABI_COMPUTE_CLASS, ABI_COPY_CLASS };

/* Whether core/abi/method.h's words are those of the class. GA100's compute
 * and copy classes are not: AMPERE_DMA_COPY_A has no upper word of a
 * semaphore's payload. */
bool abi_class_known(enum abi_class_kind, uint32_t cls);

/* The architecture of an SM version, as compilers write it: "sm_90" for 0x900.
 * Byte 1 is its major number; the low byte is its minor number, or has it in
 * the high nibble. 0xa04 is "sm_120". Other bits are not looked at. */
void abi_arch(uint32_t sm_version, char out[16]);
#endif
