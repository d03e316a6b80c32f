// isolated: it measures its process
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { expectExactBooks, type Answered } from '../helpers/app.ts';
import { hello, setStage, type Stage, withUpstreamIds } from './setup.ts';
import { chunk, completionsStream, done, usageChunk } from './streams.ts';

/** The leftovers of a call: its record and its usage stay, its body does not. */

const answer_bytes = 4_000_000;

let stage: Stage;
let site: Server;

beforeAll(async () => {
  stage = await setStage({ env: { MEDLEY_ALLOW_PRIVATE: '1' } });
  const png = Buffer.concat([Buffer.from('89504e470d0a1a0a', 'hex'), Buffer.alloc(answer_bytes)]);
  site = createServer((_request, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png));
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  vi.restoreAllMocks();
  await expectExactBooks(stage.test.app);
});
afterAll(async () => {
  site.close();
  await stage.stop();
});

const stream = (body: object): Promise<Answered> =>
  stage.client.call('POST', '/v1/chat/completions', { messages: hello, stream: true, ...body });

async function recordOf(answer: { headers: Headers }): Promise<{ usage: Record<string, number>; text: string }> {
  const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
  await expect.poll(async () => (await stage.client.call('GET', path)).status).toBe(200);
  const { text } = await stage.client.call('GET', path);
  return { text, ...(JSON.parse(text) as { usage: Record<string, number> }) };
}

test('a record is written as soon as its call has ended', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]) });
  for (let i = 0; i < 20; i++) {
    const { headers } = await stream({ model: 'acme/oai' });
    const { status } = await stage.client.call('GET', `/v1/chat/${headers.get('x-request-id')}`);
    expect(status, `call ${i}`).toBe(200);
  }
});

test('a record is written although the database was away when the call ended', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]) });
  const { db } = stage.test.app;
  const query = db.query.bind(db);
  let refused = 0;
  vi.spyOn(db, 'query').mockImplementation((text: string, values?: readonly unknown[]) => {
    if (!text.includes('into chat_calls') || refused === 3) return query(text, values);
    refused += 1;
    return Promise.reject(Object.assign(new Error('the database system is shutting down'), { code: '57P03' }));
  });
  const answer = await stream({ model: 'acme/oai' });
  expect((await recordOf(answer)).usage).toMatchObject({ input_tokens: 10, output_tokens: 5 });
  expect(refused).toBe(3);
});

const lastChunk = (text: string) => JSON.parse(text.trim().split('\n\n').at(-2)?.slice(6) ?? '') as object;

test.each([
  ['with [DONE]', completionsStream(['four words are here'])],
  ['without', completionsStream(['four words are here']).slice(0, -1)],
])('a requested usage that the upstream does not report is what is charged (stream %s)', async (_, parts) => {
  stage.upstream.script('gpt-x', { stream: parts });
  const answer = await stream({ model: 'acme/oai', stream_options: { include_usage: true } });
  expect(answer.text.endsWith(done)).toBe(true);
  expect(lastChunk(answer.text)).toMatchObject({
    id: `chatcmpl-${answer.headers.get('x-request-id')}`,
    object: 'chat.completion.chunk',
    created: 1,
    model: 'acme/oai',
    choices: [],
    usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
  });
  expect((await recordOf(answer)).usage).toMatchObject({ input_tokens: 5, output_tokens: 5 });
  const unasked = await stream({ model: 'acme/oai' });
  expect(unasked.text).not.toContain('usage');
});

test.each([',"usage":null', ', "usage": null'])(
  'a caller that did not request usage gets none when the upstream sends %s',
  async (sign) => {
    const withSign = (part: string) => part.replace(/\}\n\n$/, `${sign}}\n\n`);
    const text_chunk = chunk({ content: 'they write ,"usage":null' });
    const parts = [
      withSign(chunk({ role: 'assistant', content: '' })),
      withSign(text_chunk),
      withSign(chunk({}, {}, 'stop')),
    ];
    stage.upstream.script('gpt-x', { stream: [...parts, usageChunk(10, 5), done] });
    const plain = [chunk({ role: 'assistant', content: '' }), text_chunk, chunk({}, {}, 'stop'), done].join('');
    expect(withUpstreamIds((await stream({ model: 'acme/oai' })).text)).toBe(plain.replaceAll('gpt-x', 'acme/oai'));
    const text = await stream({ model: 'acme/oai', stream_options: { include_usage: true } });
    expect(withUpstreamIds(text.text)).toBe(
      [...parts, usageChunk(10, 5), done].join('').replaceAll('gpt-x', 'acme/oai'),
    );
  },
);

test('a caller that did not request usage gets none from the sandbox', async () => {
  expect((await stream({ model: 'sandbox/chat' })).text).not.toContain('usage');
  const text = await stream({ model: 'sandbox/chat', stream_options: { include_usage: true } });
  expect(text.text).toContain('"usage":null');
  expect(lastChunk(text.text)).toMatchObject({ choices: [], usage: { prompt_tokens: expect.any(Number) } });
});

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function memory(): number {
  for (let i = 0; i < 3; i++) collect();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const count = 5;

function ask(body: Buffer, model: string): Promise<Socket> {
  const { port } = new URL(stage.test.url);
  const socket = connect(Number(port), '127.0.0.1');
  const path = model === 'acme/ant' ? 'messages' : 'chat/completions';
  socket.write(
    `POST /v1/${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stage.client.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  socket.write(body);
  return new Promise((resolve) => socket.once('data', () => resolve(socket)));
}

test.each(['acme/oai', 'acme/ant', 'acme/gem'])(
  'a stream of %s that has begun keeps nothing of its request in memory',
  async (model) => {
    const { port } = site.address() as AddressInfo;
    const link = { type: 'image_url', image_url: { url: `http://127.0.0.1:${port}/a.png` } };
    stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Well' })], then: 'hang' });
    stage.upstream.script('claude-x', {
      stream: [
        'event: message_start\ndata: {"type":"message_start","message":{"model":"x","usage":{}}}\n\n',
        'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Well"}}\n\n',
      ],
      then: 'hang',
    });
    const content = { parts: [{ text: 'Well' }], role: 'model' };
    const well = { candidates: [{ content, index: 0 }] };
    stage.upstream.script('gemini-x', { stream: [`data: ${JSON.stringify(well)}\n\n`], then: 'hang' });
    const body = Buffer.from(
      JSON.stringify({
        model,
        stream: true,
        max_tokens: 9,
        messages: [{ role: 'user', content: model === 'acme/gem' ? [link] : 'a b '.repeat(answer_bytes / 4) }],
      }),
    );
    const first = await ask(body, model); // what is made once is made
    stage.upstream.requests.length = 0;
    const before = memory();
    const sockets = [first];
    for (let i = 0; i < count; i++) sockets.push(await ask(body, model));
    stage.upstream.requests.length = 0;
    await expect.poll(() => memory() - before, { timeout: 120_000, interval: 200 }).toBeLessThan(count * 1_000_000);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => stage.upstream.open()).toBe(0);
  },
);
