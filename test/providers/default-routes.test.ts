import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openCatalog } from '../../src/catalog/catalog.ts';
import { defaultProviders } from '../../src/catalog/default.ts';
import { mapInput } from '../../src/catalog/input.ts';
import { fillDefaults } from '../../src/catalog/input-schema.ts';
import { isMediaKind, isObject, type Json, type JsonObject, type Model, type Route } from '../../src/catalog/model.ts';
import { sampleInput } from '../../src/catalog/sample.ts';
import { writeDataUrl } from '../../src/lib/data-url.ts';
import { openGuard } from '../../src/net/guard.ts';
import { adapterFacts } from '../../src/providers/facts.ts';
import { adapters } from '../../src/providers/index.ts';
import { mediaForm, type Provider } from '../../src/providers/provider.ts';
import { wav } from '../storage/samples.ts';
import { runOf, runToEnd } from './conformance.ts';
import { startBfl } from './imitations/bfl.ts';
import { startElevenlabs } from './imitations/elevenlabs.ts';
import { startFal } from './imitations/fal.ts';
import { startGeminiInteractions } from './imitations/gemini-interactions.ts';
import { startGemini } from './imitations/gemini.ts';
import { sampleFile, type Imitation } from './imitations/imitation.ts';
import { startKling } from './imitations/kling.ts';
import { startLuma } from './imitations/luma.ts';
import { startMinimax } from './imitations/minimax.ts';
import { startOpenai } from './imitations/openai.ts';
import { startReplicate } from './imitations/replicate.ts';
import { startRunway } from './imitations/runway.ts';
import { configOf } from './upstreams.ts';
import { basePathOf, vendors } from './vendors.ts';
import { prober } from '../helpers/prober.ts';

/** The default catalogue names the fields that an adapter wants: a slip of the pen there is a mistake of every call. */

const imitations: Record<string, (now: () => number) => Promise<Imitation>> = {
  openai: startOpenai,
  gemini: startGemini,
  'gemini-interactions': startGeminiInteractions,
  elevenlabs: startElevenlabs,
  replicate: startReplicate,
  fal: startFal,
  bfl: startBfl,
  runway: startRunway,
  luma: startLuma,
  'luma-dream-machine': startLuma,
  kling: startKling,
  minimax: startMinimax,
  ...Object.fromEntries(vendors.map(({ name, imitate }) => [name, imitate])),
};
const base_paths: Record<string, string> = {
  openai: '/v1',
  replicate: '/v1',
  luma: '/v1',
  'luma-dream-machine': '/dream-machine/v1',
  ...Object.fromEntries(vendors.map(({ name }) => [name, basePathOf(name)])),
};

const image = await sampleFile('image');
const started = new Map<string, { imitation: Imitation; provider: Provider }>();
const { current } = await openCatalog({ ...adapterFacts(adapters), secret: () => 'key' });
const routes = [...current.models.values()].flatMap((model) =>
  model.routes.flatMap((route): [string, Model, Route][] => {
    const is_here = isMediaKind(model.kind) && route.provider in imitations;
    return is_here ? [[`${model.id} by ${route.provider}`, model, route]] : [];
  }),
);

beforeAll(async () => {
  const guard = openGuard();
  for (const [name, imitate] of Object.entries(imitations)) {
    const imitation = await imitate(() => 0);
    const config = configOf(name, imitation.url + (base_paths[name] ?? ''));
    const provider = adapters[defaultProviders()[name]?.adapter ?? '']?.open?.(config, { guard, prober });
    if (!provider) throw new Error(`${name} opens nothing`);
    started.set(name, { imitation, provider });
  }
});
afterAll(async () => {
  for (const { imitation, provider } of started.values()) {
    await imitation.stop();
    await provider.close?.();
  }
});

/** The sample of the model with all of its defaults, and files also where they are not required. */
function inputOf(model: Model, provider: Provider, route: Route): JsonObject {
  const media = mediaForm(provider, route.options);
  const fileOf = media === 'link' ? linkOf : dataOf;
  const { properties } = model.input_schema;
  const fields = Object.entries(isObject(properties) ? properties : {});
  const files = fields.flatMap(([name, field]): [string, Json][] => {
    const { items } = isObject(field) ? field : {};
    const kind = mediaOf(items) ?? mediaOf(field);
    return kind === undefined ? [] : [[name, items === undefined ? fileOf(kind) : [fileOf(kind)]]];
  });
  return { ...fillDefaults(model.input_schema, sampleInput(model, fileOf)), ...Object.fromEntries(files) };
}

function mediaOf(field: Json | undefined): string | undefined {
  const kind = isObject(field) ? field['x-media'] : undefined;
  return typeof kind === 'string' ? kind : undefined;
}

function linkOf(kind: string): string {
  return `https://files.example/${kind}`;
}

function dataOf(kind: string): string {
  const [content_type, bytes] = kind === 'audio' ? (['audio/wav', wav(0.1)] as const) : (['image/png', image] as const);
  return writeDataUrl({ content_type, bytes });
}

describe('a route of the default catalogue', () => {
  it.each(routes)(
    'of %s accepts what its model accepts and returns what its model promises',
    async (_, model, route) => {
      const { imitation, provider } = started.get(route.provider) ?? {};
      if (!imitation || !provider || !isMediaKind(model.kind)) throw new Error('not here');
      const input = mapInput(route, inputOf(model, provider, route));
      const { options, output, upstream_model } = route;
      const run = runOf({ kind: model.kind, model: upstream_model, input, options, output });
      const state = await runToEnd(provider, run);
      if (state.phase !== 'done') throw new Error(`the run is ${JSON.stringify(state)}`);
      const kinds = state.files.map((file) => ('text' in file ? 'text' : model.kind));
      expect(new Set(kinds)).toEqual(new Set(model.output_types));
      expect(imitation.requestsFor('other')).toEqual([]);
      // Whoever names prices of tokens or credits wants to know what a call has cost.
      const has_prices = 'token_prices' in options || 'credit_price' in options;
      expect(!has_prices || state.upstream_cost !== undefined).toBe(true);
    },
  );
});
