import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { chosenBy, conversationKey } from '../../src/chat/sticky.ts';
import type { JsonObject } from '../../src/catalog/model.ts';

/** The choice of a model by an alias: by weight, and the same in a conversation. */

const choices = (weights: Readonly<Record<string, number>>) =>
  Object.entries(weights).map(([id, weight]) => ({ model: { id }, weight }));
const pick = (key: string, weights: Readonly<Record<string, number>>) => chosenBy(key, choices(weights))?.model.id;

describe('a model of an alias', () => {
  it('gets its part of the conversations', () => {
    const keys = Array.from({ length: 20_000 }, (_, index) => `conversation ${index}`);
    const share = keys.filter((key) => pick(key, { a: 90, b: 10 }) === 'a').length / keys.length;
    expect(share).toBeGreaterThan(0.885); // five standard deviations
    expect(share).toBeLessThan(0.915);
    const thirds = keys.filter((key) => pick(key, { a: 1, b: 1, c: 1 }) === 'b').length / keys.length;
    expect(thirds).toBeGreaterThan(0.316);
    expect(thirds).toBeLessThan(0.351);
  });

  it('gets none with the weight 0, and nobody gets one where all have that', () => {
    for (let index = 0; index < 200; index++) expect(pick(`k${index}`, { a: 0, b: 1 })).toBe('b');
    expect(pick('k', { a: 0 })).toBeUndefined();
    expect(chosenBy('k', [])).toBeUndefined();
  });

  it('keeps its conversations when others come, go or change their weight, but for those that move to or from them', () => {
    const weight = fc.integer({ min: 0, max: 100 });
    fc.assert(
      fc.property(fc.string(), weight, weight, weight, weight, (key, a, b, c, changed) => {
        const before = pick(key, { a, b, c });
        const after = pick(key, { a, b, c: changed });
        expect(before === 'a' || before === 'b' ? [before, 'c'] : [after]).toContain(after);
        expect(pick(key, { c, b, a })).toBe(before); // whatever their order in the file
        const without = pick(key, { a, b });
        expect(before === 'c' ? without : before).toBe(without);
      }),
    );
  });
});

const user = (content: unknown) => ({ role: 'user', content }) as JsonObject;
const first = user('How do I bake bread?');
const answered = [first, { role: 'assistant', content: 'With flour.' }, user('And then?')];
const marked = user([{ type: 'text', text: 'How do I bake bread?', cache_control: { type: 'ephemeral' } }]);

test.each<[what: string, turns_field: string, one: JsonObject, other: JsonObject]>([
  ['grows', 'messages', { messages: [first] }, { messages: answered }],
  [
    'has a system prompt that changes',
    'messages',
    { messages: [{ role: 'system', content: '9:00' }, first] },
    { messages: [{ role: 'system', content: '9:01' }, ...answered] },
  ],
  ['has marks for caches', 'messages', { messages: [first] }, { messages: [marked] }],
  ['is of the responses style', 'input', { input: 'How do I bake bread?' }, { input: answered }],
  [
    'is of the Gemini style',
    'contents',
    { contents: [{ role: 'user', parts: [{ text: 'a' }] }] },
    {
      contents: [
        { role: 'user', parts: [{ text: 'a' }] },
        { role: 'model', parts: [] },
      ],
    },
  ],
  [
    'has a key for caches',
    'input',
    { input: 'a', prompt_cache_key: 'k' },
    { input: 'b', prompt_cache_key: 'k', user: 'u' },
  ],
  ['has a session', 'messages', { messages: [first], session_id: 's' }, { messages: [user('x')], session_id: 's' }],
  [
    'is kept here',
    'input',
    { input: 'a', conversation: { id: 'conv_1' } },
    { input: 'b', conversation: { id: 'conv_1' } },
  ],
  ['is of a user', 'messages', { messages: [first], user: 'u' }, { messages: [user('x')], user: 'u' }],
  [
    'is of a user in metadata',
    'messages',
    { messages: [first], metadata: { user_id: 'u' } },
    { messages: [user('x')], metadata: { user_id: 'u' } },
  ],
])('a conversation that %s has one key', (_, turns_field, one, other) => {
  expect(conversationKey('acct', other, turns_field)).toBe(conversationKey('acct', one, turns_field));
  expect(conversationKey('other', one, turns_field)).not.toBe(conversationKey('acct', one, turns_field));
});

test('conversations that begin otherwise, or name another user, have other keys', () => {
  const bodies: JsonObject[] = [
    { messages: [first] },
    { messages: [user('Hello')] },
    { messages: [user('Hello')], user: 'a' },
    { messages: [user('Hello')], user: 'b' },
    { messages: [user('Hello')], prompt_cache_key: 'a' },
  ];
  expect(new Set(bodies.map((body) => conversationKey('acct', body, 'messages'))).size).toBe(bodies.length);
});

test('a body of any form has a key', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom('messages', 'input', undefined), (value, field) => {
      const body = { messages: value, input: value, user: value, metadata: value, conversation: value } as JsonObject;
      expect(conversationKey('acct', body, field)).toMatch(/^\["acct"/);
    }),
  );
});
