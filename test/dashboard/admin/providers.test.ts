import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { contentKeys } from '../../../src/db/content.ts';
import { encryptKeysAgain, readAdded } from '../../../src/catalog/added/rows.ts';
import type { Page } from '../../../src/dashboard/views/activity.ts';
import type { AuditView } from '../../../src/dashboard/views/settings.ts';
import type { AdminConfiguration } from '../../../src/dashboard/views/admin.ts';
import type { AddedProviderView, AdminProviders, ProviderOffer } from '../../../src/dashboard/views/admin-providers.ts';
import { marginsOf } from '../../../src/money/margins.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../../helpers/app.ts';
import { freePort } from '../../helpers/free-port.ts';
import { startImageServer } from '../../providers/imitations/image-server.ts';
import type { Imitation } from '../../providers/imitations/imitation.ts';
import { startStability } from '../../providers/imitations/vendors.ts';
import { openrouter_key, startOpenRouter } from '../../providers/imitations/openrouter.ts';
import { ownerOfNew, signInAs, okBody, type Someone } from '../people.ts';

/** Providers and models that operators add in the dashboard. */

const secret = 'a secret of the operator';
const env = { MEDLEY_SECRET: secret };

let test: TestApp;
let operator: Someone;
let client: Client;
let router: Imitation;
let images: Imitation;
let closed_port = 0;
let begun_at: Date;

beforeAll(async () => {
  closed_port = await freePort();
  [router, images] = await Promise.all([startOpenRouter(), startImageServer()]);
  test = await startTestApp({ env });
  begun_at = new Date(test.app.clock.now());
  operator = await ownerOfNew(test, 'Operating');
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  client = await test.client({ credit: '5' });
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
  await Promise.all([router.stop(), images.stop()]);
});

const openrouterBody = () => ({
  preset: 'openrouter',
  base_url: `${router.url}/api/v1`,
  allow_private: true,
  api_key: ` ${openrouter_key}\n`,
  margin: '20',
});
const post = (path: string, body: object = {}) => operator.post(`/dash/admin/providers${path}`, body);
const view = async () => okBody<AdminProviders>(await operator.get('/dash/admin/providers'));
const providerNamed = async (name: string): Promise<AddedProviderView | undefined> =>
  (await view()).providers.find((each) => each.name === name);
const say = (model: string, of = client) =>
  of.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content: 'Hello' }] });
const problem = (param: string, message: RegExp | string) => ({
  status: 400,
  json: { error: { param, message: typeof message === 'string' ? message : expect.stringMatching(message) } },
});

describe('a provider that is added', () => {
  it('offers its models with list prices, and the chosen ones run at once at these with the margin', async () => {
    const added = await post('', openrouterBody());
    expect(okBody(added)).toEqual({ name: 'openrouter', is_checked: true });
    const offer = okBody<ProviderOffer>(await operator.get('/dash/admin/providers/openrouter/offer'));
    expect(offer.problem).toBeNull();
    expect(offer.models.map(({ id, kind, is_added }) => ({ id, kind, is_added }))).toEqual([
      { id: 'maker/talker', kind: 'chat', is_added: false },
      { id: 'maker/thinker', kind: 'chat', is_added: false },
      { id: 'maker/painter', kind: null, is_added: false },
    ]);
    expect(offer.models[0]?.list_price).toContainEqual({
      unit: 'input_token',
      amount: '2.50',
      per: 1_000_000,
      currency: 'USD',
    });

    expect((await say('maker/talker')).status).toBe(404);
    okBody(await post('/openrouter/models', { models: [{ upstream_model: 'maker/talker' }] }));
    const { json } = await client.call('GET', '/v1/models/maker/talker');
    expect(json.pricing).toEqual([
      { unit: 'input_token', amount: '3.00', per: 1_000_000, currency: 'USD' },
      { unit: 'cached_input_token', amount: '0.30', per: 1_000_000, currency: 'USD' },
      { unit: 'output_token', amount: '12.00', per: 1_000_000, currency: 'USD' },
    ]);
    const answer = await say('maker/talker');
    expect(answer).toMatchObject({
      status: 200,
      json: { choices: [{ message: { content: 'Hello from the router.' } }] },
    });
    expect(router.requestsFor('submit').at(-1)?.headers.authorization).toBe(`Bearer ${openrouter_key}`);
    expect(answer.headers.get('x-cost-amount')).toBe('0.000072'); // 12 × 3 and 3 × 12 per million
  });

  it('has a key that no answer shows, and no row and no log of its own has', async () => {
    const { text } = await operator.get('/dash/admin/providers');
    expect(text).not.toContain(openrouter_key);
    expect(await providerNamed('openrouter')).toMatchObject({ last_four: 'cdef', margin: '20' });
    const [row] = await test.app.db.query<{ row: string }>(
      `select p::text || encode(api_key, 'escape') as row from added_providers p where name = 'openrouter'`,
    );
    expect(row?.row).not.toContain(openrouter_key);
    const [stored] = await test.app.db.query('select key_id from added_providers');
    expect(stored).toMatchObject({ key_id: expect.stringMatching(/^[0-9a-f]{16}$/) });
    const entries = okBody<Page<AuditView>>(await operator.get('/dash/admin/audit')).data;
    expect(entries.slice(0, 2)).toMatchObject([
      { action: 'provider.models.add', subject: 'openrouter', details: { models: ['maker/talker'], count: 1 } },
      { action: 'provider.add', subject: 'openrouter', details: { last_four: 'cdef', margin: '1.2' } },
    ]);
    expect(JSON.stringify(entries)).not.toContain(openrouter_key);
  });

  it('is on every node, and after a restart', async () => {
    const node = await test.beside({ env });
    const there = await node.client({ account_id: client.account_id });
    expect((await say('maker/talker', there)).status).toBe(200);
    okBody(await post('/openrouter/models', { models: [{ upstream_model: 'maker/thinker' }] }));
    await expect.poll(async () => (await say('maker/thinker', there)).status).toBe(200);
    okBody(await post('/openrouter/models/remove', { model: 'maker/thinker' }));
    await expect.poll(async () => (await say('maker/thinker', there)).status).toBe(404);
    await node.stop();
  });

  it('is changed: margin, margin and price of one model, off and on', async () => {
    const priceOf = async () => {
      const { json } = await client.call('GET', '/v1/models/maker/talker');
      return json.pricing?.find(({ unit }) => unit === 'input_token')?.amount;
    };
    okBody(await post('/openrouter/change', { margin: '50%' }));
    expect(await priceOf()).toBe('3.75');
    okBody(await post('/openrouter/models/change', { model: 'maker/talker', margin: '0' }));
    expect(await priceOf()).toBe('2.50');
    const price = [
      { unit: 'input_token', amount: '7', per: 1_000_000 },
      { unit: 'output_token', amount: '70', per: 1_000_000 },
    ];
    okBody(await post('/openrouter/models/change', { model: 'maker/talker', price }));
    expect(await priceOf()).toBe('7');
    okBody(await post('/openrouter/models/change', { model: 'maker/talker', price: null, margin: null }));
    expect(await priceOf()).toBe('3.75');
    okBody(await post('/openrouter/change', { is_off: true }));
    expect((await say('maker/talker')).status).toBe(404);
    okBody(await post('/openrouter/change', { is_off: false, margin: '20' }));
    expect((await say('maker/talker')).status).toBe(200);
  });

  it('is removed with its models', async () => {
    okBody(await post('', { ...openrouterBody(), name: 'second', prefix: 'second/' }));
    okBody(await post('/second/models', { models: [{ upstream_model: 'maker/talker' }] }));
    expect((await say('second/maker/talker')).status).toBe(200);
    okBody(await post('/second/remove'));
    expect((await say('second/maker/talker')).status).toBe(404);
    expect(await test.app.db.query(`select 1 from added_models where provider = 'second'`)).toEqual([]);
    expect((await post('/second/remove')).status).toBe(404);
  });
});

describe('a server without prices', () => {
  it('makes pictures at the price that was typed, and none without a price', async () => {
    const server = { adapter: 'openai', name: 'pictures', base_url: `${images.url}/v1`, allow_private: true };
    expect(okBody(await post('', server))).toEqual({ name: 'pictures', is_checked: false });
    const offer = okBody<ProviderOffer>(await operator.get('/dash/admin/providers/pictures/offer'));
    expect(offer.models).toMatchObject([{ id: 'pictures/stable-diffusion-3.5', kind: 'image', list_price: [] }]);
    const choice = { upstream_model: 'stable-diffusion-3.5', kind: 'image' };
    expect(await post('/pictures/models', { models: [choice] })).toMatchObject(
      problem('price', /Type one; 0 makes it free/),
    );
    const price = [{ unit: 'image', amount: '0.05', per: 1 }];
    okBody(await post('/pictures/models', { models: [{ ...choice, price }] }));
    const { status, json } = await client.call('POST', '/v1/generate?wait=30', {
      model: 'pictures/stable-diffusion-3.5',
      input: { prompt: 'A red bicycle', n: 2 },
    });
    expect({ status, json }).toMatchObject({
      status: 202,
      json: { status: 'succeeded', cost: { amount: '0.10' }, output: [{ width: 64 }, { width: 64 }] },
    });
  });

  it('has the margin on what its operator types as its price, and its runs have a cost', async () => {
    const model = 'pictures/stable-diffusion-3.5';
    const change = (body: object) => post('/pictures/models/change', { model, ...body });
    const list_price = [{ unit: 'image', amount: '0.04', per: 1 }];
    okBody(await change({ list_price, price: null, margin: '50' }));
    const { providers } = okBody<AdminProviders>(await operator.get('/dash/admin/providers'));
    expect(providers.flatMap(({ models }) => models).find(({ id }) => id === model)).toMatchObject({
      may_type_list_price: true,
      list_price: [{ amount: '0.04' }],
      price: [{ amount: '0.06' }],
    });
    const { json } = await client.call('POST', '/v1/generate?wait=30', { model, input: { prompt: 'A bicycle', n: 1 } });
    expect(json).toMatchObject({ status: 'succeeded', cost: { amount: '0.06' } });
    const months = [begun_at, new Date(test.app.clock.now())].map((at) => `${at.toISOString().slice(0, 7)}-01`);
    const all = await Promise.all([...new Set(months)].map((month) => marginsOf(test.app.db, month, 'model')));
    const rows = all.flat().filter(({ name }) => name === model);
    expect(rows.reduce((sum, { upstream_cost }) => sum + upstream_cost, 0n)).toBe(40_000n);
    expect(rows.reduce((sum, { unknown }) => sum + unknown, 0n)).toBe(1n);
    expect(await change({ list_price: null })).toMatchObject(problem('price', /Type one; 0 makes it free/));
    expect(await change({ list_price: [{ unit: 'image', amount: '-1', per: 1 }] })).toMatchObject(
      problem('list_price', /must be a decimal such as 0.25/),
    );
    const price = [{ unit: 'image', amount: '0.05', per: 1 }];
    okBody(await change({ list_price: null, price, margin: null }));
    expect(test.app.catalog.current.models.get(model)?.routes[0]?.cost).toEqual([]);
  });

  it('has no price typed in place of one that its list has', async () => {
    const list_price = [{ unit: 'input_token', amount: '1', per: 1_000_000 }];
    expect(await post('/openrouter/models/change', { model: 'maker/talker', list_price })).toMatchObject(
      problem('list_price', /has a list price/),
    );
  });

  it('has models that are in no list, by their name', async () => {
    const price = [
      { unit: 'input_token', amount: '0', per: 1_000_000 },
      { unit: 'output_token', amount: '0', per: 1_000_000 },
    ];
    okBody(await post('/pictures/models', { models: [{ upstream_model: 'unlisted', kind: 'chat', price }] }));
    expect((await client.call('GET', '/v1/models/pictures/unlisted')).json).toMatchObject({ modality: 'chat' });
    okBody(await post('/pictures/models/remove', { model: 'pictures/unlisted' }));
  });
});

describe('a provider of the default catalogue', () => {
  it('brings its models with a key of the dashboard, at their shipped prices', async () => {
    okBody(await post('', { preset: 'bfl', api_key: 'bfl-0123456789', margin: '100' }));
    const offer = okBody<ProviderOffer>(await operator.get('/dash/admin/providers/bfl/offer'));
    expect(offer.models.map(({ id }) => id)).toContain('black-forest-labs/flux-2-pro');
    okBody(await post('/bfl/models', { models: [{ upstream_model: 'black-forest-labs/flux-2-pro' }] }));
    const model = test.app.catalog.current.models.get('black-forest-labs/flux-2-pro');
    expect(model?.routes.map(({ provider }) => provider)).toEqual(['bfl']);
    expect(Number(model?.price[0]?.amount)).toBeCloseTo(2 * Number(model?.routes[0]?.cost[0]?.amount), 9);
    expect(test.app.catalog.current.providers.get('bfl')?.api_key).toBe('bfl-0123456789');
    okBody(await post('/bfl/remove'));
  });
});

describe('a provider without code', () => {
  const body = { preset: 'stability', api_key: 'sk-stability-0123', margin: '20' };

  it('is one of the choices, runs its models at another address, and charges their prices with the margin', async () => {
    const studio = await startStability();
    const choice = (await view()).choices.find(({ name }) => name === 'stability');
    expect(choice).toEqual({
      name: 'stability',
      title: 'Stability AI',
      group: 'shipped',
      base_url: 'https://api.stability.ai',
      allow_private: false,
      needs_key: true,
    });
    okBody(await post('', { ...body, base_url: studio.url, allow_private: true }));
    expect(await providerNamed('stability')).toMatchObject({ has_address: true, base_url: studio.url });
    okBody(await post('/stability/models', { models: [{ upstream_model: 'stability/stable-image-core' }] }));
    const created = await client.call('POST', '/v1/generate?wait=60', {
      model: 'stability/stable-image-core',
      input: { prompt: 'A quiet bay' },
    });
    expect(created.json).toMatchObject({ status: 'succeeded', cost: { exact: '0.036000' } });
    expect(studio.requestsFor('submit')[0]?.headers.authorization).toBe('Bearer sk-stability-0123');
    const moved = await post('/stability/change', { base_url: 'https://api.elsewhere.example' });
    expect(moved).toMatchObject(problem('api_key', /./));
    okBody(await post('/stability/change', { base_url: 'https://api.elsewhere.example', api_key: 'sk-other-0123' }));
    expect(test.app.catalog.current.providers.get('stability')?.base_url).toBe('https://api.elsewhere.example');
    okBody(await post('/stability/remove'));
    await studio.stop();
  });

  it('has the address that comes with Medley unless another is typed', async () => {
    okBody(await post('', body));
    expect(await providerNamed('stability')).toMatchObject({ base_url: 'https://api.stability.ai' });
    okBody(await post('/stability/remove'));
  });
});

describe('what is wrong is said at its field', () => {
  it.each<[string, () => object, string, RegExp]>([
    [
      'a wrong key',
      () => ({ ...openrouterBody(), api_key: 'sk-or-v1-wrong-key' }),
      'api_key',
      /does not take this key: User not found \(401\)/,
    ],
    ['no key', () => ({ ...openrouterBody(), api_key: '' }), 'api_key', /Paste the key/],
    ['a key with spaces', () => ({ ...openrouterBody(), api_key: 'sk or key' }), 'api_key', /This is no key/],
    ['a private address', () => ({ ...openrouterBody(), allow_private: false }), 'allow_private', /private address/],
    [
      'a path that is not there',
      () => ({ ...openrouterBody(), base_url: `${router.url}/api/v2` }),
      'base_url',
      /There is nothing at .*\/api\/v2\/key \(404\)/,
    ],
    [
      'a port where nobody listens',
      () => ({ ...openrouterBody(), base_url: `http://127.0.0.1:${closed_port}/v1` }),
      'base_url',
      /takes no connection/,
    ],
    [
      'a host that is none',
      () => ({ ...openrouterBody(), base_url: 'http://nowhere.invalid/v1' }),
      'base_url',
      /There is no host nowhere\.invalid/,
    ],
    [
      'an address with a password',
      () => ({ ...openrouterBody(), base_url: 'https://a:b@example.com/v1' }),
      'base_url',
      /without a key in it/,
    ],
    ['no address', () => ({ adapter: 'openai', name: 'x1' }), 'base_url', /Enter an address/],
    ['no name', () => ({ adapter: 'openai', base_url: `${images.url}/v1` }), 'name', /lower-case letters/],
    ['the name of the sandbox', () => ({ ...openrouterBody(), name: 'sandbox' }), 'name', /built-in sandbox/],
    ['a name that is taken', () => openrouterBody(), 'name', /was added already/],
    ['a margin in words', () => ({ ...openrouterBody(), name: 'x2', margin: 'much' }), 'margin', /percentage/],
    [
      'another protocol',
      () => ({ adapter: 'telepathy', name: 'x3', base_url: `${images.url}/v1` }),
      'adapter',
      /protocol/,
    ],
  ])('%s', async (_, body, param, message) => {
    const refused = await post('', body());
    expect(refused.status, refused.text).toBe(400);
    expect(refused).toMatchObject(problem(param, message));
    expect(refused.text).not.toContain(openrouter_key);
    expect((await view()).providers.map(({ name }) => name).toSorted()).toEqual(['openrouter', 'pictures']);
  });

  it('an answer that is no list, is endless or hangs', async () => {
    const server = { adapter: 'openai', name: 'odd', base_url: `${images.url}/v1`, allow_private: true };
    images.instead('poll', { text: '<html>Welcome</html>' });
    expect(await post('', server)).toMatchObject(problem('base_url', /is no JSON\. Check the path/));
    images.instead('poll', { json: { error: 'Nothing here' }, status: 500 });
    expect(await post('', server)).toMatchObject(problem('base_url', /answered 500: Nothing here/));
    images.instead('poll', { status: 301, headers: { location: 'http://127.0.0.1/' } });
    expect(await post('', server)).toMatchObject(problem('base_url', /leads elsewhere \(301\)/));
    images.instead('poll', 'cut');
    expect(await post('', server)).toMatchObject(problem('base_url', /broke off|could not be read/));
    images.instead('poll', { bytes: randomBytes(17_000_000) });
    expect(await post('', server)).toMatchObject(problem('base_url', /could not be read/));
  });

  it('another address needs the key again, which is never sent where somebody points to', async () => {
    const before = images.requests.length;
    const moved = await post('/openrouter/change', { base_url: `${images.url}/v1` });
    expect(moved).toMatchObject(problem('api_key', /not sent to another address/));
    expect(images.requests).toHaveLength(before);
  });

  it('people who are not operators find nothing', async () => {
    const other = await ownerOfNew(test, 'Other');
    for (const path of ['', '/openrouter/offer'])
      expect((await other.get(`/dash/admin/providers${path}`)).status).toBe(404);
    expect((await other.post('/dash/admin/providers', openrouterBody())).status).toBe(404);
  });
});

describe('what is broken, or stands in the file too', () => {
  it('never stops the start of a node, and is told with its reason', async () => {
    await test.app.db.query(
      `insert into added_providers (name, entry, prefix, margin, created_at, updated_at)
       values ('odd', '{"adapter": "telepathy"}', 'odd/', '1', now(), now()), ('less', '{}', '', '1', now(), now())`,
    );
    await test.app.db.query(
      `insert into added_models (id, provider, entry, created_at, updated_at)
       values ('broken/one', 'openrouter', '{"id": 7}', now(), now()), ('broken/two', 'odd', '{}', now(), now())`,
    );
    const node = await test.beside({ env });
    expect((await say('maker/talker', await node.client({ account_id: client.account_id }))).status).toBe(200);
    await node.stop();
    await test.app.added?.refresh();
    expect((await providerNamed('odd'))?.problem).toMatch(/is not an adapter/);
    expect((await providerNamed('less'))?.problem).toBeTruthy();
    const broken = (await providerNamed('openrouter'))?.models.find(({ id }) => id === 'broken/one');
    expect(broken?.problem).toBeTruthy();
    const { warnings } = okBody<AdminConfiguration>(await operator.get('/dash/admin/configuration'));
    expect(warnings.join('\n')).toMatch(/added in the dashboard: provider odd: .*is not an adapter/);
    await test.app.db.query(`delete from added_models where id like 'broken/%'`);
    await test.app.db.query(`delete from added_providers where name in ('odd', 'less')`);
    await test.app.added?.refresh();
    expect(test.app.catalog.current.warnings).toEqual([]);
  });

  it('the file wins on the same name, and the page says so', async () => {
    const price = '[{ unit: image, amount: "0.01" }]';
    const schema = '{ type: object, properties: { prompt: { type: string } } }';
    const yaml = `version: 1
catalog: { default: true }
providers: { openrouter: { adapter: openai, base_url: "${images.url}/v1", allow_private: true } }
models: [{ id: maker/talker, kind: image, input_schema: ${schema}, price: ${price}, routes: [{ provider: sandbox, upstream_model: image }] }]
`;
    const node = await test.beside({ yaml, env });
    const { models, providers, unused } = node.app.catalog.current;
    expect(models.get('maker/talker')?.kind).toBe('image');
    expect(providers.get('openrouter')?.base_url).toBe(`${images.url}/v1`);
    expect(unused.get('provider openrouter')).toMatch(/medley\.yaml has a provider of this name/);
    expect(unused.get('model maker/talker')).toMatch(/medley\.yaml has a model of this id/);
    const there = await signInAs(node, operator.user_id, operator.account_id);
    const shown = okBody<AdminProviders>(await there.get('/dash/admin/providers'));
    expect(shown.providers.find(({ name }) => name === 'openrouter')?.problem).toMatch(/medley\.yaml/);
    const again = await there.post('/dash/admin/providers', openrouterBody());
    expect(again).toMatchObject(problem('name', /medley\.yaml has a provider openrouter/));
    await node.stop();
  });

  it('a node without the secret says that the key must be pasted again, and offers the rest', async () => {
    const node = await test.beside({ env: { MEDLEY_SECRET: 'quite another secret' } });
    const { models, unused } = node.app.catalog.current;
    expect(unused.get('provider openrouter')).toMatch(/cannot be read with MEDLEY_SECRET/);
    expect(models.has('maker/talker')).toBe(false);
    expect(models.has('pictures/stable-diffusion-3.5')).toBe(true);
    await node.stop();
  });

  it('a new secret encrypts keys again, which the old one opened', async () => {
    const both = contentKeys({ secret: 'the secret that follows', secret_before: secret });
    expect(await encryptKeysAgain(test.app.db, both)).toBe(1);
    const after = contentKeys({ secret: 'the secret that follows', secret_before: undefined });
    expect((await readAdded(test.app.db, after)).keys.get('openrouter')).toBe(openrouter_key);
    expect(
      (await readAdded(test.app.db, contentKeys({ secret, secret_before: undefined }))).keys.get('openrouter'),
    ).toBeUndefined();
    const back = contentKeys({ secret, secret_before: 'the secret that follows' });
    expect(await encryptKeysAgain(test.app.db, back)).toBe(1);
  });
});
