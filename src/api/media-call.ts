import type { Caller } from '../accounts/authenticate.ts';
import type { Db } from '../db/database.ts';
import type { UntilFinal } from '../tasks/wait.ts';
import { own } from '../catalog/input-schema.ts';
import type { JsonObject, MediaKind, Model } from '../catalog/model.ts';
import { wrongKind } from '../catalog/model-errors.ts';
import { ApiError } from '../errors.ts';
import { withTempFiles, type RequestTempFiles, type TempFileParts } from '../files/temp-files.ts';
import { exact } from '../money/money.ts';
import { offerOf, type MappedInput } from '../styles/media-parameters/offer.ts';
import { mapParameter, type Parameters } from '../styles/media-parameters/parameters.ts';
import {
  createTask,
  findMediaModel,
  priceTaskRequest,
  type CreatedTask,
  type CreateParts,
  type PricedTaskRequest,
} from '../tasks/create.ts';
import type { Attachment, Attachments } from '../tasks/media.ts';
import { loadTask, type Task } from '../tasks/task.ts';
import { refuseBlocked } from './blocked.ts';
import type { Call, ParameterDocs } from '../http/endpoint.ts';
import { readIdempotencyKey, readWait, wait_s_max } from './generate.ts';
import { readStream, stream_parameters } from './media-events.ts';
import { inputInForm, inputInJson, withoutOwn, type MediaInput } from './media-input.ts';
import { measureFile, withForm } from '../http/spooled-form.ts';

/** The parts of the app that calls which make media take. */
export type MediaCallParts = CreateParts & TempFileParts & { readonly untilFinal: UntilFinal };

/**
 * Calls in the form of the SDKs that make media in one request: a task like any other is created, held for and waited
 * for, and its result is answered in the SDK's words.
 */
export type MediaCall = {
  kind: MediaKind;
  /** Models of kind audio: true for those that write text, false for those that make audio. */
  makes_text: boolean;
  parameters: Parameters;
  /** Parameters that this path cannot do without, whatever the model says. */
  required: readonly string[];
  /** Parameters that the endpoint reads itself; no model gets them. */
  own: readonly string[];
  /** Parameters that every call of the path has. */
  fixed?: JsonObject;
  /** Throws ApiError 400 for parameters that the endpoint itself reads. */
  check?(input: MediaInput): void;
};

export const body_limit_bytes = 20_000_000;

const form_files_max = 17;

export const wait_query: Record<string, ParameterDocs> = {
  wait: {
    description: `Seconds to wait for the result; default and maximum: ${wait_s_max}.`,
    schema: { type: 'integer', minimum: 0 },
  },
};

export const idempotency_header: Record<string, ParameterDocs> = {
  'idempotency-key': {
    description: '1–255 characters. The same key and request answer the same task for 24 hours.',
    schema: { type: 'string', minLength: 1, maxLength: 255 },
  },
};

export const task_headers: Record<string, ParameterDocs> = {
  'x-task-id': { description: 'The task behind the answer: GET /v1/tasks/{id}.', schema: { type: 'string' } },
};

/** A task that a call has created, or created before. */
export type Begun = {
  created: CreatedTask;
  /** In which form the result is wanted, as it was given. */
  response_format: unknown;
  /** The result is asked for as events. */
  stream: boolean;
  wait_s: number;
  headers: Record<string, string>;
};

/** Creates the task of a call. Throws ApiError: 400 naming the parameter, and those of `createTask`. */
export async function begin(app: MediaCallParts, call: Call, media_call: MediaCall): Promise<Begun> {
  const begun = await beginWith(app, call, media_call);
  call.releaseBody(); // the wait may take minutes
  return begun;
}

function beginWith(app: MediaCallParts, call: Call, media_call: MediaCall): Promise<Begun> {
  const wishes = {
    idempotency_key: readIdempotencyKey(call.headers['idempotency-key']),
    wait_s: call.query.has('wait') ? readWait(call.query.get('wait')) : wait_s_max,
  };
  refuseBlocked(call.caller);
  if (!call.readForm) {
    return withTempFiles(app, call.caller.account.id, call, (spool) =>
      create(app, call, media_call, inputInJson(call), { ...wishes, spool }),
    );
  }
  const { file_bytes_max } = app.catalog.current.settings.files;
  const limits = { files_max: form_files_max, file_bytes_max, files_bytes_max: file_bytes_max };
  return withForm(app, call, limits, async (form, spool) =>
    create(app, call, media_call, await inputInForm(call, form), { ...wishes, spool }),
  );
}

async function create(
  app: MediaCallParts,
  call: Call,
  media_call: MediaCall,
  input: MediaInput,
  { idempotency_key, wait_s, spool }: { idempotency_key: string | undefined; wait_s: number; spool: RequestTempFiles },
): Promise<Begun> {
  const model = modelOf(app, call.caller, media_call, input);
  for (const name of media_call.required) {
    const value = own(input.parameters, name) ?? null;
    if (value === null) throw new ApiError('invalid_request', `${name} is required.`, { param: name });
  }
  media_call.check?.(input);
  const stream = readStream(input.parameters);
  const request = await requestOf(app, call, media_call, { model, input, spool });
  const idempotency = idempotency_key === undefined ? undefined : { key: idempotency_key, body: input.fingerprint };
  const created = await createTask(app, call.caller, request, idempotency);
  const headers = {
    'x-task-id': created.ref.task_id,
    ...(idempotency && { 'idempotency-replayed': String(created.replayed) }),
  };
  return { created, response_format: own(input.parameters, 'response_format') ?? null, stream, wait_s, headers };
}

/** The model that is meant; 404 if there is none, or one of another kind, and 403 if it is none of the key's. */
function modelOf(
  app: MediaCallParts,
  caller: Caller,
  { kind, makes_text }: MediaCall,
  { parameters }: MediaInput,
): Model {
  const id = own(parameters, 'model');
  if (typeof id !== 'string' || id === '') {
    throw new ApiError('invalid_request', 'model is required and must be a string.', { param: 'model' });
  }
  const model = findMediaModel(app, caller, id);
  if (model.kind !== kind || model.output_types.includes('text') !== makes_text) throw wrongKind(model);
  return model;
}

const service_own = ['model', 'metadata', 'webhook_url', ...stream_parameters];

async function requestOf(
  app: MediaCallParts,
  call: Call,
  media_call: MediaCall,
  { model, input, spool }: { model: Model; input: MediaInput; spool: RequestTempFiles },
): Promise<PricedTaskRequest> {
  const { parameters } = input;
  const fields = offerOf(model, media_call.kind);
  const sent = { ...withoutOwn(parameters, [...service_own, ...media_call.own]), ...media_call.fixed };
  const carried = mapParameter(fields, media_call.parameters, sent);
  const body = {
    model: model.id,
    input: carried.input,
    metadata: parameters['metadata'],
    webhook_url: parameters['webhook_url'],
  };
  try {
    return await priceTaskRequest(app, call.caller, body, {
      attachments: await attachmentsOf(app, call, input),
      spool,
    });
  } catch (error) {
    throw error instanceof ApiError ? inTheirWords(error, carried) : error;
  }
}

async function attachmentsOf(app: MediaCallParts, call: Call, { files }: MediaInput): Promise<Attachments> {
  const attachments = new Map<string, Attachment>();
  for (const [text, { path, parameter }] of files) {
    attachments.set(text, { path, probe: await measureFile(app, call, path, parameter) });
  }
  return attachments;
}

/** A mistake in the input is one in a parameter here, and these SDKs expect 400 for it. */
function inTheirWords(error: ApiError, { origins }: MappedInput): ApiError {
  if (error.kind !== 'invalid_input') return error;
  const { param = '' } = error.extras;
  const [, field] = /^input\.([^.[]+)/.exec(param) ?? [];
  if (field === undefined) return new ApiError('invalid_request', error.message, param === '' ? {} : { param });
  const parameter = origins.get(field) ?? field;
  const name = parameter === field ? field : `${parameter} (${field})`;
  return new ApiError('invalid_request', error.message.replaceAll(`input.${field}`, name), { param: parameter });
}

/** The final task. Throws ApiError: 504 while it still runs, and what a failure is called here. */
export async function finalTask(
  { db, untilFinal }: { db: Db; untilFinal: UntilFinal },
  call: Call,
  { created, wait_s }: Begun,
): Promise<Task> {
  const { ref } = created;
  if (!created.is_final) {
    await untilFinal(ref, wait_s * 1000, AbortSignal.any([call.gone, call.draining]));
  }
  const task = await loadTask(db, ref);
  if (task?.status === 'succeeded') return task;
  if (task?.status === 'failed') throw failureOf(task);
  const message = `The task ${ref.task_id} is not final yet and continues: GET /v1/tasks/${ref.task_id} will have its result.`;
  throw new ApiError('timeout', message, { headers: refusalHeaders(ref.task_id) });
}

/** A repetition would be another task, and cost as much again. */
function refusalHeaders(task_id: string): Record<string, string> {
  return { 'x-task-id': task_id, 'x-should-retry': 'false' };
}

function failureOf({ id, error_type, error_message }: Task): ApiError {
  const headers = refusalHeaders(id);
  const message = `The task ${id} failed and costs nothing: ${error_message ?? 'the reason is unknown.'}`;
  switch (error_type) {
    case 'content_policy_violation':
      return new ApiError('invalid_request', message, { code: error_type, headers });
    case 'invalid_request':
      return new ApiError('invalid_request', message, { headers });
    case 'timeout':
      return new ApiError('timeout', message, { headers });
    case 'canceled':
      return new ApiError('conflict', message, { code: error_type, headers });
    case 'internal_error':
      return new ApiError('internal_error', message, { headers });
    default:
      return new ApiError('upstream_error', message, { headers });
  }
}

/** Headers with the task's cost, to the millionth. */
export function costHeaders(task: Task): Record<string, string> {
  return { 'x-cost-amount': exact(task.cost), 'x-cost-currency': task.currency };
}

/** 404: the result was deleted, or kept for long enough. */
export function filesGone(task: Pick<Task, 'id'>): ApiError {
  return new ApiError('not_found', `The files of ${task.id} are no longer kept.`, {
    headers: refusalHeaders(task.id),
  });
}
