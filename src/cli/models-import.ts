import { writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { writeDraft, type Draft } from '../catalog/draft.ts';
import { falRow } from '../catalog/lists/fal-prices.ts';
import type { MediaKind } from '../catalog/model.ts';
import { resolveSecret } from '../config.ts';
import { described, DescriptionError, type Describe } from '../providers/describe.ts';
import { fal_prices_url } from '../providers/fal-prices.ts';
import { CommandError, says, type CommandResult } from './command.ts';
import { documentCommand } from './models-import-document.ts';
import { falPrices, falPricesCommand, pricedAt } from './models-import-fal.ts';
import { listCommands, marginOf } from './models-import-list.ts';

export function importCommands(models: Command): void {
  const command = models
    .command('import')
    .description("models for medley.yaml: one from its provider's own description, or many from a list");
  for (const [provider, { read, base_url, has_prices }] of Object.entries(described)) {
    const one = command.command(`${provider} <model>`).description(`such as ${provider} owner/name`);
    one.option('--base-url <url>', 'address of the provider', base_url).option('--out <file>', 'file to write it to');
    one.option('--kind <kind>', 'image, video or audio, if the description does not say');
    if (has_prices) {
      one.option('--markup <percent>', 'what you charge above the price, such as 20%', '0%');
      one.option('--prices-url <url>', 'address of the prices, which a key opens', fal_prices_url);
    }
    says(one, (name = '') => importOne(read, name, one.opts()));
  }
  documentCommand(command);
  falPricesCommand(command);
  listCommands(command);
}

type Options = { baseUrl?: string; out?: string; kind?: string; markup?: string; pricesUrl?: string };

async function importOne(read: Describe, name: string, options: Options): Promise<CommandResult> {
  if (!/^[\w.-]+(\/[\w.-]+)+$/.test(name)) throw new CommandError(`${name} must have the form owner/name.`, 2);
  const given_kind = readKind(options.kind);
  const margin = marginOf(options.markup ?? '0%');
  const draft = await read(name, (options.baseUrl ?? '').replace(/\/+$/, ''), given_kind)
    .then((described_model) => withPrice(described_model, margin, options.pricesUrl))
    .catch((error: unknown) => {
      throw error instanceof DescriptionError ? new CommandError(error.message) : error;
    });
  const text = writeDraft(draft, new Date().toISOString().slice(0, 10));
  const { id, kind, input_schema } = draft;
  const json = { id, kind, input_schema, yaml: `${text}\n`, file: null };
  if (options.out === undefined) return { json, text };
  const file = resolve(options.out);
  await writeFile(file, `${text}\n`, { flag: 'wx' }).catch((error: unknown) => {
    throw new CommandError(`${file} could not be written: ${error instanceof Error ? error.message : String(error)}`);
  });
  const is_priced = draft.priced && 'price' in draft.priced;
  const rest = is_priced ? 'look at its price and its fields' : 'fill in its price';
  return { json: { ...json, file }, text: `${file} has a draft of ${id}: ${rest}.` };
}

/** Adds fal's price, if there is a key that opens it. */
async function withPrice(draft: Draft, margin: string, base_url: string | undefined): Promise<Draft> {
  const secret = base_url === undefined ? undefined : resolveSecret(draft.api_key);
  if (base_url === undefined || secret === undefined) return draft;
  const price = (await falPrices([draft.upstream_model], base_url, secret)).get(draft.upstream_model);
  const row = price ? falRow(price, draft.kind) : 'fal has no price of it';
  if (typeof row === 'string') return { ...draft, priced: { note: `No price: ${row}.` } };
  const source = { url: `${base_url}/models/pricing`, date: new Date().toISOString().slice(0, 10) };
  return { ...draft, priced: { ...pricedAt(row, margin), source } };
}

const kinds = ['image', 'video', 'audio'] as const;

function readKind(text: string | undefined): MediaKind | undefined {
  const kind = kinds.find((one) => one === text);
  if (kind !== undefined || text === undefined) return kind;
  throw new CommandError(`--kind must be one of ${kinds.join(', ')}; not "${text}".`, 2);
}
