#!/usr/bin/env bash
# iostat 12.6 with -t prints the locale's date and time (%x %X), and some locales lose a part of it.
#
# Expected: date, hours, minutes and seconds, in the order of the language.
# Seen: nb_NO has no seconds ("kl. 23.59"), so intervals below a minute cannot be told; hy_AM and ms_MY have hours of 1 to 12
# without AM or PM; my_MM ends after the date, without a time. `S_TIME_FORMAT=ISO` has none of this, `LC_ALL=C` neither.
#
# Exit codes: 0 as stated; 1 changed; 2 usage; 3 not set up.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname -- "$0")/lib.sh"

usage_for "$@"
packages sysstat=12.6.1-1 locales=2.36-9+deb12u14
export LOCPATH=$WORK/locales I18NPATH=$TREE/usr/share/i18n
mkdir "$LOCPATH"
for locale in nb_NO hy_AM ms_MY my_MM; do
    localedef --no-archive -i "$locale" -f UTF-8 "$LOCPATH/$locale.UTF-8" 2>/dev/null || [ -d "$LOCPATH/$locale.UTF-8" ] ||
        none "localedef cannot make $locale"
done
echo "iostat: $(iostat -V 2>&1 | head -n 1)"

# A zone in which it is between three and four in the afternoon.
ZONE=XYZ$((10#$(date -u +%H) - 15))
# The line of the time in a report, as the locale $1 has it.
line_of() { env "LC_ALL=$1.UTF-8" "TZ=$ZONE" iostat -t -c 1 1 | sed -n 3p; }

SAME=yes
for locale in nb_NO hy_AM ms_MY my_MM; do
    line=$(line_of "$locale")
    printf '%-6s %s\n' "$locale" "$line"
    case $locale in
        nb_NO) [[ $line =~ [0-9]{2}\.[0-9]{2}($|[^.0-9]) && ! $line =~ [0-9]{2}[.:][0-9]{2}[.:][0-9]{2} ]] || SAME=no ;;
        hy_AM | ms_MY) [[ $line =~ " 03:"[0-9]{2}:[0-9]{2} && ! $line =~ [AaPp][Mm] ]] || SAME=no ;;
        my_MM) [[ ! $line =~ [0-9]{2}:[0-9]{2} && ! $line =~ [၀-၉]{2}:[၀-၉]{2} ]] || SAME=no ;;
    esac
done
verdict "$SAME" "iostat's times lack seconds, half of the day, or all"
