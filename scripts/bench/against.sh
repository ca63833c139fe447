#!/usr/bin/env bash
# Runs a bench of another commit and of this tree in turns, and prints the figures of both. Called by
# `./dev bench --against COMMIT NAME`.
#
# usage: scripts/bench/against.sh COMMIT NAME [ARGUMENT...]
# Settings by environment: ROUNDS=5, and those of the bench itself; KEEP=DIR keeps the outputs as DIR/{old,new}-ROUND.
#
# The other commit is checked out and built below target/against, and runs its own bench. A figure is a number in a line
# that both print alike but for the numbers. For each: the median of both, [lowest-highest], and the ratio new/old.
# It judges nothing: a ratio whose ranges overlap shows no difference. Exit codes: 2 usage, 3 a build or a bench failed.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -ge 2 ] || { echo "usage: ./dev bench --against COMMIT NAME [ARGUMENT...]" >&2; exit 2; }
commit=$(git rev-parse --quiet --verify "$1^{commit}") || { echo "'$1' is no commit of this repository" >&2; exit 2; }
name=$2
shift 2
ROUNDS=${ROUNDS:-5}
[[ $ROUNDS =~ ^[1-9][0-9]*$ ]] || { echo "ROUNDS=$ROUNDS: a number from 1 on" >&2; exit 2; }

target=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")
mkdir -p "$target/against"
old=$target/against/$commit
if [ ! -e "$old/dev" ]; then
    git clone --quiet --no-checkout . "$old"
    git -C "$old" checkout --quiet --detach "$commit"
fi
OUT=${KEEP:-$(mktemp -d "${TMPDIR:-/tmp}/ebbtide-bench-against.XXXXXX")}
mkdir -p "$OUT"
[ -n "${KEEP:-}" ] || trap 'rm -rf "$OUT"' EXIT

# Runs the bench in the tree $1 with the target directory $2. A bench that judges may fail: its figures count.
run() { (cd "$1" && CARGO_TARGET_DIR=$2 ./dev bench "$name" "${@:3}"); }

# Both are built before either is measured.
BENCH_TINY=1 run "$old" "$old/target" "$@" >"$OUT/build" 2>&1 || grep -q '^== ' "$OUT/build" || { cat "$OUT/build" >&2; exit 3; }
BENCH_TINY=1 run . "$target" "$@" >"$OUT/build" 2>&1 || grep -q '^== ' "$OUT/build" || { cat "$OUT/build" >&2; exit 3; }
for ((round = 1; round <= ROUNDS; round++)); do
    run "$old" "$old/target" "$@" >"$OUT/old-$round" || echo "round $round: the old bench ended with $?" >&2
    run . "$target" "$@" >"$OUT/new-$round" || echo "round $round: the new bench ended with $?" >&2
    echo "round $round of $ROUNDS is measured" >&2
done

echo "$name: old ${commit:0:7}, new $(git rev-parse --short HEAD), $ROUNDS rounds in turns, $(nproc) processors"
echo "median old [lowest-highest], median new [lowest-highest], new/old"
awk -v rounds="$ROUNDS" '
    function sorted(list, n, a, i, j, v) {
        split(list, a, " ")
        for (i = 2; i <= n; i++) for (j = i; j > 1 && a[j] + 0 < a[j - 1] + 0; j--) { v = a[j]; a[j] = a[j - 1]; a[j - 1] = v }
        low = a[1]; high = a[n]
        return n % 2 ? a[(n + 1) / 2] : (a[n / 2] + a[n / 2 + 1]) / 2
    }
    FNR == 1 { build = FILENAME ~ /\/old-[0-9]+$/ ? "old" : "new"; split("", seen) }
    {
        rest = $0; line = ""; count = 0; split("", numbers)
        while (match(rest, /[0-9]+([.][0-9]+)?/)) {
            line = line substr(rest, 1, RSTART - 1) "#"
            numbers[++count] = substr(rest, RSTART, RLENGTH)
            rest = substr(rest, RSTART + RLENGTH)
        }
        line = line rest
        gsub(/ +/, " ", line)
        # The second line that looks alike in one output is another figure.
        line = line (++seen[line] > 1 ? " (" seen[line] ")" : "")
        if (count && !(line in known)) { known[line] = count; lines[++all] = line }
        for (i = 1; i <= count; i++) { values[build, line, i] = values[build, line, i] " " numbers[i]; n[build, line, i]++ }
    }
    END {
        for (l = 1; l <= all; l++) {
            line = lines[l]; shown = 0
            for (i = 1; i <= known[line]; i++) {
                if (n["old", line, i] != rounds || n["new", line, i] != rounds) continue
                before = sorted(values["old", line, i], rounds); from = low; to = high
                after = sorted(values["new", line, i], rounds)
                # What never changes is a setting or a promise.
                if (from == to && low == high && from == low) continue
                if (!shown++) print line
                printf "    #%d  %12.6g [%g-%g]  %12.6g [%g-%g]  %s\n", i, before, from, to, after, low, high,
                    (before > 0 ? sprintf("%.3f", after / before) : "-")
            }
        }
    }' "$OUT"/old-[0-9]* "$OUT"/new-[0-9]*
