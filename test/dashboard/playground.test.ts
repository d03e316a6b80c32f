import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listKeys } from '../../src/accounts/key-list.ts';
import type { Page, TaskLineView, TaskView } from '../../src/dashboard/views/activity.ts';
import type { KeysView, NewKeyView } from '../../src/dashboard/views/keys.ts';
import { budgetsOf, entriesOfRef } from '../../src/money/ledger.ts';
import { exact } from '../../src/money/money.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import type { Seen } from '../helpers/person.ts';
import { memberOf, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let base: string;

beforeAll(async () => {
  test = await startTestApp();
  owner = await ownerOfNew(test);
  base = owner.base;
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

const image_request = { model: 'sandbox/image', input: { prompt: 'A red bicycle', width: 64, height: 64, n: 2 } };
const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 50 };

async function playgroundKeys(account_id: string) {
  const { keys } = await listKeys(test.app.db, { account_id, limit: 100 }, new Date());
  return keys.filter(({ kind }) => kind === 'playground');
}

/** The task of this answer, when it is final. */
async function final({ json }: Seen): Promise<TaskView> {
  const { id } = json as { id: string };
  let task: TaskView | undefined;
  await expect
    .poll(async () => (task = (await owner.get(`${base}/tasks/${id}`)).json as TaskView).completed_at, {
      timeout: 120_000,
    })
    .not.toBeNull();
  if (!task) throw new Error('there is no task');
  return task;
}

describe('an estimate of the playground', () => {
  it('is that of the API', async () => {
    const { call } = await test.client({ account_id: owner.account_id });
    const { json } = await call('POST', '/v1/estimate', image_request);
    const answer = await owner.post(`${base}/estimate`, image_request);
    expect(answer.json).toEqual({
      ok: true,
      estimated_cost: json.estimated_cost,
      available: json.available,
      key_left: { amount: '5.00', currency: 'USD', exact: '5.000000' }, // of the month, by default
      obstacle: null,
      paused_until: null,
    });
    expect(json.estimated_cost.exact).toBe('0.020000');
  });

  it('reports what is wrong at which field without an error', async () => {
    const answer = await owner.post(`${base}/estimate`, { model: 'sandbox/image', input: { width: 3, height: 9_999 } });
    expect(answer.status).toBe(200);
    expect(answer.json).toMatchObject({ ok: false, errors: expect.any(Array) });
    const { errors } = answer.json as { errors: { field: string; message: string }[] };
    expect(errors.map(({ field }) => field).toSorted()).toEqual(['input.height', 'input.prompt', 'input.width']);
    expect((await owner.post(`${base}/estimate`, { model: 'nobody/nothing', input: {} })).status).toBe(404);
  });

  it('reports too little money or the limit of the key', async () => {
    const [poor, rich] = await Promise.all([ownerOfNew(test, 'Poor', 10_000n), ownerOfNew(test, 'Rich')]);
    const obstacleFor = async (who: Someone) => (await who.post(`${who.base}/estimate`, image_request)).json;
    expect(await obstacleFor(poor)).toMatchObject({ ok: true, obstacle: 'insufficient_balance' });
    expect((await poor.post(`${poor.base}/generate`, image_request)).status).toBe(402);
    expect(await obstacleFor(rich)).toMatchObject({ ok: true, obstacle: null });
    const [key] = await playgroundKeys(rich.account_id);
    await test.app.db.query('update budgets set limit_month = 10000 where key_id = $1', [key?.id]);
    expect(await obstacleFor(rich)).toMatchObject({ ok: true, obstacle: 'spend_limit' });
    expect((await rich.post(`${rich.base}/generate`, image_request)).status).toBe(403);
  });
});

describe('a run of the playground', () => {
  it('holds its estimate, then costs what was made, by a key with its own limit', async () => {
    const task = await final(await owner.post(`${base}/generate`, image_request));
    expect(task).toMatchObject({ status: 'succeeded', key: { name: 'Playground' } });
    expect(task.estimated_cost.exact).toBe('0.020000');
    expect(task.cost.exact).toBe('0.020000');
    expect(task.files).toHaveLength(2);
    const [key, ...more] = await playgroundKeys(owner.account_id);
    expect(more).toEqual([]);
    const [budget] = await budgetsOf(test.app.db, owner.account_id, new Date(), [key?.id ?? '']);
    expect(budget).toMatchObject({ limit_month: 5_000_000n, spent: 20_000n, held: 0n });
  });

  it('that fails costs nothing and releases its hold', async () => {
    const input = { prompt: 'No [[fail]]', width: 64, height: 64 };
    const task = await final(await owner.post(`${base}/generate`, { model: 'sandbox/image', input }));
    expect(task).toMatchObject({ status: 'failed', cost: { exact: '0.000000' }, released: { exact: '0.010000' } });
  });

  it('can be canceled', async () => {
    const input = { prompt: 'Slow [[delay 60s]]', width: 64, height: 64 };
    const begun = await owner.post(`${base}/generate`, { model: 'sandbox/image', input });
    expect(begun.status).toBe(202);
    const { id } = begun.json as { id: string };
    // 409 while it is being handed to the provider
    const cancel = async () => (await owner.post(`${base}/tasks/${id}/cancel`)).status;
    await expect.poll(cancel, { timeout: 120_000 }).toBe(200);
    expect(await final(begun)).toMatchObject({ status: 'failed', error: { type: 'canceled' } });
  });

  it('takes files that were uploaded here', async () => {
    const task = await final(await owner.post(`${base}/generate`, image_request));
    const cookie = owner.set_cookies.map((one) => one.split(';')[0]).join('; ');
    const bytes = await (await fetch(test.url + (task.files[0]?.url ?? ''), { headers: { cookie } })).arrayBuffer();
    const form = new FormData();
    form.set('file', new Blob([bytes]), 'bicycle.png');
    const headers = { cookie, origin: test.url };
    const uploaded = await fetch(`${test.url}${base}/files`, { method: 'POST', body: form, headers });
    expect(uploaded.status).toBe(200);
    const file = (await uploaded.json()) as { id: string };
    expect(file).toMatchObject({ filename: 'bicycle.png', kind: 'image', content_type: 'image/png' });
    const edit = { model: 'sandbox/edit', input: { prompt: 'Blue', images: [file.id], width: 64, height: 64 } };
    expect(await final(await owner.post(`${base}/generate`, edit))).toMatchObject({ status: 'succeeded' });
  });

  it('leaves another key alone that is called Playground, too', async () => {
    const person = await ownerOfNew(test);
    const created_key = await person.post(`${person.base}/keys`, { name: 'Playground', limit: '0' });
    const own = (created_key.json as NewKeyView).key;
    const task = await person.post(`${person.base}/generate`, image_request);
    expect(task.status).toBe(202); // the limit of their own key is used up
    const [key, ...more] = await playgroundKeys(person.account_id);
    expect(more).toEqual([]);
    expect(key?.id).not.toBe(own.id);
    const { data } = (await person.get(`${person.base}/keys`)).json as KeysView;
    expect(data.map(({ name, kind }) => ({ name, kind }))).toEqual([
      { name: 'Playground', kind: 'playground' },
      { name: 'Playground', kind: 'program' },
    ]);
    const rotated = await person.post(`${person.base}/keys/${key?.id}/rotate`, { overlap_hours: 0 });
    expect(rotated.status).toBe(409);
    expect(await playgroundKeys(person.account_id)).toHaveLength(1);
  });

  it('is in the list of runs of the playground, where those of programs are not', async () => {
    const person = await ownerOfNew(test);
    const runs = async () =>
      ((await person.get(`${person.base}/tasks?source=playground`)).json as Page<TaskLineView>).data;
    expect(await runs()).toEqual([]);
    const { call } = await test.client({ account_id: person.account_id });
    await call('POST', '/v1/generate', image_request);
    expect(await runs()).toEqual([]);
    const { json } = await person.post(`${person.base}/generate`, image_request);
    expect((await runs()).map(({ id }) => id)).toEqual([(json as { id: string }).id]);
  });

  it('creates one key, however many start at once', async () => {
    const person = await memberOf(test, await ownerOfNew(test), 'developer');
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => person.post(`${person.base}/estimate`, image_request)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(await playgroundKeys(person.account_id)).toHaveLength(1);
  });
});

describe('a chat of the playground', () => {
  it('is streamed, and its record has its cost', async () => {
    const answer = await owner.post(`${base}/chat/completions`, { ...chat, stream: true });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toContain('text/event-stream');
    expect(answer.text).toContain('data: [DONE]');
    const id = answer.headers.get('x-request-id') ?? '';
    await expect
      .poll(async () => (await owner.get(`${base}/chats/${id}`)).json)
      .toMatchObject({ model: 'sandbox/chat', stream: true, key: { name: 'Playground' } });
    const { cost } = (await owner.get(`${base}/chats/${id}`)).json as { cost: { exact: string } };
    expect(Number(cost.exact)).toBeGreaterThan(0);
  });

  it('supports the messages style, too', async () => {
    const answer = await owner.post(`${base}/chat/messages`, { ...chat, stream: true });
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('event: message_stop');
    expect((await owner.post(`${base}/chat/messages`, { ...chat, messages: 3 })).status).toBe(400);
  });

  it.each(['completions', 'messages'])('has an estimate equal to its hold: %s', async (style) => {
    const estimate = await owner.post(`${base}/chat/${style}/estimate`, chat);
    expect(estimate.json).toMatchObject({ ok: true, obstacle: null });
    const { estimated_cost } = estimate.json as { estimated_cost: { exact: string } };
    const answer = await owner.post(`${base}/chat/${style}`, chat);
    const ref = answer.headers.get('x-request-id') ?? '';
    const [hold] = await entriesOfRef(test.app.db, owner.account_id, ref);
    expect(hold).toMatchObject({ type: 'hold' });
    expect(estimated_cost.exact).toBe(exact(hold?.held ?? 0n));
    const wrong = await owner.post(`${base}/chat/${style}/estimate`, { ...chat, max_tokens: -1 });
    expect(wrong.json).toMatchObject({ ok: false, errors: [{ field: 'max_tokens' }] });
  });

  it('is refused as the API refuses it', async () => {
    expect((await owner.post(`${base}/chat/completions`, { ...chat, model: 'sandbox/image' })).status).toBe(404);
    expect((await owner.post(`${base}/chat/completions`, { model: 'sandbox/chat' })).status).toBe(400);
  });
});

const ranking = { model: 'sandbox/rerank', query: 'red', documents: ['A blue car', 'A red bicycle'] };
const judging = { model: 'sandbox/moderation', input: 'A fight [[flag]]' };

describe.each([
  ['rerank', ranking, { documents: [] }, 'documents', { results: [{ index: 1 }, { index: 0 }] }, '0.001000'],
  ['moderations', judging, { input: [] }, 'input', { results: [{ flagged: true }] }, '0.000000'],
])('a call of %s in the playground', (path, body, wrong, field, answer, cost) => {
  it('is answered as on the API, at its cost, and is in the list of calls', async () => {
    const seen = await owner.post(`${base}/${path}`, body);
    expect(seen).toMatchObject({ status: 200, json: answer });
    expect(seen.headers.get('x-cost-amount')).toBe(cost);
    const id = seen.headers.get('x-request-id') ?? '';
    await expect
      .poll(async () => (await owner.get(`${base}/chats/${id}`)).json)
      .toMatchObject({ model: body.model, status: 200, key: { name: 'Playground' }, cost: { exact: cost } });
  });

  it('has an estimate, or the problem of its field', async () => {
    const estimate = await owner.post(`${base}/${path}/estimate`, body);
    expect(estimate.json).toMatchObject({ ok: true, obstacle: null, estimated_cost: { exact: cost } });
    const problem = await owner.post(`${base}/${path}/estimate`, { ...body, ...wrong });
    expect(problem.json).toMatchObject({ ok: false, errors: [{ field }] });
    expect((await owner.post(`${base}/${path}`, { ...body, ...wrong })).status).toBe(400);
    expect((await owner.post(`${base}/${path}/estimate`, { ...body, model: 'sandbox/chat' })).status).toBe(404);
  });
});

const calls: [string, object][] = [
  ['estimate', image_request],
  ['generate', image_request],
  ['chat/completions', chat],
  ['chat/messages', chat],
  ['chat/completions/estimate', chat],
  ['rerank', ranking],
  ['rerank/estimate', ranking],
  ['moderations', judging],
  ['files', {}],
];

describe('the rights in the playground', () => {
  it.each(calls)('exclude viewers from %s and from creating a key', async (path, body) => {
    const viewer = await memberOf(test, await ownerOfNew(test), 'viewer');
    const answer = await viewer.post(`${viewer.base}/${path}`, body);
    expect(answer.status).toBe(403);
    expect(answer.text).toContain('viewer');
    expect(await playgroundKeys(viewer.account_id)).toEqual([]);
  });

  it.each(calls)('exclude strangers from %s, whether or not the account exists', async (path, body) => {
    const stranger = await ownerOfNew(test, 'Foreign');
    const foreign = await stranger.post(`${base}/${path}`, body);
    const unknown = await stranger.post(`/dash/accounts/acct_${'0'.repeat(26)}/${path}`, body);
    expect(foreign.status).toBe(404);
    expect(unknown.status).toBe(404);
    const message = (seen: Seen) => (seen.json as { error: { message: string } }).error.message;
    expect(message(foreign)).toBe(message(unknown));
  });

  it('let a blocked account start nothing', async () => {
    const person = await ownerOfNew(test);
    await test.app.db.query(`update accounts set status = 'blocked' where id = $1`, [person.account_id]);
    const at = person.base;
    expect((await person.post(`${at}/estimate`, image_request)).json).toMatchObject({ obstacle: 'account_blocked' });
    expect((await person.post(`${at}/generate`, image_request)).status).toBe(403);
    expect((await person.post(`${at}/chat/completions`, chat)).status).toBe(403);
    expect((await person.post(`${at}/rerank`, ranking)).status).toBe(403);
    expect((await person.post(`${at}/moderations`, judging)).status).toBe(403);
  });
});
