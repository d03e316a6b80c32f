import type { Logger } from 'pino';
import type { Caller } from '../accounts/authenticate.ts';
import type { BackgroundParts } from '../api/background.ts';
import { chatEndpoints, type ChatParts } from '../api/chat.ts';
import { embeddings, type EmbeddingsParts } from '../api/embeddings.ts';
import { moderate, type ModeratingParts } from '../api/moderations.ts';
import type { CallParts } from '../chat/call.ts';
import { insertRecord, type StoredRecord } from '../chat/record-row.ts';
import { rowOf } from '../chat/record.ts';
import { settle, type Charge, type CallSettlement } from '../chat/settle.ts';
import type { Permit, Semaphore } from '../concurrency/semaphore.ts';
import { isUnavailable, type Db } from '../db/database.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import type { ApiError } from '../errors.ts';
import type { CallerFile } from '../files/files.ts';
import type { Call, KeyedEndpoint } from '../http/endpoint.ts';
import { errorAnswer, expectedError, internalError } from '../http/error-answer.ts';
import { failpoint } from '../lib/failpoint.ts';
import { isRecord } from '../lib/is-record.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { acquireBodyMemory } from '../limits/body-memory.ts';
import type { HoldRequest } from '../money/holds.ts';
import { noteRefusal, type Refusals } from '../money/refusals.ts';
import { readUse, type StoredUse } from '../money/upstream.ts';
import type { Storage } from '../storage/storage.ts';
import type { Codec } from '../styles/codec.ts';
import { completions_errors } from '../styles/completions/errors.ts';
import type { Batch, BatchName } from './batches.ts';
import { line_bytes_max, parseLine } from './input.ts';
import { endLine, listAnswered, noteBooked, deferLine, type Line } from './lines.ts';

/** One line of a batch: a call of its endpoint as any other, whose answer is stored before it is booked. */

type EndpointParts = ChatParts & BackgroundParts & EmbeddingsParts & ModeratingParts;

/** The parts of the app that a call of a batch takes. */
export type LineParts = EndpointParts & {
  readonly db: Db;
  readonly log: Logger;
  readonly storage: Storage;
  readonly styles: readonly Codec[];
  readonly limits: { readonly body_memory: Semaphore };
  readonly refusals: Pick<Refusals, 'note'>;
};

/** The batch that a worker is at. */
export type LineRun = { batch: Batch; claim: string; caller: Caller; file: CallerFile; signal: AbortSignal };

/** Paths whose calls may be in batches, as in OpenAI's API. */
export const batch_paths = [
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/moderations',
];

function endpointAt(styles: readonly Codec[], path: string): KeyedEndpoint<EndpointParts> {
  const endpoints = [...chatEndpoints(styles), embeddings, moderate];
  const endpoint = endpoints.find((each) => each.path === path);
  if (!endpoint || endpoint.public === true || endpoint.session !== undefined) throw new Error(`no calls at ${path}`);
  return endpoint;
}

/**
 * The state of a call. `open`: its line is still to be ended. `lost`: the line is another worker's, or could not be ended.
 * `kept`: its answer is stored with its charge. `journaled`: so is the charge, in the journal of this node. `booked`: the
 * charge is booked, or never can be.
 */
type Fate = 'open' | 'lost' | 'kept' | 'journaled' | 'booked';

/** More than that many workers have died, or failed, with this line: it may be the line. */
const attempts_max = 16;

/** Makes the call of a line, and ends the line or defers it. */
export async function callLine(parts: LineParts, run: LineRun, line: Line): Promise<void> {
  if (line.attempts > attempts_max) return endWithoutCall(parts, run, line, 'server_error');
  const stop = new AbortController();
  const onStop = () => stop.abort(new Error('the worker stops'));
  run.signal.addEventListener('abort', onStop);
  if (run.signal.aborted) onStop();
  let fate: Fate = 'open';
  const keepEnd: NonNullable<CallParts['keepEnd']> = async (ended) => {
    const { priced, whole, hold, outcome, charge, upstream, created_at, total_ms } = ended;
    if (!whole || outcome.error) return false; // nobody gets it, so nobody pays for it
    const finished = { outcome, charge, charged: charge?.cost ?? 0n, upstream_cost: null, created_at, total_ms };
    const { currency } = priced.caller.account;
    const booking = { currency, model: priced.model.id, hold, charge, upstream, record: rowOf(priced, finished) };
    const end = { state: 'answered', status_code: 200, error_code: null, charge: booking, result: whole } as const;
    fate = (await keepAnswer(parts, run, line, end)) ? 'kept' : 'lost';
    outcome.is_gone ||= fate === 'lost'; // in its record
    return fate === 'kept';
  };
  let recorded = Promise.resolve();
  const noteSettled = ({ is_journaled }: CallSettlement, written: Promise<void>) => {
    recorded = written;
    if (fate === 'kept') fate = is_journaled ? 'journaled' : 'booked';
  };
  const stopping = AbortSignal.any([parts.stopping, stop.signal]);
  let permit: Permit | undefined;
  try {
    permit = await memoryFor(parts, run, line);
    const body = await readBody(parts, run, line);
    if (!body) return await endWithoutCall(parts, run, line, 'input_file_gone');
    const call = callOf(run, line, body, { stopping, releaseBody: () => permit?.release() });
    const line_parts = { ...parts, stopping, keepEnd, noteSettled };
    const answer = await endpointAt(parts.styles, run.batch.endpoint).handle(line_parts, call);
    if (isNow(fate, 'open')) throw new Error(`a call of a batch was answered ${answer.status} without its end`);
  } catch (error) {
    if (isNow(fate, 'open')) await endWithError(parts, run, line, error);
    else parts.log.error({ request_id: line.request_id, err: error }, 'a call of a batch failed after its answer');
    if (isNow(fate, 'kept') && !isUnavailable(error)) fate = 'booked'; // PostgreSQL refuses it: it would for ever
  } finally {
    run.signal.removeEventListener('abort', onStop);
    permit?.release();
  }
  await recorded; // a worker that dies before leaves the booking, which has the record, to the next one
  // Else the next turn books what is kept.
  if (isNow(fate, 'booked')) await retryWhileUnavailable(() => noteBooked(parts.db, line));
}

async function endWithoutCall(
  { db }: LineParts,
  { claim }: LineRun,
  line: Line,
  error_code: 'server_error' | 'input_file_gone',
): Promise<void> {
  const end = { state: 'done', status_code: null, error_code, charge: null, result: null } as const;
  await retryWhileUnavailable(() => endLine(db, line, claim, end));
}

/** The compiler does not see that a callback has changed it. */
function isNow(fate: Fate, expected: Fate): boolean {
  return fate === expected;
}

async function keepAnswer(parts: LineParts, { claim }: LineRun, line: Line, end: Parameters<typeof endLine>[3]) {
  try {
    const is_ours = await retryWhileUnavailable(() => endLine(parts.db, line, claim, end));
    if (is_ours) await failpoint('batch.answered');
    return is_ours;
  } catch (error) {
    parts.log.error({ request_id: line.request_id, err: error }, 'an answer of a batch could not be stored');
    return false;
  }
}

const counted_bytes_min = 65_536;
const memory_timeout_ms = 10_000;

async function memoryFor(parts: LineParts, { batch, signal }: LineRun, line: Line): Promise<Permit | undefined> {
  if (line.size_bytes < counted_bytes_min) return undefined;
  const waiting = { timeout_ms: memory_timeout_ms, signal };
  return acquireBodyMemory(parts.limits.body_memory, batch.account_id, line.size_bytes, waiting);
}

/** Reads the body of a line's call; undefined where the input file was deleted after the run had begun. */
async function readBody(
  { storage }: LineParts,
  { file }: LineRun,
  line: Line,
): Promise<Record<string, unknown> | undefined> {
  const start = Number(line.start_bytes);
  const opened = await storage.open(file.storage_key, { start, end: start + line.size_bytes - 1 });
  const bytes = opened && (await readBytes(opened.stream, line_bytes_max));
  const body = bytes && parseLine(bytes)?.['body'];
  return isRecord(body) ? body : undefined;
}

type CallEnds = { stopping: AbortSignal; releaseBody: () => void };

function callOf(run: LineRun, line: Line, body: Record<string, unknown>, { stopping, releaseBody }: CallEnds): Call {
  return {
    method: 'POST',
    path: run.batch.endpoint,
    params: {},
    query: new Map(),
    headers: {},
    body,
    body_bytes: Buffer.alloc(0),
    readForm: undefined,
    readStream: undefined,
    address: '',
    request_id: line.request_id,
    gone: stopping,
    draining: stopping,
    releaseBody,
    caller: run.caller,
  };
}

const tries_max = 8;
const wait_ms_max = 60_000;

/** Ends a line with its error, or defers it where a later try may help. */
async function endWithError(parts: LineParts, run: LineRun, line: Line, error: unknown): Promise<void> {
  const { db, clock, log } = parts;
  const now_ms = clock.now();
  const expected = expectedError(error);
  const is_stopped = run.signal.aborted;
  if (!expected && !is_stopped) log.error({ request_id: line.request_id, err: error }, 'a call of a batch failed');
  const failure = expected ?? internalError();
  if (is_stopped || isForLater(failure, line)) {
    const is_counted = !is_stopped && !isFull(failure);
    const not_before = new Date(now_ms + (is_stopped ? 0 : waitMs(failure, line)));
    return retryWhileUnavailable(() => deferLine(db, line, run.claim, { not_before, is_counted }));
  }
  const { status, body } = errorAnswer(failure, completions_errors, line.request_id);
  const end = {
    state: 'done',
    status_code: status,
    error_code: null,
    charge: null,
    result: Buffer.from(body),
  } as const;
  const has_ended = await retryWhileUnavailable(() => endLine(db, line, run.claim, end));
  if (has_ended) noteRefusal(parts.refusals, run.caller, failure); // else another worker has it, and counts it
}

/** Full, here or upstream, or away: it says nothing about the call. */
function isFull({ status, extras }: ApiError): boolean {
  return status === 429 || status === 503 || extras.code === 'rate_limit_exceeded';
}

/** Tells whether to try again: until the batch expires where something is full or away, else some times. */
function isForLater(error: ApiError, { attempts }: Line): boolean {
  const { status, extras } = error;
  if (extras.headers?.['x-should-retry'] === 'false') return false;
  if (isFull(error)) return true;
  return (status === 500 || status === 502 || status === 504) && attempts < tries_max;
}

function waitMs({ extras }: ApiError, { attempts }: Line): number {
  const asked_ms = Number(extras.headers?.['retry-after'] ?? 0) * 1000;
  const own_ms = 500 * 2 ** Math.min(attempts, 8) * (0.75 + Math.random() / 2);
  return Math.min(wait_ms_max, Math.max(own_ms, Number.isFinite(asked_ms) ? asked_ms : 0));
}

/** The request of a hold as its row has it. */
type StoredHold = Omit<HoldRequest, 'amount' | 'cost_max'> & { amount: string; cost_max?: string };

/** A charge as its row has it: amounts are texts. */
type Booking = {
  currency: string;
  model: string;
  /** Absent where a node of an earlier version has stored it. */
  hold?: StoredHold;
  charge?: Omit<Charge, 'cost'> & { cost: string };
  upstream?: StoredUse;
  record: StoredRecord;
};

/**
 * Books what a worker that died, or for which the database was away, has stored and perhaps not booked: each of it once,
 * however often this is done.
 */
export async function bookAnswered(parts: LineParts, { account_id, id }: BatchName): Promise<void> {
  for (const { number, request_id, charge: stored } of await listAnswered(parts.db, { account_id, id })) {
    const { currency, model, hold, charge, upstream, record } = stored as Booking; // written by this file
    const call = { caller: { account: { id: account_id, currency } }, request_id, model: { id: model } };
    const settled = await settle(parts, call, {
      // The node that died may have had it in its memory alone: then it is booked together with its end.
      ...(hold && { hold: readHold(hold) }),
      charge: charge && { ...charge, cost: BigInt(charge.cost) },
      upstream: upstream && readUse(upstream),
    });
    if (settled.is_journaled) continue; // it stays as it is until that has happened
    await insertRecord(parts, record, { cost: settled.charged, upstream_cost: settled.upstream_cost });
    await noteBooked(parts.db, { account_id, id, number });
  }
}

function readHold({ amount, cost_max, ...facts }: StoredHold): HoldRequest {
  return { ...facts, amount: BigInt(amount), ...(cost_max !== undefined && { cost_max: BigInt(cost_max) }) };
}
