#!/usr/bin/env bash
# Judges the ratio that `./dev demo` printed into FILE: its 95% interval must lie within a factor of 1.5 to either side.
#
# usage: scripts/bench/ratio.sh FILE
# Prints the ratio with its interval, or why it is not good enough. Exit codes: 0 good enough, 1 not.
set -euo pipefail
sed -n 's/.* carries \([0-9.,]*\) times the transactions of [^(]*(\([0-9.,]*\) to \([0-9.,]*\), 95%).*/\1 \2 \3/p' "$1" |
    tr -d , | awk '
        { seen = 1; text = $1 " times (" $2 " to " $3 ", 95%)"; if ($1 / $2 > 1.5 || $3 / $1 > 1.5) wide = 1 }
        END {
            if (!seen) { print "the demo printed no ratio with an interval"; exit 1 }
            if (wide) { print "the interval is not within a factor of 1.5 to either side: " text; exit 1 }
            print text
        }'
