import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { no_rules } from '../../src/accounts/key-rules.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { newId } from '../../src/lib/ids.ts';
import { setProject } from '../../src/money/ledger.ts';
import { findDelivery, listDeliveries, type Delivery } from '../../src/webhooks/delivery.ts';
import { event_types } from '../../src/webhooks/events.ts';
import { removeOldDeliveries } from '../../src/webhooks/rescue.ts';
import { hasSignature } from '../../src/webhooks/sign.ts';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import type { Received } from '../helpers/receiver.ts';
import { attemptsOf, deliveryOf, finishTask, pass, patient_yaml, setStage, until, type Stage } from './setup.ts';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ yaml: patient_yaml });
});
afterEach(() => expectExactBooks(stage.app));
afterAll(() => stage.stop());

type Fields = { url: string; events?: string[]; filters?: object; enabled?: boolean; description?: string };

/** The answer of an endpoint of this API, which has other members than most. */
type Shown = {
  id: string;
  secret: string;
  enabled: boolean;
  disabled_reason: string | null;
  filters: object;
  events: string[] & number;
  next_from: string | null;
};

async function request(client: Client, method: string, path: string, body?: object) {
  const { status, json, text } = await client.call(method, `/v1/webhook_endpoints${path}`, body);
  const shown: unknown = json;
  return { status, text, error: json.error, json: shown as Shown };
}

async function register(client: Client, fields: Fields): Promise<Shown> {
  const { status, json, text } = await request(client, 'POST', '', { events: ['task.*'], ...fields });
  expect([status, text]).toEqual([201, expect.stringContaining('whsec_')]);
  return json;
}

async function runTask(client: Client, more: object = {}): Promise<string> {
  const body = { model: 'sandbox/image', input: { prompt: '[[fail]] x', width: 64, height: 64 }, ...more };
  const { status, json } = await client.call('POST', '/v1/generate?wait=120', body);
  expect([status, json.status]).toEqual([202, 'failed']);
  return json.id;
}

const header = (received: Received, name: string) => String(received.headers[name]);
const textHeaders = ({ headers }: Received) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
const eventIn = ({ body }: Received): { id: string; type: string; account_id: string; data: { id: string } } =>
  JSON.parse(body.toString());

async function deliveriesTo(account_id: string, endpoint_id: string, { db } = stage.app): Promise<Delivery[]> {
  return (await listDeliveries(db, { account_id, endpoint_id, limit: 100 })).lines;
}

async function eventsOf(account_id: string): Promise<number> {
  const rows = await stage.app.db.query('select from webhook_events where account_id = $1', [account_id]);
  return rows.length;
}

describe('an endpoint', () => {
  it('gets the event of a task signed with its own secret, with the bytes of GET as its data, beside the webhook_url', async () => {
    const client = await stage.test.client();
    const { receiver, app } = stage;
    const { id, secret } = await register(client, { url: `${receiver.url}/own?a=1` });
    const task = await finishTask(client, `${receiver.url}/of-task`);
    const received = await receiver.nth('/own', 1);
    const got = (await client.call('GET', `/v1/tasks/${task}`)).text;
    expect(received.path).toBe('/own?a=1');
    expect(received.body.toString()).toMatch(/^\{"id":"evt_/);
    expect(received.body.toString().endsWith(`,"data":${got}}`)).toBe(true);
    expect(eventIn(received)).toMatchObject({ type: 'task.failed', account_id: client.account_id, data: { id: task } });
    expect(header(received, 'x-service-event')).toBe('task.failed');
    expect(hasSignature(received.body, header(received, 'x-service-signature'), secret)).toBe(true);
    expect(new Webhook(secret).verify(received.body, textHeaders(received))).toMatchObject({ type: 'task.failed' });
    const own = await receiver.nth('/of-task', 1);
    expect(own.body.toString()).toBe(got);
    expect(hasSignature(own.body, header(own, 'x-service-signature'), secret)).toBe(false);
    const [delivery] = await deliveriesTo(client.account_id, id);
    expect(delivery).toMatchObject({ task_id: task, event: 'task.failed', id: header(received, 'webhook-id') });
    expect(await deliveryOf(app, client, task)).toMatchObject({ endpoint_id: null, url: `${receiver.url}/of-task` });
  });

  it('shows its secret once, and is listed, changed and deleted without it', async () => {
    const client = await stage.test.client();
    const { url } = stage.receiver;
    const { id, secret } = await register(client, { url, description: 'Shop', filters: { models: ['sandbox/image'] } });
    const second = await register(client, { url });
    const list = await request(client, 'GET', '?limit=1');
    expect(JSON.parse(list.text)).toMatchObject({ data: [{ id, description: 'Shop' }], has_more: true, last_id: id });
    expect(JSON.parse((await request(client, 'GET', `?after=${id}`)).text)).toMatchObject({
      data: [{ id: second.id }],
      has_more: false,
    });
    const changed = await request(client, 'PATCH', `/${id}`, { events: ['balance.low', 'task.failed'] });
    expect(changed.json).toMatchObject({
      events: ['task.failed', 'balance.low'],
      filters: { models: ['sandbox/image'] },
    });
    for (const { text } of [list, changed, await request(client, 'GET', `/${id}`)]) {
      expect(text).not.toContain(secret);
    }
    expect((await request(client, 'DELETE', `/${id}`)).text).toBe((await request(client, 'DELETE', `/${id}`)).text);
    expect((await request(client, 'GET', `/${id}`)).status).toBe(404);
    const log = await stage.app.db.query<{ action: string; actor: string; entry: string }>(
      `select action, actor, a::text as entry from audit_entries a where account_id = $1 and action like 'webhook_endpoint%' order by id`,
      [client.account_id],
    );
    const acts = log.map(({ action }) => action.slice('webhook_endpoint.'.length));
    expect(acts).toEqual(['create', 'create', 'change', 'delete']);
    expect(log[0]?.actor).toContain(client.key_id);
    expect(log.map(({ entry }) => entry).join()).not.toContain('whsec_');
  });

  it.each<[string, object, RegExp]>([
    ['no address', { events: ['*'] }, /^url must be/],
    ['a private address', { url: 'http://10.0.0.1/', events: ['*'] }, /^url must be reachable/],
    ['a password', { url: 'https://a:b@example.com/', events: ['*'] }, /^url must not contain a user name/],
    ['no events', { url: 'https://example.com/', events: [] }, /^events must be a list/],
    ['an unknown event', { url: 'https://example.com/', events: ['task.succeded'] }, /Did you mean "task.succeeded"/],
    ['an unknown field', { url: 'https://example.com/', event: ['*'] }, /Did you mean "events"/],
    ['an unknown filter', { url: 'https://example.com/', events: ['*'], filters: { model: [] } }, /"models"/],
    [
      'a key of no form',
      { url: 'https://example.com/', events: ['*'], filters: { keys: ['x'] } },
      /^filters.keys must/,
    ],
    [
      'a project of no form',
      { url: 'https://example.com/', events: ['*'], filters: { projects: ['Shops'] } },
      /^filters.projects must/,
    ],
    [
      'metadata of numbers',
      { url: 'https://example.com/', events: ['*'], filters: { metadata: { a: 1 } } },
      /metadata/,
    ],
    ['a description of lines', { url: 'https://example.com/', events: ['*'], description: 'a\nb' }, /^description/],
  ])('is refused with %s, and the message names the field', async (_what, body, message) => {
    const { status, error } = await request(stage.client, 'POST', '', body);
    expect([400, 422]).toContain(status);
    expect(error).toMatchObject({ type: 'invalid_request', message: expect.stringMatching(message) });
  });

  it('is one of twenty at most, also when many are added at once, and all of them get an event', async () => {
    const client = await stage.test.client();
    const { receiver } = stage;
    const tries = Array.from({ length: 24 }, (_, index) =>
      request(client, 'POST', '', { url: `${receiver.url}/of-many?${index}`, events: ['*'] }),
    );
    const statuses = (await Promise.all(tries)).map(({ status }) => status).toSorted();
    expect(statuses).toEqual([...Array<number>(20).fill(201), ...Array<number>(4).fill(409)]);
    await runTask(client);
    await receiver.nth('/of-many', 20);
    const of = receiver.received.filter(({ path }) => path.startsWith('/of-many'));
    expect(new Set(of.map(({ path }) => path)).size).toBe(20);
    expect(new Set(of.map(({ body }) => body.toString())).size).toBe(1);
    expect(receiver.most('/of-many')).toBeLessThanOrEqual(4);
  });

  it('of another account is unknown, whatever one does with it', async () => {
    const client = await stage.test.client();
    const { id } = await register(client, { url: stage.receiver.url });
    const stranger = await stage.test.client();
    const span = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
    const statuses = [
      await request(stranger, 'GET', `/${id}`),
      await request(stranger, 'PATCH', `/${id}`, { enabled: false }),
      await request(stranger, 'POST', `/${id}/rotate_secret`),
      await request(stranger, 'POST', `/${id}/test`, { event: 'task.failed' }),
      await request(stranger, 'POST', `/${id}/replay`, span),
    ].map(({ status }) => status);
    expect(statuses).toEqual([404, 404, 404, 404, 404]);
    expect((await request(stranger, 'DELETE', `/${id}`)).status).toBe(200); // as one that is gone
    expect((await request(client, 'GET', `/${id}`)).json).toMatchObject({ id, enabled: true });
  });

  it('is read by a key for reading, and changed by a key without scopes only, whose account is not blocked', async () => {
    const client = await stage.test.client();
    const { id } = await register(client, { url: stage.receiver.url });
    const rules = { ...no_rules, scopes: ['read', 'media'] as const };
    const now = new Date(stage.app.clock.now());
    const key = { account_id: client.account_id, name: 'Reader', limit_month: null, rules };
    const { text } = await createKey(stage.app.db, key, now);
    const send = (method: string, path: string, body?: object) =>
      fetch(`${stage.test.url}/v1/webhook_endpoints${path}`, {
        method,
        headers: { authorization: `Bearer ${text}`, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      });
    expect((await send('GET', `/${id}`)).status).toBe(200);
    const refused = await send('PATCH', `/${id}`, { enabled: false });
    expect([refused.status, await refused.text()]).toEqual([403, expect.stringContaining('scope_missing')]);
    expect((await send('DELETE', `/${id}`)).status).toBe(403);
    await stage.app.db.query(`update accounts set status = 'blocked' where id = $1`, [client.account_id]);
    await until('the key is known as blocked', async () => {
      return (await request(client, 'PATCH', `/${id}`, { enabled: false })).status === 403;
    });
    expect((await request(client, 'GET', `/${id}`)).status).toBe(200);
  });
});

describe('the events of an endpoint', () => {
  it('are those that it asks for: by type, model, key, project and pairs of metadata', async () => {
    const client = await stage.test.client();
    const other = await stage.test.client({ account_id: client.account_id });
    const { receiver } = stage;
    const to = (name: string, more: Omit<Fields, 'url'>) =>
      register(client, { url: `${receiver.url}/f/${name}`, ...more });
    await to('all', { events: ['*'] });
    await to('succeeded', { events: ['task.succeeded'] });
    await to('balance', { events: ['balance.*'] });
    await to('model', { filters: { models: ['sandbox/video'] } });
    await to('key', { filters: { keys: [other.key_id] } });
    await to('pairs', { filters: { metadata: { team: 'web', 'a"b': 'é\\' } } });
    await to('value', { filters: { metadata: { team: 'we' } } });
    const project_id = newId('project', Date.now());
    await setProject(stage.app.db, other.key_id, project_id);
    await to('project', { filters: { projects: [project_id] } });
    await to('default', { filters: { projects: ['default'], models: ['sandbox/image'] } });
    await runTask(client, { metadata: { team: 'web', 'a"b': 'é\\', x: '","team":"we' } });
    await runTask(other, { metadata: { team: 'web' } });
    await receiver.nth('/f/all', 2);
    const rows = await stage.app.db.query<{ url: string; n: number }>(
      `select url, count(*)::int as n from deliveries where account_id = $1 group by url order by url`,
      [client.account_id],
    );
    const counts = Object.fromEntries(rows.map(({ url, n }) => [url.slice(`${receiver.url}/f/`.length), n]));
    expect(counts).toEqual({ all: 2, default: 1, key: 1, pairs: 1, project: 1 });
  });

  it('tell a task that was canceled from one that failed', async () => {
    const client = await stage.test.client();
    const { receiver } = stage;
    await register(client, { url: `${receiver.url}/canceled`, events: ['task.canceled'] });
    const input = { prompt: '[[delay 3600s]] x', width: 64, height: 64 };
    const { json } = await client.call('POST', '/v1/generate', { model: 'sandbox/image', input });
    // 409 while it is being submitted: the caller is to try again.
    await expect.poll(async () => (await client.call('POST', `/v1/tasks/${json.id}/cancel`)).status).toBe(200);
    const received = await receiver.nth('/canceled', 1);
    expect(eventIn(received)).toMatchObject({ type: 'task.canceled', data: { id: json.id, status: 'failed' } });
  });

  it('are not stored for an account without an endpoint that asks for them', async () => {
    const client = await stage.test.client();
    await runTask(client);
    await register(client, { url: stage.receiver.url, events: ['invoice.*'] });
    await runTask(client);
    expect(await eventsOf(client.account_id)).toBe(0);
  });

  it('are removed after their deliveries, and not before', async () => {
    const own = await setStage();
    try {
      const { client, receiver, app, clock } = own;
      await register(client, { url: `${receiver.url}/old` });
      await register(client, { url: `${receiver.url}/old/off`, enabled: false });
      await runTask(client);
      const counts = () =>
        app.db.query(`select (select count(*)::int from webhook_events) as events,
          (select count(*)::int from deliveries where state = 'delivered') as delivered`);
      await until('it is delivered', async () => (await counts())[0]?.['delivered'] === 1);
      const removeAfter = (ms: number) => {
        const keep_ms = app.catalog.current.settings.retention.deliveries_ms;
        return removeOldDeliveries({ ...app, clock: { ...clock, now: () => clock.now() + keep_ms + ms } });
      };
      await removeAfter(-60_000);
      expect(await counts()).toEqual([{ events: 1, delivered: 1 }]);
      await removeAfter(60_000);
      expect(await counts()).toEqual([{ events: 0, delivered: 0 }]);
    } finally {
      await own.stop();
    }
  });
});

describe('an endpoint that changes', () => {
  it('gets the next attempt at its new address, signed with its new secret and the one before', async () => {
    const client = await stage.test.client();
    const { receiver, app } = stage;
    receiver.answer('/moved/from', 500);
    const { id, secret } = await register(client, { url: `${receiver.url}/moved/from` });
    await runTask(client);
    await receiver.nth('/moved/from', 1);
    const [delivery] = await deliveriesTo(client.account_id, id);
    if (!delivery) throw new Error('no delivery');
    await attemptsOf(app, delivery, 1);
    await request(client, 'PATCH', `/${id}`, { url: `${receiver.url}/moved/to` });
    const rotated = await request(client, 'POST', `/${id}/rotate_secret`);
    expect(rotated.json.secret).not.toBe(secret);
    await pass(stage, 10_000);
    const received = await receiver.nth('/moved/to', 1);
    expect(header(received, 'webhook-id')).toBe(delivery.id);
    for (const each of [secret, rotated.json.secret]) {
      expect(new Webhook(each).verify(received.body, textHeaders(received))).toMatchObject({ type: 'task.failed' });
    }
    expect(hasSignature(received.body, header(received, 'x-service-signature'), rotated.json.secret)).toBe(true);
  });

  it('gets what queued for a slot at its new address once there is one', async () => {
    const client = await stage.test.client();
    const { receiver, app } = stage;
    receiver.answer('/queue/from', 'hang');
    const { id } = await register(client, { url: `${receiver.url}/queue/from` });
    for (let i = 0; i < 6; i++) await runTask(client);
    await receiver.nth('/queue/from', 4);
    const queued = () => app.db.query('select from throttled_deliveries where account_id = $1', [client.account_id]);
    await until('two more queue', async () => (await queued()).length === 2);
    await request(client, 'PATCH', `/${id}`, { url: `${receiver.url}/queue/to` });
    receiver.answer('/queue/from', 204);
    receiver.release('/queue/from', 204);
    await until('all are delivered', async () => {
      return (await deliveriesTo(client.account_id, id)).every(({ state }) => state === 'delivered');
    });
    const count = (path: string) => receiver.received.filter((one) => one.path === path).length;
    expect([count('/queue/from'), count('/queue/to')]).toEqual([4, 2]);
    expect(await app.db.query('select from delivery_slots where account_id = $1', [client.account_id])).toEqual([]);
  });

  it.each<[string, (client: Client, id: string) => Promise<unknown>]>([
    ['deleted', (client, id) => request(client, 'DELETE', `/${id}`)],
    ['disabled', (client, id) => request(client, 'PATCH', `/${id}`, { enabled: false })],
  ])('and is %s gets no retry: what waits is dropped, and its slots go to others', async (how, act) => {
    const client = await stage.test.client();
    const { receiver, app } = stage;
    receiver.answer(`/${how}`, 'hang');
    const { id } = await register(client, { url: `${receiver.url}/${how}` });
    for (let i = 0; i < 6; i++) await runTask(client);
    await receiver.nth(`/${how}`, 4); // two more queue
    await act(client, id);
    receiver.release(`/${how}`, 500);
    await until('those that queued are dropped', async () => {
      const states = (await deliveriesTo(client.account_id, id)).map(({ state }) => state);
      return states.filter((state) => state === 'dropped').length === 2;
    });
    await pass(stage, 10_000);
    await until('all are dropped', async () => {
      return (await deliveriesTo(client.account_id, id)).every(({ state }) => state === 'dropped');
    });
    expect(receiver.received.filter(({ path }) => path === `/${how}`)).toHaveLength(4);
    const slots = await app.db.query('select from delivery_slots where account_id = $1', [client.account_id]);
    expect(slots).toHaveLength(0);
  });

  it('is disabled by a receiver that answers 410, and enabled again by one change', async () => {
    const client = await stage.test.client();
    const { receiver } = stage;
    receiver.answer('/gone', 410);
    const { id } = await register(client, { url: `${receiver.url}/gone` });
    await runTask(client);
    await until('it is disabled', async () => !(await request(client, 'GET', `/${id}`)).json.enabled);
    expect((await request(client, 'GET', `/${id}`)).json).toMatchObject({ disabled_reason: 'gone' });
    receiver.answer('/gone', 204);
    const enabled = await request(client, 'PATCH', `/${id}`, { enabled: true });
    expect(enabled.json).toMatchObject({ enabled: true, disabled_reason: null, failing_since: null });
  });

  it('is not disabled by a 410 of the address that it had before', async () => {
    const client = await stage.test.client();
    const { receiver, app } = stage;
    receiver.answer('/old', 'hang');
    const { id } = await register(client, { url: `${receiver.url}/old` });
    await runTask(client);
    await receiver.nth('/old', 1);
    await request(client, 'PATCH', `/${id}`, { url: `${receiver.url}/new` });
    receiver.release('/old', 410);
    const [delivery] = await deliveriesTo(client.account_id, id);
    if (!delivery) throw new Error('no delivery');
    await attemptsOf(app, delivery, 1);
    expect((await request(client, 'GET', `/${id}`)).json).toMatchObject({ enabled: true, disabled_reason: null });
    await runTask(client);
    await receiver.nth('/new', 1);
  });
});

/** Times between the attempts of a delivery. */
const schedule_ms = [10_000, 60_000, 300_000, 1_800_000, 7_200_000];

describe('a replay', () => {
  const all = { from: '1999-12-31', to: '2999-12-31' };

  it('sends what a disabled endpoint missed, counted before, with the ids that the deliveries would have had', async () => {
    const client = await stage.test.client();
    const { receiver } = stage;
    const { id } = await register(client, { url: `${receiver.url}/missed`, enabled: false });
    const tasks = [await runTask(client), await runTask(client), await runTask(client)];
    expect(await deliveriesTo(client.account_id, id)).toEqual([]);
    const refused = await request(client, 'POST', `/${id}/replay`, all);
    expect([refused.status, refused.error.code]).toEqual([409, 'endpoint_disabled']);
    const counted = await request(client, 'POST', `/${id}/replay`, { ...all, dry_run: true });
    expect(counted.json).toMatchObject({ events: 3, next_from: null });
    expect(await deliveriesTo(client.account_id, id)).toEqual([]);
    await request(client, 'PATCH', `/${id}`, { enabled: true });
    expect((await request(client, 'POST', `/${id}/replay`, all)).json).toMatchObject({ events: 3 });
    await receiver.nth('/missed', 3);
    const first = receiver.received.filter(({ path }) => path === '/missed');
    expect(first.map((one) => eventIn(one).data.id).toSorted()).toEqual(tasks.toSorted());
    await until('all are delivered', async () => {
      return (await deliveriesTo(client.account_id, id)).every(({ state }) => state === 'delivered');
    });
    expect((await request(client, 'POST', `/${id}/replay`, all)).json).toMatchObject({ events: 0 });
    expect((await request(client, 'POST', `/${id}/replay`, { ...all, which: 'all' })).json).toMatchObject({
      events: 3,
    });
    await receiver.nth('/missed', 6);
    const again = receiver.received.filter(({ path }) => path === '/missed').slice(3);
    const named = (list: Received[]) =>
      list.map((one) => `${header(one, 'webhook-id')} ${String(one.body)}`).toSorted();
    expect(named(again)).toEqual(named(first));
    await until('all have two attempts', async () => {
      return (await deliveriesTo(client.account_id, id)).every(({ attempts }) => attempts === 2);
    });
  });

  it('leaves alone what is under way, and does not hold up what is sent for the first time', async () => {
    const client = await stage.test.client();
    const { receiver, app } = stage;
    const { id } = await register(client, { url: `${receiver.url}/busy`, enabled: false });
    const missed = [await runTask(client), await runTask(client), await runTask(client), await runTask(client)];
    await request(client, 'PATCH', `/${id}`, { enabled: true });
    receiver.answer('/busy', 'hang');
    await request(client, 'POST', `/${id}/replay`, all);
    await receiver.nth('/busy', 3); // a quarter of the slots is for first attempts
    expect((await request(client, 'POST', `/${id}/replay`, { ...all, which: 'all' })).json).toMatchObject({
      events: 0,
    });
    const live = await runTask(client);
    const received = await receiver.nth('/busy', 4);
    expect(eventIn(received).data.id).toBe(live);
    receiver.answer('/busy', 204);
    receiver.release('/busy', 204);
    await until('all are delivered', async () => {
      return (await deliveriesTo(client.account_id, id)).every(({ state }) => state === 'delivered');
    });
    expect(await deliveriesTo(client.account_id, id)).toHaveLength(missed.length + 1);
    expect(await app.db.query('select from throttled_deliveries where account_id = $1', [client.account_id])).toEqual(
      [],
    );
  });

  it('tries what was dropped as often as something new', async () => {
    const own = await setStage({ yaml: patient_yaml });
    try {
      const { client, receiver, app } = own;
      receiver.answer('/never', 500);
      const { id } = await register(client, { url: `${receiver.url}/never` });
      await runTask(client);
      const [delivery] = await deliveriesTo(client.account_id, id, app);
      if (!delivery) throw new Error('no delivery');
      const failAll = async (before: number) => {
        for (const [index, delay_ms] of schedule_ms.entries()) {
          await attemptsOf(app, delivery, before + index + 1);
          await pass(own, delay_ms);
        }
        await attemptsOf(app, delivery, before + schedule_ms.length + 1);
        const isDropped = async () => (await deliveriesTo(client.account_id, id, app))[0]?.state === 'dropped';
        await until('it is dropped', isDropped);
      };
      await failAll(0);
      expect((await request(client, 'POST', `/${id}/replay`, all)).json).toMatchObject({ events: 1 });
      await failAll(schedule_ms.length + 1);
      expect(await deliveriesTo(client.account_id, id, app)).toMatchObject([{ attempts: 12 }]);
    } finally {
      await own.stop();
    }
  });

  it('of an event that is removed at the same moment drops its delivery, and holds up no other', async () => {
    const own = await setStage();
    try {
      const { client, receiver, app, clock } = own;
      const { id } = await register(client, { url: `${receiver.url}/removed`, enabled: false });
      await runTask(client);
      await request(client, 'PATCH', `/${id}`, { enabled: true });
      const keep_ms = app.catalog.current.settings.retention.deliveries_ms;
      await app.db.tx(async (tx) => {
        const values = [new Date(clock.now()), client.account_id, id, 'evt_', 'evt_~', 'failed', 10, false];
        expect(await tx.query('select events from replay_events($1, $2, $3, $4, $5, $6, $7, $8)', values)).toEqual([
          { events: 1 },
        ]);
        await removeOldDeliveries({ ...app, clock: { ...clock, now: () => clock.now() + keep_ms + 60_000 } });
      });
      app.engine.wake('delivery.retry');
      const states = () =>
        app.db.query('select state from deliveries where endpoint_id = $1 order by created_at', [id]);
      await until('the delivery without an event is dropped', async () => (await states())[0]?.['state'] === 'dropped');
      await runTask(client);
      await receiver.nth('/removed', 1);
      await until('the next one is delivered', async () => (await states())[1]?.['state'] === 'delivered');
    } finally {
      await own.stop();
    }
  });

  it('reads its span, and says what is wrong with it', async () => {
    const client = await stage.test.client();
    const { id } = await register(client, { url: stage.receiver.url });
    await runTask(client);
    const now = new Date(stage.app.clock.now()).toISOString();
    const before = { from: '2020-01-01T00:00:00Z', to: '2020-01-02T00:00:00Z', which: 'all', dry_run: true };
    expect((await request(client, 'POST', `/${id}/replay`, before)).json).toMatchObject({ events: 0 });
    for (const wrong of [{}, { from: now, to: now }, { from: 'x' }, { ...all, which: 'some' }, { ...all, dry_run: 1 }])
      expect((await request(client, 'POST', `/${id}/replay`, wrong)).status).toBe(400);
  });
});

describe('a test event', () => {
  it.each([...event_types])('of %s is an example, signed with the secret of the endpoint', async (type) => {
    const { client, receiver } = stage;
    const path = `/test/${type}`;
    receiver.answer(path, 200);
    const { id, secret } = await register(client, { url: `${receiver.url}${path}` });
    const { status, text } = await request(client, 'POST', `/${id}/test`, { event: type });
    expect([status, JSON.parse(text)]).toMatchObject([
      200,
      { delivered: true, status: 200, answer: 'answer 200', headers: { connection: expect.anything() } },
    ]);
    const received = await receiver.nth(path, 1);
    expect(new Webhook(secret).verify(received.body, textHeaders(received))).toMatchObject({ type });
    expect(eventIn(received).data).toBeTypeOf('object');
    await request(client, 'DELETE', `/${id}`);
    const delivery = await findDelivery(stage.app.db, header(received, 'webhook-id'));
    expect(delivery).toMatchObject({ state: 'delivered', task_id: null, event_id: null, endpoint_id: id });
  });

  it('shows a redirect as an answer, and no more than the beginning of a body without end', async () => {
    const client = await stage.test.client();
    const { receiver } = stage;
    receiver.answer('/leads-on', 302);
    receiver.answer('/without-end', 'endless');
    const first = await register(client, { url: `${receiver.url}/leads-on` });
    const redirect = await request(client, 'POST', `/${first.id}/test`, { event: 'task.failed' });
    expect(JSON.parse(redirect.text)).toMatchObject({
      delivered: false,
      status: 302,
      headers: { location: '/elsewhere' },
    });
    const second = await register(client, { url: `${receiver.url}/without-end` });
    const { text } = await request(client, 'POST', `/${second.id}/test`, { event: 'task.failed' });
    expect(text.length).toBeLessThan(20_000);
    expect(receiver.received.filter(({ path }) => path === '/elsewhere')).toEqual([]);
  });
});
