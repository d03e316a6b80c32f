/**
 * `main.ts [--cache FOLDER] [NAME…]`: a service before imitated upstreams of all styles, and each client of the list
 * against it, one after another; see scripts/clients.mjs. Ends with 1 if a step failed or the books are wrong.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openHome, type Home } from '../../bench/home.ts';
import { startService, stopService, stopServices } from '../../bench/service.ts';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { service_rules } from '../../src/chat/books.ts';
import { openDatabase, type Db } from '../../src/db/database.ts';
import { checkBooks } from '../../src/money/books.ts';
import { freePort } from '../helpers/free-port.ts';
import { styles } from './answers.ts';
import { documentOf, isFailure, type Report } from './document.ts';
import { drive, install, reaches } from './install.ts';
import { judge, modelOf } from './judge.ts';
import { clients, type Client } from './list.ts';
import { programmeFor } from './programme.ts';
import { startUpstream, type Upstream } from './upstream.ts';

const driver_ms_max = 1_800_000;
const settle_ms_max = 20_000;

/** The cost of an answer by its usage, in millionths: 10 tokens in, 5 out. */
const cost_of_an_answer = 70n;
const credit = 1_000_000_000n;

type Suite = { home: Home; db: Db; upstream: Upstream; url: string; cache: string };

async function main(names: readonly string[], cache: string): Promise<number> {
  const chosen = clients.filter(({ name }) => names.length === 0 || names.some((word) => name.includes(word)));
  if (chosen.length === 0) return say(`No client's name contains ${names.join(' or ')}.`, 2);
  mkdirSync(cache, { recursive: true });
  const upstream = await startUpstream();
  const home = await openHome();
  const port = await freePort();
  writeFileSync(join(home.folder, 'medley.yaml'), yamlOf(upstream.url));
  const db = openDatabase({ connection: home.embedded.connection, connections_max: 2 });
  try {
    process.env['CLIENTS_UPSTREAM_KEY'] = 'sk-upstream';
    const parts = { folder: home.folder, database_url: home.embedded.url, leash: home.leash };
    const service = await startService('all', parts, [], port);
    const suite = { home, db, upstream, url: `http://127.0.0.1:${port}`, cache };
    const reports: Report[] = [];
    for (const client of chosen) {
      const report = await runClient(suite, client);
      reports.push(report);
      tell(report);
    }
    await stopService(service);
    return finish(reports, names.length === 0);
  } finally {
    stopServices();
    await db.close();
    await upstream.stop();
    await home.close();
  }
}

async function runClient(suite: Suite, client: Client): Promise<Report> {
  let folder;
  try {
    folder = await install(client, suite.cache);
  } catch (error) {
    if (!(await reaches(client.from))) return { client, not_run: `${client.from} cannot be reached from here` };
    return { client, not_run: `its packages do not install here: ${lastWords(String(error))}` };
  }
  suite.upstream.requests.length = 0;
  const { account_id, key } = await makeKey(suite.db, client.name);
  const programme = programmeFor(styles.map(modelOf));
  const place = { url: suite.url, key, programme, time_ms_max: driver_ms_max };
  const { lines, output } = await drive(client, folder, place, suite.home.leash.hold);
  if (lines.length === 0) return { client, not_run: `its driver does not start: ${lastWords(output)}` };
  const books = await booksOf(suite, account_id);
  return { client, verdicts: judge(lines, suite.upstream.requests, client.is_agent), books };
}

async function makeKey(db: Db, name: string): Promise<{ account_id: string; key: string }> {
  const now = new Date();
  const { id } = await createAccount(db, { name, currency: 'USD', initial_credit: credit }, now);
  const { text } = await createKey(db, { account_id: id, name: 'clients', limit_month: null }, now);
  return { account_id: id, key: text };
}

/** 'right', or what is wrong: an open hold, an answer with another price than its usage has, a difference. */
async function booksOf({ db, upstream }: Suite, account_id: string): Promise<string> {
  const until_ms = performance.now() + settle_ms_max;
  while (upstream.requests.some(({ answer }) => answer === 'open') || (await openHolds(db, account_id)) > 0) {
    if (performance.now() > until_ms) return `${await openHolds(db, account_id)} holds stay open`;
    await sleep(100);
  }
  const complete = upstream.requests.filter(({ answer }) => answer === 'complete').length;
  while ((await callsAtTheirPrice(db, account_id)) !== complete) {
    if (performance.now() > until_ms)
      return `${await callsAtTheirPrice(db, account_id)} calls have the price of ${complete} answers`;
    await sleep(100);
  }
  const { difference, findings } = await checkBooks(db, { full: true, more: service_rules });
  return findings.length === 0 ? 'right' : `a difference of ${difference}`;
}

async function callsAtTheirPrice(db: Db, account_id: string): Promise<number> {
  const rows = await db.query<{ count: string }>(
    'select count(*) from chat_calls where account_id = $1 and status in (200, 499) and cost = $2',
    [account_id, cost_of_an_answer],
  );
  return Number(rows[0]?.count);
}

async function openHolds(db: Db, account_id: string): Promise<number> {
  const rows = await db.query<{ count: string }>('select count(*) from open_holds where account_id = $1', [account_id]);
  return Number(rows[0]?.count);
}

function finish(reports: readonly Report[], is_whole: boolean): number {
  const page = documentOf(reports, new Date().toISOString().slice(0, 10));
  const path = join(import.meta.dirname, '../../docs/clients.md');
  if (is_whole) writeFileSync(path, page);
  else say(page);
  return reports.every((report) => 'verdicts' in report && isGood(report)) ? 0 : 1;
}

function isGood({ verdicts, books }: Extract<Report, { books: string }>): boolean {
  return books === 'right' && !verdicts.some(isFailure);
}

function tell(report: Report): void {
  if ('not_run' in report) return void say(`${report.client.name}: not run: ${report.not_run}`);
  const failed = report.verdicts.filter(isFailure);
  const good = report.verdicts.filter(({ result }) => result === 'ok').length;
  say(`${report.client.name}: ${good} steps ok, ${failed.length} failed, books ${report.books}`);
  for (const { style, step, result } of failed) {
    if (typeof result === 'object') say(`  ${style}, ${step}: ${result.failed}`);
  }
}

function lastWords(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ').slice(-300);
}

function say(line: string, code = 0): number {
  process.stdout.write(`${line}\n`);
  return code;
}

function yamlOf(upstream: string): string {
  const place = 'api_key: env:CLIENTS_UPSTREAM_KEY, allow_private: true';
  const model = (style: string, provider: string, more = '') => `
  - id: clients/${style}
    kind: chat
    max_output_tokens: 64000
    price: [{ unit: input_token, per: 1000000, amount: "2.00" }, { unit: output_token, per: 1000000, amount: "10.00" }]
    routes: [{ provider: ${provider}, upstream_model: clients${more} }]`;
  return `
version: 1
limits: { chat_per_minute: 1000000 }
providers:
  oai: { adapter: openai, base_url: "${upstream}/v1", ${place} }
  ant: { adapter: anthropic, base_url: "${upstream}", ${place} }
  gem: { adapter: gemini, base_url: "${upstream}", ${place} }
models:${model('completions', 'oai')}${model('messages', 'ant')}${model('responses', 'oai', ', options: { responses: always }')}${model('gemini', 'gem')}
`;
}

const { values, positionals } = parseArgs({
  options: { cache: { type: 'string', default: join(tmpdir(), 'medley-clients') } },
  allowPositionals: true,
});
process.exitCode = await main(positionals, values.cache);
