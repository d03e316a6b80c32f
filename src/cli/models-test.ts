import { mkdir, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import type { JsonObject } from '../catalog/model.ts';
import { openProber } from '../storage/probe.ts';
import { planTestCall, TestCallError } from '../test-calls/plan.ts';
import type { TestCall } from '../test-calls/run.ts';
import { testRoute } from '../test-calls/test-call.ts';
import { CommandError, says, type CommandResult } from './command.ts';
import { surveyedModel, survey, type SurveyedModel, type SurveyedRoute } from './model-survey.ts';

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

async function testOne(id: string, options: Options): Promise<CommandResult> {
  const { surveyed, catalog } = await survey();
  const surveyed_model = surveyedModel(surveyed, id);
  const { model } = surveyed_model;
  const { route } = chooseRoute(surveyed_model, options.route);
  const provider = catalog.providers.get(route.provider);
  if (!provider) throw new CommandError(`The provider ${route.provider} cannot be used.`);
  const { settings } = catalog;
  const { input, ...costs } = await planTestCall({ model, route, settings }, options.input);
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
    const test_call = await testRoute({ model, route, provider, settings }, { input, ...costs }, prober);
    return await report({ ...plan, real: true }, test_call, options.out ?? '.');
  } finally {
    prober.close();
  }
}

/** Turns a wrong input into a usage error. */
function asCommandError(error: unknown): never {
  if (error instanceof TestCallError) throw new CommandError(error.message, error.is_input ? 2 : 1);
  throw error;
}

function chooseRoute({ model, routes }: SurveyedModel, name: string | undefined): SurveyedRoute {
  const ids = routes.map(({ route }) => route.id).join(', ');
  const chosen =
    name === undefined
      ? (routes.find(({ usable }) => usable) ?? routes[0])
      : routes.find(({ route }) => route.id === name);
  if (!chosen) throw new CommandError(`${model.id} has no route "${name}"; it has ${ids}.`);
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

async function report(plan: JsonPlan, { files, ...test_call }: TestCall, out: string): Promise<CommandResult> {
  const saved = [];
  if (files.length > 0) await mkdir(out, { recursive: true });
  for (const [index, { bytes, extension, ...facts }] of files.entries()) {
    const name = `${plan.model.replaceAll(/[^A-Za-z0-9.-]+/g, '-')}-${index + 1}.${extension}`;
    const path = resolve(join(out, name));
    await writeFile(path, bytes);
    saved.push({ path, ...facts });
  }
  const json = { ...plan, ...test_call, files: saved };
  const lines = [
    `${plan.model} by ${plan.route}: ${test_call.outcome} after ${(test_call.took_ms / 1000).toFixed(1)} s`,
    ...test_call.steps.map(({ at_ms, phase }) => `  ${(at_ms / 1000).toFixed(1)} s  ${phase}`),
    ...(test_call.message === null ? [] : [test_call.message]),
    ...(test_call.text === null ? [] : [test_call.text]),
    ...saved.map(({ path, content_type, size_bytes }) => `${path}  ${content_type}, ${size_bytes} bytes`),
    ...(test_call.cost === null
      ? []
      : [`A caller pays ${test_call.cost} ${plan.currency} (${unitsLine(test_call.units)}).`]),
    ...(test_call.upstream_cost === null
      ? []
      : [`The provider reports a charge of ${test_call.upstream_cost.amount} ${test_call.upstream_cost.currency}.`]),
  ];
  return { json, text: lines.join('\n'), exit_code: test_call.outcome === 'done' ? 0 : 1 };
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

function unitsLine(units: TestCall['units']): string {
  return Object.entries(units)
    .map(([unit, count]) => `${unit} ${count}`)
    .join(', ');
}
