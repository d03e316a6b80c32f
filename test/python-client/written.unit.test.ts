import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import typescript_package from '../../clients/typescript/package.json' with { type: 'json' };
import type { OpenApi } from '../typescript-client/types-of-openapi.ts';
import { syncOf } from './sync-of-async.ts';
import { pythonTypesOf } from './types-of-openapi.ts';

const root = join(import.meta.dirname, '../..');
const client = join(root, 'clients/python');
const sources = join(client, 'src/medley_client');
const read = (...path: string[]) => readFileSync(join(...path), 'utf8');

const openapi: OpenApi & {
  components: { schemas: { Error: { properties: { error: { properties: { type: { enum: string[] } } } } } } };
} = JSON.parse(read(root, 'openapi.json'));

/** Files that both clients have, each with its own text. */
const own_files = ['__init__.py', 'platform.py'];
const shared_files = readdirSync(join(sources, '_async')).filter(
  (name) => name.endsWith('.py') && !own_files.includes(name),
);

/** Returns the operations of a client, such as `GET /v1/tasks/{}`. */
function operationsIn(texts: string[], request: RegExp): string[] {
  const calls = texts.flatMap((text) => [...text.matchAll(request)]);
  const operations = calls.map(([, method, path = '']) => `${method} ${path.replaceAll(/\$?\{[^}]*\}/g, '{}')}`);
  return [...new Set(operations)].toSorted();
}

const python_request = /\bRequest\(\s*"(GET|POST|PATCH|DELETE)",\s*f?"([^"]+)"/g;
const typescript_request = /\bmethod: '(GET|POST|PATCH|DELETE)',\s*path: ['`]([^'`]+)['`]/g;

describe('the Python client', () => {
  const python = operationsIn(
    [...shared_files.map((name) => read(sources, '_async', name)), read(sources, '_chat.py')],
    python_request,
  );

  test('has the operations of the TypeScript client', () => {
    const folder = join(root, 'clients/typescript/src');
    const texts = readdirSync(folder).map((name) => read(folder, name));
    const typescript = operationsIn(texts, typescript_request);
    expect(typescript.length).toBeGreaterThanOrEqual(17);
    expect(python).toEqual(typescript);
  });

  test('calls what openapi.json has', () => {
    const operations = Object.entries(openapi.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{[^}]*\}/g, '{}')}`),
    );
    expect(python.filter((operation) => !operations.includes(operation))).toEqual([]);
  });

  test('has the types of openapi.json', async () => {
    await expect(pythonTypesOf(openapi)).toMatchFileSnapshot(join(sources, 'types.py'));
  });

  test('gets other types when a field is added, renamed or of another type', () => {
    const changed = structuredClone(openapi);
    changed.components.schemas['Task'] = { type: 'object', required: ['id'], properties: { id: { type: 'integer' } } };
    expect(pythonTypesOf(changed)).toContain('class Task(TypedDict):\n    id: int\n');
    expect(pythonTypesOf(openapi)).not.toContain('    id: int\n');
  });

  test.each(shared_files)('has %s without async as it is with it', async (name) => {
    await expect(syncOf(read(sources, '_async', name))).toMatchFileSnapshot(join(sources, '_sync', name));
  });

  test('has no other file without async, and none of them awaits', () => {
    const files = readdirSync(join(sources, '_sync')).filter((name) => name.endsWith('.py'));
    expect(files.toSorted()).toEqual([...own_files, ...shared_files].toSorted());
    const awaiting = files.filter((name) =>
      /\bawait\b|\basync\b|\basyncio\b/.test(read(sources, '_sync', name).replaceAll(/#.*|"""[^]*?"""|\._async/g, '')),
    );
    expect(awaiting).toEqual([]);
  });

  test('has a class for each error type of openapi.json, and no other', () => {
    const [, table = ''] = /ERROR_CLASSES[^=]*= \{([^}]*)\}/.exec(read(sources, '_errors.py')) ?? [];
    const names = [...table.matchAll(/^ {4}"(\w+)": \(/gm)].map(([, name]) => name);
    expect(names.toSorted()).toEqual(openapi.components.schemas.Error.properties.error.properties.type.enum.toSorted());
  });

  test('has the version and the licence of the TypeScript client', () => {
    expect(read(sources, '_version.py')).toBe(`__version__ = "${typescript_package.version}"\n`);
    expect(read(client, 'pyproject.toml')).toContain(`\nlicense = "${typescript_package.license}"\n`);
    expect(read(client, 'LICENSE')).toBe(read(root, 'clients/typescript/LICENSE'));
  });
});
