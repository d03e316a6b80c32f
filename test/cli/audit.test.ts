import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { commandsBeside } from './medley.ts';

let service: TestApp;
const folder = mkdtempSync(join(tmpdir(), 'medley-audit-'));

beforeAll(async () => {
  service = await startTestApp({ worker: false });
});

afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true });
});

it('the audit log of a span, of one account or of all, is written to a new file as CSV or JSON lines', async () => {
  const commands = commandsBeside(service);
  const { account_id } = await service.client();
  const other = await service.client();
  await commands.ok('account', 'block', account_id);
  await commands.ok('account', 'block', other.account_id);
  const jsonl = join(folder, 'audit.jsonl');
  const csv = join(folder, 'audit.csv');
  expect(await commands.ok('audit', 'export', jsonl, '--account', account_id)).toEqual({ entries: 1, file: jsonl });
  expect(JSON.parse(readFileSync(jsonl, 'utf8'))).toMatchObject({ account_id, action: 'account.block' });
  expect(await commands.ok('audit', 'export', csv)).toMatchObject({ entries: 2 });
  expect(readFileSync(csv, 'utf8').trim().split('\r\n')).toHaveLength(3);
  const later = ['--from', '2099-01-01', '--to', '2099-02-01'];
  expect(await commands.ok('audit', 'export', join(folder, 'none.jsonl'), ...later)).toMatchObject({ entries: 0 });
  const fails = (code: number, ...words: string[]) => commands.fails(code, 'audit', 'export', ...words);
  expect(await fails(1, csv)).toContain('cannot be written');
  expect(await fails(2, join(folder, 'audit.txt'))).toContain('must end with .csv or .jsonl');
  expect(await fails(2, join(folder, 'x.csv'), '--from', 'soon')).toContain('--from must be a time');
});
