import { readFile } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { isObject, type Json } from '../catalog/model.ts';
import type { ModelEntry } from '../catalog/schema.ts';
import { adapters } from '../providers/index.ts';
import { DocumentError, type ChosenField, type DocumentField } from '../providers/offer/document.ts';
import type { Adapter } from '../providers/provider.ts';
import { editFile } from './catalog-file.ts';
import { CommandError, says, table, type CommandResult } from './command.ts';
import { providerEntry } from './models-import-list.ts';

type Options = { provider?: string; id?: string; set?: string[]; price?: string; into?: string; write?: boolean };

/** Adds the command that makes a model of a document, for each kind of document that there is. */
export function documentCommand(imports: Command): void {
  const nouns = new Set(Object.values(adapters).flatMap(({ documents }: Adapter) => documents?.noun ?? []));
  for (const noun of nouns) {
    const one = imports.command(`${noun} <file>`).description(`a model of a ${noun} that you have`);
    one.option('--provider <name>', 'the provider in medley.yaml that runs it');
    one.option('--id <id>', 'after the name of the provider and a slash; default: the name of the file');
    one.option('--set <fields...>', 'fields that callers set, such as prompt=6.text; default: the usual ones');
    one.option('--price <amount>', 'for each result, in the base currency', '0');
    one.option('--into <file>', 'the file; default: that of MEDLEY_CONFIG, or medley.yaml');
    one.option('--write', 'write the file; without it, only show what would be added');
    says(one, (source = '') => importDocument(noun, source, one.opts()));
  }
}

async function importDocument(noun: string, source: string, options: Options): Promise<CommandResult> {
  const { provider, price = '0' } = options;
  if (provider === undefined)
    throw new CommandError(`Say by --provider which provider of medley.yaml runs the ${noun}.`, 2);
  if (!/^\d{1,9}(?:\.\d{1,12})?$/.test(price))
    throw new CommandError(`--price must be a decimal such as 0.05; not "${price}".`, 2);
  const file = await editFile(options.into);
  const entry = await providerEntry(file, provider);
  const adapter = entry && adapters[entry.adapter];
  const { documents } = adapter ?? {};
  if (!adapter || documents?.noun !== noun) throw new CommandError(`${provider} runs no ${noun}.`, 2);
  const document = await readJson(source);
  const id =
    options.id ??
    basename(source)
      .replace(/\.json$/i, '')
      .replaceAll(/[^A-Za-z0-9._-]+/g, '-');
  try {
    const { kind, fields } = documents.read(document);
    const chosen = options.set
      ? options.set.map((text) => chosenField(text, fields))
      : fields.filter(({ is_suggested }) => is_suggested);
    const whole = documents.entry(document, { id, kind, fields: chosen }, { provider, prefix: `${provider}/` });
    const path = relative(dirname(file.path), resolve(source));
    const model = withPath(whole, adapter.file_options ?? [], document, path);
    const priced: ModelEntry = { ...model, price: [{ unit: kind === 'image' ? 'image' : 'request', amount: price }] };
    if (entry && !file.text.has(provider)) file.text.addProvider(provider, entry);
    const change = file.text.putModel(priced, provider);
    const { warnings } = options.write === true ? await file.save() : { warnings: [] };
    return importResult({ file: file.path, model: priced, change, fields, written: options.write === true, warnings });
  } catch (error) {
    throw error instanceof DocumentError ? new CommandError(`${source}: ${error.message}`) : error;
  }
}

async function readJson(source: string): Promise<Json> {
  try {
    return JSON.parse(await readFile(source, 'utf8'));
  } catch (error) {
    throw new CommandError(`${source} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function chosenField(text: string, fields: readonly DocumentField[]): ChosenField {
  const [, name, target] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  const maximum = fields.find((field) => field.target === target)?.maximum;
  if (name !== undefined && target !== undefined) return { name, target, ...(maximum !== undefined && { maximum }) };
  throw new CommandError(`--set takes NAME=NODE.FIELD, such as prompt=6.text; not "${text}".`, 2);
}

/** The document stays where it is: the route names its file. */
function withPath(entry: ModelEntry, names: readonly string[], document: Json, path: string): ModelEntry {
  const routes = entry.routes.map(({ options = {}, ...route }) => {
    const named = names.filter((name) => options[name] === document).map((name) => [name, path] as const);
    return { ...route, options: { ...options, ...Object.fromEntries(named) } };
  });
  return { ...entry, routes };
}

type Verdict = {
  file: string;
  model: ModelEntry;
  change: { kind: string };
  fields: readonly DocumentField[];
  written: boolean;
  warnings: readonly string[];
};

function importResult({ file, model, change, fields, written, warnings }: Verdict): CommandResult {
  const inputs = model.routes[0]?.options?.['inputs'];
  const targets = isObject(inputs) ? Object.values(inputs).flat() : [];
  const rows = fields.map(({ target, part, field, type, value, name }) => [
    targets.includes(target) ? 'yes' : '',
    `${name}=${target}`,
    `${part}: ${field}`,
    type,
    String(value).slice(0, 40),
  ]);
  const lines = [
    table([['set', 'field', 'in', 'type', 'value'], ...rows]),
    '',
    written
      ? `${model.id} is ${change.kind} in ${file}. medley reload takes it.`
      : `${model.id} would be ${change.kind} in ${file}. Nothing was written; --write does.`,
    ...warnings.map((warning) => `warning: ${warning}`),
  ];
  return { json: { file, id: model.id, change: change.kind, written, fields, warnings }, text: lines.join('\n') };
}
