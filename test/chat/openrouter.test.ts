import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, type Answered } from '../helpers/app.ts';
import { response, responsesStream, messageItem } from './responses-streams.ts';
import { completion, generated, hello, message, setStage, type Stage } from './setup.ts';
import { chunk, done, usageChunk } from './streams.ts';

/** OpenRouter's dialect of chat completions, with an upstream of each style. */

let stage: Stage;
const price = `
    price:
      - { unit: input_token, per: 1000000, amount: "2.00" }
      - { unit: output_token, per: 1000000, amount: "10.00" }`;
const more = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000${price}
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: always } }]
  - id: acme/router
    kind: chat
    max_output_tokens: 4000${price}
    routes: [{ provider: oai, upstream_model: router-x, options: { reasoning_object: true } }]
  - id: acme/thinker
    kind: chat
    max_output_tokens: 40000${price}
    routes: [{ provider: ant, upstream_model: thinker-x, options: { thinking: budget } }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const ask = (model: string, fields: object, headers: Record<string, string> = {}): Promise<Answered> =>
  stage.client.call('POST', '/v1/chat/completions', { model, messages: hello, ...fields }, headers);
type Words = { usage: { cost: number }; choices: { message: Record<string, unknown> }[] };
const wordsOf = (answer: Answered) => JSON.parse(answer.text) as Words;
const lastRequest = () => stage.upstream.requests.at(-1);

function scriptAll(): void {
  for (const model of ['gpt-x', 'router-x']) stage.upstream.script(model, { json: completion('Hi') });
  for (const model of ['claude-x', 'thinker-x']) stage.upstream.script(model, { json: message('Hi') });
  stage.upstream.script('gemini-x', { json: generated([{ text: 'Hi' }]) });
  stage.upstream.script('native-x', { json: response([messageItem('Hi')]) });
}

const styles = ['acme/oai', 'acme/ant', 'acme/gem', 'acme/native'];

describe('reasoning', () => {
  test.each<[model: string, reasoning: object, sent: object]>([
    ['acme/oai', { effort: 'high' }, { reasoning_effort: 'high' }],
    ['acme/oai', { max_tokens: 2000 }, { reasoning_effort: 'low' }],
    ['acme/oai', { enabled: true }, { reasoning_effort: 'medium' }],
    ['acme/router', { effort: 'high', exclude: true }, { reasoning: { effort: 'high', exclude: true } }],
    ['acme/ant', { effort: 'high' }, { thinking: { type: 'adaptive' }, output_config: { effort: 'high' } }],
    ['acme/thinker', { max_tokens: 2000 }, { thinking: { type: 'enabled', budget_tokens: 2000 } }],
    ['acme/ant', { effort: 'none' }, { thinking: { type: 'disabled' } }],
    ['acme/ant', { enabled: false }, { thinking: { type: 'disabled' } }],
    ['acme/gem', { effort: 'low' }, { generationConfig: { thinkingConfig: { thinkingLevel: 'LOW' } } }],
    ['acme/native', { effort: 'minimal' }, { reasoning: { effort: 'minimal' } }],
  ])('of a request to %s is sent in the words of its style: %j', async (model, reasoning, sent) => {
    scriptAll();
    expect((await ask(model, { reasoning, max_tokens: 4000 })).status).toBe(200);
    expect(lastRequest()?.body).toMatchObject(sent);
    expect('reasoning' in (lastRequest()?.body ?? {})).toBe('reasoning' in sent);
  });

  test.each(styles)('that says nothing leaves it to the model: %s', async (model) => {
    scriptAll();
    for (const fields of [{ reasoning: { exclude: true } }, { include_reasoning: true }, {}]) {
      const answer = await ask(model, fields);
      expect([answer.status, answer.headers.get('x-ignored-fields')]).toEqual([200, null]);
      for (const field of ['thinking', 'reasoning_effort', 'include_reasoning', 'output_config'])
        expect(lastRequest()?.body).not.toHaveProperty(field);
    }
  });

  test.each(styles)('with an effort that nobody knows is a mistake, and costs nothing: %s', async (model) => {
    scriptAll();
    const { length } = stage.upstream.requests;
    const answer = await ask(model, { reasoning: { effort: 'extreme' } });
    expect([answer.status, answer.json.error.param]).toEqual([400, 'reasoning.effort']);
    expect(stage.upstream.requests).toHaveLength(length);
  });

  const thoughts = {
    'gpt-x': {
      ...completion('Hi'),
      choices: [
        { index: 0, message: { role: 'assistant', content: 'Hi', reasoning_content: 'Hm' }, finish_reason: 'stop' },
      ],
    },
    'claude-x': {
      ...message('Hi'),
      content: [
        { type: 'thinking', thinking: 'Hm', signature: 's' },
        { type: 'text', text: 'Hi' },
      ],
    },
    'gemini-x': generated([{ text: 'Hm', thought: true }, { text: 'Hi' }]),
    'native-x': response([
      { type: 'reasoning', id: 'rs', summary: [{ type: 'summary_text', text: 'Hm' }] },
      messageItem('Hi'),
    ]),
  };

  test.each(styles)('in an answer of %s is shown as OpenRouter shows it, or not at all', async (model) => {
    for (const [name, json] of Object.entries(thoughts)) stage.upstream.script(name, { json });
    const shown = async (fields: object) => wordsOf(await ask(model, fields)).choices[0]?.message ?? {};
    expect(await shown({ reasoning: { effort: 'low' } })).toMatchObject({ content: 'Hi', reasoning: 'Hm' });
    expect(await shown({ include_reasoning: true })).toMatchObject({ content: 'Hi', reasoning: 'Hm' });
    for (const fields of [{ reasoning: { effort: 'low', exclude: true } }, { include_reasoning: false }]) {
      const { content, reasoning, reasoning_content, reasoning_details } = await shown(fields);
      expect([content, reasoning, reasoning_content, reasoning_details]).toEqual([
        'Hi',
        undefined,
        undefined,
        undefined,
      ]);
    }
    expect(await shown({})).not.toHaveProperty('reasoning');
  });

  test('in a stream of the same style is shown in both fields, or left out with its pieces', async () => {
    const stream = [
      chunk({ role: 'assistant', content: '', reasoning_content: 'Hm' }),
      chunk({ content: 'Hi' }),
      chunk({}, {}, 'stop'),
      usageChunk(10, 5),
      done,
    ];
    stage.upstream.script('gpt-x', { stream });
    const shown = await ask('acme/oai', { reasoning: { effort: 'low' }, stream: true });
    expect(shown.text).toContain('"reasoning_content":"Hm","reasoning":"Hm"');
    const hidden = await ask('acme/oai', { reasoning: { exclude: true }, stream: true });
    expect(hidden.text).not.toContain('Hm');
    expect(hidden.text).toContain('"content":"Hi"');
    expect(hidden.text.endsWith(done)).toBe(true);
  });
});

describe('usage with its cost', () => {
  const include = { usage: { include: true } };

  test.each(styles)('is in an answer of %s, and is what the account is charged', async (model) => {
    scriptAll();
    const answer = await ask(model, include);
    const { usage } = wordsOf(answer);
    expect(usage).toMatchObject({ is_byok: false, cost_details: { upstream_inference_cost: null } });
    expect(usage.cost.toFixed(6)).toBe(answer.headers.get('x-cost-amount'));
    expect(usage.cost).toBeGreaterThan(0);
    expect(answer.headers.get('x-ignored-fields')).toBeNull();
    expect(lastRequest()?.body).not.toHaveProperty('usage');
    expect(wordsOf(await ask(model, {})).usage).not.toHaveProperty('cost');
  });

  test.each<[string, string, string[]]>([
    ['acme/oai', 'gpt-x', [chunk({ content: 'Hi' }), chunk({}, {}, 'stop'), usageChunk(10, 5), done]],
    ['acme/oai', 'gpt-x', [chunk({ content: 'Hi' }), chunk({}, {}, 'stop'), done]],
    ['acme/native', 'native-x', responsesStream(['Hi'])],
  ])('ends a stream of %s, asked for or not by stream_options', async (model, upstream, stream) => {
    stage.upstream.script(upstream, { stream });
    const answer = await ask(model, { ...include, stream: true });
    const usages = answer.text.match(/"usage":\{.*\}/g) ?? [];
    expect(usages).toHaveLength(1);
    const cost = Number(/"cost":([\d.e-]+)/.exec(usages[0] ?? '')?.[1]);
    const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
    await expect.poll(async () => (await stage.client.call('GET', path)).status).toBe(200);
    expect(cost.toFixed(6)).toBe((await stage.client.call('GET', path)).json.cost.exact);
  });

  test('never is the cost that an upstream reports', async () => {
    const reported = {
      prompt_tokens: 10,
      completion_tokens: 5,
      total_tokens: 15,
      cost: 0.95,
      cost_details: { upstream_inference_cost: 19 },
    };
    stage.upstream.script('gpt-x', { json: completion('Hi', reported) });
    const answer = await ask('acme/oai', {});
    expect(answer.text).not.toMatch(/0\.95|upstream_inference_cost/);
    expect(wordsOf(await ask('acme/oai', include)).usage).toMatchObject({ cost: 0.00007 });
    const last = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [], usage: reported })}\n\n`;
    stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Hi' }), chunk({}, {}, 'stop'), last, done] });
    const stream = await ask('acme/oai', { stream: true, stream_options: { include_usage: true } });
    expect(stream.text).toContain('"prompt_tokens":10');
    expect(stream.text).not.toMatch(/0\.95|upstream_inference_cost/);
    const native = { input_tokens: 10, output_tokens: 5, total_tokens: 15, cost_in_usd_ticks: 95_000 };
    stage.upstream.script('native-x', { json: response([messageItem('Hi')], { usage: native }) });
    const same = await stage.client.call('POST', '/v1/responses', { model: 'acme/native', input: 'Hi' });
    expect(same.text).not.toContain('95000');
    stage.upstream.script('native-x', { stream: responsesStream(['Hi'], { usage: native }) });
    const streamed = await stage.client.call('POST', '/v1/responses', {
      model: 'acme/native',
      input: 'Hi',
      stream: true,
    });
    expect(streamed.text).toContain('response.completed');
    expect(streamed.text).not.toContain('95000');
  });
});

describe('wishes of OpenRouter', () => {
  const wishes = {
    route: 'fallback',
    plugins: [{ id: 'web' }],
    transforms: ['middle-out'],
    session_id: 'session-1',
  };
  const sampling = { top_a: 0.5, min_p: 0.1, repetition_penalty: 1.1 };
  const titles = { 'HTTP-Referer': 'https://app.example', 'X-Title': 'App' };

  test.each(styles)('are left out for %s, and the header names them', async (model) => {
    scriptAll();
    const answer = await ask(model, { ...wishes, ...sampling }, titles);
    expect([answer.status, answer.headers.get('x-ignored-fields')]).toEqual([200, Object.keys(wishes).join(', ')]);
    const request = lastRequest();
    for (const field of Object.keys(wishes)) expect(request?.body).not.toHaveProperty(field);
    for (const name of ['http-referer', 'x-title']) expect(request?.headers).not.toHaveProperty(name);
    const fields = Object.keys(sampling).filter((field) => field in (request?.body ?? {}));
    expect(fields).toEqual(model === 'acme/oai' ? Object.keys(sampling) : []);
  });

  test('for several models begin with the first where none is named alone', async () => {
    scriptAll();
    const answer = await ask('acme/oai', { model: undefined, models: ['acme/ant', 'acme/oai'] });
    expect([answer.status, answer.json.model]).toEqual([200, 'acme/ant']);
    const nothing = await ask('acme/oai', { model: undefined, models: [] });
    expect([nothing.status, nothing.json.error.param]).toEqual([400, 'model']);
  });

  test('for a user go on under a name that belongs to the account', async () => {
    scriptAll();
    await ask('acme/oai', { user: 'jane' });
    expect(lastRequest()?.body['user']).toMatch(/.+/);
    expect(lastRequest()?.body['user']).not.toBe('jane');
  });
});
