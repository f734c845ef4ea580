#!/bin/bash
# submit_bench runs, and its JSON has a number and a unit for all that it
# says. No figure is judged: they are the machine's.
#
# submit_bench_test.sh PROGRAM
set -uo pipefail

bench=$1
failed=0
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT

passed() { echo "[  PASSED  ] 1 test(s). $1"; }
refuse() {
  echo "[  FAILED  ] 1 test(s). $1"
  failed=1
}

# name, status, arguments
run() {
  local name=$1 want=$2 status=0
  shift 2
  "$bench" "$@" >"$out" 2>&1 || status=$?
  if [[ $status == "$want" ]]; then
    passed "$name"
  else
    refuse "$name: status $status, not $want"
    head -20 "$out"
  fi
}

# How often the text is in what the last run said.
has() { # times, text
  local n
  n=$(grep -oF -- "$2" "$out" | wc -l)
  if [[ $n == "$1" ]]; then
    passed "$1 of $2"
  else
    refuse "$n of $2, not $1"
    head -20 "$out"
  fi
}

tiny=(--posts 20 --runs 2 --threads '1,2' --doorbell-ns 5)
run 'JSON' 0 "${tiny[@]}" --json
for key in bench cpu pinned cores runs submissions_of_a_thread tick \
  two_readings ring segments in_flight rte_ring rows; do
  has 1 "\"$key\": "
done
# Of many threads: post, mutex, spin, and rte_ring where it is installed.
many=3
if grep -qF '"rte_ring": true' "$out"; then many=4; fi
# Rows: floor with one thread, the two swaps with one and two, and of 3 kinds
# turn and bare with one and each way of many with one and two.
rows=$((1 + 2 * 2 + 3 * (2 + 2 * many)))
for key in way kind threads doorbell_asked doorbell_measured \
  time_a_submission cpu_time_a_submission submissions doorbells laters \
  fewest_of_a_thread line_round_trip returned; do
  has $rows "\"$key\": "
done
posts=6
has $posts '"shown": '
has $posts '"released": '
for key in p50 p99 p99.9 max; do
  has $((rows + 2 * posts)) "\"$key\": "
done
# Of the setting; threads and two doorbells of each row; its seven figures; and
# four of each span.
has $((8 + rows * (3 + 7 + 4) + posts * 2 * 4)) '"unit": "'
run 'table' 0 "${tiny[@]}"
has 1 'threads  bell kind  way        '
has 1 'threads  bell kind  way       span'
has $((4 - many)) 'rte_ring not installed'
run 'seconds' 0 --seconds 0.001 --runs 1 --kinds copy --ways post --threads 1 \
  --doorbell-ns 0,1 --no-pin
has 8 'copy  post' # a row and three spans for each doorbell
for span in returned shown released; do
  has 2 "copy  post      $span"
done
for way in post turn bare swap swap+node; do
  run "callgrind $way" 0 --ways $way --callgrind parts 100
done
run 'callgrind' 0 --callgrind parts 100
while IFS=: read -r text arguments; do
  # shellcheck disable=SC2086
  run "$arguments" 2 $arguments
  has 1 "$text"
done <<'EOF'
'more' is unknown:--kinds more
'more' is unknown:--ways post,more
'0' is no number:--threads 0
is not whole:--runs 1.5
an empty list:--threads ,
--callgrind KIND N:--callgrind copy
EOF

exit $failed
