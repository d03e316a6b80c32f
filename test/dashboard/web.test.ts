import { gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../helpers/app.ts';

/** The files of the web app, as this service hands them out. */

let test: TestApp;

beforeAll(async () => {
  test = await startTestApp({ worker: false });
});

afterAll(() => test.stop());

async function bytesOf(path: string, encoding: string) {
  const { statusCode, headers, body } = await request(test.url + path, { headers: { 'accept-encoding': encoding } });
  expect(statusCode).toBe(200);
  return { headers, bytes: Buffer.from(await body.arrayBuffer()) };
}

async function filesOfPage(kind: 'js' | 'css'): Promise<string[]> {
  const { bytes } = await bytesOf('/', 'identity');
  return [...bytes.toString().matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)]
    .map(([, path = '']) => path)
    .filter((path) => path.endsWith(`.${kind}`));
}

it.each(['js', 'css'] as const)('a %s file is compressed for clients that accept it and is the same', async (kind) => {
  const [path = ''] = await filesOfPage(kind);
  const [plain, small, refused] = await Promise.all([
    bytesOf(path, 'identity'),
    bytesOf(path, 'br, gzip'),
    bytesOf(path, 'gzip;q=0, identity'),
  ]);
  expect(small.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'accept-encoding' });
  expect(plain.headers['content-encoding'] ?? refused.headers['content-encoding']).toBeUndefined();
  expect(gunzipSync(small.bytes).equals(plain.bytes)).toBe(true);
  expect(refused.bytes.equals(plain.bytes)).toBe(true);
  expect(small.headers['cache-control']).toContain('immutable');
});

it('a missing file is not found, however it is requested', async () => {
  for (const path of ['/assets/none.js', '/assets/..%2Findex.html', '/assets/.stamp']) {
    expect((await request(test.url + path, { headers: { 'accept-encoding': 'gzip' } })).statusCode).toBe(404);
  }
});
