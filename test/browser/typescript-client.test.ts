import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { launchBrowser } from '../helpers/browser.ts';
import { installClient } from '../helpers/built-client.ts';

let service: TestApp;
let chromium: Awaited<ReturnType<typeof launchBrowser>>;
let pages: Server;
let origin: string;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'medley-page-'));
  const client = installClient(folder);
  pages = createServer((request, response) => {
    const name = /^\/dist\/([\w-]+\.js)$/.exec(request.url ?? '')?.[1];
    response.setHeader('content-type', name ? 'text/javascript' : 'text/html');
    response.end(name ? readFileSync(join(client, 'dist', name)) : '<!doctype html><title>Page</title>');
  });
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  service = await startTestApp({ yaml: `version: 1\nserver: { cors_origins: ["${origin}"] }\n` });
  chromium = await launchBrowser();
});
afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  pages?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('a page of another origin generates, downloads and uploads with the TypeScript client', async () => {
  const { key } = await service.client();
  const page = await chromium.browser.newPage();
  const loaded: string[] = [];
  page.on('request', (request) => loaded.push(request.url()));
  await page.goto(origin);
  const program = `(async () => {
    const { Medley } = await import('/dist/index.js');
    const medley = new Medley(${JSON.stringify({ base_url: service.url, api_key: key })});
    const statuses = [];
    const input = { prompt: 'A lighthouse' };
    const task = await medley.generate('sandbox/image', input, { on_progress: ({ status }) => statuses.push(status) });
    const blob = await medley.download(task.output[0]);
    const file = await medley.files.upload(blob, { filename: 'lighthouse.png' });
    const refused = await medley.generate('sandbox/image', {}).catch((error) => error.name + ' ' + error.param);
    return [statuses.at(-1), blob.size === task.output[0].size_bytes, file.kind, refused];
  })()`;
  expect(await page.evaluate(program)).toEqual(['succeeded', true, 'image', 'InvalidRequestError input.prompt']);
  expect(loaded.filter((url) => url.endsWith('/node.js'))).toEqual([]);
  await page.close();
});
