import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Answered } from '../helpers/app.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { completion, generated, message, setStage, type Stage } from './setup.ts';

/** Links of callers are judged once for all styles, and followed by whom the provider's `links` names. */

let stage: Stage;
let files: Server;
/** By name: what it resolves to is judged when it is fetched. */
let files_url: string;

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
);
const pdf = Buffer.from('%PDF-1.7 and so on');
const served: { [path: string]: [type: string, body: Buffer] } = {
  '/a.png': ['image/png', png],
  '/a.pdf': ['application/pdf', pdf],
  '/a.txt': ['text/plain', Buffer.from('Some text.')],
};

const providers = `
  strict: { adapter: openai, base_url: "URL/v1", api_key: env:TEST_UPSTREAM_KEY, allow_private: true, links: refuse }
`;
const modelOf = (id: string, route: string) => `
  - id: acme/${id}
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ ${route} }]
`;

beforeAll(async () => {
  files = createServer((request, response) => {
    const [type, body] = served[request.url ?? ''] ?? [];
    response.writeHead(body ? 200 : 404, { 'content-type': type ?? 'text/plain' }).end(body);
  });
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  const { port } = files.address() as AddressInfo;
  files_url = `http://files.example:${port}`;
  const routes = [
    modelOf('far', 'provider: far, upstream_model: gpt-x'),
    modelOf('far-responses', 'provider: far, upstream_model: gpt-x, options: { responses: true }'),
    modelOf('strict', 'provider: strict, upstream_model: gpt-x'),
    modelOf('near-responses', 'provider: oai, upstream_model: gpt-x, options: { responses: true }'),
    modelOf('tools', 'provider: far, upstream_model: gpt-x, options: { responses: true, pass: [tools] }'),
  ].join('');
  const resolve = (name: string) => Promise.resolve(name === 'inside.example' ? ['10.0.0.1'] : ['127.0.0.1']);
  stage = await setStage({ more: `${routes}\nnet: { allow: ["127.0.0.0/8"] }\n`, providers, resolve });
});
beforeEach(async () => {
  await stage.test.app.db.query('delete from route_health');
  stage.upstream.script('gpt-x', ({ path }) => ({ json: path.endsWith('/responses') ? response : completion('Hi') }));
  stage.upstream.script('claude-x', { json: message('Hi') });
  stage.upstream.script('gemini-x', { json: generated([{ text: 'Hi' }]) });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await stage.stop();
  files.closeAllConnections();
  await new Promise((resolve) => files.close(resolve));
});

const response = {
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] }],
  usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
};

type SendPart = (model: string, part: object, more?: object) => Promise<Answered>;
const ask = (path: string, body: object) => stage.client.call('POST', path, body);
const completions: SendPart = (model, part, more) =>
  ask('/v1/chat/completions', { model, messages: [{ role: 'user', content: [part] }], ...more });
const messages: SendPart = (model, part, more) =>
  ask('/v1/messages', { model, max_tokens: 100, messages: [{ role: 'user', content: [part] }], ...more });
const responses: SendPart = (model, part, more) =>
  ask('/v1/responses', { model, input: [{ role: 'user', content: [part] }], ...more });
const count: SendPart = (model, part) =>
  ask('/v1/messages/count_tokens', { model, messages: [{ role: 'user', content: [part] }] });

const refused_links = [
  'http://169.254.169.254/latest/meta-data/',
  'http://2852039166/',
  'http://0xa9fea9fe/',
  'http://0251.0376.0251.0376/',
  'http://[::ffff:169.254.169.254]/',
  'http://10.0.0.1/a.png',
  'http://[fd00::1]/',
  'https://user:secret@example.com/a.png',
  'http://example.com\\@169.254.169.254/',
  'http:169.254.169.254/',
  'file:///etc/passwd',
  '/etc/passwd',
  'gopher://example.com/',
  'ftp://example.com/a.png',
];

/** Each style with every place that a link may stand in. */
const places: [name: string, ask: SendPart, model: string, part: (url: string) => object, param: string][] = [
  ['completions image', completions, 'far', (url) => ({ type: 'image_url', image_url: { url } }), 'image_url.url'],
  ['completions image as text', completions, 'far', (url) => ({ type: 'image_url', image_url: url }), 'image_url'],
  ['completions video', completions, 'far', (url) => ({ type: 'video_url', video_url: { url } }), 'video_url.url'],
  ['completions file', completions, 'far', (url) => ({ type: 'file', file: { file_data: url } }), 'file.file_data'],
  [
    'an image in capitals',
    completions,
    'far',
    (url) => ({ type: 'image_url', image_url: { URL: url } }),
    'image_url.URL',
  ],
  [
    'an image that calls itself a citation',
    completions,
    'far',
    (url) => ({ type: 'url_citation', image_url: url }),
    'image_url',
  ],
  ['an unknown part', completions, 'far', (url) => ({ type: 'new', new: { file_uri: url } }), 'new.file_uri'],
  ['messages image', messages, 'ant', (url) => ({ type: 'image', source: { type: 'url', url } }), 'source.url'],
  ['messages document', messages, 'ant', (url) => ({ type: 'document', source: { type: 'url', url } }), 'source.url'],
  ['messages counted', count, 'ant', (url) => ({ type: 'document', source: { type: 'url', url } }), 'source.url'],
  ['messages to Gemini', messages, 'gem', (url) => ({ type: 'image', source: { type: 'url', url } }), 'source.url'],
  ['responses image', responses, 'far-responses', (url) => ({ type: 'input_image', image_url: url }), 'image_url'],
  ['responses file', responses, 'far-responses', (url) => ({ type: 'input_file', file_url: url }), 'file_url'],
];

test('a list of images beside the words is links as well, and so are servers of tools that a conversation defines', async () => {
  const before = stage.upstream.requests.length;
  const url = 'http://169.254.169.254/a.png';
  const images = { model: 'acme/far', messages: [{ role: 'user', content: 'Look', images: [url] }] };
  expect((await ask('/v1/chat/completions', images)).json.error.param).toBe('messages[0].images[0]');
  const definition = { type: 'mcp_toolset', server: { url } };
  const added = { type: 'tool_addition', tool: { type: 'tool_definition', definition } };
  const { json } = await messages('acme/ant', added);
  expect(json.error.param).toBe('messages[0].content[0].tool.definition.server.url');
  expect(stage.upstream.requests).toHaveLength(before);
});

describe.each(places)('a link in %s', (_, send, model, part, param) => {
  test.each(refused_links)('to %s is refused and reaches no upstream', async (url) => {
    if (param === 'file.file_data' && url === '/etc/passwd') return; // bytes, for all we know
    const before = stage.upstream.requests.length;
    const { status, json } = await send(`acme/${model}`, part(url));
    expect([status, json.error.param]).toEqual([400, expect.stringMatching(new RegExp(`content\\[0\\]\\.${param}$`))]);
    expect(stage.upstream.requests).toHaveLength(before);
  });
});

test('the addresses of tool servers are checked like those of files', async () => {
  const text = { type: 'text', text: 'Hi' };
  const mcp = { mcp_servers: [{ type: 'url', name: 's', url: 'http://169.254.169.254/' }] };
  expect(await messages('acme/ant', text, mcp)).toMatchObject({
    status: 400,
    json: { error: { param: 'mcp_servers[0].url' } },
  });
  const tools = [{ type: 'mcp', server_label: 's', server_url: 'http://169.254.169.254/' }];
  expect((await responses('acme/tools', { type: 'input_text', text: 'Hi' }, { tools })).status).toBe(400);
  // A provider in the operator's network would speak to them from there.
  const outside = { mcp_servers: [{ type: 'url', name: 's', url: 'https://mcp.example/' }] };
  expect(await messages('acme/ant', text, outside)).toMatchObject({
    status: 400,
    json: { error: { param: 'mcp_servers[0].url', code: 'link_not_allowed' } },
  });
});

test('the arguments and schemas of tools are not treated as links', async () => {
  const url = 'http://localhost:3000/';
  const call = { id: 'a', type: 'function', function: { name: 'open', arguments: JSON.stringify({ url }) } };
  const parameters = { type: 'object', properties: { url: { type: 'string', default: url } } };
  const body = {
    model: 'acme/far',
    messages: [
      { role: 'user', content: `Open ${url}` },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: url },
      { role: 'assistant', content: 'Done', annotations: [{ type: 'url_citation', url_citation: { url } }] },
      { role: 'user', content: 'And now?' },
    ],
    tools: [{ type: 'function', function: { name: 'open', parameters } }],
  };
  expect((await ask('/v1/chat/completions', body)).status).toBe(200);
  const use = { type: 'tool_use', id: 'a', name: 'open', input: { url } };
  const turns = [
    { role: 'user', content: 'Open it' },
    { role: 'assistant', content: [use] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: url }] },
  ];
  expect((await ask('/v1/messages', { model: 'acme/ant', max_tokens: 10, messages: turns })).status).toBe(200);
});

test('the setting links: pass sends links to the upstream unchanged unless their address is private', async () => {
  const part = { type: 'image_url', image_url: { url: 'https://example.com/a.png?b=c', detail: 'low' } };
  expect((await completions('acme/far', part)).status).toBe(200);
  expect(stage.upstream.requests.at(-1)?.body).toMatchObject({ messages: [{ content: [part] }] });
  // `net.allow` is what this service may fetch; the upstream is told nothing about it.
  const literal = { type: 'image_url', image_url: { url: files_url.replace('files.example', '127.0.0.1') } };
  expect((await completions('acme/far', literal)).status).toBe(400);
});

test('the setting links: refuse accepts no links at all', async () => {
  const part = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } };
  expect(await completions('acme/strict', part)).toMatchObject({
    status: 400,
    json: { error: { code: 'link_not_allowed' } },
  });
  const inline = { type: 'image_url', image_url: { url: `data:image/png;base64,${png.toString('base64')}` } };
  expect((await completions('acme/strict', inline)).status).toBe(200);
});

describe("a provider in the operator's own network gets a file instead of a link", () => {
  const image = png.toString('base64');
  const document = pdf.toString('base64');
  const fetched: [name: string, ask: SendPart, model: string, part: (url: string) => object, sent: object][] = [
    [
      'an image of completions',
      completions,
      'oai',
      (url) => ({ type: 'image_url', image_url: { url: `${url}/a.png`, detail: 'low' } }),
      { type: 'image_url', image_url: { url: `data:image/png;base64,${image}`, detail: 'low' } },
    ],
    [
      'an image of messages',
      messages,
      'ant',
      (url) => ({ type: 'image', source: { type: 'url', url: `${url}/a.png` }, cache_control: { type: 'ephemeral' } }),
      {
        type: 'image',
        source: { type: 'base64', media_type: 'image/png', data: image },
        cache_control: { type: 'ephemeral' },
      },
    ],
    [
      'a document of messages',
      messages,
      'ant',
      (url) => ({ type: 'document', title: 'T', source: { type: 'url', url: `${url}/a.pdf` } }),
      { type: 'document', title: 'T', source: { type: 'base64', media_type: 'application/pdf', data: document } },
    ],
    [
      'a text of messages',
      messages,
      'ant',
      (url) => ({ type: 'document', source: { type: 'url', url: `${url}/a.txt` } }),
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'Some text.' } },
    ],
    [
      'a file of responses',
      responses,
      'near-responses',
      (url) => ({ type: 'input_file', file_url: `${url}/a.pdf` }),
      { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${document}` },
    ],
    [
      'a document of messages, translated to completions',
      messages,
      'oai',
      (url) => ({ type: 'document', source: { type: 'url', url: `${url}/a.pdf` } }),
      { type: 'file', file: { filename: 'document.pdf', file_data: `data:application/pdf;base64,${document}` } },
    ],
    [
      'an image of responses, translated to messages',
      responses,
      'ant',
      (url) => ({ type: 'input_image', image_url: `${url}/a.png` }),
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } },
    ],
  ];

  test.each(fetched)('for %s', async (_, send, model, part, sent) => {
    const { status } = await send(`acme/${model}`, part(files_url));
    expect(status).toBe(200);
    const { body } = stage.upstream.requests.at(-1) ?? {};
    const turns = (body?.['messages'] ?? body?.['input']) as { content: unknown[] }[];
    expect(turns[0]?.content).toEqual([sent]);
  });

  test('after the resolved address is checked, too', async () => {
    const before = stage.upstream.requests.length;
    const part = { type: 'image_url', image_url: { url: 'http://inside.example/a.png' } };
    const { status, json } = await completions('acme/oai', part);
    expect([status, json.error.param]).toEqual([400, 'messages[0].content[0].image_url.url']);
    expect(json.error.message).toContain('reachable from the internet');
    expect(stage.upstream.requests).toHaveLength(before);
  });

  test('also from an address that net.allow names', async () => {
    const url = `${files_url.replace('files.example', '127.0.0.1')}/a.png`;
    expect((await completions('acme/oai', { type: 'image_url', image_url: { url } })).status).toBe(200);
  });
});
