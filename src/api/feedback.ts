import Type from 'typebox';
import type { Caller } from '../accounts/authenticate.ts';
import { keysSeenBy, reaches } from '../accounts/limited-keys.ts';
import type { JsonObject } from '../catalog/model.ts';
import { awaitRecord, keyOfCall } from '../chat/record.ts';
import type { Db, Queryable } from '../db/database.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { ApiError } from '../errors.ts';
import {
  default_metric,
  giveFeedback,
  listFeedback,
  removeFeedback,
  scores_max,
  type Feedback,
  type FeedbackSight,
} from '../feedback/feedback.ts';
import type { Answer, Call, Endpoint, Query } from '../http/endpoint.ts';
import { wholeNumber } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { isId } from '../lib/ids.ts';
import { isObject, memberOf, mistake, needText, readList, readNumber, readText } from '../styles/fields.ts';
import { readMetadata } from '../tasks/create.ts';
import { keyOfTask, loadTask } from '../tasks/task.ts';
import { refuseBlocked } from './blocked.ts';
import { feedback, limited_key_docs, listOf, too_slow } from './schemas.ts';

/** The parts of the app that feedback takes. */
type Parts = { readonly db: Db; readonly clock: Clock };

/** Those that a list of it takes. */
type ListParts = Parts & ReadParts;

const name_max = 64;
const user_max = 256;
const comment_max = 4_000;
const tags_max = 16;
const tag_max = 64;

const name_form = /^[A-Za-z0-9_.-]+$/;
const name_pattern = `^[A-Za-z0-9_.-]{1,${name_max}}$`;

const text = (description: string, maxLength: number) => ({ type: 'string', description, maxLength });

export const give_feedback: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/feedback',
  docs: {
    tag: 'Feedback',
    summary: 'Give feedback',
    description:
      'Scores a chat call that has ended, or a task, of the same account, for a key that is limited to a project: of that. The same call, metric and end user have one ' +
      'score: the last one that was given. It is removed with the record of the call.',
    body: {
      schema: {
        type: 'object',
        required: ['reference_id', 'score'],
        additionalProperties: false,
        properties: {
          reference_id: { type: 'string', description: 'The `x-request-id` of a chat call, or the id of a task.' },
          score: {
            description: 'From -1 to 1; true is 1, false is -1.',
            anyOf: [{ type: 'number', minimum: -1, maximum: 1 }, { type: 'boolean' }],
          },
          name: { type: 'string', description: 'The metric.', pattern: name_pattern, default: default_metric },
          user: { ...text('The end user whose score it is.', user_max), type: ['string', 'null'] },
          comment: { ...text('Words of the end user.', comment_max), type: ['string', 'null'] },
          tags: { type: ['array', 'null'], items: { type: 'string', maxLength: tag_max }, maxItems: tags_max },
          metadata: { type: ['object', 'null'], additionalProperties: { type: 'string' } },
        },
      },
      examples: { thumbs_up: { reference_id: 'TASK_ID', score: true, comment: 'As I wished.' } },
    },
    responses: { 200: { description: 'The feedback.', schema: feedback } },
    errors: [403, 404],
  },
  handle: handleGive,
};

const fields = new Set(['reference_id', 'score', 'name', 'user', 'comment', 'tags', 'metadata']);

async function handleGive({ db, clock }: Parts, { caller, body, gone, draining }: Call): Promise<Answer> {
  refuseBlocked(caller);
  if (!isObject(body)) throw new ApiError('invalid_request', 'The body must be a JSON object.');
  const unknown = Object.keys(body).find((key) => !fields.has(key));
  if (unknown !== undefined) throw mistake(unknown.slice(0, 64), `is no field of feedback`);
  const { id: account_id } = caller.account;
  const reference_id = needText(body, 'reference_id', 'reference_id');
  const scored = {
    name: metricNamed(readText(body, 'name', 'name'), 'name') ?? default_metric,
    end_user: endUserIn(body),
    score: readScore(body),
    comment: limited(body, 'comment', comment_max) ?? null,
    tags: readTags(body),
    metadata: readMetadata(body['metadata']),
  };
  const about = { account_id, reference_id, sees: (key_id: string) => reaches(db, caller, key_id) };
  const referred_at = await beginOf({ db, clock }, about, AbortSignal.any([gone, draining]));
  const row = { ...scored, account_id, key_id: caller.key.id, reference_id, referred_at };
  const stored = await giveFeedback(db, row, new Date(clock.now()));
  if (!stored) throw tooMany();
  return { status: 200, body: feedbackView(stored) };
}

export function tooMany(): ApiError {
  return new ApiError('conflict', `A call has at most ${scores_max} scores: delete one first.`, { code: 'conflict' });
}

/** `sees`: tells whether what a key made is in sight. */
type Reference = { account_id: string; reference_id: string; sees: (key_id: string) => Promise<boolean> };

/** Returns the start of a call that has ended, or of a task, of the account. Throws 404, at one that is out of sight too. */
export async function beginOf(
  parts: Parts,
  { account_id, reference_id, sees }: Reference,
  signal: AbortSignal,
): Promise<Date> {
  if (isId('task', reference_id)) {
    const task = await loadTask(parts.db, { account_id, task_id: reference_id });
    if (task && (await sees(task.key_id))) return task.created_at;
  }
  if (isId('req', reference_id)) {
    const record = await awaitRecord(parts, { account_id, id: reference_id, sees }, signal);
    if (record) return record.created_at;
  }
  const shown = JSON.stringify(reference_id.slice(0, 64));
  throw new ApiError(
    'not_found',
    `There is no chat call that has ended, and no task, ${shown}. Send the x-request-id of a call, or the id of a task.`,
    { param: 'reference_id' },
  );
}

function readScore(body: JsonObject): number {
  const value = memberOf(body, 'score');
  if (typeof value === 'boolean') return value ? 1 : -1;
  const score = readNumber(body, 'score', 'score');
  if (score === undefined) throw mistake('score', 'is required');
  if (score < -1 || score > 1) throw mistake('score', `must be a number from -1 to 1, or true or false (got ${score})`);
  return score;
}

/** Ids of persons stand for their own scores in the dashboard, which no key gives for them. */
function endUserIn(body: JsonObject): string {
  const end_user = limited(body, 'user', user_max) ?? '';
  if (isId('user', end_user)) throw mistake('user', 'may not be the id of a person who signs in to the dashboard');
  return end_user;
}

function limited(body: JsonObject, key: string, length_max: number): string | undefined {
  const value = readText(body, key, key);
  if (value !== undefined && value.length > length_max)
    throw mistake(key, `may have at most ${length_max} characters (got ${value.length})`);
  return value?.toWellFormed().replaceAll('\0', '');
}

function readTags(body: JsonObject): string[] {
  const tags = readList(body, 'tags', 'tags') ?? [];
  if (tags.length > tags_max) throw mistake('tags', `may have at most ${tags_max} members (got ${tags.length})`);
  const texts = tags.map((tag, index) => {
    if (typeof tag !== 'string' || tag === '' || tag.length > tag_max)
      throw mistake(`tags[${index}]`, `must be a text of 1 to ${tag_max} characters`);
    return tag.toWellFormed().replaceAll('\0', '');
  });
  return [...new Set(texts)];
}

/** Checks the name of a metric; undefined stays undefined. Throws ApiError 400. */
export function metricNamed(name: string | undefined, at: string): string | undefined {
  if (name === undefined || (name.length <= name_max && name_form.test(name))) return name;
  throw mistake(at, `must have 1 to ${name_max} letters, digits, dots, dashes and underscores`);
}

/** Feedback as callers see it. */
function feedbackView({ end_user, created_at, updated_at, ...rest }: Feedback) {
  const { id, reference_id, name, score, comment, tags, metadata } = rest;
  return {
    id,
    object: 'feedback' as const,
    reference_id,
    name,
    user: end_user === '' ? null : end_user,
    score,
    comment,
    tags,
    metadata,
    created_at: created_at.toISOString(),
    updated_at: updated_at.toISOString(),
  };
}

/** A score is seen by whoever sees the call or the task that it is of. */
async function sightOf(db: Queryable, caller: Caller): Promise<FeedbackSight> {
  const keyOf = (account: string, id: string) => `${keyOfTask(account, id)} union all ${keyOfCall(account, id)}`;
  return { keys: await keysSeenBy(db, caller), keyOf };
}

const any_text = { type: 'string' };

export const list_feedback: Endpoint<ListParts> = {
  method: 'GET',
  path: '/v1/feedback',
  docs: {
    tag: 'Feedback',
    summary: 'List feedback',
    description: `The feedback of the account, newest first. ${limited_key_docs}`,
    query: {
      reference_id: { description: 'Only on this call or task.', schema: any_text },
      name: { description: 'Only of this metric.', schema: any_text },
      user: { description: 'Only of this end user.', schema: any_text },
      limit: { description: 'Number of scores.', schema: { type: 'integer', minimum: 1, maximum: 100, default: 20 } },
      after: { description: 'Older than this one.', schema: any_text },
      before: { description: 'Newer than this one.', schema: any_text },
    },
    responses: { 200: { description: 'A page of feedback.', schema: listOf(feedback) }, 504: too_slow },
  },
  handle: async (app, { caller, query, gone }) => {
    const db = reading(app, { key: caller.account.id, gone });
    const [after, before] = [cursor(query, 'after'), cursor(query, 'before')];
    if (after !== undefined && before !== undefined) throw mistake('before', 'and after cannot be given together');
    const page = await listFeedback(db, {
      account_id: caller.account.id,
      sight: await sightOf(db, caller),
      limit: wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 20,
      after,
      before,
      reference_id: query.get('reference_id')?.replaceAll('\0', ''),
      name: metricNamed(query.get('name'), 'name'),
      end_user: query.get('user')?.replaceAll('\0', ''),
    });
    const data = page.feedback.map(feedbackView);
    const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
    return { status: 200, body: { object: 'list', data, has_more: page.has_more, first_id, last_id } };
  },
};

function cursor(query: Query, name: 'after' | 'before'): string | undefined {
  const value = query.get(name);
  if (value === undefined || isId('feedback', value)) return value;
  throw mistake(name, 'must be the id of feedback');
}

export const delete_feedback: Endpoint<Parts> = {
  method: 'DELETE',
  path: '/v1/feedback/{id}',
  docs: {
    tag: 'Feedback',
    summary: 'Delete feedback',
    description:
      'Removes one score, as if nobody had given it. A key that is limited to a project removes those of its project.',
    params: { id: { description: 'Id of the feedback.', schema: any_text } },
    responses: {
      200: {
        description: 'It is deleted.',
        schema: Type.Object({ id: Type.String(), object: Type.Literal('feedback'), deleted: Type.Boolean() }),
      },
    },
    errors: [404],
  },
  handle: async ({ db }, { caller, params }) => {
    const { id = '' } = params;
    const which = { account_id: caller.account.id, id, sight: await sightOf(db, caller) };
    const is_removed = isId('feedback', id) && (await removeFeedback(db, which));
    if (!is_removed) throw new ApiError('not_found', `There is no feedback ${JSON.stringify(id.slice(0, 64))}.`);
    return { status: 200, body: { id, object: 'feedback', deleted: true } };
  },
};
