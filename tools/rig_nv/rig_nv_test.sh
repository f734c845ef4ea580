#!/bin/sh
# SPDX-License-Identifier: ISC
# rig-nv as its users call it: what it prints, and how it exits.
set -u
rig=$1
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failures=0

fail() {
  echo "FAILED: $*"
  sed 's/^/  out: /' "$tmp/out"
  sed 's/^/  err: /' "$tmp/err"
  failures=$((failures + 1))
}

# is STATUS ARGUMENTS: runs it, keeps out and err.
is() {
  want=$1
  shift
  "$rig" "$@" >"$tmp/out" 2>"$tmp/err"
  got=$?
  [ "$got" -eq "$want" ] || fail "rig-nv $*: exit status $got, not $want"
}

# out, err PATTERN: a line of the last one's output matches. `none`: no bytes.
out() { grep -Eq -- "$1" "$tmp/out" || fail "stdout has no $1"; }
err() { grep -Eq -- "$1" "$tmp/err" || fail "stderr has no $1"; }
out_none() { [ ! -s "$tmp/out" ] || fail "stdout is not empty"; }
err_none() { [ ! -s "$tmp/err" ] || fail "stderr is not empty"; }

# Rows of one JSON object, each "key": value, all but the last with a comma.
# Prints the keys.
json_keys() {
  sed -n '1{/^{$/!q1};$!p' "$tmp/out" >"$tmp/rows" || return 1
  [ "$(tail -n 1 "$tmp/out")" = "}" ] || return 1
  sed 1d "$tmp/rows" >"$tmp/body"
  value='("([^"\\]|\\.)*"|-?[0-9]+(\.[0-9]+)?|true|false|null)'
  sed '$!s/,$/;/; $s/,$/!/' "$tmp/body" >"$tmp/ends"
  last=$(wc -l <"$tmp/ends")
  bad=$(sed '$d' "$tmp/ends" | grep -Evc "^  \"[a-z0-9_]+\": $value;$")
  [ "$bad" -eq 0 ] && [ "$last" -gt 3 ] || return 1
  tail -n 1 "$tmp/ends" | grep -Eq "^  \"[a-z0-9_]+\": $value$" || return 1
  sed 's/^  "\([a-z0-9_]*\)".*/\1/' "$tmp/ends"
}

has_keys() {
  keys=$(json_keys) || { fail "no JSON object"; return; }
  for key in "$@"; do
    echo "$keys" | grep -qx "$key" || fail "no key $key"
  done
  [ -z "$(echo "$keys" | sort | uniq -d)" ] || fail "a key stands twice"
}

# run verifies
is 0 run --model --submissions 2000 --threads 4
out '^verified +yes$'
out '^submissions +2000$'
out '^device +the model'
out '^launches +[1-9]'
out '^words added +262145$'
err_none
is 0 run --model --submissions=500 --threads=1 --seed=7 --json
has_keys device arch submissions bytes seconds submissions_per_second \
  host_ns later verified
out '^  "verified": true$'
out '^  "submissions": 500,$'
is 0 run --model --submissions 0
out '^verified +yes$'

# both ways to submit
for mode in post turn; do
  option=
  [ $mode = turn ] && option=--turn
  is 0 run --model --submissions 3000 --threads 4 $option
  out "^mode +$mode$"
  out '^submissions +3000$'
  out '^values a doorbell +[0-9]+\.[0-9]{2}$'
  out '^verified +yes$'
  is 0 run --model --submissions 300 --threads 3 --json $option
  has_keys mode values_per_doorbell
  out "^  \"mode\": \"$mode\",$"
  out '^  "verified": true$'
done

# a file is uploaded, whatever its size
printf 'odd' >"$tmp/odd"
: >"$tmp/empty"
head -c 300001 /dev/urandom >"$tmp/big"
for file in odd empty big; do
  is 0 run --model --submissions 300 "$tmp/$file"
  out '^verified +yes$'
done

# run finds a copy that wrote nothing: the first, of the upload, or a later
# one. Where a word of it is waited for, the work stands still.
for copy in 1 9; do
  is 1 run --model --submissions 40 --threads 1 --drop-copy $copy
  out '^verified +no$'
  err 'byte [0-9]+ of [A-Z][a-z]+ memory is 0x|no progress|is not reached'
done
is 1 run --model --submissions 20 --threads 1 --drop-copy 1 --json
out '^  "verified": false$'

# info
is 0 info --model
out '^architecture +sm_90$'
out '^queue 1 +COPY:0$'
is 0 info --model --json
has_keys device arch queue_0 queue_1 budget most_waits copy_class
out '^  "arch": "sm_90",$'

# info of a machine, which --root makes up: its GPUs, whoever holds them, and
# what this build supports
machine=$tmp/machine
mkdir -p "$machine/sys/bus/pci/devices"
is 0 info --root "$machine"
out '^NVIDIA.s kernel driver +none$'
out '^supported releases +570, 580 and 610$'
out '^GPUs +0$'
is 0 info --root "$machine" --json
out '^  "gpus": \[\]$'
for slot in 41 02; do
  function=$machine/sys/bus/pci/devices/0000:$slot:00.0
  mkdir -p "$function"
  echo 0x10de >"$function/vendor"
  echo 0x030200 >"$function/class"
  echo "0x23$slot" >"$function/device"
done
ln -s ../../../drivers/vfio-pci "$function/driver"
is 0 info --root "$machine"
out '^GPUs +2$'
out '^PCI address +0000:02:00.0$'
out '^held by +vfio-pci$'
out '^held by +none$'
out '^opens +no$'
out '^reason +no NVIDIA kernel driver'
is 0 info --root "$machine" --json
[ "$(tr -d '\n ' <"$tmp/out" | sed 's/"reason":"[^"]*"/R/g')" = \
  '{"driver":null,"releases":"570,580and610","count":2,"gpus":['\
'{"gpu":0,"bus":"0000:02:00.0","pci_device":"0x2302","held_by":"vfio-pci",'\
'"opens":false,R},{"gpu":1,"bus":"0000:41:00.0","pci_device":"0x2341",'\
'"held_by":null,"opens":false,R}]}' ] || fail "no list of two GPUs"

# doctor: what fails, and what to do
is 1 doctor --root "$machine"
out '^FAIL  /dev/nvidiactl is not there  -> '
out '^FAIL  GPU 0 is 0000:02:00.0, device 0x2302, held by vfio-pci  -> '
out '^FAIL  opening: no NVIDIA kernel driver: /dev/nvidiactl: '
err_none
is 1 doctor --root "$machine" --gpu 7
out '^FAIL  GPU 7: the machine has 2  -> '

# locks: the model's is taken, and no lock out of order
is 0 locks --submissions 500 --threads 3
out '^path +400$'
err_none
is 0 locks -n 10 --dot
out '^digraph locks \{$'
out '^  "path" \[xlabel="400"\];$'
grep -q submissions "$tmp/out" && fail "locks prints what run does"

# help and version
is 0 --help
out 'run \[FILE\]'
is 0 --version
out '^rig-nv [0-9]'
is 0 --help
out '^  doctor '
is 0 run --help
out '--submissions'
grep -q drop-copy "$tmp/out" && fail "run --help shows --drop-copy"

# wrong usage and errors: 2, the cause on stderr, nothing on stdout
while IFS='|' read -r cause arguments; do
  # shellcheck disable=SC2086
  is 2 $arguments
  out_none
  err "$cause"
done <<TABLE
no command|
'walk' is no command|walk
unrecognized option|run --frobnicate
unrecognized option|--frobnicate
'x' is no number|run --submissions x
'-1' is no number|run --threads=-1
'65' is no number up to 64|run --threads 65
none would submit|run --threads 0
one FILE is enough|run $tmp/odd $tmp/odd
$tmp/absent: No such file|run $tmp/absent
$tmp: Is a directory|run $tmp
Too many arguments|info extra
Too many arguments|locks extra
Too many arguments|doctor extra
'x' is no number|doctor --gpu x
'x' is no number|locks --threads x
TABLE
if [ "$(id -u)" -ne 0 ]; then
  chmod 000 "$tmp/odd"
  is 2 run "$tmp/odd"
  err "$tmp/odd: Permission denied"
fi
if [ -e /dev/full ]; then
  "$rig" info --model >/dev/full 2>"$tmp/err"
  [ $? -eq 2 ] || fail "info to a full device"
  err 'stdout: No space left'
  "$rig" doctor --root "$machine" >/dev/full 2>"$tmp/err"
  [ $? -eq 2 ] || fail "doctor to a full device"
  err 'stdout: No space left'
fi

# SIGINT ends it early, and what was submitted is verified
"$rig" run --model --submissions 100000000 >"$tmp/out" 2>"$tmp/err" &
pid=$!
# Its handler is there: bit 2 of the signals that are caught. Before that a
# job of a shell ignores the signal, and would run all of its submissions.
for _ in $(seq 600); do
  grep -q '^SigCgt:.*[2367abef]$' "/proc/$pid/status" && break
  sleep 0.1
done
sleep 0.1
kill -INT "$pid"
wait "$pid"
[ $? -eq 0 ] || fail "SIGINT: not verified"
out '^verified +yes$'

[ "$failures" -eq 0 ] && echo "all as it must be"
exit "$((failures > 0))"
