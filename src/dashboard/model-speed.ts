import type { CatalogHolder } from '../catalog/catalog.ts';
import { speedOf, type SpeedRow } from '../chat/speed.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Answer } from '../http/endpoint.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { ModelSpeedView } from './views/models.ts';

/**
 * Speeds of models, by the numbers of the page Speed. An account with few calls of a model sees the medians of all accounts, without how
 * many calls they had or whose they were.
 */

const range_ms = 7 * 86_400_000;

/** With fewer calls in the range, a median says little. */
const calls_min = 20;

/** The speed of each model that somebody has called. */
export const list_model_speeds = account_endpoint('GET', '/model-speeds', 'read', listSpeeds, { limited: 'own' });

/** Whoever is limited to projects sees those of their projects, else those of all accounts, of models that are listed. */
async function listSpeeds(app: Parts, { account, scope }: AccountCall): Promise<Answer> {
  const [own, all] = await Promise.all([speedsOf(app, account.id, scope?.project_ids), speedsOfAll(app)]);
  const { models } = app.catalog.current;
  const listed = [...all].filter(([model]) => models.get(model)?.hidden === false);
  const views = new Map(listed.map(([model, row]) => [model, render(row, 'service')]));
  for (const [model, row] of own) views.set(model, render(row, 'account'));
  const view: { data: ModelSpeedView[] } = { data: [...views.values()] };
  return { status: 200, body: view };
}

function render(row: SpeedRow, of: ModelSpeedView['of']): ModelSpeedView {
  const { names, first_p50_ms, total_p50_ms, tokens_per_second } = row;
  return { model: names[0] ?? '', of, first_p50_ms, total_p50_ms, tokens_per_second };
}

type Parts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

/** Models with enough calls. */
async function speedsOf(
  { db, clock }: Pick<Parts, 'db' | 'clock'>,
  account_id: string | undefined,
  projects?: readonly string[],
): Promise<Map<string, SpeedRow>> {
  const now_ms = clock.now();
  const range = { account_id, projects, from: new Date(now_ms - range_ms), to: new Date(now_ms + 1) };
  const rows = await speedOf(db, range, ['model']);
  return new Map(rows.filter(({ count }) => count >= calls_min).map((row) => [row.names[0] ?? '', row]));
}

/** The time after which speeds are read again: reading the calls of all accounts takes long, so everybody gets the same answer. */
const again_after_ms = 10 * 60_000;
type Remembered = { at_ms: number; speeds: Promise<Map<string, SpeedRow>> };
const remembered = new WeakMap<CatalogHolder, Remembered>();

async function speedsOfAll(app: Parts): Promise<Map<string, SpeedRow>> {
  const now_ms = app.clock.now();
  const before = remembered.get(app.catalog);
  if (before && now_ms - before.at_ms < again_after_ms) return before.speeds;
  const speeds = speedsOf(app, undefined);
  remembered.set(app.catalog, { at_ms: now_ms, speeds });
  speeds.catch(() => remembered.delete(app.catalog));
  return speeds;
}
