import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { completion, message, setStage, type Stage } from './setup.ts';
import { chunk, completionsStream, done, messagesStream } from './streams.ts';

/** Texts, as they were asked for before there was chat: over chat, and at an upstream that has the path itself. */
let stage: Stage;

beforeAll(async () => {
  const more = `  - id: acme/base
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: base-x, options: { text_completions: true } }]
`;
  stage = await setStage({ more });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

/** 10 tokens of input at 2.00 and 5 of output at 10.00 a million. */
const cost = '0.000070';
const prompt = 'Once upon a time';
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };

/** A body of an answer, as far as the tests look at it. */
type Answer = { choices: { index: number; text: string; finish_reason: string | null }[]; usage: object };

const ask = (body: object) => stage.client.call('POST', '/v1/completions', { model: 'acme/oai', prompt, ...body });
const lastRequest = () => stage.upstream.requests.at(-1);

function eventsOf(text: string): Answer[] {
  return [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data));
}

function choicesOf(text: string): Answer['choices'] {
  return (JSON.parse(text) as Answer).choices;
}

async function costOf(headers: Headers): Promise<string> {
  const record = () => stage.client.call('GET', `/v1/chat/${headers.get('x-request-id')}`);
  await expect.poll(async () => (await record()).status).toBe(200);
  return (await record()).json.cost.exact;
}

test('a prompt is a chat for an upstream of chat completions, and its answer a text at the same price', async () => {
  stage.upstream.script('gpt-x', { json: completion(' there was a fox.') });
  const { status, json, headers } = await ask({ max_tokens: 20, stop: 'END', temperature: 0.5, user: 'u' });
  const id = `cmpl-${headers.get('x-request-id')}`;
  const choice = { text: ' there was a fox.', index: 0, logprobs: null, finish_reason: 'stop' };
  expect([status, json]).toMatchObject([
    200,
    { id, object: 'text_completion', model: 'acme/oai', choices: [choice], usage },
  ]);
  expect(headers.get('x-cost-amount')).toBe(cost);
  expect(lastRequest()?.path).toBe('/v1/chat/completions');
  const messages = [
    { role: 'system', content: expect.stringContaining('continue texts') },
    { role: 'user', content: prompt },
  ];
  expect(lastRequest()?.body).toMatchObject({
    model: 'gpt-x',
    messages,
    max_tokens: 20,
    stop: ['END'],
    temperature: 0.5,
  });
});

test('echo repeats the prompt, a suffix makes a gap, n makes several texts', async () => {
  const first = completion('A');
  const choices = ['A', 'B'].map((content, index) => ({
    ...first.choices[0],
    index,
    message: { role: 'assistant', content },
  }));
  stage.upstream.script('gpt-x', { json: { ...first, choices } });
  const { text } = await ask({ echo: true, suffix: 'the end.', n: 2, best_of: 2 });
  expect(choicesOf(text).map((choice) => [choice.index, choice.text])).toEqual([
    [0, `${prompt}A`],
    [1, `${prompt}B`],
  ]);
  expect(lastRequest()?.body).toMatchObject({
    n: 2,
    messages: [
      { content: expect.stringContaining('gap') },
      { content: `<before>${prompt}</before>\n<after>the end.</after>` },
    ],
  });
});

test.each([
  ['acme/oai', 'gpt-x', completionsStream(['Good ', 'day.'], [10, 5])],
  ['acme/ant', 'claude-x', messagesStream(['Good ', 'day.'])],
])('a stream of %s is pieces of text, then the usage that was asked for', async (model, behind, stream) => {
  stage.upstream.script(behind, { stream });
  const { text, headers } = await ask({ model, stream: true, echo: true, stream_options: { include_usage: true } });
  const events = eventsOf(text);
  expect(events.flatMap(({ choices }) => choices.map((choice) => choice.text)).join('')).toBe(`${prompt}Good day.`);
  expect(events.at(-2)).toMatchObject({ object: 'text_completion', choices: [{ finish_reason: 'stop' }] });
  expect(events.at(-1)).toMatchObject({ choices: [], usage });
  expect(text.endsWith(done)).toBe(true);
  expect(await costOf(headers)).toBe(cost);
});

const natively = { id: 'cmpl-1', object: 'text_completion', created: 1, model: 'base-x' };

const likely = (token: string, logprob: number, others: object[] = []) => ({
  token,
  logprob,
  bytes: null,
  top_logprobs: others,
});

test('logprobs are those of a chat, in the lists of this style, of each text', async () => {
  const answer = completion('') as { choices: object[] };
  const contents = [
    [likely('😀 A', -0.1, [likely('😀 A', -0.1), likely('The', -2.5)]), likely(' fox', -0.2, [likely(' dog', -1)])],
    [likely('No', -3)],
  ];
  const choices = ['😀 A fox', 'No'].map((content, index) => ({
    index,
    message: { role: 'assistant', content },
    logprobs: { content: contents[index], refusal: null },
    finish_reason: 'stop',
  }));
  stage.upstream.script('gpt-x', { json: { ...answer, choices } });
  const { json } = await ask({ logprobs: 2, n: 2 });
  expect(lastRequest()?.body).toMatchObject({ logprobs: true, top_logprobs: 2, n: 2 });
  expect(json).toMatchObject({
    choices: [
      {
        text: '😀 A fox',
        logprobs: {
          tokens: ['😀 A', ' fox'],
          token_logprobs: [-0.1, -0.2],
          top_logprobs: [
            { '😀 A': -0.1, The: -2.5 },
            { ' fox': -0.2, ' dog': -1 },
          ],
          text_offset: [0, 3],
        },
      },
      { text: 'No', logprobs: { tokens: ['No'], text_offset: [0] } },
    ],
  });
  await ask({ logprobs: 0 });
  expect(lastRequest()?.body).toMatchObject({ logprobs: true });
  expect(lastRequest()?.body).not.toHaveProperty('top_logprobs');
  expect(choicesOf((await ask({})).text)).toMatchObject([{ logprobs: null }, { logprobs: null }]); // unasked
  expect(lastRequest()?.body).not.toHaveProperty('logprobs');
});

test.each<[string, unknown]>([
  ['null', null],
  ['a text', 'none'],
  ['no list', { content: 5 }],
  ['tokens that are none', { content: [null, {}, { token: 5, logprob: 1 }, { token: 'a' }] }],
])('logprobs that the upstream does not report are null: %s', async (_, logprobs) => {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'Hi' }, logprobs, finish_reason: 'stop' }];
  stage.upstream.script('gpt-x', { json: { ...completion(''), choices } });
  expect(choicesOf((await ask({ logprobs: 1 })).text)).toMatchObject([{ text: 'Hi', logprobs: null }]);
});

test('logprobs of a stream stand with their texts, and say where these are', async () => {
  const piece = (content: string, tokens: object[]) =>
    `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content }, logprobs: { content: tokens } }] })}\n\n`;
  stage.upstream.script('gpt-x', {
    stream: [
      piece('One', [likely('O', -1), likely('ne', -2)]),
      piece('', [likely(' t', -3)]),
      piece(' two', [likely('wo', -4, [likely('en', -5)])]),
      chunk({}, {}, 'stop'),
      done,
    ],
  });
  const { text } = await ask({ logprobs: 1, stream: true });
  expect(eventsOf(text).flatMap(({ choices }) => choices)).toMatchObject([
    { text: 'One', logprobs: { tokens: ['O', 'ne'], token_logprobs: [-1, -2], text_offset: [0, 1] } },
    {
      text: ' two',
      logprobs: { tokens: [' t', 'wo'], top_logprobs: [{ ' t': -3 }, { wo: -4, en: -5 }], text_offset: [3, 5] },
    },
    { text: '', logprobs: null, finish_reason: 'stop' },
  ]);
});

test('an upstream that has the path gets the body as it is, several prompts and tokens too', async () => {
  const choices = [0, 1].map((index) => ({ index, text: 'x', logprobs: { tokens: ['x'] }, finish_reason: 'length' }));
  stage.upstream.script('base-x', { json: { ...natively, choices, usage } });
  const body = { model: 'acme/base', prompt: [[1, 2], [3]], logprobs: 1, max_tokens: 1, unheard_of: 1 };
  const { json, headers } = await ask(body);
  expect(json).toEqual({ ...natively, id: `cmpl-${headers.get('x-request-id')}`, model: 'acme/base', choices, usage });
  expect(headers.get('x-cost-amount')).toBe(cost);
  expect(headers.get('x-ignored-fields')).toBe('unheard_of');
  expect(lastRequest()?.path).toBe('/v1/completions');
  expect(lastRequest()?.body).toEqual({ model: 'base-x', prompt: [[1, 2], [3]], logprobs: 1, max_tokens: 1 });
});

test('its callers who leave pay for what it wrote, not for the prompt that it repeats', async () => {
  const pieces = [prompt, 'x'.repeat(40)].map((text) => ({
    ...natively,
    choices: [{ index: 0, text, finish_reason: null }],
  }));
  stage.upstream.script('base-x', { stream: pieces.map((piece) => `data: ${JSON.stringify(piece)}\n\n`), then: 'cut' });
  const { text, headers } = await ask({ model: 'acme/base', echo: true, stream: true });
  expect(
    eventsOf(text)
      .slice(0, 2)
      .flatMap(({ choices }) => choices.map((choice) => choice.text)),
  ).toEqual([prompt, 'x'.repeat(40)]);
  const { json } = await stage.client.call('GET', `/v1/chat/${headers.get('x-request-id')}`);
  expect(json).toMatchObject({ usage: { output_tokens: 10 } });
});

test('a chat of a model whose upstream has the path is still a chat', async () => {
  stage.upstream.script('base-x', { json: completion('Hi') });
  const { status } = await stage.client.call('POST', '/v1/chat/completions', {
    model: 'acme/base',
    messages: [{ role: 'user', content: 'Hello' }],
  });
  expect([status, lastRequest()?.path]).toEqual([200, '/v1/chat/completions']);
});

test.each<[string, object]>([
  ['prompt', { prompt: ['a', 'b'] }],
  ['prompt', { prompt: [1, 2, 3] }],
  ['logprobs', { model: 'acme/ant', logprobs: 2 }],
  ['echo', { echo: true, logprobs: 2 }],
  ['best_of', { best_of: 3 }],
  ['n', { n: 2, stream: true }],
])('what a chat has no place for is refused by name: %s', async (param, body) => {
  const { status, json } = await ask(body);
  expect([status, json.error]).toMatchObject([400, { param, code: 'unsupported_field' }]);
});

test.each<[string, object]>([
  ['prompt', { prompt: null }],
  ['prompt', { prompt: [] }],
  ['prompt', { prompt: ' ' }],
  ['prompt[1]', { prompt: ['a', 1] }],
  ['prompt[0][1]', { prompt: [[1, -1]] }],
  ['best_of', { n: 2, best_of: 1 }],
  ['n', { n: 1000 }],
  ['max_tokens', { max_tokens: 0 }],
  ['logprobs', { logprobs: 21 }],
  ['logprobs', { logprobs: -1 }],
  ['stream_options', { stream_options: {} }],
])('a mistake is named: %s in %j', async (param, body) => {
  const { status, json } = await ask(body);
  expect([status, json.error.param]).toEqual([400, param]);
});

test('a model of the messages style writes one text, and says so of several', async () => {
  stage.upstream.script('claude-x', { json: message(' there was.') });
  expect(choicesOf((await ask({ model: 'acme/ant' })).text)).toMatchObject([{ text: ' there was.' }]);
  expect((await ask({ model: 'acme/ant', n: 2 })).json.error).toMatchObject({ param: 'n', code: 'unsupported_field' });
});
