import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { makeApp, type App, type AppOptions } from '../../src/app.ts';
import { readConfig } from '../../src/config.ts';
import { checkBooks } from '../../src/money/books.ts';
import { parseMoney, type Cost } from '../../src/money/money.ts';
import { startServer } from '../../src/server.ts';
import { service_rules } from '../../src/chat/books.ts';
import { startReplay } from '../../src/chat/unsettled.ts';
import type { OutputItem } from '../../src/tasks/task.ts';
import { startWorker } from '../../src/worker.ts';
import { testDatabase, type TestDatabase } from './database.ts';

export type Client = {
  account_id: string;
  key_id: string;
  key: string;
  /** A request with this client's key; the body is sent as JSON unless it is a string. */
  call(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
};

/** Every key that an answer of the service may have; a test names the ones it expects. */
export type Body = {
  object: string;
  id: string;
  status: string;
  model: string;
  output: OutputItem[];
  cost: Cost;
  estimated_cost: Cost;
  error: { type: string; message: string; param?: string; code?: string; request_id?: string; details?: unknown[] };
  created_at: string;
  started_at: string | null;
  completed_at: string | null;
  metadata: Record<string, string>;
  data: Body[];
  has_more: boolean;
  first_id: string | null;
  last_id: string | null;
  balance: Cost;
  held: Cost;
  available: Cost;
  allowed: boolean;
  currency: string;
  key: { spend_limit: Cost | null; spent: Cost; remaining: Cost | null; resets_at: string };
  type: string;
  direction: string;
  amount: Cost;
  available_after: Cost;
  held_after: Cost;
  reference_id: string | null;
  url: string;
  count: number;
  units: Record<string, string>;
  total: Cost;
  day: string;
  modality: string;
  user: string | null;
  tag: string | null;
  created: number;
  owned_by: string;
  display_name: string;
  input_schema: { type: string; properties: Record<string, unknown>; required?: string[] };
  output_types: string[];
  pricing: { unit: string; amount: string; per: number; currency: string }[];
  resets_at: string;
  spent: Cost;
  remaining: Cost | null;
};

export type Answered = { status: number; headers: Headers; text: string; json: Body };

export type TestApp = {
  app: App;
  url: string;
  /** A new account with a key, or a further key of `account_id`. Amounts are decimal texts. */
  client(options?: ClientOptions): Promise<Client>;
  /** Writes another medley.yaml and reloads it; throws if it is refused. */
  configure(yaml: string): Promise<void>;
  /** Another API node on the same database and the same files, without a worker. Stop it first. */
  beside(options?: TestAppOptions): Promise<TestApp>;
  stop(): Promise<void>;
};

export type ClientOptions = { currency?: string; credit?: string; limit?: string; account_id?: string };

export type TestAppOptions = AppOptions & {
  yaml?: string;
  worker?: boolean;
  env?: Record<string, string>;
};

/** The whole service on a database of its own: HTTP on a port of its own, worker, storage, books. */
export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const database = await testDatabase({ state: 'engine' });
  const folder = mkdtempSync(join(tmpdir(), 'medley-app-'));
  const node = await startNode({ database, folder }, options);
  return {
    ...node,
    stop: async () => {
      await node.stop();
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A thousandth of what a hash of a password costs people. */
const cheap_hash = 16;

/** The database and the folder that the nodes of one service share. */
type Place = { database: TestDatabase; folder: string };

async function startNode(place: Place, options: TestAppOptions): Promise<TestApp> {
  const config_file = join(place.folder, `medley-${randomUUID()}.yaml`);
  if (options.yaml) writeFileSync(config_file, options.yaml);
  const env = {
    DATABASE_URL: place.database.url,
    MEDLEY_DATA: join(place.folder, 'data'),
    PORT: '0',
    ...(options.yaml && { MEDLEY_CONFIG: config_file }),
    ...options.env,
  };
  const log = pino({ level: process.env['TEST_LOG'] ?? 'silent' });
  const app = await makeApp(readConfig(env), { log, password_cost: cheap_hash, ...options });
  startReplay(app);
  await startServer(app);
  if (options.worker !== false) await startWorker(app);
  const url = app.base_url();
  return {
    app,
    url,
    client: (client_options) => makeClient(app, url, client_options ?? {}),
    configure: async (yaml) => {
      writeFileSync(config_file, yaml);
      const result = await app.catalog.reload();
      if (!result.ok) throw new Error(result.message);
    },
    beside: (more) => startNode(place, { worker: false, ...more }),
    stop: () => app.stop(),
  };
}

async function makeClient(app: App, url: string, options: ClientOptions): Promise<Client> {
  const now = new Date(app.clock.now());
  const account_id = options.account_id ?? (await makeAccount(app, options, now));
  const limit_month = options.limit === undefined ? null : (parseMoney(options.limit) ?? 0n);
  const { key, text } = await createKey(app.db, { account_id, name: 'Test', limit_month }, now);
  const call: Client['call'] = (method, path, body, headers) => send(url + path, method, text, body, headers);
  return { account_id, key_id: key.id, key: text, call };
}

async function makeAccount(app: App, { currency = 'USD', credit = '100' }: ClientOptions, now: Date): Promise<string> {
  const initial_credit = parseMoney(credit) ?? 0n;
  const account = await createAccount(app.db, { name: 'Test', currency, initial_credit }, now);
  return account.id;
}

async function send(
  url: string,
  method: string,
  key: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Answered> {
  const response = await fetch(url, {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const json: Body = /^application\/json(?:;|$)/.test(response.headers.get('content-type') ?? '')
    ? JSON.parse(text)
    : {};
  return { status: response.status, headers: response.headers, text, json };
}

/** Throws with the findings unless all money of the database is exact, tasks included. */
export async function expectExactBooks(app: App): Promise<void> {
  const report = await checkBooks(app.db, { full: true, more: service_rules });
  if (!report.ok) throw new Error(`the books do not add up: ${JSON.stringify(report.findings, null, 2)}`);
}
