import { compareWithList, priceDifference } from '../catalog/lists/compare.ts';
import { dayOf, rowsOn } from '../catalog/dated.ts';
import { sortExplained } from '../catalog/lists/explained.ts';
import { isMediaKind, type Model, type ProviderConfig, type Settings } from '../catalog/model.ts';
import { presetAt } from '../catalog/presets.ts';
import type { Db, Queryable } from '../db/database.ts';
import { counted } from '../lib/counted.ts';
import type { Clock } from '../lib/clock.ts';
import type { Guard } from '../net/guard.ts';
import { adapters } from '../providers/index.ts';
import { OfferError } from '../providers/offer/offer.ts';
import { readPriceList } from '../providers/offer/price-list.ts';

/**
 * Compares the catalogue once a day with a public price list, and with the own lists of its providers. It says what
 * differs, and changes nothing.
 */

/** The parts of the app that a check takes. */
export type CheckParts = {
  readonly db: Db;
  readonly clock: Clock;
  readonly guard: Guard;
  readonly catalog: {
    readonly current: {
      readonly settings: Settings;
      readonly models: ReadonlyMap<string, Model>;
      readonly providers: ReadonlyMap<string, ProviderConfig>;
    };
  };
  readonly log: { warn(details: object, message: string): void };
};

/** Lines for the operator. `compared`: routes that a list has. */
export type ModelCheck = { compared: number; differences: string[]; unread: string[] };

const every_ms = 24 * 3_600_000;
/** A service that has just been made does not begin with it. */
const first_after_ms = 15 * 60_000;
/** All lists together. */
export const check_ms_max = 120_000;
const lines_max = 100;
const line_length_max = 300;

/**
 * Compares if it is due. Called every few minutes on one node at a time. A check that breaks off is made up for a day
 * later, so that no provider is asked again and again.
 */
export async function runModelCheck(app: CheckParts, stopped: AbortSignal): Promise<void> {
  const { model_check } = app.catalog.current.settings;
  if (!model_check || !(await takeDue(app.db, app.clock.now()))) return;
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(check_ms_max)]);
  const result = await checkModels(app, model_check.price_list, signal);
  if (stopped.aborted) return;
  await app.db.query('update model_checks set checked_at = $1, result = $2 where id = 1', [
    new Date(app.clock.now()),
    JSON.stringify(result),
  ]);
  const { differences, unread } = result;
  if (differences.length + unread.length > 0)
    app.log.warn(
      { differences: differences.slice(0, 10), unread: unread.slice(0, 10) },
      'the catalogue and lists of others differ',
    );
}

/** Says whether a check is due, and sets when the next one is. */
async function takeDue(db: Db, now_ms: number): Promise<boolean> {
  await db.query('insert into model_checks (id, due_at) values (1, $1) on conflict do nothing', [
    new Date(now_ms + first_after_ms),
  ]);
  const taken = await db.query('update model_checks set due_at = $2 where id = 1 and due_at <= $1 returning id', [
    new Date(now_ms),
    new Date(now_ms + every_ms),
  ]);
  return taken.length > 0;
}

/** Reads all lists one after the other. A list that cannot be read leaves the others as they are. */
export async function checkModels(
  { catalog, guard, clock }: Pick<CheckParts, 'catalog' | 'guard' | 'clock'>,
  price_list: string,
  signal: AbortSignal,
): Promise<ModelCheck> {
  const { models, providers } = catalog.current;
  const check: ModelCheck = { compared: 0, differences: [], unread: [] };
  const bought = [...models.values()].filter(({ routes }) =>
    routes.some(({ provider }) => isUpstream(providers.get(provider))),
  );
  if (bought.length === 0) return check;
  await noting(check, 'The price list', async () => {
    const list = await readPriceList(price_list, guard, signal);
    const comparison = compareWithList(bought, list, { day: dayOf(clock.now()), form: 'litellm' });
    check.compared = comparison.compared;
    for (const { model, route, what, ours, theirs } of sortExplained(comparison, 'litellm').unexplained)
      check.differences.push(`${model} (${route}) ${what}: ${ours} here, ${theirs} in the price list`);
  });
  for (const provider of providers.values()) {
    if (!isUpstream(provider) || signal.aborted) continue; // the next day has time for it
    await noting(check, `The list of ${provider.name}`, async () => {
      check.differences.push(...(await missingIn(provider, bought, guard, signal)));
    });
    await noting(check, `The prices of ${provider.name}`, async () => {
      const day = dayOf(clock.now());
      check.differences.push(...(await costsIn(provider, bought, { guard, signal, day })));
    });
  }
  return { ...check, differences: bounded(check.differences), unread: bounded(check.unread) };
}

/** Tells whether calls of it leave the service. */
function isUpstream(provider: ProviderConfig | undefined): provider is ProviderConfig {
  if (!provider) return false;
  const { api_key, base_url, credentials } = provider;
  return api_key !== undefined || base_url !== undefined || credentials !== undefined;
}

async function noting(check: ModelCheck, subject: string, read: () => Promise<void>): Promise<void> {
  try {
    await read();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    check.unread.push(`${subject} could not be read: ${reason}`);
  }
}

function bounded(lines: readonly string[]): string[] {
  const more = lines.length - lines_max;
  const shown = lines.slice(0, lines_max).map((line) => line.slice(0, line_length_max));
  return more > 0 ? [...shown, `and ${more} more`] : shown;
}

/** Names models whose upstream no longer lists them. Models for media are left out where they are listed elsewhere. */
async function missingIn(
  provider: ProviderConfig,
  models: readonly Model[],
  guard: Guard,
  signal: AbortSignal,
): Promise<string[]> {
  const { listModels: list, lists_media = false } = adapters[provider.adapter] ?? {};
  const routes = models.flatMap(({ id, kind, routes: all }) =>
    kind === 'chat' || kind === 'embedding' || (lists_media && isMediaKind(kind))
      ? all.filter((route) => route.provider === provider.name).map(({ upstream_model }) => ({ id, upstream_model }))
      : [],
  );
  const preset = presetAt(provider.base_url);
  if (routes.length === 0 || !list || preset?.no_list) return [];
  const listed = await list(provider, { guard }, { form: preset?.list, key_path: undefined, signal });
  if (!listed) return [];
  if (listed.length === 0) throw new OfferError('base_url', 'it has no models.');
  const names = listed.map(({ upstream_model }) => upstream_model);
  return routes
    .filter(({ upstream_model }) => !names.some((name) => isVersionOf(name, upstream_model)))
    .map(({ id, upstream_model }) => `${id} (${provider.name}): ${upstream_model} is not in the provider's own list`);
}

type AskParts = { guard: Guard; signal: AbortSignal; day: string };

/** Names costs that the provider's own prices contradict. It has one for each model: costs of several rows are left out. */
async function costsIn(
  provider: ProviderConfig,
  models: readonly Model[],
  { guard, signal, day }: AskParts,
): Promise<string[]> {
  const readPrices = adapters[provider.adapter]?.readPrices;
  const costs = models.flatMap(({ id, kind, routes }) =>
    routes.flatMap((route) => {
      const [row, ...others] = route.provider === provider.name ? rowsOn(route.cost, day) : [];
      return row && others.length === 0 && !row.when ? [{ id, kind, route, row }] : [];
    }),
  );
  if (!readPrices || costs.length === 0) return [];
  const priced = costs.map(({ kind, route: { upstream_model } }) => ({ kind, upstream_model }));
  const prices = await readPrices(provider, { guard }, { models: priced, signal });
  return costs.flatMap(({ id, route, row }) => {
    const listed = prices.get(route.upstream_model);
    const difference = listed?.unit === row.unit ? priceDifference(row, listed) : undefined;
    if (!difference) return [];
    const { ours, theirs } = difference;
    return [`${id} (${route.id}) ${row.unit}: ${ours} here, ${theirs} in the provider's own prices`];
  });
}

/** Providers list `name-2026-01-01` or `name:latest` for what answers to `name`. */
function isVersionOf(listed: string, upstream_model: string): boolean {
  return (
    listed === upstream_model || [`${upstream_model}-`, `${upstream_model}:`].some((start) => listed.startsWith(start))
  );
}

/** Returns the last check; undefined before the first. */
export async function lastModelCheck(db: Queryable): Promise<(ModelCheck & { checked_at: Date }) | undefined> {
  const [row] = await db.query<{ checked_at: Date; result: ModelCheck }>(
    'select checked_at, result from model_checks where checked_at is not null',
  );
  return row && { ...row.result, checked_at: row.checked_at };
}

const shown_max = 10;

/** Lines about the last check, for `doctor` and the page of operators; none where nothing differs or it is off. */
export async function modelCheckLines(db: Queryable, { model_check }: Settings): Promise<string[]> {
  const check = model_check ? await lastModelCheck(db) : undefined;
  if (!check) return [];
  const lines = [...check.differences, ...check.unread];
  const day = check.checked_at.toISOString().slice(0, 10);
  const more = lines.length - shown_max;
  const rest = more > 0 ? [`Lists of ${day}: ${counted(more, 'more line')}.`] : [];
  return [...lines.slice(0, shown_max).map((line) => `Lists of ${day}: ${line}`), ...rest];
}
