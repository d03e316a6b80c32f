import OpenAI from 'openai-7';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import { mediaModel, required_prompt } from '../helpers/catalog.ts';
import { calls, says, upstream_models, type Called, type UpstreamStyle } from './search-streams.ts';
import { setStage, yamlOf, type Stage } from './setup.ts';

/** Images that models of chat make for callers of the responses style: tasks of the caller's account. */

let stage: Stage;
const native = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price:
      - { unit: input_token, per: 1000000, amount: "2.00" }
      - { unit: output_token, per: 1000000, amount: "10.00" }
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: always } }]
`;
const dear = mediaModel({
  id: 'acme/dear',
  routes: ['{ provider: sandbox }'],
  schema: required_prompt,
  price: '5.00',
});
const more = (fields = '', model = 'sandbox/image') => `${native}${dear}
tools: { image_generation: { model: ${model} ${fields} } }
`;
const models: { readonly [style in UpstreamStyle]: string } = {
  completions: 'acme/oai',
  messages: 'acme/ant',
  gemini: 'acme/gem',
  responses: 'acme/native',
};
const image_call: Called = { name: 'make_image', input: { prompt: 'a red bicycle' } };
const tools = [{ type: 'image_generation', size: '512x512', quality: 'auto' }];

beforeAll(async () => {
  stage = await setStage({ more: more() });
});
beforeEach(() => stage.test.configure(yamlOf(stage.upstream, more())));
afterEach(() => {
  vi.restoreAllMocks();
  return expectExactBooks(stage.test.app);
});
afterAll(() => stage.stop());

function script(style: UpstreamStyle, stream: boolean, all: Called[] = [image_call]): void {
  stage.upstream.script(upstream_models[style], calls(style, stream, all), says(style, stream, 'Here it is.'));
}

type Asking = { stream?: boolean; client?: Client; more?: object };

const ask = (
  model: string,
  { stream = false, client = stage.client, more: fields = {} }: Asking = {},
): Promise<Answered> => client.call('POST', '/v1/responses', { model, input: 'Draw', tools, stream, ...fields });

type Item = { type: string; status: string; result?: string | null; revised_prompt?: string; size?: string };
const outputOf = (answer: Answered) => (JSON.parse(answer.text) as { output: Item[] }).output;
const lastBody = () => JSON.stringify(stage.upstream.requests.at(-1)?.body);

type ListedTask = { id: string; status: string; model: string; metadata: object; cost: { exact: string } };

async function lastTask(client: Client = stage.client): Promise<ListedTask | undefined> {
  const answer = await client.call('GET', '/v1/tasks?limit=1');
  return (JSON.parse(answer.text) as { data: ListedTask[] }).data[0];
}

const isPng = (base64: string) => Buffer.from(base64, 'base64').subarray(1, 4).toString() === 'PNG';

describe('an image', () => {
  test.each(['completions', 'messages', 'gemini', 'responses'] as const)(
    'by a model of an upstream of %s style is in the answer, and is a task of the account',
    async (style) => {
      script(style, false);
      const answer = await ask(models[style]);
      const [image, words] = outputOf(answer);
      expect(image).toMatchObject({ type: 'image_generation_call', status: 'completed', size: '512x512' });
      expect(image?.revised_prompt).toBe('a red bicycle');
      expect(isPng(image?.result ?? '')).toBe(true);
      expect(words).toMatchObject({ type: 'message', content: [{ text: 'Here it is.' }] });
      expect([answer.headers.get('x-tools-left-out'), answer.headers.get('x-cost-amount')]).toEqual([null, '0.000140']);
      const chat_call = answer.headers.get('x-request-id');
      const task = await lastTask();
      expect(task).toMatchObject({ status: 'succeeded', model: 'sandbox/image', metadata: { chat_call } });
      expect(Number(task?.cost.exact)).toBeGreaterThan(0);
      expect(lastBody()).toContain('the user sees it');
      expect(lastBody()).not.toContain(image?.result?.slice(0, 100));
    },
  );

  test('is streamed with the events of its item, which the official SDK reads', async () => {
    script('completions', true);
    const answer = await ask('acme/oai', { stream: true });
    for (const event of ['in_progress', 'generating', 'completed'])
      expect(answer.text).toContain(`event: response.image_generation_call.${event}\n`);
    script('completions', true);
    const client = new OpenAI({ baseURL: `${stage.test.url}/v1`, apiKey: stage.client.key });
    const body = { model: 'acme/oai', input: 'Draw', tools: [{ type: 'image_generation' as const }] };
    const { output } = await client.responses.stream(body).finalResponse();
    const [image] = output;
    expect(image).toMatchObject({ type: 'image_generation_call', status: 'completed' });
    expect(isPng(image?.type === 'image_generation_call' ? (image.result ?? '') : '')).toBe(true);
  });

  test('beyond the number of the operator is not made, and the model is told', async () => {
    script('messages', false, [image_call, image_call]);
    const output = outputOf(await ask('acme/ant'));
    expect(output.map(({ type, status }) => [type, status])).toEqual([
      ['image_generation_call', 'completed'],
      ['image_generation_call', 'failed'],
      ['message', 'completed'],
    ]);
    expect(lastBody()).toContain('no more images');
  });

  test('that the account cannot pay is an error for the model, and the call goes on', async () => {
    const poor = await stage.test.client({ credit: '1.000000' });
    await stage.test.configure(yamlOf(stage.upstream, more('', 'acme/dear')));
    script('completions', false);
    const answer = await ask('acme/oai', { client: poor });
    expect(outputOf(answer)).toMatchObject([{ status: 'failed', result: null }, { type: 'message' }]);
    expect(lastBody()).toContain('The image failed: The task needs a hold');
    expect(await lastTask(poor)).toBeUndefined();
  });

  test('whose run fails costs nothing, and the call goes on', async () => {
    script('completions', false, [{ ...image_call, input: { prompt: '[[fail]]' } }]);
    const answer = await ask('acme/oai');
    expect(outputOf(answer)).toMatchObject([{ status: 'failed' }, { type: 'message' }]);
    expect(await lastTask()).toMatchObject({ status: 'failed', cost: { exact: '0.000000' } });
  });

  test('that takes longer is left to its task, which goes on', async () => {
    await stage.test.configure(yamlOf(stage.upstream, more(', timeout: 1ms')));
    script('completions', false);
    expect(outputOf(await ask('acme/oai'))).toMatchObject([{ status: 'failed' }, { type: 'message' }]);
    expect(lastBody()).toMatch(/as the task task_/);
    await expect.poll(async () => (await lastTask())?.status).toBe('succeeded');
  });

  test('that finds no memory in its time is left to its task, and the call goes on', async () => {
    await stage.test.configure(yamlOf(stage.upstream, more(', timeout: 1ms')));
    const { app } = stage.test;
    const { untilFinal, limits } = app;
    vi.spyOn(app, 'untilFinal').mockImplementation((ref, _, signal) => untilFinal(ref, 120_000, signal));
    // As calls of the account have it that wait for more of it, each with its files.
    const files = limits.link_memory.tryAcquire(stage.client.account_id, limits.link_memory.bound);
    script('completions', false);
    expect(outputOf(await ask('acme/oai'))).toMatchObject([{ status: 'failed' }, { type: 'message' }]);
    expect(lastBody()).toMatch(/cannot be shown now: the user finds it as the task task_/);
    files?.release();
    expect(await lastTask()).toMatchObject({ status: 'succeeded' });
  });

  test('without words is not begun', async () => {
    const before = (await lastTask())?.id;
    script('completions', false, [{ name: 'make_image', input: {} }]);
    expect(outputOf(await ask('acme/oai'))).toMatchObject([{ status: 'failed' }, {}]);
    expect((await lastTask())?.id).toBe(before);
  });

  test('is forced where the caller’s choice forces it', async () => {
    script('completions', false);
    await ask('acme/oai', { more: { tool_choice: { type: 'image_generation' } } });
    expect(stage.upstream.requests.at(-2)?.body['tool_choice']).toMatchObject({ function: { name: 'make_image' } });
  });

  test('is not made again by another route where the first fails behind it, nor by a client that repeats', async () => {
    const before = await lastTask();
    stage.upstream.script('first', calls('completions', false, [image_call]), { status: 500, json: {} });
    stage.upstream.script('second', says('messages', false, 'Anew.'));
    const answer = await ask('acme/two');
    expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([502, 'false']);
    const task = await lastTask();
    expect(task?.id).not.toBe(before?.id);
    expect(task?.status).toBe('succeeded');
    const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
    await expect.poll(async () => (await stage.client.call('GET', path)).status).toBe(200);
    expect((await stage.client.call('GET', path)).text).toContain('"exact":"0.000000"');
  });

  test.each([
    [true, '0.000070'],
    [false, '0.000000'],
  ])(
    'that the service cannot begin ends the call with an error, and what was shown is charged: streamed %s, %s',
    async (stream, cost) => {
      const { windows } = stage.test.app;
      const take = windows.take.bind(windows);
      vi.spyOn(windows, 'take').mockImplementation((window, ...more_) =>
        window === 'generate' ? Promise.reject(new Error('the database is away')) : take(window, ...more_),
      );
      stage.upstream.script('gpt-x', calls('completions', stream, [image_call], 'One moment.'));
      const answer = await ask('acme/oai', { stream });
      expect(answer.text.includes('One moment.')).toBe(stream);
      expect(answer.text).toContain('could not finish this call');
      expect(answer.text).not.toContain('database');
      const retry = answer.headers.get('x-should-retry');
      expect([answer.status, retry]).toEqual(stream ? [200, null] : [500, 'false']);
      const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
      await expect.poll(async () => (await stage.client.call('GET', path)).status).toBe(200);
      const record = (await stage.client.call('GET', path)).text;
      expect(JSON.parse(record)).toMatchObject({ cost: { exact: cost }, attempts: [{ outcome: 'answered' }] });
    },
  );

  test('whose caller leaves goes on as its task, and is found there', async () => {
    const before = (await lastTask())?.id;
    script('completions', true, [{ ...image_call, input: { prompt: '[[delay 1s]]' } }]);
    const gone = new AbortController();
    const headers = { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'acme/oai', input: 'Draw', tools, stream: true });
    await fetch(`${stage.test.url}/v1/responses`, { method: 'POST', headers, body, signal: gone.signal });
    await expect.poll(async () => (await lastTask())?.id).not.toBe(before);
    gone.abort();
    await expect.poll(async () => (await lastTask())?.status).toBe('succeeded');
    // Until then it may ask its upstream once more, which answers the next test by a script.
    await expect.poll(() => stage.test.app.limits.chat_calls.state.in_use).toBe(0);
  });

  test('is not begun for a caller who left before the model called for it', async () => {
    const before = (await lastTask())?.id;
    const requests_before = stage.upstream.requests.length;
    const { promise: after, resolve: answer } = Promise.withResolvers<void>();
    stage.upstream.script('gpt-x', { ...calls('completions', false, [image_call]), after });
    const gone = new AbortController();
    const headers = { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ model: 'acme/oai', input: 'Draw', tools });
    const asking = fetch(`${stage.test.url}/v1/responses`, { method: 'POST', headers, body, signal: gone.signal });
    await expect.poll(() => stage.upstream.requests.length).toBe(requests_before + 1);
    gone.abort();
    await expect(asking).rejects.toThrow(/abort/);
    await lastTask(); // the service sees the end of that connection before it answers this one
    answer();
    await expect.poll(() => stage.test.app.limits.chat_calls.state.in_use).toBe(0);
    expect((await lastTask())?.id).toBe(before);
  });

  test('counts with the requests that make media', async () => {
    await stage.test.configure(
      yamlOf(stage.upstream, more()).replace('"generate_per_minute":100000', '"generate_per_minute":1'),
    );
    const client = await stage.test.client();
    script('completions', false);
    expect(outputOf(await ask('acme/oai', { client }))[0]).toMatchObject({ status: 'completed' });
    script('completions', false);
    expect(outputOf(await ask('acme/oai', { client }))[0]).toMatchObject({ status: 'failed' });
    expect(lastBody()).toContain('Too many images');
  });

  test('is left out where the key may not use the model of images', async () => {
    const client = await stage.test.client();
    const set = 'update api_keys set models = $2 where id = $1';
    await stage.test.app.db.query(set, [client.key_id, ['acme/oai']]);
    stage.test.app.authenticator.invalidate();
    stage.upstream.script('gpt-x', says('completions', false, 'No.'));
    const answer = await ask('acme/oai', { client });
    expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, 'image_generation']);
  });

  test.each([
    ['no model is configured', native],
    ['the model is none of images', `${native}\ntools: { image_generation: { model: acme/oai } }`],
  ])('is left out where %s', async (_, yaml) => {
    await stage.test.configure(yamlOf(stage.upstream, yaml));
    stage.upstream.script('gpt-x', says('completions', false, 'No.'));
    const answer = await ask('acme/oai');
    expect([answer.status, answer.headers.get('x-tools-left-out')]).toEqual([200, 'image_generation']);
  });
});
