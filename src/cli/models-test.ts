import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { JsonObject } from '../catalog/model.ts';
import { openProber } from '../storage/probe.ts';
import { planTrial, TrialError } from '../trials/plan.ts';
import type { Trial } from '../trials/run.ts';
import { tryRoute } from '../trials/trial.ts';
import { CommandError, says, type Said } from './command.ts';
import { foundModel, survey, type Surveyed, type SurveyedRoute } from './model-survey.ts';

export function testCommand(models: Command): void {
  const test = models
    .command('test <model>')
    .description('show the request to a route; with --real, make one call of it');
  test.option('--route <route>', 'the route; default: the first usable one');
  test.option('--real', 'make the call: the provider charges for it');
  test.option('--input <json>', "the input (of chat models: the message), instead of the schema's examples");
  test.option('--out <folder>', 'folder for the files', '.');
  says(test, (id = '') => testOne(id, test.opts()).catch(asCommandError));
}

type Options = { route?: string; real?: boolean; input?: string; out?: string };

async function testOne(id: string, options: Options): Promise<Said> {
  const { surveyed, catalog } = await survey();
  const surveyed_model = foundModel(surveyed, id);
  const { model } = surveyed_model;
  const { route } = chooseRoute(surveyed_model, options.route);
  const provider = catalog.providers.get(route.provider);
  if (!provider) throw new CommandError(`The provider ${route.provider} cannot be used.`);
  const { settings } = catalog;
  const { input, ...costs } = await planTrial({ model, route, settings }, options.input);
  const { sent, estimated_cost, upstream_estimate, currency } = costs;
  const plan = { model: id, route: route.id, provider: route.provider, upstream_model: route.upstream_model, ...costs };
  if (options.real !== true) {
    const lines = [
      `${id} by ${route.id} would be sent:`,
      shortened(sent),
      ...(estimated_cost === null ? [] : [`It would cost about ${estimated_cost} ${currency}.`]),
      ...(upstream_estimate === null ? [] : [`The provider would charge about ${upstream_estimate} ${currency}.`]),
      'Nothing was sent; --real makes the call.',
    ];
    return { json: { ...plan, real: false }, text: lines.join('\n') };
  }
  const prober = openProber();
  try {
    const trial = await tryRoute({ model, route, provider, settings }, { input, ...costs }, prober);
    return await report({ ...plan, real: true }, trial, options.out ?? '.');
  } finally {
    prober.close();
  }
}

/** Turns a wrong input into a usage error. */
function asCommandError(error: unknown): never {
  if (error instanceof TrialError) throw new CommandError(error.message, error.is_input ? 2 : 1);
  throw error;
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
      : [`The provider reports a charge of ${trial.upstream_cost.amount} ${trial.upstream_cost.currency}.`]),
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
  upstream_estimate: string | null;
  currency: string;
};

function unitsLine(units: Trial['units']): string {
  return Object.entries(units)
    .map(([unit, count]) => `${unit} ${count}`)
    .join(', ');
}
