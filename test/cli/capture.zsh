# zsh -f capture.zsh LINE: prints what an interactive zsh offers at the end of LINE, a word each, and "files" where it
# offers files. Of the environment: MEDLEY_SCRIPT, the completion; MEDLEY_OFFERED, a file of its own; ZSH_PROGRAM; and
# MEDLEY_TEST_SHELLS, the folder of an unpacked zsh, or nothing.
own_module_path=("$MEDLEY_TEST_SHELLS"/usr/lib/*/zsh/*(N))
if [[ -n "$MEDLEY_TEST_SHELLS" ]]; then module_path=($own_module_path); fi
zmodload zsh/zpty

cat > "$MEDLEY_OFFERED.setup" <<'SETUP'
if [[ -n "$MEDLEY_TEST_SHELLS" ]]; then
  module_path=("$MEDLEY_TEST_SHELLS"/usr/lib/*/zsh/*)
  fpath=("$MEDLEY_TEST_SHELLS"/usr/share/zsh/functions/**/*(/))
fi
autoload -Uz compinit
compinit -u -D
source "$MEDLEY_SCRIPT"
_files() { print files >> "$MEDLEY_OFFERED" }
compadd() {
  local -a offered
  if ! (($@[(I)-[OAD]])); then
    builtin compadd -A offered "$@"
    if ((${#offered})); then print -rl -- $offered >> "$MEDLEY_OFFERED"; fi
  fi
  builtin compadd "$@"
}
offer() {
  zle complete-word
  print end >> "$MEDLEY_OFFERED"
  exit
}
unsetopt auto_list # a long list asks first
zle -N offer
bindkey '^I' offer
print ready > "$MEDLEY_OFFERED.ready"
SETUP

zpty shell "$ZSH_PROGRAM -f -i"
zpty -w shell "source '$MEDLEY_OFFERED.setup'"
for ((tries = 0; tries < 600; tries++)); do
  if [[ -e "$MEDLEY_OFFERED.ready" ]]; then break; fi
  zpty -r -t shell text || sleep 0.05
done
zpty -w -n shell "$1"$'\t'
while zpty -r shell text; do [[ -n "$MEDLEY_DEBUG" ]] && print -r -- "$text" >&2; done
zpty -d shell
cat "$MEDLEY_OFFERED"
