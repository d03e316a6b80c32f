import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import { inputSize } from '../../src/styles/input-size.ts';
import { callerNamed, readAsk, type CallerStyle } from './by-name.ts';

const messages = [{ role: 'user', content: 'Hi' }];
const chat = { model: 'm', messages };
const messages_body = { ...chat, max_tokens: 100 };

function refusal(read: () => unknown): { param: string | undefined; message: string; kind: string } {
  try {
    read();
  } catch (error) {
    if (error instanceof ApiError) return { param: error.extras.param, message: error.message, kind: error.kind };
    throw error;
  }
  throw new Error('it was accepted');
}

describe('a chat request', () => {
  it('is read from both styles', () => {
    const body = { ...chat, stream: true, stream_options: { include_usage: true }, n: 2, max_tokens: 7 };
    expect(readAsk('completions', body)).toEqual({
      style: callerNamed('completions'),
      body,
      model: 'm',
      stream: true,
      wants_usage: true,
      max_tokens: 7,
      thinking_budget: 0,
      n: 2,
    });
    expect(readAsk('messages', messages_body)).toMatchObject({ stream: false, max_tokens: 100, n: 1 });
  });

  it.each<[JsonObject, number]>([
    [{ thinking: { type: 'enabled', budget_tokens: 2_000 } }, 2_000],
    [{ thinking: { type: 'disabled', budget_tokens: 2_000 } }, 0],
    [{ thinking: { type: 'adaptive' } }, 0],
    [{ reasoning: { max_tokens: 3_000 } }, 3_000],
    [{ reasoning: { max_tokens: 3_000, enabled: false } }, 0],
    [{ reasoning: { max_tokens: 'many' }, thinking: null }, 0],
  ])('states how many tokens the model is to think with: %j', (fields, budget) => {
    expect(readAsk('completions', { ...chat, ...fields }).thinking_budget).toBe(budget);
    expect(readAsk('messages', { ...messages_body, ...fields }).thinking_budget).toBe(budget);
  });

  it('may have null for an absent field, as SDKs in Python send it', () => {
    const nothing = { stream: null, stream_options: null, n: null, max_tokens: null, max_completion_tokens: null };
    expect(readAsk('completions', { ...chat, ...nothing })).toMatchObject({
      stream: false,
      wants_usage: false,
      max_tokens: undefined,
      n: 1,
    });
  });

  it('is limited by the newer of two names of a limit', () => {
    expect(readAsk('completions', { ...chat, max_tokens: 5, max_completion_tokens: 9 }).max_tokens).toBe(9);
  });

  it('needs no max_tokens to count tokens, and 0 warms a cache', () => {
    expect(readAsk('messages', chat, 'count').max_tokens).toBeUndefined();
    expect(readAsk('messages', { ...chat, max_tokens: 0 }).max_tokens).toBe(0);
  });

  it.each<[CallerStyle, unknown, string | undefined]>([
    ['completions', null, undefined],
    ['completions', [], undefined],
    ['messages', 'text', undefined],
    ['completions', { messages }, 'model'],
    ['completions', { messages, model: null }, 'model'],
    ['messages', { messages, model: 7 }, 'model'],
    ['messages', { messages, model: '' }, 'model'],
    ['completions', { model: 'm' }, 'messages'],
    ['completions', { model: 'm', messages: {} }, 'messages'],
    ['completions', { model: 'm', messages: [] }, 'messages'],
    ['completions', { model: 'm', messages: [null] }, 'messages[0]'],
    ['messages', { ...messages_body, messages: [messages[0], 'x'] }, 'messages[1]'],
    ['completions', { model: 'm', messages: [{}] }, 'messages[0].role'],
    ['completions', { ...chat, stream: 'yes' }, 'stream'],
    ['completions', { ...chat, stream: true, stream_options: 1 }, 'stream_options'],
    ['completions', { ...chat, stream_options: {} }, 'stream_options'],
    ['completions', { ...chat, stream: true, stream_options: { include_usage: 1 } }, 'stream_options.include_usage'],
    ['messages', chat, 'max_tokens'],
  ])('of %s style is refused as %j and names %s', (style, body, param) => {
    expect(refusal(() => readAsk(style, body))).toMatchObject({ kind: 'invalid_request', param });
  });

  // T18: numbers from which a negative price could be made.
  it.each([-1, 1.5, 1e308, 2 ** 63, '1e9', [], {}, true])('is refused with %j for every count', (value) => {
    for (const field of ['n', 'max_tokens', 'max_completion_tokens']) {
      expect(refusal(() => readAsk('completions', { ...chat, [field]: value })).param).toBe(field);
    }
    expect(refusal(() => readAsk('messages', { ...chat, max_tokens: value })).param).toBe('max_tokens');
  });

  it.each(['n', 'max_tokens', 'max_completion_tokens'])('is refused with %s 0 in chat completions', (field) => {
    expect(refusal(() => readAsk('completions', { ...chat, [field]: 0 })).param).toBe(field);
  });
});

describe('the size of an input', () => {
  const size = (body: object, style: CallerStyle = 'completions') =>
    inputSize(readAsk(style, { model: 'a model', max_tokens: 9, messages: [{ role: 'user', content: '' }], ...body }));
  const empty = size({});
  const beyond = (body: object, style: CallerStyle = 'completions') => {
    const { ascii_bytes, ...rest } = size(body, style);
    return { ascii_bytes: ascii_bytes - empty.ascii_bytes, ...rest };
  };

  it('is a few bytes for an empty message', () => {
    expect(empty).toEqual({ ascii_bytes: 14, other_bytes: 0, images: 0, documents: 0, document_bytes: 0 });
  });

  it.each([
    ['ASCII', 'x'.repeat(1000), 1000, 0],
    ['other scripts', 'zażółć 語 😀', 4, 15],
    ['a lone surrogate', 'a\ud800', 1, 3],
    ['NUL', 'a\0b', 3, 0],
  ])('counts %s', (_, content, ascii_bytes, other_bytes) => {
    expect(beyond({ messages: [{ role: 'user', content }] })).toMatchObject({ ascii_bytes, other_bytes });
  });

  it('counts the names in schemas of tools, and values that are not text', () => {
    const tools = [
      { type: 'function', function: { name: 'f', parameters: { properties: { city: { minLength: 12 } } } } },
    ];
    const words = 'function f properties city minLength 12'.replaceAll(' ', '');
    expect(beyond({ tools }).ascii_bytes).toBe(words.length);
  });

  it('counts text in unknown fields', () => {
    expect(beyond({ some_extension: { deep: ['x'.repeat(100)] } }).ascii_bytes).toBe(100);
  });

  it('does not count fields that reach no model', () => {
    const unread = { user: 'somebody', metadata: { a: 'b' }, prompt_cache_key: 'k', safety_identifier: 's' };
    expect(beyond(unread).ascii_bytes).toBe(0);
  });

  it.each<[string, CallerStyle, object, { images: number; documents: number; document_bytes: number }]>([
    [
      'an image by URL',
      'completions',
      { type: 'image_url', image_url: { url: 'https://x.test/a.png' } },
      { images: 1, documents: 0, document_bytes: 0 },
    ],
    [
      'an inline image',
      'completions',
      { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(4000)}` } },
      { images: 1, documents: 0, document_bytes: 0 },
    ],
    [
      'an image in a plain string',
      'completions',
      { type: 'image_url', image_url: `data:image/png;base64,${'A'.repeat(4000)}` },
      { images: 1, documents: 0, document_bytes: 0 },
    ],
    [
      'a file',
      'completions',
      { type: 'file', file: { file_data: `data:application/pdf;base64,${'A'.repeat(400)}` } },
      { images: 0, documents: 1, document_bytes: 300 },
    ],
    [
      'a sound',
      'completions',
      { type: 'input_audio', input_audio: { data: 'A'.repeat(400), format: 'wav' } },
      { images: 0, documents: 1, document_bytes: 0 },
    ],
    [
      'an image block',
      'messages',
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(400) } },
      { images: 1, documents: 0, document_bytes: 0 },
    ],
    [
      'a document block',
      'messages',
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'A'.repeat(400) } },
      { images: 0, documents: 1, document_bytes: 300 },
    ],
    [
      'an image in a tool result',
      'messages',
      {
        type: 'tool_result',
        tool_use_id: 't',
        content: [{ type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } }],
      },
      { images: 1, documents: 0, document_bytes: 0 },
    ],
  ])('counts %s without its base64 text', (_, style, part, expected) => {
    const counted = size({ messages: [{ role: 'user', content: [part] }] }, style);
    expect(counted).toMatchObject(expected);
    expect(counted.ascii_bytes).toBeLessThan(40);
  });

  it('counts the text of a document that is text', () => {
    const source = { type: 'text', media_type: 'text/plain', data: 'x'.repeat(500) };
    const counted = size({ messages: [{ role: 'user', content: [{ type: 'document', source }] }] }, 'messages');
    expect(counted).toMatchObject({ documents: 0, document_bytes: 0 });
    expect(counted.ascii_bytes).toBeGreaterThanOrEqual(500);
  });

  const kilobyte = 'x'.repeat(1000);
  const encoded = Buffer.from(kilobyte).toString('base64');

  it.each<[string, CallerStyle, object]>([
    ['a message that calls itself an image', 'completions', { role: 'user', type: 'image', content: kilobyte }],
    ['a message that calls itself a file', 'completions', { role: 'user', type: 'file', file: {}, content: kilobyte }],
    [
      'what stands beside a document',
      'messages',
      {
        role: 'user',
        content: [
          {
            type: 'document',
            context: kilobyte,
            source: { type: 'base64', media_type: 'application/pdf', data: 'AAAA' },
          },
        ],
      },
    ],
    [
      'what stands beside an image',
      'completions',
      { role: 'user', content: [{ type: 'image_url', text: kilobyte, image_url: { url: 'https://x.test/a.png' } }] },
    ],
    [
      'what stands within the holder of one',
      'completions',
      { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x.test/a.png', text: kilobyte } }] },
    ],
    [
      'a file that is a text',
      'completions',
      { role: 'user', content: [{ type: 'file', file: { file_data: `data:text/plain;base64,${encoded}` } }] },
    ],
    [
      'a file that is JSON, percent-encoded',
      'completions',
      { role: 'user', content: [{ type: 'file', file: { file_data: `data:application/json,${kilobyte}` } }] },
    ],
    [
      'a file whose type is too long to be read',
      'completions',
      {
        role: 'user',
        content: [{ type: 'file', file: { file_data: `data:${'a'.repeat(300)};base64,${encoded}` } }],
      },
    ],
    [
      'a document that is a text in base64',
      'messages',
      {
        role: 'user',
        content: [{ type: 'document', source: { type: 'base64', media_type: 'text/csv', data: encoded } }],
      },
    ],
    [
      'a name as long as a text',
      'completions',
      { role: 'user', content: [{ type: 'file', file: { filename: kilobyte, file_id: 'file_1' } }] },
    ],
    [
      'a name that is a list',
      'completions',
      { role: 'user', content: [{ type: 'file', file: { filename: [kilobyte], file_id: 'file_1' } }] },
    ],
    [
      'text in the place of an address',
      'completions',
      { role: 'user', content: [{ type: 'image_url', image_url: { url: `see ${kilobyte}` } }] },
    ],
  ])('counts %s as text', (_, style, message) => {
    expect(size({ messages: [message] }, style).ascii_bytes).toBeGreaterThanOrEqual(1000);
  });

  it.each([
    'text/x-python',
    'application/x-yaml',
    'application/X-SH; charset=utf-8',
    'application/x-ndjson',
    'application/ld+json',
    'application/rtf',
  ])('counts a file of type %s as text', (type) => {
    const part = { type: 'file', file: { file_data: `data:${type};base64,${encoded}` } };
    const counted = size({ messages: [{ role: 'user', content: [part] }] });
    expect(counted.ascii_bytes).toBeGreaterThanOrEqual(1000);
  });

  it.each(['application/x-pdf', 'application/x-zip-compressed', 'application/vnd.sqlite3', 'application/octet-stream'])(
    'counts a file of type %s as a document',
    (media_type) => {
      const part = { type: 'file', file: { file_data: `data:${media_type};base64,${encoded}` } };
      const block = { type: 'document', source: { type: 'base64', media_type, data: encoded } };
      for (const counted of [
        size({ messages: [{ role: 'user', content: [part] }] }),
        size({ messages: [{ role: 'user', content: [block] }] }, 'messages'),
      ]) {
        expect(counted).toMatchObject({ documents: 1, document_bytes: 1002 });
        expect(counted.ascii_bytes).toBeLessThan(80);
      }
    },
  );

  it('counts no data URL as text because its media type has a long name', () => {
    const file_data = `data:application/pdf;name=${'%C3%A9'.repeat(600)};base64,${encoded}`;
    const counted = size({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_data } }] }] });
    expect(counted).toMatchObject({ documents: 1, document_bytes: 1002 });
    expect(counted.ascii_bytes).toBeLessThan(40);
  });

  const pdf = `data:application/pdf;base64,${encoded}`;

  it.each<[string, object, { documents: number; document_bytes: number }]>([
    ['data in the place of a link', { file_url: pdf }, { documents: 1, document_bytes: 1002 }],
    ['data and a link', { file_data: pdf, file_url: 'https://x.test/a' }, { documents: 2, document_bytes: 1002 }],
    ['data twice', { file_data: pdf, file_url: pdf }, { documents: 2, document_bytes: 2004 }],
    ['null for a link', { file_data: pdf, file_url: null }, { documents: 1, document_bytes: 1002 }],
  ])('counts a file of the responses style: %s', (_, where, expected) => {
    const part = { type: 'input_file', filename: 'a.pdf', ...where };
    const counted = size({ input: [{ role: 'user', content: [part] }] }, 'responses');
    expect(counted).toMatchObject(expected);
    expect(counted.ascii_bytes).toBeLessThan(40);
  });

  it.each<[string, Json]>([
    ['a text file', `data:text/plain;base64,${encoded}`],
    ['a list', [kilobyte]],
    ['plain text', `see ${kilobyte}`],
    ['text that begins like base64', `${kilobyte} and so on`],
    ['text that begins like a link', `http: ${'x'.repeat(9_000)}`],
  ])('counts %s in the place of a link as text', (_, file_url) => {
    const part = { type: 'input_file', file_url };
    const counted = size({ input: [{ role: 'user', content: [part] }] }, 'responses');
    expect(counted.ascii_bytes).toBeGreaterThanOrEqual(1000);
  });

  it('counts no text in base64 without a type', () => {
    const part = { type: 'file', file: { file_data: encoded } };
    const counted = size({ messages: [{ role: 'user', content: [part] }] });
    expect(counted).toMatchObject({ documents: 1, document_bytes: 1002 });
    expect(counted.ascii_bytes).toBeLessThan(40);
  });

  it('is not fooled by text that begins like a data URL', () => {
    const content = `data:image/png;base64,${'A'.repeat(1000)}`;
    expect(size({ messages: [{ role: 'user', content }] }).ascii_bytes).toBeGreaterThan(1000);
  });
});
