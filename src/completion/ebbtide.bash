# Completion of ebbtide in bash: the program says what may follow, and knows the names.
_ebbtide_names() {
    local line=${COMP_LINE:0:COMP_POINT} last rest
    local -a words answers
    # Words by blanks: bash itself breaks them at ':' and '=' too, which volume specs have inside.
    read -r -a words <<<"$line"
    while [[ ${#words[@]} -gt 1 && ${words[0]} != "${COMP_WORDS[0]}" ]]; do
        words=("${words[@]:1}")
    done
    [[ $line == *[[:space:]] ]] && words+=("")
    mapfile -t answers < <(VARIABLE=bash "PROGRAM" -- "${words[@]}" 2>/dev/null)
    # Readline replaces only what is behind the last of its breaks.
    last=${words[${#words[@]} - 1]} rest=$last
    [[ $COMP_WORDBREAKS == *:* ]] && rest=${rest##*:}
    [[ $COMP_WORDBREAKS == *=* ]] && rest=${rest##*=}
    COMPREPLY=("${answers[@]#"${last%"$rest"}"}")
    # More of a word follows these.
    [[ ${#answers[@]} -eq 1 && ${answers[0]} == *[=:,/] ]] && compopt -o nospace 2>/dev/null
    return 0
}
complete -o nosort -o bashdefault -o default -F _ebbtide_names BIN 2>/dev/null ||
    complete -o bashdefault -o default -F _ebbtide_names BIN
