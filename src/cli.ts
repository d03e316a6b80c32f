#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { accountCommands } from './cli/account.ts';
import { booksCommand } from './cli/books.ts';
import { CommandError } from './cli/command.ts';
import { configCommands } from './cli/config.ts';
import { doctorCommands } from './cli/doctor.ts';
import { keyCommands } from './cli/key.ts';
import { taskCommands } from './cli/task.ts';
import { CatalogError } from './catalog/file.ts';
import { ConfigError } from './config.ts';

const failure = 1;
const usage = 2;

/** Exit code 0: done. 1: it failed. 2: the command or the configuration is wrong. */
async function run(words: string[]): Promise<void> {
  const program = new Command('medley').description('Operator commands of Medley; each takes --json.');
  for (const add of [accountCommands, keyCommands, taskCommands, booksCommand, configCommands, doctorCommands])
    add(program);
  strict(program);
  try {
    await program.parseAsync(words, { from: 'user' });
  } catch (error) {
    process.exitCode = explain(error);
  }
}

/** Wrong words throw instead of ending the process, so that every way out is the one below. */
function strict(command: Command): void {
  command.exitOverride().showSuggestionAfterError();
  for (const child of command.commands) strict(child);
}

/** Commander has told its own errors already. */
function explain(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : usage;
  if (error instanceof CommandError || error instanceof CatalogError || error instanceof ConfigError) {
    console.error(error.message);
    return error instanceof CommandError ? error.exit_code : usage;
  }
  console.error(error instanceof Error ? error.message : error);
  return failure;
}

await run(process.argv.slice(2));
