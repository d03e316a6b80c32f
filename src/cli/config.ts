import type { Command } from 'commander';
import { currenciesInUse } from '../accounts/accounts.ts';
import { reload_channel, reloaded_channel, withDatabase, type AppWithoutEngine, type Reloaded } from '../app.ts';
import { checkCatalogFile, checkDefaults } from '../catalog/catalog.ts';
import { readConfig, type Config } from '../config.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import { CommandError, says, withApp, type Said } from './command.ts';

export function configCommands(program: Command): void {
  const config = program.command('config').description('the configuration file');
  const check = config.command('check [file]').description('check a medley.yaml; every mistake as file:line:col');
  check.option('--default', 'the catalogue that comes along instead');
  says(check, (file?: string) => (check.opts()['default'] === true ? checkDefault() : checkFile(file)));
  says(program.command('reload').description('ask the running service to read its configuration again'), () =>
    withApp(reload),
  );
}

async function checkFile(file?: string): Promise<Said> {
  const settings = readConfig();
  const path = file ?? settings.config_file ?? 'medley.yaml';
  const in_use = await askAccounts(settings);
  const { errors, warnings } = await checkCatalogFile(path, {
    ...adapterFacts(adapters),
    ...(typeof in_use !== 'string' && { currencies_in_use: in_use }),
  });
  if (typeof in_use === 'string') warnings.push(`the currencies of accounts were not compared: ${in_use}`);
  return verdict(path, { errors, warnings });
}

async function checkDefault(): Promise<Said> {
  return verdict('The default catalogue', checkDefaults(adapterFacts(adapters)));
}

function verdict(file: string, { errors, warnings }: { errors: string[]; warnings: string[] }): Said {
  const lines = [...errors, ...warnings.map((warning) => `warning: ${warning}`)];
  const ok = errors.length === 0;
  if (ok) lines.push(`${file} is in order${warnings.length > 0 ? `, with ${warnings.length} warning(s)` : ''}.`);
  return { json: { ok, file, errors, warnings }, text: lines.join('\n'), exit_code: ok ? 0 : 2 };
}

/** The currencies of the accounts of this folder or DATABASE_URL, or why they cannot be told. */
async function askAccounts(config: Config): Promise<Map<string, number> | string> {
  try {
    return (await withDatabase(config, (db) => currenciesInUse(db))) ?? new Map();
  } catch (error) {
    if (isCode(error, undefined_table)) return new Map(); // made, but never migrated
    return error instanceof Error ? error.message : String(error);
  }
}

const undefined_table = '42P01';

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

const first_answer_ms = 5_000;
const further_answers_ms = 300;

/** Every node answers for itself; the command waits a moment longer for the others after the first. */
async function reload(app: AppWithoutEngine): Promise<Said> {
  const nodes: Reloaded[] = [];
  await new Promise<void>((resolve, reject) => {
    const timeout = setTimeout(resolve, first_answer_ms);
    const onPayload = (payload: string) => {
      nodes.push(JSON.parse(Buffer.from(payload, 'base64url').toString()));
      setTimeout(resolve, further_answers_ms);
      clearTimeout(timeout);
    };
    app.listener
      .subscribe(reloaded_channel, { onPayload })
      .then(() => app.notifier.notify(reload_channel, 'now'), reject);
  });
  if (nodes.length === 0) throw new CommandError('No running service answered.');
  const ok = nodes.every((node) => node.ok);
  return {
    json: { ok, nodes },
    text: nodes.map((node) => `${node.node}: ${node.message}`).join('\n'),
    exit_code: ok ? 0 : 1,
  };
}
