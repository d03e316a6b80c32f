import type { CatalogHolder } from '../catalog/catalog.ts';
import { isSpeedGroup, speed_rows_max, speedOf, type SpeedGroup, type SpeedRow } from '../chat/speed.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { ApiError } from '../errors.ts';
import type { Answer, Call, Endpoint, Query } from '../http/endpoint.ts';
import { moment } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { speed, too_slow } from './schemas.ts';

/** The parts of the app that a report of speed takes. */
type Parts = ReadParts & { readonly clock: Clock; readonly catalog: CatalogHolder };

const day_ms = 86_400_000;
const range_ms_max = 400 * day_ms;
const group_names = 'hour, day, model, key, route, user, tag, metadata.NAME';

/** Speed of the caller's own calls and tasks. */
export const get_speed: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/speed',
  docs: {
    tag: 'Money',
    summary: 'Get speed',
    description:
      'How long calls and tasks took and how many failed, grouped, with the most first. Median (p50) and 95th ' +
      'percentile (p95) of the time to the first word of a chat answer, and of the whole. Calls that their caller got ' +
      'wrong or left are not counted. Days are in UTC. Default: the last 24 hours by model.',
    query: {
      from: { description: 'Begun at this time or later, ISO 8601.', schema: { type: 'string', format: 'date-time' } },
      to: { description: 'Begun before this time, ISO 8601.', schema: { type: 'string', format: 'date-time' } },
      group_by: {
        description: `One or several of ${group_names}, joined by commas.`,
        schema: { type: 'string' },
        example: 'model,day',
      },
      model: { description: 'Only this model.', schema: { type: 'string' } },
      key: { description: 'Only calls of this key, by its id.', schema: { type: 'string' } },
    },
    responses: { 200: { description: 'The groups.', schema: speed }, 504: too_slow },
  },
  handle: handleSpeed,
};

async function handleSpeed(app: Parts, { caller, query, gone }: Call): Promise<Answer> {
  const { account } = caller;
  const range = readSpeedRange(app.clock, query);
  const group_by = readGroups(query.get('group_by') ?? 'model', app.catalog.current.settings.routing.by_caller);
  const rows = await speedOf(reading(app, { key: account.id, gone }), { account_id: account.id, ...range }, group_by);
  const { from, to } = range;
  return {
    status: 200,
    body: {
      object: 'speed',
      from: from.toISOString(),
      to: to.toISOString(),
      group_by,
      data: rows.map((row) => rowView(row, group_by)),
      has_more: rows.length === speed_rows_max,
    },
  };
}

/** Reads `from`, `to`, `model` and `key`. Throws ApiError 400. Default: the last 24 hours. */
export function readSpeedRange(clock: Clock, query: Query) {
  const to = moment(query, 'to') ?? new Date(clock.now());
  const from = moment(query, 'from') ?? new Date(to.getTime() - day_ms);
  if (to <= from) throw new ApiError('invalid_request', 'to must be later than from.', { param: 'to' });
  if (to.getTime() - from.getTime() > range_ms_max)
    throw new ApiError('invalid_request', 'from and to may be at most 400 days apart.', { param: 'from' });
  return { from, to, model: query.get('model'), key: query.get('key') };
}

function rowView({ names, ...row }: SpeedRow, group_by: readonly SpeedGroup[]): object {
  const named = group_by.map((group, index): [SpeedGroup, string | null] => [group, names[index] || null]);
  const pairs = named.filter(([group]) => group.startsWith('metadata.'));
  return {
    ...Object.fromEntries(named.filter(([group]) => !group.startsWith('metadata.'))),
    ...(pairs.length > 0 && {
      metadata: Object.fromEntries(pairs.map(([group, name]) => [group.slice('metadata.'.length), name])),
    }),
    ...row,
  };
}

function readGroups(text: string, by_route: boolean): SpeedGroup[] {
  const names = text.split(',');
  const groups = names.filter(isSpeedGroup);
  if (groups.length < names.length || new Set(groups).size < groups.length)
    throw new ApiError('invalid_request', `group_by must be one or several of ${group_names}, joined by commas.`, {
      param: 'group_by',
    });
  if (groups.includes('route') && !by_route)
    throw new ApiError('invalid_request', 'The operator of this service does not name routes to callers.', {
      param: 'group_by',
    });
  return groups;
}
