import { existsSync } from 'node:fs';
import { Command, CommanderError, Help, type Option } from 'commander';
import package_json from '../../package.json' with { type: 'json' };
import { addCommands, isForCallers } from './commands.ts';
import { CommandError } from './result.ts';
import { CatalogError } from '../catalog/problem.ts';
import { ConfigError, readConfig, unknownSettings } from '../config.ts';
import { is_published, program_name } from '../lib/program-name.ts';
import { endAfter, NoAnswer } from '../lib/time-limit.ts';

const about = `Commands of Medley, for operators and for callers; each takes --json.${is_published ? ' Alone, or with start, it starts the service.' : ''}`;

const failure = 1;
const usage = 2;

/**
 * Exit code 0: done. 1: it failed. 2: the command or the configuration is wrong. What went wrong is
 * told on stderr, and with --json on stdout too: there is always one object there.
 */
export async function runCommand(words: string[]): Promise<void> {
  const program = new Command(program_name).description(about);
  // Options belong to the word before them: `models show X --json` is not `models --json`.
  program.version(package_json.version).enablePositionalOptions();
  program.configureHelp({ optionDescription });
  await addCommands(program, words);
  strict(program);
  if (!words.includes('--json')) for (const warning of unknownSettings()) console.error(`Warning: ${warning}`);
  try {
    const says_folder = !words.includes('--json') && !words.includes('--help') && !isForCallers(words[0]);
    const tellFolder = says_folder ? watchFolder() : () => undefined;
    await program.parseAsync(words, { from: 'user' });
    tellFolder();
  } catch (error) {
    if (process.exitCode !== undefined) return; // a signal has said how it ends, and taken the database away
    const { message, exit_code, facts } = explain(error);
    process.exitCode = exit_code;
    if (exit_code === 0) return;
    if (!(error instanceof CommanderError)) console.error(message); // commander has told its own
    if (words.includes('--json')) process.stdout.write(`${JSON.stringify({ error: { message, ...facts } })}\n`);
    if (error instanceof NoAnswer) endAfter(error, exit_code);
  }
}

/** A command in another folder than the service's makes a database of its own, and finds nothing in it. */
function watchFolder(): () => void {
  const { data_dir, database_url } = readConfig();
  if (database_url !== undefined || existsSync(data_dir)) return () => undefined;
  return () => {
    if (!existsSync(data_dir)) return;
    console.error(
      `The data folder ${data_dir} was created now. If your service uses another one, set MEDLEY_DATA to it.`,
    );
  };
}

/** As Commander writes it, and which ones a command cannot do without. */
function optionDescription(option: Option): string {
  const description = new Help().optionDescription(option);
  return option.mandatory ? `${description} (required)` : description;
}

/** Wrong words throw instead of ending the process, so that every way out is the one below. */
function strict(command: Command): void {
  command.exitOverride().showSuggestionAfterError();
  for (const child of command.commands) strict(child);
}

function explain(error: unknown): { message: string; exit_code: number; facts?: object } {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof CommanderError) {
    const help_shown = error.code === 'commander.help';
    const sentence = help_shown ? 'A command is missing.' : message.replace(/^error: /, '');
    return { message: sentence, exit_code: error.exitCode === 0 ? 0 : usage };
  }
  if (error instanceof CommandError) return { message, exit_code: error.exit_code, facts: error.facts };
  return { message, exit_code: error instanceof CatalogError || error instanceof ConfigError ? usage : failure };
}
