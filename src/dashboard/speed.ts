import { keyNames } from '../accounts/key-list.ts';
import { readSpeedRange } from '../api/speed.ts';
import { speedGroupNamed, speedOf, type SpeedGroup, type SpeedRow } from '../chat/speed.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import type { Query } from '../http/endpoint.ts';
import { oneOf } from '../http/query.ts';
import { isPair } from '../money/groups.ts';
import { pairNames } from '../money/usage.ts';
import { account_endpoint, session_endpoint } from './page.ts';
import type { SpeedFigures, SpeedGrouping, SpeedView } from './views/speed.ts';

const by_hour_ms_max = 3 * 86_400_000;

const text = { type: 'string' };
const filters = {
  from: { description: 'Begun at this time or later.', schema: text },
  to: { description: 'Begun before this time.', schema: text },
  group: { description: 'model, key, route (operators), user, tag or metadata.NAME.', schema: text },
  model: { description: 'Only this model.', schema: text },
  key: { description: 'Only of this key.', schema: text },
};

/** Speed of an account's calls and tasks; routes are named to operators only. */
export const get_speed = account_endpoint(
  'GET',
  '/speed',
  'read',
  async (app, { account, person, query, scope }) => {
    const groups: readonly SpeedGrouping[] = person.user.is_operator
      ? ['model', 'key', 'route', 'user', 'tag']
      : ['model', 'key', 'user', 'tag'];
    const pairs = scope ? [] : await pairNames(app.db, account.id); // they are those of all projects
    const view = await speedView(app, query, { account_id: account.id, projects: scope?.project_ids, groups, pairs });
    return { status: 200, body: view };
  },
  { query: filters, limited: 'own' },
);

/** Speed of the calls and tasks of all accounts. */
export const admin_speed = session_endpoint(
  'GET',
  '/dash/admin/speed',
  'operator',
  async (app, { query }) => {
    const options = { account_id: undefined, projects: undefined, groups: ['model', 'route'] as const, pairs: [] };
    return { status: 200, body: await speedView(app, query, options) };
  },
  { query: filters },
);

type Options = {
  account_id: string | undefined;
  projects: readonly string[] | undefined;
  groups: readonly SpeedGrouping[];
  pairs: string[];
};

async function speedView(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  query: Query,
  { account_id, projects, groups, pairs }: Options,
): Promise<SpeedView> {
  const range = { account_id, projects, ...readSpeedRange(clock, query) };
  const group = groupOf(query, groups, account_id !== undefined);
  const step = range.to.getTime() - range.from.getTime() <= by_hour_ms_max ? 'hour' : 'day';
  const speed = (by: SpeedGroup[]) => speedOf(db, range, by);
  const [rows, points, [total]] = await Promise.all([speed([group]), speed([step]), speed([])]);
  const ids = group === 'key' ? rows.map(({ names: [id] }) => id) : [];
  const names = account_id === undefined ? new Map<string, string>() : await keyNames(db, account_id, ids);
  return {
    from: range.from.toISOString(),
    to: range.to.toISOString(),
    step,
    group,
    rows: rows.map((row) => {
      const [id = ''] = row.names;
      return { id, name: names.get(id) ?? id, ...figures(row) };
    }),
    points: points
      .map((row) => ({ at: new Date(row.names[0] ?? '').toISOString(), ...figures(row) }))
      .toSorted((a, b) => (a.at < b.at ? -1 : 1)),
    total: total ? figures(total) : null,
    pairs,
  };
}

function groupOf(query: Query, groups: readonly SpeedGrouping[], has_pairs: boolean): SpeedGrouping {
  const named = speedGroupNamed(query.get('group') ?? 'model');
  if (has_pairs && named !== undefined && isPair(named)) return named;
  return oneOf(query, 'group', groups) ?? 'model';
}

function figures(row: SpeedRow): SpeedFigures {
  const { names: _, ...rest } = row;
  return rest;
}
