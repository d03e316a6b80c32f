import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import type { UpstreamRequest } from '../helpers/chat-upstream.ts';
import { untilStill } from '../helpers/still.ts';
import { completion, generated, hello, setStage, type Stage } from './setup.ts';

let stage: Stage;
let files: Server;
let files_url: string;

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

const served: { [path: string]: [type: string, body: Buffer] } = {
  '/a.png': ['application/octet-stream', png],
  '/a.pdf': ['text/html', Buffer.from('%PDF-1.7 and so on')],
  '/page': ['text/html', Buffer.from('<html>')],
  '/large': ['image/png', Buffer.alloc(21_000_000)],
  '/medium': ['image/png', Buffer.alloc(19_000_000)],
};

/** Requests for a file that never comes. */
let asked_in_vain = 0;

beforeAll(async () => {
  files = createServer((request, response) => {
    const [url = ''] = (request.url ?? '').split('?');
    if (url === '/never') return void (asked_in_vain += 1);
    const [type, body] = served[url] ?? [];
    response.writeHead(body ? 200 : 404, { 'content-type': type ?? 'text/plain' }).end(body);
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  files_url = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  const more = `
  - id: acme/first-gem
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes:
      - { provider: gem, upstream_model: gemini-y }
      - { provider: far, upstream_model: second }
  - id: acme/hasty-gem
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes:
      - { provider: gem, upstream_model: gemini-y, timeout: { first_byte: 3s, idle: 3s, total: 9s } }
      - { provider: far, upstream_model: second }
`;
  const others = `
  - id: acme/quick-gem
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: gem, upstream_model: gemini-x, timeout: { first_byte: 1s, idle: 1s, total: 1s } }]
  - id: acme/patient-gem
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: gem, upstream_model: gemini-z, timeout: { first_byte: 600s, idle: 600s, total: 600s } }]
`;
  stage = await setStage({
    more: more + others,
    env: { MEDLEY_ALLOW_PRIVATE: '1' },
    resolve: async () => ['127.0.0.1'],
  });
});
beforeEach(() => stage.test.app.db.query('delete from route_health'));
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await stage.stop();
  files.closeAllConnections();
  await new Promise((resolve) => files.close(resolve));
});

type Style = 'completions' | 'messages';
const paths = { completions: '/v1/chat/completions', messages: '/v1/messages' };
const cells = (['completions', 'messages'] as const).flatMap((style) => [
  [style, false] as const,
  [style, true] as const,
]);

/** An answer as a caller of either style sees it, whole or streamed. */
type Seen = {
  status: number;
  headers: Headers;
  id: string;
  text: string;
  thinking: string;
  finish: string;
  raw: string;
  error?: ErrorBody;
};
type ErrorBody = { type: string; message: string; param?: string; code?: string };

async function ask(style: Style, stream: boolean, more: object = {}): Promise<Seen> {
  const body = { model: 'acme/gem', messages: hello, max_tokens: 100, ...(stream && { stream }), ...more };
  const answer = await stage.client.call('POST', paths[style], body);
  const { status, headers, text: raw } = answer;
  const seen = { status, headers, id: headers.get('x-request-id') ?? '', raw };
  const { error } = answer.json;
  if (answer.status !== 200) return { ...seen, text: '', thinking: '', finish: '', error: error as ErrorBody };
  return { ...seen, ...(stream ? streamed(style, answer.text) : whole(style, JSON.parse(answer.text))) };
}

type Read = { text: string; thinking: string; finish: string; error?: ErrorBody };

type Block = { type: string; text?: string; thinking?: string };
type Message = { content?: string; reasoning_content?: string };
type Whole = { choices: { message: Message; finish_reason: string }[]; content: Block[]; stop_reason: string };

function whole(style: Style, body: Whole): Read {
  if (style === 'completions') {
    const [choice] = body.choices;
    const { content = '', reasoning_content = '' } = choice?.message ?? {};
    return { text: content, thinking: reasoning_content, finish: choice?.finish_reason ?? '' };
  }
  const joined = (type: 'text' | 'thinking') =>
    body.content.map((block) => (block.type === type ? block[type] : '')).join('');
  return { text: joined('text'), thinking: joined('thinking'), finish: body.stop_reason };
}

function streamed(style: Style, text: string): Read {
  const read: Read = { text: '', thinking: '', finish: '' };
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''));
  for (const event of events) {
    if (event.error) read.error = event.error;
    const delta = style === 'completions' ? event.choices?.[0]?.delta : event.delta;
    read.text += (style === 'completions' ? delta?.content : delta?.text) ?? '';
    read.thinking += (style === 'completions' ? delta?.reasoning_content : delta?.thinking) ?? '';
    read.finish = (style === 'completions' ? event.choices?.[0]?.finish_reason : delta?.stop_reason) ?? read.finish;
  }
  return read;
}

const sse = (...chunks: unknown[]) => chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`);

/** The same answer, whole or in a chunk for each of its parts, as the upstream was asked. */
const answering =
  (parts: object[], usage?: object, more?: object) =>
  ({ path }: UpstreamRequest) => {
    const last = generated([{ text: '' }], usage, more);
    const chunks = parts.map((part) => generated([part], { promptTokenCount: 10, totalTokenCount: 10 }, {}));
    if (!path.includes('stream')) return { json: generated(parts, usage, more) };
    return { stream: sse(...chunks, last) };
  };

async function costOf(id: string): Promise<string> {
  await expect.poll(async () => (await stage.client.call('GET', `/v1/chat/${id}`)).status).toBe(200);
  return (await stage.client.call('GET', `/v1/chat/${id}`)).json.cost.exact;
}

describe.each(cells)('a caller of %s style, streamed: %s', (style, stream) => {
  test('gets text and thinking, pays thoughts as output, and pays cached tokens as part of the prompt', async () => {
    const usage = {
      promptTokenCount: 1_000,
      cachedContentTokenCount: 900,
      candidatesTokenCount: 10,
      thoughtsTokenCount: 40,
      totalTokenCount: 1_050,
    };
    const parts = [{ text: 'Hm.', thought: true }, { text: 'Grüße ' }, { text: '😀', thoughtSignature: 'c2VhbA==' }];
    stage.upstream.script('gemini-x', answering(parts, usage));
    const seen = await ask(style, stream);
    expect(seen).toMatchObject({ status: 200, text: 'Grüße 😀', thinking: 'Hm.' });
    expect(seen.finish).toBe(style === 'completions' ? 'stop' : 'end_turn');
    expect(seen.raw).not.toContain('gemini-x');
    expect(await costOf(seen.id)).toBe('0.000880'); // 100 × 2 + 900 × 0.2 + 50 × 10 millionths
    const request = stage.upstream.requests.at(-1);
    expect(request?.path).toBe(
      stream ? '/v1beta/models/gemini-x:streamGenerateContent?alt=sse' : '/v1beta/models/gemini-x:generateContent',
    );
    expect(request?.headers['x-goog-api-key']).toBe('sk-upstream-secret-0123456789');
    expect(request?.headers.authorization).toBeUndefined();
    expect(request?.body).toEqual({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      generationConfig: { maxOutputTokens: 100 },
    });
  });

  test('gets a 400 for a prompt that is blocked with status 200, pays nothing, and no other route is tried', async () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 10 } };
    stage.upstream.script('gemini-y', stream ? { stream: sse(blocked) } : { json: blocked });
    const requests_before = stage.upstream.requests.length;
    const seen = await ask(style, stream, { model: 'acme/first-gem' });
    expect(seen).toMatchObject({ status: 400, error: { type: 'invalid_request' } });
    expect(seen.error?.message).toContain('SAFETY');
    expect(stage.upstream.requests).toHaveLength(requests_before + 1);
    expect(await costOf(seen.id)).toBe('0.000000');
  });

  test('gets a refusal at the end of a response that is blocked, and pays for it', async () => {
    stage.upstream.script('gemini-x', answering([{ text: 'Well' }], undefined, { finishReason: 'PROHIBITED_CONTENT' }));
    const seen = await ask(style, stream);
    expect([seen.status, seen.text, seen.finish]).toEqual([
      200,
      'Well',
      style === 'completions' ? 'content_filter' : 'refusal',
    ]);
    expect(await costOf(seen.id)).toBe('0.000070');
  });

  const refusal = (status: number, error: object) => ({ status, json: { error: { code: status, ...error } } });
  const info = (reason: string) => ({ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason });
  test.each<[string, object]>([
    [
      'a key that is not valid',
      refusal(400, { message: 'Bad', status: 'INVALID_ARGUMENT', details: [info('API_KEY_INVALID')] }),
    ],
    [
      'a place that is not served',
      refusal(400, { message: 'User location is not supported', status: 'FAILED_PRECONDITION' }),
    ],
    [
      'a list of one error',
      { status: 503, json: [{ error: { code: 503, message: 'Overloaded', status: 'UNAVAILABLE' } }] },
    ],
    ['a model that is not there', refusal(404, { message: 'models/gemini-y is not found', status: 'NOT_FOUND' })],
    ['a call that went wrong', { malformed: true }],
    ['an answer of nothing', { nothing: true }],
  ])('is served by the next route after %s', async (name, script) => {
    const finish = 'malformed' in script ? 'MALFORMED_FUNCTION_CALL' : 'OTHER';
    const is_script = 'json' in script;
    stage.upstream.script(
      'gemini-y',
      is_script ? (script as { json: unknown }) : answering([], undefined, { finishReason: finish }),
    );
    stage.upstream.script('second', ({ body }) => {
      if (body['stream'] !== true) return { json: completion('from the second') };
      const choices = [{ index: 0, delta: { content: 'from the second' }, finish_reason: 'stop' }];
      return {
        stream: [
          ...sse({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices }),
          'data: [DONE]\n\n',
        ],
      };
    });
    expect(await ask(style, stream, { model: 'acme/first-gem' }), name).toMatchObject({
      status: 200,
      text: 'from the second',
    });
  });

  test('closes no route for other callers with a failure of its own, and no call is repeated on its own', async () => {
    stage.upstream.script('gemini-x', answering([], undefined, { finishReason: 'MALFORMED_FUNCTION_CALL' }));
    for (let i = 0; i < 6; i++) {
      const seen = await ask(style, stream);
      expect(seen).toMatchObject({
        status: 502,
        error: { message: 'The model could not finish its answer (MALFORMED_FUNCTION_CALL).' },
      });
      expect(seen.headers.get('x-should-retry')).toBe('false');
    }
    stage.upstream.script('gemini-x', answering([{ text: 'Fine' }], undefined, { finishReason: 'STOP' }));
    expect(await ask(style, stream)).toMatchObject({ status: 200, text: 'Fine' });
  });

  test('gets the message of Google about its request', async () => {
    stage.upstream.script(
      'gemini-x',
      refusal(400, { message: 'Unsupported MIME type: image/svg', status: 'INVALID_ARGUMENT' }),
    );
    const seen = await ask(style, stream);
    expect(seen).toMatchObject({ status: 400, error: { message: 'Unsupported MIME type: image/svg' } });
  });

  test('has images and documents by link fetched and sent along', async () => {
    stage.upstream.script('gemini-x', answering([{ text: 'a dot' }]));
    const content =
      style === 'completions'
        ? [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url: `${files_url}/a.png` } },
            { type: 'file', file: { filename: 'a.pdf', file_data: `${files_url}/a.pdf` } },
          ]
        : [
            { type: 'text', text: 'What is it?' },
            { type: 'image', source: { type: 'url', url: `${files_url}/a.png` } },
            { type: 'document', source: { type: 'url', url: `${files_url}/a.pdf` }, title: 'a.pdf' },
          ];
    expect(await ask(style, stream, { messages: [{ role: 'user', content }] })).toMatchObject({ text: 'a dot' });
    expect(stage.upstream.requests.at(-1)?.body['contents']).toEqual([
      {
        role: 'user',
        parts: [
          { text: 'What is it?' },
          { inlineData: { mimeType: 'image/png', data: png.toString('base64') } },
          { text: 'a.pdf' },
          { inlineData: { mimeType: 'application/pdf', data: served['/a.pdf']?.[1].toString('base64') } },
        ],
      },
    ]);
  });
});

describe('an image link of a chat request', () => {
  const imageMessage = (url: string) => [{ role: 'user', content: [image(url)] }];
  const param = 'messages[0].content[0].image_url.url';
  /** By a name: no upstream is given an address that is not public. */
  const named_url = () => files_url.replace('127.0.0.1', 'files.example');

  test.each([
    ['/none', 'answered 404'],
    ['/page', 'does not lead to an image'],
    ['/large', 'larger than'],
  ])('to %s gets a 400 that names the field', async (path, problem) => {
    const requests_before = stage.upstream.requests.length;
    const seen = await ask('completions', false, { messages: imageMessage(files_url + path) });
    expect(seen).toMatchObject({ status: 400, error: { type: 'invalid_request', param } });
    expect(seen.error?.message).toContain(problem);
    expect(stage.upstream.requests).toHaveLength(requests_before);
  });

  test('goes through to a route whose upstream fetches links itself', async () => {
    stage.upstream.script('second', { json: completion('seen') });
    const messages = imageMessage(`${named_url()}/none`);
    expect(await ask('completions', false, { model: 'acme/first-gem', messages })).toMatchObject({ text: 'seen' });
  });

  test('that takes too long blames no route: the next one is tried, and a caller who disconnects meanwhile gets a 499 in its record', async () => {
    stage.upstream.script('second', { json: completion('seen') });
    const messages = imageMessage(`${named_url()}/never`);
    expect(await ask('completions', false, { model: 'acme/hasty-gem', messages })).toMatchObject({ text: 'seen' });
    const asked_before = asked_in_vain;
    const leave = new AbortController();
    const left = fetch(`${stage.test.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/gem', messages }),
      signal: leave.signal,
    });
    left.catch(() => undefined);
    await expect.poll(() => asked_in_vain).toBe(asked_before + 1);
    leave.abort();
    await expect(left).rejects.toThrow('aborted');
    const last = 'select status, cost from chat_calls where model = $1 order by id desc limit 1';
    const record = () => stage.test.app.db.query(last, ['acme/gem']);
    await expect.poll(record).toEqual([{ status: 499, cost: 0n }]);
  });

  test('that takes too long gets an error that may be retried, because nothing was sent', async () => {
    const response = await fetch(`${stage.test.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/quick-gem', messages: imageMessage(`${files_url}/never`) }),
    });
    expect(response.status).toBe(504);
    expect(response.headers.get('x-should-retry')).toBeNull();
  });

  test('is refused when there are too many of them', async () => {
    const [image_part] = imageMessage(`${files_url}/a.png`)[0]?.content ?? [];
    const content = Array.from({ length: 33 }, () => image_part);
    const seen = await ask('completions', false, { messages: [{ role: 'user', content }] });
    expect(seen).toMatchObject({ status: 400, error: { param: 'messages[0].content[32].image_url.url' } });
  });

  test('is refused when its files are too large together', async () => {
    const [image_part] = imageMessage(`${files_url}/medium`)[0]?.content ?? [];
    const content = Array.from({ length: 4 }, () => image_part);
    const seen = await ask('completions', false, { messages: [{ role: 'user', content }] });
    expect(seen).toMatchObject({ status: 400, error: { param: 'messages[0].content[3].image_url.url' } });
  });

  test('is refused when its address is not permitted', async () => {
    const strict = await setStage();
    const body = { model: 'acme/gem', messages: imageMessage(`${files_url}/a.png`) };
    const refused = await strict.client.call('POST', '/v1/chat/completions', body);
    expect([refused.status, refused.json.error.param]).toEqual([400, param]);
    expect(refused.json.error.message).toContain('reachable from the internet');
    await strict.stop();
  });
});

test('the upstream counts tokens in either style that counts, and links are counted by their bytes', async () => {
  const count = async (content: unknown) => {
    const body = { model: 'acme/gem', system: 'Be kind.', messages: [{ role: 'user', content }] };
    const answer = await stage.client.call('POST', '/v1/messages/count_tokens', body);
    return (JSON.parse(answer.text) as { input_tokens: number }).input_tokens;
  };
  stage.upstream.script('gemini-x', { json: { totalTokens: 42 } });
  expect(await count('Hello')).toBe(42);
  expect(stage.upstream.requests.at(-1)).toMatchObject({
    path: '/v1beta/models/gemini-x:countTokens',
    body: {
      generateContentRequest: {
        model: 'models/gemini-x',
        systemInstruction: { parts: [{ text: 'Be kind.' }] },
        contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      },
    },
  });
  const requests_before = stage.upstream.requests.length;
  expect(await count([{ type: 'image', source: { type: 'url', url: `${files_url}/a.png` } }])).toBeGreaterThan(1_000);
  expect(stage.upstream.requests).toHaveLength(requests_before);
});

test('candidates of one response become choices and are counted together', async () => {
  const one = generated([{ text: 'A' }], { promptTokenCount: 10, candidatesTokenCount: 6, totalTokenCount: 16 });
  const two = { ...one.candidates[0], content: { parts: [{ text: 'B' }], role: 'model' }, index: 1 };
  stage.upstream.script('gemini-x', { json: { ...one, candidates: [two, ...one.candidates] } });
  const answer = await stage.client.call('POST', paths.completions, { model: 'acme/gem', messages: hello, n: 2 });
  expect(JSON.parse(answer.text).choices).toMatchObject([
    { index: 0, message: { content: 'A' } },
    { index: 1, message: { content: 'B' } },
  ]);
  expect(answer.headers.get('x-cost-amount')).toBe('0.000080');
  expect(stage.upstream.requests.at(-1)?.body['generationConfig']).toMatchObject({ candidateCount: 2 });
  expect(await ask('completions', true, { n: 2 })).toMatchObject({ status: 400, error: { param: 'n' } });
});

test.each([
  [
    'an error in the middle',
    `data: {"error":{"code":503,"message":"db-7 exploded","status":"UNAVAILABLE"}}\r\n\r\n`,
    'end',
  ],
  ['a list of one error in the middle', `data: [{"error":{"code":500,"message":"db-7 exploded"}}]\r\n\r\n`, 'end'],
  [
    'a call that went wrong',
    sse(
      generated([], { promptTokenCount: 10, candidatesTokenCount: 3 }, { finishReason: 'MALFORMED_FUNCTION_CALL' }),
    )[0] ?? '',
    'end',
  ],
  ['a clean end without a word', '', 'end'],
  ['a cut', '', 'cut'],
] as const)('a stream with %s after content ends with an error, and its content is charged', async (_, last, then) => {
  const first = sse(generated([{ text: 'Half of it' }], { promptTokenCount: 10, candidatesTokenCount: 3 }, {}));
  for (const style of ['completions', 'messages'] as const) {
    stage.upstream.script('gemini-x', { stream: last === '' ? first : [...first, last], then });
    const seen = await ask(style, true);
    expect(seen).toMatchObject({ status: 200, text: 'Half of it', finish: '', error: { type: 'upstream_error' } });
    expect(seen.raw).not.toMatch(/db-7|\[DONE\]|message_stop/);
    expect(await costOf(seen.id)).toBe('0.000050');
    await stage.test.app.db.query('delete from route_health');
  }
});

test("a retry delay in the error's details pauses the route for that long", async () => {
  const details = [
    { '@type': 'type.googleapis.com/google.rpc.QuotaFailure', violations: [{ quotaId: 'RequestsPerMinute' }] },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.4s' },
  ];
  const message = 'You exceeded your current quota, please check your plan.';
  const error = { code: 429, message, status: 'RESOURCE_EXHAUSTED', details };
  stage.upstream.script('gemini-x', { status: 429, json: { error } });
  const answer = await stage.client.call('POST', paths.completions, { model: 'acme/gem', messages: hello });
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([502, '35']);
});

const image = (url: string) => ({ type: 'image_url', image_url: { url } });

test('linked files share the memory quota until they are sent, and one account leaves half of it to others', async () => {
  stage.upstream.script('gemini-z', 'hang');
  const reached = () => stage.upstream.requests.filter(({ path }) => path.includes('gemini-z')).length;
  const leave = new AbortController();
  const call = (key: string) => {
    const content = ['?1', '?2', '?3'].map((query) => image(`${files_url}/medium${query}`));
    return fetch(stage.test.url + paths.completions, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/patient-gem', max_tokens: 5, messages: [{ role: 'user', content }] }),
      signal: leave.signal,
    }).catch(() => 'left');
  };
  const calls = Array.from({ length: 8 }, () => call(stage.client.key));
  await expect.poll(reached, { timeout: 240_000 }).toBe(4); // 57 MB each, of 537
  expect(await untilStill(reached)).toBe(4);
  const other = await stage.test.client();
  calls.push(call(other.key));
  await expect.poll(reached).toBe(5);
  leave.abort();
  await Promise.all(calls);
  stage.upstream.letGo();
  await expect.poll(() => stage.upstream.open()).toBe(0);
  stage.upstream.script('gemini-z', answering([{ text: 'Seen' }], undefined, { finishReason: 'STOP' }));
  const content = [image(`${files_url}/medium`)];
  const seen = await ask('completions', false, { model: 'acme/patient-gem', messages: [{ role: 'user', content }] });
  expect(seen).toMatchObject({ status: 200, text: 'Seen' });
});
