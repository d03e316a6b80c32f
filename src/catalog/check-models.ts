import { parseDuration } from '../lib/duration.ts';
import { showValue } from '../lib/show-value.ts';
import type { OptionProblem } from './check-settings.ts';
import { checkField, checkPrices, checkRows } from './check-prices.ts';
import { field_reference, lookup_key, spread_key, whole_input } from './input.ts';
import { compileSchema, fieldsOf, own, schemaMistakes, type InputFields } from './input-schema.ts';
import { isMediaKind, isObject, tool_units, type Json, type JsonObject, type Kind, type Unit } from './model.ts';
import { mediaFieldsOf, mediaMistakes } from './media-fields.ts';
import type { Path } from './problem.ts';
import type { Report } from './report.ts';
import type { ModelEntry, RouteEntry } from './schema.ts';
import { suggestion } from './shape.ts';

/** Names that routes may use. */
export type Names = {
  providers: ReadonlyMap<string, ProviderFacts>;
  currencies: readonly string[];
};

export type ProviderFacts = {
  /** Tells whether it can run models of this kind. `told`: it cannot, and a message about the provider says why. */
  serves(kind: Kind): boolean | 'told';
  adapter: string;
  /** The source of its key, if the key is missing. */
  missing?: string | undefined;
  optionProblems(
    kind: Kind,
    options: JsonObject,
    output: JsonObject,
    input_fields?: readonly string[],
  ): OptionProblem[];
  /** Tells whether it takes files of the caller's. */
  takesMedia(): boolean;
};

/** Checks the models of a file beyond their shape. Those with a wrong shape are left alone. */
export function checkModels(models: readonly unknown[], names: Names, report: Report): void {
  const seen = new Map<string, number>();
  for (const [index, value] of models.entries()) {
    const at = ['models', index];
    const misshapen = report.hasError(at);
    const id = isObject(value) ? own(value, 'id') : undefined;
    if (typeof id === 'string') {
      const before = seen.get(id);
      if (before !== undefined) report.error([...at, 'id'], `${id} is the id of models[${before}] already.`);
      else seen.set(id, index);
    }
    if (!misshapen) checkModel(value as ModelEntry, names, at, report); // its shape has been checked
  }
  checkAliases(models, seen, report);
}

/** An alias that names several models names none; an id goes before it. */
function checkAliases(models: readonly unknown[], ids: ReadonlyMap<string, number>, report: Report): void {
  const seen = new Map<string, string>();
  for (const [index, value] of models.entries()) {
    const { id, aliases } = isObject(value) ? value : {};
    if (typeof id !== 'string' || !Array.isArray(aliases)) continue;
    for (const [position, alias] of aliases.entries()) {
      if (typeof alias !== 'string') continue;
      const at = ['models', index, 'aliases', position];
      const before = seen.get(alias);
      if (ids.has(alias)) report.warn(at, `${alias} is the id of a model, which is meant by it.`);
      else if (before !== undefined)
        report.warn(at, `${alias} is an alias of ${before}, too: who sends it is asked which of them is meant.`);
      seen.set(alias, id);
    }
  }
}

function checkModel(model: ModelEntry, names: Names, at: Path, report: Report): void {
  checkKind(model, at, report);
  const fields = isMediaKind(model.kind) ? checkInputSchema(model, [...at, 'input_schema'], report) : undefined;
  checkPrices(model, fields, at, report);
  checkOutputTypes(model, at, report);
  checkRoutes(model, fields, names, at, report);
  checkEnd(model, at, report);
}

function checkEnd({ id, retires, replaced_by }: ModelEntry, at: Path, report: Report): void {
  if (replaced_by === undefined) return;
  if (retires === undefined) report.error([...at, 'replaced_by'], 'has no meaning without `retires`.', 'key');
  if (replaced_by === id) report.error([...at, 'replaced_by'], 'is the model itself.');
}

/** Models make what their kind says; only what hears may answer in writing. */
function checkOutputTypes({ kind, output_types }: ModelEntry, at: Path, report: Report): void {
  const [type] = output_types ?? [];
  if (type === undefined || type === kind || (kind === 'audio' && type === 'text')) return;
  report.error([...at, 'output_types'], `${kind} models do not make ${type}.`);
}

/** Settings that mean something for the other kinds only. */
function checkKind(model: ModelEntry, at: Path, report: Report): void {
  const of_media = ['input_schema', 'estimate'] as const;
  const of_chat = ['max_output_tokens', 'default_output_tokens'] as const;
  const foreign = [...(isMediaKind(model.kind) ? [] : of_media), ...(model.kind === 'chat' ? [] : of_chat)];
  for (const setting of foreign) {
    if (model[setting] !== undefined) report.error([...at, setting], `has no meaning for ${model.kind} models.`, 'key');
  }
  const { max_output_tokens, default_output_tokens } = model;
  if ((default_output_tokens ?? 0) > (max_output_tokens ?? Infinity)) {
    report.error([...at, 'default_output_tokens'], `is larger than max_output_tokens (${max_output_tokens}).`);
  }
}

function checkInputSchema(model: ModelEntry, at: Path, report: Report): InputFields | undefined {
  const schema = model.input_schema;
  if (schema === undefined) {
    report.error(at, `is required for ${model.kind} models.`);
    return undefined;
  }
  const mistakes = schemaMistakes(schema);
  for (const { path, message } of mistakes) report.error([...at, ...path], message);
  for (const { path, message } of mediaMistakes(schema)) report.error([...at, ...path], message);
  if (mistakes.length > 0) return undefined;
  const fields = fieldsOf(schema);
  checkDefaults(schema, fields, at, report);
  return fields;
}

/** Defaults are filled in after validation, so a wrong one would never be caught. */
function checkDefaults(schema: JsonObject, fields: InputFields, at: Path, report: Report): void {
  const validate = compileSchema(schema, true);
  for (const name of fields.names) {
    const value = fields.keyword(name, 'default');
    if (value === undefined || validate({ [name]: value })) continue;
    const pointer = `/${name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    const [wrong] = (validate.errors ?? []).filter((error) => `${error.instancePath}/`.startsWith(`${pointer}/`));
    const path = [...at, 'properties', name, 'default'];
    if (wrong) report.error(path, `${showValue(value)} does not fit the field's own schema: ${wrong.message}.`);
  }
}

function checkRoutes(model: ModelEntry, fields: InputFields | undefined, names: Names, at: Path, report: Report): void {
  const seen = new Set<string>();
  for (const [index, route] of model.routes.entries()) {
    const here = [...at, 'routes', index];
    if (route.id !== undefined && seen.has(route.id)) {
      report.error([...here, 'id'], `${route.id} is the id of an earlier route of this model already.`);
    }
    if (route.id !== undefined) seen.add(route.id);
    checkProviderOf(model, route, names, here, report);
    checkTimeout(route, here, report);
    checkMedia(model, route, names, here, report);
    checkOptions(model, { ...route, input_fields: runFields(route, fields) }, names, here, report);
    checkCost(model, route, { fields, names, at: here }, report);
    if (route.input === undefined) continue;
    if (!isMediaKind(model.kind)) {
      report.error([...here, 'input'], `has no meaning for ${model.kind} models.`, 'key');
    } else checkMapping(route.input, fields, [...here, 'input'], report);
  }
  const usable = model.routes.some(({ provider }) => {
    const configured = names.providers.get(provider);
    return configured?.missing === undefined && configured?.serves(model.kind) === true;
  });
  if (!usable && !report.hasError([...at, 'routes'])) report.warn(at, 'has no usable route and is not offered.');
}

function checkProviderOf(model: ModelEntry, route: RouteEntry, names_of_file: Names, at: Path, report: Report): void {
  const provider = names_of_file.providers.get(route.provider);
  if (!provider) {
    const names = [...names_of_file.providers.keys()];
    const hint = suggestion(route.provider, names) ?? `There are: ${names.join(', ')}.`;
    report.error([...at, 'provider'], `there is no provider ${showValue(route.provider)}. ${hint}`);
  } else if (provider.missing !== undefined) {
    report.warn([...at, 'provider'], `${provider.missing} is not set: this route is not used.`);
  } else if (provider.serves(model.kind) === false) {
    const message = `adapter ${provider.adapter} cannot run ${model.kind} models: this route is not used.`;
    report.warn([...at, 'provider'], message);
  }
}

/** Returns the names of the fields that a run of this route may have; undefined if they cannot be known. */
function runFields({ input }: RouteEntry, fields: InputFields | undefined): string[] | undefined {
  if (!fields) return undefined;
  if (input === undefined) return [...fields.names];
  const mapped = Object.keys(input).filter((name) => name !== spread_key);
  return mapped.length < Object.keys(input).length ? [...fields.names, ...mapped] : mapped;
}

/**
 * Checks the options of a route. A wrong value is a mistake; an unknown option is a warning, since it may be
 * of another version.
 */
function checkOptions(
  { kind, price = [] }: ModelEntry,
  { provider, options = {}, output = {}, input_fields }: RouteEntry & { input_fields: readonly string[] | undefined },
  names: Names,
  at: Path,
  report: Report,
): void {
  for (const problem of names.providers.get(provider)?.optionProblems(kind, options, output, input_fields) ?? []) {
    const path = [...at, ...(problem.at ?? ['options']), problem.field];
    if (!problem.known_names) report.error(path, `${problem.message}.`);
    else
      report.warn(path, `${problem.message}. ${suggestion(problem.field, problem.known_names) ?? ''}`.trimEnd(), 'key');
  }
  checkHostedTools(price, options, at, report);
}

/** Nobody would pay for them. */
function checkHostedTools(
  price: readonly { unit: Unit }[],
  { hosted_tools }: JsonObject,
  at: Path,
  report: Report,
): void {
  for (const tool of Array.isArray(hosted_tools) ? hosted_tools : []) {
    if (!tool_units.some((unit) => unit === tool) || price.some(({ unit }) => unit === tool)) continue;
    const message = `the model has no price for ${showValue(tool)}: callers' tools of this kind are left out.`;
    report.warn([...at, 'options', 'hosted_tools'], message, 'key');
  }
}

/** A caller's file that the upstream never gets would be a surprise that is paid for. */
function checkMedia(model: ModelEntry, route: RouteEntry, names: Names, at: Path, report: Report): void {
  const [field] = isMediaKind(model.kind) ? mediaFieldsOf(model.input_schema ?? {}) : [];
  const provider = names.providers.get(route.provider);
  if (!field || !provider || provider.serves(model.kind) !== true || provider.takesMedia()) return;
  const message = `adapter ${provider.adapter} takes no files, but the input_schema has the field ${field.name} for them.`;
  report.error([...at, 'provider'], message);
}

function checkTimeout(route: RouteEntry, at: Path, report: Report): void {
  const { start, total } = route.timeout ?? {};
  if (start === undefined || total === undefined) return;
  if ((parseDuration(start) ?? 0) <= (parseDuration(total) ?? 0)) return;
  report.error([...at, 'timeout', 'start'], `must not be longer than total (${total}), which begins at the same time.`);
}

function checkCost(
  model: ModelEntry,
  route: RouteEntry,
  { fields, names, at }: { fields: InputFields | undefined; names: Names; at: Path },
  report: Report,
): void {
  const rows = route.cost ?? [];
  checkRows(rows, { kind: model.kind, fields, at: [...at, 'cost'] }, report);
  for (const [index, { unit, amount, currency }] of rows.entries()) {
    if (currency !== undefined && !names.currencies.includes(currency)) {
      const message = `${showValue(currency)} is not one of the currencies: ${names.currencies.join(', ')}.`;
      report.error([...at, 'cost', index, 'currency'], message);
    }
    if (Number(amount) === 0 || model.price?.some((row) => row.unit === unit)) continue;
    report.warn([...at, 'cost', index], `the upstream charges for ${unit}, but the model's price has no row for it.`);
  }
}

function checkMapping(value: Json, fields: InputFields | undefined, at: Path, report: Report): void {
  if (typeof value === 'object' && value !== null) {
    for (const [key, below] of Object.entries(value)) {
      const here = [...at, Array.isArray(value) ? Number(key) : key];
      if (key !== spread_key) checkMapping(below, fields, here, report);
      else if (below !== whole_input) report.error(here, `must be ${whole_input}.`);
    }
    if (isObject(value) && Object.hasOwn(value, lookup_key)) checkLookup(value, fields, at, report);
    return;
  }
  if (typeof value !== 'string' || !value.startsWith(whole_input)) return;
  const field = field_reference.exec(value)?.[1];
  if (field === undefined) report.error(at, 'must be $input.FIELD; the whole input is copied by `$spread: $input`.');
  else if (fields) checkField(field, fields, at, report);
}

/** A value of the field that stands nowhere is left out, and the upstream takes its own default for it. */
function checkLookup(table: JsonObject, fields: InputFields | undefined, at: Path, report: Report): void {
  const entry = table[lookup_key];
  const field = typeof entry === 'string' ? field_reference.exec(entry)?.[1] : undefined;
  if (field === undefined) {
    report.error([...at, lookup_key], 'must be $input.FIELD, whose value is looked up beside it.');
    return;
  }
  const allowed = fields?.keyword(field, 'enum');
  if (!Array.isArray(allowed)) return;
  const listed = Object.keys(table).filter((key) => key !== lookup_key);
  const missing = allowed.map(String).filter((value) => !listed.includes(value));
  if (missing.length > 0) report.warn(at, `has no entry for ${missing.join(', ')}, which ${field} may be.`);
  for (const key of listed) {
    if (!allowed.map(String).includes(key)) report.error([...at, key], `is not a value of ${field}.`, 'key');
  }
}
