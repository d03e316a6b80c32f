import fc from 'fast-check';
import { isRecord } from './text.ts';

/** A JSON Schema as the reference has it, and the document that its references lead into. */
export type SchemaDocument = Record<string, unknown>;

/** Values that fit `schema`, as far as this service's documents go. */
export function fitting(schema: unknown, document: SchemaDocument): fc.Arbitrary<unknown> {
  if (!isRecord(schema)) return fc.jsonValue();
  if (typeof schema['$ref'] === 'string') return fitting(lookUp(document, schema['$ref']), document);
  if ('const' in schema) return fc.constant(schema['const']);
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...schema['enum']);
  const several = schema['oneOf'] ?? schema['anyOf'];
  if (Array.isArray(several)) return fc.oneof(...several.map((one) => fitting(one, document)));
  return ofType(schema, document);
}

function ofType(schema: SchemaDocument, document: SchemaDocument): fc.Arbitrary<unknown> {
  const number = (name: string, otherwise: number) =>
    typeof schema[name] === 'number' ? Number(schema[name]) : otherwise;
  switch (schema['type']) {
    case 'string':
      return ofFormat(schema['format'], number('minLength', 0), number('maxLength', 40));
    case 'integer':
      return fc.integer({ min: number('minimum', 0), max: Math.min(number('maximum', 1_000), 2_147_483_647) });
    case 'number':
      return fc.double({ min: number('minimum', 0), max: number('maximum', 1_000), noNaN: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(fitting(schema['items'], document), { maxLength: 3 });
    case 'object':
      return ofObject(schema, document);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
}

function ofFormat(format: unknown, minLength: number, maxLength: number): fc.Arbitrary<string> {
  if (format === 'date-time') {
    return fc
      .date({ min: new Date('2020-01-01'), max: new Date('2030-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString());
  }
  if (format === 'uri') return fc.constantFrom('https://example.com/hook', 'http://example.org:8080/a?b=c');
  return fc.string({ unit: 'grapheme', minLength, maxLength: Math.min(maxLength, 40) });
}

function ofObject(schema: SchemaDocument, document: SchemaDocument): fc.Arbitrary<unknown> {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {};
  const required = Array.isArray(schema['required']) ? schema['required'].map(String) : [];
  const values = Object.fromEntries(Object.entries(properties).map(([key, one]) => [key, fitting(one, document)]));
  const declared = fc.record(values, { requiredKeys: required.filter((key) => key in values) });
  const others = additional(schema, document);
  return others === undefined ? declared : fc.tuple(declared, others).map(([a, b]) => ({ ...b, ...a }));
}

/** Members that the schema does not name, where it takes them: of metadata, for example. */
function additional(schema: SchemaDocument, document: SchemaDocument): fc.Arbitrary<object> | undefined {
  const { additionalProperties: others, patternProperties: patterns } = schema;
  const of = isRecord(patterns) ? Object.values(patterns)[0] : others;
  if (!isRecord(of)) return undefined;
  return fc.dictionary(fc.string({ unit: 'grapheme', maxLength: 10 }), fitting(of, document), { maxKeys: 3 });
}

function lookUp(document: SchemaDocument, reference: string): unknown {
  let target: unknown = document;
  for (const part of reference.replace(/^#\//, '').split('/')) {
    if (!isRecord(target)) throw new Error(`${reference} leads nowhere`);
    target = target[part.replaceAll('~1', '/').replaceAll('~0', '~')];
  }
  return target;
}
