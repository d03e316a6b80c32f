import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../../helpers/app.ts';

const program = fileURLToPath(new URL('../../../scripts/programs/openapi-lint.mjs', import.meta.url));
const published = fileURLToPath(new URL('../../../openapi.json', import.meta.url));

const yaml = `
version: 1
currencies: { USD: "1" }
models:
  - id: acme/trees.1
    kind: image
    name: Trees
    created: 2026-03-01
    input_schema:
      $schema: https://json-schema.org/draft/2020-12/schema
      $id: https://example.com/tree
      type: object
      required: [prompt]
      properties: { prompt: { type: string }, leaves: { type: array, items: { $ref: "#/$defs/leaf" } } }
      $defs: { leaf: { type: integer } }
    price: [{ unit: image, amount: "0.10" }]
    estimate: { image: "1" }
    routes: [{ provider: sandbox, upstream_model: image }]
`;

let service: TestApp;
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'medley-rules-'));
  service = await startTestApp({ yaml, worker: false });
});
afterAll(async () => {
  await service?.stop();
  await rm(folder, { recursive: true, force: true });
});

/** Redocly's recommended rules, as `npm run openapi-lint` asks them. */
function ask(file: string): Promise<{ code: number; output: string }> {
  const words = [program, '--rules', 'redocly', '--file', file];
  return new Promise((resolve) => {
    execFile(process.execPath, words, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr }),
    );
  });
}

async function askAbout(text: string): Promise<{ code: number; output: string }> {
  const file = join(folder, `${crypto.randomUUID()}.json`);
  await writeFile(file, text);
  return ask(file);
}

describe("Redocly's recommended rules", () => {
  test('find nothing in openapi.json', async () => {
    expect(await ask(published)).toEqual({ code: 0, output: 'Redocly: 0 problems\n' });
  });

  test("find nothing in the document of a service with models of its operator's own", async () => {
    const response = await fetch(`${service.url}/openapi.json`);
    const text = await response.text();
    expect(text).toContain('Input_acme_trees_1');
    expect(await askAbout(text)).toEqual({ code: 0, output: 'Redocly: 0 problems\n' });
  });

  test('find two paths that differ in the names of their parts only', async () => {
    const text = await readFile(published, 'utf8');
    const broken = text.replace('"/v1/tasks/{id}/cancel"', '"/v1/tasks/{other}"');
    expect(broken).not.toBe(text);
    const { code, output } = await askAbout(broken);
    expect(code).toBe(1);
    expect(output).toContain('error no-identical-paths #/paths/~1v1~1tasks~1{other}: ');
  });
});

test('`npm run openapi-lint` refuses rules that it does not know', async () => {
  const code = await new Promise((resolve) => {
    execFile(process.execPath, [program, '--rules', 'none'], (error) => resolve(error?.code));
  });
  expect(code).toBe(2);
});
