# A server on a data directory of its own, for the scripts of this folder, which source it. It is no script itself.
#
#   prepare NAME [SERVER]   fetches the server NAME (a row of scripts/servers.sh) into the temporary folder, or takes the
#                           program SERVER; makes a data directory; prints the version
#   start [OPTION...]       starts the server; end: ends it as its user would
#   sql TEXT                the answer without headings; an error is its text
#   seen WHAT ANSWER STATED prints an answer and compares it; conclude ends with the verdict
#
# shellcheck shell=bash

PID=
WORK=$(mktemp -d "${TMPDIR:-/tmp}/finding.XXXXXX")

cleanup() {
    [ -z "$PID" ] || { kill -9 "$PID" 2>/dev/null && wait "$PID" 2>/dev/null; } || true
    rm -rf "$WORK"
}
trap cleanup EXIT
none() { echo "verdict: none: $*" && exit 3; }

prepare() {
    local here
    CLIENT=$(command -v mariadb || command -v mysql) || none "a client (mariadb or mysql) is missing"
    if [ -n "${2-}" ]; then
        SERVER=$(command -v "$2") || none "the server $2 is missing"
    else
        here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
        SERVER=$(EBBTIDE_SERVERS="$WORK/servers" "$here/../scripts/servers.sh" "$1" | awk '{print $2}') || none "$1 could not be fetched"
        [ -x "$SERVER" ] || none "$1 could not be fetched"
    fi
    VERSION=$("$SERVER" --no-defaults --version) || none "$SERVER --version failed"
    echo "server: ${VERSION#"$SERVER"}"
    EXTRA=(--skip-networking --skip-log-bin)
    case $VERSION in
        *MariaDB*)
            EXTRA+=(--skip-grant-tables)
            mkdir "$WORK/data"
            ;;
        *)
            EXTRA+=(--secure-file-priv=)
            "$SERVER" --no-defaults --datadir="$WORK/data" --user="$(id -un)" --initialize-insecure >"$WORK/log" 2>&1 ||
                none "--initialize-insecure failed: $(tail -n 3 "$WORK/log")"
            ;;
    esac
}

sql() { "$CLIENT" --no-defaults -u root -S "$WORK/socket" -BN -e "$1" 2>&1; }

start() {
    "$SERVER" --no-defaults --datadir="$WORK/data" --user="$(id -un)" --socket="$WORK/socket" --pid-file="$WORK/pid" \
        "${EXTRA[@]}" "$@" >>"$WORK/log" 2>&1 &
    PID=$!
    for _ in $(seq 600); do
        if sql 'DO 1' >/dev/null; then return; fi
        kill -0 "$PID" 2>/dev/null || break
        sleep 0.1
    done
    none "the server does not start: $(tail -n 3 "$WORK/log")"
}

end() {
    kill -TERM "$PID"
    wait "$PID" || true
    PID=
}

# Prints what was asked ($1) and what came of it ($2), and remembers whether that is as stated ($3).
AS_STATED=yes
seen() {
    printf '  %-72s %s\n' "$1" "$(tr '\t\n' '  ' <<<"$2")"
    if [ "$(tr '\t\n' '  ' <<<"$2" | sed 's/ *$//')" != "$3" ]; then
        AS_STATED=no
        printf '  %-72s %s\n' "" "stated: $3"
    fi
}

# Ends with the exit code of a finding: 0 as stated, 1 changed.
conclude() {
    if [ $AS_STATED = yes ]; then echo "verdict: as stated" && exit 0; fi
    echo "verdict: changed" && exit 1
}
