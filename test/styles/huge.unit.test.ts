import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { quirksOf } from '../../src/styles/quirks.ts';
import { readAsk, upstreamBody, type CallerStyle, type UpstreamStyle } from './by-name.ts';
import { depth } from '../helpers/depth.ts';

/** More than the stack holds as the arguments of one call; a body may have a million values. */
const count = 150_000;
const list = <T>(make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));

const hi = { role: 'user', content: 'hi' };
const texts = list(() => ({ type: 'text', text: 'x' }));
const calls = list((i) => ({ id: `c${i}`, type: 'function', function: { name: 'f', arguments: '{}' } }));
const uses = list((i) => ({ type: 'tool_use', id: `c${i}`, name: 'f', input: {} }));
const results = list((i) => ({ type: 'tool_result', tool_use_id: `c${i}`, content: 'r' }));
const answered = list((i) => ({ role: 'tool', tool_call_id: `c${i}`, content: 'r' }));

const bodies: [what: string, style: CallerStyle, body: JsonObject][] = [
  ['texts of a second message', 'messages', { max_tokens: 9, messages: [hi, { role: 'user', content: texts }] }],
  ['texts of the system', 'messages', { max_tokens: 9, system: texts, messages: [hi] }],
  [
    'calls and their results',
    'messages',
    { max_tokens: 9, messages: [hi, { role: 'assistant', content: uses }, { role: 'user', content: results }] },
  ],
  ['texts of a second message', 'completions', { messages: [hi, { role: 'user', content: texts }] }],
  ['texts of the system', 'completions', { messages: [{ role: 'system', content: texts }, hi] }],
  ['calls and their results', 'completions', { messages: [hi, { role: 'assistant', tool_calls: calls }, ...answered] }],
  [
    'texts of a second message',
    'responses',
    { input: [hi, { role: 'user', content: texts.map(({ text }) => ({ type: 'input_text', text })) }] },
  ],
];

const targets: readonly UpstreamStyle[] = ['completions', 'messages', 'responses', 'gemini', 'converse'];
const targetsOf = (nth: number) =>
  depth(
    targets.filter((_, index) => index % 2 === nth % 2),
    targets,
  );
const cases = bodies.flatMap(([what, style, body], nth) =>
  targetsOf(nth).map((target) => ({ what, style, body, target })),
);

it.each(cases)('$style to $target translates a hundred thousand $what', ({ style, body, target }) => {
  const ask = readAsk(style, { model: 'm', ...body });
  const sent = upstreamBody(ask, { style: target, model: 'u', max_tokens: 9, quirks: quirksOf({}) });
  expect(JSON.stringify(sent.body).length).toBeGreaterThan(count);
});
