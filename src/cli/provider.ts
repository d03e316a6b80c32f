import type { Command } from 'commander';
import { defaultModels, defaultProviders, keyName } from '../catalog/default.ts';
import { providerPresets } from '../catalog/presets.ts';
import { program_name } from '../lib/program-name.ts';
import type { ProviderEntry } from '../catalog/schema.ts';
import { adapters } from '../providers/index.ts';
import { editFile } from './catalog-file.ts';
import { CommandError, says, table, type CommandResult } from './command.ts';

export function providerCommands(provider: Command): void {
  says(provider.command('presets').description('providers that can be added by name'), listPresets);
  const add = provider.command('add <name>').description('write a provider that is known by name into medley.yaml');
  add.option('--as <name>', 'its name in the file; default: the same');
  add.option('--base-url <url>', 'another address, such as a port of your own');
  add.option('--into <file>', 'the file; default: that of MEDLEY_CONFIG, or medley.yaml');
  says(add, (name = '') => addProvider(name, add.opts()));
}

/** Counts the models of the default catalogue with a route over this provider. */
function shippedModels(name: string): number {
  return defaultModels().filter(({ routes }) => routes.some(({ provider }) => provider === name)).length;
}

/** Models of other servers are in their own list. */
function listStep(entry: ProviderEntry, own_name: string): string {
  const source = sourceOf(entry);
  return source === undefined
    ? ''
    : `\nIts models: ${program_name} models import ${source} --provider ${own_name} --write`;
}

async function listPresets(): Promise<CommandResult> {
  const entries = Object.entries(presets());
  const json = { providers: entries.map(([name, entry]) => ({ name, ...entry })) };
  const rows = entries.map(([name, entry]) => [name, entry.base_url ?? '', keyName(entry)]);
  return { json, text: table([['Name', 'Address', 'Key'], ...rows]) };
}

function presets() {
  return { ...defaultProviders(), ...providerPresets() };
}

async function addProvider(
  name: string,
  options: { as?: string; baseUrl?: string; into?: string },
): Promise<CommandResult> {
  const entry = presets()[name];
  if (!entry) {
    throw new CommandError(
      `There is no preset ${name}. There are: ${Object.keys(presets()).join(', ')}. Others are written by hand.`,
      2,
    );
  }
  const file = await editFile(options.into);
  const own_name = options.as ?? name;
  if (file.text.has(own_name)) throw new CommandError(`${file.path} has a provider ${own_name} already.`);
  file.text.addProvider(own_name, { ...entry, ...(options.baseUrl !== undefined && { base_url: options.baseUrl }) });
  const is_shipped = defaultProviders()[name] !== undefined && own_name === name;
  if (is_shipped) file.text.offerShipped(name);
  await file.save();
  const key = keyName(entry);
  const next = is_shipped ? `\n${shippedModels(name)} of its models are offered.` : listStep(entry, own_name);
  return {
    json: { file: file.path, name: own_name, key: key === '' ? null : key },
    text: `${own_name} is in ${file.path}.${key === '' ? '' : ` Its key belongs in ${key}.`}${next}`,
  };
}

/** Returns what models of a provider are imported from; undefined if they come with Medley, or are written by hand. */
function sourceOf({ adapter, base_url }: ProviderEntry): string | undefined {
  const { documents, openChat } = adapters[adapter] ?? {};
  if (documents) return `${documents.noun} FILE`;
  return base_url !== undefined && openChat ? 'openai-compatible' : undefined;
}
