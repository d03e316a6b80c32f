import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCatalog } from '../../src/catalog/catalog.ts';
import { mapInput } from '../../src/catalog/input.ts';
import { isMediaKind, type Json, type Model, type Route } from '../../src/catalog/model.ts';
import { sampleInput } from '../../src/catalog/sample.ts';
import { tryRun } from '../../src/cli/trial-run.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { startBfl } from './imitations/bfl.ts';
import { startElevenlabs } from './imitations/elevenlabs.ts';
import { startFal } from './imitations/fal.ts';
import { startGemini } from './imitations/gemini.ts';
import { sampleFile, type Imitation } from './imitations/imitation.ts';
import { startKling } from './imitations/kling.ts';
import { startLuma } from './imitations/luma.ts';
import { startMinimax } from './imitations/minimax.ts';
import { startOpenai } from './imitations/openai.ts';
import { startReplicate } from './imitations/replicate.ts';
import { startRunway } from './imitations/runway.ts';

/** Every media route of the default catalogue makes one run at an imitation of its provider. */

const imitations: Record<string, { start: (now: () => number) => Promise<Imitation>; base_path: string }> = {
  openai: { start: startOpenai, base_path: '/v1' },
  gemini: { start: startGemini, base_path: '' },
  bfl: { start: startBfl, base_path: '' },
  runway: { start: startRunway, base_path: '' },
  luma: { start: startLuma, base_path: '/v1' },
  'luma-dream-machine': { start: startLuma, base_path: '/dream-machine/v1' },
  kling: { start: startKling, base_path: '' },
  minimax: { start: startMinimax, base_path: '' },
  elevenlabs: { start: startElevenlabs, base_path: '' },
  replicate: { start: startReplicate, base_path: '/v1' },
  fal: { start: startFal, base_path: '' },
};

const { current } = await openCatalog({ ...adapterFacts(adapters), secret: () => 'the-key-of-a-test' });
const routes = [...current.models.values()]
  .filter(({ id, kind }) => isMediaKind(kind) && !id.startsWith('sandbox/'))
  .flatMap((model) => model.routes.map((route) => ({ model, route })));

const running = new Map<string, Promise<Imitation>>();
const files = new Map<string, string>();

beforeAll(async () => {
  const types = { image: 'image/png', audio: 'audio/wav', video: 'video/mp4' };
  for (const kind of ['image', 'audio'] as const) {
    files.set(kind, `data:${types[kind]};base64,${(await sampleFile(kind)).toString('base64')}`);
  }
});
afterAll(async () => {
  for (const imitation of running.values()) await (await imitation).stop();
});

describe.each([...new Set(routes.map(({ route }) => route.provider))])('%s', (provider) => {
  it.each(routes.filter(({ route }) => route.provider === provider).map((one) => [one.model.id, one] as const))(
    'runs %s',
    async (_, { model, route }) => {
      const { imitation, base_path } = await imitate(provider);
      const before = imitation.asked.length;
      const trial = await run(model, route, `${imitation.url}${base_path}`);
      expect(trial).toMatchObject({ outcome: 'done', message: null });
      const asked = imitation.asked.slice(before);
      expect(asked.map(({ role }) => role)).not.toContain('other');
      const [submit] = asked.filter(({ role }) => role === 'submit');
      expect(`${submit?.path} ${submit?.body.toString('latin1')}`).toContain(route.upstream_model);
      for (const text of sentTexts(model, route)) expect(submit?.body.toString()).toContain(text);
    },
    60_000,
  );
});

async function imitate(provider: string): Promise<{ imitation: Imitation; base_path: string }> {
  const known = imitations[provider];
  if (!known) throw new Error(`nothing imitates ${provider}`);
  const imitation = running.get(provider) ?? known.start(() => 0);
  running.set(provider, imitation);
  return { imitation: await imitation, base_path: known.base_path };
}

function inputOf(model: Model) {
  const checked = model.validateInput(sampleInput(model, (kind) => files.get(kind) ?? ''));
  if (!checked.ok) throw new Error(JSON.stringify(checked.errors));
  return checked.input;
}

async function run(model: Model, route: Route, base_url: string) {
  const config = current.providers.get(route.provider);
  const adapter = config && adapters[config.adapter];
  if (!adapter) throw new Error(`${route.provider} is there`);
  const provider = { ...config, base_url, allow_private: true };
  const input = inputOf(model);
  const quick = { ...route, poll: { first_ms: 10, max_ms: 10 } };
  return tryRun({ model, route: quick, provider, adapter, input, sent: mapInput(route, input), currency: 'USD' });
}

/** What has to be in the body as it is: texts that the model was given, not files and not paths. */
function sentTexts(model: Model, route: Route): string[] {
  const prompt: Json | undefined = inputOf(model)['prompt'] ?? inputOf(model)['text'];
  const mapped = JSON.stringify(mapInput(route, inputOf(model)));
  return typeof prompt === 'string' && mapped.includes(prompt) && /^[\w ,.]+$/.test(prompt) ? [prompt] : [];
}
