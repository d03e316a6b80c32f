import Anthropic from 'anthropic-1';
import { GoogleGenAI } from '@google/genai';
import OpenAI from 'openai-7';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { startSearchApi, type SearchServer } from '../helpers/search-api.ts';
import { calls, says } from '../chat/search-streams.ts';
import { hello, setStage, type Stage } from '../chat/setup.ts';

/** The official SDKs read the searches that the service runs: each asks an upstream of another style. */

let stage: Stage;
let search: SearchServer;
const url = 'https://a.example/one';
const text = `As [One](${url}) says.`;

beforeAll(async () => {
  search = await startSearchApi();
  search.play(() => ({ results: [{ url, title: 'One', content: 'The first page.' }] }));
  const more = `
tools: { web_search: { api: searxng, base_url: "${search.url}", price: "0.005", allow_private: true } }
`;
  stage = await setStage({ more });
  stage.upstream.script('gpt-x', ({ body }) => {
    const stream = body['stream'] === true;
    const is_answered = JSON.stringify(body['messages']).includes('"role":"tool"');
    return is_answered
      ? says('completions', stream, text)
      : calls('completions', stream, [{ input: { query: 'q' } }], 'I look. ');
  });
  stage.upstream.script('claude-x', ({ body }) => {
    const stream = body['stream'] === true;
    const is_answered = JSON.stringify(body['messages']).includes('tool_result');
    return is_answered
      ? says('messages', stream, text)
      : calls('messages', stream, [{ input: { query: 'q' } }], 'I look. ');
  });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await stage.stop();
  await search.stop();
});

test('Anthropic’s SDK has the blocks of a search and its citations, whole and streamed', async () => {
  const client = new Anthropic({ baseURL: stage.test.url, apiKey: stage.client.key });
  const body = {
    model: 'acme/oai',
    max_tokens: 100,
    messages: [{ role: 'user' as const, content: 'Hello' }],
    tools: [{ type: 'web_search_20250305' as const, name: 'web_search' as const }],
  };
  for (const message of [await client.messages.create(body), await client.messages.stream(body).finalMessage()]) {
    expect(message.content).toMatchObject([
      { type: 'text', text: 'I look. ' },
      { type: 'server_tool_use', name: 'web_search', input: { query: 'q' } },
      { type: 'web_search_tool_result', content: [{ type: 'web_search_result', url, title: 'One' }] },
      { type: 'text', text, citations: [{ type: 'web_search_result_location', url }] },
    ]);
    expect(message.usage.server_tool_use).toMatchObject({ web_search_requests: 1 });
    const turns = [...body.messages, { role: 'assistant' as const, content: message.content }, ...body.messages];
    expect((await client.messages.create({ ...body, model: 'acme/ant', messages: turns })).stop_reason).toBe(
      'end_turn',
    );
  }
});

test('OpenAI’s SDK has the items of a search and its annotations, whole and streamed', async () => {
  const client = new OpenAI({ baseURL: `${stage.test.url}/v1`, apiKey: stage.client.key });
  const body = { model: 'acme/ant', input: 'Hello', tools: [{ type: 'web_search' as const }] };
  for (const answer of [await client.responses.create(body), await client.responses.stream(body).finalResponse()]) {
    expect(answer.output).toMatchObject([
      { type: 'message', content: [{ text: 'I look. ', annotations: [] }] },
      { type: 'web_search_call', status: 'completed', action: { query: 'q' } },
      { type: 'message', content: [{ text, annotations: [{ type: 'url_citation', url, start_index: 3 }] }] },
    ]);
    const next = { ...body, input: 'And?', previous_response_id: answer.id };
    expect((await client.responses.create(next)).status).toBe('completed');
  }
  const chat = { model: 'acme/ant', messages: [{ role: 'user' as const, content: 'Hello' }], web_search_options: {} };
  const whole = await client.chat.completions.create(chat);
  expect(whole.choices[0]?.message).toMatchObject({
    content: `I look. ${text}`,
    annotations: [{ type: 'url_citation', url_citation: { url, start_index: 11, end_index: 39 } }],
  });
  const streamed = await client.chat.completions.stream(chat).finalChatCompletion();
  expect(streamed.choices[0]?.message).toMatchObject({ content: `I look. ${text}` });
  expect(JSON.stringify(streamed.choices[0]?.message)).toContain('"start_index":11');
});

test('Google’s SDK has the grounding of a search, whole and streamed', async () => {
  const client = new GoogleGenAI({ apiKey: stage.client.key, httpOptions: { baseUrl: stage.test.url } });
  const request = { model: 'acme/ant', contents: 'Hello', config: { tools: [{ googleSearch: {} }] } };
  const whole = await client.models.generateContent(request);
  const grounding = { webSearchQueries: ['q'], groundingChunks: [{ web: { uri: url, title: 'One' } }] };
  expect(whole.candidates?.[0]?.groundingMetadata).toMatchObject(grounding);
  const pieces = [];
  for await (const piece of await client.models.generateContentStream(request)) pieces.push(piece);
  expect(pieces.map((piece) => piece.text ?? '').join('')).toBe(`I look. ${text}`);
  const last = pieces.at(-1)?.candidates?.[0]?.groundingMetadata;
  expect(last).toMatchObject({ ...grounding, groundingSupports: [{ segment: { text: `[One](${url})` } }] });
});

test('a caller who leaves while the service searches pays for what was done, and nothing goes on', async () => {
  search.play(() => undefined);
  const { length } = stage.upstream.requests;
  const searches = search.requests.length;
  const gone = new AbortController();
  const headers = { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ model: 'acme/oai', messages: hello, web_search_options: {}, stream: true });
  const call = fetch(`${stage.test.url}/v1/chat/completions`, { method: 'POST', headers, body, signal: gone.signal });
  const response = await call;
  const id = response.headers.get('x-request-id');
  await expect.poll(() => search.requests.length).toBe(searches + 1);
  gone.abort();
  await expect
    .poll(async () => (await stage.client.call('GET', `/v1/chat/${id}`)).status, { timeout: 120_000 })
    .toBe(200);
  const record = JSON.parse((await stage.client.call('GET', `/v1/chat/${id}`)).text) as {
    cost: object;
    status: number;
  };
  expect(record).toMatchObject({ status: 499, cost: { exact: '0.000070' } });
  expect(stage.upstream.requests.length - length).toBe(1);
});
