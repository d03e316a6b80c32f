import { createHmac } from 'node:crypto';
import { createReadStream, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import * as sdk from '../../clients/typescript/src/index.ts';
import { findAccount } from '../../src/accounts/accounts.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { local_clients } from '../helpers/catalog.ts';
import { startReceiver } from '../helpers/receiver.ts';
import { wav } from '../storage/samples.ts';
import { startCuttingProxy, type CuttingProxy } from './cutting-proxy.ts';
import type { OpenApi } from './types-of-openapi.ts';

const openapi: OpenApi = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi.json'), 'utf8'));

let service: TestApp;
let proxy: CuttingProxy;
let own: Client;
let medley: sdk.Medley;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'medley-client-'));
  service = await startTestApp({ yaml: local_clients });
  proxy = await startCuttingProxy(service.url);
});
afterAll(async () => {
  await proxy?.stop();
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  own = await service.client();
  medley = clientOf();
  proxy.seen.length = 0;
  proxy.decide = () => 'pass';
});
afterEach(() => expectExactBooks(service.app));

const clientOf = (options: sdk.MedleyOptions = {}) =>
  new sdk.Medley({ base_url: proxy.url, api_key: own.key, ...options });
const refusal = (error: unknown) => error;
const tasksOf = async (): Promise<sdk.Task[]> => (await own.call('GET', '/v1/tasks?limit=100')).json.data as sdk.Task[];
const creations = () => proxy.seen.filter(({ path }) => path.startsWith('/v1/generate'));

describe('generate', () => {
  test('returns the task with its output when it has succeeded', async () => {
    const { output, cost, metadata } = await medley.generate(
      'sandbox/image',
      { prompt: 'A lighthouse' },
      { metadata: { order: '7' } },
    );
    expect(output).toMatchObject([{ type: 'image', content_type: 'image/png' }]);
    expect([cost.exact, metadata]).toEqual(['0.010000', { order: '7' }]);
    expect(proxy.seen).toMatchObject([{ method: 'POST', path: '/v1/generate?wait=50', key: expect.any(String) }]);
  });

  test('reports the progress to the end, and waits beyond the first answer', async () => {
    const statuses: string[] = [];
    const input = { prompt: 'A storm [[delay 1s]]' };
    await medley.generate('sandbox/image', input, { on_progress: ({ status }) => statuses.push(status) });
    expect(statuses.at(-1)).toBe('succeeded');
    expect(statuses.length).toBeGreaterThan(1);
    expect(proxy.seen.at(-1)?.path).toMatch(/^\/v1\/tasks\/task_/);
  });

  test('makes one task when the answer to the creation is lost', async () => {
    proxy.decide = (_method, path, nth) => (path.startsWith('/v1/generate') && nth <= 2 ? 'cut' : 'pass');
    const task = await medley.generate('sandbox/image', { prompt: 'Once' });
    expect(creations()).toHaveLength(3);
    expect(new Set(creations().map(({ key }) => key)).size).toBe(1);
    expect((await tasksOf()).map(({ id }) => id)).toEqual([task.id]);
    expect((await own.call('GET', '/v1/key')).json.spent.exact).toBe('0.010000');
  });

  test('makes a new task at each call, and the same one with the same key', async () => {
    const input = { prompt: 'Twice' };
    const [first, second] = [
      await medley.generate('sandbox/image', input),
      await medley.generate('sandbox/image', input),
    ];
    const options = { idempotency_key: 'order-7' };
    const third = await medley.generate('sandbox/image', input, options);
    const fourth = await medley.generate('sandbox/image', input, options);
    expect([new Set([first.id, second.id, third.id]).size, fourth.id]).toEqual([3, third.id]);
  });

  test('waits as long as Retry-After says after a 429', async () => {
    const busy = { status: 429, headers: { 'retry-after': '1', 'content-type': 'application/json' } };
    proxy.decide = (_method, _path, nth) => (nth === 1 ? busy : 'pass');
    await medley.generate('sandbox/image', { prompt: 'Later' });
    const [first, second] = creations();
    expect((second?.at_ms ?? 0) - (first?.at_ms ?? 0)).toBeGreaterThanOrEqual(990);
  });

  test.each([{ 'retry-after': '3600' }, { 'retry-after': '1', 'x-should-retry': 'false' }])(
    'does not wait for a 429 with %j',
    async (headers) => {
      proxy.decide = () => ({ status: 429, headers });
      const error = await medley.generate('sandbox/image', { prompt: 'x' }).catch(refusal);
      expect(error).toBeInstanceOf(sdk.RateLimitError);
      expect(creations()).toHaveLength(1);
    },
  );

  test('repeats a lost answer and no refusal where repeat_refusals is false', async () => {
    const busy = { status: 503, headers: { 'content-type': 'application/json' } };
    proxy.decide = (_method, _path, nth) => (nth === 1 ? 'cut' : busy);
    const error = await medley.generate('sandbox/image', { prompt: 'x' }, { repeat_refusals: false }).catch(refusal);
    expect(error).toMatchObject({ status: 503, follows_lost_answer: true });
    expect(creations()).toHaveLength(2);
    proxy.decide = () => 'pass';
    const [task, ...others] = await tasksOf();
    expect([await medley.tasks.wait(task?.id ?? ''), others]).toMatchObject([{ status: 'succeeded' }, []]);
  });

  test('throws the error of a task that fails, and makes no other', async () => {
    const error = await medley.generate('sandbox/image', { prompt: 'x [[moderate]]' }).catch(refusal);
    expect(error).toBeInstanceOf(sdk.TaskFailedError);
    expect(error).toMatchObject({ type: 'content_policy_violation', task: { status: 'failed', output: [] } });
    expect(await tasksOf()).toHaveLength(1);
  });

  test('throws at once when the balance is too low', async () => {
    own = await service.client({ credit: '0.001' });
    const error = await clientOf().generate('sandbox/image', { prompt: 'x' }).catch(refusal);
    expect(error).toBeInstanceOf(sdk.InsufficientBalanceError);
    expect(error).toMatchObject({ status: 402, type: 'insufficient_balance', request_id: expect.any(String) });
    expect(creations()).toHaveLength(1);
  });

  test('throws when the time of wait is over, and the task goes on', async () => {
    const input = { prompt: 'x [[delay 12s]]' };
    const error = await medley.generate('sandbox/image', input, { wait: 0.2 }).catch(refusal);
    if (!(error instanceof sdk.WaitTimeoutError)) throw error;
    expect((await medley.tasks.wait(error.task.id)).status).toBe('succeeded');
  });

  test.each([false, true])('stops its requests after an abort; cancel_on_abort: %j', async (cancel_on_abort) => {
    const controller = new AbortController();
    const on_progress = () => controller.abort(new Error('left'));
    const options = { signal: controller.signal, on_progress, cancel_on_abort };
    const input = { prompt: `x [[delay ${cancel_on_abort ? '1h' : '3s'}]]` };
    const error = await medley.generate('sandbox/image', input, options).catch(refusal);
    expect(error).toBe(controller.signal.reason);
    const paths = proxy.seen.map(({ path }) => path.replace(/task_\w+/, 'ID'));
    // While the task is being submitted, a cancel gets 409 with Retry-After, and is sent again.
    const cancels = cancel_on_abort ? paths.slice(1).length || 1 : 0;
    expect(paths).toEqual(['/v1/generate', ...Array.from({ length: cancels }, () => '/v1/tasks/ID/cancel')]);
    expect(cancels).toBeLessThanOrEqual(3);
    const [task] = await tasksOf();
    const final = await medley.tasks.wait(task?.id ?? '');
    expect(final.error?.type).toBe(cancel_on_abort ? 'canceled' : undefined);
  });

  test('cancels a task whose creation was answered after the abort, or whose answer was lost', async () => {
    const controller = new AbortController();
    proxy.decide = (_method, path, nth) => {
      if (path.startsWith('/v1/generate')) controller.abort();
      return nth === 1 ? 'cut' : 'pass';
    };
    const options = { signal: controller.signal, cancel_on_abort: true };
    const error = await medley.generate('sandbox/image', { prompt: 'x [[delay 1h]]' }, options).catch(refusal);
    expect(error).toBe(controller.signal.reason);
    expect(await tasksOf()).toMatchObject([{ error: { type: 'canceled' } }]);
  });

  test('an abort ends a request that hangs, before and after it was sent', async () => {
    await expect(medley.balance({ signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before');
    const options = { signal: AbortSignal.timeout(50) };
    const input = { prompt: 'x [[delay 2s]]' };
    const error = await medley.generate('sandbox/image', input, options).catch(refusal);
    expect(error).toBe(options.signal.reason);
    expect(error).toMatchObject({ name: 'TimeoutError' });
  });
});

describe('errors', () => {
  test('name what is wrong with the input', async () => {
    const error = await medley.generate('sandbox/image', { prompt: 7 }).catch(refusal);
    expect(error).toBeInstanceOf(sdk.InvalidRequestError);
    expect(error).toMatchObject({ status: 422, param: expect.stringContaining('prompt') });
  });

  test.each([
    ['of a model that is not there', () => medley.models.get('no/model'), sdk.NotFoundError],
    ['of a key that is not there', () => clientOf({ api_key: 'mdl_wrong' }).balance(), sdk.AuthenticationError],
    ['of a model that no route takes', () => medley.generate('sandbox/down', { prompt: 'x' }), sdk.TaskFailedError],
  ])('%s have their class', async (_name, call, expected) => {
    await expect(call()).rejects.toBeInstanceOf(expected);
  });

  test('a request ends after timeout_ms, and a lost connection after max_retries', async () => {
    proxy.decide = () => 'cut';
    const lost = await clientOf({ max_retries: 1 }).balance().catch(refusal);
    expect([lost instanceof sdk.ConnectionError, proxy.seen.length]).toEqual([true, 2]);
    const silent = await startReceiver();
    silent.answer('/v1/balance', 'hang');
    const options = { base_url: silent.url, timeout_ms: 50, max_retries: 0 };
    await expect(clientOf(options).balance()).rejects.toBeInstanceOf(sdk.RequestTimeoutError);
    await silent.stop();
  });

  test('no setting that is wrong is accepted, and no message has the key', () => {
    for (const base_url of ['ftp://x', 'http://', 'http://user:word@x', 'http://x?y', 'http://x#y'])
      expect(() => new sdk.Medley({ base_url, api_key: 'k' })).toThrow('base_url');
    expect(() => clientOf({ api_key: 'mdl_geheim\nx' })).toThrow(/^(?!.*geheim).*api_key/);
    expect(() => clientOf({ max_retries: -1 })).toThrow('max_retries');
    expect(() => new sdk.Medley({ base_url: '' })).toThrow('MEDLEY_URL');
  });
});

describe('lists', () => {
  test('are read over 25 pages, each task once, newest first', async () => {
    const ids: string[] = [];
    for (let n = 0; n < 25; n++) ids.push((await medley.tasks.create('sandbox/image', { prompt: `${n}` })).id);
    const listed: string[] = [];
    proxy.seen.length = 0;
    for await (const { id } of medley.tasks.list({ limit: 1 })) listed.push(id);
    expect(listed).toEqual(ids.toReversed());
    expect(proxy.seen).toHaveLength(25);
    for (const id of ids) await medley.tasks.wait(id);
    expect((await medley.transactions({ limit: 10, type: 'charge' }).take(100)).length).toBe(25);
    expect((await medley.tasks.list({ limit: 7 }).take(3)).length).toBe(3);
  });

  test('every call and parameter is one of openapi.json', async () => {
    const task = await medley.generate('sandbox/image', { prompt: 'x' }, { metadata: { a: 'b' } });
    const query = { status: 'succeeded' as const, metadata: { a: 'b' }, created_after: new Date(0) };
    expect((await medley.tasks.list(query).first()).data.map(({ id }) => id)).toEqual([task.id]);
    expect((await medley.models.get('sandbox/image')).modality).toBe('image');
    expect((await medley.models.list({ modality: 'video', limit: 1 }).take(1))[0]?.modality).toBe('video');
    expect((await medley.estimate('sandbox/image', { prompt: 'x' })).estimated_cost.exact).toBe('0.010000');
    expect((await medley.usage({ group_by: 'model', from: new Date(Date.now() - 3_600_000) })).total.exact).toBe(
      '0.010000',
    );
    expect([(await medley.balance()).available.exact, (await medley.key()).spent.exact]).toEqual([
      '99.990000',
      '0.010000',
    ]);
    expect((await medley.tasks.links(task.id))[0]?.url).toContain('/files/');
    const called = medley.calls.list({
      kind: 'task',
      metadata: { a: 'b' },
      created_after: new Date(Date.now() - 3_600_000),
    });
    expect((await called.take(2)).map(({ id, path }) => [id, path])).toEqual([[task.id, `/v1/tasks/${task.id}`]]);
    expect(await medley.calls.list({ http_status: 429, error: 'upstream_error' }).take(1)).toEqual([]);
    const feedback = await medley.feedback.give(task.id, true, { user: 'ann', tags: ['a'] });
    expect(
      (await medley.feedback.list({ reference_id: task.id, user: 'ann' }).take(2)).map(({ score }) => score),
    ).toEqual([1]);
    await medley.feedback.delete(feedback.id);
    await expect(medley.feedback.delete(feedback.id)).rejects.toBeInstanceOf(sdk.NotFoundError);
    await expect(medley.tasks.cancel(task.id)).rejects.toMatchObject({ status: 409 });
    await medley.tasks.deleteOutput(task.id);
    await expect(medley.download(task.output[0]?.url ?? '')).rejects.toBeInstanceOf(sdk.NotFoundError);
    for (const { method, path } of proxy.seen.filter(({ path: each }) => each.startsWith('/v1/'))) {
      const { pathname, searchParams } = new URL(path, proxy.url);
      const template = pathname.replace(/(?:task|feedback)_\w+/, '{id}').replace(/(models\/).+/, '$1{id}');
      const operation = openapi.paths[template]?.[method.toLowerCase()];
      const names = operation?.parameters?.map(({ name }) => name) ?? [];
      const unlisted = [...searchParams.keys()]
        .map((name) => name.replace(/\[.*/, ''))
        .filter((name) => !names.includes(name));
      expect([template, operation !== undefined, unlisted]).toEqual([template, true, []]);
    }
  });
});

describe('files', () => {
  const audio = wav(1);

  test('are uploaded from a Blob, bytes, a stream and a path, listed, read and deleted', async () => {
    const path = join(folder, 'ta"lk.wav');
    writeFileSync(path, audio);
    const bytes = new Uint8Array(audio);
    const uploaded = [
      await medley.files.upload(new Blob([bytes]), { filename: 'blob.wav', purpose: 'talk' }),
      await medley.files.upload(bytes, { filename: 'bytes.wav' }),
      await medley.files.upload(createReadStream(path), { filename: 'stream.wav', expires_after_s: 3600 }),
      await medley.files.upload(new Blob([bytes]).stream(), { filename: 'web.wav' }),
      await medley.files.upload({ path }),
    ];
    expect(new Set(uploaded.map((file) => [file.kind, file.bytes].join()))).toEqual(new Set([`audio,${audio.length}`]));
    const ids = uploaded.map(({ id }) => id);
    const listed: string[] = [];
    for await (const { id } of medley.files.list({ limit: 2, order: 'asc' })) listed.push(id);
    expect(listed).toEqual(ids);
    expect((await medley.files.list({ purpose: 'talk' }).take(9)).map(({ id }) => id)).toEqual(ids.slice(0, 1));
    const { output } = await medley.generate('sandbox/transcript', { audio: ids[4], prompt: 'Good morning' });
    expect(output[0]?.text).toBe('Good morning');
    proxy.decide = (_method, _path, nth) =>
      nth === proxy.seen.length && !proxy.seen.at(-2)?.method.startsWith('DEL') ? 'cut' : 'pass';
    await medley.files.delete(ids[0] ?? '');
    await expect(medley.files.get(ids[0] ?? '')).rejects.toBeInstanceOf(sdk.NotFoundError);
  });

  test('an upload whose answer is lost is not sent again, and no file means no request', async () => {
    proxy.decide = () => 'cut';
    await expect(medley.files.upload(new Uint8Array(audio))).rejects.toBeInstanceOf(sdk.ConnectionError);
    await expect(medley.files.upload({ path: join(folder, 'none') })).rejects.toMatchObject({ code: 'ENOENT' });
    expect(proxy.seen).toHaveLength(1);
  });

  test('are downloaded as a Blob, a stream and a file, without the key', async () => {
    const { output } = await medley.generate('sandbox/audio', { prompt: 'A song', duration: 1 });
    const [item] = output;
    if (!item) throw new Error('no output');
    const headers: Headers[] = [];
    const watched = clientOf({
      fetch: (url, init) => {
        headers.push(new Headers(init.headers));
        return fetch(url, init);
      },
    });
    const blob = await watched.download(item);
    const path = join(folder, 'song.wav');
    await watched.downloadTo(item, path);
    const streamed = await new Response(
      await watched.downloadStream(item, { signal: new AbortController().signal }),
    ).blob();
    expect([blob.size, readFileSync(path).length, streamed.size]).toEqual(Array(3).fill(item.size_bytes));
    expect(headers.some((each) => each.has('authorization'))).toBe(false);
    const cut = { url: item.url, size_bytes: item.size_bytes + 1 };
    const once = clientOf({ max_retries: 0 });
    await expect(once.downloadTo(cut, join(folder, 'cut.wav'))).rejects.toBeInstanceOf(sdk.ConnectionError);
    expect(readdirSync(folder).filter((name) => name.includes('cut'))).toEqual([]);
    headers.length = 0;
    const refused = await watched.downloadTo(item, join(folder, 'none/song.wav')).catch(refusal);
    expect(refused).toMatchObject({ name: 'MedleyError', message: expect.stringContaining('ENOENT') });
    expect(headers).toHaveLength(1);
  });
});

test('a webhook of the service is verified, and no other', async () => {
  const receiver = await startReceiver();
  const task = await medley.generate('sandbox/image', { prompt: 'x' }, { webhook_url: `${receiver.url}/hook` });
  const { body, headers } = await receiver.nth('/hook', 1);
  await receiver.stop();
  const { webhook_secret: secret } = (await findAccount(service.app.db, own.account_id)) ?? { webhook_secret: '' };
  const event = await sdk.verifyWebhook(body, headers, secret);
  expect(event).toEqual({ type: 'task.succeeded', delivery_id: headers['webhook-id'], task });
  const other = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
  const web = new Headers(
    Object.entries(headers).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  );
  const same = await sdk.verifyWebhook(body.toString(), web, [other, secret]);
  expect(same).toEqual(event);
  const later = String(Number(headers['webhook-timestamp']) + 1);
  await expectRefused(body, headers, other);
  await expectRefused(`${body.toString()} `, headers, secret);
  await expectRefused(body, { ...headers, 'webhook-id': 'x' }, secret);
  await expectRefused(body, { ...headers, 'webhook-signature': undefined }, secret);
  await expectRefused(body, { ...headers, 'webhook-timestamp': 'x' }, secret);
  await expectRefused(body, { ...headers, 'webhook-timestamp': later }, secret);
  await expectRefused(body, headers, secret, { tolerance_s: -1 });
  await expect(sdk.verifyWebhook(body, headers, 'wrong')).rejects.toThrow('whsec_');
});

describe('webhook endpoints', () => {
  const gone = async (id: string) => expect(medley.webhook_endpoints.get(id)).rejects.toBeInstanceOf(sdk.NotFoundError);

  test('are created, listed page by page, changed and deleted', async () => {
    const { webhook_endpoints } = medley;
    const url = 'https://example.com/medley';
    const { secret, ...first } = await webhook_endpoints.create({
      url,
      events: ['task.*', 'balance.low'],
      filters: { metadata: { team: 'web' } },
    });
    const second = await webhook_endpoints.create({ url, events: ['*'], enabled: false });
    expect(secret).toMatch(/^whsec_/);
    expect([first.filters.metadata, second.disabled_reason]).toEqual([{ team: 'web' }, 'manual']);
    const listed: sdk.WebhookEndpoint[] = [];
    for await (const each of webhook_endpoints.list({ limit: 1 })) listed.push(each);
    expect(listed.map(({ id }) => id)).toEqual([first.id, second.id]);
    expect(listed[0]).toEqual(first);
    const changed = await webhook_endpoints.update(first.id, { description: 'Shop', events: ['invoice.created'] });
    expect(await webhook_endpoints.get(first.id)).toEqual(changed);
    expect(changed).toEqual({ ...first, description: 'Shop', events: ['invoice.created'] });
    proxy.seen.length = 0;
    proxy.decide = (_method, _path, nth) => (nth === 1 ? 'cut' : 'pass');
    await webhook_endpoints.delete(second.id);
    expect(proxy.seen).toHaveLength(2);
    await gone(second.id);
  });

  test('are created once, and no secret is rotated twice, when the answer is lost', async () => {
    const { id } = await medley.webhook_endpoints.create({ url: 'https://example.com/', events: ['*'] });
    proxy.seen.length = 0;
    proxy.decide = () => 'cut';
    const results = await Promise.allSettled([
      medley.webhook_endpoints.create({ url: 'https://example.com/', events: ['*'] }),
      medley.webhook_endpoints.rotateSecret(id),
      medley.webhook_endpoints.test(id, 'task.failed'),
      medley.webhook_endpoints.replay(id, { from: new Date(0) }),
    ]);
    for (const result of results) expect(result).toMatchObject({ reason: { name: 'ConnectionError' } });
    expect(proxy.seen).toHaveLength(4);
  });

  test('get events that are verified by their secret, and by the one before while it is replaced', async () => {
    const receiver = await startReceiver();
    const { webhook_endpoints } = medley;
    const { id, secret } = await webhook_endpoints.create({ url: `${receiver.url}/events`, events: ['task.*'] });
    const task = await medley.generate('sandbox/image', { prompt: 'x' });
    const one = await receiver.nth('/events', 1);
    const event = await sdk.verifyWebhook(one.body, one.headers, secret);
    const envelope = JSON.parse(one.body.toString());
    expect(event).toEqual({ ...envelope, delivery_id: one.headers['webhook-id'], task });
    expect([event.type, envelope.account_id, envelope.data]).toEqual(['task.succeeded', own.account_id, task]);
    const rotated = await webhook_endpoints.rotateSecret(id);
    expect(Date.parse(rotated.previous_secret_until ?? '')).toBeGreaterThan(Date.now());
    expect(await webhook_endpoints.test(id, 'balance.low')).toMatchObject({ delivered: true, status: 204 });
    const { body, headers } = await receiver.nth('/events', 2);
    for (const key of [secret, rotated.secret, [`whsec_${Buffer.alloc(32, 7).toString('base64')}`, secret]]) {
      const low = await sdk.verifyWebhook(body, headers, key);
      if (low.type !== 'balance.low') throw new Error(low.type);
      expect(low.data.threshold).toMatchObject({ amount: '5.00', currency: 'USD' });
    }
    const span = { from: new Date(Date.now() - 3_600_000), which: 'all' } as const;
    const counted = () => webhook_endpoints.replay(id, { ...span, dry_run: true });
    await expect.poll(counted).toMatchObject({ events: 1, dry_run: true }); // not while its delivery is under way
    expect(await webhook_endpoints.replay(id, span)).toMatchObject({ events: 1, next_from: null });
    const again = await receiver.nth('/events', 3);
    expect(await sdk.verifyWebhook(again.body, again.headers, rotated.secret)).toEqual(event);
    await receiver.stop();
  });

  test.each(['', '[]', '7', '{}', '{"object":"alert","id":"x","event":"alert.opened"}'])(
    'whose body is %j are no events, even if it is signed',
    async (body) => {
      const key = Buffer.alloc(32, 7);
      const seconds = String(Math.floor(Date.now() / 1000));
      const signature = createHmac('sha256', key).update(`id.${seconds}.${body}`).digest('base64');
      const headers = { 'webhook-id': 'id', 'webhook-timestamp': seconds, 'webhook-signature': `v1,${signature}` };
      await expectRefused(body, headers, `whsec_${key.toString('base64')}`);
    },
  );
});

async function expectRefused(...args: Parameters<typeof sdk.verifyWebhook>): Promise<void> {
  await expect(sdk.verifyWebhook(...args)).rejects.toBeInstanceOf(sdk.WebhookError);
}
