import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { failpoints, type Failpoint } from '../../src/lib/failpoint.ts';
import type { Bucket } from './bucket.ts';
import type { Database } from './database.ts';
import { apisOf, workers, type Fleet, type Name } from './fleet.ts';
import type { MuteProxy } from '../helpers/mute-proxy.ts';
import { openJournal, type FaultNote, type Place, type SecretNote } from './place.ts';
import type { Random } from './random.ts';
import { adjust, freeMoney, withDatabase } from './withdraw.ts';

/** Longer than a heartbeat of the engine. */
const freeze_ms = 12_000;

const weights = {
  'kill -9 of an API': 12,
  'kill -9 of a worker': 24,
  'kill -9 of both workers': 6,
  'SIGSTOP of an API for 12 s': 10,
  'SIGSTOP of a worker for 12 s': 6,
  'kill -9 of PostgreSQL': 8,
  'standby takes over from PostgreSQL': 8,
  'all connections of the database cut': 8,
  'kill -9 of the upstream': 3,
  'kill -9 of the receivers': 6,
  'webhook secret rotated': 6,
  'rolling restart by SIGTERM': 3,
  'worker that dies at a failpoint': 18,
  'one connection to the database goes mute': 6,
  'half of the connections to the database go mute': 4,
  'all connections to the database go mute': 4,
  'outage of the database': 3,
  'clock of a node 20 min ahead, behind, or right again': 10,
  'bucket away for 10 s': 4,
  'bucket silent for 10 s': 4,
  'bucket answers SlowDown for 10 s': 3,
} as const;
type Fault = keyof typeof weights;

/** Every kind there is, for the report. */
export const faults = Object.keys(weights) as Fault[];

/** An API and a worker have run for this long before something breaks again; else nothing would be under way. */
const alive_ms_min = 1_000;
/** So many times the shortest gap between two faults the service may have got nothing done. */
const idle_gaps_max = 20;
const webhooks_between = 12;
const webhook_bytes = 800; // a line of the receivers' journal

/** Only this kind of fault, and only this place to die at. */
export type Focus = { fault: Fault | undefined; point: Failpoint | undefined };

export type Parts = {
  place: Place;
  fleet: Fleet;
  database: Database;
  /** Between all nodes and the database. */
  proxy: MuteProxy;
  bucket: Bucket;
  outage_ms: number;
  random: Random;
  focus: Focus;
};

const bucket_ms = 10_000;

/** Longer than the limit of any statement that somebody waits for. */
const mute_ms = 15_000;

type Pace = {
  count: number;
  gap_ms: { least: number; most: number };
  until_ms: number;
  /** Called with the number of faults that have begun. */
  tell: (done: number) => void;
};

/** Each kind of fault once, then as often as its weight says, until `count` or the time
 * `until_ms`. What takes longer goes on beside the next ones. */
export async function torment(parts: Parts, { count, gap_ms, until_ms, tell }: Pace): Promise<void> {
  const { random, fleet, place, focus, database } = parts;
  const journal = openJournal<FaultNote>(place.folder, 'faults');
  const lasting: Promise<void>[] = [];
  let received_bytes = 0;
  const possible = database.failOver ? weights : { ...weights, 'standby takes over from PostgreSQL': 0 };
  const first = faults
    .filter((fault) => possible[fault] > 0)
    .map((fault) => ({ fault, rank: random.next() }))
    .toSorted((a, b) => a.rank - b.rank);
  for (let i = 0; i < count && performance.now() < until_ms; i++) {
    await sleep(random.whole(gap_ms.least, gap_ms.most));
    await Promise.all([fleet.oneUp(workers, alive_ms_min), fleet.oneUp(apisOf(place), alive_ms_min)]);
    received_bytes = await untilMore(place, received_bytes, idle_gaps_max * gap_ms.least);
    const fault = focus.fault ?? first[i]?.fault ?? random.weighted(possible);
    tell(i + 1);
    const at_ms = Date.now();
    const { target, over } = inflict(parts, fault);
    lasting.push(over.then(() => journal.add({ at_ms, ended_at_ms: Date.now(), fault, target })));
  }
  await Promise.all(lasting);
  fleet.disarm();
}

/**
 * A service that gets nothing done between two faults has nothing to lose: waits for webhooks that arrive, which
 * takes a second where the processes have the machine for themselves.
 */
async function untilMore({ folder }: Place, before_bytes: number, patience_ms: number): Promise<number> {
  const path = join(folder, 'receivers.jsonl');
  const size = () => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const enough_bytes = before_bytes + webhooks_between * webhook_bytes;
  for (const give_up_at_ms = performance.now() + patience_ms; size() < enough_bytes; await sleep(50)) {
    if (performance.now() > give_up_at_ms) break;
  }
  return size();
}

/** `over` resolves when whatever was hit runs again, and never rejects for want of the service. */
function inflict(parts: Parts, fault: Fault): { target: string; over: Promise<void> } {
  const { fleet, database, random } = parts;
  const apis = apisOf(parts.place);
  const worker: Name = workers[random.whole(0, 1)] ?? 'worker-1';
  const api: Name = apis[random.whole(0, apis.length - 1)] ?? 'api-1';
  switch (fault) {
    case 'kill -9 of an API':
      return killed(fleet, api);
    case 'kill -9 of a worker':
      return killed(fleet, worker);
    case 'kill -9 of both workers':
      return {
        target: 'both',
        over: Promise.all(workers.map((name) => killed(fleet, name).over)).then(() => undefined),
      };
    case 'SIGSTOP of an API for 12 s':
      return { target: api, over: freezeApi(parts, api) };
    case 'SIGSTOP of a worker for 12 s':
      return { target: worker, over: fleet.freeze(worker, freeze_ms) };
    case 'kill -9 of PostgreSQL':
      return { target: database.name(), over: database.kill() };
    case 'standby takes over from PostgreSQL':
      return { target: database.name(), over: database.failOver?.() ?? Promise.resolve() };
    case 'all connections of the database cut':
      return { target: 'all', over: cutConnections(parts.place) };
    case 'kill -9 of the upstream':
      return killed(fleet, 'upstream');
    case 'kill -9 of the receivers':
      return killed(fleet, 'receivers');
    case 'webhook secret rotated':
      return rotate(parts);
    case 'rolling restart by SIGTERM':
      return { target: 'all nodes', over: restartAll(fleet, [...apis, ...workers]) };
    case 'worker that dies at a failpoint': {
      const point: Failpoint =
        parts.focus.point ?? failpoints[random.whole(1, failpoints.length - 1)] ?? 'task.submitted';
      fleet.arm(worker, point);
      return { target: `${worker} ${point}`, over: fleet.reborn(worker) };
    }
    case 'one connection to the database goes mute':
      return muted(parts.proxy, 'one');
    case 'half of the connections to the database go mute':
      return muted(parts.proxy, 'half');
    case 'all connections to the database go mute':
      return muted(parts.proxy, 'all');
    case 'outage of the database':
      return { target: `${parts.outage_ms / 1_000} s`, over: refuse(parts) };
    case 'clock of a node 20 min ahead, behind, or right again': {
      const all = [...apis, ...workers];
      const node = all[random.whole(0, all.length - 1)] ?? api;
      const minutes = [-20, 0, 20][random.whole(0, 2)] ?? 20;
      fleet.setClock(node, minutes);
      return { target: `${node} ${minutes}`, over: Promise.resolve() };
    }
    case 'bucket away for 10 s':
      return { target: 'bucket', over: parts.bucket.trouble('reset', bucket_ms) };
    case 'bucket silent for 10 s':
      return { target: 'bucket', over: parts.bucket.trouble('hang', bucket_ms) };
    case 'bucket answers SlowDown for 10 s':
      return { target: 'bucket', over: parts.bucket.trouble('slow', bucket_ms) };
  }
}

/** A node that was silent for so long has lost what it had leased. */
const lease_lost_ms = 9_000;
const withdraws_ms = 2_500;
const spends_ms = 3_000;

/**
 * A node that slept does not know what others did meanwhile: an owner withdraws all that can be had, and pays it in
 * again a little later. What the node spends of it in between, the ledger shows as a loss.
 */
async function freezeApi({ fleet, place }: Parts, api: Name): Promise<void> {
  const frozen = fleet.freeze(api, freeze_ms);
  await sleep(lease_lost_ms);
  const away: Withdrawals = { account_id: undefined, amount: 0n };
  await withdrawSomewhere(place, away).catch(() => undefined); // the database is away
  await frozen;
  await sleep(spends_ms);
  const { account_id, amount } = away;
  const ref = `paid in again at ${Date.now()}`;
  while (account_id !== undefined && amount > 0n) {
    const again = withDatabase(place.database_url, (db) => adjust(db, { account_id, amount }, ref));
    if (
      await again.then(
        () => true,
        () => false,
      )
    )
      return;
    await sleep(1_000);
  }
}

type Withdrawals = { account_id: string | undefined; amount: bigint };

/**
 * Of the poor account that has most: its calls come one after the other, to all nodes. They spend meanwhile, so that the
 * amount is read again until nothing is left.
 */
async function withdrawSomewhere({ database_url, accounts }: Place, away: Withdrawals): Promise<void> {
  const poor = new Set(accounts.filter(({ is_poor }) => is_poor).map(({ id }) => id));
  const until_ms = performance.now() + withdraws_ms;
  await withDatabase(database_url, async (db) => {
    while (performance.now() < until_ms) {
      const free = (await freeMoney(db)).filter((each) => poor.has(each.account_id) && each.amount > 0n);
      const chosen = free.filter(({ account_id }) => account_id === (away.account_id ?? account_id));
      const [most] = chosen.toSorted((a, b) => (a.amount < b.amount ? 1 : -1));
      if (!most) return;
      away.account_id = most.account_id;
      const outcome = await adjust(db, { ...most, amount: -most.amount }, `withdrawn at ${performance.now()}`);
      if (outcome === 'booked') away.amount += most.amount;
      else await sleep(50); // it is leased, and given back in a moment
    }
  });
}

/** Neither closed nor answered, until the network forgets them. New connections are made as always. */
function muted(proxy: MuteProxy, share: 'one' | 'half' | 'all'): { target: string; over: Promise<void> } {
  const count = proxy.mute(share);
  return { target: `${count} connections`, over: sleep(mute_ms).then(() => proxy.endMute(mute_ms)) };
}

/** New calls have begun by then: an outage is for those that are under way. */
const before_outage_ms = 1_000;

/** One outage after the other. */
let outages: Promise<void> = Promise.resolve();

function refuse({ proxy, outage_ms }: Parts): Promise<void> {
  outages = outages.then(async () => {
    await sleep(before_outage_ms);
    proxy.refuse(true);
    await sleep(outage_ms);
    proxy.refuse(false);
  });
  return outages;
}

function killed(fleet: Fleet, name: Name): { target: string; over: Promise<void> } {
  const over = fleet.reborn(name);
  fleet.kill(name);
  return { target: name, over };
}

async function cutConnections({ database_url }: Place): Promise<void> {
  const client = new pg.Client({ connectionString: database_url });
  client.on('error', () => undefined);
  await client
    .connect()
    .then(() =>
      client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'`,
      ),
    )
    .catch(() => undefined); // it is being restarted: they are cut already
  await client.end().catch(() => undefined);
}

async function restartAll(fleet: Fleet, nodes: readonly Name[]): Promise<void> {
  for (const name of nodes) {
    const over = fleet.reborn(name);
    fleet.kill(name, 'SIGTERM');
    await over;
  }
}

/** One rotation after the other, so that it is known which secret came before which. */
let rotations: Promise<void> = Promise.resolve();

/** By the operator's command, under load; the old secret goes on signing beside the new one. */
function rotate({ place, random }: Parts): { target: string; over: Promise<void> } {
  const rich = place.accounts.filter(({ is_poor }) => !is_poor);
  const account_id = rich[random.whole(0, rich.length - 1)]?.id ?? '';
  const journal = openJournal<SecretNote>(place.folder, 'secrets');
  const work = async () => {
    const began_at_ms = Date.now();
    await runCommand(place, ['webhook', 'rotate', '--account', account_id]).catch(() => undefined);
    // Whether or not its answer was lost: what the database says.
    const secret = await currentSecret(place, account_id);
    journal.add({ account_id, secret, began_at_ms, done_at_ms: Date.now() });
  };
  rotations = rotations.then(work);
  return { target: account_id, over: rotations };
}

const command = promisify(execFile);

/** An operator's command on the database of the run; rejects with its output if it fails. */
export async function runCommand({ database_url, folder }: Place, words: readonly string[]): Promise<string> {
  const cli = join(import.meta.dirname, '../../scripts/medley.mjs');
  const env = {
    PATH: process.env['PATH'],
    DATABASE_URL: database_url,
    MEDLEY_DATA: join(folder, 'data'),
    MEDLEY_CONFIG: join(folder, 'commands.yaml'),
  };
  return (await command(process.execPath, [cli, ...words, '--json'], { env, timeout: 120_000 })).stdout;
}

/** Waits while the database is away. */
export async function currentSecret({ database_url }: Place, account_id: string): Promise<string> {
  for (;;) {
    const client = new pg.Client({ connectionString: database_url });
    client.on('error', () => undefined);
    try {
      await client.connect();
      const { rows } = await client.query<{ webhook_secret: string }>(
        'select webhook_secret from accounts where id = $1',
        [account_id],
      );
      if (rows[0]) return rows[0].webhook_secret;
    } catch {
      await sleep(200);
    } finally {
      await client.end().catch(() => undefined);
    }
  }
}
