import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstOperator } from '../../src/accounts/members.ts';
import { listMembers } from '../../src/accounts/team.ts';
import type { ChatView, TaskView } from '../../src/dashboard/views/activity.ts';
import type { SpeedView } from '../../src/dashboard/views/speed.ts';
import { scores_max } from '../../src/feedback/feedback.ts';
import { newId } from '../../src/lib/ids.ts';
import { removeAllOld } from '../../src/worker.ts';
import { memberOf, ownerOfNew, signInAs, okBody, type Someone } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

let test: TestApp;
let owner: Someone;
let client: Client;
let other: Client;
let task: string;
let call: string;
beforeAll(async () => {
  test = await startTestApp();
  owner = await ownerOfNew(test);
  client = await test.client({ account_id: owner.account_id });
  other = await test.client({ account_id: (await ownerOfNew(test, 'Other')).account_id });
  task = await generate();
  call = await chat();
});
afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function generate(by = client): Promise<string> {
  const body = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };
  return (await by.call('POST', '/v1/generate?wait=60', body)).json.id;
}

async function chat(by = client): Promise<string> {
  const messages = [{ role: 'user', content: 'Hello' }];
  const { headers } = await by.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages, user: 'ann' });
  return headers.get('x-request-id') ?? '';
}

const give = (body: object, by = client) => by.call('POST', '/v1/feedback', body);
const list = async (query = '', by = client) => (await by.call('GET', `/v1/feedback${query}`)).json;

describe('feedback', () => {
  it('is a score of a call or a task, with a metric, an end user, words, tags and metadata', async () => {
    const { status, json } = await give({
      reference_id: task,
      score: 0.5,
      name: 'likeness',
      user: 'ann',
      comment: 'Nearly',
      tags: ['colour', 'colour', 'hands'],
      metadata: { page: '7' },
    });
    expect(status).toBe(200);
    expect(json).toEqual({
      id: expect.stringMatching(/^feedback_\w{26}$/),
      object: 'feedback',
      reference_id: task,
      name: 'likeness',
      user: 'ann',
      score: 0.5,
      comment: 'Nearly',
      tags: ['colour', 'hands'],
      metadata: { page: '7' },
      created_at: expect.any(String),
      updated_at: expect.any(String),
    });
    expect((await give({ reference_id: call, score: true })).json).toMatchObject({
      score: 1,
      name: 'rating',
      user: null,
    });
  });

  it('of the same call, metric and end user is one score: the last one', async () => {
    const id = await chat();
    const first = (await give({ reference_id: id, score: true, user: 'ann', comment: 'Good' })).json;
    const again = (await give({ reference_id: id, score: false, user: 'ann' })).json;
    expect(again).toMatchObject({ id: first.id, created_at: first.created_at, score: -1, comment: null });
    await give({ reference_id: id, score: true, user: 'bob' });
    await give({ reference_id: id, score: 0.1, user: 'ann', name: 'speed' });
    const page = await list(`?reference_id=${id}`);
    expect(page.data.map(({ user, name, score }: Record<string, unknown>) => [user, name, score])).toEqual([
      ['ann', 'speed', 0.1],
      ['bob', 'rating', 1],
      ['ann', 'rating', -1],
    ]);
  });

  it('that is sent at once many times is one score', async () => {
    const id = await chat();
    const answers = await Promise.all(Array.from({ length: 8 }, () => give({ reference_id: id, score: true })));
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    expect(new Set(answers.map(({ json }) => json.id)).size).toBe(1);
    expect((await list(`?reference_id=${id}`)).data).toHaveLength(1);
  });

  it('is listed page by page, newest first, by call, metric and end user', async () => {
    const by = await test.client();
    const ids = [await chat(by), await chat(by), await chat(by)];
    for (const reference_id of ids) await give({ reference_id, score: true, user: 'ann' }, by);
    const first = await list('?limit=2&user=ann&name=rating', by);
    expect(first).toMatchObject({
      object: 'list',
      has_more: true,
      first_id: first.data[0]?.id,
      last_id: first.data[1]?.id,
    });
    const rest = await list(`?limit=2&after=${first.last_id}`, by);
    expect([...first.data, ...rest.data].map((each) => each.reference_id)).toEqual(ids.toReversed());
    expect(rest.has_more).toBe(false);
    expect((await list(`?before=${first.last_id}`, by)).data.map(({ id }: { id: string }) => id)).toEqual([
      first.first_id,
    ]);
    expect((await list('?name=speed', by)).data).toEqual([]);
  });

  it('is deleted by its id, once', async () => {
    const id = (await give({ reference_id: task, score: 1, user: 'gone' })).json.id;
    expect((await client.call('DELETE', `/v1/feedback/${id}`)).json).toEqual({ id, object: 'feedback', deleted: true });
    expect((await client.call('DELETE', `/v1/feedback/${id}`)).status).toBe(404);
  });

  it('of another account is unknown, as its calls and tasks are', async () => {
    const { id } = (await give({ reference_id: task, score: 1, user: 'mine' })).json;
    expect((await give({ reference_id: task, score: 1 }, other)).status).toBe(404);
    expect((await give({ reference_id: call, score: 1 }, other)).status).toBe(404);
    expect((await other.call('DELETE', `/v1/feedback/${id}`)).status).toBe(404);
    expect((await list('', other)).data).toEqual([]);
  });

  it.each<[object, number, string]>([
    [{ score: 1 }, 400, 'reference_id'],
    [{ reference_id: newId('task'), score: 1 }, 404, 'reference_id'],
    [{ reference_id: newId('req'), score: 1 }, 404, 'reference_id'],
    [{ reference_id: 'resp_1\0', score: 1 }, 404, 'reference_id'],
    [{ reference_id: 'TASK' }, 400, 'score'],
    [{ reference_id: 'TASK', score: 1.01 }, 400, 'score'],
    [{ reference_id: 'TASK', score: 'good' }, 400, 'score'],
    [{ reference_id: 'TASK', score: 1, name: 'two words' }, 400, 'name'],
    [{ reference_id: 'TASK', score: 1, name: 'x'.repeat(65) }, 400, 'name'],
    [{ reference_id: 'TASK', score: 1, user: 'x'.repeat(257) }, 400, 'user'],
    [{ reference_id: 'TASK', score: 1, comment: 'x'.repeat(4_001) }, 400, 'comment'],
    [{ reference_id: 'TASK', score: 1, tags: Array.from({ length: 17 }, String) }, 400, 'tags'],
    [{ reference_id: 'TASK', score: 1, tags: [''] }, 400, 'tags[0]'],
    [{ reference_id: 'TASK', score: 1, metadata: { a: 1 } }, 400, 'metadata'],
    [{ reference_id: 'TASK', score: 1, stars: 5 }, 400, 'stars'],
  ])('with a mistake is refused, and the field is named: %j', async (body, status, param) => {
    const answer = await give({
      ...body,
      ...('reference_id' in body && body.reference_id === 'TASK' && { reference_id: task }),
    });
    expect(answer.status).toBe(status);
    expect(answer.json.error.param).toBe(param);
  });

  it('of a key is not given in the name of a person of the dashboard', async () => {
    const body = { reference_id: call, score: -1, user: owner.user_id };
    const { status, json } = await client.call('POST', '/v1/feedback', body);
    expect([status, json]).toMatchObject([400, { error: { param: 'user' } }]);
    expect((await client.call('POST', '/v1/feedback', { ...body, user: 'user_17' })).status).toBe(200);
  });

  it('with NUL in its words is kept without it', async () => {
    const { json } = await give({ reference_id: task, score: 1, user: 'nul', comment: 'a\0b', tags: ['c\0'] });
    expect(json).toMatchObject({ comment: 'ab', tags: ['c'] });
    expect((await list('?user=%00nul')).data).toHaveLength(1);
  });

  it('has a bound for each call, also when all scores come at once, and the last of them can be changed', async () => {
    const id = await chat();
    const names = Array.from({ length: scores_max + 8 }, (_, index) => `m${index}`);
    const answers = await Promise.all(names.map((name) => give({ reference_id: id, score: 1, name })));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(scores_max);
    expect(answers.filter(({ status }) => status === 409)).toHaveLength(8);
    const name = names[answers.findIndex(({ status }) => status === 200)];
    expect((await give({ reference_id: id, score: -1, name })).json).toMatchObject({ name, score: -1 });
    expect((await give({ reference_id: id, score: -1, name, user: 'another' })).status).toBe(409);
  });
});

describe('speed', () => {
  it('has the mean of scores, by model, end user and tag, of the metric that is asked for', async () => {
    const by = await test.client();
    for (const score of [1, 1, -1]) {
      const id = await chat(by);
      await give({ reference_id: id, score }, by);
      await give({ reference_id: id, score: 0.5, name: 'tone' }, by);
    }
    await chat(by);
    const first = async (query: string) => (await by.call('GET', `/v1/speed?${query}`)).json.data[0];
    // The record of the last call, which nobody scored, may still be on its way.
    await expect.poll(async () => (await first('group_by=model'))?.count).toBe(4);
    const of_model = { model: 'sandbox/chat', feedback_count: 3, feedback_score: 0.333 };
    expect(await first('group_by=model')).toMatchObject(of_model);
    expect(await first('group_by=route')).toMatchObject({ feedback_count: 3, feedback_score: 0.333 });
    const tone = (await by.call('GET', '/v1/speed?group_by=user&feedback=tone')).json;
    expect(tone.data[0]).toMatchObject({ user: 'ann', feedback_count: 3, feedback_score: 0.5 });
    expect((await by.call('GET', '/v1/speed?feedback=two%20words')).status).toBe(400);
    const without = (await by.call('GET', '/v1/speed?feedback=unknown')).json;
    expect(without.data[0]).toMatchObject({ count: 4, feedback_count: 0, feedback_score: null });
  });
});

describe('the dashboard', () => {
  it('gives a thumb, changes it and takes it away, and shows what callers gave', async () => {
    const id = await generate();
    await give({ reference_id: id, score: 0.5, user: 'ann', comment: 'Fine' });
    const thumb = async (score: number) =>
      okBody<{ feedback: TaskView['feedback'] }>(
        await owner.post(`${owner.base}/feedback`, { reference_id: id, score }),
      ).feedback.map((each) => [each.is_own, each.score]);
    expect(await thumb(1)).toEqual([
      [true, 1],
      [false, 0.5],
    ]);
    expect(await thumb(-1)).toEqual([
      [true, -1],
      [false, 0.5],
    ]);
    const view = okBody<TaskView>(await owner.get(`${owner.base}/tasks/${id}`));
    expect(view.feedback.map(({ user, comment }) => [user, comment])).toEqual([
      [owner.user_id, null],
      ['ann', 'Fine'],
    ]);
    const colleague = await memberOf(test, owner, 'developer');
    const theirs = okBody<TaskView>(await colleague.get(`${owner.base}/tasks/${id}`)).feedback;
    const { name } =
      (await listMembers(test.app.db, owner.account_id)).find((one) => one.user_id === owner.user_id) ?? {};
    expect(theirs.map((each) => [each.is_own, each.user])).toEqual([
      [false, name],
      [false, 'ann'],
    ]);
    expect(await thumb(0)).toEqual([[false, 0.5]]);
    expect((await owner.post(`${owner.base}/feedback`, { reference_id: id, score: 5 })).status).toBe(400);
  });

  it('shows it on the page of a call and in Speed; who may not run anything may not give any', async () => {
    const id = await chat();
    okBody(await owner.post(`${owner.base}/feedback`, { reference_id: id, score: 1 }));
    expect(okBody<ChatView>(await owner.get(`${owner.base}/chats/${id}`)).feedback).toMatchObject([
      { score: 1, is_own: true },
    ]);
    const speed = okBody<SpeedView>(await owner.get(`${owner.base}/speed`));
    expect(speed.total?.feedback_count).toBeGreaterThan(0);
    const viewer = await memberOf(test, owner, 'viewer');
    const operator_id = await firstOperator(test.app.db, (await ownerOfNew(test, 'Operators')).account_id, new Date());
    const operator = await signInAs(test, operator_id, owner.account_id);
    for (const person of [viewer, operator]) {
      expect((await person.get(`${owner.base}/chats/${id}`)).status).toBe(200);
      expect((await person.post(`${owner.base}/feedback`, { reference_id: id, score: 1 })).status).toBe(403);
    }
  });
});

it('is removed with the record of its call', async () => {
  const by = await test.client();
  const ids = [await chat(by), await generate(by)];
  for (const reference_id of ids) await give({ reference_id, score: 1 }, by);
  const count = async () => (await list('', by)).data.length;
  await removeAllOld(test.app, new AbortController().signal);
  expect(await count()).toBe(2);
  const aged = "now() - interval '200 days'";
  await test.app.db.query(`update feedback set referred_at = ${aged} where reference_id = any($1)`, [ids]);
  await removeAllOld(test.app, new AbortController().signal);
  expect(await count()).toBe(0);
});
