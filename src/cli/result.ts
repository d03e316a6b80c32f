import type { Command } from 'commander';

/**
 * 1: it failed. 2: the words are wrong. Commands of callers have more: 3: no key, or one that is refused; 4: money or a
 * limit; 5: the service cannot be reached; 130: interrupted.
 */
export type ExitCode = 1 | 2 | 3 | 4 | 5 | 130;

/** The caller's mistake in a command: told on stderr, exit code 1 (usage: 2). */
export class CommandError extends Error {
  override name = 'CommandError';
  readonly exit_code: ExitCode;
  /** More of the error, for `--json`. */
  readonly facts: object;

  constructor(message: string, exit_code: ExitCode = 1, facts: object = {}) {
    super(message);
    this.exit_code = exit_code;
    this.facts = facts;
  }
}

/** The output of a command: an object for --json, lines for people; no text: nothing is left to say. */
export type CommandResult = { json: object; text: string; exit_code?: 0 | ExitCode };

/** Adds `--json` and runs `action`, whose answer is printed in the form that was asked for. */
export function says(command: Command, action: (...words: string[]) => Promise<CommandResult>): Command {
  return command
    .option('--json', 'one JSON object on stdout, nothing else')
    .action(async (...command_args: unknown[]) => {
      const words = command_args.filter((word) => typeof word === 'string');
      const result = await action(...words);
      const text = command.opts()['json'] === true ? JSON.stringify(result.json) : result.text;
      if (text !== '') process.stdout.write(`${text}\n`);
      if (result.exit_code) process.exitCode = result.exit_code;
    });
}

/** A text of an argument with 1 to `length_max` characters. Throws CommandError (usage). */
export function readText(text: string | undefined, name: string, length_max: number): string {
  if (text !== undefined && text.length >= 1 && text.length <= length_max && !text.includes('\0')) return text;
  throw new CommandError(`${name} must have 1 to ${length_max} characters.`, 2);
}

/** Rows as columns of equal width, for people. */
export function table(rows: string[][]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
