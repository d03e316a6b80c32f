import { Command } from 'commander';
import { CommandError, says } from './result.ts';

/** Completion of commands, their words and their options, for the shells that people use. */

/** A place among the commands: what may follow there. */
type Place = {
  /** Words of the command, with a space between them; empty for the program itself. */
  path: string;
  commands: readonly { name: string; description: string }[];
  options: readonly CompletedOption[];
};

type CompletedOption = { names: readonly string[]; takes_value: boolean; description: string };

const shells = { bash, zsh, fish } as const;

/** `fill` adds all commands to a program. */
export function completionCommand(fill: (program: Command) => Promise<void>): (completion: Command) => void {
  return (completion) => {
    says(completion, async (name = '') => {
      if (name !== 'bash' && name !== 'zsh' && name !== 'fish')
        throw new CommandError(`The shell must be bash, zsh or fish, not "${name}".`, 2);
      const program = new Command('medley').version('0');
      await fill(program);
      const script = shells[name](placesOf(program, []));
      return { json: { shell: name, script }, text: script };
    });
  };
}

function placesOf(command: Command, words: readonly string[]): Place[] {
  const children = command.commands.flatMap((child) =>
    [child.name(), ...child.aliases()].map((name) => ({ name, child })),
  );
  const own = command.options.map(({ long, short, required, optional, description }) => ({
    names: [long, short].filter((name) => name !== undefined && name !== null),
    takes_value: required || optional,
    description,
  }));
  const path = words.join(' ');
  const choices = path === 'completion' ? Object.keys(shells) : [];
  const place: Place = {
    path,
    commands: [
      ...children.map(({ name, child }) => ({ name, description: child.description() })),
      ...choices.map((name) => ({ name, description: command.description() })),
    ],
    options: [...own, { names: ['--help', '-h'], takes_value: false, description: 'help' }],
  };
  return [place, ...children.flatMap(({ name, child }) => placesOf(child, [...words, name]))];
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

const namesOf = (options: readonly CompletedOption[]) => options.flatMap(({ names }) => names);

/** Lines of a `case` that lead from a place to the next by a word of the line. */
function steps(places: readonly Place[], name: string): string {
  return places
    .filter(({ path }) => path !== '')
    .map(({ path }) => {
      const words = path.split(' ');
      return `      ${quoted(`${words.slice(0, -1).join(' ')} ${words.at(-1) ?? ''}`)}) ${name}=${quoted(path)} ;;`;
    })
    .join('\n');
}

/** Readline completes files where nothing of ours follows. */
function bash(places: readonly Place[]): string {
  const cases = places.map(({ path, commands, options }) => {
    const valued = namesOf(options.filter(({ takes_value }) => takes_value));
    const words = commands.map(({ name }) => name).join(' ');
    const parts = [`words=${quoted(words)}`, `options=${quoted(namesOf(options).join(' '))}`];
    return `    ${quoted(path)}) ${parts.join(' ')} valued=${quoted(` ${valued.join(' ')} `)} ;;`;
  });
  return `# Completion of medley for bash: source <(medley completion bash)
_medley() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD - 1]}"
  local place='' words='' options='' valued='' index
  for ((index = 1; index < COMP_CWORD; index++)); do
    case "$place \${COMP_WORDS[index]}" in
${steps(places, 'place')}
    esac
  done
  case "$place" in
${cases.join('\n')}
  esac
  COMPREPLY=()
  if [[ "$valued" == *" $previous "* ]]; then return; fi
  if [[ "$current" == -* ]]; then words="$options"; fi
  COMPREPLY=($(compgen -W "$words" -- "$current" || true))
}
complete -o default -F _medley medley`;
}

/** A colon ends a name in the lists of zsh. */
function described(name: string, description: string): string {
  return quoted(`${name.replaceAll(':', '\\:')}:${description}`);
}

function zsh(places: readonly Place[]): string {
  const cases = places.map(({ path, commands, options }) => {
    const words = commands.map(({ name, description }) => described(name, description)).join(' ');
    const all = options.flatMap(({ names, description }) => names.map((name) => described(name, description)));
    return `    ${quoted(path)}) commands=(${words}) options=(${all.join(' ')}) ;;`;
  });
  return `#compdef medley
# Completion of medley for zsh: source <(medley completion zsh)
_medley() {
  local place='' word
  local -a commands options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
${steps(places, 'place')}
    esac
  done
  case "$place" in
${cases.join('\n')}
  esac
  if [[ "$PREFIX" == -* ]]; then
    _describe -o option options
  elif ((\${#commands})); then
    _describe command commands
  else
    _files
  fi
}
if [[ "\${funcstack[1]}" == _medley ]]; then _medley "$@"; else compdef _medley medley; fi`;
}

const fishQuoted = (text: string) => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

function fish(places: readonly Place[]): string {
  const paths = places.filter(({ path }) => path !== '').map(({ path }) => fishQuoted(path));
  const lines = places.flatMap(({ path, commands, options }) => {
    const here = `complete -c medley -n ${fishQuoted(`__medley_at ${fishQuoted(path)}`)}`;
    return [
      ...commands.map(({ name, description }) => `${here} -f -a ${fishQuoted(name)} -d ${fishQuoted(description)}`),
      ...options.map(({ names, takes_value, description }) => {
        const words = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
        return `${here} ${words.join(' ')}${takes_value ? ' -r' : ''} -d ${fishQuoted(description)}`;
      }),
    ];
  });
  return `# Completion of medley for fish: medley completion fish | source
set -g __medley_places ${paths.join(' ')}
function __medley_at
  set -l place
  for word in (commandline -opc)[2..-1]
    if contains -- (string join ' ' $place $word) $__medley_places
      set place $place $word
    end
  end
  test "$place" = "$argv[1]"
end
${lines.join('\n')}`;
}
