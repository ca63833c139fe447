#!/usr/bin/env bash
# Makes the pictures of docs/tutorial.md from the reports of a run of its commands.
# Takes the directory in which they ran: `trials/report.html` and `cuts/report.html` are in it.
# Exit codes: 0 made, 2 usage, 3 a tool is missing or a picture came out wrong.
set -euo pipefail

ROOT=$(dirname -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")")
readonly ROOT WIDTH=1000 MOST_BYTES=80000

die() {
    local code=$1
    shift
    echo "tutorial-pictures: $*" >&2
    exit "$code"
}

# A browser without network, on a profile of its own.
browse() {
    chromium --headless --no-sandbox --disable-gpu --no-first-run --hide-scrollbars \
        --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$work/profile" \
        --virtual-time-budget=3000 --force-device-scale-factor=1 "$@" "file://$work/page.html" 2>/dev/null
}

# picture NAME REPORT STYLES: what of the report is left when the styles hide the rest, as high as it is.
picture() {
    local name=$1 report=$2 styles=$3 height bytes
    local file=$ROOT/docs/images/$name.png
    {
        cat -- "$report"
        printf '<style>main{padding-bottom:16px!important}nav,footer,.chooser{display:none!important}%s</style>' "$styles"
        printf '<script>addEventListener("load",()=>setTimeout(()=>{document.title="height "+'
        printf 'Math.ceil(document.querySelector("main").getBoundingClientRect().bottom)},500))</script>'
    } >"$work/page.html"
    height=$(browse --window-size="$WIDTH,3000" --dump-dom | grep -o '<title>height [0-9]*' | grep -o '[0-9]*$') ||
        die 3 "the height of $name cannot be told: $report is no report"
    browse --window-size="$WIDTH,$height" --screenshot="$work/$name.png" >/dev/null
    pngquant --force --speed 1 --strip --output "$file" 48 "$work/$name.png"
    bytes=$(stat --format=%s "$file")
    [ "$bytes" -le "$MOST_BYTES" ] || die 3 "$file has $bytes bytes, at most $MOST_BYTES are wanted"
    echo "$file: $WIDTH x $height, $bytes bytes"
}

[ $# = 1 ] || die 2 "usage: $0 DIRECTORY-OF-THE-RUN"
for report in trials cuts; do
    [ -s "$1/$report/report.html" ] || die 2 "$1/$report/report.html is missing: run the commands of docs/tutorial.md there"
done
for tool in chromium pngquant; do
    command -v "$tool" >/dev/null || die 3 "$tool is missing: apt-get install $tool"
done
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir -p -- "$ROOT/docs/images"

picture tutorial-verdicts "$1/trials/report.html" 'section:not(#s0),.findings{display:none!important}'
# The arms' table has twelve columns. These six are left out, so that what the volumes cost can be seen.
columns=''
for column in 2 4 5 7 9 11; do columns+="table:not(.estimates) :is(th,td):nth-child($column),"; done
picture tutorial-throughput "$1/trials/report.html" \
    "${columns}h1,.subtitle,section:not(#s1){display:none!important}section{margin-top:0!important}"
picture tutorial-cuts "$1/cuts/report.html" 'section:not(#s0){display:none!important}'
