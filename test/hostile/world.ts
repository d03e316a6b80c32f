import { createAccount, setAccountStatus } from '../../src/accounts/accounts.ts';
import { createKey, deleteKey, newKeyText } from '../../src/accounts/keys.ts';
import { makeLoginLink } from '../../src/accounts/sign-in/login-links.ts';
import { firstOperator, ownerOf } from '../../src/accounts/members.ts';
import type { Db } from '../../src/db/database.ts';
import { listEndpoints } from '../../src/server.ts';
import { bodyOf, loadTask } from '../../src/tasks/task.ts';
import { limits } from '../helpers/catalog.ts';
import type { World } from './requests.ts';
import { isRecord } from './text.ts';
import { upstream_manners } from './upstream.ts';

/** Limits that a campaign does not meet: 429 has tests of its own, and would hide what lies behind it. */
export const campaign_yaml = `
version: 1
${limits({ generate_per_minute: 1_000_000, chat_per_minute: 1_000_000, other_per_minute: 1_000_000, failed_per_24h: 1_000_000 })}
`;

const upstream_models = upstream_manners.flatMap((manner) =>
  ['oai', 'ant', 'rsp', 'gem'].map((provider) => ({ provider, manner })),
);

/** Half of what is asked of the sandbox, the calm ones often. */
export const chat_models = [
  ...Array.from({ length: 15 }, () => ['sandbox/chat', 'oai/calm', 'ant/calm', 'rsp/calm', 'gem/calm']).flat(),
  ...upstream_models.map(({ provider, manner }) => `${provider}/${manner}`),
];

/** With chat models whose upstream is this one, in all styles. */
export function withUpstream(url: string): string {
  const models = upstream_models.map(
    ({ provider, manner }) => `
  - id: ${provider}/${manner}
    kind: chat
    max_output_tokens: 1000
    price: [{ unit: input_token, per: 1000000, amount: "1.00" }, { unit: output_token, per: 1000000, amount: "1.00" }]
    routes: [{ provider: ${provider}, upstream_model: ${manner}${provider === 'rsp' ? ', options: { responses: always }' : ''} }]`,
  );
  return `${campaign_yaml}
providers:
  oai: { adapter: openai, base_url: "${url}/v1", api_key: env:UPSTREAM_KEY, allow_private: true }
  rsp: { adapter: openai, base_url: "${url}/v1", api_key: env:UPSTREAM_KEY, allow_private: true }
  gem: { adapter: gemini, base_url: "${url}", api_key: env:UPSTREAM_KEY, allow_private: true }
  ant: { adapter: anthropic, base_url: "${url}", api_key: env:UPSTREAM_KEY, allow_private: true }
models:${models.join('')}
`;
}

export type Place = {
  world: World;
  /** Signs the visitors in again: requests of a campaign end sessions. */
  signIn(): Promise<void>;
  secrets: string[];
  /** Throws unless everything of the foreign account is as it was. */
  expectForeignUntouched(): Promise<void>;
};

type Maker = { account_id: string; webhook_secret: string; key: string; key_id: string };

/** A million: the most expensive requests of an hour cost a few dollars each. */
const plenty = 1_000_000_000_000n;

const megabyte = 1_000_000;

/** Accounts of several kinds with keys and tasks, made in the database of the service at `url`. */
export async function makePlace(db: Db, url: string, more_models: readonly string[] = []): Promise<Place> {
  const rich = await make(db, 'USD', plenty, null);
  const zloty = await make(db, 'PLN', plenty, null);
  const limited = await make(db, 'USD', 5_000_000n, 1_000_000n);
  const poor = await make(db, 'USD', 0n, null);
  const blocked = await make(db, 'USD', 1_000_000n, null);
  const foreign = await make(db, 'USD', 5_000_000n, null);
  const deleted = await createKey(db, { account_id: rich.account_id, name: 'Gone', limit_month: null }, new Date());
  const tasks = [...(await makeTasks(url, rich, 'own')), ...(await makeTasks(url, zloty, 'own'))];
  const foreign_tasks = await makeTasks(url, foreign, foreign_note);
  await setAccountStatus(db, blocked.account_id, 'blocked');
  await deleteKey(db, deleted.key.id, new Date());
  const visitors = await makeVisitors(db, url);
  const everybody = [rich, zloty, limited, poor, blocked];
  const world = {
    document: record(await (await fetch(`${url}/openapi.json`)).json()),
    keys: everybody.map(({ key }) => key),
    wrong_keys: [deleted.text, newKeyText(), `${rich.key.slice(0, -1)}!`, rich.key_id, foreign.account_id, 'mdl_'],
    tasks: tasks.map(({ id }) => id),
    foreign_tasks: foreign_tasks.map(({ id }) => id),
    models: ['sandbox/image', 'sandbox/image', 'sandbox/audio', 'sandbox/failover', 'sandbox/down', 'sandbox/video'],
    links: tasks.flatMap(({ urls }) => urls.map((link) => link.slice(new URL(link).origin.length))),
    chat_models: ['sandbox/chat', 'sandbox/embedding', 'sandbox/rerank', 'sandbox/moderation', ...more_models],
    endpoints: listEndpoints().map(({ method, path, body_limit_bytes, form }) => ({
      method,
      path,
      body_bytes_max: body_limit_bytes ?? megabyte,
      takes_form: form !== undefined,
    })),
    visitors,
    origin: new URL(url).origin,
  };
  const signIn = async () => {
    for (const visitor of visitors) visitor.cookie = await cookieOf(db, url, visitor.user_id);
  };
  await signIn();
  const before = await bodies(db, foreign, world.foreign_tasks);
  return {
    world,
    signIn,
    secrets: [
      ...everybody.flatMap(({ key, webhook_secret }) => [key, webhook_secret]),
      foreign.key,
      foreign.webhook_secret,
      foreign_note,
    ],
    expectForeignUntouched: async () => {
      const after = await bodies(db, foreign, world.foreign_tasks);
      if (after !== before) throw new Error(`tasks of another account were changed: ${before} ${after}`);
      for (const { urls } of foreign_tasks) {
        for (const link of urls) {
          const { status } = await fetch(link);
          if (status !== 200) throw new Error(`a file of another account answers ${status}`);
        }
      }
    },
  };
}

async function make(db: Db, currency: string, initial_credit: bigint, limit_month: bigint | null): Promise<Maker> {
  const account = await createAccount(db, { name: 'Campaign', currency, initial_credit }, new Date());
  const { key, text } = await createKey(db, { account_id: account.id, name: 'Campaign', limit_month }, new Date());
  return { account_id: account.id, webhook_secret: account.webhook_secret, key: text, key_id: key.id };
}

const foreign_note = 'note-of-another-account';

/** Finished ones of three kinds. */
async function makeTasks(url: string, { key }: Maker, note: string): Promise<{ id: string; urls: string[] }[]> {
  const orders = [
    { model: 'sandbox/image', input: { prompt: 'a', width: 16, height: 16 } },
    { model: 'sandbox/audio', input: { prompt: 'b', duration: 1 } },
    { model: 'sandbox/image', input: { prompt: '[[fail]]' } },
  ];
  const tasks = orders.map(async (order) => {
    const answer = await fetch(`${url}/v1/generate?wait=60`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...order, metadata: { note } }),
    });
    const task = record(await answer.json());
    const output = Array.isArray(task['output']) ? task['output'] : [];
    return { id: String(task['id']), urls: output.map((item) => String(record(item)['url'])) };
  });
  return Promise.all(tasks);
}

async function bodies(db: Db, { account_id }: Maker, ids: readonly string[]): Promise<string> {
  const texts = await Promise.all(
    ids.map(async (task_id) => {
      const task = await loadTask(db, { account_id, task_id });
      return task ? bodyOf(task) : 'gone';
    }),
  );
  return texts.join('\n');
}

function record(value: unknown): Record<string, unknown> {
  if (!isRecord(value)) throw new Error(`not an object: ${JSON.stringify(value)}`);
  return value;
}

type Visitor = { user_id: string; cookie: string; account_id: string; tasks: string[] };

/** An owner of an account, and an operator of the service, who has another. */
async function makeVisitors(db: Db, url: string): Promise<Visitor[]> {
  const owned = await make(db, 'USD', plenty, null);
  const operated = await make(db, 'USD', plenty, null);
  const people = [
    { account: owned, user_id: await ownerOf(db, owned.account_id, new Date()) },
    { account: operated, user_id: await firstOperator(db, operated.account_id, new Date()) },
  ];
  const visitors = people.map(async ({ account, user_id }) => {
    const tasks = await makeTasks(url, account, 'own');
    return { user_id, cookie: '', account_id: account.account_id, tasks: tasks.map(({ id }) => id) };
  });
  return Promise.all(visitors);
}

async function cookieOf(db: Db, url: string, user_id: string): Promise<string> {
  const token = new URL(await makeLoginLink(db, url, user_id, new Date())).searchParams.get('token');
  const answer = await fetch(`${url}/auth/sign-in/link`, {
    method: 'POST',
    headers: { origin: new URL(url).origin, 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  if (answer.status !== 200) throw new Error(`the link of a visitor is answered ${answer.status}`);
  return answer.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ');
}
