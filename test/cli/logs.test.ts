import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { earlierLogFile, openLogFile } from '../../src/app/log-file.ts';
import { openLog } from '../../src/app/log.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { startCollector } from '../helpers/collector.ts';
import { Person } from './caller.ts';

let test: TestApp;
let client: Client;
let folder: string;
let path: string;
let person: Person;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'medley-logs-'));
  path = join(folder, 'medley.log');
  test = await startTestApp({ log: openLog('fatal', { format: 'json', colors: false }, path) });
  client = await test.client();
  person = new Person();
});

afterAll(async () => {
  person.remove();
  await test.stop();
  rmSync(folder, { recursive: true, force: true });
});

type Line = { msg: string; request_id?: string; task_id?: string; account_id?: string };
const lines = async (...words: string[]) => (await person.json<{ lines: Line[] }>(['logs', path, ...words])).lines;

it('a task, its request and its account have their lines, and no line has a key or a prompt', async () => {
  const other = await test.client();
  await other.call('GET', '/v1/balance');
  const body = { model: 'sandbox/image', input: { prompt: 'my secret prompt [[fail]]' } };
  const { json, headers } = await client.call('POST', '/v1/generate?wait=60', body);
  const request_id = headers.get('x-request-id') ?? '';
  await expect
    .poll(async () => (await lines('--task', json.id)).map(({ msg }) => msg).toSorted(), { timeout: 120_000 })
    .toEqual(['request', 'task created', 'task failed']);
  const of_request = await lines('--request', request_id);
  expect(of_request.map(({ msg }) => msg)).toEqual(['task created', 'request']);
  const of_account = await lines('--account', client.account_id);
  expect(new Set(of_account.map(({ account_id }) => account_id))).toEqual(new Set([client.account_id]));
  expect(await lines('--account', client.account_id, '--request', 'req_none')).toEqual([]);
  const text = readFileSync(path, 'utf8');
  for (const secret of [client.key, 'my secret prompt']) expect(text).not.toContain(secret);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it('a person reads lines with the day above them, and a journal too', async () => {
  const { headers } = await client.call('GET', '/v1/balance');
  const id = headers.get('x-request-id') ?? '';
  await expect.poll(async () => (await lines('--request', id)).length, { timeout: 120_000 }).toBe(1);
  const plain = await person.run(['logs', path, '-n', '1', '--request', id]);
  expect(plain.code, plain.error).toBe(0);
  expect(plain.out).toMatch(/^\w+ \w+ \d+ \d+\n\d\d:\d\d:\d\d INFO  \S.* request_id=req_\w+/);
  const stdin = `Nov 28 12:00:00 host node[7]: {"level":50,"time":1,"msg":"broken \\u001b[2J"}\nno line of ours\n`;
  const journal = await person.run(['logs', '-'], { stdin });
  expect(journal.out).toMatch(/ERROR broken {2}\[2J\n/);
  expect(journal.out).toContain('no line of ours');
  expect((await person.run(['logs', '-', '--level', 'warn'], { stdin })).out).not.toContain('no line of ours');
});

it('--follow goes on through a change of the file, and Ctrl-C ends it', async () => {
  const followed = join(folder, 'followed.log');
  const running = person.start(['logs', followed, '--follow', '--json', '--task', 'task_mine']);
  const file = openLogFile({ path: followed, size_max: 4_000 });
  const seen = () =>
    running.out
      .toString()
      .split('\n')
      .filter((each) => each !== '')
      .map((each): number => JSON.parse(each).number);
  for (let number = 0; number < 40; number += 2) {
    for (const [task_id, of_task] of [
      ['task_mine', number],
      ['task_other', number + 1],
    ])
      file.write(`${JSON.stringify({ level: 30, time: 1, number: of_task, task_id, fill: 'ü'.repeat(80) })}\n`);
    await file.flushed();
    await expect.poll(() => seen().at(-1), { timeout: 120_000 }).toBe(number);
  }
  expect(seen()).toEqual(Array.from({ length: 20 }, (_, index) => index * 2));
  expect(readFileSync(earlierLogFile(followed), 'utf8')).not.toBe('');
  running.child.kill('SIGINT');
  expect(await running.ended, running.error).toBe(0);
});

it('the last lines are read over both files, and a wrong choice is named', async () => {
  const whole = join(folder, 'whole.log');
  const write = (to: string, number: number) =>
    appendFileSync(to, `${JSON.stringify({ level: 30, time: 1, msg: `line ${number}` })}\n`);
  for (const number of [1, 2, 3]) write(earlierLogFile(whole), number);
  write(whole, 4);
  const { lines: last } = await person.json<{ lines: Line[] }>(['logs', whole, '-n', '3']);
  expect(last.map(({ msg }) => msg)).toEqual(['line 2', 'line 3', 'line 4']);
  expect(await person.run(['logs', whole, '--level', 'loud'])).toMatchObject({ code: 2 });
  expect(await person.run(['logs', whole, '-n', '0'])).toMatchObject({ code: 2 });
  const none = await person.run(['logs', join(folder, 'none.log')]);
  expect(none).toMatchObject({ code: 1, error: expect.stringContaining('MEDLEY_DATA') });
});

it('a line that is written in a trace has its id', async () => {
  const traces = await startCollector();
  const traced_path = join(folder, 'traced.log');
  const log = openLog('fatal', { format: 'json', colors: false }, traced_path);
  const traced = await startTestApp({ log, env: { OTEL_EXPORTER_OTLP_ENDPOINT: traces.url } });
  try {
    const caller = await traced.client();
    const trace = '0af7651916cd43dd8448eb211c80319c';
    const body = { model: 'sandbox/image', input: { prompt: '[[fail]]' } };
    await caller.call('POST', '/v1/generate?wait=60', body, { traceparent: `00-${trace}-b7ad6b7169203331-01` });
    const messages = async () => {
      const { lines: of_trace } = await person.json<{ lines: Line[] }>(['logs', traced_path, '--trace', trace]);
      return of_trace.map(({ msg }) => msg).toSorted();
    };
    await expect.poll(messages, { timeout: 120_000 }).toEqual(['request', 'task created', 'task failed']);
  } finally {
    await traced.stop();
    await traces.stop();
  }
});
