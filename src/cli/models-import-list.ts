import type { Command } from 'commander';
import { surveyCatalog } from '../catalog/catalog.ts';
import { readCommandConfig } from '../app/running.ts';
import type { Change } from '../catalog/lists/edit.ts';
import { entryOf } from '../catalog/lists/entry.ts';
import { list_forms, type ListForm } from '../catalog/lists/index.ts';
import type { ListedModel } from '../catalog/lists/listed.ts';
import { factorOf } from '../catalog/margin.ts';
import { providerPresets, routeOptions } from '../catalog/presets.ts';
import type { ModelEntry, ProviderEntry } from '../catalog/schema.ts';
import { counted } from '../lib/counted.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import { editFile, type EditedFile } from './catalog-file.ts';
import { CommandError, says, type CommandResult } from './command.ts';
import { readListAt } from './list-source.ts';

type Options = {
  from?: string;
  provider?: string;
  prefix?: string;
  only?: string[];
  markup?: string;
  into?: string;
  write?: boolean;
};

/** Adds a command for each form of list. */
export function listCommands(imports: Command): void {
  for (const form of Object.keys(list_forms) as ListForm[]) {
    const is_own = form === 'openai-compatible';
    const one = imports
      .command(`${form} ${is_own ? '[source]' : '<source>'}`)
      .description(
        is_own ? 'the models of a server; source: a file or a URL, else the one of --provider' : 'a file or a URL',
      );
    one.option('--provider <name>', 'the provider in medley.yaml that runs the models');
    one.option('--from <name>', "the provider's name in the list, if it has several");
    one.option('--only <pattern...>', 'models to take, such as "gpt-6*"; default: all');
    one.option('--prefix <text>', 'before the ids; default: the provider and a slash');
    one.option('--markup <percent>', 'what you charge above the price, such as 20%', '0%');
    one.option('--into <file>', 'the file; default: that of MEDLEY_CONFIG, or medley.yaml');
    one.option('--write', 'write the file; without it, only show what would change');
    says(one, (source?: string) => importList(form, source, one.opts()));
  }
}

async function importList(form: ListForm, source: string | undefined, options: Options): Promise<CommandResult> {
  const margin = marginOf(options.markup ?? '0%');
  const provider = options.provider ?? (form === 'openrouter' ? form : options.from);
  if (provider === undefined)
    throw new CommandError('Say by --provider which provider of medley.yaml runs the models.', 2);
  const file = await editFile(options.into);
  const entry = await providerEntry(file, provider);
  const place = source ?? `${entry?.base_url ?? ''}/models`;
  const listed = chosen(await readListAt(form, place, source === undefined ? entry : undefined), options);
  if (entry && !file.text.has(provider)) file.text.addProvider(provider, entry);
  const today = new Date().toISOString().slice(0, 10);
  const drafts = listed.map((model) =>
    entryOf(model, {
      provider,
      prefix: options.prefix ?? (form === 'openrouter' ? '' : `${provider}/`),
      margin,
      options: entry ? routeOptions(entry) : {},
      source: /^https?:/.test(place) ? { url: place, date: today } : undefined,
    }),
  );
  const { entries, doubled } = oncePerId(drafts.filter((one) => one !== undefined));
  if (entries.length === 0)
    throw new CommandError(`${place} has no model that was asked for, of a kind that can be imported.`);
  const changes = entries.map((one) => file.text.putModel(one, provider));
  const unpriced = entries.filter(({ price }) => price === undefined).map(({ id }) => id);
  const { warnings } = options.write === true ? await file.save() : { warnings: [] };
  return importResult({
    file,
    changes,
    doubled,
    left_out: drafts.length - entries.length - doubled.length,
    unpriced,
    written: options.write === true,
    warnings,
  });
}

/** The first entry of each id; `doubled` says which others would have the same. */
function oncePerId(drafts: readonly ModelEntry[]): { entries: ModelEntry[]; doubled: string[] } {
  const by_id = new Map<string, ModelEntry>();
  const doubled: string[] = [];
  for (const draft of drafts) {
    const first = by_id.get(draft.id);
    if (first) doubled.push(`${upstreamOf(draft)} would be ${draft.id} too, as ${upstreamOf(first)} is`);
    else by_id.set(draft.id, draft);
  }
  return { entries: [...by_id.values()], doubled };
}

function upstreamOf({ id, routes }: ModelEntry): string {
  return routes[0]?.upstream_model ?? id;
}

/** `20%` as the factor `1.2`. Throws CommandError. */
export function marginOf(markup: string): string {
  const factor = factorOf(markup);
  if (factor === undefined) throw new CommandError(`--markup must be a percentage such as 20%; not "${markup}".`, 2);
  return factor;
}

/** Returns what the file says of a provider, else the default catalogue, else what is known of its name. */
export async function providerEntry(file: EditedFile, name: string): Promise<ProviderEntry | undefined> {
  const config_file = file.text.has(name) ? file.path : readCommandConfig().config_file;
  const { providers } = await surveyCatalog({ config_file, ...adapterFacts(adapters) });
  const entry = providers.get(name) ?? providerPresets()[name];
  if (entry) return entry;
  const names = Object.keys(providerPresets()).join(', ');
  throw new CommandError(
    `There is no provider ${name} in ${file.path}. Add it there, or name one of these: ${names}.`,
    2,
  );
}

function chosen(listed: readonly ListedModel[], { from, only }: Options): ListedModel[] {
  const of_provider = from === undefined ? [...listed] : listed.filter(({ provider }) => provider === from);
  const names = new Set(listed.flatMap(({ provider }) => provider ?? []));
  if (of_provider.length === 0) {
    throw new CommandError(`The list has no provider ${from}. It has: ${[...names].toSorted().join(', ')}.`, 2);
  }
  if (from === undefined && names.size > 1) {
    throw new CommandError(
      `The list has ${names.size} providers: say by --from which one, such as ${[...names].slice(0, 5).join(', ')}.`,
      2,
    );
  }
  const patterns = (only ?? ['*']).map(patternOf);
  return of_provider.filter(({ upstream_model }) => patterns.some((pattern) => pattern.test(upstream_model)));
}

/** `*` stands for any characters. */
export function patternOf(text: string): RegExp {
  return new RegExp(
    `^${text
      .split('*')
      .map((part) => part.replaceAll(/[.+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*')}$`,
  );
}

type Verdict = {
  file: EditedFile;
  changes: readonly Change[];
  doubled: readonly string[];
  left_out: number;
  unpriced: readonly string[];
  written: boolean;
  warnings: readonly string[];
};

const signs = { added: '+', changed: '~', unchanged: '=' } as const;

function importResult({ file, changes, doubled, left_out, unpriced, written, warnings }: Verdict): CommandResult {
  const count = (kind: Change['kind']) => changes.filter((change) => change.kind === kind).length;
  const lines = [
    ...changeLines(changes),
    ...doubled.map((reason) => `  ${reason}: it is left out. Choose by --only, or another --prefix.`),
    `${count('added')} added, ${count('changed')} changed, ${count('unchanged')} unchanged, ${left_out} of other kinds left out.`,
    ...(unpriced.length === 0
      ? []
      : [
          `${counted(unpriced.length, 'model')} without a price, which would be free: ${unpriced.slice(0, 10).join(', ')}${unpriced.length > 10 ? ', …' : ''}.`,
        ]),
    ...savedLines(file, { written, warnings }),
  ];
  const json = { file: file.path, written, changes, doubled, left_out, unpriced, warnings };
  return { json, text: lines.join('\n') };
}

/** A line for each model that is added or changes. */
export function changeLines(changes: readonly Change[]): string[] {
  const shown = changes.filter(({ kind }) => kind !== 'unchanged');
  return shown.map(({ id, kind, lines }) => `${signs[kind]} ${id}${lines.length === 0 ? '' : `: ${lines.join('; ')}`}`);
}

/** Says whether the file is written, and how to go on. */
export function savedLines(
  { path }: EditedFile,
  { written, warnings }: { written: boolean; warnings: readonly string[] },
): string[] {
  return [
    ...warnings.map((warning) => `warning: ${warning}`),
    written
      ? `${path} is written. medley reload makes a running service use it.`
      : `Nothing is written. --write writes ${path}.`,
  ];
}
