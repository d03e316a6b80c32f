import type { Caller } from '../accounts/authenticate.ts';
import type { Db } from '../db/database.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { keysSeenBy, reaches } from '../accounts/limited-keys.ts';
import { ApiError } from '../errors.ts';
import { isId } from '../lib/ids.ts';
import { cancelTask, unknownTask, type CancelParts } from '../tasks/cancel.ts';
import { freshLinks, removeOutput, type TaskFileParts } from '../tasks/files.ts';
import { hasTask, listTasks, type TaskFilter } from '../tasks/list.ts';
import { bodyOf, loadTask, type TaskRef } from '../tasks/task.ts';
import type { Answer, Call, Endpoint, ParameterDocs } from '../http/endpoint.ts';
import { cursorsOf, moment, objectParameter, oneOf, wholeNumber, type Cursor } from '../http/query.ts';
import { limited_key_docs, links, listOf, task, too_slow } from './schemas.ts';

/** The parts of the app that endpoints of tasks take. */
type Parts = CancelParts & TaskFileParts & ReadParts;

const id: Record<string, ParameterDocs> = { id: { description: 'Task id.', schema: { type: 'string' } } };

const cursor = (description: string): ParameterDocs => ({ description, schema: { type: 'string' } });

export const list_tasks: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/tasks',
  docs: {
    tag: 'Tasks',
    summary: 'List tasks',
    description: `The tasks of the account, newest first. ${limited_key_docs}`,
    query: {
      limit: { description: 'Number of tasks.', schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 } },
      after: cursor('Tasks older than this one.'),
      before: cursor('Tasks newer than this one.'),
      after_id: cursor('The same as `after`.'),
      before_id: cursor('The same as `before`.'),
      status: { description: 'Only this status.', schema: { enum: ['queued', 'running', 'succeeded', 'failed'] } },
      model: { description: 'Only this model.', schema: { type: 'string' } },
      created_after: {
        description: 'Only tasks created after this time.',
        schema: { type: 'string', format: 'date-time' },
      },
      created_before: {
        description: 'Only tasks created before this time.',
        schema: { type: 'string', format: 'date-time' },
      },
      metadata: {
        description: '`metadata[key]=value`: only tasks that carry these pairs.',
        schema: { type: 'object' },
      },
    },
    responses: { 200: { description: 'A page of tasks.', schema: listOf(task) }, 504: too_slow },
  },
  handle: handleList,
};

async function handleList(app: ReadParts, { caller, query, gone }: Call): Promise<Answer> {
  const { id: account_id } = caller.account;
  const db = reading(app, { key: account_id, gone });
  const cursors = cursorsOf(query);
  const after = cursors.after && (await readCursor(db, caller, cursors.after));
  const before = cursors.before && (await readCursor(db, caller, cursors.before));
  const status = oneOf(query, 'status', ['queued', 'running', 'succeeded', 'failed']);
  const model = query.get('model');
  const created_after = moment(query, 'created_after');
  const created_before = moment(query, 'created_before');
  const filter: TaskFilter = {
    account_id,
    limit: wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 20,
    metadata: objectParameter(query, 'metadata'),
    ...(await keysSeenBy(db, caller)),
    ...(after !== undefined && { after }),
    ...(before !== undefined && { before }),
    ...(status && { status }),
    ...(model !== undefined && { model }),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
  };
  const page = await listTasks(db, filter);
  const first_id = JSON.stringify(page.ids[0] ?? null);
  const last_id = JSON.stringify(page.ids.at(-1) ?? null);
  // Final bodies are stored bytes, so the list is put together as text.
  const body = `{"object":"list","data":[${page.bodies.join(',')}],"has_more":${page.has_more},"first_id":${first_id},"last_id":${last_id}}`;
  return { status: 200, body };
}

async function readCursor(db: Db, caller: Caller, { param, id: value }: Cursor): Promise<string> {
  if (isId('task', value) && (await isTaskOf(db, caller, value))) return value;
  throw new ApiError('invalid_request', `${param} must be the id of one of your tasks.`, { param });
}

export const get_task: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/tasks/{id}',
  docs: {
    tag: 'Tasks',
    summary: 'Get a task',
    description: 'Returns the state, the cost and, once it is done, the files of one task of the account.',
    params: id,
    responses: { 200: { description: 'The task; once it is final, the same bytes as the webhook.', schema: task } },
  },
  handle: async (app, call) => {
    const ref = await taskRefOf(app.db, call);
    const row = await loadTask(app.db, ref);
    if (!row) throw unknownTask(ref.task_id);
    return { status: 200, body: bodyOf(row) };
  },
};

export const cancel_task: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/tasks/{id}/cancel',
  docs: {
    tag: 'Tasks',
    summary: 'Cancel a task',
    description:
      'Ends a task that has not started, or whose model provider confirms that it stopped unbilled. It costs nothing.',
    params: id,
    responses: {
      200: { description: 'The task, failed with `canceled`.', schema: task },
      409: { description: 'It is final already, or cannot be stopped unbilled.' },
    },
  },
  handle: async (app, call) => ({ status: 200, body: await cancelTask(app, await taskRefOf(app.db, call)) }),
};

export const delete_output: Endpoint<Parts> = {
  method: 'DELETE',
  path: '/v1/tasks/{id}/output',
  docs: {
    tag: 'Tasks',
    summary: 'Delete the files of a task',
    description: 'Their links then answer 404. The task itself does not change.',
    params: id,
    responses: { 204: { description: 'The files are deleted.' }, 409: { description: 'The task is not final.' } },
  },
  handle: async (app, call) => {
    await removeOutput(app, await taskRefOf(app.db, call));
    return { status: 204 };
  },
};

export const make_links: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/tasks/{id}/links',
  docs: {
    tag: 'Tasks',
    summary: 'Create new links to the files of a task',
    description: 'As long as the files are kept. Changes nothing else.',
    params: id,
    responses: {
      200: { description: 'The output items with new links.', schema: links },
      409: { description: 'The task is not final.' },
    },
  },
  handle: async (app, call) => ({
    status: 200,
    body: { object: 'list', data: await freshLinks(app, await taskRefOf(app.db, call)) },
  }),
};

async function isTaskOf(db: Db, caller: Caller, task_id: string): Promise<boolean> {
  const { id: account_id } = caller.account;
  if (!caller.key.is_limited) return hasTask(db, account_id, task_id);
  const row = await loadTask(db, { account_id, task_id });
  return row !== undefined && reaches(db, caller, row.key_id);
}

/** A task of another account, or out of reach of the key, is as unknown as one that never was. */
async function taskRefOf(db: Db, { caller, params }: Call): Promise<TaskRef> {
  const task_id = params['id'] ?? '';
  if (!isId('task', task_id)) throw unknownTask(task_id);
  const ref = { account_id: caller.account.id, task_id };
  if (!caller.key.is_limited) return ref;
  if (!(await isTaskOf(db, caller, task_id))) throw unknownTask(task_id);
  return ref;
}
