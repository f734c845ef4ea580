#!/bin/bash
# The instructions of a submission, as callgrind counts them, are at most 5%
# above what is written below. They do not depend on what else the machine
# does, so a change that makes a post dearer is seen, where its time is not. A
# change that makes it cheaper writes its figure below. Turn is room and submit.
#
# instructions_test.sh PROGRAM
set -uo pipefail

bench=$1
failed=0
out=$(mktemp) && counts=$(mktemp) || exit 1
trap 'rm -f "$out" "$counts"' EXIT

skip() {
  echo "[  SKIPPED ] $1"
  exit 0
}

command -v valgrind >/dev/null || skip 'valgrind is not installed'
[[ $(uname -m) == x86_64 ]] || skip 'the figures are of x86-64'

# Instructions of n submissions.
count() { # way, kind, n
  valgrind --tool=callgrind --toggle-collect=bench_submissions \
    --callgrind-out-file="$counts" \
    "$bench" --ways "$1" --callgrind "$2" "$3" >"$out" 2>&1 || return
  sed -n 's/^==[0-9]*== Collected : //p' "$out"
}

# Of one, without what the first ones and the loop's ends cost.
while read -r way kind most; do
  few=$(count "$way" "$kind" 1000) && many=$(count "$way" "$kind" 2000)
  if [[ ! $few =~ ^[0-9]+$ || ! $many =~ ^[0-9]+$ ]]; then
    echo "[  FAILED  ] 1 test(s). $way $kind: valgrind counted nothing"
    head -20 "$out"
    failed=1
    continue
  fi
  one=$(((many - few + 500) / 1000))
  if ((100 * one > 105 * most)); then
    echo "[  FAILED  ] 1 test(s). $way $kind: $one instructions, not $most"
    failed=1
  else
    echo "[  PASSED  ] 1 test(s). $way $kind: $one instructions, of $most"
  fi
done <<'FIGURES'
post empty 565
post copy 656
turn empty 710
turn copy 833
FIGURES

exit $failed
