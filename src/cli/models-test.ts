import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { mapInput } from '../catalog/input.ts';
import { isObject } from '../catalog/input-schema.ts';
import { isMediaKind, type JsonObject, type MediaKind, type Model } from '../catalog/model.ts';
import { estimateUnits, freezePricing, holdAmount } from '../catalog/price.ts';
import { sampleInput } from '../catalog/sample.ts';
import { ApiError } from '../errors.ts';
import { exact } from '../money/money.ts';
import { adapters } from '../providers/index.ts';
import { Maker } from '../providers/sandbox/maker.ts';
import { readOrder } from '../providers/sandbox/order.ts';
import { CommandError, says, type Said } from './command.ts';
import { foundModel, survey, type Surveyed, type SurveyedRoute } from './model-survey.ts';
import { tryCall } from './trial-call.ts';
import { tryRun, type Trial } from './trial-run.ts';

export function testCommand(models: Command): void {
  const test = models.command('test <model>').description('what a route would be sent; with --real, one call of it');
  test.option('--route <route>', 'which one; the first that is usable if not given');
  test.option('--real', 'make the call: the provider charges for it');
  test.option('--input <json>', "the input (of chat models: the message), instead of the schema's examples");
  test.option('--out <folder>', 'where files go', '.');
  says(test, (id = '') => testOne(id, test.opts()));
}

type Options = { route?: string; real?: boolean; input?: string; out?: string };

async function testOne(id: string, options: Options): Promise<Said> {
  const { surveyed, catalog } = await survey();
  const found = foundModel(surveyed, id);
  const { model } = found;
  const { route } = chooseRoute(found, options.route);
  const provider = catalog.providers.get(route.provider);
  if (!provider) throw new CommandError(`The provider ${route.provider} cannot be used.`);
  const input = isMediaKind(model.kind) ? await readInput(model, options.input) : readMessage(options.input);
  const sent = isMediaKind(model.kind) ? mapInput(route, input) : input;
  const plan = { model: id, route: route.id, provider: route.provider, upstream_model: route.upstream_model, sent };
  const { base_currency: currency } = catalog.settings;
  const estimate = isMediaKind(model.kind) ? estimateOf(model, input, currency) : null;
  if (options.real !== true) {
    const json = { ...plan, real: false, estimated_cost: estimate, currency };
    const lines = [
      `${id} by ${route.id} would be sent:`,
      shortened(sent),
      ...(estimate === null ? [] : [`It would cost about ${estimate} ${currency}.`]),
      'Nothing was sent; --real makes the call.',
    ];
    return { json, text: lines.join('\n') };
  }
  const adapter = adapters[provider.adapter];
  if (!adapter) throw new CommandError(`There is no adapter ${provider.adapter}.`);
  const job = { model, route, provider, adapter, input, sent, currency };
  const trial = isMediaKind(model.kind) ? await tryRun(job) : await tryCall(job);
  return report({ ...plan, real: true, estimated_cost: estimate, currency }, trial, options.out ?? '.');
}

function chooseRoute({ model, routes }: Surveyed, wanted: string | undefined): SurveyedRoute {
  const ids = routes.map(({ route }) => route.id).join(', ');
  const chosen =
    wanted === undefined
      ? (routes.find(({ usable }) => usable) ?? routes[0])
      : routes.find(({ route }) => route.id === wanted);
  if (!chosen) throw new CommandError(`${model.id} has no route "${wanted}"; it has ${ids}.`);
  if (chosen.usable) return chosen;
  const reason = chosen.missing === undefined ? 'cannot be used here' : `needs a key in ${chosen.missing}`;
  throw new CommandError(`The route ${chosen.route.id} of ${model.id} ${reason}.`);
}

/** The given input or one of the schema's examples, with defaults. Throws CommandError (usage) naming wrong fields. */
async function readInput(model: Model, given: string | undefined): Promise<JsonObject> {
  const input = given === undefined ? await sampleOf(model) : parseInput(given);
  const checked = model.validateInput(input);
  if (checked.ok) return checked.input;
  throw new CommandError(checked.errors.map(({ message }) => message).join('\n'), 2);
}

function parseInput(given: string): JsonObject {
  try {
    const parsed: unknown = JSON.parse(given);
    if (isObject(parsed)) return parsed;
  } catch {
    // told below
  }
  throw new CommandError('--input must be a JSON object.', 2);
}

/** Files for what takes files: the sandbox makes them. */
async function sampleOf(model: Model): Promise<JsonObject> {
  const files = new Map<MediaKind, string>();
  const maker = new Maker();
  try {
    for (const { kind } of model.media) {
      const order = readOrder(kind, kind === 'image' ? { width: 768, height: 768 } : { duration: 3 }, 'Hello');
      const made = await maker.make(order, AbortSignal.timeout(30_000));
      const [bytes] = made === 'busy' ? [] : made;
      if (bytes) files.set(kind, `data:${types[kind]};base64,${bytes.toString('base64')}`);
    }
  } finally {
    await maker.close();
  }
  return sampleInput(model, (kind) => files.get(kind) ?? '');
}

const types = { image: 'image/png', video: 'video/mp4', audio: 'audio/wav' };

/** What a chat model is asked, and an embedding model is to embed. */
function readMessage(given: string | undefined): JsonObject {
  return { message: given ?? 'Say hello in one word.' };
}

function estimateOf(model: Model, input: JsonObject, currency: string): string | null {
  try {
    const pricing = freezePricing(model, input, currency, { currencies: new Map([[currency, '1']]) });
    return exact(holdAmount(pricing, estimateUnits(model, input)));
  } catch (error) {
    if (error instanceof ApiError) return null; // it depends on how long a file is
    throw error;
  }
}

/** JSON with files told by their length. */
function shortened(value: JsonObject): string {
  const short = (_: string, each: unknown) =>
    typeof each === 'string' && each.length > 200 ? `${each.slice(0, 60)}… (${each.length} characters)` : each;
  return JSON.stringify(value, short, 2);
}

async function report(plan: JsonPlan, { files, ...trial }: Trial, out: string): Promise<Said> {
  const written = [];
  if (files.length > 0) await mkdir(out, { recursive: true });
  for (const [index, { bytes, extension, ...facts }] of files.entries()) {
    const name = `${plan.model.replaceAll(/[^A-Za-z0-9.-]+/g, '-')}-${index + 1}.${extension}`;
    const path = resolve(join(out, name));
    await writeFile(path, bytes);
    written.push({ path, ...facts });
  }
  const json = { ...plan, ...trial, files: written };
  const lines = [
    `${plan.model} by ${plan.route}: ${trial.outcome} after ${(trial.took_ms / 1000).toFixed(1)} s`,
    ...trial.steps.map(({ at_ms, phase }) => `  ${(at_ms / 1000).toFixed(1)} s  ${phase}`),
    ...(trial.message === null ? [] : [trial.message]),
    ...(trial.text === null ? [] : [trial.text]),
    ...written.map(({ path, content_type, size_bytes }) => `${path}  ${content_type}, ${size_bytes} bytes`),
    ...(trial.cost === null ? [] : [`A caller pays ${trial.cost} ${plan.currency} (${unitsLine(trial.units)}).`]),
    ...(trial.upstream_cost === null
      ? []
      : [`The provider charges ${trial.upstream_cost.amount} ${trial.upstream_cost.currency}, it says.`]),
  ];
  return { json, text: lines.join('\n'), exit_code: trial.outcome === 'done' ? 0 : 1 };
}

type JsonPlan = {
  model: string;
  route: string;
  provider: string;
  upstream_model: string;
  sent: JsonObject;
  real: boolean;
  estimated_cost: string | null;
  currency: string;
};

function unitsLine(units: Trial['units']): string {
  return Object.entries(units)
    .map(([unit, count]) => `${unit} ${count}`)
    .join(', ');
}
