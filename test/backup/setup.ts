import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import { firstOperator } from '../../src/accounts/members.ts';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import { makeInvoices } from '../../src/billing/invoices.ts';
import { copyOut, copy_settings } from '../../src/db/copy.ts';
import type { Db } from '../../src/db/database.ts';
import { close, hold } from '../../src/money/holds.ts';
import type { Manifest } from '../../src/backup/manifest.ts';
import type { Progress } from '../../src/backup/progress.ts';
import type { Client, TestApp } from '../helpers/app.ts';
import { closeOf, holdOf, openWallet } from '../money/setup.ts';
import { limits } from '../helpers/catalog.ts';

export const quiet: Progress = { say: () => undefined, add: () => undefined };

/** A folder of this test, and what removes it. */
export function scratch(): { path: (name: string) => string; remove: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'medley-backup-'));
  return { path: (name) => join(folder, name), remove: () => rmSync(folder, { recursive: true, force: true }) };
}

export const yaml = `
version: 1
${limits({ chat_per_minute: 100_000 })}
net: { allow: ["127.0.0.0/8"] }
webhooks: { retry_delays: [1s, 1s, 1s, 1s, 1s], timeout: 60s }
`;

export async function generate(client: Client, model: string, input: object, more: object = {}, wait = 0) {
  const { status, json } = await client.call('POST', `/v1/generate?wait=${wait}`, { model, input, ...more });
  if (status !== 202) throw new Error(`${status} ${JSON.stringify(json)}`);
  return json;
}

export async function chat(client: Client, words: string): Promise<void> {
  const body = { model: 'sandbox/chat', messages: [{ role: 'user', content: words }] };
  const { status, text } = await client.call('POST', '/v1/chat/completions', body);
  if (status !== 200) throw new Error(`${status} ${text}`);
}

const image = { prompt: 'A harbour', width: 64, height: 64 };

/** Something of everything that a service keeps: results, inputs, chats, webhooks, people, an invoice. */
export async function fill({ app }: TestApp, client: Client, webhook_url: string): Promise<void> {
  const task = await generate(
    client,
    'sandbox/image',
    { ...image, n: 2 },
    { webhook_url, metadata: { a: 'b\tc\\n' } },
    60,
  );
  await upload(
    client,
    new URL('/v1/files', task.output[0]?.url),
    await (await fetch(task.output[0]?.url ?? '')).blob(),
  );
  await generate(client, 'sandbox/image', { ...image, prompt: '[[fail]]' }, { webhook_url }, 60);
  await chat(client, 'Hello');
  const now = new Date(app.clock.now());
  await makeLoginLink(app.db, app.base_url(), await firstOperator(app.db, client.account_id, now), now);
  await invoiceLastMonth(app.db, now);
}

async function upload(client: Client, url: URL, image_bytes: Blob): Promise<void> {
  const body = new FormData();
  body.set('purpose', 'user_data');
  body.set('file', image_bytes, 'żółć.png');
  const response = await fetch(url, { method: 'POST', headers: { authorization: `Bearer ${client.key}` }, body });
  if (!response.ok) throw new Error(await response.text());
}

/** Of an account of its own, which nobody charges any more. */
async function invoiceLastMonth(db: Db, now: Date): Promise<void> {
  const then = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 15));
  const wallet = await openWallet(db, { credit: 50_000_000n, now: then });
  await hold(db, holdOf(wallet, 'task_1', 1_000_000n), then);
  await close(db, closeOf(wallet, 'task_1', 1_000_000n), then);
  const issuer = { name: 'Medley', address: 'A street', tax_id: 'PL1', series: 'MED' };
  await makeInvoices(db, { issuer, month: then.toISOString().slice(0, 7), now });
}

/** Lists the tables of PostgreSQL's catalogue without those of running nodes, asked in another way than a backup does. */
async function tablesOf(client: pg.Client): Promise<{ name: string; columns: string }[]> {
  const { rows } = await client.query<{ name: string; columns: string }>(
    `select table_schema || '.' || table_name as name, string_agg(quote_ident(column_name), ', ' order by ordinal_position) as columns
       from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
      where t.table_type = 'BASE TABLE' and table_name not in ('leases', 'lessees', 'scheduled_backups', 'disks') and (table_schema in ('public', 'auth')
        or (table_schema = 'pgboss' and table_name in ('queue', 'job')))
      group by 1 order by 1`,
  );
  return rows;
}

export async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(copy_settings);
    return await work(client);
  } finally {
    await client.end();
  }
}

/** All rows of each table as COPY writes them, in the order of their texts. */
export function rowsOf(url: string): Promise<Map<string, string[]>> {
  return connected(url, async (client) => {
    const tables = new Map<string, string[]>();
    for (const { name, columns } of await tablesOf(client)) {
      const [schema = '', table = ''] = name.split('.');
      const chunks: Buffer[] = [];
      await copyOut(client, `copy (select ${columns} from ${schema}."${table}") to stdout`, async (rows) => {
        for await (const chunk of rows) chunks.push(chunk);
      });
      tables.set(name, sortedLines(Buffer.concat(chunks)));
    }
    return tables;
  });
}

/** The same of a backup. */
export function rowsIn(folder: string, manifest: Manifest): Map<string, string[]> {
  const tables = manifest.tables.map(({ name, file }): [string, string[]] => [
    name,
    sortedLines(gunzipSync(readFileSync(join(folder, file)))),
  ]);
  return new Map(tables.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

function sortedLines(text: Buffer): string[] {
  return text.toString().split('\n').slice(0, -1).toSorted();
}

/** A copy of a backup that a test may spoil. */
export function copyBackup(from: string, to: string): string {
  cpSync(from, to, { recursive: true });
  return to;
}

export function changeManifest(folder: string, change: (manifest: Manifest) => object): void {
  const path = join(folder, 'manifest.json');
  const manifest: Manifest = JSON.parse(readFileSync(path, 'utf8'));
  writeFileSync(path, JSON.stringify({ ...manifest, ...change(manifest) }));
}
