import { afterAll, beforeAll, expect, it } from 'vitest';
import { listAudit } from '../../src/accounts/audit.ts';
import type { ChatContentView, ChatView } from '../../src/dashboard/views/activity.ts';
import type { KeysView, NewKeyView } from '../../src/dashboard/views/keys.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

/** Contents of chat calls in the dashboard: switched on with a key, and read by those who may. */

let test: TestApp;
let owner: Someone;
let key: NewKeyView;

const log_content = { keep_days: 14, redact: ['email'], patterns: ['EMP-####'] };

beforeAll(async () => {
  test = await startTestApp();
  owner = await ownerOfNew(test);
  key = okBody<NewKeyView>(await owner.post(`${owner.base}/keys`, { name: 'Logs', log_content }));
});
afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function chat(content: string): Promise<string> {
  const answer = await fetch(`${test.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/chat', messages: [{ role: 'user', content }] }),
  });
  expect(answer.status, await answer.text()).toBe(200);
  await test.app.contents.flush();
  return answer.headers.get('x-request-id') ?? '';
}

const open = (someone: Someone, id: string) => someone.post(`${owner.base}/chats/${id}/content`, {});

it('a key says what is stored of its chats, and a mistake names its place', async () => {
  expect(key.key.log_content).toEqual(log_content);
  const { data, content_days_max } = okBody<KeysView>(await owner.get(`${owner.base}/keys`));
  expect(content_days_max).toBe(90);
  expect(data.find(({ id }) => id === key.key.id)?.log_content).toEqual(log_content);
  const wrong = { log_content: { ...log_content, patterns: ['fine', 'a*'] } };
  const refused = await owner.send('PATCH', `${owner.base}/keys/${key.key.id}`, wrong);
  expect(refused.status).toBe(400);
  expect(refused.text).toContain('log_content has a mistake: patterns[1] must have at least 3 characters');
});

it('owners and developers read what was said, which the audit log says; viewers and billing do not', async () => {
  const id = await chat('I am ada@example.com, EMP-1234');
  expect(okBody<ChatView>(await owner.get(`${owner.base}/chats/${id}`)).has_content).toBe(true);
  const developer = await memberOf(test, owner, 'developer');
  const view = okBody<ChatContentView>(await open(developer, id));
  expect(view).toMatchObject({
    model: 'sandbox/chat',
    messages: [{ role: 'user', content: 'I am [email], [redacted]' }],
    answers: [{ role: 'assistant' }],
    redacted: { email: 2, pattern: 2 }, // the sandbox repeats it
  });
  for (const role of ['viewer', 'billing'] as const)
    expect((await open(await memberOf(test, owner, role), id)).status).toBe(403);
  expect((await open(await ownerOfNew(test), id)).status).toBe(404);
  const filter = { account_id: owner.account_id, action: 'content.read', limit: 9 };
  const { entries } = await listAudit(test.app.db, filter);
  expect(entries.map(({ user_id, subject, address }) => [user_id, subject, address])).toEqual([
    [developer.user_id, id, '127.0.0.1'],
  ]);
});

it('an operator reads it only with a reason, which the account reads', async () => {
  const id = await chat('Hello');
  const operator = await ownerOfNew(test);
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  expect((await open(operator, id)).status).toBe(403);
  const path = `/dash/admin/accounts/${owner.account_id}/chats/${id}/content`;
  expect((await operator.post(path, {})).status).toBe(400);
  expect((await operator.post(path, { reason: 'because' })).text).toContain('at least 10 characters');
  const reason = 'Ticket 4711: wrong answers';
  expect(okBody<ChatContentView>(await operator.post(path, { reason })).messages).toHaveLength(1);
  const { entries } = await listAudit(test.app.db, { account_id: owner.account_id, action: 'content.read', limit: 1 });
  expect(entries).toMatchObject([{ user_id: operator.user_id, subject: id, details: { reason, operator: true } }]);
});

it('contents are taken along as lines of JSON, and go with their key’s rules or one by one', async () => {
  const ids = [await chat('One'), await chat('Two'), await chat('Three')];
  const { text } = await owner.get(`${owner.base}/contents.jsonl?key=${key.key.id}`);
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { request_id: string });
  expect(lines.map(({ request_id }) => request_id).slice(-3)).toEqual(ids);
  expect((await (await memberOf(test, owner, 'viewer')).get(`${owner.base}/contents.jsonl`)).status).toBe(403);
  expect((await owner.send('DELETE', `${owner.base}/chats/${ids[0]}/content`, {})).status).toBe(200);
  expect((await open(owner, ids[0] ?? '')).status).toBe(404);
  const off = { log_content: null, delete_content: true };
  expect((await owner.send('PATCH', `${owner.base}/keys/${key.key.id}`, off)).status).toBe(200);
  expect((await open(owner, ids[1] ?? '')).status).toBe(404);
  await expect.poll(async () => (await open(owner, await chat('Four'))).status).toBe(404);
  const { entries } = await listAudit(test.app.db, { account_id: owner.account_id, action: 'key.change', limit: 1 });
  expect(entries).toMatchObject([{ details: { log_content: null, contents_deleted: expect.any(Number) } }]);
});
