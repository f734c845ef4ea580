/* SPDX-License-Identifier: ISC */
/* Every number of every release's layout against the numbers that were
 * measured with that release's headers, testdata/rm_structs.tsv. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/abi/rm.h"
#include "core/abi/tsv.h"

static struct tsv structs, constants;

#define GROUP "NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS"
#define SHARE "NV_CTXSHARE_ALLOCATION_PARAMETERS"
#define CHANNEL "NV_CHANNEL_ALLOC_PARAMS"
#define DEBUGGER "NV83DE_ALLOC_PARAMETERS"
#define SCHEDULE "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS"
#define SM "NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS"
#define MMU "NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_PARAMS"
#define NOTIFICATION "NvNotification"
#define AT(member) offsetof(struct abi_rm_layout, member)

/* A layout's field of a structure's field. Of an array the layout has the
 * first of its elements. */
static const struct {
  const char *structure, *field;
  size_t at;
  unsigned elements;
} fields[] = {
    {GROUP, "hVASpace", AT(group.va_space), 1},
    {GROUP, "engineType", AT(group.engine_type), 1},
    {SHARE, "hVASpace", AT(share.va_space), 1},
    {SHARE, "flags", AT(share.flags), 1},
    {CHANNEL, "hObjectError", AT(channel.object_error), 1},
    {CHANNEL, "hObjectBuffer", AT(channel.object_buffer), 1},
    {CHANNEL, "gpFifoOffset", AT(channel.gpfifo_offset), 1},
    {CHANNEL, "gpFifoEntries", AT(channel.gpfifo_entries), 1},
    {CHANNEL, "flags", AT(channel.flags), 1},
    {CHANNEL, "hContextShare", AT(channel.context_share), 1},
    {CHANNEL, "hUserdMemory", AT(channel.userd_memory_0), 8},
    {CHANNEL, "userdOffset", AT(channel.userd_offset_0), 8},
    {CHANNEL, "engineType", AT(channel.engine_type), 1},
    {DEBUGGER, "hAppClient", AT(debugger.app_client), 1},
    {DEBUGGER, "hClass3dObject", AT(debugger.class_3d_object), 1},
    {SCHEDULE, "bEnable", AT(schedule.enable), 1},
    {SM, "hTargetChannel", AT(sm_errors.target_channel), 1},
    {SM, "numSMsToRead", AT(sm_errors.sms_to_read), 1},
    {SM, "startingSM", AT(sm_errors.starting_sm), 1},
    {SM, "mmuFaultInfo", AT(sm_errors.mmu_fault_info), 1},
    {SM, "mmuFault.valid", AT(sm_errors.mmu_fault_valid), 1},
    {SM, "smErrorStateArray", AT(sm_errors.sm_0), 100},
    {SM, "smErrorStateArray[0].hwwGlobalEsr", AT(sm_errors.global_esr), 1},
    {SM, "smErrorStateArray[0].hwwWarpEsr", AT(sm_errors.warp_esr), 1},
    {SM, "smErrorStateArray[0].hwwWarpEsrPc", AT(sm_errors.warp_pc), 1},
    {SM, "smErrorStateArray[0].hwwEsrAddr", AT(sm_errors.esr_addr), 1},
    {SM, "smErrorStateArray[0].hwwWarpEsrPc64", AT(sm_errors.warp_pc_64), 1},
    {MMU, "count", AT(mmu_faults.count), 1},
    {MMU, "mmuFaultInfoList", AT(mmu_faults.list_0), 4},
    {MMU, "mmuFaultInfoList[0].faultAddress", AT(mmu_faults.address), 1},
    {MMU, "mmuFaultInfoList[0].faultType", AT(mmu_faults.type), 1},
    {MMU, "mmuFaultInfoList[0].accessType", AT(mmu_faults.access), 1},
    {NOTIFICATION, "timeStamp", AT(notification.time_stamp), 1},
    {NOTIFICATION, "info32", AT(notification.info_32), 1},
    {NOTIFICATION, "info16", AT(notification.info_16), 1},
    {NOTIFICATION, "status", AT(notification.status), 1},
};
enum { FIELDS = sizeof fields / sizeof fields[0] };

static const struct {
  const char *structure;
  size_t at;
} sizes[] = {
    {GROUP, AT(group.bytes)},       {SHARE, AT(share.bytes)},
    {CHANNEL, AT(channel.bytes)},   {DEBUGGER, AT(debugger.bytes)},
    {SCHEDULE, AT(schedule.bytes)}, {SM, AT(sm_errors.bytes)},
    {MMU, AT(mmu_faults.bytes)},    {NOTIFICATION, AT(notification.bytes)},
};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* Beside those: the release, and stride and most of two arrays. */
_Static_assert(sizeof(int) + FIELDS * sizeof(struct abi_rm_field) +
                       (SIZES + 4) * sizeof(uint16_t) ==
                   sizeof(struct abi_rm_layout),
               "each number of a layout is in a table");

/* The notification's header was not among those of 610: 580's stand in. */
static const char *const *look(int release, const char *structure,
                               const char *field) {
  char number[16];
  snprintf(number, sizeof number, "%d",
           release == 610 && !strcmp(structure, NOTIFICATION) ? 580 : release);
  const char *key[] = {number, structure, field};
  const char *const *row = tsv_find(&structs, key, 3);
  if (row == NULL)
    fail_msg("%s has no %s %s", number, structure, field);
  return row;
}

static uint64_t constant(int release, const char *name) {
  char number[16];
  snprintf(number, sizeof number, "%d", release);
  const char *key[] = {number, name};
  const char *const *row = tsv_find(&constants, key, 2);
  if (row == NULL)
    fail_msg("%s has no %s", number, name);
  return tsv_number(row[2]);
}

static const int releases[] = {570, 580, 610};

static void test_fields(void **state) {
  (void)state;
  for (size_t i = 0; i < 3 * FIELDS; i++) {
    const int release = releases[i / FIELDS];
    const char *structure = fields[i % FIELDS].structure;
    const char *field = fields[i % FIELDS].field;
    const char *const *row = look(release, structure, field);
    struct abi_rm_field is;
    memcpy(&is, (const char *)abi_rm_layout(release) + fields[i % FIELDS].at,
           sizeof is);
    if (is.at != tsv_number(row[3]) ||
        is.n * fields[i % FIELDS].elements != tsv_number(row[4])) {
      fail_msg("%d %s %s: %u bytes at %u", release, structure, field, is.n,
               is.at);
    }
  }
}

static void test_sizes(void **state) {
  (void)state;
  for (size_t i = 0; i < 3 * SIZES; i++) {
    const int release = releases[i / SIZES];
    const char *structure = sizes[i % SIZES].structure;
    uint16_t is;
    memcpy(&is, (const char *)abi_rm_layout(release) + sizes[i % SIZES].at,
           sizeof is);
    if (is != tsv_number(look(release, structure, "(sizeof)")[4])) {
      fail_msg("%d %s: %u bytes", release, structure, is);
    }
  }
}

static void test_arrays(void **state) {
  (void)state;
  for (size_t i = 0; i < 3; i++) {
    const int release = releases[i];
    const struct abi_rm_layout *l = abi_rm_layout(release);
    assert_int_equal(l->release, release);
    assert_int_equal(l->sm_errors.most,
                     constant(release, "NV83DE_CTRL_DEBUG_MAX_SMS_PER_CALL"));
    assert_int_equal(l->sm_errors.most * l->sm_errors.stride,
                     tsv_number(look(release, SM, "smErrorStateArray")[4]));
    assert_int_equal(
        l->mmu_faults.most,
        constant(release, "NV83DE_CTRL_DEBUG_READ_MMU_FAULT_INFO_MAX_ENTRIES"));
    assert_int_equal(l->mmu_faults.most * l->mmu_faults.stride,
                     tsv_number(look(release, MMU, "mmuFaultInfoList")[4]));
    assert_int_equal(NV2080_ENGINE_TYPE_GRAPHICS,
                     constant(release, "NV2080_ENGINE_TYPE_GRAPHICS"));
    assert_int_equal(
        NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC,
        constant(release, "NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC"));
  }
}

static void test_unknown(void **state) {
  (void)state;
  static const int unknown[] = {0, -580, 535, 569, 571, 590, 595, 609, 615};
  for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
    assert_null(abi_rm_layout(unknown[i]));
  }
}

static int read_tables(void **state) {
  (void)state;
  tsv_read(&structs, "rm_structs.tsv");
  tsv_read(&constants, "rm_consts.tsv");
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_fields),
      cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_arrays),
      cmocka_unit_test(test_unknown),
  };
  return cmocka_run_group_tests(tests, read_tables, NULL);
}
