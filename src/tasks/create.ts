import { createHash } from 'node:crypto';
import type { Engine } from '../queue/queue.ts';
import type { Caller } from '../accounts/authenticate.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import { isMediaKind, type JsonObject, type Model } from '../catalog/model.ts';
import { estimateUnits, freezePricing, holdAmount, measuredUnits, type Pricing, type Units } from '../catalog/price.ts';
import { checkModelAllowed } from '../catalog/key-models.ts';
import { unavailableText, wrongKind } from '../catalog/model-errors.ts';
import { modelNamed } from '../catalog/names.ts';
import { ApiError } from '../errors.ts';
import { checkUserUrl, type AddressRules } from '../net/address.ts';
import { nearest } from '../lib/edit-distance.ts';
import { failpoint } from '../lib/failpoint.ts';
import { newId } from '../lib/ids.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { budgetReached, refusingBudget } from '../money/account-budgets.ts';
import { hasLaterEntry } from '../money/ledger.ts';
import { balanceView, estimateView, type Money } from '../money/money.ts';
import { routeName, type Admission, type RouteHealth } from '../routing/health.ts';
import { activeTraceparent } from '../tracing/tracer.ts';
import { insertTask, onceText, type CreateAnswer, type InsertParts, type KeyOnce } from './create-batch.ts';
import { dropInputs } from './inputs.ts';
import { checkMedia, keepMedia, type AttachedFiles, type CheckedMedia, type MediaParts } from './media.ts';
import { bodyOf, loadTask, renderTask, type TaskRef } from './task.ts';
import type { Throttle } from './throttled.ts';

/** The parts of the app that creating a task takes. */
export type CreateParts = MediaParts &
  InsertParts & {
    readonly engine: Engine;
    readonly health: RouteHealth;
    readonly throttle: Pick<Throttle, 'countWaiting'>;
    readonly metrics: Metrics;
  };

/** A request for a task that has passed all checks of its own, with its price. */
export type PricedTaskRequest = {
  model: Model;
  input: JsonObject;
  media: CheckedMedia;
  metadata: Record<string, string>;
  webhook_url: string | null;
  pricing: Pricing;
  held_units: Units;
  estimate: Money;
};

/** For backups: a key is there from the hold of its task on. */
export const growing_idempotency_keys: GrowingTable = {
  name: 'public.idempotency_keys',
  keys: ['key'],
  is_later: hasLaterEntry('r.task_id', ['hold']),
};

const body_fields = ['model', 'input', 'webhook_url', 'metadata'];
const url_length_max = 2048;

/**
 * Checks a body of POST /v1/generate in the order of docs/spec-coverage.md: 400 for the form, 404 for the model,
 * 422 for the input, 422 for the webhook's address; and prices it. Throws ApiError.
 */
export async function priceTaskRequest(
  parts: MediaParts,
  caller: Caller,
  body: Record<string, unknown>,
  attached: AttachedFiles,
): Promise<PricedTaskRequest> {
  checkFields(body);
  const metadata = readMetadata(body['metadata']);
  const model = findMediaModel(parts, caller, body['model']);
  const checked = model.validateInput(body['input']);
  if (!checked.ok) {
    const [first] = checked.errors;
    throw new ApiError('invalid_input', first?.message ?? 'input does not match the model.', {
      ...(first && { param: first.field }),
      details: checked.errors,
    });
  }
  const media = await checkMedia(parts, caller, model, checked.input, attached);
  const webhook_url = readWebhookUrl(body['webhook_url'], parts.addressRules());
  const { settings } = parts.catalog.current;
  const frozen = freezePricing(model, checked.input, caller.account.currency, settings);
  const held_units = estimateUnits(model, checked.input, media.durations);
  const pricing = media.durations.size === 0 ? frozen : { ...frozen, input_units: measuredUnits(model, held_units) };
  return {
    model,
    input: checked.input,
    media,
    metadata,
    webhook_url,
    pricing,
    held_units,
    estimate: holdAmount(pricing, held_units),
  };
}

function checkFields(body: Record<string, unknown>): void {
  if (body['model'] === undefined) throw new ApiError('invalid_request', 'model is required.', { param: 'model' });
  if (typeof body['model'] !== 'string' || body['model'] === '') {
    throw new ApiError('invalid_request', 'model must be a non-empty string.', { param: 'model' });
  }
  if (body['input'] === undefined) throw new ApiError('invalid_request', 'input is required.', { param: 'input' });
  for (const field of Object.keys(body)) {
    if (body_fields.includes(field)) continue;
    const near = nearest(field, body_fields);
    const shown = JSON.stringify(field.slice(0, 60));
    throw new ApiError('invalid_request', `${shown} is not a known field.${near ? ` Did you mean "${near}"?` : ''}`, {
      param: field.slice(0, 60),
    });
  }
}

/** Reads metadata: at most 16 pairs of strings, keys to 64 and values to 512 characters, no NUL. Throws ApiError 400. */
export function readMetadata(value: unknown): Record<string, string> {
  if (value === undefined || value === null) return {};
  const invalidMetadata = (message: string) => new ApiError('invalid_request', message, { param: 'metadata' });
  if (typeof value !== 'object' || Array.isArray(value))
    throw invalidMetadata('metadata must be an object of strings.');
  const pairs = Object.entries(value);
  if (pairs.length > 16) throw invalidMetadata(`metadata may have at most 16 pairs (got ${pairs.length}).`);
  for (const [key, text] of pairs) {
    const shown = JSON.stringify(key.slice(0, 64));
    if (key.length > 64)
      throw invalidMetadata(`metadata keys may have at most 64 characters (${shown} has ${key.length}).`);
    if (typeof text !== 'string') throw invalidMetadata(`metadata[${shown}] must be a string.`);
    if (text.length > 512)
      throw invalidMetadata(`metadata[${shown}] may have at most 512 characters (got ${text.length}).`);
    if (key.includes('\0') || text.includes('\0')) throw invalidMetadata(`metadata[${shown}] must not contain NUL.`);
  }
  return Object.fromEntries(pairs);
}

/**
 * The media model of this name. Throws ApiError 404, which names the right endpoint for another kind's model, and 403 where
 * the key may not use it.
 */
export function findMediaModel({ catalog }: { catalog: CatalogHolder }, { key }: Caller, id: unknown): Model {
  const model = modelNamed(catalog.current, String(id), 'model');
  if (!isMediaKind(model.kind)) throw wrongKind(model);
  checkModelAllowed(catalog.current, key, model);
  return model;
}

function readWebhookUrl(value: unknown, rules: AddressRules): string | null {
  if (value === undefined || value === null) return null;
  const invalidUrl = (message: string) =>
    new ApiError('invalid_input', `webhook_url ${message}`, { param: 'webhook_url' });
  if (typeof value !== 'string') throw invalidUrl('must be a string.');
  if (value.length > url_length_max)
    throw invalidUrl(`may have at most ${url_length_max} characters (got ${value.length}).`);
  const problem = checkUserUrl(value, rules);
  if (problem) throw invalidUrl(problem);
  return value;
}

export type CreatedTask = { ref: TaskRef; body: string; replayed: boolean; is_final: boolean };

/** The header Idempotency-Key, and the bytes that came with it. */
export type Idempotency = { key: string; body: Buffer };

/**
 * Creates a task: the hold, the row and its job, in one database call (create-batch.ts). Throws
 * ApiError 502/504 when no route is usable, 429 in the failures pause or when too many tasks wait, 402, 403, and for
 * Idempotency-Key 409 and 422.
 */
export async function createTask(
  parts: CreateParts,
  caller: Caller,
  request: PricedTaskRequest,
  repeated: Idempotency | undefined,
): Promise<CreatedTask> {
  const account_id = caller.account.id;
  const once = repeated && onceOf(caller, repeated);
  const routes = request.model.routes.map((route) => routeName(request.model.id, route.id));
  const { waiting_tasks } = parts.catalog.current.settings.limits;
  const is_crowded = (await parts.throttle.countWaiting(account_id)) >= waiting_tasks;
  const admission = is_crowded ? undefined : await parts.health.admit(routes, account_id);
  const now_ms = parts.clock.now();
  const id = newId('task', now_ms);
  const created_at = new Date(now_ms);
  if (!admission?.admitted) {
    const seen = once && (await findReplay(parts.db, caller, once, created_at));
    if (!seen) throw admission ? unavailable(request.model, admission) : tooManyWaiting(waiting_tasks);
    return answered(parts, caller, request, seen, { id, created_at });
  }
  let answer: CreateAnswer | undefined;
  try {
    answer = await callCreate(parts, caller, request, { id, created_at, once });
  } finally {
    if (admission.probe !== undefined && answer?.outcome !== 'created')
      await parts.health.releaseProbe(admission.probe, account_id);
    // Not after an error: the task may be there, and only the answer lost.
    if (request.media.sources.size > 0 && answer && answer.outcome !== 'created') {
      await dropInputs(parts, request.model.id, { account_id, task_id: id });
    }
  }
  return answered(parts, caller, request, answer, { id, created_at });
}

/**
 * Names a request among those of its account. A limited key has names of its own, and finds no task of others by theirs; the
 * keys of a rotation have the same names.
 */
function onceOf({ key }: Caller, { key: account_key, body }: Idempotency): KeyOnce {
  const name = createHash('sha256')
    .update(`${key.budget_id ?? key.id}\0${account_key}`)
    .digest('hex');
  const shared_key = `limited ${name}`;
  const body_hash = createHash('sha256').update(body).digest();
  return { key: key.is_limited ? shared_key : account_key, shared_key, account_key, body_hash };
}

async function answered(
  parts: CreateParts,
  caller: Caller,
  request: PricedTaskRequest,
  answer: CreateAnswer,
  { id, created_at }: { id: string; created_at: Date },
): Promise<CreatedTask> {
  if (answer.outcome === 'replayed' && answer.task_id !== null) return replay(parts.db, caller, answer.task_id);
  if (answer.outcome !== 'created') throw await refusal(parts, caller, request, answer, created_at);
  await failpoint('task.created');
  parts.metrics.tasks_created.add({ model: request.model.id });
  parts.engine.wake('task.start');
  const ref = { account_id: caller.account.id, task_id: id };
  return { ref, body: newBody(request, caller, id, created_at), replayed: false, is_final: false };
}

/** More would wait behind those that do. */
function tooManyWaiting(waiting_tasks: number): ApiError {
  const message = `${waiting_tasks} tasks of this account wait for a model provider that is full. Try again when some of them have started.`;
  return new ApiError('rate_limit', message, { headers: { 'retry-after': String(crowded_retry_s) } });
}

const crowded_retry_s = 10;

/** All routes are open-circuited, or taken away: nothing is created, nothing held. */
function unavailable(model: Model, admission: Admission & { admitted: false }): ApiError {
  const headers = { 'retry-after': String(Math.ceil(admission.retry_after_ms / 1000)) };
  if (admission.cause === 'timeout') {
    const message = `${model.id} is not answering in time at the moment. Try again shortly.`;
    return new ApiError('timeout', message, { headers });
  }
  const message = model.changed?.is_off
    ? `${model.id} is switched off at the moment.`
    : `${unavailableText(model)} Try again shortly.`;
  return new ApiError('upstream_error', message, { headers });
}

async function callCreate(
  parts: CreateParts,
  caller: Caller,
  request: PricedTaskRequest,
  task: { id: string; created_at: Date; once: KeyOnce | undefined },
): Promise<CreateAnswer> {
  const { account, key } = caller;
  const deadline_at = deadline(request.model, task.created_at);
  const input = await keepMedia(parts, caller, request, { id: task.id, deadline_at });
  const row = {
    account_id: account.id,
    key_id: key.id,
    id: task.id,
    model: request.model.id,
    kind: request.model.kind,
    input: JSON.stringify(input),
    metadata: JSON.stringify(request.metadata),
    webhook_url: request.webhook_url,
    traceparent: activeTraceparent() ?? null,
    currency: account.currency,
    pricing: request.pricing,
    held_units: request.held_units,
    estimate: request.estimate,
    created_at: task.created_at,
    deadline_at,
  };
  return insertTask(parts, row, task.once);
}

/** Returns the answer of insert_task to a key that it has seen; a retry need not wait for a route to heal. */
async function findReplay(db: Db, { account, key }: Caller, once: KeyOnce, now: Date) {
  const rows = await db.query<CreateAnswer>(
    `select case when body_hash = $5 then 'replayed' else 'mismatched' end as outcome, task_id,
       null as retry_after, null as available, null as remaining
       from find_repeated($1, $2, $3, $4)`,
    [account.id, key.id, onceText(once), now, once.body_hash],
  );
  return rows[0];
}

const backlog_ms = 3_600_000;

/** Every route may use its whole time, and an hour may pass in a backlog: then the sweep ends it. */
function deadline(model: Model, created_at: Date): Date {
  const routes_ms = model.routes.reduce((sum, route) => sum + route.timeout_ms.start + route.timeout_ms.total, 0);
  return new Date(created_at.getTime() + routes_ms + backlog_ms);
}

function newBody(request: PricedTaskRequest, caller: Caller, id: string, created_at: Date): string {
  return renderTask({
    id,
    status: 'queued',
    model: request.model.id,
    output: [],
    currency: caller.account.currency,
    cost: 0n,
    estimate: request.estimate,
    error_type: null,
    error_message: null,
    metadata: JSON.stringify(request.metadata),
    created_at,
    started_at: null,
    completed_at: null,
  });
}

async function replay(db: Db, caller: Caller, task_id: string): Promise<CreatedTask> {
  const ref = { account_id: caller.account.id, task_id };
  const task = await loadTask(db, ref);
  if (!task) throw new ApiError('not_found', `The task ${task_id} of this Idempotency-Key is no longer kept.`);
  return { ref, body: bodyOf(task), replayed: true, is_final: task.completed_at !== null };
}

async function refusal(
  parts: CreateParts,
  caller: Caller,
  request: PricedTaskRequest,
  answer: CreateAnswer,
  now: Date,
): Promise<ApiError> {
  const { currency } = caller.account;
  const estimate = `${estimateView(request.estimate, currency).amount} ${currency}`;
  const of_task = { key_id: caller.key.id, model: request.model.id };
  switch (answer.outcome) {
    case 'insufficient': {
      const available = `${balanceView(answer.available ?? 0n, currency).amount} ${currency}`;
      const message = caller.key.is_limited
        ? `The task needs a hold of ${estimate}, which is more than the account has. Ask an owner of the account.`
        : `The task needs a hold of ${estimate}, but only ${available} is available. Top up the balance.`;
      return new ApiError('insufficient_balance', message, {
        refusal: { reason: 'insufficient_balance', ...of_task },
      });
    }
    case 'over_limit': {
      const whose = { account_id: caller.account.id, key_id: caller.key.id };
      const budget = await refusingBudget(parts.db, whose, now);
      if (budget)
        return budgetReached(budget, {
          what: 'task',
          needed: estimate,
          currency,
          is_limited: caller.key.is_limited,
          ...of_task,
        });
      const remaining = `${balanceView(answer.remaining ?? 0n, currency).amount} ${currency}`;
      const message =
        `This key's monthly spend limit is reached: the task needs a hold of ${estimate}, ${remaining} is left. ` +
        'Create a key with a higher limit or use another key.';
      return new ApiError('key_limit', message, {
        code: 'monthly_limit',
        refusal: { reason: 'monthly_limit', ...of_task },
      });
    }
    case 'paused': {
      const limit = parts.catalog.current.settings.limits.failed_per_24h;
      const message = `${limit} generations failed on this account in the last 24 hours: new tasks are paused. Wait, and change the prompt or its parameters.`;
      return new ApiError('failures_pause', message, {
        headers: { 'retry-after': String(answer.retry_after) },
        refusal: { reason: 'failures_pause', ...of_task },
      });
    }
    case 'in_flight':
      return new ApiError('conflict', 'A request with this Idempotency-Key is in progress.', {
        code: 'conflict',
        headers: { 'retry-after': '1' },
      });
    case 'mismatched':
      return new ApiError(
        'invalid_input',
        'This Idempotency-Key was used with another body. Use a new key for a new request.',
        {
          param: 'idempotency-key',
        },
      );
    default:
      throw new Error(`insert_task answered ${answer.outcome}`);
  }
}
