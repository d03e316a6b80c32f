import { Command } from 'commander';
import { modelNames, type ModelCommand } from './caller/model-names.ts';
import { takesService } from './caller/service.ts';
import { CommandError, says, type CommandResult } from './result.ts';

/** Completion of commands, their words and their options, for the shells that people use. */

/** A place among the commands: what may follow there. */
type Place = {
  /** Words of the command, with a space between them; empty for the program itself. */
  path: string;
  commands: readonly { name: string; description: string }[];
  options: readonly CompletedOption[];
  /** The command, if its first word is a model. */
  models: ModelCommand | undefined;
};

type CompletedOption = { names: readonly string[]; takes_value: boolean; description: string };

const shells = { bash, zsh, fish } as const;

/** `fill` adds all commands to a program. */
export function completionCommand(fill: (program: Command) => Promise<void>): (completion: Command) => void {
  return (completion) => {
    takesService(completion).option(
      '--models <command>',
      'the models that run or chat takes: the scripts ask for them',
    );
    says(completion, async (name) => {
      const { models, url }: { models?: string; url?: string } = completion.opts();
      if (models !== undefined) return modelsOf(models, url);
      if (name !== 'bash' && name !== 'zsh' && name !== 'fish')
        throw new CommandError(`The shell must be bash, zsh or fish, not "${name ?? ''}".`, 2);
      const program = new Command('medley').version('0');
      await fill(program);
      const script = shells[name](placesOf(program, []));
      return { json: { shell: name, script }, text: script };
    });
  };
}

async function modelsOf(command: string, url: string | undefined): Promise<CommandResult> {
  if (!isModelCommand(command)) throw new CommandError(`--models takes run or chat, not "${command}".`, 2);
  const models = await modelNames(command, url);
  return { json: { models }, text: models.join('\n') };
}

const isModelCommand = (name: string): name is ModelCommand => name === 'run' || name === 'chat';

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
    models: isModelCommand(path) ? path : undefined,
  };
  return [place, ...children.flatMap(({ name, child }) => placesOf(child, [...words, name]))];
}

const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

const namesOf = (options: readonly CompletedOption[]) => options.flatMap(({ names }) => names);

const valuedOf = (options: readonly CompletedOption[]) => namesOf(options.filter(({ takes_value }) => takes_value));

/** Options whose value is a model. */
const choosingOf = ({ models, options }: Place) =>
  models === undefined ? [] : namesOf(options.filter(({ names }) => names.includes('--model')));

/** Lines of a `case` that lead from a place to the next by a word of the line. */
function steps(places: readonly Place[]): string {
  return places
    .filter(({ path }) => path !== '')
    .map(({ path }) => {
      const words = path.split(' ');
      const step = `${words.slice(0, -1).join(' ')} ${words.at(-1) ?? ''}`;
      return `      ${quoted(step)}) place=${quoted(path)} start=$index ;;`;
    })
    .join('\n');
}

/**
 * Readline completes files where nothing of ours follows. It takes a colon and an equals sign for words of their own: `line`
 * has the words as they were typed.
 */
function bash(places: readonly Place[]): string {
  const cases = places.map((place) => {
    const { path, commands, options, models = '' } = place;
    const words = commands.map(({ name }) => name).join(' ');
    const parts = [
      `words=${quoted(words)}`,
      `options=${quoted(namesOf(options).join(' '))}`,
      `valued=${quoted(` ${valuedOf(options).join(' ')} `)}`,
      ...(models === '' ? [] : [`models=${models}`, `choosing=${quoted(` ${choosingOf(place).join(' ')} `)}`]),
    ];
    return `    ${quoted(path)}) ${parts.join(' ')} ;;`;
  });
  return `# Completion of medley for bash: source <(medley completion bash)
_medley() {
  local place='' words='' options='' valued='' models='' choosing='' word='' before='' index start=0 count=0
  local -a line=() url=()
  for ((index = 0; index <= COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    if ((index > 1)) && [[ "$word" == [:=] || "$before" == [:=] ]]; then
      line[\${#line[@]}-1]+="$word"
    else
      line+=("$word")
    fi
    before="$word"
  done
  local last=$((\${#line[@]} - 1))
  local current="\${line[last]}" previous="\${line[last - 1]}"
  for ((index = 1; index < last; index++)); do
    case "$place \${line[index]}" in
${steps(places)}
    esac
  done
  case "$place" in
${cases.join('\n')}
  esac
  for ((index = start + 1; index < last; index++)); do
    word="\${line[index]}" before="\${line[index - 1]}"
    if [[ "$valued" == *" $before "* ]]; then
      if [[ "$before" == --url ]]; then url=(--url "$word"); fi
    elif [[ "$word" != -* ]]; then
      count=$((count + 1))
    fi
  done
  COMPREPLY=()
  if [[ "$valued" == *" $previous "* ]]; then
    if [[ "$choosing" != *" $previous "* ]]; then return; fi
    count=0 words=''
  elif [[ "$current" == -* ]]; then
    words="$options" models=''
  fi
  if [[ "$models" != '' && "$count" == 0 ]]; then
    words="$("\${line[0]}" completion --models "$models" "\${url[@]}" 2>/dev/null </dev/null || true)"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current" || true))
  if [[ "$current" == *:* && "$COMP_WORDBREAKS" == *:* ]]; then
    COMPREPLY=("\${COMPREPLY[@]#"\${current%"\${current##*:}"}"}")
  fi
}
complete -o default -F _medley medley`;
}

/** A colon ends a name in the lists of zsh. */
function described(name: string, description: string): string {
  return quoted(`${name.replaceAll(':', '\\:')}:${description}`);
}

function zsh(places: readonly Place[]): string {
  const cases = places.map((place) => {
    const { path, commands, options, models } = place;
    const words = commands.map(({ name, description }) => described(name, description)).join(' ');
    const all = options.flatMap(({ names, description }) => names.map((name) => described(name, description)));
    const lists = [`commands=(${words})`, `options=(${all.join(' ')})`, `valued=(${valuedOf(options).join(' ')})`];
    const of_models = models === undefined ? [] : [`models=${models}`, `choosing=(${choosingOf(place).join(' ')})`];
    return `    ${quoted(path)}) ${[...lists, ...of_models].join(' ')} ;;`;
  });
  return `#compdef medley
# Completion of medley for zsh: source <(medley completion zsh)
_medley() {
  local place='' models='' previous
  local -a commands options valued choosing names url
  local -i index start=1 count=0
  for ((index = 2; index < CURRENT; index++)); do
    case "$place $words[index]" in
${steps(places)}
    esac
  done
  case "$place" in
${cases.join('\n')}
  esac
  for ((index = start + 1; index < CURRENT; index++)); do
    previous="$words[index - 1]"
    if (($valued[(Ie)$previous])); then
      if [[ "$previous" == --url ]]; then url=(--url "$words[index]"); fi
    elif [[ "$words[index]" != -* ]]; then
      ((++count))
    fi
  done
  previous="$words[CURRENT - 1]"
  if (($valued[(Ie)$previous] && !$choosing[(Ie)$previous])); then
    _files
  elif [[ "$PREFIX" == -* ]]; then
    _describe -o option options
  elif [[ -n "$models" ]] && ((count == 0 || $choosing[(Ie)$previous])); then
    names=("\${(@f)$("$words[1]" completion --models $models $url 2>/dev/null </dev/null)}")
    compadd -- "\${(@)names:#}"
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
# Tells whether no word follows the command of the first argument yet; the others are options with a value.
function __medley_is_first
  set -l is_behind no
  set -l previous ''
  for word in (commandline -opc)[2..-1]
    if test $is_behind = no
      test "$word" = $argv[1]; and set is_behind yes
    else if not contains -- $previous $argv[2..-1]; and not string match -q -- '-*' $word
      return 1
    end
    set previous $word
  end
  test $is_behind = yes; and not contains -- $previous $argv[2..-1]
end
function __medley_models
  set -l line (commandline -opc)
  set -l url
  set -l place (contains -i -- --url $line); and set url --url $line[(math $place + 1)]
  $line[1] completion --models $argv[1] $url 2>/dev/null </dev/null
end
${places.flatMap(fishLines).join('\n')}`;
}

function fishLines({ path, commands, options, models }: Place): string[] {
  const at = `__medley_at ${fishQuoted(path)}`;
  const here = `complete -c medley -n ${fishQuoted(at)}`;
  const is_first = `${at}; and __medley_is_first ${path} ${valuedOf(options).join(' ')}`;
  const ask = `-f -a ${fishQuoted(`(__medley_models ${models})`)}`;
  return [
    ...commands.map(({ name, description }) => `${here} -f -a ${fishQuoted(name)} -d ${fishQuoted(description)}`),
    ...(models === undefined ? [] : [`complete -c medley -n ${fishQuoted(is_first)} ${ask}`]),
    ...options.map(({ names, takes_value, description }) => {
      const words = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
      const is_choosing = models !== undefined && names.includes('--model');
      const value = `${takes_value ? ' -r' : ''}${is_choosing ? ` ${ask}` : ''}`;
      return `${here} ${words.join(' ')}${value} -d ${fishQuoted(description)}`;
    }),
  ];
}
