import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { error_classes } from '../../clients/typescript/src/errors.ts';
import { typesOf, type OpenApi } from './types-of-openapi.ts';

const root = join(import.meta.dirname, '../..');
const openapi: OpenApi & {
  components: { schemas: { Error: { properties: { error: { properties: { type: { enum: string[] } } } } } } };
} = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8'));

test('the types of the TypeScript client are those of openapi.json', async () => {
  await expect(typesOf(openapi)).toMatchFileSnapshot(join(root, 'clients/typescript/src/types.ts'));
});

test('a field that is added, renamed or of another type changes the types', () => {
  const before = typesOf(openapi);
  const changed = structuredClone(openapi);
  changed.components.schemas['Task'] = { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } };
  expect(typesOf(changed)).toContain('export type Task = {\n  id: number;\n};');
  expect(before).not.toContain('  id: number;\n};');
});

test('each error type of openapi.json has its class, and no other', () => {
  const types = openapi.components.schemas.Error.properties.error.properties.type.enum;
  expect(Object.keys(error_classes).toSorted()).toEqual(types.toSorted());
});
