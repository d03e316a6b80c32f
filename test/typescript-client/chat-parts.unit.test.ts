import { describe, expect, test } from 'vitest';
import { ChatParts } from '../../clients/typescript/src/chat-answer.ts';

const part = (delta: object, more: object = {}) => ({
  id: 'a',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, ...more }],
});

function messageOf(deltas: readonly object[]): object | undefined {
  const parts = new ChatParts();
  for (const delta of deltas) parts.add(part(delta));
  return parts.body().choices[0]?.message;
}

describe('the parts of a stream', () => {
  test('become the answer that is not streamed', () => {
    const parts = new ChatParts();
    parts.add({ ...part({ role: 'assistant', content: '' }), created: 7, model: 'acme/smart', usage: null });
    parts.add(part({ content: 'Good ' }));
    parts.add(part({ content: 'morning' }, { finish_reason: null }));
    parts.add(part({}, { finish_reason: 'stop' }));
    const usage = { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    parts.add({ id: 'a', choices: [], usage });
    const message = { role: 'assistant', content: 'Good morning', refusal: null };
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    expect(parts.body()).toEqual({
      id: 'a',
      object: 'chat.completion',
      created: 7,
      model: 'acme/smart',
      choices,
      usage,
    });
    expect(parts.text).toBe('Good morning');
  });

  test('of several calls of tools come together by their index, in any order', () => {
    const call = (index: number, more: object) => ({ tool_calls: [{ index, ...more }] });
    const message = messageOf([
      call(0, { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }),
      call(0, { function: { arguments: '{"city":' } }),
      call(1, { id: 'call_2', type: 'function', function: { name: 'clock', arguments: '' } }),
      {
        tool_calls: [
          { index: 1, function: { arguments: '{}' } },
          { index: 0, function: { arguments: '"Oslo"}' } },
        ],
      },
    ]);
    expect(message).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
      tool_calls: [
        { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } },
        { id: 'call_2', type: 'function', function: { name: 'clock', arguments: '{}' } },
      ],
    });
  });

  test('of calls whose upstream repeats id and name, or numbers nothing, are not doubled', () => {
    const repeated = { index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{' } };
    const end = { index: 0, id: '', type: 'function', function: { name: 'weather', arguments: '}' } };
    expect(messageOf([{ tool_calls: [repeated] }, { tool_calls: [end] }])).toMatchObject({
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{}' } }],
    });
    const whole = (id: string) => ({
      tool_calls: [{ id, type: 'function', function: { name: 'weather', arguments: '{}' } }],
    });
    expect(messageOf([whole('call_1'), whole('call_2')])).toMatchObject({
      tool_calls: [{ id: 'call_1' }, { id: 'call_2' }],
    });
  });

  test('have members without a type, which are joined as texts, lists and objects', () => {
    const message = messageOf([
      {
        role: 'assistant',
        reasoning_content: 'I ',
        reasoning_details: [{ index: 0, type: 'reasoning.text', text: 'I ' }],
      },
      { reasoning_content: 'think', reasoning_details: [{ index: 0, type: 'reasoning.text', text: 'think' }] },
      { annotations: [{ type: 'url_citation' }], extra: { a: 1 } },
      { annotations: [{ type: 'url_citation' }], extra: { a: 2, b: 'x' }, refusal: null },
    ]);
    expect(message).toEqual({
      role: 'assistant',
      content: null,
      refusal: null,
      reasoning_content: 'I think',
      reasoning_details: [{ index: 0, type: 'reasoning.text', text: 'I think' }],
      annotations: [{ type: 'url_citation' }, { type: 'url_citation' }],
      extra: { a: 2, b: 'x' },
    });
  });

  test('of several answers are theirs, in their order, and the text is that of the first', () => {
    const parts = new ChatParts();
    parts.add({
      choices: [
        { index: 1, delta: { content: 'Two' } },
        { index: 0, delta: { content: 'One' } },
      ],
    });
    parts.add({ choices: [{ index: 1, delta: { content: '!' }, logprobs: { content: [{ token: '!' }] } }] });
    parts.add({ choices: [{ index: 1, delta: {}, logprobs: { content: [{ token: '?' }] }, finish_reason: 'length' }] });
    const [first, second] = parts.body().choices;
    expect(first).toMatchObject({ message: { content: 'One' }, finish_reason: null });
    expect(second).toMatchObject({ message: { content: 'Two!' }, finish_reason: 'length' });
    expect(second?.['logprobs']).toEqual({ content: [{ token: '!' }, { token: '?' }] });
    expect(parts.text).toBe('One');
  });

  test.each([
    ['no choices', {}],
    ['choices that are none', { choices: [null, 7, 'x', []] }],
    ['a choice without a delta', { choices: [{ index: 0, finish_reason: 'stop' }] }],
    ['a delta that is none', { choices: [{ delta: 7 }, { delta: null }, { delta: [] }] }],
    ['content that is no text', { choices: [{ delta: { content: 7, tool_calls: 7 } }] }],
    ['a prototype', JSON.parse('{"choices":[{"delta":{"__proto__":{"content":"x"}}}]}')],
  ])('with %s do no harm', (_name, event) => {
    const parts = new ChatParts();
    const chunk = parts.add(event);
    expect(chunk.choices.every(({ index, delta }) => typeof index === 'number' && typeof delta === 'object')).toBe(
      true,
    );
    expect(parts.add(part({ content: 'x' })).choices).toHaveLength(1);
    expect([parts.text, Object.getPrototypeOf(parts.body().choices[0]?.message)]).toEqual(['x', Object.prototype]);
  });

  test.each([[undefined], [null], [7], ['x'], [[]]])('are no %j', (event) => {
    expect(() => new ChatParts().add(event)).toThrow('no part of an answer');
  });
});
