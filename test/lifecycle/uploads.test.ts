import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import OpenAI from 'openai-7';
import { expect, test } from 'vitest';
import { removeExpiredFiles } from '../../src/files/files.ts';
import { removeOldUploads } from '../../src/files/upload-sessions.ts';
import { childEnvironment } from '../helpers/child-environment.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';

const program = join(import.meta.dirname, '../helpers/node-child.ts');
const bytes = Buffer.from('Grüße an Łódź');

/** Another API node on the same database and files, which kills itself at a place. */
async function startDoomed({ app }: TestApp, failpoint: string) {
  const env = childEnvironment(app, { role: 'api', failpoints: `${failpoint}=kill` });
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(child, 'exit');
  let written = '';
  for (const output of [child.stdout, child.stderr])
    output.on('data', (chunk: Buffer) => (written = `${written}${chunk.toString()}`.slice(-10_000)));
  let url = '';
  const isReady = () => {
    url ||= /running at (http:\S+)\s/.exec(written)?.[1] ?? '';
    return fetch(`${url}/readyz`).then(
      ({ status }) => status,
      () => 0,
    );
  };
  try {
    await expect.poll(isReady, { timeout: 120_000, interval: 100 }).toBe(200);
  } catch (error) {
    throw new Error(`the node was not ready; it has exit code ${child.exitCode} and wrote: ${written}`, {
      cause: error,
    });
  }
  return {
    url,
    untilDead: async () => {
      await ended;
      expect(child.signalCode).toBe('SIGKILL');
    },
  };
}

test.each(['upload.part', 'upload.stored'])(
  'an upload whose node is killed at %s goes on at another one, and nothing is left of the first try',
  async (failpoint) => {
    const service = await startTestApp({ yaml: 'version: 1\nstorage: { shared: true }\n' });
    try {
      const { app, url } = service;
      const client = await service.client();
      const sdkAt = (base: string) => new OpenAI({ apiKey: client.key, baseURL: `${base}/v1`, maxRetries: 0 });
      const here = sdkAt(url);
      const doomed = await startDoomed(service, failpoint);
      const there = sdkAt(doomed.url);
      const upload = await there.uploads.create({
        bytes: bytes.length,
        filename: 'a.txt',
        mime_type: 'text/plain',
        purpose: 'user_data',
      });
      const half = 8;
      const add = (sdk: OpenAI, part: Buffer) =>
        sdk.uploads.parts.create(upload.id, { data: new File([new Uint8Array(part)], 'part') });
      const first = await add(here, bytes.subarray(0, half));
      const dying =
        failpoint === 'upload.part'
          ? add(there, bytes.subarray(half))
          : add(here, bytes.subarray(half)).then(({ id }) =>
              there.uploads.complete(upload.id, { part_ids: [first.id, id] }),
            );
      await expect(dying).rejects.toThrow('Connection error');
      await doomed.untilDead();
      const parts = await app.db.query<{ id: string }>('select id from upload_parts order by id');
      expect(parts).toHaveLength(failpoint === 'upload.part' ? 1 : 2);
      const second = parts[1] ?? (await add(here, bytes.subarray(half)));
      const { file } = await here.uploads.complete(upload.id, { part_ids: [first.id, second.id] });
      expect(await (await here.files.content(file?.id ?? '')).text()).toBe(bytes.toString());
      const later = new Date(Date.now() + 4_600_000);
      await removeOldUploads(app, later);
      await removeExpiredFiles(app, later);
      const rows = await app.db.query<{ id: string }>('select id from files');
      expect(rows).toEqual([{ id: file?.id }]);
      expect(await app.storage.list(client.account_id, upload.id)).toEqual([]);
      await expectExactBooks(app);
    } finally {
      await service.stop();
    }
  },
);
