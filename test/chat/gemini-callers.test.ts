import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { completion, generated, message, setStage, type Stage } from './setup.ts';
import { messagesStream } from './streams.ts';

/** Callers of Gemini's style, as any HTTP client is one. */

let stage: Stage;
let files: Server;
let files_url: string;

beforeAll(async () => {
  files = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.7 and so on');
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  files_url = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  stage = await setStage({ env: { MEDLEY_ALLOW_PRIVATE: '1' }, resolve: async () => ['127.0.0.1'] });
});
beforeEach(() => stage.test.app.db.query('delete from route_health'));
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await stage.stop();
  files.closeAllConnections();
  await new Promise((resolve) => files.close(resolve));
});

const contents = [{ role: 'user', parts: [{ text: 'Hello' }] }];
const lastRequest = () => stage.upstream.requests.at(-1);
const post = (path: string, body: object = { contents }) => stage.client.call('POST', path, body);

test.each([
  '/v1beta/models/acme/ant:generateContent',
  '/v1beta/acme/ant:generateContent',
  '/v1beta/models/acme%2Fant:generateContent',
  '/v1beta/models/models/acme/ant:generateContent',
  '/v1/models/acme/ant:generateContent',
  '/v1/v1beta/models/acme/ant:generateContent',
])('a model is found in %s', async (path) => {
  stage.upstream.script('claude-x', { json: message('Good day.') });
  const { status, text, headers } = await post(path);
  expect([status, JSON.parse(text)]).toEqual([
    200,
    {
      candidates: [{ content: { parts: [{ text: 'Good day.' }], role: 'model' }, finishReason: 'STOP', index: 0 }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
      modelVersion: 'acme/ant',
      responseId: headers.get('x-request-id'),
    },
  ]);
  expect(headers.get('x-cost-amount')).toBe('0.000070');
});

describe('an upstream of the same style', () => {
  test('gets the body as it came, and the caller its bytes but for the name and the id', async () => {
    const answer = generated([
      { text: 'Hm.', thought: true },
      { text: 'Good day.', thoughtSignature: 'c2VhbA==' },
    ]);
    stage.upstream.script('gemini-x', { json: answer });
    const body = {
      contents,
      safetySettings: [{ category: 'a', threshold: 'b' }],
      generationConfig: { seed: 5, presencePenalty: 1 },
      new: 1,
    };
    const { text, headers } = await post('/v1beta/models/acme/gem:generateContent', body);
    const id = headers.get('x-request-id') ?? '';
    expect(text).toBe(JSON.stringify({ ...answer, modelVersion: 'acme/gem', responseId: id }));
    expect(headers.get('x-ignored-fields')).toBe('new');
    const { new: _, ...fields } = body;
    expect(lastRequest()?.path).toBe('/v1beta/models/gemini-x:generateContent');
    expect(lastRequest()?.body).toEqual({
      ...fields,
      generationConfig: { ...body.generationConfig, maxOutputTokens: 1000 },
    });
  });

  test('streams its bytes but for the name and the id, as events or as one array', async () => {
    const chunks = [generated([{ text: 'Good ' }], {}, {}), generated([{ text: 'day.' }])];
    const stream = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\r\n\r\n`);
    stage.upstream.script('gemini-x', { stream });
    const events = await post('/v1beta/models/acme/gem:streamGenerateContent?alt=sse');
    expect(events.headers.get('content-type')).toContain('text/event-stream');
    expect(events.text.replaceAll(/req_\w+/g, 'resp-1').replaceAll('acme/gem', 'gemini-x')).toBe(stream.join(''));
    const array = await post('/v1beta/models/acme/gem:streamGenerateContent');
    expect(array.headers.get('content-type')).toContain('application/json');
    expect(JSON.parse(array.text.replaceAll(/req_\w+/g, 'resp-1').replaceAll('acme/gem', 'gemini-x'))).toEqual(chunks);
  });

  test('is not sent thoughts that another model signed; a call of another model gets the word for a missing signature', async () => {
    stage.upstream.script('gemini-x', { json: generated([{ text: 'A' }]) });
    const thought = {
      text: 'Hm.',
      thought: true,
      thoughtSignature: Buffer.from('medley-thinking:Eq==').toString('base64'),
    };
    const call = { functionCall: { id: 'a', name: 'f', args: {} } };
    const result = { functionResponse: { id: 'a', name: 'f', response: { output: '7' } } };
    await post('/v1beta/models/acme/gem:generateContent', {
      contents: [...contents, { role: 'model', parts: [thought, call] }, { role: 'user', parts: [result] }],
    });
    expect(lastRequest()?.body['contents']).toEqual([
      ...contents,
      { role: 'model', parts: [{ ...call, thoughtSignature: 'skip_thought_signature_validator' }] },
      { role: 'user', parts: [result] },
    ]);
  });

  test('gets no tool that has a price for each use', async () => {
    stage.upstream.script('gemini-x', { json: generated([{ text: 'A' }]) });
    const tools = [{ google_search: {}, functionDeclarations: [{ name: 'f' }] }, { urlContext: {} }];
    const { headers } = await post('/v1beta/models/acme/gem:generateContent', { contents, tools });
    expect(headers.get('x-tools-left-out')).toBe('googleSearch');
    expect(lastRequest()?.body['tools']).toEqual([{ functionDeclarations: [{ name: 'f' }] }, { urlContext: {} }]);
  });

  test.each<[string, JsonObject, string]>([
    ['a cache of the account', { cachedContent: 'cachedContents/x' }, 'cachedContent'],
    ['a tier at another price', { serviceTier: 'priority' }, 'serviceTier'],
    [
      'an image as the answer',
      { generationConfig: { responseModalities: ['IMAGE'] } },
      'generationConfig.responseModalities',
    ],
    [
      'sound',
      { contents: [{ parts: [{ inline_data: { mime_type: 'audio/wav', data: 'AAAA' } }] }] },
      'contents[0].parts[0].inlineData',
    ],
    [
      'a file of the account',
      { contents: [{ parts: [{ fileData: { fileUri: 'files/x' } }] }] },
      'contents[0].parts[0].fileData.fileUri',
    ],
  ])('gets nothing of %s', async (_, more, field) => {
    const { status, text } = await post('/v1beta/models/acme/gem:generateContent', { contents, ...more });
    expect([status, JSON.parse(text).error.details[1]?.fieldViolations[0].field]).toEqual([400, field]);
  });
});

test('a link is fetched for an upstream that has none, of the same style too', async () => {
  stage.upstream.script('gemini-x', { json: generated([{ text: 'A' }]) });
  const parts = [{ text: 'What?' }, { fileData: { fileUri: `${files_url}/a.pdf`, mimeType: 'application/pdf' } }];
  const { status } = await post('/v1beta/models/acme/gem:generateContent', { contents: [{ role: 'user', parts }] });
  expect(status).toBe(200);
  expect(lastRequest()?.body['contents']).toEqual([
    {
      role: 'user',
      parts: [
        { text: 'What?' },
        { inlineData: { mimeType: 'application/pdf', data: Buffer.from('%PDF-1.7 and so on').toString('base64') } },
      ],
    },
  ]);
});

test.each([
  ['acme/oai', 'gpt-x', completion('Hi')],
  ['acme/ant', 'claude-x', message('Hi')],
  ['acme/gem', 'gemini-x', generated([{ text: 'Hi' }])],
])(
  'bytes in the base64 of addresses, as the SDK for Python writes them, reach %s in plain base64',
  async (model, behind, json) => {
    stage.upstream.script(behind, { json });
    const data = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    for (const sent of [
      data.replaceAll('+', '-').replaceAll('/', '_'),
      data.replaceAll('+', '-').replaceAll('=', ''),
    ]) {
      const parts = [{ inline_data: { mime_type: 'image/png', data: sent } }, { text: 'What?' }];
      const { status } = await post(`/v1beta/models/${model}:generateContent`, { contents: [{ role: 'user', parts }] });
      expect(status).toBe(200);
      expect(JSON.stringify(lastRequest()?.body)).toContain(data);
    }
  },
);

test.each(['ID', 'files/ID', 'http://127.0.0.1:8080/v1beta/files/ID'])(
  'an uploaded file is sent by its id: %s',
  async (uri) => {
    stage.upstream.script('claude-x', { json: message('Good day.') });
    const form = new FormData();
    form.set('file', new File(['%PDF-1.7\n%%EOF'], 'a.pdf'));
    const headers = { authorization: `Bearer ${stage.client.key}` };
    const uploaded = await fetch(`${stage.test.url}/v1/files`, { method: 'POST', headers, body: form });
    const { id } = (await uploaded.json()) as { id: string };
    const parts = [{ fileData: { fileUri: uri.replace('ID', id) } }];
    const { status } = await post('/v1beta/models/acme/ant:generateContent', { contents: [{ role: 'user', parts }] });
    expect(status).toBe(200);
    const data = Buffer.from('%PDF-1.7\n%%EOF').toString('base64');
    expect(lastRequest()?.body['messages']).toMatchObject([
      { content: [{ type: 'document', source: { media_type: 'application/pdf', data }, title: 'a.pdf' }] },
    ]);
  },
);

test('names with underscores, and one for a list of one, are read as the names of the API', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  const { status } = await post('/v1beta/models/acme/oai:generateContent', {
    contents: { parts: { text: 'Hello' } },
    system_instruction: { parts: { text: 'Be brief.' } },
    generation_config: { max_output_tokens: 7, top_p: 0.5, stop_sequences: ['END'] },
    tools: {
      function_declarations: {
        name: 'f',
        parameters: { type: 'OBJECT', properties: { a_b: { type: 'STRING', nullable: true } } },
      },
    },
    tool_config: { function_calling_config: { mode: 'any' } },
  });
  expect(status).toBe(200);
  expect(lastRequest()?.body).toMatchObject({
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Hello' },
    ],
    max_tokens: 7,
    top_p: 0.5,
    stop: ['END'],
    tools: [
      { function: { name: 'f', parameters: { type: 'object', properties: { a_b: { type: ['string', 'null'] } } } } },
    ],
    tool_choice: 'required',
  });
});

test('thoughts are shown to those who ask for them, with the signature to be sent back', async () => {
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'Eq==' };
  const answer = { ...message('A'), content: [thinking, { type: 'text', text: 'A' }] };
  stage.upstream.script('claude-x', { json: answer });
  const path = '/v1beta/models/acme/ant:generateContent';
  const shown = await post(path, { contents, generationConfig: { thinkingConfig: { includeThoughts: true } } });
  const { content } = JSON.parse(shown.text).candidates[0];
  expect(content.parts).toMatchObject([{ text: 'Hm.', thought: true }, { text: 'A' }]);
  expect(JSON.parse((await post(path)).text).candidates[0].content.parts).toEqual([{ text: 'A' }]);
  await post(path, { contents: [...contents, content, ...contents] });
  expect(lastRequest()?.body['messages']).toMatchObject([{}, { content: [thinking, { type: 'text', text: 'A' }] }, {}]);
});

describe('an error', () => {
  test.each<[string, string, object, number, string]>([
    ['of a request', 'acme/ant:generateContent', { contents: [] }, 400, 'INVALID_ARGUMENT'],
    ['of a model', 'acme/none:generateContent', { contents }, 404, 'NOT_FOUND'],
    ['of a method', 'acme/ant:predict', { contents }, 404, 'NOT_FOUND'],
    ['of a path', 'acme/ant', { contents }, 404, 'NOT_FOUND'],
    [
      'of a stream of several',
      'acme/ant:streamGenerateContent',
      { contents, generationConfig: { candidateCount: 2 } },
      400,
      'INVALID_ARGUMENT',
    ],
  ])('%s has the words of the style', async (_, path, body, code, word) => {
    const { status, text, headers } = await post(`/v1beta/models/${path}`, body);
    const { error } = JSON.parse(text);
    expect([status, error.code, error.status]).toEqual([code, code, word]);
    expect(error.details[0]).toMatchObject({ domain: 'medley', metadata: { request_id: headers.get('x-request-id') } });
  });

  test.each(['/v1beta', '/v1beta/tunedModels/a:generateContent', '/v1beta/nothing'])(
    'of %s has them too',
    async (path) => {
      const { status, text } = await post(path);
      expect([status, JSON.parse(text).error.status]).toEqual([404, 'NOT_FOUND']);
    },
  );

  test('of an upstream that breaks off is the last event, and the last item of an array', async () => {
    const [first = ''] = messagesStream(['Good ', 'day.']).join('').split('day.');
    stage.upstream.script('claude-x', { stream: [first], then: 'cut' });
    const events = await post('/v1beta/models/acme/ant:streamGenerateContent?alt=sse');
    expect(events.text).toMatch(
      /"text":"Good ".*\r\n\r\ndata: \{"error":\{"code":502,.*"status":"UNAVAILABLE".*\}\r\n\r\n$/s,
    );
    const array = await post('/v1beta/models/acme/ant:streamGenerateContent');
    expect(JSON.parse(array.text).at(-1)).toMatchObject({ error: { code: 502, status: 'UNAVAILABLE' } });
  });
});

describe('the key in the query', () => {
  const lines: string[] = [];
  const send = (path: string, body?: object) =>
    fetch(`${stage.test.url}${path}key=${stage.client.key}`, {
      method: body ? 'POST' : 'GET',
      headers: { 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });

  test('is taken below /v1beta, and there alone', async () => {
    stage.upstream.script('claude-x', { json: message('Good day.') });
    expect((await send('/v1beta/models/acme/ant:generateContent?', { contents })).status).toBe(200);
    expect((await send('/v1beta/models?pageSize=1&')).status).toBe(200);
    expect((await send('/v1/models?')).status).toBe(401);
    expect((await send('/v1/models/acme/ant:generateContent?', { contents })).status).toBe(401);
  });

  test('is in no line of the log, no record and no error', async () => {
    const { key } = stage.client;
    const { log } = stage.test.app;
    const write = log.info.bind(log);
    log.info = (...args: Parameters<typeof log.info>) => {
      lines.push(JSON.stringify(args));
      write(...args);
    };
    try {
      stage.upstream.script('claude-x', { json: message('Good day.') });
      const answers = [
        await send('/v1beta/models/acme/ant:generateContent?', { contents }),
        await send('/v1beta/models/acme/ant:generateContent?', { contents: 5 }),
        await send('/v1beta/models/acme/none:generateContent?', { contents }),
        await send('/v1beta/nothing?', { contents }),
        await send('/v1beta/models?pageSize=x&'),
        await send('/v1beta/models?%zz&'),
        await send('/v1/models?'),
      ];
      const texts = await Promise.all(answers.map((answer) => answer.text()));
      expect([...texts, ...lines].filter((text) => text.includes(key))).toEqual([]);
      await expect.poll(() => lines.length).toBeGreaterThanOrEqual(answers.length);
      const id = answers[0]?.headers.get('x-request-id') ?? '';
      const record = () => stage.client.call('GET', `/v1/chat/${id}`);
      await expect.poll(async () => (await record()).status).toBe(200);
      expect((await record()).text).not.toContain(key);
      expect(lines.join('')).not.toContain(key);
      expect(JSON.stringify(stage.upstream.requests)).not.toContain(key);
    } finally {
      log.info = write;
    }
  });
});

test('models are listed in pages, and one is found by its name', async () => {
  const list = async (query: string) => JSON.parse((await stage.client.call('GET', `/v1beta/models${query}`)).text);
  const { models } = await list('');
  expect(models.map(({ name }: { name: string }) => name)).toContain('models/acme/ant');
  const first = await list('?pageSize=1');
  expect(first.models).toEqual(models.slice(0, 1));
  expect((await list(`?pageSize=1&pageToken=${first.nextPageToken}`)).models).toEqual(models.slice(1, 2));
  const one = await stage.client.call('GET', '/v1beta/models/models/acme%2Fant');
  expect(JSON.parse(one.text)).toMatchObject({
    name: 'models/acme/ant',
    supportedGenerationMethods: ['generateContent', 'streamGenerateContent', 'countTokens'],
  });
  expect((await stage.client.call('GET', '/v1beta/models/acme/none')).status).toBe(404);
});

test('a caller who leaves is charged as in every style', async () => {
  stage.upstream.script('gemini-x', {
    stream: [`data: ${JSON.stringify(generated([{ text: 'Good ' }], {}, {}))}\r\n\r\n`],
    then: 'hang',
  });
  const leaving = new AbortController();
  const answer = await fetch(`${stage.test.url}/v1beta/models/acme/gem:streamGenerateContent`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-goog-api-key': stage.client.key },
    body: JSON.stringify({ contents }),
    signal: leaving.signal,
  });
  const { value } = (await answer.body?.getReader().read()) ?? {};
  expect(Buffer.from(value ?? []).toString()).toMatch(/^\[\{/);
  leaving.abort();
  const record = () => stage.client.call('GET', `/v1/chat/${answer.headers.get('x-request-id')}`);
  await expect.poll(async () => (await record()).status).toBe(200);
  expect((await record()).json.cost.exact).not.toBe('0.000000');
});
