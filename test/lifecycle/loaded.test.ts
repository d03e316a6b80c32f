import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { removeFolder, clusterFolder } from '../helpers/embedded.ts';

const main = join(import.meta.dirname, '../../src/main.ts');
const reporter = pathToFileURL(join(import.meta.dirname, '../helpers/loaded-child.ts')).href;

/** Together they take 200 MB, for as long as the process lives; each is loaded where it is first needed. */
const later = [
  ...'@aws-sdk/client-s3 @scalar/fastify-api-reference @simplewebauthn/server @smithy/signature-v4 better-auth fastify gpt-tokenizer h264-mp4-encoder'.split(
    ' ',
  ),
  ...'mediabunny nodemailer pdfkit sharp'.split(' '),
];

let database: TestDatabase;
let folder = '';
beforeAll(async () => {
  database = await testDatabase();
  folder = clusterFolder();
});
afterAll(async () => {
  await database.drop();
  removeFolder(folder);
});

it('an idle service has loaded no module that few requests need', async () => {
  const env = { ...process.env, PORT: '0', DATABASE_URL: database.url, MEDLEY_DATA: join(folder, 'data') };
  const child = spawn(process.execPath, [`--import=${reporter}`, main], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  let error = '';
  child.stderr.on('data', (chunk: Buffer) => (error += chunk.toString()));
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (output.includes('Make an image')) child.kill('SIGTERM'); // the end of its greeting
  });
  await once(child, 'close');
  expect(child.exitCode, error).toBe(0);
  const urls: string[] = JSON.parse(error.split('\n').at(-1) ?? '');
  const packages = urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? '');
  expect(packages).toEqual(expect.arrayContaining(['find-my-way', 'pg-boss', 'typebox', 'undici']));
  expect(later.filter((name) => packages.includes(name))).toEqual([]);
});
