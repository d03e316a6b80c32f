import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { currenciesInUse } from '../accounts/accounts.ts';
import { withDatabase } from '../app/data.ts';
import { openStorage } from '../app/storage.ts';
import { nothing_added, readAdded } from '../catalog/added/rows.ts';
import { checkCatalogFile, checkDefaults, openCatalog } from '../catalog/catalog.ts';
import { readCommandConfig } from '../app/running.ts';
import { ConfigError, type Config } from '../config.ts';
import { contentKeys } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import { counted } from '../lib/counted.ts';
import { examineStorage } from '../storage/examine.ts';
import { StorageUnavailable } from '../storage/storage.ts';
import { CommandError, says, type CommandResult } from './command.ts';

export function configCommands(config: Command): void {
  const check = config.command('check [file]').description('check a medley.yaml; every mistake as file:line:col');
  check.option('--default', 'check the default catalogue instead');
  check.option('--offline', 'do not look at the bucket');
  const is_offline = () => check.opts()['offline'] === true;
  says(check, (file?: string) => (check.opts()['default'] === true ? checkDefault() : checkFile(file, is_offline())));
}

async function checkFile(file: string | undefined, is_offline: boolean): Promise<CommandResult> {
  const settings = readCommandConfig();
  const path = file ?? settings.config_file ?? 'medley.yaml';
  if (file === undefined && settings.config_file === undefined && !existsSync(path)) {
    throw new CommandError(
      'There is no configuration file: MEDLEY_CONFIG is not set, and there is no medley.yaml here. The service then runs ' +
        'on its built-in models. To write one, copy medley.example.yaml and set MEDLEY_CONFIG to the copy.',
      2,
    );
  }
  const in_use = await ask(settings, currenciesInUse, new Map<string, number>());
  const added = await ask(settings, (db) => readAdded(db, contentKeys(settings), { is_command: true }), nothing_added);
  const { errors, warnings } = await checkCatalogFile(path, {
    ...adapterFacts(adapters),
    ...(typeof in_use !== 'string' && { currencies_in_use: in_use }),
    ...(typeof added !== 'string' && { added }),
  });
  if (errors.length === 0 && !is_offline) await lookAtBucket(settings, path, { errors, warnings });
  if (typeof in_use === 'string') warnings.push(`the currencies of accounts were not compared: ${in_use}`);
  return checkResult(path, { errors, warnings });
}

/** A bucket that refuses is a mistake; one that is away may be back when the service starts. */
async function lookAtBucket(
  config: Config,
  config_file: string,
  { errors, warnings }: { errors: string[]; warnings: string[] },
): Promise<void> {
  const { storage: storage_settings } = (await openCatalog({ config_file, ...adapterFacts(adapters) })).current
    .settings;
  if (storage_settings.type === 'disk') return;
  const closers: (() => void)[] = [];
  try {
    const storage = await openStorage(config, storage_settings, (close) => closers.push(close));
    const problem = await examineStorage(storage);
    if (problem !== undefined) errors.push(`storage.s3: ${storage.place}: ${problem}.`);
  } catch (error) {
    if (error instanceof ConfigError) return; // a secret that is not there, of which the file's own check has warned
    if (!(error instanceof StorageUnavailable)) throw error;
    (error.is_refusal ? errors : warnings).push(`storage.s3: ${error.message}`);
  } finally {
    for (const close of closers) close();
  }
}

async function checkDefault(): Promise<CommandResult> {
  return checkResult('The default catalogue', checkDefaults(adapterFacts(adapters)));
}

function checkResult(file: string, { errors, warnings }: { errors: string[]; warnings: string[] }): CommandResult {
  const lines = [...errors, ...warnings.map((warning) => `warning: ${warning}`)];
  const ok = errors.length === 0;
  if (ok)
    lines.push(`${file} is in order${warnings.length > 0 ? `, with ${counted(warnings.length, 'warning')}` : ''}.`);
  return { json: { ok, file, errors, warnings }, text: lines.join('\n'), exit_code: ok ? 0 : 2 };
}

/** Returns what the database of this folder or DATABASE_URL has, `nothing` if there is none yet, or why it cannot be asked. */
async function ask<T>(config: Config, question: (db: Db) => Promise<T>, nothing: T): Promise<T | string> {
  try {
    return (await withDatabase(config, question)) ?? nothing;
  } catch (error) {
    if (isCode(error, undefined_table)) return nothing; // made, but never migrated
    return error instanceof Error ? error.message : String(error);
  }
}

const undefined_table = '42P01';

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
