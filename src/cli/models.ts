import type { Command } from 'commander';
import { endText } from '../catalog/dated.ts';
import { keyName } from '../catalog/default.ts';
import { isMediaKind, type CostRow, type Model, type PriceRow, type PriceSource } from '../catalog/model.ts';
import { counted } from '../lib/counted.ts';
import { says, table, type CommandResult } from './command.ts';
import { surveyedModel, survey, type SurveyedModel, type SurveyedRoute } from './model-survey.ts';
import { checkCommand } from './models-check.ts';
import { importCommands } from './models-import.ts';
import { testCommand } from './models-test.ts';
import { briefPrice, showRow } from './price-words.ts';

export function modelCommands(models: Command): void {
  says(models.enablePositionalOptions(), listAll);
  says(models.command('show <model>').description('one model: prices and where they are from, routes, input'), showOne);
  testCommand(models);
  checkCommand(models);
  importCommands(models);
}

async function listAll(): Promise<CommandResult> {
  const { surveyed, catalog, providers } = await survey();
  const keys = [...providers].map(([name, entry]) => ({
    name,
    key: keyName(entry),
    found: catalog.providers.has(name),
  }));
  const json = { models: surveyed.map(described), providers: keys };
  const rows = surveyed
    .filter(({ usable }) => usable)
    .map(({ model, routes }) => [
      model.id,
      model.kind,
      briefPrice(model, catalog.settings.base_currency),
      routes.flatMap(({ route, usable }) => (usable ? [route.id] : [])).join(', '),
    ]);
  const lines = [table([['model', 'kind', 'price', 'routes'], ...rows])];
  const wanting = missingKeys(surveyed);
  if (wanting.length > 0) lines.push('', 'More models with one of these keys in the environment:', table(wanting));
  return { json, text: lines.join('\n') };
}

function described({ origin, model, routes, usable }: SurveyedModel) {
  return {
    id: model.id,
    kind: model.kind,
    name: model.name,
    origin,
    usable,
    routes: routes.map(({ route, usable: is_usable, missing }) => ({
      id: route.id,
      provider: route.provider,
      upstream_model: route.upstream_model,
      usable: is_usable,
      ...(missing !== undefined && { missing }),
    })),
  };
}

/** Each key that is not there with what it would add: models, and further routes of those that are there. */
function missingKeys(surveyed: readonly SurveyedModel[]): string[][] {
  const all = surveyed.flatMap(({ model, routes, usable }) =>
    routes.flatMap(({ missing }) => (missing === undefined ? [] : [{ missing, id: model.id, usable }])),
  );
  return [...new Set(all.map(({ missing }) => missing))].map((key) => {
    const own = all.filter(({ missing }) => missing === key);
    const models = new Set(own.flatMap(({ id, usable }) => (usable ? [] : [id])));
    const routes = new Set(own.flatMap(({ id, usable }) => (usable ? [id] : [])));
    const parts = [
      ...(models.size > 0 ? [`${counted(models.size, 'model')}: ${[...models].join(', ')}`] : []),
      ...(routes.size > 0 ? [`a further route for ${[...routes].join(', ')}`] : []),
    ];
    return [`  ${key}`, parts.join('; ')];
  });
}

async function showOne(id = ''): Promise<CommandResult> {
  const { surveyed, catalog } = await survey();
  const surveyed_model = surveyedModel(surveyed, id);
  const { model, routes } = surveyed_model;
  const { base_currency } = catalog.settings;
  const json = {
    ...described(surveyed_model),
    description: model.description,
    price: model.price,
    price_source: model.price_source ?? null,
    retires: model.retirement?.on ?? null,
    replaced_by: model.retirement?.replaced_by ?? null,
    currency: base_currency,
    limits: model.limits,
    capabilities: model.capabilities,
    input_schema: model.input_schema,
    routes: routes.map(({ route, usable, missing }) => ({
      id: route.id,
      provider: route.provider,
      upstream_model: route.upstream_model,
      usable,
      missing: missing ?? null,
      cost: route.cost,
      cost_source: route.cost_source ?? null,
      timeout_ms: route.timeout_ms,
      options: route.options,
    })),
  };
  const lines = [
    `${model.id}  ${model.kind}  ${model.name}`,
    ...(model.description === '' ? [] : [model.description]),
    ...(model.retirement ? [`It ${endText(model.retirement)}`] : []),
    '',
    `Price${sourceOf(model.price_source)}:`,
    ...rowsOf(model.price, base_currency),
    ...routes.flatMap((one) => ['', ...routeLines(one, base_currency)]),
    ...fieldLines(model),
  ];
  return { json, text: lines.join('\n') };
}

function sourceOf(source: PriceSource | undefined): string {
  return source ? ` (${source.url}, ${source.date})` : '';
}

function rowsOf(rows: readonly PriceRow[], currency: string): string[] {
  return rows.length === 0 ? ['  nothing'] : rows.map((row) => `  ${showRow(row, currency)}`);
}

function routeLines({ route, usable, missing }: SurveyedRoute, currency: string): string[] {
  const state = usable ? 'usable' : missing === undefined ? 'not usable' : `needs ${missing}`;
  const cost = route.cost.map((row: CostRow) => `  ${showRow(row, row.currency || currency)}`);
  return [
    `Route ${route.id}: ${route.provider}, ${route.upstream_model}: ${state}`,
    ...(cost.length === 0 ? [] : [`  The upstream charges${sourceOf(route.cost_source)}:`, ...cost]),
  ];
}

/** The fields of the input, one line each. */
function fieldLines({ kind, input_schema }: Model): string[] {
  if (!isMediaKind(kind)) return [];
  const { required } = input_schema;
  const needed = Array.isArray(required) ? required : [];
  const rows = Object.entries(input_schema['properties'] ?? {}).map(([name, field]) => [
    `  ${name}`,
    needed.includes(name) ? 'required' : '',
    field['default'] === undefined ? '' : `default ${JSON.stringify(field['default'])}`,
    Array.isArray(field['enum']) ? field['enum'].map(String).join(', ') : String(field['title'] ?? field['type'] ?? ''),
  ]);
  return rows.length === 0 ? [] : ['', 'Input:', table(rows)];
}
