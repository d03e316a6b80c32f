import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import { keyNames } from '../accounts/key-list.ts';
import { findPlaygroundKey } from '../accounts/keys.ts';
import { serveStored, serveThumbnail, type FileServing } from '../api/files.ts';
import type { Answer, Query } from '../http/endpoint.ts';
import { moment, oneOf, wholeNumber } from '../http/query.ts';
import { ApiError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import { entriesOfRef } from '../money/ledger.ts';
import { costView, estimateView } from '../money/money.ts';
import { cancelTask, unknownTask } from '../tasks/cancel.ts';
import { tagsIn } from '../chat/labels.ts';
import { listTaskLines, type TaskLine } from '../tasks/list.ts';
import { bodyOf, listAttempts, loadInput, loadTask, type StoredFile, type Task } from '../tasks/task.ts';
import { waitingOf } from '../tasks/waiting.ts';
import { deliveryOfTask, listDeliveryAttempts } from '../webhooks/delivery.ts';
import { chargeOfTask } from './charge.ts';
import { renderDelivery, renderAttempt } from './deliveries.ts';
import { feedbackOf } from './feedback.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { playgroundProject } from './playground-key.ts';
import { keysInSight, seesKey, type ProjectScope } from '../accounts/project-scope.ts';
import { timelineOf } from './timeline.ts';
import type { FileView, KeyName, Page, TaskLineView, TaskView } from './views/activity.ts';

const text = { type: 'string' };
const filters = {
  limit: { description: 'Number of tasks.', schema: { type: 'integer' } },
  after: { description: 'Older than this one.', schema: text },
  before: { description: 'Newer than this one.', schema: text },
  status: { description: 'Only this status.', schema: text },
  model: { description: 'Only this model.', schema: text },
  key: { description: 'Only of this key.', schema: text },
  source: { description: 'Only those of the playground.', schema: { type: 'string', enum: ['playground'] } },
  from: { description: 'Created at this time or later.', schema: text },
  to: { description: 'Created before this time.', schema: text },
};

/** The account's tasks, newest first. */
export const list_tasks = account_endpoint('GET', '/tasks', 'read', handleList, { query: filters, limited: 'own' });

async function handleList({ db }: { db: Db }, { account, query, scope }: AccountCall): Promise<Answer> {
  const after = cursor(query.get('after'), 'after');
  const before = cursor(query.get('before'), 'before');
  const status = oneOf(query, 'status', ['queued', 'running', 'succeeded', 'failed']);
  const model = query.get('model');
  const key_id = await keyIn(db, { account_id: account.id, scope }, query);
  if (key_id === null) return { status: 200, body: { data: [], has_more: false } satisfies Page<TaskLineView> };
  const [created_after, created_before] = [moment(query, 'from'), moment(query, 'to')];
  const { lines, has_more } = await listTaskLines(db, {
    account_id: account.id,
    limit: wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 25,
    ...(after !== undefined && { after }),
    ...(before !== undefined && { before }),
    ...(status && { status }),
    ...(model !== undefined && { model }),
    ...(key_id !== undefined && { key_id }),
    ...(await keysInSight(db, account.id, scope)),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
  });
  const names = await keyNames(
    db,
    account.id,
    lines.map((line) => line.key_id),
  );
  const page: Page<TaskLineView> = { data: lines.map((line) => renderLine(account.id, line, names)), has_more };
  return { status: 200, body: page };
}

/** The key that is asked for by its id or as that of the playground; null if there is none of the latter yet. */
async function keyIn(
  db: Db,
  { account_id, scope }: { account_id: string; scope: ProjectScope | undefined },
  query: Query,
): Promise<string | undefined | null> {
  if (oneOf(query, 'source', ['playground']) === undefined) return query.get('key');
  const project = await playgroundProject(db, account_id, scope);
  return project === undefined ? null : ((await findPlaygroundKey(db, account_id, project))?.id ?? null);
}

function cursor(value: string | undefined, name: string): string | undefined {
  if (value === undefined || isId('task', value)) return value;
  throw new ApiError('invalid_request', `${name} must be the id of a task.`, { param: name });
}

export function keyName(id: string, names: ReadonlyMap<string, string>): KeyName {
  return { id, name: names.get(id) ?? id };
}

export function renderLine(account_id: string, line: TaskLine, names: ReadonlyMap<string, string>): TaskLineView {
  const { id, status, model, kind, prompt, key_id, currency, error_type } = line;
  const metadata: Record<string, string> = JSON.parse(line.metadata); // our own text
  return {
    id,
    status,
    model,
    kind,
    prompt,
    key: keyName(key_id, names),
    cost: costView(line.cost, currency),
    estimated_cost: estimateView(line.estimate, currency),
    error: error_type === null ? null : { type: error_type, message: line.error_message ?? '' },
    created_at: line.created_at.toISOString(),
    started_at: line.started_at?.toISOString() ?? null,
    completed_at: line.completed_at?.toISOString() ?? null,
    files: line.files.map((file, index) => renderFile({ account_id, id }, file, index, line.files_removed_at !== null)),
    user: metadata['user'] ?? null,
    tags: tagsIn(metadata),
    metadata,
  };
}

/** By the session instead of a signed link: it works for as long as the file is kept. */
function renderFile(
  task: { account_id: string; id: string },
  { item }: StoredFile,
  index: number,
  gone: boolean,
): FileView {
  const url = `/dash/accounts/${task.account_id}/tasks/${task.id}/files/${index}`;
  if (gone) return item;
  if (item.type === 'text') return { ...item, url };
  return { ...item, url, thumbnails: { small: `${url}?thumbnail=64`, large: `${url}?thumbnail=320` } };
}

/** The parts of the app that the page of a task takes. */
type TaskParts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

/** One task with its timeline. */
export const get_task = account_endpoint('GET', '/tasks/{id}', 'read', readTask, { limited: 'own' });

async function readTask(app: TaskParts, call: AccountCall): Promise<Answer> {
  const { account, person } = call;
  const task = await findTask(app.db, call);
  const ref = { account_id: account.id, task_id: task.id };
  const now = new Date(app.clock.now());
  const [attempts, entries, delivery, input, names, feedback, waiting, charge] = await Promise.all([
    listAttempts(app.db, ref),
    entriesOfRef(app.db, account.id, task.id),
    deliveryOfTask(app.db, ref),
    loadInput(app.db, ref),
    keyNames(app.db, account.id, [task.key_id]),
    feedbackOf(app.db, account.id, task.id, person.user.id),
    waitingOf(app.db, ref, app.catalog.current.providers, now),
    chargeOfTask(app.db, task, app.catalog.current.settings.base_currency),
  ]);
  const attempt_log = delivery ? await listDeliveryAttempts(app.db, delivery) : [];
  const released = entries.reduce((sum, { type, available }) => (type === 'hold' ? sum : sum + available), 0n);
  const view: TaskView = {
    ...renderLine(account.id, { ...task, prompt: null }, names),
    body: bodyOf(task),
    input,
    released: task.completed_at ? costView(released, task.currency) : null,
    timeline: timelineOf({
      task,
      attempts,
      entries,
      attempt_log,
      waiting,
      now,
      sees_routes: person.user.is_operator,
    }),
    delivery: delivery ? { ...renderDelivery(delivery), attempt_log: attempt_log.map(renderAttempt) } : null,
    feedback,
    charge,
    can_cancel: task.completed_at === null,
  };
  return { status: 200, body: view };
}

/** Throws ApiError 404 if the account has no such task, or it is out of sight. */
async function findTask(db: Db, { account, params, scope }: AccountCall): Promise<Task> {
  const { id = '' } = params;
  const task = isId('task', id) ? await loadTask(db, { account_id: account.id, task_id: id }) : undefined;
  if (!task || !(await seesKey(db, scope, task.key_id))) throw unknownTask(id);
  return task;
}

export const cancel_task = account_endpoint(
  'POST',
  '/tasks/{id}/cancel',
  'run',
  async (app, call) => {
    const { id } = await findTask(app.db, call);
    await cancelTask(app, { account_id: call.account.id, task_id: id });
    return { status: 200, body: { ok: true } };
  },
  { limited: 'own' },
);

const cache_s = 600;

/** Nobody writes another thumbnail to the same place: the browser may keep it for longer than a file. */
const thumbnail_cache_s = 3_600;

type FileParts = Pick<FileServing, 'storage' | 'thumbnails'> & { readonly db: Db };

const file_query = {
  thumbnail: { description: 'A thumbnail of the file.', schema: { type: 'integer', enum: [64, 320] } },
};

/** A file of a task, or its thumbnail, for the page that shows it. */
export const get_task_file = account_endpoint('GET', '/tasks/{id}/files/{index}', 'read', getTaskFile, {
  query: file_query,
  limited: 'own',
});

async function getTaskFile(app: FileParts, call: AccountCall): Promise<Answer> {
  const { params, method, headers, request_id, query } = call;
  const task = await findTask(app.db, call);
  const file = /^\d{1,3}$/.test(params['index'] ?? '') ? task.files[Number(params['index'])] : undefined;
  const size = oneOf(query, 'thumbnail', ['64', '320']);
  const request = file && { method, key: file.key, headers, request_id };
  const reply =
    request &&
    (size === undefined
      ? await serveStored(app.storage, request, cache_s)
      : await serveThumbnail(app, request, size === '64' ? 64 : 320, thumbnail_cache_s));
  if (!reply) throw new ApiError('not_found', 'There is no such file, or it is no longer kept.');
  const { status, stream, body } = reply;
  const { 'cross-origin-resource-policy': _, ...own } = reply.headers;
  return { status, headers: own, ...(stream && { body: stream }), ...(body !== undefined && { body }) };
}
