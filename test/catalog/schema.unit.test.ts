import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { publishedSchema } from '../../src/catalog/schema.ts';

const published = fileURLToPath(new URL('../../medley.schema.json', import.meta.url));
const example = new URL('../../medley.example.yaml', import.meta.url);

const line_length_max = 120;

/** JSON as the repository's formatter writes it: lists of plain values on one line where they fit. */
function formatted(value: object): string {
  const text = JSON.stringify(value, null, 2);
  return `${text.replace(/^( *)(.*)\[\n([^[\]{}]*?)\n *\](,?)$/gm, (whole, indent, before, items, comma) => {
    const line = `${indent}${before}[${items.trim().replace(/,\n */g, ', ')}]${comma}`;
    return line.length <= line_length_max ? line : whole;
  })}\n`;
}

describe('medley.schema.json', () => {
  it('is what the source generates (vitest -u writes it again)', async () => {
    await expect(formatted(publishedSchema())).toMatchFileSnapshot(published);
  });

  /** An editor knows neither our formats nor our keyword. */
  const validate = new Ajv2020({ strict: false, validateFormats: false, allErrors: true }).compile(
    JSON.parse(JSON.stringify(publishedSchema())),
  );

  it('accepts the example as any editor does', async () => {
    validate(parse(await readFile(example, 'utf8')));
    expect(validate.errors).toBeNull();
  });

  it('refuses unknown settings and secrets', () => {
    expect(validate({ version: 1, limit: {} })).toBe(false);
    expect(validate({ version: 1, providers: { a: { adapter: 'x', api_key: 'sk-123' } } })).toBe(false);
  });

  it('describes every setting', () => {
    const undescribed: string[] = [];
    const look = (node: object, path: string) => {
      for (const [name, below] of Object.entries('properties' in node ? (node.properties ?? {}) : {})) {
        if (!('description' in below) || !below.description) undescribed.push(`${path}.${name}`);
        look(below, `${path}.${name}`);
      }
      for (const key of ['items', 'additionalProperties'] as const) {
        const below: unknown = Reflect.get(node, key);
        if (typeof below === 'object' && below !== null) look(below, `${path}[]`);
      }
    };
    look(publishedSchema(), '');
    expect(undescribed).toEqual([]);
  });
});
