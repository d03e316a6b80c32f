import OpenAI6 from 'openai-6';
import { zodResponsesFunction as tool6, zodTextFormat as format6 } from 'openai-6/helpers/zod';
import OpenAI7 from 'openai-7';
import { zodResponsesFunction as tool7, zodTextFormat as format7 } from 'openai-7/helpers/zod';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { responsesStream } from '../chat/responses-streams.ts';
import { message, setStage, type Stage } from '../chat/setup.ts';
import { completionsStream, event, messageStart, messagesStream } from '../chat/streams.ts';
import { expectExactBooks } from '../helpers/app.ts';

const native = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: true } }]
`;

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ more: native });
});
afterAll(async () => {
  await expectExactBooks(stage.test.app);
  await stage.stop();
});

const model = 'sandbox/chat';
const look = { city: z.string() };
const answer = { text: z.string(), sure: z.boolean() };

/** The calls that both versions have in common, as far as these tests need them; their types are not each other's. */
type Sdk = {
  name: string;
  client(key?: string): OpenAI7;
  errors: typeof OpenAI7;
  tool: OpenAI7.Responses.FunctionTool;
  format: ReturnType<typeof format7>;
};

/** Types of the two versions, and of what comes and what is given back, are not each other's; the values are. */
function shared<T>(value: unknown): T {
  return value as T;
}

const place = () => ({ baseURL: `${stage.test.url}/v1`, maxRetries: 0 });

const sdks: Sdk[] = [
  {
    name: 'openai 6',
    client: (apiKey = stage.client.key) => shared(new OpenAI6({ ...place(), apiKey })),
    errors: shared(OpenAI6),
    tool: shared(tool6({ name: 'look', parameters: z.object(look) })),
    format: shared(format6(z.object(answer), 'answer')),
  },
  {
    name: 'openai 7',
    client: (apiKey = stage.client.key) => new OpenAI7({ ...place(), apiKey }),
    errors: OpenAI7,
    tool: tool7({ name: 'look', parameters: z.object(look) }),
    format: format7(z.object(answer), 'answer'),
  },
];

describe.each(sdks.map((sdk) => [sdk.name, sdk] as const))(
  'the responses of the SDK %s',
  (_, { client, errors, tool, format }) => {
    test('have text, usage and cost', async () => {
      const { data, response } = await client().responses.create({ model, input: 'Hello' }).withResponse();
      expect(data.output_text).toContain('You said: “Hello”.');
      expect(data).toMatchObject({ object: 'response', status: 'completed', model, error: null });
      const { usage } = data;
      const cost = (usage?.input_tokens ?? 0) + 4 * (usage?.output_tokens ?? 0);
      expect(response.headers.get('x-cost-amount')).toBe((cost / 1e6).toFixed(6));
    });

    test('have input tokens that are counted free of charge, as they are charged', async () => {
      const request = { model, input: 'Hello', instructions: 'Be kind.' };
      const { usage } = await client().responses.create(request);
      const counted = await client().responses.inputTokens.count(request);
      expect(counted).toEqual({ object: 'response.input_tokens', input_tokens: usage?.input_tokens });
    });

    test('continue a loop of tools with every item sent back unchanged', async () => {
      const input: OpenAI7.Responses.ResponseInput = [{ role: 'user', content: 'Look [[tool look {"city":"Łódź"}]]' }];
      const first = await client().responses.create({ model, input, tools: [tool] });
      const call = first.output.find((item) => item.type === 'function_call');
      expect(call).toMatchObject({ name: 'look', arguments: '{"city":"Łódź"}', status: 'completed' });
      input.push(...shared<typeof input>(first.output));
      input.push({ type: 'function_call_output', call_id: call?.call_id ?? '', output: 'rain' });
      const second = await client().responses.create({ model, input, tools: [tool] });
      expect(second.output_text).toContain('The tool answered: “rain”.');
    });

    test('are continued by their ids, read, listed by their input and deleted', async () => {
      const first = await client().responses.create({ model, input: 'Hello' });
      expect(first).toMatchObject({ store: true, previous_response_id: null });
      const next = { model, input: 'And now?', previous_response_id: first.id };
      const second = await client().responses.create(next);
      expect(second.output_text).toContain('We are at turn 2 of yours.');
      expect(await client().responses.retrieve(second.id)).toMatchObject({ id: second.id, output: second.output });
      const items: unknown[] = [];
      for await (const item of client().responses.inputItems.list(second.id, { limit: 1 })) items.push(item);
      expect(items).toMatchObject([{ type: 'message', role: 'user', content: [{ text: 'And now?' }] }]);
      await client().responses.delete(first.id);
      const refused = await client()
        .responses.create({ ...next, previous_response_id: second.id })
        .catch((error: unknown) => error);
      expect(refused).toMatchObject({ status: 400, code: 'previous_response_not_found' });
    });

    test('can be parsed into structured output and the arguments of a tool', async () => {
      const structured = await client().responses.parse({ model, input: 'Hello', text: { format } });
      expect(z.object(answer).safeParse(structured.output_parsed).success).toBe(true);
      const input = 'Look [[tool look {"city":"Rome"}]]';
      const called = await client().responses.parse({ model, input, tools: [tool] });
      const [call] = called.output.filter((item) => item.type === 'function_call');
      expect(call).toMatchObject({ parsed_arguments: { city: 'Rome' } });
    });

    test('are a stream of events with a last response', async () => {
      const stream = await client().responses.create({ model, input: 'Hello', stream: true });
      const types: string[] = [];
      let text = '';
      let last: OpenAI7.Responses.Response | undefined;
      for await (const one of stream) {
        types.push(one.type);
        if (one.type === 'response.output_text.delta') text += one.delta;
        if (one.type === 'response.completed') last = one.response;
      }
      expect(last?.output).toMatchObject([{ content: [{ text }] }]);
      expect(text).toContain('You said: “Hello”.');
      expect([types[0], types.at(-1)]).toEqual(['response.created', 'response.completed']);
    });

    test.each([
      ['sandbox/chat', undefined],
      ['acme/native', ['native-x', responsesStream(['Hello', ' there'])]],
      ['acme/oai', ['gpt-x', completionsStream(['Hello', ' there'], [10, 5])]],
      ['acme/ant', ['claude-x', messagesStream(['Hello', ' there'])]],
    ] as const)('are assembled by the stream helper from %s', async (request, script) => {
      if (script) stage.upstream.script(script[0], { stream: [...script[1]] });
      const stream = client().responses.stream({ model: request, input: 'Hello there' });
      const deltas: string[] = [];
      stream.on('response.output_text.delta', ({ delta }) => deltas.push(delta));
      const final = await stream.finalResponse();
      expect(final.output_text).toBe(deltas.join(''));
      expect(final.output_text).toContain('Hello there');
      expect(final).toMatchObject({
        status: 'completed',
        model: request,
        ...(script && { usage: { total_tokens: 15 } }),
      });
    });

    test('have reasoning and tool calls at once in a stream', async () => {
      const input = 'Do both [[think]] [[tool look {"city":"Rome"}]] [[tool look {"city":"Oslo"}]]';
      const final = await client()
        .responses.stream({ model, input, tools: [tool] })
        .finalResponse();
      expect(final.output.map(({ type }) => type)).toEqual(['reasoning', 'function_call', 'function_call']);
      expect(final.output[0]).toMatchObject({ summary: [{ type: 'summary_text' }] });
      expect(final.output.slice(1)).toMatchObject([
        { arguments: '{"city":"Rome"}', parsed_arguments: { city: 'Rome' } },
        { arguments: '{"city":"Oslo"}', parsed_arguments: { city: 'Oslo' } },
      ]);
      expect(new Set(final.output.map(({ id }) => id)).size).toBe(3);
    });

    test('return signed thinking to a model of messages style', async () => {
      const delta = (fields: object) => event({ type: 'content_block_delta', index: 0, delta: fields });
      const thought = [
        messageStart(),
        event({
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'thinking', thinking: '', signature: '' },
        }),
        delta({ type: 'thinking_delta', thinking: 'Hm.' }),
        delta({ type: 'signature_delta', signature: 'c2ln' }),
        event({ type: 'content_block_stop', index: 0 }),
        event({
          type: 'content_block_start',
          index: 1,
          content_block: { type: 'tool_use', id: 'toolu_1', name: 'look', input: {} },
        }),
        event({ type: 'content_block_stop', index: 1 }),
        event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
        event({ type: 'message_stop' }),
      ];
      stage.upstream.script('claude-x', { stream: thought }, { json: message('So.') });
      const input: OpenAI7.Responses.ResponseInput = [{ role: 'user', content: 'Look' }];
      const tools = [{ ...tool, strict: false }];
      const reasoning = { effort: 'low' } as const;
      const first = await client().responses.stream({ model: 'acme/ant', input, tools, reasoning }).finalResponse();
      for (const item of first.output) {
        if (item.type === 'reasoning') input.push(item);
        if (item.type !== 'function_call') continue;
        const { call_id, name, arguments: json } = item;
        input.push({ type: 'function_call', call_id, name, arguments: json });
        input.push({ type: 'function_call_output', call_id, output: 'rain' });
      }
      const second = await client().responses.create({ model: 'acme/ant', input, tools, reasoning });
      expect(second.output_text).toBe('So.');
      const messages = stage.upstream.requests.at(-1)?.body['messages'] as { content: object[] }[];
      expect(messages[1]?.content).toMatchObject([
        { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
        { type: 'tool_use', id: 'toolu_1' },
      ]);
    });

    test('are incomplete when they are too long, and say why', async () => {
      const short = { model, input: '[[tokens 500]]', max_output_tokens: 20 };
      const whole = await client().responses.create(short);
      expect(whole).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
      expect(whole.usage?.output_tokens).toBe(20);
      const final = await client().responses.stream(short).finalResponse();
      expect(final).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } });
    });

    test('throw when their stream breaks off', async () => {
      const read = async () => {
        const stream = await client().responses.create({ model, input: 'Hello [[cut]]', stream: true });
        for await (const _event of stream);
      };
      await expect(read()).rejects.toMatchObject({ type: 'upstream_error' });
      const helper = client().responses.stream({ model, input: 'Hello [[fail]]' });
      await expect(helper.finalResponse()).rejects.toBeInstanceOf(errors.OpenAIError);
    });

    test('release the call when it is aborted', async () => {
      const leave = new AbortController();
      const { signal } = leave;
      const stream = await client().responses.create({ model, input: '[[tokens 2000]]', stream: true }, { signal });
      let seen = 0;
      for await (const _event of stream) if (++seen === 5) leave.abort();
      expect(seen).toBeLessThan(100);
      const held = async () => (await stage.client.call('GET', '/v1/balance')).json.held.exact;
      await expect.poll(held).toBe('0.000000');
    });

    test("fail with the SDK's own errors", async () => {
      const refusal = (error: unknown) => error;
      const unknown = await client().responses.create({ model: 'nobody/none', input: 'a' }).catch(refusal);
      expect(unknown).toBeInstanceOf(errors.NotFoundError);
      const previous_response_id = 'resp_1';
      const state = await client().responses.create({ model, input: 'a', previous_response_id }).catch(refusal);
      expect(state).toBeInstanceOf(errors.BadRequestError);
      expect(state).toMatchObject({ param: 'previous_response_id', code: 'previous_response_not_found' });
      const stored = await client().responses.retrieve('resp_1').catch(refusal);
      expect(stored).toBeInstanceOf(errors.NotFoundError);
      expect(String(stored)).toContain('not found');
      const moderated = await client().responses.create({ model, input: 'a [[moderate]]' }).catch(refusal);
      expect(moderated).toMatchObject({ status: 400, code: 'content_filter' });
      const stranger = await client('sk-nobody').responses.create({ model, input: 'a' }).catch(refusal);
      expect(stranger).toBeInstanceOf(errors.AuthenticationError);
      const poor = await stage.test.client({ credit: '0.000001' });
      const broke = await client(poor.key).responses.create({ model, input: 'a' }).catch(refusal);
      expect(broke).toMatchObject({ status: 402, type: 'insufficient_balance' });
    });
  },
);
