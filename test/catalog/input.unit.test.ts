import { describe, expect, it } from 'vitest';
import { checkInput, mapInput } from '../../src/catalog/input.ts';
import type { JsonObject } from '../../src/catalog/model.ts';

describe('checkInput', () => {
  const schema = {
    type: 'object',
    required: ['prompt'],
    additionalProperties: false,
    properties: {
      prompt: { type: 'string' },
      size: { enum: ['s', 'm'], default: 'm' },
      list: { type: 'array', maxItems: 3, uniqueItems: true },
    },
  };

  it('fills in defaults after the check', () => {
    expect(checkInput('m', schema, { prompt: 'x' })).toEqual({ ok: true, input: { prompt: 'x', size: 'm' } });
  });

  it('names every wrong field and the model', () => {
    const checked = checkInput('acme/m', schema, { promt: 'x', size: 'l', list: [1, 2, 3, 4] });
    expect(!checked.ok && checked.errors.map((error) => error.message)).toEqual([
      'input.prompt is required.',
      'input.promt is not a known field of model acme/m. Did you mean "prompt"?',
      'input.size must be one of "s", "m" (got "l").',
      'input.list must have at most 3 items (got 4).',
    ]);
  });

  it.each([[null], ['x'], [3], [true], [[]], [undefined], [[{ prompt: 'x' }]]])('refuses %j', (input) => {
    expect(checkInput('m', schema, input)).toMatchObject({ ok: false, errors: [{ field: 'input', rule: 'type' }] });
  });

  it('does not accept what every object inherits', () => {
    const inherited = { type: 'object', required: ['constructor', '__proto__'], properties: {} };
    const checked = checkInput('m', inherited, {});
    expect(!checked.ok && checked.errors.map((error) => error.field)).toEqual(['input.constructor', 'input.__proto__']);
    expect(checkInput('m', inherited, JSON.parse('{"constructor":1,"__proto__":2}'))).toMatchObject({ ok: true });
  });

  it('reports only the first mistake of a huge input, and ends', () => {
    // All errors of ten million wrong values would be gigabytes, and comparing all pairs would take hours.
    const list = Array.from({ length: 500_000 }, (_, index) => ({ index }));
    const checked = checkInput('m', schema, { prompt: 'x', list, size: 3 });
    expect(checked).toMatchObject({ ok: false, errors: [{ message: expect.any(String) }] });
    expect(!checked.ok && checked.errors).toHaveLength(1);
  });

  it('keeps two schemas that refer to themselves apart', () => {
    const recursive = (type: string) => ({
      type: 'object',
      additionalProperties: false,
      properties: { value: { type }, child: { $ref: '#' } },
    });
    const [texts, numbers] = [recursive('string'), recursive('number')];
    const input = { child: { child: { value: 'x' } } };
    for (const _ of [1, 2]) {
      expect(checkInput('m', texts, input)).toMatchObject({ ok: true });
      expect(checkInput('m', numbers, input)).toMatchObject({
        ok: false,
        errors: [{ field: 'input.child.child.value' }],
      });
    }
  });

  it('keeps two schemas of the same name apart', () => {
    const named = (type: string) => ({
      $id: 'https://example.com/named',
      type: 'object',
      properties: { a: { $ref: '#value' } },
      $defs: { value: { $anchor: 'value', type } },
    });
    expect(checkInput('m', named('string'), { a: 'x' })).toMatchObject({ ok: true });
    expect(checkInput('m', named('number'), { a: 'x' })).toMatchObject({ ok: false });
    const part = { type: 'object', $defs: { part: { $id: 'https://example.com/part' } } };
    const whole = { $id: 'https://example.com/part', type: 'object' };
    expect(checkInput('m', part, {})).toMatchObject({ ok: true });
    expect(checkInput('m', whole, {})).toMatchObject({ ok: true });
  });
});

describe('mapInput', () => {
  const input = { prompt: 'x', n: 2, nested: { a: [1] }, nothing: null };

  it.each([
    ['nothing: the input as it is', undefined, input],
    ['names', { text: '$input.prompt', count: '$input.n' }, { text: 'x', count: 2 }],
    [
      'constants',
      { format: 'png', size: 3, on: true, off: null, dollar: '$x' },
      { format: 'png', size: 3, on: true, off: null, dollar: '$x' },
    ],
    ['absent fields are dropped', { text: '$input.prompt', seed: '$input.seed' }, { text: 'x' }],
    ['but null is not absent', { a: '$input.nothing' }, { a: null }],
    ['whole values', { deep: '$input.nested' }, { deep: { a: [1] } }],
    ['only the first level', { deep: '$input.nested.a' }, {}],
    ['objects and lists', { a: { b: ['$input.prompt', '$input.seed', 'c'] } }, { a: { b: ['x', 'c'] } }],
    ['everything', { $spread: '$input' }, input],
    [
      'everything, and what stands beside it first',
      { n: 9, $spread: '$input', text: '$input.prompt' },
      { ...input, n: 9, text: 'x' },
    ],
    [
      'nothing is evaluated',
      { a: '$input.constructor', b: '$input.__proto__', c: '${input.prompt}' },
      { c: '${input.prompt}' },
    ],
  ])('maps %s', (_, mapping, expected) => {
    expect(mapInput(mapping === undefined ? {} : { input: mapping }, input)).toEqual(expected);
  });

  it('sets no prototype, whatever the names', () => {
    const mapping = JSON.parse('{"__proto__":{"polluted":"$input.__proto__"},"$spread":"$input"}');
    const mapped = mapInput({ input: mapping }, JSON.parse('{"__proto__":{"polluted":true}}'));
    expect(Object.getPrototypeOf(mapped)).toBe(Object.prototype);
    expect(JSON.stringify(mapped)).toBe('{"__proto__":{"polluted":{"polluted":true}}}');
    expect(Object.getPrototypeOf(mapInput({}, JSON.parse('{"__proto__":{"a":1}}')))).toBe(Object.prototype);
  });
});

describe('$lookup', () => {
  const size = { $lookup: '$input.shape', wide: 1344, tall: 768, '2': 512, true: 'yes', same: '$input.side' };
  const mapped = (input: JsonObject) => mapInput({ input: { width: size, fixed: 1 } }, input);

  it.each([
    [{ shape: 'wide' }, { width: 1344, fixed: 1 }],
    [{ shape: 2 }, { width: 512, fixed: 1 }],
    [{ shape: true }, { width: 'yes', fixed: 1 }],
    [
      { shape: 'same', side: 640 },
      { width: 640, fixed: 1 },
    ],
    [{ shape: 'same' }, { fixed: 1 }],
    [{ shape: 'round' }, { fixed: 1 }],
    [{ shape: 'toString' }, { fixed: 1 }],
    [{ shape: '$lookup' }, { fixed: 1 }],
    [{ shape: ['wide'] }, { fixed: 1 }],
    [{}, { fixed: 1 }],
  ])('turns %j into %j', (input, expected) => {
    expect(mapped(input)).toEqual(expected);
  });

  it('may be inside another', () => {
    const by_both = { $lookup: '$input.a', x: { $lookup: '$input.b', y: [1, '$input.c'] } };
    expect(mapInput({ input: { z: by_both } }, { a: 'x', b: 'y', c: 2 })).toEqual({ z: [1, 2] });
  });
});
