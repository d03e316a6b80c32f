import { describe, expect, it } from 'vitest';
import { fieldsOf, fillDefaults } from '../../src/catalog/input-schema.ts';
import { cases, errorsIn, problemLines, withModels } from './problem-lines.ts';

const withSchema = (schema: string) =>
  withModels(
    `  - { id: a, kind: image, price: [{ unit: image, amount: "1" }], routes: [{ provider: p }], input_schema: ${schema} }`,
  );

const long_pattern = 'a'.repeat(201);
const deep = `${'{ properties: { a: '.repeat(20)}{}${' } }'.repeat(20)}`;

describe('an unusable input schema is reported', () => {
  it.each(
    cases([
      ['▸{ properties: {} }', '.type: must be "object".'],
      ['{ type: ▸array }', '.type: must be "object".'],
      [
        '{ type: object, properties: { a: { type: ▸strin } } }',
        '.properties.a.type: must be one of "array", "boolean", "integer", "null", "number", "object", "string" (got "strin"). Did you mean "string"?',
      ],
      ['{ type: object, properties: { a: ▸3 } }', '.properties.a: must be an object or a boolean (got number).'],
      [
        '{ type: object, properties: { a: { minLength: ▸-1 } } }',
        '.properties.a.minLength: must be at least 0 (got -1).',
      ],
      ['{ type: object, properties: { a: { pattern: ▸3 } } }', '.properties.a.pattern: must be a string (got number).'],
      [
        '{ type: object, properties: { a: { pattern: ▸"(" } } }',
        '.properties.a.pattern: Invalid regular expression: /(/u: Unterminated group.',
      ],
      [
        '{ type: object, patternProperties: { "(": ▸{} } }',
        '.patternProperties["("]: Invalid regular expression: /(/u: Unterminated group.',
      ],
      [
        '▸{ type: object, properties: { a: { $ref: "#/$defs/b" } } }',
        ": does not compile: can't resolve reference #/$defs/b from id #.",
      ],
      [
        '▸{ type: object, properties: { a: { $ref: "https://example.com/b" } } }',
        ": does not compile: can't resolve reference https://example.com/b from id #.",
      ],
      [
        '{ type: object, $schema: ▸"http://json-schema.org/draft-07/schema#" }',
        '.$schema: must be https://json-schema.org/draft/2020-12/schema, or absent.',
      ],
      ['{ type: object, $async: ▸true }', '.$async: is not allowed.'],
      [
        `{ type: object, properties: { pattern: { pattern: ▸${long_pattern} } } }`,
        '.properties.pattern.pattern: is longer than 200 characters.',
      ],
      [
        `{ type: object, patternProperties: { ${long_pattern}: ▸{} } }`,
        `.patternProperties.${long_pattern}: is longer than 200 characters.`,
      ],
      [`▸{ type: object, allOf: [${deep}] }`, ': is nested more than 32 levels deep.'],
      [`▸{ type: object, description: ${'x'.repeat(257 * 1024)} }`, ': is larger than 256 KB.'],
      [
        '{ type: object, properties: { a: { type: integer, maximum: 3, default: ▸4 } } }',
        ".properties.a.default: 4 does not fit the field's own schema: must be <= 3.",
      ],
    ]),
  )('as $expected', ({ marked, expected }) => {
    expect(errorsIn(withSchema(marked))).toEqual([`error: ▸models[0].input_schema${expected}`]);
  });

  it('when its aliases make it large', () => {
    const fields = Array.from({ length: 40 }, (_, index) => `f${index}: *a`).join(', ');
    const text = `▸{ type: object, $defs: { a: &a { description: ${'x'.repeat(10_000)} } }, properties: { ${fields} } }`;
    expect(errorsIn(withSchema(text))).toEqual(['error: ▸models[0].input_schema: is larger than 256 KB.']);
  });
});

describe('an input schema is valid', () => {
  it.each([
    [
      "providers' keywords",
      '{ type: object, properties: { a: { type: string, x-order: 1, nullable: true, format: made-up } } }',
    ],
    [
      'names, also the second time',
      '{ $id: "https://example.com/s", type: object, properties: { a: { $anchor: x }, b: { $ref: "#x" } } }',
    ],
    [
      'values that look like patterns',
      `{ type: object, properties: { a: { default: { pattern: ${long_pattern} }, examples: [{ pattern: ${long_pattern} }] } } }`,
    ],
    ['local references', '{ type: object, properties: { a: { $ref: "#/$defs/b" } }, $defs: { b: { enum: [x] } } }'],
    ['references to themselves', '{ type: object, properties: { a: { $ref: "#" } } }'],
  ])('with %s', (_, schema) => {
    expect(problemLines(withSchema(schema))).toEqual([]);
    expect(problemLines(withSchema(schema))).toEqual([]);
  });
});

describe('fieldsOf', () => {
  const fields = fieldsOf({
    type: 'object',
    required: ['a'],
    properties: { a: {}, b: { $ref: '#/$defs/b' } },
    allOf: [{ required: ['c'], properties: { c: { type: 'string' } } }],
    anyOf: [{ required: ['d'], properties: { d: { enum: ['x'] } } }, { $ref: '#/$defs/e' }],
    $defs: { b: { enum: [1, 2], default: 1 }, e: { properties: { constructor: { const: 1 } } } },
  });

  it('returns the fields of all parts', () => {
    expect(fields.names).toEqual(['a', 'b', 'c', 'd', 'constructor']);
  });

  it.each([
    ['a', true],
    ['b', true],
    ['c', true],
    ['d', false],
    ['toString', false],
  ])('knows whether %s is certain: %s', (name, certain) => {
    expect(fields.certain(name)).toBe(certain);
  });

  it('finds keywords behind references and in alternatives, never inherited ones', () => {
    expect(fields.keyword('b', 'enum')).toEqual([1, 2]);
    expect(fields.keyword('d', 'enum')).toEqual(['x']);
    expect(fields.keyword('constructor', 'const')).toBe(1);
    expect(fields.keyword('toString', 'length')).toBeUndefined();
  });
});

describe('fillDefaults', () => {
  const schema = {
    type: 'object',
    properties: {
      n: { default: 2 },
      list: { default: [1] },
      nested: { properties: { deep: { default: 'x' } } },
      items: { items: { $ref: '#/$defs/item' } },
      referred: { $ref: '#/$defs/referred' },
    },
    allOf: [{ properties: { from_part: { default: null } } }, { $ref: '#' }],
    $defs: { item: { properties: { size: { default: 1 } } }, referred: { default: 'r' } },
  };

  it('fills absent fields at every depth from every part', () => {
    expect(fillDefaults(schema, { nested: {}, items: [{}, { size: 5 }, 3] })).toEqual({
      nested: { deep: 'x' },
      items: [{ size: 1 }, { size: 5 }, 3],
      n: 2,
      list: [1],
      referred: 'r',
      from_part: null,
    });
  });

  it('leaves the input and the schema unchanged', () => {
    const input = { nested: {} };
    const filled = fillDefaults(schema, input);
    expect(input).toEqual({ nested: {} });
    expect(filled['list']).not.toBe(schema.properties.list.default);
  });

  it('keeps existing values, null too', () => {
    expect(fillDefaults(schema, { n: null })).toMatchObject({ n: null });
  });

  it('sets no prototype from a field with that name', () => {
    const filled = fillDefaults(schema, JSON.parse('{"__proto__":{"polluted":true}}'));
    expect(Object.getPrototypeOf(filled)).toBe(Object.prototype);
    expect(JSON.stringify(filled)).toContain('"__proto__":{"polluted":true}');
  });
});
