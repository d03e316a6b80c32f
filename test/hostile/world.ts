import { createAccount, setAccountStatus } from '../../src/accounts/accounts.ts';
import { createKey, deleteKey, newKeyText } from '../../src/accounts/keys.ts';
import type { Db } from '../../src/db/database.ts';
import { bodyOf, loadTask } from '../../src/tasks/task.ts';
import type { World } from './requests.ts';
import { isRecord } from './text.ts';

/** Limits that a campaign does not meet: 429 has tests of its own, and would hide what lies behind it. */
export const campaign_yaml = `
version: 1
limits: { generate_per_minute: 1000000, chat_per_minute: 1000000, other_per_minute: 1000000, failed_per_24h: 1000000 }
`;

export type Place = {
  world: World;
  secrets: string[];
  /** Throws unless everything of the foreign account is as it was. */
  expectForeignUntouched(): Promise<void>;
};

type Maker = { account_id: string; webhook_secret: string; key: string; key_id: string };

/** Accounts of several kinds with keys and tasks, made in the database of the service at `url`. */
export async function makePlace(db: Db, url: string): Promise<Place> {
  const rich = await make(db, 'USD', 5_000_000n, null);
  const zloty = await make(db, 'PLN', 10_000_000n, null);
  const limited = await make(db, 'USD', 5_000_000n, 1_000_000n);
  const poor = await make(db, 'USD', 0n, null);
  const blocked = await make(db, 'USD', 1_000_000n, null);
  const foreign = await make(db, 'USD', 5_000_000n, null);
  const deleted = await createKey(db, { account_id: rich.account_id, name: 'Gone', limit_month: null }, new Date());
  const tasks = [...(await makeTasks(url, rich, 'own')), ...(await makeTasks(url, zloty, 'own'))];
  const foreign_tasks = await makeTasks(url, foreign, foreign_note);
  await setAccountStatus(db, blocked.account_id, 'blocked');
  await deleteKey(db, deleted.key.id, new Date());
  const everybody = [rich, zloty, limited, poor, blocked];
  const world = {
    document: record(await (await fetch(`${url}/openapi.json`)).json()),
    keys: everybody.map(({ key }) => key),
    wrong_keys: [deleted.text, newKeyText(), `${rich.key.slice(0, -1)}!`, rich.key_id, foreign.account_id, 'mdl_'],
    tasks: tasks.map(({ id }) => id),
    foreign_tasks: foreign_tasks.map(({ id }) => id),
    models: ['sandbox/image', 'sandbox/image', 'sandbox/audio', 'sandbox/failover', 'sandbox/down', 'sandbox/video'],
    links: tasks.flatMap(({ urls }) => urls.map((link) => link.slice(new URL(link).origin.length))),
  };
  const before = await bodies(db, foreign, world.foreign_tasks);
  return {
    world,
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
  const made = orders.map(async (order) => {
    const answer = await fetch(`${url}/v1/generate?wait=60`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ ...order, metadata: { note } }),
    });
    const task = record(await answer.json());
    const output = Array.isArray(task['output']) ? task['output'] : [];
    return { id: String(task['id']), urls: output.map((item) => String(record(item)['url'])) };
  });
  return Promise.all(made);
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
