/* SPDX-License-Identifier: ISC */
/*
 * Launches whose descriptors are refused or fault: each field and address, and
 * descriptors that nobody wrote; random ones end in either or run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "paths/model/launching.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define TOP (UINT64_C(1) << 40)

static const uint32_t gpus[] = {0x809, 0x900, 0xa04};

#define GRID_X "GRID_WIDTH|CTA_RASTER_WIDTH"
#define GRID_Y "GRID_HEIGHT|CTA_RASTER_HEIGHT"
#define GRID_Z "GRID_DEPTH|CTA_RASTER_DEPTH"
#define REGISTERS "REGISTER_COUNT|REGISTER_COUNT_V"
#define MIN_CONFIG "MIN_SM_CONFIG_SHARED_MEM_SIZE"
#define MAX_CONFIG "MAX_SM_CONFIG_SHARED_MEM_SIZE"
#define TARGET_CONFIG "TARGET_SM_CONFIG_SHARED_MEM_SIZE"
#define RELEASE "RELEASE_ENABLE[0]|RELEASE0_ENABLE"
#define RELEASE_SIZE "RELEASE_STRUCTURE_SIZE[0]|RELEASE0_STRUCTURE_SIZE"
#define RELEASE_64 "RELEASE_PAYLOAD64B[0]|RELEASE0_PAYLOAD64B"
#define NEXT "DEPENDENT_QMD0_ENABLE|DEPENDENT_QMD_ENABLE[0]"
#define NEXT_ACTION "DEPENDENT_QMD0_ACTION|DEPENDENT_QMD_ACTION[0]"
#define BANK_SIZE "CONSTANT_BUFFER_SIZE_SHIFTED4[0]"

/* Fields as they are set, and the one that is refused: the last. Versions that
 * lack it, or cannot hold the value, are left out. */
static const struct {
  const char *name;
  struct {
    const char *field;
    uint64_t value;
  } set[3];
  const char *text;
  uint32_t only; /* an SM version, 0 all of them */
} fields[] = {
    {"version 2", {{"QMD_MAJOR_VERSION", 2}}, "runs V0", 0},
    {"V3 on Hopper",
     {{"QMD_MAJOR_VERSION", 3}},
     "SM version 0x900 runs V04_00",
     0x900},
    {"V4 on Ada",
     {{"QMD_MAJOR_VERSION", 4}},
     "SM version 0x809 runs V03_00",
     0x809},
    {"V4 on Blackwell",
     {{"QMD_MAJOR_VERSION", 4}},
     "SM version 0xa04 runs V05_00",
     0xa04},
    {"minor version",
     {{"QMD_MINOR_VERSION|QMD_VERSION", 1}},
     "0x1: SM version",
     0},
    {"a queue", {{"QMD_TYPE", 0}}, "0x0: not GRID_CTA", 0},
    {"a cluster", {{"QMD_TYPE", 3}}, "0x3: not GRID_CTA", 0},
    {"code of another GPU", {{"SASS_VERSION", 0x80}}, "0x80: SM version", 0},

    {"no width", {{GRID_X, 0}}, "0x0: an axis of size 0", 0},
    {"no height", {{GRID_Y, 0}}, "0x0: an axis of size 0", 0},
    {"no depth", {{GRID_Z, 0}}, "0x0: an axis of size 0", 0},
    {"width", {{GRID_X, UINT64_C(1) << 31}}, "above 2^31 - 1", 0},
    {"no threads in x", {{"CTA_THREAD_DIMENSION0", 0}}, "an axis of size 0", 0},
    {"no threads in y", {{"CTA_THREAD_DIMENSION1", 0}}, "an axis of size 0", 0},
    {"no threads in z", {{"CTA_THREAD_DIMENSION2", 0}}, "an axis of size 0", 0},
    {"threads in x",
     {{"CTA_THREAD_DIMENSION0", 1025}},
     "more than 1024 threads",
     0},
    {"threads in y",
     {{"CTA_THREAD_DIMENSION1", 33}},
     "more than 1024 threads",
     0},
    {"threads in z", {{"CTA_THREAD_DIMENSION2", 65}}, "above 64", 0},
    {"registers",
     {{"CTA_THREAD_DIMENSION0", 1024}, {REGISTERS, 65}},
     "of 1024 threads, more than there are",
     0},
    {"registers of a thread", {{REGISTERS, 256}}, "more than there are", 0},
    {"barriers", {{"BARRIER_COUNT", 17}}, "above 16", 0},

    {"shared memory", {{"SHARED_MEMORY_SIZE", 512}}, "not the reserved", 0},
    {"shared units", {{"SHARED_MEMORY_SIZE", 1088}}, "units of 128", 0x809},
    {"shared units", {{"SHARED_MEMORY_SIZE", 1088}}, "units of 128", 0x900},
    {"a configuration that holds less",
     {{"SHARED_MEMORY_SIZE", 33 * 1024}, {TARGET_CONFIG, 17}, {MIN_CONFIG, 9}},
     "32768 bytes hold less than the 33792",
     0},
    {"a target that holds less",
     {{"SHARED_MEMORY_SIZE", 33 * 1024}, {MIN_CONFIG, 17}, {TARGET_CONFIG, 9}},
     "32768 bytes hold less than the 33792",
     0},
    {"a maximum that holds less",
     {{MAX_CONFIG, 0}},
     "0 bytes hold less than the 1024",
     0},
    {"a target below the minimum",
     {{MIN_CONFIG, 17}, {TARGET_CONFIG, 9}},
     "below the one",
     0},
    {"a maximum below the target",
     {{TARGET_CONFIG, 26}, {MAX_CONFIG, 17}},
     "below the one",
     0},
    {"more than Ada has", {{MAX_CONFIG, 34}}, "more than the 100 KiB", 0x809},
    {"more than Hopper has", {{MAX_CONFIG, 59}}, "more than the 228", 0x900},
    {"local units",
     {{"SHADER_LOCAL_MEMORY_HIGH_SIZE", 0x238}},
     "units of 16",
     0x900},

    {"what multiprocessors held",
     {{"INVALIDATE_SHADER_DATA_CACHE", 0}},
     "may read what its multiprocessors held",
     0},
    {"membar", {{"CWD_MEMBAR_TYPE", 2}}, "no such membar", 0},
    {"prefetched code",
     {{"PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED", 1}},
     "not the program at",
     0},
    {"no bank 0", {{"CONSTANT_BUFFER_VALID[0]", 0}}, "no bank 0", 0},
    {"another's bank 0",
     {{"CONSTANT_BUFFER_INVALIDATE[0]", 0}},
     "another one's bank 0",
     0},
    {"bank 0 of 0 bytes", {{BANK_SIZE, 0}}, "not from 16 to 65536", 0},
    {"bank 0 of 64 KiB and more", {{BANK_SIZE, 4097}}, "to 65536 bytes", 0},
    {"prefetch after the launch",
     {{"CONSTANT_BUFFER_PREFETCH[0]", 2}},
     "not modelled",
     0},
    {"another bank's bytes",
     {{"CONSTANT_BUFFER_VALID[5]", 1}, {"CONSTANT_BUFFER_SIZE_SHIFTED4[5]", 0}},
     "(5) 0x0: not from 16",
     0},

    {"release of no size",
     {{RELEASE, 1}, {RELEASE_64, 1}, {RELEASE_SIZE, 3}},
     "no such size",
     0},
    {"two words of 32 bits",
     {{RELEASE, 1}, {RELEASE_SIZE, 2}, {RELEASE_64, 0}},
     "not the payload of size 2",
     0},
    {"one word of 64 bits",
     {{RELEASE, 1}, {RELEASE_SIZE, 1}, {RELEASE_64, 1}},
     "not the payload of size 1",
     0},
    {"dependent action", {{NEXT, 1}, {NEXT_ACTION, 3}}, "not QMD_SCHEDULE", 0},
};

static void by_field(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(fields); i++)
    for (size_t g = 0; g < COUNT(gpus); g++) {
      struct launching l;
      char text[128];
      unsigned last = 0;
      launching_open_at(&l, gpus[g], i + g);
      while (last < 2 && fields[i].set[last + 1].field)
        last++;
      const char *name = fields[i].set[last].field;
      if (launching_has(&l, name) &&
          (!fields[i].only || fields[i].only == gpus[g])) {
        launching_write(&l, 0, 0, NULL, 0);
        for (unsigned k = 0; k <= last; k++)
          launching_put(&l, 0, fields[i].set[k].field, fields[i].set[k].value);
        launching_go(&l);
        snprintf(text, sizeof text, "launch 0x%llx: %s",
                 (unsigned long long)launching_at(&l, 0),
                 launching_name(&l, name));
        launching_stopped(&l, fields[i].name, 32, text, fields[i].text);
      }
      launching_close(&l);
    }
}

/* Bits of fields that exist and that the model does not run. */
static void strays(void **state) {
  (void)state;
  static const struct {
    uint32_t sm_version;
    const char *field, *text;
  } t[] = {{0x900, "ENABLE_PROGRAM_PRE_EXIT", "bit 1151, of a field"},
           {0x900, "SHADER_LOCAL_MEMORY_LOW_SIZE", "bit 512, of a field"},
           {0x900, "DEPENDENT_QMD1_POINTER", "bit 480, of a field"},
           {0x900, "RELEASE_REDUCTION_ENABLE[0]", "bit 324, of a field"},
           {0x809, "RELEASE1_ENABLE", "bit 951, of a field"},
           {0xa04, "RELEASE_REDUCTION_ENABLE[0]", "bit 292, of a field"}};
  for (size_t i = 0; i < COUNT(t); i++) {
    struct launching l;
    launching_open_at(&l, t[i].sm_version, i);
    launching_write(&l, 0, 0, NULL, 0);
    launching_put(&l, 0, t[i].field, 1);
    launching_go(&l);
    launching_stopped(&l, t[i].field, 32, t[i].text, "launch 0x");
    launching_close(&l);
  }
}

/* Addresses in descriptors: of no memory, of none there can be, off their
 * alignment. */
enum place { NOWHERE, ABOVE, ODD, SAME };

static uint64_t place_of(const struct launching *l, enum place p, uint64_t at,
                         uint64_t off) {
  return p == NOWHERE ? l->slots.address + LAUNCHING_SLOTS * LAUNCHING_SLOT
         : p == ABOVE ? TOP
         : p == ODD   ? at + off
                      : at;
}

static void addresses(void **state) {
  (void)state;
  static const struct {
    const char *name, *field;
    enum place place;
    uint64_t off;
    unsigned release; /* size + 1 of a release */
    uint32_t error, access;
    const char *text;
    uint32_t not; /* an SM version that cannot hold it */
  } t[] = {
      {"bank 0 nowhere", "CONSTANT_BUFFER_ADDR[0]", NOWHERE, 0, 0, 31, 0,
       "CONSTANT_BUFFER_ADDR(0) 0x", 0},
      {"bank 0 at 2^40", "CONSTANT_BUFFER_ADDR[0]", ABOVE, 0, 0, 31, 0,
       "CONSTANT_BUFFER_ADDR(0) 0x10000000000: no memory at", 0},
      {"bank 0 misaligned", "CONSTANT_BUFFER_ADDR[0]", ODD, 32, 0, 32, 0,
       "CONSTANT_BUFFER_ADDR_LOWER(0)", 1},
      {"code nowhere", "PROGRAM_ADDRESS", NOWHERE, 0, 0, 31, 0,
       "PROGRAM_ADDRESS 0x", 0},
      {"code at 2^40", "PROGRAM_ADDRESS", ABOVE, 0, 0, 31, 0,
       "PROGRAM_ADDRESS 0x10000000000: no memory at", 0},
      {"code misaligned", "PROGRAM_ADDRESS", ODD, 64, 0, 32, 0,
       "PROGRAM_ADDRESS_LOWER", 0},
      {"code that nothing is bound to", "PROGRAM_ADDRESS", ODD, 128, 0, 32, 0,
       "no kernel is bound", 0},
      {"release nowhere", NULL, NOWHERE, 0, 3, 31, 1, "", 0},
      {"release misaligned", NULL, ODD, 4, 3, 32, 0, "a release of 8 bytes", 0},
      {"stamp misaligned", NULL, ODD, 8, 1, 32, 0, "a release of 16 bytes", 0},
      {"word misaligned", NULL, ODD, 2, 2, 32, 0, "a release of 4 bytes", 0},
  };
  for (size_t i = 0; i < COUNT(t); i++)
    for (size_t g = 0; g < COUNT(gpus); g++) {
      struct launching l;
      launching_open_at(&l, gpus[g], i + g);
      /* Only V3's banks have addresses in bytes. */
      const bool skip = t[i].not && gpus[g] != 0x809;
      if (!skip) {
        launching_write(&l, 0, 0, NULL, 0);
        uint64_t at = t[i].release ? bench_word_at(&l.bench, 2)
                      : t[i].field[0] == 'C'
                          ? launching_at(&l, 0) + LAUNCHING_BANK
                          : launching_code(&l, 0);
        at = place_of(&l, t[i].place, at, t[i].off);
        if (t[i].release)
          launching_release(&l, 0, t[i].release - 1, at, 1, true);
        else
          launching_address(&l, 0, t[i].field, at);
        launching_put(&l, 0, "PROGRAM_PREFETCH_SIZE", 0);
        launching_go(&l);
        launching_stopped(&l, t[i].name, t[i].error, t[i].text, "");
        if (t[i].error == 31)
          launching_recorded(&l, at, t[i].access);
      }
      launching_close(&l);
    }
}

/* A bank that runs past its memory, and a chain that leads nowhere. */
static void ends(void **state) {
  (void)state;
  for (int chain = 0; chain < 2; chain++)
    for (size_t g = 0; g < COUNT(gpus); g++) {
      struct launching l;
      launching_open_at(&l, gpus[g], g);
      const uint64_t end = l.slots.address + LAUNCHING_SLOTS * LAUNCHING_SLOT;
      launching_write(&l, 0, 0, NULL, 0);
      if (chain)
        launching_chain(&l, 0, LAUNCHING_SLOTS, g % 2);
      else
        launching_address(&l, 0, "CONSTANT_BUFFER_ADDR[0]", end - 512);
      launching_go(&l);
      launching_stopped(&l, chain ? "chain" : "bank", 31,
                        chain ? "" : "no memory at", "");
      launching_recorded(&l, end, 0);
      launching_close(&l);
    }
}

/* Descriptors that nobody wrote, or wrote again since they ran: these lie in
 * the driver's block. */
static void unwritten(void **state) {
  (void)state;
  struct launching l;
  launching_open_at(&l, 0x900, 1);
  memset(l.slots.host, 0xd5, LAUNCHING_SLOT);
  launching_go(&l);
  launching_stopped(&l, "fresh", 32, "is what fresh memory holds", "launch 0x");
  launching_close(&l);

  for (size_t g = 0; g < COUNT(gpus); g++) {
    launching_open_at(&l, gpus[g], g);
    const struct rig_nv_memory slots = l.slots;
    const uint64_t last = BENCH_SEGMENT + 4 * 4096 + BENCH_SEGMENT / 2;
    l.slots.address = l.bench.block.address + last;
    l.slots.host = (char *)l.bench.block.host + last;
    launching_write(&l, 0, 0, NULL, 0);
    launching_push(&l, 0);
    launching_word(&l, 1, 1, true);
    bench_ring(&l.bench, 0);
    assert_true(bench_wait(bench_word(&l.bench, 1), 1));
    const uint8_t *bank = launching_bank(&l, 0);
    for (int i = 0; i < LAUNCHING_BANK_BYTES; i++)
      assert_int_equal(bank[i], 0xd3);
    launching_go(&l);
    launching_stopped(&l, "again", 32,
                      "was run before and nobody wrote it since", "");
    l.slots = slots;
    launching_close(&l);
  }
}

/* Parameters that bank 0 does not reach. */
static void parameters(void **state) {
  (void)state;
  struct launching l;
  launching_open_at(&l, 0x900, 1);
  launching_write(&l, 0, 0, NULL, 0);
  launching_put(&l, 0, BANK_SIZE, 0x200 / 16);
  launching_go(&l);
  launching_stopped(
      &l, "parameters", 32,
      "CONSTANT_BUFFER_SIZE(0): 512 bytes end before the parameters at 528",
      "");
  launching_close(&l);
}

static uint64_t state_of;

static uint32_t any(void) {
  state_of ^= state_of << 13;
  state_of ^= state_of >> 7;
  state_of ^= state_of << 17;
  return (uint32_t)(state_of >> 16);
}

/* Descriptors with bits turned, and random ones: they run or are refused, the
 * same way each time, and never end this process. */
static void garbage(void **state) {
  (void)state;
  unsigned refused = 0, ran = 0;
  for (uint64_t seed = 1; seed <= 120; seed++) {
    char text[2][1024];
    for (int k = 0; k < 2; k++) {
      struct launching l;
      launching_open_at(&l, gpus[seed % COUNT(gpus)], seed);
      state_of = seed * UINT64_C(0x9e3779b97f4a7c15);
      launching_write(&l, 0, 0, NULL, 0);
      uint32_t *words = (uint32_t *)(void *)((char *)l.slots.host);
      for (unsigned bits = any() % 4; bits; bits--)
        words[any() % 96] ^= 1u << any() % 32;
      for (unsigned i = 0; !(seed % 10) && i < 96; i++)
        words[i] = any();
      launching_go(&l);
      launching_outcome(&l, text[k], sizeof text[k]);
      launching_close(&l);
    }
    assert_string_equal(text[0], text[1]);
    refused += text[0][0] != '0';
    ran += text[0][0] == '0';
  }
  assert_true(refused > 20 && ran > 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(by_field),  cmocka_unit_test(strays),
      cmocka_unit_test(addresses), cmocka_unit_test(ends),
      cmocka_unit_test(unwritten), cmocka_unit_test(parameters),
      cmocka_unit_test(garbage),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
