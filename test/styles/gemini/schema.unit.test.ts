import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import { parseExactly } from '../../../src/lib/long-integers.ts';
import { geminiSchema } from '../../../src/styles/gemini/schema.ts';
import { isObject } from '../../../src/styles/fields.ts';

const text = { type: 'string' };

/** Every keyword that Gemini's reference names for schemas of answers and of tools. */
const keywords = [
  '$defs',
  '$ref',
  'type',
  'format',
  'title',
  'description',
  'enum',
  'items',
  'prefixItems',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'anyOf',
  'properties',
  'additionalProperties',
  'required',
  'propertyOrdering',
];

describe('a schema for Gemini', () => {
  it.each<[string, JsonObject, JsonObject]>([
    [
      'tells in words what it does not know, wherever that stands',
      { type: 'object', properties: { a: { ...text, description: 'Town', minLength: 1, pattern: '^A' } } },
      { type: 'object', properties: { a: { ...text, description: 'Town\n{minLength: 1, pattern: "^A"}' } } },
    ],
    [
      'tells bounds that exclude their number',
      { type: 'integer', exclusiveMinimum: 0, maximum: 9 },
      { type: 'integer', maximum: 9, description: '{exclusiveMinimum: 0}' },
    ],
    ['leaves out what no model reads', { $schema: 'x', $id: 'y', ...text }, text],
    [
      'tells defaults and examples',
      { default: 1, examples: [1], ...text },
      { ...text, description: '{default: 1, examples: [1]}' },
    ],
    ['takes anyOf for oneOf', { oneOf: [text, { type: 'null' }] }, { anyOf: [text, { type: 'null' }] }],
    ['takes enum for const', { const: 'a' }, { enum: ['a'] }],
    ['tells a const that is neither text nor number', { const: true }, { description: '{const: true}' }],
    ['tells an enum with other values', { enum: ['a', null] }, { description: '{enum: ["a",null]}' }],
    ['keeps formats that are known', { ...text, format: 'date-time' }, { ...text, format: 'date-time' }],
    ['tells other formats', { ...text, format: 'iban' }, { ...text, description: '{format: "iban"}' }],
    ['makes null a type of what may be null', { ...text, nullable: true }, { type: ['string', 'null'] }],
    ['keeps lists of types', { type: ['string', 'null'] }, { type: ['string', 'null'] }],
    [
      'takes prefixItems for a list of items',
      { type: 'array', items: [text, { const: 1 }] },
      { type: 'array', prefixItems: [text, { enum: [1] }] },
    ],
    [
      'keeps what is said of further properties',
      { type: 'object', additionalProperties: { ...text, minLength: 1 } },
      { type: 'object', additionalProperties: { ...text, description: '{minLength: 1}' } },
    ],
    [
      'keeps closed objects',
      { type: 'object', additionalProperties: false },
      { type: 'object', additionalProperties: false },
    ],
    [
      'makes true the schema of anything',
      { type: 'object', properties: { a: true } },
      { type: 'object', properties: { a: {} } },
    ],
    [
      'keeps references to definitions, in one place',
      { $ref: '#/definitions/a', definitions: { a: text }, $defs: { b: { $ref: '#/$defs/a' } } },
      { $ref: '#/$defs/a', $defs: { a: text, b: { $ref: '#/$defs/a' } } },
    ],
    [
      'leaves nothing beside a reference',
      { type: 'object', properties: { a: { $ref: '#/$defs/a', description: 'A' } }, $defs: { a: text } },
      { type: 'object', properties: { a: { anyOf: [{ $ref: '#/$defs/a' }], description: 'A' } }, $defs: { a: text } },
    ],
    ['tells references that lead elsewhere', { $ref: '#/properties/a' }, { description: '{$ref: "#/properties/a"}' }],
    [
      'makes one schema of allOf',
      {
        allOf: [
          { type: 'object', properties: { a: text }, required: ['a'] },
          { allOf: [{ properties: { b: text }, required: ['b'] }] },
        ],
        description: 'Both',
      },
      { description: 'Both', type: 'object', properties: { a: text, b: text }, required: ['a', 'b'] },
    ],
    [
      'keeps properties with the names of keywords',
      { type: 'object', properties: { pattern: text, const: text, $ref: text } },
      { type: 'object', properties: { pattern: text, const: text, $ref: text } },
    ],
  ])('%s', (_, schema, expected) => {
    expect(geminiSchema(schema)).toEqual(expected);
  });

  const keyword = fc.constantFrom(
    ...keywords,
    'oneOf',
    'allOf',
    'const',
    'pattern',
    'not',
    'nullable',
    'definitions',
    '__proto__',
  );
  const { json } = fc.letrec<{ json: Json }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 5 },
      fc.constantFrom(null, true, false, 0, 'object', '#/$defs/a', ''),
      fc.array(tie('json'), { maxLength: 3 }),
      fc.dictionary(keyword, tie('json'), { maxKeys: 4 }),
    ),
  }));

  it('is built from any JSON and has no other keywords', () => {
    fc.assert(
      fc.property(fc.dictionary(keyword, json, { maxKeys: 4 }), (schema) => {
        const before = JSON.stringify(schema);
        const result = geminiSchema(schema);
        expect(Object.keys(result).filter((key) => !keywords.includes(key))).toEqual([]);
        expect(JSON.stringify(schema)).toBe(before);
      }),
      { numRuns: 1000 },
    );
  });
});

it('a schema for Gemini keeps a choice among numbers that no double holds', () => {
  const schema = parseExactly('{"type": "integer", "enum": [9007199254740993, 1]}');
  expect(JSON.stringify(geminiSchema(isObject(schema) ? schema : {}))).toBe(
    '{"type":"integer","enum":[9007199254740993,1]}',
  );
  const nonsense = parseExactly('{"$defs": 9007199254740993, "properties": 9007199254740993}');
  expect(JSON.stringify(geminiSchema(isObject(nonsense) ? nonsense : {}))).not.toContain('"digits"');
});
