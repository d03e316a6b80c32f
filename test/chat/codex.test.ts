import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { expectExactBooks } from '../helpers/app.ts';
import type { Script } from '../helpers/chat-upstream.ts';
import { cline, known_model, newest_model, unknown_model, type Client } from './codex-requests.ts';
import { response } from './responses-streams.ts';
import { generated, setStage, type Stage } from './setup.ts';
import { chunk, completionsStream, done, event, messagesStream, messageStart, usageChunk } from './streams.ts';

/** Codex by its default settings: it reads, edits and tests in a loop, on upstreams of each style. */

let stage: Stage;
const more = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: true } }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

type Call = { id: string; name: string; namespace?: string; arguments?: string; input?: string };

/** An upstream of a style: its model, and how it calls a tool and says something. */
type Upstream = {
  model: string;
  upstream_model: string;
  call(call: Call): Script;
  say(text: string): Script;
  /** The conversation and the tools of a body, as text. */
  toolOutput(body: JsonObject): string;
};

/** As models that know functions only call a tool: its text stands in an argument. */
const functionOf = ({ name, namespace, arguments: json, input }: Call) => ({
  name: namespace === undefined || namespace === 'functions' ? name : `${namespace}__${name}`,
  json: json ?? JSON.stringify({ input }),
});

const chat: Upstream = {
  model: 'acme/oai',
  upstream_model: 'gpt-x',
  call: (call) => {
    const { name, json } = functionOf(call);
    const begun = { index: 0, id: call.id, type: 'function', function: { name, arguments: json.slice(0, 5) } };
    const rest = { index: 0, function: { arguments: json.slice(5) } };
    return {
      stream: [
        chunk({ role: 'assistant', content: null, tool_calls: [begun] }),
        chunk({ tool_calls: [rest] }),
        chunk({}, {}, 'tool_calls'),
        usageChunk(10, 5),
        done,
      ],
    };
  },
  say: (text) => ({ stream: completionsStream([text], [10, 5]) }),
  toolOutput: (body) => JSON.stringify([body['messages'], body['tools']]),
};

const messages: Upstream = {
  model: 'acme/ant',
  upstream_model: 'claude-x',
  call: (call) => {
    const { name, json } = functionOf(call);
    const content_block = { type: 'tool_use', id: call.id, name, input: {} };
    return {
      stream: [
        messageStart(),
        event({ type: 'content_block_start', index: 0, content_block }),
        event({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: json } }),
        event({ type: 'content_block_stop', index: 0 }),
        event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
        event({ type: 'message_stop' }),
      ],
    };
  },
  say: (text) => ({ stream: messagesStream([text]) }),
  toolOutput: (body) => JSON.stringify([body['messages'], body['tools']]),
};

const gemini: Upstream = {
  model: 'acme/gem',
  upstream_model: 'gemini-x',
  call: (call) => {
    const { name, json } = functionOf(call);
    const functionCall = { id: call.id, name, args: JSON.parse(json) as object };
    return { stream: [`data: ${JSON.stringify(generated([{ functionCall }]))}\n\n`] };
  },
  say: (text) => ({ stream: [`data: ${JSON.stringify(generated([{ text }]))}\n\n`] }),
  toolOutput: (body) => JSON.stringify([body['contents'], body['tools']]),
};

const native: Upstream = {
  model: 'acme/native',
  upstream_model: 'native-x',
  call: ({ id: call_id, ...call }) => {
    const type = call.input === undefined ? 'function_call' : 'custom_tool_call';
    return nativeStream({ id: `x_${call_id}`, type, status: 'completed', call_id, ...call });
  },
  say: (text) =>
    nativeStream({ id: 'm', type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] }),
  toolOutput: (body) => JSON.stringify([body['input'], body['tools']]),
};

function nativeStream(item: object): Script {
  return {
    stream: [
      event({ type: 'response.created', response: response([], { status: 'in_progress', usage: null }) }),
      event({ type: 'response.output_item.added', output_index: 0, item }),
      event({ type: 'response.output_item.done', output_index: 0, item }),
      event({ type: 'response.completed', response: response([item]) }),
    ],
  };
}

type Event = { type: string; item?: JsonObject; response?: { usage?: object; output: JsonObject[] } };

/** One turn: the finished items, as Codex takes them. */
async function turn(upstream: Upstream, body: object): Promise<{ items: JsonObject[]; left_out: string | null }> {
  const answer = await stage.client.call('POST', '/v1/responses', { ...body, model: upstream.model });
  expect(answer.status, answer.text).toBe(200);
  const events = [...answer.text.matchAll(/^data: (\{.*\})$/gm)].map(([, data = '']) => JSON.parse(data) as Event);
  const last = events.at(-1);
  expect(last?.type).toBe('response.completed');
  expect(last?.response?.usage).toMatchObject({ input_tokens: 10, output_tokens: 5 });
  const items = events.flatMap(({ type, item }) => (type === 'response.output_item.done' && item ? [item] : []));
  expect(last?.response?.output).toEqual(items);
  return { items, left_out: answer.headers.get('x-tools-left-out') };
}

const edit = '*** Begin Patch\n*** Update File: a.ts\n@@\n-const x = "1";\n+const x = `2`;\n*** End Patch';
const upstreams: [string, Upstream][] = [
  ['chat completions', chat],
  ['messages', messages],
  ['Gemini', gemini],
  ['responses', native],
];
const clients: [string, Client][] = [
  ['a model that it does not know', unknown_model],
  ['a model that it knows', known_model],
  ['its newest model', newest_model],
];

describe.each(upstreams)('Codex on an upstream of style %s', (_, upstream) => {
  test.each(clients)('reads, edits and tests in a loop with the tools of %s', async (__, { body, editor }) => {
    const namespace = editor.namespace === undefined ? {} : { namespace: editor.namespace };
    stage.upstream.script(
      upstream.upstream_model,
      upstream.call({ id: 'call_1', name: 'exec_command', ...namespace, arguments: '{"cmd":"cat a.ts"}' }),
      upstream.call({ id: 'call_2', ...editor, input: edit }),
      upstream.call({ id: 'call_3', name: 'exec_command', ...namespace, arguments: '{"cmd":"npm test"}' }),
      upstream.say('Mended.'),
    );
    const history = [...body.input];
    const results = ['const x = "1";', 'Success. Updated a.ts', 'ok 1'];
    const called: JsonObject[] = [];
    for (const [index, output] of results.entries()) {
      const { items, left_out } = await turn(upstream, { ...body, input: history });
      expect(left_out).toBe(body['tools'] === undefined ? null : 'web_search');
      const [item = {}] = items;
      called.push(item);
      const type = `${String(item['type'])}_output`;
      history.push(...items, { type, call_id: item['call_id'], output, ...(index === 1 && { name: editor.name }) });
    }
    expect(called).toMatchObject([
      { type: 'function_call', call_id: 'call_1', name: 'exec_command', arguments: '{"cmd":"cat a.ts"}' },
      { type: 'custom_tool_call', call_id: 'call_2', name: editor.name, input: edit },
      { type: 'function_call', call_id: 'call_3', name: 'exec_command', arguments: '{"cmd":"npm test"}' },
    ]);
    expect(called.every((item) => (item['namespace'] ?? 'functions') === 'functions')).toBe(true);
    const { items } = await turn(upstream, { ...body, input: history });
    expect(items).toMatchObject([{ type: 'message', content: [{ type: 'output_text', text: 'Mended.' }] }]);
    const tool_output = upstream.toolOutput(stage.upstream.requests.at(-1)?.body as JsonObject);
    for (const text of [...results, '*** Update File: a.ts', editor.name])
      expect(tool_output).toContain(JSON.stringify(text).slice(1, -1));
    expect(tool_output).not.toContain('web_search');
  });
});

test.each(upstreams)('Cline reads a file and answers on an upstream of style %s', async (_, upstream) => {
  stage.upstream.script(
    upstream.upstream_model,
    upstream.call({ id: 'call_1', name: 'read_file', arguments: '{"path":"a.ts"}' }),
    upstream.say('Mended.'),
  );
  const first = await turn(upstream, cline);
  const [call = {}] = first.items;
  expect(call).toMatchObject({ type: 'function_call', call_id: 'call_1', name: 'read_file' });
  const thought = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }] };
  const { id, name, arguments: json } = call;
  const history = [
    ...cline.input,
    thought,
    { type: 'function_call', id, call_id: 'call_1', name, arguments: json },
    { type: 'function_call_output', call_id: 'call_1', output: 'const x = "1";' },
  ];
  const { items } = await turn(upstream, { ...cline, input: history });
  expect(items).toMatchObject([{ type: 'message', content: [{ text: 'Mended.' }] }]);
  expect(upstream.toolOutput(stage.upstream.requests.at(-1)?.body as JsonObject)).toContain('const x = \\\"1\\\"');
});
