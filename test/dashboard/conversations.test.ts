import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { deleteAccount } from '../../src/accounts/accounts.ts';
import { listAudit } from '../../src/accounts/audit.ts';
import { playground_bounds, removeOldPlayground, savePlayground } from '../../src/contents/playground.ts';
import { encryptAgain } from '../../src/conversations/removal.ts';
import type { ConversationChanges, StoredConversation } from '../../src/dashboard/views/playground.ts';
import { contentKeys } from '../../src/db/content.ts';
import { removeAllOld } from '../../src/worker.ts';
import { addTurns, empty_thread, merged, type Thread } from '../../web/src/pages/playground/thread.ts';
import { commandsBeside } from '../cli/medley.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import type { Seen } from '../helpers/person.ts';
import { memberOf, okBody, ownerOfNew, signInAs, type Someone } from './people.ts';

/** Conversations of the playground that people keep on the server: each person's own, encrypted, bounded. */

const secret = 'the first secret of this service';
const yaml = 'version: 1\ncontent_log: { keep_max: 30d }\n';

let test: TestApp;
let owner: Someone;

beforeAll(async () => {
  test = await startTestApp({ yaml, worker: false, env: { MEDLEY_SECRET: secret } });
  owner = await ownerOfNew(test, 'Agency');
  await switchOn(owner);
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

const newId = () => randomBytes(12).toString('hex');

const switchOn = async (who: Someone) => okBody(await who.send('PUT', `${who.base}/conversations`, { is_on: true }));

const changesOf = async (who: Someone, since = 0) =>
  okBody<ConversationChanges>(await who.get(`${who.base}/conversations?since=${since}`));

const put = (who: Someone, id: string, body: object) =>
  who.send('PUT', `${who.base}/conversations/${id}`, {
    version: 0,
    line: '{"title":"A title"}',
    turns: '{"said":"Hello"}',
    files: [],
    ...body,
  });

const read = (who: Someone, id: string) => who.get(`${who.base}/conversations/${id}`);

const putFile = (who: Someone, id: string, file: string, data = 'SGVsbG8=') =>
  who.send('PUT', `${who.base}/conversations/${id}/files/${file}`, { data });

const errorOf = ({ status, json }: Seen) => {
  const { code, param, message } =
    (json as { error?: { code?: string; param?: string; message?: string } }).error ?? {};
  return { status, code, param, message };
};

async function savedBy(who: Someone, turns = '{"said":"Hello"}'): Promise<{ id: string; version: number }> {
  const id = newId();
  const { version } = okBody<{ version: number }>(await put(who, id, { turns }));
  return { id, version };
}

describe('keeping conversations on the server', () => {
  it('is off until its person switches it on, and nothing is taken before', async () => {
    const developer = await memberOf(test, owner, 'developer');
    expect(await changesOf(developer)).toEqual({
      days: 30,
      is_encrypted: true,
      is_on: false,
      epoch: null,
      data: [],
      has_more: false,
    });
    expect(errorOf(await put(developer, newId(), {}))).toMatchObject({ status: 403, code: 'conversations_off' });
    expect(errorOf(await putFile(developer, newId(), newId()))).toMatchObject({
      status: 403,
      code: 'conversations_off',
    });
    await switchOn(developer);
    const { id, version } = await savedBy(developer);
    expect(await changesOf(developer)).toMatchObject({
      is_on: true,
      epoch: expect.stringMatching(/^\w{16}$/),
      data: [{ id, version, is_deleted: false, line: '{"title":"A title"}' }],
    });
    expect(okBody(await read(developer, id))).toEqual({ version, turns: '{"said":"Hello"}' });
  });

  it('ends with what is there left to expire, or with all of it removed and another epoch afterwards', async () => {
    const developer = await memberOf(test, owner, 'developer');
    await switchOn(developer);
    const { id } = await savedBy(developer);
    const { epoch } = await changesOf(developer);
    const choose = (body: object) => developer.send('PUT', `${developer.base}/conversations`, body);
    okBody(await choose({ is_on: false }));
    expect(await changesOf(developer)).toMatchObject({ is_on: false, data: [] });
    expect(errorOf(await put(developer, id, {}))).toMatchObject({ status: 403 });
    okBody(await choose({ is_on: true }));
    expect(await changesOf(developer)).toMatchObject({ epoch, data: [{ id }] });
    okBody(await choose({ is_on: false, remove: true }));
    expect(await changesOf(developer)).toMatchObject({ is_on: false, epoch: null });
    await switchOn(developer);
    const anew = await changesOf(developer);
    expect([anew.data, anew.epoch === epoch]).toEqual([[], false]);
    expect(errorOf(await choose({ is_on: 'yes' }))).toMatchObject({ status: 400, param: 'is_on' });
    expect(errorOf(await choose({ is_on: false, remove: 1 }))).toMatchObject({ status: 400, param: 'remove' });
    expect(errorOf(await choose({ is_on: true, remove: true }))).toMatchObject({ status: 400, param: 'remove' });
  });

  it('is not offered where the operator or the account lets nobody store contents', async () => {
    const closed = await ownerOfNew(test, 'Without');
    await test.app.db.query('update accounts set keeps_responses = false where id = $1', [closed.account_id]);
    expect(await changesOf(closed)).toMatchObject({ days: 0, is_on: false });
    const refused = await closed.send('PUT', `${closed.base}/conversations`, { is_on: true });
    expect(errorOf(refused)).toMatchObject({ status: 403, code: 'conversations_not_offered' });
    const node = await test.beside({ yaml: 'version: 1\ncontent_log: { allowed: false }\n', worker: false });
    try {
      const there = await signInAs(node, owner.user_id, owner.account_id);
      expect(await changesOf(there)).toMatchObject({ days: 0, is_on: false, data: [] });
      expect(errorOf(await put(there, newId(), {}))).toMatchObject({ status: 403, code: 'conversations_not_offered' });
      expect(errorOf(await putFile(there, newId(), newId()))).toMatchObject({ code: 'conversations_not_offered' });
    } finally {
      await node.stop();
    }
  });
});

describe('a conversation on the server', () => {
  it('is seen by its person alone: not by others of the account, of another one, or by operators', async () => {
    const mine = await savedBy(owner, '{"said":"Only for me"}');
    const file = newId();
    okBody(await putFile(owner, mine.id, file));
    const developer = await memberOf(test, owner, 'developer');
    const stranger = await ownerOfNew(test, 'Stranger');
    const operator = await ownerOfNew(test, 'Operating');
    await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
    for (const other of [developer, stranger]) {
      await switchOn(other);
      expect((await changesOf(other)).data).toEqual([]);
      expect((await read(other, mine.id)).status).toBe(404);
      expect((await other.get(`${other.base}/conversations/${mine.id}/files/${file}`)).status).toBe(404);
      okBody(await other.send('DELETE', `${other.base}/conversations/${mine.id}`));
      okBody(await put(other, mine.id, { turns: '{"said":"Mine"}' })); // the same id, and another conversation
    }
    for (const outsider of [stranger, operator]) {
      const status = outsider === stranger ? 404 : 403;
      expect((await outsider.get(`${owner.base}/conversations`)).status).toBe(status);
      expect((await outsider.get(`${owner.base}/conversations/${mine.id}`)).status).toBe(status);
      expect((await outsider.get(`${owner.base}/conversations/${mine.id}/files/${file}`)).status).toBe(status);
      expect((await outsider.send('DELETE', `${owner.base}/conversations/${mine.id}`)).status).toBe(status);
    }
    expect(okBody(await read(owner, mine.id))).toEqual({ version: mine.version, turns: '{"said":"Only for me"}' });
  });

  it('is not taken from the page of somebody who signed in before in the same browser', async () => {
    const developer = await memberOf(test, owner, 'developer');
    await switchOn(developer);
    const { id } = await savedBy(developer);
    const of = (who: Someone) => `?person=${who.user_id}`;
    const body = { version: 0, line: '{}', turns: '{}', files: [] };
    for (const [method, path, sent] of [
      ['GET', '/conversations', undefined],
      ['PUT', '/conversations', { is_on: false, remove: true }],
      ['GET', `/conversations/${id}`, undefined],
      ['PUT', `/conversations/${newId()}`, body],
      ['DELETE', `/conversations/${id}`, undefined],
      ['GET', `/conversations/${id}/files/${newId()}`, undefined],
      ['PUT', `/conversations/${id}/files/${newId()}`, { data: 'QQ==' }],
    ] as const) {
      const refused = await developer.send(method, developer.base + path + of(owner), sent);
      expect(errorOf(refused), `${method} ${path}`).toMatchObject({ status: 409, code: 'another_person' });
    }
    const { data } = okBody<ConversationChanges>(
      await developer.get(`${developer.base}/conversations${of(developer)}`),
    );
    expect(data).toMatchObject([{ id, is_deleted: false }]);
  });

  it.each(['viewer', 'billing'] as const)('is not for the role %s, which runs no models', async (role) => {
    const member = await memberOf(test, owner, role);
    expect((await member.get(`${member.base}/conversations`)).status).toBe(403);
    expect((await member.send('PUT', `${member.base}/conversations`, { is_on: true })).status).toBe(403);
    expect((await put(member, newId(), {})).status).toBe(403);
  });

  it('is also for members who are limited to projects', async () => {
    const limited = await memberOf(test, owner, 'developer');
    await test.app.db.query(`update auth.member set projects = '{}' where "userId" = $1`, [limited.user_id]);
    await switchOn(limited);
    const { id } = await savedBy(limited);
    expect((await changesOf(limited)).data).toMatchObject([{ id }]);
    expect((await read(limited, id)).status).toBe(200);
  });

  it('is written on one node and read on another, in the order of its changes', async () => {
    const person = await memberOf(test, owner, 'developer');
    await switchOn(person);
    const node = await test.beside({ yaml, worker: false, env: { MEDLEY_SECRET: secret } });
    try {
      const there = await signInAs(node, person.user_id, person.account_id);
      const first = await savedBy(person, '{"said":"One"}');
      const second = await savedBy(there, '{"said":"Two"}');
      const changed = okBody<{ version: number }>(await put(there, first.id, { version: first.version }));
      expect((await changesOf(person)).data.map(({ id, version }) => [id, version])).toEqual([
        [second.id, second.version],
        [first.id, changed.version],
      ]);
      expect((await changesOf(person, second.version)).data.map(({ id }) => id)).toEqual([first.id]);
    } finally {
      await node.stop();
    }
  });

  it('leaves a tombstone when it is deleted, and does not come back', async () => {
    const { id, version } = await savedBy(owner);
    const file = newId();
    okBody(await putFile(owner, id, file));
    okBody(await owner.send('DELETE', `${owner.base}/conversations/${id}`));
    okBody(await owner.send('DELETE', `${owner.base}/conversations/${id}`));
    const { data } = await changesOf(owner, version);
    expect(data).toEqual([{ id, version: expect.any(Number), is_deleted: true, line: null }]);
    expect(errorOf(await read(owner, id))).toMatchObject({ status: 409, code: 'deleted_elsewhere' });
    expect(errorOf(await put(owner, id, { version }))).toMatchObject({ status: 409, code: 'deleted_elsewhere' });
    expect(errorOf(await putFile(owner, id, newId()))).toMatchObject({ status: 409, code: 'deleted_elsewhere' });
    expect((await owner.get(`${owner.base}/conversations/${id}/files/${file}`)).status).toBe(404);
    expect(await contentsOf(id)).toEqual([]);
  });

  it('comes in pages of the list when there are many', async () => {
    const many = await memberOf(test, owner, 'developer');
    await switchOn(many);
    const name = { account_id: many.account_id, user_id: many.user_id };
    for (let number = 0; number < 201; number += 1) {
      const turns = { version: 0, line: `{"title":"${number}"}`, turns: '{}', file_ids: [] };
      await savePlayground(test.app, { ...name, id: newId() }, turns, { now: new Date(), keep_ms: 1e9 });
    }
    const first = await changesOf(many);
    expect([first.data.length, first.has_more]).toEqual([200, true]);
    const second = await changesOf(many, first.data.at(-1)?.version);
    expect([second.data.map(({ line }) => line), second.has_more]).toEqual([['{"title":"200"}'], false]);
  });
});

describe('a file of a conversation', () => {
  it('is sent once, before the turns that name it, and read by its id', async () => {
    const [id, file, never_sent] = [newId(), newId(), newId()];
    okBody(await putFile(owner, id, file, 'QQ=='));
    okBody(await putFile(owner, id, file, 'Qg==')); // the first stays: ids are chosen for contents
    expect((await changesOf(owner)).data.map((each) => each.id)).not.toContain(id);
    expect((await read(owner, id)).status).toBe(404);
    const refused = await put(owner, id, { files: [file, never_sent] });
    expect(errorOf(refused)).toMatchObject({ status: 409, code: 'files_missing' });
    okBody(await put(owner, id, { files: [file, file] }));
    expect(okBody(await owner.get(`${owner.base}/conversations/${id}/files/${file}`))).toEqual({ data: 'QQ==' });
    expect((await owner.get(`${owner.base}/conversations/${id}/files/${never_sent}`)).status).toBe(404);
    expect((await owner.get(`${owner.base}/conversations/${id}/files/line`)).status).toBe(404);
  });

  it('goes an hour after no turn names it any more, or a day after it came without a conversation', async () => {
    const { db } = test.app;
    const [id, file, other, abandoned] = [newId(), newId(), newId(), newId()];
    okBody(await putFile(owner, id, file));
    const { version } = okBody<{ version: number }>(await put(owner, id, { files: [file] }));
    const later = okBody<{ version: number }>(await put(owner, id, { version }));
    expect(await contentsOf(id)).toHaveLength(3);
    await db.query(`update playground_contents set created_at = now() - interval '61 minutes' where id = $1`, [
      `${id} ${file}`,
    ]);
    okBody(await putFile(owner, id, other));
    okBody(await put(owner, id, { version: later.version }));
    expect((await contentsOf(id)).map((row) => row.id).toSorted()).toEqual(
      [`${id} line`, `${id} turns`, `${id} ${other}`].toSorted(),
    );
    okBody(await putFile(owner, abandoned, file));
    await removeOldPlayground(db, new Date(Date.now() + 23 * 3_600_000), 1e12);
    expect(await contentsOf(abandoned)).toHaveLength(1);
    await removeOldPlayground(db, new Date(Date.now() + 25 * 3_600_000), 1e12);
    expect(await contentsOf(abandoned)).toEqual([]);
  });
});

type Row = { id: string; key_id: string | null; content: Buffer };

const contentsOf = (id: string) =>
  test.app.db.query<Row>('select id, key_id, content from playground_contents where conversation_id = $1', [id]);

describe('two browsers that save at once', () => {
  it('are told apart by the version: the second one is refused with the newest', async () => {
    const { id, version } = await savedBy(owner);
    const first = okBody<{ version: number }>(await put(owner, id, { version, turns: '{"by":"first"}' }));
    const second = await put(owner, id, { version, turns: '{"by":"second"}' });
    expect(errorOf(second)).toMatchObject({
      status: 409,
      code: 'changed_elsewhere',
      message: expect.stringContaining(String(first.version)),
    });
    expect(okBody(await read(owner, id))).toEqual({ version: first.version, turns: '{"by":"first"}' });
  });

  it('lose no turn of twenty when each merges what it is refused for', async () => {
    const id = newId();
    const saveOne = async (number: number) => {
      let mine = addTurns(empty_thread, undefined, [{ role: 'user', text: `Turn ${number}`, files: [] }]);
      let version = 0;
      for (let tries = 1; ; tries += 1) {
        const saved = await put(owner, id, { version, turns: JSON.stringify(mine) });
        if (saved.status === 200) return tries;
        if (saved.status === 503 || saved.status === 429) continue; // a machine that has much else to do
        expect(errorOf(saved)).toMatchObject({ status: 409, code: 'changed_elsewhere' });
        const newest = okBody<StoredConversation>(await read(owner, id));
        version = newest.version;
        mine = merged(mine, JSON.parse(newest.turns) as Thread);
      }
    };
    const tries = await Promise.all(Array.from({ length: 20 }, (_, number) => saveOne(number)));
    expect(Math.max(...tries)).toBeGreaterThan(1);
    const { turns } = okBody<StoredConversation>(await read(owner, id));
    const texts = (JSON.parse(turns) as Thread).nodes.map(({ turn }) => turn.text);
    expect(texts.toSorted()).toEqual(Array.from({ length: 20 }, (_, number) => `Turn ${number}`).toSorted());
  });
});

describe('what a person may have', () => {
  it('is at most 2 MB of turns, 60 kB of a line and 20 MB of files in a conversation', async () => {
    const id = newId();
    const text = (bytes: number) => JSON.stringify({ a: 'é'.repeat(Math.ceil((bytes - 8) / 2)) }); // two bytes each
    okBody(await put(owner, id, { turns: text(1_999_999) }));
    for (const [param, body] of [
      ['turns', { turns: text(2_000_002) }],
      ['line', { line: text(60_002) }],
    ] as const)
      expect(errorOf(await put(owner, newId(), body))).toMatchObject({
        status: 413,
        param,
        message: expect.stringMatching(/at most (2 MB|60 kB)/),
      });
    expect((await put(owner, newId(), { turns: text(5_000_000) })).status).toBe(413);
    const third = 'A'.repeat(9_000_000); // of 6.75 MB
    for (const file of [newId(), newId()]) okBody(await putFile(owner, id, file, third));
    expect(errorOf(await putFile(owner, id, newId(), third))).toMatchObject({
      status: 413,
      message: expect.stringContaining('20 MB'),
    });
    expect((await putFile(owner, id, newId(), 'A'.repeat(28_000_000))).status).toBe(413);
  });

  it('is at most 1,000 conversations, tombstones not counted, and 500 MB in all', async () => {
    const person = await memberOf(test, owner, 'developer');
    await switchOn(person);
    const first = await savedBy(person);
    const { account_id, user_id } = person;
    await test.app.db.query(
      `insert into playground_conversations (account_id, user_id, id, version, created_at, updated_at, expires_at)
       select $1, $2, lpad(to_hex(n), 24, '0'), 1, now(), now(), now() + interval '1 day' from generate_series(1, $3::int) n`,
      [account_id, user_id, playground_bounds.conversations_max - 1],
    );
    expect(errorOf(await put(person, newId(), {}))).toMatchObject({ status: 409, code: 'too_many_conversations' });
    expect(errorOf(await putFile(person, newId(), newId()))).toMatchObject({ code: 'too_many_conversations' });
    okBody(await put(person, first.id, { version: first.version }));
    okBody(await person.send('DELETE', `${person.base}/conversations/${'1'.padStart(24, '0')}`));
    const last = await savedBy(person);
    await test.app.db.query('update playground_contents set size_bytes = 499999900 where id = $1', [
      `${first.id} turns`,
    ]);
    for (const refused of [
      await put(person, last.id, { version: last.version, turns: JSON.stringify({ a: 'x'.repeat(200) }) }),
      await putFile(person, last.id, newId(), 'A'.repeat(200)),
    ])
      expect(errorOf(refused)).toMatchObject({ status: 413, message: expect.stringContaining('500 MB') });
  });

  it.each([
    ['version', { version: '1' }],
    ['version', { version: -1 }],
    ['version', { version: 1.5 }],
    ['version', { version: 2 ** 31 }],
    ['files', { files: 'x' }],
    ['files', { files: ['../line'] }],
    ['files', { files: Array.from({ length: 1_001 }, newId) }],
    ['line', { line: { title: 'x' } }],
    ['line', { line: '[]' }],
    ['turns', { turns: 'null' }],
    ['turns', { turns: '{"a":' }],
    ['turns', { turns: '{"a":"\u0000"}' }],
    ['turns', { turns: '{"a":"\uD800"}' }],
    ['turns', { turns: '[{'.repeat(100_000) }],
  ])('needs a sensible %s', async (param, body) => {
    expect(errorOf(await put(owner, newId(), body))).toMatchObject({ status: 400, param });
  });

  it('has ids that browsers make, and any other is not found', async () => {
    for (const id of ['x', newId().toUpperCase(), `${newId()}0`, "a' or '1'='1", '%00', '..%2f..%2fkeys']) {
      expect((await read(owner, id)).status).toBe(404);
      expect((await put(owner, id, {})).status).toBe(404);
      expect((await owner.send('DELETE', `${owner.base}/conversations/${id}`)).status).toBe(404);
      expect((await putFile(owner, newId(), id)).status).toBe(404);
    }
    expect((await owner.get(`${owner.base}/conversations?since=x`)).status).toBe(400);
    expect(errorOf(await putFile(owner, newId(), newId(), '\uD800'))).toMatchObject({ status: 400, param: 'data' });
  });
});

describe('what lies in the database', () => {
  it('is encrypted, has no words of it, and nothing of it is in the audit log', async () => {
    const [id, file] = [newId(), newId()];
    const word = 'a very private word';
    okBody(await putFile(owner, id, file, word));
    okBody(await put(owner, id, { line: `{"title":"${word}"}`, turns: `{"said":"${word}"}`, files: [file] }));
    const rows = await contentsOf(id);
    expect(rows).toHaveLength(3);
    for (const { key_id, content } of rows) {
      expect(key_id).toBe(test.app.content_keys.current?.id);
      expect(content.includes('private')).toBe(false);
    }
    const { entries } = await listAudit(test.app.db, { account_id: owner.account_id, limit: 100 });
    expect(JSON.stringify(entries)).not.toContain('private');
  });

  it('is encrypted again under another secret, and cannot be moved to another place', async () => {
    const { db, log } = test.app;
    const { id, version } = await savedBy(owner, '{"said":"Stays"}');
    const other = await savedBy(owner, '{"said":"Else"}');
    const second = 'the second secret of this service';
    await encryptAgain({ db, log, content_keys: contentKeys({ secret: second, secret_before: secret }) });
    expect((await read(owner, id)).status).toBe(404); // this node has the old secret
    const line = (await changesOf(owner)).data.find((each) => each.id === id);
    expect(line).toEqual({ id, version, is_deleted: false, line: null });
    await encryptAgain({ db, log, content_keys: contentKeys({ secret, secret_before: second }) });
    expect(okBody(await read(owner, id))).toEqual({ version, turns: '{"said":"Stays"}' });
    await db.query(
      `update playground_contents set content = (select content from playground_contents where id = $2) where id = $1`,
      [`${id} turns`, `${other.id} turns`],
    );
    expect((await read(owner, id)).status).toBe(404);
    await encryptAgain({ db, log, content_keys: contentKeys({ secret: second, secret_before: secret }) });
    expect((await contentsOf(id)).map((row) => row.id)).toEqual([`${id} line`]); // what is damaged goes
    await encryptAgain({ db, log, content_keys: contentKeys({ secret, secret_before: second }) });
    okBody(await put(owner, id, { version, turns: '{"said":"Again"}' })); // and a browser that has it mends it
    expect(okBody(await read(owner, id))).toMatchObject({ turns: '{"said":"Again"}' });
  });

  it('expires so long after its last change, also when the operator shortens that', async () => {
    const { db } = test.app;
    const day_ms = 86_400_000;
    const in_days = (days: number) => new Date(Date.now() + days * day_ms);
    const { id } = await savedBy(owner);
    await db.query(`update playground_conversations set expires_at = now() - interval '1 minute' where id = $1`, [id]);
    expect((await read(owner, id)).status).toBe(404);
    expect((await changesOf(owner)).data.map((each) => each.id)).not.toContain(id);
    const anew = okBody<{ version: number }>(await put(owner, id, { version: 1 })); // as if it had never been
    const [row] = await db.query<{ days: number }>(
      `select round(extract(epoch from expires_at - updated_at) / 86400)::int as days
         from playground_conversations where id = $1`,
      [id],
    );
    expect(row?.days).toBe(30);
    await removeOldPlayground(db, in_days(29), 30 * day_ms);
    expect(okBody(await read(owner, id))).toMatchObject({ version: anew.version });
    await removeOldPlayground(db, in_days(29), 28 * day_ms);
    expect((await read(owner, id)).status).toBe(404);
    const last = await savedBy(owner);
    await db.query(`update playground_conversations set expires_at = now() - interval '1 minute' where id = $1`, [
      last.id,
    ]);
    await removeAllOld(test.app, new AbortController().signal);
    expect(await contentsOf(last.id)).toEqual([]);
  });

  it('goes with the membership, when the account stores nothing any more, and with the account', async () => {
    const { db } = test.app;
    const countOf = async (account_id: string, user_id: string) => {
      const rows = await db.query('select id from playground_contents where account_id = $1 and user_id = $2', [
        account_id,
        user_id,
      ]);
      return rows.length;
    };
    const leaving = await memberOf(test, owner, 'developer');
    await switchOn(leaving);
    await savedBy(leaving);
    expect(await countOf(owner.account_id, leaving.user_id)).toBe(2);
    okBody(await owner.send('DELETE', `${owner.base}/team/${leaving.user_id}`));
    expect(await countOf(owner.account_id, leaving.user_id)).toBe(0);
    const first = await ownerOfNew(test, 'First');
    for (const each of [first, await memberOf(test, first, 'developer')]) {
      await switchOn(each);
      await savedBy(each);
    }
    await commandsBeside(test).ok('account', 'responses', first.account_id, 'off');
    const left = await db.query('select id from playground_contents where account_id = $1', [first.account_id]);
    expect(left).toEqual([]);
    const short_lived = await ownerOfNew(test, 'Short-lived', 0n);
    await switchOn(short_lived);
    await savedBy(short_lived);
    expect(await deleteAccount(db, short_lived.account_id)).toBe('deleted');
    expect(await countOf(short_lived.account_id, short_lived.user_id)).toBe(0);
  });
});
