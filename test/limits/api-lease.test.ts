import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { ConfigError } from '../../src/config.ts';
import { openApiLease, type ApiLease } from '../../src/limits/api-lease.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

const lock = 7_633_529_004;
const until = (isTrue: () => boolean | Promise<boolean>) => vi.waitUntil(isTrue, { interval: 10, timeout: 10_000 });

describe('the API lease of a database', () => {
  let database: TestDatabase;
  const nodes: ApiLease[] = [];

  beforeAll(async () => {
    database = await testDatabase({ state: 'empty' });
  });
  afterAll(() => database.drop());
  afterEach(async () => {
    for (const node of nodes.splice(0)) await node.leave();
  });

  function open(options: { patience_ms?: number } = {}) {
    const said: string[] = [];
    const onReplaced = vi.fn<() => void>();
    const node = openApiLease(database.db, { ...options, say: (line) => said.push(line), onReplaced });
    nodes.push(node);
    return { node, said, onReplaced };
  }

  /** The sessions that hold the lock. */
  const holders = () =>
    database.db.query<{ pid: number; name: string }>(
      `select pid, application_name as name from pg_locks join pg_stat_activity using (pid)
        where locktype = 'advisory' and granted and pg_locks.objid = $1 & 4294967295 and datname = current_database()`,
      [BigInt(lock)],
    );
  const kill = (pid: number) => database.db.query('select pg_terminate_backend($1)', [pid]);

  /** A session that waits for the lock, so that it has it the moment it is free. */
  async function queueUp(application_name: string): Promise<{ got: Promise<unknown>; leave(): Promise<void> }> {
    const client = new pg.Client({ connectionString: database.url, application_name });
    await client.connect();
    const got = client.query('select pg_advisory_lock($1)', [lock]);
    const waiting = `select from pg_locks join pg_stat_activity using (pid)
      where locktype = 'advisory' and not granted and datname = current_database()`;
    await until(async () => (await database.db.query(waiting)).length === 1);
    return { got, leave: () => client.end() };
  }

  it('is taken at once when it is free, and by the next node when the first has left', async () => {
    const [first, second] = [open(), open()];
    expect(await first.node.take()).toBe(true);
    expect(first.said).toEqual([]);
    const taken = second.node.take();
    await until(() => second.said.length > 0);
    await first.node.leave();
    expect(await taken).toBe(true);
    expect(second.said).toEqual(['Another API node runs on this database; waiting for it to stop (at most 20 s).']);
  });

  it('is refused to a second node in a sentence that says what to do', async () => {
    await open().node.take();
    const refused = await open({ patience_ms: 300 })
      .node.take()
      .catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ConfigError);
    expect(String(refused)).toMatch(/^ConfigError: Another API node runs on this database, and .* MEDLEY_ROLE=worker/);
  });

  it('is not taken by a node that is stopped while it waits', async () => {
    await open().node.take();
    const second = open();
    const taken = second.node.take();
    await until(() => second.said.length > 0);
    await second.node.leave();
    expect(await taken).toBe(false);
  });

  it('is taken again when the connection was lost', async () => {
    const { node, onReplaced } = open();
    await node.take();
    const [before] = await holders();
    await kill(before?.pid ?? 0);
    await until(async () => ((await holders())[0]?.pid ?? before?.pid) !== before?.pid);
    expect(onReplaced).not.toHaveBeenCalled();
  });

  it('is reported as lost when another node took it while the connection was lost', async () => {
    const { node, onReplaced } = open();
    await node.take();
    const other = await queueUp('medley api other');
    const [holder] = await holders();
    await kill(holder?.pid ?? 0);
    await other.got;
    await until(() => onReplaced.mock.calls.length > 0);
    await other.leave();
    expect(onReplaced).toHaveBeenCalledOnce();
  });

  it('is waited for when an own session still has it on the server', async () => {
    const { node, onReplaced } = open();
    await node.take();
    const [holder] = await holders();
    const ghost = await queueUp(holder?.name ?? '');
    await kill(holder?.pid ?? 0);
    await ghost.got;
    const [seen] = await holders();
    const asked = `select from pg_stat_activity where application_name = $1 and pid <> $2 and query like '%pg_try_advisory_lock%'`;
    await until(async () => (await database.db.query(asked, [holder?.name, seen?.pid])).length === 1);
    await ghost.leave();
    await until(async () => ((await holders())[0]?.pid ?? seen?.pid) !== seen?.pid);
    expect(onReplaced).not.toHaveBeenCalled();
  });
});
