import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { medley } from '../cli/medley.ts';
import type { CommandResult } from '../cli/resident.ts';
import { urlOf } from '../helpers/database.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';

const main = join(import.meta.dirname, '../../src/main.ts');

let folder = '';
beforeAll(() => {
  folder = clusterFolder();
});
afterAll(() => removeFolder(folder));

async function start(DATABASE_URL: string): Promise<CommandResult> {
  const env = { ...process.env, DATABASE_URL, MEDLEY_DATA: join(folder, 'data'), PORT: '0' };
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const result: CommandResult = { code: null, out: '', error: '' };
  child.stdout.on('data', (chunk: Buffer) => (result.out += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (result.error += chunk.toString()));
  await once(child, 'close');
  return { ...result, code: child.exitCode };
}

/** The test cluster, but for what `change` does to its address. */
function clusterWith(change: (url: URL) => void): string {
  const url = new URL(urlOf('postgres').replace('@/', '@localhost/'));
  change(url);
  return url.href;
}

const password = 's3cr3t-s3cr3t';

describe('a DATABASE_URL without a database is reported in a sentence by the service and by commands', () => {
  it.each([
    [
      'a closed port',
      async () => `postgres://medley:${password}@127.0.0.1:1/medley`,
      /^No PostgreSQL listens at 127\.0\.0\.1:\d+ \(ECONNREFUSED\)\. Start it, or correct DATABASE_URL\.$/,
    ],
    [
      'an unknown host',
      async () => `postgres://medley:${password}@no-such-host.invalid/medley`,
      /^The host of DATABASE_URL, no-such-host\.invalid, is not known \((ENOTFOUND|EAI_AGAIN)\)\. Correct it, or see why its name is not found\.$/,
    ],
    [
      'a wrong password',
      async () => clusterWith((url) => (url.password = password)),
      /^The database at \S+ refuses DATABASE_URL: password authentication failed for user "\w+"\. Correct the user or the password in it\.$/,
    ],
    [
      'a database that does not exist',
      async () => clusterWith((url) => (url.pathname = '/no_such_database')),
      /^There is no database "no_such_database" at \S+\. Make it, or name another one in DATABASE_URL\.$/,
    ],
    [
      'a port that is none',
      async () => `postgres://medley:${password}@127.0.0.1:99999/medley`,
      /^DATABASE_URL is not an address. Its form is postgres:\/\/USER:PASSWORD@HOST:PORT\/NAME, and in the password /,
    ],
  ])('as %s', async (_, urlOfCase, sentence) => {
    const url = await urlOfCase();
    const started = await start(url);
    const command = await medley(['account', 'list'], { DATABASE_URL: url, MEDLEY_DATA: join(folder, 'data') });
    const engine = await medley(['doctor'], { DATABASE_URL: url, MEDLEY_DATA: join(folder, 'data') });
    for (const { code, out, error } of [started, command, engine]) {
      expect([code, out]).toEqual([1, '']);
      expect(error.trimEnd()).toMatch(sentence);
      expect(error).not.toContain(password);
    }
  });

  it('as a wrong setting for another kind of address', async () => {
    const url = `mysql://medley:${password}@127.0.0.1/medley`;
    const started = await start(url);
    expect(started).toMatchObject({ code: 1, error: expect.stringMatching(/^DATABASE_URL must begin with postgres:/) });
    expect(started.error).not.toContain(password);
  });
});
