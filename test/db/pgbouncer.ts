import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { ownerOfNew } from '../dashboard/people.ts';
import { completion, hello, yamlOf } from '../chat/setup.ts';
import { expectExactBooks, startTestApp } from '../helpers/app.ts';
import { startChatUpstream } from '../helpers/chat-upstream.ts';
import { testDatabase } from '../helpers/database.ts';
import { freePort } from '../helpers/free-port.ts';

/** A PgBouncer before a database of its own. It refuses to run as root, so it runs as PostgreSQL does. */
async function startPgBouncer(mode: { pool_mode: string; server_round_robin?: number }): Promise<string> {
  const database = await testDatabase({ state: 'engine' });
  const { host, port, user, password } = new pg.Client({ connectionString: database.url });
  const { uid, gid } = statSync(host);
  const own_port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), 'medley-pgbouncer-'));
  const file = join(folder, 'pgbouncer.ini');
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: own_port,
    unix_socket_dir: '',
    auth_type: 'any',
    ...mode,
    default_pool_size: 60,
    max_client_conn: 200,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const place = `host=${host} port=${port} user=${user} password=${password}`;
  writeFileSync(file, `[databases]\n* = ${place}\n[pgbouncer]\n${lines.join('\n')}\n`, { mode: 0o600 });
  for (const path of [folder, file]) if (process.getuid?.() === 0) chownSync(path, uid, gid);
  const child = spawn('pgbouncer', [file], { stdio: ['ignore', 'inherit', 'pipe'], uid, gid });
  const exited = once(child, 'exit');
  let output = '';
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
    rmSync(folder, { recursive: true });
    await database.drop();
  });
  await expect.poll(() => output).toContain('process up');
  return `postgres://${user}@127.0.0.1:${own_port}/${database.name}?sslmode=disable`;
}

describe('PgBouncer', () => {
  test('in session mode serves calls, tasks, waits and pages like PostgreSQL itself', async () => {
    process.env['TEST_UPSTREAM_KEY'] = 'sk-upstream-secret-0123456789';
    const upstream = await startChatUpstream();
    upstream.script('gpt-x', { json: completion('Hi') });
    const url = await startPgBouncer({ pool_mode: 'session' });
    const service = await startTestApp({ yaml: yamlOf(upstream), env: { DATABASE_URL: url } });
    onTestFinished(async () => {
      await service.stop();
      await upstream.stop();
    });
    const client = await service.client();
    const answers = await Promise.all(
      Array.from({ length: 40 }, async () => [
        (await client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages: hello })).status,
        (await client.call('POST', '/v1/generate?wait=30', { model: 'sandbox/image', input: { prompt: 'a' } })).json
          .status,
      ]),
    );
    expect(new Set(answers.flat())).toEqual(new Set([200, 'succeeded']));
    expect((await client.call('GET', '/v1/usage')).status).toBe(200);
    const person = await ownerOfNew(service);
    expect((await person.get(`${person.base}/home`)).status).toBe(200);
    await expectExactBooks(service.app);
  });

  test.each([
    { pool_mode: 'transaction' },
    { pool_mode: 'transaction', server_round_robin: 1 },
    { pool_mode: 'statement' },
  ])('that gives connections away between transactions is refused with a sentence (%o)', async (mode) => {
    const url = await startPgBouncer(mode);
    await expect(startTestApp({ env: { DATABASE_URL: url } })).rejects.toThrow(/set pool_mode = session/);
  });
});
