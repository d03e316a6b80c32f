import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { chunkFrame, eventFrame, exceptionFrame } from '../providers/imitations/event-stream.ts';
import { eventsOf } from '../styles/converse/corpus.ts';
import { hello, message, setStage, withUpstreamIds, type Stage } from './setup.ts';

/** Models of clouds from a caller's request to its charge. */
let stage: Stage;

beforeAll(async () => {
  const model = (name: string, upstream_model: string) => `  - id: acme/${name}
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: ${name}, upstream_model: "${upstream_model}" }]
`;
  const key = 'api_key: env:TEST_UPSTREAM_KEY, allow_private: true';
  stage = await setStage({
    more:
      model('invoke', claude) +
      model('vertex', 'claude-v') +
      model('nova', 'us.amazon.nova-pro-v1:0') +
      'net: { allow: ["127.0.0.0/8"] }\n',
    providers: `  nova: { adapter: bedrock, base_url: "URL", ${key} }
  invoke: { adapter: anthropic-bedrock, base_url: "URL", ${key} }
  vertex: { adapter: anthropic-vertex, base_url: "URL/v1/projects/p/locations/l", ${key} }
`,
  });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const claude = 'arn:aws:bedrock:eu-central-1:1:inference-profile/eu.anthropic.claude-x-v1:0';
/** 10 tokens of input at 2.00, 4 cached at 0.20, 3 written at 2.50 and 5 of output at 10.00 a million: 78.3 millionths, rounded. */
const usage = { input_tokens: 10, cache_read_input_tokens: 4, cache_creation_input_tokens: 3, output_tokens: 5 };
const cost = '0.000078';

const events = [
  {
    type: 'message_start',
    message: { ...message(''), content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Good day.' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } },
  { type: 'message_stop' },
];

async function costOf(id: string): Promise<string> {
  const record = () => stage.client.call('GET', `/v1/chat/${id}`);
  await expect.poll(async () => (await record()).status).toBe(200);
  return (await record()).json.cost.exact;
}

it.each([
  ['invoke', claude],
  ['vertex', 'claude-v'],
])(
  'callers of both styles get whole answers of Claude by %s, at the price of its tokens and caches',
  async (name, upstream) => {
    stage.upstream.script(upstream, { json: message('Good day.', usage) });
    const same = await stage.client.call('POST', '/v1/messages', {
      model: `acme/${name}`,
      max_tokens: 10,
      messages: hello,
    });
    expect([same.status, JSON.parse(same.text)]).toMatchObject([
      200,
      { model: `acme/${name}`, content: [{ text: 'Good day.' }], usage },
    ]);
    expect(same.headers.get('x-cost-amount')).toBe(cost);
    const other = await stage.client.call('POST', '/v1/chat/completions', { model: `acme/${name}`, messages: hello });
    expect(JSON.parse(other.text)).toMatchObject({
      choices: [{ message: { content: 'Good day.' } }],
      usage: { prompt_tokens: 17 },
    });
    expect(other.headers.get('x-cost-amount')).toBe(cost);
  },
);

it('callers of both styles get streams of Claude on Bedrock, at the price of its tokens and caches', async () => {
  stage.upstream.script(claude, { stream: events.map(chunkFrame) });
  const request = { model: 'acme/invoke', max_tokens: 10, messages: hello, stream: true };
  const same = await stage.client.call('POST', '/v1/messages', request);
  expect(withUpstreamIds(same.text).replaceAll('acme/invoke', 'claude-x')).toBe(
    events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
  );
  expect(await costOf(same.headers.get('x-request-id') ?? '')).toBe(cost);
  const other = await stage.client.call('POST', '/v1/chat/completions', request);
  expect(other.text).toContain('"content":"Good day."');
  expect(await costOf(other.headers.get('x-request-id') ?? '')).toBe(cost);
});

it('an exception in a stream before anything was said is the caller’s mistake, or a failure of the route', async () => {
  const request = { model: 'acme/invoke', max_tokens: 10, messages: hello, stream: true };
  stage.upstream.script(claude, {
    stream: [exceptionFrame('validationException', 'Input is too long for requested model.')],
  });
  const long = await stage.client.call('POST', '/v1/chat/completions', request);
  expect([long.status, long.json.error.code]).toEqual([400, 'context_length_exceeded']);
  stage.upstream.script(claude, { stream: [exceptionFrame('throttlingException', 'Slow down.')] });
  expect((await stage.client.call('POST', '/v1/messages', request)).status).toBe(502);
});

it('a stream with a damaged frame ends with an error, and what came is charged', async () => {
  const frames = events.slice(0, 3).map(chunkFrame);
  stage.upstream.script(claude, { stream: [...frames, chunkFrame({ type: 'ping' }).fill(7, 14, 20)] });
  const request = { model: 'acme/invoke', max_tokens: 10, messages: hello, stream: true };
  const broken = await stage.client.call('POST', '/v1/messages', request);
  expect(broken.text).toContain('Good day.');
  expect(broken.text).toContain('event: error\n');
  expect(broken.text).not.toContain('message_stop');
});

/** The same numbers of tokens as `usage`, by Converse. */
const answer = {
  output: { message: { role: 'assistant', content: [{ text: 'Good day.' }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 10, outputTokens: 5, totalTokens: 22, cacheReadInputTokens: 4, cacheWriteInputTokens: 3 },
  metrics: { latencyMs: 1_175 },
};

it.each([
  ['/v1/chat/completions', { model: 'acme/nova', messages: hello }],
  ['/v1/messages', { model: 'acme/nova', max_tokens: 10, messages: hello }],
  ['/v1/responses', { model: 'acme/nova', input: 'Hello' }],
  ['/v1/completions', { model: 'acme/nova', prompt: 'Hello' }],
])(
  'callers of %s get answers and streams of a model by Converse, at the price of its tokens and caches',
  async (path, body) => {
    stage.upstream.script('us.amazon.nova-pro-v1:0', { json: answer });
    const whole = await stage.client.call('POST', path, body);
    expect([whole.status, whole.text]).toEqual([200, expect.stringContaining('Good day.')]);
    expect(whole.headers.get('x-cost-amount')).toBe(cost);
    expect(stage.upstream.requests.at(-1)).toMatchObject({ path: '/model/us.amazon.nova-pro-v1%3A0/converse' });
    stage.upstream.script('us.amazon.nova-pro-v1:0', {
      stream: eventsOf(answer).map(([name, event]) => eventFrame(name, event)),
    });
    const stream = await stage.client.call('POST', path, { ...body, stream: true });
    expect([stream.status, stream.text]).toEqual([200, expect.stringContaining('Good')]);
    expect(await costOf(stream.headers.get('x-request-id') ?? '')).toBe(cost);
  },
);

it('a model by Converse gets the files behind links, since it takes none', async () => {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  const files = createServer((_, response) => response.writeHead(200, { 'content-type': 'image/png' }).end(png));
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(files.address() as AddressInfo).port}/x.png`;
  stage.upstream.script('us.amazon.nova-pro-v1:0', { json: answer });
  const content = [
    { type: 'image_url', image_url: { url } },
    { type: 'text', text: 'What is it?' },
  ];
  const body = { model: 'acme/nova', messages: [{ role: 'user', content }] };
  const { status } = await stage.client.call('POST', '/v1/chat/completions', body);
  files.close();
  expect(status).toBe(200);
  const image = { format: 'png', source: { bytes: png.toString('base64') } };
  expect(stage.upstream.requests.at(-1)?.body).toMatchObject({
    messages: [{ role: 'user', content: [{ image }, { text: 'What is it?' }] }],
  });
});

it('what a guardrail stops is a content filter to callers', async () => {
  stage.upstream.script('us.amazon.nova-pro-v1:0', { json: { ...answer, stopReason: 'guardrail_intervened' } });
  const { text } = await stage.client.call('POST', '/v1/chat/completions', { model: 'acme/nova', messages: hello });
  expect(JSON.parse(text).choices[0].finish_reason).toBe('content_filter');
});

it('tokens of a conversation for a model by Converse are counted by Bedrock', async () => {
  stage.upstream.script('us.amazon.nova-pro-v1:0', { json: { inputTokens: 42 } });
  const { json } = await stage.client.call('POST', '/v1/messages/count_tokens', {
    model: 'acme/nova',
    messages: hello,
  });
  expect(json).toEqual({ input_tokens: 42 });
});
