/**
 * npm run fuzz -- [--requests 100000] [--seed N] [--connections 16] [--from NUMBER]
 *
 * Hostile requests made from the reference, against a service process of its own with a PostgreSQL of its
 * own. Ends with 1 if an answer, the log, the books or the memory is not as it must be.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openDatabase, type Db } from '../../src/db/database.ts';
import { startEmbedded } from '../../src/embedded-postgres/embedded.ts';
import { checkBooks } from '../../src/money/books.ts';
import { service_rules } from '../../src/chat/books.ts';
import { runCampaign, showFinding, type Finding } from './campaign.ts';
import { startService, type Service } from './service.ts';
import { campaign_yaml, makePlace, type Place } from './world.ts';

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '100000' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    connections: { type: 'string', default: '16' },
    from: { type: 'string', default: '0' },
  },
});
const seed = Number(values.seed);
const count = Number(values.requests);
const first = Number(values.from);

const secret = 'the-secret-of-all-links';

/** Memory is compared in quarters; from the first one on it may not grow by more. */
const growth_mb_max = 100;

/** Ctrl-C: what was started is stopped, and nothing is judged. */
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort());

const print = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'medley-fuzz-'));
  chmodSync(folder, 0o755); // PostgreSQL's user must be able to enter
  const embedded = await startEmbedded({ data_dir: join(folder, 'data') });
  const db = openDatabase({ connection: embedded.connection, connections_max: 4 });
  let service: Service | undefined;
  try {
    writeFileSync(join(folder, 'medley.yaml'), campaign_yaml);
    service = await startService(folder, {
      DATABASE_URL: embedded.url,
      MEDLEY_DATA: join(folder, 'files'),
      MEDLEY_CONFIG: join(folder, 'medley.yaml'),
      MEDLEY_SECRET: secret,
      MEDLEY_LOG_LEVEL: 'info',
      PORT: '0',
    });
    const place = await makePlace(db, service.url);
    return await attack(service, db, place);
  } catch (error) {
    if (!stopped.signal.aborted) throw error;
    print('stopped');
    return 1;
  } finally {
    await service?.stop();
    await db.close();
    await embedded.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function attack(service: Service, db: Db, place: Place): Promise<number> {
  print(`seed ${seed}, ${count} requests over ${values.connections} connections`);
  const memory = [residentMegabytes(service)];
  const statuses = new Map<number, number>();
  const findings: Finding[] = [];
  let elapsed_ms = 0;
  for (let quarter = 0; quarter < 4 && findings.length === 0; quarter++) {
    const from = first + Math.floor((count * quarter) / 4);
    const to = first + Math.floor((count * (quarter + 1)) / 4);
    const outcome = await runCampaign({
      world: place.world,
      port: Number(new URL(service.url).port),
      secrets: [...place.secrets, secret],
      seed,
      first: from,
      count: to - from,
      connections: Number(values.connections),
      signal: stopped.signal,
    });
    stopped.signal.throwIfAborted();
    findings.push(...outcome.findings);
    elapsed_ms += outcome.elapsed_ms;
    for (const [status, times] of outcome.statuses) statuses.set(status, (statuses.get(status) ?? 0) + times);
    memory.push(residentMegabytes(service));
    print(`${to - first} requests after ${(elapsed_ms / 1000).toFixed(0)} s, memory ${memory.at(-1)} MB`);
  }
  for (const finding of findings) print(showFinding(finding));
  const complaints = [...findings.map(() => 'an answer'), ...(await aftermath(service, db, place, memory))];
  const answered = [...statuses.values()].reduce((sum, times) => sum + times, 0);
  const rows = [...statuses].toSorted(([a], [b]) => a - b).map(([status, times]) => `${status} ${times}`);
  print(`answers: ${rows.join(', ')}`);
  print(`${Math.round(answered / (elapsed_ms / 1000))} requests/s; memory ${memory.join(' → ')} MB`);
  print(complaints.length === 0 ? 'nothing found' : `found: ${complaints.join('; ')} (seed ${seed})`);
  return complaints.length === 0 ? 0 : 1;
}

/** What must be so when it is over. */
async function aftermath(service: Service, db: Db, place: Place, memory: number[]): Promise<string[]> {
  const complaints: string[] = [];
  if ((await fetch(`${service.url}/livez`)).status !== 200) complaints.push('the service does not live');
  await place.expectForeignUntouched();
  await settle(db);
  const books = await checkBooks(db, { full: true, more: service_rules });
  print(`books: ${books.entries} entries, difference ${books.difference}, ${books.ok ? 'ok' : 'NOT ok'}`);
  if (!books.ok) complaints.push(`the books: ${JSON.stringify(books.findings)}`);
  const log = service.log();
  for (const text of [...place.secrets, secret]) if (log.includes(text)) complaints.push(`the log shows ${text}`);
  const surprises = log.split('\n').filter((line) => /"level":(?:50|60)|rejected that nobody/.test(line));
  if (surprises.length > 0) complaints.push(`${surprises.length} errors in the log: ${surprises[0]}`);
  const [, quarter = 0] = memory;
  if ((memory.at(-1) ?? 0) > quarter + growth_mb_max) complaints.push('memory grows');
  return complaints;
}

/** Until every task is final: what was created must end. */
async function settle(db: Db): Promise<void> {
  const deadline_ms = performance.now() + 300_000;
  while (performance.now() < deadline_ms) {
    const [row] = await db.query<{ open: bigint }>('select count(*) as open from tasks where completed_at is null');
    if (row?.open === 0n) return;
    await sleep(500);
  }
  const open = await db.query(
    `select t.id, t.status, t.model, t.created_at, t.webhook_url, t.input, t.metadata, j.name, j.state, j.retry_count,
       j.start_after, a.state as attempt
       from tasks t left join pgboss.job j on j.data->>'task_id' = t.id
       left join attempts a on a.account_id = t.account_id and a.task_id = t.id
      where t.completed_at is null limit 20`,
  );
  throw new Error(`tasks are still open after 5 minutes: ${JSON.stringify(open, null, 1)}`);
}

function residentMegabytes({ child }: Service): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024);
}

process.exitCode = await main();
