import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import { parseExactly } from '../../../src/lib/long-integers.ts';
import { instanceOf } from '../../../src/providers/sandbox/json-instance.ts';
import { isObject } from '../../../src/styles/fields.ts';
import { workedMs } from '../../helpers/work.ts';

function problemsOf(schema: Json): unknown {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  formats.default(ajv);
  const validate = ajv.compile(schema as JsonObject);
  return validate(instanceOf(schema)) ? [] : [instanceOf(schema), validate.errors];
}

const tree: JsonObject = {
  type: 'object',
  required: ['value', 'children'],
  properties: { value: { type: 'number' }, children: { type: 'array', items: { $ref: '#' } } },
};

describe('an instance', () => {
  it.each<[string, Json]>([
    ['of anything', {}],
    ['of true', true],
    [
      'of each type',
      { type: 'object', properties: { a: { type: 'null' }, b: { type: 'boolean' }, c: { type: 'number' } } },
    ],
    ['that may be null', { type: ['null', 'integer'] }],
    ['of a constant', { const: { a: [1] } }],
    ['of a list of values', { type: 'array', minItems: 3, uniqueItems: true, items: { enum: ['a', 'b', 'c'] } }],
    ['within a range', { type: 'integer', minimum: 17, maximum: 17 }],
    ['below zero', { type: 'number', exclusiveMaximum: 0 }],
    ['between two numbers', { type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 0.25 }],
    [
      'of multiples',
      { type: 'array', minItems: 3, uniqueItems: true, items: { type: 'integer', multipleOf: 7, minimum: 5 } },
    ],
    ['with a long text', { type: 'string', minLength: 100, maxLength: 120 }],
    ['with a short one', { type: 'string', maxLength: 3 }],
    [
      'with formats',
      {
        type: 'array',
        prefixItems: ['date-time', 'date', 'time', 'email', 'uuid', 'uri', 'ipv4', 'ipv6', 'hostname', 'duration'].map(
          (format) => ({ type: 'string', format }),
        ),
        minItems: 10,
      },
    ],
    ['with a pattern', { type: 'string', pattern: '^[A-Z]{2}-\\d{4,6}$' }],
    [
      'with a required name that is not described',
      { type: 'object', required: ['x'], additionalProperties: { type: 'integer' } },
    ],
    ['with so many properties', { type: 'object', minProperties: 3, additionalProperties: { type: 'integer' } }],
    [
      'of all parts',
      {
        allOf: [
          { type: 'object', required: ['a'], properties: { a: { type: 'string' } } },
          { required: ['b'], properties: { b: { type: 'integer', minimum: 4 } } },
        ],
      },
    ],
    [
      'of one choice',
      {
        type: 'object',
        properties: {
          x: { anyOf: [{ type: 'integer' }, { type: 'null' }] },
          y: { oneOf: [{ const: 'a' }, { const: 'b' }] },
        },
        required: ['x', 'y'],
      },
    ],
    [
      'by reference',
      {
        $ref: '#/$defs/a',
        $defs: {
          a: { type: 'object', properties: { b: { $ref: '#/$defs/c%20d' } } },
          'c d': { type: 'integer', minimum: 9 },
        },
      },
    ],
    ['of a tree', tree],
    [
      'of a list that ends',
      {
        $defs: {
          node: {
            type: 'object',
            required: ['next'],
            properties: { next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } },
          },
        },
        $ref: '#/$defs/node',
      },
    ],
    [
      'with fixed items',
      { type: 'array', prefixItems: [{ type: 'string' }, { type: 'integer' }], items: false, minItems: 2 },
    ],
    ['that contains something', { type: 'array', contains: { const: 5 } }],
    [
      'with names of Object.prototype',
      { type: 'object', required: ['constructor', '__proto__'], additionalProperties: { type: 'string' } },
    ],
    [
      'of strict tools',
      {
        type: 'object',
        additionalProperties: false,
        required: ['city', 'unit'],
        properties: {
          city: { type: 'string', description: 'A city' },
          unit: { type: ['string', 'null'], enum: ['C', 'F', null] },
        },
      },
    ],
  ])('%s is valid', (_, schema) => {
    expect(problemsOf(schema)).toEqual([]);
  });

  it('fits every simple schema', () => {
    const range = fc.tuple(fc.integer({ min: -50, max: 50 }), fc.nat(50));
    const { schema } = fc.letrec<{ schema: JsonObject }>((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom<JsonObject>({ type: 'boolean' }, { type: 'null' }, { type: 'string', format: 'date' }),
        range.map(([minimum, more]): JsonObject => ({ type: 'integer', minimum, maximum: minimum + more })),
        range.map(([low, more]): JsonObject => ({ type: 'number', exclusiveMinimum: low, maximum: low + more + 1 })),
        fc
          .tuple(fc.nat(40), fc.nat(40))
          .map(([minLength, more]): JsonObject => ({ type: 'string', minLength, maxLength: minLength + more })),
        fc.tuple(tie('schema'), fc.nat(3)).map(([items, minItems]): JsonObject => ({ type: 'array', items, minItems })),
        fc
          .tuple(fc.dictionary(fc.string({ maxLength: 5 }), tie('schema'), { maxKeys: 4 }), fc.boolean())
          .map(([properties, all]): JsonObject => ({
            type: 'object',
            properties,
            additionalProperties: false,
            required: all ? Object.keys(properties) : [],
          })),
        fc.tuple(tie('schema'), tie('schema')).map(([a, b]): JsonObject => ({ anyOf: [a, b] })),
      ),
    }));
    fc.assert(
      fc.property(schema, (one) => void expect(problemsOf(one)).toEqual([])),
      { numRuns: 150 },
    );
  });

  it('of hostile schemas is found at once', () => {
    const started = workedMs();
    const double: JsonObject = { $defs: {} };
    const defs = double['$defs'] as JsonObject;
    for (let i = 0; i < 60; i++)
      defs[`d${i}`] = {
        type: 'object',
        required: ['a', 'b'],
        properties: { a: { $ref: `#/$defs/d${i + 1}` }, b: { $ref: `#/$defs/d${i + 1}` } },
      };
    const hostile: Json[] = [
      { ...double, $ref: '#/$defs/d0' },
      { $ref: '#' },
      { allOf: [{ $ref: '#' }, { $ref: '#' }] },
      { type: 'array', minItems: 1e9, items: { $ref: '#' } },
      { type: 'string', minLength: 1e12 },
      { type: 'string', pattern: '((((a{1000}){1000}){1000}){1000})' },
      { type: 'object', minProperties: 1e9 },
    ];
    for (const schema of hostile) expect(() => instanceOf(schema)).not.toThrow();
    expect(workedMs() - started).toBeLessThan(2_000);
  });
});

it.each([
  ['9007199254740992', '9007199254740993'],
  ['-9223372036854775808', '9223372036854775807'],
])('an integer from %s to %s, which no double holds, is within its bounds', (minimum, maximum) => {
  const within = (least: string) => {
    const schema = parseExactly(`{"type": "integer", "minimum": ${least}, "maximum": ${maximum}}`);
    return JSON.stringify(instanceOf(isObject(schema) ? schema : {}));
  };
  expect(within(minimum)).toBe(minimum);
  expect(within('3')).toBe('3');
});
