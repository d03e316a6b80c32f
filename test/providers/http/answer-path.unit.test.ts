import { describe, expect, it } from 'vitest';
import { allAt, firstAt, readPath } from '../../../src/providers/http/answer-path.ts';

const answer = {
  data: { outputs: [{ url: 'a' }, { url: null }, { url: 'b' }, {}], 'odd name': 7, text: '{"urls":["c","d"],"n":1}' },
  status: 'ok',
};

const at = (text: string) => {
  const path = readPath(text);
  return path && allAt(answer, path);
};

describe('a path into a response', () => {
  it.each<[string, unknown[]]>([
    ['$', [answer]],
    ['$.status', ['ok']],
    ['$.data.outputs[0].url', ['a']],
    ['$.data.outputs[*].url', ['a', 'b']],
    ['$.data["odd name"]', [7]],
    ['$["data"].outputs[2]["url"]', ['b']],
    ['$.data.text:json.urls[*]', ['c', 'd']],
    ['$.data.text:json.n', [1]],
    ['$.status:json', []],
    ['$.data:json', []],
    ['$.data.outputs[9]', []],
    ['$.data.outputs.url', []],
    ['$.status.length', []],
    ['$.data.outputs.length', []],
    ['$.constructor', []],
    ['$.__proto__', []],
    ['$[*].outputs[1]', [{ url: null }]],
  ])('may be %s', (text, value) => {
    expect(at(text)).toEqual(value);
  });

  it.each([
    '',
    'data',
    '.data',
    '$data',
    '$.',
    '$..data',
    '$.a[',
    '$.a[b]',
    '$.a[-1]',
    '$.a[?(@.x)]',
    '$.a b',
    '$[*',
    '$:yaml',
    `$${'.a'.repeat(300)}`,
  ])('is invalid as %j', (text) => {
    expect(readPath(text)).toBeUndefined();
  });

  it('selects the first value that exists', () => {
    expect(firstAt(answer, readPath('$.data.outputs[*].url') ?? [])).toBe('a');
    expect(firstAt(undefined, readPath('$.data') ?? [])).toBeUndefined();
  });
});
