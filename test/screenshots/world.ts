import type { Role } from '../../src/accounts/roles.ts';
import { firstOperator } from '../../src/accounts/members.ts';
import { makeInvoices } from '../../src/billing/invoices.ts';
import { addUpUsage } from '../../src/money/usage.ts';
import type { TestApp } from '../helpers/app.ts';
import type { Receiver } from '../helpers/receiver.ts';
import { comeByLink, inviteTo, joinAs, ownerBy, type Person } from './people.ts';
import { video_prompts, melodies, questions, scenes } from './prompts.ts';
import { settingsYaml } from './settings.ts';
import { setTime, stopTime } from './time.ts';
import { makeWork, type Work } from './work.ts';

/** The pictures are taken at this time. */
export const shown_at = '2026-11-20T14:32:00Z';

/** Time only goes forward from here. */
export const begins_at = '2026-09-21T08:00:00Z';

const first_day = Date.parse('2026-09-21T00:00:00Z');
const last_day = Date.parse('2026-11-20T00:00:00Z');
const day_ms = 86_400_000;
const hour_ms = 3_600_000;

export type World = {
  /** Ids of people. */
  who: { owner: string; operator: string; newcomer: string; viewer: string };
  accounts: { main: string; long: string };
  tasks: { poster: string; clip_task: string; melody: string; failed: string; moved: string; running: string };
  chat: string;
  deliveries: { delivered: string; failing: string };
  invitation: string;
};

type Say = (line: string) => void;

/** Returns the address for webhooks, under a name of which the service knows that it is here. */
const hooksOf = (receiver: Receiver) => receiver.url.replace('127.0.0.1', 'hooks.northlight.example');

/** Two months of an agency's work, and its neighbours, by calls of the API and of the dashboard. */
export async function makeWorld(service: TestApp, receiver: Receiver, say: Say): Promise<World> {
  const { app } = service;
  const house = await service.client({ credit: '25' });
  const operator = await firstOperator(app.db, house.account_id, new Date());
  const ada = await comeByLink(service, operator, { name: 'Ada Operator', email: 'ada@medley.example' });
  await app.db.query(`update accounts set name = 'House' where id = $1`, [house.account_id]);
  const main = await openAccount(ada, 'Northlight Studio', 'USD', '120');
  const long = await openAccount(ada, 'Bildagentur für außergewöhnliche Aufnahmen Zażółć & Söhne GmbH', 'EUR', '40');
  const small = await openAccount(ada, 'Tiny Tools', 'PLN', '3.20');
  const idle = await openAccount(ada, 'Spam Factory', 'USD', '0');
  await ada.ask('POST', `/dash/admin/accounts/${idle}/status`, { status: 'blocked' });
  const team = await makeTeam(service, main);
  const keys = {
    website: await makeKey(team.owner, main, 'Website', '60.00'),
    batch: await makeKey(team.owner, main, 'Nightly batch of the catalogue and its translations', null),
    tests: await makeKey(team.owner, main, 'Tests', '0.50'),
  };
  const others = [
    await makeKey(
      (await ownerBy(service, long, { name: 'Jürgen', email: 'j@bild.example' })).person,
      long,
      'App',
      '20',
    ),
    await makeKey(
      (await ownerBy(service, small, { name: 'Mia', email: 'mia@tiny.example' })).person,
      small,
      'Bot',
      null,
    ),
  ];
  const work = makeWork(service.url);
  for (let day = first_day; day <= last_day; day += day_ms) {
    const date = new Date(day).toISOString().slice(0, 10);
    await runTheHouse(service, { ada, owner: team.owner }, { main, long }, date);
    await workThrough(work, day, { ...keys, others }, hooksOf(receiver));
    say(`${date}: ${work.count()} calls`);
  }
  const newcomer = await openAccount(ada, 'Fresh Start', 'USD', '5.00');
  const mona = await ownerBy(service, newcomer, { name: 'Mona', email: 'mona@fresh.example' });
  const seen = await lastThings(service, work, keys, receiver);
  const link = await inviteTo(team.owner, main, 'developer', 'new.colleague@northlight.example');
  await addUpUsage(app.db);
  stopTime(shown_at);
  return {
    who: { owner: team.owner_id, operator, newcomer: mona.user_id, viewer: team.viewer_id },
    accounts: { main, long },
    ...seen,
    ...(await deliveriesOf(team.owner, main)),
    invitation: new URL(link).searchParams.get('id') ?? '',
  };
}

async function openAccount(operator: Person, name: string, currency: string, credit: string): Promise<string> {
  return (await operator.ask<{ id: string }>('POST', '/dash/admin/accounts', { name, currency, credit })).id;
}

async function makeKey(owner: Person, account_id: string, name: string, limit: string | null): Promise<string> {
  const path = `/dash/accounts/${account_id}/keys`;
  return (await owner.ask<{ secret: string }>('POST', path, { name, limit })).secret;
}

async function makeTeam(service: TestApp, main: string) {
  const owner = await ownerBy(service, main, { name: 'Nora Lindqvist', email: 'nora@northlight.example' });
  const join = (role: Role, name: string, email: string) =>
    joinAs(service, owner.person, main, role, { name, email: `${email}@northlight.example` });
  await join('developer', 'Tomasz Wiśniewski', 'tomasz');
  await join('billing', 'Priya Raman', 'accounts.payable');
  const viewer = await join('viewer', 'Maximiliane-Charlotte von Hohenstein-Wallenburg', 'maximiliane-charlotte.vhw');
  return { owner: owner.person, owner_id: owner.user_id, viewer_id: viewer.user_id };
}

type Keys = { website: string; batch: string; tests: string; others: string[] };

/** Weekends are quiet, and it becomes more from month to month. */
async function workThrough(work: Work, day: number, keys: Keys, receiver_url: string): Promise<void> {
  const number = (day - first_day) / day_ms;
  const is_weekend = [0, 6].includes(new Date(day).getUTCDay());
  const busy = (is_weekend ? 1 : 2) + Math.floor(number / 20) + (number % 7 === 2 ? 2 : 0);
  const pick = <T>(list: readonly T[], shift = 0): T => list[(number + shift) % list.length] as T; // never empty
  setTime(day + 9 * hour_ms + (number % 5) * 600_000);
  await work.together([
    ...Array.from(
      { length: busy },
      (_, i) => () =>
        work.run(i % 2 ? keys.website : keys.batch, i % 3 ? 'studio/poster' : 'sandbox/image', {
          prompt: pick(scenes, i),
          ...(i % 3 ? { format: i % 2 ? 'tall' : 'square', count: 1 + (i % 3) } : { width: 512, height: 384 }),
        }),
    ),
    ...Array.from(
      { length: busy },
      (_, i) => () =>
        work.chat(
          i % 3 ? keys.website : keys.batch,
          'studio/assistant',
          `${pick(questions, i)} [[tokens ${900 + 700 * i}]]`,
        ),
    ),
  ]);
  setTime(day + 13 * hour_ms + (number % 7) * 420_000);
  if (number % 4 === 0) {
    await work.run(keys.batch, 'studio/clip-with-a-remarkably-long-name-2.1-preview', {
      prompt: pick(video_prompts),
      duration: 2,
    });
  }
  if (number % 3 === 0) await work.run(keys.website, 'sandbox/audio', { prompt: pick(melodies), duration: 4 });
  if (number % 5 === 1) await work.run(keys.website, 'sandbox/image', { prompt: `${pick(scenes)} [[fail]]` });
  if (number % 9 === 4) await work.run(keys.website, 'sandbox/image', { prompt: `${pick(scenes)} [[moderate]]` });
  if (number % 11 === 5) await work.run(keys.batch, 'sandbox/down', { prompt: pick(scenes) });
  for (const key of keys.others) {
    await work.run(key, 'sandbox/image', { prompt: pick(scenes, 5), width: 256, height: 256 }, `${receiver_url}/shop`);
  }
}

type Movers = { ada: Person; owner: Person };

/** Does the work of operators and owners in the morning of some days: money comes in, invoices go out, an alert is set. */
async function runTheHouse({ app }: TestApp, { ada, owner }: Movers, accounts: World['accounts'], date: string) {
  const { main, long } = accounts;
  setTime(`${date}T08:10:00Z`);
  if (date === '2026-10-01') await writeAddress(owner, main);
  const month = { '2026-10-02': '2026-09', '2026-11-02': '2026-10' }[date];
  const { issuer } = app.catalog.current.settings;
  if (month && issuer) await makeInvoices(app.db, { issuer, month, now: new Date() });
  if (date === '2026-11-12') {
    await ada.ask('POST', `/dash/admin/accounts/${main}/credit`, { amount: '50', reason: 'Transfer of 12 November' });
    await ada.ask('POST', `/dash/admin/accounts/${long}/credit`, {
      amount: '-2.50',
      reason: 'Booked twice in October',
    });
    await owner.ask('PUT', `/dash/accounts/${main}/billing/alert`, { threshold: '20.00' });
  }
  if (date === '2026-11-20') {
    await ada.ask('POST', `/dash/admin/accounts/${long}/view`);
    await ada.ask('POST', '/dash/admin/reload');
  }
}

async function writeAddress(owner: Person, account_id: string): Promise<void> {
  await owner.ask('PUT', `/dash/accounts/${account_id}/billing/details`, {
    company: 'Northlight Studio AB',
    address: 'Österlånggatan 14',
    postal_code: '111 31',
    city: 'Stockholm',
    country: 'SE',
    tax_id: 'SE556677889901',
    email: 'accounts.payable@northlight.example',
  });
}

/** The day of the pictures: one of each ending, and receivers that take, fail and hang. */
async function lastThings(service: TestApp, work: Work, keys: Omit<Keys, 'others'>, receiver: Receiver) {
  setTime('2026-11-20T14:20:00Z');
  const hook = `${hooksOf(receiver)}/tasks`;
  const lost = `${hooksOf(receiver)}/lost`;
  receiver.answer('/lost', 503);
  const dropped = await work.run(keys.website, 'studio/poster', { prompt: scenes[3] }, lost);
  await receiver.nth('/lost', 6);
  await service.configure(settingsYaml('10s, 3h, 6h, 12h, 24h'));
  setTime('2026-11-20T14:24:00Z');
  const clip = 'studio/clip-with-a-remarkably-long-name-2.1-preview';
  const clip_task = await work.run(keys.batch, clip, { prompt: video_prompts[0], duration: 4 }, hook);
  const melody = await work.run(keys.website, 'sandbox/audio', { prompt: melodies[0], duration: 4 }, hook);
  const moved = await work.run(keys.website, 'sandbox/failover', { prompt: scenes[7], width: 512, height: 512 }, hook);
  const failed = await work.run(keys.website, 'sandbox/image', { prompt: `${scenes[5]} [[fail]]` }, lost);
  setTime('2026-11-20T14:29:00Z');
  const poster = await work.run(keys.website, 'studio/poster', { prompt: scenes[2], count: 2 }, hook);
  const chat = await work.chat(keys.website, 'studio/assistant', `${questions[0]} [[tokens 420]]`);
  for (const status of [429, 500]) await work.chat(keys.website, 'sandbox/chat', `${questions[4]} [[error ${status}]]`);
  setTime('2026-11-20T14:31:00Z');
  const running = await work.begin(keys.batch, clip, { prompt: `${video_prompts[1]} [[delay 20m]]`, duration: 6 });
  await work.begin(keys.website, 'sandbox/image', { prompt: `${scenes[8]} [[delay 20m]]` });
  await receiver.nth('/lost', 8);
  return { tasks: { poster, clip_task, melody, failed, moved, running, dropped }, chat };
}

type Deliveries = { data: { id: string; url: string; state: string }[] };

async function deliveriesOf(owner: Person, account_id: string): Promise<Pick<World, 'deliveries'>> {
  const { data } = await owner.ask<Deliveries>('GET', `/dash/accounts/${account_id}/deliveries`);
  const id = (path: string) => data.find(({ url }) => url.endsWith(path))?.id ?? '';
  return { deliveries: { delivered: id('/tasks'), failing: id('/lost') } };
}
