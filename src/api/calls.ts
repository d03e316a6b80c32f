import type { CatalogHolder } from '../catalog/catalog.ts';
import { keysSeenBy } from '../accounts/limited-keys.ts';
import { readLines, type ActivityFilter } from '../chat/activity.ts';
import type { LabelFilter } from '../chat/label-filter.ts';
import { tagsIn } from '../chat/labels.ts';
import type { RecordLine } from '../chat/record.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { ApiError } from '../errors.ts';
import type { Answer, Call, Endpoint, ParameterDocs, Query } from '../http/endpoint.ts';
import { cursorsOf, moment, objectParameter, oneOf, wholeNumber, type Cursor } from '../http/query.ts';
import { isId } from '../lib/ids.ts';
import { costView } from '../money/money.ts';
import { lastRoutes, type TaskLine } from '../tasks/list.ts';
import { call, limited_key_docs, listOf, too_slow } from './schemas.ts';

/** The parts of the app that the list of calls takes. */
type Parts = ReadParts & { readonly catalog: CatalogHolder };

const text = (description: string): ParameterDocs => ({ description, schema: { type: 'string' } });
const time = (description: string): ParameterDocs => ({ description, schema: { type: 'string', format: 'date-time' } });

const http_status = { min: 100, max: 599 };

const statuses = ['queued', 'running', 'succeeded', 'failed'] as const;

/** The account's chat calls and tasks, as the page Activity has them. */
export const list_calls: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/calls',
  docs: {
    tag: 'Calls',
    summary: 'List calls',
    description:
      'The chat calls and the tasks of the account in one list, newest first, without what was said. A chat call is ' +
      `there when it has ended, for as long as its record is kept. ${limited_key_docs}`,
    query: {
      limit: { description: 'Number of calls.', schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 } },
      after: text('Calls older than this one.'),
      before: text('Calls newer than this one.'),
      after_id: text('The same as `after`.'),
      before_id: text('The same as `before`.'),
      kind: { description: 'Only chat calls, or only tasks.', schema: { enum: ['chat', 'task'] } },
      model: { ...text('Only this model.'), example: 'sandbox/chat' },
      key: text('Only of this key, by its id.'),
      status: { description: 'Only this status.', schema: { enum: [...statuses] } },
      error: text('Only calls that failed with this `error_type`.'),
      http_status: {
        description:
          'Only chat calls that were answered with this status, such as 429; 499 if their caller did not wait.',
        schema: { type: 'integer', minimum: http_status.min, maximum: http_status.max },
      },
      user: text('Only of this end user.'),
      tag: text('Only calls with this tag in `metadata.tags`.'),
      created_after: time('Only calls created at this time or later.'),
      created_before: time('Only calls created before this time.'),
      metadata: {
        description: '`metadata[key]=value`: only calls that carry these pairs.',
        schema: { type: 'object' },
      },
    },
    responses: { 200: { description: 'A page of calls.', schema: listOf(call) }, 504: too_slow },
  },
  handle: handleCalls,
};

async function handleCalls(app: Parts, { caller, query, gone }: Call): Promise<Answer> {
  const { id: account_id } = caller.account;
  const db = reading(app, { key: account_id, gone });
  const limit = wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 20;
  const filter = { ...readFilter(query, account_id), ...(await keysSeenBy(db, caller)) };
  const { lines, has_more } = await readLines(db, filter, { limit, ...placeIn(query) });
  const task_ids = lines.flatMap(({ what, line }) => (what === 'task' ? line.id : []));
  const { by_caller: names_routes } = app.catalog.current.settings.routing;
  const routes = names_routes ? await lastRoutes(db, account_id, task_ids) : new Map<string, string>();
  const data = lines.map((each) => {
    const route = each.what === 'task' ? routes.get(each.line.id) : each.line.route;
    return callView(each, names_routes ? (route ?? null) : null);
  });
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  return { status: 200, body: { object: 'list', data, has_more, first_id, last_id } };
}

function placeIn(query: Query): { after?: string; before?: string } {
  const { after, before } = cursorsOf(query);
  if (after) return { after: idIn(after) };
  return before ? { before: idIn(before) } : {};
}

/** The record of a call that a reader has just seen may be gone when they go on, so its id alone is a place. */
function idIn({ param, id }: Cursor): string {
  if (isId('task', id) || isId('req', id)) return id;
  throw new ApiError('invalid_request', `${param} must be the id of a chat call or a task.`, { param });
}

function readFilter(query: Query, account_id: string): ActivityFilter {
  const kind = oneOf(query, 'kind', ['chat', 'task']);
  const status = oneOf(query, 'status', statuses);
  const [model, key_id] = [query.get('model'), query.get('key')];
  const [created_after, created_before] = [moment(query, 'created_after'), moment(query, 'created_before')];
  return {
    account_id,
    of: kind === undefined ? 'all' : kind === 'chat' ? 'chats' : 'tasks',
    oldest_first: false,
    ...readLabels(query),
    ...(status === 'succeeded' || status === 'failed' ? { ok: status === 'succeeded' } : status && { status }),
    ...(model !== undefined && { model }),
    ...(key_id !== undefined && { key_id }),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
  };
}

/** Returns the filters by what is said of a call, by which all lists of calls can be asked. Throws ApiError 400. */
export function readLabels(query: Query): Pick<ActivityFilter, keyof LabelFilter> {
  const [end_user, tag, error_type] = [query.get('user'), query.get('tag')?.trim(), query.get('error')];
  const status = wholeNumber(query, 'http_status', http_status);
  return {
    metadata: objectParameter(query, 'metadata'),
    ...(end_user !== undefined && { end_user }),
    ...(tag !== undefined && { tag }),
    ...(error_type !== undefined && { error_type }),
    ...(status !== undefined && { http_status: status }),
  };
}

type CallLine = { what: 'task'; line: Omit<TaskLine, 'prompt'> } | { what: 'chat'; line: RecordLine };

/** A chat call or a task as lists of both show it. `route`: the last one, where it may be named. */
export function callView({ what, line }: CallLine, route: string | null) {
  return what === 'task' ? taskView(line, route) : chatView(line, route);
}

function taskView(line: Omit<TaskLine, 'prompt'>, route: string | null) {
  const { id, kind: modality, status, created_at, completed_at } = line;
  const metadata: Record<string, string> = JSON.parse(line.metadata); // our own text
  return {
    object: 'call' as const,
    id,
    kind: 'task' as const,
    model: line.model,
    route,
    style: null,
    modality,
    status,
    http_status: null,
    error_type: line.error_type,
    first_content_ms: null,
    total_ms: completed_at && completed_at.getTime() - created_at.getTime(),
    usage: null,
    cost: costView(line.cost, line.currency),
    key: line.key_id,
    user: metadata['user'] ?? null,
    metadata,
    tags: tagsIn(metadata),
    created_at: created_at.toISOString(),
    path: `/v1/tasks/${id}`,
  };
}

function chatView(line: RecordLine, route: string | null) {
  const { id, input_tokens, cached_input_tokens, output_tokens, metadata } = line;
  return {
    object: 'call' as const,
    id,
    kind: 'chat' as const,
    model: line.model,
    route,
    style: line.style,
    modality: null,
    status: line.status < 400 ? ('succeeded' as const) : ('failed' as const),
    http_status: line.status,
    error_type: line.error_type,
    first_content_ms: line.first_content_ms,
    total_ms: line.total_ms,
    usage: { input_tokens, cached_input_tokens, output_tokens },
    cost: costView(line.cost, line.currency),
    key: line.key_id,
    user: line.end_user,
    metadata: metadata ?? {},
    tags: tagsIn(metadata ?? {}),
    created_at: line.created_at.toISOString(),
    path: `/v1/chat/${id}`,
  };
}
