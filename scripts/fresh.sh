#!/usr/bin/env bash
# Runs the developer's commands in a new Debian root that has nothing but the base system, so that a missing
# install step shows. Called by `./dev fresh`, as root.
#
# usage: scripts/fresh.sh [STEP...], or scripts/fresh.sh --self-test
#   setup        ./dev setup: everything that the tests need must be there afterwards
#   demo         ./dev demo --tiny: the release build and one short trial of each server
#   demo-full    ./dev demo: its ratio must have a 95% interval within a factor of 1.5 to either side
#   bench        ./dev bench --tiny of each bench; bench:NAME for one
#   install      cargo install --path ., and the installed program
#   package      ./dev package
#   package-static  ./dev package static
#   test-build   the fetched servers, and the build of all tests
#   test         ./dev test, whole, with Debian's Go if it is new enough for the client of the Go SDK
# Without a STEP: setup, demo, bench, test-build. --self-test judges planted logs of steps, without a root.
#
# Settings by environment: SUITE=bookworm (default: this machine's if it is Debian, else bookworm), MIRROR=URL (default: of
#   this machine's apt; needed where that has no mirror of Debian), EBBTIDE_MAVEN_REPOSITORY=URL (default: by this machine's Maven),
#   FRESH_DIR=/var/tmp for the root (10 GiB; 25 with tests). CARGO_PROFILE_*, RUSTUP_*, PIP_*, GO* of the
#   network, proxies and the variables that name a bundle of certificates are handed in.
#
# The repository is cloned as it is committed. Network settings (resolver, proxies, certificates, pip.conf, apt's Acquire) and
# what cargo has downloaded are copied in; /dev and /sys are this machine's; packages and the toolchain are not. All mounts are in a mount
# namespace of its own and all processes in a process namespace of its own: both end with the script, however it ends.
# Exit codes: 0 every step passed, 1 a step failed or skipped something, 2 usage, 3 environment.
set -euo pipefail
REPO=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/..
REPO=$(readlink -f -- "$REPO")
readonly REPO
# shellcheck source=scripts/hosts.sh
. "$REPO/scripts/hosts.sh"
EBBTIDE_DEBIAN_MIRROR=${MIRROR:-${EBBTIDE_DEBIAN_MIRROR-}}
readonly PREFIX=ebbtide-fresh
readonly CLONE=/root/ebbtide

say() { printf 'fresh: %s\n' "$*" >&2; }
die() {
    say "${@:2}"
    exit "$1"
}

# --- outside: makes the directory, starts the namespaces, removes everything ---------------------

# Paths of loop devices that hold a file of the root ($1), or of a FUSE file system that the process ($2) sees below it.
loops_of() {
    local root=$1 devices
    devices=$(awk -v root="$root/" 'index($5, root) == 1 && / - fuse/ { print $3 }' "/proc/$2/mountinfo" 2>/dev/null | paste -sd' ' || true)
    losetup --list --noheadings --raw --output NAME,BACK-MAJ:MIN,BACK-FILE |
        awk -v root="$root/" -v devices="$devices" '
            BEGIN { n = split(devices, list, " "); for (i = 1; i <= n; i++) ours[list[i]] = 1 }
            $2 in ours || index($3, root) == 1 { print $1 }'
}

# Removes a directory ($1) of ours, if nothing is mounted below it.
remove_dir() {
    if awk -v dir="$1/" 'index($5, dir) == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo; then
        say "something is still mounted below $1; it is left there"
        return 1
    fi
    rm -rf --one-file-system -- "$1"
}

# Removes what a killed run left: a directory whose lock nobody holds.
remove_leftovers() {
    local dir
    for dir in "$PARENT/$PREFIX".*/; do
        [ -e "$dir/lock" ] || continue
        (
            exec 8<"$dir/lock"
            flock --nonblock 8 || exit 0
            say "removing what an earlier run left: ${dir%/}"
            remove_dir "${dir%/}"
        )
    done
}

DIR=
INSIDE=
# shellcheck disable=SC2317,SC2329 # called by the trap
clean() {
    local status=$? init loops
    trap '' INT TERM HUP
    if [ -n "$INSIDE" ] && kill -0 "$INSIDE" 2>/dev/null; then
        say "interrupted: ending what runs in the root"
        init=$(cat "/proc/$INSIDE/task/$INSIDE/children" 2>/dev/null || true)
        mapfile -t loops < <(loops_of "$DIR/root" "${init%% *}")
        kill -KILL "$INSIDE" 2>/dev/null || true
        wait "$INSIDE" 2>/dev/null || true
        while [ -n "${init%% *}" ] && kill -0 "${init%% *}" 2>/dev/null; do sleep 0.1; done
        if [ ${#loops[@]} -gt 0 ]; then losetup --detach "${loops[@]}" || true; fi
    fi
    if [ -n "$DIR" ]; then remove_dir "$DIR" || status=3; fi
    exit "$status"
}

outside() {
    local steps=("$@") step tool need_gib=10 free
    [ ${#steps[@]} -gt 0 ] || steps=(setup demo bench test-build)
    for step in "${steps[@]}"; do
        case $step in
            setup | demo | demo-full | bench | bench:* | install | package | package-static) ;;
            test | test-build) need_gib=25 ;;
            *) die 2 "no step is called '$step'; there are: setup demo demo-full bench bench:NAME install package package-static test-build test" ;;
        esac
    done
    [ "$(id -u)" = 0 ] || die 3 "root is needed, to mount and to change the root directory"
    for tool in debootstrap unshare setpriv git; do
        command -v "$tool" >/dev/null || die 3 "$tool is missing: apt-get install debootstrap util-linux git"
    done
    debian_mirror >/dev/null || die 3 "no mirror of Debian is known: this machine's apt sources name none. Give one: MIRROR=URL"
    # The root has no Maven of its own: it gets the repository of this machine's.
    EBBTIDE_MAVEN_REPOSITORY=$(maven_repository || true)
    if [ -n "$EBBTIDE_MAVEN_REPOSITORY" ]; then export EBBTIDE_MAVEN_REPOSITORY; fi
    PARENT=${FRESH_DIR:-/var/tmp}
    free=$(($(stat --file-system --format='%a * %S' "$PARENT") >> 30))
    [ "$free" -ge "$need_gib" ] || die 3 "$PARENT has $free GiB free; at least $need_gib are needed (FRESH_DIR=DIR takes another)"
    if [ -n "$(git -C "$REPO" status --porcelain)" ]; then say "changes that are not committed are left out"; fi

    trap clean EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    remove_leftovers
    DIR=$(mktemp -d "$PARENT/$PREFIX.XXXXXX")
    exec 9>"$DIR/lock"
    flock 9
    mkdir "$DIR/root"
    LOGS=${CARGO_TARGET_DIR:-$REPO/target}/fresh/$(date +%Y%m%d-%H%M%S)
    mkdir -p "$LOGS"
    export LOGS
    say "root: $DIR/root; logs: $LOGS"
    # In the background, so that a signal is handled at once. Killed, unshare takes its namespaces' processes with it.
    setpriv --pdeathsig KILL unshare --mount --propagation private --pid --fork --kill-child \
        -- "$REPO/scripts/fresh.sh" --inside "$DIR/root" "${steps[@]}" 9>&- </dev/null &
    INSIDE=$!
    local status=0
    wait "$INSIDE" || status=$?
    INSIDE=
    return "$status"
}

# --- inside: the root --------------------------------------------------------------------------

suite() { # of this machine where it is Debian
    local id='' codename=''
    # shellcheck source=/dev/null
    . /etc/os-release 2>/dev/null && id=${ID-} codename=${VERSION_CODENAME-}
    if [ -n "${SUITE-}" ]; then echo "$SUITE"; elif [ "$id" = debian ] && [ -n "$codename" ]; then echo "$codename"; else echo bookworm; fi
}

make_root() {
    debootstrap --variant=minbase "$(suite)" "$ROOT" "$(debian_mirror)"
}

# Copies what this machine needs to reach its networks, and what cargo has downloaded.
furnish() {
    local cargo=${CARGO_HOME:-$HOME/.cargo} file
    cp -L /etc/resolv.conf /etc/hosts "$ROOT/etc/"
    apt-config dump | grep -iE '^Acquire::(https?::|retries|force|socks|check-)' >"$ROOT/etc/apt/apt.conf.d/99host" || true
    # They count once the package ca-certificates is installed.
    if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
        mkdir -p "$ROOT/usr/local/share/ca-certificates"
        cp /usr/local/share/ca-certificates/*.crt "$ROOT/usr/local/share/ca-certificates/"
    fi
    if [ -e /etc/pip.conf ]; then cp -L /etc/pip.conf "$ROOT/etc/"; fi
    copy_named_files
    mkdir -p "$ROOT/root/.cargo/registry"
    for file in config.toml registry/index registry/cache; do
        if [ -e "$cargo/$file" ]; then cp -a "$cargo/$file" "$ROOT/root/.cargo/$file"; fi
    done
    git clone --quiet --no-hardlinks "$REPO" "$ROOT$CLONE"
    mount --bind "$ROOT" "$ROOT"
    mount -t proc proc "$ROOT/proc"
    mount --rbind /sys "$ROOT/sys"
    mount --rbind /dev "$ROOT/dev"
    toolchain
}

# Environment variables that are handed into the root: networks, registries and profiles.
readonly PASSED='^((https?|no|all)_proxy|CARGO_(PROFILE|NET|HTTP)_.*|RUSTUP_(DIST_SERVER|UPDATE_ROOT)|PIP_.*|EBBTIDE_MAVEN_REPOSITORY|GO(PROXY|SUMDB|NOSUMDB|FLAGS)'
# Those of them, of programs for the network, that name a bundle of certificates or a folder with them.
readonly BUNDLES='(SSL_CERT_(FILE|DIR)|(CURL|REQUESTS|AWS)_CA_BUNDLE|GIT_SSL_CAINFO|NODE_EXTRA_CA_CERTS|PIP_CERT|CARGO_HTTP_CAINFO)'

passed() { compgen -e | grep -iE "$PASSED|$BUNDLES)\$"; }

# Copies the files that variables which are handed in name. Below /etc/ssl the root has its own, once ca-certificates is installed.
copy_named_files() {
    local name path
    while read -r name; do
        path=${!name}
        [[ $path == /* && $path != /etc/ssl/* && -e $path && ! -e $ROOT$path ]] || continue
        mkdir -p "$ROOT$(dirname -- "$path")"
        cp -rL -- "$path" "$ROOT$path"
    done < <(compgen -e | grep -E "^($BUNDLES|PIP_FIND_LINKS|PIP_CONFIG_FILE)\$")
}

# The root installs its own toolchain; where rustup's server cannot be reached, this machine's is lent.
toolchain() {
    local server=${RUSTUP_DIST_SERVER:-https://static.rust-lang.org} name
    if curl -fsS --max-time 20 -o /dev/null "$server/rustup/release-stable.toml"; then return; fi
    say "rustup's server cannot be reached: the root gets this machine's toolchain, and does not show that ./dev setup installs one"
    for name in .rustup .cargo/bin; do
        [ -d "$HOME/$name" ] || continue
        mkdir -p "$ROOT/root/$name"
        mount --bind -o ro "$HOME/$name" "$ROOT/root/$name"
    done
}

# Runs a command in the clone inside the root, with an environment of its own.
in_root() {
    local pass=() name
    while read -r name; do
        pass+=("$name=${!name}")
    done < <(passed)
    # shellcheck disable=SC2016 # the inner shell expands it
    chroot "$ROOT" /usr/bin/env -i HOME=/root TERM=dumb LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${pass[@]}" \
        bash -c 'cd "$1" && shift && exec "$@"' bash "$CLONE" "$@" </dev/null
}

# shellcheck disable=SC2016 # dpkg-query expands it
packages() { chroot "$ROOT" dpkg-query --show --showformat='${Package}\n' 2>/dev/null | sort; }
# Those that were asked for by name, of the list on standard input.
asked_for() { comm -12 - <(chroot "$ROOT" apt-mark showmanual | sort); }

ROWS=()
FAILED=0

# What the one test prints that may be skipped: in a root whose Debian has no Go that is new enough.
readonly NO_GO="SKIPPED: go-client, which './dev clients( --[a-z]+)?' installs, is missing"
# The oldest Go that builds the client (tests/clients/go/go.mod).
readonly GO=1.24
MAY_SKIP=

# Why a step ($1) that ended with a status ($2) and has a log ($3) failed; nothing if it passed.
judge() {
    local name=$1 status=$2 log=$3 why='' skipped
    [ "$status" = 0 ] || why="ended with $status"
    # In a root where setup has run, nothing else has a reason to be skipped.
    skipped=$(grep '^SKIPPED' "$log" | grep -vxE "${MAY_SKIP:-a line that no test prints}" || true)
    if [ -n "$skipped" ]; then
        why="${why:+$why; }$(wc -l <<<"$skipped") skipped, the first: $(head -n 1 <<<"$skipped")"
    fi
    if [ "$name" = setup ] && ! grep -q 'missing for tests: nothing' "$log"; then
        why="${why:+$why; }$(grep -o 'missing for tests: .*' "$log" || echo 'setup did not end')"
    fi
    if [ "$name" = demo-full ]; then
        "$REPO/scripts/bench/ratio.sh" "$log" >/dev/null || why="${why:+$why; }$("$REPO/scripts/bench/ratio.sh" "$log" || true)"
    fi
    echo "$why"
}

# Runs a step ($1) as the command in the other words, with a log, a time, and what it installed.
step() {
    local name=$1 log=$LOGS/${1/:/-}.log began=$SECONDS status=0 before='' why new
    shift
    say "== $name"
    if [ "$name" != root ]; then before=$(packages); fi
    "$@" >"$log" 2>&1 || status=$?
    why=$(judge "$name" "$status" "$log")
    if [ -n "$before" ]; then
        new=$(comm -13 <(echo "$before") <(packages))
        if [ -n "$new" ]; then
            say "$name installed: $(asked_for <<<"$new" | paste -sd' ') (and $(asked_for <<<"$new" | comm -23 <(echo "$new") - | wc -l) that they need)"
        fi
    fi
    if [ -n "$why" ]; then
        FAILED=1
        say "FAILED: $name: $why; the end of $log:"
        tail -n 15 "$log" >&2
    fi
    ROWS+=("$(printf '%6d s  %-20s %s' $((SECONDS - began)) "$name" "${why:-passed}")")
}

# Installs Go for the client of the Go SDK. Without a Go that is new enough, the test that needs it may be skipped.
install_go() {
    local version
    version=$(in_root apt-cache policy golang-go | awk '$1 == "Candidate:" { sub(/^[0-9]+:/, "", $2); print $2 }')
    if chroot "$ROOT" dpkg --compare-versions "${version:-0}" ge "$GO"; then
        step go in_root bash -c 'apt-get install -qq -y --no-install-recommends golang-go && ./dev clients --go'
    else
        say "this Debian has Go ${version:-in no version}, and the client of the Go SDK needs $GO: its test may be skipped"
        MAY_SKIP=$NO_GO
    fi
}

# Judges planted logs: each must pass, or fail for the reason that was planted.
self_test() {
    local log failed=0
    log=$(mktemp)
    # A log ($5 and so on, one line each) of a step ($3) with a status ($4), with what may be skipped ($1), and what the reason must match ($2).
    expect() {
        local why
        MAY_SKIP=$1
        printf '%s\n' "${@:5}" >"$log"
        why=$(judge "$3" "$4" "$log")
        if ! grep -qxE "$2" <<<"$why"; then
            say "self-test: step $3 with the log '${*:5}': the reason is '$why', expected '$2'"
            failed=1
        fi
    }
    local ratio='tuned carries %s times the transactions of default (%s to %s, 95%%).'
    expect '' '' test 0 'test a ... ok'
    expect '' 'ended with 1' test 1 'test a ... FAILED'
    expect '' '1 skipped, the first: SKIPPED: no fio' test 0 'SKIPPED: no fio'
    local go="SKIPPED: go-client, which './dev clients --go' installs, is missing"
    expect '' '1 skipped, the first: SKIPPED: go-client.*' test 0 "$go"
    expect "$NO_GO" '' test 0 "$go" "${go/ --go/}"
    expect "$NO_GO" '1 skipped, the first: SKIPPED: no fio' test 0 "$go" 'SKIPPED: no fio'
    expect "$NO_GO" '1 skipped, the first: .*missing too' test 0 "$go too"
    expect '' 'missing for tests: fio' setup 0 'missing for tests: fio'
    expect '' 'setup did not end' setup 0 ''
    expect '' '' setup 0 'missing for tests: nothing'
    # shellcheck disable=SC2059 # the format is ours
    expect '' '' demo-full 0 "$(printf "  $ratio" 12.6 10.1 15.0)"
    # shellcheck disable=SC2059
    expect '' '.*10.1 to 25.0.*' demo-full 0 "$(printf "  $ratio" 12.6 10.1 25.0)"
    # shellcheck disable=SC2059
    expect '' '.*5.1 to 13.0.*' demo-full 0 "$(printf "  $ratio" 12.6 5.1 13.0)"
    expect '' '.*no ratio.*' demo-full 0 'it says nothing'
    # Of Maven's settings, the mirror of central counts: not one in a comment, a blocked one, or one of other repositories.
    local mirror='<mirror><mirrorOf>%s</mirrorOf><url>https://%s.example/m</url>%s</mirror>' found
    # shellcheck disable=SC2059
    {
        echo '<settings><mirrors><!--'
        printf "$mirror\n-->" '*' comment ''
        printf "$mirror\n" 'external:http:*' http '<blocked>true</blocked>' '*,!central' others '' 'x, central' right ''
        echo '</mirrors></settings>'
    } >"$log"
    found=$(maven_settings_url "$log")
    if [ "$found" != https://right.example/m ]; then
        say "self-test: the mirror of central is '$found', expected https://right.example/m"
        failed=1
    fi
    rm "$log"
    if [ "$failed" = 0 ]; then say "self-test: every planted log is judged right"; fi
    return $failed
}

# shellcheck disable=SC2317,SC2329 # called by the trap
end_inside() {
    local loops
    mapfile -t loops < <(loops_of "$ROOT" self)
    if [ ${#loops[@]} -gt 0 ]; then
        say "loop devices that were left attached: ${loops[*]}"
        losetup --detach "${loops[@]}" || true
    fi
}

inside() {
    local name rust
    export LC_ALL=C # one order for sort and comm
    ROOT=$1
    shift
    trap end_inside EXIT
    step root make_root
    [ "$FAILED" = 0 ] || die 3 "no Debian root could be made"
    furnish
    for name in "$@"; do
        case $name in
            setup)
                step setup in_root ./dev setup
                # The others would only say so again.
                if [ "$FAILED" = 1 ]; then break; fi
                ;;
            demo) step demo in_root ./dev demo --tiny ;;
            demo-full) step demo-full in_root ./dev demo ;;
            install)
                # shellcheck disable=SC2016 # the shell in the root expands it
                step install in_root bash -c 'PATH=$PATH:/root/.cargo/bin
                    cargo install --locked --path . --root /tmp/installed && /tmp/installed/bin/ebbtide --version'
                ;;
            package) step package in_root ./dev package ;;
            package-static) step package-static in_root ./dev package static ;;
            bench)
                while read -r name _; do
                    step "bench:$name" in_root ./dev bench --tiny "$name"
                done < <("$ROOT$CLONE/dev" bench --list)
                ;;
            bench:*) step "$name" in_root ./dev bench --tiny "${name#bench:}" ;;
            test-build) step test-build in_root bash -c './dev setup && ./dev servers && cargo test --workspace --locked --no-run' ;;
            test)
                install_go
                step test in_root ./dev test
                ;;
        esac
    done
    # shellcheck disable=SC2016 # the shell in the root expands it
    rust=$(in_root bash -c 'PATH=$PATH:/root/.cargo/bin; cargo --version' 2>/dev/null || echo 'no cargo')
    say "== time per step, in a root of $(suite); $rust; $(packages | wc -l) packages"
    printf '%s\n' "${ROWS[@]}"
    return "$FAILED"
}

case ${1-} in
    --inside) inside "${@:2}" ;;
    --self-test) self_test ;;
    *) outside "$@" ;;
esac
