# Where packages come from, by this machine's own apt and Maven: no file of the repository names a host of a registry.
# Sourced by servers.sh and fresh.sh. Each function prints a URL, or nothing and returns 1.
# shellcheck shell=bash

# Debian's mirror: EBBTIDE_DEBIAN_MIRROR, else the first of apt's sources that is one of Debian's.
debian_mirror() {
    local found=${EBBTIDE_DEBIAN_MIRROR-}
    if [ -z "$found" ]; then
        found=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources} 2>/dev/null |
            grep -v '^ *#' | grep -oE 'https?://[^ ]+/debian/?( |$)' | head -n 1 | tr -d ' ' || true)
    fi
    [ -n "$found" ] && echo "$found"
}

# Of Maven's settings ($1), the URL that stands for the repository `central`: that of a mirror, or of a profile. Comments are left out.
maven_settings_url() {
    local part
    tr '\n\t' '  ' <"$1" | sed -e 's/<!--/\n&/g' -e 's/-->/&\n/g' | sed '/^<!--/d' | tr -d '\n' |
        sed -E -e 's/<\/(mirror|repository)>/&\n/g' | sed -E -e 's/.*<(mirror|repository)>/<\1>/' |
        while IFS= read -r part; do
            case $part in
                *'<blocked>true'* | *'!central'*) continue ;;
                '<mirror>'*)
                    grep -qE '<mirrorOf>([^<]*,)? *(central|\*|external:\*) *(,[^<]*)?</mirrorOf>' <<<"$part" || continue
                    ;;
                '<repository>'*) grep -qE '<id> *central *</id>' <<<"$part" || continue ;;
                *) continue ;;
            esac
            sed -nE 's/.*<url> *(https?:[^ <]+) *<\/url>.*/\1/p' <<<"$part"
        done | head -n 1 || true
}

# What an installed Maven takes for `central` where no settings say otherwise: the super POM in its library.
maven_default_url() {
    local program jar
    program=$(command -v mvn) || return 1
    for jar in "$(dirname -- "$(dirname -- "$(readlink -f -- "$program")")")"/lib/maven-{model-builder,impl}-*.jar; do
        [ -r "$jar" ] || continue
        if command -v unzip >/dev/null; then
            unzip -p "$jar" 'org/apache/maven/*/pom-4.0.0.xml' 2>/dev/null
        else
            python3 -c 'import sys, zipfile
jar = zipfile.ZipFile(sys.argv[1])
print(*[jar.read(name).decode() for name in jar.namelist() if name.endswith("/pom-4.0.0.xml")])' "$jar" 2>/dev/null
        fi
    done | sed -nE 's/.*<url> *(https?:[^ <]+) *<\/url>.*/\1/p' | head -n 1 || true
}

# The Maven repository `central`: EBBTIDE_MAVEN_REPOSITORY, else by Maven's settings of the user and of the machine, else by Maven.
maven_repository() {
    local found=${EBBTIDE_MAVEN_REPOSITORY-} file home=
    home=$(dirname -- "$(dirname -- "$(readlink -f -- "$(command -v mvn || echo /nowhere/bin/mvn)")")")
    for file in "${HOME-}/.m2/settings.xml" "${MAVEN_HOME:-$home}/conf/settings.xml" /etc/maven/settings.xml; do
        if [ -z "$found" ] && [ -r "$file" ]; then found=$(maven_settings_url "$file"); fi
    done
    [ -n "$found" ] || found=$(maven_default_url || true)
    [ -n "$found" ] && echo "${found%/}"
}
