import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { wav } from '../storage/samples.ts';
import { sampleFile, type Imitation, type Reply } from './imitations/imitation.ts';
import { basePathOf, vendors, type Vendor } from './vendors.ts';

/** The presets of `http-queue` in the whole service: their shipped models and prices, at imitations of the providers. */

const names = [...new Set(vendors.map(({ name }) => name))];
const upstreams = new Map<string, Imitation>();
let service: TestApp;
let client: Client;

const yamlOf = () => `
version: 1
sandbox: false
${limits()}
catalog: { default: [${names.join(', ')}] }
providers:${names
  .map((name) => {
    const base_url = `${upstreams.get(name)?.url}${basePathOf(name)}`;
    return `\n  ${name}: { adapter: http-queue, base_url: "${base_url}", api_key: env:TEST_VENDOR_KEY, allow_private: true }`;
  })
  .join('')}
models: []
`;

beforeAll(async () => {
  process.env['TEST_VENDOR_KEY'] = 'sk-upstream-0123456789';
  for (const { name, imitate } of vendors) if (!upstreams.has(name)) upstreams.set(name, await imitate());
  service = await startTestApp({ yaml: yamlOf() });
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
  for (const upstream of upstreams.values()) await upstream.stop();
});

const image = writeDataUrl({ content_type: 'image/png', bytes: await sampleFile('image') });
const audio = writeDataUrl({ content_type: 'audio/wav', bytes: wav(1) });

/** The vendor's input with files that can be measured. */
function inputOf({ input }: Vendor): object {
  return {
    ...input,
    ...('image' in input && { image }),
    ...('audio' in input && { audio }),
  };
}

async function create(vendor: Vendor, wait_s = 90) {
  const body = { model: vendor.model, input: inputOf(vendor) };
  const ask = () => client.call('POST', `/v1/generate?wait=${wait_s}`, body);
  let created = await ask();
  while (created.status === 503) created = await ask(); // so many at once are too much for a busy machine
  expect(created.status, created.text).toBe(202);
  return created.json;
}

function upstreamOf({ name }: Vendor): Imitation {
  const upstream = upstreams.get(name);
  if (!upstream) throw new Error(`${name} was not started`);
  return upstream;
}

/** Costs of a run of each model by the shipped price: the imitations make a second of video, and an image. */
const costs: Record<string, string> = {
  'stability/stable-image-core': '0.030000',
  'ideogram/ideogram-3-remix': '0.060000',
  'recraft/v4.1': '0.035000',
  'xai/grok-imagine-video/image-to-video': '0.072000',
  'alibaba/wan-2.7': '0.100000',
  'bytedance/seedance-1.5-pro': '0.052200',
  'assemblyai/universal-2': '0.000042',
  'deepgram/nova-3': '0.000072',
  'deepgram/aura-2': '0.000390', // 13 characters
  'cartesia/sonic-3.5': '0.000650',
  'cartesia/voice-changer': '0.000750',
};

/** A health that a test left behind is no business of the next. */
const heal = () => service.app.db.query('delete from route_health');

/** Does it with all of them at once; those of one provider, which share its imitation, one after the other. */
async function withEach(some: readonly Vendor[], act: (vendor: Vendor) => Promise<void>): Promise<void> {
  const inTurn = async (name: string) => {
    for (const vendor of some.filter((one) => one.name === name))
      await act(vendor).catch((cause: unknown) => {
        throw new Error(`${vendor.title} fails`, { cause });
      });
  };
  await Promise.all(names.map(inTurn));
}

/** Makes a task whose submit or poll is answered so. */
async function createWith(vendor: Vendor, role: 'submit' | 'poll', reply: Reply) {
  upstreamOf(vendor).instead(role, reply);
  return create(vendor);
}

const failed = (type: string) => ({ status: 'failed', error: { type }, cost: { exact: '0.000000' } });

describe('a task of a preset', () => {
  afterEach(heal);

  it('succeeds, is measured and costs what its page says', async () => {
    expect(Object.keys(costs)).toEqual(vendors.map(({ model }) => model));
    await withEach(vendors, async (vendor) => {
      const task = await create(vendor);
      expect(task).toMatchObject({ status: 'succeeded', cost: { exact: costs[vendor.model] } });
      expect(task.output.length).toBeGreaterThan(0);
      expect(upstreamOf(vendor).requestsFor('other')).toEqual([]);
    });
  });

  it('that is moderated costs nothing', async () => {
    await withEach(vendors, async (vendor) => {
      const { moderated, moderated_later } = vendor;
      const unfit = failed('content_policy_violation');
      const tasks = [
        ...(moderated ? [await createWith(vendor, 'submit', moderated)] : []),
        ...(moderated_later ? [await createWith(vendor, 'poll', moderated_later)] : []),
      ];
      for (const task of tasks) expect(task).toMatchObject(unfit);
    });
  });

  it('that fails costs nothing, and its caller reads nothing of the provider', async () => {
    const failing = vendors.filter(({ fails }) => fails);
    await withEach(failing, async (vendor) => {
      const task = await createWith(vendor, 'poll', vendor.fails ?? {});
      expect(task).toMatchObject(failed('upstream_error'));
      expect(task.error?.message).toMatch(/^The model provider/);
    });
  });

  it('waits where the provider is full, as Retry-After says, and succeeds', async () => {
    await withEach(vendors, async (vendor) => {
      const before = upstreamOf(vendor).requestsFor('submit').length;
      upstreamOf(vendor).instead('submit', { status: 429, headers: { 'retry-after': '1' }, json: {} });
      expect(await create(vendor)).toMatchObject({ status: 'succeeded' });
      expect(upstreamOf(vendor).requestsFor('submit').length - before).toBe(2);
    });
  });

  it.each(['has no credit left', 'is broken'])('whose provider %s costs nothing', async (why) => {
    await withEach(vendors, async (vendor) => {
      const reply: Reply = why === 'is broken' ? { status: 500, json: {} } : vendor.no_credit;
      expect(await createWith(vendor, 'submit', reply)).toMatchObject(failed('upstream_error'));
    });
  });

  it('is cancelled in the queue of the provider and costs nothing', async () => {
    const stoppable = vendors.filter(({ cancels }) => cancels);
    expect(stoppable.length).toBeGreaterThan(0);
    await withEach(stoppable, async (vendor) => {
      const upstream = upstreamOf(vendor);
      upstream.instead('poll', ...Array.from({ length: 100 }, () => vendor.queued ?? {}));
      const polled = upstream.nextRequest('poll');
      const { id } = await create(vendor, 0);
      await polled;
      const cancelled = await client.call('POST', `/v1/tasks/${id}/cancel`, {});
      expect(cancelled.status, cancelled.text).toBe(200);
      expect(cancelled.json).toMatchObject({ error: { type: 'canceled' }, cost: { exact: '0.000000' } });
      expect(upstream.requestsFor('cancel').length).toBeGreaterThan(0);
    });
  });
});
