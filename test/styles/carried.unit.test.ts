import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { withToolsOf } from '../../src/chat/tools.ts';
import { ApiError } from '../../src/errors.ts';
import type { Quirks } from '../../src/styles/quirks.ts';
import { answers_of_completions, answers_of_messages, plainest_answer, type AnswerRow } from './carried/answers.ts';
import { from_completions, from_messages, translationDocument } from './carried/document.ts';
import { answers_of_converse, failures_of_converse, plainest_of_converse } from './carried/converse-answers.ts';
import { answers_of_contents, failures_of_contents, plainest_of_contents } from './carried/gemini-answers.ts';
import { completions_to_gemini } from './carried/completions-to-gemini.ts';
import { messages_to_gemini } from './carried/messages-to-gemini.ts';
import { answers_for_responses, from_responses } from './carried/responses.ts';
import { answers_for_gemini, from_gemini } from './carried/from-gemini.ts';
import { plainest, type Row } from './carried/row.ts';
import { completions_to_converse, messages_to_converse } from './carried/to-converse.ts';
import { answers_of_responses, completions_to_responses, messages_to_responses } from './carried/to-responses.ts';
import { readAsk, renderAnswer, upstreamBody, upstreamNamed, type CallerStyle, type UpstreamStyle } from './by-name.ts';

const other = (style: CallerStyle): CallerStyle => (style === 'completions' ? 'messages' : 'completions');

function sent(from: CallerStyle, body: JsonObject, quirks: Quirks = {}, to: UpstreamStyle = other(from)): JsonObject {
  const target = { style: to, model: 'upstream', max_tokens: 4000, quirks };
  const { request } = withToolsOf({ options: {} }, { style: upstreamNamed(to) }, readAsk(from, body));
  return upstreamBody(request, target).body;
}

function refusal(send: () => unknown): { status: number; param: string | undefined } {
  try {
    send();
  } catch (error) {
    if (error instanceof ApiError) return { status: error.status, param: error.extras.param };
    throw error;
  }
  throw new Error('it was accepted');
}

function expectAnswer(from: CallerStyle, row: AnswerRow, caller = other(from)): void {
  const ask = readAsk(caller, { ...plainest[caller], ...row.ask });
  const answer = Buffer.from(JSON.stringify({ ...plainest_answer[from], ...row.give }));
  const options = { model: 'public', request_id: 'req_1', created: 5, input_tokens_estimated: 11 };
  const { bytes } = renderAnswer(ask, from, answer, options);
  expect(JSON.parse(bytes.toString())).toMatchObject(row.get);
}

/** Titles of their own: vitest cuts those that it makes of fields. */
function titled<R extends Row | AnswerRow>(rows: readonly R[]): [title: string, row: R][] {
  return rows.map((row) => [
    'field' in row ? `${row.field}: ${row.what} (${row.how})` : `${row.part}: ${row.how}`,
    row,
  ]);
}

describe.each<[CallerStyle, UpstreamStyle, readonly Row[]]>([
  ['completions', 'messages', from_completions],
  ['messages', 'completions', from_messages],
  ['responses', 'completions', from_responses],
  ['gemini', 'completions', from_gemini],
  ['completions', 'responses', completions_to_responses],
  ['messages', 'responses', messages_to_responses],
  ['completions', 'gemini', completions_to_gemini],
  ['messages', 'gemini', messages_to_gemini],
  ['completions', 'converse', completions_to_converse],
  ['messages', 'converse', messages_to_converse],
])('a request of %s style to %s (T39, T41)', (from, to, rows) => {
  const body = (row: Row): JsonObject => ({ ...plainest[from], ...row.give });
  const written = rows.filter((row) => 'get' in row);

  it.each(titled(written))('is translated with %s', (_, row) => {
    const got = sent(from, body(row), row.quirks, to);
    expect(got).toMatchObject(row.get);
    expect(Object.keys(got).filter((field) => row.absent?.includes(field))).toEqual([]);
  });

  it.each(titled(rows.filter((row) => row.what === 'dropped')))('is translated without %s', (_, row) => {
    expect(sent(from, body(row), row.quirks, to)).toEqual(sent(from, plainest[from], row.quirks, to));
  });

  it.each(titled(rows.filter((row) => row.what === 'refused')))('is refused with %s', (_, row) => {
    expect(refusal(() => sent(from, body(row), row.quirks, to))).toEqual({ status: 400, param: row.param });
  });

  it(`leaves the caller's object as it is for ${to}`, () => {
    const before = JSON.stringify(rows);
    for (const row of written) sent(from, body(row), row.quirks, to);
    expect(JSON.stringify(rows)).toBe(before);
  });
});

describe('a response of messages style to a caller of chat completions', () => {
  it.each(titled(answers_of_messages))('is translated with %s', (_, row) => {
    expectAnswer('messages', row);
  });
});

describe('a response of chat completions to a caller of messages style', () => {
  it.each(titled(answers_of_completions))('is translated with %s', (_, row) => {
    expectAnswer('completions', row);
  });
});

describe('a response of the responses style to a caller of chat completions', () => {
  it.each(titled(answers_of_responses))('is translated with %s', (_, row) => {
    expectAnswer('responses', row);
  });
});

describe('a response of chat completions to a caller of the responses style', () => {
  it.each(titled(answers_for_responses))('is translated with %s', (_, row) => {
    expectAnswer('completions', row, 'responses');
  });
});

describe('a response of messages style to a caller of Gemini’s style', () => {
  it.each(titled(answers_for_gemini))('is translated with %s', (_, row) => {
    expectAnswer('messages', row, 'gemini');
  });
});

describe.each(['completions', 'messages'] as const)(
  "a response of Gemini's style to a caller of %s style",
  (caller) => {
    const rendered = (give: JsonObject, more: JsonObject = {}) => {
      const ask = readAsk(caller, { ...plainest[caller], ...(caller === 'completions' && more) });
      const target = { style: 'gemini', model: 'upstream', max_tokens: 4000, quirks: {} } as const;
      const { tool_names } = upstreamBody(ask, target);
      const answer = Buffer.from(JSON.stringify({ ...plainest_of_contents, ...give }));
      const options = { model: 'public', request_id: 'req_1', created: 5, input_tokens_estimated: 11 };
      return renderAnswer(ask, 'gemini', answer, { ...options, ...(tool_names && { tool_names }) }).bytes.toString();
    };

    it.each(answers_of_contents.map((row) => [row.part, row] as const))(
      'is translated with %s',
      (_, { give, ask, get }) => {
        expect(JSON.parse(rendered(give, ask))).toMatchObject(get[caller]);
      },
    );

    it.each(failures_of_contents.map((row) => [row.part, row] as const))('fails with %s', (_, { give, status }) => {
      const error = status === undefined ? { name: 'Unfinished' } : { status, extras: { code: 'content_filter' } };
      expect(() => rendered(give)).toThrow(expect.objectContaining(error));
    });
  },
);

describe.each(['completions', 'messages'] as const)('a response of Converse to a caller of %s style', (caller) => {
  const rendered = (give: JsonObject) => {
    const answer = Buffer.from(JSON.stringify({ ...plainest_of_converse, ...give }));
    const options = { model: 'public', request_id: 'req_1', created: 5, input_tokens_estimated: 11 };
    return renderAnswer(readAsk(caller, plainest[caller]), 'converse', answer, options).bytes.toString();
  };

  it.each(answers_of_converse.map((row) => [row.part, row] as const))('is translated with %s', (_, { give, get }) => {
    expect(JSON.parse(rendered(give))).toMatchObject(get[caller]);
  });

  it.each(failures_of_converse.map((row) => [row.part, row] as const))('fails with %s', (_, { give }) => {
    expect(() => rendered(give)).toThrow(expect.objectContaining({ name: 'Unfinished' }));
  });
});

it('docs/chat-translation.md lists these translations', async () => {
  await expect(translationDocument()).toMatchFileSnapshot('../../docs/chat-translation.md');
});
