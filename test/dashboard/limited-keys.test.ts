import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import type { EstimateView } from '../../src/dashboard/views/playground.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, okBody, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let limited: Someone;
let shop: string;

beforeAll(async () => {
  test = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  [owner, limited, shop] = await accountWithLimited('Agency', 90_000_000n);
}, 240_000);

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

/** An account, a developer who is limited to its project Shop, and that project. */
async function accountWithLimited(name: string, credit: bigint): Promise<[Someone, Someone, string]> {
  const of_account = await ownerOfNew(test, name, credit);
  const project = await makeProject(of_account, 'Shop');
  const developer = await memberOf(test, of_account, 'developer');
  okBody(await of_account.send('PATCH', `${of_account.base}/team/${developer.user_id}`, { projects: [project] }));
  return [of_account, developer, project];
}

async function makeProject(who: Someone, name: string): Promise<string> {
  return okBody<{ id: string }>(await who.post(`${who.base}/projects`, { name })).id;
}

async function makeKey(who: Someone, name: string, project: string): Promise<NewKeyView> {
  return okBody(await who.post(`${who.base}/keys`, { name, project }));
}

async function rotate(who: Someone, id: string): Promise<NewKeyView> {
  return okBody(await who.post(`${who.base}/keys/${id}/rotate`, { overlap_hours: 24 }));
}

const image_body = { model: 'sandbox/image', input: { prompt: 'A boat', width: 16, height: 16 } };

async function generate(secret: string, name: string): Promise<{ status: number; id?: string }> {
  const response = await fetch(`${test.url}/v1/generate`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json', 'idempotency-key': name },
    body: JSON.stringify(image_body),
  });
  const { id } = (await response.json()) as { id?: string };
  return { status: response.status, ...(id !== undefined && { id }) };
}

describe('an estimate for a limited member', () => {
  const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Tell me of boats' }] };

  const estimateOf = async (who: Someone, body: object) =>
    okBody<EstimateView>(await who.post(`${who.base}/chat/completions/estimate`, body));

  const costOf = (view: EstimateView) => ({ estimated_cost: view.ok && view.estimated_cost });

  it('is the same whatever the account has, and only says whether it is enough', async () => {
    const [poor, client] = await accountWithLimited('Poor', 1_500n);
    const cut = await estimateOf(poor, chat);
    const whole = await estimateOf(client, chat);
    expect(cut).toMatchObject({ ok: true, obstacle: null, available: { exact: '0.001500' } });
    expect(cut).not.toMatchObject(costOf(whole));
    expect(whole).toEqual(await estimateOf(limited, chat));
    expect(whole).toMatchObject({ ok: true, obstacle: null, available: null });
    const [bare, stranger] = await accountWithLimited('Bare', 0n);
    expect(await estimateOf(stranger, chat)).toEqual({ ...whole, obstacle: 'insufficient_balance' });
    expect(await estimateOf(bare, chat)).toMatchObject({ obstacle: 'insufficient_balance' });
  });
});

describe('the Idempotency-Key of a limited key', () => {
  it('finds its task with the key that it was rotated to, and with that of before', async () => {
    const first = await makeKey(limited, 'Theirs', shop);
    const created = await generate(first.secret, 'order 1');
    expect(created.status).toBe(202);
    const second = await rotate(limited, first.key.id);
    expect((await generate(second.secret, 'order 1')).id).toBe(created.id);
    const next = await generate(second.secret, 'order 2');
    expect((await generate(first.secret, 'order 2')).id).toBe(next.id);
    const third = await rotate(owner, second.key.id);
    expect((await generate(third.secret, 'order 1')).id).toBe(created.id);
  });

  it('finds the task of the unlimited key that a limited member has rotated, and is found by it', async () => {
    const wide = await makeKey(owner, 'Wide', shop);
    const created = await generate(wide.secret, 'order 3');
    const narrow = await rotate(limited, wide.key.id);
    expect(narrow.key.is_limited).toBe(true);
    expect((await generate(narrow.secret, 'order 3')).id).toBe(created.id);
    const next = await generate(narrow.secret, 'order 4');
    expect((await generate(wide.secret, 'order 4')).id).toBe(next.id);
  });

  it('finds no task of a key that shares no budget with it', async () => {
    const [wide, narrow] = [await makeKey(owner, 'One', shop), await makeKey(limited, 'Another', shop)];
    const [of_wide, of_narrow] = [await generate(wide.secret, 'order 5'), await generate(narrow.secret, 'order 5')];
    expect([of_wide.status, of_narrow.status]).toEqual([202, 202]);
    expect(of_narrow.id).not.toBe(of_wide.id);
  });
});
