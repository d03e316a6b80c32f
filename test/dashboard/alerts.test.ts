import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { AdminAlerts, AlertsView, AlertTestView } from '../../src/dashboard/views/alerts.ts';
import { runAccountAlerts } from '../../src/alerts/watch.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { stopElapsingInTest } from '../helpers/clock.ts';
import { startMailServer, type MailServer } from '../helpers/mail-server.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import { genuine, secretOf, signal } from '../alerts/setup.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from './people.ts';

let server: MailServer;
let receiver: Receiver;
let test: TestApp;
let owner: Someone;
let developer: Someone;
let viewer: Someone;
let stranger: Someone;

beforeAll(async () => {
  [server, receiver] = await Promise.all([startMailServer(), startReceiver()]);
  const yaml = `version: 1\nmail: { url: "${server.reference}", from: "Medley <medley@example.com>" }\nnet: { allow: [127.0.0.1/32] }\n`;
  test = await startTestApp({ worker: false, yaml });
  [owner, stranger] = await Promise.all([ownerOfNew(test, 'Shop'), ownerOfNew(test, 'Foreign')]);
  [developer, viewer] = await Promise.all([memberOf(test, owner, 'developer'), memberOf(test, owner, 'viewer')]);
  await test.app.db.query('update auth."user" set email = $2, "emailVerified" = true where id = $1', [
    owner.user_id,
    'boss@example.com',
  ]);
});

afterAll(async () => {
  await test.stop();
  await Promise.all([server.stop(), receiver.stop()]);
});

beforeEach(() => {
  server.mails.length = 0;
  server.be('take');
});

const usual = {
  key_limit: true,
  webhooks_failing: false,
  error_percent: 25,
  roles: ['owner', 'developer'],
  webhook_url: null as string | null,
  quiet_hours: { from: '22:00', to: '07:05', time_zone: 'Europe/Warsaw' },
  per_hour_max: 5,
};

const read = async (who = owner) => okBody<AlertsView>(await who.get(`${who.base}/alerts`));
const set = (change: object, who = owner) => who.send('PUT', `${who.base}/alerts`, { ...usual, ...change });

describe('the settings of alerts', () => {
  it('have defaults, are changed by who may, and are written down', async () => {
    expect((await read()).settings).toMatchObject({
      key_limit: true,
      error_percent: null,
      roles: ['owner', 'billing'],
    });
    const view = okBody<AlertsView>(await set({ webhook_url: `${receiver.url}/alerts` }, developer));
    expect(view.settings).toEqual({ ...usual, webhook_url: `${receiver.url}/alerts` });
    expect(view.recipients).toEqual(['boss@example.com']); // nobody has proved the developer's address
    expect((await read(viewer)).settings).toEqual(view.settings);
    expect((await set({}, viewer)).status).toBe(403);
    expect((await stranger.get(`${owner.base}/alerts`)).status).toBe(404);
    const entries = await test.app.db.query('select action from audit_entries where user_id = $1', [developer.user_id]);
    expect(entries).toEqual([{ action: 'alerts.settings' }]);
  });

  it.each([
    [{ key_limit: 'yes' }, 'key_limit'],
    [{ error_percent: 0 }, 'error_percent'],
    [{ error_percent: 1.5 }, 'error_percent'],
    [{ roles: ['owner', 'owner'] }, 'roles'],
    [{ roles: ['god'] }, 'roles'],
    [{ roles: 'owner' }, 'roles'],
    [{ webhook_url: 'http://10.0.0.1/x' }, 'webhook_url'],
    [{ webhook_url: 'http://169.254.169.254/latest' }, 'webhook_url'],
    [{ webhook_url: 'file:///etc/passwd' }, 'webhook_url'],
    [{ webhook_url: 7 }, 'webhook_url'],
    [{ quiet_hours: { from: '22:00', to: '22:00', time_zone: 'UTC' } }, 'quiet_hours.to'],
    [{ quiet_hours: { from: '25:00', to: '22:00', time_zone: 'UTC' } }, 'quiet_hours.from'],
    [{ quiet_hours: { from: '21:00', to: '22:00', time_zone: 'Mars\0' } }, 'quiet_hours.time_zone'],
    [{ quiet_hours: 'night' }, 'quiet_hours.from'],
    [{ per_hour_max: 101 }, 'per_hour_max'],
  ])('are refused as %j, by the name of the field', async (change, param) => {
    const before = (await read()).settings;
    expect(await set(change)).toMatchObject({ status: 400, json: { error: { param } } });
    expect((await read()).settings).toEqual(before);
  });
});

it('a test goes out at once by every way, and says how it arrived; more than three in a minute are refused', async () => {
  stopElapsingInTest();
  okBody(await set({ webhook_url: `${receiver.url}/tested` }));
  const send = (who = owner) => who.post(`${who.base}/alerts/test`);
  expect((await send(viewer)).status).toBe(403);
  expect(okBody<AlertTestView>(await send())).toEqual({
    mail: { to: ['boss@example.com'], error: null },
    webhook: { delivered: true, status: 204, error: null },
  });
  expect(server.mails).toMatchObject([{ to: ['boss@example.com'], subject: 'Test of alerts in Shop' }]);
  const alert = genuine(await receiver.nth('/tested', 1), await secretOf(test, owner.account_id));
  expect(alert.event).toBe('test');
  receiver.answer('/tested', 500);
  server.be('fail');
  expect(okBody<AlertTestView>(await send())).toEqual({
    mail: { to: ['boss@example.com'], error: 'The mail server did not take it.' },
    webhook: { delivered: false, status: 500, error: null },
  });
  okBody(await send(developer));
  const refused = await send();
  expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([429, true]);
});

it('the open alerts of the account are on the page, with the time of the last message', async () => {
  okBody(await owner.send('PUT', `${owner.base}/billing/alert`, { threshold: '50.00' }));
  okBody(await set({ quiet_hours: null }));
  await runAccountAlerts(test.app, signal);
  const { alerts, threshold } = await read(viewer);
  expect(threshold).toMatchObject({ amount: '50.00' });
  expect(alerts).toMatchObject([{ kind: 'balance_low', level: 'warning', title: 'Low balance', closed_at: null }]);
  expect(alerts[0]?.notified_at).toMatch(/^20/);
  expect((await read(stranger)).alerts).toEqual([]);
});

it('the page of operators has their alerts and where they go, and a test; for others there is nothing', async () => {
  expect((await stranger.get('/dash/admin/alerts')).status).toBe(404);
  expect((await stranger.post('/dash/admin/alerts/test')).status).toBe(404);
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [owner.user_id]);
  const view = okBody<AdminAlerts>(await owner.get('/dash/admin/alerts'));
  expect(view).toEqual({
    alerts: [],
    recipients: ['boss@example.com'],
    mails: true,
    host: null,
    quiet_hours: null,
    per_hour_max: 20,
  });
  const tested = okBody<AlertTestView>(await owner.post('/dash/admin/alerts/test'));
  expect(tested).toEqual({ mail: { to: ['boss@example.com'], error: null }, webhook: null });
  expect(server.mails[0]?.subject).toMatch(/^Test of alerts in /);
});
