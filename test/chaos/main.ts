/**
 * `main.ts FOLDER --tasks N --chats M --faults K [--nodes N] [--seed S] [--durable] [--report FILE]`: the real service as several processes
 * beside an upstream, receivers and callers, while something breaks every few seconds; then the checker. Ends
 * with 1 if anything promised does not hold, with 2 if the run itself came to nothing. See scripts/chaos.mjs.
 * `--resume`: lets what an earlier run has left in the folder come to its end, and checks it.
 * A run may look closely at one thing: only one kind of `--fault`, only one `--point` to die at, fewer `--accounts`,
 * `--poor-accounts` with another `--poor-credit`.
 */
import { chmodSync, readFileSync, writeFileSync, existsSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { openDatabase, type Db } from '../../src/db/database.ts';
import { migrate } from '../../src/db/migrate.ts';
import { failpoints } from '../../src/lib/failpoint.ts';
import { newId } from '../../src/lib/ids.ts';
import { setAccountBudget } from '../../src/money/account-budgets.ts';
import { startMuteProxy, type MuteProxy } from '../helpers/mute-proxy.ts';
import { Callers } from './callers.ts';
import { startPair, startServer, type Database } from './database.ts';
import { checkBudgets } from './check-budgets.ts';
import { checkChat } from './check-chat.ts';
import { checkMoney } from './check-money.ts';
import { checkCalls, checkUpstream, measureRecovery, readTasks } from './check-tasks.ts';
import { checkWebhooks } from './check-webhooks.ts';
import { Clients } from './clients.ts';
import { groupBy, none, row, seconds, showRows, violationsOf, type Query, type Row } from './findings.ts';
import { startBucket } from './bucket.ts';
import { checkLeases } from './check-leases.ts';
import { checkWindows } from './check-windows.ts';
import { apisOf, Fleet, workers } from './fleet.ts';
import { Hasty } from './hasty.ts';
import { commandsYaml, rates, serviceYaml } from './settings.ts';
import { currentSecret, faults, runCommand, torment, type Focus, type Parts } from './nemesis.ts';
import {
  freePorts,
  openJournal,
  placeFile,
  readJournal,
  type Account,
  type FaultNote,
  type Place,
  type SecretNote,
  readPlace,
} from './place.ts';
import { makeRandom } from './random.ts';

type Options = {
  folder: string;
  tasks: number;
  chats: number;
  faults: number;
  nodes: number;
  outage_ms: number;
  gap_ms: number;
  seed: number;
  durable: boolean;
  /** With a standby, which takes over again and again. */
  standby: boolean;
  report: string | undefined;
  accounts: number;
  /** Undefined: as many as a few calls each of all are for. */
  poor_accounts: number | undefined;
  /** In the base currency; the usual one is enough for a few chat calls. */
  poor_credit: number;
  minutes: number;
  resume: boolean;
  focus: Focus;
};

const keys_per_account = 3;
const credit = 1_000_000_000_000n;

/** Of the credit of a poor account; one of the keys has no limit that would bind. */
const poor_limits = [0.25, 0.45, 5];
const chats_of_a_poor_account = 12;

/** A run with as many chat calls waits until what dead nodes held is given back, which takes more than a minute. */
const patient_chats_min = 500;

/** Tasks come as things break, and as many before as between this number of faults. */
const ahead = 2;

/** At the beginning nothing breaks, so that what then happens twice has no excuse. */
const calm_ms = 5_000;

/** After the last fault something must end within this time, again and again, until nothing is left. */
const standstill_ms_max = 60_000;

async function main(options: Options): Promise<number> {
  const begun_at_ms = performance.now();
  say(`seed ${options.seed}: ${options.tasks} tasks, ${options.chats} chat calls, ${options.faults} faults`);
  chmodSync(options.folder, 0o755); // PostgreSQL's user must be able to enter
  const start = options.standby ? startPair : startServer;
  const database = await start({ folder: join(options.folder, 'database'), is_durable: options.durable });
  process.on('exit', () => database.end());
  const proxy = await startMuteProxy(database.url);
  const bucket = await startBucket(options.folder);
  const place = options.resume
    ? { ...readPlace(options.folder), nodes_database_url: proxy.url }
    : await preparePlace(options, database, proxy);
  writeFileSync(join(options.folder, 'medley.yaml'), serviceYaml(place, await bucket.yaml()));
  const random = makeRandom(options.seed);
  const fleet = new Fleet(place, () => random.whole(100, 1_000));
  process.on('exit', () => fleet.killAll());
  await fleet.start();
  say(`all processes run (${seconds(performance.now() - begun_at_ms)})`);
  const drained = options.resume
    ? await drain(options, place)
    : await run(options, { place, fleet, database, proxy, bucket });
  const rows = [...drained, ...(await finalChecks(place, fleet))];
  await fleet.stop();
  await proxy.stop();
  await bucket.stop();
  rows.push(
    none('processes that ended by themselves', fleet.surprises),
    none('promises rejected unheard', unheard(place)),
  );
  await database.stop();
  rows.push(row('the whole run took', seconds(performance.now() - begun_at_ms)), machine());
  return tell(options, rows);
}

async function run(
  options: Options,
  { place, fleet, database, proxy, bucket }: Omit<Parts, 'outage_ms' | 'random' | 'focus'>,
): Promise<Row[]> {
  const clients = new Clients(place, makeRandom(options.seed + 1));
  const callers = new Callers(place, makeRandom(options.seed + 3));
  const progress = setInterval(() => tellProgress(options, clients, callers), 30_000);
  const until_ms = performance.now() + options.minutes * 60_000;
  let begun = 0;
  const pace = {
    duration_ms: calm_ms + options.faults * options.gap_ms,
    share: () => (begun + ahead) / (options.faults + ahead),
    until_ms,
  };
  const hasty = new Hasty(place);
  const creating = [clients.run(options.tasks, pace), callers.run(options.chats, pace)];
  const { outage_ms, focus } = options;
  const parts = { place, fleet, database, proxy, bucket, outage_ms, random: makeRandom(options.seed + 2), focus };
  const gap_ms = { least: options.gap_ms * 0.5, most: options.gap_ms * 1.5 };
  const tormenting = hasty
    .useUp({ least_ms: calm_ms, most_ms: 4 * calm_ms })
    .then(() => torment(parts, { count: options.faults, gap_ms, until_ms, tell: (done) => (begun = done) }));
  await Promise.all([...creating, tormenting]);
  await hasty.stop();
  await fleet.allUp();
  clearInterval(progress);
  await clients.close();
  say(`all ${clients.acknowledged} tasks acknowledged, all ${callers.calls} chat calls and all faults done; waiting`);
  return drain(options, place);
}

/** Until every task is final, every webhook delivered or dropped, and every chat call settled; or nothing moves on. */
async function drain({ chats }: Options, place: Place): Promise<Row[]> {
  const unfinished = 'select count(*)::int as left from tasks where completed_at is null';
  const undelivered = `select count(*)::int as left from deliveries where state = 'waiting'`;
  const alive = `(select id from nodes where seen_at > now() - interval '10 seconds')`;
  const unsettled = `select count(*)::int as left from open_holds where kind = 'chat' and node_id in ${alive}`;
  const [tasks_ms, deliveries_ms] = [await untilNone(place, unfinished), await untilNone(place, undelivered)];
  const chats_ms = await untilNone(place, unsettled);
  await untilNone(place, unrecorded, record_ms_max);
  const held_ms = chats < patient_chats_min ? 0 : await untilNone(place, heldByTheDead, standstill_ms_max * 2);
  return [
    row(
      '… all chat calls were settled / what dead nodes held was given back after',
      `${seconds(chats_ms)} / ${seconds(held_ms)}`,
    ),
    row(
      'after the last fault, all tasks were final / all webhooks delivered after',
      `${seconds(tasks_ms)} / ${seconds(tasks_ms + deliveries_ms)}`,
    ),
  ];
}

/** Records follow their calls: out of the journal within a second, out of a dead node's journal within ten. */
const record_ms_max = 12_000;

/** A node that dies may take records along, so that some may be left. */
const unrecorded = `select count(*)::int as left from ledger_entries e where type = 'settle' and ref like 'req\\_%'
  and not exists (select from chat_calls c where c.account_id = e.account_id and c.id = e.ref)`;

/** As if the time of all calls that a dead node had was over: the sweep gives back what it held a minute after its death. */
const heldByTheDead = `with over as (
    update open_holds h set expires_at = greatest(now(), created_at + interval '1 ms')
      where kind = 'chat' and expires_at > now()
        and not exists (select from nodes n where n.id = h.node_id and n.seen_at > now() - interval '60 seconds'))
  select count(*)::int as left from open_holds where kind = 'chat'`;

async function preparePlace(options: Options, { url }: Database, proxy: MuteProxy): Promise<Place> {
  const [upstream_port = 0, receivers_port = 0, ...api_ports] = await freePorts(2 + options.nodes);
  const place = {
    folder: options.folder,
    seed: options.seed,
    database_url: url,
    nodes_database_url: proxy.url,
    upstream_port,
    receivers_port,
    api_ports,
  };
  const db = openDatabase({ connection: { connectionString: url }, connections_max: 2 });
  const accounts: Account[] = [];
  let hasty: Account;
  try {
    await migrate(db);
    hasty = await makeAccount(db, options.accounts);
    for (let i = 0; i < options.accounts; i++) accounts.push(await makeAccount(db, i));
    const poor_count = options.poor_accounts ?? Math.ceil(options.chats / chats_of_a_poor_account);
    for (let i = 0; i < poor_count; i++) accounts.push(await makeAccount(db, i, options.poor_credit));
  } finally {
    await db.close();
  }
  const whole = { ...place, accounts, hasty };
  writeFileSync(placeFile(options.folder), JSON.stringify(whole));
  writeFileSync(join(options.folder, 'commands.yaml'), commandsYaml);
  const secrets = openJournal<SecretNote>(options.folder, 'secrets');
  for (const { id } of accounts) {
    secrets.add({ account_id: id, secret: await currentSecret(whole, id), began_at_ms: 0, done_at_ms: 1 });
  }
  return whole;
}

/** `poor_credit`: of a poor one, in the base currency. */
async function makeAccount(db: Db, i: number, poor_credit?: number): Promise<Account> {
  const is_poor = poor_credit !== undefined;
  const currency = i % 2 ? 'PLN' : 'USD';
  const inCurrency = (amount: number) => BigInt(Math.round(amount * 1_000_000 * rates[currency]));
  const name = `${is_poor ? 'poor ' : ''}account ${i}`;
  const initial_credit = is_poor ? inCurrency(poor_credit) : credit;
  const { id } = await createAccount(db, { name, currency, initial_credit }, new Date());
  const keys = [];
  for (let k = 0; k < keys_per_account; k++) {
    const limit_month = is_poor ? inCurrency((poor_limits[k] ?? 0) * poor_credit) : credit;
    const key = await createKey(db, { account_id: id, name: `key ${k}`, limit_month }, new Date());
    keys.push({ id: key.key.id, text: key.text, limit: String(limit_month) });
  }
  if (poor_credit !== undefined)
    await makeBudget(db, { account_id: id, key_id: keys[0]?.id ?? '' }, i, inCurrency(poor_credit));
  return { id, currency, is_poor, keys };
}

/** A hard budget for two of three poor accounts: of the whole account, or of the key with the smallest limit. */
async function makeBudget(db: Db, whose: { account_id: string; key_id: string }, i: number, of: bigint): Promise<void> {
  const { account_id, key_id } = whose;
  if (i % 3 === 0) return;
  const scope =
    i % 3 === 1 ? ({ scope: 'account', subject: null } as const) : ({ scope: 'key', subject: key_id } as const);
  const amount = of / (scope.scope === 'account' ? 2n : 6n);
  const id = newId('budget', Date.now());
  const budget = { id, account_id, name: 'hard', ...scope, period: 'total', amount, is_hard: true } as const;
  const outcome = await setAccountBudget(db, { ...budget, alert_percents: [] }, new Date());
  if (outcome !== 'set') throw new Error(`the budget of ${account_id} is ${outcome}`);
}

/** Everything the checker looks at, while the API is still there to serve files. */
async function finalChecks(place: Place, fleet: Fleet): Promise<Row[]> {
  const client = new pg.Client({ connectionString: place.database_url });
  await client.connect();
  const ask: Query = async (sql, values) => (await client.query(sql, values)).rows;
  try {
    const tasks = await readTasks(ask);
    return [
      ...checkCalls(place.folder, tasks),
      ...(await checkUpstream(ask, place.folder, tasks)),
      ...(await checkLeases(place)),
      ...(await checkMoney(ask)),
      ...(await checkBudgets(ask)),
      ...(await checkChat(ask, place)),
      ...checkWindows(place),
      await checkBooksCommand(place),
      ...(await checkWebhooks(ask, place.folder, tasks)),
      await checkFiles(tasks),
      ...measureRecovery(place.folder, tasks),
      ...faultRows(place, fleet),
    ];
  } finally {
    await client.end();
  }
}

async function checkBooksCommand(place: Place): Promise<Row> {
  const what = 'difference by `medley books --full`';
  try {
    const report = JSON.parse(await runCommand(place, ['books', '--full'])) as { difference: string };
    return row(what, report.difference);
  } catch (error) {
    const reason = error instanceof Error && 'stdout' in error ? String(error.stdout).slice(0, 2_000) : String(error);
    return row(what, 'not exact', [reason]);
  }
}

const files_looked_at = 300;

/** The links of some outputs still lead to their files. */
async function checkFiles(tasks: readonly { id: string; body: string | null; status: string }[]): Promise<Row> {
  const wrong: string[] = [];
  const chosen = tasks.filter((task) => task.status === 'succeeded').slice(-files_looked_at);
  for (const { id, body } of chosen) {
    const { output } = JSON.parse(body ?? '{}') as { output: { url: string; size_bytes: number }[] };
    for (const { url, size_bytes } of output) {
      const answer = await fetch(url);
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (answer.status !== 200 || bytes.length !== size_bytes) wrong.push(`${id}: ${answer.status}`);
    }
  }
  return none(`outputs that cannot be fetched, of ${chosen.length} looked at`, wrong);
}

function faultRows(place: Place, fleet: Fleet): Row[] {
  const notes = groupBy(readJournal<FaultNote>(place.folder, 'faults'), ({ fault }) => fault);
  return [
    row('nodes that ran at the end', [...apisOf(place), ...workers].filter((name) => fleet.isUp(name)).length),
    ...faults.map((fault) => row(`fault: ${fault}`, notes.get(fault)?.length ?? 0)),
  ];
}

/** Waits until a count is zero; answers how long that took. What is left when nothing moves on, the checker finds. */
async function untilNone(place: Place, sql: string, patience_ms = standstill_ms_max): Promise<number> {
  const begun_at_ms = performance.now();
  const client = new pg.Client({ connectionString: place.database_url });
  await client.connect();
  let least = Number.POSITIVE_INFINITY;
  let moved_at_ms = begun_at_ms;
  try {
    for (;;) {
      const { rows } = await client.query<{ left: number }>(sql);
      const left = rows[0]?.left ?? 0;
      if (left < least) {
        least = left;
        moved_at_ms = performance.now();
      }
      if (left === 0 || performance.now() - moved_at_ms > patience_ms) return performance.now() - begun_at_ms;
      await sleep(100);
    }
  } finally {
    await client.end();
  }
}

function unheard(place: Place): string[] {
  return [...apisOf(place), ...workers].flatMap((name) => {
    const path = join(place.folder, 'logs', `${name}.log`);
    const lines = existsSync(path) ? readFileSync(path, 'utf8').split('\n') : [];
    return lines.filter((line) => line.includes('A promise was rejected')).map((line) => `${name}: ${line}`);
  });
}

/** Other work on the machine is part of the measurement. */
function machine(): Row {
  const load = loadavg().map((value) => value.toFixed(1));
  return row(
    'machine: cores, load of the last 1 / 5 / 15 minutes, Node',
    `${availableParallelism()}, ${load.join(' / ')}, ${process.version}`,
  );
}

function tell(options: Options, rows: readonly Row[]): number {
  const broken = violationsOf(rows);
  say(`\n${showRows(rows)}\n`);
  say(
    broken.length === 0
      ? `Every promise held (seed ${options.seed}).`
      : `VIOLATIONS: ${broken.map(({ what }) => what).join('; ')} (seed ${options.seed})`,
  );
  if (options.report !== undefined) writeFileSync(options.report, JSON.stringify({ ...options, rows }, null, 2));
  return broken.length === 0 ? 0 : 1;
}

function tellProgress({ folder, faults: count }: Options, clients: Clients, callers: Callers): void {
  const done = readJournal<FaultNote>(folder, 'faults').length;
  say(
    `${callers.calls} chat calls, ${clients.acknowledged} tasks acknowledged, ${clients.refused} refused, ${clients.unknown} unknown, ${done} of ${count} faults`,
  );
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

function readOptions(): Options {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      tasks: { type: 'string', default: '300' },
      chats: { type: 'string', default: '300' },
      faults: { type: 'string', default: '12' },
      nodes: { type: 'string', default: '3' },
      outage: { type: 'string', default: '90' },
      gap: { type: 'string', default: '2' },
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      durable: { type: 'boolean', default: false },
      standby: { type: 'boolean', default: false },
      report: { type: 'string' },
      accounts: { type: 'string', default: '6' },
      'poor-accounts': { type: 'string' },
      'poor-credit': { type: 'string', default: '2' },
      minutes: { type: 'string', default: '600' },
      resume: { type: 'boolean', default: false },
      fault: { type: 'string' },
      point: { type: 'string' },
    },
  });
  return {
    folder: positionals[0] ?? '',
    tasks: Number(values.tasks),
    chats: Number(values.chats),
    faults: Number(values.faults),
    nodes: Number(values.nodes),
    outage_ms: Number(values.outage) * 1_000,
    gap_ms: Number(values.gap) * 1_000,
    seed: Number(values.seed),
    durable: values.durable,
    standby: values.standby,
    report: values.report,
    accounts: Number(values.accounts),
    poor_accounts: values['poor-accounts'] === undefined ? undefined : Number(values['poor-accounts']),
    poor_credit: Number(values['poor-credit']),
    minutes: Number(values.minutes),
    resume: values.resume,
    focus: {
      fault: faults.find((fault) => fault === values.fault),
      point: failpoints.find((point) => point === values.point),
    },
  };
}

process.stdin.on('end', () => process.exit(3)).resume(); // whoever started us is gone
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(3));
try {
  process.exit(await main(readOptions()));
} catch (error) {
  say(`The run came to nothing: ${error instanceof Error ? error.stack : String(error)}`);
  process.exit(2);
}
