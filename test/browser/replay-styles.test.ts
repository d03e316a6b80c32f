import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { messagesOf, settingsOf } from '../../src/contents/messages.ts';
import type { ChatContentView, ChatView } from '../../src/dashboard/views/activity.ts';
import { ownerOfNew } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { contextOf, signIn, watchedPage } from '../helpers/dashboard.ts';

/** Stored calls of all styles in the playground: the body that it sends, and what it says that it cannot send. */

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let context: BrowserContext;
let page: Page;
let problems: string[];

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  chromium = await launchBrowser();
  const owner = await ownerOfNew(service);
  context = await contextOf(chromium.browser);
  ({ page, problems } = await watchedPage(context, service.url));
  await signIn(page, service.app, owner.user_id);
});

afterAll(async () => {
  await chromium?.close();
  await service?.stop();
});

const limit = { timeout: 120_000 };

const call: ChatView = {
  id: 'req_1',
  model: 'sandbox/chat',
  style: 'completions',
  stream: false,
  status: 200,
  error_type: null,
  error_message: null,
  finish: 'length',
  input_tokens: 3,
  cached_input_tokens: 0,
  output_tokens: 4,
  first_content_ms: null,
  total_ms: 20,
  cost: { amount: '0.10', exact: '0.100000', currency: 'USD' },
  key: { id: 'key_1', name: 'Logs' },
  created_at: '2026-11-29T00:00:00.000Z',
  cache_write_tokens: 0,
  reasoning_tokens: 0,
  counted_here: false,
  user: null,
  tags: [],
  metadata: {},
  search_units: null,
  has_content: true,
  feedback: [],
  charge: null,
  attempts: [],
};

type Stored = { style?: string; request: JsonObject; answers?: JsonObject[]; more?: Partial<ChatContentView> };

/** Opens the playground with such a content in the place of a stored one. Returns its sentences. */
async function opened(stored: Stored, record: Partial<ChatView> = {}): Promise<string[]> {
  const { style = 'completions', request, answers = [{ role: 'assistant', content: 'Yes' }], more } = stored;
  const content: ChatContentView = {
    model: 'sandbox/chat',
    style,
    messages: messagesOf(request),
    answers,
    settings: settingsOf(request),
    is_cut: false,
    redacted: {},
    expires_at: '2026-12-29T00:00:00.000Z',
    ...more,
  };
  await context.unrouteAll();
  await context.route('**/chats/req_1', (route) => route.fulfill({ json: { ...call, ...record } }));
  await context.route('**/chats/req_1/content', (route) => route.fulfill({ json: content }));
  await page.goto(`${service.url}/playground?call=req_1`);
  await page.getByRole('note').filter({ hasText: 'From a stored call' }).waitFor();
  return page.getByRole('list', { name: 'Differences from the call' }).getByRole('listitem').allInnerTexts();
}

const log = () => page.getByRole('log', { name: 'Conversation with Sandbox chat' });

/** The body that asks for the last answer again, without what asks for a stream. */
async function sent(button = 'Regenerate the answer'): Promise<unknown> {
  await context.route(/\/chat\/(completions|messages)$/, (route) =>
    route.fulfill({ status: 400, json: { error: { type: 'invalid_request', message: 'Enough' } } }),
  );
  const [request] = await Promise.all([
    page.waitForRequest((each) => /\/chat\/(completions|messages)$/.test(each.url())),
    log().getByRole('button', { name: button }).last().click(),
  ]);
  const { stream, stream_options: _, ...body } = request.postDataJSON() as Record<string, unknown>;
  expect(stream).toBe(true);
  return body;
}

const hello = [{ role: 'user', content: 'Hello' }];

describe('a stored call is sent again', () => {
  it('as it was, in the style of chat completions, with tools, their results and linked images', limit, async () => {
    const request = {
      model: 'sandbox/chat',
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url: 'https://example.com/a.png', detail: 'low' } },
            { type: 'text', text: 'Look' },
          ],
        },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"at":1}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: 'A bay' },
        { role: 'assistant', content: 'A bay.' },
        { role: 'user', content: 'Where?' },
      ],
      temperature: 0.5,
      max_tokens: 77,
      reasoning_effort: 'low',
      tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }],
      tool_choice: 'auto',
    };
    expect(await opened({ request })).toEqual([]);
    expect(await sent()).toEqual(request);
  });

  it('as it was, in the messages style, with several results of tools in one message', limit, async () => {
    const request = {
      model: 'sandbox/chat',
      max_tokens: 50,
      system: 'Be brief.',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } },
            { type: 'text', text: 'Look' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 } },
            { type: 'tool_use', id: 'toolu_2', name: 'look', input: { at: 2 } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_1', content: 'A bay' },
            { type: 'tool_result', tool_use_id: 'toolu_2', content: 'A hill' },
          ],
        },
      ],
      thinking: { type: 'enabled', budget_tokens: 1_024 },
      tools: [
        { name: 'look', description: 'Looks', input_schema: { type: 'object' } },
        { type: 'web_search_20250305', name: 'web_search', max_uses: 1 },
      ],
    };
    expect(await opened({ style: 'messages', request })).toEqual([]);
    expect(await sent()).toEqual(request);
  });

  it(
    'in the style of chat completions if it was in the responses style: items of one answer are one message',
    limit,
    async () => {
      const request = {
        model: 'sandbox/chat',
        instructions: 'Be brief.',
        input: [
          { role: 'user', content: [{ type: 'input_text', text: 'Look' }] },
          { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
          { type: 'function_call', call_id: 'call_2', name: 'look', arguments: '{}' },
          { type: 'function_call_output', call_id: 'call_1', output: 'A bay' },
          { type: 'function_call_output', call_id: 'call_2', output: 'A hill' },
          { type: 'web_search_call', id: 'ws_1', status: 'completed' },
        ],
        max_output_tokens: 60,
        reasoning: { effort: 'high', summary: 'auto' },
        text: { format: { type: 'json_schema', name: 'place', schema: { type: 'object' } } },
        tools: [
          { type: 'function', name: 'look', parameters: { type: 'object' }, strict: true },
          { type: 'web_search' },
        ],
        tool_choice: { type: 'function', name: 'look' },
        store: false,
      };
      const notes = await opened({ style: 'responses', request });
      expect(await sent()).toEqual({
        model: 'sandbox/chat',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'Look' },
          {
            role: 'assistant',
            content: null,
            tool_calls: ['call_1', 'call_2'].map((id) => ({
              id,
              type: 'function',
              function: { name: 'look', arguments: '{}' },
            })),
          },
          { role: 'tool', tool_call_id: 'call_1', content: 'A bay' },
          { role: 'tool', tool_call_id: 'call_2', content: 'A hill' },
        ],
        max_tokens: 60,
        reasoning_effort: 'high',
        response_format: { type: 'json_schema', json_schema: { name: 'place', schema: { type: 'object' } } },
        tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' }, strict: true } }],
        tool_choice: { type: 'function', function: { name: 'look' } },
      });
      expect(notes).toEqual([
        'Left out, since the playground cannot send it: items of the type web_search_call, store, reasoning.summary, the tool web_search.',
      ]);
    },
  );

  it('in the style of chat completions if it was in Gemini’s, with its schema in small letters', limit, async () => {
    const request = {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      contents: [
        { role: 'user', parts: [{ fileData: { mimeType: 'image/png', fileUri: 'https://example.com/a.png' } }] },
      ],
      generationConfig: {
        maxOutputTokens: 9,
        topP: 0.5,
        thinkingConfig: { thinkingLevel: 'LOW', includeThoughts: true },
      },
      tools: [
        {
          functionDeclarations: [
            { name: 'look', parameters: { type: 'OBJECT', properties: { at: { type: 'NUMBER' } } } },
          ],
        },
        { googleSearch: {} },
      ],
    };
    const notes = await opened({ style: 'gemini', request });
    expect(await sent()).toEqual({
      model: 'sandbox/chat',
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] },
      ],
      max_tokens: 9,
      top_p: 0.5,
      reasoning_effort: 'low',
      tools: [
        {
          type: 'function',
          function: { name: 'look', parameters: { type: 'object', properties: { at: { type: 'number' } } } },
        },
      ],
    });
    expect(notes).toEqual([
      'Left out, since the playground cannot send it: thinkingConfig.includeThoughts, the tool googleSearch.',
    ]);
  });

  it('without the choice of a tool that is left out', limit, async () => {
    const request = { input: 'Hello', tools: [{ type: 'web_search' }], tool_choice: 'required' };
    await opened({ style: 'responses', request });
    expect(await sent()).toEqual({ model: 'sandbox/chat', messages: hello });
  });

  it('with its prompt as a message if it was in the style of texts', limit, async () => {
    const notes = await opened({ style: 'texts', request: { prompt: 'Hello', max_tokens: 5, echo: true } });
    expect(await sent()).toEqual({ model: 'sandbox/chat', messages: hello, max_tokens: 5 });
    expect(notes).toEqual(['Left out, since the playground cannot send it: echo.']);
  });
});

describe('the answer of a stored call', () => {
  it('is the last version, with what its record says about it', limit, async () => {
    expect(await opened({ request: { messages: hello } })).toEqual([]);
    await log().getByText('Yes', { exact: true }).waitFor();
    await log().getByText('It was cut at the limit of its tokens.').waitFor();
    await log()
      .getByText(/^3 in, 4 out · \$0\.10/)
      .waitFor();
  });

  it('is a version for each where several were asked for, and the playground asks for one', limit, async () => {
    const answers = ['One', 'Two'].map((content) => ({ role: 'assistant', content }));
    const notes = await opened({ request: { messages: hello, n: 2 }, answers });
    expect(notes).toEqual(['Left out, since the playground cannot send it: n.']);
    await log().getByText('One', { exact: true }).waitFor();
    await log().getByRole('button', { name: 'Next version' }).click();
    await log().getByText('Two', { exact: true }).waitFor();
    await log().getByRole('img', { name: 'Version 2 of 2' }).waitFor();
    expect(await sent()).toEqual({ model: 'sandbox/chat', messages: hello });
    await log().getByRole('img', { name: 'Version 3 of 3' }).waitFor();
  });

  it('that came before an error has the error', limit, async () => {
    const answers = [{ role: 'assistant', content: 'Ye' }];
    const failed = { status: 502, error_type: 'upstream_error' };
    expect(await opened({ request: { messages: hello }, answers }, failed)).toEqual([]);
    await log().getByText('Ye', { exact: true }).waitFor();
    await log().getByText('The call failed: upstream_error.').waitFor();
  });

  it('that was not stored can be asked for', limit, async () => {
    const notes = await opened({ request: { messages: hello }, answers: [] });
    expect(notes).toEqual(['No answer of this call is stored.']);
    expect(await sent('Ask for an answer')).toEqual({ model: 'sandbox/chat', messages: hello });
  });
});

describe('a sentence each names', () => {
  it('what is missing: replaced words, a cut, files, parts, thinking, labels', limit, async () => {
    const image = { type: 'image_url', image_url: { url: '[image/png of 3300 bytes, not logged]' } };
    const request = {
      messages: [
        {
          role: 'user',
          content: [image, { type: 'file', file: { file_id: 'file_1' } }, { type: 'text', text: 'Look' }],
        },
        { role: 'assistant', content: 'Hi', reasoning_content: 'Hm' },
        { role: 'developer', content: 'Now in French' },
        { role: 'user', content: 'Go on' },
      ],
      user: 'u1',
      metadata: { a: 'b' },
    };
    const more = { is_cut: true, redacted: { email: 2, pattern: 1 } };
    expect(await opened({ request, more })).toEqual([
      'Words in brackets stand for what was replaced before it was stored: email, pattern.',
      'Something was too long to be stored whole: a note says where it was cut, and is sent in the place of the rest.',
      'Files are not stored: a note stands in the place of each. Attach them to a new message to send them.',
      'System messages from between the others are in the system prompt now.',
      'The thinking of earlier answers is shown, and not sent again.',
      'Left out, since the playground cannot send it: parts of the type file.',
      'Left out, so that runs here do not count for somebody else: user, metadata.',
    ]);
    expect(await sent()).toEqual({
      model: 'sandbox/chat',
      messages: [
        { role: 'system', content: 'Now in French' },
        { role: 'user', content: '[image/png of 3300 bytes, not logged]\nLook' },
        { role: 'assistant', content: 'Hi' },
        { role: 'user', content: 'Go on' },
      ],
    });
  });

  it('calls that cannot be sent, and results without their calls', limit, async () => {
    const custom = { id: 'call_2', type: 'custom', custom: { name: 'run', input: 'x' } };
    const messages = [
      ...hello,
      { role: 'tool', tool_call_id: 'call_1', content: 'x' },
      { role: 'function', name: 'look', content: 'x' },
    ];
    const answers = [{ role: 'assistant', content: 'Now', tool_calls: [custom] }];
    const left_out = 'results of calls that are not here, messages of the role function, calls of custom tools';
    expect(await opened({ request: { messages }, answers })).toEqual([
      `Left out, since the playground cannot send it: ${left_out}.`,
    ]);
    expect(await sent()).toEqual({ model: 'sandbox/chat', messages: hello });
  });

  it('a request that was too long to be stored', limit, async () => {
    expect(await opened({ request: {}, more: { is_cut: true } })).toEqual([
      'The request was too long to be stored: its messages are not here.',
    ]);
  });
});

it('the browser console has no errors after all that', () => {
  expect(problems).toEqual([]);
});
