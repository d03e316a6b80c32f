import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

describe('API nodes on one database', () => {
  let database: TestDatabase;
  let folder = '';
  const children: ChildProcess[] = [];

  beforeAll(async () => {
    database = await testDatabase();
    folder = clusterFolder();
  });
  afterEach(async () => {
    for (const child of children.splice(0)) await end(child, 'SIGTERM');
  });
  afterAll(async () => {
    await database.drop();
    removeFolder(folder);
  });

  type Started = { child: ChildProcess; output(): string };

  function start(role: string): Started {
    const env = { ...process.env, PORT: '0', MEDLEY_DATA: join(folder, 'data'), DATABASE_URL: database.url };
    const child = spawn(process.execPath, [main], {
      env: { ...env, MEDLEY_ROLE: role },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    return { child, output: () => output };
  }

  const says = ({ output }: Started, text: string) =>
    vi.waitUntil(() => output().includes(text), { interval: 20, timeout: 60_000 });

  it('wait and take over one after the other, at once after a kill, while workers may be many', async () => {
    const first = start('api');
    await says(first, 'Medley is running');
    await Promise.all([says(start('worker'), 'worker is running'), says(start('worker'), 'worker is running')]);
    const second = start('all');
    await says(second, 'Another API node runs on this database; waiting for it to stop');
    expect(second.output()).not.toContain('Medley is running');
    await end(first.child, 'SIGTERM');
    await says(second, 'Medley is running');
    await end(second.child, 'SIGKILL');
    const third = start('api');
    await says(third, 'Medley is running');
    expect(third.output()).not.toContain('Another API node');
  }, 180_000);

  it('end in order when they are stopped while they wait', async () => {
    await says(start('api'), 'Medley is running');
    const second = start('api');
    await says(second, 'Another API node');
    await end(second.child, 'SIGTERM');
    expect(second.child.exitCode).toBe(0);
  }, 180_000);
});

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
}
