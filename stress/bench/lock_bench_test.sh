#!/bin/bash
# lock_bench runs, and has a row for each way and depth. No figure is judged:
# they are the machine's.
#
# lock_bench_test.sh PROGRAM
set -uo pipefail

bench=$1
failed=0
check() { # name, what is wanted, what is there
  if [[ $2 == "$3" ]]; then
    echo "[  PASSED  ] 1 test(s). $1"
  else
    echo "[  FAILED  ] 1 test(s). $1: $3, not $2"
    failed=1
  fi
}

for threads in 1 3; do
  out=$("$bench" --rounds 3 --takes 100 --threads $threads)
  check "status, $threads threads" 0 $?
  check 'rows' 12 "$(grep -cE \
    '^ +[124]  [a-z, ]+ +[0-9.]+ +-?[0-9.]+ +[0-9.]+$' <<<"$out")"
  check 'marks' 4 "$(grep -cE '^[a-z_, ]+: [0-9.]+ ns$' <<<"$out")"
done
for arguments in '--rounds 0' '--rounds' '--takes x' '--more 1'; do
  # shellcheck disable=SC2086
  "$bench" $arguments >/dev/null 2>&1
  check "$arguments" 2 $?
done
exit $failed
