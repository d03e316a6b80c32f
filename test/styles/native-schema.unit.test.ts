import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { nativeSchema } from '../../src/styles/messages/schema.ts';
import { isStrict } from '../../src/styles/structured.ts';

const text = { type: 'string' };

describe('a schema for constrained decoding', () => {
  it.each<[string, JsonObject, JsonObject]>([
    [
      'closes every object',
      {
        type: 'object',
        properties: { a: { type: ['object', 'null'], properties: { b: text } } },
        $defs: { c: { type: 'object' } },
      },
      {
        type: 'object',
        properties: { a: { type: ['object', 'null'], properties: { b: text }, additionalProperties: false } },
        $defs: { c: { type: 'object', additionalProperties: false } },
        additionalProperties: false,
      },
    ],
    [
      'tells in words what it cannot hold',
      { type: 'string', description: 'Town', minLength: 2, pattern: '^A' },
      { type: 'string', description: 'Town\n{minLength: 2, pattern: "^A"}' },
    ],
    ['keeps formats that are known', { type: 'string', format: 'date-time' }, { type: 'string', format: 'date-time' }],
    ['tells others in words', { type: 'string', format: 'iban' }, { type: 'string', description: '{format: "iban"}' }],
    [
      'keeps minItems of 0 and 1',
      { type: 'array', items: text, minItems: 1 },
      { type: 'array', items: text, minItems: 1 },
    ],
    [
      'tells larger ones in words',
      { type: 'array', items: text, minItems: 2 },
      { type: 'array', items: text, description: '{minItems: 2}' },
    ],
    ['takes anyOf for oneOf', { oneOf: [text, { type: 'null' }] }, { anyOf: [text, { type: 'null' }] }],
    [
      'keeps references to definitions',
      { $ref: '#/$defs/a', $defs: { a: text, b: { $ref: '#/$defs/a' } } },
      { $ref: '#/$defs/a', $defs: { a: text, b: { $ref: '#/$defs/a' } } },
    ],
    ['leaves out what says nothing about values', { $schema: 'x', $id: 'y', type: 'string' }, { type: 'string' }],
    [
      'keeps properties with the names of keywords',
      { type: 'object', properties: { pattern: text, minLength: text } },
      { type: 'object', properties: { pattern: text, minLength: text }, additionalProperties: false },
    ],
  ])('%s', (_, schema, expected) => {
    expect(nativeSchema(schema)).toEqual(expected);
  });

  it.each<[string, JsonObject]>([
    ['circles', { $ref: '#/$defs/a', $defs: { a: { type: 'object', properties: { next: { $ref: '#/$defs/a' } } } } }],
    [
      'circles over two definitions',
      { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } },
    ],
    ['the schema itself', { type: 'object', properties: { next: { $ref: '#' } } }],
    ['other documents', { $ref: 'https://example.com/schema' }],
    ['free names', { type: 'object', additionalProperties: text }],
    ['names by a pattern', { type: 'object', patternProperties: { '^a': text } }],
  ])('is not built from %s', (_, schema) => {
    expect(nativeSchema(schema)).toBeUndefined();
  });

  it('is built from any JSON or not at all', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('$ref', '$defs', 'properties', 'items', 'oneOf', 'type'), fc.jsonValue()),
        (schema) => {
          const before = JSON.stringify(schema);
          expect(nativeSchema(schema as JsonObject)).not.toBeNull();
          expect(JSON.stringify(schema)).toBe(before);
        },
      ),
    );
  });
});

it.each<[boolean, JsonObject]>([
  [true, { type: 'object', properties: { a: text }, required: ['a'], additionalProperties: false }],
  [false, { type: 'object', properties: { a: text }, additionalProperties: false }],
  [false, { type: 'object', properties: { a: text }, required: ['a'] }],
  [false, { type: 'array', items: { type: 'object' } }],
  [true, { type: 'array', items: text }],
])('may be strict: %s for %j', (expected, schema) => {
  expect(isStrict(schema)).toBe(expected);
});
