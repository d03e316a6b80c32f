import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import type { Script } from '../helpers/chat-upstream.ts';
import { response, messageItem } from './responses-streams.ts';
import { completion, generated, message, setStage, type Stage } from './setup.ts';
import { chunk, done, event, messageStart } from './streams.ts';

/** The caller's answer carries the counts that are charged, whatever the upstream reports. */

let stage: Stage;

const more = `
  - id: acme/res
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: res-x, options: { responses: always } }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

type Fields = Record<string, unknown>;

const text = 'Four words are here, and five more words behind.'; // 48 bytes: 12 tokens
const data = (value: object) => `data: ${JSON.stringify(value)}\n\n`;

const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };

/** Answers of each upstream with these fields as their usage, whole and streamed; without any if it is undefined. */
const upstreams = {
  oai: {
    name: 'gpt-x',
    whole: (usage?: object) => withUsage(completion(text), usage),
    stream: (usage?: object) => [
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: text }),
      chunk({}, {}, 'stop'),
      ...(usage ? [data({ id: 'c', object: 'chat.completion.chunk', model: 'gpt-x', choices: [], usage })] : []),
      done,
    ],
  },
  ant: {
    name: 'claude-x',
    whole: (usage?: object) => withUsage(message(text), usage),
    stream: (usage?: object) => [
      usage ? messageStart(usage) : messageStart().replace(/,"usage":\{[^}]*\}/, ''),
      event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
      event({ type: 'content_block_stop', index: 0 }),
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        ...(usage && { usage }),
      }),
      event({ type: 'message_stop' }),
    ],
  },
  res: {
    name: 'res-x',
    whole: (usage?: object) => withUsage(response([messageItem(text)]), usage),
    stream: (usage?: object) => [
      event({ type: 'response.created', response: response([], { status: 'in_progress', usage: null }) }),
      event({ type: 'response.output_text.delta', ...place, delta: text }),
      event({ type: 'response.completed', response: withUsage(response([messageItem(text)]), usage) }),
    ],
  },
  gem: {
    name: 'gemini-x',
    whole: (usage?: object) => ({ ...generated([{ text }]), usageMetadata: usage }),
    stream: (usage?: object) => [data({ ...generated([{ text }]), usageMetadata: usage })],
  },
} as const;

function withUsage(answer: { usage: unknown }, usage: object | undefined): object {
  const { usage: _, ...body } = answer;
  return { ...body, ...(usage && { usage }) };
}

const callers = {
  completions: { path: 'chat/completions', body: { messages: [{ role: 'user', content: 'x'.repeat(26) }] } },
  messages: { path: 'messages', body: { messages: [{ role: 'user', content: 'x'.repeat(26) }], max_tokens: 500 } },
  responses: { path: 'responses', body: { input: [{ role: 'user', content: 'x'.repeat(26) }] } },
} as const;

type CallerName = keyof typeof callers;
type UpstreamName = keyof typeof upstreams;

/** Input and output as a caller of this style reads them. */
function readUsage(
  caller: CallerName,
  usage_json: string,
  is_stream: boolean,
): { input: unknown; output: unknown; total?: unknown } {
  const usage = is_stream ? inStream(caller, usage_json) : ((JSON.parse(usage_json) as { usage?: Fields }).usage ?? {});
  if (caller === 'messages') return { input: usage['input_tokens'], output: usage['output_tokens'] };
  const [input, output] =
    caller === 'completions' ? ['prompt_tokens', 'completion_tokens'] : ['input_tokens', 'output_tokens'];
  return { input: usage[input], output: usage[output], total: usage['total_tokens'] };
}

function inStream(caller: CallerName, usage_json: string): Fields {
  const events = usage_json
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map(
      (line) =>
        JSON.parse(line.slice(6)) as { usage?: Fields; message?: { usage?: Fields }; response?: { usage?: Fields } },
    );
  if (caller === 'responses') return events.at(-1)?.response?.usage ?? {};
  if (caller === 'completions') return events.at(-1)?.usage ?? {};
  return Object.assign({}, ...events.map(({ usage, message: started }) => usage ?? started?.usage));
}

async function ask(caller: CallerName, upstream: UpstreamName, stream: boolean, usage?: object) {
  const { name, whole, stream: parts } = upstreams[upstream];
  const script: Script = stream ? { stream: [...parts(usage)] } : { json: whole(usage) };
  stage.upstream.script(name, script);
  const { path, body } = callers[caller];
  const usage_option = stream && caller === 'completions' && { stream_options: { include_usage: true } };
  const answer = await stage.client.call('POST', `/v1/${path}`, {
    model: `acme/${upstream}`,
    stream,
    ...body,
    ...usage_option,
  });
  expect(answer.status, answer.text).toBe(200);
  const record = `/v1/chat/${answer.headers.get('x-request-id')}`;
  await expect.poll(async () => (await stage.client.call('GET', record)).status).toBe(200);
  const { text: record_text } = await stage.client.call('GET', record);
  const { usage: charged, counted_here } = JSON.parse(record_text) as { usage: Fields; counted_here: boolean };
  return { reported: readUsage(caller, answer.text, stream), charged, counted_here };
}

const rows = (Object.keys(callers) as CallerName[]).flatMap((caller) =>
  (Object.keys(upstreams) as UpstreamName[]).flatMap((upstream) =>
    [false, true].map((stream) => ({ caller, upstream, stream })),
  ),
);

describe.each(rows)('a $caller caller of a $upstream upstream, stream $stream', ({ caller, upstream, stream }) => {
  test('a response without usage carries the counts that are charged', async () => {
    const { reported, charged, counted_here } = await ask(caller, upstream, stream);
    expect(counted_here).toBe(true);
    expect(charged).toMatchObject({ input_tokens: 10, output_tokens: 12 });
    expect(reported).toEqual({ input: 10, output: 12, ...(caller !== 'messages' && { total: 22 }) });
  });

  test('a usage of zero output tokens is neither believed nor passed on when output came', async () => {
    const none = {
      oai: { prompt_tokens: 7, completion_tokens: 0, total_tokens: 7 },
      ant: { input_tokens: 7, output_tokens: 0 },
      res: { input_tokens: 7, output_tokens: 0, total_tokens: 7 },
      gem: { promptTokenCount: 7, totalTokenCount: 7 },
    };
    const { reported, charged } = await ask(caller, upstream, stream, none[upstream]);
    expect(charged).toMatchObject({ input_tokens: 7, output_tokens: 12 });
    expect(reported).toEqual({ input: 7, output: 12, ...(caller !== 'messages' && { total: 19 }) });
  });

  test('tokens that only the total or the number of thoughts shows are charged as output', async () => {
    const beside = {
      oai: { prompt_tokens: 7, completion_tokens: 20, total_tokens: 527 }, // as Google's endpoint tells it
      ant: { input_tokens: 7, output_tokens: 20, output_tokens_details: { thinking_tokens: 500 } },
      res: { input_tokens: 7, output_tokens: 20, total_tokens: 527 },
      gem: { promptTokenCount: 7, candidatesTokenCount: 20, totalTokenCount: 527 },
    };
    const { reported, charged, counted_here } = await ask(caller, upstream, stream, beside[upstream]);
    expect(counted_here).toBe(false);
    expect(charged).toMatchObject({ input_tokens: 7, output_tokens: 520, reasoning_tokens: 500 });
    expect(reported).toEqual({ input: 7, output: 520, ...(caller !== 'messages' && { total: 527 }) });
  });
});
