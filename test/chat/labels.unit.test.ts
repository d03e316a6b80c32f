import { describe, expect, it } from 'vitest';
import { labelsOf } from '../../src/chat/labels.ts';

describe('labels of a call', () => {
  it.each([
    ['user', { user: 'ada' }, { end_user: 'ada' }],
    ['safety_identifier', { safety_identifier: 'ada' }, { end_user: 'ada' }],
    ['user before the others', { safety_identifier: 'b', user: 'a', metadata: { user_id: 'c' } }, { end_user: 'a' }],
    ['user_id of messages, which is no pair', { metadata: { user_id: 'ada' } }, { end_user: 'ada' }],
    ['pairs', { metadata: { team: 'red', run: 7, dry: true } }, { metadata: { team: 'red', run: '7', dry: 'true' } }],
    ["Gemini's labels", { labels: { team: 'red' } }, { metadata: { team: 'red' } }],
    ['tags as a list', { metadata: { tags: ['a', 'b'] } }, { metadata: { tags: 'a,b' } }],
    ['none', { model: 'x', metadata: {}, user: '' }, {}],
  ])('are read: %s', (_, body, labels) => {
    expect(labelsOf(body)).toEqual(labels);
  });

  it.each([
    ['a user that is no text', { user: { id: 1 } }],
    ['metadata that is no object', { metadata: 'red' }],
    ['metadata that is a list', { metadata: ['red'] }],
    ['a null', { user: null, metadata: { team: null } }],
    ['an object as a value', { metadata: { team: { a: 1 } } }],
    ['a list of numbers', { metadata: { tags: [1, 2] } }],
    ['a value of 513 characters', { metadata: { team: 'x'.repeat(513) } }],
    ['a name of 65 characters', { metadata: { ['x'.repeat(65)]: 'red' } }],
    ['a user of NUL', { user: '\0' }],
  ])('leave out %s', (_, body) => {
    expect(labelsOf(body)).toEqual({});
  });

  it('are 16 pairs and 256 characters of a user at most, as the database can store them', () => {
    const many = Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`name${index}`, 'x']));
    expect(Object.keys(labelsOf({ metadata: many }).metadata ?? {})).toHaveLength(16);
    expect(labelsOf({ user: `${'x'.repeat(255)}😀` }).end_user).toBe(`${'x'.repeat(255)}\uFFFD`);
    expect(labelsOf({ metadata: { ['\uD800\0a']: 'b\uDC00\0' } }).metadata).toEqual({ '\uFFFDa': 'b\uFFFD' });
    expect(labelsOf({ metadata: JSON.parse('{"__proto__":"red"}') }).metadata).toEqual(
      Object.fromEntries([['__proto__', 'red']]),
    );
  });
});
