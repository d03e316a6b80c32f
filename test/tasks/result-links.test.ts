// isolated: it moves the monotonic clock of its process
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/queue/queue.ts';
import type { RemoteFile, RunState } from '../../src/providers/provider.ts';
import { pollTask } from '../../src/tasks/poll.ts';
import { startTask } from '../../src/tasks/start.ts';
import { loadTask, type TaskRef } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { elapse, testClock } from '../helpers/clock.ts';
import { makePuppet } from '../helpers/puppet.ts';

const model = (id: string) =>
  mediaModel({
    id: `test/${id}`,
    routes: [`{ id: a, provider: ${id}, upstream_model: a, poll: { max: 7s }, timeout: { start: 60s, total: 2m } }`],
  });

const yaml = `
version: 1
${limits()}
providers: { near: { adapter: once, allow_private: true }, far: { adapter: once } }
models:${model('near')}${model('far')}
`;

/** A real upstream on loopback that keeps its results under links, and a journal of who asked for them. */
type Files = { url: string; requests: IncomingHttpHeaders[]; answer(listener: RequestListener): void; server: Server };

async function startFiles(host: string): Promise<Files> {
  let listener: RequestListener = (_, response) => response.writeHead(404).end();
  const requests: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    requests.push(request.headers);
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const url = `http://${host}:${(server.address() as AddressInfo).port}`;
  return { url, requests, answer: (next) => (listener = next), server };
}

describe('a result link of an upstream', () => {
  const clock = testClock();
  const once = makePuppet();
  let service: TestApp;
  let client: Client;
  let image: Buffer;
  let files: Files;
  let elsewhere: Files;

  beforeAll(async () => {
    image = await sharp({ create: { width: 8, height: 8, channels: 3, background: '#3c3' } })
      .png()
      .toBuffer();
    service = await startTestApp({ yaml, worker: false, adapters: { once: once.adapter }, clock });
    clock.stop(Date.now()); // times are exact, however slow this machine is
    [files, elsewhere] = await Promise.all([startFiles('127.0.0.1'), startFiles('127.0.0.2')]);
  });
  afterAll(async () => {
    await service?.stop();
    for (const { server } of [files, elsewhere]) {
      server.closeAllConnections();
      server.close();
    }
  });
  beforeEach(async () => {
    client = await service.client();
    for (const one of [files, elsewhere]) {
      one.requests.length = 0;
      one.answer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(image));
    }
  });
  afterEach(async () => {
    await service.app.db.query('delete from route_health');
    await expectExactBooks(service.app);
  });

  const job = (ref: TaskRef, signal = new AbortController().signal) => ({
    id: 'x',
    queue: 'x',
    data: ref,
    attempt: 0,
    signal,
  });
  const done = (...all: RemoteFile[]): RunState => ({ phase: 'done', files: all });
  const taskOf = (ref: TaskRef) => loadTask(service.app.db, ref);

  async function begun(state: RunState, provider = 'near'): Promise<{ ref: TaskRef; outcome: Promise<Outcome> }> {
    const { json } = await client.call('POST', '/v1/generate', { model: `test/${provider}`, input: {} });
    const ref = { account_id: client.account_id, task_id: json.id };
    const outcome = startTask(service.app, job(ref));
    (await once.next('start')).answer(state);
    return { ref, outcome };
  }
  async function running(provider = 'near'): Promise<TaskRef> {
    const { ref, outcome } = await begun({ phase: 'running', ref: 'r', poll_after_ms: 100 }, provider);
    await outcome;
    return ref;
  }
  async function polled(ref: TaskRef, state: RunState, signal?: AbortSignal): Promise<Outcome> {
    const outcome = pollTask(service.app, job(ref, signal));
    (await once.next('poll')).answer(state);
    return outcome;
  }
  async function expectKept(ref: TaskRef): Promise<void> {
    const { json } = await client.call('GET', `/v1/tasks/${ref.task_id}`);
    expect(json).toMatchObject({ status: 'succeeded', cost: { amount: '0.03' } });
    expect(json.output).toMatchObject([{ content_type: 'image/png', size_bytes: image.length, width: 8, height: 8 }]);
    const answer = await fetch(json.output[0]?.url ?? '');
    expect(Buffer.from(await answer.arrayBuffer()).equals(image)).toBe(true);
  }
  async function expectLost(ref: TaskRef): Promise<void> {
    expect(await taskOf(ref)).toMatchObject({ status: 'failed', error_type: 'upstream_error', cost: 0n });
    const rows = await service.app.db.query('select 1 from tasks where id = $1 and counts_as_failure', [ref.task_id]);
    expect(rows).toHaveLength(1);
    expect(await service.app.storage.list(ref.account_id, ref.task_id)).toEqual([]);
  }

  it('is fetched, stored and measured whatever it claims to be, at the submit or at a poll', async () => {
    const { ref, outcome } = await begun(done({ url: `${files.url}/a.png` }));
    expect(await outcome).toBe('done');
    await expectKept(ref);
    const later = await running();
    expect(await polled(later, done({ url: `${files.url}/a.png` }))).toBe('done');
    await expectKept(later);
  });

  it('gets the key only at the origin that the key is for', async () => {
    const credentials = { origin: files.url, headers: { authorization: 'Bearer upstream' } };
    files.answer((_, response) => response.writeHead(302, { location: `${elsewhere.url}/b` }).end());
    const ref = await running();
    await polled(ref, done({ url: `${files.url}/a`, credentials }));
    await expectKept(ref);
    const stranger = await running();
    await polled(stranger, done({ url: `${elsewhere.url}/c`, credentials }));
    await expectKept(stranger);
    expect(files.requests.map((headers) => headers.authorization)).toEqual(['Bearer upstream']);
    expect(elsewhere.requests.map((headers) => headers.authorization)).toEqual([undefined, undefined]);
  });

  it('to a private address is refused unless the provider may use them: the task is refunded and nothing is fetched', async () => {
    const ref = await running('far');
    expect(await polled(ref, done({ url: `${files.url}/a` }))).toBe('done');
    await expectLost(ref);
    expect(files.requests).toEqual([]);
  });

  it.each([
    ['metadata', 'http://169.254.169.254/latest/meta-data/'],
    ['a link-local address', 'http://[fe80::1]/'],
    ['a file', 'file:///etc/passwd'],
    ['nonsense', 'here'],
  ])('to %s is refused for every provider, at once or by a redirect', async (_, url) => {
    const ref = await running();
    expect(await polled(ref, done({ url }))).toBe('done');
    await expectLost(ref);
    if (!URL.canParse(url)) return;
    files.answer((__, response) => response.writeHead(302, { location: url }).end());
    const second = await running();
    expect(await polled(second, done({ url: `${files.url}/a` }))).toBe('done');
    await expectLost(second);
  });

  it('is refused before its bytes come when it announces more than a gigabyte', async () => {
    files.answer((_, response) => void response.writeHead(200, { 'content-length': String(2 ** 31) }).write('x'));
    const ref = await running();
    expect(await polled(ref, done({ url: `${files.url}/a` }))).toBe('done');
    await expectLost(ref);
  });

  it('is requested again by the next poll until it works', async () => {
    const ref = await running();
    const state = done({ url: `${files.url}/a` });
    for (const failing of [
      (_, response) => void response.writeHead(503).end(),
      (_, response) => void response.writeHead(404).end(),
      (_, response) => void response.destroy(),
      (_, response) => {
        response.writeHead(200, { 'content-length': String(image.length) });
        response.write(image.subarray(0, 20), () => response.destroy());
      },
    ] satisfies RequestListener[]) {
      files.answer(failing);
      expect(await polled(ref, state)).toEqual({ again_after_ms: 7_000 });
      expect((await taskOf(ref))?.completed_at).toBeNull();
    }
    files.answer((_, response) => response.end(image));
    expect(await polled(ref, state)).toBe('done');
    await expectKept(ref);
  });

  it('that fails until the time of the route is over ends the task with a refund', async () => {
    files.answer((_, response) => response.writeHead(503).end());
    const ref = await running();
    const state = done({ url: `${files.url}/a` });
    expect(await polled(ref, state)).toEqual({ again_after_ms: 7_000 });
    clock.pass(119_000);
    expect(await polled(ref, state)).toEqual({ again_after_ms: 7_000 });
    clock.pass(2_000);
    expect(await polled(ref, state)).toBe('done');
    await expectLost(ref);
    expect((await taskOf(ref))?.error_message).toContain('could not be fetched');
  });

  it('that fails at the submit is tried again while its response is in memory', async () => {
    files.answer((_, response) => {
      files.answer((__, second) => second.end(image));
      response.writeHead(503).end();
    });
    const { ref, outcome } = await begun(done({ url: `${files.url}/a` }));
    expect(await outcome).toBe('done');
    await expectKept(ref);
    expect(files.requests).toHaveLength(2);
  });

  it('that fails at the submit for a minute ends the task, because nothing else knows it', async () => {
    files.answer((_, response) => {
      elapse(61_000);
      response.writeHead(503).end();
    });
    const { ref, outcome } = await begun(done({ url: `${files.url}/a` }));
    expect(await outcome).toBe('done');
    await expectLost(ref);
  });

  it('is left to the next worker when this one stops', async () => {
    const stop = new AbortController();
    files.answer(() => stop.abort());
    const ref = await running();
    expect(await polled(ref, done({ url: `${files.url}/a` }), stop.signal)).toEqual({ again_after_ms: 7_000 });
    files.answer((_, response) => response.end(image));
    expect(await polled(ref, done({ url: `${files.url}/a` }))).toBe('done');
    await expectKept(ref);
  });

  it('may have a gigabyte, but all files of a run no more than that together', async () => {
    elsewhere.answer((_, response) => void response.writeHead(200, { 'content-length': String(2 ** 30) }).write('x'));
    const ref = await running();
    expect(await polled(ref, done({ url: `${files.url}/a` }, { url: `${elsewhere.url}/b` }))).toBe('done');
    await expectLost(ref);
  });

  it('to something other than an image makes the whole output invalid, and nothing is stored', async () => {
    elsewhere.answer((_, response) => response.end('oops'));
    const ref = await running();
    expect(await polled(ref, done({ url: `${files.url}/a` }, { url: `${elsewhere.url}/b` }))).toBe('done');
    await expectLost(ref);
  });
});
