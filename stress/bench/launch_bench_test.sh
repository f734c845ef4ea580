#!/bin/bash
# launch_bench runs, and has a row for the copy and for each version.
#
# launch_bench_test.sh PROGRAM
set -uo pipefail

out=$("$1") || exit 1
for row in copied V3 V4 V5; do
  if ! grep -q "^$row " <<<"$out"; then
    echo "[  FAILED  ] 1 test(s). no row of $row"
    exit 1
  fi
done
"$1" --callgrind 4 10 || exit 1
echo '[  PASSED  ] 1 test(s). four rows'
