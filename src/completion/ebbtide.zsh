#compdef BIN
# Completion of ebbtide in zsh: the program says what may follow, and knows the names.
_ebbtide_names() {
    local -a answers parts whole
    local answer value
    answers=("${(@f)$(_CLAP_COMPLETE_INDEX=$((CURRENT - 1)) _CLAP_IFS=$'\n' VARIABLE=zsh PROGRAM -- "${words[@]}" 2>/dev/null)}")
    for answer in $answers; do
        [[ -n $answer ]] || continue
        # The value is what stands before the first ':' without a backslash.
        value=${answer//\\:/=}
        value=${value%%:*}
        # More of a word follows these.
        if [[ $value == *[=,/] ]]; then parts+=("$answer"); else whole+=("$answer"); fi
    done
    (( $#parts )) && _describe -V 'values' parts -S ''
    (( $#whole )) && _describe -V 'values' whole
}
if [[ $funcstack[1] == _ebbtide ]]; then _ebbtide_names "$@"; else compdef _ebbtide_names BIN; fi
