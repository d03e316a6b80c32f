import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { openUpstream } from '../../src/providers/http/http.ts';
import type { Adapter } from '../../src/providers/provider.ts';
import { pollTask } from '../../src/tasks/poll.ts';
import { startTask } from '../../src/tasks/start.ts';
import { loadTask, type TaskRef } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';

const model = (id: string) =>
  mediaModel({ id: `test/${id}`, routes: [`{ provider: slow, upstream_model: ${id}, poll: { max: 7s } }`] });

const piece_every_ms = 100;

/** More than an upstream has until its answer begins, 15 s, and more pieces than that. */
const pieces = 170;

/** An upstream whose polls are answered with the file itself, by the models: piece by piece, or never. */
describe.concurrent('a poll', () => {
  let service: TestApp;
  let image: Buffer;
  const answers: Record<string, RequestListener> = {
    '/pieces': async (_, response) => {
      const size_bytes = Math.ceil(image.length / pieces);
      for (let at = 0; at < image.length; at += size_bytes) {
        response.write(image.subarray(at, at + size_bytes));
        await sleep(piece_every_ms);
      }
      response.end();
    },
    '/silence': () => undefined,
  };
  const server = createServer((request, response) => answers[request.url ?? '']?.(request, response));
  const slow: Adapter = {
    serves: (kind) => kind === 'image',
    open: (config, parts) => {
      const { port } = server.address() as AddressInfo;
      const base_url = `http://127.0.0.1:${port}`;
      const upstream = openUpstream({ ...config, base_url, allow_private: true }, parts);
      return {
        start: async () => ({ phase: 'running', ref: 'r', poll_after_ms: 100 }),
        poll: async (run, _ref, signal) => {
          const { bytes } = await upstream.call({ method: 'GET', path: `/${run.model}`, signal });
          return { phase: 'done', files: [{ bytes }] };
        },
        close: () => upstream.close(),
      };
    },
  };

  beforeAll(async () => {
    const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const;
    image = await sharp({ create: { width: 32, height: 32, channels: 3, background: '#000', noise } })
      .png()
      .toBuffer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const yaml = `version: 1\n${limits()}\nproviders: { slow: { adapter: slow } }\nmodels:${model('pieces')}${model('silence')}\n`;
    service = await startTestApp({ yaml, worker: false, adapters: { slow } });
  });
  afterAll(async () => {
    await expectExactBooks(service.app);
    await service.stop();
    server.closeAllConnections();
    server.close();
  });

  const job = (ref: TaskRef) => ({ id: 'x', queue: 'x', data: ref, attempt: 0, signal: new AbortController().signal });

  async function running(name: string): Promise<TaskRef> {
    const client = await service.client();
    const { json } = await client.call('POST', '/v1/generate', { model: `test/${name}`, input: {} });
    const ref = { account_id: client.account_id, task_id: json.id };
    await startTask(service.app, job(ref));
    return ref;
  }

  it('reads a file within its answer for as long as that keeps coming', async ({ expect }) => {
    const ref = await running('pieces');
    expect(await pollTask(service.app, job(ref))).toBe('done');
    expect(await loadTask(service.app.db, ref)).toMatchObject({ status: 'succeeded' });
  });

  it('that nobody answers ends by itself, and comes again', async ({ expect }) => {
    const ref = await running('silence');
    expect(await pollTask(service.app, job(ref))).toEqual({ again_after_ms: 7_000 });
    expect(await loadTask(service.app.db, ref)).toMatchObject({ status: 'running' });
  });
});
