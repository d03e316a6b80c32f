import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { Adapter } from '../../src/providers/provider.ts';
import { eventsUrl } from '../../src/tasks/event-token.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, optional_prompt } from '../helpers/catalog.ts';
import { withinAMinute } from '../helpers/clock.ts';
import { wav } from '../storage/samples.ts';

/** Paths below /v1 that go beyond the specification: media for SDKs, embeddings, responses, files, counting. */

const yaml = `
version: 1
${limits({ generate_per_minute: 4, chat_per_minute: 3 })}
providers: { linked: { adapter: linked, allow_private: true } }
models:${mediaModel({
  id: 'test/linked',
  schema: optional_prompt,
  price: '0.01',
  routes: ['{ provider: linked, upstream_model: a }'],
})}
`;

let service: TestApp;
let client: Client;
let image: Buffer;
let elsewhere: Server;
let address = '';

/** Its results are links to this machine, which lead on to a picture: \`prompt\` names the way. */
const linked: Adapter = {
  serves: () => true,
  open: () => ({
    start: async ({ input }) => ({ phase: 'done', files: [{ url: `http://${address}/${String(input['prompt'])}` }] }),
    poll: async (_run, ref) => ({ phase: 'running', ref, poll_after_ms: 1_000 }),
  }),
};

beforeAll(async () => {
  image = await sharp({ create: { width: 20, height: 10, channels: 3, background: '#36c' } })
    .png()
    .toBuffer();
  elsewhere = createServer((request, response) => {
    const there = { '/open': `http://${address}/picture`, '/refused': `http://a:b@${address}/picture` };
    const location = Object.entries(there).find(([path]) => path === request.url)?.[1];
    if (location === undefined) response.end(image);
    else response.writeHead(302, { location }).end();
  });
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  address = `127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
  service = await startTestApp({ yaml, adapters: { linked } });
});
afterAll(async () => {
  await service.stop();
  elsewhere.close();
});
beforeEach(async () => {
  client = await service.client();
});
afterEach(() => expectExactBooks(service.app));

type Fields = Record<string, string | Buffer>;

/** A form as a browser or an SDK sends it; bytes are files. */
async function form(
  path: string,
  fields: Fields,
  by = client,
): Promise<{ status: number; json: Record<string, unknown> }> {
  const body = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') body.append(name, value);
    else body.append(name, new Blob([new Uint8Array(value)]), 'a.bin');
  }
  const headers = { authorization: `Bearer ${by.key}` };
  const response = await fetch(service.url + path, { method: 'POST', headers, body });
  return { status: response.status, json: (await response.json()) as Record<string, unknown> };
}

const get = (path: string) => fetch(service.url + path, { headers: { authorization: `Bearer ${client.key}` } });
const upload = async () => String((await form('/v1/files', { purpose: 'user_data', file: image })).json['id']);
const spent = async () => (await client.call('GET', '/v1/key')).json.spent.exact;
const red = { model: 'sandbox/image', prompt: 'red', size: '32x16' };

/** Sends the two chat calls that are left in the window of a key with one. */
async function useUpChat(): Promise<void> {
  const body = { model: 'sandbox/chat', max_tokens: 10, messages: [{ role: 'user', content: 'x' }] };
  for (let i = 0; i < 2; i++) expect((await client.call('POST', '/v1/messages', body)).status).toBe(200);
}

/** A film that is there. */
async function videoUrl(): Promise<string> {
  const { json } = await client.call('POST', '/v1/videos', { model: 'sandbox/video', prompt: 'waves', seconds: '1' });
  await expect
    .poll(async () => (await client.call('GET', `/v1/videos/${json.id}`)).json.status, { timeout: 120_000 })
    .toBe('completed');
  return json.id;
}

it('D-images-1 POST /v1/images/generations returns the images as links or as base64', async () => {
  const { status, json, text } = await client.call('POST', '/v1/images/generations', { ...red, n: 2 });
  expect(status).toBe(200);
  expect(json).toMatchObject({ created: expect.any(Number), size: '32x16', output_format: 'png', data: [{}, {}] });
  const { data }: { data: { url: string; b64_json: string }[] } = JSON.parse(text);
  const [first] = data;
  const bytes = Buffer.from(await (await fetch(first?.url ?? '')).arrayBuffer());
  expect(bytes.equals(Buffer.from(first?.b64_json ?? '', 'base64'))).toBe(true);
  expect(await sharp(bytes).metadata()).toMatchObject({ width: 32, height: 16 });
});

it('D-images-2 POST /v1/images/edits accepts a form with images', async () => {
  const fields = { model: 'sandbox/edit', prompt: 'redder', size: '32x16' };
  expect(await form('/v1/images/edits', { ...fields, image })).toMatchObject({
    status: 200,
    json: { data: [{ url: expect.any(String) }] },
  });
  expect(await form('/v1/images/edits', fields)).toMatchObject({ status: 400, json: { error: { param: 'image' } } });
});

it('D-media-1 each call of the media paths creates a task that is held, charged and listed like any other', async () => {
  const { headers } = await client.call('POST', '/v1/images/generations', red);
  const { json: task } = await client.call('GET', `/v1/tasks/${headers.get('x-task-id')}`);
  expect(task).toMatchObject({ status: 'succeeded', model: 'sandbox/image', cost: { exact: '0.010000' } });
  expect([headers.get('x-cost-amount'), headers.get('x-cost-currency')]).toEqual(['0.010000', 'USD']);
  expect(await spent()).toBe('0.010000');
});

it('D-media-2 a media call whose task fails gets an error that says not to retry, and costs nothing', async () => {
  const answer = await client.call('POST', '/v1/images/generations', { ...red, prompt: '[[fail]]' });
  expect(answer).toMatchObject({ status: 502, json: { error: { type: 'upstream_error' } } });
  expect(answer.headers.get('x-should-retry')).toBe('false');
  const unfit = await client.call('POST', '/v1/images/generations', { ...red, prompt: '[[moderate]]' });
  expect(unfit).toMatchObject({ status: 400, json: { error: { code: 'content_policy_violation' } } });
  expect(await spent()).toBe('0.000000');
});

it('D-media-3 a media call with an invalid parameter gets a 400 that names it, in the chat-completions style', async () => {
  const wrong = await client.call('POST', '/v1/images/generations', { ...red, n: 9 });
  expect(wrong).toMatchObject({ status: 400, json: { error: { type: 'invalid_request', param: 'n', code: null } } });
  const other = await client.call('POST', '/v1/images/generations', { ...red, wings: 2 });
  expect(other).toMatchObject({ status: 400, json: { error: { param: 'wings' } } });
});

it('D-media-4 media calls that create tasks share the rate limit of POST /v1/generate', async () => {
  const order = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };
  await withinAMinute(async () => {
    client = await service.client();
    for (let i = 0; i < 2; i++) expect((await client.call('POST', '/v1/generate', order)).status).toBe(202);
    expect((await client.call('POST', '/v1/images/generations', red)).status).toBe(200);
    expect((await client.call('POST', '/v1/audio/speech', { model: 'sandbox/audio', input: 'x' })).status).toBe(200);
    expect(await client.call('POST', '/v1/videos', { model: 'sandbox/video', prompt: 'x' })).toMatchObject({
      status: 429,
      json: { error: { type: 'rate_limit' } },
    });
  });
});

it('D-audio-1 POST /v1/audio/speech returns the audio itself with its content type', async () => {
  const body = { model: 'sandbox/audio', input: 'Good morning', voice: 'any' };
  const { status, headers, text } = await client.call('POST', '/v1/audio/speech', body);
  expect([status, headers.get('content-type'), text.slice(0, 4)]).toEqual([200, 'audio/wav', 'RIFF']);
});

it('D-audio-2 POST /v1/audio/transcriptions returns the text that is spoken in a file', async () => {
  const fields = { model: 'sandbox/transcript', file: wav(1), prompt: 'Good morning' };
  expect(await form('/v1/audio/transcriptions', fields)).toMatchObject({ status: 200, json: { text: 'Good morning' } });
});

it('D-videos-1 POST /v1/videos returns at once, with the id of the task', async () => {
  const { status, json, headers } = await client.call('POST', '/v1/videos', {
    model: 'sandbox/video',
    prompt: 'waves [[delay 1s]]',
    seconds: '1',
  });
  expect([status, json.object, headers.get('x-task-id')]).toEqual([200, 'video', json.id]);
  expect(['queued', 'in_progress']).toContain(json.status);
  expect((await client.call('GET', `/v1/tasks/${json.id}`)).json.model).toBe('sandbox/video');
});

it('D-videos-2 GET /v1/videos/{id} says when the video is completed, and GET /v1/videos lists it', async () => {
  const id = await videoUrl();
  const { json } = await client.call('GET', `/v1/videos/${id}`);
  expect(json).toMatchObject({ id, status: 'completed', progress: 100, seconds: '1' });
  const { json: list } = await client.call('GET', '/v1/videos');
  expect(list).toMatchObject({ object: 'list', data: [{ id }], has_more: false });
});

it('D-videos-3 GET /v1/videos/{id}/content returns the video, whole or a range of it', async () => {
  const path = `/v1/videos/${await videoUrl()}/content`;
  const whole = await get(path);
  const bytes = Buffer.from(await whole.arrayBuffer());
  expect([whole.status, whole.headers.get('content-type'), bytes.toString('latin1', 4, 8)]).toEqual([
    200,
    'video/mp4',
    'ftyp',
  ]);
  const part = await fetch(service.url + path, {
    headers: { authorization: `Bearer ${client.key}`, range: 'bytes=4-7' },
  });
  expect([part.status, await part.text()]).toEqual([206, 'ftyp']);
});

it('D-videos-4 DELETE /v1/videos/{id} removes the video but not its task', async () => {
  const id = await videoUrl();
  expect((await client.call('DELETE', `/v1/videos/${id}`)).json).toMatchObject({
    id,
    object: 'video.deleted',
    deleted: true,
  });
  expect((await client.call('GET', `/v1/videos/${id}`)).status).toBe(404);
  const { json } = await client.call('GET', `/v1/tasks/${id}`);
  expect(json.status).toBe('succeeded');
  expect((await fetch(json.output[0]?.url ?? '')).status).toBe(404);
});

it('D-embeddings-1 POST /v1/embeddings returns one vector for each text, in the same order', async () => {
  const ask = async (input: unknown) =>
    (await client.call('POST', '/v1/embeddings', { model: 'sandbox/embedding', input, dimensions: 4 })).json;
  const both = await ask(['red', 'blue']);
  expect(both).toMatchObject({ object: 'list', data: [{ index: 0, embedding: expect.any(Array) }, { index: 1 }] });
  const blue = await ask('blue');
  const vectors = (list: object) =>
    (list as { data: { embedding: number[] }[] }).data.map(({ embedding }) => embedding);
  expect(vectors(blue)[0]).toEqual(vectors(both)[1]);
  expect(vectors(blue)[0]).toHaveLength(4);
});

it('D-embeddings-2 an embeddings call is charged by its tokens and counts in the rate limit of chat', async () => {
  const ask = () => client.call('POST', '/v1/embeddings', { model: 'sandbox/embedding', input: 'red '.repeat(500) });
  await withinAMinute(async () => {
    client = await service.client();
    const { headers } = await ask();
    expect(headers.get('x-cost-amount')).toMatch(/^0\.00005\d$/); // some 500 tokens at 0.10 a million
    await expect.poll(spent).toBe(headers.get('x-cost-amount'));
    await useUpChat();
    expect((await ask()).status).toBe(429);
  });
});

it('D-rerank-1 POST /v1/rerank orders documents by their relevance to a query', async () => {
  const documents = ['Two blue cars', 'A bicycle, painted red', 'Bicycle lanes'];
  const ask = (body: object) => client.call('POST', '/v1/rerank', { model: 'sandbox/rerank', ...body });
  const { json } = await ask({ query: 'a red bicycle', documents, top_n: 2, return_documents: true });
  expect(json).toMatchObject({
    object: 'list',
    model: 'sandbox/rerank',
    results: [
      { index: 1, document: { text: documents[1] } },
      { index: 2, document: { text: documents[2] } },
    ],
  });
});

it('D-rerank-2 a rerank call is charged by its search units and counts in the rate limit of chat', async () => {
  const documents = Array.from({ length: 101 }, (_, index) => `Document ${index}`);
  const ask = () => client.call('POST', '/v1/rerank', { model: 'sandbox/rerank', query: 'a document', documents });
  await withinAMinute(async () => {
    client = await service.client();
    const { headers } = await ask();
    expect(headers.get('x-cost-amount')).toBe('0.002000'); // two search units at 1.00 a thousand
    await expect.poll(spent).toBe(headers.get('x-cost-amount'));
    await useUpChat();
    expect((await ask()).status).toBe(429);
  });
});

it('D-moderations-1 POST /v1/moderations says of each text whether it is flagged, and in which categories', async () => {
  const input = ['a red bicycle', 'a fight [[flag violence]]'];
  const answer = await client.call('POST', '/v1/moderations', { model: 'sandbox/moderation', input });
  expect(answer.json).toMatchObject({
    results: [
      { flagged: false, categories: { violence: false } },
      { flagged: true, categories: { violence: true, hate: false } },
    ],
  });
  expect(answer.headers.get('x-cost-amount')).toBe('0.000000');
});

it('D-responses-1 POST /v1/responses is chat in the responses style', async () => {
  const answer = await client.call('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hello' });
  expect(answer).toMatchObject({
    status: 200,
    json: {
      object: 'response',
      status: 'completed',
      model: 'sandbox/chat',
      output: [{ type: 'message', role: 'assistant' }],
    },
  });
  expect(answer.headers.get('x-cost-amount')).toMatch(/^0\.0000\d\d$/);
});

it('D-responses-2 a stream of POST /v1/responses is named events from response.created to response.completed', async () => {
  const { text } = await client.call('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hello', stream: true });
  const names = [...text.matchAll(/^event: (\S+)$/gm)].map(([, name]) => name);
  expect([names[0], names.at(-1)]).toEqual(['response.created', 'response.completed']);
  expect(names).toContain('response.output_text.delta');
});

it('D-responses-3 POST /v1/responses keeps its answer: previous_response_id continues it, GET returns it, and an unknown id is refused by name', async () => {
  const body = { model: 'sandbox/chat', input: 'Hello', previous_response_id: 'resp_1' };
  expect(await client.call('POST', '/v1/responses', body)).toMatchObject({
    status: 400,
    json: { error: { type: 'invalid_request', param: 'previous_response_id' } },
  });
  expect((await client.call('GET', '/v1/responses/resp_1')).status).toBe(404);
  const { json: first } = await client.call('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hello' });
  const { text } = await client.call('POST', '/v1/responses', { ...body, previous_response_id: first.id });
  expect(text).toContain('We are at turn 2 of yours.');
  expect((await client.call('GET', `/v1/responses/${first.id}`)).json).toEqual(first);
});

it('D-count-1 a token count is free and is offered in both styles that define it', async () => {
  const messages = [{ role: 'user', content: 'How many tokens are in this sentence?' }];
  const counted = await client.call('POST', '/v1/messages/count_tokens', { model: 'sandbox/chat', messages });
  const input = await client.call('POST', '/v1/responses/input_tokens', { model: 'sandbox/chat', input: messages });
  for (const { status, text } of [counted, input]) {
    const { input_tokens }: { input_tokens: number } = JSON.parse(text);
    expect(status).toBe(200);
    expect(input_tokens).toBeGreaterThan(7);
  }
  expect((await client.call('GET', '/v1/balance/transactions?type=hold')).json.data).toEqual([]);
});

it('D-count-2 a token count equals the input tokens that the call is charged for', async () => {
  const messages = [{ role: 'user', content: 'How many tokens are in this sentence?' }];
  const body = { model: 'sandbox/chat', max_tokens: 10, messages };
  const { json: counted } = await client.call('POST', '/v1/messages/count_tokens', { model: 'sandbox/chat', messages });
  const { text } = await client.call('POST', '/v1/messages', body);
  const { usage }: { usage: { input_tokens: number } } = JSON.parse(text);
  expect(counted).toEqual({ input_tokens: usage.input_tokens });
});

it('D-files-1 POST /v1/files stores a file and measures it from its bytes', async () => {
  expect(await form('/v1/files', { purpose: 'user_data', file: image })).toMatchObject({
    status: 200,
    json: {
      object: 'file',
      bytes: image.length,
      purpose: 'user_data',
      content_type: 'image/png',
      width: 20,
      height: 10,
    },
  });
});

it('D-files-2 a stored file can be read, listed and downloaded', async () => {
  const id = await upload();
  expect((await client.call('GET', `/v1/files/${id}`)).json).toMatchObject({ id, object: 'file' });
  expect((await client.call('GET', '/v1/files')).json).toMatchObject({ object: 'list', data: [{ id }] });
  const bytes = Buffer.from(await (await get(`/v1/files/${id}/content`)).arrayBuffer());
  expect(bytes.equals(image)).toBe(true);
});

it('D-files-3 DELETE /v1/files/{id} removes the file', async () => {
  const id = await upload();
  expect((await client.call('DELETE', `/v1/files/${id}`)).json).toMatchObject({ id, deleted: true });
  for (const path of [`/v1/files/${id}`, `/v1/files/${id}/content`]) expect((await get(path)).status, path).toBe(404);
  expect((await client.call('GET', '/v1/files')).json.data).toEqual([]);
});

it('D-files-4 a file of another account is as unknown as one that never existed, also in an input', async () => {
  const id = await upload();
  const other = await service.client();
  expect((await other.call('GET', `/v1/files/${id}`)).status).toBe(404);
  expect((await other.call('DELETE', `/v1/files/${id}`)).status).toBe(404);
  const order = { model: 'sandbox/edit', input: { prompt: 'x', images: [id] } };
  const refused = await other.call('POST', '/v1/generate', order);
  expect(refused).toMatchObject({ status: 422, json: { error: { type: 'invalid_request' } } });
  expect((await client.call('GET', `/v1/files/${id}`)).status).toBe(200);
});

it('D-files-5 a file id is accepted wherever a model takes an image, audio or a video', async () => {
  const order = { model: 'sandbox/edit', input: { prompt: 'x', images: [await upload()], width: 32, height: 16 } };
  const { status, json } = await client.call('POST', '/v1/generate?wait=120', order);
  expect([status, json.status]).toEqual([202, 'succeeded']);
});

it('D-files-6 a file is deleted after 7 days', async () => {
  const { json } = await form('/v1/files', { purpose: 'user_data', file: image });
  expect(Number(json['expires_at']) - Number(json['created_at'])).toBe(7 * 86_400);
});

it('D-events-1 POST /events/{token} answers every body alike and changes nothing', async () => {
  const order = { model: 'sandbox/image', input: { prompt: '[[delay 1h]]', width: 16, height: 16 } };
  const { json: task } = await client.call('POST', '/v1/generate', order);
  const run = { account_id: client.account_id, task_id: task.id, number: 1 };
  const events_url = eventsUrl(service.app.secret, 'https://medley.example.com', run) ?? '';
  for (const path of [new URL(events_url).pathname, '/events/x']) {
    const body = JSON.stringify({ status: 'succeeded', output: 'http://127.0.0.1/' });
    const response = await fetch(service.url + path, { method: 'POST', body });
    expect([response.status, await response.text()]).toEqual([200, '{}']);
  }
  const { json } = await client.call('GET', `/v1/tasks/${task.id}`);
  expect([json.output, json.completed_at]).toEqual([[], null]);
});

it('D-address-11 each redirect of a download is checked like the first address', async () => {
  const order = (prompt: string) => ({ model: 'test/linked', input: { prompt } });
  const led_on = await client.call('POST', '/v1/generate?wait=120', order('open'));
  expect(led_on.json).toMatchObject({ status: 'succeeded', output: [{ width: 20, height: 10 }] });
  const refused = await client.call('POST', '/v1/generate?wait=120', order('refused'));
  expect(refused.json).toMatchObject({
    status: 'failed',
    error: { type: 'upstream_error' },
    cost: { exact: '0.000000' },
  });
});
