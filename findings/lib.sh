# shellcheck shell=bash
# What the scripts of this folder share: a temporary folder, pinned packages in it, and a server on it. It is sourced.
#
# Exit codes of a script: 0 the behaviour is as the script states; 1 it is not; 2 usage; 3 the state could not be set up.
# Everything is in a folder of $TMPDIR (default /tmp), which is removed at the end; KEEP=1 keeps it.
set -euo pipefail

NAME=$(basename "$0" .sh)
WORK=$(mktemp -d "${TMPDIR:-/tmp}/$NAME.XXXXXX")
TREE=$WORK/tree
SERVER_PID=

# Ends the script: the state could not be set up.
none() { echo "verdict: none: $*" && exit 3; }
# Ends the script with what was seen ($2...), which is as stated (yes) or not (no) ($1).
verdict() {
    local as_stated=$1
    shift
    echo "verdict: $*"
    if [ "$as_stated" = yes ]; then exit 0; else exit 1; fi
}

# Kills the server with a signal ($1, default TERM) and waits for its end.
end_server() {
    [ -n "$SERVER_PID" ] || return 0
    kill -CONT "$SERVER_PID" 2>/dev/null || true
    kill "-${1:-TERM}" "$SERVER_PID" 2>/dev/null || true
    wait "$SERVER_PID" 2>/dev/null || true
    SERVER_PID=
}

# A script that mounts or starts more than the server defines `also_clean`.
clean() {
    end_server KILL
    if declare -F also_clean >/dev/null; then also_clean; fi
    if [ -n "${KEEP-}" ]; then echo "kept: $WORK"; else rm -rf --one-file-system "$WORK"; fi
}
trap clean EXIT

# Prints the comment at the top of the script and ends, where the first word is an option.
usage_for() {
    case "${1-}" in -*) sed -n '2,/^[^#]/{/^#/s/^# \{0,1\}//p}' "$0" >&2 && exit 2 ;; esac
}

# Unpacks Debian packages (NAME=VERSION) into $TREE. Their dependencies come along where the machine lacks them.
packages() {
    local archive
    command -v apt-get >/dev/null || none "apt-get is missing: the packages $* are Debian's"
    mkdir -p "$WORK/archives/partial" "$TREE"
    apt-get -qq -y -o Debug::NoLocking=true -o APT::Sandbox::User= -o "Dir::Cache::archives=$WORK/archives" \
        --no-install-recommends --reinstall --download-only install "$@" >"$WORK/apt.log" 2>&1 ||
        none "apt-get cannot fetch $*: $(tail -n 2 "$WORK/apt.log" | tr '\n' ' ')"
    for archive in "$WORK"/archives/*.deb; do dpkg-deb -x "$archive" "$TREE"; done
    PATH="$TREE/usr/bin:$TREE/usr/sbin:$PATH"
    local libraries
    libraries=$(find "$TREE" -type d -path '*/lib/*-linux-gnu' | paste -sd:)
    [ -z "$libraries" ] || export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
}

# The MariaDB of Debian 12 and its client, or the server program that was given ($1). Sets SERVER, VERSION and OWN, options
# that the server needs here.
use_mariadb() {
    OWN=()
    if [ -n "${1-}" ]; then
        SERVER=$(command -v "$1") || none "$1 is missing"
    else
        packages mariadb-server-core=1:10.11.19-0+deb12u1 mariadb-client-core=1:10.11.19-0+deb12u1
        SERVER=$TREE/usr/sbin/mariadbd
        OWN=("--lc-messages-dir=$TREE/usr/share/mysql" "--character-sets-dir=$TREE/usr/share/mysql/charsets"
            "--plugin-dir=$TREE/usr/lib/mysql/plugin")
    fi
    command -v mariadb >/dev/null || none "the client mariadb is missing"
    VERSION=$("$SERVER" --no-defaults ${OWN[@]+"${OWN[@]}"} --version) || none "$SERVER --version failed"
    echo "server: ${SERVER##*/} ${VERSION#*  }"
}

client() { mariadb --no-defaults -u root -S "$WORK/socket" -BN "$@"; }

# Starts $SERVER on the data directory $1, its log $2, with the options in the rest; fails where it does not answer.
# START_WITH: words that env(1) gets.
start_server() {
    local data=$1 log=$2
    shift 2
    env ${START_WITH[@]+"${START_WITH[@]}"} "$SERVER" --no-defaults ${OWN[@]+"${OWN[@]}"} --datadir="$data" --user="$(id -un)" \
        --socket="$WORK/socket" --skip-networking --pid-file="$WORK/pid" "$@" >>"$log" 2>&1 &
    SERVER_PID=$!
    for _ in $(seq 600); do
        if client -e 'DO 1' 2>/dev/null; then return; fi
        if ! kill -0 "$SERVER_PID" 2>/dev/null; then break; fi
        sleep 0.1
    done
    return 1
}

# Makes an empty data directory $1 for $SERVER, with InnoDB's files as a server that ended leaves them.
new_data() {
    case $VERSION in
        *MariaDB*)
            OWN+=(--skip-grant-tables --loose-skip-ssl)
            mkdir "$1"
            start_server "$1" "$WORK/new.log" || none "the server does not start: $(tail -n 3 "$WORK/new.log")"
            end_server
            ;;
        *) "$SERVER" --no-defaults ${OWN[@]+"${OWN[@]}"} --user="$(id -un)" --datadir="$1" --initialize-insecure \
            >"$WORK/new.log" 2>&1 || none "--initialize-insecure failed: $(tail -n 3 "$WORK/new.log")" ;;
    esac
}

# --- one server on one data directory --------------------------------------------------------

# Takes the server NAME ($1, a row of scripts/servers.sh), fetched into the temporary folder, or the program SERVER ($2), and makes
# its data directory. EBBTIDE_SERVERS names a folder of servers that were fetched before.
prepare() {
    local here
    command -v mariadb >/dev/null || packages mariadb-client-core=1:10.11.19-0+deb12u1
    if [ -n "${2-}" ]; then
        SERVER=$(command -v "$2") || none "the server $2 is missing"
    else
        here=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
        SERVER=$(EBBTIDE_SERVERS=${EBBTIDE_SERVERS-$WORK/servers} "$here/../scripts/servers.sh" "$1" 2>"$WORK/fetch.log" | awk '{print $2}')
        [ -x "$SERVER" ] || none "$1 could not be fetched: $(tail -n 1 "$WORK/fetch.log")"
    fi
    OWN=(--skip-log-bin)
    VERSION=$("$SERVER" --no-defaults --version) || none "$SERVER --version failed"
    echo "server: ${SERVER##*/} ${VERSION#*  }"
    case $VERSION in *MariaDB*) ;; *) OWN+=(--secure-file-priv=) ;; esac
    new_data "$WORK/data"
}
# Starts it with the options given, or ends the script.
start() { start_server "$WORK/data" "$WORK/log" "$@" || none "the server does not start: $(tail -n 3 "$WORK/log")"; }
# The answer to a statement, without headings; an error is its text.
sql() { client -e "$1" 2>&1; }

# Prints what was asked ($1) and what came of it ($2), and remembers whether that is as stated ($3).
AS_STATED=yes
seen() {
    local answer
    answer=$(tr '\t\n' '  ' <<<"$2" | sed 's/ *$//')
    printf '  %-72s %s\n' "$1" "$answer"
    if [ "$answer" != "$3" ]; then
        AS_STATED=no
        printf '  %-72s %s\n' "" "stated: $3"
    fi
}
# Ends the script by what was seen.
conclude() { if [ "$AS_STATED" = yes ]; then verdict yes "as stated"; else verdict no "changed"; fi; }
