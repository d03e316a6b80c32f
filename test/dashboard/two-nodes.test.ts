import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { openBalancer, type Balancer } from '../../bench/balancer.ts';
import type { AdminTestCall } from '../../src/dashboard/views/admin.ts';
import type { NewKeyView } from '../../src/dashboard/views/keys.ts';
import { reload_channel } from '../../src/app/channels.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { browserOf, type Seen } from '../helpers/person.ts';
import { moreEvents, openLivePage } from './live-rows.ts';
import { memberOf, ownerOfNew, signInAs, okBody, type Someone } from './people.ts';

/** The dashboard of two nodes behind a balancer that gives each request to the other one than the request before. */

const yaml = 'version: 1\nserver: { trusted_proxies: [127.0.0.1/32] }\nstorage: { shared: true }\n';
const password = 'correct horse battery';

let balancer: Balancer;
let nodes: [TestApp, TestApp];
let owner: Someone;

/** As `TestApp` for those that sign people in: they come through the balancer. */
let front: TestApp;

beforeAll(async () => {
  balancer = await openBalancer();
  const url = `http://127.0.0.1:${balancer.port}`;
  const env = { MEDLEY_BASE_URL: url };
  const first = await startTestApp({ yaml, env });
  const second = await first.beside({ yaml, env });
  nodes = [first, second];
  balancer.balance(nodes.map(({ app }) => Number(new URL(app.local_url()).port)));
  front = { ...first, url };
  owner = await ownerOfNew(front);
});

afterAll(async () => {
  await expectExactBooks(nodes[0].app);
  await balancer.close();
  await nodes[1].stop();
  await nodes[0].stop();
});

/**
 * A guess of a browser that was never here. Each address of e-mail is tried from a host of its own: one host has ten
 * guesses a minute, and a slow machine lets more than five of thirteen pass the waits.
 */
const guess = (email: string, i: number): Promise<Seen> =>
  browserOf(front.url).post(
    '/auth/sign-in/email',
    { email, password: `guess number ${i}` },
    { 'x-forwarded-for': email.startsWith('nobody') ? '198.51.100.67' : '198.51.100.66' },
  );

/** Five guesses one after the other, and eight at once: a second later, the next one is free. */
async function guesses(email: string): Promise<{ free: Seen[]; more: Seen[] }> {
  const free = [];
  for (let i = 0; i < 5; i++) free.push(await guess(email, i));
  const more = await Promise.all(Array.from({ length: 8 }, (_, i) => guess(email, 5 + i)));
  return { free, more };
}

/** Ids of requests differ. */
const withoutId = (answer: string) => answer.replaceAll(/req_\w+/g, 'req');

it('wrong passwords have to wait on both nodes after five, and of an address that nobody has just the same', async () => {
  const who = { email: 'known@example.com', password };
  okBody(await owner.post('/auth/set-up', { ...who, name: 'Known' }));
  const textOf = ({ status, text }: Seen) => withoutId(`${status} ${text.replace(/again in \d+ s/, 'again')}`);
  const answersOf = async (email: string) => {
    const { free, more } = await guesses(email);
    return [free.map(textOf), [...new Set(more.map(textOf).filter((text) => text.startsWith('429')))]];
  };
  const answers = await answersOf(who.email);
  expect(answers[0]?.map((answer) => answer.slice(0, 3)).join(' ')).toBe('401 401 401 401 401');
  expect(answers[1]).toEqual([expect.stringContaining('Too many attempts. Try again.')]);
  expect(await answersOf('nobody@example.com')).toEqual(answers);
  const elsewhere = await browserOf(front.url).post('/auth/sign-in/email', who, { 'x-forwarded-for': '203.0.113.7' });
  expect(elsewhere.status).toBe(200);
});

it('a person who signed in on one node is signed in on the other, and signed out of both', async () => {
  const person = await signInAs(front, owner.user_id, owner.account_id);
  for (let i = 0; i < 4; i++) expect((await person.get('/dash/me')).status).toBe(200);
  expect((await person.post('/auth/sign-out')).status).toBe(200);
  for (let i = 0; i < 4; i++) expect((await person.get('/dash/me')).status).toBe(401);
});

const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello there' }], max_tokens: 50 };

it('a chat of the playground is estimated, streamed and read again on whichever node the balancer chooses', async () => {
  for (let turn = 0; turn < 3; turn++) {
    expect(okBody(await owner.post(`${owner.base}/chat/completions/estimate`, chat))).toMatchObject({ ok: true });
    const streamed = await owner.post(`${owner.base}/chat/completions`, { ...chat, stream: true });
    expect(streamed.text).toContain('data: [DONE]');
    const id = streamed.headers.get('x-request-id') ?? '';
    for (let look = 0; look < 2; look++)
      await expect.poll(async () => (await owner.get(`${owner.base}/chats/${id}`)).status).toBe(200);
  }
});

it('a run of the playground is started on one node, seen on both, and canceled on either', async () => {
  for (let turn = 0; turn < 2; turn++) {
    const input = { prompt: 'Slow [[delay 60s]]', width: 64, height: 64 };
    const { id } = okBody<{ id: string }>(
      await owner.post(`${owner.base}/generate`, { model: 'sandbox/image', input }),
    );
    const task = () => owner.get(`${owner.base}/tasks/${id}`);
    if (turn === 0) await task(); // the next request goes to the other node than in the other turn
    const cancel = async () => (await owner.post(`${owner.base}/tasks/${id}/cancel`)).status;
    await expect.poll(cancel).toBe(200);
    for (let look = 0; look < 2; look++) expect(okBody(await task())).toMatchObject({ error: { type: 'canceled' } });
  }
});

it("rows of a member's project are live on one node when the other makes them, and those of another project are not", async () => {
  const makeKey = async (name: string) => {
    const { id: project } = okBody<{ id: string }>(await owner.post(`${owner.base}/projects`, { name }));
    const response = await owner.post(`${owner.base}/keys`, { name, project });
    return { project, secret: okBody<NewKeyView>(response).secret };
  };
  const openFor = async (project: string) => {
    const member = await memberOf(front, owner, 'viewer');
    okBody(await owner.send('PATCH', `${owner.base}/team/${member.user_id}`, { projects: [project] }));
    const page = await openLivePage(nodes[1].app.local_url(), member);
    expect(page.response.status).toBe(200);
    await moreEvents(page, 0);
    return page;
  };
  const [shop, club] = [await makeKey('Shop'), await makeKey('Club')];
  const pages = [await openFor(shop.project), await openFor(club.project)] as const;
  for (const [turn, { secret }] of [shop, club].entries()) {
    const [page, another] = turn === 0 ? pages : [pages[1], pages[0]];
    const counts = [page.seen.count, another.seen.count] as const;
    const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
    const at = `${nodes[0].app.local_url()}/v1/chat/completions`;
    expect((await fetch(at, { method: 'POST', headers, body: JSON.stringify(chat) })).status).toBe(200);
    await moreEvents(page, counts[0]);
    expect(another.seen.count).toBe(counts[1]);
  }
  await Promise.all(pages.map((page) => page.close()));
});

it('a reload that one node is asked for reaches both', async () => {
  const client = await nodes[0].client();
  const offered = async (node: TestApp) => {
    const headers = { authorization: `Bearer ${client.key}` };
    return (await fetch(`${node.app.local_url()}/v1/models/sandbox/chat`, { headers })).status;
  };
  for (const node of nodes) expect(await offered(node)).toBe(200);
  for (const node of nodes) writeFileSync(node.app.config.config_file ?? '', `${yaml}sandbox: false\n`);
  nodes[0].app.notifier.notify(reload_channel, 'now');
  for (const node of nodes) await expect.poll(() => offered(node)).toBe(404);
  for (const node of nodes) writeFileSync(node.app.config.config_file ?? '', yaml);
  nodes[1].app.notifier.notify(reload_channel, 'now');
  for (const node of nodes) await expect.poll(() => offered(node)).toBe(200);
});

it('a test call of a route that one node makes is followed on both, and its file is served by both', async () => {
  await nodes[0].app.db.query('update auth."user" set "isOperator" = true where id = $1', [owner.user_id]);
  const operator = await signInAs(front, owner.user_id, owner.account_id);
  const route = { model: 'sandbox/image', route: 'sandbox', real: true };
  const input = '{"prompt": "[[delay 4s]] A test", "width": 64, "height": 64}';
  const begin = () => operator.post('/dash/admin/routes/test', { ...route, input });
  const answers = await Promise.all([begin(), begin(), begin()]);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([202, 409, 409]);
  const [begun] = answers.filter(({ status }) => status === 202).map((answer) => okBody<AdminTestCall>(answer));
  const id = begun?.id ?? '';
  const now = async () => okBody<AdminTestCall>(await operator.get(`/dash/admin/test-calls/${id}`));
  await expect.poll(async () => (await now()).is_running).toBe(false);
  for (let look = 0; look < 2; look++) {
    const { outcome, files } = await now();
    expect(outcome).toBe('done');
    const file = await operator.get(files[0]?.url ?? '');
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'image/png']);
    await operator.get('/dash/me'); // the next look is at the other node
  }
});
