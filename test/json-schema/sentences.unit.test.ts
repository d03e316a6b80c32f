import { Ajv2020, type SchemaObject, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fieldErrors, type FieldError } from '../../src/json-schema/sentences.ts';

const modes = [{ verbose: true }, { verbose: false }];

const compilers = new Map(modes.map((mode) => [mode.verbose, makeCompiler(mode)]));
const compiled = new Map<string, { schema: SchemaObject; validate: ValidateFunction }>();

function makeCompiler(mode: { verbose: boolean }): (schema: SchemaObject) => ValidateFunction {
  const ajv = new Ajv2020({ allErrors: true, strict: false, ...mode });
  addFormats.default(ajv);
  return (schema) => ajv.compile(schema);
}

function check(input_schema: SchemaObject, input: unknown, { verbose } = { verbose: true }): FieldError[] {
  const key = JSON.stringify([input_schema, verbose]);
  const compile = compilers.get(verbose) ?? makeCompiler({ verbose });
  const { schema, validate } = compiled.get(key) ?? { schema: input_schema, validate: compile(input_schema) };
  compiled.set(key, { schema, validate });
  validate(input);
  return fieldErrors(validate.errors ?? [], input, { prefix: 'input', owner: 'model acme/x', schema });
}

function messages(schema: SchemaObject, input: unknown, mode?: { verbose: boolean }): string[] {
  return check(schema, input, mode).map(({ message }) => message);
}

/** A schema with the property x, and a value for it. */
const x = (schema: object | boolean) => ({ type: 'object', properties: { x: schema } });
const ratios = { enum: ['adaptive', '16:9', '9:16', '1:1'] };
const lora = {
  type: 'object',
  required: ['url'],
  additionalProperties: false,
  properties: { url: { type: 'string' } },
};

const sentences: [string, SchemaObject, unknown, string][] = [
  ['missing', { required: ['prompt'] }, {}, 'input.prompt is required.'],
  ['wrong type', x({ type: 'string' }), { x: 5 }, 'input.x must be a string (got number).'],
  ['null', x({ type: 'string' }), { x: null }, 'input.x must be a string (got null).'],
  ['array', x({ type: 'object' }), { x: [] }, 'input.x must be an object (got array).'],
  ['several types', x({ type: ['string', 'null'] }), { x: 5 }, 'input.x must be a string or null (got number).'],
  ['integer', x({ type: 'integer' }), { x: 1.5 }, 'input.x must be an integer (got 1.5).'],
  ['the whole', { type: 'object' }, 'text', 'input must be an object (got string).'],
  ['too big', x({ maximum: 10 }), { x: 99 }, 'input.x must be at most 10 (got 99).'],
  ['too small', x({ minimum: 1 }), { x: -1e308 }, 'input.x must be at least 1 (got -1e+308).'],
  ['not below', x({ exclusiveMaximum: 10 }), { x: 10 }, 'input.x must be less than 10 (got 10).'],
  ['not above', x({ exclusiveMinimum: 0 }), { x: 0 }, 'input.x must be greater than 0 (got 0).'],
  ['multiple', x({ multipleOf: 8 }), { x: 513 }, 'input.x must be a multiple of 8 (got 513).'],
  ['too long', x({ maxLength: 2 }), { x: 'abc' }, 'input.x must have at most 2 characters (got 3).'],
  ['characters', x({ maxLength: 1 }), { x: '😀😀' }, 'input.x must have at most 1 character (got 2).'],
  ['empty', x({ minLength: 1 }), { x: '' }, 'input.x must have at least 1 character (got 0).'],
  ['many items', x({ maxItems: 1 }), { x: [1, 2] }, 'input.x must have at most 1 item (got 2).'],
  ['few items', x({ minItems: 3 }), { x: [1, 2] }, 'input.x must have at least 3 items (got 2).'],
  ['no more items', x({ prefixItems: [{}], items: false }), { x: [1, 2] }, 'input.x must have at most 1 item (got 2).'],
  ['many fields', x({ maxProperties: 1 }), { x: { a: 1, b: 2 } }, 'input.x must have at most 1 field (got 2).'],
  ['few fields', x({ minProperties: 2 }), { x: {} }, 'input.x must have at least 2 fields (got 0).'],
  [
    'not in list',
    x(ratios),
    { x: 'adaptiv' },
    'input.x must be one of "adaptive", "16:9", "9:16", "1:1" (got "adaptiv"). Did you mean "adaptive"?',
  ],
  ['not in list, not near', x({ enum: ['a', 'b'] }), { x: {} }, 'input.x must be one of "a", "b" (got object).'],
  [
    'number for text',
    x({ enum: ['480p', '720p'] }),
    { x: 720 },
    'input.x must be one of "480p", "720p" (got 720). Did you mean "720p"?',
  ],
  ['text for number', x({ enum: [5, 10] }), { x: '5' }, 'input.x must be one of 5, 10 (got "5"). Did you mean 5?'],
  ['list of one', x({ enum: [null] }), { x: 1 }, 'input.x must be null (got 1).'],
  ['const', x({ const: 'fast' }), { x: 'slow' }, 'input.x must be "fast" (got "slow").'],
  ['const object', x({ const: { a: [1] } }), { x: 1 }, 'input.x must be {"a":[1]} (got 1).'],
  [
    'unknown field',
    { properties: { prompt: {}, duration: {} }, additionalProperties: false },
    { duraton: 1 },
    'input.duraton is not a known field of model acme/x. Did you mean "duration"?',
  ],
  [
    'unknown, not near',
    { additionalProperties: false },
    { zoom: 1 },
    'input.zoom is not a known field of model acme/x.',
  ],
  [
    'unevaluated field',
    { allOf: [{ properties: { size: {} } }], unevaluatedProperties: false },
    { sizee: 1 },
    'input.sizee is not a known field of model acme/x. Did you mean "size"?',
  ],
  ['nested missing', x({ type: 'array', items: lora }), { x: [{}] }, 'input.x[0].url is required.'],
  [
    'nested unknown',
    x({ type: 'array', items: lora }),
    { x: [{ url: '' }, { url: '', ur: 1 }] },
    'input.x[1].ur is not a known field of model acme/x. Did you mean "url"?',
  ],
  [
    'dependent',
    { dependentRequired: { camera: ['image'] } },
    { camera: 1 },
    'input.image is required when input.camera is set.',
  ],
  ['URL', x({ format: 'uri' }), { x: 'no' }, 'input.x must be a URL.'],
  ['e-mail', x({ format: 'email' }), { x: 'no' }, 'input.x must be an e-mail address.'],
  ['other format', x({ format: 'int32' }), { x: 1.5 }, 'input.x must be of the format "int32".'],
  [
    'pattern',
    x({ pattern: '^#[0-9a-f]{6}$' }),
    { x: 'red' },
    'input.x must match the pattern ^#[0-9a-f]{6}$ (got "red").',
  ],
  ['unique', x({ uniqueItems: true }), { x: [1, 2, 1] }, 'input.x must not have the same item twice (items 0 and 2).'],
  ['contains', x({ contains: { type: 'string' } }), { x: [1, 2] }, 'input.x must have at least 1 fitting item.'],
  ['not allowed', x(false), { x: 1 }, 'input.x is not allowed.'],
  ['not', x({ not: { const: 'x' } }), { x: 'x' }, 'input.x must not be this value (got "x").'],
  [
    'not together',
    { not: { required: ['a', 'b'] } },
    { a: 1, b: 1 },
    'input must not have input.a and input.b together.',
  ],
  ['names', { propertyNames: { pattern: '^[a-z]+$' } }, { A: 1 }, 'input.A is not a valid name for a field.'],
  ['then', { if: { required: ['a'] }, then: { required: ['b'] } }, { a: 1 }, 'input.b is required.'],
];

describe.each(modes)('the message of a schema error is one sentence (%j)', (mode) => {
  it.each(sentences)('for %s', (_name, schema, input, message) => {
    expect(messages(schema, input, mode)).toEqual([message]);
  });
});

const size = {
  type: 'object',
  required: ['width'],
  properties: { width: { type: 'integer' } },
  additionalProperties: false,
};
const shapes = [
  {
    type: 'object',
    required: ['kind', 'radius'],
    properties: { kind: { const: 'circle' }, radius: { type: 'number' } },
  },
  { type: 'object', required: ['kind', 'side'], properties: { kind: { const: 'square' }, side: { type: 'number' } } },
];

const branches: [string, SchemaObject, unknown, string][] = [
  [
    'all want another type',
    { anyOf: [{ type: 'string' }, { type: 'number' }] },
    true,
    'input.x must be a string or a number (got boolean).',
  ],
  [
    'optional text',
    { anyOf: [{ type: 'string', maxLength: 1 }, { type: 'null' }] },
    'ab',
    'input.x must have at most 1 character (got 2).',
  ],
  [
    'a choice beside an object',
    { anyOf: [size, { enum: ['square'] }] },
    'squar',
    'input.x must be "square" (got "squar"). Did you mean "square"?',
  ],
  [
    'an object beside a choice',
    { anyOf: [size, { enum: ['square'] }] },
    { width: 'a' },
    'input.x.width must be an integer (got string).',
  ],
  [
    'constants',
    { oneOf: [{ const: 'a' }, { const: 'b', title: 'B' }] },
    'c',
    'input.x must be one of "a", "b" (got "c").',
  ],
  ['the branch of its kind', { oneOf: shapes }, { kind: 'square' }, 'input.x.side is required.'],
  [
    'no kind fits',
    { oneOf: shapes },
    { kind: 'cube', radius: 1, side: 1 },
    'input.x.kind must be one of "circle", "square" (got "cube").',
  ],
  ['one of two', { anyOf: [{ required: ['a'] }, { required: ['b'] }] }, {}, 'input.x.a or input.x.b is required.'],
  [
    'both of one',
    { oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    { a: 1, b: 1 },
    'input.x must have only one of input.x.a and input.x.b.',
  ],
  [
    'two fit',
    { oneOf: [{ type: 'number' }, { minimum: 0 }] },
    1,
    'input.x fits more than one of the allowed forms; it must fit exactly one.',
  ],
  [
    'inside each other',
    { anyOf: [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, { type: 'number' }] },
    true,
    'input.x must be a string, null or a number (got boolean).',
  ],
];

describe.each(modes)('the best branch of a schema is reported (%j)', (mode) => {
  it.each(branches)('for %s', (_name, schema, value, message) => {
    expect(messages(x(schema), { x: value }, mode)).toEqual([message]);
  });

  it('behind references', () => {
    const schema = { $defs: { size }, ...x({ anyOf: [{ $ref: '#/$defs/size' }, { enum: ['square'] }] }) };
    expect(messages(schema, { x: { widht: 1 } }, mode)).toEqual([
      'input.x.width is required.',
      'input.x.widht is not a known field of model acme/x. Did you mean "width"?',
    ]);
    expect(messages(schema, { x: 'squar' }, mode)).toEqual([
      'input.x must be "square" (got "squar"). Did you mean "square"?',
    ]);
  });

  it('among branches that share a schema', () => {
    const part = { type: 'string' };
    const first = { properties: { a: { $ref: '#/$defs/part' } } };
    const second = { required: ['k'], properties: { b: { $ref: '#/$defs/part' } } };
    expect(messages({ $defs: { part }, anyOf: [first, second] }, { a: 1, b: 1 }, mode)).toEqual([
      'input.a must be a string (got number).',
    ]);
    expect(messages({ $defs: { part }, anyOf: [{ ...first, required: ['k'] }, first] }, { a: 1 }, mode)).toEqual([
      'input.a must be a string (got number).',
    ]);
  });

  it('beside the errors of other fields', () => {
    const choice = { anyOf: [{ type: 'string' }, { type: 'number' }] };
    const schema = { properties: { a: { type: 'string' }, b: choice, c: choice, d: { maximum: 1 } } };
    expect(messages(schema, { a: 1, b: true, c: null, d: 2 }, mode)).toEqual([
      'input.a must be a string (got number).',
      'input.b must be a string or a number (got boolean).',
      'input.c must be a string or a number (got null).',
      'input.d must be at most 1 (got 2).',
    ]);
  });
});

it('schemas that refer to themselves get messages', () => {
  const tree = {
    type: 'object',
    properties: { kid: { anyOf: [{ $ref: '#/$defs/tree' }, { type: 'string' }] } },
    additionalProperties: false,
  };
  const schema = { $defs: { tree }, $ref: '#/$defs/tree' };
  expect(messages(schema, { kid: { kid: { kod: 1 } } })).toEqual([
    'input.kid.kid.kod is not a known field of model acme/x. Did you mean "kid"?',
  ]);
  expect(messages(schema, { kid: { kid: 5 } })).toEqual(['input.kid.kid must be an object or a string (got number).']);
});

describe('the order of messages', () => {
  const schema = {
    type: 'object',
    properties: { a: { type: 'string' }, b: { maximum: 1 }, c: { type: 'number', enum: [1] }, d: {} },
    required: ['d'],
    additionalProperties: false,
  };

  it('is required, unknown, type, value', () => {
    expect(check(schema, { b: 2, e: 1, a: 5, c: 'x' })).toEqual([
      { field: 'input.d', rule: 'required', message: 'input.d is required.' },
      { field: 'input.e', rule: 'additionalProperties', message: expect.stringContaining('not a known field') },
      { field: 'input.a', rule: 'type', message: 'input.a must be a string (got number).' },
      { field: 'input.c', rule: 'type', message: 'input.c must be a number (got string).' },
      { field: 'input.b', rule: 'maximum', message: 'input.b must be at most 1 (got 2).' },
      { field: 'input.c', rule: 'enum', message: 'input.c must be 1 (got "x").' },
    ]);
  });

  it('ends after 20 and repeats nothing', () => {
    const many = check(
      { items: { type: 'string' } },
      Array.from({ length: 100_000 }, () => 1),
    );
    expect(many).toHaveLength(20);
    expect(many.at(-1)?.field).toBe('input[19]');
    expect(messages({ allOf: [x({ type: 'string' }), x({ type: 'string' })] }, { x: 1 })).toHaveLength(1);
  });
});

describe('a message about hostile input', () => {
  it.each([
    ['a slash and a tilde', { 'a/b~c': 1 }, 'input["a/b~c"]'],
    ['a pointer escape', { 'a~1b': 1 }, 'input["a~1b"]'],
    ['a quote', { 'a"]b': 1 }, 'input["a\\"]b"]'],
    ['NUL and a new line', { 'a\0\n': 1 }, 'input["a\\u0000\\n"]'],
    ['text that runs backwards', { 'a\u202eb': 1 }, 'input["a\\u202eb"]'],
    ['half a character', { '\ud83d': 1 }, 'input["\\ud83d"]'],
    ['a long name', { ['a'.repeat(100)]: 1 }, `input["${'a'.repeat(57)}…"]`],
    ['a number', { 0: 1 }, 'input["0"]'],
    ['nothing', { '': 1 }, 'input[""]'],
  ])('names the field with %s', (_name, input, field) => {
    expect(check({ additionalProperties: { type: 'string' } }, input)).toEqual([
      { field, rule: 'type', message: `${field} must be a string (got number).` },
    ]);
    expect(check({ additionalProperties: false }, input)[0]?.field).toBe(field);
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('names the field %s', (name) => {
    const input: unknown = JSON.parse(`{"${name}": {"a": 1}}`);
    const closed = { properties: { prompt: {} }, additionalProperties: false };
    expect(messages(closed, input)).toEqual([`input.${name} is not a known field of model acme/x.`]);
    const typed = { additionalProperties: { properties: { a: { type: 'string' } } } };
    expect(messages(typed, input)).toEqual([`input.${name}.a must be a string (got number).`]);
  });

  it('repeats at most 60 characters of a value', () => {
    const long = messages(x({ enum: ['a'] }), { x: '\u0000'.repeat(1000) })[0] ?? '';
    expect(long).toBe(`input.x must be "a" (got "${'\\u0000'.repeat(9)}…").`);
    const word = messages(x({ pattern: 'b' }), { x: 'a'.repeat(1_000_000) })[0] ?? '';
    expect(word).toBe(`input.x must match the pattern b (got "${'a'.repeat(57)}…").`);
    expect(messages(x({ enum: ['b'] }), { x: 'a'.repeat(58) })[0]).toContain(`(got "${'a'.repeat(58)}")`);
  });

  it('always names a field in printable characters', () => {
    const schema = {
      type: 'object',
      required: ['prompt'],
      properties: {
        prompt: { type: 'string', maxLength: 3 },
        n: { type: 'integer', minimum: 1 },
        size: { anyOf: [size, ratios] },
      },
      additionalProperties: { type: ['string', 'array'], maxItems: 1, maxLength: 2, items: lora },
    };
    const key = fc.oneof(
      fc.constantFrom('prompt', 'n', 'size', 'width', 'url', '__proto__'),
      fc.string({ unit: 'binary' }),
    );
    const { json } = fc.letrec<{ json: unknown }>((tie) => ({
      json: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.oneof(fc.string({ unit: 'binary', maxLength: 100 }), fc.double(), fc.boolean(), fc.constant(null)),
        fc.array(tie('json')),
        fc
          .array(fc.tuple(key, tie('json')))
          .map((members) => JSON.parse(JSON.stringify(Object.fromEntries(members))) as unknown),
      ),
    }));
    fc.assert(
      fc.property(json, fc.constantFrom(...modes), (input, mode) => {
        for (const { field, message } of check(schema, input, mode)) {
          expect(field).toMatch(/^input/);
          expect(message).toContain(field);
          expect(message).not.toMatch(/[\p{Cc}\p{Cs}\u202e]/u);
          expect(message.length).toBeLessThan(field.length + 300);
        }
      }),
      { numRuns: 200 },
    );
  });
});
