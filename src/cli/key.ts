import type { Command } from 'commander';
import { readContentRules, type ContentRules } from '../accounts/content-rules.ts';
import { KeyRuleError } from '../accounts/key-rule-error.ts';
import {
  no_rules,
  readAddresses,
  readExpiry,
  readRequestsPerMinute,
  readScopes,
  scopes,
  type KeyRules,
} from '../accounts/key-rules.ts';
import { listKeys } from '../accounts/key-list.ts';
import { changeKeyRules, deleteKey, findKey, isUnused, keyState, rotateKey, type ApiKey } from '../accounts/keys.ts';
import { createKeyIn, default_project } from '../accounts/projects.ts';
import { keys_channel } from '../app/channels.ts';
import type { CommandApp } from '../app/command-app.ts';
import { readKeyModels } from '../catalog/key-models.ts';
import { keepDaysMax } from '../catalog/settings.ts';
import { deleteContents, shortenContents } from '../contents/stored.ts';
import { budgetsOf, setLimit } from '../money/ledger.ts';
import { personal_data } from '../lib/personal-data.ts';
import { exact, type Money } from '../money/money.ts';
import { requireAccount } from './account.ts';
import {
  CommandError,
  auditCommand,
  readMoney,
  readText,
  says,
  table,
  withApp,
  type CommandResult,
} from './command.ts';

export function keyCommands(key: Command): void {
  const create = key
    .command('create')
    .description('create a key; it is shown once')
    .requiredOption('--account <account>', 'whose');
  create.option('--name <name>', 'its name', 'Key').option('--monthly-limit <amount>', 'its monthly limit (UTC)');
  create.option('--project <project>', 'its project', default_project.id);
  addRuleOptions(create);
  says(create, () => withApp((app) => createOne(app, create.opts())));

  says(key.command('delete <key_id>').description('delete a key, on every node within a second'), (id = '') =>
    withApp((app) => deleteOne(app, id)),
  );
  const rotate = key
    .command('rotate <key_id>')
    .description('a new key with the same name, which shares the budget of the old one; it is shown once');
  rotate.option('--overlap <hours>', 'hours for which the old key still works: 0 or 24', '24');
  says(rotate, (id = '') => withApp((app) => rotateOne(app, id, rotate.opts())));
  says(
    key.command('limit <key_id> <amount>').description('set the monthly limit, or remove it with "none"'),
    (id = '', amount = '') => withApp((app) => limitOne(app, id, amount)),
  );
  const rules = key
    .command('rules <key_id>')
    .description('change the expiry, the scopes, the addresses, the models or the requests per minute of a key');
  addRuleOptions(rules);
  says(rules, (id = '') => withApp((app) => changeRules(app, id, rules.opts())));
  const log = key
    .command('log <key_id> <on|off>')
    .description('store the content of its chat calls, redacted, or stop that');
  log
    .option('--days <days>', 'time for which it is kept')
    .option('--redact <list>', `kinds of data to replace: ${personal_data.join(', ')}, separated by commas, or "none"`)
    .option(
      '--pattern <pattern...>',
      'texts to replace: # is a digit, ? a letter or digit, * characters without a space',
    )
    .option('--delete', 'with off: delete what is stored of it, too');
  says(log, (id = '', word = '') => withApp((app) => logOne(app, id, word, log.opts())));
  const list = key.command('list').description('the keys of an account').requiredOption('--account <account>', 'whose');
  list.option('--search <text>', 'only keys with this in their name, with these last four characters, or with this id');
  says(list, () => withApp((app) => listAll(app, list.opts())));
}

type RuleOptions = { expires?: string; scopes?: string; addresses?: string; models?: string; perMinute?: string };

const rule_of = {
  expires: 'expires_at',
  scopes: 'scopes',
  addresses: 'addresses',
  models: 'models',
  perMinute: 'requests_per_minute',
} as const satisfies Record<keyof RuleOptions, keyof KeyRules>;

function addRuleOptions(command: Command): void {
  command
    .option('--expires <when>', 'its expiry: a time, a duration such as 90d, or "never"')
    .option('--scopes <list>', `its scopes: ${scopes.join(', ')}, separated by commas, or "all"`)
    .option('--addresses <list>', 'allowed addresses and CIDR ranges, separated by commas, or "any"')
    .option(
      '--models <list>',
      'allowed models: ids, aliases, or beginnings such as acme/*, separated by commas, or "all"',
    )
    .option('--per-minute <number>', 'requests per minute, of each kind, below those of the service, or "none"');
}

/** The rules of the options, in the place of those that the key has. */
async function readRules(app: CommandApp, options: RuleOptions, rules: KeyRules): Promise<KeyRules> {
  const now = new Date(app.clock.now());
  const catalog = options.models === undefined ? undefined : await app.catalog();
  const read = <T>(name: keyof RuleOptions, reader: (text: string) => T, present: T): T => {
    const text = options[name];
    if (text === undefined) return present;
    try {
      return reader(text);
    } catch (error) {
      if (error instanceof KeyRuleError)
        throw new CommandError(`--${name === 'perMinute' ? 'per-minute' : name} ${error.message}`, 2);
      throw error;
    }
  };
  const listOf = (text: string) => text.split(',').map((part) => part.trim());
  return {
    expires_at: read('expires', (text) => readExpiry(text === 'never' ? null : text, now), rules.expires_at),
    scopes: read('scopes', (text) => readScopes(text === 'all' ? null : listOf(text)), rules.scopes),
    addresses: read('addresses', (text) => readAddresses(text === 'any' ? null : listOf(text)), rules.addresses),
    models: read(
      'models',
      (text) => (catalog ? readKeyModels(catalog, text === 'all' ? null : listOf(text), rules.models) : rules.models),
      rules.models,
    ),
    requests_per_minute: read(
      'perMinute',
      (text) => readRequestsPerMinute(text === 'none' ? null : Number(text)),
      rules.requests_per_minute,
    ),
    log_content: rules.log_content,
  };
}

async function changeRules(app: CommandApp, id: string, options: RuleOptions): Promise<CommandResult> {
  const key = await findKey(app.db, id);
  if (!key || keyState(key, app.clock.now()) === 'deleted') throw new CommandError(`There is no key "${id}".`);
  if (key.kind === 'playground')
    throw new CommandError(`${id} is a key of the playground: it has a monthly limit and no other rule.`);
  const names = ['expires', 'scopes', 'addresses', 'models', 'perMinute'] as const;
  if (names.every((name) => options[name] === undefined))
    throw new CommandError('Name a rule to change: --expires, --scopes, --addresses, --models or --per-minute.', 2);
  const rules = await readRules(app, options, key);
  const named = names.filter((name) => options[name] !== undefined).map((name) => rule_of[name]);
  await changeKeyRules(app.db, id, rules, named);
  const details = Object.fromEntries(named.map((name) => [name, rules[name]]));
  await auditCommand(app, { account_id: key.account_id, action: 'key.change', subject: id, details });
  app.notifier.notify(keys_channel, 'all');
  return { json: { id, ...rulesJson(rules) }, text: `${id}: ${rulesText(rules)}` };
}

type LogOptions = { days?: string; redact?: string; pattern?: string[]; delete?: true };

async function logOne(app: CommandApp, id: string, word: string, options: LogOptions): Promise<CommandResult> {
  if (word !== 'on' && word !== 'off') throw new CommandError(`"${word}" must be on or off.`, 2);
  if (options.delete && word === 'on') throw new CommandError('--delete goes with off.', 2);
  const key = await findKey(app.db, id);
  if (!key) throw new CommandError(`There is no key "${id}".`);
  const log_content = word === 'on' ? readLogRules(await contentDays(app), options, key.log_content) : null;
  await changeKeyRules(app.db, id, { ...key, log_content }, ['log_content']);
  const of_key = { account_id: key.account_id, api_key_id: id };
  if (log_content) await shortenContents(app.db, of_key, log_content);
  const deleted = options.delete ? await deleteContents(app.db, of_key) : 0;
  const details = { log_content, ...(options.delete && { contents_deleted: deleted }) };
  await auditCommand(app, { account_id: key.account_id, action: 'key.change', subject: id, details });
  app.notifier.notify(keys_channel, 'all');
  const text = log_content
    ? `contents of ${id} are stored for ${log_content.keep_days} days, without ${withoutText(log_content)}`
    : `contents of ${id} are not stored; ${deleted} deleted`;
  return { json: { id, log_content, deleted }, text };
}

function withoutText({ redact, patterns }: ContentRules): string {
  const replaced = [...redact, ...patterns.map((pattern) => JSON.stringify(pattern))];
  return replaced.length === 0 ? 'anything replaced' : replaced.join(', ');
}

async function contentDays({ catalog }: CommandApp): Promise<number> {
  return keepDaysMax((await catalog()).settings);
}

/** The rules of the options, in the place of those that the key has. */
function readLogRules(
  days_max: number,
  { days, redact, pattern }: LogOptions,
  rules: ContentRules | null,
): ContentRules | null {
  const value = {
    ...rules,
    ...(days !== undefined && { keep_days: Number(days) }),
    ...(redact !== undefined && { redact: redact === 'none' ? [] : redact.split(',').map((kind) => kind.trim()) }),
    ...(pattern && { patterns: pattern }),
  };
  try {
    return readContentRules(value, days_max);
  } catch (error) {
    if (error instanceof KeyRuleError) throw new CommandError(`log_content ${error.message}`, 2);
    throw error;
  }
}

function rulesJson({ expires_at, scopes: allowed, addresses, models, requests_per_minute, log_content }: KeyRules) {
  const expires = expires_at?.toISOString() ?? null;
  return { expires_at: expires, scopes: allowed, addresses, models, requests_per_minute, log_content };
}

function rulesText({ expires_at, scopes: allowed, addresses, models, requests_per_minute }: KeyRules): string {
  const until = expires_at ? `until ${expires_at.toISOString()}` : 'without an end';
  const use = `for ${allowed?.join(' and ') ?? 'everything'}, with ${models?.join(', ') ?? 'every model'}`;
  const often = requests_per_minute === null ? '' : `, at most ${requests_per_minute} requests per minute of each kind`;
  return `${until}, ${use}${often}, from ${addresses?.join(', ') ?? 'anywhere'}`;
}

async function createOne(
  app: CommandApp,
  options: { account?: string; name?: string; monthlyLimit?: string; project?: string } & RuleOptions,
): Promise<CommandResult> {
  const name = readText(options.name, '--name', 200);
  const limit_month = options.monthlyLimit === undefined ? null : readMoney(options.monthlyLimit, '--monthly-limit');
  const now = new Date(app.clock.now());
  const rules = await readRules(app, options, no_rules);
  const account = await requireAccount(app, options.account ?? '');
  const project = options.project ?? default_project.id;
  const created = await createKeyIn(app.db, project, { account_id: account.id, name, limit_month, rules }, now);
  if (!created) throw new CommandError(`There is no project "${project}", or it is archived.`);
  const { key, text } = created;
  const { account_id } = key;
  const details = { name, limit: shown(limit_month), project };
  await auditCommand(app, { account_id, action: 'key.create', subject: key.id, details });
  const json = {
    id: key.id,
    key: text,
    name: key.name,
    account_id,
    project,
    monthly_limit: shown(limit_month),
    ...rulesJson(key),
  };
  return { json, text: `${text}\nShown only once. Its id is ${key.id}.` };
}

async function deleteOne(app: CommandApp, id: string): Promise<CommandResult> {
  const key = await findKey(app.db, id);
  if (!key || !(await deleteKey(app.db, id, new Date(app.clock.now()))))
    throw new CommandError(`There is no key "${id}" to delete.`);
  const { account_id, name } = key;
  await auditCommand(app, { account_id, action: 'key.delete', subject: id, details: { name } });
  app.notifier.notify(keys_channel, 'all');
  return { json: { id, deleted: true }, text: `${id} is deleted` };
}

async function rotateOne(app: CommandApp, id: string, { overlap }: { overlap?: string }): Promise<CommandResult> {
  if (overlap !== '0' && overlap !== '24') throw new CommandError('--overlap must be 0 or 24.', 2);
  const now = new Date(app.clock.now());
  const rotated = await rotateKey(app.db, id, { overlap_ms: Number(overlap) * 3_600_000, limits: false }, now);
  if (!rotated) throw new CommandError(`There is no active key "${id}" to rotate.`);
  const { key, text, old } = rotated;
  const details = { new_key: key.id, overlap_hours: Number(overlap) };
  await auditCommand(app, { account_id: old.account_id, action: 'key.rotate', subject: old.id, details });
  app.notifier.notify(keys_channel, 'all');
  const until = overlap === '0' ? 'no longer works' : `works until ${old.deleted_at?.toISOString()}`;
  return {
    json: { id: key.id, key: text, name: key.name, old: { id, works_until: old.deleted_at?.toISOString() } },
    text: `${text}\nShown only once. Its id is ${key.id}; the old one ${until}.`,
  };
}

async function limitOne(app: CommandApp, id: string, amount: string): Promise<CommandResult> {
  const limit_month = amount === 'none' ? null : readMoney(amount, 'AMOUNT');
  const key = await findKey(app.db, id);
  if (!key || !(await setLimit(app.db, id, limit_month))) throw new CommandError(`There is no key "${id}".`);
  const details = { limit: shown(limit_month) };
  await auditCommand(app, { account_id: key.account_id, action: 'key.change', subject: id, details });
  const text = limit_month === null ? `${id} has no monthly limit` : `${id} may spend ${exact(limit_month)} in a month`;
  return { json: { id, monthly_limit: shown(limit_month) }, text };
}

const page_size = 1_000;

/** Oldest first, as the command has always listed them; read in pages. */
async function listAll(app: CommandApp, options: { account?: string; search?: string }): Promise<CommandResult> {
  const account = await requireAccount(app, options.account ?? '');
  const keys = [];
  let after: string | undefined;
  do {
    const filter = { account_id: account.id, search: options.search, after, limit: page_size };
    const page = await listKeys(app.db, filter, new Date(app.clock.now()));
    keys.push(...(await renderPage(app, account.id, page.keys)));
    after = page.has_more ? page.keys.at(-1)?.id : undefined;
  } while (after !== undefined);
  keys.reverse();
  const rows = keys.map((key) => [
    key.id,
    key.name,
    key.key,
    key.monthly_limit ?? 'none',
    key.spent,
    key.status,
    lastUseText(key),
  ]);
  const text = table([['key', 'name', 'shown as', 'monthly limit', 'spent', 'status', 'last used'], ...rows]);
  const unused = keys.filter(({ is_unused, status }) => is_unused && status === 'active').map(({ id }) => id);
  if (unused.length === 0) return { json: { keys }, text };
  return { json: { keys }, text: `${text}\nUnused for 90 days, perhaps to be deleted: ${firstOf(unused)}` };
}

const unused_max = 20;

function firstOf(ids: readonly string[]): string {
  const more = ids.length - unused_max;
  return ids.slice(0, unused_max).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

async function renderPage(app: CommandApp, account_id: string, keys: readonly ApiKey[]) {
  const now = new Date(app.clock.now());
  const ids = keys.map(({ id }) => id);
  const budgets = new Map((await budgetsOf(app.db, account_id, now, ids)).map((budget) => [budget.key_id, budget]));
  return keys.map((key) => {
    const budget = budgets.get(key.id);
    return {
      id: key.id,
      name: key.name,
      key: `${key.prefix}…${key.last_four}`,
      project: budget?.project_id ?? default_project.id,
      monthly_limit: shown(budget?.limit_month ?? null),
      spent: exact(budget?.spent ?? 0n),
      held: exact(budget?.held ?? 0n),
      created_at: key.created_at.toISOString(),
      status: keyState(key, now.getTime()),
      deleted_at: key.deleted_at?.toISOString() ?? null,
      last_used_at: key.last_used_at?.toISOString() ?? null,
      use_noted_since: key.use_noted_since?.toISOString() ?? null,
      is_unused: isUnused(key, now),
      ...rulesJson(key),
    };
  });
}

/** To the minute, UTC. */
function lastUseText(key: { last_used_at: string | null; use_noted_since: string | null }): string {
  const minute = (time: string) => `${time.slice(0, 16)}Z`;
  if (key.last_used_at !== null) return minute(key.last_used_at);
  return key.use_noted_since === null ? 'never' : `not since ${minute(key.use_noted_since)}`;
}

function shown(limit: Money | null): string | null {
  return limit === null ? null : exact(limit);
}
