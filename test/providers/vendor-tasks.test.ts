import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { wav } from '../storage/samples.ts';
import { sampleFile, type Imitation, type Reply } from './imitations/imitation.ts';
import { basePathOf, vendors, type Vendor } from './vendors.ts';

/** The presets of `http-queue` in the whole service: their shipped models and prices, at imitations of the providers. */

const upstreams = new Map<string, Imitation>();
let service: TestApp;
let client: Client;

const yamlOf = () => `
version: 1
sandbox: false
${limits()}
catalog: { default: [${vendors.map(({ name }) => name).join(', ')}] }
providers:${vendors
  .map(({ name }) => {
    const base_url = `${upstreams.get(name)?.url}${basePathOf(name)}`;
    return `\n  ${name}: { adapter: http-queue, base_url: "${base_url}", api_key: env:TEST_VENDOR_KEY, allow_private: true }`;
  })
  .join('')}
models: []
`;

beforeAll(async () => {
  process.env['TEST_VENDOR_KEY'] = 'sk-upstream-0123456789';
  for (const { name, imitate } of vendors) upstreams.set(name, await imitate());
  service = await startTestApp({ yaml: yamlOf() });
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
  for (const upstream of upstreams.values()) await upstream.stop();
});

const picture = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
const sound = writeDataUrl({ content_type: 'audio/wav', bytes: wav(1) });

/** The vendor's input with files that can be measured. */
function inputOf({ input }: Vendor): object {
  return {
    ...input,
    ...('image' in input && { image: picture }),
    ...('audio' in input && { audio: sound }),
  };
}

async function create(vendor: Vendor, wait_s = 90) {
  const body = { model: vendor.model, input: inputOf(vendor) };
  const created = await client.call('POST', `/v1/generate?wait=${wait_s}`, body);
  expect(created.status, created.text).toBe(202);
  return created.json;
}

function upstreamOf({ name }: Vendor): Imitation {
  const upstream = upstreams.get(name);
  if (!upstream) throw new Error(`${name} was not started`);
  return upstream;
}

/** Costs of a run of each by the shipped price: the imitations make a second of video, and an image. */
const costs: Record<string, [charge: string, upstream: string]> = {
  stability: ['0.030000', '0.03 USD'],
  ideogram: ['0.060000', '0.06 USD'],
  recraft: ['0.035000', '0.035 USD'],
  'xai-video': ['0.072000', '0.07 USD'],
  wan: ['0.100000', '0.1 USD'],
  seedance: ['0.052200', '0.0522 USD'],
  assemblyai: ['0.000042', '0.000042 USD'],
};

const each = vendors.map((vendor) => [vendor.title, vendor] as const);

/** A health that a test left behind is no business of the next. */
const heal = () => service.app.db.query('delete from route_health');

describe('a task of a preset', () => {
  it.each(each)('succeeds, is measured and costs what its page says: %s', async (_, vendor) => {
    const task = await create(vendor);
    expect(task).toMatchObject({ status: 'succeeded', cost: { exact: costs[vendor.name]?.[0] } });
    expect(task.output.length).toBeGreaterThan(0);
    expect(upstreamOf(vendor).askedFor('other')).toEqual([]);
  });

  const unfit = each.flatMap(([title, vendor]): [string, Vendor, 'submit' | 'poll', Reply][] => [
    [`${title} at the submit`, vendor, 'submit', vendor.moderated],
    ...(vendor.moderated_later ? [[`${title} at a poll`, vendor, 'poll', vendor.moderated_later] satisfies Unfit] : []),
  ]);
  it.each(unfit)('that is moderated costs nothing: %s', async (_, vendor, role, reply) => {
    upstreamOf(vendor).instead(role, reply);
    const task = await create(vendor);
    const error = { type: 'content_policy_violation' };
    expect(task).toMatchObject({ status: 'failed', error, cost: { exact: '0.000000' } });
  });

  const failing = vendors.flatMap((vendor): [string, Vendor, Reply][] =>
    vendor.fails ? [[vendor.title, vendor, vendor.fails]] : [],
  );
  it.each(failing)(
    'that fails costs nothing, and its caller reads nothing of the provider: %s',
    async (_, vendor, reply) => {
      upstreamOf(vendor).instead('poll', reply);
      const task = await create(vendor);
      expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
      expect(task.error?.message).toMatch(/^The model provider/);
      await heal();
    },
  );

  it.each(each)('waits where the provider is full, as Retry-After says, and succeeds: %s', async (_, vendor) => {
    const before = upstreamOf(vendor).askedFor('submit').length;
    upstreamOf(vendor).instead('submit', { status: 429, headers: { 'retry-after': '1' }, json: {} });
    const task = await create(vendor);
    expect(task).toMatchObject({ status: 'succeeded' });
    expect(upstreamOf(vendor).askedFor('submit').length - before).toBe(2);
    await heal();
  });

  it.each(each)('whose provider has no credit left, or is broken, costs nothing: %s', async (_, vendor) => {
    for (const reply of [vendor.no_credit, { status: 500, json: {} }]) {
      upstreamOf(vendor).instead('submit', reply);
      const task = await create(vendor);
      expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
      await heal();
    }
  });

  const stoppable = vendors.filter(({ cancels }) => cancels).map((vendor) => [vendor.title, vendor] as const);
  it.each(stoppable)('is cancelled in the queue of the provider and costs nothing: %s', async (_, vendor) => {
    const upstream = upstreamOf(vendor);
    upstream.instead('poll', ...Array.from({ length: 100 }, () => vendor.queued ?? {}));
    const polled = upstream.nextAsked('poll');
    const { id } = await create(vendor, 0);
    await polled;
    const cancelled = await client.call('POST', `/v1/tasks/${id}/cancel`, {});
    expect(cancelled.status, cancelled.text).toBe(200);
    expect(cancelled.json).toMatchObject({ error: { type: 'canceled' }, cost: { exact: '0.000000' } });
    expect(upstream.askedFor('cancel').length).toBeGreaterThan(0);
  });
});

type Unfit = [string, Vendor, 'submit' | 'poll', Reply];
