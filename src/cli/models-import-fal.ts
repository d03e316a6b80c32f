import type { Command } from 'commander';
import { defaultProviders, keyName } from '../catalog/default.ts';
import type { PricedRow } from '../catalog/draft.ts';
import { falRow, type FalPrice } from '../catalog/lists/fal-prices.ts';
import { ListError } from '../catalog/lists/listed.ts';
import type { WrittenModel } from '../catalog/lists/edit.ts';
import { multiplied } from '../catalog/margin.ts';
import type { PriceRow } from '../catalog/model.ts';
import type { ModelEntry } from '../catalog/schema.ts';
import { resolveSecret } from '../config.ts';
import { counted } from '../lib/counted.ts';
import { DescriptionError, fetchJson } from '../providers/describe.ts';
import { askFalPrices, fal_adapter, fal_prices_path, fal_prices_url } from '../providers/fal-prices.ts';
import { editFile, type EditedFile } from './catalog-file.ts';
import { CommandError, says, type CommandResult } from './command.ts';
import { changeLines, marginOf, patternOf, providerEntry, savedLines } from './models-import-list.ts';

type Options = { provider: string; only?: string[]; markup: string; pricesUrl: string; into?: string; write?: boolean };

/** Adds the command that brings prices of models at fal up to date. */
export function falPricesCommand(imports: Command): void {
  const one = imports.command('fal-prices').description("fal's prices of the models of medley.yaml that run there");
  one.option('--provider <name>', 'the provider in medley.yaml that runs the models', fal_adapter);
  one.option('--only <pattern...>', 'models whose prices to take, such as "acme/*"; default: all');
  one.option('--markup <percent>', 'what you charge above the price, such as 20%', '0%');
  one.option('--prices-url <url>', 'address of the prices', fal_prices_url);
  one.option('--into <file>', 'the file; default: that of MEDLEY_CONFIG, or medley.yaml');
  one.option('--write', 'write the file; without it, only show what would change');
  says(one, () => importPrices(one.opts<Options>()));
}

async function importPrices(options: Options): Promise<CommandResult> {
  const { provider, pricesUrl: base_url } = options;
  const margin = marginOf(options.markup);
  const file = await editFile(options.into);
  const patterns = (options.only ?? ['*']).map(patternOf);
  const models = file.text.modelsOver(provider).filter(({ id }) => patterns.some((pattern) => pattern.test(id)));
  if (models.length === 0)
    throw new CommandError(`${file.path} has no model that was asked for with a route over ${provider}.`);
  const secret = await secretOf(file, provider);
  const endpoints = [...new Set(models.map(({ upstream_model }) => upstream_model))];
  const prices = await falPrices(endpoints, base_url, secret);
  const source = { url: pricesAt(base_url), date: new Date().toISOString().slice(0, 10) };
  const read = models.map((model) => ({ model, row: rowFor(model, prices.get(model.upstream_model)) }));
  const left = read.flatMap(({ model: { id }, row }) => (typeof row === 'string' ? [{ id, reason: row }] : []));
  const changes = read.flatMap(({ model, row }) =>
    typeof row === 'string' ? [] : [file.text.putModel(entryOf(model, row, { provider, margin, source }), provider)],
  );
  const written = options.write === true && changes.length > 0;
  const { warnings } = written ? await file.save() : { warnings: [] };
  const count = (kind: string) => changes.filter((change) => change.kind === kind).length;
  const lines = [
    ...changeLines(changes),
    ...left.map(({ id, reason }) => `  ${id} is left alone: ${reason}.`),
    `${counted(count('changed'), 'model')} changed, ${count('unchanged')} unchanged, ${left.length} left alone.`,
    ...savedLines(file, { written, warnings }),
  ];
  return { json: { file: file.path, written, changes, left, warnings }, text: lines.join('\n') };
}

/** Asks fal for prices of endpoints. Throws CommandError. */
export async function falPrices(
  endpoints: readonly string[],
  base_url: string,
  secret: string,
): Promise<Map<string, FalPrice>> {
  const url = pricesAt(base_url);
  const get = (query: Record<string, string>) =>
    fetchJson(`${url}?${new URLSearchParams(query)}`, { authorization: `Key ${secret}` }).catch((error: unknown) => {
      if (!(error instanceof DescriptionError)) throw error;
      if (error.status === 404) return undefined;
      const is_refused = error.status === 401 || error.status === 403;
      throw new CommandError(is_refused ? `fal does not take this key: ${error.message}` : error.message);
    });
  try {
    return await askFalPrices(endpoints, get);
  } catch (error) {
    throw error instanceof ListError ? new CommandError(`${url} ${error.message}`) : error;
  }
}

const pricesAt = (base_url: string) => base_url.replace(/\/+$/, '') + fal_prices_path;

async function secretOf(file: EditedFile, provider: string): Promise<string> {
  const shipped = file.text.has(provider) ? undefined : defaultProviders()[provider];
  const { api_key } = shipped ?? (await providerEntry(file, provider)) ?? {};
  const secret = api_key === undefined ? undefined : resolveSecret(api_key);
  if (secret !== undefined) return secret;
  const name = api_key === undefined ? 'api_key of the provider' : keyName({ adapter: fal_adapter, api_key });
  throw new CommandError(`fal asks for a key before it says its prices: set ${name}.`);
}

/** Returns the row that takes the place of the model's price; a text says why the price stays as it is. */
function rowFor(model: WrittenModel, price: FalPrice | undefined): PriceRow | string {
  if (!price) return `fal has no price of ${model.upstream_model}`;
  const row = falRow(price, model.kind);
  if (typeof row === 'string') return row;
  const shown = `fal's price is ${row.amount} for ${price.unit}`;
  const rows = [model.price, model.cost];
  if (rows.some((each) => each.length > 1 || each.some((one) => 'when' in one || 'from' in one)))
    return `its price or its cost has several rows; ${shown}`;
  const [present] = model.price;
  if (present && present['unit'] !== row.unit) return `its price is by the ${String(present['unit'])}; ${shown}`;
  if (!present && row.unit !== 'request' && !model.estimated.includes(row.unit))
    return `its estimate has no ${row.unit}; ${shown}`;
  return row;
}

type Over = { provider: string; margin: string; source: { url: string; date: string } };

function entryOf(
  { id, kind, upstream_model }: WrittenModel,
  row: PriceRow,
  { provider, margin, source }: Over,
): ModelEntry {
  const { price, cost } = pricedAt(row, margin);
  const routes = [{ provider, upstream_model, cost, cost_source: source }];
  return { id, kind, price, price_source: source, routes };
}

/** Returns a provider's price as what callers pay and as what it costs. */
export function pricedAt({ unit, per, amount }: PriceRow, margin: string): { price: PricedRow[]; cost: PricedRow[] } {
  const rows = (text: string) => [{ unit, ...(per !== 1 && { per }), amount: text }];
  return { price: rows(margin === '1' ? amount : multiplied(amount, margin)), cost: rows(amount) };
}
