#!/bin/bash
# The example reports both of its mistakes, once, with their places, and
# nothing where it does right.
#
# own_locks_test.sh PROGRAM
set -uo pipefail

program=$1
failed=0
check() { # name, what is wanted, what is there
  if [[ $2 == "$3" ]]; then
    echo "[  PASSED  ] 1 test(s). $1"
  else
    echo "[  FAILED  ] 1 test(s). $1: '$3', not '$2'"
    failed=1
  fi
}
lines() { grep -cE -- "$1" <<<"$out"; }

out=$("$program" --right)
check 'right: no report' 0 $?
check 'right: says nothing of it' 0 "$(lines 'lock order')"
check 'right: the order' 1 "$(lines '^edge: account, then journal$')"

out=$("$program")
check 'wrong: two reports' 2 $?
at='[a-z_/]+own_locks\.c:[0-9]+'
check 'wrong: a cycle' 1 \
  "$(lines "^lock order: take of \"account\" at $at closes a cycle of 2 classes$")"
check 'wrong: who takes it' 1 "$(lines \
  "^  thread [0-9]+ holds \"journal\" \($at\) and wants \"account\" \($at\)$")"
check 'wrong: who took it before' 1 "$(lines \
  "^  thread [0-9]+ held \"account\" \($at\), .* and wanted \"journal\" \($at\)$")"
check 'wrong: the block' 1 \
  "$(lines "^lock order: writing to the disk at $at inside \"journal\"")"
check 'wrong: the edge' 1 "$(lines '^edge: journal, then account, wrong$')"
check 'wrong: and works' 1 "$(lines '^1 transfers, 600 in all$')"
exit $failed
