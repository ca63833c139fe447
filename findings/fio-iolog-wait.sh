#!/usr/bin/env bash
# fio 3.33 replays `wait` of an iolog of version 2 as milliseconds since the start; its HOWTO says microseconds after the last one.
#
# Expected, by the HOWTO ("Trace file format v2"): waits of 500 and 1500 take 2 ms together.
# Seen: the replay takes 1.5 s. (Logs that were recorded by the HOWTO are replayed a thousand times too slowly, and each wait
# that is smaller than the one before it is none.)
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 not set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
packages fio=3.33-3
echo "fio: $(fio --version)"
truncate -s 1M "$WORK/data"
cat >"$WORK/log" <<LOG
fio version 2 iolog
$WORK/data add
$WORK/data open
$WORK/data wait 500 0
$WORK/data write 0 4096
$WORK/data wait 1500 0
$WORK/data write 4096 4096
$WORK/data close
LOG
fio --name=a --ioengine=psync --read_iolog="$WORK/log" --output-format=json --output="$WORK/out" >"$WORK/fio.log" 2>&1 ||
    none "fio fails: $(tail -n 2 "$WORK/fio.log" | tr '\n' ' ')"
TOOK=$(sed -n '/"write"/,/}/s/.*"runtime" : \([0-9]*\),.*/\1/p' "$WORK/out" | head -n 1)
echo "two writes after wait 500 and wait 1500: ${TOOK:-?} ms"
[ -n "$TOOK" ] || none "fio's output has no runtime of writes"
# Milliseconds after the last one would be 2 s, the documented reading 2 ms.
if [ "$TOOK" -ge 1300 ] && [ "$TOOK" -le 1800 ]; then verdict yes "waits are milliseconds since the start"; fi
verdict no "waits took $TOOK ms"
