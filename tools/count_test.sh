#!/bin/bash
# Runs tools/count on summaries and logs made here.
set -uo pipefail

count=$PWD/tools/count
failed=0

log() { # folder of the target's logs, text
  mkdir -p "$logs/$1" && printf '%b' "$2" >"$logs/$1/test.log"
}

begin() {
  name=$1
  logs=$(mktemp -d "$TEST_TMPDIR/XXXXXX")
}

check() { # summary, what count prints
  local out
  out=$(printf '%b' "$1" | (cd / && "$count" "$logs"))
  if [[ $out == "$2" ]]; then
    echo "[  PASSED  ] 1 test(s). $name"
  else
    echo "[  FAILED  ] 1 test(s). $name: $out, not $2"
    failed=1
  fi
}

begin 'nothing'
check '' '0 0'

begin 'noise'
check 'Executed 0 out of 0 tests.\nINFO: //a:b PASSED\n' '0 0'

begin "cmocka's cases"
log a/b/c_test '[==========] Running 7 test(s).\n[  PASSED  ] 7 test(s).\n'
check '//a/b:c_test      PASSED in 0.1s\n' '7 0'

begin 'of the root package'
log c_test '[  PASSED  ] 2 test(s).\n'
check '//:c_test      PASSED in 0.1s\n' '2 0'

begin 'cached, and two groups'
log a/c_test '[  PASSED  ] 2 test(s).\n[  PASSED  ] 3 test(s).\n'
check '//a:c_test     (cached) PASSED in 0.1s\n' '5 0'

begin 'no lines: one'
log a/c_test 'INFO: done\n'
check '//a:c_test     PASSED in 0.1s\n' '1 0'

begin 'all skipped'
log a/c_test '[  PASSED  ] 0 test(s).\n[  SKIPPED ] 3 test(s).\n'
check '//a:c_test     PASSED in 0.1s\n' '0 0'

begin 'shards'
log a/c_test/shard_1_of_2 '[  PASSED  ] 2 test(s).\n'
log a/c_test/shard_2_of_2 '[  PASSED  ] 4 test(s).\n'
check '//a:c_test     PASSED in 0.1s\n  Stats over 2 runs: max\n' '6 0'

begin 'some fail'
log a/c_test "[  FAILED  ] one\n[  PASSED  ] 4 test(s).
[  FAILED  ] 2 test(s), listed below:\n[  FAILED  ] one\n[  FAILED  ] two
 2 FAILED TEST(S)\n"
check '//a:c_test     FAILED in 0.1s\n  /x/test.log\n' '4 2'

begin 'a leak after all passed'
log a/c_test '[  PASSED  ] 4 test(s).\nERROR: LeakSanitizer\n'
check '//a:c_test     FAILED in 0.1s\n' '4 1'

begin 'a crash'
log a/c_test '[ RUN      ] one\n'
check '//a:c_test     FAILED in 2 out of 2 in 0.1s\n' '0 1'

begin 'no log'
check '//a:c_test     FAILED in 0.1s\n//b:d    PASSED in 1s\n' '1 1'

begin 'every other end'
log a/c_test '[  PASSED  ] 4 test(s).\n'
check '//a:c_test     FAILED TO BUILD\n//a:d     NO STATUS
//a:e    TIMEOUT in 60.0s\n' '0 3'

exit $failed
