import { scopeOfKey } from '../accounts/limited-keys.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { idsOfList } from '../catalog/key-models.ts';
import { speed_rows_max, speedGroupNamed, speedOf } from '../chat/speed.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { ApiError } from '../errors.ts';
import { default_metric } from '../feedback/feedback.ts';
import type { Answer, Call, Endpoint, Query } from '../http/endpoint.ts';
import { timeRange } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { metricNamed } from './feedback.ts';
import { groupQuery, readGroups, rowNames } from './groups.ts';
import { limited_key_docs, speed, too_slow } from './schemas.ts';

/** The parts of the app that a report of speed takes. */
type Parts = ReadParts & { readonly clock: Clock; readonly catalog: CatalogHolder };

const day_ms = 86_400_000;
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
      'percentile (p95) of the time to the first token of a chat answer, and of the whole. Calls that their caller got ' +
      'wrong or left are not counted. A key with a list of models sees those of its list. Days are in UTC. Default: the ' +
      `last 24 hours by model. ${limited_key_docs}`,
    query: {
      from: { description: 'Begun at this time or later, ISO 8601.', schema: { type: 'string', format: 'date-time' } },
      to: { description: 'Begun before this time, ISO 8601.', schema: { type: 'string', format: 'date-time' } },
      ...groupQuery(group_names, 'model,day'),
      model: { description: 'Only this model.', schema: { type: 'string' } },
      key: { description: 'Only calls of this key, by its id.', schema: { type: 'string' } },
      feedback: {
        description: 'The metric of feedback whose scores are averaged.',
        schema: { type: 'string', default: default_metric },
      },
    },
    responses: { 200: { description: 'The groups.', schema: speed }, 504: too_slow },
  },
  handle: handleSpeed,
};

async function handleSpeed(app: Parts, { caller, query, gone }: Call): Promise<Answer> {
  const { account, key } = caller;
  const range = readSpeedRange(app.clock, query);
  const group_by = readGroups(query.get('group_by') ?? 'model', speedGroupNamed, group_names);
  if (group_by.includes('route') && !app.catalog.current.settings.routing.by_caller) {
    const message = 'The operator of this service does not name routes to callers.';
    throw new ApiError('invalid_request', message, { param: 'group_by' });
  }
  const db = reading(app, { key: account.id, gone });
  const projects = (await scopeOfKey(db, caller))?.project_ids;
  const filter = { account_id: account.id, projects, models: idsOfList(app.catalog.current, key.models), ...range };
  const rows = await speedOf(db, filter, group_by);
  const { from, to } = range;
  return {
    status: 200,
    body: {
      object: 'speed',
      from: from.toISOString(),
      to: to.toISOString(),
      group_by,
      data: rows.map(({ names, ...figures }) => ({ ...rowNames(group_by, (_, index) => names[index]), ...figures })),
      has_more: rows.length === speed_rows_max,
    },
  };
}

/** Reads `from`, `to`, `model`, `key` and `feedback`. Throws ApiError 400. Default: the last 24 hours. */
export function readSpeedRange(clock: Clock, query: Query) {
  const a_day_before = (to: Date) => new Date(to.getTime() - day_ms);
  const range = timeRange(query, { from: a_day_before, to: new Date(clock.now()) });
  const feedback = metricNamed(query.get('feedback'), 'feedback');
  return { ...range, model: query.get('model'), key: query.get('key'), feedback };
}
