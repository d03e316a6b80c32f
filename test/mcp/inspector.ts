import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { assert } from '../../src/lib/assert.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';

/** npm run test:inspector: the official Inspector asks for tools and calls them, by both transports. */

const folder = process.env['MEDLEY_TEST_INSPECTOR'] ?? '';
const program = join(folder, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');
const cli = join(import.meta.dirname, '../../src/cli.ts');

let service: TestApp;
let key: string;

beforeAll(async () => {
  assert(folder !== '', 'the command says where the Inspector is');
  service = await startTestApp();
  ({ key } = await service.client({ credit: '1.00' }));
}, 120_000);

afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

/** Runs the Inspector to its end, with a home of its own, and returns the result that it prints. */
async function inspect(target: readonly string[], method: readonly string[]): Promise<Record<string, unknown>> {
  const args = [program, '--cli', ...target, '--method', ...method];
  const env = { PATH: process.env['PATH'] ?? '', HOME: folder };
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: folder, env, maxBuffer: 64e6 });
  return JSON.parse(stdout);
}

const targets: [string, () => string[]][] = [
  ['over HTTP', () => [`${service.url}/mcp`, '--transport', 'http', '--header', `Authorization: Bearer ${key}`]],
  [
    'over stdin and stdout',
    () => [process.execPath, cli, 'mcp', '-e', `MEDLEY_URL=${service.url}`, '-e', `MEDLEY_API_KEY=${key}`],
  ],
];

describe.each(targets)('the Inspector, %s', (_name, target) => {
  test('lists the tools with their inputs', async () => {
    const { tools } = await inspect(target(), ['tools/list']);
    expect(tools).toEqual(
      expect.arrayContaining(
        ['list_models', 'generate', 'chat', 'get_balance'].map((name) =>
          expect.objectContaining({ name, inputSchema: expect.objectContaining({ type: 'object' }) }),
        ),
      ),
    );
  });

  test('makes an image of the sandbox, as a link and as content', async () => {
    const input = JSON.stringify({ prompt: 'a red bicycle', width: 64, height: 64 });
    const words = ['tools/call', '--tool-name', 'generate', '--tool-arg', 'model=sandbox/image', `input=${input}`];
    const { content, isError } = await inspect(target(), words);
    expect(isError ?? false).toBe(false);
    expect(content).toEqual([
      expect.objectContaining({ type: 'text', text: expect.stringContaining('succeeded') }),
      expect.objectContaining({ type: 'resource_link', mimeType: 'image/png' }),
      expect.objectContaining({ type: 'image', data: expect.stringMatching(/^iVBORw0KGgo/) }),
    ]);
  });

  test('reads the balance', async () => {
    const { content } = await inspect(target(), ['tools/call', '--tool-name', 'get_balance']);
    expect(content).toEqual([expect.objectContaining({ type: 'text', text: expect.stringContaining('"balance"') })]);
  });
});
